//! Plain arrays as an archive that `numpy.load` opens.

use std::io::Write;

use zt::Result;

use super::ENDING;
use crate::convert::Sink;
use crate::fault::Loss;
use crate::losses::Losses;
use crate::member::NPZ;
use crate::merge::Merged;
use crate::npy::{Array, refuse_attributes};
use crate::zip::ArchiveWriter;
use crate::{ConvertOptions, Summary};

/// Writes every object as a stored member, its elements at a multiple of 64, in the order of the
/// inputs. There is no date and nothing else that changes: the same objects give the same bytes.
pub(super) fn write(
    merged: Merged<'_>,
    sink: &mut Sink<'_>,
    options: &ConvertOptions<'_>,
    summary: &mut Summary,
) -> Result<()> {
    let mut losses = Losses::new(NPZ, options, summary);
    refuse_attributes(&merged, &mut losses)?;
    let mut arrays = Vec::with_capacity(merged.objects.len());
    for incoming in &merged.objects {
        let Some(array) = Array::new(incoming, &mut losses, options)? else {
            continue;
        };
        let name = format!("{}{ENDING}", array.name());
        match array
            .byte_len()
            .filter(|_| ArchiveWriter::<Sink<'_>>::takes(&name))
        {
            Some(byte_len) => arrays.push((name, byte_len, array)),
            None => losses.accept(Loss::Name { target: NPZ }, Some(array.name()))?,
        }
    }
    let mut archive = ArchiveWriter::new(sink);
    for (name, byte_len, array) in arrays {
        let mut member = archive.begin(name, byte_len)?;
        array.write(&mut member, options.progress, summary)?;
        member.finish()?;
    }
    archive.finish()?.flush()?;
    Ok(())
}
