//! Files become a seal, in one pass over their bytes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use zt::container::Hasher;
use zt::foreign::on_threads;
use zt::{
    ByteOrder, Digest, DigestAlgorithm, Encoding, Entry, Error, ErrorKind, HashOptions, KnownSums,
    Result, Span, Warning,
};
use zt_convert::{Input, Kinds};

use crate::contents::{Contents, Model};
use crate::fault::Fault;
use crate::files::Files;
use crate::options::SealOptions;
use crate::seal::{Place, Seal, SealedFile, SealedModel, SealedTensor};
use crate::tracked::Tracked;
use crate::tree::{Sum, digest, root};
use crate::walk::{Chain, Job, Part, Shape, walk};

/// A seal that was made.
#[derive(Debug)]
#[non_exhaustive]
pub struct Made {
    /// The seal.
    pub seal: Seal,
    /// Models and tensors that could not be read, so that only their bytes are sealed.
    pub warnings: Vec<Warning>,
}

/// Seals the `contents` below a folder.
///
/// Each file is read once, on all cores: the leaves in any order, the SHA-256 of the file and of its raw tensors in
/// order, each on one core. Tensors that are compressed, computed or big-endian are read a second time. The memory
/// is 8 MiB for each core, and at least 32 MiB.
///
/// # Errors
///
/// [`zt::ErrorKind::Io`]; code `seal-mismatch` for a file that is missing; an interruption. What does not open as
/// a model, or is damaged as one, is a warning: its bytes are sealed as they are.
pub fn seal(
    kinds: &Kinds,
    files: &Files,
    contents: &Contents,
    options: &SealOptions<'_>,
) -> Result<Made> {
    on_threads(options.threads, || Work::new(kinds, files, contents)?.run(options))
}

struct Work<'w> {
    contents: &'w Contents,
    files: &'w Files,
    tracked: Tracked,
    opened: Vec<(&'w Model, Input)>,
    warnings: Vec<Warning>,
}

impl<'w> Work<'w> {
    fn new(kinds: &Kinds, files: &'w Files, contents: &'w Contents) -> Result<Self> {
        let tracked = Tracked::new(files);
        let (mut opened, mut warnings) = (Vec::new(), Vec::new());
        for model in &contents.models {
            match tracked.model(kinds, model) {
                Ok(input) => opened.push((model, input)),
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::Io) => {
                    return Err(error);
                }
                Err(error) => {
                    let path = model.path.escape_debug();
                    let message = format!(
                        "\"{path}\" does not open as a model, so only its bytes are sealed: {}",
                        error.message()
                    );
                    warnings.push(Warning::new(SEALED_AS_BYTES, message));
                }
            }
        }
        Ok(Work { contents, files, tracked, opened, warnings })
    }

    fn run(mut self, options: &SealOptions<'_>) -> Result<Made> {
        let places = self.places();
        let (files, sums) = self.read(options, &places)?;
        let mut models = Vec::with_capacity(self.opened.len());
        for ((model, input), places) in self.opened.iter().zip(&places) {
            let (sealed, unread) = seal_model(model, input, places, &sums)?;
            models.push(sealed);
            if let Some((count, error)) = unread {
                let path = model.path.escape_debug();
                let message = format!(
                    "{count} objects of \"{path}\" cannot be read, so only their bytes are sealed: {error}"
                );
                self.warnings.push(Warning::new(SEALED_AS_BYTES, message));
            }
        }
        let seal = Seal { files, models };
        crate::decode::validate(&seal)?;
        Ok(Made { seal, warnings: self.warnings })
    }

    /// The places of all components of each model, by object, in the order of its entries.
    fn places(&self) -> Vec<Vec<Vec<Component>>> {
        let paths = (0..).zip(&self.contents.files).map(|(at, path)| (path.as_str(), at));
        let numbers: HashMap<&str, usize> = paths.collect();
        let opened = self.opened.iter().map(|(_, input)| {
            let entries = input.file().entries();
            entries.iter().map(|entry| self.components(entry, &numbers)).collect()
        });
        opened.collect()
    }

    fn components(&self, entry: &Entry<'_>, numbers: &HashMap<&str, usize>) -> Vec<Component> {
        let Ok(tensor) = entry.tensor() else {
            return Vec::new();
        };
        let components = tensor.components().map(|(role, component)| {
            let (source, span) = tensor.stored_bytes(role).ok()?;
            let places = source.made_of(span)?.into_iter().map(|(source, span)| {
                let file = numbers.get(self.tracked.path_of(&source)?.as_str())?;
                Some(Place { file: *file, span })
            });
            let places = places.collect::<Option<Vec<_>>>()?;
            let is_plain = component.blob.encoding == Encoding::Raw
                && component.byte_order == ByteOrder::Little;
            Some(Component { places, is_plain })
        });
        components.map(Option::unwrap_or_default).collect()
    }

    /// Reads all files.
    fn read(
        &self,
        options: &SealOptions<'_>,
        places: &[Vec<Vec<Component>>],
    ) -> Result<(Vec<SealedFile>, Sums)> {
        let mut raw: BTreeMap<usize, Vec<Span>> = BTreeMap::new();
        for component in places.iter().flatten().flatten() {
            if let (true, [place]) = (component.is_plain, &component.places[..]) {
                raw.entry(place.file).or_default().push(place.span);
            }
        }
        let paths = &self.contents.files;
        let (mut next, mut sums) = (0, Sums::new());
        let mut sealed: Vec<Option<SealedFile>> = vec![None; paths.len()];
        walk(
            Shape::new(options.threads, true),
            options.progress,
            || {
                let Some(path) = paths.get(next) else { return Ok(None) };
                let at = next;
                next = next.strict_add(1);
                let source = match self.tracked.source(path) {
                    Some(source) => source,
                    None => {
                        let opened = self.files.open(&[path]).pop().unwrap_or(Ok(None))?;
                        let missing = || Fault::Missing { path: path.clone() };
                        Arc::from(opened.ok_or_else(missing)?)
                    }
                };
                let byte_len = source.byte_len();
                let chain = Chains::new(raw.remove(&at).unwrap_or_default())?;
                Ok(Some(Job { at, byte_len, source, chain }))
            },
            |leaf| digest(leaf.bytes, leaf.at, leaf.is_only),
            |job, leaves| {
                let path = paths.get(job.at).cloned().unwrap_or_default();
                let blame = |error: Error| error.with_path(&self.files.path_of(&path));
                let leaves = leaves.into_iter().collect::<Result<Vec<Sum>>>().map_err(blame)?;
                let (sha256, components) = job.chain.finish()?;
                let place = |(span, sum)| (Place { file: job.at, span }.key(), sum);
                sums.extend(components.into_iter().map(place));
                let blake3 = root(&leaves);
                let file = SealedFile { path, byte_len: job.byte_len, sha256, blake3, leaves };
                if let Some(place) = sealed.get_mut(job.at) {
                    *place = Some(file);
                }
                Ok(())
            },
        )?;
        Ok((sealed.into_iter().flatten().collect(), sums))
    }
}

/// The warning that a seal does not have the identities of tensors. Spec: warnings.md.
const SEALED_AS_BYTES: &str = "sealed-as-bytes";

/// The SHA-256 of ranges of the files, by [`Place::key`].
type Sums = HashMap<(usize, u64, u64), Sum>;

/// A component of an object, and where its bytes are.
#[derive(Default)]
struct Component {
    places: Vec<Place>,
    /// Whether the bytes are its content.
    is_plain: bool,
}

/// The identities of a model, and the objects without one: their number and the first error.
fn seal_model(
    model: &Model,
    input: &Input,
    places: &[Vec<Component>],
    sums: &Sums,
) -> Result<(SealedModel, Option<(u64, Error)>)> {
    let file = input.file();
    let entries = file.entries();
    let mut known = KnownSums::new();
    let mut places_of: HashMap<&str, Vec<Place>> = HashMap::new();
    for (entry, components) in entries.iter().zip(places) {
        let sum = |component: &Component| match &component.places[..] {
            [place] if component.is_plain => sums.get(&place.key()).copied(),
            _ => None,
        };
        if let Some(sums) = components.iter().map(sum).collect::<Option<Vec<_>>>() {
            known.insert(entry.name().to_owned(), sums);
        }
        let mut all: Vec<Place> = components.iter().flat_map(|it| &it.places).copied().collect();
        all.retain(|place| !place.span.is_empty());
        all.sort_unstable_by_key(Place::key);
        all.dedup();
        places_of.insert(entry.name(), all);
    }
    let hash = file.hash(&HashOptions::new().known(&known))?;
    let (mut tensors, mut unread) = (Vec::with_capacity(hash.objects.len()), None);
    for (name, object) in &hash.objects {
        let error = match object {
            Ok(hash) => match (hash.identity, &hash.fault, &hash.dense_error) {
                (Some(identity), ..) => {
                    let places = places_of.remove(name.as_str()).unwrap_or_default();
                    tensors.push(SealedTensor { name: name.clone(), identity, places });
                    continue;
                }
                (None, Some(error), _) | (None, None, Some(error)) => Some(error),
                (None, None, None) => None,
            },
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            if error.kind() == ErrorKind::Io {
                return Err(input.blame(error.clone()));
            }
            let (count, _) = unread.get_or_insert_with(|| (0u64, error.clone()));
            *count = count.strict_add(1);
        }
    }
    tensors.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok((SealedModel { path: model.path.clone(), content: hash.content, tensors }, unread))
}

/// The SHA-256 of a file, and of ranges in it.
struct Chains {
    whole: Whole,
    ranges: Ranges,
}

struct Whole(Hasher);

/// Ranges without overlaps, in order.
struct Ranges {
    spans: Vec<Span>,
    next: usize,
    hasher: Hasher,
    done: Vec<(Span, Sum)>,
}

impl Chains {
    /// Of ranges that overlap, the first is summed alone. Such files are hostile, and the others are read again.
    fn new(mut spans: Vec<Span>) -> Result<Self> {
        spans.sort_unstable_by_key(|span| (span.offset(), span.byte_len()));
        spans.dedup();
        let mut end = 0;
        spans.retain(|span| {
            let is_behind = span.offset() >= end;
            end = if is_behind { span.end() } else { end };
            is_behind
        });
        let ranges = Ranges { spans, next: 0, hasher: sha256()?, done: Vec::new() };
        Ok(Chains { whole: Whole(sha256()?), ranges })
    }

    fn finish(mut self) -> Result<(Sum, Vec<(Span, Sum)>)> {
        // Empty ranges at the end.
        self.ranges.add(u64::MAX, &[]);
        Ok((sum_of(self.whole.0), self.ranges.done))
    }
}

fn sha256() -> Result<Hasher> {
    Ok(Hasher::new(DigestAlgorithm::Sha256)?)
}

fn sum_of(hasher: Hasher) -> Sum {
    match hasher.finish() {
        Digest::Sha256(sum) => sum,
        _ => [0; 32], // Unreachable: the hasher was made for SHA-256.
    }
}

impl Chain for Chains {
    const TAKES: bool = true;

    fn parts(&mut self) -> Vec<&mut dyn Part> {
        vec![&mut self.whole, &mut self.ranges]
    }
}

impl Part for Whole {
    fn add(&mut self, _: u64, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

impl Part for Ranges {
    fn add(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset.strict_add(bytes.len() as u64);
        while let Some(span) = self.spans.get(self.next) {
            let (from, to) = (span.offset().max(offset), span.end().min(end));
            if from < to {
                let within = |at: u64| zt::container::memory::in_memory(at.strict_sub(offset));
                self.hasher.update(bytes.get(within(from)..within(to)).unwrap_or_default());
            }
            if span.end() > end {
                return;
            }
            let Ok(next) = sha256() else { return };
            let hasher = std::mem::replace(&mut self.hasher, next);
            self.done.push((*span, sum_of(hasher)));
            self.next = self.next.strict_add(1);
        }
    }
}
