//! Objects larger than memory, written component by component.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use zt_container::memory::zeroed;
use zt_container::{Blob, BlobReader, Digest, Encoding};
use zt_formats::{ComponentSignature, PlaneCodec, Signature, SizeMismatch, check_bools_from};
use zt_manifest::{ByteOrder, Component, DType, Map, Object, Text};

use crate::cores::progress::{Progress, report};
use crate::error::{Error, Fault, Result};
use crate::file::tensor::{Located, Tensor};
use crate::write::encode::{self, Placed};
use crate::write::options::{ComponentOptions, Compression, DEFAULT_LEVEL, Keeps, ObjectOptions};
use crate::write::writer::{Writer, component};

/// Stored bytes that are copied at a time.
const PIECE: u64 = 1 << 20;

/// An object that is being written. See [`Writer::begin`].
///
/// If it is dropped before [`ObjectWriter::finish`], its writer cannot finish, because the file
/// would have bytes of no object. Contents are checked only where that needs no memory: bools are
/// checked, and the indices of sparse objects are not.
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
    pub(crate) writer: &'a mut Writer<'w>,
    pub(crate) name: String,
    pub(crate) object: Object,
    options: ObjectOptions,
    pub(crate) keeps: Keeps,
    /// The rules of its format are not checked.
    pub(crate) is_unchecked: bool,
    /// A component was begun and not finished.
    is_open: bool,
    /// The place of the component with each role.
    roles: HashMap<Text, usize>,
}

impl<'a, 'w> ObjectWriter<'a, 'w> {
    pub(crate) fn new(writer: &'a mut Writer<'w>, name: &str, object: Object) -> Self {
        let options = writer.options_for(&object.format);
        // This is set until the object is finished, because a forgotten value is not dropped.
        let keeps = writer.keeps;
        let name = name.to_owned();
        writer.abandoned = Some(name.clone());
        ObjectWriter {
            writer,
            name,
            object,
            options,
            keeps,
            is_unchecked: false,
            is_open: false,
            roles: HashMap::new(),
        }
    }

    /// Stores the following components with `options`, copied ones too.
    #[must_use]
    pub fn options(mut self, options: ObjectOptions) -> Self {
        self.options = options;
        self.keeps = Keeps::default();
        self
    }

    /// Writes the object even if it breaks a rule of its format: for a copy of an object that has
    /// a [fault](crate::Tensor::fault).
    #[must_use]
    pub fn unchecked(mut self) -> Self {
        self.is_unchecked = true;
        self
    }

    /// The storage of the component of this role.
    pub(crate) fn options_of(&self, role: &str) -> ComponentOptions {
        self.options.of(role)
    }

    /// Sets the object's attributes.
    pub fn set_attributes(&mut self, attributes: Map) {
        self.object.attributes = Some(attributes);
    }

    /// The length of each plane that `codec` makes of the object's values, if it is known.
    pub(crate) fn plane_len(&self, codec: &PlaneCodec) -> u64 {
        let len = codec.plane_len(&self.object.shape, &self.writer.registry);
        len.ok().flatten().unwrap_or(0)
    }

    /// Takes the object apart from its writer, for a caller that keeps it between calls and cannot keep
    /// a borrow, as a binding to another language. [`Writer::resume_object`] goes on with it. Until
    /// then the writer takes no other object, and cannot finish.
    #[must_use]
    pub fn suspend(self) -> SuspendedObject {
        SuspendedObject {
            name: self.name,
            object: self.object,
            options: self.options,
            keeps: self.keeps,
            is_unchecked: self.is_unchecked,
            is_open: self.is_open,
            roles: self.roles,
        }
    }

    /// Goes on with a component of this object that was suspended.
    #[must_use]
    pub fn resume_component(
        &mut self,
        suspended: SuspendedComponent,
    ) -> ComponentWriter<'_, 'a, 'w> {
        ComponentWriter {
            object: self,
            role: suspended.role,
            dtype: suspended.dtype,
            logical_type: suspended.logical_type,
            extra: suspended.extra,
            component: suspended.component,
            written: suspended.written,
        }
    }

    /// Adds attributes to the present ones.
    pub(crate) fn add_attributes(&mut self, attributes: Map) {
        let all = self.object.attributes.get_or_insert_with(Map::new);
        for (key, value) in attributes {
            all.insert(key, value);
        }
    }

    /// Sets fields of the object that the specification does not define.
    pub fn set_extra(&mut self, extra: Map) {
        self.object.extra = extra;
    }

    /// Begins a component of elements of `dtype`, with their logical type, if any.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`] if the object has a component of that role, or if the component
    /// before was not finished.
    pub fn component(
        &mut self,
        role: impl Into<Text>,
        dtype: DType,
        logical_type: Option<Text>,
    ) -> Result<ComponentWriter<'_, 'a, 'w>> {
        let role = role.into();
        let fault = match self.roles.entry(role.clone()) {
            _ if self.is_open => Some(Fault::UnfinishedComponent),
            Entry::Vacant(entry) => {
                entry.insert(self.object.components.len());
                None
            }
            Entry::Occupied(_) => Some(Fault::DuplicateRole),
        };
        if let Some(fault) = fault {
            let error = Error::from(fault).with_object(&self.name);
            return Err(error.with_component(&role));
        }
        self.is_open = true;
        let options = self.options.of(&role);
        let expected_len = self.expected_len(dtype);
        Ok(ComponentWriter {
            role,
            dtype,
            logical_type,
            extra: Map::new(),
            component: encode::Component::new(options, expected_len),
            written: 0,
            object: self,
        })
    }

    /// The place and the type of a finished component of this object.
    pub(crate) fn shared(&self, role: &str) -> Result<(Option<DType>, Placed)> {
        let found = self.roles.get(role).and_then(|at| {
            let (_, component) = self.object.components.get(*at)?;
            Some((*at, component))
        });
        let (at, component) = found.ok_or_else(|| Fault::NoSuchComponent {
            role: role.to_owned(),
        })?;
        let (writer, object) = (&self.writer, self.writer.object_count());
        Ok((component.dtype, writer.placed(object, at, &component.blob)))
    }

    /// Checks the object by its format and ends it.
    ///
    /// # Errors
    ///
    /// The fault that a reader would find; [`crate::ErrorKind::Misuse`] if a component was not finished.
    /// The file cannot be finished then.
    pub fn finish(mut self) -> Result<()> {
        if self.is_open {
            return Err(Error::from(Fault::UnfinishedComponent).with_object(&self.name));
        }
        let object = std::mem::replace(&mut self.object, Object::new([], ""));
        if !self.is_unchecked {
            let checked = self.writer.check_object(&object);
            checked.map_err(|error| error.with_object(&self.name))?;
        }
        self.writer.push(&self.name, object)?;
        self.writer.abandoned = None;
        Ok(())
    }

    /// A guess, used only for the placement: only the data of a dense object has the length of its
    /// shape.
    fn expected_len(&self, dtype: DType) -> u64 {
        if self.object.format != "dense" {
            return 0;
        }
        let shape = self.object.shape.iter();
        shape.fold(dtype.byte_len() as u64, |len, dimension| {
            len.saturating_mul(*dimension)
        })
    }
}

/// An object that is being written, without a borrow of its writer: see [`ObjectWriter::suspend`]. If it
/// is dropped, its writer cannot finish.
pub struct SuspendedObject {
    name: String,
    object: Object,
    options: ObjectOptions,
    keeps: Keeps,
    is_unchecked: bool,
    is_open: bool,
    roles: HashMap<Text, usize>,
}

/// A component that is being written, without a borrow of its object: see [`ComponentWriter::suspend`].
pub struct SuspendedComponent {
    role: Text,
    dtype: DType,
    logical_type: Option<Text>,
    extra: Map,
    component: encode::Component,
    written: u64,
}

impl<'w> Writer<'w> {
    /// Goes on with an object of this writer that was suspended.
    ///
    /// ```
    /// use std::io::Write;
    /// use zt::{DType, File, Writer};
    ///
    /// let mut bytes = Vec::new();
    /// let mut writer = Writer::new(&mut bytes)?;
    /// let mut object = writer.begin("pair", &[2], "dense")?;
    /// let component = object.component("data", DType::U8, None)?.suspend();
    /// let suspended = object.suspend();
    /// // Later, and elsewhere:
    /// let mut object = writer.resume_object(suspended);
    /// let mut data = object.resume_component(component);
    /// data.write_all(&[1, 2])?;
    /// data.finish()?;
    /// object.finish()?;
    /// writer.finish()?;
    /// assert_eq!(*File::from_bytes(bytes)?.tensor("pair")?.as_slice::<u8>()?, [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn resume_object(&mut self, suspended: SuspendedObject) -> ObjectWriter<'_, 'w> {
        ObjectWriter {
            writer: self,
            name: suspended.name,
            object: suspended.object,
            options: suspended.options,
            keeps: suspended.keeps,
            is_unchecked: suspended.is_unchecked,
            is_open: suspended.is_open,
            roles: suspended.roles,
        }
    }
}

impl std::fmt::Debug for SuspendedObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("SuspendedObject");
        debug.field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SuspendedComponent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("SuspendedComponent");
        debug.field("role", &self.role).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ObjectWriter<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("ObjectWriter");
        debug
            .field("name", &self.name)
            .field("object", &self.object)
            .finish_non_exhaustive()
    }
}

/// Takes the decoded little-endian bytes of one component, in pieces of any size. See
/// [`ObjectWriter::component`]; for memory and errors of the sink, [`Writer`].
pub struct ComponentWriter<'o, 'a, 'w> {
    pub(crate) object: &'o mut ObjectWriter<'a, 'w>,
    pub(crate) role: Text,
    pub(crate) dtype: DType,
    logical_type: Option<Text>,
    extra: Map,
    pub(crate) component: encode::Component,
    /// The number of bytes so far.
    pub(crate) written: u64,
}

impl std::fmt::Debug for ComponentWriter<'_, '_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("ComponentWriter");
        debug
            .field("role", &self.role)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}

impl ComponentWriter<'_, '_, '_> {
    /// Announces the number of bytes, so that a large component begins on a page. Only the alignment
    /// depends on it. Call it before the first byte, if the shape of the object does not imply it.
    pub fn expect_len(&mut self, byte_len: u64) {
        self.component.expect_len(byte_len);
    }

    /// Sets fields of the component that the specification does not define.
    pub fn set_extra(&mut self, extra: Map) {
        self.extra = extra;
    }

    /// Takes the component apart from its object: see [`ObjectWriter::suspend`], which comes next.
    #[must_use]
    pub fn suspend(self) -> SuspendedComponent {
        SuspendedComponent {
            role: self.role,
            dtype: self.dtype,
            logical_type: self.logical_type,
            extra: self.extra,
            component: self.component,
            written: self.written,
        }
    }

    /// Ends the component.
    ///
    /// # Errors
    ///
    /// Code `shape-size-mismatch` if the component is shorter than the format demands, from the
    /// shape and the components before it; [`crate::ErrorKind::Io`] if the sink fails.
    pub fn finish(mut self) -> Result<()> {
        let (expected, found) = (self.demanded_len().unwrap_or(0), self.written);
        if found < expected {
            let mismatch = SizeMismatch::Bytes { expected, found };
            let error = Error::from(mismatch.of(self.role.clone()));
            return Err(error.with_object(&self.object.name));
        }
        let options = ComponentOptions::default();
        let stored = std::mem::replace(&mut self.component, encode::Component::new(options, 0));
        let placed = stored.finish(&mut self.object.writer.encoder)?;
        self.place(placed);
        Ok(())
    }

    /// The length that the format gives the component; `None` if it depends on what is not written
    /// yet.
    fn demanded_len(&self) -> Option<u64> {
        /// No format has as many components; listing all of them for each would take long.
        const MANY: usize = 64;
        let object = &self.object.object;
        if self.object.is_unchecked || object.components.len() > MANY {
            return None;
        }
        let registry = &self.object.writer.registry;
        let format = registry.format(&object.format)?;
        let mut signature = Signature::of(object);
        signature.components.push(ComponentSignature {
            role: &self.role,
            dtype: Some(self.dtype),
            logical_type: self.logical_type.as_deref(),
            byte_len: Some(self.written),
        });
        format.expected_len(&self.role, &signature, registry)
    }

    /// Ends the component after its bytes.
    pub(crate) fn place(mut self, placed: Placed) {
        let at = self.object.object.components.len();
        let blob = self.object.writer.place(placed, at);
        let logical_type = self.logical_type.take();
        let mut described = component(self.dtype, logical_type, blob);
        described.extra = std::mem::take(&mut self.extra);
        self.object
            .object
            .components
            .push((self.role.clone(), described));
        self.object.is_open = false;
    }

    /// Refuses a bool that is neither 0 nor 1, as readers do, in the bytes from `first` on.
    pub(crate) fn check(&self, first: u64, bytes: &[u8]) -> Result<()> {
        if self.dtype != DType::Bool {
            return Ok(());
        }
        let checked = check_bools_from(first, bytes);
        checked.map_err(|error| {
            Error::from(error.with_role(self.role.clone())).with_object(&self.object.name)
        })
    }
}

impl ComponentWriter<'_, '_, '_> {
    /// Stores the bytes with the encoding and the digest algorithm of `component`, unless the options
    /// of the file or of the object choose others. Call it before the first byte.
    pub fn store_as(&mut self, component: &Component) {
        let (keeps, blob) = (self.object.keeps, &component.blob);
        let mut options = self.object.options_of(&self.role);
        if keeps.encoding {
            options.compression = match blob.encoding {
                Encoding::Zstd => Compression::Zstd(DEFAULT_LEVEL),
                _ => Compression::None,
            };
        }
        if keeps.digest
            && let Some(algorithm) = blob.digest.as_ref().and_then(Digest::algorithm)
        {
            options.digest = Some(algorithm);
        }
        self.component = encode::Component::new(options, blob.decoded_len.unwrap_or(0));
    }

    /// Ends the component, which must be empty, with the bytes of a component of another file. Returns
    /// their number, before compression.
    ///
    /// Encoding and digest algorithm are kept, unless the options of the file or of the object choose
    /// others. A compressed blob is then copied as it is stored, at the speed of a copy, and its digest
    /// is checked on the way. Without a digest, and for bools, it is decoded once before to find damage.
    /// Bytes are decoded and encoded again if other options were chosen, and if the file does not
    /// record the decoded length. `progress` counts decoded bytes.
    ///
    /// # Errors
    ///
    /// As [`Tensor::reader`]; [`crate::ErrorKind::Io`] if the sink fails;
    /// [`crate::ErrorKind::Misuse`] after a byte was written; [`crate::ErrorKind::Interrupted`].
    pub fn copy(
        self,
        tensor: &Tensor<'_>,
        role: &str,
        progress: Option<Progress<'_>>,
    ) -> Result<u64> {
        self.copy_part(tensor, tensor.locate(role)?, progress)
    }

    pub(crate) fn copy_part(
        mut self,
        tensor: &Tensor<'_>,
        part: Located<'_>,
        progress: Option<Progress<'_>>,
    ) -> Result<u64> {
        if self.written > 0 {
            return Err(Error::out_of_order());
        }
        self.store_as(part.component);
        if self.object.keeps.encoding
            && let Some(decoded_len) = stored_len(part.component)
        {
            let digest = part.component.blob.digest.as_ref();
            let has_digest = digest.and_then(Digest::algorithm).is_some();
            if !has_digest || self.dtype == DType::Bool {
                self.check_content(tensor, part, progress)?;
            }
            return self.copy_stored(tensor, part, decoded_len, progress);
        }
        let rest = self.copy_by_system(tensor, part, progress)?;
        let part = rest
            .as_ref()
            .map_or(part, |component| Located { component, ..part });
        let mut reader = tensor.reader_of(part, tensor.must_verify(part))?;
        reader.for_each_piece(part.piece_len(), |bytes| {
            // Checked here, so that the error names the object.
            let checked = self.check(self.written, bytes);
            checked.map_err(|error| tensor.blame(error, part))?;
            self.write_all(bytes)?;
            report(progress, bytes.len() as u64)
        })?;
        let byte_len = self.written;
        self.finish()?;
        Ok(byte_len)
    }

    /// Decodes a component that is copied as it is stored, as writing its content would check it.
    fn check_content(
        &self,
        tensor: &Tensor<'_>,
        part: Located<'_>,
        progress: Option<Progress<'_>>,
    ) -> Result<()> {
        let mut reader = tensor.reader_of(part, tensor.must_verify(part))?;
        let mut read = 0;
        reader.for_each_piece(part.piece_len(), |bytes| {
            let checked = self.check(read, bytes);
            checked.map_err(|error| tensor.blame(error, part))?;
            read += bytes.len() as u64;
            report(progress, 0)
        })
    }

    /// Copies the stored bytes of a compressed blob and compares its digest.
    fn copy_stored(
        mut self,
        tensor: &Tensor<'_>,
        part: Located<'_>,
        decoded_len: u64,
        progress: Option<Progress<'_>>,
    ) -> Result<u64> {
        let blob = &part.component.blob;
        self.component.expect_stored(blob.encoding, decoded_len);
        let stored = Blob {
            digest: blob.digest.clone(),
            ..Blob::raw(blob.span)
        };
        let blame = |error| tensor.blame(error, part);
        let source = tensor.source(part);
        let mut reader = BlobReader::new(source, &stored, tensor.limits()).map_err(blame)?;
        let stored_len = blob.span.byte_len();
        let mut piece = zeroed(stored_len.min(PIECE))?;
        let (mut copied, mut reported) = (0, 0);
        loop {
            let len = reader.read(&mut piece).map_err(blame)?;
            let bytes = piece.get(..len).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            let encoder = &mut self.object.writer.encoder;
            self.component.write(encoder, bytes)?;
            copied += len as u64;
            let done = share_of(decoded_len, copied, stored_len);
            report(progress, done - reported)?;
            reported = done;
        }
        self.written = decoded_len;
        self.finish()?;
        Ok(decoded_len)
    }
}

impl Write for ComponentWriter<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check(self.written, bytes)?;
        let encoder = &mut self.object.writer.encoder;
        self.component.write(encoder, bytes)?;
        self.written += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The decoded length of a compressed blob that can be copied as it is stored.
fn stored_len(component: &Component) -> Option<u64> {
    let blob = &component.blob;
    let is_little = component.byte_order == ByteOrder::Little;
    let decoded_len = blob.decoded_len?;
    (blob.encoding == Encoding::Zstd && is_little).then_some(decoded_len)
}

/// `part / whole` of `byte_len`.
fn share_of(byte_len: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(byte_len) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(byte_len) // A part is at most the whole.
}
