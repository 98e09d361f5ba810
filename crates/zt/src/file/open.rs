//! How a file is opened: limits, registry, verification, strictness.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use zt_container::{FileSource, Limits, Memory, Source};
use zt_formats::Registry;

use crate::disk::lock::is_path_locked;
use crate::error::Result;
use crate::file::File;
use crate::file::inner::Verify;

/// Everything about opening a file that is not the default.
///
/// ```
/// use zt::{OpenOptions, Verify, Writer};
/// let mut bytes = Vec::new();
/// Writer::new(&mut bytes)?.finish()?;
/// let file = OpenOptions::new().strict(true).verify(Verify::Always).open_bytes(bytes)?;
/// assert_eq!(file.len(), 0);
/// # Ok::<(), zt::Error>(())
/// ```
#[must_use]
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    pub(crate) limits: Limits,
    pub(crate) registry: Option<Registry>,
    pub(crate) verify: Verify,
    pub(crate) strict: bool,
}

impl OpenOptions {
    /// The defaults: every limit, the built-in formats, digests checked on the first read. A faulty
    /// object is listed with its fault, and the other objects can be read.
    pub fn new() -> Self {
        Self::default()
    }

    /// The limits on memory and time that the file may take.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The formats and logical types to understand, instead of [`registry`](crate::registry).
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// As [`OpenOptions::registry`], unless these options have a registry.
    pub fn or_registry(mut self, registry: &Registry) -> Self {
        self.registry.get_or_insert_with(|| registry.clone());
        self
    }

    /// When digests are checked.
    pub fn verify(mut self, verify: Verify) -> Self {
        self.verify = verify;
        self
    }

    /// Whether one faulty object refuses the whole file. By default the object is listed with its
    /// fault, and only reading this object is an error.
    ///
    /// In a file of another kind, faults that its reader otherwise tolerates refuse the file too, if they
    /// show without the tensors' data.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Opens the `.zt` file at `path`. It is read by position: if the file is truncated or replaced
    /// while it is open, reads give an error, never a signal. If it is edited in place while it is
    /// being opened, it is opened again: see [`open_settled`].
    ///
    /// If an edit was cut short, the file is the old one, with a [warning](File::warnings) of the code
    /// `unfinished-edit`. This holds for every way to open a file.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Io`]; the file's faults as for [`OpenOptions::open_source`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        open_settled(path, |source| self.open_shared(source)).map_err(|error| error.with_path(path))
    }

    /// Opens a `.zt` file that is in memory. Raw components are lent from there.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open_source`].
    pub fn open_bytes(&self, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<File> {
        self.open_shared(Arc::new(Memory::new(bytes)))
    }

    /// Opens a `.zt` file from any source: a map (`unsafe { zt::Map::open(path)? }`), an
    /// `Arc<[u8]>` in [`Memory`], a reader that seeks (`Seekable::new(reader)?`), one of your own.
    ///
    /// Cost: the manifest is read (borrowed, where the source lends it) and passed over once; no
    /// object is decoded, no data touched.
    ///
    /// # Errors
    ///
    /// Faults of the framing, the CBOR and the root refuse the file, with their codes. With
    /// [`OpenOptions::strict`], so does the first fault of an object.
    pub fn open_source(&self, source: impl Source + 'static) -> Result<File> {
        self.open_shared(Arc::new(source))
    }

    fn open_shared(&self, source: Arc<dyn Source>) -> Result<File> {
        File::from_zt(source, self)
    }

    pub(crate) fn registry_or_builtin(&self) -> Registry {
        self.registry.clone().unwrap_or_else(registry)
    }
}

/// The formats and logical types that are known unless options name others:
/// [`Registry::builtin`] and [`ggml`](crate::ggml). Start from these to add one of your own:
/// `OpenOptions::new().registry(zt::registry().with_format(MyFormat))`.
pub fn registry() -> Registry {
    static BUILTIN: LazyLock<Registry> = LazyLock::new(|| zt_ggml::register(Registry::builtin()));
    BUILTIN.clone()
}

/// Opens the file at `path` with `open`, and again if an edit got in the way.
///
/// There are up to 16 attempts. Another one follows if the length of the file has changed, or if `open`
/// failed while an editor has the file locked. Then it waits for the editor, up to about a second in
/// all. The last result is returned.
///
/// Readers find the manifest at the end of the file, and an edit that commits meanwhile truncates that
/// end or clears half of it. An edit changes the length before it changes any byte that readers use, so
/// the length shows that an edit was there. Spec: §16.
///
/// # Errors
///
/// As [`FileSource::open`] and `open`.
pub fn open_settled<T>(
    path: impl AsRef<Path>,
    open: impl Fn(Arc<FileSource>) -> Result<T>,
) -> Result<T> {
    const ATTEMPTS: u32 = 16;
    const LONGEST_WAIT: u64 = 100;
    let mut attempt = 1;
    loop {
        let source = Arc::new(FileSource::open(path.as_ref())?);
        let opened = open(Arc::clone(&source));
        // The lock first: once it is free, the length shows what the editor changed.
        let is_edited = opened.is_err() && is_path_locked(path.as_ref());
        // If the system gives no length, the result of `open` decides.
        let is_settled = source.has_its_length().unwrap_or(true);
        if attempt == ATTEMPTS || (is_settled && !is_edited) {
            return opened;
        }
        if is_edited {
            let wait = 1u64.checked_shl(attempt).unwrap_or(LONGEST_WAIT);
            thread::sleep(Duration::from_millis(wait.min(LONGEST_WAIT)));
        }
        attempt = attempt.strict_add(1);
    }
}
