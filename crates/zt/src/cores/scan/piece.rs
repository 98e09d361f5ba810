//! Pieces of blobs: how a blob is cut, and the work on one piece.

use zt_container::codec::Frame;
use zt_container::{DigestAlgorithm, Encoding, Hasher, Source, Span};
use zt_formats::check_bools_from;

use super::{Job, Outcome};
use crate::cores::ledger::Ledger;
use crate::cores::pieces::lent_or_fetched;
use crate::cores::scratch::Scratch;
use crate::error::Error;

/// Frames with more content than this are streamed: as pieces they would take too much memory.
const LARGEST_FRAME: u64 = 8 << 20;

/// A piece that has been fetched and decoded.
#[derive(Default)]
pub(super) struct Piece {
    pub(super) stored: Span,
    pub(super) content_len: u64,
    pub(super) fault: Option<Error>,
    /// Whether the source failed, so that no bytes were summed.
    pub(super) is_unread: bool,
    pub(super) wrong_bool: Option<Box<zt_formats::Error>>,
}

impl Piece {
    /// Fetches, sums and decodes one piece of a job. The piece holds its errors.
    pub(super) fn look(
        job: &Job<'_>,
        place: Frame,
        ledger: &Ledger<'_>,
        scratch: &mut Scratch,
    ) -> Piece {
        let mut piece = Piece { stored: place.stored, ..Piece::default() };
        let fault = piece.fill(job, place, ledger, scratch).err();
        // A source may fail with an error of any kind.
        piece.is_unread = matches!(fault, Some(zt_container::Error::Io(_)));
        piece.fault = fault.map(Error::from);
        piece
    }

    fn fill(
        &mut self,
        job: &Job<'_>,
        place: Frame,
        ledger: &Ledger<'_>,
        scratch: &mut Scratch,
    ) -> zt_container::Result<()> {
        let mut fetched = std::mem::take(&mut scratch.stored);
        let stored = lent_or_fetched(job.source, place.stored, &mut fetched)?;
        ledger.add(place.stored, stored)?;
        let decoded = decode_piece(job, stored, place.content.byte_len(), scratch).map(|content| {
            self.content_len = content.len() as u64;
            self.wrong_bool = wrong_bool(job, place.content.offset(), content);
        });
        scratch.stored = fetched;
        decoded
    }
}

/// Whether a frame is small enough to be a piece. The frame's declared length is not trusted. An
/// element that lies in two frames cannot be reversed either.
pub(super) fn is_piece(frame: &Frame, job: &Job<'_>) -> bool {
    frame.content.byte_len() <= LARGEST_FRAME
        && frame.stored.byte_len() <= LARGEST_FRAME * 2
        && (frame.content.offset()).is_multiple_of(job.width.max(1) as u64)
}

/// All of a small job.
pub(super) fn look(
    source: &dyn Source,
    job: &Job<'_>,
    scratch: &mut Scratch,
) -> zt_container::Result<Outcome> {
    let mut fetched = std::mem::take(&mut scratch.stored);
    let stored = lent_or_fetched(source, job.span, &mut fetched)?;
    let digest = |wanted: Option<DigestAlgorithm>| {
        let digest = wanted.map(|algorithm| algorithm.digest(stored));
        digest.transpose()
    };
    let mut outcome = Outcome {
        sum: digest(job.sum)?,
        sha256: digest(job.sha256.then_some(DigestAlgorithm::Sha256))?,
        chain: digest(job.chain)?,
        ..Outcome::default()
    };
    match decode_piece(job, stored, job.declared.unwrap_or(0), scratch) {
        Ok(content) => {
            outcome.decoded = Ok(content.len() as u64);
            outcome.wrong_bool = wrong_bool(job, 0, content);
            if job.content {
                let mut hasher = Hasher::new(DigestAlgorithm::Sha256)?;
                update(&mut hasher, content, job.width);
                outcome.content = Some(hasher.finish());
            }
        }
        Err(error) => outcome.decoded = Err(error.into()),
    }
    scratch.stored = fetched;
    Ok(outcome)
}

/// The content of stored bytes: the bytes themselves, or their decoded form in `scratch`.
fn decode_piece<'a>(
    job: &Job<'_>,
    stored: &'a [u8],
    content_len: u64,
    scratch: &'a mut Scratch,
) -> zt_container::Result<&'a [u8]> {
    if job.encoding == Encoding::Raw {
        return Ok(stored);
    }
    scratch.decode_here(stored, content_len)?;
    Ok(&scratch.content)
}

pub(super) fn wrong_bool(
    job: &Job<'_>,
    start: u64,
    content: &[u8],
) -> Option<Box<zt_formats::Error>> {
    let checked = job.bools.then(|| check_bools_from(start, content))?;
    checked.err().map(Box::new)
}

/// Hashes elements of `width` bytes in the other byte order. Pieces hold whole elements.
pub(super) fn update(hasher: &mut Hasher, bytes: &[u8], width: usize) {
    if width <= 1 {
        return hasher.update(bytes);
    }
    let mut turned = [0; 4096]; // A multiple of every width.
    for stretch in bytes.chunks(turned.len()) {
        let turned = turned.get_mut(..stretch.len()).unwrap_or_default();
        turned.copy_from_slice(stretch);
        // The format has refused a partial element at the end before, so it is skipped here.
        turned.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        hasher.update(turned);
    }
}
