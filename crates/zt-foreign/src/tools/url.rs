//! URLs as paths of files, and without what is secret in them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Whether `text` is the URL of a file, and not a path.
///
/// ```
/// assert!(zt_foreign::is_url("s3://bucket/model.zt"));
/// assert!(!zt_foreign::is_url("C:/model.zt"));
/// ```
#[must_use]
pub fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    let is_scheme = |scheme: &str| {
        scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    scheme.is_some_and(is_scheme)
}

/// The path or the URL of the file `name` in the folder of `path`.
#[must_use]
pub fn beside(path: &Path, name: impl AsRef<OsStr>) -> PathBuf {
    let name = name.as_ref();
    match path.to_str().filter(|text| is_url(text)) {
        // A path of this system may have another separator.
        Some(url) => {
            let address = url.split('?').next().unwrap_or_default();
            let folder = address.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{}", name.display()).into()
        }
        None => path.with_file_name(name),
    }
}

/// `text` with queries, users and passwords of its URLs replaced by dots. Signatures are in queries.
///
/// ```
/// let shown = zt_foreign::without_secrets("GET https://host/m.zt?sig=Zm9v failed");
/// assert_eq!(shown, "GET https://host/m.zt?… failed");
/// ```
#[must_use]
pub fn without_secrets(text: &str) -> String {
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
        // A container of Azure is named like a user.
        let has_container = before.ends_with("az")
            || before.ends_with("azure")
            || before.ends_with("abfs")
            || before.ends_with("abfss");
        clean.push_str("://");
        match authority.rsplit_once('@') {
            Some((user, _)) if user.contains(':') || !has_container => {
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
            ("https://token@host/x", "https://…@host/x"),
            ("az://box@acc.net/x", "az://box@acc.net/x"),
            ("abfss://box:key@acc.net/x", "abfss://…@acc.net/x"),
            ("hf://o/r@main/x", "hf://o/r@main/x"),
            ("https://a/b#t https://c/d?e", "https://a/b?… https://c/d?…"),
        ] {
            assert_eq!(without_secrets(text), clean);
        }
    }
}
