//! Adds an array to a file as an object.

use std::sync::Arc;
use zt::container::bytes_of;
use zt::foreign::{FileBuilder, SourceId};
use zt::{
    Blob, Component, Digest, Error, ErrorKind, RawComponent, RawObject, Result, Source, Span,
};
use zt_foreign::strided::{Bands, Strided, View};
use zt_foreign::{Meaning, MlDtype, Packing};

use crate::descr::{Descr, ElementType, OBJECTS, RECORDS};
use crate::fault::NpyFault;
use crate::header::Header;

/// Gives the digest of the bytes between the first ones of a span and its last ones.
pub(crate) type DigestBetween<'d> = dyn Fn(&[u8], Span) -> Result<Option<Digest>> + 'd;

/// The bytes of an array, from its magic on: a file, or a stored or inflated member of an archive.
pub(crate) struct Data<'d> {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) span: Span,
    /// The builder's id of the source.
    pub(crate) id: SourceId,
    /// The file, and the offset of the array in it.
    pub(crate) archive: (SourceId, u64),
    /// The digest of the bytes between these first ones and the last ones of the span, which it may read.
    pub(crate) digest_between: &'d DigestBetween<'d>,
    /// The types of opaque bytes.
    pub(crate) ml_dtypes: &'d [MlDtype],
}

/// What an array is.
pub(crate) enum Found {
    Array(Array),
    /// Its elements are no numbers, in words.
    Other(&'static str),
}

/// An array of numbers.
pub(crate) struct Array {
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<u64>,
    /// The elements, row-major, and packed if they have less than a byte each.
    pub(crate) blob: Blob,
    pub(crate) source: Arc<dyn Source>,
    /// The builder's id of the source.
    pub(crate) id: SourceId,
}

impl Array {
    pub(crate) fn component(&self) -> Component {
        let mut component = self.element.meaning.component(self.blob.clone());
        component.byte_order = self.element.byte_order;
        component
    }
}

impl Data<'_> {
    /// Adds the array as an object, or with its fault; leaves it out if it is not a tensor. The arrays
    /// of a file share `bands`. A fault is an error if its kind `refuses` the file.
    pub(crate) fn add_to(
        &self,
        builder: &mut FileBuilder,
        name: &str,
        bands: &Bands,
        refuses: impl Fn(ErrorKind) -> bool,
    ) -> Result<()> {
        let mut raw = RawObject::default();
        match self.find(&mut raw, builder, bands, name) {
            Err(error) if refuses(error.kind()) => return Err(error),
            Err(error) => builder.fault(name, raw, error),
            Ok(Found::Other(what)) => builder.not_a_tensor(name, what),
            Ok(Found::Array(array)) => {
                let component = array.component();
                let object = array.element.meaning.object(array.shape, component);
                builder.object(name, object, array.id);
            }
        }
        Ok(())
    }

    /// Warns of what NumPy would run to load Python objects.
    fn look_into(&self, data: Span, builder: &mut FileBuilder, name: &str) -> Result<()> {
        /// The longest pickle that is looked into.
        const LOOKED_INTO: u64 = 16 << 20;
        let len = data.byte_len().min(LOOKED_INTO);
        let span = Span::new(data.offset(), len).ok_or(NpyFault::Short)?;
        for found in zt_pickle::uses(&bytes_of(&self.source, span)?) {
            let error = Error::new(ErrorKind::Unsupported, found.code(), found.to_string());
            builder.tolerated(error.with_object(name));
        }
        Ok(())
    }

    /// Finds the elements. Whatever was read before an error is in `raw`.
    pub(crate) fn find(
        &self,
        raw: &mut RawObject,
        builder: &mut FileBuilder,
        bands: &Bands,
        name: &str,
    ) -> Result<Found> {
        raw.format = Some("dense".into());
        let header = Header::read(&self.source, self.span)?;
        let start = self.span.offset().strict_add(header.bytes.len() as u64);
        let data = Span::between(start, self.span.end()).ok_or(NpyFault::Short)?;
        raw.shape = Some(header.shape.clone());
        raw.components = vec![("data".into(), described(&header, data))];
        let blame = |fault: NpyFault| Error::from(fault).with_component("data").with_span(data);

        let Some(descr) = header.descr else {
            self.look_into(data, builder, name)?;
            return Ok(Found::Other(RECORDS));
        };
        let element = match Descr::parse(&descr, self.ml_dtypes) {
            Descr::Elements(element) => element,
            Descr::Other(what) => {
                if what == OBJECTS {
                    self.look_into(data, builder, name)?;
                }
                return Ok(Found::Other(what));
            }
            Descr::Unsupported(what) => {
                return Err(blame(NpyFault::Unsupported { descr, what }));
            }
            Descr::Unknown => return Err(blame(NpyFault::Descr { descr })),
        };
        let expected =
            byte_len(element.byte_len, &header.shape).ok_or_else(|| blame(NpyFault::Overflow))?;
        let found = data.byte_len();
        let stored = Span::new(start, expected).filter(|stored| data.contains(*stored));
        let stored = stored.ok_or_else(|| blame(NpyFault::Cut { expected, found }))?;
        let mut blob = Blob::raw(stored);
        // `numpy.load` ignores bytes after the elements too.
        let rest = Span::between(stored.end(), data.end()).ok_or(NpyFault::Short)?;
        if !rest.is_empty() {
            let bytes = rest.byte_len();
            let error = Error::from(NpyFault::After { bytes });
            builder.tolerated(error.with_object(name).with_span(rest));
        }
        blob.digest = (self.digest_between)(&header.bytes, rest)?;
        let array = Array {
            element,
            shape: header.shape,
            blob,
            source: Arc::clone(&self.source),
            id: self.id,
        };
        let array = self.rearranged(array, header.fortran_order, builder, bands)?;
        Ok(Found::Array(array))
    }

    /// The elements in row-major order, and packed if they have less than a byte each.
    fn rearranged(
        &self,
        mut array: Array,
        fortran_order: bool,
        builder: &mut FileBuilder,
        bands: &Bands,
    ) -> Result<Array> {
        let (start, width) = (array.blob.span.offset(), array.element.byte_len);
        let view = if fortran_order {
            View::fortran(start, width, &array.shape)
        } else {
            View::new(start, array.blob.span.byte_len(), &[], &[])
        };
        let view = view.ok_or(NpyFault::Overflow)?;
        let packed = match array.element.meaning {
            Meaning::Packed(packed) => Some(packed),
            Meaning::Values(..) if view.as_span().is_some() => return Ok(array),
            Meaning::Values(..) => None,
        };
        let count = view.byte_len();
        let strided = Arc::new(Strided::new(array.source, view, bands)?.checked(array.blob));
        array.source = match packed {
            Some(packed) => Arc::new(Packing::new(strided, 0, count, packed)),
            None => strided,
        };
        let all = Span::new(0, array.source.byte_len()).ok_or(NpyFault::Overflow)?;
        array.blob = Blob::raw(all);
        let (file, offset) = self.archive;
        array.id = builder.derived_from(Arc::clone(&array.source), file, offset);
        Ok(array)
    }
}

/// A listing shows this of an array that cannot be read.
fn described(header: &Header, data: Span) -> RawComponent {
    let mut component = RawComponent::default();
    component.dtype = header.descr.clone().map(Into::into);
    component.offset = Some(data.offset());
    component.length = Some(data.byte_len());
    component
}

/// The bytes of an array; `None` for a shape that NumPy refuses. NumPy ignores zeros when it checks
/// for overflow.
pub(super) fn byte_len(element_len: u64, shape: &[u64]) -> Option<u64> {
    let multiply = |product: u64, dimension: &u64| product.checked_mul(*dimension);
    let others = shape.iter().filter(|dimension| **dimension > 0);
    let byte_len = others.clone().try_fold(element_len, multiply)?;
    i64::try_from(byte_len).ok()?;
    Some(if others.count() < shape.len() { 0 } else { byte_len })
}
