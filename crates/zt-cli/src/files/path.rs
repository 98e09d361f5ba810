//! Paths that are not ordinary files.

use std::ffi::OsString;
use std::path::Path;

/// Whether the path is stdout: `-`, `/dev/stdout`, or a name of the same device or pipe.
#[cfg(unix)]
pub(crate) fn is_stdout(path: &Path) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let stdout = std::io::stdout().as_fd().try_clone_to_owned();
    let stdout = stdout.and_then(|stdout| std::fs::File::from(stdout).metadata());
    let is_same = matches!((path.metadata(), stdout), (Ok(a), Ok(b))
        // An ordinary file is replaced, not written to.
        if !a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()));
    path == Path::new("-") || is_same
}

/// Whether the path is stdout.
#[cfg(not(unix))]
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// The path, if the argument is a `file:` URI of a path that is not UTF-8, as `--json` prints it. Any other
/// argument stays as it is: stores take the other URIs.
#[cfg(unix)]
pub(crate) fn of_uri(argument: OsString) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    let Some(path) = argument.to_str().and_then(|text| text.strip_prefix("file://")) else {
        return argument;
    };
    match decoded(path) {
        Some(bytes) if path.starts_with('/') && std::str::from_utf8(&bytes).is_err() => {
            OsString::from_vec(bytes)
        }
        _ => argument,
    }
}

/// The bytes of a percent-encoded text.
#[cfg(unix)]
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.bytes());
    }
    Some(bytes)
}

#[cfg(not(unix))]
pub(crate) fn of_uri(argument: OsString) -> OsString {
    argument
}
