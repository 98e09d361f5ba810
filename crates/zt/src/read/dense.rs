//! The dense value of an object.

use zt_formats::{Buffer, Dense, Elements, ObjectFormat, Parts, Signature, View, dense_byte_len};
use zt_manifest::{DType, Text};

use super::runs::Runs;
use super::tiles::Tiled;
use crate::error::{Error, Fault, Result};
use crate::file::tensor::Tensor;

impl<'f> Tensor<'f> {
    /// The object's dense value: a dense object itself, a sparse one filled in, a quantized one
    /// dequantized to f32.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Unsupported`] where its format is not registered or has no dense value;
    /// faults of the contents; as [`Tensor::bytes`].
    pub fn to_dense(&self) -> Result<Dense<'static>> {
        let format = self.format_of_value()?;
        if let Some(tiled) = Tiled::new(self, format)? {
            return tiled.to_dense();
        }
        let parts = self.parts()?;
        if let Some(runs) = Runs::of(self, format)?
            && let Some(dense) = runs.to_dense(&parts)?
        {
            return Ok(dense);
        }
        format.to_dense(parts).map_err(|error| self.blame_format(error))
    }

    /// The dense value as f32, integers and bools too: [`Elements::to_f32`](zt_formats::Elements::to_f32)
    /// with the registry with which the file was opened.
    ///
    /// ```
    /// use zt::{Dense, File, Writer};
    ///
    /// let mut bytes = Vec::new();
    /// let mut writer = Writer::new(&mut bytes)?;
    /// writer.add("steps", &Dense::from_slice(&[2], &[1i32, -2])?)?;
    /// writer.finish()?;
    /// let steps = File::from_bytes(bytes)?.tensor("steps")?.to_f32()?;
    /// assert_eq!(*steps.as_slice::<f32>()?, [1.0, -2.0]);
    /// # Ok::<(), zt::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Unsupported`] for complex numbers and for a logical type that is not
    /// registered; as [`Tensor::to_dense`].
    pub fn to_f32(&self) -> Result<Dense<'static>> {
        let (shape, elements) = self.to_dense()?.into_elements();
        let values = elements.to_f32(self.registry());
        let dense = values.and_then(|values| Dense::from_elements(shape, values));
        dense.map_err(|error| Error::from(error.with_role("data")).with_object(self.name()))
    }

    /// Its tiles, if its value is made so.
    pub(crate) fn tiled(&self) -> Result<Option<Tiled<'f>>> {
        Tiled::new(self, self.format_of_value()?)
    }

    /// The format, once the value has a meaning and no length beyond the limits.
    fn format_of_value(&self) -> Result<&'f dyn ObjectFormat> {
        self.expect_meaning()?;
        let Some(format) = self.registry().format(self.format()) else {
            let fault = Fault::UnknownFormat(self.format().to_owned());
            return Err(Error::from(fault).with_object(self.name()));
        };
        self.check_dense_len(format, self.shape())?;
        Ok(format)
    }

    /// As [`Tensor::to_dense`] does it, for a part of this shape.
    pub(crate) fn check_dense_len_of(&self, shape: &[u64]) -> Result<()> {
        let format = self.registry().format(self.format());
        format.map_or(Ok(()), |format| self.check_dense_len(format, shape))
    }

    /// A sparse object of a few bytes can have any shape, so its dense length is compared with the limit
    /// first.
    fn check_dense_len(&self, format: &dyn ObjectFormat, shape: &[u64]) -> Result<()> {
        let registry = self.registry();
        let signature = Signature::of(self.object());
        let Some((dtype, logical_type)) = format.dense_type(&signature, registry) else {
            return Ok(());
        };
        // Values of an unknown logical type are at least one element each.
        let value_len = registry.value_len(dtype, logical_type.as_deref())?;
        let value_len = value_len.unwrap_or(dtype.byte_len() as u64);
        let limit = self.limits().decoded_len;
        match dense_byte_len(shape, value_len) {
            Some(found) if found <= limit => Ok(()),
            found => {
                let found = found.unwrap_or(u64::MAX);
                let limit = zt_container::LimitExceeded::Decoded { limit, found };
                Err(Error::from(zt_container::Error::Limit(limit)).with_object(self.name()))
            }
        }
    }
}

/// The value of an object that is not dense, made from parts of its components.
pub(crate) struct Value<'f> {
    pub(crate) tensor: Tensor<'f>,
    pub(crate) format: &'f dyn ObjectFormat,
    pub(crate) dtype: DType,
    logical_type: Option<Text>,
    /// Bytes of one value.
    pub(crate) byte_len: u64,
}

impl<'f> Value<'f> {
    /// `None` of a dense object, which is its value, and where the metadata does not tell the type.
    pub(crate) fn of(tensor: &Tensor<'f>, format: &'f dyn ObjectFormat) -> Result<Option<Self>> {
        let known = tensor.dense_type().filter(|_| tensor.format() != Dense::FORMAT);
        let Some((dtype, logical_type)) = known else {
            return Ok(None);
        };
        let byte_len = tensor.registry().value_len(dtype, logical_type.as_deref())?;
        Ok(byte_len.map(|byte_len| Value {
            tensor: *tensor,
            format,
            dtype,
            logical_type,
            byte_len,
        }))
    }

    /// Writes the values of these parts to `out`, which has exactly their bytes.
    pub(crate) fn make(&self, parts: Parts<'_>, out: &mut [u8]) -> Result<()> {
        let made = self.format.decode_into(parts, out);
        made.map_err(|error| self.tensor.blame_format(error))
    }

    /// The value, whose bytes were made.
    pub(crate) fn dense(&self, bytes: Buffer) -> Result<Dense<'static>> {
        let mut elements = Elements::new(self.dtype, bytes);
        elements.logical_type.clone_from(&self.logical_type);
        let dense = Dense::from_elements(self.tensor.shape(), elements);
        dense.map_err(|error| self.tensor.blame_format(error))
    }
}
