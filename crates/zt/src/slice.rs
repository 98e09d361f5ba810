//! Parts of dense objects, read without the rest.

use zt_container::codec::{Frame, decode_into, frames};
use zt_container::{Encoding, LimitExceeded, Source, Span};
use zt_formats::{Buffer, Dense, Elements, PlaneCodec, Planes, Selection, Slice, View};
use zt_manifest::{ByteOrder, Component};

use crate::error::Result;
use crate::tensor::{Located, Tensor};

impl<'f> Tensor<'f> {
    /// A part of the object's dense value, as NumPy's basic slicing gives it.
    ///
    /// Of a dense object and of planes only the bytes are read that the part needs: of raw ones
    /// those around its runs, of compressed ones the frames they are in, where the frames can be
    /// told apart. Other objects are made dense as a whole first.
    ///
    /// A part of a raw component is **not verified**: its digest covers all of it. The frames of a
    /// compressed one have checksums of their own. [`Tensor::is_verified`] tells whether an earlier
    /// full read has compared the digest.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`] where the slices do not fit the shape; as [`Tensor::to_dense`].
    pub fn slice(&self, slices: &[Slice]) -> Result<Dense<'static>> {
        let whole = || {
            let dense = self.to_dense()?;
            dense
                .slice(slices)
                .map_err(|error| self.blame_format(error))
        };
        let select =
            || Selection::new(slices, self.shape()).map_err(|error| self.blame_format(error));
        let (selection, elements) = if self.format() == Planes::FORMAT {
            let selection = select()?;
            let Some(elements) = self.slice_planes(&selection)? else {
                return whole();
            };
            (selection, elements)
        } else {
            let data = self.located().find(|part| part.role == "data");
            let data = data.filter(|_| self.format() == "dense");
            let Some(mut content) = data.map(|data| self.content(data)).transpose()?.flatten()
            else {
                return whole();
            };
            let selection = select()?;
            let mut elements = Elements::new(content.dtype, self.gather(&mut content, &selection)?);
            elements
                .logical_type
                .clone_from(&content.part.component.logical_type);
            (selection, elements)
        };
        let dense = Dense::from_elements(selection.shape(), elements);
        dense.map_err(|error| self.blame_format(error))
    }

    /// The selected values of a component, one behind the other.
    fn gather(&self, content: &mut Content<'f>, selection: &Selection) -> Result<Buffer> {
        let (part, value_len) = (content.part, content.value_len);
        let mut out = Buffer::try_zeroed(selection.element_count().saturating_mul(value_len))?;
        let mut rest = &mut out[..];
        for run in selection.runs() {
            // Neighbours are copied together, others one by one.
            let (times, values) = if run.stride == 1 {
                (1, run.count)
            } else {
                (run.count, 1)
            };
            let len = usize::try_from(values.saturating_mul(value_len)).unwrap_or(usize::MAX);
            let mut element = run.first;
            for _ in 0..times {
                let Some((place, behind)) = std::mem::take(&mut rest).split_at_mut_checked(len)
                else {
                    break; // The runs are as long as the selection says.
                };
                let copied = content.copy(element.saturating_mul(value_len), place);
                copied.map_err(|error| self.blame(error, part))?;
                element = element.saturating_add_signed(run.stride);
                rest = behind;
            }
        }
        Ok(out)
    }

    /// The selected elements of an object of planes, gathered from each and merged; `None` where
    /// parts of a plane cannot be read.
    fn slice_planes(&self, selection: &Selection) -> Result<Option<Elements<'static>>> {
        let codec = PlaneCodec::from_attributes(self.attributes());
        let codec = codec.map_err(|error| self.blame_format(error))?;
        let registry = self.registry();
        let Some(value_len) = registry.value_len(codec.dtype(), codec.logical_type())? else {
            return Ok(None);
        };
        let mut planes = Vec::with_capacity(codec.plane_count());
        for role in codec.roles() {
            let Some(mut content) = self.content(self.locate(role)?)? else {
                return Ok(None);
            };
            // A byte for each element of a value.
            content.value_len = value_len / codec.plane_count() as u64;
            planes.push(self.gather(&mut content, selection)?);
        }
        let planes: Vec<&[u8]> = planes.iter().map(|plane| &**plane).collect();
        let mut out = Buffer::try_zeroed(selection.element_count().saturating_mul(value_len))?;
        codec.merge(&planes, &mut out);
        let mut elements = Elements::new(codec.dtype(), out);
        if let Some(name) = codec.logical_type() {
            elements = elements.with_logical_type(name.to_owned());
        }
        Ok(Some(elements))
    }

    /// The content of a component, if parts of it can be read.
    fn content(&self, part: Located<'f>) -> Result<Option<Content<'f>>> {
        let Component {
            dtype,
            logical_type,
            byte_order,
            blob,
            ..
        } = part.component;
        let Some(dtype) = dtype.filter(|_| *byte_order == ByteOrder::Little) else {
            return Ok(None);
        };
        let Some(value_len) = self.registry().value_len(dtype, logical_type.as_deref())? else {
            return Ok(None);
        };
        let frames = match blob.encoding {
            Encoding::Raw => None,
            _ => match frames(self.source(part), blob).map_err(|error| self.blame(error, part))? {
                Some(frames) => Some(frames),
                None => return Ok(None),
            },
        };
        Ok(Some(Content {
            source: self.source(part),
            part,
            stored: blob.span,
            frames,
            dtype,
            value_len,
            window: Span::default(),
            bytes: Vec::new(),
            scratch: Vec::new(),
        }))
    }
}

/// The decoded bytes of a component, of which a window is in memory.
struct Content<'f> {
    part: Located<'f>,
    source: &'f dyn Source,
    stored: Span,
    /// The frames of a zstd blob; `None` for a raw one.
    frames: Option<Vec<Frame>>,
    dtype: zt_manifest::DType,
    value_len: u64,
    /// Which of the decoded bytes `bytes` are.
    window: Span,
    bytes: Vec<u8>,
    scratch: Vec<u8>,
}

/// Raw bytes that are fetched at a time, at multiples of this from the start: small runs that lie
/// close together, in either direction, share a read.
const WINDOW: u64 = 64 << 10;

impl Content<'_> {
    /// Copies the decoded bytes from `at` on.
    fn copy(&mut self, mut at: u64, mut out: &mut [u8]) -> zt_container::Result<()> {
        while !out.is_empty() {
            if self.frames.is_none() && out.len() as u64 >= WINDOW {
                return self
                    .source
                    .read_at(self.stored.offset().saturating_add(at), out)
                    .map_err(Into::into);
            }
            if !(self.window.offset()..self.window.end()).contains(&at) {
                self.load(at)?;
            }
            let skip = at.saturating_sub(self.window.offset());
            let held = usize::try_from(skip)
                .ok()
                .and_then(|skip| self.bytes.get(skip..));
            let held = held.unwrap_or_default();
            let len = held.len().min(out.len());
            let (part, behind) = out.split_at_mut(len);
            part.copy_from_slice(&held[..len]);
            if len == 0 {
                // The window does not hold what it was loaded for: the component ends before.
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
            }
            (at, out) = (at.saturating_add(len as u64), behind);
        }
        Ok(())
    }

    /// Makes the window hold the byte `at`.
    fn load(&mut self, at: u64) -> zt_container::Result<()> {
        self.window = Span::default();
        let Some(frames) = &self.frames else {
            let start = at - at % WINDOW;
            let end = start.saturating_add(WINDOW).min(self.stored.byte_len());
            let window = Span::between(start, end).unwrap_or_default();
            resize(&mut self.bytes, window.byte_len())?;
            self.source
                .read_at(self.stored.offset().saturating_add(start), &mut self.bytes)?;
            self.window = window;
            return Ok(());
        };
        let place = frames.partition_point(|frame| frame.content.end() <= at);
        let Some(frame) = frames.get(place) else {
            return Ok(());
        };
        let declared = frame.content.byte_len();
        let claim = zt_container::Blob {
            encoding: Encoding::Zstd,
            decoded_len: Some(declared),
            ..zt_container::Blob::raw(frame.stored)
        };
        // What a frame claims to hold is no better than what a manifest claims.
        zt_container::check_declared(&claim, &zt_container::Limits::default())?;
        resize(&mut self.bytes, declared)?;
        match self.source.slice(frame.stored) {
            Some(stored) => decode_into(stored, &mut self.bytes)?,
            None => {
                resize(&mut self.scratch, frame.stored.byte_len())?;
                self.source
                    .read_at(frame.stored.offset(), &mut self.scratch)?;
                decode_into(&self.scratch, &mut self.bytes)?;
            }
        }
        self.window = frame.content;
        Ok(())
    }
}

fn resize(bytes: &mut Vec<u8>, byte_len: u64) -> zt_container::Result<()> {
    let refused = || zt_container::Error::Limit(LimitExceeded::Allocation { byte_len });
    let len = usize::try_from(byte_len).map_err(|_| refused())?;
    bytes.clear();
    bytes.try_reserve_exact(len).map_err(|_| refused())?;
    bytes.resize(len, 0);
    Ok(())
}
