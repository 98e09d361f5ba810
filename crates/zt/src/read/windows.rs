//! The components of an object, read in parts by its format.

use zt_formats::{ReadParts, Registry, Signature};

use crate::error::{Error, Result};
use crate::file::tensor::Tensor;
use crate::read::window::Window;

/// Lends a format the components of an object in any order, each through a [`Window`], which verifies
/// what has chunk digests.
pub(crate) struct Windows<'f> {
    tensor: Tensor<'f>,
    /// By role, as the format asks for them.
    windows: Vec<(String, Window<'f>)>,
    /// The error that [`zt_formats::Error::Unread`] stands for.
    fault: Option<Error>,
}

impl<'f> Windows<'f> {
    /// The result of `read`, which reads the components of `tensor`.
    pub(crate) fn read<T>(
        tensor: &Tensor<'f>,
        read: impl FnOnce(&mut dyn ReadParts<'f>) -> zt_formats::Result<T>,
    ) -> Result<T> {
        let mut windows = Windows::new(tensor);
        read(&mut windows).map_err(|error| windows.explained(error))
    }

    pub(crate) fn new(tensor: &Tensor<'f>) -> Self {
        Windows { tensor: *tensor, windows: Vec::new(), fault: None }
    }

    /// An error of the format as one of the file.
    pub(crate) fn explained(&mut self, error: zt_formats::Error) -> Error {
        let fault = self.fault.take();
        let fault = fault.filter(|_| error == zt_formats::Error::Unread);
        fault.unwrap_or_else(|| self.tensor.blame_format(error))
    }

    pub(crate) fn try_copy(&mut self, role: &str, at: u64, out: &mut [u8]) -> Result<()> {
        self.window(role)?.copy(at, out)
    }

    fn window(&mut self, role: &str) -> Result<&mut Window<'f>> {
        let at = self.windows.iter().position(|(known, _)| known == role);
        let at = match at {
            Some(at) => at,
            None => {
                let window = Window::new(&self.tensor, self.tensor.locate(role)?)?;
                self.windows.push((role.to_owned(), window));
                self.windows.len() - 1
            }
        };
        Ok(&mut self.windows[at].1)
    }

    /// Keeps the error that will replace the format's.
    pub(crate) fn unread(&mut self, error: Error) -> zt_formats::Error {
        self.fault = Some(error);
        zt_formats::Error::Unread
    }
}

impl<'f> ReadParts<'f> for Windows<'f> {
    fn signature(&self) -> Signature<'f> {
        Signature::of(self.tensor.object())
    }

    fn registry(&self) -> &'f Registry {
        self.tensor.registry()
    }

    fn byte_len(&mut self, role: &str) -> zt_formats::Result<u64> {
        let byte_len = self.window(role).map(|window| window.byte_len());
        byte_len.map_err(|error| self.unread(error))
    }

    fn copy(&mut self, role: &str, at: u64, out: &mut [u8]) -> zt_formats::Result<()> {
        self.try_copy(role, at, out).map_err(|error| self.unread(error))
    }
}
