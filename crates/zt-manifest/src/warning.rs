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
        let text = match self {
            Warning::NewerMinor { version } => format!(
                "version {version:?} is newer than 1.2, \
                 fields that this reader does not know are ignored"
            ),
            Warning::VersionSuffix { version } => {
                format!("version {version:?} has a suffix, which is ignored")
            }
            Warning::Misaligned { offset, .. } => {
                format!("offset {offset} is not a multiple of 64")
            }
            Warning::UnknownDigest { algorithm, .. } => {
                format!("digest {algorithm:?} is unknown and cannot be checked")
            }
            Warning::Chunks { reason, .. } => format!(
                "the table of chunk digests cannot be used, so slices are not verified: {reason}"
            ),
        };
        f.write_str(&text)
    }
}
