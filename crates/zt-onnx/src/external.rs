//! Files beside a model that values lie in.
//!
//! A model can name any file there is, and what is read from it looks like weights to whoever asks.
//! So it names files below its own folder, and links out of it lead nowhere.

use std::collections::HashMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use zt::foreign::{FileBuilder, SourceId};
use zt::{Blob, Error, FileSource, Result, Source, Span, Warning};

use crate::tensor::External;
use crate::violation::Violation;

/// Files that stay open. Some exporters write a file for every tensor, and systems grant some
/// hundreds; others are opened whenever they are read.
const OPEN_MAX: usize = 64;

/// The files beside one model, as far as they have been asked for.
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
    /// Those of the model at that path.
    pub(super) fn of(model: Option<&'p Path>) -> Self {
        Folder {
            model,
            files: HashMap::new(),
            paths: Vec::new(),
        }
    }

    /// Where the values of a tensor are, which take `expected` bytes.
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
            // Of the whole file, in SHA-1: it would be read and hashed to list its tensors.
            let message = format!("the checksum {checksum:?} of {location:?} is not compared");
            builder.warning(Warning::new("unknown-digest", message).with_object(tensor));
        }
        Ok((Blob::raw(span), beside.id))
    }

    fn file(&mut self, location: &str, builder: &mut FileBuilder) -> Result<Beside> {
        if let Some(known) = self.files.get(location) {
            return known.clone().map_err(Error::from);
        }
        let opened = match self.open(location) {
            Ok((source, path)) => {
                let byte_len = source.byte_len();
                let id = builder.source(source);
                self.paths.push(path);
                Ok(Beside { id, byte_len })
            }
            Err(violation) => Err(violation),
        };
        self.files.insert(location.to_owned(), opened.clone());
        opened.map_err(Error::from)
    }

    fn open(&self, location: &str) -> Result<(Box<dyn Source>, PathBuf), Violation> {
        let named = || location.to_owned();
        let refused = |why| Violation::Location {
            location: named(),
            why,
        };
        let missing = |_| Violation::Missing { location: named() };
        let model = self
            .model
            .ok_or_else(|| Violation::NeedsPath { location: named() })?;
        if let Some(why) = refusal(location) {
            return Err(refused(why));
        }
        let folder = match model.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let path = folder.join(location);
        // Where it really is, links followed; and where the model is, both as named and as a link.
        let real = path.canonicalize().map_err(missing)?;
        let mut homes = Vec::new();
        homes.extend(folder.canonicalize().ok());
        let model = model.canonicalize().ok();
        homes.extend(
            model
                .as_deref()
                .and_then(Path::parent)
                .map(ToOwned::to_owned),
        );
        if !homes.iter().any(|home| real.starts_with(home)) {
            return Err(refused("a link leads out of the folder of the model"));
        }
        // A folder or a pipe is as good as none.
        let source =
            FileSource::open(&real).map_err(|_| Violation::Missing { location: named() })?;
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

/// Why a location is not followed; `None` for a relative path that does not lead upwards, on every
/// system.
fn refusal(location: &str) -> Option<&'static str> {
    let has = |refused: fn(Component<'_>) -> bool| Path::new(location).components().any(refused);
    if has(|step| matches!(step, Component::RootDir | Component::Prefix(_))) {
        return Some("it is absolute");
    }
    if location.contains('\\') {
        return Some(
            "it has a backslash, which is a separator on some systems and a letter on others",
        );
    }
    if location.contains('\0') || cfg!(windows) && location.contains(':') {
        return Some("it has a character that no name of a file has");
    }
    if has(|step| step == Component::ParentDir) {
        return Some("it leads upwards, by \"..\"");
    }
    let names_file = has(|step| matches!(step, Component::Normal(_)));
    (!names_file).then_some("it names no file")
}

/// A number of a pair, in decimal.
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

/// A file that is opened anew whenever it is read.
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
    fn locations_lie_below_the_folder_of_the_model() {
        for location in ["a", "./a", "a/b.bin", "..a", "a..b", "ä b", "a/./b", "a//b"] {
            assert_eq!(refusal(location), None, "{location}");
        }
        for (words, locations) in [
            ("names no file", &["", ".", "./"][..]),
            ("upwards", &["..", "../a", "a/../b", "a/.."]),
            ("absolute", &["/a", "//a"]),
            ("backslash", &["a\\b", "..\\a"]),
            ("a character", &["a\0"]),
        ] {
            for location in locations {
                let why = refusal(location).unwrap();
                assert!(why.contains(words), "{location}: {why}");
            }
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
