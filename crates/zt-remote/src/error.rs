//! Faults of addresses and transfers, as errors of `zt`.

use std::io;

use zt::{Error, ErrorKind, codes};

/// What this crate finds itself.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("is no URL: {why}")]
    NotUrl { why: url::ParseError },
    #[error("this build does not read URLs that begin with \"{scheme}:\"")]
    Scheme { scheme: String },
    #[error("the connection would not be encrypted: allow that with `allow_http`")]
    NotEncrypted,
    #[error("names no file: it ends with a folder")]
    NoFile,
    #[error("the URL of a file on the Hub is hf://OWNER/REPOSITORY[@REVISION]/PATH")]
    Hub,
    #[error("{why}")]
    Settings { why: String },
    #[error("was replaced while it was read: open it again")]
    Changed,
    #[error("the server sent {found} bytes where {expected} were asked for")]
    Length { expected: u64, found: u64 },
    #[error("files cannot be written to this server, only read")]
    ReadOnly,
    #[error("there is an object of this name already")]
    Exists,
    #[error("the upload was cancelled")]
    Cancelled,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let (kind, code) = match &fault {
            Fault::NotUrl { .. }
            | Fault::NotEncrypted
            | Fault::NoFile
            | Fault::Hub
            | Fault::Settings { .. } => (ErrorKind::Misuse, codes::PATH),
            Fault::Scheme { .. } | Fault::ReadOnly => (ErrorKind::Unsupported, codes::UNSUPPORTED),
            Fault::Changed => (ErrorKind::Io, codes::CHANGED),
            Fault::Exists => (ErrorKind::Misuse, codes::OVERWRITE),
            Fault::Length { .. } | Fault::Cancelled => (ErrorKind::Io, codes::IO),
        };
        Error::new(kind, code, fault)
    }
}

/// The error of a store, without anything secret.
pub(crate) fn of_store(error: &object_store::Error) -> Error {
    use object_store::Error as Store;
    let kind = match error {
        Store::Precondition { .. } => return Fault::Changed.into(),
        Store::AlreadyExists { .. } => return Fault::Exists.into(),
        Store::NotFound { .. } => io::ErrorKind::NotFound,
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        Store::NotSupported { .. } | Store::NotImplemented { .. } => io::ErrorKind::Unsupported,
        _ => io::ErrorKind::Other,
    };
    Error::from(io::Error::new(kind, without_secrets(&text_of(error))))
}

/// The texts of `error` and its sources, each once. Libraries repeat the text of a source in their own.
fn text_of(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let more = source.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = source.source();
    }
    text
}

/// `text` with queries and passwords of its URLs replaced by dots. Signatures are in queries.
pub(crate) fn without_secrets(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at);
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '>' | '`');
        let (url, behind) = url.split_at(url.find(ends).unwrap_or(url.len()));
        clean.push_str(before);
        let (address, has_query) = match url.split_once(['?', '#']) {
            Some((address, _)) => (address, true),
            None => (url, false),
        };
        let host = address.strip_prefix("://").unwrap_or_default();
        let authority = host.split('/').next().unwrap_or_default();
        clean.push_str("://");
        match authority.rsplit_once('@') {
            // A container of Azure is named like a user, and has no password.
            Some((user, _)) if user.contains(':') => {
                clean.push('…');
                clean.push_str(host.get(user.len()..).unwrap_or_default());
            }
            _ => clean.push_str(host),
        }
        if has_query {
            clean.push_str("?…");
        }
        rest = behind;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn signatures_and_passwords_are_not_shown() {
        for (text, clean) in [
            ("no address", "no address"),
            (
                "GET https://a.b/c?sig=x&y failed",
                "GET https://a.b/c?… failed",
            ),
            ("(s3://k:secret@b/x)", "(s3://…@b/x)"),
            ("az://box@acc.net/x", "az://box@acc.net/x"),
            ("https://a/b#t https://c/d?e", "https://a/b?… https://c/d?…"),
        ] {
            assert_eq!(without_secrets(text), clean);
        }
    }
}
