//! Recognises, opens and writes `.zt` files.

use zt::container::{MAGIC, MAGIC_0_1};
use zt::foreign::Kind;
use zt::formats::element_count;
use zt::{Error, Result, Source};
use zt_foreign::{
    Fault, FileKind, FileWriter, Incoming, Input, Job, Loss, Merged, Opening, Outgoing, Probe,
    SetForm, Sink,
};

use crate::native::object::write_objects;

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

    fn read_from_end(&self) -> &'static [&'static str] {
        &["zt"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        let has_magic = |magic: [u8; 8]| probe.head().starts_with(&magic);
        Ok(has_magic(MAGIC) || has_magic(MAGIC_0_1))
    }

    fn recognise_end(&self, source: &dyn Source) -> Result<bool> {
        let mut magic = [0; MAGIC.len()];
        if let Some(end) = source.byte_len().checked_sub(MAGIC.len() as u64) {
            source.read_at(end, &mut magic)?;
        }
        Ok(magic == MAGIC)
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
            writer.set_attributes(attributes)?;
        }
        writer.set_extra(merged.extra)?;
        write_objects(&merged.objects, &[], &mut writer, job)?;
        writer.finish()
    }

    fn set_form(&self) -> Option<SetForm> {
        Some(SetForm::Indexed)
    }

    fn shard_len(&self, incoming: &Incoming<'_>, job: &mut Job<'_>) -> Result<Option<u64>> {
        let mut object = Outgoing::new(incoming);
        if job.options.dense && !object.is_dense() {
            object.decode();
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
