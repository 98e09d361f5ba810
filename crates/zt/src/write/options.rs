//! How a file, an object or a component is written.

use zt_container::DigestAlgorithm;
use zt_formats::{PlaneCoding, Registry};

/// The default level of zstd.
pub const DEFAULT_LEVEL: i32 = 3;

/// How components are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Compression {
    /// Uncompressed.
    #[default]
    None,
    /// zstd at this level, as in [`WriteOptions::zstd`]. A component that does not shrink is stored
    /// uncompressed.
    Zstd(i32),
    /// zstd that codes bytes by their frequency and searches for no repetition. It suits weights, whose
    /// bits do not repeat, and little else. A component that does not shrink is stored uncompressed.
    EntropyOnly,
    /// The best choice for each component, by a sample of its first bytes. The component is
    /// uncompressed if no choice saves more than 2 %. It is stored as by [`Compression::EntropyOnly`] if a
    /// search saves hardly more, and otherwise by zstd at its default level.
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
        ComponentOptions { compression: Compression::None, digest: Some(DigestAlgorithm::Crc32c) }
    }
}

/// The parts of its storage that a copied component keeps, because no option chooses others.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Keeps {
    pub(crate) encoding: bool,
    pub(crate) digest: bool,
}

/// How the components of one object are stored: all alike, except the roles that are named.
///
/// ```
/// use zt::{ComponentOptions, Compression, ObjectOptions};
/// let values_only = ObjectOptions::from(ComponentOptions::default())
///     .role("values", ComponentOptions { compression: Compression::Zstd(3), ..Default::default() });
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ObjectOptions {
    others: ComponentOptions,
    roles: Vec<(String, ComponentOptions)>,
}

impl From<ComponentOptions> for ObjectOptions {
    fn from(options: ComponentOptions) -> Self {
        ObjectOptions { others: options, roles: Vec::new() }
    }
}

impl ObjectOptions {
    /// Stores the component of `role` with these options.
    pub fn role(mut self, role: impl Into<String>, options: ComponentOptions) -> Self {
        self.roles.push((role.into(), options));
        self
    }

    /// Stores a coded plane raw: nothing is left to compress.
    pub(crate) fn with_raw_codes(self) -> Self {
        PlaneCoding::CODED.into_iter().fold(self, |options, role| {
            let raw = ComponentOptions { compression: Compression::None, ..options.of(role) };
            options.role(role, raw)
        })
    }

    /// How the component of `role` is stored.
    pub fn of(&self, role: &str) -> ComponentOptions {
        let named = self.roles.iter().rev().find(|(name, _)| name == role);
        named.map_or(self.others, |(_, options)| *options)
    }
}

/// Options for writing a file.
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
#[must_use]
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// `None` if the caller did not choose.
    compression: Option<Compression>,
    /// `None` if the caller did not choose.
    digest: Option<Option<DigestAlgorithm>>,
    pub(crate) chunk_digests: Option<DigestAlgorithm>,
    pub(crate) alignment: Option<u64>,
    pub(crate) threads: Option<usize>,
    pub(crate) deduplicate: bool,
    pub(crate) registry: Option<Registry>,
    pub(crate) planes: Option<PlaneCoding>,
    pub(crate) empty_names: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            compression: None,
            digest: None,
            chunk_digests: Some(DigestAlgorithm::Crc32c),
            alignment: None,
            threads: None,
            deduplicate: false,
            registry: None,
            planes: None,
            empty_names: false,
        }
    }
}

impl WriteOptions {
    /// The defaults: raw components, each with a crc32c, large ones on page boundaries and with chunk digests. Only
    /// objects that are planes already are compressed, as by [`WriteOptions::planes`]. A component
    /// that is [copied](crate::Writer::copy) keeps its encoding and its digest algorithm.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compresses every component with zstd, unless it does not shrink. Levels are 1 to 22, or negative
    /// for more speed. Level 0 is the default of zstd. A level out of range means the nearest one.
    pub fn zstd(mut self, level: i32) -> Self {
        self.compression = Some(Compression::Zstd(level));
        self
    }

    /// The compression of components, copied ones too, unless
    /// [`Writer::add_with`](crate::Writer::add_with) sets another one.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Writes dense objects of f64, f32, f16 and bf16 as `zt.planes/1`, and every component with
    /// [`Compression::Auto`], unless a later call chooses another.
    ///
    /// Weights take two thirds (bf16) or five sixths (f32) of their bytes, without loss, to the last bit
    /// of a NaN. They read faster than data that zstd searched for repetitions. The file is a `.zt` of
    /// 1.2.0, but only readers that know `zt.planes/1` give its dense values, as this crate does.
    /// An experiment: `spec/formats/zt.planes.md` says what may still change.
    /// [`Writer::planes_of`](crate::Writer::planes_of) lists the objects that stay dense.
    ///
    #[cfg_attr(feature = "zstd", doc = "```")]
    #[cfg_attr(not(feature = "zstd"), doc = "```ignore")]
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
    pub fn planes(self) -> Self {
        self.planes_in(PlaneCoding::Plain)
    }

    /// As [`WriteOptions::planes`], with plane 0 in this coding. `zt.planes/2` is read faster and takes as
    /// many bytes, but fewer readers know it.
    ///
    /// ```
    /// use zt::formats::PlaneCoding;
    /// use zt::{Dense, File, WriteOptions};
    /// let weights: Vec<f32> = (0..10_000u16).map(|at| f32::from(at).sin()).collect();
    /// let weights = Dense::from_slice(&[100, 100], &weights)?;
    ///
    /// let mut bytes = Vec::new();
    /// let mut writer = WriteOptions::new().planes_in(PlaneCoding::Huffman).to_writer(&mut bytes)?;
    /// writer.add("weights", &weights)?;
    /// writer.finish()?;
    /// let file = File::from_bytes(bytes)?;
    /// assert_eq!(file.tensor("weights")?.format(), "zt.planes/2");
    /// assert_eq!(file.tensor("weights")?.to_dense()?, weights);
    /// # Ok::<(), zt::Error>(())
    /// ```
    pub fn planes_in(mut self, coding: PlaneCoding) -> Self {
        self.planes = Some(coding);
        self.compression = Some(Compression::Auto);
        self
    }

    /// The digest of every component's stored bytes, copied ones too; `None` for none.
    pub fn digest(mut self, digest: Option<DigestAlgorithm>) -> Self {
        self.digest = Some(digest);
        self
    }

    /// The digest of each MiB of a raw component, if the component is longer and has a digest. Readers
    /// need it to verify slices. The default is crc32c, also beside a sha256, because a second sha256 of
    /// every byte takes as long as the first. `None` writes no such digests.
    ///
    /// Spec: §6.1.
    pub fn chunk_digests(mut self, algorithm: Option<DigestAlgorithm>) -> Self {
        self.chunk_digests = algorithm;
        self
    }

    pub(crate) const fn keeps(&self) -> Keeps {
        Keeps { encoding: self.compression.is_none(), digest: self.digest.is_none() }
    }

    /// The storage of components that are not copied.
    pub(crate) fn component(&self) -> ComponentOptions {
        let default = ComponentOptions::default();
        ComponentOptions {
            compression: self.compression.unwrap_or(default.compression),
            digest: self.digest.unwrap_or(default.digest),
        }
    }

    /// Begins every component at a multiple of `alignment` bytes: a power of two from 64 to 2^30. By
    /// default small components begin at multiples of 64. Components of 1 MiB or more begin at multiples
    /// of 4096, so that they share no page.
    pub fn alignment(mut self, alignment: u64) -> Self {
        self.alignment = Some(alignment);
        self
    }

    /// Lets components with equal bytes and equal storage share one blob, for example tied weights.
    /// Their names, dtypes and objects may differ. Off by default, because it costs a sha256 of
    /// everything that [`Writer::add`](crate::Writer::add) is given, on all cores. Streamed components are not compared:
    /// use [`ComponentWriter::share`](crate::ComponentWriter::share).
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
    pub fn deduplicate(mut self, deduplicate: bool) -> Self {
        self.deduplicate = deduplicate;
        self
    }

    /// Compresses on this many threads beside the caller's; the default is one for each core. With 1, only
    /// the caller's thread works. The bytes of the file do not depend on this number.
    pub fn threads(mut self, threads: impl Into<Option<usize>>) -> Self {
        self.threads = threads.into();
        self
    }

    /// The number that [`WriteOptions::threads`] set, for other work on the same file.
    pub const fn thread_count(&self) -> Option<usize> {
        self.threads
    }

    /// Whether [`Writer::add`](crate::Writer::add) and
    /// [`Editor::rename`](crate::Editor::rename) take an empty name. Off by default, because it is
    /// usually a mistake; readers take such names. [`Writer::begin`](crate::Writer::begin) and
    /// [`Writer::copy`](crate::Writer::copy) always do, so that copies keep what a file has.
    pub fn empty_names(mut self, empty_names: bool) -> Self {
        self.empty_names = empty_names;
        self
    }

    /// As [`WriteOptions::registry`], unless these options have a registry.
    pub fn or_registry(mut self, registry: &Registry) -> Self {
        self.registry.get_or_insert_with(|| registry.clone());
        self
    }

    /// The formats that objects are checked against, instead of [`registry`](crate::registry).
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }
}
