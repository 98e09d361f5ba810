//! The metadata of an object, without its bytes.

use zt_manifest::{Attributes, DType, Object, Text};

use crate::base::error::{Error, FormatViolation, Result, SizeMismatch};
use crate::base::registry::Registry;
use crate::base::shape::element_count;

/// The metadata of an object, read or about to be written. [`ObjectFormat::check`] takes it, so
/// that readers and writers follow the same rules.
///
/// [`ObjectFormat::check`]: crate::base::format::ObjectFormat::check
#[derive(Debug, Clone)]
pub struct Signature<'a> {
    /// The dimensions.
    pub shape: &'a [u64],
    /// The object's attributes.
    pub attributes: &'a Attributes,
    /// The components in any order, each role once.
    pub components: Vec<ComponentSignature<'a>>,
}

/// The metadata of one component.
#[derive(Debug, Clone, Copy)]
pub struct ComponentSignature<'a> {
    /// The component's key in the object.
    pub role: &'a str,
    /// The storage type; `None` if the file does not give it. Layout 1.0 gives it only for the
    /// roles that it defines.
    pub dtype: Option<DType>,
    /// The logical type.
    pub logical_type: Option<&'a str>,
    /// The decoded length in bytes; `None` for the compressed blobs of old files, which lack it.
    pub byte_len: Option<u64>,
}

impl<'a> Signature<'a> {
    /// The metadata of a manifest's object.
    pub fn of(object: &'a Object) -> Self {
        let components = object.components.iter();
        let components = components.map(|(role, component)| ComponentSignature {
            role,
            dtype: component.dtype,
            logical_type: component.logical_type.as_deref(),
            byte_len: component.blob.decoded_len,
        });
        Signature {
            shape: &object.shape,
            attributes: object.attributes(),
            components: components.collect(),
        }
    }

    /// The component with this role.
    pub fn get(&self, role: &str) -> Option<&ComponentSignature<'a>> {
        let mut components = self.components.iter();
        components.find(|component| component.role == role)
    }

    /// The component with this role, which the format requires.
    ///
    /// # Errors
    ///
    /// Malformed: there is none (`missing-component`).
    pub fn component(&self, role: &'static str) -> Result<&ComponentSignature<'a>> {
        let missing = || FormatViolation::MissingComponent.of(role);
        self.get(role).ok_or_else(missing)
    }

    /// The logical type, else the dtype, of the component that most formats keep values in: `data`,
    /// else `values`, else the first. `None` if there is none, or the file does not give its type.
    pub fn value_type(&self) -> Option<Text> {
        let values = self.get("data").or_else(|| self.get("values"));
        let values = values.or_else(|| self.components.first())?;
        let logical_type = values.logical_type();
        let logical_type = logical_type.map(|name| Text::Owned(name.to_owned()));
        logical_type.or_else(|| values.dtype.map(|dtype| Text::Borrowed(dtype.as_str())))
    }

    /// The number of elements of the shape.
    ///
    /// # Errors
    ///
    /// Malformed: 2^64 or more (`shape-size-mismatch`), blamed on the component `role`.
    pub fn element_count(&self, role: &'static str) -> Result<u64> {
        element_count(self.shape).ok_or_else(|| self.overflow(role))
    }

    /// The error for a shape that is too large for any `role`.
    pub(crate) fn overflow(&self, role: &'static str) -> Error {
        overflow(self.shape, role)
    }
}

/// As [`Signature::overflow`].
pub(crate) fn overflow(shape: &[u64], role: &'static str) -> Error {
    let shape = shape.to_vec();
    SizeMismatch::Overflow { shape }.of(role)
}

impl<'a> ComponentSignature<'a> {
    /// The logical type; `None` if there is none or it only repeats the dtype's name.
    pub fn logical_type(&self) -> Option<&'a str> {
        match self.dtype {
            Some(dtype) => dtype.logical_type(self.logical_type),
            None => self.logical_type,
        }
    }

    /// The dtype and the logical type, as [`ObjectFormat::dense_type`] gives them.
    ///
    /// [`ObjectFormat::dense_type`]: crate::base::format::ObjectFormat::dense_type
    pub(crate) fn dense_type(&self) -> Option<(DType, Option<Text>)> {
        let logical_type = self.logical_type();
        let logical_type = logical_type.map(|name| Text::Owned(name.to_owned()));
        Some((self.dtype?, logical_type))
    }

    /// Whether `registry` knows the logical type, or there is none. If it does not, the number of
    /// values is unknown, and cannot be compared with the shape.
    pub fn is_understood(&self, registry: &Registry) -> bool {
        let logical_type = self.logical_type();
        logical_type.is_none_or(|name| registry.logical_type(name).is_some())
    }

    /// Bytes of one value; `None` if the dtype is missing or `registry` does not know the logical
    /// type.
    ///
    /// # Errors
    ///
    /// Malformed: a known logical type over a dtype other than its own (`logical-type`).
    pub fn value_len(&self, registry: &Registry) -> Result<Option<u64>> {
        let Some(dtype) = self.dtype else {
            return Ok(None);
        };
        let blame = |error: Error| error.with_role(self.role.to_owned());
        registry.value_len(dtype, self.logical_type).map_err(blame)
    }

    /// The number of values; `None` if the length, the dtype or the logical type is unknown. A
    /// logical type may store several elements for each value.
    ///
    /// # Errors
    ///
    /// Malformed: the last value is not whole, or as [`ComponentSignature::value_len`].
    pub fn value_count(&self, registry: &Registry) -> Result<Option<u64>> {
        match (self.value_len(registry)?, self.byte_len) {
            (Some(value_len), Some(byte_len)) => self.whole(byte_len, value_len).map(Some),
            _ => Ok(None),
        }
    }

    /// Checks that a known logical type has its own dtype, and that the last value and the last
    /// element are whole.
    pub(crate) fn check(&self, registry: &Registry) -> Result<()> {
        self.value_count(registry)?;
        self.element_count()?;
        Ok(())
    }

    /// The number of storage elements; `None` if the length or the dtype is unknown.
    ///
    /// # Errors
    ///
    /// Malformed: the last element is not whole.
    pub fn element_count(&self) -> Result<Option<u64>> {
        match (self.dtype, self.byte_len) {
            (Some(dtype), Some(byte_len)) => {
                self.whole(byte_len, dtype.byte_len() as u64).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Refuses a dtype other than `expected`, and every logical type: for components whose elements
    /// are only bits. A missing dtype passes.
    ///
    /// # Errors
    ///
    /// Malformed: another dtype (`dtype`), or a logical type (`logical-type`).
    pub fn expect_plain(&self, expected: DType) -> Result<()> {
        let other = self.dtype.filter(|found| *found != expected);
        let violation = match (other, self.logical_type()) {
            (found @ Some(_), _) => FormatViolation::DType { expected: expected.as_str(), found },
            (None, Some(name)) => FormatViolation::LogicalType {
                name: Text::Owned(name.to_owned()),
                expected: None,
                found: expected,
            },
            (None, None) => return Ok(()),
        };
        Err(violation.of(self.role.to_owned()))
    }

    /// Refuses a number of storage elements other than `expected`. An unknown number passes.
    ///
    /// # Errors
    ///
    /// Malformed: another number, or the last element is not whole (`shape-size-mismatch`).
    pub fn expect_elements(&self, expected: u64) -> Result<()> {
        self.expect(self.element_count()?, expected)
    }

    fn expect(&self, found: Option<u64>, expected: u64) -> Result<()> {
        match found {
            Some(found) if found != expected => {
                Err(SizeMismatch::Elements { expected, found }.of(self.role.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a decoded length other than `expected`. An unknown length passes.
    ///
    /// # Errors
    ///
    /// Malformed: another number (`shape-size-mismatch`).
    pub fn expect_bytes(&self, expected: u64) -> Result<()> {
        match self.byte_len {
            Some(found) if found != expected => {
                Err(SizeMismatch::Bytes { expected, found }.of(self.role.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a number of values other than `expected`. An unknown number passes.
    ///
    /// # Errors
    ///
    /// Malformed: another number, or as [`ComponentSignature::value_count`].
    pub fn expect_values(&self, expected: u64, registry: &Registry) -> Result<()> {
        self.expect(self.value_count(registry)?, expected)
    }

    /// `byte_len / value_len`, exactly.
    fn whole(&self, byte_len: u64, value_len: u64) -> Result<u64> {
        let count = byte_len.checked_div(value_len);
        let count = count.filter(|_| byte_len.is_multiple_of(value_len));
        let partial = SizeMismatch::Partial { byte_len, value_len };
        count.ok_or_else(|| partial.of(self.role.to_owned()))
    }
}
