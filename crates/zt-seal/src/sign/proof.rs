//! A proof that a tensor, or rows of one, are those of a signed model. Spec: signature.md §4.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::slice::from_ref;
use std::sync::{Arc, Mutex, PoisonError};

use zt::container::memory::{fetch, in_memory};
use zt::formats::Slice;
use zt::{Attributes, Dense, Error, ErrorKind, File, Result, Source, Span, Value, codes};
use zt_convert::{InputOptions, Kinds};

use crate::fault;
use crate::seal::Seal;
use crate::sign::fault::SignatureFault as Fault;
use crate::sign::statement::Statement;
use crate::sign::tree::{Known, merge_leaves, merge_tensors, others, root, tensor_leaf};
use crate::source::SealedSource;
use crate::tree::{LEAF, Sum, digest, leaf_count, leaf_span};

const FORMAT: &str = "zt.proof/1";

/// The most leaves of a proof of rows: they are in memory together.
const MOST: u64 = 1024;

/// A few sums that lead from one tensor, or from rows of it, to a signature. See [`Proof::of_tensor`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    name: String,
    of: Of,
    sums: Vec<Sum>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Of {
    /// The whole: the numbers of the model and of the tensor in it.
    Tensor { model: u64, at: u64, identity: Sum },
    /// The number of the file, and the leaves of it that have the header and the rows.
    Rows { file: u64, rows: Range<u64>, leaves: Vec<Range<u64>> },
}

impl Proof {
    /// The longest proof. Sums for a million tensors are 640 bytes, and for rows in a file of 64 GiB at most 1792.
    pub const MAX_LEN: u64 = 2048;

    /// The proof of a tensor, in any file: its path in the tree of names and identities.
    ///
    /// # Errors
    ///
    /// Code `misuse` if no model of the seal has the tensor, or several do; or if its name is too long.
    pub fn of_tensor(seal: &Seal, name: &str) -> Result<Self> {
        let found = (0..).zip(&seal.models).filter_map(|(number, model)| {
            let at = model.tensors.binary_search_by(|tensor| tensor.name.as_str().cmp(name));
            Some((number, model, at.ok()?))
        });
        let found: Vec<(u64, _, _)> = found.collect();
        let [(model, sealed, at)] = found[..] else {
            return Err(Fault::Count { name: name.to_owned(), count: found.len() }.into());
        };
        let leaf = |at: u64| {
            let tensor = usize::try_from(at).ok().and_then(|at| sealed.tensors.get(at));
            tensor.map_or(Ok(Sum::default()), |tensor| tensor_leaf(&tensor.name, &tensor.identity))
        };
        let identity = sealed.tensors.get(at).map(|tensor| tensor.identity).unwrap_or_default();
        let (at, count) = (at as u64, sealed.tensors.len() as u64);
        let (mut sums, known) = (Vec::new(), at..at.strict_add(1));
        others(&(0..count), Known(from_ref(&known)), &leaf, merge_tensors, &mut sums)?;
        Self { name: name.to_owned(), of: Of::Tensor { model, at, identity }, sums }.short()
    }

    /// The proof of rows of a tensor in `source`, which is number `file` of the seal: the leaves that have the
    /// header and the rows. It is for this file alone.
    ///
    /// # Errors
    ///
    /// Code `seal-mismatch` if `source` is another file; `misuse` for rows that are not there or are too many;
    /// errors of opening and reading.
    pub fn of_rows(
        seal: &Arc<Seal>,
        file: usize,
        source: impl Source + 'static,
        kinds: &Kinds,
        name: &str,
        rows: Range<u64>,
    ) -> Result<Self> {
        let missing = || fault::Fault::NotSealed { path: file.to_string() };
        let sealed = seal.files.get(file).ok_or_else(missing)?;
        let count = sealed.leaf_count();
        // Another build may also look at the end to find the kind.
        let ends = BTreeSet::from([0, count.saturating_sub(1)]);
        let seen = Arc::new(Mutex::new(ends));
        let inner = SealedSource::new(source, Arc::clone(seal), file)?;
        let recorder = Recorder { inner, seen: Arc::clone(&seen) };
        let input = kinds.open_source(recorder, InputOptions::new())?;
        read_rows(input.file(), name, &rows)?;
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if seen.len() as u64 > MOST {
            let message = format!("the rows and the header take more than {MOST} leaves of 1 MiB");
            return Err(Error::new(ErrorKind::Misuse, codes::MISUSE, message));
        }
        let mut leaves: Vec<Range<u64>> = Vec::new();
        for at in seen {
            match leaves.last_mut().filter(|last| last.end == at) {
                Some(last) => last.end = at.strict_add(1),
                None => leaves.push(at..at.strict_add(1)),
            }
        }
        let leaf = |at| Ok(sealed.leaf(at).copied().unwrap_or_default());
        let mut sums = Vec::new();
        others(&(0..count), Known(&leaves), &leaf, merge_leaves, &mut sums)?;
        Self { name: name.to_owned(), of: Of::Rows { file: file as u64, rows, leaves }, sums }
            .short()
    }

    fn short(self) -> Result<Self> {
        let (byte_len, limit) = (self.to_bytes()?.len() as u64, Self::MAX_LEN);
        if byte_len > limit {
            return Err(Fault::LongProof { byte_len, limit }.into());
        }
        Ok(self)
    }

    /// The name of the tensor.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rows; `None` for a proof of the whole tensor.
    pub fn rows(&self) -> Option<Range<u64>> {
        match &self.of {
            Of::Tensor { .. } => None,
            Of::Rows { rows, .. } => Some(rows.clone()),
        }
    }

    /// The path of the file that a proof of rows is about.
    ///
    /// # Errors
    ///
    /// Code `proof` if the signature has no such file, or if the proof is of a whole tensor.
    pub fn file<'s>(&self, statement: &'s Statement) -> Result<&'s str> {
        Ok(&self.signed_file(statement)?.path)
    }

    fn signed_file<'s>(
        &self,
        statement: &'s Statement,
    ) -> Result<&'s crate::sign::statement::SignedFile> {
        let file = match &self.of {
            Of::Rows { file, .. } => usize::try_from(*file).ok(),
            Of::Tensor { .. } => None,
        };
        let files = &statement.facts()?.files;
        Ok(file.and_then(|file| files.get(file)).ok_or(Fault::Unrelated)?)
    }

    /// Compares a tensor of this name with the signed one: its identity, as [`zt::ObjectHash::identity`] has it.
    ///
    /// # Errors
    ///
    /// Code `proof` for a proof of another signature, or of rows; `signature-mismatch` for another identity.
    pub fn check_tensor(&self, statement: &Statement, identity: &Sum) -> Result<()> {
        let Of::Tensor { model, at, identity: expected } = &self.of else {
            return Err(Fault::NoProof("it is about rows").into());
        };
        let models = &statement.facts()?.models;
        let model = usize::try_from(*model).ok().and_then(|model| models.get(model));
        let model = model.filter(|model| *at < model.tensors).ok_or(Fault::Unrelated)?;
        let known = *at..at.strict_add(1);
        let mut leaf = |_| tensor_leaf(&self.name, expected);
        let found = self.root(model.tensors, from_ref(&known), &mut leaf, merge_tensors)?;
        if found != Some(model.root) {
            return Err(Fault::Unrelated.into());
        }
        if identity != expected {
            return Err(Fault::Tensor.into());
        }
        Ok(())
    }

    /// The rows in `source`, which must be the signed file. Only the leaves of the proof are read.
    ///
    /// # Errors
    ///
    /// Code `proof` for a proof of another signature, or of a whole tensor; `signature-mismatch` if a byte of the
    /// header or of the rows differs; errors of reading.
    pub fn check_rows(
        &self,
        statement: &Statement,
        source: &dyn Source,
        kinds: &Kinds,
    ) -> Result<Dense<'static>> {
        let signed = self.signed_file(statement)?;
        let Of::Rows { rows, leaves, .. } = &self.of else {
            return Err(Fault::Unrelated.into());
        };
        let (expected, found) = (signed.byte_len, source.byte_len());
        if expected != found {
            return Err(Fault::Length { expected, found }.into());
        }
        let count = leaf_count(expected);
        if leaves.last().is_none_or(|last| last.end > count) {
            return Err(Fault::Unrelated.into());
        }
        let spans = leaves.iter().cloned().flatten().filter_map(|at| leaf_span(expected, at));
        source.will_read_all(&spans.collect::<Vec<_>>());
        let mut read = BTreeMap::new();
        let mut leaf = |at| {
            let mut bytes = Vec::new();
            fetch(&mut bytes, source, leaf_span(expected, at).unwrap_or_default())?;
            let sum = digest(&bytes, at, count == 1);
            read.insert(at, bytes);
            Ok(sum)
        };
        match self.root(count, leaves, &mut leaf, merge_leaves)? {
            None => return Err(Fault::Unrelated.into()),
            Some(root) if root != signed.blake3 => return Err(Fault::Rows.into()),
            Some(_) => {}
        }
        let proved = Proved { byte_len: expected, leaves: read };
        let input = kinds.open_source(proved, InputOptions::new())?;
        read_rows(input.file(), &self.name, rows)
    }

    /// The root that the known leaves and all sums give; `None` if there are too few sums or too many.
    fn root(
        &self,
        count: u64,
        known: &[Range<u64>],
        leaf: &mut dyn FnMut(u64) -> Result<Sum>,
        merge: crate::sign::tree::Merge,
    ) -> Result<Option<Sum>> {
        let mut sums = self.sums.iter().copied();
        let root = root(&(0..count), true, Known(known), leaf, &mut sums, merge)?;
        Ok(root.filter(|_| sums.next().is_none()))
    }

    /// The proof as bytes. Equal proofs give equal bytes.
    ///
    /// # Errors
    ///
    /// None of a sound proof.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut map = Attributes::new();
        map.insert("format", FORMAT);
        map.insert("name", self.name.as_str());
        map.insert("sums", self.sums.concat());
        match &self.of {
            Of::Tensor { model, at, identity } => {
                map.insert("model", *model);
                map.insert("at", *at);
                map.insert("identity", identity.to_vec());
            }
            Of::Rows { file, rows, leaves } => {
                map.insert("file", *file);
                map.insert("rows", of_ranges(from_ref(rows)));
                map.insert("leaves", of_ranges(leaves));
            }
        }
        Ok(map.to_cbor()?)
    }

    /// The proof that these bytes are.
    ///
    /// # Errors
    ///
    /// Code `proof` if they are no proof, too many, or not in the one encoding that a proof has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        /// A map of arrays.
        const NESTING: usize = 3;
        if bytes.len() as u64 > Self::MAX_LEN {
            return Err(Fault::NoProof("it is too long").into());
        }
        let value = Value::from_cbor(bytes, NESTING);
        let value = value.map_err(|_| Fault::NoProof("it is not well-formed"))?;
        let proof = value.as_map().and_then(proof_of);
        let proof = proof.ok_or(Fault::NoProof("a field is missing or invalid"))?;
        if proof.to_bytes()? != bytes {
            return Err(Fault::NoProof("it is in another encoding").into());
        }
        Ok(proof)
    }
}

fn of_ranges(ranges: &[Range<u64>]) -> Vec<Value> {
    ranges.iter().flat_map(|it| [Value::from(it.start), Value::from(it.end)]).collect()
}

fn proof_of(map: &Attributes) -> Option<Proof> {
    let number = |field: &str| map.get(field)?.as_u64();
    let ranges = |field: &str| {
        let numbers = map.get(field)?.as_array()?;
        let numbers = numbers.iter().map(Value::as_u64).collect::<Option<Vec<_>>>()?;
        // Each range has something, and something is between two of them.
        let is_sorted = numbers.is_sorted_by(|a, b| a < b);
        let (pairs, rest) = numbers.as_chunks::<2>();
        let ranges = pairs.iter().map(|[start, end]| *start..*end).collect::<Vec<_>>();
        (is_sorted && rest.is_empty() && !ranges.is_empty()).then_some(ranges)
    };
    if map.get("format")?.as_str()? != FORMAT {
        return None;
    }
    let name = map.get("name")?.as_str()?.to_owned();
    let (sums, rest) = map.get("sums")?.as_bytes()?.as_chunks::<32>();
    let of = match number("model") {
        Some(model) => {
            let at = number("at").filter(|at| *at < u64::MAX)?;
            let identity = map.get("identity")?.as_bytes()?.try_into().ok()?;
            Of::Tensor { model, at, identity }
        }
        None => {
            let rows = ranges("rows")?;
            let leaves = ranges("leaves")?;
            let count = leaves.iter().try_fold(0u64, |sum, it| {
                sum.checked_add(it.end.checked_sub(it.start)?).filter(|sum| *sum <= MOST)
            });
            count?;
            let [rows] = <[Range<u64>; 1]>::try_from(rows).ok()?;
            Of::Rows { file: number("file")?, rows, leaves }
        }
    };
    rest.is_empty().then(|| Proof { name, of, sums: sums.to_vec() })
}

fn read_rows(file: &File, name: &str, rows: &Range<u64>) -> Result<Dense<'static>> {
    let Ok(tensor) = file.tensor(name) else {
        return Err(Fault::Absent { name: name.to_owned() }.into());
    };
    let count = tensor.shape().first().copied().unwrap_or_default();
    if rows.is_empty() || rows.end > count {
        let message = format!("the tensor has {count} rows, and not {}..{}", rows.start, rows.end);
        return Err(Error::new(ErrorKind::Misuse, codes::MISUSE, message));
    }
    tensor.slice(&Slice::parse_list(&format!("{}:{}", rows.start, rows.end))?)
}

/// A source that remembers the leaves that were read.
struct Recorder {
    inner: SealedSource,
    seen: Arc<Mutex<BTreeSet<u64>>>,
}

impl Source for Recorder {
    fn byte_len(&self) -> u64 {
        self.inner.byte_len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buf)?;
        let end = offset.saturating_add(buf.len() as u64);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.extend(offset / LEAF..end.div_ceil(LEAF));
        Ok(())
    }
}

/// Leaves of a file that were compared with a signature, and nothing else of it.
struct Proved {
    byte_len: u64,
    leaves: BTreeMap<u64, Vec<u8>>,
}

impl Source for Proved {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let span = Span::new(offset, buf.len() as u64).filter(|it| it.end() <= self.byte_len);
        span.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let from = in_memory(at % LEAF);
            let bytes = self.leaves.get(&(at / LEAF)).and_then(|leaf| leaf.get(from..));
            let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else {
                return Err(Error::from(Fault::Uncovered { offset: at }).into());
            };
            let len = bytes.len().min(rest.len());
            let (now, later) = rest.split_at_mut(len);
            now.copy_from_slice(bytes.get(..len).unwrap_or_default());
            (at, rest) = (at.strict_add(len as u64), later);
        }
        Ok(())
    }
}
