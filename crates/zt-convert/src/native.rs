//! The member `zt`: every generation is read, 1.2.0 is written.

use zt::{Result, Source};

use crate::convert::Sink;
use crate::detect::Probe;
use crate::fault::Fault;
use crate::input::{Input, Origin};
use crate::losses::Losses;
use crate::member::{Member, ZT};
use crate::merge::{Incoming, Merged};
use crate::object::Outgoing;
use crate::shares::Shares;
use crate::{ConvertOptions, Summary};

pub(crate) const MEMBER: Member = Member {
    kind: ZT,
    extensions: &["zt"],
    recognises,
    open,
    write: Some(write),
};

fn recognises(probe: &Probe<'_>) -> Result<bool> {
    let magics = [zt::container::MAGIC, zt::container::MAGIC_0_1];
    Ok(magics.iter().any(|magic| probe.head().starts_with(magic)) || is_index(probe)?)
}

/// The index of a set of `.zt` files, which is read as any index is.
#[cfg(feature = "safetensors")]
fn is_index(probe: &Probe<'_>) -> Result<bool> {
    Ok(crate::safetensors::index_kind(probe)? == Some(ZT))
}

#[cfg(not(feature = "safetensors"))]
fn is_index(_: &Probe<'_>) -> Result<bool> {
    Ok(false)
}

fn open(source: Box<dyn Source>, origin: Origin<'_>) -> Result<Input> {
    #[cfg(feature = "safetensors")]
    if is_index(&Probe::new(&source)?)? {
        return crate::safetensors::sharded::open(&source, origin);
    }
    let file = origin.options.open_source(source)?;
    Ok(Input::new(
        file,
        origin.path.map(ToOwned::to_owned).into_iter().collect(),
    ))
}

/// Whatever a file can say, `.zt` can.
fn write(
    merged: Merged<'_>,
    sink: &mut Sink<'_>,
    options: &ConvertOptions<'_>,
    summary: &mut Summary,
) -> Result<()> {
    let mut writer = options.write.clone().to_writer(sink)?;
    if let Some(attributes) = merged.attributes {
        writer.set_attributes(attributes);
    }
    writer.set_extra(merged.extra);
    write_objects(&merged.objects, &mut writer, options, summary)?;
    writer.finish()
}

/// Writes objects one after the other, copies of components once.
pub(crate) fn write_objects(
    objects: &[Incoming<'_>],
    writer: &mut zt::Writer<'_>,
    options: &ConvertOptions<'_>,
    summary: &mut Summary,
) -> Result<()> {
    let mut shares = match options.deduplicate {
        true => Shares::new(objects),
        false => Shares::default(),
    };
    for incoming in objects {
        let mut object = Outgoing::new(incoming, options.dtype);
        if options.dense && !object.is_dense() && !object.decode(options.dtype) {
            let format = object.tensor.format().to_owned();
            options.forgive(Fault::NoDenseValue { format }, Some(object.name()), summary)?;
        }
        if object.is_decoded() {
            Losses::new(ZT, options, summary).components(&object)?;
        }
        let written = object.write_to(writer, &mut shares, options.progress)?;
        options.accept_overflow(written.overflow, object.name(), summary)?;
        summary.bytes = summary.bytes.saturating_add(written.byte_len);
        summary.objects = summary.objects.saturating_add(1);
    }
    summary.shared = shares.byte_len;
    Ok(())
}
