//! How a file is opened: limits, registry, verification, strictness.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use zt_container::{FileSource, Limits, Memory, Source};
use zt_formats::Registry;

use crate::error::Result;
use crate::file::File;

/// When the digest of a component is compared with its stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Verify {
    /// On its first full read, from a map as from a file; later reads trust the first.
    #[default]
    OnRead,
    /// On every full read.
    Always,
    /// Never, other than by [`File::verify`].
    Never,
}

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
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    pub(crate) limits: Limits,
    pub(crate) registry: Option<Registry>,
    pub(crate) verify: Verify,
    pub(crate) strict: bool,
}

impl OpenOptions {
    /// The defaults: every limit on, the built-in formats, digests checked on the first read, a
    /// faulty object hidden from nobody and in nobody's way.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the file may make this process spend.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The formats and logical types to understand, instead of [`registry`](crate::registry).
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// When digests are checked.
    #[must_use]
    pub fn verify(mut self, verify: Verify) -> Self {
        self.verify = verify;
        self
    }

    /// Whether one faulty object refuses the whole file. By default it lists with its fault,
    /// reading it is an error, and its neighbours read.
    ///
    /// Of a file of another kind, so does what its format forbids to writers and its reader puts up
    /// with, as far as it shows without the tensors' data.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Opens the `.zt` file at `path`, to be read by position: a file that is cut or replaced
    /// while it is open gives an error, never a signal. One that is edited in place while it is
    /// being opened is opened again: see [`open_settled`].
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
    /// `Arc<[u8]>` in [`Memory`], one of your own.
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
#[must_use]
pub fn registry() -> Registry {
    static BUILTIN: LazyLock<Registry> = LazyLock::new(|| zt_ggml::register(Registry::builtin()));
    BUILTIN.clone()
}

/// Opens the file at `path` and what `open` makes of it; again, up to 16 times, for as long as the
/// file has another length by then, or cannot be opened while an editor has it, which is waited for,
/// up to a second in all. Then the last outcome stands.
///
/// What is at the end of a file is looked for where the end was: an edit in place that is committed
/// meanwhile may have cut it off, or cleared half of it. An edit changes the length of a file before
/// it changes anything that its readers look at; while the call that does so is under way, the end
/// may be half of what it is going to be. Spec: §16.
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
        // Asked first: what an editor that has let go of it has changed shows in the length.
        let is_edited = opened.is_err() && source.is_locked();
        // Where the length cannot be asked for, the outcome says more.
        let is_settled = source.has_its_length().unwrap_or(true);
        if attempt == ATTEMPTS || (is_settled && !is_edited) {
            return opened;
        }
        if is_edited {
            let wait = 1u64.checked_shl(attempt).unwrap_or(LONGEST_WAIT);
            thread::sleep(Duration::from_millis(wait.min(LONGEST_WAIT)));
        }
        attempt += 1;
    }
}
