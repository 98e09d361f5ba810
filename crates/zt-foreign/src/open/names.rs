//! Names from the user, for files that store none.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use zt::{Error, Result};

use crate::faults::Fault;

/// The longest list, in bytes: a name for each of a million tensors.
const LEN_MAX: u64 = 64 << 20;

/// Names of tensors, for kinds of files that store no names.
///
/// SLM1 stores hashes, and takes the names whose hashes it has. SQUIZD takes the names in the order
/// of its tensors. Kinds that store names ignore the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(Arc<[String]>);

impl Names {
    /// The list in the file at `path`: UTF-8, one name per line. White space at the ends of lines,
    /// empty lines and a byte order mark are ignored.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`]; code `names` for a file that is not UTF-8, or longer than 64 MiB.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let text = Self::text(path)?;
        let names = text.lines().map(str::trim).filter(|name| !name.is_empty());
        Ok(names.collect())
    }

    /// The text of a list, without a byte order mark.
    ///
    /// # Errors
    ///
    /// As [`Names::read`].
    pub fn text(path: impl AsRef<Path>) -> Result<String> {
        let path = path.as_ref();
        let read = || {
            let mut text = Vec::new();
            let list = File::open(path)?;
            list.take(LEN_MAX.strict_add(1)).read_to_end(&mut text)?;
            if text.len() as u64 > LEN_MAX {
                return Err(Fault::NamesTooLong { limit: LEN_MAX }.into());
            }
            let mut text = String::from_utf8(text).map_err(|_| Fault::NamesNotUtf8)?;
            if text.starts_with('\u{FEFF}') {
                text.remove(0);
            }
            Ok(text)
        };
        read().map_err(|error: Error| error.with_path(path))
    }

    /// The names in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<N: Into<String>> FromIterator<N> for Names {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        Names(names.into_iter().map(Into::into).collect())
    }
}
