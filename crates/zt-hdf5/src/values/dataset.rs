//! Opens a dataset as an object.

use std::sync::Arc;

use zt::formats::PackedType;
use zt::{
    Attributes, Blob, Component, Limits, Object, RawComponent, RawObject, Result, Source, Span,
};
use zt_foreign::MlDtype;
use zt_foreign::slices::Section;
use zt_foreign::strided::Bands;

use crate::bytes::budget::Budget;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::store::Store;
use crate::filters::pipeline::{MAX_RATIO, Pipeline};
use crate::structures::common::Common;
use crate::structures::dataspace::Dataspace;
use crate::structures::datatype::{Class, Datatype};
use crate::structures::grid::Grid;
use crate::structures::layout::{Chunking, Layout};
use crate::structures::number::Number;
use crate::structures::object_header::{ObjectHeader, kind};
use crate::values::chunked::Chunked;
use crate::values::constant::Constant;

/// Bytes that the chunks of any file may be decoded to.
const DECODED_MIN: u64 = 64 << 20;

/// The most bytes of a filtered chunk, which is decoded as a whole. HDF5 allows 4 GiB, but real
/// chunks rarely have more than a few megabytes.
const CHUNK_MAX: u64 = 1 << 30;

/// The state that the datasets of a file share.
pub(crate) struct Datasets {
    pub(crate) bands: Bands,
    /// The file with the budget for all indices of chunks.
    indices: Store,
    /// The bytes that written chunks may be decoded to, when all are read once.
    pub(crate) decoded: Budget,
    /// The most bytes of one dataset. Values that were never written take no bytes of the file.
    decoded_max: u64,
    /// The bytes of all datasets that are no range of the file: what its bytes can be decoded to, and the most
    /// bytes of one dataset.
    pub(crate) made: Budget,
}

/// A listing shows this of a dataset that cannot be read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listed {
    shape: Option<Vec<u64>>,
    dtype: Option<&'static str>,
}

impl Listed {
    /// The elements in words.
    pub(crate) fn what(&self) -> &'static str {
        self.dtype.unwrap_or("an unknown object")
    }

    pub(crate) fn raw(self) -> RawObject {
        let mut raw = RawObject::default();
        raw.format = Some("dense".into());
        raw.shape = self.shape;
        if let Some(dtype) = self.dtype {
            let mut data = RawComponent::default();
            data.dtype = Some(dtype.into());
            raw.components = vec![("data".into(), data)];
        }
        raw
    }
}

/// The values of a dataset.
#[derive(Clone)]
pub(crate) enum Values {
    /// A range of the file.
    Stored(Span),
    /// They are made when they are read.
    Made {
        source: Arc<dyn Source>,
        /// The offset of what they are made of, if it is in the file.
        place: Option<u64>,
        /// The most bytes that are made for a read of one byte.
        read_cost: u64,
    },
}

impl Values {
    pub(crate) fn made(read_cost: u64, source: Arc<dyn Source>, place: Option<u64>) -> Self {
        Values::Made { source, place, read_cost }
    }

    /// The values as a source of their own.
    pub(crate) fn source(&self, store: &Store) -> Arc<dyn Source> {
        match self {
            Values::Made { source, .. } => Arc::clone(source),
            Values::Stored(span) => Arc::new(Section::new(Arc::clone(&store.source), *span)),
        }
    }

    /// The most bytes that are made for a read of one byte.
    pub(crate) fn read_cost(&self) -> u64 {
        match self {
            Values::Stored(_) => 0,
            Values::Made { read_cost, .. } => *read_cost,
        }
    }
}

/// A dataset without its values.
pub(crate) struct Dataset {
    pub(crate) header: ObjectHeader,
    dataspace: Dataspace,
    datatype: Arc<Datatype>,
    pub(crate) number: Number,
    /// The dimensions of an element that is an array.
    inner: Vec<u64>,
}

impl Dataset {
    /// Reads the shape and the datatype; `None` if the dataset is not a tensor. Opaque
    /// bytes are of the first type of `ml_dtypes` that has as many. `listed` is set in every case. Unsupported elements are an
    /// error of code `dtype`.
    pub(crate) fn read(
        store: &Store,
        header: ObjectHeader,
        common: &mut Common,
        ml_dtypes: &[MlDtype],
        listed: &mut Listed,
    ) -> Result<Option<Self>> {
        let dataspace = header.read_message(store, kind::DATASPACE, Dataspace::read)?;
        let dataspace = dataspace.ok_or(Hdf5Fault::Missing("the dataspace"))?;
        listed.shape = dataspace.shape.clone();
        let datatype = header.message(kind::DATATYPE);
        let datatype = datatype.ok_or(Hdf5Fault::Missing("the datatype"))?;
        let datatype = common.datatype(store, datatype)?;
        listed.dtype = Some(datatype.describe());
        if dataspace.shape.is_none() {
            listed.dtype = Some("a null dataspace, without elements");
            return Ok(None);
        }
        let of_opaque = datatype.opaque_as(ml_dtypes);
        if datatype.is_other() && of_opaque.is_none() {
            return Ok(None);
        }
        let (number, inner) = match &datatype.class {
            Class::Number(number) => (number.clone(), Vec::new()),
            Class::Array(dimensions, number) => (number.clone(), dimensions.clone()),
            _ => {
                let what = datatype.describe();
                let number = of_opaque.ok_or(Hdf5Fault::Element { what })?;
                listed.dtype = Some(number.logical_type.unwrap_or(number.dtype.as_str()));
                (number, Vec::new())
            }
        };
        Ok(Some(Dataset { header, dataspace, datatype, number, inner }))
    }

    /// The names of an enumeration, and whether other datasets may share them.
    pub(crate) fn names(&self) -> Option<(Arc<Attributes>, bool)> {
        let mut datatypes = self.header.messages(kind::DATATYPE);
        let is_shared = datatypes.any(|body| body.is_shared);
        let names = self.number.names.clone();
        names.map(|names| (names, is_shared))
    }

    /// Elements in every dimension; the dimensions of an element that is an array do not count.
    pub(crate) fn shape(&self) -> &[u64] {
        self.dataspace.shape.as_deref().unwrap_or_default()
    }

    pub(crate) fn element_len(&self) -> u64 {
        self.datatype.byte_len
    }

    /// Whether the other dataset stores its elements in the same way.
    pub(crate) fn has_elements_of(&self, other: &Dataset) -> bool {
        let kind = |dataset: &Dataset| {
            let number = &dataset.number;
            (
                number.dtype,
                number.logical_type,
                number.byte_order,
                number.bit_layout,
                number.ml_dtype,
            )
        };
        kind(self) == kind(other)
            && self.inner == other.inner
            && self.element_len() == other.element_len()
    }

    /// Bytes of a dataset with such elements. More than 2^63 are an error.
    pub(crate) fn byte_len_of(&self, shape: &[u64]) -> Result<u64, Hdf5Fault> {
        let mut counts = shape.iter();
        let byte_len = counts.try_fold(self.element_len(), |len, count| len.checked_mul(*count));
        let byte_len = byte_len.filter(|len| i64::try_from(*len).is_ok());
        byte_len.ok_or(Hdf5Fault::Overflow)
    }

    /// The place of the values. External files are unsupported.
    pub(crate) fn layout(&self, store: &Store) -> Result<Layout> {
        if self.header.message(kind::EXTERNAL_FILES).is_some() {
            return Err(Hdf5Fault::Unsupported("data in other files").into());
        }
        let header = &self.header;
        let layout = header.read_message(store, kind::LAYOUT, Layout::read)?;
        Ok(layout.ok_or(Hdf5Fault::Missing("the layout"))?)
    }

    /// The object of a dataset with that shape, whose values are in `span` of its source.
    pub(crate) fn object(&self, shape: &[u64], span: Span) -> Object {
        let shape: Vec<u64> = shape.iter().chain(&self.inner).copied().collect();
        let number = &self.number;
        let mut data = Component::new(number.dtype, Blob::raw(span));
        data.logical_type = number.logical_type.map(Into::into);
        data.byte_order = number.byte_order;
        let format = number.packed().map_or("dense", PackedType::format);
        Object::new(shape, format).with_component("data", data)
    }
}

impl Datasets {
    pub(crate) fn new(store: &Store, limits: &Limits) -> Self {
        let limit = store.byte_len().saturating_mul(MAX_RATIO).saturating_add(DECODED_MIN);
        Datasets {
            bands: Bands::default(),
            indices: store.afresh(),
            decoded: Budget::new(limit),
            decoded_max: limits.decoded_len,
            // A limit may saturate.
            made: Budget::new(limit.saturating_add(limits.decoded_len)),
        }
    }

    /// The values of a dataset that is not virtual.
    pub(crate) fn values(&self, store: &Store, known: &Dataset, layout: Layout) -> Result<Values> {
        let byte_len = known.byte_len_of(known.shape())?;
        let whole = |found: u64| {
            let expected = byte_len;
            let is_whole = found >= expected;
            is_whole.then_some(()).ok_or(Hdf5Fault::Length { expected, found })
        };
        match layout {
            Layout::Virtual(..) => Err(Hdf5Fault::Unsupported("data in other datasets").into()),
            _ if byte_len == 0 => Ok(Values::Stored(Span::default())),
            Layout::Compact(span) => {
                whole(span.byte_len())?;
                let span = Span::new(span.offset(), byte_len).ok_or(Hdf5Fault::Overflow)?;
                Ok(Values::Stored(span))
            }
            Layout::Contiguous { address: Some(address), byte_len: found } => {
                whole(found.unwrap_or(byte_len))?;
                let span = store.span(address, byte_len, "the data")?;
                Ok(Values::Stored(span))
            }
            Layout::Contiguous { address: None, .. }
            | Layout::Chunked(Chunking { address: None, .. }) => {
                self.charge(byte_len)?;
                let fill =
                    crate::structures::fill_value::read(store, &known.header, known.element_len())?;
                let constant = Arc::new(Constant::new(fill, byte_len));
                Ok(Values::made(0, constant, None))
            }
            Layout::Chunked(chunking @ Chunking { address: Some(address), .. }) => {
                self.chunked(store, known, chunking, address, byte_len)
            }
        }
    }

    fn chunked(
        &self,
        store: &Store,
        known: &Dataset,
        chunking: Chunking,
        address: u64,
        byte_len: u64,
    ) -> Result<Values> {
        let pipeline =
            known.header.read_message(store, kind::FILTERS, Pipeline::read)?.unwrap_or_default();
        let element_len = known.datatype.byte_len;
        let fill = crate::structures::fill_value::read(store, &known.header, element_len)?;
        let shape = known.shape().to_vec();
        let limits = &known.dataspace.limits;
        let field = |what, value| Err(Hdf5Fault::field(what, value));
        if chunking.element_len != element_len {
            return field("the length of a chunk's element", chunking.element_len);
        }
        if chunking.shape.len() != shape.len() {
            return field("the rank of a chunk", chunking.shape.len() as u64);
        }
        let grid = Grid::new(shape, limits, chunking.shape.clone(), element_len);
        let grid = grid.ok_or(Hdf5Fault::Overflow)?;
        if !pipeline.is_empty() {
            let limit = CHUNK_MAX.min(pipeline.chunk_max(store.byte_len()));
            let (byte_len, limit) = (grid.chunk_len, limit.min(self.decoded_max));
            if byte_len > limit {
                return Err(Hdf5Fault::ChunkSize { byte_len, limit }.into());
            }
        }
        self.charge(byte_len)?;
        let place = store.offset(address)?;
        let (indices, shared) = (&self.indices, (&self.bands, &self.decoded));
        let values = Chunked::new(indices, chunking, grid, pipeline, fill, byte_len, shared)?;
        let read_cost = values.read_cost();
        Ok(Values::made(read_cost, Arc::new(values), Some(place)))
    }

    /// Refuses values that take more bytes than the caller allows, alone or with the values before them.
    fn charge(&self, byte_len: u64) -> Result<(), Hdf5Fault> {
        self.check_len(byte_len)?;
        self.made.decode(byte_len)
    }

    /// Refuses values that take more bytes than the caller allows.
    pub(crate) fn check_len(&self, byte_len: u64) -> Result<(), Hdf5Fault> {
        let limit = self.decoded_max;
        if byte_len > limit {
            return Err(Hdf5Fault::Decoded { byte_len, limit });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::size::Sizes;

    /// 1,000 datasets of 60 GiB in a file of 365 KB would make a reader busy for ever.
    #[test]
    fn values_that_were_never_written_are_limited_for_a_file() {
        let sizes = Sizes { offset: 8, length: 8 };
        let file = Arc::new(zt::Memory::new(vec![0u8; 8]));
        let store = Store::new(file, Span::new(0, 8).unwrap(), 0, sizes);
        let datasets = Datasets::new(&store, &Limits::default());
        let len = 60 << 30;
        assert!(datasets.charge(len).is_ok());
        let refused = datasets.charge(len);
        assert!(matches!(refused, Err(Hdf5Fault::Sparse { .. })), "{refused:?}");
    }
}
