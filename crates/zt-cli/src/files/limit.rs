//! The limit of open files. A set keeps every shard open, and macOS allows 256 files by default.

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use zt::Error;

/// Raises the limit of open files as far as the system lets every user. A failure shows when a file
/// is opened.
#[cfg(unix)]
pub(crate) fn raise() {
    /// The limit of macOS where the hard one is none.
    const OPEN_MAX: u64 = 10_240;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    for raised in [maximum, Some(OPEN_MAX)] {
        let is_more = current.is_some_and(|current| raised.is_none_or(|raised| raised > current));
        let limit = Rlimit { current: raised, maximum };
        if !is_more || setrlimit(Resource::Nofile, limit).is_ok() {
            return;
        }
    }
}

#[cfg(not(unix))]
pub(crate) fn raise() {}

/// The error, with what to do if it comes from the limit.
#[cfg(unix)]
pub(crate) fn explained(error: Error) -> Error {
    use std::io;
    let mut cause = Some(&error as &dyn std::error::Error);
    let mut found = false;
    while let Some(error) = cause {
        let code = error.downcast_ref().and_then(io::Error::raw_os_error);
        found |= code == Some(rustix::io::Errno::MFILE.raw_os_error());
        cause = error.source();
    }
    let limit = getrlimit(Resource::Nofile).current;
    let (true, Some(limit)) = (found, limit) else {
        return error;
    };
    let message = format!("{}: the limit is {limit}; raise it with `ulimit -n`", error.message());
    let explained = Error::new(error.kind(), error.code(), message);
    match error.path() {
        Some(path) => explained.with_path(path),
        None => explained,
    }
}

#[cfg(not(unix))]
pub(crate) fn explained(error: Error) -> Error {
    error
}
