//! The kind `zt`: every generation is read, 1.2.0 is written.
//!
//! An object is written as its components, as its dense value, or as planes of that value.

use std::ops::ControlFlow;

use zt::container::{MAGIC, MAGIC_0_1};
use zt::foreign::Kind;
use zt::formats::{PlaneCodec, View, dense_byte_len, element_count};
use zt::manifest::Text;
use zt::{
    Component, ComponentWriter, DType, Encoding, Error, Planes, Progress, Result, Source, Tensor,
};

use super::object::{DATA, Outgoing, Treatment};
use super::shares::{Search, Seen, Shares, Unit, Written};
use super::{Incoming, Job, Loss, Merged, Sink};
use crate::{Fault, FileKind, FileWriter, Input, Opening, Probe};

/// The kind of `.zt` files.
pub const ZT: Kind = Kind::ZT;

/// Recognises, opens and writes `.zt` files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Zt;

impl FileKind for Zt {
    fn kind(&self) -> Kind {
        ZT
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["zt"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        let has_magic = |magic: [u8; 8]| probe.head().starts_with(&magic);
        Ok(has_magic(MAGIC) || has_magic(MAGIC_0_1))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        Ok(opening.input(opening.options.open.open_source(source)?))
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}

impl FileWriter for Zt {
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        let write = job.options.write.clone();
        let mut writer = match sink.file_mut() {
            Some(file) => write.to_atomic_file(file)?,
            None => write.to_buffered_writer(sink)?,
        };
        if let Some(attributes) = merged.attributes {
            writer.set_attributes(attributes);
        }
        writer.set_extra(merged.extra);
        write_objects(&merged.objects, &[], &mut writer, job)?;
        writer.finish()
    }

    fn has_sets(&self) -> bool {
        true
    }

    fn shard_len(&self, incoming: &Incoming<'_>, job: &mut Job<'_>) -> Result<Option<u64>> {
        let mut object = Outgoing::new(incoming, job.options.dtype);
        if job.options.dense && !object.is_dense() {
            object.decode(job.options.dtype);
        }
        let (tensor, registry) = (incoming.tensor, incoming.registry);
        let mut total = Some(0u64);
        if let Some((dtype, logical_type)) = object.dense_type()
            && let Ok(Some(value_len)) = registry.value_len(dtype, logical_type.as_deref())
            && let Some(count) = element_count(tensor.shape())
        {
            total = count.checked_mul(value_len);
        } else {
            for (role, _) in &object.object().components {
                let byte_len = tensor.decoded_len(role)?;
                total = total.and_then(|total| total.checked_add(byte_len));
            }
        }
        let (target, loss) = (ZT, Loss::Shape);
        let overflow = || Error::from(Fault::Lossy { target, loss }).with_object(tensor.name());
        Ok(Some(total.ok_or_else(overflow)?))
    }
}

/// Writes objects one after the other. Identical components are written once. Components that the
/// objects `existing` in the file have are not written.
pub fn write_objects<'i>(
    objects: &[Incoming<'i>],
    existing: &[Tensor<'i>],
    writer: &mut zt::Writer<'_>,
    job: &mut Job<'_>,
) -> Result<()> {
    let options = job.options;
    let mut planned = Vec::with_capacity(objects.len());
    for incoming in objects {
        let mut object = Outgoing::new(incoming, options.dtype);
        if options.dense && !object.is_dense() && !object.decode(options.dtype) {
            let format = object.tensor.format().to_owned();
            job.forgive(Fault::NoDenseValue { format }, Some(object.name()));
        }
        if object.is_decoded() {
            job.components(&object);
        }
        planned.push(object);
    }
    job.check()?;
    let mut shares = Shares::default();
    if options.deduplicate {
        shares = Shares::new(objects);
        for tensor in existing {
            shares.add_existing(*tensor);
        }
    }
    for object in &planned {
        let written = object.write_to(writer, &mut shares, options.progress)?;
        job.written(object.name(), written.byte_len, written.overflow)?;
    }
    job.summary.shared = shares.byte_len;
    Ok(())
}

impl<'i> Outgoing<'i> {
    /// Writes the object to a `.zt` file. Components that `shares` finds in the file are shared.
    fn write_to(
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
        if self.tensor.fault().is_some() {
            out = out.unchecked();
        }
        if let Some(attributes) = self.attributes() {
            out.set_attributes(attributes);
        }
        out.set_extra(object.extra.clone());
        let mut total = Written::default();
        if matches!(self.treatment, Treatment::Decode(_)) {
            let (dtype, logical_type) = self.dense_type().unwrap_or((DType::U8, None));
            let mut data = out.component(DATA, dtype, logical_type)?;
            if let Some(source) = self.typical_component() {
                data.store_as(source);
            }
            total = self.store(data, DATA, shares, progress)?;
        } else {
            // In the order of their data, so that a `.zt` file keeps its order.
            let mut components: Vec<_> = object.components.iter().collect();
            components.sort_by_key(|(_, component)| component.blob.span.offset());
            for (role, component) in components {
                let (dtype, logical_type) = self.component_type(role, component)?;
                let mut data = out.component(role.clone(), dtype, logical_type)?;
                data.set_extra(component.extra.clone());
                if self.cast_of_role(role).is_some() {
                    data.store_as(component);
                }
                let written = self.store(data, role, shares, progress)?;
                total.byte_len += written.byte_len;
                total.overflow = total.overflow.or(written.overflow);
            }
        }
        out.finish()?;
        Ok(total)
    }

    /// The unit of a component, or of the dense value.
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

    /// Ends a component: with the blob of an equal one that was written before, or with its bytes.
    fn store(
        &self,
        mut out: ComponentWriter<'_, '_, '_>,
        role: &'i str,
        shares: &mut Shares<'i>,
        progress: Option<Progress<'_>>,
    ) -> Result<Written> {
        let unit = self.unit(role, false);
        let missing = match shares.search(unit) {
            Search::Missing(missing) => missing,
            Search::Found(seen) => {
                out.share(seen.unit.tensor.name(), seen.unit.role)?;
                skip(&seen, shares, progress)?;
                return Ok(seen.written);
            }
        };
        let written = match unit.treatment {
            Treatment::Keep => self.copy(role, out, progress)?,
            Treatment::Cast(_) => {
                let written = self.write_component(role, &mut out, progress)?;
                self.end(out)?;
                written
            }
            Treatment::Decode(cast) => {
                let written = self.write_decoded(cast, &mut out, progress)?;
                self.end(out)?;
                written
            }
        };
        shares.insert(missing, written);
        Ok(written)
    }

    fn end(&self, component: ComponentWriter<'_, '_, '_>) -> Result<()> {
        let finished = component.finish();
        finished.map_err(|error| error.with_object(self.name()))
    }

    /// Copies a component as it is.
    fn copy(
        &self,
        role: &str,
        out: ComponentWriter<'_, '_, '_>,
        progress: Option<Progress<'_>>,
    ) -> Result<Written> {
        let byte_len = out.copy(&self.tensor, role, progress).map_err(|error| {
            // Only errors about the input name an object.
            match error.object() {
                Some(_) => self.blame(error),
                None => error,
            }
        })?;
        Ok(Written {
            byte_len,
            overflow: None,
        })
    }

    /// The component whose storage the dense value takes: a compressed one, if there is one.
    fn typical_component(&self) -> Option<&'i Component> {
        let components = self.object().components.iter();
        let mut components = components.map(|(_, component)| component);
        let first = components.clone().next();
        let is_compressed = |it: &&Component| it.blob.encoding == Encoding::Zstd;
        components.find(is_compressed).or(first)
    }

    /// The codec of the object's planes, and the bytes of its values. `None` if the writer writes no
    /// planes, or if planes cannot represent the object.
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
        let is_split = is_whole && (writer.writes_planes() || self.keeps_planes);
        let codec = writer.planes_of(shape, dtype, logical_type, attributes.as_ref());
        let codec = codec.filter(|_| is_split)?;
        let value_len = self.registry.value_len(dtype, logical_type).ok()??;
        Some((codec, dense_byte_len(shape, value_len)?))
    }

    /// Writes the values of a plain array as planes, with one pass over the values per plane.
    fn write_planes(
        &self,
        writer: &mut zt::Writer<'_>,
        codec: &PlaneCodec,
        byte_len: u64,
        shares: &mut Shares<'i>,
        progress: Option<Progress<'_>>,
    ) -> Result<Written> {
        /// The most bytes of values that are kept in memory because they are not only read.
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
            // Otherwise each pass would decode the value again.
            Treatment::Decode(_) if !self.is_planes() => true,
            _ => byte_len <= KEPT,
        };
        let mut overflow = None;
        if is_kept {
            let mut values = Vec::new();
            overflow = self.write_values(byte_len, &mut values, progress)?;
            out.planes(codec, |out| {
                let wrote = out.write_all(&values);
                wrote.map_err(|error| Error::from(error).with_object(self.name()))
            })?;
        } else {
            let passes = codec.plane_count() as u64;
            let share = |len| match progress.map(|progress| progress.report(len / passes)) {
                Some(Err(_)) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            };
            out.planes(codec, |out| {
                overflow = self.write_values(byte_len, out, Some(Progress::new(&share)))?;
                Ok(())
            })?;
        }
        let written = Written { byte_len, overflow };
        shares.insert(missing, written);
        out.finish()?;
        Ok(written)
    }

    /// The type that a component is written with.
    fn component_type(&self, role: &str, component: &Component) -> Result<(DType, Option<Text>)> {
        if let Some(dtype) = self.cast_of_role(role) {
            return Ok((dtype, None));
        }
        let dtype = self.tensor.dtype_to_write(role);
        let dtype = dtype.map_err(|error| self.blame(error))?;
        Ok((dtype, component.logical_type.clone()))
    }
}

/// Reports shared bytes as done.
fn skip(seen: &Seen<'_>, shares: &mut Shares<'_>, progress: Option<Progress<'_>>) -> Result<()> {
    let byte_len = seen.written.byte_len;
    shares.byte_len += byte_len;
    progress.map_or(Ok(()), |progress| progress.report(byte_len))
}
