//! Objects of formats that exist to be compressed, as the dense objects that they stand for.

use zt_formats::{ObjectFormat, Signature};
use zt_manifest::{DType, Text, Value};

use crate::file::tensor::Tensor;

/// The component that a dense object has its values in.
pub(crate) const DATA: &str = "data";

impl<'f> Tensor<'f> {
    /// The dtype and the logical type of the dense value, from the metadata alone.
    pub(crate) fn dense_type(&self) -> Option<(DType, Option<Text>)> {
        let format = self.known_format()?;
        format.dense_type(&Signature::of(self.object()), self.registry())
    }

    /// The type of the dense object that this one stands for, if its format exists to be compressed:
    /// the same shape and values, the attributes that are no parameters of the format, and the
    /// components that the values are not made of. `None` if one of these takes the place of the
    /// values.
    pub(crate) fn stands_for(&self) -> Option<(DType, Option<Text>)> {
        let format = self.known_format()?;
        let is_taken = || self.component(DATA).is_ok() && !self.roles_of_value()(DATA);
        let stands = format.is_for_compression() && !is_taken();
        self.dense_type().filter(|_| stands)
    }

    /// Whether the values are made of the component of a role. Made once for all roles: the signature
    /// lists every component.
    pub(crate) fn roles_of_value(&self) -> impl Fn(&str) -> bool + use<'f> {
        let (format, signature) = (self.known_format(), Signature::of(self.object()));
        move |role| format.is_none_or(|format| format.is_of_value(role, &signature))
    }

    /// Whether an attribute describes the storage of the object and not its value.
    pub(crate) fn is_parameter(&self, key: &Value) -> bool {
        let parameters = self.known_format();
        let parameters = parameters.map_or(&[][..], ObjectFormat::parameters);
        key.as_str().is_some_and(|key| parameters.contains(&key))
    }

    /// Bytes of one value of this type; of one element if the logical type is not known.
    pub(crate) fn value_len(&self, dtype: DType, logical_type: Option<&str>) -> usize {
        let known = self.registry().value_len(dtype, logical_type);
        let known = known.ok().flatten();
        let known = known.and_then(|len| usize::try_from(len).ok());
        known.unwrap_or(dtype.byte_len()).max(1)
    }

    fn known_format(&self) -> Option<&'f dyn ObjectFormat> {
        self.registry().format(self.format())
    }
}
