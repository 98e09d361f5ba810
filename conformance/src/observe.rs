//! Everything that can be seen of a file.
//!
//! [`observe`] opens nothing itself: it takes what opening gave, reads every component in each of
//! the ways there are, verifies, hashes, and notes what it saw as plain values. Two observations
//! are equal where a user could not tell the two files, or the two sources, apart.

use std::collections::{BTreeMap, HashSet};
use std::io::Read as _;

use serde_json::Value as Json;
use zt::{Buffer, Dense, DigestAlgorithm, Entry, File, HashOptions, Slice, Tensor, VerifyOptions};

use crate::{hash, json};

/// A dense value larger than this is not asked for: a sparse object of a few bytes can have any
/// shape.
const DENSE_MAX: u64 = 16 << 20;
/// What is read of every dimension, or of the first.
const PART: Slice = Slice::Range { start: Some(1), stop: Some(-1), step: 1 };
const BACKWARDS: Slice = Slice::Range { start: None, stop: None, step: -3 };
/// Bytes of content that are noted as they are.
const SHOWN: usize = 128;

/// What was seen of a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seen {
    /// Why it could not be opened. Everything below is empty then.
    pub refused: Option<Refusal>,
    /// The generation.
    pub layout: Option<String>,
    /// The manifest's version.
    pub version: Option<String>,
    /// The file's attributes as JSON, null where there are none.
    pub attributes: Json,
    /// Unknown fields of the root.
    pub extra: Json,
    /// By name.
    pub objects: BTreeMap<String, SeenObject>,
    /// Object, component and code of every warning.
    pub warnings: Vec<(Option<String>, Option<String>, String)>,
    /// What verification found.
    pub problems: Vec<Refusal>,
    /// What strict verification found.
    pub strict_problems: Vec<Refusal>,
    /// Components without a digest that can be checked.
    pub unverified: Vec<(String, String)>,
    /// The content identity.
    pub content: Option<String>,
}

/// What was seen of an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeenObject {
    /// Why it cannot be read. All but what follows from the name is empty then.
    pub fault: Option<Refusal>,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its format.
    pub format: String,
    /// Its attributes as JSON, null where there are none.
    pub attributes: Json,
    /// Its unknown fields.
    pub extra: Json,
    /// By role.
    pub components: BTreeMap<String, SeenComponent>,
    /// The dense value; `None` where it was too large to ask for.
    pub dense: Option<Result<Content, Box<Refusal>>>,
}

/// What was seen of a component.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenComponent {
    /// Its dtype.
    pub dtype: Option<String>,
    /// Its logical type, unless that repeats the dtype.
    pub logical_type: Option<String>,
    /// `raw` or `zstd`.
    pub encoding: String,
    /// The digest's algorithm, in lower case.
    pub digest: Option<String>,
    /// Where its stored bytes are.
    pub span: (u64, u64),
    /// Its decoded little-endian bytes.
    pub content: Result<Content, Box<Refusal>>,
}

/// Bytes, abridged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// How many.
    pub byte_len: u64,
    /// Their SHA-256, in hexadecimal.
    pub sha256: String,
    /// The first of them, in hexadecimal.
    pub shown: String,
}

/// An error, as far as programs see it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// Who is at fault.
    pub kind: String,
    /// The code.
    pub code: String,
    /// The object it names.
    pub object: Option<String>,
    /// The component it names.
    pub component: Option<String>,
    /// Where the fault is.
    pub offset: Option<u64>,
    /// Where it ends.
    pub end: Option<u64>,
}

impl From<&zt::Error> for Refusal {
    fn from(error: &zt::Error) -> Self {
        // Printing must work for whatever a file can cause.
        assert!(!error.to_string().is_empty());
        Refusal {
            kind: format!("{:?}", error.kind()),
            code: error.code().to_owned(),
            object: error.object().map(str::to_owned),
            component: error.component().map(str::to_owned),
            offset: error.offset(),
            end: error.end(),
        }
    }
}

impl From<zt::Error> for Box<Refusal> {
    fn from(error: zt::Error) -> Self {
        Box::new(Refusal::from(&error))
    }
}

impl Content {
    /// Of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Content {
            byte_len: bytes.len() as u64,
            sha256: hash(DigestAlgorithm::Sha256, bytes),
            shown: json::hex(&bytes[..bytes.len().min(SHOWN)]),
        }
    }
}

impl Seen {
    /// What anybody who looks at everything comes across: errors of the file, of objects, of
    /// components, of verification.
    pub fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        let faults = self.objects.values().filter_map(|object| object.fault.as_ref());
        let components = self.objects.values().flat_map(|object| object.components.values());
        let contents = components
            .filter_map(|component| component.content.as_ref().err().map(|refusal| &**refusal));
        self.refused.iter().chain(faults).chain(contents).chain(&self.problems)
    }

    /// Whether nothing is wrong with the file.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.refusals().next().is_none()
    }
}

/// Whether a file is the same from a path and from memory. Bytes of no kind are an error of the kind that the
/// name stands for, and memory has no name.
#[must_use]
pub fn agree(by_path: zt::Result<File>, memory: zt::Result<File>) -> bool {
    let is_of_no_kind = memory.as_ref().is_err_and(|error| error.code() == "unknown-kind");
    is_of_no_kind && by_path.is_err() || observe(by_path) == observe(memory)
}

/// Looks at everything.
///
/// # Panics
///
/// Where two ways to read one thing disagree: that is a defect whatever the file is.
#[must_use]
pub fn observe(opened: zt::Result<File>) -> Seen {
    let file = match opened {
        Ok(file) => file,
        Err(error) => {
            return Seen { refused: Some(Refusal::from(&error)), ..Seen::default() };
        }
    };
    let entries = file.entries();
    assert_eq!(entries.len(), file.len());
    let mut objects = BTreeMap::new();
    for entry in &entries {
        assert_eq!(file.get(entry.name()).map(|found| found.is_ok()), Some(entry.raw().is_none()));
        let known = objects.insert(entry.name().to_owned(), object(&file, entry));
        assert_eq!(known, None, "two objects of one name");
    }
    let mut names: Vec<&str> = file.names().collect();
    names.sort_unstable();
    assert!(names.iter().copied().eq(objects.keys().map(String::as_str)));

    let warnings = file.warnings().into_iter();
    let warnings =
        warnings.map(|warning| (warning.object, warning.component, warning.code.to_owned()));
    let report = file.verify(&VerifyOptions::default()).expect("nobody interrupts");
    let strict = VerifyOptions::new().strict(true);
    let strict = file.verify(&strict).expect("nobody interrupts");
    let refusals = |problems: &[zt::Error]| problems.iter().map(Refusal::from).collect();
    let seen = Seen {
        refused: None,
        layout: file.layout().map(str::to_owned),
        version: file.version().map(str::to_owned),
        attributes: json::of_attributes(file.attributes().expect("in memory").as_ref()),
        extra: json::of_attributes(Some(&file.extra().expect("in memory"))),
        warnings: warnings.collect(),
        problems: refusals(&report.problems),
        strict_problems: refusals(&strict.problems),
        unverified: report.unverified,
        content: content(&file, &objects),
        objects,
    };
    // What reading refuses, verification refuses, and strictness forgives nothing.
    let readable = seen.objects.values().all(|object| {
        object.fault.is_none() && object.components.values().all(|c| c.content.is_ok())
    });
    assert!(readable || !seen.problems.is_empty(), "{seen:?}");
    // A few kilobytes of HDF5 can list ten thousand links that lead to one fault.
    let strict: HashSet<&Refusal> = seen.strict_problems.iter().collect();
    let forgiven = |problem: &&Refusal| !strict.contains(*problem);
    assert_eq!(seen.problems.iter().find(forgiven), None, "{seen:?}");
    seen
}

/// The hashes, held against what was read.
fn content(file: &File, objects: &BTreeMap<String, SeenObject>) -> Option<String> {
    let hashes = file.hash(&HashOptions::default()).expect("nobody interrupts");
    for (name, hashed) in &hashes.objects {
        let seen = &objects[name];
        match hashed {
            Ok(hashed) => {
                for (role, bytes) in &hashed.components {
                    let read = seen.components[role].content.as_ref().expect("it was hashed");
                    assert_eq!(
                        (read.byte_len, &read.sha256),
                        (bytes.byte_len, &json::hex(&bytes.sha256))
                    );
                }
            }
            Err(_) => {
                let mut contents = seen.components.values().map(|component| &component.content);
                assert!(seen.fault.is_some() || contents.any(Result::is_err), "{name}");
            }
        }
    }
    hashes.content.map(|sum| json::hex(&sum))
}

fn object(file: &File, entry: &Entry<'_>) -> SeenObject {
    let tensor = match entry.tensor() {
        Ok(tensor) => tensor,
        Err(error) => {
            let raw = entry.raw().expect("a faulty object has its listing");
            return SeenObject {
                fault: Some(Refusal::from(&error)),
                shape: raw.shape.clone().unwrap_or_default(),
                format: raw.format.as_deref().unwrap_or_default().to_owned(),
                ..SeenObject::default()
            };
        }
    };
    let object = tensor.object();
    let components = tensor.components().map(|(role, described)| {
        let dtype = described.dtype.map(|dtype| dtype.as_str().to_owned());
        let logical_type = described.logical_type.as_ref().map(ToString::to_string);
        let digest = described.blob.digest.as_ref().map(ToString::to_string);
        let component = SeenComponent {
            logical_type: logical_type.filter(|name| Some(name) != dtype.as_ref()),
            dtype,
            encoding: described.blob.encoding.as_str().to_owned(),
            digest: digest.and_then(|text| Some(text.split_once(':')?.0.to_ascii_lowercase())),
            span: (described.blob.span.offset(), described.blob.span.byte_len()),
            content: read(&tensor, role),
        };
        (role.to_owned(), component)
    });
    SeenObject {
        fault: tensor.fault().map(Refusal::from),
        shape: object.shape.clone(),
        format: object.format.to_string(),
        attributes: json::of_attributes(object.attributes.as_ref()),
        extra: json::of_attributes(Some(&object.extra)),
        components: components.collect(),
        dense: match tensor.fault() {
            None => dense(file, &tensor),
            Some(_) => None,
        },
    }
}

/// One component, as a stream in small pieces, as a whole, and into memory of ours.
fn read(tensor: &Tensor<'_>, role: &str) -> Result<Content, Box<Refusal>> {
    let streamed = stream(tensor, role).map_err(Box::<Refusal>::from);
    let whole = tensor.bytes(role).map(|bytes| Content::of(&bytes)).map_err(Box::<Refusal>::from);
    match (&streamed, &whole) {
        (Ok(streamed), Ok(whole)) => {
            assert_eq!(Content::of(streamed), *whole, "{role}: stream and whole differ");
            let byte_len = tensor.decoded_len(role).expect("it was read");
            let mut memory = Buffer::try_zeroed(byte_len).expect("it was read");
            tensor.read_into(role, &mut memory).expect("it was read");
            assert_eq!(Content::of(&memory), *whole, "{role}: read_into and whole differ");
        }
        (Err(streamed), Err(whole)) => assert_eq!(streamed.code, whole.code, "{role}"),
        _ => panic!("{role}: the stream gives {streamed:?}, the whole {whole:?}"),
    }
    whole
}

fn stream(tensor: &Tensor<'_>, role: &str) -> zt::Result<Vec<u8>> {
    let mut reader = tensor.reader(role)?;
    let (mut content, mut piece) = (Vec::new(), vec![0; 4091]);
    loop {
        match reader.read(&mut piece)? {
            0 => return Ok(content),
            len => content.extend_from_slice(&piece[..len]),
        }
    }
}

/// Parts of the dense value, each read without the rest of it, are parts of it. Where there is none,
/// they are only seen to end: a fault may lie outside a part, and then goes unseen.
fn parts(tensor: &Tensor<'_>, dense: zt::Result<&Dense<'_>, &zt::Error>) {
    for slices in [&[PART][..], &[PART; 2], &[BACKWARDS; 2]] {
        let (name, part) = (tensor.name(), tensor.slice(slices));
        let Ok(dense) = dense else {
            continue;
        };
        match (part, dense.slice(slices)) {
            (Ok(part), Ok(expected)) => assert!(part == expected, "{name}: {slices:?} differs"),
            (part, expected) => {
                assert_eq!(part.is_err(), expected.is_err(), "{name}: {slices:?}: {part:?}")
            }
        }
    }
}

fn dense(file: &File, tensor: &Tensor<'_>) -> Option<Result<Content, Box<Refusal>>> {
    let signature = signature(tensor);
    let format = file.registry().format(tensor.format());
    if let Some(format) = format
        && let Some((dtype, logical_type)) = format.dense_type(&signature, file.registry())
    {
        let value_len = file.registry().value_len(dtype, logical_type.as_deref());
        // An unknown logical type takes no more than what is stored.
        let value_len = value_len.ok().flatten().unwrap_or(0);
        let byte_len = zt::formats::dense_byte_len(tensor.shape(), value_len);
        if byte_len.is_none_or(|byte_len| byte_len > DENSE_MAX) {
            return None;
        }
    }
    let dense = tensor.to_dense();
    parts(tensor, dense.as_ref());
    Some(dense.map(|dense| Content::of(&dense.elements().bytes)).map_err(Box::<Refusal>::from))
}

fn signature<'t>(tensor: &Tensor<'t>) -> zt::Signature<'t> {
    let components = tensor.components().map(|(role, component)| zt::formats::ComponentSignature {
        role,
        dtype: component.dtype,
        logical_type: component.logical_type.as_deref(),
        byte_len: component.blob.decoded_len,
    });
    zt::Signature {
        shape: tensor.shape(),
        attributes: tensor.attributes(),
        components: components.collect(),
    }
}
