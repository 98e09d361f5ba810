//! `File::hash`: the identity of tensors, whatever file holds them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use zt_container::{Digest, DigestAlgorithm, Encoding, Hasher};
use zt_formats::{Dense, View};
use zt_manifest::{ByteOrder, Component, DType, Value as Cbor};

use crate::check::dense_hash::dense_values;
use crate::check::survey::{Checks, Spent, Survey, judge};
use crate::cores::progress::{Gauge, Progress, work_options};
use crate::error::{Error, Result};
use crate::file::overlap::Allowance;
use crate::file::tensor::Tensor;
use crate::file::{Entry, File};
use crate::read::compressed::DATA;

/// How a file is hashed.
#[must_use]
#[derive(Debug, Clone, Copy, Default)]
pub struct HashOptions<'p> {
    dense: bool,
    crc32c: bool,
    threads: Option<usize>,
    progress: Option<Progress<'p>>,
    recorded: Option<&'p HashSet<String>>,
    known: Option<&'p KnownSums>,
}

/// The SHA-256 of the content of every component, in the order of the file, by the name of the object.
pub type KnownSums = HashMap<String, Vec<[u8; 32]>>;

impl<'p> HashOptions<'p> {
    /// The defaults: no dense values, on all cores.
    pub fn new() -> Self {
        Self::default()
    }

    /// Hashes the dense value of every object as well.
    pub const fn dense(mut self, dense: bool) -> Self {
        self.dense = dense;
        self
    }

    /// Computes [`ObjectHash::crc32c`] as well. A caller that reads the bytes again sees by it whether they changed, in a
    /// tenth of the time that a SHA-256 takes.
    pub const fn crc32c(mut self, crc32c: bool) -> Self {
        self.crc32c = crc32c;
        self
    }

    /// Takes the recorded sha256 of raw components for their hash, and does not read them, in the objects with
    /// these names. An object in which a component has no sha256 is read, and so is one of a compressed format.
    ///
    /// The identity is then right only if the records are: whoever reads these objects later has to verify
    /// them.
    pub const fn recorded(mut self, names: &'p HashSet<String>) -> Self {
        self.recorded = Some(names);
        self
    }

    /// Takes these sums for the hashes of raw little-endian components, and does not read them: the caller has
    /// read the bytes. An object with other components is read, and so is one of a compressed format.
    pub const fn known(mut self, sums: &'p KnownSums) -> Self {
        self.known = Some(sums);
        self
    }

    /// The hash of an object that is not read.
    fn recorded_hash(&self, entry: &Entry<'_>) -> Option<ObjectHash> {
        if let Some(sums) = self.known.and_then(|known| known.get(entry.name())) {
            let tensor = entry.tensor().ok()?;
            let is_whole = tensor.located().count() == sums.len();
            return is_whole.then(|| hashes_of(&tensor, |at, _| sums.get(at).copied()))?;
        }
        let is_chosen = self.recorded?.contains(entry.name());
        let recorded = |_, digest: Option<&Digest>| match digest {
            Some(Digest::Sha256(sum)) => Some(*sum),
            _ => None,
        };
        is_chosen.then(|| hashes_of(&entry.tensor().ok()?, recorded))?
    }
}

work_options!(HashOptions, "Reports decoded bytes.");

/// The SHA-256 and the number of some little-endian bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BytesHash {
    /// The sum.
    pub sha256: [u8; 32],
    /// The number of bytes.
    pub byte_len: u64,
}

/// `sha256:` and 64 hexadecimal digits.
impl fmt::Display for BytesHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Digest::Sha256(self.sha256).fmt(f)
    }
}

/// The hash of an object's dense value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenseHash {
    /// Storage type of the dense value.
    pub dtype: zt_manifest::DType,
    /// Its logical type, if it has one.
    pub logical_type: Option<String>,
    /// Its bytes.
    pub bytes: BytesHash,
}

impl DenseHash {
    pub(super) fn of(dtype: DType, logical_type: Option<&str>, bytes: BytesHash) -> Self {
        let logical_type = logical_type.map(str::to_owned);
        DenseHash { dtype, logical_type, bytes }
    }
}

/// The hashes of one object.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ObjectHash {
    /// By role, in the order of the file.
    pub components: Vec<(String, BytesHash)>,
    /// The CRC-32C of each of `components`, in their order; `None` for one that is not stored as its little-endian content.
    /// Empty unless [`HashOptions::crc32c`] asks for it, and for an object that was not read.
    pub crc32c: Vec<Option<Digest>>,
    /// The dense value, if it was wanted and there is one.
    pub dense: Option<DenseHash>,
    /// Why an object of a format with dense values has none: the value exceeds the limits, or the
    /// components do not make one.
    pub dense_error: Option<Error>,
    /// The rule of its format that the object breaks. With such an object there is no content identity.
    pub fault: Option<Error>,
    /// Identifies the object without its name: the SHA-256 of its item of the content identity, as an array
    /// of the other four. `None` for an object with a fault.
    pub identity: Option<[u8; 32]>,
}

/// The hashes of a file. See [`File::hash`].
///
/// It is displayed as `zt hash` prints its identity: `sha256:` and 64 hexadecimal digits, or `none`
/// if an object could not be read.
///
/// ```
/// use zt::{Dense, File, HashOptions, Writer};
///
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes)?;
/// writer.add("bias", &Dense::from_slice(&[2], &[0.5f32, 1.0])?)?;
/// writer.finish()?;
/// let hash = File::from_bytes(bytes)?.hash(&HashOptions::new())?;
/// assert!(hash.to_string().starts_with("sha256:"));
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ContentHash {
    /// Identifies the tensors: names, shapes, formats, attributes, types and values, independent
    /// of encoding, planes, placement, digests and order. `None` if an object could not be read. Its
    /// definition is decision "content identity" of `spec/decisions.md`.
    pub content: Option<[u8; 32]>,
    /// By name, in the order of the data.
    pub objects: Vec<(String, Result<ObjectHash>)>,
}

/// The first bytes that are hashed: the definition's name and version.
const DOMAIN: [u8; 16] = *b"zt.content/1\0\0\0\0";

impl File {
    /// Hashes the decoded little-endian bytes of every component, and all of them together into one
    /// identity of the tensors.
    ///
    /// The work streams on all cores and takes a few pieces of 1 MiB for each core. One core hashes one
    /// large component, because SHA-256 is a chain. The others read and decode ahead of it, and hash
    /// other components. Bytes that several components share are hashed once. Ranges may overlap up to
    /// [`Limits::overlap`](crate::Limits::overlap).
    ///
    /// An object of a format that exists to be compressed
    /// ([`ObjectFormat::is_for_compression`](crate::ObjectFormat::is_for_compression)) is read a second
    /// time: its identity is the hash of its dense value. With [`HashOptions::dense`] so is every object
    /// that is not dense. If its format cuts it into rows, it is streamed. Otherwise its dense value is
    /// in memory, one for each core.
    ///
    /// # Errors
    ///
    /// Only [`crate::ErrorKind::Interrupted`]: objects that cannot be read are in the result.
    pub fn hash(&self, options: &HashOptions<'_>) -> Result<ContentHash> {
        crate::cores::parallel::on(options.threads, || self.hash_here(options))
    }

    fn hash_here(&self, options: &HashOptions<'_>) -> Result<ContentHash> {
        let gauge = Gauge::new(options.progress);
        let entries = self.entries();
        let is_read = |entry: &&Entry<'_>| options.recorded_hash(entry).is_none();
        let read: Vec<_> = entries.iter().filter(is_read).copied().collect();
        let wanted =
            Checks { every_digest: false, bools: false, content: true, crc32c: options.crc32c };
        let survey = Survey::of(self, &read, wanted, &mut Spent::default(), &gauge)?;
        let mut next = 0..read.len();
        let hashed = entries.into_iter().map(|entry| {
            let recorded = options.recorded_hash(&entry).map(Ok);
            let read = || hash_components(&survey, next.next().unwrap_or_default(), options.crc32c);
            (entry, recorded.unwrap_or_else(read))
        });
        let mut objects: Vec<_> = hashed.collect();
        let allowance = Allowance::of(survey.decoded_len(), &self.inner.limits);
        let values = dense_values(&objects, options.dense, allowance, &gauge)?;
        let content = identify(&mut objects, &values)?;
        for ((_, hash), value) in objects.iter_mut().zip(values) {
            let Ok(hash) = hash else { continue };
            match value {
                Ok(dense) => hash.dense = dense.filter(|_| options.dense),
                Err(error) => hash.dense_error = Some(error),
            }
        }
        let objects = objects.into_iter();
        let objects = objects.map(|(entry, hash)| (entry.name().to_owned(), hash));
        let objects = objects.collect();
        Ok(ContentHash { content, objects })
    }
}

/// An object of the file, and its hashes.
pub(super) type Hashed<'f> = (Entry<'f>, Result<ObjectHash>);

/// The hashes of an object without its bytes: `sum` gives the hash of a component, by its place and its digest in the
/// file. `None` if one is missing.
fn hashes_of(
    tensor: &Tensor<'_>,
    sum: impl Fn(usize, Option<&Digest>) -> Option<[u8; 32]>,
) -> Option<ObjectHash> {
    let is_sound = tensor.fault().is_none() && tensor.stands_for().is_none();
    let components = tensor.located().filter(|_| is_sound).map(|part| {
        let blob = &part.component.blob;
        let sum = sum(part.at, blob.digest.as_ref());
        let sha256 = sum.filter(|_| is_stored(part.component))?;
        Some((part.role.to_string(), BytesHash { sha256, byte_len: blob.decoded_len? }))
    });
    let components: Vec<_> = components.collect::<Option<_>>()?;
    (!components.is_empty()).then_some(ObjectHash {
        components,
        crc32c: Vec::new(),
        dense: None,
        dense_error: None,
        identity: None,
        fault: None,
    })
}

/// Whether the content in little-endian order is the stored bytes.
fn is_stored(component: &Component) -> bool {
    component.blob.encoding == Encoding::Raw && component.byte_order == ByteOrder::Little
}

fn hash_components(survey: &Survey<'_>, at: usize, wants_crc32c: bool) -> Result<ObjectHash> {
    let (tensor, outcomes) = survey.object(at)?;
    let (mut components, mut crc32c) = (Vec::new(), Vec::new());
    for (part, outcome) in tensor.located().zip(outcomes) {
        let crc = outcome.filter(|_| wants_crc32c && is_stored(part.component));
        let crc = crc.and_then(|it| it.digest(DigestAlgorithm::Crc32c));
        crc32c.extend(wants_crc32c.then(|| crc.cloned()));
        let byte_len = judge(&tensor, part, outcome, tensor.must_verify(part))?;
        let sha256 = match outcome.and_then(|outcome| outcome.content.as_ref()) {
            Some(Digest::Sha256(sum)) => *sum,
            _ => [0; 32], // Unreachable: decoded content was hashed.
        };
        components.push((part.role.to_string(), BytesHash { sha256, byte_len }));
    }
    Ok(ObjectHash {
        components,
        crc32c,
        dense: None,
        dense_error: None,
        identity: None,
        fault: tensor.fault().cloned(),
    })
}

/// Sets the identity of each object, and gives the content identity; `None` if an object has none.
fn identify(
    objects: &mut [Hashed<'_>],
    values: &[Result<Option<DenseHash>>],
) -> Result<Option<[u8; 32]>> {
    let mut sorted: Vec<_> = objects.iter_mut().zip(values).collect();
    sorted.sort_by_key(|((entry, _), _)| entry.name());
    let mut content = Hasher::new(DigestAlgorithm::Sha256)?;
    content.update(&DOMAIN);
    let mut is_complete = true;
    for ((entry, hash), value) in sorted {
        is_complete &= match hash {
            Ok(hash) => {
                let tensor = entry.tensor()?;
                let stands = tensor.stands_for().is_some();
                let value = value.as_ref().ok().and_then(Option::as_ref);
                let value = value.filter(|_| stands);
                if hash.fault.is_none() && stands == value.is_some() {
                    let unnamed = unnamed_item(&tensor, hash, value)?;
                    content.update(&[ITEM]);
                    content.update(&Cbor::from(entry.name()).to_cbor()?);
                    content.update(&unnamed);
                    let mut identity = Hasher::new(DigestAlgorithm::Sha256)?;
                    identity.update(&[UNNAMED_ITEM]);
                    identity.update(&unnamed);
                    hash.identity = Some(sum(identity));
                }
                hash.identity.is_some()
            }
            Err(_) => false,
        };
    }
    Ok(is_complete.then(|| sum(content)))
}

/// The first byte of an array of five items, and of four.
const ITEM: u8 = 0x85;
const UNNAMED_ITEM: u8 = 0x84;

/// The CBOR of `shape, format, attributes, {role: [dtype, type, nbytes, sha256]}`, item by item:
/// attributes may be large, and are encoded from where they are. `stands_for` is the value of the dense
/// object that is hashed in the object's place.
fn unnamed_item(
    tensor: &Tensor<'_>,
    hash: &ObjectHash,
    stands_for: Option<&DenseHash>,
) -> Result<Vec<u8>> {
    let object = tensor.object();
    let mut components: Vec<(Cbor, Cbor)> = Vec::with_capacity(hash.components.len());
    let mut add = |role: &str, dtype: DType, logical_type: Option<&str>, bytes: &BytesHash| {
        let logical_type = dtype.logical_type(logical_type);
        let described = vec![
            Cbor::from(dtype.as_str()),
            logical_type.map_or(Cbor::Null, Cbor::from),
            Cbor::Unsigned(bytes.byte_len),
            Cbor::Bytes(bytes.sha256.to_vec()),
        ];
        components.push((Cbor::from(role), Cbor::array(described)));
    };
    if let Some(value) = stands_for {
        let logical_type = value.logical_type.as_deref();
        add(DATA, value.dtype, logical_type, &value.bytes);
    }
    let is_of_value = tensor.roles_of_value();
    for (part, (_, bytes)) in tensor.located().zip(&hash.components) {
        if stands_for.is_none() || !is_of_value(part.role) {
            // As 1.2 writes it, so that a file of 1.0 that leaves a dtype out keeps its identity.
            let dtype = tensor.dtype_to_write_of(part)?;
            let logical_type = part.component.logical_type.as_deref();
            add(part.role, dtype, logical_type, bytes);
        }
    }
    let mut attributes = Cow::Borrowed(object.attributes());
    let mut format = object.format.as_ref();
    if stands_for.is_some() {
        format = Dense::FORMAT;
        let kept = object.attributes().iter();
        let kept = kept.filter(|(key, _)| !tensor.is_parameter(key));
        let kept = kept.map(|(key, value)| (key.clone(), value.clone()));
        attributes = Cow::Owned(kept.collect());
    }
    let shape = object.shape.iter().copied().map(Cbor::Unsigned);
    let mut item = Cbor::array(shape.collect()).to_cbor()?;
    item.extend(Cbor::from(format).to_cbor()?);
    item.extend(attributes.to_cbor()?);
    item.extend(Cbor::Map(components.into_iter().collect()).to_cbor()?);
    Ok(item)
}

pub(super) fn sum(hasher: Hasher) -> [u8; 32] {
    match hasher.finish() {
        Digest::Sha256(sum) => sum,
        _ => [0; 32], // Unreachable: the hasher was made for SHA-256.
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.content {
            Some(sum) => Digest::Sha256(sum).fmt(f),
            None => f.write_str("none"),
        }
    }
}

impl ContentHash {
    /// Everything that could not be hashed, object by object.
    pub fn errors(&self) -> impl Iterator<Item = &Error> {
        let hashes = self.objects.iter().map(|(_, hash)| hash);
        hashes.filter_map(|hash| match hash {
            Ok(hash) => hash.fault.as_ref().or(hash.dense_error.as_ref()),
            Err(error) => Some(error),
        })
    }
}
