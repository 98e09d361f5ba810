//! Parts of dense objects. Only the bytes of the part are read.

use std::borrow::Cow;

use zt_formats::{
    Buffer, Dense, Elements, ObjectFormat, Parts, Places, PlaneCodec, Planes, Selection, Signature,
    Slice, View,
};

use crate::error::Result;
use crate::file::tensor::{Tensor, elements_in};
use crate::read::window::Window;

impl<'f> Tensor<'f> {
    /// A part of the object's dense value, as NumPy's basic slicing gives it.
    ///
    /// Only what the part needs is read and decoded:
    ///
    /// | format | what is read |
    /// | --- | --- |
    /// | `dense`, `zt.planes/1` | the bytes around the runs of the part; of compressed components, the frames they are in |
    /// | `sparse_csr`, `sparse_coo` | as [`Tensor::slice_csr`] and [`Tensor::slice_coo`] say |
    /// | `quantized_group`, `quantized_4bit`, `gguf.*` | the rows of the first dimension from the first to the last of the part, and others as far as they share a group, a block or a word |
    /// | others | all: they are made dense as a whole first |
    ///
    /// What a part of a component costs that is one zstd frame larger than 8 MiB, as others write
    /// them, is all that lies before it; going back in one decodes it whole.
    ///
    /// A part of a component is **not verified**: its digest covers all of it. The frames of a
    /// compressed one have checksums of their own. [`Tensor::is_verified`] tells whether an earlier
    /// full read has compared the digest. For the same reason faults outside the part go unseen.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`] where the slices do not fit the shape; as [`Tensor::to_dense`].
    pub fn slice(&self, slices: &[Slice]) -> Result<Dense<'static>> {
        let places = self.places(slices)?;
        match self.format() {
            "sparse_csr" | "sparse_coo" => self.slice_sparse(&places),
            "dense" => self.slice_dense(&places),
            Planes::FORMAT => self.slice_planes(&places),
            _ => self.slice_rows(&places),
        }
    }

    pub(crate) fn places(&self, slices: &[Slice]) -> Result<Vec<Places>> {
        self.expect_meaning()?;
        Places::resolve(slices, self.shape()).map_err(|error| self.blame_format(error))
    }

    fn select(&self, places: &[Places]) -> Result<Selection> {
        Selection::of(places).map_err(|error| self.blame_format(error))
    }

    fn slice_dense(&self, places: &[Places]) -> Result<Dense<'static>> {
        let mut data = Window::new(self, self.locate("data")?)?;
        let part = data.part();
        let known = data.value_len()?.zip(part.component.dtype);
        let Some((value_len, dtype)) = known else {
            return self.slice_whole(places);
        };
        let selection = self.select(places)?;
        let mut elements = Elements::new(dtype, gather(&mut data, value_len, &selection)?);
        elements
            .logical_type
            .clone_from(&part.component.logical_type);
        self.dense(&selection, elements)
    }

    /// The selected elements of an object of planes, gathered from each and merged.
    fn slice_planes(&self, places: &[Places]) -> Result<Dense<'static>> {
        let codec = PlaneCodec::from_attributes(self.attributes());
        let codec = codec.map_err(|error| self.blame_format(error))?;
        let value_len = self
            .registry()
            .value_len(codec.dtype(), codec.logical_type());
        let Some(value_len) = value_len? else {
            return self.slice_whole(places);
        };
        let selection = self.select(places)?;
        let mut planes = Vec::with_capacity(codec.plane_count());
        for role in codec.roles() {
            let mut plane = Window::new(self, self.locate(role)?)?;
            // A byte for each element of a value.
            let len = value_len / codec.plane_count() as u64;
            planes.push(gather(&mut plane, len, &selection)?);
        }
        let planes: Vec<&[u8]> = planes.iter().map(|plane| &**plane).collect();
        let mut out = Buffer::try_zeroed(selection.element_count().saturating_mul(value_len))?;
        codec.merge(&planes, &mut out);
        let mut elements = Elements::new(codec.dtype(), out);
        if let Some(name) = codec.logical_type() {
            elements = elements.with_logical_type(name.to_owned());
        }
        self.dense(&selection, elements)
    }

    /// The part out of the rows that it is in, which are an object by themselves.
    fn slice_rows(&self, places: &[Places]) -> Result<Dense<'static>> {
        let format = self.registry().format(self.format());
        let Some((format, (first, rest))) = format.zip(places.split_first()) else {
            return self.slice_whole(places);
        };
        let Some(rows) = self.whole_rows(format, first.hull()) else {
            return self.slice_whole(places);
        };
        let Some(parts) = self.rows(format, rows.clone())? else {
            return self.slice_whole(places);
        };
        self.check_dense_len_of(&parts.shape)?;
        let dense = format.to_dense(parts);
        let dense = dense.map_err(|error| self.blame_format(error))?;
        let places: Vec<Places> = [first.within(rows)].iter().chain(rest).copied().collect();
        let part = dense.select(&places);
        part.map_err(|error| self.blame_format(error))
    }

    /// The fewest rows around `rows` that can be read without the others.
    fn whole_rows(
        &self,
        format: &dyn ObjectFormat,
        rows: std::ops::Range<u64>,
    ) -> Option<std::ops::Range<u64>> {
        let unit = format.row_unit(&Signature::of(self.object()), self.registry())?;
        let dimension = self.shape().first()?;
        let start = rows.start.checked_sub(rows.start.checked_rem(unit)?)?;
        let end = rows.end.checked_next_multiple_of(unit)?;
        // None at all, of an empty part, may be no object.
        (!rows.is_empty()).then_some(start..end.min(*dimension))
    }

    /// These rows of every component; `None` where it is not known which bytes they are.
    fn rows(
        &self,
        format: &dyn ObjectFormat,
        rows: std::ops::Range<u64>,
    ) -> Result<Option<Parts<'f>>> {
        let mut shape = self.shape().to_vec();
        let mut byte_len = |role: &str, rows: u64| {
            *shape.first_mut()? = rows;
            let whole = Signature::of(self.object());
            let up_to = Signature {
                shape: &shape,
                ..whole
            };
            format.expected_len(role, &up_to, self.registry())
        };
        let mut elements = Vec::new();
        for part in self.located() {
            let (start, end) = (
                byte_len(part.role, rows.start),
                byte_len(part.role, rows.end),
            );
            let len = start
                .zip(end)
                .and_then(|(start, end)| end.checked_sub(start));
            let (Some(start), Some(len)) = (start, len) else {
                return Ok(None);
            };
            let mut window = Window::new(self, part)?;
            if start.saturating_add(len) > window.byte_len() {
                return Ok(None);
            }
            let mut bytes = Buffer::try_zeroed(len)?;
            window.copy(start, &mut bytes)?;
            elements.push((part.role.clone(), elements_in(part, bytes)));
        }
        if let Some(first) = shape.first_mut() {
            *first = rows.end.saturating_sub(rows.start);
        }
        Ok(Some(Parts {
            shape: Cow::Owned(shape),
            attributes: Cow::Borrowed(self.attributes()),
            elements,
        }))
    }

    pub(crate) fn slice_whole(&self, places: &[Places]) -> Result<Dense<'static>> {
        let part = self.to_dense()?.select(places);
        part.map_err(|error| self.blame_format(error))
    }

    fn dense(&self, selection: &Selection, elements: Elements<'static>) -> Result<Dense<'static>> {
        let dense = Dense::from_elements(selection.shape(), elements);
        dense.map_err(|error| self.blame_format(error))
    }
}

/// The selected values of a component, one behind the other.
fn gather(window: &mut Window<'_>, value_len: u64, selection: &Selection) -> Result<Buffer> {
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
            let Some((place, behind)) = std::mem::take(&mut rest).split_at_mut_checked(len) else {
                break; // The runs are as long as the selection says.
            };
            window.copy(element.saturating_mul(value_len), place)?;
            element = element.saturating_add_signed(run.stride);
            rest = behind;
        }
    }
    Ok(out)
}
