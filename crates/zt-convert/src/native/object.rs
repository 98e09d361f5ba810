//! Writes objects to a `.zt` file.
//!
//! An object is written as its components, as its dense value, or as planes of that value.

use std::ops::ControlFlow;

use zt::foreign::ReadAhead;
use zt::formats::{PlaneCodec, PlaneCoding, dense_byte_len};
use zt::manifest::Text;
use zt::{
    Component, ComponentWriter, DType, Encoding, Error, ObjectWriter, Progress, Result, Tensor,
};
use zt_foreign::{DATA, Fault, Incoming, Job, Outgoing, Treatment, Written};

use crate::native::shares::{Seen, Shares, Unit};

/// Adds objects to a `.zt` file that is being written, as [`Kinds::convert`](crate::Kinds::convert) does. Identical components
/// are written once. Components that the objects `existing` in the file have are not written.
///
/// # Errors
///
/// Code `lossy` for a value that `job` would lose; the fault of an object; as [`zt::Writer`].
pub fn write_objects<'i>(
    objects: &[Incoming<'i>],
    existing: &[Tensor<'i>],
    writer: &mut zt::Writer<'_>,
    job: &mut Job<'_>,
) -> Result<()> {
    let options = job.options;
    let mut planned = Vec::with_capacity(objects.len());
    for incoming in objects {
        let mut object = Outgoing::new(incoming);
        if is_coded_anew(&object, writer) {
            object.decode();
        }
        if options.dense && !object.is_dense() && !object.decode() {
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
    let mut storing = Storing { shares, progress: options.progress };
    let mut ahead = ReadAhead::new(planned.iter().map(|object| object.tensor));
    for object in &planned {
        ahead.advance();
        let written = storing.write(object, writer)?;
        job.written(object.name(), written.byte_len, written.cast)?;
    }
    writer.check_copied().map_err(|error| {
        let of_it = |object: &&Outgoing<'_>| error.object() == Some(object.tensor.name());
        let mut found = planned.iter().filter(of_it);
        match (found.next(), found.next()) {
            (Some(object), None) => object.blame(error),
            _ => error, // Of two inputs with an object of that name.
        }
    })?;
    job.summary.shared = storing.shares.byte_len;
    Ok(())
}

/// The objects of one file on their way into it.
struct Storing<'p, 'i> {
    shares: Shares<'i>,
    progress: Option<Progress<'p>>,
}

impl<'i> Storing<'_, 'i> {
    /// Writes an object. Components that the file has already are shared.
    fn write(&mut self, object: &Outgoing<'i>, writer: &mut zt::Writer<'_>) -> Result<Written> {
        if let Some((codec, byte_len)) = plane_codec(object, writer) {
            return self.write_planes(object, writer, &codec, byte_len);
        }
        let mut out = begin(object, writer, object.format())?;
        if object.tensor.fault().is_some() {
            out = out.unchecked();
        }
        let mut total = Written::default();
        if object.is_decoded() {
            let (dtype, logical_type) = object.dense_type().unwrap_or((DType::U8, None));
            let mut data = out.component(DATA, dtype, logical_type)?;
            if let Some(source) = typical_component(object) {
                data.store_as(source);
            }
            total = self.store(object, DATA, data)?;
        } else {
            // In the order of their data, so that a `.zt` file keeps its order.
            let mut components: Vec<_> = object.object().components.iter().collect();
            components.sort_by_key(|(_, component)| component.blob.span.offset());
            for (role, component) in components {
                let (dtype, logical_type) = component_type(object, role, component)?;
                let mut data = out.component(role.clone(), dtype, logical_type)?;
                data.set_extra(component.extra.clone())?;
                if object.cast_of_role(role).is_some() {
                    data.store_as(component);
                }
                let written = self.store(object, role, data)?;
                total.byte_len = total.byte_len.strict_add(written.byte_len);
                total.cast = total.cast.or(written.cast);
            }
        }
        out.finish()?;
        Ok(total)
    }

    /// Ends a component: with the blob of an equal one that was written before, or with its bytes.
    fn store(
        &mut self,
        object: &Outgoing<'i>,
        role: &'i str,
        mut out: ComponentWriter<'_, '_, '_>,
    ) -> Result<Written> {
        let unit = Unit::new(object, role);
        let missing = match self.shares.search(unit) {
            Err(missing) => missing,
            Ok(seen) => {
                verify(object, &unit)?;
                out.share(seen.unit.tensor.name(), seen.unit.role)?;
                return self.skip(&seen);
            }
        };
        let written = if unit.treatment == Treatment::Keep {
            let byte_len = out.copy(&object.tensor, role, self.progress);
            let byte_len = byte_len.map_err(|error| {
                // Only errors about the input name an object.
                match error.object() {
                    Some(_) => object.blame(error),
                    None => error,
                }
            })?;
            Written { byte_len, cast: None }
        } else {
            let written = object.stream(role, &mut out, self.progress)?;
            let finished = out.finish();
            finished.map_err(|error| error.with_object(object.name()))?;
            written
        };
        self.shares.insert(missing, written);
        Ok(written)
    }

    /// Writes the values of a plain array as planes, with one pass over the values per plane.
    fn write_planes(
        &mut self,
        object: &Outgoing<'i>,
        writer: &mut zt::Writer<'_>,
        codec: &PlaneCodec,
        byte_len: u64,
    ) -> Result<Written> {
        /// The most bytes of values that are kept in memory because they are not only read.
        ///
        /// Pays: `zt convert --planes` of matrices of 2.5 MB from zstd takes 0.69 of the CPU time of one pass for each
        /// plane. Matrices of 75 MB are not kept: that takes 1.14 times as much CPU time.
        const KEPT: u64 = 64 << 20;
        let own = PlaneCoding::from_format(object.tensor.format());
        let coding = writer.planes().or(own).unwrap_or_default();
        let mut out = begin(object, writer, coding.format())?;
        let missing = match self.shares.search(Unit::planes(object)) {
            Err(missing) => missing,
            Ok(seen) => {
                verify(object, &Unit::planes(object))?;
                out.share_planes(codec, seen.unit.tensor.name())?;
                let written = self.skip(&seen)?;
                out.finish()?;
                return Ok(written);
            }
        };
        let is_raw = |(_, component): &(_, Component)| component.blob.encoding == Encoding::Raw;
        let is_local = !object.tensor.is_remote();
        let is_kept = match object.treatment() {
            Treatment::Keep if is_local && object.object().components.iter().all(is_raw) => false,
            // Otherwise each pass would decode the value again.
            Treatment::Decode(_) if !object.is_planes() => true,
            // Or fetch it again.
            _ => !is_local || byte_len <= KEPT,
        };
        let mut cast = None;
        if is_kept {
            let mut values = Vec::new();
            cast = object.write_values(byte_len, &mut values, self.progress)?;
            out.planes(codec, |out| {
                let wrote = out.write_all(&values);
                wrote.map_err(|error| Error::from(error).with_object(object.name()))
            })?;
        } else {
            let passes = codec.plane_count() as u64;
            let progress = self.progress;
            let share =
                |len: u64| match progress.map(|progress| progress.report(len.strict_div(passes))) {
                    Some(Err(_)) => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                };
            out.planes(codec, |out| {
                cast = object.write_values(byte_len, out, Some(Progress::new(&share)))?;
                Ok(())
            })?;
        }
        let written = Written { byte_len, cast };
        self.shares.insert(missing, written);
        out.finish()?;
        Ok(written)
    }

    /// Reports shared bytes as done.
    fn skip(&mut self, seen: &Seen<'_>) -> Result<Written> {
        let written = seen.written;
        self.shares.byte_len = self.shares.byte_len.strict_add(written.byte_len);
        if let Some(progress) = self.progress {
            progress.report(written.byte_len)?;
        }
        Ok(written)
    }
}

/// Whether these are planes of another coding than the writer's. With other components or fields, they stay.
fn is_coded_anew(object: &Outgoing<'_>, writer: &zt::Writer<'_>) -> bool {
    let coding = PlaneCoding::from_format(object.tensor.format());
    let is_other = coding.zip(writer.planes()).is_some_and(|(from, to)| from != to);
    let mut components = object.components();
    is_other
        && object.is_planes()
        && !object.is_decoded()
        && components.all(|(_, component, is_of_value)| is_of_value && component.extra.is_empty())
}

/// Compares the digests of a unit that is not copied, because its bytes were written before.
fn verify(object: &Outgoing<'_>, unit: &Unit<'_>) -> Result<()> {
    let is_one = unit.treatment == Treatment::Keep;
    let roles = object.tensor.components().map(|(role, _)| role);
    for role in roles.filter(|role| !is_one || *role == unit.role) {
        object.tensor.verify(role).map_err(|error| object.blame(error))?;
    }
    Ok(())
}

/// Begins an object with the attributes and the unknown fields of `object`.
fn begin<'w, 'b>(
    object: &Outgoing<'_>,
    writer: &'w mut zt::Writer<'b>,
    format: impl Into<Text>,
) -> Result<ObjectWriter<'w, 'b>> {
    let mut out = writer.begin(object.name(), object.tensor.shape(), format)?;
    if let Some(attributes) = object.attributes() {
        out.set_attributes(attributes)?;
    }
    out.set_extra(object.object().extra.clone())?;
    Ok(out)
}

/// The component whose storage the dense value takes: a compressed one, if there is one, else the longest.
fn typical_component<'i>(object: &Outgoing<'i>) -> Option<&'i Component> {
    let components = || object.tensor.components().map(|(_, component)| component);
    let is_compressed = |it: &&Component| it.blob.encoding == Encoding::Zstd;
    let longest = || components().max_by_key(|component| component.blob.decoded_len);
    components().find(is_compressed).or_else(longest)
}

/// The codec of the object's planes, and the bytes of its values. `None` if the writer writes no
/// planes, or if planes cannot represent the object.
fn plane_codec(object: &Outgoing<'_>, writer: &zt::Writer<'_>) -> Option<(PlaneCodec, u64)> {
    let (dtype, logical_type) = object.dense_type()?;
    let is_whole = match &object.object().components[..] {
        _ if object.is_decoded() => true,
        [(_, data)] => data.extra.is_empty(),
        _ => false,
    };
    if !is_whole || !(writer.planes().is_some() || object.keeps_planes()) {
        return None;
    }
    let (shape, logical_type) = (object.tensor.shape(), logical_type.as_deref());
    let attributes = object.attributes();
    let codec = writer.planes_of(shape, dtype, logical_type, attributes.as_ref())?;
    let value_len = object.registry.value_len(dtype, logical_type).ok()??;
    Some((codec, dense_byte_len(shape, value_len)?))
}

/// The type that a component is written with.
fn component_type(
    object: &Outgoing<'_>,
    role: &str,
    component: &Component,
) -> Result<(DType, Option<Text>)> {
    if let Some(to) = object.cast_of_role(role) {
        return Ok(to.value_type());
    }
    let dtype = object.tensor.dtype_to_write(role);
    let dtype = dtype.map_err(|error| object.blame(error))?;
    Ok((dtype, component.logical_type.clone()))
}
