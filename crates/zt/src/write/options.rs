//! How a file, an object or a component is written.

use std::io::Write;
use std::path::Path;

use zt_container::DigestAlgorithm;
use zt_formats::Registry;

use crate::disk::publish::AtomicFile;
use crate::error::Result;
use crate::write::writer::{Sink, Writer};

/// The level at which zstd compresses where none is named: its own default.
pub const DEFAULT_LEVEL: i32 = 3;

/// How components are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// zstd of that level, as [`WriteOptions::zstd`] takes them, unless a component does not shrink:
    /// then as it is.
    Zstd(i32),
    /// zstd that codes bytes by their frequency and looks for no repetition, unless a component
    /// does not shrink. Right for weights, whose bits do not repeat; wrong for most else.
    EntropyOnly,
    /// Whichever suits a component, by a sample of its first bytes: as it is where nothing saves
    /// more than a fiftieth, [`Compression::EntropyOnly`] where searching saves hardly more, else zstd
    /// of its default level.
    Auto,
}

/// How one component is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComponentOptions {
    /// Raw or compressed. Raw is the default.
    pub compression: Compression,
    /// The digest to record; crc32c is the default.
    pub digest: Option<DigestAlgorithm>,
}

impl Default for ComponentOptions {
    fn default() -> Self {
        ComponentOptions {
            compression: Compression::None,
            digest: Some(DigestAlgorithm::Crc32c),
        }
    }
}

/// How the components of one object are stored: alike, but for those roles that are named.
///
/// ```
/// use zt::{ComponentOptions, Compression, ObjectOptions};
/// let values_only = ObjectOptions::from(ComponentOptions::default())
///     .role("values", ComponentOptions { compression: Compression::Zstd(3), ..Default::default() });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ObjectOptions {
    others: ComponentOptions,
    roles: Vec<(String, ComponentOptions)>,
}

impl From<ComponentOptions> for ObjectOptions {
    fn from(options: ComponentOptions) -> Self {
        ObjectOptions {
            others: options,
            roles: Vec::new(),
        }
    }
}

impl ObjectOptions {
    /// Stores the component of `role` in its own way.
    #[must_use]
    pub fn role(mut self, role: impl Into<String>, options: ComponentOptions) -> Self {
        self.roles.push((role.into(), options));
        self
    }

    /// How the component of `role` is stored.
    #[must_use]
    pub fn of(&self, role: &str) -> ComponentOptions {
        let named = self.roles.iter().rev().find(|(name, _)| name == role);
        named.map_or(self.others, |(_, options)| *options)
    }
}

/// Everything about writing a file that is not the default.
///
/// The same calls give the same bytes on any machine and with any number of threads.
///
/// ```
/// use zt::{DigestAlgorithm, WriteOptions};
/// let mut bytes = Vec::new();
/// let writer = WriteOptions::new()
///     .zstd(3)
///     .digest(Some(DigestAlgorithm::Sha256))
///     .to_writer(&mut bytes)?;
/// writer.finish()?;
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    pub(crate) component: ComponentOptions,
    pub(crate) alignment: Option<u64>,
    pub(crate) threads: Option<usize>,
    pub(crate) deduplicate: bool,
    pub(crate) registry: Option<Registry>,
    pub(crate) planes: bool,
}

impl WriteOptions {
    /// The defaults: raw components, each with a crc32c, large ones on page boundaries. Only objects
    /// that are given as planes are compressed, as [`WriteOptions::planes`] does it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Compresses every component with zstd of `level`, unless it does not shrink: 1 to 22, or
    /// negative ones, which are faster. 0 is the default of zstd, and what it has not counts as the
    /// nearest that it has.
    #[must_use]
    pub fn zstd(mut self, level: i32) -> Self {
        self.component.compression = Compression::Zstd(level);
        self
    }

    /// Stores components so, unless [`Writer::add_with`] says otherwise.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.component.compression = compression;
        self
    }

    /// Writes dense objects of f64, f32, f16 and bf16 as `zt.planes/1`, and every component with
    /// [`Compression::Auto`], unless a later call says otherwise.
    ///
    /// Weights take two thirds (bf16) or five sixths (f32) of their bytes, and read faster than any
    /// that were searched for repetitions: without loss, to the last bit of a NaN. The file stays a
    /// `.zt` of 1.2.0, but only readers that know the format give its dense value; ours gives it
    /// wherever a dense value is asked for. [`Writer::planes_of`] says which objects stay dense.
    ///
    /// ```
    /// use zt::{Dense, File, WriteOptions};
    /// let weights: Vec<f32> = (0..10_000u16).map(|at| f32::from(at).sin()).collect();
    /// let weights = Dense::from_slice(&[100, 100], &weights)?;
    ///
    /// let mut bytes = Vec::new();
    /// let mut writer = WriteOptions::new().planes().to_writer(&mut bytes)?;
    /// writer.add("weights", &weights)?;
    /// writer.finish()?;
    /// assert!(bytes.len() < 40_000 * 9 / 10);
    /// let file = File::from_bytes(bytes)?;
    /// assert_eq!(file.tensor("weights")?.format(), "zt.planes/1");
    /// assert_eq!(file.tensor("weights")?.to_dense()?, weights);
    /// # Ok::<(), zt::Error>(())
    /// ```
    #[must_use]
    pub fn planes(mut self) -> Self {
        self.planes = true;
        self.component.compression = Compression::Auto;
        self
    }

    /// The digest of every component's stored bytes; `None` for none.
    #[must_use]
    pub fn digest(mut self, digest: Option<DigestAlgorithm>) -> Self {
        self.component.digest = digest;
        self
    }

    /// Begins every component at a multiple of so many bytes: a power of two from 64 to 2^30. By
    /// default small components begin at multiples of 64 and those of 1 MiB and more at multiples
    /// of 4096, so that their pages are theirs alone.
    #[must_use]
    pub fn alignment(mut self, alignment: u64) -> Self {
        self.alignment = Some(alignment);
        self
    }

    /// Whether components with the bytes of an earlier one, stored in the same way, share its blob:
    /// tied weights, whatever their names, dtypes and objects. Off by default, because it costs a
    /// sha256 of everything that [`Writer::add`] is given, on all cores. What is streamed is not
    /// looked at; see [`ComponentWriter::share`](crate::ComponentWriter::share) for that.
    ///
    /// ```
    /// use zt::{Dense, File, WriteOptions};
    /// let weight = Dense::from_slice(&[512], &[0.5f32; 512])?;
    /// let mut bytes = Vec::new();
    /// let mut writer = WriteOptions::new().deduplicate(true).to_writer(&mut bytes)?;
    /// writer.add("embed", &weight)?;
    /// writer.add("head", &weight)?;
    /// writer.finish()?;
    /// let file = File::from_bytes(bytes)?;
    /// let span = |name| Ok::<_, zt::Error>(file.tensor(name)?.component("data")?.blob.span);
    /// assert_eq!(span("embed")?, span("head")?);
    /// # Ok::<(), zt::Error>(())
    /// ```
    #[must_use]
    pub fn deduplicate(mut self, deduplicate: bool) -> Self {
        self.deduplicate = deduplicate;
        self
    }

    /// Compresses on so many threads beside the caller's; by default on as many as there are cores.
    /// With 1, on the caller's alone. The bytes are the same.
    #[must_use]
    pub fn threads(mut self, threads: impl Into<Option<usize>>) -> Self {
        self.threads = threads.into();
        self
    }

    /// What [`WriteOptions::threads`] was last given, for whoever does other work for the same file.
    #[must_use]
    pub const fn thread_count(&self) -> Option<usize> {
        self.threads
    }

    /// The formats that objects are checked against, instead of [`registry`](crate::registry).
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Begins the file at `path`, which appears there whole when the writer is finished, in place
    /// of any file of that name, or not at all.
    ///
    /// # Errors
    ///
    /// As [`AtomicFile::create`]; as [`WriteOptions::to_writer`].
    pub fn create(self, path: impl AsRef<Path>) -> Result<Writer<'static>> {
        let file = AtomicFile::create(path)?;
        Writer::with_sink(Sink::File(file), self)
    }

    /// Begins a file in any sink: a socket, a pipe, a `&mut Vec<u8>`. Nothing seeks.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Io`] where the sink fails, [`crate::ErrorKind::Misuse`] for an
    /// alignment off the grid.
    pub fn to_writer<'w>(self, sink: impl Write + Send + 'w) -> Result<Writer<'w>> {
        Writer::with_sink(Sink::stream(sink), self)
    }
}
