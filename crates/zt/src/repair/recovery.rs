//! The result of an examination.

use zt_container::Span;

use super::fate::{Fate, Recovered};
use super::generation::{Generation, Standing};
use super::remains::Remains;
use super::view::{header_of, trailer_of};
use crate::edit::Storage;
use crate::error::{Error, Result};
use crate::file::File;
use crate::file::unfinished::{NOTE_AT, NOTE_LEN, noted};

/// The result of [`examine`](crate::repair::examine()) and [`repair`](crate::repair::repair()): the
/// file's own manifest, what is left of its objects, and what can be done.
#[derive(Debug)]
pub struct Recovery {
    byte_len: u64,
    pub(super) chosen: Option<Chosen>,
    pub(super) others: Vec<Generation>,
    /// Whether the file ends with a trailer whose manifest does not decode. Then `others` are
    /// older.
    pub(super) is_behind_lost: bool,
    pub(super) is_exhaustive: bool,
    pub(super) refusal: Option<Error>,
    pub(super) remains: Vec<Remains>,
}

/// The manifest that is taken as the file's own.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) generation: Generation,
    /// The file that ends with it.
    pub(super) file: File,
    pub(super) objects: Vec<Recovered>,
    /// Whether the file begins with a correct header.
    pub(super) has_header: bool,
}

/// What can be done for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// Nothing needs repair: readers find the manifest, and every object is complete.
    Sound,
    /// The last generation is whole, but readers do not find it. Repair in place makes it the end of
    /// the file.
    Mendable,
    /// The last generation, or the chosen one, is damaged, doubtful or nested. What is left can be
    /// saved to a new file.
    Damaged,
    /// The caller has to choose a manifest. Those that were found may belong to files within a blob, or
    /// be older than a manifest that does not decode.
    Doubtful,
    /// Nothing can be done: there is no manifest.
    Lost,
}

impl Chosen {
    pub(super) const fn new(generation: Generation, file: File, objects: Vec<Recovered>) -> Self {
        Chosen { generation, file, objects, has_header: true }
    }
}

impl Recovery {
    pub(super) const fn new(byte_len: u64) -> Self {
        Recovery {
            byte_len,
            chosen: None,
            others: Vec::new(),
            is_behind_lost: false,
            is_exhaustive: true,
            refusal: None,
            remains: Vec::new(),
        }
    }

    /// What can be done.
    pub fn verdict(&self) -> Verdict {
        let Some(chosen) = &self.chosen else {
            let is_in_doubt = |other: &Generation| match other.standing {
                Standing::Doubtful => true,
                Standing::Whole | Standing::Damaged => self.is_behind_lost,
                Standing::Nested { .. } => false,
            };
            return if self.others.iter().any(is_in_doubt) {
                Verdict::Doubtful
            } else {
                Verdict::Lost
            };
        };
        let generation = &chosen.generation;
        let is_found = generation.end == self.byte_len && generation.has_trailer;
        match generation.standing {
            Standing::Whole if is_found && chosen.has_header => Verdict::Sound,
            Standing::Whole => Verdict::Mendable,
            _ => Verdict::Damaged,
        }
    }

    /// The file's own manifest.
    pub fn generation(&self) -> Option<&Generation> {
        self.chosen.as_ref().map(|chosen| &chosen.generation)
    }

    /// The other manifests in the file, the last one first, up to the last whole one: older, nested
    /// and doubtful ones.
    pub fn others(&self) -> &[Generation] {
        &self.others
    }

    /// The objects of the file's manifest, in the order of their data, and what is left of each.
    pub fn objects(&self) -> &[Recovered] {
        self.chosen.as_ref().map_or(&[], |chosen| &chosen.objects)
    }

    /// The file with that manifest. Damaged objects fail to read. If the chosen manifest belongs to
    /// a file within, this is that file.
    pub fn file(&self) -> Option<&File> {
        self.chosen.as_ref().map(|chosen| &chosen.file)
    }

    /// Whether the manifest's objects are all complete.
    pub fn is_complete(&self) -> bool {
        let is_there = |object: &Recovered| matches!(object.fate, Fate::Proved | Fate::Unproved);
        self.chosen.is_some() && self.objects().iter().all(is_there)
    }

    /// Whether every manifest was examined. A file with tens of thousands of apparent manifests
    /// exceeds the limit.
    pub const fn is_exhaustive(&self) -> bool {
        self.is_exhaustive
    }

    /// Why readers refuse the file; `None` if they do not, or if a manifest was chosen.
    pub const fn refusal(&self) -> Option<&Error> {
        self.refusal.as_ref()
    }

    /// The compressed components of a file without any manifest that end with a seek table. Their names, shapes
    /// and types are unknown, so they cannot be saved. Their checksums were not compared.
    pub fn remains(&self) -> &[Remains] {
        &self.remains
    }

    /// The bytes behind the file's manifest and trailer, from an unfinished edit or appended to the
    /// file. Repair in place removes them.
    pub fn surplus(&self) -> Option<Span> {
        let end = self.generation()?.end;
        Span::between(end, self.byte_len).filter(|span| !span.is_empty())
    }

    /// Mends a [`Verdict::Mendable`] file, so that readers open this generation; changes no other
    /// file. It writes the header and the trailer if they are missing, and truncates the file
    /// behind them. Blobs and manifest stay. After an interruption it can be called again.
    pub(super) fn mend(&self, storage: &dyn Storage) -> Result<()> {
        let (Verdict::Mendable, Some(chosen)) = (self.verdict(), &self.chosen) else {
            return Ok(());
        };
        let generation = &chosen.generation;
        if !chosen.has_header {
            storage.write_at(0, &header_of(generation.layout))?;
        }
        if !generation.has_trailer {
            let trailer = trailer_of(generation.layout, generation.manifest.byte_len());
            storage.write_at(generation.manifest.end(), &trailer)?;
        }
        storage.set_len(generation.end)?;
        storage.sync()?;
        // The note of an edit that was cut short, behind the cut that it would explain.
        if generation.manifest.offset() >= NOTE_AT.strict_add(NOTE_LEN as u64) {
            let mut found = [0; NOTE_LEN];
            storage.read_at(NOTE_AT, &mut found)?;
            if noted(found).is_some() {
                storage.write_at(NOTE_AT, &[0; NOTE_LEN])?;
                storage.sync()?;
            }
        }
        Ok(())
    }
}
