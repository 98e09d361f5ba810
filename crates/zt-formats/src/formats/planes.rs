//! `zt.planes/1` and `zt.planes/2`: floating-point elements split into planes of bytes. Spec:
//! formats/zt.planes and formats/zt.planes-2.

use zt_manifest::memory::in_memory;
use zt_manifest::{DType, Text};

use crate::base::buffer::reserved;
use crate::base::{
    Buffer, Dense, Elements, FormatViolation, HuffmanFault, NewObject, ObjectFormat, Parts,
    ReadParts, Registry, Result, Signature, SizeMismatch, ToObject, View,
};
use crate::formats::huffman::{HuffmanDecoder, HuffmanEncoder};
use crate::formats::plane_codec::PlaneCodec;

const CODES: &str = "codes";
const LENGTHS: &str = "lengths";

/// Bytes of the length of a chunk.
const LENGTH: usize = 4;

const CHUNK: u64 = HuffmanEncoder::CHUNK as u64;

/// How plane 0 is stored. The other planes are components of bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PlaneCoding {
    /// `zt.planes/1`: as the others, in the component `plane0`.
    #[default]
    Plain,
    /// `zt.planes/2`: in chunks of [`HuffmanEncoder`], in the component `codes`. Their lengths are in the
    /// component `lengths`.
    Huffman,
}

impl PlaneCoding {
    /// The manifest's `format`.
    pub const fn format(self) -> &'static str {
        match self {
            PlaneCoding::Plain => Planes::FORMAT,
            PlaneCoding::Huffman => "zt.planes/2",
        }
    }

    /// That of an object of this format; `None` if it has no planes.
    pub fn from_format(format: &str) -> Option<Self> {
        let mut all = [PlaneCoding::Plain, PlaneCoding::Huffman].into_iter();
        all.find(|coding| coding.format() == format)
    }

    /// The roles of a coded plane: its chunks and their lengths.
    pub const CODED: [&'static str; 2] = [CODES, LENGTHS];

    /// The dtype of the component `role`.
    pub fn dtype_of(role: &str) -> DType {
        if role == LENGTHS { DType::U32 } else { DType::U8 }
    }

    /// The length in bytes of the component `lengths` of a coded plane of `count` symbols. Spec:
    /// formats/zt.planes-2.
    pub const fn lengths_len(count: u64) -> u64 {
        // 2^64 elements have 2^46 chunks.
        count.div_ceil(CHUNK).strict_mul(LENGTH as u64)
    }

    /// The roles of all components, in order.
    pub fn roles(self, codec: &PlaneCodec) -> Vec<&'static str> {
        match self {
            PlaneCoding::Plain => codec.roles().to_vec(),
            PlaneCoding::Huffman => Self::CODED.iter().chain(self.planes(codec)).copied().collect(),
        }
    }

    /// The roles of the planes that are components of bytes.
    fn planes(self, codec: &PlaneCodec) -> &'static [&'static str] {
        let coded = usize::from(self == PlaneCoding::Huffman);
        codec.roles().get(coded..).unwrap_or_default()
    }
}

/// The rules of `zt.planes/1` and `zt.planes/2`.
///
/// The attributes `dtype` and `type` are the elements' types; other attributes are permitted. Each
/// byte of an element has a plane, and each plane has a byte for each element. If the registry does
/// not know the logical type, all planes must be as long as the first one that is not coded.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanesFormat(pub PlaneCoding);

impl ObjectFormat for PlanesFormat {
    fn id(&self) -> &str {
        self.0.format()
    }

    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        let codec = PlaneCodec::from_attributes(signature.attributes)?;
        let mut coded = None;
        if self.0 == PlaneCoding::Huffman {
            coded = Some((signature.component(CODES)?, signature.component(LENGTHS)?));
        }
        let mut planes = Vec::with_capacity(codec.plane_count());
        for role in self.0.planes(&codec) {
            planes.push(signature.component(role)?);
        }
        if let Some((codes, lengths)) = coded {
            codes.expect_plain(DType::U8)?;
            lengths.expect_plain(DType::U32)?;
        }
        for plane in &planes {
            plane.expect_plain(DType::U8)?;
        }
        let mut expected = codec.plane_len(signature.shape, registry)?;
        for plane in planes {
            if let Some(expected) = expected {
                plane.expect_bytes(expected)?;
            }
            expected = expected.or(plane.byte_len);
        }
        match coded.zip(expected) {
            Some(((_, lengths), expected)) => {
                lengths.expect_bytes(PlaneCoding::lengths_len(expected))
            }
            None => Ok(()),
        }
    }

    fn data_roles(&self) -> Option<&[&str]> {
        match self.0 {
            PlaneCoding::Plain => Some(&[]),
            PlaneCoding::Huffman => Some(&[CODES, LENGTHS]),
        }
    }

    /// Decodes all chunks. With an unknown logical type, the number of their symbols is unknown, too.
    fn check_data(&self, parts: &Parts<'_>) -> Result<()> {
        let codec = PlaneCodec::from_attributes(&parts.attributes)?;
        let count = codec.plane_len(&parts.shape, &Registry::builtin())?;
        let Some(count) = count.filter(|_| self.0 == PlaneCoding::Huffman) else {
            return Ok(());
        };
        let mut symbols = Buffer::try_zeroed(count.min(CHUNK))?;
        decode_chunks(parts, count, |decoder, chunk, first| {
            let len = in_memory(count.strict_sub(first).min(CHUNK));
            decoder.decode(chunk, symbols.get_mut(..len).unwrap_or_default())
        })
    }

    fn is_of_value(&self, role: &str, signature: &Signature<'_>) -> bool {
        let codec = PlaneCodec::from_attributes(signature.attributes);
        codec.is_ok_and(|codec| self.0.roles(&codec).contains(&role))
    }

    fn dense_type(&self, signature: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        let codec = PlaneCodec::from_attributes(signature.attributes).ok()?;
        let logical_type = codec.logical_type().map(str::to_owned);
        Some((codec.dtype(), logical_type.map(Text::Owned)))
    }

    fn value_type(&self, signature: &Signature<'_>) -> Option<Text> {
        let codec = PlaneCodec::from_attributes(signature.attributes).ok()?;
        let name = codec.logical_type().unwrap_or(codec.dtype().as_str());
        Some(Text::Owned(name.to_owned()))
    }

    fn parameters(&self) -> &[&str] {
        &PlaneCodec::ATTRIBUTES
    }

    fn is_for_compression(&self) -> bool {
        true
    }

    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        if self.0 == PlaneCoding::Plain {
            return Planes::from_parts(parts)?.to_dense();
        }
        Registry::builtin().check(self.id(), &parts.signature())?;
        let codec = PlaneCodec::from_attributes(&parts.attributes)?;
        let plane = self.0.planes(&codec).first().and_then(|role| parts.get(role));
        let count = plane.map_or(0, |plane| plane.bytes.len() as u64);
        let (shape, width) = (parts.shape.to_vec(), codec.plane_count() as u64);
        let mut out = Buffer::try_zeroed_values(count, width)?;
        self.decode_into(parts, &mut out)?;
        Ok(Dense::from_checked(shape, codec.elements(out)))
    }

    fn decode_into(&self, parts: Parts<'_>, out: &mut [u8]) -> Result<()> {
        let codec = PlaneCodec::from_attributes(&parts.attributes)?;
        let mut planes = Vec::with_capacity(codec.plane_count());
        let expected = out.len().strict_div(codec.plane_count());
        for role in self.0.planes(&codec) {
            let plane = &*parts.component(role)?.bytes;
            if plane.len() != expected {
                let (expected, found) = (expected as u64, plane.len() as u64);
                return Err(SizeMismatch::Bytes { expected, found }.of(*role));
            }
            planes.push(plane);
        }
        if self.0 == PlaneCoding::Plain {
            codec.merge(&planes, out);
            return Ok(());
        }
        let mut values = out.chunks_mut(HuffmanEncoder::CHUNK.strict_mul(codec.plane_count()));
        decode_chunks(&parts, expected as u64, |decoder, chunk, first| {
            let values = values.next().unwrap_or_default();
            let count = values.len().strict_div(codec.plane_count());
            // Plane 0 needs no memory of its own.
            let symbols = values.len().strict_sub(count);
            decoder.decode(chunk, values.get_mut(symbols..).unwrap_or_default())?;
            codec.merge_in_place(&planes, in_memory(first), values);
            Ok(())
        })
    }

    fn is_flat(&self) -> bool {
        true
    }

    /// The values of a chunk, if they are whole.
    fn row_unit(&self, signature: &Signature<'_>, registry: &Registry) -> Option<u64> {
        if self.0 == PlaneCoding::Plain {
            return Some(1);
        }
        let codec = PlaneCodec::from_attributes(signature.attributes).ok()?;
        let per_value = codec.plane_len(&[1], registry).ok()??;
        CHUNK.checked_div(per_value).filter(|_| CHUNK.is_multiple_of(per_value))
    }

    fn unit_ends(&self, role: &str, reader: &mut dyn ReadParts<'_>) -> Result<Option<Vec<u64>>> {
        let signature = reader.signature();
        let codec = PlaneCodec::from_attributes(signature.attributes)?;
        let count = codec.plane_len(signature.shape, reader.registry())?;
        let Some(count) = count.filter(|_| self.0 != PlaneCoding::Plain) else {
            return Ok(None);
        };
        match role {
            LENGTHS => {
                let ends = (1..=count.div_ceil(CHUNK)).map(|chunk| chunk.strict_mul(LENGTH as u64));
                Ok(Some(ends.collect()))
            }
            CODES => {
                let lengths = reader.elements(LENGTHS, 0..PlaneCoding::lengths_len(count))?;
                chunk_ends(&lengths.bytes, count, reader.byte_len(CODES)?).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn expected_len(
        &self,
        role: &str,
        signature: &Signature<'_>,
        registry: &Registry,
    ) -> Option<u64> {
        let codec = PlaneCodec::from_attributes(signature.attributes).ok()?;
        let count = codec.plane_len(signature.shape, registry).ok()??;
        if self.0 == PlaneCoding::Huffman && role == LENGTHS {
            return Some(PlaneCoding::lengths_len(count));
        }
        self.0.planes(&codec).contains(&role).then_some(count)
    }
}

/// Where each chunk of `count` symbols ends in the codes, which have `codes_len` bytes.
fn chunk_ends(lengths: &[u8], count: u64, codes_len: u64) -> Result<Vec<u64>> {
    let (expected, found) = (PlaneCoding::lengths_len(count), lengths.len() as u64);
    if found != expected {
        return Err(SizeMismatch::Bytes { expected, found }.of(LENGTHS));
    }
    let (mut end, mut left) = (0u64, count);
    let end_of = |len: &[u8; LENGTH]| {
        let (len, symbols) = (u64::from(u32::from_le_bytes(*len)), left.min(CHUNK));
        if !(2..=symbols.strict_add(1)).contains(&len) {
            return Err(FormatViolation::Huffman(HuffmanFault::Length).of(LENGTHS));
        }
        left = left.strict_sub(symbols);
        end = end.strict_add(len); // At most 2^18 + 1 a chunk.
        Ok(end)
    };
    let ends = lengths.as_chunks().0.iter().map(end_of).collect::<Result<Vec<_>>>()?;
    let (expected, found) = (ends.last().copied().unwrap_or_default(), codes_len);
    if found != expected {
        return Err(SizeMismatch::Bytes { expected, found }.of(CODES));
    }
    Ok(ends)
}

/// Calls `decode` with each chunk of `count` symbols, and the number of the first symbol.
fn decode_chunks(
    parts: &Parts<'_>,
    count: u64,
    mut decode: impl FnMut(&mut HuffmanDecoder, &[u8], u64) -> Result<(), HuffmanFault>,
) -> Result<()> {
    let codes = &*parts.component(CODES)?.bytes;
    let ends = chunk_ends(&parts.component(LENGTHS)?.bytes, count, codes.len() as u64)?;
    let mut decoder = HuffmanDecoder::new();
    let mut start = 0;
    for (end, first) in ends.into_iter().zip((0u64..).step_by(HuffmanEncoder::CHUNK)) {
        let chunk = codes.get(start..in_memory(end)).unwrap_or_default();
        let decoded = decode(&mut decoder, chunk, first);
        decoded.map_err(|fault| FormatViolation::Huffman(fault).of(CODES))?;
        start = in_memory(end);
    }
    Ok(())
}

/// An array of floating-point elements, split into planes of bytes: the same bits in an order that
/// compresses better. [`PlaneCodec`] defines the order. As a view, it is of `zt.planes/1`.
///
/// Always well-formed: each byte of an element has a plane, and all planes have the same length.
///
/// ```
/// use zt_formats::{Dense, Planes};
///
/// let dense = Dense::from_slice(&[2, 2], &[1.0f32, -1.0, 0.5, f32::NAN])?;
/// let planes = Planes::from_dense(&dense)?;
/// assert_eq!(planes.plane(0), Some(&[127, 127, 126, 255][..])); // the exponents
/// assert_eq!(planes.to_dense()?, dense);
/// # Ok::<(), zt_formats::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Planes<'a> {
    shape: Vec<u64>,
    codec: PlaneCodec,
    /// One for each byte of an element, all of the same length.
    planes: Vec<Elements<'a>>,
}

impl Planes<'_> {
    /// Splits an array into planes. Copies its bytes.
    ///
    /// # Errors
    ///
    /// Malformed: its elements are not f64, f32, f16 or bf16 (`dtype`). Allocation.
    pub fn from_dense(dense: &Dense<'_>) -> Result<Planes<'static>> {
        let elements = dense.elements();
        let codec = PlaneCodec::new(elements.dtype, elements.logical_type())?;
        let mut planes = Vec::with_capacity(codec.plane_count());
        for at in 0..codec.plane_count() {
            let mut plane = Buffer::try_zeroed(elements.element_count())?;
            codec.split(at, &elements.bytes, &mut plane);
            planes.push(Elements::new(DType::U8, plane));
        }
        Ok(Planes { shape: dense.shape().to_vec(), codec, planes })
    }

    /// The dimensions.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The type of the elements, which determines how they are split.
    pub const fn codec(&self) -> &PlaneCodec {
        &self.codec
    }

    /// Plane number `at`: byte `at` of every element, counted from the exponent.
    pub fn plane(&self, at: usize) -> Option<&[u8]> {
        self.planes.get(at).map(|plane| &*plane.bytes)
    }

    /// The elements, merged again.
    ///
    /// # Errors
    ///
    /// Allocation.
    pub fn to_dense(&self) -> Result<Dense<'static>> {
        let planes: Vec<&[u8]> = self.planes.iter().map(|plane| &*plane.bytes).collect();
        let count = planes.first().map_or(0, |plane| plane.len() as u64);
        let width = self.codec.plane_count() as u64;
        let mut out = Buffer::try_zeroed_values(count, width)?;
        self.codec.merge(&planes, &mut out);
        Ok(Dense::from_checked(self.shape.clone(), self.codec.elements(out)))
    }

    /// The object, with plane 0 in this coding.
    ///
    /// # Errors
    ///
    /// Allocation.
    pub fn to_object_in(&self, coding: PlaneCoding) -> Result<NewObject<'_>> {
        let mut components = Vec::with_capacity(self.planes.len().strict_add(1));
        let roles = self.codec.roles().iter().copied();
        let mut planes = roles.zip(self.planes.iter().map(Elements::borrow));
        if coding == PlaneCoding::Huffman
            && let Some((_, first)) = planes.next()
        {
            let (len, mut encoder) = (first.bytes.len(), HuffmanEncoder::new()?);
            let chunks = len.div_ceil(HuffmanEncoder::CHUNK);
            let mut codes = reserved(len.strict_add(chunks))?;
            let mut lengths = reserved(chunks.strict_mul(LENGTH))?;
            for symbols in first.bytes.chunks(HuffmanEncoder::CHUNK) {
                lengths.extend(encoder.encode(symbols, &mut codes).to_le_bytes());
            }
            components.push((CODES, Elements::new(DType::U8, codes)));
            components.push((LENGTHS, Elements::new(DType::U32, lengths)));
        }
        components.extend(planes);
        let attributes = Some(self.codec.to_attributes());
        Ok(NewObject::new(&self.shape, coding.format(), attributes, components))
    }
}

impl<'a> View<'a> for Planes<'a> {
    const FORMAT: &'static str = "zt.planes/1";

    fn from_parts(mut parts: Parts<'a>) -> Result<Self> {
        Registry::builtin().check(Self::FORMAT, &parts.signature())?;
        let codec = PlaneCodec::from_attributes(&parts.attributes)?;
        let mut planes = Vec::with_capacity(codec.plane_count());
        for role in codec.roles() {
            planes.push(parts.take(role)?);
        }
        Ok(Planes { shape: parts.shape.into_owned(), codec, planes })
    }
}

impl ToObject for Planes<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        self.to_object_in(PlaneCoding::Plain)
    }
}
