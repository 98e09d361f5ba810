//! The components of an object, read in parts by its format.

use zt_formats::{ReadParts, Registry, Signature};

use crate::error::{Error, Result};
use crate::file::tensor::Tensor;
use crate::read::part::{Open, PartReader};

/// Lends a format the components of an object, each through a [`PartReader`].
pub(crate) struct RolesReader<'f> {
    tensor: Tensor<'f>,
    /// By role, as the format asks for them.
    parts: Vec<(String, PartReader<'f>)>,
    /// How a component is opened: for parts in any order, or from front to back and verified.
    open: Open<'f>,
    /// The error that [`zt_formats::Error::Unread`] stands for.
    fault: Option<Error>,
}

impl<'f> RolesReader<'f> {
    /// The result of `read`, which reads the components of `tensor` in any order. What has chunk digests is
    /// verified. Some components may be open already.
    pub(crate) fn read<T>(
        tensor: &Tensor<'f>,
        open: Vec<PartReader<'f>>,
        read: impl FnOnce(&mut dyn ReadParts<'f>) -> zt_formats::Result<T>,
    ) -> Result<T> {
        let parts = open.into_iter().map(|part| (part.role().to_owned(), part)).collect();
        let mut reader = RolesReader { tensor: *tensor, parts, open: PartReader::new, fault: None };
        read(&mut reader).map_err(|error| reader.explained(error))
    }

    /// For a format that reads each component from front to back. [`RolesReader::finish`] has verified all of
    /// them.
    pub(crate) fn in_order(tensor: &Tensor<'f>) -> Self {
        let parts = Vec::new();
        RolesReader { tensor: *tensor, parts, open: PartReader::in_order, fault: None }
    }

    /// Reads what is left, so that all digests are compared.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.parts.iter_mut().try_for_each(|(_, part)| part.finish())
    }

    /// An error of the format as one of the file.
    pub(crate) fn explained(&mut self, error: zt_formats::Error) -> Error {
        let fault = self.fault.take();
        let fault = fault.filter(|_| error == zt_formats::Error::Unread);
        fault.unwrap_or_else(|| self.tensor.blame_format(error))
    }

    fn part(&mut self, role: &str) -> Result<&mut PartReader<'f>> {
        let at = self.parts.iter().position(|(known, _)| known == role);
        let at = at.unwrap_or(self.parts.len());
        if at == self.parts.len() {
            let part = (self.open)(&self.tensor, self.tensor.locate(role)?)?;
            self.parts.push((role.to_owned(), part));
        }
        let part = self.parts.get_mut(at).map(|(_, part)| part);
        part.ok_or_else(Error::out_of_order)
    }

    /// Keeps the error that will replace the format's.
    fn kept<T>(&mut self, result: Result<T>) -> zt_formats::Result<T> {
        result.map_err(|error| {
            self.fault = Some(error);
            zt_formats::Error::Unread
        })
    }
}

impl<'f> ReadParts<'f> for RolesReader<'f> {
    fn signature(&self) -> Signature<'f> {
        Signature::of(self.tensor.object())
    }

    fn registry(&self) -> &'f Registry {
        self.tensor.registry()
    }

    fn byte_len(&mut self, role: &str) -> zt_formats::Result<u64> {
        let byte_len = self.part(role).map(|part| part.byte_len());
        self.kept(byte_len)
    }

    fn copy(&mut self, role: &str, at: u64, out: &mut [u8]) -> zt_formats::Result<()> {
        let copied = self.part(role).and_then(|part| part.copy(at, out));
        self.kept(copied)
    }
}
