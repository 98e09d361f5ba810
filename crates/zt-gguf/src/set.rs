//! Sets of files, as `gguf-split` of llama.cpp writes them and llama.cpp loads them.
//!
//! ```text
//! m-00001-of-00003.gguf   split.no 0   the metadata
//! m-00002-of-00003.gguf   split.no 1
//! m-00003-of-00003.gguf   split.no 2   split.count 3 in each, split.tensors.count for all
//! ```
//!
//! Any part opens the whole set. The others are found by their names, so a part with another name, or
//! without one, is opened alone and has the warning `split`.

use std::path::{Path, PathBuf};

use zt::{Attributes, Result, Source, Warning};
use zt_foreign::{Fault, Neighbours, Opening, Refusal, display};

use crate::header::Header;
use crate::original;
use crate::pairs::{self, SPLIT_COUNT, SPLIT_NO, SPLIT_TENSORS};
use crate::violation::Violation;

/// A file, with its pairs as attributes.
pub(super) struct SetPart {
    pub(super) source: Box<dyn Source>,
    pub(super) header: Header,
    pub(super) attributes: Option<Attributes>,
    /// Its path, if it is one of several.
    pub(super) path: Option<PathBuf>,
}

impl SetPart {
    pub(super) fn read(source: Box<dyn Source>) -> Result<Self> {
        let mut header = Header::read(&source)?;
        let mut attributes = std::mem::take(&mut header.metadata).into_attributes();
        if let Some(attributes) = &mut attributes {
            original::take(attributes, &mut header.tensors);
        }
        Ok(SetPart { source, header, attributes, path: None })
    }

    /// The number of files of its set; `None` for a file that is whole.
    pub(super) fn count(&self) -> Option<u64> {
        self.number(SPLIT_COUNT).filter(|count| *count > 1)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.attributes.as_ref()?.get(key)?.as_u64()
    }
}

/// All parts of a set, in order.
pub(super) struct Set {
    pub(super) parts: Vec<SetPart>,
    /// The pairs of the first part, and those that it lacks.
    pub(super) attributes: Attributes,
    pub(super) warnings: Vec<Warning>,
    /// The paths of all parts. The first is the one that was opened.
    pub(super) paths: Vec<PathBuf>,
}

impl Set {
    /// Opens the set that `part` is one of, at `path`. `Err` with the part if its name does not say where
    /// the others are.
    ///
    /// # Errors
    ///
    /// Code `path` for a part that is missing or not opened; `header` for one that is of another set, or if
    /// there are more or fewer tensors than `split.tensors.count`; as [`Header::read`].
    pub(super) fn open(
        part: SetPart,
        opening: Opening<'_>,
    ) -> Result<std::result::Result<Self, SetPart>> {
        let (no, count) = (part.number(SPLIT_NO), part.count());
        let (Some(path), Some(no), Some(count)) = (opening.path, no, count) else {
            return Ok(Err(part));
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(stem) =
            no.checked_add(1).and_then(|number| name.strip_suffix(&ending(number, count)))
        else {
            return Ok(Err(part));
        };
        let mut neighbours = Neighbours::new(opening);
        let mut own = Some(part);
        let mut parts = Vec::new();
        for number in 0..count {
            let part = match own.take_if(|_| number == no) {
                Some(own) => own,
                None => {
                    let name = format!("{stem}{}", ending(number.strict_add(1), count));
                    other(&mut neighbours, path, name, (number, count))?
                }
            };
            let part = SetPart { path: part.path.or_else(|| Some(path.to_owned())), ..part };
            parts.push(part);
        }
        let expected = parts.first().and_then(|part| part.number(SPLIT_TENSORS));
        let found: usize = parts.iter().map(|part| part.header.tensors.len()).sum();
        if let Some(expected) = expected.filter(|expected| *expected != found as u64) {
            let found = found as u64;
            return Err(Violation::SetTensors { expected, found }.into());
        }
        let (attributes, warnings) = joined(&mut parts, stem);
        let mut paths = vec![path.to_owned()];
        paths.extend(neighbours.into_paths());
        Ok(Ok(Set { parts, attributes, warnings, paths }))
    }
}

/// How the name of a part ends. Numbers count from 1.
fn ending(number: u64, count: u64) -> String {
    format!("-{number:05}-of-{count:05}.gguf")
}

/// Opens a part by its name.
fn other(
    neighbours: &mut Neighbours<'_>,
    from: &Path,
    name: String,
    (no, count): (u64, u64),
) -> Result<SetPart> {
    let (source, path) = neighbours.open(Some(from), &name).map_err(|refusal| match refusal {
        Refusal::Failed(error) => error,
        Refusal::Location(why) => Violation::PartPath { name: name.clone(), why }.into(),
        Refusal::Missing | Refusal::NeedsPath => {
            let what = Fault::of_place(&from.with_file_name(&name));
            let name = name.clone();
            match what {
                Some(what) => Violation::PartPlace { name, what }.into(),
                None => Violation::NoPart { name, count }.into(),
            }
        }
    })?;
    let part = SetPart::read(source).map_err(|error| error.with_path(&path))?;
    if part.number(SPLIT_NO) != Some(no) || part.count() != Some(count) {
        return Err(Violation::OtherSet { name }.into());
    }
    Ok(SetPart { path: Some(path), ..part })
}

/// Takes the pairs of all parts. The first value of each key is kept.
fn joined(parts: &mut [SetPart], stem: &str) -> (Attributes, Vec<Warning>) {
    let pairs = parts.iter_mut().map(|part| part.attributes.take());
    let mut pairs: Vec<Attributes> = pairs.map(Option::unwrap_or_default).collect();
    pairs::merge(&mut pairs);
    let mut pairs = pairs.into_iter();
    let mut all = pairs.next().unwrap_or_default();
    let mut warnings = Vec::new();
    for (number, further) in (2u64..).zip(pairs) {
        for (key, value) in further {
            let known = key.as_str().and_then(|key| all.get(key));
            match known {
                None => drop(all.insert(key, value)),
                Some(known) if *known == value => {}
                Some(_) => {
                    let (name, key) = (ending(number, parts.len() as u64), display(&key));
                    let message = format!(
                        "{:?} has another value for {key}; the first is kept",
                        format!("{stem}{name}")
                    );
                    warnings.push(Warning::new("attribute-conflict", message));
                }
            }
        }
    }
    (all, warnings)
}

/// Whether this file is one of a set that is not opened.
pub(super) fn warning(part: &SetPart) -> Option<Warning> {
    if part.number(SPLIT_COUNT) == Some(0) {
        let message = "split.count is 0, so the other files of its set are unknown and not read";
        let warning = Warning::new("split", message);
        return Some(warning.with_kind(zt::foreign::WarningKind::Part));
    }
    let count = part.count()?;
    let number = part.number(SPLIT_NO).and_then(|no| no.checked_add(1));
    let named = number.map(|number| format!("; its name must end with {}", ending(number, count)));
    let message = format!(
        "this is one of {count} files of a set; the others are not read{}",
        named.unwrap_or_default()
    );
    Some(Warning::new("split", message).with_kind(zt::foreign::WarningKind::Part))
}
