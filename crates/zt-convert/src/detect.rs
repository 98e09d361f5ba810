//! What a file is, by its bytes alone.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use zt::{Kind, Result, Source};

use crate::fault::Fault;
use crate::member::{Member, members};

/// Bytes that the kinds look at first. Enough for every magic there is, that of tar at 257 too.
const HEAD: u64 = 512;

/// The kind of a file, by its bytes; `None` where it is of no kind that this build knows.
///
/// A file that is recognisably meant to be of a kind is of that kind, broken or not: opening it
/// says what is wrong. A sharded set is of its members' kind. Reads the first bytes, and of a text
/// that may be a sharded set's index as much as it takes.
///
/// # Errors
///
/// [`zt::ErrorKind::Io`] where the source cannot be read.
///
/// ```
/// let source = zt::Memory::new(b"Dear all,");
/// assert_eq!(zt_convert::detect(&source)?, None);
/// # Ok::<(), zt::Error>(())
/// ```
pub fn detect(source: &dyn Source) -> Result<Option<Kind>> {
    let probe = Probe::new(source)?;
    Ok(recognise(&probe)?.map(Member::kind))
}

/// The member that a file is of.
///
/// # Errors
///
/// Code `unknown-kind`; [`zt::ErrorKind::Io`].
pub(crate) fn member_of(source: &dyn Source) -> Result<&'static Member> {
    let probe = Probe::new(source)?;
    let unknown = || {
        Fault::UnknownKind {
            start: probe.head().iter().take(8).copied().collect(),
        }
        .into()
    };
    recognise(&probe)?.ok_or_else(unknown)
}

fn recognise(probe: &Probe<'_>) -> Result<Option<&'static Member>> {
    for member in members() {
        if (member.recognises)(probe)? {
            return Ok(Some(member));
        }
    }
    in_archive_behind(probe)
}

/// What is nothing else may be an archive behind something else. That is tried last: among the data
/// of another file an archive may lie, too.
#[cfg(any(feature = "hdf5", feature = "npz", feature = "pytorch"))]
fn in_archive_behind(probe: &Probe<'_>) -> Result<Option<&'static Member>> {
    let Some(archive) = crate::zip::behind_other_data(probe.source())? else {
        return Ok(None);
    };
    #[cfg(feature = "pytorch")]
    if crate::pytorch::is_ours(&archive) {
        return Ok(Some(&crate::pytorch::MEMBER));
    }
    #[cfg(feature = "hdf5")]
    if crate::hdf5::has_weights(&archive) {
        return Ok(Some(&crate::hdf5::MEMBER));
    }
    #[cfg(feature = "npz")]
    if crate::npz::has_array(&archive) {
        return Ok(Some(&crate::npz::MEMBER));
    }
    Ok(None)
}

#[cfg(not(any(feature = "hdf5", feature = "npz", feature = "pytorch")))]
fn in_archive_behind(_: &Probe<'_>) -> Result<Option<&'static Member>> {
    Ok(None)
}

/// A file of unknown kind and its first bytes.
pub(crate) struct Probe<'s> {
    source: &'s dyn Source,
    head: Vec<u8>,
}

impl<'s> Probe<'s> {
    pub(crate) fn new(source: &'s dyn Source) -> Result<Self> {
        let len = source.byte_len().min(HEAD);
        let mut head = vec![0; usize::try_from(len).unwrap_or(0)];
        source.read_at(0, &mut head)?;
        Ok(Probe { source, head })
    }

    /// The first bytes; all of a small file.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The file, for kinds that are told by more than their beginning.
    #[cfg(any(
        feature = "hdf5",
        feature = "npz",
        feature = "onnx",
        feature = "pytorch",
        feature = "safetensors"
    ))]
    pub(crate) fn source(&self) -> &dyn Source {
        self.source
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.source.byte_len()
    }

    /// Whether `needle` occurs in the first `limit` bytes.
    pub(crate) fn contains(&self, needle: &[u8], limit: u64) -> Result<bool> {
        const PIECE: u64 = 64 << 10;
        let end = self.byte_len().min(limit);
        // Pieces overlap, so that a needle on their border is whole in one of them.
        let overlap = (needle.len() as u64).saturating_sub(1);
        let mut piece = Vec::new();
        let mut offset = 0u64;
        while offset < end {
            let len = end.saturating_sub(offset).min(PIECE);
            piece.resize(usize::try_from(len).unwrap_or(0), 0);
            self.source.read_at(offset, &mut piece)?;
            if piece.windows(needle.len()).any(|window| window == needle) {
                return Ok(true);
            }
            if offset.saturating_add(len) == end {
                break;
            }
            offset = offset.saturating_add(len.saturating_sub(overlap));
        }
        Ok(false)
    }
}
