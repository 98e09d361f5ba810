//! An object format of your own, in one file: block-sparse rows.
//!
//! A matrix of f32 is cut into blocks of equal size, and only those that hold something are stored.
//! The file says `"format": "example.bsr/1"`; ids of your own carry a name space and a version.
//!
//! | | dtype | count |
//! | --- | --- | --- |
//! | attribute `block_size` | `[height, width]` | |
//! | role `values` | f32 | blocks × height × width, each block in row-major order |
//! | role `indices` | u64 | blocks: the column of each, counted in blocks |
//! | role `indptr` | u64 | rows of blocks + 1: where each begins among the blocks |
//!
//! Run it with `cargo run -p zt-tensor --example block_sparse_rows`. Three traits make a format:
//! [`ObjectFormat`] is the rules, [`View`] reads, [`ToObject`] writes. The caller puts the
//! format into a registry and passes that to the options for reading or writing; nothing is global.

use std::borrow::Cow;
use std::io::{self, Read as _};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zt::diff::DiffOptions;
use zt::formats::{
    AttributeFault, Error, FormatViolation, IndexBound, ReadParts, Result, SizeMismatch,
    element_count,
};
use zt::manifest::Text;
use zt::{
    Attributes, DType, Dense, File, Memory, NewObject, ObjectFormat, OpenOptions, Parts, Registry,
    Signature, Slice, Source, ToObject, Typed, Value, VerifyOptions, View, WriteOptions,
};

const VALUES: &str = "values";
const INDICES: &str = "indices";
const INDPTR: &str = "indptr";
const BLOCK_SIZE: &str = "block_size";

/// The matrix. Its slices are borrowed where the file lends them.
#[derive(Debug, PartialEq)]
struct Bsr<'a> {
    shape: [u64; 2],
    block: [u64; 2],
    values: Typed<'a, f32>,
    indices: Typed<'a, u64>,
    indptr: Typed<'a, u64>,
}

/// The rules, for reading and for writing alike: what a writer passes, a reader accepts.
struct BsrFormat;

impl ObjectFormat for BsrFormat {
    fn id(&self) -> &str {
        Bsr::FORMAT
    }

    /// Everything that metadata can tell. No byte of data is read for it, and whatever is wrong
    /// here shows when the file is listed.
    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        let ([rows, _], [height, width]) = grid_and_block(signature.shape, signature.attributes)?;
        let values = signature.component(VALUES)?;
        if values.dtype != Some(DType::F32) || values.logical_type().is_some() {
            let (expected, found) = ("f32", values.dtype);
            return Err(FormatViolation::DType { expected, found }.of(VALUES));
        }
        for role in [INDICES, INDPTR] {
            let found = signature.component(role)?.dtype;
            if found != Some(DType::U64) {
                return Err(FormatViolation::IndexDType { found }.of(role));
            }
        }
        // Sizes come from a file. Where they overflow they become a number that no component has.
        let indptr = signature.component(INDPTR)?;
        indptr.expect_elements(rows.saturating_add(1))?;
        // A length is unknown only in files of older layouts, until the component is decoded.
        if let Some(blocks) = signature.component(INDICES)?.element_count()? {
            let count = element_count(&[blocks, height, width]).unwrap_or(u64::MAX);
            values.expect_values(count, registry)?;
        }
        Ok(())
    }

    /// Verification needs these two in memory, and streams the values.
    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[INDICES, INDPTR])
    }

    /// The rules of the contents: pointers rise from 0 to the number of blocks, and columns lie within
    /// the grid.
    fn check_data(&self, parts: &Parts<'_>) -> Result<()> {
        let ([rows, columns], _) = grid_and_block(&parts.shape, &parts.attributes)?;
        let indices = parts.component(INDICES)?.as_slice::<u64>()?;
        let indptr = parts.component(INDPTR)?.as_slice::<u64>()?;
        let (expected, found) = (rows.saturating_add(1), indptr.len() as u64);
        if found != expected {
            return Err(SizeMismatch::Elements { expected, found }.of(INDPTR));
        }
        let (blocks, last) = (indices.len() as u64, indptr.len() - 1);
        let at_least = |at: usize| IndexBound::AtLeast(indptr[at]);
        let falls = indptr.windows(2).position(|pair| pair[1] < pair[0]);
        let outside = indices.iter().position(|column| *column >= columns);
        let (role, at, value, bound) = if indptr[0] != 0 {
            (INDPTR, 0, indptr[0], IndexBound::Exactly(0))
        } else if let Some(at) = falls {
            (INDPTR, at + 1, indptr[at + 1], at_least(at))
        } else if indptr[last] != blocks {
            (INDPTR, last, indptr[last], IndexBound::Exactly(blocks))
        } else if let Some(at) = outside {
            (INDICES, at, indices[at], IndexBound::Below(columns))
        } else {
            return Ok(());
        };
        let (position, value) = (at as u64, value.into());
        #[rustfmt::skip]
        return Err(FormatViolation::IndexValue { position, value, bound }.of(role));
    }

    /// Of the attributes, those that say nothing of the matrix, only how it is stored: its dense
    /// value has the others.
    fn parameters(&self) -> &[&str] {
        &[BLOCK_SIZE]
    }

    /// What a dense value will be, so that its size is known before it is made.
    fn dense_type(&self, _: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        Some((DType::F32, None))
    }

    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        Bsr::from_parts(parts)?.to_dense()
    }

    /// A row of blocks can be read without the others. With this and `rows`, the matrix is sliced,
    /// streamed and decoded on all cores.
    fn row_unit(&self, signature: &Signature<'_>, _: &Registry) -> Option<u64> {
        let found = grid_and_block(signature.shape, signature.attributes);
        found.ok().map(|(_, [height, _])| height)
    }

    /// The blocks of these rows, as a matrix of their own. Their pointers are read first.
    fn rows<'a>(
        &self,
        rows: Range<u64>,
        reader: &mut dyn ReadParts<'a>,
    ) -> Result<Option<Parts<'a>>> {
        let whole = reader.signature();
        let (_, [height, width]) = grid_and_block(whole.shape, whole.attributes)?;
        let pointers = (rows.start / height) * 8..(rows.end / height + 1) * 8;
        let pointers = reader.elements(INDPTR, pointers)?;
        let mut pointers = pointers.as_slice::<u64>()?.to_vec();
        let blocks = pointers[0]..pointers[pointers.len() - 1];
        let stored = reader.byte_len(INDICES)? / 8;
        let is_sound = pointers.is_sorted()
            && blocks.end <= stored
            && (rows.start > 0 || blocks.start == 0)
            && (rows.end < whole.shape[0] || blocks.end == stored);
        if !is_sound {
            // Then the whole is decoded, which finds the fault.
            return Ok(None);
        }
        let block_len = height.saturating_mul(width).saturating_mul(4);
        let bytes = |len: u64| blocks.start.saturating_mul(len)..blocks.end.saturating_mul(len);
        let indices = reader.elements(INDICES, bytes(8))?;
        let values = reader.elements(VALUES, bytes(block_len))?;
        for pointer in &mut pointers {
            *pointer -= blocks.start;
        }
        Ok(Some(Parts {
            shape: vec![rows.end - rows.start, whole.shape[1]].into(),
            attributes: Cow::Borrowed(whole.attributes),
            elements: vec![
                (VALUES.into(), values),
                (INDICES.into(), indices),
                (INDPTR.into(), pointers.into()),
            ],
        }))
    }
}

/// Rows and columns of blocks, and the size of one.
fn grid_and_block(shape: &[u64], attributes: &Attributes) -> Result<([u64; 2], [u64; 2])> {
    let &[rows, cols] = shape else {
        let found = shape.len() as u64;
        let mismatch = SizeMismatch::Rank { expected: 2, found };
        return Err(FormatViolation::from(mismatch).of_object());
    };
    let name = BLOCK_SIZE;
    let value = attributes.get(name).and_then(Value::as_array);
    if let Some([Value::Unsigned(height @ 1..), Value::Unsigned(width @ 1..)]) = value
        && rows % height == 0
        && cols % width == 0
    {
        return Ok(([rows / height, cols / width], [*height, *width]));
    }
    let expected = "two integers of at least 1 that divide the shape";
    let fault = AttributeFault::Type { expected };
    Err(FormatViolation::Attribute { name, fault }.of_object())
}

impl<'a> View<'a> for Bsr<'a> {
    const FORMAT: &'static str = "example.bsr/1";

    /// Checks everything itself: a view also reads objects whose format is not registered.
    fn from_parts(mut parts: Parts<'a>) -> Result<Self> {
        BsrFormat.check(&parts.signature(), &Registry::builtin())?;
        BsrFormat.check_data(&parts)?;
        let (grid, block) = grid_and_block(&parts.shape, &parts.attributes)?;
        Ok(Bsr {
            shape: [grid[0] * block[0], grid[1] * block[1]],
            block,
            values: parts.take(VALUES)?.into_typed()?,
            indices: parts.take(INDICES)?.into_typed()?,
            indptr: parts.take(INDPTR)?.into_typed()?,
        })
    }
}

impl ToObject for Bsr<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let mut attributes = Attributes::new();
        attributes.insert(BLOCK_SIZE, self.block.map(Value::Unsigned).to_vec());
        Ok(NewObject {
            shape: Cow::Borrowed(&self.shape),
            format: Text::Borrowed(Self::FORMAT),
            attributes: Some(attributes),
            components: vec![
                (VALUES.into(), self.values[..].into()),
                (INDICES.into(), self.indices[..].into()),
                (INDPTR.into(), self.indptr[..].into()),
            ],
        })
    }
}

impl Bsr<'_> {
    /// The matrix that these blocks make up, zero where nothing is stored.
    fn to_dense(&self) -> Result<Dense<'static>> {
        let in_memory = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let count = element_count(&self.shape).unwrap_or(u64::MAX);
        // A few bytes of a file can ask for any shape: memory is asked for, and may be refused.
        let byte_len = count.saturating_mul(4);
        let mut out: Vec<f32> = Vec::new();
        out.try_reserve_exact(in_memory(count)).map_err(|_| Error::Allocation { byte_len })?;
        out.resize(in_memory(count), 0.0);
        // Where something is stored, its block and its row are in memory: nothing here overflows.
        let [height, width] = self.block.map(in_memory);
        let row_len = in_memory(self.shape[1]);
        let mut lines = self.values.chunks_exact(width);
        for (row, ends) in self.indptr.windows(2).enumerate() {
            for column in &self.indices[in_memory(ends[0])..in_memory(ends[1])] {
                for (line, values) in lines.by_ref().take(height).enumerate() {
                    let start = (row * height + line) * row_len + in_memory(*column) * width;
                    out[start..start + width].copy_from_slice(values);
                }
            }
        }
        Dense::from_elements(self.shape, out)
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let matrix = Bsr {
        shape: [4, 6],
        block: [2, 3],
        values: (&[1., 2., 3., 4., 5., 6., -1., -2., -3., -4., -5., -6.]).into(),
        indices: (&[1, 0]).into(),
        indptr: (&[0, 1, 2]).into(),
    };
    let registry = zt::registry().with_format(BsrFormat);

    let mut bytes = Vec::new();
    let options = WriteOptions::new().registry(registry.clone());
    let mut writer = options.to_writer(&mut bytes)?;
    writer.add("matrix", &matrix)?;
    writer.finish()?;

    // With the format: checked when it is listed, verified to the last index, viewed, made dense.
    let options = OpenOptions::new().registry(registry);
    let file = options.open_bytes(bytes.clone())?;
    let tensor = file.tensor("matrix")?;
    assert!(file.verify(&VerifyOptions::default())?.is_ok());
    assert_eq!(tensor.view::<Bsr<'_>>()?, matrix);
    let upper = [[0., 0., 0., 1., 2., 3.], [0., 0., 0., 4., 5., 6.]];
    let lower = [[-1., -2., -3., 0., 0., 0.], [-4., -5., -6., 0., 0., 0.]];
    let dense = [upper, lower].concat().concat();
    assert_eq!(*tensor.to_dense()?.as_slice::<f32>()?, dense);

    // The same matrix stored as a plain array: as dense values they do not differ.
    let mut plain = Vec::new();
    let mut writer = zt::Writer::new(&mut plain)?;
    writer.add("matrix", &tensor.to_dense()?)?;
    writer.finish()?;
    let plain = File::from_bytes(plain)?;
    let as_dense = DiffOptions::new().dense(true);
    assert!(zt::diff::diff(&file, &plain, &as_dense)?.is_same());

    // Without it: opens, lists, checks digests, gives the components' bytes, has no dense value.
    let file = File::from_bytes(bytes)?;
    let tensor = file.tensor("matrix")?;
    assert_eq!(tensor.format(), "example.bsr/1");
    assert!(file.verify(&VerifyOptions::default())?.is_ok());
    assert_eq!(tensor.bytes(INDICES)?[..8], 1u64.to_le_bytes());
    let refused = tensor.to_dense().err();
    assert_eq!(refused.map(|error| error.code()), Some("unsupported"));
    read_less_than_the_whole()
}

/// A matrix of 16 MiB, stored in 1 MiB: a part of it takes some of the stored bytes.
fn read_less_than_the_whole() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let values: Vec<f32> = (0..1 << 18).map(|at| at as f32).collect();
    let columns: Vec<u64> = (0..64).map(|row| row * 5 % 16).collect();
    let indptr: Vec<u64> = (0..=64).collect();
    let matrix = Bsr {
        shape: [4096, 1024],
        block: [64, 64],
        values: values.into(),
        indices: columns.into(),
        indptr: indptr.into(),
    };
    let registry = zt::registry().with_format(BsrFormat);
    let mut bytes = Vec::new();
    let options = WriteOptions::new().registry(registry.clone());
    let mut writer = options.to_writer(&mut bytes)?;
    writer.add("matrix", &matrix)?;
    writer.finish()?;
    let (dense, stored) = (matrix.to_dense()?, bytes.len() as u64);

    let read = Arc::new(AtomicU64::new(0));
    let source = Counted(bytes, Arc::clone(&read));
    let file = OpenOptions::new().registry(registry).open_source(source)?;
    let tensor = file.tensor("matrix")?;
    let slices = Slice::parse_list("1000:1010,::3")?;
    read.store(0, Ordering::Relaxed);
    assert_eq!(tensor.slice(&slices)?, dense.slice(&slices)?);
    assert!(read.swap(0, Ordering::Relaxed) < stored / 4);

    // The stream has the first rows before it has read the last.
    let mut reader = tensor.dense_reader()?;
    let mut found = vec![0; 1 << 20];
    let mut len = reader.read(&mut found)?;
    assert!(len > 0 && read.load(Ordering::Relaxed) < stored / 2);
    let mut at = 0;
    while len > 0 {
        assert_eq!(found[..len], dense.elements().bytes[at..at + len]);
        at += len;
        len = reader.read(&mut found)?;
    }
    assert_eq!(at, dense.elements().bytes.len());
    assert_eq!(tensor.to_dense()?, dense);
    Ok(())
}

/// Counts the bytes that are read of a file.
struct Counted(Vec<u8>, Arc<AtomicU64>);

impl Source for Counted {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.1.fetch_add(out.len() as u64, Ordering::Relaxed);
        Memory::new(&self.0[..]).read_at(offset, out)
    }
}

/// `cargo test -p zt-tensor --examples` runs this.
#[test]
fn a_format_from_outside_works_like_one_from_inside() {
    main().unwrap();
}

/// All that a test of your format needs: the kit finds what a damaged file can do to it.
#[cfg(feature = "test-kit")]
#[test]
fn a_format_from_outside_passes_the_kit() {
    let of = |rows: u32| Bsr {
        shape: [2 * u64::from(rows), 6],
        block: [2, 3],
        values: vec![1.5; 6 * rows as usize].into(),
        indices: (0..rows).map(|row| (row % 2).into()).collect::<Vec<u64>>().into(),
        indptr: (0..=rows).map(u64::from).collect::<Vec<u64>>().into(),
    };
    let registry = zt::registry().with_format(BsrFormat);
    zt::test_kit::check_format(&registry, &[&of(0), &of(2), &of(40)]);
}
