//! Pieces of blobs: how a blob is cut, and the work on one piece.

use zt_container::codec::Frame;
use zt_container::{Digest, DigestAlgorithm, Encoding, Hasher, Source, Span, bytes_of};
use zt_formats::check_bools_from;

use super::{Job, Outcome};
use crate::cores::ledger::Ledger;
use crate::cores::pieces::lent_or_fetched;
use crate::cores::scratch::Scratch;
use crate::error::{Error, Result};

/// Frames with more content than this are streamed: as pieces they would take too much memory.
const LARGEST_FRAME: u64 = 8 << 20;

/// A piece that has been fetched and decoded.
#[derive(Default)]
pub(super) struct Piece {
    pub(super) stored: Span,
    pub(super) content_len: u64,
    pub(super) fault: Option<Error>,
    /// Whether it could not be fetched, so that no bytes were summed.
    pub(super) is_unread: bool,
    pub(super) wrong_bool: Option<Box<zt_formats::Error>>,
}

impl Piece {
    /// Fetches and decodes one piece of a job, after `sum` had its stored bytes. The piece holds its errors. Its
    /// stored bytes are lent or in `scratch`, and so is its content.
    pub(super) fn look(
        source: &dyn Source,
        job: &Job<'_>,
        place: Frame,
        scratch: &mut Scratch,
        sum: impl FnOnce(&[u8]) -> zt_container::Result<()>,
    ) -> Piece {
        let mut piece = Piece { stored: place.stored, is_unread: true, ..Piece::default() };
        let mut fetched = std::mem::take(&mut scratch.stored);
        let stored = lent_or_fetched(source, place.stored, &mut fetched);
        let decoded = stored.and_then(|stored| sum(stored).map(|()| stored)).and_then(|stored| {
            piece.is_unread = false;
            let content = match job.encoding {
                Encoding::Raw => stored,
                _ => scratch.decode_here(stored, place.content.byte_len())?,
            };
            piece.content_len = content.len() as u64;
            piece.wrong_bool = wrong_bool(job, place.content.offset(), content);
            Ok(())
        });
        piece.fault = decoded.err().map(Error::from);
        scratch.stored = fetched;
        piece
    }

    /// Its stored bytes, and its content, once [`Piece::look`] has left them.
    pub(super) fn bytes<'b>(
        &self,
        source: &'b dyn Source,
        job: &Job<'_>,
        scratch: &'b Scratch,
    ) -> (&'b [u8], &'b [u8]) {
        let stored = source.slice(self.stored).unwrap_or(&scratch.stored);
        (stored, if job.encoding == Encoding::Raw { stored } else { &scratch.content })
    }
}

/// Digests that take all bytes in order.
pub(super) struct Chains {
    pub(super) stored: Vec<Hasher>,
    /// The SHA-256 of the content; `None` if the stored bytes are the content, or if it is not wanted.
    pub(super) content: Option<Hasher>,
}

impl Chains {
    /// Those of a job in pieces.
    pub(super) fn of(job: &Job<'_>) -> zt_container::Result<Self> {
        let sha256 = DigestAlgorithm::Sha256;
        let is_more = job.content && job.is_stored() && !job.digests.contains(&Some(sha256));
        let digests =
            job.digests.iter().flatten().copied().filter(|algorithm| !algorithm.combines());
        let stored = digests.chain(is_more.then_some(sha256)).map(Hasher::new);
        let content = (job.content && !job.is_stored()).then(|| Hasher::new(sha256));
        Ok(Chains {
            stored: stored.collect::<zt_container::Result<_>>()?,
            content: content.transpose()?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stored.is_empty() && self.content.is_none()
    }

    /// Takes the next piece.
    pub(super) fn take(&mut self, job: &Job<'_>, piece: &Piece, scratch: &Scratch) {
        let (stored, content) = piece.bytes(job.source, job, scratch);
        self.stored.iter_mut().for_each(|hasher| hasher.update(stored));
        if let Some(hasher) = self.content.as_mut().filter(|_| piece.fault.is_none()) {
            update(hasher, content, job.width);
        }
    }

    /// The outcome of all pieces of a job, in order. The bytes after the last one, a table of frames, are
    /// hashed here.
    pub(super) fn finish(
        mut self,
        job: &Job<'_>,
        pieces: Vec<Piece>,
        ledgers: Vec<Ledger<'_>>,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let (mut end, mut decoded, mut is_unread) = (job.span.offset(), 0u64, false);
        for piece in pieces {
            end = piece.stored.end();
            decoded = decoded.strict_add(piece.content_len);
            outcome.wrong_bool = outcome.wrong_bool.or(piece.wrong_bool);
            is_unread |= piece.is_unread;
            if let (Some(fault), Ok(_)) = (piece.fault, &outcome.decoded) {
                outcome.decoded = Err(fault);
            }
        }
        let table = Span::between(end, job.span.end()).ok_or_else(Error::out_of_order)?;
        let digests = || -> zt_container::Result<Vec<Digest>> {
            if !table.is_empty() && !self.stored.is_empty() {
                let bytes = bytes_of(job.source, table)?;
                self.stored.iter_mut().for_each(|hasher| hasher.update(&bytes));
            }
            let chains = self.stored.into_iter().map(|hasher| Ok(Some(hasher.finish())));
            let sums = ledgers.into_iter().map(|ledger| ledger.finish(job.source));
            sums.chain(chains).filter_map(Result::transpose).collect()
        };
        // There is no digest of bytes that could not be read.
        match if is_unread { Ok(Vec::new()) } else { digests() } {
            Ok(digests) => {
                let is_content = |digest: &&Digest| {
                    job.is_stored() && digest.algorithm() == Some(DigestAlgorithm::Sha256)
                };
                outcome.content = digests.iter().find(is_content).cloned();
                let digests = digests.into_iter().map(Some);
                outcome.digests.iter_mut().zip(digests).for_each(|(place, it)| *place = it);
            }
            Err(error) => outcome.decoded = Err(error.into()),
        }
        if outcome.decoded.is_ok() {
            outcome.decoded = Ok(decoded);
            outcome.content = outcome.content.or(self.content.map(Hasher::finish));
        }
        Ok(outcome)
    }
}

/// Whether a frame is small enough to be a piece. The frame's declared length is not trusted. An
/// element that lies in two frames cannot be reversed either.
pub(super) fn is_piece(frame: &Frame, job: &Job<'_>) -> bool {
    frame.content.byte_len() <= LARGEST_FRAME
        && frame.stored.byte_len() <= LARGEST_FRAME * 2
        && (frame.content.offset()).is_multiple_of(job.width.max(1) as u64)
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
