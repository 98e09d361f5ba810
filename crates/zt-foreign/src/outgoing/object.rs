//! An object on its way from one file to another.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use zt::formats::{ComponentSignature, Decode, PlaneCodec, View, check_bools_from, dense_byte_len};
use zt::manifest::Text;
use zt::{
    Attributes, Bytes, Component, ComponentWriter, DType, Elements, Encoding, Error, LogicalType,
    Object, Planes, Progress, Registry, Result, Signature, Tensor,
};

use super::shares::{Search, Seen, Shares, Unit, Written};
use super::{Incoming, Overflow};
use crate::Fault;

/// Bytes that are read, cast and written at a time.
const PIECE: usize = 1 << 20;

const DATA: &str = "data";

/// An object and what becomes of it.
pub struct Outgoing<'i> {
    /// The object in its input.
    pub tensor: Tensor<'i>,
    registry: &'i Registry,
    path: Option<&'i Path>,
    treatment: Treatment,
}

/// What is done with a piece of an object's bytes.
type Take<'t> = dyn FnMut(&[u8]) -> ControlFlow<()> + Send + 't;

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Treatment {
    /// Its components as they are.
    Keep,
    /// Its component `data`, cast piece by piece; others as they are.
    Cast(DType),
    /// Its dense value, which is made in memory but for planes, and cast where that is wished.
    Decode(Option<DType>),
}

impl<'i> Outgoing<'i> {
    /// The object as it is; a dense one is cast to `dtype` if its values are floating-point.
    pub fn new(incoming: &Incoming<'i>, dtype: Option<DType>) -> Self {
        let mut this = Outgoing {
            tensor: incoming.tensor,
            registry: incoming.registry,
            path: incoming.path,
            treatment: Treatment::Keep,
        };
        // Planes are values stored in another way: they are cast as dense objects are.
        let stored = match this.is_planes() {
            true => this.decoded_type(),
            false => this.plain_type(),
        };
        if let Some(dtype) = stored.and_then(|stored| this.cast_of(&stored, dtype)) {
            this.treatment = match this.is_planes() {
                true => Treatment::Decode(Some(dtype)),
                false => Treatment::Cast(dtype),
            };
        }
        this
    }

    /// The object's dense value instead of itself; `false` where it has none, and stays as it is.
    pub fn decode(&mut self, dtype: Option<DType>) -> bool {
        match self.decoded_type() {
            Some(value) => {
                self.treatment = Treatment::Decode(self.cast_of(&value, dtype));
                true
            }
            None => false,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'i str {
        self.tensor.name()
    }

    /// What the manifest of its input has about it.
    #[must_use]
    pub fn object(&self) -> &'i Object {
        self.tensor.object()
    }

    /// Whether it is a plain array in its input.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.tensor.format() == "dense"
    }

    /// Whether it is a dense object in all but the order of its bytes.
    pub fn is_planes(&self) -> bool {
        self.tensor.format() == Planes::FORMAT
    }

    /// Whether it is or has a dense value.
    pub fn has_dense_value(&self) -> bool {
        self.is_dense() || self.decoded_type().is_some()
    }

    /// Whether it is its dense value that is written.
    pub const fn is_decoded(&self) -> bool {
        matches!(self.treatment, Treatment::Decode(_))
    }

    /// Its components, and whether its values are made of them; those of a format that nobody knows
    /// are in `data`, if anywhere.
    pub fn components(&self) -> impl Iterator<Item = (&'i str, &'i Component, bool)> {
        let object = self.object();
        let (format, signature) = (self.registry.format(&object.format), signature(object));
        object.components.iter().map(move |(role, component)| {
            let is_of_value = format.map_or(role == DATA, |it| it.is_of_value(role, &signature));
            (&**role, component, is_of_value)
        })
    }

    /// The format that it is written in.
    fn format(&self) -> Text {
        match self.treatment {
            Treatment::Decode(_) => "dense".into(),
            _ => self.object().format.clone(),
        }
    }

    /// The attributes that it is written with. Parameters of a format go with the format.
    pub fn attributes(&self) -> Option<Attributes> {
        let mut attributes = self.object().attributes.clone();
        if let (Treatment::Decode(_), Some(map)) = (self.treatment, &mut attributes) {
            let format = self.registry.format(self.tensor.format());
            for parameter in format.map_or(&[][..], |format| format.parameters()) {
                map.remove(parameter);
            }
            if map.is_empty() {
                return None;
            }
        }
        attributes
    }

    /// The dtype and the logical type of its values, as they are written; `None` for an object
    /// that is written as something else than a plain array.
    pub fn dense_type(&self) -> Option<(DType, Option<Text>)> {
        match self.treatment {
            Treatment::Keep => self.plain_type(),
            Treatment::Cast(dtype) | Treatment::Decode(Some(dtype)) => Some((dtype, None)),
            Treatment::Decode(None) => self.decoded_type(),
        }
    }

    /// Writes the values of a plain array, little-endian and in row-major order: exactly
    /// `byte_len` bytes; what a cast has made infinite.
    ///
    /// Streams what is dense or planes; a dense value that must be made first is made in memory.
    pub fn write_values(
        &self,
        byte_len: u64,
        out: &mut (dyn Write + Send),
        progress: Option<Progress<'_>>,
    ) -> Result<Option<Overflow>> {
        let Treatment::Decode(cast) = self.treatment else {
            return self.write_role(DATA, byte_len, out, progress);
        };
        let mut counted = Counted { out, byte_len: 0 };
        let overflow = self.write_decoded(cast, &mut counted, progress)?;
        self.expect_len(byte_len, counted.byte_len)?;
        Ok(overflow)
    }

    /// Writes one component, little-endian and `data` cast where that is the treatment: exactly
    /// `byte_len` bytes; what the cast has made infinite.
    pub fn write_role(
        &self,
        role: &str,
        byte_len: u64,
        out: &mut (dyn Write + Send),
        progress: Option<Progress<'_>>,
    ) -> Result<Option<Overflow>> {
        let mut counted = Counted { out, byte_len: 0 };
        let overflow = self.write_component(role, &mut counted, progress)?;
        self.expect_len(byte_len, counted.byte_len)?;
        Ok(overflow)
    }

    /// Writes the object to a `.zt` file, sharing what `shares` finds there already: all of its
    /// components together.
    pub fn write_to(
        &self,
        writer: &mut zt::Writer<'_>,
        shares: &mut Shares<'i>,
        progress: Option<Progress<'_>>,
    ) -> Result<Written> {
        if let Some((codec, byte_len)) = self.codec(writer) {
            return self.write_planes(writer, &codec, byte_len, shares, progress);
        }
        let object = self.object();
        let mut out = writer.begin(self.name(), &object.shape, self.format())?;
        if let Some(attributes) = self.attributes() {
            out.set_attributes(attributes);
        }
        out.set_extra(object.extra.clone());
        let mut total = Written::default();
        if let Treatment::Decode(cast) = self.treatment {
            let (dtype, logical_type) = self.dense_type().unwrap_or((DType::U8, None));
            let data = out.component(DATA, dtype, logical_type)?;
            total = self.store(data, self.unit(DATA, false), shares, progress, |out| {
                self.write_decoded(cast, out, progress)
            })?;
        } else {
            // In the order of their data: a `.zt` comes out as it went in.
            let mut components: Vec<_> = object.components.iter().collect();
            components.sort_by_key(|(_, component)| component.blob.span.offset());
            for (role, component) in components {
                let (dtype, logical_type) = self.component_type(role, component)?;
                let mut data = out.component(role.clone(), dtype, logical_type)?;
                data.set_extra(component.extra.clone());
                data.expect_len(component.blob.decoded_len.unwrap_or(0));
                let unit = self.unit(role, false);
                let written = self.store(data, unit, shares, progress, |out| {
                    self.write_component(role, out, progress)
                })?;
                total.byte_len = total.byte_len.saturating_add(written.byte_len);
                total.overflow = total.overflow.or(written.overflow);
            }
        }
        out.finish()?;
        Ok(total)
    }

    /// What is written of a component, or of the value.
    fn unit(&self, role: &'i str, is_split: bool) -> Unit<'i> {
        Unit {
            tensor: self.tensor,
            role,
            treatment: match self.treatment {
                Treatment::Cast(_) if role != DATA => Treatment::Keep,
                treatment => treatment,
            },
            is_split,
        }
    }

    /// Ends a component with the bytes that `write` writes, or with the blob of those that are the
    /// same.
    fn store(
        &self,
        mut component: ComponentWriter<'_, '_, '_>,
        unit: Unit<'i>,
        shares: &mut Shares<'i>,
        progress: Option<Progress<'_>>,
        write: impl FnOnce(&mut (dyn Write + Send)) -> Result<Option<Overflow>>,
    ) -> Result<Written> {
        let missing = match shares.search(unit) {
            Search::Missing(missing) => missing,
            Search::Found(seen) => {
                component.share(seen.unit.tensor.name(), seen.unit.role)?;
                skip(&seen, shares, progress)?;
                return Ok(seen.written);
            }
        };
        let mut counted = Counted {
            out: &mut component,
            byte_len: 0,
        };
        let overflow = write(&mut counted)?;
        let byte_len = counted.byte_len;
        let finished = component.finish();
        finished.map_err(|error| error.with_object(self.name()))?;
        let written = Written { byte_len, overflow };
        shares.insert(missing, written);
        Ok(written)
    }

    /// How the object is written as planes, and the bytes of its values; `None` where the writer
    /// writes none, and where planes have no place for something that the object has.
    fn codec(&self, writer: &zt::Writer<'_>) -> Option<(PlaneCodec, u64)> {
        let (dtype, logical_type) = self.dense_type()?;
        let object = self.object();
        let is_whole = match (self.treatment, &object.components[..]) {
            (Treatment::Decode(_), _) => true,
            (_, [(_, data)]) => data.extra.is_empty(),
            _ => false,
        };
        let (shape, logical_type) = (&object.shape, logical_type.as_deref());
        let attributes = self.attributes();
        let codec = writer.planes_of(shape, dtype, logical_type, attributes.as_ref());
        let codec = codec.filter(|_| is_whole)?;
        let value_len = self.registry.value_len(dtype, logical_type).ok()??;
        Some((codec, dense_byte_len(shape, value_len)?))
    }

    /// Writes the values of a plain array as planes, with a pass over the values for each.
    fn write_planes(
        &self,
        writer: &mut zt::Writer<'_>,
        codec: &PlaneCodec,
        byte_len: u64,
        shares: &mut Shares<'i>,
        progress: Option<Progress<'_>>,
    ) -> Result<Written> {
        /// Values that cost more to make than to read are kept, up to here.
        const KEPT: u64 = 64 << 20;
        let object = self.object();
        let mut out = writer.begin(self.name(), &object.shape, Planes::FORMAT)?;
        if let Some(attributes) = self.attributes() {
            out.set_attributes(attributes);
        }
        out.set_extra(object.extra.clone());
        let unit = self.unit(DATA, true);
        let missing = match shares.search(unit) {
            Search::Missing(missing) => missing,
            Search::Found(seen) => {
                out.share_planes(codec, seen.unit.tensor.name())?;
                skip(&seen, shares, progress)?;
                out.finish()?;
                return Ok(seen.written);
            }
        };
        let is_raw = |(_, component): &(_, Component)| component.blob.encoding == Encoding::Raw;
        let is_kept = match self.treatment {
            Treatment::Keep if object.components.iter().all(is_raw) => false,
            // Made in memory anew for each pass otherwise.
            Treatment::Decode(_) if !self.is_planes() => true,
            _ => byte_len <= KEPT,
        };
        let mut overflow = None;
        if is_kept {
            let mut values = Vec::new();
            overflow = self.write_values(byte_len, &mut values, progress)?;
            out.planes(codec, |out| self.write_piece(&values, out))?;
        } else {
            let passes = codec.plane_count() as u64;
            let share = |len| progress.map_or(ControlFlow::Continue(()), |tell| tell(len / passes));
            out.planes(codec, |out| {
                overflow = self.write_values(byte_len, out, Some(&share))?;
                Ok(())
            })?;
        }
        let written = Written { byte_len, overflow };
        shares.insert(missing, written);
        out.finish()?;
        Ok(written)
    }

    /// Metadata was checked when the file was opened, and bytes while they were read: only a
    /// format that is not ours gives another number of them.
    fn expect_len(&self, expected: u64, found: u64) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        Err(self.blame(Fault::Length { expected, found }.into()))
    }

    /// The type that a component is written with.
    fn component_type(&self, role: &str, component: &Component) -> Result<(DType, Option<Text>)> {
        match self.treatment {
            Treatment::Cast(dtype) if role == DATA => Ok((dtype, None)),
            _ => {
                let dtype = self.tensor.dtype_to_write(role);
                let dtype = dtype.map_err(|error| self.blame(error))?;
                Ok((dtype, component.logical_type.clone()))
            }
        }
    }

    /// Streams one component, `data` cast where that is the treatment.
    fn write_component(
        &self,
        role: &str,
        out: &mut (dyn Write + Send),
        progress: Option<Progress<'_>>,
    ) -> Result<Option<Overflow>> {
        let cast = match self.treatment {
            Treatment::Cast(dtype) if role == DATA => Some(dtype),
            _ => None,
        };
        let source = self.tensor.component(role)?;
        let mut reader = self
            .tensor
            .reader(role)
            .map_err(|error| self.blame(error))?;
        let stored = (source.dtype.unwrap_or(DType::U8), &source.logical_type);
        let whole = source.blob.decoded_len;
        let piece_len = self.piece_len(stored, whole, PIECE);
        let pieces = |take: &mut Take<'_>| reader.for_each_piece(piece_len, take);
        self.pump(role, pieces, stored, cast, out, progress)
    }

    fn write_decoded(
        &self,
        cast: Option<DType>,
        out: &mut (dyn Write + Send),
        progress: Option<Progress<'_>>,
    ) -> Result<Option<Overflow>> {
        /// Planes are put together on all cores, a mebi of elements on each.
        const LONG: usize = 16 << 20;
        let (dtype, logical_type) = self.decoded_type().unwrap_or((DType::U8, None));
        let stored = (dtype, &logical_type);
        let value_len = self.registry.value_len(dtype, logical_type.as_deref());
        let whole = value_len.ok().flatten();
        let whole = whole.and_then(|len| dense_byte_len(&self.object().shape, len));
        let most = if self.is_planes() { LONG } else { PIECE };
        let piece_len = self.piece_len(stored, whole, most);
        let reader = self.tensor.dense_reader();
        let mut reader = reader.map_err(|error| self.blame(error))?;
        let pieces = |take: &mut Take<'_>| reader.for_each_piece(piece_len, take);
        self.pump(DATA, pieces, stored, cast, out, progress)
    }

    /// Writes the pieces that `pieces` hands on, values of type `stored`, cast where that is wished;
    /// what the cast has made infinite.
    ///
    /// A bool that is neither 0 nor 1 is found here, for every kind of file that is written: none of
    /// them is written with values that its own reader refuses.
    fn pump(
        &self,
        role: &str,
        pieces: impl FnOnce(&mut Take<'_>) -> Result<()>,
        stored: (DType, &Option<Text>),
        cast: Option<DType>,
        out: &mut (dyn Write + Send),
        progress: Option<Progress<'_>>,
    ) -> Result<Option<Overflow>> {
        let mut overflow = cast.map(Overflow::none);
        let mut start = 0u64;
        let mut write = |bytes: &[u8]| {
            if stored.0 == DType::Bool {
                let checked = check_bools_from(start, bytes);
                checked.map_err(|error| self.blame(error.with_role(role.to_owned()).into()))?;
                start = start.saturating_add(bytes.len() as u64);
            }
            match &mut overflow {
                Some(overflow) => {
                    let elements = Elements {
                        dtype: stored.0,
                        logical_type: stored.1.clone(),
                        bytes: Bytes::Borrowed(bytes),
                    };
                    let cast = elements
                        .to_dtype(overflow.dtype, self.registry)
                        .and_then(|cast| {
                            overflow.add(&elements, &cast.bytes, self.registry)?;
                            Ok(cast)
                        });
                    let cast =
                        cast.map_err(|error| self.blame(error.with_role(role.to_owned()).into()))?;
                    self.write_piece(&cast.bytes, out)?;
                }
                None => self.write_piece(bytes, out)?,
            }
            report(progress, bytes.len())
        };
        let mut written = Ok(());
        let read = pieces(&mut |bytes| {
            written = write(bytes);
            match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        read.map_err(|error| self.blame(error))?;
        written?;
        Ok(overflow.and_then(Overflow::found))
    }

    fn write_piece(&self, piece: &[u8], out: &mut (dyn Write + Send)) -> Result<()> {
        out.write_all(piece)
            .map_err(|error| unwrapped(error).with_object(self.name()))
    }

    /// The type of a dense object's `data`.
    fn plain_type(&self) -> Option<(DType, Option<Text>)> {
        let data = self.object().component(DATA).filter(|_| self.is_dense())?;
        let dtype = data.dtype?;
        Some((dtype, dtype.logical_type(data.logical_type.clone())))
    }

    /// The type of the dense value that the object's format makes.
    fn decoded_type(&self) -> Option<(DType, Option<Text>)> {
        let object = self.object();
        let format = self.registry.format(&object.format)?;
        format.dense_type(&signature(object), self.registry)
    }

    /// What values of type `stored` are cast to, where `wished` is for them and changes anything.
    fn cast_of(
        &self,
        (dtype, logical_type): &(DType, Option<Text>),
        wished: Option<DType>,
    ) -> Option<DType> {
        let is_floating = match logical_type {
            None => dtype.is_float(),
            Some(name) => {
                let known = self.registry.logical_type(name);
                let decode = known.map(|logical: &LogicalType| logical.decode);
                matches!(decode, Some(Decode::F32(_) | Decode::F64(_)))
            }
        };
        let changes = |wished: &DType| logical_type.is_some() || wished != dtype;
        wished.filter(|wished| is_floating && changes(wished))
    }

    /// Bytes to read at a time, of `whole`. A piece ends where a value does, so that it can be cast
    /// alone; and is no longer than it need be, because most of many objects are small.
    fn piece_len(
        &self,
        (dtype, logical_type): (DType, &Option<Text>),
        whole: Option<u64>,
        most: usize,
    ) -> usize {
        let known = self.registry.value_len(dtype, logical_type.as_deref());
        let value_len = known
            .ok()
            .flatten()
            .and_then(|len| usize::try_from(len).ok())
            .filter(|len| (1..=most).contains(len))
            .unwrap_or(dtype.byte_len());
        let most = most - most % value_len;
        let whole = whole.and_then(|len| usize::try_from(len).ok());
        whole.map_or(most, |whole| whole.clamp(value_len, most))
    }

    /// An error about the input names it.
    fn blame(&self, error: Error) -> Error {
        let error = error.with_object(self.name());
        self.path.into_iter().fold(error, Error::with_path)
    }
}

fn signature(object: &Object) -> Signature<'_> {
    let components = object
        .components
        .iter()
        .map(|(role, component)| ComponentSignature {
            role,
            dtype: component.dtype,
            logical_type: component.logical_type.as_deref(),
            byte_len: component.blob.decoded_len,
        });
    let components = components.collect();
    Signature {
        shape: &object.shape,
        attributes: object.attributes(),
        components,
    }
}

/// Counts what is shared as bytes that are done.
fn skip(seen: &Seen<'_>, shares: &mut Shares<'_>, progress: Option<Progress<'_>>) -> Result<()> {
    let byte_len = seen.written.byte_len;
    shares.byte_len = shares.byte_len.saturating_add(byte_len);
    let byte_len = usize::try_from(byte_len);
    report(progress, byte_len.unwrap_or(usize::MAX))
}

/// Tells how far the work is.
fn report(progress: Option<Progress<'_>>, len: usize) -> Result<()> {
    match progress.map(|progress| progress(len as u64)) {
        Some(ControlFlow::Break(())) => Err(Fault::Interrupted.into()),
        _ => Ok(()),
    }
}

/// `zt`'s own error back out of the `io::Error` that [`Write`] asks for.
fn unwrapped(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => error.into(),
    }
}

/// Counts what passes.
struct Counted<'o> {
    out: &'o mut (dyn Write + Send),
    byte_len: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.out.write(bytes)?;
        self.byte_len = self.byte_len.saturating_add(len as u64);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
