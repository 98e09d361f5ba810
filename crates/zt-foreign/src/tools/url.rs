//! URLs as paths of files, and without what is secret in them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Whether `text` is the URL of a file, and not a path.
///
/// ```
/// assert!(zt_foreign::is_url("s3://bucket/model.zt"));
/// assert!(!zt_foreign::is_url("C:/model.zt"));
/// ```
pub fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    let is_scheme = |scheme: &str| {
        scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    scheme.is_some_and(is_scheme)
}

/// The path or the URL of the file `name` in the folder of `path`.
pub fn beside(path: &Path, name: impl AsRef<OsStr>) -> PathBuf {
    let name = name.as_ref();
    match path.to_str().filter(|text| is_url(text)) {
        // A path of this system may have another separator.
        Some(url) => {
            let address = url.split_once('?').map_or(url, |(address, _)| address);
            let folder = address.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{}", name.display()).into()
        }
        None => path.with_file_name(name),
    }
}

/// A URL without its query, for its extension. Any other path stays as it is.
pub fn without_query(path: &Path) -> &Path {
    let url = path.to_str().filter(|text| is_url(text));
    url.and_then(|url| url.split('?').next()).map_or(path, Path::new)
}

/// Schemes of URLs. People forget a slash behind them.
const SCHEMES: &[&str] =
    &["s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https", "hf"];

/// Whether `text` is a URL, or begins as one does: `s3:/bucket/model.zt`.
pub fn is_like_url(text: &str) -> bool {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    is_url(text) || scheme.is_some_and(|scheme| SCHEMES.contains(&scheme))
}

/// `text` with queries, users and passwords of its URLs replaced by dots. Signatures are in queries.
///
/// A password may have a `/` that should be encoded, so everything up to the last `@` is replaced.
///
/// ```
/// let shown = zt_foreign::without_secrets("GET https://host/m.zt?sig=Zm9v failed");
/// assert_eq!(shown, "GET https://host/m.zt?… failed");
/// ```
#[expect(clippy::arithmetic_side_effects, reason = "`host` is the end of `url`")]
pub fn without_secrets(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = end_of_scheme(rest) {
        let (before, url) = rest.split_at(at);
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '>' | '`');
        let (url, behind) = url.split_at(url.find(ends).unwrap_or(url.len()));
        let host = url.trim_start_matches([':', '/']);
        let (slashes, _) = url.split_at(url.len() - host.len());
        clean.push_str(before);
        clean.push_str(slashes);
        let shown = match secret_len(host, before) {
            0 => host,
            len => {
                clean.push('…');
                host.get(len..).unwrap_or_default()
            }
        };
        match shown.split_once(['?', '#']) {
            Some((address, _)) => {
                clean.push_str(address);
                clean.push_str("?…");
            }
            None => clean.push_str(shown),
        }
        rest = behind;
    }
    clean.push_str(rest);
    clean
}

/// The place of the first `://`, or of the `:` behind one of [`SCHEMES`].
fn end_of_scheme(text: &str) -> Option<usize> {
    let is_end = |at: &usize| {
        let (before, url) = text.split_at(*at);
        let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
        url.starts_with("://") || word.is_some_and(|word| SCHEMES.contains(&word))
    };
    let colons = text.match_indices(':').map(|(at, _)| at);
    colons.into_iter().find(is_end)
}

/// The length of the user and the password at the beginning of `url`, which has no scheme; 0 for none.
fn secret_len(url: &str, scheme: &str) -> usize {
    let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
    let address = url.split(['?', '#']).next().unwrap_or_default();
    let port = authority.split_once(':').map(|(_, port)| port);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let last = match port {
        // No port: the password goes on behind the slash.
        Some(port) if !authority.contains('@') && !is_port(port) => url.rfind('@'),
        Some(_) => address.rfind('@'),
        None => authority.rfind('@'),
    };
    // A container of Azure is named like a user.
    let has_container = ["az", "azure", "abfs", "abfss"].iter().any(|it| scheme.ends_with(it));
    let is_secret =
        |at: &usize| !has_container || url.get(..*at).is_some_and(|it| it.contains(':'));
    last.filter(is_secret).unwrap_or(0)
}
