//! Arbitrary files out of [`Decisions`]: objects of every format, elements of every type down to
//! the bits of a NaN, attributes of every kind that CBOR has, and the options they are written with.
//!
//! What is generated is always right: a writer has to take it, and a reader to give it back.

use std::borrow::Cow;
use std::collections::BTreeSet;

use zt::formats::{PackedType, Packing, PlaneCoding, Planes, Quantization, ZeroKind};
use zt::ggml::BLOCK_TYPES;
use zt::manifest::Text;
use zt::{
    Attributes, Buffer, Compression, DType, Dense, DigestAlgorithm, Elements, NewObject,
    QuantizedGroup, ToObject, Value,
};

use crate::decisions::Decisions;
use crate::written::{NewFile, Options};

/// A file: up to five objects of different names, attributes, and how they are stored.
pub fn file(from: &mut Decisions<'_>) -> NewFile {
    let options = options(from);
    let attributes = from.maybe(2, attributes);
    let objects = names(from, 6).into_iter().map(|name| (name, object(from))).collect();
    NewFile { attributes, objects, options }
}

const CODINGS: [PlaneCoding; 2] = [PlaneCoding::Plain, PlaneCoding::Huffman];

/// How a file is written.
pub fn options(from: &mut Decisions<'_>) -> Options {
    let digests = [Some(DigestAlgorithm::Crc32c), Some(DigestAlgorithm::Sha256), None];
    let level = |from: &mut Decisions<'_>| Compression::Zstd(from.below(15) as i32 - 5);
    Options {
        digest: from.pick(&digests),
        compression: from.maybe(2, level).unwrap_or(Compression::None),
        alignment: from.pick(&[None, Some(64), Some(128), Some(4096)]),
        deduplicate: from.once_in(3),
        planes: from.maybe(4, |from| from.pick(&CODINGS)),
    }
}

/// A name or a role: any text, mostly short, now and then empty.
pub fn name(from: &mut Decisions<'_>) -> String {
    let character = |from: &mut Decisions<'_>| match from.maybe(5, Decisions::number) {
        Some(number) => char::from_u32(number as u32 & 0x1f_ffff).unwrap_or('\u{fffd}'),
        None => char::from(b'a' + from.below(6) as u8),
    };
    from.list(6, character).into_iter().collect()
}

/// Fewer than `bound` names, all different, in the order they came.
fn names(from: &mut Decisions<'_>, bound: usize) -> Vec<String> {
    let mut known = BTreeSet::new();
    let names = from.list(bound, name).into_iter();
    names.filter(|name| known.insert(name.clone())).collect()
}

/// An object of any format, known or not.
pub fn object(from: &mut Decisions<'_>) -> NewObject<'static> {
    let all: [fn(&mut Decisions<'_>) -> _; 9] =
        [dense, csr, coo, quantized, unknown, planes, nibbles, blocks, packed];
    let make = from.pick(&all);
    let mut object = make(from);
    if let Some(mut attributes) = from.maybe(3, attributes) {
        // What a format needs stays as it is; everything else is free.
        for (key, value) in object.attributes.iter().flatten() {
            attributes.insert(key.clone(), value.clone());
        }
        object.attributes = Some(attributes);
    }
    object
}

/// A plain array, with a role that its format does not know now and then.
fn dense(from: &mut Decisions<'_>) -> NewObject<'static> {
    let shape = shape(from);
    let count = shape.iter().product::<u64>() as usize;
    let mut components = vec![("data".into(), elements_of_any_type(from, count))];
    components.extend(from.maybe(5, |from| ("note".into(), any_elements(from))));
    new_object(shape, "dense", components)
}

/// A matrix by rows; columns in any order, and repeated now and then.
fn csr(from: &mut Decisions<'_>) -> NewObject<'static> {
    let cols = 1 + from.below(5);
    let rows = from.list(5, |from| from.list(4, |from| from.below(cols) as u64));
    let indices: Vec<u64> = rows.concat();
    let mut indptr = vec![0];
    indptr.extend(rows.iter().scan(0, |end, row| {
        *end += row.len() as u64;
        Some(*end)
    }));
    let components = vec![
        ("values".into(), elements_of_any_type(from, indices.len())),
        ("indices".into(), Elements::from(indices)),
        ("indptr".into(), Elements::from(indptr)),
    ];
    new_object(vec![rows.len() as u64, cols as u64], "sparse_csr", components)
}

/// Values and coordinates in one to three dimensions.
fn coo(from: &mut Decisions<'_>) -> NewObject<'static> {
    let rank = 1 + from.below(3);
    let shape: Vec<usize> = (0..rank).map(|_| 1 + from.below(5)).collect();
    let count = from.below(6);
    let mut coords = Vec::new();
    for extent in &shape {
        coords.extend((0..count).map(|_| from.below(*extent) as u64));
    }
    let values = elements_of_any_type(from, count);
    let components = vec![("values".into(), values), ("coords".into(), Elements::from(coords))];
    let shape = shape.into_iter().map(|extent| extent as u64).collect();
    new_object(shape, "sparse_coo", components)
}

/// Words of any integer dtype, any number of bits that fits, any group size, with zeros or without.
fn quantized(from: &mut Decisions<'_>) -> NewObject<'static> {
    let integers = DType::ALL.into_iter().filter(|dtype| dtype.as_str().starts_with(['i', 'u']));
    let dtype = from.pick(&integers.collect::<Vec<_>>());
    let width = 8 * dtype.byte_len();
    let bits = 1 + from.below(width.min(32));
    let packing = Packing { per_word: 1 + from.below(width / bits) as u32, dtype };
    let quantization = Quantization {
        signed: from.once_in(2),
        zero_kind: from.pick(&[ZeroKind::Subtractive, ZeroKind::Additive]),
        ..Quantization::new(bits as u32, 1 + from.below(40) as u64, packing)
    };
    let shape = shape(from);
    let count = shape.iter().product();
    let groups = quantization.group_count(count) as usize;
    let words = elements(from, (dtype, None), quantization.word_count(count) as usize);
    let scales = from.pick(&[DType::F32, DType::F64, DType::F16, DType::BF16]);
    let scales = elements(from, (scales, None), groups);
    let zeros = from.maybe(2, |from| {
        let dtype = from.pick(&[DType::F32, DType::F16, DType::U8, DType::I16]);
        elements(from, (dtype, None), groups)
    });
    let object = QuantizedGroup::new(shape, quantization, words, scales, zeros);
    let object = object.expect("every size follows from the others");
    owned(object.to_object().expect("it is sound"))
}

/// Rows of nibbles, with a scale and a zero-point each.
fn nibbles(from: &mut Decisions<'_>) -> NewObject<'static> {
    let shape = shape(from);
    let count = shape.iter().product::<u64>() as usize;
    let rows = shape.first().map_or(1, |&rows| rows as usize);
    let scale = from.pick(&[DType::F32, DType::F64, DType::F16, DType::BF16]);
    let zero_point = from.pick(&[scale, DType::U8, DType::I32, DType::U64]);
    let components = vec![
        ("data".into(), elements(from, (DType::U8, None), count.div_ceil(2))),
        ("scale".into(), elements(from, (scale, None), rows)),
        ("zero_point".into(), elements(from, (zero_point, None), rows)),
    ];
    new_object(shape, "quantized_4bit", components)
}

/// Values of less than a byte, of every type.
fn packed(from: &mut Decisions<'_>) -> NewObject<'static> {
    let packed = from.pick(&PackedType::ALL);
    let shape = shape(from);
    let len = packed.byte_len(shape.iter().product()) as usize;
    let data = elements(from, (DType::U8, None), len);
    new_object(shape, packed.format(), vec![("data".into(), data)])
}

/// A few rows of ggml's blocks, of every type.
fn blocks(from: &mut Decisions<'_>) -> NewObject<'static> {
    let block_type = &BLOCK_TYPES[from.below(BLOCK_TYPES.len())];
    let (rows, width) = (from.below(3) as u64, 1 + from.below(2) as u64);
    let shape = vec![rows, width * block_type.block_len()];
    let len = block_type.byte_len(rows * width * block_type.block_len());
    let len = len.expect("whole blocks") as usize;
    let data = elements(from, (DType::U8, None), len);
    new_object(shape, block_type.format(), vec![("data".into(), data)])
}

/// Floating-point values of any bits, split into planes.
fn planes(from: &mut Decisions<'_>) -> NewObject<'static> {
    let kind = from.pick(&[
        (DType::F64, None),
        (DType::F32, None),
        (DType::F16, None),
        (DType::BF16, None),
        (DType::F16, Some("complex32")),
        (DType::F32, Some("complex64")),
        (DType::F64, Some("complex128")),
    ]);
    let shape = shape(from);
    let count = shape.iter().product::<u64>() as usize;
    let dense = Dense::from_elements(shape, elements(from, kind, count));
    let planes = Planes::from_dense(&dense.expect("as many as the shape has"));
    let (planes, coding) = (planes.expect("floats"), from.pick(&CODINGS));
    let mut object = owned(planes.to_object_in(coding).expect("it is sound"));
    // Spelled out, so that no other attribute is taken for it.
    let (dtype, logical_type) = kind;
    let name = logical_type.unwrap_or(dtype.as_str());
    if let Some(attributes) = &mut object.attributes {
        attributes.insert("type", name);
    }
    object
}

/// An unknown format: components of any type and number.
fn unknown(from: &mut Decisions<'_>) -> NewObject<'static> {
    let shape = from.list(4, Decisions::number);
    let roles = names(from, 4).into_iter();
    let components = roles.map(|role| (Text::Owned(role), any_elements(from))).collect();
    new_object(shape, "example.unknown/1", components)
}

/// Up to three dimensions of up to four, now and then of none.
fn shape(from: &mut Decisions<'_>) -> Vec<u64> {
    from.list(4, |from| from.pick(&[1, 2, 3, 4, 1, 2, 3, 4, 0]))
}

/// A dtype, and a logical type over it now and then.
type Kind = (DType, Option<&'static str>);

const LOGICAL: [Kind; 10] = [
    (DType::U8, Some("f8_e4m3fn")),
    (DType::U8, Some("f8_e5m2")),
    (DType::U8, Some("f8_e4m3fnuz")),
    (DType::U8, Some("f8_e5m2fnuz")),
    (DType::U8, Some("f8_e8m0fnu")),
    (DType::F16, Some("complex32")),
    (DType::BF16, Some("bcomplex32")),
    (DType::F32, Some("complex64")),
    (DType::F64, Some("complex128")),
    (DType::U16, Some("example.fixed_point")),
];

fn any_elements(from: &mut Decisions<'_>) -> Elements<'static> {
    let count = from.below(9);
    elements_of_any_type(from, count)
}

fn elements_of_any_type(from: &mut Decisions<'_>, count: usize) -> Elements<'static> {
    let logical = from.maybe(4, |from| from.pick(&LOGICAL));
    let kind = logical.unwrap_or_else(|| (from.pick(&DType::ALL), None));
    elements(from, kind, count)
}

/// `count` values of any bits; of bools, 0 and 1.
fn elements(from: &mut Decisions<'_>, kind: Kind, count: usize) -> Elements<'static> {
    let (dtype, logical_type) = kind;
    let is_complex = logical_type.is_some_and(|name| name.contains("complex"));
    let len = count * dtype.byte_len() * if is_complex { 2 } else { 1 };
    // All ones is a NaN in every float, all zeros compresses.
    let mut bytes = match from.below(6) {
        4 => vec![0xff; len],
        5 => vec![0; len],
        _ => from.bytes(len),
    };
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|byte| *byte &= 1);
    }
    let elements = Elements::new(dtype, Buffer::try_from_slice(&bytes).expect("small"));
    match logical_type {
        Some(name) => elements.with_logical_type(name),
        None => elements,
    }
}

/// A map of attributes, some of whose keys are no text.
pub fn attributes(from: &mut Decisions<'_>) -> Attributes {
    let pairs = from.list(4, |from| {
        let key = from.maybe(6, value).unwrap_or_else(|| Value::from(name(from)));
        (key, value(from))
    });
    map_of(pairs)
}

fn map_of(pairs: Vec<(Value, Value)>) -> Attributes {
    let mut map = Attributes::new();
    for (key, value) in pairs {
        map.insert(key, value);
    }
    map
}

/// Any value, a few levels deep.
pub fn value(from: &mut Decisions<'_>) -> Value {
    value_of_depth(from, 4)
}

fn value_of_depth(from: &mut Decisions<'_>, depth: usize) -> Value {
    let inner = |from: &mut Decisions<'_>| value_of_depth(from, depth - 1);
    // The last three hold others.
    match from.below(if depth == 0 { 10 } else { 13 }) {
        0 => Value::Unsigned(from.number()),
        1 => Value::Negative(from.number()),
        2 => Value::Bytes(from.list(30, Decisions::byte)),
        3 => Value::from(name(from)),
        4 => Value::Bool(from.once_in(2)),
        5 => Value::Null,
        6 => Value::Undefined,
        7 => Value::Simple(match from.byte() {
            // 20 to 23 have a meaning, 24 to 31 do not exist.
            number @ 20..=31 => number + 32,
            number => number,
        }),
        8 => Value::Float(f64::from_bits(from.number().swap_bytes())),
        9 => Value::Float(f32::from_bits((from.number() as u32).swap_bytes()).into()),
        10 => Value::array(from.list(4, inner)),
        11 => Value::Map(map_of(from.list(4, |from| (inner(from), inner(from))))),
        _ => Value::Tag(from.number(), Box::new(inner(from))),
    }
}

fn new_object(
    shape: Vec<u64>,
    format: &'static str,
    components: Vec<(Text, Elements<'static>)>,
) -> NewObject<'static> {
    NewObject {
        shape: Cow::Owned(shape),
        format: Text::Borrowed(format),
        attributes: None,
        components,
    }
}

fn owned(object: NewObject<'_>) -> NewObject<'static> {
    let components = object.components.into_iter();
    let components =
        components.map(|(role, elements)| (role, elements.into_owned().expect("small")));
    NewObject {
        shape: Cow::Owned(object.shape.into_owned()),
        format: object.format,
        attributes: object.attributes,
        components: components.collect(),
    }
}
