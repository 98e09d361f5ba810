//! A handle on one object that keeps its file open.

use crate::error::Result;
use crate::file::File;
use crate::file::tensor::Tensor;

/// One object of a file, together with the file: a handle without a lifetime, for bindings and for
/// structures that hold tensors. Cloning it is cheap.
///
/// ```
/// use zt::{Dense, File, OwnedTensor, Writer};
///
/// fn open(bytes: Vec<u8>) -> zt::Result<OwnedTensor> {
///     File::from_bytes(bytes)?.owned_tensor("bias") // the file stays open
/// }
///
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes)?;
/// writer.add("bias", &Dense::from_slice(&[2], &[0.5f32, 1.0])?)?;
/// writer.finish()?;
/// let bias = open(bytes)?;
/// assert_eq!(*bias.tensor().values::<f32>()?, [0.5, 1.0]);
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct OwnedTensor {
    file: File,
    /// The object's place in the index. It can be read.
    at: usize,
}

impl File {
    /// As [`File::tensor`], with a handle that keeps this file open.
    ///
    /// # Errors
    ///
    /// As [`File::tensor`].
    #[expect(clippy::expect_used, reason = "the object was found")]
    pub fn owned_tensor(&self, name: &str) -> Result<OwnedTensor> {
        self.tensor(name)?;
        let at = self.inner.catalog.find(name).expect("the object was found");
        let file = self.clone();
        Ok(OwnedTensor { file, at })
    }
}

impl OwnedTensor {
    /// The handle to read it with.
    #[expect(clippy::expect_used, reason = "objects are decoded once")]
    pub fn tensor(&self) -> Tensor<'_> {
        let entry = self.file.entry_at(self.at);
        let entry = entry.expect("the place was found in this file");
        entry.tensor().expect("the object was read before")
    }

    /// The file that has it.
    pub const fn file(&self) -> &File {
        &self.file
    }
}
