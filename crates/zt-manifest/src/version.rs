//! The version that a manifest declares.

use std::fmt;

/// The manifest version that this crate writes. Spec: §11.
pub const VERSION: &str = "1.2.0";

/// The newest minor version of major 1 whose every field this crate knows.
pub(crate) const NEWEST_MINOR: u64 = 2;

/// A manifest's `version`: up to three numbers, and the text as the file spells it.
///
/// Invariant: `text` begins with the numbers; a missing number is 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Version {
    /// Another major version may change everything, and is refused.
    pub major: u64,
    /// A newer minor version only adds optional fields, and is a warning. Spec: §11.
    pub minor: u64,
    /// Readers ignore it.
    pub patch: u64,
    /// As the file spells it, such as `1.0`.
    pub text: String,
}

impl Version {
    /// The version that `text` spells: one to three numbers separated by dots, then nothing or a
    /// suffix that begins with `-` or `+`, as semantic versions have. `None` for anything else.
    ///
    /// ```
    /// use zt_manifest::Version;
    /// let version = Version::parse("1.2.0+build.5").unwrap();
    /// assert_eq!((version.major, version.minor, version.patch), (1, 2, 0));
    /// assert_eq!(version.suffix(), "+build.5");
    /// assert_eq!(Version::parse("one"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Version> {
        let numbers = text.split(['-', '+']).next()?;
        let mut parts = [0; 3];
        let mut rest = parts.iter_mut();
        for part in numbers.split('.') {
            // `parse` would take a sign, but `part` has none: the text was split there.
            *rest.next()? = part.parse().ok()?;
        }
        let [major, minor, patch] = parts;
        Some(Version { major, minor, patch, text: text.to_owned() })
    }

    /// What follows the numbers, with its `-` or `+`; usually nothing.
    pub fn suffix(&self) -> &str {
        let start = self.text.find(['-', '+']).unwrap_or(self.text.len());
        self.text.get(start..).unwrap_or_default()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}
