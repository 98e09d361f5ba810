//! Faults of addresses and transfers, as errors of `zt`.

use std::error::Error as _;
use std::io;

use zt::{Error, ErrorKind, codes};
use zt_foreign::without_secrets;

/// The faults that this crate finds itself.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("is no URL: {why}")]
    NotUrl { why: url::ParseError },
    #[error("this build does not read URLs that begin with \"{scheme}:\"")]
    Scheme { scheme: String },
    #[error("names no file: it ends with a folder")]
    NoFile,
    #[error("is not below the folder of the file that names it")]
    Elsewhere,
    #[error("objects of more than 256 TiB are not read")]
    TooLong,
    #[error("interrupted by a signal")]
    Interrupted,
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
    #[error(
        "{why}; yet an object of this name and length exists now, so the upload may have succeeded"
    )]
    Uncertain { why: String },
    #[error("the upload was cancelled")]
    Cancelled,
}

impl Fault {
    /// An address or a setting that cannot be used. The reason is kept without secrets.
    pub(crate) fn settings(why: &impl ToString) -> Self {
        let why = without_secrets(&why.to_string());
        Fault::Settings { why }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let (kind, code) = match &fault {
            Fault::NotUrl { .. } | Fault::NoFile | Fault::Elsewhere | Fault::Settings { .. } => {
                (ErrorKind::Misuse, codes::PATH)
            }
            Fault::Scheme { .. } | Fault::ReadOnly | Fault::TooLong => {
                (ErrorKind::Unsupported, codes::UNSUPPORTED)
            }
            Fault::Interrupted => (ErrorKind::Interrupted, codes::INTERRUPTED),
            Fault::Changed => (ErrorKind::Io, codes::CHANGED),
            Fault::Exists => (ErrorKind::Misuse, codes::OVERWRITE),
            Fault::Length { .. } | Fault::Uncertain { .. } | Fault::Cancelled => {
                (ErrorKind::Io, codes::IO)
            }
        };
        Error::new(kind, code, fault)
    }
}

/// The longest text of a store in a message, in bytes.
const LONGEST: usize = 500;

/// The error of a store, without secrets.
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
    let hint = hint(&text_of(error));
    let mut text = without_secrets(&without_body(&text_of(error)));
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push_str(" ...");
    }
    if let Some(hint) = hint {
        text.push_str("; ");
        text.push_str(hint);
    }
    Error::from(io::Error::new(kind, text))
}

/// What a user can do about an error. The address of the machine's own credentials is asked only if there
/// are no others.
fn hint(text: &str) -> Option<&'static str> {
    const NO_RANGES: &str =
        "the server sends no ranges: download the file, or pipe it, as in `curl URL | zt ls -`";
    const HINTS: &[(&str, &str)] = &[
        (
            "169.254.169.254/latest",
            "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or \
             AWS_SKIP_SIGNATURE=true for a public bucket",
        ),
        (
            "169.254.169.254/metadata",
            "no credentials were found: set AZURE_STORAGE_ACCOUNT_KEY, or AZURE_SKIP_SIGNATURE=true for a \
             public container",
        ),
        (
            "computeMetadata",
            "no credentials were found: set GOOGLE_APPLICATION_CREDENTIALS, or GOOGLE_SKIP_SIGNATURE=true \
             for a public bucket",
        ),
        ("non-partial", NO_RANGES),
        ("Range request not supported", NO_RANGES),
        (
            "InvalidContentType",
            "the server does not speak https at this port: if it speaks http, the URL begins with http://, and http is \
             allowed by an option",
        ),
    ];
    let found = HINTS.iter().find(|(sign, _)| text.contains(sign));
    found.map(|(_, hint)| *hint)
}

/// Whether the store has answered: a transfer that failed has no answer.
pub(crate) fn has_answer(error: &object_store::Error) -> bool {
    let mut next = error.source();
    while let Some(source) = next {
        if source.is::<object_store::client::HttpError>() {
            return false;
        }
        next = source.source();
    }
    true
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

/// `text` without the body of an answer in XML or HTML, except its code and its message. Servers repeat
/// tokens and signed text in the body.
fn without_body(text: &str) -> String {
    let Some(at) = text.find('<') else {
        return text.to_owned();
    };
    let (before, body) = text.split_at(at);
    let tag = |name: &str| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        Some(rest.split_once('<')?.0.trim())
    };
    let said = [tag("Code"), tag("Message")].into_iter().flatten();
    format!("{before}{}", said.collect::<Vec<_>>().join(": "))
}

#[cfg(test)]
mod tests {
    use super::without_body;

    #[test]
    fn an_answer_is_its_code_and_its_message() {
        let text = "403 Forbidden: <?xml version=\"1.0\"?><Error><Code>Wrong</Code><Message>The \
                    signature is wrong</Message><StringToSign>x-token:abc</StringToSign></Error>";
        let clean = "403 Forbidden: Wrong: The signature is wrong";
        assert_eq!(without_body(text), clean);
        assert_eq!(without_body("502: <html>token</html>"), "502: ");
        assert_eq!(without_body("timed out"), "timed out");
    }
}
