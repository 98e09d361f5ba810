//! Writes dense values as arrays of NumPy, and `.npy` files.

use std::io::Write;

use zt::formats::Decode;
use zt::{DType, FloatType, Registry, Result, Tensor};
use zt_foreign::{Fault, FileWriter, Incoming, Job, Loss, Merged, Outgoing, Sink};

use crate::array::byte_len;
use crate::descr::{self, descr_of};
use crate::header::render;
use crate::npy::{NPY, Npy};

/// An object as an array of NumPy.
pub(crate) struct Array<'i> {
    object: Outgoing<'i>,
    header: Vec<u8>,
    byte_len: u64,
}

impl<'i> Array<'i> {
    pub(crate) fn tensor(&self) -> Tensor<'i> {
        self.object.tensor
    }

    /// The object as an array; `None` if it cannot be one.
    ///
    /// NumPy has no bf16, no FP8, and nothing of less than a byte. These values are written as f32 or
    /// integers of a byte, which represent each of them exactly.
    pub(crate) fn new(incoming: &Incoming<'i>, job: &mut Job<'_>) -> Result<Option<Self>> {
        let mut object = Outgoing::new(incoming);
        let name = Some(object.name());
        if let Some(packed) = object.packed() {
            let (from, to) = (packed.to_string(), packed.dtype());
            job.accept(Loss::Widened { from, to }, name);
            object = Outgoing::new(&Incoming { dtype: None, ..*incoming });
            object.decode();
        }
        if !job.make_plain(&mut object) {
            return Ok(None);
        }
        if let Some((dtype, logical_type)) = object.dense_type()
            && widens(dtype, logical_type.as_deref(), incoming.registry)
        {
            let from = logical_type.map_or(dtype.to_string(), |name| name.into_owned());
            let to = DType::F32;
            job.accept(Loss::Widened { from, to }, name);
            object = Outgoing::new(&Incoming { dtype: Some(FloatType::F32), ..*incoming });
            if !object.is_dense() {
                object.decode();
            }
        }
        let typed = |dtype, logical_type: Option<&str>| {
            let width = descr::byte_len(dtype, logical_type);
            Some((descr_of(dtype, logical_type)?, width))
        };
        let Some((descr, width)) = job.typed(&object, typed) else {
            return Ok(None);
        };
        job.rest(&object, &[]);
        let shape = &object.object().shape;
        let Some((header, byte_len)) = render(&descr, shape).zip(byte_len(width, shape)) else {
            job.accept(Loss::Shape, name);
            return Ok(None);
        };
        Ok(Some(Array { object, header, byte_len }))
    }

    pub(crate) fn name(&self) -> &'i str {
        self.object.name()
    }

    pub(crate) fn byte_len(&self) -> Option<u64> {
        self.byte_len.checked_add(self.header.len() as u64)
    }

    pub(crate) fn write(&self, out: &mut (dyn Write + Send), job: &mut Job<'_>) -> Result<()> {
        out.write_all(&self.header)?;
        let (object, byte_len) = (&self.object, self.byte_len);
        let cast = object.write_values(byte_len, out, job.options.progress)?;
        job.written(object.name(), byte_len, cast)
    }
}

/// The beginning of an `.npy` file.
///
/// ```
/// use zt_npy::{NpyHeader, zt};
///
/// let header = NpyHeader::new(zt::DType::F32, None, &[2, 3], &zt::registry()).unwrap();
/// assert_eq!((&*header.descr, header.bytes.len()), ("<f4", 128));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NpyHeader {
    /// NumPy's name of the dtype.
    pub descr: String,
    /// Whether NumPy lacks the type. The values are then written as f32, which represents each of them
    /// exactly.
    pub is_widened: bool,
    /// All bytes of the file before its row-major elements.
    pub bytes: Vec<u8>,
}

impl NpyHeader {
    /// The header of an array with elements of this type. bf16, FP8 and E8M0 are widened to f32.
    ///
    /// `None` if NumPy has no such dtype, or if the shape is too long for a header.
    pub fn new(
        dtype: DType,
        logical_type: Option<&str>,
        shape: &[u64],
        registry: &Registry,
    ) -> Option<Self> {
        let is_widened = widens(dtype, logical_type, registry);
        let descr =
            if is_widened { descr_of(DType::F32, None)? } else { descr_of(dtype, logical_type)? };
        let bytes = render(&descr, shape)?;
        Some(NpyHeader { descr, is_widened, bytes })
    }
}

/// Whether NumPy lacks the type, and f32 represents its values: bf16, FP8 and E8M0.
fn widens(dtype: DType, logical_type: Option<&str>, registry: &Registry) -> bool {
    let Some(name) = logical_type else {
        return dtype == DType::BF16;
    };
    let known = registry.logical_type(name);
    dtype == DType::U8 && known.is_some_and(|known| matches!(known.decode, Decode::F32(_)))
}

impl FileWriter for Npy {
    /// Writes the one object. Its name is lost: a reader takes the name of the file.
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        job.refuse_attributes(merged.attributes.as_ref(), &merged.extra);
        let mut first = None;
        for incoming in &merged.objects {
            let array = if first.is_some() {
                job.accept(Loss::Objects, Some(incoming.tensor.name()));
                None
            } else {
                Array::new(incoming, job)?
            };
            first = job.kept(incoming, array).or(first);
        }
        job.check()?;
        match first {
            Some(array) => array.write(sink, job),
            None => Err(Fault::NothingToWrite { kind: NPY }.into()),
        }
    }
}
