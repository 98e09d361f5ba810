//! Warnings: everything that a user should know and that is no error.

use std::path::Path;

use crate::error::Error;

/// Something about a file that its user should know and that is no error.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The object it is about.
    pub object: Option<String>,
    /// The component it is about.
    pub component: Option<String>,
    /// A stable kebab-case word.
    pub code: &'static str,
    /// The text for people.
    pub message: String,
    /// What the warning means for a copy of the file.
    pub kind: WarningKind,
}

/// What a warning about a file means for a copy of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WarningKind {
    /// The objects of the file are all that it holds.
    #[default]
    Note,
    /// The file holds something that is not a tensor, and the reader left it out: see
    /// [`crate::foreign::FileBuilder::not_a_tensor`].
    NotTensor,
    /// The file is one part of a set, and the reader looks at this part alone.
    Part,
}

/// A warning if the file at `path` has other names (hard links). They keep it when it is replaced.
pub fn parted_links(path: impl AsRef<Path>) -> Option<Warning> {
    #[cfg(unix)]
    let names = std::fs::metadata(path).map_or(1, |metadata| {
        use std::os::unix::fs::MetadataExt;
        if metadata.is_file() { metadata.nlink() } else { 1 }
    });
    // Other systems do not count names.
    #[cfg(not(unix))]
    let (names, _) = (1u64, path);
    let message =
        format!("the replaced file has {names} names (hard links); the others keep the old file");
    (names > 1).then(|| Warning::new("hard-links", message))
}

impl Warning {
    /// A note about the file as a whole. `code` is a stable kebab-case word.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Warning {
            object: None,
            component: None,
            code,
            message: message.into(),
            kind: WarningKind::Note,
        }
    }

    /// The same about an object.
    pub fn with_object(mut self, name: impl Into<String>) -> Self {
        self.object = Some(name.into());
        self
    }

    /// The same about a component of the object.
    pub fn with_component(mut self, role: impl Into<String>) -> Self {
        self.component = Some(role.into());
        self
    }

    /// The same of another kind.
    pub fn with_kind(mut self, kind: WarningKind) -> Self {
        self.kind = kind;
        self
    }
}

/// A fault that is tolerated.
impl From<&Error> for Warning {
    fn from(error: &Error) -> Self {
        // A file of several is named, as in the error.
        let file = error.path().and_then(std::path::Path::file_name);
        let file = file.map(|name| format!("{}: ", name.to_string_lossy()));
        let message = file.unwrap_or_default() + &error.message();
        Warning {
            object: error.object().map(str::to_owned),
            component: error.component().map(str::to_owned),
            ..Warning::new(error.code(), message)
        }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.object, &self.component) {
            (Some(object), Some(role)) => write!(f, "{object}/{role}: ")?,
            (Some(object), None) => write!(f, "{object}: ")?,
            _ => {}
        }
        f.write_str(&self.message)
    }
}
