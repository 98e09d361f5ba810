//! What the pages of `spec/formats/` ask of an object.

use std::collections::BTreeMap;

use super::cbor::Item;
use super::component::Component;
use super::huffman::decode as decode_chunk;
use super::object::Object;
use super::types;

/// The product of a shape (§8); `None` where it is no number of 64 bits.
fn product(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent))
}

/// `None` where the object breaks a rule that its metadata alone decides.
pub(super) fn check(object: &Object) -> Option<()> {
    match object.format.as_str() {
        "dense" => dense(object),
        "sparse_csr" => csr(object),
        "sparse_coo" => coo(object),
        "quantized_group" => quantized_group(object),
        "quantized_4bit" => quantized_4bit(object),
        "zt.planes/1" => planes(object, 0),
        "zt.planes/2" => coded_planes(object),
        "zt.delta/1" => delta(object),
        "zt.quantized/1" => quantized_weight(object),
        format => match (block_type(format), packed_bits(format)) {
            (Some((values, bytes)), _) => blocks(object, values, bytes),
            (None, Some(bits)) => packed(object, bits),
            (None, None) => Some(()),
        },
    }
}

/// The decoded length that a component must have by the metadata, where its manifest states none.
pub(super) fn demanded_len(object: &Object, role: &str) -> Option<u64> {
    let component = object.components.get(role)?;
    let other = |role: &str| object.components.get(role);
    let rank = object.shape.len() as u64;
    let count = match (object.format.as_str(), role) {
        ("dense", "data") => product(&object.shape)?,
        ("sparse_csr", "indptr") => object.shape.first()?.checked_add(1)?,
        ("sparse_csr", "indices") => other("values")?.count()?,
        ("sparse_csr", "values") => index_count(other("indices")?)?,
        ("sparse_coo", "coords") => other("values")?.count()?.checked_mul(rank)?,
        ("sparse_coo", "values") => index_count(other("coords")?)?.checked_div(rank)?,
        ("quantized_group", "packed_weight" | "scales" | "zeros") => {
            let known = ["packed_weight", "scales", "zeros"].map(other);
            if known.into_iter().flatten().any(is_unknown) {
                return None;
            }
            let packing = Packing::of(object)?;
            let per_value =
                if role == "packed_weight" { packing.per_word } else { packing.group_size };
            product(&object.shape)?.div_ceil(per_value)
        }
        ("quantized_4bit", "data") => return Some(product(&object.shape)?.div_ceil(2)),
        ("quantized_4bit", "scale" | "zero_point") => object.shape.first().copied().unwrap_or(1),
        ("zt.planes/1", _) => return plane_len(object, role),
        ("zt.planes/2", "lengths") => return Some(4 * planes_of(object)?.1?.div_ceil(CHUNK)),
        ("zt.planes/2", role) if role != "plane0" => return plane_len(object, role),
        (format, "data") => {
            return match packed_bits(format) {
                Some(bits) => packed_len(object, bits),
                None => block_bytes(object, block_type(format)?),
            };
        }
        _ => return None,
    };
    let unit = match (object.format.as_str(), role) {
        // Indices are elements, also where an unknown logical type lies over them.
        ("sparse_csr", "indices" | "indptr") | ("sparse_coo", "coords") => {
            types::width(component.dtype.as_deref()?)?
        }
        _ => component.value_len()?,
    };
    count.checked_mul(unit)
}

/// Whether the values of a component are so many, as far as anybody knows.
fn has(component: &Component, count: u64) -> Option<()> {
    let (Some(found), Some(unit)) = (component.decoded_len(), component.value_len()) else {
        return Some(());
    };
    (count.checked_mul(unit)? == found).then_some(())
}

fn dense(object: &Object) -> Option<()> {
    let data = object.components.get("data")?;
    if data.value_len().is_some() {
        has(data, product(&object.shape)?)?;
    }
    Some(())
}

/// Has an integer dtype and no logical type that is known.
fn is_index(component: &Component) -> Option<()> {
    let is_integer = component.dtype.as_deref().is_some_and(types::is_integer);
    let is_known = component.logical.as_deref().is_some_and(|name| types::logical(name).is_some());
    (is_integer && !is_known).then_some(())
}

fn csr(object: &Object) -> Option<()> {
    let [rows, _] = object.shape[..] else {
        return None;
    };
    let [values, indices, indptr] =
        ["values", "indices", "indptr"].map(|role| object.components.get(role));
    let (values, indices, indptr) = (values?, indices?, indptr?);
    is_index(indices)?;
    is_index(indptr)?;
    has(indptr, rows.checked_add(1)?)?;
    match (values.count(), index_count(indices)) {
        (Some(values), Some(indices)) => (values == indices).then_some(()),
        _ => Some(()),
    }
}

/// Indices are elements of their dtype, also where an unknown logical type lies over it.
fn index_count(component: &Component) -> Option<u64> {
    let width = component.dtype.as_deref().and_then(types::width)?;
    Some(component.decoded_len()? / width)
}

fn coo(object: &Object) -> Option<()> {
    let rank = object.shape.len() as u64;
    let [values, coords] = ["values", "coords"].map(|role| object.components.get(role));
    let (values, coords) = (values?, coords?);
    is_index(coords)?;
    let Some(found) = index_count(coords) else {
        return Some(());
    };
    match values.count() {
        Some(stored) => (rank.checked_mul(stored)? == found).then_some(()),
        None if rank == 0 => (found == 0).then_some(()),
        None => found.is_multiple_of(rank).then_some(()),
    }
}

fn attribute<'o>(object: &'o Object, key: &str) -> Option<&'o Item> {
    let is_key = |name: &Item| name.as_text() == Some(key);
    let found = object.attributes.iter().find(|(name, _)| is_key(name));
    found.map(|(_, value)| value)
}

/// Scales: floats, FP8 among them; zeros also integers.
fn is_scale(component: &Component, or_integer: bool) -> Option<()> {
    let dtype = component.dtype.as_deref()?;
    let is_right = match component.logical.as_deref() {
        None => types::is_float(dtype) || or_integer && types::is_integer(dtype),
        Some(name) => types::is_fp8(name),
    };
    is_right.then_some(())
}

fn is_unknown(component: &Component) -> bool {
    component.logical.as_deref().is_some_and(|name| types::logical(name).is_none())
}

/// What the attributes of a quantized object say.
struct Packing {
    per_word: u64,
    dtype: String,
    group_size: u64,
}

impl Packing {
    fn of(object: &Object) -> Option<Packing> {
        let count = product(&object.shape)?;
        let bits = attribute(object, "bits")?.as_unsigned()?;
        let group_size = match attribute(object, "group_size")? {
            // -1: a row.
            Item::Negative(0) => object.shape.last().map_or(1, |row| (*row).max(1)),
            size => size.as_unsigned()?,
        };
        let packing = attribute(object, "packing")?.as_text()?;
        let (per_word, dtype) = packing.split_once("_per_")?;
        let is_digit = |byte: u8| byte.is_ascii_digit();
        let is_plain = !per_word.starts_with('0') && per_word.bytes().all(is_digit);
        let per_word: u64 = per_word.parse().ok()?;
        let width = 8 * types::width(dtype).filter(|_| types::is_integer(dtype))?;
        let is_bool = |item: &Item| matches!(item, Item::Simple(20 | 21));
        let is_kind = |item: &Item| matches!(item.as_text(), Some("subtractive" | "additive"));
        let is_right = (1..=32).contains(&bits)
            && (1..=count.max(0x7fff_ffff)).contains(&group_size)
            && is_plain
            && (1..=width / bits).contains(&per_word)
            && attribute(object, "signed").is_none_or(is_bool)
            && attribute(object, "zero_kind").is_none_or(is_kind);
        is_right.then(|| Packing { per_word, dtype: dtype.to_owned(), group_size })
    }
}

fn quantized_group(object: &Object) -> Option<()> {
    let words = object.components.get("packed_weight")?;
    let scales = object.components.get("scales")?;
    let zeros = object.components.get("zeros");
    let count = product(&object.shape)?;
    let packing = Packing::of(object)?;
    if [Some(words), Some(scales), zeros].into_iter().flatten().any(is_unknown) {
        return Some(());
    }
    if words.dtype.as_deref() != Some(&*packing.dtype) || words.logical.is_some() {
        return None;
    }
    has(words, count.div_ceil(packing.per_word))?;
    let groups = count.div_ceil(packing.group_size);
    is_scale(scales, false)?;
    has(scales, groups)?;
    let Some(zeros) = zeros else {
        return Some(());
    };
    is_scale(zeros, true)?;
    has(zeros, groups)
}

fn quantized_4bit(object: &Object) -> Option<()> {
    let [data, scale, zero_point] =
        ["data", "scale", "zero_point"].map(|role| object.components.get(role));
    let (data, scale, zero_point) = (data?, scale?, zero_point?);
    let rows = object.shape.first().copied().unwrap_or(1);
    if !matches!(data.dtype.as_deref(), Some("u8" | "i8")) {
        return None;
    }
    let len = product(&object.shape)?.div_ceil(2);
    if data.decoded_len().is_some_and(|found| found != len) {
        return None;
    }
    for (component, or_integer) in [(scale, false), (zero_point, true)] {
        if component.dtype.is_some() && !is_unknown(component) {
            is_scale(component, or_integer)?;
            has(component, rows)?;
        }
    }
    Some(())
}

/// How many planes there are, and their length where the type in the attributes is known.
fn planes_of(object: &Object) -> Option<(u64, Option<u64>)> {
    let dtype = attribute(object, "dtype")?.as_text()?;
    let logical = match attribute(object, "type") {
        None => None,
        Some(item) => Some(item.as_text()?).filter(|name| *name != dtype),
    };
    let per_value = match logical.map(types::logical) {
        None => Some(1),
        Some(None) => None,
        Some(Some((stored, per_value))) if stored == dtype => Some(per_value),
        Some(Some(_)) => return None,
    };
    let width = types::width(dtype).filter(|_| types::is_float(dtype))?;
    let Some(per_value) = per_value else {
        return Some((width, None));
    };
    let len = product(&object.shape)?.checked_mul(per_value)?;
    Some((width, Some(len)))
}

fn plane_len(object: &Object, role: &str) -> Option<u64> {
    let (count, len) = planes_of(object)?;
    let is_plane = (0..count).any(|at| role == format!("plane{at}"));
    len.filter(|_| is_plane)
}

fn planes(object: &Object, first: u64) -> Option<()> {
    let (count, len) = planes_of(object)?;
    let roles = (first..count).map(|at| object.components.get(&format!("plane{at}")));
    let planes = roles.collect::<Option<Vec<_>>>()?;
    let len = len.or(planes[0].decoded_len());
    planes.into_iter().try_for_each(|plane| {
        let is_bytes = plane.dtype.as_deref() == Some("u8") && plane.logical.is_none();
        let is_right = len.is_none_or(|len| plane.decoded_len().is_none_or(|found| found == len));
        (is_bytes && is_right).then_some(())
    })
}

/// Symbols of a chunk.
const CHUNK: u64 = 1 << 18;

fn coded_planes(object: &Object) -> Option<()> {
    let plain = |role: &str, dtype: &str| {
        let component = object.components.get(role)?;
        let is_plain = component.dtype.as_deref() == Some(dtype) && component.logical.is_none();
        is_plain.then_some(component)
    };
    plain("codes", "u8")?;
    let lengths = plain("lengths", "u32")?.decoded_len();
    planes(object, 1)?;
    let count = planes_of(object)?.1.or(object.components["plane1"].decoded_len());
    let is_right = count.zip(lengths).is_none_or(|(count, len)| len == 4 * count.div_ceil(CHUNK));
    is_right.then_some(())
}

/// Every chunk decodes, if the number of elements is known.
fn coded_contents(
    object: &Object,
    numbers: impl Fn(&str) -> Option<Vec<i128>>,
    codes: &[u8],
) -> Option<()> {
    let Some(mut left) = planes_of(object)?.1 else {
        return Some(());
    };
    let mut codes = codes;
    for len in numbers("lengths")? {
        let symbols = left.min(CHUNK);
        if len < 2 || len > i128::from(symbols) + 1 {
            return None;
        }
        let (chunk, behind) = codes.split_at_checked(len as usize)?;
        decode_chunk(chunk, symbols as usize)?;
        (codes, left) = (behind, left - symbols);
    }
    (codes.is_empty() && left == 0).then_some(())
}

/// Each component is a tensor of a checkpoint, of the shape that is noted.
fn quantized_weight(object: &Object) -> Option<()> {
    object.components.get("codes")?;
    product(&object.shape)?;
    attribute(object, "value")?.as_map()?;
    let mut shapes = BTreeMap::new();
    for (role, part) in attribute(object, "parts")?.as_map()? {
        let part = part.as_map()?;
        let field = |key: &str| {
            let mut pairs = part.iter();
            pairs.find_map(|(name, value)| (name.as_text() == Some(key)).then_some(value))
        };
        field("name")?.as_text()?;
        if let Some(attributes) = field("attributes") {
            attributes.as_map()?;
        }
        let shape = field("shape")?.as_array()?.iter().map(Item::as_unsigned);
        shapes.insert(role.as_text()?, shape.collect::<Option<Vec<u64>>>()?);
    }
    object.components.iter().try_for_each(|(role, component)| {
        let count = product(shapes.get(role.as_str())?)?;
        if is_unknown(component) { Some(()) } else { has(component, count) }
    })
}

/// Attributes of the right types, and a sum for each component, which is bytes.
fn delta(object: &Object) -> Option<()> {
    if let Some(base) = attribute(object, "base") {
        base.as_text()?;
    }
    if let Some(attributes) = attribute(object, "attributes") {
        attributes.as_map()?;
    }
    let sums = match attribute(object, "sha256") {
        Some(sums) => sums.as_map()?,
        None => &[],
    };
    for (role, sum) in sums {
        let is_sum = matches!(sum, Item::Bytes(sum) if sum.len() == 32);
        let has_component = object.components.contains_key(role.as_text()?);
        (is_sum && has_component).then_some(())?;
    }
    object.components.iter().try_for_each(|(role, component)| {
        let is_bytes = component.dtype.as_deref() == Some("u8") && component.logical.is_none();
        let has_sum = sums.iter().any(|(key, _)| key.as_text() == Some(role));
        (is_bytes && has_sum).then_some(())
    })
}

/// The bits of a value of less than a byte.
fn packed_bits(format: &str) -> Option<u128> {
    Some(match format.strip_prefix("zt.")?.strip_suffix("/1")? {
        "f6_e2m3fn" | "f6_e3m2fn" => 6,
        "f4_e2m1fn" | "i4" | "u4" => 4,
        "i2" | "u2" => 2,
        _ => return None,
    })
}

fn packed_len(object: &Object, bits: u128) -> Option<u64> {
    let byte_len = (u128::from(product(&object.shape)?) * bits).div_ceil(8);
    u64::try_from(byte_len).ok()
}

fn packed(object: &Object, bits: u128) -> Option<()> {
    let data = object.components.get("data")?;
    let is_bytes = data.dtype.as_deref() == Some("u8") && data.logical.is_none();
    let len = packed_len(object, bits)?;
    let is_right = data.decoded_len().is_none_or(|found| found == len);
    (is_bytes && is_right).then_some(())
}

/// Values and bytes of a block.
fn block_type(format: &str) -> Option<(u64, u64)> {
    let name = format.strip_prefix("gguf.")?.strip_suffix("/1")?;
    Some(match name {
        "q4_0" | "iq4_nl" => (32, 18),
        "q4_1" => (32, 20),
        "q5_0" => (32, 22),
        "q5_1" => (32, 24),
        "q8_0" => (32, 34),
        "q8_1" => (32, 36),
        "q2_k" => (256, 84),
        "q3_k" | "iq3_s" => (256, 110),
        "q4_k" => (256, 144),
        "q5_k" => (256, 176),
        "q6_k" => (256, 210),
        "q8_k" => (256, 292),
        "iq2_xxs" | "tq2_0" => (256, 66),
        "iq2_xs" => (256, 74),
        "iq3_xxs" => (256, 98),
        "iq1_s" => (256, 50),
        "iq2_s" => (256, 82),
        "iq4_xs" => (256, 136),
        "iq1_m" => (256, 56),
        "tq1_0" => (256, 54),
        "mxfp4" => (32, 17),
        "nvfp4" => (64, 36),
        "q1_0" => (128, 18),
        "q2_0" => (64, 18),
        _ => return None,
    })
}

fn blocks(object: &Object, values: u64, bytes: u64) -> Option<()> {
    let data = object.components.get("data")?;
    if data.dtype.as_deref() != Some("u8") || data.logical.is_some() {
        return None;
    }
    let is_order = |item: &Item| matches!(item.as_text(), Some("little" | "big"));
    if !attribute(object, "byte_order").is_none_or(is_order) {
        return None;
    }
    let len = block_bytes(object, (values, bytes))?;
    let is_right = data.decoded_len().is_none_or(|found| found == len);
    is_right.then_some(())
}

/// The bytes of whole rows of blocks.
fn block_bytes(object: &Object, (values, bytes): (u64, u64)) -> Option<u64> {
    let last = object.shape.last().copied().unwrap_or(1);
    let len = (product(&object.shape)? / values).checked_mul(bytes)?;
    last.is_multiple_of(values).then_some(len)
}

/// Whether all components can be had, and their contents keep the rules.
pub(super) fn contents_are_sound(
    object: &Object,
    contents: &BTreeMap<String, Option<Vec<u8>>>,
) -> bool {
    let is_had = |(role, content): (&String, &Option<Vec<u8>>)| {
        let component = &object.components[role];
        let is_bool = component.dtype.as_deref() == Some("bool");
        let is_truth = |byte: &u8| *byte <= 1;
        content.as_ref().is_some_and(|content| {
            let is_whole = (content.len() as u64).is_multiple_of(component.unit());
            is_whole && (!is_bool || content.iter().all(is_truth))
        })
    };
    if !contents.iter().all(is_had) {
        return false;
    }
    let numbers = |role: &str| {
        let dtype = object.components.get(role)?.dtype.as_deref()?;
        Some(integers(dtype, contents.get(role)?.as_deref()?))
    };
    let len = |role: &str| contents.get(role)?.as_ref().map(|content| content.len() as u64);
    let sound = match object.format.as_str() {
        "sparse_csr" => csr_contents(object, numbers, len("values")),
        "sparse_coo" => coo_contents(object, numbers, len("values")),
        "zt.planes/2" => sizes(object, contents).and_then(|()| {
            let codes = contents.get("codes")?.as_deref()?;
            coded_contents(object, numbers, codes)
        }),
        _ => sizes(object, contents),
    };
    sound.is_some()
}

/// Lengths that only decoding tells are held against the page, as stated ones are.
fn sizes(object: &Object, contents: &BTreeMap<String, Option<Vec<u8>>>) -> Option<()> {
    let mut stated = object.clone();
    for (role, component) in &mut stated.components {
        let content = contents.get(role)?.as_ref()?;
        component.is_zstd = false;
        component.length = content.len() as u64;
    }
    check(&stated)
}

/// Little-endian integers of any of the eight types.
fn integers(dtype: &str, bytes: &[u8]) -> Vec<i128> {
    let width = types::width(dtype).unwrap_or(1) as usize;
    let number = |bytes: &[u8]| {
        let unsigned = bytes.iter().rev().fold(0i128, |sum, byte| sum << 8 | i128::from(*byte));
        let bits = 8 * width;
        match dtype.starts_with('i') && unsigned >> (bits - 1) == 1 {
            true => unsigned - (1 << bits),
            false => unsigned,
        }
    };
    bytes.chunks_exact(width).map(number).collect()
}

fn csr_contents(
    object: &Object,
    numbers: impl Fn(&str) -> Option<Vec<i128>>,
    values: Option<u64>,
) -> Option<()> {
    let [rows, columns] = object.shape[..] else {
        return None;
    };
    let (indices, indptr) = (numbers("indices")?, numbers("indptr")?);
    let is_as_many = match object.components["values"].value_len() {
        Some(unit) => values? / unit == indices.len() as u64,
        None => true,
    };
    let is_sound = is_as_many
        && indptr.len() as u64 == rows + 1
        && indptr[0] == 0
        && indptr.is_sorted()
        && indptr.last() == Some(&(indices.len() as i128))
        && indices.iter().all(|index| (0..i128::from(columns)).contains(index));
    is_sound.then_some(())
}

fn coo_contents(
    object: &Object,
    numbers: impl Fn(&str) -> Option<Vec<i128>>,
    values: Option<u64>,
) -> Option<()> {
    let coords = numbers("coords")?;
    let rank = object.shape.len();
    let stored = match object.components["values"].value_len() {
        Some(unit) => (values? / unit) as usize,
        None => coords.len().checked_div(rank).unwrap_or(0),
    };
    if rank.checked_mul(stored)? != coords.len() {
        return None;
    }
    let mut along = coords.chunks(stored.max(1)).zip(&object.shape);
    let is_sound = along.all(|(places, extent)| {
        places.iter().all(|place| (0..i128::from(*extent)).contains(place))
    });
    is_sound.then_some(())
}
