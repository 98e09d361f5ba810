//! Archives of Keras 3, `.keras`: a zip of the model as JSON and of its weights, which are an HDF5 file.
//!
//! The archive's CRC-32 of that file is not compared: it is of the whole, and whoever reads it reads
//! tensors, of which it says nothing.

use std::sync::Arc;

use zt::foreign::FileBuilder;
use zt::{ErrorKind, Limits, Result, Source, Span};
use zt_foreign::Probe;

use crate::violation::Violation;
use zt_zip::{self as zip, Archive, Member};

/// The member that has the weights.
const WEIGHTS: &str = "model.weights.h5";

/// The members that Keras writes first.
const FIRST: [&str; 3] = ["metadata.json", "config.json", WEIGHTS];

/// Whether a file is an archive of Keras, or one without a sound directory that begins like one.
///
/// # Errors
///
/// [`ErrorKind::Io`].
pub(super) fn recognises(probe: &Probe<'_>) -> Result<bool> {
    if !zip::is_archive(probe.head()) {
        return Ok(false);
    }
    match Archive::open(probe.source(), &Limits::default()) {
        Ok(archive) => Ok(has_weights(&archive)),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(_) => {
            let is_ours = |name: &[u8]| FIRST.iter().any(|first| first.as_bytes() == name);
            Ok(zip::first_name(probe.head()).is_some_and(is_ours))
        }
    }
}

/// Whether an archive has weights of Keras.
pub(crate) fn has_weights(archive: &Archive) -> bool {
    let mut members = archive.members().iter();
    members.any(|member| member.name() == WEIGHTS)
}

/// The weights of an archive, which begins the source or is behind other data; `None` where a source is
/// no archive, or has none.
///
/// # Errors
///
/// What is wrong with the archive, where the source begins like one and `is_hdf5` is not said of it;
/// [`ErrorKind::Io`].
pub(super) fn weights(
    source: &dyn Source,
    is_hdf5: bool,
    builder: &mut FileBuilder,
) -> Result<Option<Member>> {
    let mut head = [0; 4];
    if source.byte_len() < head.len() as u64 {
        return Ok(None);
    }
    source.read_at(0, &mut head)?;
    let archive = match zip::is_archive(&head) {
        true => match Archive::open(source, builder.limits()) {
            Err(error) if error.kind() != ErrorKind::Io && is_hdf5 => None,
            opened => Some(opened?),
        },
        false if is_hdf5 => None,
        false => zip::behind_other_data(source)?,
    };
    let Some(archive) = archive.filter(has_weights) else {
        return Ok(None);
    };
    archive.tolerate_surroundings(builder);
    let mut members = archive.into_members().into_iter();
    Ok(members.find(|member| member.name() == WEIGHTS))
}

/// Where in the archive they are.
///
/// # Errors
///
/// What is wrong with the member; code `unsupported` where it is compressed, which Keras does not do:
/// its structures would be inflated again and again.
pub(super) fn span(weights: &Member, archive: &Arc<dyn Source>) -> Result<Span> {
    let content = weights.content(archive)?;
    match content.is_stored {
        true => Ok(content.span),
        false => {
            let what = "a compressed file of weights in an archive";
            Err(Violation::Unsupported { what }.into())
        }
    }
}
