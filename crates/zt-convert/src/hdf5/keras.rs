//! Archives of Keras 3, `.keras`: a zip of the model as JSON and of its weights, which are an HDF5 file.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::sync::Arc;

use zt::{ErrorKind, Limits, Result, Source, Span};

use super::violation::Violation;
use crate::zip::{self, Archive, Member};

/// The member that has the weights.
const WEIGHTS: &str = "model.weights.h5";

/// The weights of an archive of Keras; `None` where a source is no such archive.
///
/// # Errors
///
/// [`ErrorKind::Io`].
pub(super) fn weights(source: &dyn Source, limits: &Limits) -> Result<Option<Member>> {
    let mut head = [0; 4];
    if source.byte_len() < head.len() as u64 {
        return Ok(None);
    }
    source.read_at(0, &mut head)?;
    if !zip::is_archive(&head) {
        return Ok(None);
    }
    match Archive::open(source, limits) {
        Ok(archive) => {
            let mut members = archive.into_members().into_iter();
            Ok(members.find(|member| member.name() == WEIGHTS))
        }
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(_) => Ok(None),
    }
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
            let what = "a file of weights that is compressed within its archive";
            Err(Violation::Unsupported { what }.into())
        }
    }
}
