//! The stable codes of errors and warnings, with a short explanation of each.
//!
//! `spec/errors.md` and `spec/warnings.md` explain them at greater length, and a test writes the
//! tables of this module from these pages. There is a constant for each code of an error:
//!
//! ```
//! let error = zt::File::from_bytes(b"GGUF....".to_vec()).unwrap_err();
//! assert_eq!(error.code(), zt::codes::NOT_ZT);
//! ```

/// The codes of errors: each a constant, and all of them in a list.
macro_rules! errors {
    ($($name:ident $code:literal: $fault:ident, $meaning:literal, $remedy:literal;)*) => {
        /// Every code of errors, in alphabetical order.
        pub const ALL: &[CodeInfo] = &[$(CodeInfo {
            code: $code,
            fault: Blame::$fault,
            meaning: $meaning,
            remedy: $remedy,
        }),*];

        $(#[doc = $meaning] pub const $name: &str = $code;)*
    };
}

#[rustfmt::skip]
mod tables;

pub use tables::*;

/// A code and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeInfo {
    /// The code, as [`crate::Error::code`] gives it.
    pub code: &'static str,
    /// Who is at fault.
    pub fault: Blame,
    /// What it means.
    pub meaning: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

/// Who is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The file, or its writer.
    File,
    /// The system: storage, memory, permissions.
    System,
    /// This build does not support it.
    Build,
    /// The limits that are set forbid it.
    Limits,
    /// The call.
    Caller,
}

impl Blame {
    /// One word: `file`, `system`, `build`, `limits` or `caller`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Blame::File => "file",
            Blame::System => "system",
            Blame::Build => "build",
            Blame::Limits => "limits",
            Blame::Caller => "caller",
        }
    }
}

/// The explanation of an error's code.
pub fn explain(code: &str) -> Option<&'static CodeInfo> {
    ALL.iter().find(|info| info.code == code)
}

/// A warning's code and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarningInfo {
    /// The code, as [`crate::Warning::code`] has it.
    pub code: &'static str,
    /// The kinds of files or the work that it comes from.
    pub from: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// The explanation of a warning's code. Warnings with the code of an error share one.
pub fn explain_warning(code: &str) -> Option<WarningInfo> {
    let known = WARNINGS.iter().copied().find(|info| info.code == code);
    known.or_else(|| {
        let code = explain(code)?.code;
        Some(WarningInfo { code, ..tables::TOLERATED })
    })
}
