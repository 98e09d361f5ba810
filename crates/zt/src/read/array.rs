//! Feature `ndarray`: the value of an object as an array of the crate `ndarray`.

use ndarray::{CowArray, IxDyn};
use zt_formats::{Dense, Element, View};

use crate::error::Result;
use crate::file::tensor::Tensor;

impl<'f> Tensor<'f> {
    /// The object's dense value as an array of the crate `ndarray`: a view of a dense object's elements
    /// where they are raw, aligned and lent by the source, on a little-endian host; else a copy.
    /// Feature `ndarray`.
    ///
    /// `T` is the type of the value. A quantized object has f32, as [`Tensor::to_dense`] gives it.
    ///
    /// ```
    /// use ndarray::array;
    /// use zt::{File, Writer};
    ///
    /// let mut bytes = Vec::new();
    /// let mut writer = Writer::new(&mut bytes)?;
    /// writer.add("weight", &array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]])?;
    /// writer.finish()?;
    ///
    /// let file = File::from_bytes(bytes)?;
    /// let weight = file.tensor("weight")?.array::<f32>()?; // borrowed from `file`
    /// assert!(weight.is_view());
    /// assert_eq!(weight[[1, 0]], 4.0);
    /// # Ok::<(), zt::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`] where the values have another type; as [`Tensor::to_dense`].
    pub fn array<T: Element>(&self) -> Result<CowArray<'f, T, IxDyn>> {
        let dense = match self.format() {
            Dense::FORMAT => self.view::<Dense<'f>>()?,
            _ => self.to_dense()?,
        };
        dense.into_array().map_err(|error| self.blame_format(error))
    }
}
