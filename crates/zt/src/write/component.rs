//! One component that is being written, from decoded bytes.

use std::io::{self, Write};

use zt_container::Blob;
use zt_formats::{ComponentSignature, Signature, SizeMismatch, check_bools_from};
use zt_manifest::{Attributes, ByteOrder, Component, DType, Fields, Text};

use crate::cores::debug;
use crate::error::{Error, Result};
use crate::write::copy::Expected;
use crate::write::encode::{ComponentEncoder, Placed};
use crate::write::object::ObjectWriter;

/// Takes the decoded little-endian bytes of one component, in pieces of any size. See
/// [`ObjectWriter::component`]; for memory and errors of the sink, [`Writer`](crate::Writer).
///
/// ```
/// use std::io::Write;
/// use zt::{DType, File, Writer};
///
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes)?;
/// let mut object = writer.begin("tokens", &[4], "dense")?;
/// let mut data = object.component("data", DType::U16, None)?;
/// data.write_all(&[1, 0, 2, 0])?;
/// data.write_all(&[3, 0, 4, 0])?;
/// data.finish()?;
/// object.finish()?;
/// writer.finish()?;
/// assert_eq!(*File::from_bytes(bytes)?.tensor("tokens")?.values::<u16>()?, [1, 2, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ComponentWriter<'o, 'a, 'w> {
    pub(crate) object: &'o mut ObjectWriter<'a, 'w>,
    pub(crate) state: SuspendedComponent,
}

/// A component that is being written, without a borrow of its object: see [`ComponentWriter::suspend`].
pub struct SuspendedComponent {
    pub(crate) role: Text,
    pub(crate) dtype: DType,
    logical_type: Option<Text>,
    extra: Attributes,
    pub(crate) encoder: ComponentEncoder,
}

impl SuspendedComponent {
    pub(crate) fn new(
        role: Text,
        dtype: DType,
        logical_type: Option<Text>,
        encoder: ComponentEncoder,
    ) -> Self {
        SuspendedComponent { role, dtype, logical_type, extra: Attributes::new(), encoder }
    }
}

impl ComponentWriter<'_, '_, '_> {
    /// Announces the number of bytes, so that a large component begins on a page. Only the alignment
    /// depends on it. Call it before the first byte, if the shape of the object does not imply it.
    pub fn expect_len(&mut self, byte_len: u64) {
        self.state.encoder.expect_len(byte_len);
    }

    /// Sets fields of the component that the specification does not define.
    ///
    /// # Errors
    ///
    /// As [`crate::Writer::set_extra`].
    pub fn set_extra(&mut self, extra: Attributes) -> Result<()> {
        self.object.check_fields(Fields::ExtraOfComponent, &extra)?;
        self.state.extra = extra;
        Ok(())
    }

    /// Takes the component apart from its object: see [`ObjectWriter::suspend`], which comes next.
    #[must_use]
    pub fn suspend(self) -> SuspendedComponent {
        self.state
    }

    pub(crate) fn written(&self) -> u64 {
        self.state.encoder.decoded_len()
    }

    /// Ends the component.
    ///
    /// # Errors
    ///
    /// Code `shape-size-mismatch` if the component is shorter than the format demands, from the
    /// shape and the components before it; [`crate::ErrorKind::Io`] if the sink fails.
    pub fn finish(self) -> Result<()> {
        self.finish_expecting(None)
    }

    /// As [`ComponentWriter::finish`], with the digest that the bytes must have.
    pub(crate) fn finish_expecting(mut self, digest: Option<Expected>) -> Result<()> {
        let (expected, found) = (self.demanded_len().unwrap_or(0), self.written());
        if found < expected {
            let mismatch = SizeMismatch::Bytes { expected, found };
            let error = Error::from(mismatch.of(self.state.role));
            return Err(error.with_object(&self.object.state.name));
        }
        let encoder = &mut self.object.writer.encoder;
        let placed = self.state.encoder.finish(encoder)?;
        match (&placed, digest) {
            (_, None) => {}
            (Placed::At(blob), Some(digest)) => digest.check(blob)?,
            (Placed::Later { ticket, .. }, Some(digest)) => {
                self.object.writer.expected.push((*ticket, digest));
            }
        }
        self.place(placed);
        Ok(())
    }

    /// The length that the format gives the component; `None` if it depends on components that are
    /// not written yet.
    fn demanded_len(&self) -> Option<u64> {
        /// No format has as many components; listing all of them for each would take long.
        const MANY: usize = 64;
        let object = &self.object.state.object;
        if self.object.state.is_unchecked || object.components.len() > MANY {
            return None;
        }
        let registry = &self.object.writer.registry;
        let format = registry.format(&object.format)?;
        let mut signature = Signature::of(object);
        signature.components.push(ComponentSignature {
            role: &self.state.role,
            dtype: Some(self.state.dtype),
            logical_type: self.state.logical_type.as_deref(),
            byte_len: Some(self.written()),
        });
        format.expected_len(&self.state.role, &signature, registry)
    }

    /// Ends the component with the bytes at a known place.
    pub(crate) fn place(self, placed: Placed) {
        let ComponentWriter { object, state } = self;
        let at = object.state.object.components.len();
        let blob = object.writer.place(placed, at);
        let component = Component {
            extra: state.extra,
            ..stored_component(state.dtype, state.logical_type, blob)
        };
        object.push(state.role, component);
    }

    /// Refuses a bool that is neither 0 nor 1, as readers do, in the bytes from `first` on.
    pub(crate) fn check(&self, first: u64, bytes: &[u8]) -> Result<()> {
        if self.state.dtype != DType::Bool {
            return Ok(());
        }
        let checked = check_bools_from(first, bytes);
        checked.map_err(|error| {
            let error = Error::from(error.with_role(self.state.role.clone()));
            error.with_object(&self.object.state.name)
        })
    }
}

impl Write for ComponentWriter<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check(self.written(), bytes)?;
        let encoder = &mut self.object.writer.encoder;
        self.state.encoder.write(encoder, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A component as the manifest lists it, without fields that have their default.
pub(crate) fn stored_component(dtype: DType, logical_type: Option<Text>, blob: Blob) -> Component {
    Component {
        dtype: Some(dtype),
        logical_type: dtype.logical_type(logical_type),
        byte_order: ByteOrder::Little,
        blob,
        extra: Attributes::new(),
    }
}

debug::fields!(SuspendedComponent, |component| role: component.role);

debug::fields!(
    ComponentWriter<'_, '_, '_>,
    |writer| role: writer.state.role, written: writer.written()
);
