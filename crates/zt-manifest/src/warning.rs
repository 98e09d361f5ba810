//! Warnings: deviations that a reader accepts and reports.

use std::fmt;

/// A deviation from the specification that does not stop a reader. The caller adds the object's name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The minor version is newer than this crate: it ignores fields that may matter to the writer. Spec:
    /// §11.
    NewerMinor {
        /// The version.
        version: String,
    },
    /// The version has a suffix, whose meaning only its writer knows. Spec: §11.
    VersionSuffix {
        /// The version.
        version: String,
    },
    /// A blob of a file of layout 0.1 or 1.0 is off the 64-byte grid. Spec: 1.0 §7.1.
    Misaligned {
        /// The component.
        role: String,
        /// Where its blob begins, in bytes from the start of the file.
        offset: u64,
    },
    /// The digest is of an unknown algorithm, so the bytes cannot be checked. Spec: §6.
    UnknownDigest {
        /// The component.
        role: String,
        /// The text before the colon.
        algorithm: String,
    },
    /// The table of a component's chunk digests cannot be used, so parts of the component cannot be
    /// checked. Spec: §6.1.
    Chunks {
        /// The component.
        role: String,
        /// What is wrong with the table.
        reason: &'static str,
    },
}

impl Warning {
    /// A stable name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Warning::NewerMinor { .. } => "newer-minor",
            Warning::VersionSuffix { .. } => "version-suffix",
            Warning::Misaligned { .. } => "alignment",
            Warning::UnknownDigest { .. } => "unknown-digest",
            Warning::Chunks { .. } => "chunk-digests",
        }
    }

    /// The component, if the warning is about one.
    #[must_use]
    pub fn role(&self) -> Option<&str> {
        match self {
            Warning::Misaligned { role, .. }
            | Warning::UnknownDigest { role, .. }
            | Warning::Chunks { role, .. } => Some(role),
            _ => None,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::NewerMinor { version } => {
                write!(f, "version {version:?} is newer than 1.2, ")?;
                f.write_str("fields that this reader does not know are ignored")
            }
            Warning::VersionSuffix { version } => {
                write!(f, "version {version:?} has a suffix, which is ignored")
            }
            Warning::Misaligned { offset, .. } => {
                write!(f, "offset {offset} is not a multiple of 64")
            }
            Warning::UnknownDigest { algorithm, .. } => {
                write!(f, "digest {algorithm:?} is unknown and cannot be checked")
            }
            Warning::Chunks { reason, .. } => {
                f.write_str(
                    "the table of chunk digests cannot be used, so slices are not verified: ",
                )?;
                f.write_str(reason)
            }
        }
    }
}

#[cfg(test)]
#[test]
fn a_warning_says_what_it_is_about() {
    let (version, role) = ("1.9.0+x".to_owned(), "data".to_owned());
    let algorithm = "xxh64".to_owned();
    let cases = [
        (
            Warning::NewerMinor {
                version: version.clone(),
            },
            ("newer-minor", None, "\"1.9.0+x\" is newer than 1.2"),
        ),
        (
            Warning::VersionSuffix { version },
            ("version-suffix", None, "\"1.9.0+x\" has a suffix"),
        ),
        (
            Warning::Misaligned {
                role: role.clone(),
                offset: 72,
            },
            ("alignment", Some("data"), "72 is not a multiple of 64"),
        ),
        (
            Warning::UnknownDigest { role, algorithm },
            ("unknown-digest", Some("data"), "xxh64"),
        ),
    ];
    let chunks = Warning::Chunks {
        role: "data".to_owned(),
        reason: "it is not a map",
    };
    let words = "not verified: it is not a map";
    let cases = cases
        .into_iter()
        .chain([(chunks, ("chunk-digests", Some("data"), words))]);
    for (warning, (code, role, words)) in cases {
        assert_eq!((warning.code(), warning.role()), (code, role));
        assert!(warning.to_string().contains(words), "{warning}");
    }
}
