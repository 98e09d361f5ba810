//! Dense objects written as `zt.planes/1` or `zt.planes/2`.

use std::io::{self, Write};
use std::sync::Arc;
use zt_container::Limits;
use zt_container::codec::SINGLE_FRAME_MAX;
use zt_formats::{
    Bytes, Dense, NewObject, PlaneCodec, PlaneCoding, SizeMismatch, View, dense_byte_len,
};
use zt_manifest::{Attributes, DType, Object};

use crate::error::{Error, Result};
use crate::write::encode::{Content as Lent, Lending, Placed};
use crate::write::object::ObjectWriter;
use crate::write::options::ObjectOptions;
use crate::write::share::{Content, SplitKey};
use crate::write::writer::Writer;

/// Smaller objects stay dense: compression saves less than each plane's entry in the manifest
/// takes.
const WORTH_IT: u64 = 16 << 10;

/// Whether the attributes of planes fit beside these.
fn has_room(attributes: &Attributes) -> bool {
    const OF_PLANES: usize = 64;
    let limit = Limits::default().attributes_len;
    attributes.to_cbor().is_ok_and(|cbor| cbor.len().strict_add(OF_PLANES) <= limit)
}

/// Elements that are split at a time. They stay in the core's cache until they are copied.
const STRETCH: usize = 64 << 10;

impl Writer<'_> {
    /// How dense objects are written as planes: [`WriteOptions::planes`](crate::WriteOptions::planes).
    /// `None` if they stay dense.
    pub const fn planes(&self) -> Option<PlaneCoding> {
        self.planes
    }

    /// How a dense object of this kind is written as planes; `None` if it stays dense.
    ///
    /// It stays dense if its values are not f64, f32, f16 or bf16 (or complex numbers of these). It
    /// also stays dense if it has fewer than 16 KiB, or attributes whose keys planes need.
    pub fn planes_of(
        &self,
        shape: &[u64],
        dtype: DType,
        logical_type: Option<&str>,
        attributes: Option<&Attributes>,
    ) -> Option<PlaneCodec> {
        let codec = PlaneCodec::new(dtype, logical_type).ok()?;
        let value_len = self.registry.value_len(dtype, logical_type).ok()??;
        let byte_len = dense_byte_len(shape, value_len)?;
        let is_free = |name: &&str| attributes.is_none_or(|map| map.get(name).is_none());
        let is_whole =
            PlaneCodec::ATTRIBUTES.iter().all(is_free) && attributes.is_none_or(has_room);
        (byte_len >= WORTH_IT && is_whole).then_some(codec)
    }

    /// As [`Writer::planes_of`], for an object in memory. With components other than its data, it
    /// stays dense.
    pub(crate) fn planes_of_new(&self, new: &NewObject<'_>) -> Option<PlaneCodec> {
        let [(role, data)] = &new.components[..] else {
            return None;
        };
        let is_dense = new.format == Dense::FORMAT && role == "data";
        let codec = || {
            let attributes = new.attributes.as_ref();
            self.planes_of(&new.shape, data.dtype, data.logical_type(), attributes)
        };
        (is_dense && self.planes.is_some()).then(codec).flatten()
    }

    /// `None` unless components are shared.
    fn split_key(&self, new: &NewObject<'_>, options: &ObjectOptions) -> Result<Option<SplitKey>> {
        let data = new.components.first().map(|(_, data)| data);
        let Some((_, data)) = self.shares.as_ref().zip(data) else {
            return Ok(None);
        };
        Ok(Some(SplitKey {
            content: Content::of(&data.bytes, &self.encoder.workers)?,
            dtype: data.dtype,
            logical_type: data.logical_type.clone(),
            options: options.clone(),
        }))
    }

    pub(crate) fn add_split(
        &mut self,
        name: &str,
        new: &NewObject<'_>,
        codec: &PlaneCodec,
        options: &ObjectOptions,
    ) -> Result<()> {
        let key = self.split_key(new, options)?;
        let shares = self.shares.as_ref().zip(key.as_ref());
        let earlier = shares.and_then(|(shares, key)| shares.split.get(key));
        let earlier = earlier.cloned();
        let coding = self.planes.unwrap_or_default();
        let object = Object::new(new.shape.to_vec(), coding.format());
        let mut object = ObjectWriter::new(self, name, object).options(options.clone());
        if let Some(attributes) = &new.attributes {
            object.set_attributes(attributes.clone())?;
        }
        match earlier {
            Some(planes) => {
                object.add_attributes(codec.to_attributes());
                object.place_planes(&coding.roles(codec), planes)?;
            }
            None => {
                let mut data = new.components.iter();
                data.try_for_each(|(_, data)| object.split(codec, &data.bytes))?;
            }
        }
        let planes = object.placed();
        object.finish()?;
        if let Some((shares, key)) = self.shares.as_mut().zip(key) {
            shares.split.insert(key, planes);
        }
        Ok(())
    }

    /// As [`Writer::add_split`], for an object that is lent together with others.
    pub(crate) fn lend_split<'m>(
        &mut self,
        name: &str,
        new: NewObject<'m>,
        codec: &PlaneCodec,
        options: &ObjectOptions,
        lending: &mut Lending<'_, 'm>,
    ) -> Result<()> {
        let coding = self.planes.unwrap_or_default();
        let object = Object::new(new.shape.into_owned(), coding.format());
        let mut object = ObjectWriter::new(self, name, object).options(options.clone());
        if let Some(attributes) = new.attributes {
            object.set_attributes(attributes)?;
        }
        for (_, data) in new.components {
            object.lend_planes(codec, data.bytes, lending)?;
        }
        object.finish()
    }
}

impl ObjectWriter<'_, '_> {
    /// Writes all components of an object of `zt.planes/1` or `zt.planes/2`, and the attributes with its type.
    ///
    /// `pass` is called for each plane. Each call writes all elements of the dense value,
    /// little-endian, so only one component needs memory at a time.
    ///
    #[cfg_attr(feature = "zstd", doc = "```")]
    #[cfg_attr(not(feature = "zstd"), doc = "```ignore")]
    /// use std::io::Write;
    /// use zt::formats::{PlaneCodec, View};
    /// use zt::{DType, File, Planes, Writer};
    ///
    /// let mut bytes = Vec::new();
    /// let mut writer = Writer::new(&mut bytes)?;
    /// let mut object = writer.begin("ramp", &[1000], Planes::FORMAT)?;
    /// object.planes(&PlaneCodec::new(DType::F32, None)?, |out| {
    ///     for value in 0..1000u16 {
    ///         out.write_all(&f32::from(value).to_le_bytes())?;
    ///     }
    ///     Ok(())
    /// })?;
    /// object.finish()?;
    /// writer.finish()?;
    /// let file = File::from_bytes(bytes)?;
    /// assert_eq!(file.tensor("ramp")?.to_dense()?.as_slice::<f32>()?[999], 999.0);
    /// # Ok::<(), zt::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of `pass`; as [`ObjectWriter::component`].
    pub fn planes(
        &mut self,
        codec: &PlaneCodec,
        mut pass: impl FnMut(&mut (dyn Write + Send)) -> Result<()>,
    ) -> Result<()> {
        self.add_attributes(codec.to_attributes());
        let symbols = self.coded_plane(codec, &mut pass)?;
        // This decides only the placement. The object's end checks the length against the shape.
        let len = self.plane_len(codec);
        for (plane, role) in codec.roles().iter().enumerate().skip(self.coded_count()) {
            let mut component = self.component(*role, DType::U8, None)?;
            component.expect_len(len);
            Splitter::split_all(codec, plane, &mut component, &mut pass)?;
            let expected = component.written();
            component.finish()?;
            // The object's end sees only the number of chunks.
            if let Some(found) = symbols.filter(|symbols| *symbols != expected) {
                let [codes, _] = PlaneCoding::CODED;
                let error = Error::from(SizeMismatch::Bytes { expected, found }.of(codes));
                return Err(error.with_object(&self.state.name));
            }
        }
        Ok(())
    }

    fn coding(&self) -> PlaneCoding {
        PlaneCoding::from_format(&self.state.object.format).unwrap_or_default()
    }

    /// The planes that are not components of bytes.
    fn coded_count(&self) -> usize {
        usize::from(self.coding() == PlaneCoding::Huffman)
    }

    /// Writes the codes of plane 0 and their lengths, if the format has them. Returns the number of symbols.
    fn coded_plane(
        &mut self,
        codec: &PlaneCodec,
        pass: impl FnMut(&mut (dyn Write + Send)) -> Result<()>,
    ) -> Result<Option<u64>> {
        if self.coded_count() == 0 {
            return Ok(None);
        }
        let [codes, lengths] = PlaneCoding::CODED;
        let expected = self.plane_len(codec);
        let mut component = self.component(codes, DType::U8, None)?;
        component.expect_len(expected);
        component.state.encoder.expect_symbols();
        Splitter::split_all(codec, 0, &mut component, pass)?;
        let symbols = component.written();
        component.finish()?;
        let digest = self.options_of(lengths).digest;
        let placed = self.writer.encoder.encode_lengths(symbols, digest)?;
        self.component(lengths, PlaneCoding::dtype_of(lengths), None)?.place(placed);
        Ok(Some(symbols))
    }

    /// As [`ObjectWriter::planes`], for elements in memory. Workers split them.
    fn split(&mut self, codec: &PlaneCodec, elements: &[u8]) -> Result<()> {
        let width = codec.plane_count();
        if elements.len().strict_div(width) <= SINGLE_FRAME_MAX {
            return self.planes(codec, |out| Ok(out.write_all(elements)?));
        }
        let workers = Arc::clone(&self.writer.encoder.workers);
        workers.scope(usize::MAX, |scope| {
            let mut lending = Lending::begin(&mut self.writer.encoder, scope)?;
            self.lend_planes(codec, Bytes::Borrowed(elements), &mut lending)?;
            lending.finish(&mut self.writer.encoder)
        })
    }

    /// As [`ObjectWriter::split`], for elements that are lent together with others.
    fn lend_planes<'m>(
        &mut self,
        codec: &PlaneCodec,
        elements: Bytes<'m>,
        lending: &mut Lending<'_, 'm>,
    ) -> Result<()> {
        let width = codec.plane_count();
        let byte_len = elements.len().strict_div(width);
        let shared = Arc::new((codec.clone(), elements));
        let mut placed = Vec::with_capacity(width.strict_add(1));
        for (plane, role) in codec.roles().iter().enumerate() {
            let shared = Arc::clone(&shared);
            let fill = move |start: usize, out: &mut [u8]| {
                let (codec, elements) = &*shared;
                let elements = elements.get(start.strict_mul(width)..);
                codec.split(plane, elements.unwrap_or_default(), out);
            };
            let content = Lent::Made(byte_len, Arc::new(fill));
            if plane < self.coded_count() {
                let digests = PlaneCoding::CODED.map(|role| self.options_of(role).digest);
                placed.extend(lending.store_codes(&mut self.writer.encoder, &content, digests)?);
            } else {
                let options = self.options_of(role);
                placed.push(lending.store(&mut self.writer.encoder, &content, options)?);
            }
        }
        self.add_attributes(codec.to_attributes());
        self.place_planes(&self.coding().roles(codec), placed)
    }

    /// Writes components to known places.
    fn place_planes(&mut self, roles: &[&'static str], planes: Vec<Placed>) -> Result<()> {
        for (role, placed) in roles.iter().zip(planes) {
            self.component(*role, PlaneCoding::dtype_of(role), None)?.place(placed);
        }
        Ok(())
    }

    /// The blobs of the components so far.
    fn placed(&self) -> Vec<Placed> {
        let (writer, at) = (&self.writer, self.writer.object_count());
        let components = self.state.object.components.iter().enumerate();
        components
            .map(|(component, (_, found))| writer.placed(at, component, &found.blob))
            .collect()
    }

    /// As [`ObjectWriter::planes`], for the values of `object`. It was written as planes of the
    /// same `codec`, and all components share its blobs.
    ///
    /// # Errors
    ///
    /// As [`ComponentWriter::share`](crate::ComponentWriter::share).
    pub fn share_planes(&mut self, codec: &PlaneCodec, object: &str) -> Result<()> {
        self.add_attributes(codec.to_attributes());
        for role in self.coding().roles(codec) {
            self.component(role, PlaneCoding::dtype_of(role), None)?.share(object, role)?;
        }
        Ok(())
    }
}

/// Takes elements and writes one plane of them.
struct Splitter<'s, W> {
    codec: &'s PlaneCodec,
    plane: usize,
    /// The beginning of an element that is not complete.
    partial: Vec<u8>,
    split: Vec<u8>,
    /// Elements that were written.
    count: u64,
    out: &'s mut W,
}

impl<'s, W: Write + Send> Splitter<'s, W> {
    /// Writes a plane of what `pass` writes.
    fn split_all(
        codec: &'s PlaneCodec,
        plane: usize,
        out: &'s mut W,
        mut pass: impl FnMut(&mut (dyn Write + Send)) -> Result<()>,
    ) -> Result<()> {
        let (partial, split) = (Vec::new(), vec![0; STRETCH]);
        let mut splitter = Splitter { codec, plane, partial, split, count: 0, out };
        pass(&mut splitter)?;
        splitter.finish()
    }

    /// Refuses an incomplete element at the end. It would be in no plane, and the plane could have
    /// the right length without it.
    fn finish(self) -> Result<()> {
        if self.partial.is_empty() {
            return Ok(());
        }
        let value_len = self.codec.plane_count() as u64;
        let byte_len = self.count.strict_mul(value_len).strict_add(self.partial.len() as u64);
        let partial = SizeMismatch::Partial { byte_len, value_len };
        let role = self.codec.roles().get(self.plane).copied();
        Err(partial.of(role.unwrap_or_default()).into())
    }

    fn split(&mut self, elements: &[u8]) -> io::Result<()> {
        let width = self.codec.plane_count();
        for stretch in elements.chunks(STRETCH.strict_mul(width)) {
            let out = self.split.get_mut(..stretch.len().strict_div(width));
            let out = out.unwrap_or_default();
            self.codec.split(self.plane, stretch, out);
            self.out.write_all(out)?;
            self.count = self.count.strict_add(out.len() as u64);
        }
        Ok(())
    }
}

impl<W: Write + Send> Write for Splitter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let width = self.codec.plane_count();
        let mut rest = bytes;
        if !self.partial.is_empty() {
            let missing = width.strict_sub(self.partial.len()).min(rest.len());
            let (head, tail) = rest.split_at(missing);
            self.partial.extend_from_slice(head);
            rest = tail;
            if self.partial.len() < width {
                return Ok(bytes.len());
            }
            let element = std::mem::take(&mut self.partial);
            self.split(&element)?;
        }
        let (elements, partial) =
            rest.split_at(rest.len().strict_sub(rest.len().strict_rem(width)));
        self.split(elements)?;
        self.partial.extend_from_slice(partial);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
