//! A tensor of an open file.

use std::ffi::{CStr, CString};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use memmap2::Mmap;
use zt::formats::dense_byte_len;
use zt::{
    ByteOrder, Component, DType, Dense, Encoding, Entry, Error, ErrorKind, File, Result, Signature,
    Slice, Source, Span, Tensor, codes,
};

use crate::border::misuse;
use crate::dtype::{self, zt_dtype};
use crate::error::c_text;
use crate::file::blame;
use crate::json;
use crate::maps::Maps;
use crate::options::zt_range;

/// A tensor, which keeps the file open. It lives as long as the handle of its file.
pub struct zt_tensor {
    file: File,
    at: usize,
    path: Option<Arc<Path>>,
    maps: Option<Arc<Maps>>,
    pub(crate) name: CString,
    pub(crate) format: CString,
    pub(crate) value_type: Option<CString>,
    pub(crate) dtype: zt_dtype,
    attributes: OnceLock<CString>,
    parts: Box<[Part]>,
    /// The component whose elements are the values as this machine has them, and the bytes of an element.
    values: Option<(usize, usize)>,
}

/// A component.
pub(crate) struct Part {
    pub(crate) role: CString,
    pub(crate) logical_type: Option<CString>,
    /// What lends it, once its digest was compared.
    lender: OnceLock<Lender>,
}

/// Where bytes lie that are lent.
enum Lender {
    Source(Arc<dyn Source>, Span),
    Map(Arc<Mmap>, Range<usize>),
}

impl Lender {
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Lender::Source(source, span) => source.slice(*span),
            Lender::Map(map, range) => map.get(range.clone()),
        }
    }
}

/// What holds lent values in memory.
#[expect(dead_code, reason = "they are only held")]
pub(crate) struct Kept(File, Option<Arc<Mmap>>);

impl zt_tensor {
    /// `None` behind the last object.
    pub(crate) fn new(
        file: &File,
        at: usize,
        path: Option<&Arc<Path>>,
        maps: Option<&Arc<Maps>>,
    ) -> Option<Self> {
        let file = file.clone();
        let entry = file.entry_at(at)?;
        let tensor = entry.tensor().ok();
        let format = tensor.map_or("", |tensor| tensor.format());
        let part = |(role, component): (&str, &Component)| Part {
            role: c_text(role),
            logical_type: component.logical_type.as_deref().map(c_text),
            lender: OnceLock::new(),
        };
        let values = tensor.filter(|it| it.format() == "dense" && it.fault().is_none());
        let values = values.and_then(|tensor| {
            let at = tensor.components().position(|(role, _)| role == "data")?;
            let dtype = tensor.component("data").ok()?.dtype.filter(|it| dtype::is_native(*it))?;
            Some((at, dtype.byte_len()))
        });
        Some(zt_tensor {
            at,
            values,
            path: path.cloned(),
            maps: maps.cloned(),
            name: c_text(entry.name()),
            format: c_text(format),
            value_type: tensor.and_then(|tensor| tensor.value_type()).map(|name| c_text(&name)),
            dtype: dtype::number(tensor.and_then(|tensor| tensor.dtype())),
            attributes: OnceLock::new(),
            parts: tensor.into_iter().flat_map(|tensor| tensor.components()).map(part).collect(),
            file,
        })
    }

    /// `error` with the path of the file, if it was opened by one.
    pub(crate) fn blame(&self, error: Error) -> Error {
        blame(error, self.path.as_deref())
    }

    fn entry(&self) -> Result<Entry<'_>> {
        let gone = || Error::new(ErrorKind::Misuse, codes::NOT_FOUND, "the object is gone");
        self.file.entry_at(self.at).ok_or_else(gone)
    }

    pub(crate) fn tensor(&self) -> Result<Tensor<'_>> {
        self.entry()?.tensor()
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Empty for an object that cannot be read at all.
    pub(crate) fn shape(&self) -> &[u64] {
        self.tensor().map_or(&[], |tensor| tensor.shape())
    }

    pub(crate) fn fault(&self) -> Result<Option<Error>> {
        Ok(self.entry()?.fault().cloned())
    }

    /// As JSON; `{}` if there are none.
    pub(crate) fn attributes(&self) -> Result<&CStr> {
        let tensor = self.tensor()?;
        Ok(self.attributes.get_or_init(|| json::text_of(tensor.attributes())))
    }

    /// Bytes of the values of a part, in `dtype` or as they are stored.
    pub(crate) fn byte_len(&self, counts: &[u64], dtype: Option<DType>) -> Result<u64> {
        let tensor = self.tensor()?;
        let registry = self.file.registry();
        let format = registry.format(tensor.format());
        let of_dense = format
            .and_then(|format| format.dense_type(&Signature::of(tensor.object()), registry))
            .ok_or_else(|| self.error(ErrorKind::Unsupported, "it has no dense value"))?;
        let value_len = match dtype.filter(|wanted| *wanted != of_dense.0) {
            Some(wanted) => Some(wanted.byte_len() as u64),
            None => registry.value_len(of_dense.0, of_dense.1.as_deref())?,
        };
        match value_len {
            Some(value_len) => dense_byte_len(counts, value_len)
                .ok_or_else(|| self.error(ErrorKind::Limit, "its values exceed 2^64 bytes")),
            // The shape does not tell how long values of an unknown logical type are.
            None if counts == tensor.shape() => tensor.decoded_len("data"),
            None => Err(self.error(ErrorKind::Unsupported, "its logical type is unknown")),
        }
    }

    fn error(&self, kind: ErrorKind, message: &str) -> Error {
        let code = if kind == ErrorKind::Limit { codes::ALLOCATION } else { codes::UNSUPPORTED };
        let error = Error::new(kind, code, message.to_owned());
        match self.entry() {
            Ok(entry) => error.with_object(entry.name()),
            Err(_) => error,
        }
    }

    /// The values, if they lie in memory as this machine has them.
    pub(crate) fn lend_values(&self) -> Result<&[u8]> {
        let Some((at, width)) = self.values else {
            let fault = self.tensor()?.fault().cloned();
            let copied = || self.error(ErrorKind::Unsupported, "its values take a copy: read them");
            return Err(fault.unwrap_or_else(copied));
        };
        let bytes = self.lend(at)?;
        if !bytes.is_empty() && !bytes.as_ptr().addr().is_multiple_of(width) {
            let message = "its values are not aligned in the file: read them";
            return Err(self.error(ErrorKind::Unsupported, message));
        }
        Ok(bytes)
    }

    /// The bytes of a component, if they lie in memory as they are decoded. Their digest is compared the first time.
    pub(crate) fn lend(&self, at: usize) -> Result<&[u8]> {
        let part = self.part(at)?;
        let lender = match part.lender.get() {
            Some(lender) => lender,
            None => {
                let found = self.lender(at)?;
                part.lender.get_or_init(|| found)
            }
        };
        lender.bytes().ok_or_else(|| self.lends_none())
    }

    fn lender(&self, at: usize) -> Result<Lender> {
        let (tensor, role, component) = self.component(at)?;
        let is_plain =
            component.blob.encoding == Encoding::Raw && component.byte_order == ByteOrder::Little;
        if !is_plain {
            return Err(self.lends_none());
        }
        let (source, span) = tensor.stored_bytes(role)?;
        if source.slice(span).is_some() {
            tensor.verify(role)?;
            return Ok(Lender::Source(source, span));
        }
        let maps = self.maps.as_ref().ok_or_else(|| self.lends_none())?;
        let (file, span) = tensor.stored_in(role)?.ok_or_else(|| self.lends_none())?;
        tensor.verify(role)?;
        let map = maps.of(file).ok_or_else(|| self.lends_none())?;
        let place = |offset| usize::try_from(offset).map_err(|_| self.lends_none());
        Ok(Lender::Map(map, place(span.offset())?..place(span.end())?))
    }

    fn lends_none(&self) -> Error {
        let message = "nothing lends its bytes: open it in memory or with a map, or read them";
        self.error(ErrorKind::Unsupported, message)
    }

    /// What holds the lent values of this tensor, beside its handle.
    pub(crate) fn keeper(&self) -> Kept {
        let data = self.parts.iter().find(|part| part.role.as_c_str() == c"data");
        let map = data.and_then(|part| match part.lender.get()? {
            Lender::Map(map, _) => Some(Arc::clone(map)),
            Lender::Source(..) => None,
        });
        Kept(self.file.clone(), map)
    }

    /// Fills `out` with the values of the tensor, or of a part of it.
    pub(crate) fn read(
        &self,
        slices: &[Slice],
        wanted: Option<DType>,
        out: &mut [u8],
    ) -> Result<()> {
        let tensor = self.tensor()?;
        let is_stored =
            dtype::of(self.dtype).is_some_and(|it| wanted.is_none_or(|wanted| wanted == it));
        if slices.is_empty() && is_stored && tensor.format() == "dense" && tensor.fault().is_none()
        {
            tensor.read_into("data", out)?;
            if let Some(dtype) = dtype::of(self.dtype) {
                dtype::swap_if_big(out, dtype);
            }
            return Ok(());
        }
        let dense = if slices.is_empty() { tensor.to_dense()? } else { tensor.slice(slices)? };
        self.fill(dense, wanted, out)
    }

    /// Fills `out` with these values, in the type `wanted`.
    pub(crate) fn fill(
        &self,
        dense: Dense<'_>,
        wanted: Option<DType>,
        out: &mut [u8],
    ) -> Result<()> {
        let (_, mut elements) = dense.into_elements();
        let registry = self.file.registry();
        elements = match wanted.filter(|wanted| *wanted != elements.dtype) {
            Some(DType::F32) => elements.to_f32(registry)?,
            Some(wanted) => elements.to_dtype(wanted, registry)?,
            None => elements,
        };
        expect_len(out, elements.bytes.len() as u64)?;
        out.copy_from_slice(&elements.bytes);
        dtype::swap_if_big(out, elements.dtype);
        Ok(())
    }

    pub(crate) fn component_count(&self) -> usize {
        self.parts.len()
    }

    pub(crate) fn part(&self, at: usize) -> Result<&Part> {
        let count = self.parts.len();
        let none = || misuse(format!("there is no component {at}: the tensor has {count}"));
        self.parts.get(at).ok_or_else(none)
    }

    pub(crate) fn component(&self, at: usize) -> Result<(Tensor<'_>, &str, &Component)> {
        self.part(at)?;
        let tensor = self.tensor()?;
        let found = tensor.components().nth(at);
        found
            .map(|(role, component)| (tensor, role, component))
            .ok_or_else(|| misuse("there is no such component"))
    }

    pub(crate) fn read_component(&self, at: usize, out: &mut [u8]) -> Result<()> {
        let (tensor, role, component) = self.component(at)?;
        tensor.read_into(role, out)?;
        if let Some(dtype) = component.dtype {
            dtype::swap_if_big(out, dtype);
        }
        Ok(())
    }

    /// The part that these ranges choose: a range for each of the first dimensions, and all of the others. The
    /// counts of the part's dimensions, too.
    pub(crate) fn slices(&self, ranges: &[zt_range]) -> Result<(Vec<Slice>, Vec<u64>)> {
        let mut counts = self.tensor()?.shape().to_vec();
        let rank = counts.len();
        if ranges.len() > rank {
            let found = ranges.len();
            return Err(misuse(format!("{found} ranges for a tensor of {rank} dimensions")));
        }
        let mut slices = Vec::new();
        for (range, dimension) in ranges.iter().zip(&mut counts) {
            slices.push(slice(*range, *dimension)?);
            *dimension = range.count;
        }
        Ok((slices, counts))
    }
}

/// A range within its dimension.
fn slice(range: zt_range, dimension: u64) -> Result<Slice> {
    let step = range.step.max(1);
    let outside = || {
        let zt_range { start, count, .. } = range;
        misuse(format!(
            "{count} places from {start} on, {step} apart, exceed the dimension {dimension}"
        ))
    };
    let stop = match range.count.checked_sub(1) {
        None => Some(range.start),
        Some(last) => {
            last.checked_mul(step).and_then(|it| it.checked_add(range.start)?.checked_add(1))
        }
    };
    let stop = stop.filter(|stop| *stop <= dimension).ok_or_else(outside)?;
    let place = |place: u64| i64::try_from(place).map_err(|_| outside());
    Ok(Slice::Range {
        start: Some(place(range.start)?),
        stop: Some(place(stop)?),
        step: place(step)?,
    })
}

/// Memory of the caller has exactly the bytes of the values.
pub(crate) fn expect_len(out: &[u8], expected: u64) -> Result<()> {
    let found = out.len() as u64;
    if found == expected {
        return Ok(());
    }
    Err(misuse(format!("the memory has {found} bytes, and the values take {expected}")))
}
