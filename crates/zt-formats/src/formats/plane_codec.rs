//! Splits elements into planes of bytes, and merges them again. Spec: formats/zt.planes.
//!
//! Loops run over blocks of fixed length, which the compiler vectorises. They take one plane at a
//! time, so one loop serves any number of planes. A block stays in the first-level cache until all its
//! planes are done.

use zt_manifest::{Attributes, DType, Text};

use crate::base::attribute::{self, missing, other_text};
use crate::base::{
    Buffer, Elements, FormatViolation, Registry, Result, SizeMismatch, dense_byte_len,
};

const DTYPE: &str = "dtype";
const TYPE: &str = "type";

/// The dtypes, for messages.
const FLOATS: &str = "f64, f32, f16 or bf16";

/// The splitting of elements of one type into planes of bytes.
///
/// An element of w bytes is rotated left by one bit: the sign is then last, and the exponent first.
/// It is cut into w bytes, the most significant first. Plane k is byte k of all elements, in their
/// order. For bf16 and f32 plane 0 is exactly the exponent.
///
/// ```
/// use zt_formats::PlaneCodec;
/// use zt_formats::DType;
///
/// let codec = PlaneCodec::new(DType::BF16, None)?;
/// let ones = [0x80, 0x3f, 0x80, 0xbf]; // 1.0 and -1.0
/// let mut planes = [[0; 2]; 2];
/// for (at, plane) in planes.iter_mut().enumerate() {
///     codec.split(at, &ones, plane);
/// }
/// assert_eq!(planes, [[127, 127], [0, 1]]);
/// # Ok::<(), zt_formats::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaneCodec {
    dtype: DType,
    logical_type: Option<Text>,
}

impl PlaneCodec {
    /// The attributes that hold the type.
    pub const ATTRIBUTES: [&'static str; 2] = [DTYPE, TYPE];

    /// The codec for elements of `dtype`, with a logical type if they have one.
    ///
    /// # Errors
    ///
    /// Malformed: the dtype is not f64, f32, f16 or bf16 (`dtype`). FP8 is refused: its single byte
    /// compresses as well whole as cut in two.
    pub fn new(dtype: DType, logical_type: Option<&str>) -> Result<Self> {
        if !dtype.is_float() {
            let (expected, found) = (FLOATS, Some(dtype));
            return Err(FormatViolation::DType { expected, found }.of_object());
        }
        let logical_type = dtype.logical_type(logical_type);
        Ok(PlaneCodec {
            dtype,
            logical_type: logical_type.map(|name| Text::Owned(name.to_owned())),
        })
    }

    /// The codec that an object's attributes describe. Other attributes are permitted.
    ///
    /// # Errors
    ///
    /// Malformed: `dtype` is missing or not one of the four, or `dtype` or `type` is not a text
    /// (`attribute`).
    pub fn from_attributes(attributes: &Attributes) -> Result<Self> {
        let name = attribute::text(attributes, DTYPE)?.ok_or_else(|| missing(DTYPE))?;
        let dtype = DType::from_name(name).filter(|dtype| dtype.is_float());
        let dtype = dtype.ok_or_else(|| other_text(DTYPE, name, FLOATS))?;
        PlaneCodec::new(dtype, attribute::text(attributes, TYPE)?)
    }

    /// The attributes of an object: `dtype`, and `type` if there is a logical type.
    pub fn to_attributes(&self) -> Attributes {
        let mut attributes = Attributes::new();
        attributes.insert(DTYPE, self.dtype.as_str());
        if let Some(name) = &self.logical_type {
            attributes.insert(TYPE, name.as_ref());
        }
        attributes
    }

    /// The bytes of merged elements, with their type.
    pub(super) fn elements(&self, bytes: Buffer) -> Elements<'static> {
        let mut elements = Elements::new(self.dtype, bytes);
        elements.logical_type.clone_from(&self.logical_type);
        elements
    }

    /// The dtype of the elements.
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// Their logical type; `None` if there is none or it only repeats the dtype's name.
    pub fn logical_type(&self) -> Option<&str> {
        self.logical_type.as_deref()
    }

    /// The number of planes, one for each byte of an element: 2, 4 or 8.
    pub const fn plane_count(&self) -> usize {
        self.dtype.byte_len()
    }

    /// The roles of the planes, in order: `plane0`, `plane1`, ...
    pub fn roles(&self) -> &'static [&'static str] {
        const ROLES: [&str; 8] =
            ["plane0", "plane1", "plane2", "plane3", "plane4", "plane5", "plane6", "plane7"];
        ROLES.get(..self.plane_count()).unwrap_or(&ROLES)
    }

    /// The length in bytes of each plane of an object of `shape`; `None` if `registry` does not
    /// know the logical type.
    ///
    /// # Errors
    ///
    /// Malformed: a known logical type has a dtype other than its own (`logical-type`), or the
    /// length is 2^64 or more (`shape-size-mismatch`).
    pub fn plane_len(&self, shape: &[u64], registry: &Registry) -> Result<Option<u64>> {
        let Some(value_len) = registry.value_len(self.dtype, self.logical_type())? else {
            return Ok(None);
        };
        let per_value = value_len.checked_div(self.dtype.byte_len() as u64);
        let len = per_value.and_then(|per_value| dense_byte_len(shape, per_value));
        let overflow = || {
            let shape = shape.to_vec();
            let role = self.roles().first().copied().unwrap_or_default();
            SizeMismatch::Overflow { shape }.of(role)
        };
        len.map(Some).ok_or_else(overflow)
    }

    /// Writes plane number `plane` of little-endian `elements` to `out`: one byte for each whole
    /// element, as many as fit.
    pub fn split(&self, plane: usize, elements: &[u8], out: &mut [u8]) {
        match self.dtype.byte_len() {
            2 => split::<u16, 2>(plane, elements, out),
            4 => split::<u32, 4>(plane, elements, out),
            _ => split::<u64, 8>(plane, elements, out),
        }
    }

    /// Merges all planes, in order, to little-endian elements: as many as every plane has bytes
    /// for, and as fit into `out`.
    pub fn merge(&self, planes: &[&[u8]], out: &mut [u8]) {
        match self.dtype.byte_len() {
            2 => merge::<u16, 2>(planes, out),
            4 => merge::<u32, 4>(planes, out),
            _ => merge::<u64, 8>(planes, out),
        }
    }

    /// As [`PlaneCodec::merge`], of plane 0 in the last bytes of `out`, and the `others` from their byte
    /// `first` on. No value is written over a byte of plane 0 that is still needed.
    pub(super) fn merge_in_place(&self, others: &[&[u8]], first: usize, out: &mut [u8]) {
        /// Elements at a time, whose byte of plane 0 is copied.
        const COPIED: usize = 4096;
        let width = self.plane_count();
        let count = out.len().strict_div(width);
        let of_first = out.len().strict_sub(count);
        let mut copied = [0; COPIED];
        for start in (0..count).step_by(COPIED) {
            let len = COPIED.min(count.strict_sub(start));
            let part = |start: usize| start..start.strict_add(len);
            let copied = copied.get_mut(..len).unwrap_or_default();
            let bytes = out.get(part(of_first.strict_add(start))).unwrap_or_default();
            copied.copy_from_slice(bytes);
            let mut planes = [&*copied; 8];
            for (plane, other) in planes.iter_mut().skip(1).zip(others) {
                *plane = other.get(part(first.strict_add(start))).unwrap_or_default();
            }
            let values = start.strict_mul(width)..start.strict_add(len).strict_mul(width);
            let planes = planes.get(..width).unwrap_or_default();
            self.merge(planes, out.get_mut(values).unwrap_or_default());
        }
    }
}

/// Elements that are processed at a time.
const BLOCK: usize = 128;

/// The bits of an element of `W` bytes.
///
/// Bytes are shifted in and out of halves of at most 32 bits: every vector unit widens and narrows
/// those quickly, and many have no such instruction for 64 bits.
trait Word<const W: usize>: Copy {
    /// A word, or one of the two halves of a long one.
    type Half: Copy + Default;
    /// The number of planes whose bytes make up a half.
    const PLANES: usize;
    /// Half number `half` of the rotated element, the upper one first.
    fn half(element: [u8; W], half: usize) -> Self::Half;
    /// The byte that is `shift` bits above the lowest.
    fn byte(half: Self::Half, shift: u32) -> u8;
    /// The half, shifted left, with `byte` in its lowest bits.
    fn followed_by(half: Self::Half, byte: u8) -> Self::Half;
    /// The element of the two halves, rotated back.
    fn restored(upper: Self::Half, lower: Self::Half) -> [u8; W];
}

macro_rules! short_word {
    ($word:ty, $width:literal) => {
        impl Word<$width> for $word {
            type Half = Self;
            const PLANES: usize = $width;

            #[inline(always)]
            fn half(element: [u8; $width], _: usize) -> Self {
                Self::from_le_bytes(element).rotate_left(1)
            }

            #[inline(always)]
            fn byte(half: Self, shift: u32) -> u8 {
                half.wrapping_shr(shift).to_le_bytes()[0]
            }

            #[inline(always)]
            fn followed_by(half: Self, byte: u8) -> Self {
                half.wrapping_shl(8) | Self::from(byte)
            }

            #[inline(always)]
            fn restored(word: Self, _: Self) -> [u8; $width] {
                word.rotate_right(1).to_le_bytes()
            }
        }
    };
}

short_word!(u16, 2);
short_word!(u32, 4);

impl Word<8> for u64 {
    type Half = u32;
    const PLANES: usize = 4;

    #[inline(always)]
    fn half(element: [u8; 8], half: usize) -> u32 {
        let [b0, b1, b2, b3, b4, b5, b6, b7] = element;
        let (lower, upper) = ([b0, b1, b2, b3], [b4, b5, b6, b7]);
        let (lower, upper) = (u32::from_le_bytes(lower), u32::from_le_bytes(upper));
        if half == 0 {
            upper.wrapping_shl(1) | lower.wrapping_shr(31)
        } else {
            lower.wrapping_shl(1) | upper.wrapping_shr(31)
        }
    }

    #[inline(always)]
    fn byte(half: u32, shift: u32) -> u8 {
        <u32 as Word<4>>::byte(half, shift)
    }

    #[inline(always)]
    fn followed_by(half: u32, byte: u8) -> u32 {
        <u32 as Word<4>>::followed_by(half, byte)
    }

    #[inline(always)]
    fn restored(upper: u32, lower: u32) -> [u8; 8] {
        let word = Self::from(upper).wrapping_shl(32) | Self::from(lower);
        word.rotate_right(1).to_le_bytes()
    }
}

fn split<T: Word<W>, const W: usize>(plane: usize, elements: &[u8], out: &mut [u8]) {
    let half = usize::from(plane >= T::PLANES);
    // 8 bits for each later plane of its half. `PLANES` is a power of two.
    let shift = match T::PLANES.strict_sub(1) & !plane {
        0 => 0,
        1 => 8,
        2 => 16,
        _ => 24,
    };
    let (elements, _) = elements.as_chunks::<W>();
    let len = elements.len().min(out.len());
    let (blocks, rest) = elements.split_at(len).0.as_chunks::<BLOCK>();
    let (out_blocks, out_rest) = out.split_at_mut(len).0.as_chunks_mut::<BLOCK>();
    for (block, out) in blocks.iter().zip(out_blocks) {
        for (element, byte) in block.iter().zip(out) {
            *byte = T::byte(T::half(*element, half), shift);
        }
    }
    for (element, byte) in rest.iter().zip(out_rest) {
        *byte = T::byte(T::half(*element, half), shift);
    }
}

fn merge<T: Word<W>, const W: usize>(planes: &[&[u8]], out: &mut [u8]) {
    let Some(planes) = planes.first_chunk::<W>() else {
        return;
    };
    let (elements, _) = out.as_chunks_mut::<W>();
    let lens = planes.iter().map(|plane| plane.len());
    let len = lens.fold(elements.len(), usize::min);
    let (blocks, rest) = elements.split_at_mut(len).0.as_chunks_mut::<BLOCK>();
    let done = len.strict_sub(rest.len());
    let split = planes.map(|plane| plane.split_at(len).0.split_at(done));
    let mut of_blocks = split.map(|(blocks, _)| blocks.as_chunks::<BLOCK>().0.iter());
    for block in blocks {
        let mut halves = [[T::Half::default(); BLOCK]; 2];
        for (half, planes) in halves.iter_mut().zip(of_blocks.chunks_mut(T::PLANES)) {
            for bytes in planes.iter_mut().filter_map(Iterator::next) {
                for (half, byte) in half.iter_mut().zip(bytes) {
                    *half = T::followed_by(*half, *byte);
                }
            }
        }
        let [upper, lower] = &halves;
        for ((element, upper), lower) in block.iter_mut().zip(upper).zip(lower) {
            *element = T::restored(*upper, *lower);
        }
    }
    let mut of_rest = split.map(|(_, rest)| rest.iter());
    for element in rest {
        let mut halves = [T::Half::default(); 2];
        for (half, planes) in halves.iter_mut().zip(of_rest.chunks_mut(T::PLANES)) {
            for byte in planes.iter_mut().filter_map(Iterator::next) {
                *half = T::followed_by(*half, *byte);
            }
        }
        let [upper, lower] = halves;
        *element = T::restored(upper, lower);
    }
}
