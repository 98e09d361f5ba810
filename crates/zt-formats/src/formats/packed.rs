//! `zt.<type>/1`: arrays of values of less than a byte. Spec: formats/packed.

use std::borrow::Cow;

use zt_manifest::memory::in_memory;
use zt_manifest::{Attributes, DType, Text};

use crate::base::{
    Buffer, Bytes, Dense, Elements, NewObject, ObjectFormat, Parts, Places, ReadParts, Registry,
    Result, Run, Selection, Signature, ToObject, element_count,
};
use crate::formats::packed_type::{GROUP_LEN, PackedType};

const DATA: &str = "data";

/// The rules of the format of one [`PackedType`]: `data` is `u8`, and has the bytes that the values of
/// the shape fill. There are no attributes.
#[derive(Debug, Clone, Copy)]
pub struct PackedFormat(pub PackedType);

impl ObjectFormat for PackedFormat {
    fn id(&self) -> &str {
        self.0.format()
    }

    fn check(&self, signature: &Signature<'_>, _: &Registry) -> Result<()> {
        let data = signature.component(DATA)?;
        data.expect_plain(DType::U8)?;
        data.expect_bytes(self.0.byte_len(signature.element_count(DATA)?))
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[])
    }

    fn is_of_value(&self, role: &str, _: &Signature<'_>) -> bool {
        role == DATA
    }

    fn dense_type(&self, _: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        Some((self.0.dtype(), None))
    }

    fn value_type(&self, _: &Signature<'_>) -> Option<Text> {
        Some(Text::Borrowed(self.0.name()))
    }

    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        Packed::from_parts(self.0, parts)?.to_dense()
    }

    fn decode_into(&self, parts: Parts<'_>, out: &mut [u8]) -> Result<()> {
        let packed = Packed::from_parts(self.0, parts)?;
        self.0.unpack(&packed.bytes, 0, out);
        Ok(())
    }

    fn is_flat(&self) -> bool {
        true
    }

    fn row_unit(&self, _: &Signature<'_>, _: &Registry) -> Option<u64> {
        Some(GROUP_LEN as u64)
    }

    /// Reads the bytes that the values are in: neighbours at once, others one by one.
    fn slice(
        &self,
        places: &[Places],
        reader: &mut dyn ReadParts<'_>,
    ) -> Result<Option<Dense<'static>>> {
        const GROUP: u64 = GROUP_LEN as u64;
        let selection = Selection::of(places)?;
        let width = self.0.dtype().byte_len() as u64;
        let mut out = Buffer::try_zeroed_values(selection.element_count(), width)?;
        let (mut rest, mut packed) = (&mut out[..], Buffer::default());
        for (first, count) in selection.runs().flat_map(neighbours) {
            // The first value may begin within a byte, and its group does not.
            let skipped = first % GROUP;
            let start = self.0.byte_len(first.strict_sub(skipped));
            let byte_len = self.0.byte_len(skipped.strict_add(count));
            if (packed.len() as u64) < byte_len {
                // Enough for all runs, which have as many values.
                packed = Buffer::try_zeroed(self.0.byte_len(count.strict_add(GROUP)))?;
            }
            let packed = packed.get_mut(..in_memory(byte_len)).unwrap_or_default();
            let values = rest.split_off_mut(..in_memory(count.strict_mul(width)));
            reader.copy(DATA, start, packed)?;
            self.0.unpack(packed, in_memory(skipped), values.unwrap_or_default());
        }
        let elements = Elements::new(self.0.dtype(), out);
        Dense::from_elements(selection.shape(), elements).map(Some)
    }

    fn expected_len(&self, role: &str, signature: &Signature<'_>, _: &Registry) -> Option<u64> {
        let count = element_count(signature.shape).filter(|_| role == DATA)?;
        Some(self.0.byte_len(count))
    }
}

/// An array of values of one [`PackedType`]. Always well-formed.
///
/// ```
/// use zt_formats::{Packed, PackedType};
///
/// // The lower half of a byte comes first, and the last half is unused.
/// let packed = Packed::new(PackedType::F4E2M1Fn, [3], &[0x21, 0x0f][..])?;
/// assert_eq!(*packed.to_dense()?.as_slice::<f32>()?, [0.5, 1.0, -6.0]);
/// # Ok::<(), zt_formats::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Packed<'a> {
    packed_type: PackedType,
    shape: Vec<u64>,
    count: u64,
    bytes: Bytes<'a>,
}

impl<'a> Packed<'a> {
    /// An array of `shape` in these bytes.
    ///
    /// # Errors
    ///
    /// Malformed: their number does not fit the shape (`shape-size-mismatch`).
    pub fn new(
        packed_type: PackedType,
        shape: impl Into<Vec<u64>>,
        bytes: impl Into<Bytes<'a>>,
    ) -> Result<Self> {
        let elements = Elements::new(DType::U8, bytes);
        let parts = Parts {
            shape: Cow::Owned(shape.into()),
            attributes: Cow::Owned(Attributes::new()),
            elements: vec![(Text::Borrowed(DATA), elements)],
        };
        Self::from_parts(packed_type, parts)
    }

    /// The view of an object of this type's format. Bytes stay borrowed.
    ///
    /// # Errors
    ///
    /// Malformed: a rule of [`PackedFormat`].
    pub fn from_parts(packed_type: PackedType, mut parts: Parts<'a>) -> Result<Self> {
        PackedFormat(packed_type).check(&parts.signature(), &Registry::empty())?;
        Ok(Packed {
            packed_type,
            count: parts.signature().element_count(DATA)?,
            bytes: parts.take(DATA)?.bytes,
            shape: parts.shape.into_owned(),
        })
    }

    /// The type of the values.
    pub const fn packed_type(&self) -> PackedType {
        self.packed_type
    }

    /// The dimensions, slowest first.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The packed values.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The values as f32, i8 or u8, exactly.
    ///
    /// # Errors
    ///
    /// Allocation.
    pub fn to_dense(&self) -> Result<Dense<'static>> {
        let dtype = self.packed_type.dtype();
        let mut out = Buffer::try_zeroed_values(self.count, dtype.byte_len() as u64)?;
        self.packed_type.unpack(&self.bytes, 0, &mut out);
        Dense::from_elements(self.shape.clone(), Elements::new(dtype, out))
    }
}

impl ToObject for Packed<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let elements = Elements::new(DType::U8, Bytes::Borrowed(&self.bytes));
        let format = self.packed_type.format();
        Ok(NewObject::new(&self.shape, format, None, [(DATA, elements)]))
    }
}

/// The first value and the number of values of each stretch of neighbours in a run.
fn neighbours(run: Run) -> impl Iterator<Item = (u64, u64)> {
    let (stretches, count) = match run.stride {
        1 => (1, run.count),
        _ => (run.count, 1),
    };
    (0..stretches).map(move |at| {
        let distance = run.stride.cast_unsigned().wrapping_mul(at);
        (run.first.wrapping_add(distance), count)
    })
}
