//! Errors as handles: status, code, text and place.

use std::ffi::CString;

use zt::{Error, ErrorKind, Warning, codes};

/// What a call did. The numbers are stable; 1 to 6 are the exit codes of the program `zt`.
pub type zt_status = u32;

/// The call did what it promises.
pub const ZT_OK: zt_status = 0;
/// Stored bytes are not those that were written.
pub const ZT_DIGEST_MISMATCH: zt_status = 1;
/// The call is wrong, whatever the file.
pub const ZT_MISUSE: zt_status = 2;
/// The file breaks a rule of its format.
pub const ZT_MALFORMED: zt_status = 3;
/// The system could not read or write.
pub const ZT_IO: zt_status = 4;
/// This build or this call does not support it.
pub const ZT_UNSUPPORTED: zt_status = 5;
/// Another program is editing the file.
pub const ZT_LOCKED: zt_status = 6;
/// The file needs more than the limits allow.
pub const ZT_LIMIT: zt_status = 7;
/// The work was stopped.
pub const ZT_INTERRUPTED: zt_status = 8;
/// There is no tensor or component of that name.
pub const ZT_NOT_FOUND: zt_status = 9;
/// A bug of this library.
pub const ZT_PANIC: zt_status = 10;

/// Name and status, in the order of the numbers.
pub(crate) const NAMES: [&std::ffi::CStr; 11] = [
    c"ok",
    c"digest-mismatch",
    c"misuse",
    c"malformed",
    c"io",
    c"unsupported",
    c"locked",
    c"limit",
    c"interrupted",
    c"not-found",
    c"panic",
];

/// An error, or a warning or a problem in a report. It never changes.
pub struct zt_error {
    status: zt_status,
    pub(crate) code: CString,
    pub(crate) message: CString,
    pub(crate) object: Option<CString>,
    pub(crate) component: Option<CString>,
    pub(crate) path: Option<CString>,
    /// The bytes at fault: the first, and the one behind the last if it is known.
    pub(crate) place: Option<(u64, u64)>,
}

impl zt_error {
    pub(crate) fn of(error: &Error) -> Self {
        let path = error.path().map(|path| c_text(&path.to_string_lossy()));
        zt_error {
            status: status_of(error),
            code: c_text(error.code()),
            message: c_text(&error.to_string()),
            object: error.object().map(c_text),
            component: error.component().map(c_text),
            path,
            place: error.offset().map(|begin| (begin, error.end().unwrap_or(begin))),
        }
    }

    /// A warning is no failure: its status is [`ZT_OK`].
    pub(crate) fn of_warning(warning: &Warning) -> Self {
        zt_error {
            status: ZT_OK,
            code: c_text(warning.code),
            message: c_text(&warning.to_string()),
            object: warning.object.as_deref().map(c_text),
            component: warning.component.as_deref().map(c_text),
            path: None,
            place: None,
        }
    }

    pub(crate) fn of_panic(panic: &str) -> Self {
        let message = format!("libzt has a bug, please report it: {panic}");
        zt_error {
            status: ZT_PANIC,
            code: c"panic".into(),
            message: c_text(&message),
            object: None,
            component: None,
            path: None,
            place: None,
        }
    }

    pub(crate) const fn status(&self) -> zt_status {
        self.status
    }
}

fn status_of(error: &Error) -> zt_status {
    match (error.code(), error.kind()) {
        (codes::NOT_FOUND, _) => ZT_NOT_FOUND,
        (codes::LOCKED, _) => ZT_LOCKED,
        (_, ErrorKind::Io) => ZT_IO,
        (_, ErrorKind::Malformed) => ZT_MALFORMED,
        (_, ErrorKind::DigestMismatch) => ZT_DIGEST_MISMATCH,
        (_, ErrorKind::Limit) => ZT_LIMIT,
        (_, ErrorKind::Misuse) => ZT_MISUSE,
        (_, ErrorKind::Interrupted) => ZT_INTERRUPTED,
        _ => ZT_UNSUPPORTED,
    }
}

/// A text for C. A NUL would end it: U+2400 stands for one.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{2400}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_within_a_text_is_shown() {
        assert_eq!(c_text("a\0b").to_str(), Ok("a\u{2400}b"));
    }

    #[test]
    fn the_status_of_an_error_follows_its_kind_and_two_codes() {
        let of = |kind, code| status_of(&Error::new(kind, code, ""));
        assert_eq!(of(ErrorKind::Misuse, codes::NOT_FOUND), ZT_NOT_FOUND);
        assert_eq!(of(ErrorKind::Io, codes::LOCKED), ZT_LOCKED);
        assert_eq!(of(ErrorKind::Malformed, codes::TRUNCATED), ZT_MALFORMED);
    }
}
