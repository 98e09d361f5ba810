//! The traits that an object format implements.

use std::ops::Range;

use zt_manifest::{DType, Text};

use crate::base::dense::Dense;
use crate::base::error::{Error, Result, SizeMismatch, Unsupported};
use crate::base::parts::{NewObject, Parts};
use crate::base::places::Places;
use crate::base::read::{self, ReadParts};
use crate::base::registry::Registry;
use crate::base::signature::Signature;

/// The rules of one object format: an entry of the [`Registry`]. Spec: §9.
///
/// Only `id` and `check` are required. A format implements more for what its objects should do:
///
/// | hooks | what they give | without them |
/// | --- | --- | --- |
/// | `to_dense`, `dense_type` | a dense value | objects give the bytes of their components |
/// | `data_roles`, `check_data`, `check_strict` | faults of contents, and of what writers may not do | only metadata is checked |
/// | `row_unit`, `expected_len` | slices, streams and decoding on all cores, by cutting every component | the whole is decoded |
/// | `row_unit`, `rows` | the same, where contents such as pointers say which bytes rows have | |
/// | `is_flat` | runs of single values or blocks, where the shape plays no part | runs of rows |
/// | `slice` | parts that take less than whole rows | whole rows are decoded |
/// | `decode_into` | values made in place | a run is decoded and copied |
/// | `is_of_value`, `value_type`, `parameters`, `stored_dtype`, `is_for_compression` | what copies and listings need | as each of them says |
///
/// `tests/own_format.rs` is a format that is not in this crate, in one file; the example
/// `block_sparse_rows` of `zt` is one that is sliced and streamed.
pub trait ObjectFormat: Send + Sync {
    /// The manifest's `format`.
    fn id(&self) -> &str;

    /// Checks the metadata: roles, dtypes, attributes and every length that follows from others.
    /// Called for reading and for writing. [`Registry::check`] has seen to the rules that all
    /// formats share; lengths and dtypes that the file does not say are `None`, and no fault.
    ///
    /// # Errors
    ///
    /// Malformed, with the rule and the role at fault.
    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()>;

    /// Checks what the specification forbids to writers, and readers put up with because real
    /// writers do it. Called in addition, by those who ask for strictness.
    ///
    /// # Errors
    ///
    /// Malformed, with the rule and the role at fault.
    fn check_strict(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        let _ = (signature, registry);
        Ok(())
    }

    /// The roles whose contents [`ObjectFormat::check_data`] looks at; `None` means all. Components
    /// of other roles need never be in memory as a whole.
    fn data_roles(&self) -> Option<&[&str]> {
        None
    }

    /// Whether the value is made of the component `role`, where there is one. Components of other roles
    /// are free, and no part of what [`ObjectFormat::to_dense`] gives. Without an implementation, it
    /// is made of all.
    fn is_of_value(&self, role: &str, signature: &Signature<'_>) -> bool {
        let _ = (role, signature);
        true
    }

    /// Checks contents: indices within their dimensions, pointers that do not fall. `parts` need
    /// not hold more than the roles of [`ObjectFormat::data_roles`], and their metadata has passed
    /// [`ObjectFormat::check`]. Bools are checked for every format alike, and not here.
    ///
    /// # Errors
    ///
    /// Malformed, with the role, the position, the value and the rule.
    fn check_data(&self, parts: &Parts<'_>) -> Result<()> {
        let _ = parts;
        Ok(())
    }

    /// The dtype and the logical type of what [`ObjectFormat::to_dense`] gives, from the metadata
    /// alone; `None` where it gives nothing. With [`dense_byte_len`](crate::base::shape::dense_byte_len) this
    /// tells what a dense value costs before it is made: a sparse object of a few bytes can have
    /// any shape.
    fn dense_type(
        &self,
        signature: &Signature<'_>,
        registry: &Registry,
    ) -> Option<(DType, Option<Text>)> {
        let _ = (signature, registry);
        None
    }

    /// The name of the type of the values, for people: `f32`, `f8_e4m3fn`; of a format that packs
    /// them, what they are packed as: `4-bit`, `q4_0`. From the metadata alone; `None` where the
    /// file does not say. Without an implementation, [`Signature::value_type`].
    fn value_type(&self, signature: &Signature<'_>) -> Option<Text> {
        signature.value_type()
    }

    /// Names of the attributes that say how objects of this format are decoded. A dense value has no
    /// use for them and drops them; it keeps all others, which belong to the tensor.
    fn parameters(&self) -> &[&str] {
        &[]
    }

    /// Whether objects of this format are dense objects that are stored in another way, to be
    /// compressed: raw, they are only slower to read. Their dense value is exact to the last bit, and
    /// [`ObjectFormat::parameters`] names all attributes that the dense object does not have. A writer
    /// then compresses them unless it is told otherwise, and they have the content identity of the
    /// dense object.
    fn is_for_compression(&self) -> bool {
        false
    }

    /// The object as a plain array in row-major order. Checks metadata and contents itself.
    ///
    /// # Errors
    ///
    /// Unsupported: the format has no dense value, or not for these types. Malformed: as
    /// [`ObjectFormat::check`] and [`ObjectFormat::check_data`]. Allocation.
    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        let _ = parts;
        let id = Text::Owned(self.id().to_owned());
        Err(Error::Unsupported(Unsupported::ToDense(id)))
    }

    /// The value of [`ObjectFormat::to_dense`] written to `out`, which has exactly its bytes.
    /// Without an implementation, it is made elsewhere and copied.
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

    /// Whether the values depend on how many there are and not on the shape: the same components
    /// under the shape `[n]` have the same n values. [`ObjectFormat::row_unit`],
    /// [`ObjectFormat::rows`] and [`ObjectFormat::expected_len`] are asked about `[n]` then, whose
    /// rows are values.
    ///
    /// If a row unit of `[n]` is 1, each component has as many bytes for every value, one value
    /// after the other. Then any part of the array is read and decoded by itself.
    fn is_flat(&self) -> bool {
        false
    }

    /// Rows that can be read without the others, where there are such: the fewest places of the
    /// first dimension that are whole by themselves; `None` where there are none, or nobody knows.
    ///
    /// An array that is cut behind multiples of this is several objects of this format, with the
    /// same attributes. [`ObjectFormat::rows`] gives them.
    fn row_unit(&self, signature: &Signature<'_>, registry: &Registry) -> Option<u64> {
        let _ = (signature, registry);
        None
    }

    /// These rows, as an object of this format with the same values. They begin at a multiple of
    /// [`ObjectFormat::row_unit`] and end at another or with the array. `None` where nobody knows
    /// which bytes they are: then the whole is decoded, and shows what is wrong.
    ///
    /// Without an implementation, the components are cut: each part begins where the length ends
    /// that [`ObjectFormat::expected_len`] gives the rows before.
    ///
    /// # Errors
    ///
    /// Those of the reader; Malformed, where what was read breaks a rule.
    fn rows<'a>(
        &self,
        rows: Range<u64>,
        reader: &mut dyn ReadParts<'a>,
    ) -> Result<Option<Parts<'a>>> {
        read::rows(self, rows, reader)
    }

    /// The part of the dense value at these places of each dimension, for a format that reads less
    /// for it than whole rows; an index takes its dimension away. `None`, as without an
    /// implementation, where [`ObjectFormat::rows`] is as good.
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

    /// The dtype of the component `role`, which the file does not say and whose decoded length
    /// `signature` has: what a copy of it is written with. Without an implementation it is bytes.
    fn stored_dtype(&self, role: &str, signature: &Signature<'_>) -> Option<DType> {
        let _ = (role, signature);
        None
    }

    /// The decoded length of `role` in bytes, where the shape, the attributes and the other
    /// components decide it: for the compressed blobs of 0.1 to 1.1, which do not say it.
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

/// An object of one format, as typed values: `tensor.view::<Csr>()`.
///
/// A view is the array and no more. Of an object's attributes it has those that its format decodes
/// by ([`ObjectFormat::parameters`]), as values of its own, and [`ToObject`] makes them anew: all
/// others stay with the tensor, and whoever writes a view elsewhere gives them to the new one.
pub trait View<'a>: Sized {
    /// The manifest's `format`.
    const FORMAT: &'static str;

    /// The parts as this view. Elements stay borrowed where they were.
    ///
    /// Implementations take nothing for granted: what they return is as well-formed as the format
    /// asks, contents included, and may be indexed without another look.
    ///
    /// # Errors
    ///
    /// Malformed, with the rule and the role at fault.
    fn from_parts(parts: Parts<'a>) -> Result<Self>;
}

/// What can be written as an object.
pub trait ToObject {
    /// Metadata and elements, borrowed from `self` where they lie there as they will in the file.
    ///
    /// # Errors
    ///
    /// What the value itself does not rule out, and memory.
    fn to_object(&self) -> Result<NewObject<'_>>;
}

/// Objects made elsewhere are written as they are.
impl ToObject for NewObject<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        Ok(NewObject {
            shape: std::borrow::Cow::Borrowed(&self.shape),
            format: self.format.clone(),
            attributes: self.attributes.clone(),
            components: self
                .components
                .iter()
                .map(|(role, elements)| (role.clone(), elements.borrow()))
                .collect(),
        })
    }
}
