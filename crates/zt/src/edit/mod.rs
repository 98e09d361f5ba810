//! Room `edit`: a `.zt` file that is changed in place.
//!
//! | module | holds |
//! | --- | --- |
//! | this one | [`Editor`] and `File::edit` |
//! | `tail` | the new end of the file, which appears with one truncation |
//! | `leftover` | the cleanup after an edit that was killed |
//! | `storage` | [`Storage`]: the calls that an edit needs, and the lock |
//! | `compact`, `extent` | a new file without unused bytes; stored ranges that move together |
//!
//! Readers see the old file until the edit commits, and the new file after.
//!
//! It knows the rooms `error`, `cores`, `disk`, `file` and `write`.
//!
//! It must not know the room `repair`, which uses this room's locks and moves of stored bytes.

mod compact;
mod extent;
mod leftover;
mod storage;
mod tail;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zt_container::{Layout, Span, memory::zeroed};
use zt_manifest::Attributes;

pub(crate) use compact::FOOTER_LEN;
pub use compact::{compact, compacted_len};
pub(crate) use extent::{Moved, Mover, Stored, extents};
pub use storage::Storage;
pub(crate) use storage::{Before, LockedFile};
use tail::GrowingTail;

use crate::cores::debug;
use crate::error::{Error, Fault, Result};
use crate::file::File;
use crate::file::open::OpenOptions;
use crate::write::directory::Directory;
use crate::write::options::{Compression, WriteOptions};
use crate::write::writer::{Sink, Writer};

/// Changes a `.zt` file in place. New bytes go behind its end.
///
/// Readers see the old file until [`Editor::commit`], and the new file after. An editor that is
/// dropped before it commits leaves the old file.
///
/// If the process is killed or the power is lost, at any moment, the file opens as the old one or the new
/// one. The old one may have a [warning](File::warnings) of the code `unfinished-edit`. The next edit
/// removes the bytes that the killed process left behind the old file. What other readers of the format
/// find is in the table of §16.
///
/// The file has one editor at a time: it is locked, and a second editor is refused. On Linux, only a
/// program that may write to the file can hold the lock. Readers are not locked out. A reader that has the file open by
/// position keeps the old file: the bytes of removed objects stay in place until [`compact()`].
///
/// ```
/// use zt::{Dense, File, Writer};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("model.zt");
/// let mut writer = Writer::create(&path)?;
/// writer.add("a", &Dense::from_slice(&[2], &[1i32, 2])?)?;
/// writer.finish()?;
///
/// let mut edit = File::edit(&path)?;
/// edit.rename("a", "first")?;
/// edit.writer().add("second", &Dense::from_slice(&[1], &[3i32])?)?;
/// assert!(File::open(&path)?.tensor("a").is_ok(), "nothing has changed yet");
/// edit.commit()?;
/// assert_eq!(File::open(&path)?.names().collect::<Vec<_>>(), ["first", "second"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Spec: §16.
pub struct Editor {
    writer: Writer<'static>,
    before: File,
    /// Objects that cannot be written again, with their faults. Their names are reserved in the
    /// writer.
    faulty: BTreeMap<String, Error>,
    /// Names of objects that were removed or renamed.
    changed: HashSet<String>,
    path: Option<PathBuf>,
    /// The file at `path`, for an edit of a path.
    locked: Option<Arc<LockedFile>>,
}

impl File {
    /// Begins to change the `.zt` file at `path`, with the defaults of [`WriteOptions`].
    ///
    /// # Errors
    ///
    /// As [`WriteOptions::edit`].
    pub fn edit(path: impl AsRef<Path>) -> Result<Editor> {
        WriteOptions::new().edit(path)
    }
}

impl WriteOptions {
    /// Begins to change the `.zt` file at `path`. These options apply to the objects that are added,
    /// and not to those that are there.
    ///
    /// # Errors
    ///
    /// Code `locked` if another editor has the file. Code `unsupported` for layouts before 1.1 and
    /// versions after 1.2: convert such a file instead. The file's faults, as for
    /// [`OpenOptions::open`]; [`crate::ErrorKind::Io`].
    pub fn edit(self, path: impl AsRef<Path>) -> Result<Editor> {
        let path = path.as_ref();
        let begin = || {
            let storage = Arc::new(LockedFile::open(path)?);
            let mut editor = Editor::begin(Arc::clone(&storage) as _, self, Some(path.to_owned()))?;
            editor.locked = Some(storage);
            Ok(editor)
        };
        begin().map_err(|error: Error| error.with_path(path))
    }

    /// As [`WriteOptions::edit`], for a file in any storage. The caller keeps other editors away
    /// from it.
    ///
    /// # Errors
    ///
    /// As [`WriteOptions::edit`].
    pub fn edit_storage(self, storage: Arc<dyn Storage>) -> Result<Editor> {
        Editor::begin(storage, self, None)
    }
}

impl Editor {
    fn begin(
        storage: Arc<dyn Storage>,
        options: WriteOptions,
        path: Option<PathBuf>,
    ) -> Result<Self> {
        let source = Before { storage: Arc::clone(&storage), byte_len: storage.byte_len()? };
        let (mut before, mut trailer) = read(&storage, &options)?;
        let span = trailer_of(&before)?;
        let old_len = if before.byte_len() < source.byte_len {
            // The edit was cut short before its end was whole.
            Some(before.byte_len())
        } else {
            leftover::old_len(&source, &before, span, &trailer)?
        };
        if let Some(old_len) = old_len {
            storage.set_len(old_len)?;
            storage.sync()?;
            (before, trailer) = read(&storage, &options)?;
        }
        let byte_len = before.byte_len();

        let mut faulty = BTreeMap::new();
        let mut objects = Directory::default();
        for entry in before.entries() {
            match entry.object() {
                Ok(object) => objects.push(entry.name(), object)?,
                Err(error) => {
                    objects.reserve(entry.name());
                    faulty.insert(entry.name().to_owned(), error);
                }
            }
        }
        let tail = GrowingTail::new(storage, byte_len, &trailer)?;
        let sink = Sink::Tail(Box::new(tail));
        let mut writer = Writer::resume(sink, byte_len, objects, options)?;
        *writer.attributes_mut() = before.attributes()?;
        writer.set_extra(before.extra()?)?;
        Ok(Editor { writer, before, faulty, changed: HashSet::new(), path, locked: None })
    }

    /// The file as it was when the edit began. Readers see this file until the edit commits. Clones of
    /// it keep the file locked: drop them before the next edit.
    pub const fn before(&self) -> &File {
        &self.before
    }

    /// Whether the edited file has the object of that name as [`Editor::before`] has it: it is sound, and
    /// it was not removed, renamed or replaced. Its components can be
    /// [shared](crate::ComponentWriter::share) under that name then.
    pub fn keeps(&self, name: &str) -> bool {
        let is_sound = || self.before.tensor(name).is_ok();
        !self.changed.contains(name) && is_sound()
    }

    /// The path of the file; `None` for an edit of a [`Storage`].
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether the edited file would have an object of that name. Faulty objects count.
    pub fn contains(&self, name: &str) -> bool {
        self.writer.expect(name).is_ok()
    }

    /// Checks that [`Editor::commit`] can keep every object. An object that cannot be read cannot be
    /// written again: remove it first.
    ///
    /// # Errors
    ///
    /// The fault of such an object.
    pub fn check(&self) -> Result<()> {
        let first = self.faulty.values().next();
        first.map_or(Ok(()), |error| Err(error.clone()))
    }

    /// The writer that adds objects, as to a new file. Every name in the file is taken until it is
    /// removed, also the name of a faulty object.
    pub const fn writer(&mut self) -> &mut Writer<'static> {
        &mut self.writer
    }

    /// Makes room for this many bytes of new objects. A full disk is then an error before anything
    /// is written. Without this call, room is made when it is needed. The call does nothing if
    /// components are compressed, because their lengths are unknown.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Io`] if there is no space.
    pub fn reserve(&mut self, byte_len: u64) -> Result<()> {
        if self.writer.options.compression != Compression::None {
            return Ok(());
        }
        let tail = self.writer.tail();
        Ok(tail.map_or(Ok(()), |tail| tail.make_room(byte_len))?)
    }

    /// Removes an object, a faulty one too. Its bytes stay in the file until [`compact()`].
    ///
    /// # Errors
    ///
    /// Code `not-found`.
    pub fn remove(&mut self, name: &str) -> Result<()> {
        self.faulty.remove(name);
        if self.writer.remove(name) {
            self.changed.insert(name.to_owned());
            return Ok(());
        }
        Err(Error::from(Fault::NoSuchObject).with_object(name))
    }

    /// Gives an object another name.
    ///
    /// # Errors
    ///
    /// Codes `not-found` and `duplicate-name`; the object's fault, if it has one.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        if let Some(error) = self.faulty.get(from) {
            return Err(error.clone());
        }
        if from == to {
            return self.writer.expect(from);
        }
        self.writer.rename(from, to)?;
        self.changed.insert(from.to_owned());
        Ok(())
    }

    /// The file's attributes as the edit leaves them; `None` if the file has none.
    pub const fn attributes(&self) -> Option<&Attributes> {
        self.writer.attributes()
    }

    /// Replaces the file's attributes; `None` removes them.
    ///
    /// # Errors
    ///
    /// As [`Writer::set_attributes`].
    pub fn set_attributes(&mut self, attributes: impl Into<Option<Attributes>>) -> Result<()> {
        match attributes.into() {
            Some(attributes) => self.writer.set_attributes(attributes)?,
            None => *self.writer.attributes_mut() = None,
        }
        Ok(())
    }

    /// Fields of the manifest's root that the specification does not define. [`Writer::set_extra`] of
    /// [`Editor::writer`] changes them.
    pub const fn extra(&self) -> &Attributes {
        self.writer.extra()
    }

    /// Makes the edited file durable, and visible to all readers.
    ///
    /// # Errors
    ///
    /// The fault of an object that cannot be read and was not removed, because it would be lost.
    /// [`crate::ErrorKind::Misuse`] and [`crate::ErrorKind::DigestMismatch`] as for [`Writer::finish`];
    /// [`crate::ErrorKind::Io`].
    ///
    /// After an error the old file is there. The exception is a failed sync after the last step: the
    /// new file is there, and a loss of power may destroy it. After code `replaced`, another program has
    /// given the name to another file, which lacks the edit; other names of the edited file keep it.
    pub fn commit(mut self) -> Result<()> {
        // An error about another file, which is not to get the path of this one.
        self.writer.check_copied()?;
        let is_sound = self.check();
        let (path, locked) = (self.path, self.locked);
        let commit = || {
            is_sound?;
            match self.writer.finish_sink()? {
                Sink::Tail(mut tail) => tail.commit()?,
                Sink::File(_) | Sink::Lent(_) | Sink::Stream(_) => {}
            }
            match (&locked, &path) {
                (Some(file), Some(path)) if !file.is_at(path)? => Err(Fault::Replaced.into()),
                _ => Ok(()),
            }
        };
        commit().map_err(|error: Error| match &path {
            Some(path) => error.with_path(path),
            None => error,
        })
    }
}

debug::fields!(Editor, |editor| before: editor.before, writer: editor.writer);

/// The file, and the bytes at its end: manifest, size and footer magic.
fn read(storage: &Arc<dyn Storage>, options: &WriteOptions) -> Result<(File, Vec<u8>)> {
    let source = Before { storage: Arc::clone(storage), byte_len: storage.byte_len()? };
    let mut open = OpenOptions::new();
    if let Some(registry) = &options.registry {
        open = open.registry(registry.clone());
    }
    let file = open.open_source(source)?;
    let trailer = trailer_of(&file)?;
    // The length is within the limit, because the manifest was in memory before.
    let mut bytes = zeroed(trailer.byte_len())?;
    storage.read_at(trailer.offset(), &mut bytes)?;
    Ok((file, bytes))
}

/// The place of the manifest, its size and the footer magic, at the end of the file.
fn trailer_of(file: &File) -> Result<Span> {
    let layout = file.layout().unwrap_or_default();
    let Some((placement, version)) = file.inner.catalog.placement() else {
        return Err(Fault::NotEditable(layout).into());
    };
    // A later minor version may have fields with a meaning that is unknown here.
    let is_known = version.is_some_and(|version| version.minor <= 2);
    if placement.layout != Layout::V1_1 || !is_known {
        return Err(Fault::NotEditable(layout).into());
    }
    Span::between(placement.data.end(), file.byte_len())
        .ok_or_else(|| Fault::NotEditable(layout).into())
}
