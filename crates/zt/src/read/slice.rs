//! Parts of objects. Only the bytes are read that the format needs for the part.

use std::borrow::Cow;
use std::ops::Range;
use zt_container::memory::in_memory;
use zt_formats::{
    Buffer, Coo, Csr, Dense, Elements, ObjectFormat, Parts, Places, Run, Selection, Signature,
    Slice, View, element_count,
};

use crate::error::Result;
use crate::file::tensor::{Located, Tensor, elements_in};
use crate::read::part::{Need, PartReader, announce_in_order};
use crate::read::roles::RolesReader;
use crate::read::strided::{self, Strided};

impl<'f> Tensor<'f> {
    /// A part of the object's dense value, as NumPy's basic slicing gives it.
    ///
    /// Only what the part needs is read and decoded:
    ///
    /// | format | what is read |
    /// | --- | --- |
    /// | `dense`, `zt.planes/1`, `zt.i4/1` and its kin | the bytes around the runs of the part; of compressed components, the frames they are in |
    /// | `sparse_csr`, `sparse_coo` | as [`Csr::read_part`] and [`Coo::read_part`] say |
    /// | `quantized_group`, `gguf.*` | the values from the first to the last of the part, and others as far as they share a group, a block or a word |
    /// | `zt.planes/2` | the lengths of all chunks, the chunks that hold the values from the first to the last of the part, and their bytes of the other planes |
    /// | `quantized_4bit` | the rows of the first dimension from the first to the last of the part |
    /// | of your own | what [`ObjectFormat::slice`] or [`ObjectFormat::rows`] reads |
    /// | others | all: they are made dense as a whole first |
    ///
    /// Frames are decoded on all cores, one at a time on each, if the part lies in three or more of them.
    ///
    /// Other writers make single zstd frames of more than 8 MiB. A part of one costs all that lies before
    /// it, and a part that goes back costs the whole frame.
    ///
    /// A part of a raw component is verified by its chunk digests: each MiB that the part touches is
    /// read and compared, the first time. Without them the part is **not verified**, because the
    /// component's digest covers all of it. Our writer gives them to components of more than 1 MiB. The
    /// frames of a compressed component have checksums of their own. [`Tensor::is_verified`] tells
    /// whether an earlier full read has compared the digest. Faults outside the part go unseen.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`] where the slices do not fit the shape; as [`Tensor::to_dense`].
    pub fn slice(&self, slices: &[Slice]) -> Result<Dense<'static>> {
        let places = self.places(slices)?;
        let Some(format) = self.registry().format(self.format()) else {
            return self.slice_whole(&places);
        };
        if let Some(parts) = per_value(self, format) {
            return self.slice_values(format, parts, &places);
        }
        // A few bytes can have any shape, even one whose elements cannot be counted.
        let kept = places.iter().filter(|places| !places.is_index());
        self.check_dense_len_of(&kept.map(Places::count).collect::<Vec<_>>())?;
        let part = RolesReader::read(self, Vec::new(), |reader| format.slice(&places, reader))?;
        part.map_or_else(|| self.slice_rows(format, &places), Ok)
    }

    /// Rows and columns of a `sparse_csr` object as a matrix of their own, as SciPy's slicing of a
    /// matrix gives it. [`Csr::read_part`] says what is read.
    ///
    /// Verified as [`Tensor::slice`] says. What is read is checked as a whole matrix would be.
    /// Of compressed components, the frames are read that the part is in.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`] where the object is of another format or the slices do not fit
    /// its shape; code `index-value` for a pointer or a column that breaks the format's rules; as
    /// [`Tensor::bytes`].
    pub fn slice_csr(&self, slices: &[Slice]) -> Result<Csr<'static>> {
        self.expect_format(Csr::FORMAT)?;
        let places = self.places(slices)?;
        RolesReader::read(self, Vec::new(), |reader| Csr::read_part(&places, reader))
    }

    /// The values of a `sparse_coo` object within `slices`, in the order in which they are stored.
    /// [`Coo::read_part`] says what is read, and what their coordinates are.
    ///
    /// Verified as [`Tensor::slice`] says. Of compressed components, the frames are read that
    /// the part is in.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`] where the object is of another format or the slices do not fit
    /// its shape; code `index-value` for a coordinate that was read and lies outside its dimension;
    /// as [`Tensor::bytes`].
    pub fn slice_coo(&self, slices: &[Slice]) -> Result<Coo<'static>> {
        self.expect_format(Coo::FORMAT)?;
        let places = self.places(slices)?;
        RolesReader::read(self, Vec::new(), |reader| Coo::read_part(&places, reader))
    }

    /// A part of one component as a flat array of its dtype: the elements as they are stored, in
    /// memory of their own. The logical type is left out, because a value may be several elements.
    ///
    /// Of a raw component, the bytes around the part are read. Of a compressed one, the frames that the
    /// part is in. The part is verified as [`Tensor::slice`] says; a part from the first element to the
    /// last is read and verified as [`Tensor::elements`] does it.
    ///
    /// ```
    /// # use zt::{Csr, File, Slice, Writer};
    /// # let mut bytes = Vec::new();
    /// # let mut writer = Writer::new(&mut bytes)?;
    /// # writer.add("graph", &Csr::new([2, 3], &[7i32, 8][..], &[2u64, 0][..], &[0u64, 1, 2][..])?)?;
    /// # writer.finish()?;
    /// # let file = File::from_bytes(bytes)?;
    /// let graph = file.tensor("graph")?;
    /// let rows = graph.slice_component("indptr", &[Slice::from(1..)])?;
    /// assert_eq!(*rows.as_slice::<u64>()?, [1, 2]);
    /// # Ok::<(), zt::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Code `not-found`; [`crate::ErrorKind::Misuse`] where the slices do not fit a single dimension;
    /// as [`Tensor::bytes`].
    pub fn slice_component(&self, role: &str, slices: &[Slice]) -> Result<Dense<'static>> {
        let part = self.locate(role)?;
        let dtype = elements_in(part, &[][..]).dtype;
        let width = dtype.byte_len() as u64;
        let shape = [self.decoded_len_of(part)?.strict_div(width)];
        let blame = |error| self.blame_format(error).with_component(role);
        let places = Places::resolve(slices, &shape).map_err(blame)?;
        let selection = Selection::of(&places).map_err(blame)?;
        let is_whole = |places: &Places| places.hull() == (0..places.dimension());
        let reader = if places.iter().all(is_whole) {
            vec![PartReader::whole(self, part)?]
        } else {
            vec![PartReader::new(self, part)?]
        };
        let values = gather(reader, &[width], &selection)?.pop().unwrap_or_default();
        let elements = Elements::new(dtype, values);
        Dense::from_elements(selection.shape(), elements).map_err(blame)
    }

    fn places(&self, slices: &[Slice]) -> Result<Vec<Places>> {
        self.expect_meaning()?;
        Places::resolve(slices, self.shape()).map_err(|error| self.blame_format(error))
    }

    /// The selected values, which have as many bytes each in these components.
    fn slice_values(
        &self,
        format: &dyn ObjectFormat,
        parts: Vec<(Located<'f>, u64)>,
        places: &[Places],
    ) -> Result<Dense<'static>> {
        let selection = Selection::of(places).map_err(|error| self.blame_format(error))?;
        let need = |(part, _): &(Located<'f>, u64)| Need {
            tensor: *self,
            part: *part,
            ranges: Vec::new(),
        };
        let readers = PartReader::announced(&parts.iter().map(need).collect::<Vec<_>>())?;
        let widths: Vec<u64> = parts.iter().map(|(_, width)| *width).collect();
        let values = gather(readers, &widths, &selection)?;
        let elements = parts.into_iter().zip(values);
        let elements =
            elements.map(|((part, _), bytes)| (part.role.clone(), elements_in(part, bytes)));
        let elements = elements.collect();
        let dense = format.to_dense(Parts {
            shape: Cow::Borrowed(selection.shape()),
            attributes: Cow::Borrowed(self.attributes()),
            elements,
        });
        dense.map_err(|error| self.blame_format(error))
    }

    /// The part out of the rows that it is in, which are an object by themselves.
    fn slice_rows(&self, format: &dyn ObjectFormat, places: &[Places]) -> Result<Dense<'static>> {
        let Some(hull) = Hull::of(self, format, places) else {
            return self.slice_whole(places);
        };
        self.check_dense_len_of(&hull.shape)?;
        let needs =
            if self.is_remote() { self.needs_of_rows(format, &hull.rows) } else { Vec::new() };
        let open = PartReader::announced(&needs)?;
        let read = RolesReader::read(self, open, |reader| format.rows(hull.rows.clone(), reader));
        let Some(parts) = read? else {
            return self.slice_whole(places);
        };
        let part = format.to_dense(parts).and_then(|dense| hull.cut(&dense));
        part.map_err(|error| self.blame_format(error))
    }

    /// What a part needs of each component, as far as the format tells it before the part is read.
    pub(crate) fn needs(&self, places: &[Places]) -> Option<Vec<Need<'f>>> {
        let format = self.registry().format(self.format())?;
        let Some(parts) = per_value(self, format) else {
            return Some(self.needs_of_rows(format, &Hull::of(self, format, places)?.rows));
        };
        let selection = Selection::of(places).ok()?;
        let of_part = |(part, width): (Located<'f>, u64)| {
            let range = |run: Run| {
                let step = run.stride.saturating_mul(i64::try_from(width).unwrap_or(i64::MAX));
                strided::range(run.first.strict_mul(width), step, run.count, width)
            };
            let ranges = selection.runs().take(BATCH).map(range).collect();
            Need { tensor: *self, part, ranges }
        };
        Some(parts.into_iter().map(of_part).collect())
    }

    fn needs_of_rows(&self, format: &dyn ObjectFormat, rows: &Range<u64>) -> Vec<Need<'f>> {
        let whole = Signature::of(self.object());
        let shape = rows_shape(self, format).unwrap_or_default();
        let len = |role: &str, rows: u64| {
            let mut shape = shape.clone();
            *shape.first_mut()? = rows;
            format.expected_len(
                role,
                &Signature { shape: &shape, ..whole.clone() },
                self.registry(),
            )
        };
        let parts = self.located().filter(|part| format.is_of_value(part.role, &whole));
        let of_part = |part: Located<'f>| {
            let range = len(part.role, rows.start).zip(len(part.role, rows.end));
            let ranges = range.map(|(start, end)| start..end).into_iter().collect();
            Need { tensor: *self, part, ranges }
        };
        parts.map(of_part).collect()
    }

    fn slice_whole(&self, places: &[Places]) -> Result<Dense<'static>> {
        let part = self.to_dense()?.select(places);
        part.map_err(|error| self.blame_format(error))
    }
}

/// The components of the value and the bytes that each has for every value; `None` where not all
/// values have as many of their own.
pub(crate) fn per_value<'f>(
    tensor: &Tensor<'f>,
    format: &dyn ObjectFormat,
) -> Option<Vec<(Located<'f>, u64)>> {
    let count = tensor.element_count().filter(|_| format.is_flat())?;
    let whole = Signature::of(tensor.object());
    row_unit(tensor, format, &[count]).filter(|unit| *unit == 1)?;
    let byte_len = |role: &str, count: u64| {
        let mut values = whole.clone();
        let shape = [count];
        values.shape = &shape;
        format.expected_len(role, &values, tensor.registry())
    };
    let parts = tensor.located();
    let parts = parts.filter(|part| format.is_of_value(part.role, &whole));
    let parts = parts.map(|part| {
        let width = byte_len(part.role, 1).filter(|width| *width > 0)?;
        let len = byte_len(part.role, count)?;
        (width.checked_mul(count) == Some(len)).then_some((part, width))
    });
    parts.collect()
}

/// The rows around a part. See [`ObjectFormat::is_flat`] for what a row is.
struct Hull {
    /// The fewest that can be read without the others.
    rows: Range<u64>,
    /// The shape that they have.
    shape: Vec<u64>,
    /// How many of them come before those that the part is in, and how many those are.
    skipped: u64,
    count: u64,
    /// The places of the part within these.
    places: Vec<Places>,
}

impl Hull {
    /// `None` where the array cannot be cut, or nothing of it is wanted.
    fn of(tensor: &Tensor<'_>, format: &dyn ObjectFormat, places: &[Places]) -> Option<Self> {
        let mut shape = rows_shape(tensor, format)?;
        let unit = row_unit(tensor, format, &shape)?;
        // Single places of outer dimensions narrow the run of values.
        let is_flat = format.is_flat();
        let is_single = |places: &&Places| is_flat && places.count() == 1;
        let outer = places.iter().take_while(is_single).count();
        let axis = outer.min(places.len().checked_sub(1)?);
        let mut within = places.to_vec();
        let mut wanted = 0..1u64;
        for places in within.iter_mut().take(axis.strict_add(1)) {
            let hull = places.hull();
            let before = wanted.start.checked_mul(places.dimension())?;
            wanted = before.checked_add(hull.start)?..before.checked_add(hull.end)?;
            *places = places.within(hull);
        }
        if is_flat {
            let row = element_count(tensor.shape().get(axis.strict_add(1)..)?)?;
            wanted = wanted.start.checked_mul(row)?..wanted.end.checked_mul(row)?;
        }
        let first = shape.first_mut()?;
        let start = wanted.start.checked_sub(wanted.start.checked_rem(unit)?)?;
        let end = wanted.end.checked_next_multiple_of(unit)?.min(*first);
        *first = end.checked_sub(start)?;
        // None at all, of an empty part, may be no object.
        (!wanted.is_empty()).then_some(Hull {
            rows: start..end,
            shape,
            skipped: wanted.start.checked_sub(start)?,
            count: wanted.end.checked_sub(wanted.start)?,
            places: within,
        })
    }

    /// The part of the value of these rows.
    fn cut(&self, rows: &Dense<'_>) -> zt_formats::Result<Dense<'static>> {
        let elements = rows.elements();
        let row_len = (elements.bytes.len() as u64)
            .strict_div(self.rows.end.strict_sub(self.rows.start).max(1));
        let at = |rows: u64| in_memory(rows.strict_mul(row_len));
        let bytes = elements.bytes.get(at(self.skipped)..);
        let bytes = bytes.and_then(|bytes| bytes.get(..at(self.count)));
        let shape: Vec<u64> = self.places.iter().map(Places::dimension).collect();
        let elements = elements.of_same_type(bytes.unwrap_or_default());
        Dense::from_elements(shape, elements)?.select(&self.places)
    }
}

/// The shape whose rows the format is asked about; `None` where its values cannot be counted.
pub(crate) fn rows_shape(tensor: &Tensor<'_>, format: &dyn ObjectFormat) -> Option<Vec<u64>> {
    if format.is_flat() {
        Some(vec![tensor.element_count()?])
    } else {
        Some(tensor.shape().to_vec())
    }
}

/// [`ObjectFormat::row_unit`] of that shape.
pub(crate) fn row_unit(
    tensor: &Tensor<'_>,
    format: &dyn ObjectFormat,
    shape: &[u64],
) -> Option<u64> {
    let whole = Signature::of(tensor.object());
    let unit = format.row_unit(&Signature { shape, ..whole }, tensor.registry());
    unit.filter(|unit| *unit > 0)
}

/// Runs that are copied at a time. They take a few hundred KiB.
const BATCH: usize = 1 << 13;

/// The selected values of each component, one behind the other. Values have so many bytes in each. What remote
/// sources have is announced for all components at once.
fn gather(
    mut readers: Vec<PartReader<'_>>,
    widths: &[u64],
    selection: &Selection,
) -> Result<Vec<Buffer>> {
    let buffer = |width: &u64| Buffer::try_zeroed_values(selection.element_count(), *width);
    let mut values = widths.iter().map(buffer).collect::<Result<Vec<_>, _>>()?;
    let mut rests: Vec<&mut [u8]> = values.iter_mut().map(|values| &mut values[..]).collect();
    let is_remote = readers.iter().any(PartReader::is_remote);
    let mut runs = selection.runs().peekable();
    while runs.peek().is_some() {
        let runs: Vec<_> = runs.by_ref().take(BATCH).collect();
        let mut wanted = Vec::with_capacity(readers.len());
        for (rest, width) in rests.iter_mut().zip(widths) {
            let strided = |run: &Run| {
                let len = in_memory(run.count.strict_mul(*width));
                // The runs are as long as the selection says.
                let place = rest.split_off_mut(..len)?;
                let at = run.first.strict_mul(*width);
                Some(match run.stride {
                    1 => Strided::bytes(at, place),
                    stride => {
                        // A distance beyond all numbers leads behind the end, as it should.
                        let step = i64::try_from(*width).unwrap_or(i64::MAX);
                        let step = step.saturating_mul(stride);
                        Strided::values(at, step, in_memory(*width), place)
                    }
                })
            };
            wanted.push(runs.iter().filter_map(strided).collect::<Vec<_>>());
        }
        if is_remote {
            let places = readers.iter().zip(&wanted).flat_map(|(reader, wanted)| {
                wanted.iter().flat_map(|wanted| reader.stored(&wanted.range()))
            });
            announce_in_order(places.collect());
        }
        for (reader, wanted) in readers.iter_mut().zip(&mut wanted) {
            reader.copy_values(wanted)?;
        }
    }
    drop(rests);
    Ok(values)
}
