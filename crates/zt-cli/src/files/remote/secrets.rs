//! Secrets in URLs: no message, no document and no error of another library can show them.

use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zt_convert::foreign;

/// Each URL with a secret: as it is shown everywhere, and as it is.
static URLS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

fn urls() -> MutexGuard<'static, Vec<(String, String)>> {
    URLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The argument without the secrets of its URL, which are kept for [`url_of`].
pub(crate) fn without_secrets(argument: OsString) -> OsString {
    let Some(text) = argument.to_str() else {
        return argument;
    };
    let (option, url) = match text.split_once('=') {
        Some((option, url)) if option.starts_with('-') => (Some(option), url),
        _ => (None, text),
    };
    let clean = foreign::without_secrets(url);
    if !foreign::is_like_url(url) || clean == url {
        return argument;
    }
    let mut urls = urls();
    let same = urls.iter().filter(|(shown, real)| shown.starts_with(&clean) && real != url);
    let shown = match same.count() {
        0 => clean,
        others => format!("{clean}{}", others + 1),
    };
    urls.push((shown.clone(), url.to_owned()));
    match option {
        Some(option) => format!("{option}={shown}").into(),
        None => shown.into(),
    }
}

/// The URL with its secrets, if `shown` is one without.
pub(super) fn url_of(shown: &str) -> Option<String> {
    let urls = urls();
    let known = urls.iter().find(|(known, _)| known == shown);
    known.map(|(_, url)| url.clone())
}
