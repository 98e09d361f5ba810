//! Archives of Keras 3, `.keras`: a zip archive with the model as JSON and its weights as an HDF5
//! file.
//!
//! Only `verify` compares the archive's CRC-32 of the weights, because tensors are read one by one.

use std::sync::Arc;

use zt::foreign::FileBuilder;
use zt::{Blob, ErrorKind, Result, Source};
use zt_foreign::{Probe, archive as zip};
use zt_zip::{Archive, Member};

use crate::bytes::fault::Hdf5Fault;

/// The member with the weights.
const WEIGHTS: &str = "model.weights.h5";

/// The members that Keras writes first.
const FIRST: [&str; 3] = ["metadata.json", "config.json", WEIGHTS];

/// Whether a file is an archive of Keras. Without a valid directory, its first member decides.
pub(crate) fn recognises(probe: &Probe<'_>) -> Result<bool> {
    let begins_ours = |name: &[u8]| FIRST.iter().any(|first| first.as_bytes() == name);
    zip::recognises(probe, has_weights, begins_ours)
}

pub(crate) fn has_weights(archive: &Archive) -> bool {
    let mut members = archive.members().iter();
    members.any(|member| member.name() == WEIGHTS)
}

/// The weights of an archive at the beginning of the source or after other data; `None` if there is
/// no archive, or no weights in it. The archive's fault is an error if the source begins like an
/// archive and not `is_hdf5`.
pub(crate) fn weights(
    source: &dyn Source,
    is_hdf5: bool,
    builder: &mut FileBuilder,
) -> Result<Option<Member>> {
    let mut head = [0; 4];
    if source.byte_len() < head.len() as u64 {
        return Ok(None);
    }
    source.read_at(0, &mut head)?;
    let archive = if zt_zip::is_archive(&head) {
        match zip::open(source, builder.limits()) {
            Err(error) if error.kind() != ErrorKind::Io && is_hdf5 => None,
            opened => Some(opened?),
        }
    } else if is_hdf5 {
        None
    } else {
        zip::behind_other_data(source)?
    };
    let Some(archive) = archive.filter(has_weights) else {
        return Ok(None);
    };
    zip::tolerate_surroundings(&archive, builder);
    let mut members = archive.into_members().into_iter();
    Ok(members.find(|member| member.name() == WEIGHTS))
}

/// The weights in the archive, with their digest. A compressed member is unsupported: Keras does not
/// compress weights, and every structure would be inflated again from the beginning.
pub(crate) fn content(weights: &Member, archive: &Arc<dyn Source>) -> Result<Blob> {
    let content = zip::content(weights, archive)?;
    if !content.is_stored {
        return Err(Hdf5Fault::Unsupported("a compressed file of weights in an archive").into());
    }
    Ok(Blob { digest: content.digest(), ..Blob::raw(content.span) })
}
