//! Dense objects written as `zt.planes/1`.

use std::io::{self, Write};
use std::sync::Arc;
use zt_container::Limits;
use zt_container::codec::SINGLE_FRAME_MAX;
use zt_formats::{Bytes, Dense, NewObject, PlaneCodec, Planes, SizeMismatch, View, dense_byte_len};
use zt_manifest::{Attributes, DType, Object};

use crate::error::Result;
use crate::write::component::ComponentWriter;
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
    /// Whether dense objects are written as planes: [`WriteOptions::planes`](crate::WriteOptions::planes).
    pub const fn writes_planes(&self) -> bool {
        self.writes_planes
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
        (is_dense && self.writes_planes).then(codec).flatten()
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
        let object = Object::new(new.shape.to_vec(), Planes::FORMAT);
        let mut object = ObjectWriter::new(self, name, object).options(options.clone());
        if let Some(attributes) = &new.attributes {
            object.set_attributes(attributes.clone())?;
        }
        match earlier {
            Some(planes) => object.place_planes(codec, planes)?,
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
        let object = Object::new(new.shape.into_owned(), Planes::FORMAT);
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
    /// Writes all components of an object of `zt.planes/1`, and the attributes with its type.
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
        // This decides only the placement. The object's end checks the length against the shape.
        let len = self.plane_len(codec);
        for (plane, role) in codec.roles().iter().enumerate() {
            let mut component = self.component(*role, DType::U8, None)?;
            component.expect_len(len);
            let mut splitter = Splitter {
                codec,
                plane,
                partial: Vec::new(),
                split: vec![0; STRETCH],
                component: &mut component,
            };
            pass(&mut splitter)?;
            splitter.finish()?;
            component.finish()?;
        }
        Ok(())
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
        let mut placed = Vec::with_capacity(width);
        for (plane, role) in codec.roles().iter().enumerate() {
            let shared = Arc::clone(&shared);
            let fill = move |start: usize, out: &mut [u8]| {
                let (codec, elements) = &*shared;
                let elements = elements.get(start.strict_mul(width)..);
                codec.split(plane, elements.unwrap_or_default(), out);
            };
            let (content, options) = (Lent::Made(byte_len, Arc::new(fill)), self.options_of(role));
            placed.push(lending.store(&mut self.writer.encoder, &content, options)?);
        }
        self.place_planes(codec, placed)
    }

    /// Writes the planes of `codec` to known places, and the attributes with its type.
    fn place_planes(&mut self, codec: &PlaneCodec, planes: Vec<Placed>) -> Result<()> {
        self.add_attributes(codec.to_attributes());
        for (role, placed) in codec.roles().iter().zip(planes) {
            self.component(*role, DType::U8, None)?.place(placed);
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
    /// As [`ComponentWriter::share`].
    pub fn share_planes(&mut self, codec: &PlaneCodec, object: &str) -> Result<()> {
        self.add_attributes(codec.to_attributes());
        for role in codec.roles() {
            self.component(*role, DType::U8, None)?.share(object, role)?;
        }
        Ok(())
    }
}

/// Takes elements and writes one plane of them.
struct Splitter<'s, 'o, 'a, 'w> {
    codec: &'s PlaneCodec,
    plane: usize,
    /// The beginning of an element that is not complete.
    partial: Vec<u8>,
    split: Vec<u8>,
    component: &'s mut ComponentWriter<'o, 'a, 'w>,
}

impl Splitter<'_, '_, '_, '_> {
    /// Refuses an incomplete element at the end. It would be in no plane, and the plane could have
    /// the right length without it.
    fn finish(self) -> Result<()> {
        if self.partial.is_empty() {
            return Ok(());
        }
        let value_len = self.codec.plane_count() as u64;
        let byte_len =
            self.component.written().strict_mul(value_len).strict_add(self.partial.len() as u64);
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
            self.component.write_all(out)?;
        }
        Ok(())
    }
}

impl Write for Splitter<'_, '_, '_, '_> {
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
