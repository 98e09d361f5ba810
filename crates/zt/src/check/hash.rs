//! `File::hash`: the identity of tensors, which does not depend on the file that holds them.

use std::fmt;

use zt_container::{Digest, DigestAlgorithm, Hasher};
use zt_formats::Dense;
use zt_manifest::Value;

use crate::check::survey::{Survey, Wanted, judge};
use crate::cores::progress::{Gauge, Progress, work_options};
use crate::error::{Error, Result};
use crate::file::tensor::Tensor;
use crate::file::{Entry, File};

/// How a file is hashed.
#[derive(Debug, Clone, Copy, Default)]
pub struct HashOptions<'p> {
    dense: bool,
    threads: Option<usize>,
    progress: Option<Progress<'p>>,
}

impl HashOptions<'_> {
    /// The defaults: no dense values, on all cores.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the dense value of every object is hashed as well.
    #[must_use]
    pub const fn dense(mut self, dense: bool) -> Self {
        self.dense = dense;
        self
    }
}

work_options!(HashOptions, "Reports decoded bytes.");

/// SHA-256 of some little-endian bytes, and how many they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BytesHash {
    /// The sum.
    pub sha256: [u8; 32],
    /// How many bytes.
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
    /// Its logical type, where it has one.
    pub logical_type: Option<String>,
    /// Its bytes.
    pub bytes: BytesHash,
}

/// The hashes of one object.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ObjectHash {
    /// By role, in the order of the file.
    pub components: Vec<(String, BytesHash)>,
    /// The dense value, where it was asked for and there is one.
    pub dense: Option<DenseHash>,
    /// Why there is no dense value of a format that has them: it is more than the limits allow, or
    /// the components do not make one.
    pub dense_error: Option<Error>,
    /// The rule of its format that the object breaks. Such an object is no part of the content
    /// identity.
    pub fault: Option<Error>,
}

/// The hashes of a file. See [`File::hash`].
///
/// It is displayed as `zt hash` prints its identity: `sha256:` and 64 hexadecimal digits, or `none`
/// where an object could not be read.
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
    /// of encoding, placement, digests and order. `None` where an object could not be read. Its
    /// definition is decision "content identity" of `spec/decisions.md`.
    pub content: Option<[u8; 32]>,
    /// By name, in the order of the data.
    pub objects: Vec<(String, Result<ObjectHash>)>,
}

/// What the bytes that are hashed begin with: the definition's name and version.
const DOMAIN: [u8; 16] = *b"zt.content/1\0\0\0\0";

impl File {
    /// Hashes the decoded little-endian bytes of every component, and all of them together into one
    /// identity of the tensors.
    ///
    /// On all cores and streaming: memory is a few pieces of 1 MiB for each core. SHA-256 is a chain,
    /// so one large component is hashed on one core, while others read and decode ahead of it and
    /// hash other components. Bytes that several components share are hashed once; ranges that
    /// overlap, up to [`Limits::overlap`](crate::Limits::overlap). With [`HashOptions::dense`],
    /// objects that are not dense are made so in memory, one for each core.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Interrupted`] alone: what cannot be read is in the result, and what has no
    /// dense value keeps its identity.
    pub fn hash(&self, options: &HashOptions<'_>) -> Result<ContentHash> {
        crate::cores::parallel::on(options.threads, || self.hash_here(options))
    }

    fn hash_here(&self, options: &HashOptions<'_>) -> Result<ContentHash> {
        let gauge = Gauge::new(options.progress);
        let entries = self.entries();
        let wanted = Wanted {
            every_digest: false,
            bools: false,
            content: true,
        };
        let survey = Survey::of(self, &entries, wanted, &gauge)?;
        let places: Vec<usize> = (0..entries.len()).collect();
        let hashed = crate::cores::parallel::map(&places, |at| {
            gauge.report(0)?;
            Ok(hash_object(&survey, *at, options.dense))
        })?;
        let objects: Vec<_> = entries.into_iter().zip(hashed).collect();
        let content = content_of(&objects)?;
        let named = objects
            .into_iter()
            .map(|(entry, hash)| (entry.name().to_owned(), hash));
        Ok(ContentHash {
            content,
            objects: named.collect(),
        })
    }
}

fn hash_object(survey: &Survey<'_>, at: usize, dense: bool) -> Result<ObjectHash> {
    let (tensor, outcomes) = survey.object(at)?;
    let mut components = Vec::new();
    for (part, outcome) in tensor.located().zip(outcomes) {
        let byte_len = judge(&tensor, part, outcome, tensor.must_verify(part))?;
        let sha256 = match outcome.and_then(|outcome| outcome.content.as_ref()) {
            Some(Digest::Sha256(sum)) => *sum,
            _ => [0; 32], // Unreachable: what decodes was hashed.
        };
        components.push((part.role.to_string(), BytesHash { sha256, byte_len }));
    }
    let dense = if dense && tensor.fault().is_none() {
        dense_hash(&tensor, &components)
    } else {
        Ok(None)
    };
    let (dense, dense_error) = match dense {
        Ok(dense) => (dense, None),
        Err(error) => (None, Some(error)),
    };
    Ok(ObjectHash {
        components,
        dense,
        dense_error,
        fault: tensor.fault().cloned(),
    })
}

/// A format without a dense value, or an unknown one, has none: that is no fault.
fn dense_hash(
    tensor: &Tensor<'_>,
    components: &[(String, BytesHash)],
) -> Result<Option<DenseHash>> {
    // A dense object is its own dense value, whose bytes have been hashed. Where a file leaves out
    // the length or the type, it is for the format to say whether they make an array.
    if let Ok(data) = tensor.component("data")
        && tensor.format() == "dense"
        && let (Some(dtype), Some(_)) = (data.dtype, data.blob.decoded_len)
        && let Some((_, bytes)) = components.iter().find(|(role, _)| role == "data")
    {
        let logical_type = data.logical_type.as_ref().map(ToString::to_string);
        let bytes = *bytes;
        return Ok(Some(DenseHash {
            dtype,
            logical_type,
            bytes,
        }));
    }
    match tensor.to_dense() {
        Ok(dense) => hash_dense(&dense).map(Some),
        Err(error) if error.kind() == crate::error::ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
}

fn hash_dense(dense: &Dense<'_>) -> Result<DenseHash> {
    let elements = dense.elements();
    let mut hasher = Hasher::new(DigestAlgorithm::Sha256)?;
    hasher.update(&elements.bytes);
    let bytes = BytesHash {
        sha256: sum(hasher),
        byte_len: elements.bytes.len() as u64,
    };
    let logical_type = elements.logical_type.as_ref().map(ToString::to_string);
    Ok(DenseHash {
        dtype: elements.dtype,
        logical_type,
        bytes,
    })
}

/// The content identity, `None` where an object has none.
fn content_of(objects: &[(Entry<'_>, Result<ObjectHash>)]) -> Result<Option<[u8; 32]>> {
    let mut sorted: Vec<(&Entry<'_>, &ObjectHash)> = Vec::with_capacity(objects.len());
    for (entry, hash) in objects {
        let Ok(hash) = hash else { return Ok(None) };
        if hash.fault.is_some() {
            return Ok(None);
        }
        sorted.push((entry, hash));
    }
    sorted.sort_by(|(a, _), (b, _)| a.name().cmp(b.name()));
    let mut hasher = Hasher::new(DigestAlgorithm::Sha256)?;
    hasher.update(&DOMAIN);
    for (entry, hash) in sorted {
        hasher.update(&identity(entry, hash)?);
    }
    Ok(Some(sum(hasher)))
}

/// The CBOR of `[name, shape, format, attributes, {role: [dtype, type, nbytes, sha256]}]`, item by
/// item: attributes may be large, and are encoded from where they are.
fn identity(entry: &Entry<'_>, hash: &ObjectHash) -> Result<Vec<u8>> {
    /// An array of five items.
    const HEAD: u8 = 0x85;
    let tensor = entry.tensor()?;
    let object = tensor.object();
    let mut components: Vec<(Value, Value)> = Vec::with_capacity(hash.components.len());
    for (part, (_, bytes)) in tensor.located().zip(&hash.components) {
        // As 1.2 writes it, so that a file of 1.0 that leaves a dtype out keeps its identity.
        let dtype = tensor.dtype_to_write_of(part)?;
        let logical_type = dtype.logical_type(part.component.logical_type.as_deref());
        let described = vec![
            Value::from(dtype.as_str()),
            logical_type.map_or(Value::Null, Value::from),
            Value::Unsigned(bytes.byte_len),
            Value::Bytes(bytes.sha256.to_vec()),
        ];
        components.push((Value::from(part.role.as_ref()), Value::Array(described)));
    }
    let shape = object
        .shape
        .iter()
        .map(|dimension| Value::Unsigned(*dimension));
    let mut item = vec![HEAD];
    item.extend(Value::from(entry.name()).to_cbor()?);
    item.extend(Value::Array(shape.collect()).to_cbor()?);
    item.extend(Value::from(object.format.as_ref()).to_cbor()?);
    item.extend(object.attributes().to_cbor()?);
    item.extend(Value::Map(components.into_iter().collect()).to_cbor()?);
    Ok(item)
}

fn sum(hasher: Hasher) -> [u8; 32] {
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
