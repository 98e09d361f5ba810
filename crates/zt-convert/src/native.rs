//! The kind `zt`: every generation is read, 1.2.0 is written.

use zt::foreign::Kind;
use zt::formats::element_count;
use zt::{Error, Result, Source, Tensor};
use zt_foreign::{
    Fault, FileKind, FileWriter, Incoming, Input, Job, Loss, Merged, Opening, Outgoing, Probe,
    Sink, outgoing::Shares,
};

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
        let magics = [zt::container::MAGIC, zt::container::MAGIC_0_1];
        Ok(magics.iter().any(|magic| probe.head().starts_with(magic)))
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
        let mut writer = job.options.write.clone().to_buffered_writer(sink)?;
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
pub(crate) fn write_objects<'i>(
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
