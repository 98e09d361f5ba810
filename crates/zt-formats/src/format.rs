//! The traits that an object format implements.

use zt_manifest::{DType, Text};

use crate::{Dense, Error, NewObject, Parts, Registry, Result, Signature, Unsupported};

/// The rules of one object format: an entry of the [`Registry`]. Spec: §9.
///
/// `tests/own_format.rs` is a format that is not in this crate, in one file.
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
    /// alone; `None` where it gives nothing. With [`dense_byte_len`](crate::dense_byte_len) this
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
        signature.value_type().map(Text::Owned)
    }

    /// Names of the attributes that say how objects of this format are decoded. A dense value has no
    /// use for them and drops them; it keeps all others, which belong to the tensor.
    fn parameters(&self) -> &[&str] {
        &[]
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

    /// Rows that can be read without the others, where there are such: the fewest places of the
    /// first dimension that are whole by themselves; `None` where there are none, or nobody knows.
    ///
    /// An array that is cut behind multiples of this is several objects of this format, with the
    /// same attributes, and their components are parts of the array's: each begins where the length
    /// ends that [`ObjectFormat::expected_len`] gives the rows before. The values are the same.
    fn row_unit(&self, signature: &Signature<'_>, registry: &Registry) -> Option<u64> {
        let _ = (signature, registry);
        None
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
