//! Objects larger than memory, written component by component.

use std::io::{self, Write};

use zt_manifest::{DType, Map, Object, Text};

use crate::encode::Component;
use crate::error::{Error, Result};
use crate::options::ObjectOptions;
use crate::progress::{Progress, report};
use crate::tensor::Tensor;
use crate::writer::{Writer, component};

/// An object on its way into a file. See [`Writer::begin`].
///
/// Dropped before [`ObjectWriter::finish`], it leaves its writer unable to finish: the bytes are
/// in the file, and nothing would say whose they are.
///
/// ```
/// use std::io::Write;
/// use zt::{DType, File, Writer};
///
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes)?;
/// let mut object = writer.begin("ramp", &[1000], "dense")?;
/// let mut data = object.component("data", DType::U16, None)?;
/// for value in 0..1000u16 {
///     data.write_all(&value.to_le_bytes())?;
/// }
/// data.finish()?;
/// object.finish()?;
/// writer.finish()?;
/// assert_eq!(File::from_bytes(bytes)?.tensor("ramp")?.as_slice::<u16>()?[999], 999);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ObjectWriter<'a, 'w> {
    writer: &'a mut Writer<'w>,
    name: String,
    object: Object,
    options: ObjectOptions,
    finished: bool,
}

impl<'a, 'w> ObjectWriter<'a, 'w> {
    pub(crate) fn new(writer: &'a mut Writer<'w>, name: &str, object: Object) -> Self {
        let options = ObjectOptions::from(writer.options);
        ObjectWriter {
            writer,
            name: name.to_owned(),
            object,
            options,
            finished: false,
        }
    }

    /// Stores the components that follow as `options` say.
    #[must_use]
    pub fn options(mut self, options: ObjectOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the object's attributes.
    pub fn set_attributes(&mut self, attributes: Map) {
        self.object.attributes = Some(attributes);
    }

    /// Sets fields of the object that the specification does not know.
    pub fn set_extra(&mut self, extra: Map) {
        self.object.extra = extra;
    }

    /// Begins a component of elements of `dtype`, with a logical type where that means more.
    ///
    /// # Errors
    ///
    /// None before its bytes are written; reserved.
    pub fn component(
        &mut self,
        role: impl Into<Text>,
        dtype: DType,
        logical_type: Option<Text>,
    ) -> Result<ComponentWriter<'_, 'a, 'w>> {
        let role = role.into();
        let options = self.options.of(&role);
        let expected_len = self.expected_len(dtype);
        Ok(ComponentWriter {
            role,
            dtype,
            logical_type,
            extra: Map::new(),
            component: Component::new(options, expected_len),
            batch: Vec::new(),
            object: self,
        })
    }

    /// Ends the object: it is held to the rules of its format.
    ///
    /// # Errors
    ///
    /// The fault that a reader would find; the file cannot be finished then.
    pub fn finish(mut self) -> Result<()> {
        let object = std::mem::replace(&mut self.object, Object::new([], ""));
        self.writer
            .check_object(&object)
            .map_err(|error| error.with_object(&self.name))?;
        self.writer.push(&self.name, object);
        self.finished = true;
        Ok(())
    }

    /// A guess that decides about the placement alone.
    fn expected_len(&self, dtype: DType) -> u64 {
        let shape = self.object.shape.iter();
        shape.fold(dtype.byte_len() as u64, |len, dimension| {
            len.saturating_mul(*dimension)
        })
    }
}

impl Drop for ObjectWriter<'_, '_> {
    fn drop(&mut self) {
        self.writer.abandoned |= !self.finished;
    }
}

/// Takes the decoded little-endian bytes of one component, in pieces of any size. Memory: 16 MiB
/// of content, and their compressed frames. See [`ObjectWriter::component`].
pub struct ComponentWriter<'o, 'a, 'w> {
    object: &'o mut ObjectWriter<'a, 'w>,
    role: Text,
    dtype: DType,
    logical_type: Option<Text>,
    extra: Map,
    component: Component,
    /// Content that has not been handed on: never more than a batch.
    batch: Vec<u8>,
}

impl ComponentWriter<'_, '_, '_> {
    /// Sets fields of the component that the specification does not know.
    pub fn set_extra(&mut self, extra: Map) {
        self.extra = extra;
    }

    /// Ends the component.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Io`] where the sink fails.
    pub fn finish(mut self) -> Result<()> {
        let role = self.role.clone();
        self.flush_batch(true)
            .map_err(|error| error.with_component(&role))?;
        let ComponentWriter {
            object,
            role,
            dtype,
            logical_type,
            extra,
            component: stored,
            ..
        } = self;
        let blob = stored.finish(&mut object.writer.container)?;
        let mut described = component(dtype, logical_type, blob);
        described.extra = extra;
        object.object.components.push((role, described));
        Ok(())
    }

    fn flush_batch(&mut self, last: bool) -> Result<()> {
        let Writer {
            encoder, container, ..
        } = &mut *self.object.writer;
        self.component.push(encoder, container, &self.batch, last)?;
        self.batch.clear();
        Ok(())
    }
}

impl Write for ComponentWriter<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.component.is_raw() && self.batch.is_empty() {
            let Writer {
                encoder, container, ..
            } = &mut *self.object.writer;
            self.component.push(encoder, container, bytes, false)?;
            return Ok(bytes.len());
        }
        // A full batch waits for the next byte: only then is it known not to be the last.
        if self.batch.len() == Component::BATCH && !bytes.is_empty() {
            self.flush_batch(false)?;
        }
        let len = bytes.len().min(Component::BATCH - self.batch.len());
        self.batch
            .extend_from_slice(bytes.get(..len).unwrap_or_default());
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Writer<'_> {
    /// Adds an object of another file under `name`, in bounded memory: format, attributes, unknown
    /// fields and values stay, encodings and digests are this writer's. Components come in the
    /// order of their data.
    ///
    /// # Errors
    ///
    /// As [`Writer::add`] and [`Tensor::reader`].
    pub fn copy(&mut self, name: &str, tensor: &Tensor<'_>) -> Result<()> {
        self.copy_with(name, tensor, &ObjectOptions::from(self.options), None)
    }

    /// As [`Writer::copy`], stored as `options` say, telling how far it is.
    ///
    /// # Errors
    ///
    /// As [`Writer::copy`]; [`crate::ErrorKind::Interrupted`].
    pub fn copy_with(
        &mut self,
        name: &str,
        tensor: &Tensor<'_>,
        options: &ObjectOptions,
        progress: Option<Progress<'_>>,
    ) -> Result<()> {
        let source = tensor.object();
        let object = self.begin(name, &source.shape, source.format.clone())?;
        let mut object = object.options(options.clone());
        object.object.attributes.clone_from(&source.attributes);
        object.set_extra(source.extra.clone());
        let mut components: Vec<_> = source.components.iter().collect();
        components.sort_by_key(|(_, component)| component.blob.span.offset());
        for (role, component) in components {
            let dtype = tensor.dtype_to_write(role, component)?;
            let mut out = object.component(role.clone(), dtype, component.logical_type.clone())?;
            out.set_extra(component.extra.clone());
            let mut reader = tensor.reader(role)?;
            let mut piece = tensor.piece(role);
            loop {
                let len = reader.read(&mut piece)?;
                let bytes = piece.get(..len).unwrap_or_default();
                if bytes.is_empty() {
                    break;
                }
                out.write_all(bytes).map_err(unwrapped)?;
                report(progress, len as u64)?;
            }
            out.finish()?;
        }
        object.finish()
    }
}

/// Our own error back out of the `io::Error` that [`Write`] asks for.
pub(crate) fn unwrapped(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => error.into(),
    }
}
