//! The dense value of an object.

use zt_formats::{Dense, ObjectFormat, Signature, dense_byte_len};

use super::runs::Runs;
use super::tiles::{self, Tiled};
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
        if let Some(dense) = tiles::to_dense(self, format)? {
            return Ok(dense);
        }
        let parts = self.parts()?;
        if let Some(runs) = Runs::of(self, format)?
            && let Some(dense) = runs.to_dense(&parts)?
        {
            return Ok(dense);
        }
        format.to_dense(parts).map_err(|error| self.blame_format(error))
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
