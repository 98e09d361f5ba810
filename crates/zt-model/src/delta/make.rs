//! Makes a delta of two files.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::Path;

use zt::container::Hasher;
use zt::container::memory::{in_memory, zeroed};
use zt::foreign::{AtomicFile, on_all_cores};
use zt::formats::{Delta, DeltaCodec};
use zt::{
    Bytes, Compression, ContentHash, DType, Dense, Digest, DigestAlgorithm, Elements, Error, File,
    HashOptions, ObjectHash, Progress, Result, Span, Tensor, WriteOptions, Writer, codes,
};
use zt_foreign::{ConvertOptions, Incoming, Input, Job};

use crate::delta::fault::Fault;
use crate::delta::header::{Header, is_delta};
use crate::delta::part::{read_content, with_sums, without_planes};
use zt_convert::{ZT, check_output, write_objects};

/// Bytes of a component whose codes are made before they are written.
const BATCH: usize = 8 << 20;

/// The cost of a component is estimated from the beginnings of so many stretches.
const SAMPLES: u64 = 8;

/// Elements of a sample.
const SAMPLE: usize = DeltaCodec::STRETCH / 8;

/// What a delta says about the objects of the new file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Objects that are equal in both files.
    pub same: u64,
    /// Objects that are written as changes. Renamed objects and those with other attributes count.
    pub changed: u64,
    /// Objects that are written whole.
    pub whole: u64,
    /// Objects that only the base has.
    pub removed: u64,
    /// Bytes of values of the new file.
    pub bytes: u64,
}

/// Writes to `sink` how `new` differs from `base`: [`Patch`](crate::Patch) makes `new` of `base` again. `progress`
/// counts bytes of values: of both files, which are hashed, and of the objects that differ.
///
/// The same files give the same bytes, with any number of threads. Memory does not grow with the files.
///
/// # Errors
///
/// Code `unsupported` for a file with a damaged object, and for one that is a delta; code `changed` for `new`, if its
/// values changed meanwhile; the fault of an object;
/// [`zt::ErrorKind::Io`] if the sink fails; [`zt::ErrorKind::Interrupted`].
///
/// ```
/// use zt::{Dense, File, Writer};
/// use zt_convert::Input;
/// use zt_model::{Patch, delta};
///
/// let file = |values: &[f32]| {
///     let mut bytes = Vec::new();
///     let mut writer = Writer::new(&mut bytes)?;
///     writer.add("w", &Dense::from_slice(&[values.len() as u64], values)?)?;
///     writer.finish()?;
///     File::from_bytes(bytes).map(Input::from)
/// };
/// let (base, new) = (file(&[1.0, 2.0, 3.0])?, file(&[1.0, 2.5, 3.0])?);
/// let mut bytes = Vec::new();
/// assert_eq!(delta(&base, &new, &mut bytes, None)?.changed, 1);
/// let change = Input::from(File::from_bytes(bytes)?);
/// let deltas = [change];
/// let result = Patch::new(&base, &deltas).open()?;
/// assert_eq!(*result.file().tensor("w")?.values::<f32>()?, [1.0, 2.5, 3.0]);
/// # Ok::<(), zt::Error>(())
/// ```
pub fn delta(
    base: &Input,
    new: &Input,
    sink: impl Write + Send,
    progress: Option<Progress<'_>>,
) -> Result<Changes> {
    write(base, new, options().to_writer(sink)?, progress)
}

/// As [`delta`], to a file that appears at `out` complete or not at all. An existing file is replaced if
/// `overwrite`, and an input never.
///
/// # Errors
///
/// As [`delta`]; code `overwrite`; as [`AtomicFile`].
pub fn delta_to_path(
    base: &Input,
    new: &Input,
    out: impl AsRef<Path>,
    overwrite: bool,
    progress: Option<Progress<'_>>,
) -> Result<Changes> {
    let out = out.as_ref();
    let at_out = |error: Error| error.with_path(out);
    let inputs = [base.clone(), new.clone()];
    check_output(out, &inputs, overwrite).map_err(at_out)?;
    let is_there = fs::symlink_metadata(out).is_ok();
    let create = if overwrite || is_there { AtomicFile::create } else { AtomicFile::create_new };
    let mut file = create(out).map_err(at_out)?;
    let changes = write(base, new, options().to_atomic_file(&mut file)?, progress)?;
    file.publish().map_err(at_out)?;
    Ok(changes)
}

/// How objects are stored that are written whole.
fn options() -> WriteOptions {
    WriteOptions::new().planes().compression(Compression::Auto)
}

/// A file with its hashes.
struct Hashed {
    file: File,
    hash: ContentHash,
}

impl Hashed {
    fn new(input: &Input, progress: Option<Progress<'_>>) -> Result<Self> {
        if is_delta(input.file()) {
            return Err(input.blame(Fault::IsDelta.into()));
        }
        if let Some(truncated) = input.file().truncated() {
            return Err(input.blame(truncated.clone()));
        }
        let file = without_planes(input.file())?;
        let mut options = HashOptions::new().crc32c(true);
        if let Some(progress) = progress {
            options = options.progress(progress);
        }
        let hash = file.hash(&options).map_err(|error| input.blame(error))?;
        if let Some(error) = hash.errors().next() {
            return Err(input.blame(error.clone()));
        }
        Ok(Hashed { file, hash })
    }

    fn by_name(&self) -> HashMap<&str, &ObjectHash> {
        let objects = self.hash.objects.iter();
        let objects = objects.filter_map(|(name, hash)| Some((name.as_str(), hash.as_ref().ok()?)));
        objects.collect()
    }
}

fn write(
    base: &Input,
    new: &Input,
    mut writer: Writer<'_>,
    progress: Option<Progress<'_>>,
) -> Result<Changes> {
    let path = new.path();
    let (old, new) = (Hashed::new(base, progress)?, Hashed::new(new, progress)?);
    let (in_base, in_new) = (old.by_name(), new.by_name());
    let mut header = Header::new(&old.hash, &new.hash)?;
    // Objects of the base that may have a new name, by their identity.
    let mut moved: HashMap<[u8; 32], Vec<&str>> = HashMap::new();
    let mut names: BTreeSet<&str> = in_base.keys().copied().collect();
    names.retain(|name| !in_new.contains_key(name));
    for name in names.iter().rev() {
        if let Some(identity) = in_base.get(name).and_then(|it| it.identity) {
            moved.entry(identity).or_default().push(name);
        }
    }
    let (mut changes, mut whole) = (Changes::default(), Vec::new());
    for tensor in new.file.tensors() {
        let tensor = tensor?;
        let name = tensor.name();
        let Some(hash) = in_new.get(name) else {
            continue;
        };
        let lens = hash.components.iter().map(|(_, it)| it.byte_len);
        changes.bytes = lens.fold(changes.bytes, u64::strict_add);
        if tensor.format() == Delta::FORMAT {
            return Err(Error::from(Fault::IsDelta).with_object(name));
        }
        let before = in_base.get(name);
        if before.is_some_and(|before| before.identity == hash.identity) {
            changes.same = changes.same.strict_add(1);
            continue;
        }
        let same = hash.identity.and_then(|identity| moved.get_mut(&identity)?.pop());
        if let Some(from) = same.filter(|_| before.is_none()) {
            names.remove(from);
            let attributes = Delta { base: Some(from), ..Delta::default() };
            add(&mut writer, [&tensor, &tensor], hash, &attributes, progress)?;
            changes.changed = changes.changed.strict_add(1);
            continue;
        }
        if let Some(before) = before {
            let base = old.file.tensor(name)?;
            if let Some(attributes) = changed(&base, &tensor, before, hash)?
                && is_worth_it(&base, &tensor, &attributes)?
            {
                add(&mut writer, [&base, &tensor], hash, &attributes, progress)?;
                changes.changed = changes.changed.strict_add(1);
                continue;
            }
        }
        whole.push(name);
    }
    changes.whole = whole.len() as u64;
    // What is written is what was hashed.
    let whole: HashSet<&str> = whole.into_iter().collect();
    let recorded = new.file.select(|name| whole.contains(name).then(|| name.to_owned()))?;
    let recorded = recorded.replace(|name, _| {
        let tensor = new.file.owned_tensor(name).ok()?;
        Some(with_sums(tensor, &in_new.get(name)?.components))
    })?;
    let whole = recorded.tensors();
    let whole =
        whole.map(|tensor| Ok(Incoming { path, ..Incoming::new(tensor?, recorded.registry()) }));
    let whole: Vec<_> = whole.collect::<Result<_>>()?;
    let options = ConvertOptions::new(ZT);
    let written = write_objects(&whole, &[], &mut writer, &mut Job::new(ZT, &options));
    written.map_err(|error| match error.code() {
        codes::DIGEST_MISMATCH => changed_meanwhile(error.object().unwrap_or_default()),
        _ => error,
    })?;
    changes.removed = names.len() as u64;
    header.removed = names.into_iter().map(str::to_owned).collect();
    let attributes = new.file.attributes()?;
    if attributes != old.file.attributes()? {
        header.attributes = Some(attributes.unwrap_or_default());
    }
    writer.set_attributes(header.into_attributes())?;
    writer.finish()?;
    Ok(changes)
}

/// What changed between two objects of one name; `None` if they do not have the same format, shape and
/// types.
fn changed<'a>(
    base: &Tensor<'a>,
    new: &Tensor<'a>,
    before: &'a ObjectHash,
    after: &'a ObjectHash,
) -> Result<Option<Delta<'a>>> {
    let is_alike = base.format() == new.format()
        && base.shape() == new.shape()
        && before.components.len() == after.components.len();
    if !is_alike {
        return Ok(None);
    }
    let mut sha256 = Vec::new();
    for (role, now) in &after.components {
        let mut old = before.components.iter();
        let old = old.find(|(known, _)| known == role).map(|(_, bytes)| bytes);
        let Some(old) = old.filter(|old| old.byte_len == now.byte_len) else {
            return Ok(None);
        };
        let dtype = new.dtype_to_write(role)?;
        let (this, that) = (base.component(role)?, new.component(role)?);
        let logical_type = |of: &'a zt::Component| dtype.logical_type(of.logical_type.as_deref());
        if dtype != base.dtype_to_write(role)?
            || logical_type(this) != logical_type(that)
            || !now.byte_len.is_multiple_of(dtype.byte_len() as u64)
        {
            return Ok(None);
        }
        if old != now {
            sha256.push((role.as_str(), now.sha256));
        }
    }
    let attributes = Some(new.attributes()).filter(|new| *new != base.attributes());
    Ok(Some(Delta { base: None, attributes, sha256 }))
}

/// Whether changes take fewer bytes than the whole object, by a sample of stretches.
fn is_worth_it(base: &Tensor<'_>, new: &Tensor<'_>, delta: &Delta<'_>) -> Result<bool> {
    let (mut coded, mut whole) = (0.0, 0.0);
    for (role, _) in new.components() {
        let byte_len = new.decoded_len(role)? as f64;
        if delta.sha256_of(role).is_none() {
            whole += byte_len;
            continue;
        }
        let stretches = Stretches::new(base, new, role)?;
        let count = stretches.count.min(SAMPLES);
        let (mut code_len, mut values) = (0, Vec::new());
        for sample in 0..count {
            let at = sample.strict_mul(stretches.count).strict_div(count);
            let span = stretches.span(at, 1);
            let sample_len = SAMPLE.strict_mul(stretches.dtype.byte_len()) as u64;
            let sample_len = span.byte_len().min(sample_len);
            let (old, now) = stretches.read(Span::exact(span.offset(), sample_len))?;
            code_len = stretches.codec.encode(&old, &now).len().strict_add(code_len);
            values.extend_from_slice(&now);
        }
        let sampled = values.len();
        let mut stored_len = sampled;
        // No component of a model shrinks to a quarter, but one of zeros does.
        if code_len > sampled / 4 {
            let elements = Elements::new(stretches.dtype, Bytes::from(values));
            let shape = [sampled.strict_div(stretches.dtype.byte_len()) as u64];
            let mut stored = Vec::new();
            let mut writer = options().to_writer(&mut stored)?;
            writer.add("sample", &Dense::from_elements(shape, elements)?)?;
            writer.finish()?;
            stored_len = stored.len();
        }
        coded += byte_len * code_len as f64 / sampled as f64;
        whole += byte_len * stored_len as f64 / sampled as f64;
    }
    Ok(coded <= whole)
}

/// Adds an object of changes. `hash` is of the new one.
fn add(
    writer: &mut Writer<'_>,
    [base, new]: [&Tensor<'_>; 2],
    hash: &ObjectHash,
    delta: &Delta<'_>,
    progress: Option<Progress<'_>>,
) -> Result<()> {
    let mut object = writer.begin(new.name(), new.shape(), Delta::FORMAT)?;
    object.set_attributes(delta.to_attributes())?;
    for (role, sum) in &delta.sha256 {
        // A crc32c of the bytes that were hashed tells of a change, too, in a tenth of the time.
        let mut known = hash.components.iter().zip(&hash.crc32c);
        let known = known.find(|((known, _), _)| known == role);
        let hashed = known.and_then(|(_, crc)| crc.clone()).unwrap_or(Digest::Sha256(*sum));
        let mut hasher = Hasher::new(hashed.algorithm().unwrap_or(DigestAlgorithm::Sha256))?;
        let stretches = Stretches::new(base, new, role)?;
        let batch = BATCH.strict_div(stretches.codec.stretch_len()).max(1) as u64;
        // A store is asked for all of a batch at once. Of a file, each core reads what it codes.
        let is_remote = base.is_remote() || new.is_remote();
        let each = if is_remote { batch } else { 1 };
        let mut table = Vec::new();
        let mut out = object.component((*role).to_owned(), DType::U8, None)?;
        for first in (0..stretches.count).step_by(in_memory(batch)) {
            let end = stretches.count.min(first.strict_add(batch));
            let pieces = (first..end).step_by(in_memory(each)).collect();
            let codes = on_all_cores(pieces, |first| stretches.codes(first, each))?;
            for (code, now) in codes.into_iter().flatten() {
                hasher.update(&now);
                // A code has 2^20 + 1 bytes at most.
                let [a, b, c, d, ..] = (code.len() as u64).to_le_bytes();
                table.extend([a, b, c, d]);
                out.write_all(&code)?;
            }
            if let Some(progress) = progress {
                progress.report(stretches.span(first, batch).byte_len())?;
            }
        }
        if hasher.finish() != hashed {
            return Err(changed_meanwhile(new.name()));
        }
        out.write_all(&table)?;
        out.finish()?;
    }
    object.finish()
}

/// The error for an object that is not what it was when it was hashed.
fn changed_meanwhile(name: &str) -> Error {
    Error::from(Fault::Changed).with_object(name)
}

/// A component of both files, in stretches.
struct Stretches<'t, 'f> {
    base: &'t Tensor<'f>,
    new: &'t Tensor<'f>,
    role: &'t str,
    dtype: DType,
    codec: DeltaCodec,
    byte_len: u64,
    count: u64,
}

impl<'t, 'f> Stretches<'t, 'f> {
    fn new(base: &'t Tensor<'f>, new: &'t Tensor<'f>, role: &'t str) -> Result<Self> {
        let dtype = new.dtype_to_write(role)?;
        let codec = DeltaCodec::new(dtype);
        let byte_len = new.decoded_len(role)?;
        let count = byte_len.div_ceil(codec.stretch_len() as u64);
        Ok(Stretches { base, new, role, dtype, codec, byte_len, count })
    }

    /// The place of some stretches.
    fn span(&self, first: u64, count: u64) -> Span {
        let len = self.codec.stretch_len() as u64;
        // At most one batch behind the end, which is below 2^63.
        let end = first.strict_add(count).strict_mul(len);
        Span::exact_between(first.strict_mul(len), end.min(self.byte_len))
    }

    /// Some bytes of both files.
    fn read(&self, span: Span) -> Result<(Vec<u8>, Vec<u8>)> {
        let read = |tensor: &Tensor<'_>| {
            let mut bytes = zeroed(span.byte_len())?;
            read_content(tensor, self.role, self.dtype, span.offset(), &mut bytes)?;
            Ok::<_, Error>(bytes)
        };
        Ok((read(self.base)?, read(self.new)?))
    }

    /// The codes of some stretches, and the new bytes that they are of.
    fn codes(&self, first: u64, count: u64) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let (old, now) = self.read(self.span(first, count))?;
        let len = self.codec.stretch_len();
        let pairs = old.chunks(len).zip(now.chunks(len)).collect();
        on_all_cores(pairs, |(old, now)| Ok((self.codec.encode(old, now), now.to_vec())))
    }
}
