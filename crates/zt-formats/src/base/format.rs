//! The traits of an object format: its rules, its views, and values that become its objects.

use std::borrow::Cow;
use std::ops::Range;

use zt_manifest::{DType, Text};

use crate::base::dense::Dense;
use crate::base::error::{Error, Result, SizeMismatch, Unsupported};
use crate::base::parts::{NewObject, Parts};
use crate::base::places::Places;
use crate::base::read::{self, ReadParts};
use crate::base::registry::Registry;
use crate::base::signature::Signature;

/// The rules of one object format; [`Registry::with_format`] adds it to a registry. Spec: §9.
///
/// Only `id` and `check` are required. Each further method adds an ability:
///
/// | methods | what they add | without them |
/// | --- | --- | --- |
/// | `to_dense`, `dense_type` | a dense value | users get the bytes of components |
/// | `data_roles`, `check_data`, `check_strict` | checks of contents, and of rules for writers only | metadata is checked |
/// | `row_unit`, `expected_len` | slices, streams, decoding on all cores: rows are cut out of each component | the whole object is decoded |
/// | `row_unit`, `unit_ends` | the same, if the contents of another component locate the units | |
/// | `row_unit`, `rows` | the same, if contents such as pointers locate the rows | |
/// | `is_flat` | runs of single values or blocks, whatever the shape is | runs of rows |
/// | `slice` | slices that read less than whole rows | whole rows are decoded |
/// | `decode_into` | decoding into the caller's memory | the dense value is copied |
/// | `is_of_value`, `value_type`, `parameters`, `stored_dtype`, `is_for_compression` | details for copies and listings | their defaults |
///
/// Two formats outside this crate are examples: `tests/own_format.rs`, in one file, and
/// `block_sparse_rows` of the crate `zt`, which is sliced and streamed.
pub trait ObjectFormat: Send + Sync {
    /// The manifest's `format`.
    fn id(&self) -> &str;

    /// Checks the metadata: roles, dtypes, attributes, and every length that follows from them.
    ///
    /// Readers and writers call it, after [`Registry::check`] has checked the rules of all formats.
    /// A length or a dtype that the file does not give is `None`, and no fault.
    ///
    /// # Errors
    ///
    /// Malformed, with the rule and the role at fault.
    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()>;

    /// Checks what the specification forbids to writers but readers accept, because existing
    /// writers do it. Strict readers call it after [`ObjectFormat::check`].
    ///
    /// # Errors
    ///
    /// Malformed, with the rule and the role at fault.
    fn check_strict(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        let _ = (signature, registry);
        Ok(())
    }

    /// The roles whose contents [`ObjectFormat::check_data`] reads; `None` means all. Components of
    /// other roles need not be in memory.
    fn data_roles(&self) -> Option<&[&str]> {
        None
    }

    /// Whether [`ObjectFormat::to_dense`] reads the component `role`. By default it reads all.
    ///
    /// An object may have other components, which are copied with it.
    fn is_of_value(&self, role: &str, signature: &Signature<'_>) -> bool {
        let _ = (role, signature);
        true
    }

    /// Checks contents: for example, that indices lie within their dimension.
    ///
    /// The metadata has passed [`ObjectFormat::check`]. `parts` has at least the roles of
    /// [`ObjectFormat::data_roles`]. The caller checks bools, for every format.
    ///
    /// # Errors
    ///
    /// Malformed, with the role, the position, the value and the rule.
    fn check_data(&self, parts: &Parts<'_>) -> Result<()> {
        let _ = parts;
        Ok(())
    }

    /// The dtype and the logical type of the dense value, from the metadata alone; `None` if there
    /// is no dense value.
    ///
    /// With [`dense_byte_len`](crate::base::shape::dense_byte_len) a caller knows the size of a
    /// dense value before it is made: a sparse object of a few bytes can have any shape.
    fn dense_type(
        &self,
        signature: &Signature<'_>,
        registry: &Registry,
    ) -> Option<(DType, Option<Text>)> {
        let _ = (signature, registry);
        None
    }

    /// The name of the values' type for listings, from the metadata alone: `f32`, `f8_e4m3fn`. By
    /// default, [`Signature::value_type`].
    ///
    /// A format that packs values gives their packed type: `4-bit`, `q4_0`. `None` if the file does
    /// not give the type.
    fn value_type(&self, signature: &Signature<'_>) -> Option<Text> {
        signature.value_type()
    }

    /// The names of the attributes that decoding reads. A dense copy of the object drops them, and
    /// keeps all others, which describe the tensor.
    fn parameters(&self) -> &[&str] {
        &[]
    }

    /// Whether the format only stores dense objects in a way that compresses better.
    ///
    /// Two rules follow. The dense value is exact to the last bit, and
    /// [`ObjectFormat::parameters`] names every attribute that the dense object does not have.
    ///
    /// Writers compress such objects unless told otherwise, since raw ones are only slower to read.
    /// They have the content identity of the dense object.
    fn is_for_compression(&self) -> bool {
        false
    }

    /// The dense value: a plain array in row-major order. Checks metadata and contents.
    ///
    /// # Errors
    ///
    /// Unsupported: the format has no dense value, or none for these types. Malformed: as
    /// [`ObjectFormat::check`] and [`ObjectFormat::check_data`]. Allocation.
    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        let _ = parts;
        let id = Text::Owned(self.id().to_owned());
        Err(Error::Unsupported(Unsupported::ToDense(id)))
    }

    /// Writes the dense value to `out`, which has its length. By default it is made by
    /// [`ObjectFormat::to_dense`] and copied.
    ///
    /// # Errors
    ///
    /// As [`ObjectFormat::to_dense`].
    fn decode_into(&self, parts: Parts<'_>, out: &mut [u8]) -> Result<()> {
        let dense = self.to_dense(parts)?;
        let bytes = &dense.elements().bytes;
        let (expected, found) = (out.len() as u64, bytes.len() as u64);
        if found != expected {
            return Err(SizeMismatch::Bytes { expected, found }.of_object());
        }
        out.copy_from_slice(bytes);
        Ok(())
    }

    /// Whether the values depend on their number and not on the shape: under the shape `[n]`, the
    /// same components have the same n values.
    ///
    /// [`ObjectFormat::row_unit`], [`ObjectFormat::rows`] and [`ObjectFormat::expected_len`] are
    /// then called with the shape `[n]`, whose rows are values. If the row unit of `[n]` is 1, each
    /// component has the same number of bytes for every value, in the order of the values.
    fn is_flat(&self) -> bool {
        false
    }

    /// The least number of rows that can be decoded without the others; `None` if there is none. A
    /// row is one place of the first dimension.
    ///
    /// Cut at multiples of it, an array is several objects of this format with the same attributes.
    /// [`ObjectFormat::rows`] gives them.
    fn row_unit(&self, signature: &Signature<'_>, registry: &Registry) -> Option<u64> {
        let _ = (signature, registry);
        None
    }

    /// Where the bytes of each row unit end in the component `role`. `None`, the default, if
    /// [`ObjectFormat::expected_len`] gives it, or nothing does.
    ///
    /// Units follow one another without gaps, and the first one begins at 0.
    ///
    /// # Errors
    ///
    /// The reader's; Malformed if the lengths break a rule.
    fn unit_ends(&self, role: &str, reader: &mut dyn ReadParts<'_>) -> Result<Option<Vec<u64>>> {
        let _ = (role, reader);
        Ok(None)
    }

    /// The given rows, as an object of this format with the same values; `None` if their bytes
    /// cannot be located. The caller then decodes the whole object, which reports the fault.
    ///
    /// `rows` begins at a multiple of [`ObjectFormat::row_unit`], and ends at one or with the
    /// array.
    ///
    /// By default each component is cut at the lengths that [`ObjectFormat::expected_len`] gives
    /// for the first `rows.start` and the first `rows.end` rows, else at
    /// [`ObjectFormat::unit_ends`].
    ///
    /// # Errors
    ///
    /// The reader's; Malformed if the bytes break a rule.
    fn rows<'a>(
        &self,
        rows: Range<u64>,
        reader: &mut dyn ReadParts<'a>,
    ) -> Result<Option<Parts<'a>>> {
        read::rows(self, rows, reader)
    }

    /// The part of the dense value at `places`, one for each dimension; an index removes its
    /// dimension.
    ///
    /// For a format that can read less than whole rows. `None`, the default, if
    /// [`ObjectFormat::rows`] reads no more.
    ///
    /// # Errors
    ///
    /// As [`ObjectFormat::rows`] and [`ObjectFormat::to_dense`].
    fn slice(
        &self,
        places: &[Places],
        reader: &mut dyn ReadParts<'_>,
    ) -> Result<Option<Dense<'static>>> {
        let _ = (places, reader);
        Ok(None)
    }

    /// The dtype with which a copy of the component `role` is written if the file gives none;
    /// `None` means u8. `signature` has its decoded length.
    fn stored_dtype(&self, role: &str, signature: &Signature<'_>) -> Option<DType> {
        let _ = (role, signature);
        None
    }

    /// The decoded length of `role` in bytes, if the shape, the attributes and the other components
    /// determine it. Compressed blobs of layouts 0.1 to 1.1 do not store it.
    fn expected_len(
        &self,
        role: &str,
        signature: &Signature<'_>,
        registry: &Registry,
    ) -> Option<u64> {
        let _ = (role, signature, registry);
        None
    }
}

/// An object of one format as typed values: `tensor.view::<Csr>()`.
///
/// A view is the array and nothing else. It holds the attributes that
/// [`ObjectFormat::parameters`] names as values, and [`ToObject`] writes them again. All other
/// attributes stay with the tensor: copy them yourself if you write the view elsewhere.
pub trait View<'a>: Sized {
    /// The manifest's `format`.
    const FORMAT: &'static str;

    /// The view of these parts. Borrowed elements stay borrowed.
    ///
    /// Implementations check everything, contents included, so that users may index into a view
    /// without further checks.
    ///
    /// # Errors
    ///
    /// Malformed, with the rule and the role at fault.
    fn from_parts(parts: Parts<'a>) -> Result<Self>;
}

/// A value that can be written as an object.
pub trait ToObject {
    /// The object's metadata and elements. Elements that lie in memory as they will in the file are
    /// borrowed from `self`.
    ///
    /// # Errors
    ///
    /// Malformed: a rule that the type of the value does not ensure. Allocation.
    fn to_object(&self) -> Result<NewObject<'_>>;
}

/// Borrows.
impl ToObject for NewObject<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let components = self.components.iter();
        Ok(NewObject {
            shape: Cow::Borrowed(&self.shape),
            format: self.format.clone(),
            attributes: self.attributes.clone(),
            components: components
                .map(|(role, elements)| (role.clone(), elements.borrow()))
                .collect(),
        })
    }
}
