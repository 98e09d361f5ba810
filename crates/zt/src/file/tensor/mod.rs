//! A handle on one object of a file: its metadata and its components.

mod component;
mod component_reader;
mod owned;
mod verified;

use std::borrow::Cow;
use std::sync::Arc;

use zt_container::{Blob, BlobReader, Encoding, Source, Span};
use zt_formats::{
    Buffer, Bytes, Dense, Element, Elements, Parts, Signature, Typed, View, element_count,
};
use zt_manifest::{Attributes, ByteOrder, Component, DType, Object, Text};

pub(crate) use self::component::{Located, elements_in, to_little_endian};
pub use self::component_reader::ComponentReader;
pub(crate) use self::component_reader::{SplitElement, copy_some, whole_elements};
pub use self::owned::OwnedTensor;

use crate::cores::pieces;
use crate::error::{Error, Fault, Result};
use crate::file::catalog::{Resolved, SourceOrigin};
use crate::file::inner::Inner;

/// One object of an open file, decoded and checked against its format. Copying the handle is free.
///
/// Data that is borrowed from the file (`'f`) outlives the handle. [`OwnedTensor`] is a handle that
/// keeps the file open.
///
/// ```
/// # let mut bytes = Vec::new();
/// # let mut writer = zt::Writer::new(&mut bytes)?;
/// # writer.add("weight", &zt::Dense::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?)?;
/// # writer.finish()?;
/// # let file = zt::File::from_bytes(bytes)?;
/// let weight = file.tensor("weight")?;
/// assert_eq!((weight.shape(), weight.format()), (&[2, 3][..], "dense"));
/// assert_eq!(weight.values::<f32>()?[5], 6.0); // borrowed where the file can lend them
/// let row = weight.slice(&zt::Slice::parse_list("1")?)?; // reads this row alone
/// assert_eq!(*row.as_slice::<f32>()?, [4.0, 5.0, 6.0]);
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Tensor<'f> {
    file: &'f Inner,
    name: &'f str,
    resolved: &'f Resolved,
    object: &'f Object,
    past_cache: bool,
}

/// The decoded length that a manifest declares, if it is plausible. Real weights shrink a few times. A
/// larger ratio means zeros, which decode at the speed of memory, or a false length, which must not be
/// allocated.
pub(crate) fn believed_len(blob: &Blob) -> Option<u64> {
    let most = match blob.encoding {
        Encoding::Raw => u64::MAX,
        _ => blob.span.byte_len().saturating_mul(BELIEVED_RATIO),
    };
    blob.decoded_len.filter(|len| *len <= most)
}

pub(crate) const BELIEVED_RATIO: u64 = 64;

impl<'f> Tensor<'f> {
    pub(crate) fn new(
        file: &'f Inner,
        name: &'f str,
        resolved: &'f Resolved,
        object: &'f Object,
    ) -> Self {
        Tensor { file, name, resolved, object, past_cache: false }
    }

    /// Its name.
    pub fn name(&self) -> &'f str {
        self.name
    }

    /// Its dimensions, outermost first; empty for a scalar.
    pub fn shape(&self) -> &'f [u64] {
        &self.object.shape
    }

    /// Its dimensions as `usize`, to index with and for other libraries.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Unsupported`] where a dimension does not fit a `usize`, which has 32 bits on
    /// some machines.
    pub fn usize_shape(&self) -> Result<Vec<usize>> {
        let fitting = |dimension: &u64| {
            let fault = Fault::LongDimension(*dimension);
            usize::try_from(*dimension).map_err(|_| Error::from(fault).with_object(self.name))
        };
        self.shape().iter().map(fitting).collect()
    }

    /// Its format's id: `dense`, `sparse_csr`, ...
    pub fn format(&self) -> &'f str {
        &self.object.format
    }

    /// The number of its elements; `None` if that exceeds 2^64.
    pub fn element_count(&self) -> Option<u64> {
        element_count(self.shape())
    }

    /// The storage type of the values that [`Tensor::to_dense`] gives; for a dense object, of `data`.
    /// `None` if its format is not registered, or has no dense value.
    pub fn dtype(&self) -> Option<DType> {
        let registry = &self.file.registry;
        let format = registry.format(self.format())?;
        let dense_type = format.dense_type(&Signature::of(self.object), registry);
        dense_type.map(|(dtype, _)| dtype)
    }

    /// The name of the type of its values, to show to people: `f32`, `f8_e4m3fn`, `4-bit`, `q4_0`.
    /// `None` if the file does not record it.
    pub fn value_type(&self) -> Option<Text> {
        let signature = Signature::of(self.object);
        self.file.registry.value_type(self.format(), &signature)
    }

    /// Its attributes; an empty map where it has none.
    pub fn attributes(&self) -> &'f Attributes {
        self.object.attributes()
    }

    /// Its entry in the manifest.
    pub fn object(&self) -> &'f Object {
        self.object
    }

    /// Its components by role, in the order of the file.
    pub fn components(&self) -> impl Iterator<Item = (&'f str, &'f Component)> + use<'f> {
        let components = self.object.components.iter();
        components.map(|(role, component)| (role.as_ref(), component))
    }

    /// The place of the stored bytes of each component in its file, in the order of
    /// [`Tensor::components`]. `None` for bytes that are made from bytes of a file: inflated, or put into
    /// row-major order.
    pub fn file_spans(&self) -> impl Iterator<Item = Option<Span>> + use<'f> {
        let (file, resolved) = (self.file, self.resolved);
        let components = self.object.components.iter().enumerate();
        components.map(move |(at, (_, component))| {
            let place = file.catalog.place(resolved.source(at));
            (place == SourceOrigin::File).then_some(component.blob.span)
        })
    }

    /// The open file that holds the stored bytes of one component, and their place in it, for a caller
    /// that maps them. `None` if the file was not opened by its path, if the bytes are made from bytes of
    /// a file, and on systems without reads by position.
    ///
    /// The bytes are as stored, and nothing is verified: see [`Tensor::verify`].
    ///
    /// # Errors
    ///
    /// Code `not-found`.
    pub fn stored_in(&self, role: &str) -> Result<Option<(&'f std::fs::File, Span)>> {
        let part = self.locate(role)?;
        let place = self.file.catalog.place(self.source_index(part));
        let file = self.source(part).file();
        let file = file.filter(|_| place == SourceOrigin::File);
        Ok(file.map(|file| (file, part.component.blob.span)))
    }

    /// The source that holds the stored bytes of one component, and their place in it, for a file that is put
    /// together from others. The bytes are as stored, and nothing is verified.
    ///
    /// # Errors
    ///
    /// Code `not-found`.
    pub fn stored_bytes(&self, role: &str) -> Result<(Arc<dyn Source>, Span)> {
        let part = self.locate(role)?;
        let source = self.file.sources.get(self.source_index(part));
        // The builder has checked that there is one.
        let none = || Arc::new(zt_container::Memory::new(&[])) as Arc<dyn Source>;
        Ok((source.map_or_else(none, Arc::clone), part.component.blob.span))
    }

    /// The component of that role.
    ///
    /// # Errors
    ///
    /// Code `not-found` where there is none.
    pub fn component(&self, role: &str) -> Result<&'f Component> {
        self.locate(role).map(|part| part.component)
    }

    /// The decoded little-endian bytes of one component: borrowed where they are raw, little-endian
    /// and the source lends them, else read and decoded into memory aligned to 8 bytes.
    ///
    /// # Errors
    ///
    /// Code `not-found`; damage of the stored bytes; [`crate::ErrorKind::Io`].
    pub fn bytes(&self, role: &str) -> Result<Bytes<'f>> {
        self.bytes_of(self.locate(role)?)
    }

    /// Reads and decodes one component into `out`, which has exactly its decoded length.
    ///
    /// # Errors
    ///
    /// As [`Tensor::bytes`]; [`crate::ErrorKind::Misuse`] where `out` has another length. After an
    /// error the contents of `out` are unspecified.
    pub fn read_into(&self, role: &str, out: &mut [u8]) -> Result<()> {
        let part = self.locate(role)?;
        self.read_from(part, self.source(part), out)
    }

    /// As [`Tensor::read_into`], from `source`: the component's, or a region of it.
    pub(crate) fn read_from(
        &self,
        part: Located<'f>,
        source: &dyn Source,
        out: &mut [u8],
    ) -> Result<()> {
        // Asked first: counting compares the digest as well, but the bytes are read again afterwards.
        let verify = self.must_verify(part);
        let byte_len = match part.component.blob.decoded_len {
            Some(byte_len) => byte_len,
            None => self.count(part)?,
        };
        self.fill(part, byte_len, verify, source, out)
    }

    /// Streams the decoded little-endian bytes of one component in bounded memory.
    ///
    /// # Errors
    ///
    /// As [`Tensor::bytes`].
    pub fn reader(&self, role: &str) -> Result<ComponentReader<'f>> {
        let part = self.locate(role)?;
        self.reader_of(part, self.must_verify(part))
    }

    /// Whether a component shares its stored bytes with a component of another object, of this file or
    /// another. Nothing is read: two equal copies do not share bytes.
    ///
    /// # Errors
    ///
    /// Code `not-found`.
    pub fn has_blob_of(&self, role: &str, other: &Tensor<'_>, other_role: &str) -> Result<bool> {
        let (this, that) = (self.locate(role)?, other.locate(other_role)?);
        let (a, b) = (this.component, that.component);
        let is_alike = match a.byte_order {
            ByteOrder::Little => b.byte_order == ByteOrder::Little,
            // Which bytes are swapped depends on the width of the elements.
            ByteOrder::Big => b.byte_order == ByteOrder::Big && a.dtype == b.dtype,
        };
        let source = |tensor: &Tensor<'_>, part: Located<'_>| {
            let source = tensor.file.sources.get(tensor.resolved.source(part.at));
            source.map(Arc::as_ptr)
        };
        let sources = source(self, this).zip(source(other, that));
        let is_same_source = sources.is_some_and(|(a, b)| std::ptr::addr_eq(a, b));
        Ok(is_alike && is_same_source && a.blob == b.blob)
    }

    /// The decoded length of one component, in bytes. If the file does not record it (zstd of old
    /// layouts), or records an implausible one, the component is decoded once to count.
    ///
    /// # Errors
    ///
    /// As [`Tensor::bytes`].
    pub fn decoded_len(&self, role: &str) -> Result<u64> {
        self.decoded_len_of(self.locate(role)?)
    }

    /// The elements of one component, as stored: bytes, dtype, logical type.
    ///
    /// # Errors
    ///
    /// As [`Tensor::bytes`].
    pub fn elements(&self, role: &str) -> Result<Elements<'f>> {
        self.elements_of(self.locate(role)?)
    }

    /// All components read, for a [`View`] or for a format's own code.
    ///
    /// # Errors
    ///
    /// As [`Tensor::bytes`].
    pub fn parts(&self) -> Result<Parts<'f>> {
        self.parts_of(|_| true)
    }

    pub(crate) fn parts_of(&self, wanted: impl Fn(&str) -> bool) -> Result<Parts<'f>> {
        let mut elements: Vec<(Text, Elements<'f>)> = Vec::new();
        for part in self.located().filter(|part| wanted(part.role)) {
            elements.push((part.role.clone(), self.elements_of(part)?));
        }
        Ok(Parts {
            shape: Cow::Borrowed(&self.object.shape),
            attributes: Cow::Borrowed(self.object.attributes()),
            elements,
        })
    }

    /// The object as its format's typed view, indices checked. Raw components are borrowed where the
    /// source lends them. A `bool` is checked where it is read as one.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`] where the object is of another format; faults of the contents;
    /// as [`Tensor::bytes`].
    pub fn view<V: View<'f>>(&self) -> Result<V> {
        self.expect_format(V::FORMAT)?;
        self.expect_meaning()?;
        V::from_parts(self.parts()?).map_err(|error| self.blame_format(error))
    }

    /// The elements of a dense object, borrowed where they are raw, aligned, in the host's byte
    /// order and lent by the source; copied otherwise: see [`Typed::is_borrowed`].
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Misuse`] where the object is not dense or holds another type; as
    /// [`Tensor::bytes`]; code `bool-value` for a `bool` that is neither 0 nor 1.
    pub fn values<T: Element>(&self) -> Result<Typed<'f, T>> {
        self.expect_format(Dense::FORMAT)?;
        self.expect_meaning()?;
        self.elements("data")?.into_typed().map_err(|error| self.blame_format(error))
    }

    /// The elements of a dense object, copied.
    ///
    /// # Errors
    ///
    /// As [`Tensor::values`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        Ok(self.values()?.try_into_vec()?)
    }

    /// The dtype to write a component with. Files of 1.0 omit some dtypes, which 1.2 requires. Then
    /// [`ObjectFormat::stored_dtype`](crate::ObjectFormat::stored_dtype) decides, and a component that
    /// it does not know is bytes.
    ///
    /// # Errors
    ///
    /// As [`Tensor::decoded_len`].
    pub fn dtype_to_write(&self, role: &str) -> Result<DType> {
        self.dtype_to_write_of(self.locate(role)?)
    }

    pub(crate) fn dtype_to_write_of(&self, part: Located<'f>) -> Result<DType> {
        if let Some(dtype) = part.component.dtype {
            return Ok(dtype);
        }
        let mut signature = Signature::of(self.object);
        if let Some(component) = signature.components.get_mut(part.at) {
            component.byte_len = Some(self.decoded_len_of(part)?);
        }
        let format = self.registry().format(self.format());
        let dtype = format.and_then(|format| format.stored_dtype(part.role, &signature));
        Ok(dtype.unwrap_or(DType::U8))
    }

    pub(crate) fn locate(&self, role: &str) -> Result<Located<'f>> {
        let at = self.resolved.component(role);
        let part = at.and_then(|at| self.located().nth(at));
        part.ok_or_else(|| {
            let fault = Fault::NoSuchComponent(role.to_owned());
            Error::from(fault).with_object(self.name)
        })
    }

    /// Every component with its place, for work on all of them.
    pub(crate) fn located(&self) -> impl Iterator<Item = Located<'f>> + use<'f> {
        let components = self.object.components.iter().enumerate();
        components.map(|(at, (role, component))| Located { at, role, component })
    }

    pub(crate) fn bytes_of(&self, part: Located<'f>) -> Result<Bytes<'f>> {
        let blob = &part.component.blob;
        // Asked once: counting an unknown length compares the digest as well, but the returned bytes
        // must be the ones that were hashed.
        let verify = self.must_verify(part);
        if let Some(lent) = self.lent(part) {
            if verify {
                self.verified(part, true, || pieces::verify(self.source(part), blob))?;
            }
            return Ok(Bytes::Borrowed(lent));
        }
        let byte_len = self.decoded_len_of(part)?;
        let mut buffer = Buffer::try_zeroed(byte_len)?;
        self.fill(part, byte_len, verify, self.source(part), &mut buffer)?;
        Ok(Bytes::Owned(buffer))
    }

    /// The decoded bytes, if the source has them in memory like this. Not compared with a digest.
    pub(crate) fn lent(&self, part: Located<'f>) -> Option<&'f [u8]> {
        let blob = &part.component.blob;
        let is_plain =
            blob.encoding == Encoding::Raw && part.component.byte_order == ByteOrder::Little;
        is_plain.then(|| self.source(part).slice(blob.span))?
    }

    pub(crate) fn elements_of(&self, part: Located<'f>) -> Result<Elements<'f>> {
        Ok(elements_in(part, self.bytes_of(part)?))
    }

    pub(crate) fn reader_of(&self, part: Located<'f>, verify: bool) -> Result<ComponentReader<'f>> {
        let (source, blob, limits) = (self.source(part), &part.component.blob, self.limits());
        let opened = if verify {
            BlobReader::new(source, blob, limits)
        } else {
            BlobReader::unverified(source, blob, limits)
        };
        let blob = opened.map_err(|error| self.blame(error, part))?;
        Ok(ComponentReader::new(*self, part, blob, verify))
    }

    pub(crate) fn decoded_len_of(&self, part: Located<'f>) -> Result<u64> {
        believed_len(&part.component.blob).map_or_else(|| self.count(part), Ok)
    }

    /// Decodes the component to count its bytes. A wrong digest is reported before an error of the decoder,
    /// here too (§6).
    fn count(&self, part: Located<'f>) -> Result<u64> {
        let (mut reader, mut total) = (self.reader_of(part, self.must_verify(part))?, 0u64);
        reader.for_each_piece(64 << 10, |bytes| {
            total = total.strict_add(bytes.len() as u64);
            Ok::<(), Error>(())
        })?;
        Ok(total)
    }

    /// Whether its bytes come over a network: see [`Source::is_remote`].
    pub fn is_remote(&self) -> bool {
        self.located().any(|part| self.source(part).is_remote())
    }

    pub(crate) fn source(&self, part: Located<'_>) -> &'f dyn Source {
        // The builder has checked that there is one.
        static NONE: zt_container::Memory<&[u8]> = zt_container::Memory::new(&[]);
        let source = self.resolved.source(part.at);
        self.file.source(source, self.past_cache).unwrap_or(&NONE)
    }

    /// The same object, whose bytes are read past the page cache of the system where that is possible.
    pub(crate) const fn past_cache(mut self) -> Self {
        self.past_cache = true;
        self
    }

    pub(crate) fn source_index(&self, part: Located<'_>) -> usize {
        self.resolved.source(part.at)
    }

    pub(crate) fn limits(&self) -> &'f zt_container::Limits {
        &self.file.limits
    }

    fn fill(
        &self,
        part: Located<'f>,
        byte_len: u64,
        verify: bool,
        source: &dyn Source,
        out: &mut [u8],
    ) -> Result<()> {
        let mut blob = Cow::Borrowed(&part.component.blob);
        if blob.decoded_len.is_none() {
            blob.to_mut().decoded_len = Some(byte_len);
        }
        let limits = self.limits();
        self.verified(part, verify, || pieces::read(source, &blob, verify, limits, &mut *out))?;
        to_little_endian(part.component, out);
        Ok(())
    }

    /// The rule of its format that the object breaks. Its components are readable as they are; a
    /// view, a slice or the dense value is this error.
    pub fn fault(&self) -> Option<&'f Error> {
        self.resolved.fault.as_ref()
    }

    /// Whether the components have a meaning together.
    pub(crate) fn expect_meaning(&self) -> Result<()> {
        self.fault().map_or(Ok(()), |fault| Err(fault.clone()))
    }

    pub(crate) fn expect_format(&self, expected: &'static str) -> Result<()> {
        if self.object.format == expected {
            return Ok(());
        }
        let fault = Fault::WrongFormat { expected, found: self.object.format.to_string() };
        Err(Error::from(fault).with_object(self.name))
    }

    pub(crate) fn blame(&self, error: impl Into<Error>, part: Located<'_>) -> Error {
        let error: Error = error.into().with_object(self.name);
        let error = error.with_component(part.role).with_span(part.component.blob.span);
        match self.file.path_of(self.resolved.source(part.at)) {
            Some(path) => error.with_path(path),
            None => error,
        }
    }

    pub(crate) fn blame_format(&self, error: zt_formats::Error) -> Error {
        crate::file::catalog::blame_blob(Error::from(error).with_object(self.name), self.object)
    }

    pub(crate) fn pool(&self) -> &'f crate::cores::scratch::Pool {
        &self.file.pool
    }

    pub(crate) fn registry(&self) -> &'f zt_formats::Registry {
        &self.file.registry
    }
}

impl std::fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tensor").field("name", &self.name).field("object", self.object).finish()
    }
}
