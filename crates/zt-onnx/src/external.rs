//! Files beside a model, with values of its tensors.
//!
//! A hostile model could name any file of the system, whose bytes would then appear as weights. So
//! only files below the model's own folder are opened, and no links that lead out of it.

use std::collections::HashMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use zt::foreign::{FileBuilder, SourceId};
use zt::{Blob, Error, FileSource, Result, Source, Span, Warning};

use crate::tensor::External;
use crate::violation::Violation;

/// The most files that stay open. Some exporters write a file for every tensor, and a system may allow
/// some hundreds. Further files are opened for every read.
const OPEN_MAX: usize = 64;

/// The files beside one model that were opened.
pub(super) struct Folder<'p> {
    model: Option<&'p Path>,
    /// By location.
    files: HashMap<String, Result<Beside, Violation>>,
    /// Their paths.
    pub(super) paths: Vec<PathBuf>,
}

/// A file beside a model.
#[derive(Debug, Clone, Copy)]
struct Beside {
    id: SourceId,
    byte_len: u64,
}

impl<'p> Folder<'p> {
    /// The files beside the model at that path.
    pub(super) fn of(model: Option<&'p Path>) -> Self {
        Folder {
            model,
            files: HashMap::new(),
            paths: Vec::new(),
        }
    }

    /// The values of a tensor, which must have `expected` bytes.
    pub(super) fn find(
        &mut self,
        external: &External,
        expected: u64,
        builder: &mut FileBuilder,
        tensor: &str,
    ) -> Result<(Blob, SourceId)> {
        let offset = number("offset", external.offset.as_deref())?.unwrap_or(0);
        let found = number("length", external.length.as_deref())?.unwrap_or(expected);
        if found != expected {
            return Err(Violation::Bytes { expected, found }.into());
        }
        let location = &external.location;
        let beside = self.file(location, builder)?;
        let span = Span::new(offset, expected).filter(|span| span.end() <= beside.byte_len);
        let span = span.ok_or_else(|| Violation::Beyond {
            location: location.clone(),
            offset,
            byte_len: expected,
            available: beside.byte_len,
        })?;
        if let Some(checksum) = &external.checksum {
            // It is the SHA-1 of the whole file, which would have to be read to list a tensor.
            let message = format!("the checksum {checksum:?} of {location:?} is not checked");
            builder.warning(Warning::new("unknown-digest", message).with_object(tensor));
        }
        Ok((Blob::raw(span), beside.id))
    }

    fn file(&mut self, location: &str, builder: &mut FileBuilder) -> Result<Beside> {
        if let Some(known) = self.files.get(location) {
            return known.clone().map_err(Error::from);
        }
        let opened = self.open(location).map(|(source, path)| {
            let byte_len = source.byte_len();
            let id = builder.source(source);
            self.paths.push(path);
            Beside { id, byte_len }
        });
        self.files.insert(location.to_owned(), opened.clone());
        opened.map_err(Error::from)
    }

    fn open(&self, location: &str) -> Result<(Box<dyn Source>, PathBuf), Violation> {
        let named = || location.to_owned();
        let refused = |why| Violation::Location {
            location: named(),
            why,
        };
        let missing = || Violation::Missing { location: named() };
        let needs_path = || Violation::NeedsPath { location: named() };
        let model = self.model.ok_or_else(needs_path)?;
        if let Some(why) = refusal(location) {
            return Err(refused(why));
        }
        let folder = match model.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let path = folder.join(location);
        // The file's real path must be in the folder of the model's path, or of its real path.
        let real = path.canonicalize().map_err(|_| missing())?;
        let real_model = model.canonicalize().ok();
        let real_model = real_model.as_deref().and_then(Path::parent);
        let is_in = |home: &Path| real.starts_with(home);
        let is_home = folder.canonicalize().is_ok_and(|home| is_in(&home));
        if !is_home && !real_model.is_some_and(is_in) {
            return Err(refused("a link leads out of the model's folder"));
        }
        // A folder or a pipe counts as missing.
        let source = FileSource::open(&real).map_err(|_| missing())?;
        if self.paths.len() < OPEN_MAX {
            return Ok((Box::new(source), path));
        }
        let byte_len = source.byte_len();
        let reopened = Reopened {
            path: real,
            byte_len,
        };
        Ok((Box::new(reopened), path))
    }
}

/// Why a location is refused; `None` for a path that is relative and does not lead upwards on any
/// system.
fn refusal(location: &str) -> Option<&'static str> {
    let has = |refused: fn(Component<'_>) -> bool| Path::new(location).components().any(refused);
    if has(|step| matches!(step, Component::RootDir | Component::Prefix(_))) {
        return Some("the path is absolute");
    }
    if location.contains('\\') {
        return Some("the path has a backslash, which is a separator on some systems");
    }
    if location.contains('\0') || cfg!(windows) && location.contains(':') {
        return Some("the path has a character that is invalid in file names");
    }
    if has(|step| step == Component::ParentDir) {
        return Some("the path has \"..\"");
    }
    let names_file = has(|step| matches!(step, Component::Normal(_)));
    (!names_file).then_some("the path names no file")
}

/// The decimal number of a pair.
fn number(key: &'static str, value: Option<&str>) -> Result<Option<u64>> {
    let Some(value) = value else {
        return Ok(None);
    };
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|_| digits);
    let value = value.to_owned();
    let number = number.ok_or(Violation::External { key, value })?;
    Ok(Some(number))
}

/// A file that is opened for every read.
struct Reopened {
    path: PathBuf,
    byte_len: u64,
}

impl Source for Reopened {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let source = FileSource::open(&self.path).map_err(Error::from)?;
        source.read_at(offset, buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_must_be_below_the_folder_of_the_model() {
        for location in ["a", "./a", "a/b.bin", "..a", "a..b", "ä b", "a/./b", "a//b"] {
            assert_eq!(refusal(location), None, "{location}");
        }
        for location in [
            "", ".", "./", "..", "../a", "a/../b", "a/..", "/a", "//a", "a\\b", "..\\a", "a\0",
        ] {
            assert!(refusal(location).is_some(), "{location}");
        }
        assert_eq!(refusal("a:b").is_some(), cfg!(windows));
    }

    #[test]
    fn numbers_are_decimal_and_nothing_else() {
        assert_eq!(number("offset", None).unwrap(), None);
        assert_eq!(number("offset", Some("007")).unwrap(), Some(7));
        for text in [
            "",
            "-4",
            "+4",
            " 4",
            "4 ",
            "x",
            "4_0",
            "0x4",
            "18446744073709551616",
        ] {
            assert_eq!(number("offset", Some(text)).unwrap_err().code(), "header");
        }
    }
}
