//! The dense value of an object, in pieces and as an `.npy` file.

use std::io::Write;
use std::path::{Path, PathBuf};

use zt::formats::{Signature, Slice};
use zt::{DType, Dense, Elements, Error, ErrorKind, Registry, Tensor};
use zt_convert::NpyHeader;

use crate::output::text::printable;

/// Bytes that are read at a time.
pub(crate) const PIECE: usize = 1 << 20;

/// The dense value of an object, or a part of it.
pub(crate) struct Value<'a> {
    tensor: &'a Tensor<'a>,
    registry: &'a Registry,
    pub(crate) shape: Vec<u64>,
    /// The type of the elements, without their bytes.
    pub(crate) like: Elements<'static>,
    /// A part is in memory, a whole value is streamed.
    held: Option<Dense<'static>>,
}

impl<'a> Value<'a> {
    pub(crate) fn of(
        tensor: &'a Tensor<'a>,
        slices: Option<&[Slice]>,
        registry: &'a Registry,
    ) -> zt::Result<Self> {
        let format = registry.format(tensor.format());
        let signature = Signature::of(tensor.object());
        let dense_type = format.and_then(|format| format.dense_type(&signature, registry));
        let (shape, like, held) = match (slices, dense_type) {
            (None, Some((dtype, logical_type))) if tensor.fault().is_none() => {
                let mut like = Elements::new(dtype, &[][..]);
                like.logical_type = logical_type;
                (tensor.shape().to_vec(), like, None)
            }
            (slices, _) => {
                let dense = match slices {
                    Some(slices) => tensor.slice(slices)?,
                    None => tensor.to_dense()?,
                };
                let mut like = Elements::new(dense.elements().dtype, &[][..]);
                like.logical_type = dense.elements().logical_type.clone();
                (dense.shape().to_vec(), like, Some(dense))
            }
        };
        Ok(Value { tensor, registry, shape, like, held })
    }

    /// Calls `take` with elements of whole values. Digests have been checked when this returns `Ok`.
    pub(crate) fn for_each_piece(
        &self,
        mut take: impl FnMut(&Elements<'_>) -> zt::Result<()>,
    ) -> zt::Result<()> {
        let mut take = |elements: &Elements<'_>| {
            // A bool that is neither 0 nor 1 is refused here, and NumPy would not refuse it.
            let values = elements.scalars(self.registry);
            values.map_err(|error| Error::from(error).with_object(self.tensor.name()))?;
            take(elements)
        };
        match &self.held {
            Some(dense) => take(dense.elements()),
            None => self.tensor.dense_reader()?.for_each_piece(PIECE, |bytes| {
                take(&Elements { bytes: bytes.into(), ..self.like.borrow() })
            }),
        }
    }
}

/// An `.npy` file that is being written.
pub(crate) struct Npy<W> {
    pub(crate) out: W,
    /// NumPy's dtype.
    pub(crate) descr: String,
    /// The type of the values, if NumPy does not have it.
    pub(crate) converted_from: Option<String>,
    /// Bytes of values that were written.
    pub(crate) byte_len: u64,
    /// The file, for errors.
    path: Option<PathBuf>,
}

impl<W: Write> Npy<W> {
    /// Begins the file in what `open` opens.
    ///
    /// # Errors
    ///
    /// Code `unsupported` if NumPy has no such array; then `open` is not called.
    pub(crate) fn begin(
        like: &Elements<'_>,
        shape: &[u64],
        registry: &Registry,
        path: Option<&Path>,
        open: impl FnOnce() -> zt::Result<W>,
    ) -> zt::Result<Self> {
        let logical_type = like.logical_type();
        let type_name = logical_type.unwrap_or(like.dtype.as_str());
        let header =
            NpyHeader::new(like.dtype, logical_type, shape, registry).ok_or_else(|| {
                let type_name = printable(type_name);
                let message = format!("NumPy has no array of {type_name} with this shape");
                Error::new(ErrorKind::Unsupported, "unsupported", message)
            })?;
        let mut npy = Npy {
            out: open()?,
            descr: header.descr,
            converted_from: header.is_widened.then(|| type_name.to_owned()),
            byte_len: 0,
            path: path.map(Path::to_owned),
        };
        npy.write_bytes(&header.bytes)?;
        Ok(npy)
    }

    pub(crate) fn write(&mut self, elements: &Elements<'_>, registry: &Registry) -> zt::Result<()> {
        let widened;
        let bytes: &[u8] = if self.converted_from.is_some() {
            widened = elements.to_dtype(DType::F32, registry)?;
            &widened.bytes
        } else {
            &elements.bytes
        };
        self.byte_len += bytes.len() as u64;
        self.write_bytes(bytes)
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> zt::Result<()> {
        self.out.write_all(bytes).map_err(|error| {
            let error = Error::from(error);
            match &self.path {
                Some(path) => error.with_path(path),
                None => error,
            }
        })
    }
}

/// Writes an object as an `.npy` file at `path`, which `open` opens.
pub(crate) fn write_npy<W: Write>(
    value: &Value<'_>,
    path: Option<&Path>,
    open: impl FnOnce() -> zt::Result<W>,
    mut advance: impl FnMut(u64) -> zt::Result<()>,
) -> zt::Result<Npy<W>> {
    let npy = Npy::begin(&value.like, &value.shape, value.registry, path, open);
    let mut npy = npy.map_err(|error| error.with_object(value.tensor.name()))?;
    value.for_each_piece(|elements| {
        npy.write(elements, value.registry)?;
        advance(elements.bytes.len() as u64)
    })?;
    Ok(npy)
}
