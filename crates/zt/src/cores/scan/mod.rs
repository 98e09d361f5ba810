//! A scan of stored bytes: each range is fetched, hashed and decoded once, on all cores.
//!
//! A [`Job`] is one range of stored bytes, which may be the blob of many components. Small ranges
//! that lie close together are one unit of work and one read. A large range is cut into pieces of
//! about 1 MiB, and each piece is a unit. Memory: a few pieces for each thread.

mod job;
mod piece;

use std::sync::atomic::{AtomicUsize, Ordering};

use zt_container::codec::Frame;
use zt_container::{
    BlobReader, DigestAlgorithm, Encoding, Hasher, Limits, Source, Span, ZstdFault,
};

pub(crate) use self::job::{Job, Outcome};
use self::piece::{Chains, Piece, is_piece, update, wrong_bool};
use crate::cores::announce::announce_all;
use crate::cores::ledger::Ledger;
use crate::cores::parallel;
use crate::cores::pieces::{Pieces, STRETCH};
use crate::cores::progress::Gauge;
use crate::cores::region::{Region, bundles};
use crate::cores::scratch::{Pool, Scratch};
use crate::error::{Error, Result};

/// Pieces that are made ready while others are hashed in order. Each holds memory.
///
/// Pays: nothing on two cores: 75 MB with a SHA-256 are verified as fast with 1 and with 8.
const AHEAD: usize = 2;

/// Does every job. Jobs and outcomes are in the order of sources and offsets.
/// Fails only if it is interrupted: every other error is in the outcomes.
pub(crate) fn scan(jobs: &[Job<'_>], limits: &Limits, gauge: &Gauge<'_>) -> Result<Vec<Outcome>> {
    let scan = Scan { limits, gauge, pool: Pool::default() };
    announce_all(jobs, |job| (job.source, job.span));
    let bundles = bundles(jobs, |job| (job.source, job.span));
    let outcomes = parallel::map(&bundles, |bundle| match bundle {
        [job] => Ok(vec![scan.one(job)?]),
        jobs => scan.bundle(jobs),
    })?;
    // Exactly as many: a list that grows would take three times the memory.
    let mut all = Vec::with_capacity(jobs.len());
    all.extend(outcomes.into_iter().flatten());
    Ok(all)
}

struct Scan<'s> {
    limits: &'s Limits,
    gauge: &'s Gauge<'s>,
    pool: Pool,
}

impl Scan<'_> {
    /// Small jobs that lie close together, with one read for all of them.
    fn bundle(&self, jobs: &[Job<'_>]) -> Result<Vec<Outcome>> {
        let mut scratch = self.pool.take();
        let mut fetched = std::mem::take(&mut scratch.stored);
        let spans = jobs.iter().map(|job| job.span);
        let first = jobs.first();
        let region = first.and_then(|job| Region::around(job.source, spans, &mut fetched));
        // If the region cannot be read, as in a truncated file, each job reads its own bytes.
        let mut outcomes = Vec::with_capacity(jobs.len());
        // A report takes as long as a checksum of some hundred bytes.
        let mut unreported = 0u64;
        for job in jobs {
            let source: &dyn Source = match &region {
                Some(region) => region,
                None => job.source,
            };
            let (outcome, byte_len) = self.small(source, job, &mut scratch)?;
            outcomes.push(outcome);
            unreported = unreported.saturating_add(byte_len);
            if unreported >= STRETCH {
                self.gauge.report(std::mem::take(&mut unreported))?;
            }
        }
        self.gauge.report(unreported)?;
        scratch.stored = fetched;
        self.pool.give(scratch);
        Ok(outcomes)
    }

    fn one(&self, job: &Job<'_>) -> Result<Outcome> {
        if job.is_disputed {
            return self.streamed(job);
        }
        if job.is_small() {
            let small = |scratch: &mut Scratch| self.small(job.source, job, scratch);
            let (outcome, byte_len) = self.pool.with(small)?;
            self.gauge.report(byte_len)?;
            return Ok(outcome);
        }
        let is_in_order = job.source.is_sequential();
        if is_in_order && job.digests == [None; 3] {
            return self.decode(job);
        }
        let fit = |pieces: &Pieces<'_>| {
            let mut frames = pieces.frames().unwrap_or_default().iter();
            frames.all(|frame| is_piece(frame, job))
        };
        let cut = match Pieces::of(job.source, &job.blob()) {
            Ok(Some(pieces)) if fit(&pieces) => pieces,
            Ok(_) => return self.streamed(job),
            Err(error) => return Ok(Outcome::failed(error)),
        };
        self.in_pieces(job, &cut)
    }

    /// Does all of a job on this core. Returns the bytes to report, too.
    fn small(
        &self,
        source: &dyn Source,
        job: &Job<'_>,
        scratch: &mut Scratch,
    ) -> Result<(Outcome, u64)> {
        if !job.is_small() {
            // Its content alone is long: its stored bytes are at hand, and not read again.
            let outcome = self.one(&Job { source, ..job.clone() })?;
            return Ok((outcome, 0));
        }
        let place = Frame { stored: job.span, content: Span::exact(0, job.declared.unwrap_or(0)) };
        let mut outcome = Outcome::default();
        let piece = Piece::look(source, job, place, scratch, |stored| {
            for (algorithm, digest) in job.digests.iter().zip(&mut outcome.digests) {
                *digest = algorithm.map(|algorithm| algorithm.digest(stored)).transpose()?;
            }
            Ok(())
        });
        if job.content && piece.fault.is_none() {
            let mut hasher = Hasher::new(DigestAlgorithm::Sha256)?;
            let (_, content) = piece.bytes(source, job, scratch);
            update(&mut hasher, content, job.width);
            outcome.content = Some(hasher.finish());
        }
        outcome.wrong_bool = piece.wrong_bool;
        outcome.decoded = piece.fault.map_or(Ok(piece.content_len), Err);
        let decoded = *outcome.decoded.as_ref().unwrap_or(&0);
        Ok((outcome, decoded.saturating_mul(job.uses)))
    }

    /// Does pieces in any order, or in order if some digest is a chain. While one piece is hashed, the other cores
    /// fetch and decode the next ones.
    fn in_pieces(&self, job: &Job<'_>, cut: &Pieces<'_>) -> Result<Outcome> {
        let mut chains = match Chains::of(job) {
            Ok(chains) => chains,
            Err(error) => return Ok(Outcome::failed(error)),
        };
        let has_chains = !chains.is_empty();
        let sums = job.digests.iter().flatten().filter(|algorithm| algorithm.combines());
        let ledgers = sums.map(|algorithm| Ledger::sum(job.span, Some(*algorithm)));
        let ledgers: Vec<_> = ledgers.collect();
        // A batch of one piece is in order.
        let most = if has_chains { AHEAD } else { cut.len() };
        let ahead = if job.source.is_sequential() { 1 } else { most };
        // A failed read ends the work on the pieces behind it: a declared length could go on for ever.
        let unread = AtomicUsize::new(usize::MAX);
        let prepare = |from: usize| {
            let places = (from..cut.len()).take(ahead).collect();
            parallel::map_owned(places, |at| {
                if at > unread.load(Ordering::Relaxed) {
                    return Ok((Piece::default(), None));
                }
                let mut scratch = self.pool.take();
                let place = cut.get(at).ok_or_else(Error::out_of_order)?;
                cut.announce(at);
                let piece = Piece::look(job.source, job, place, &mut scratch, |stored| {
                    ledgers.iter().try_for_each(|ledger| ledger.add(place.stored, stored))
                });
                self.gauge.report(piece.content_len.saturating_mul(job.uses))?;
                if piece.is_unread {
                    unread.fetch_min(at, Ordering::Relaxed);
                }
                if has_chains {
                    return Ok((piece, Some(scratch)));
                }
                self.pool.give(scratch);
                Ok((piece, None))
            })
        };
        let mut pieces = Vec::new();
        let mut ready = prepare(0)?;
        let mut next = ready.len();
        while !ready.is_empty() {
            let chain = || {
                for (piece, scratch) in ready {
                    if let Some(scratch) = scratch {
                        chains.take(job, &piece, &scratch);
                        self.pool.give(scratch);
                    }
                    pieces.push(piece);
                }
            };
            let (following, ()) = parallel::join(|| prepare(next), chain);
            ready = following?;
            if unread.load(Ordering::Relaxed) < next {
                break;
            }
            next = next.strict_add(ready.len());
        }
        chains.finish(job, pieces, ledgers)
    }

    /// Does one stream that cannot be cut. This core decodes it, and others hash its stored bytes.
    fn streamed(&self, job: &Job<'_>) -> Result<Outcome> {
        let stored = Job {
            encoding: Encoding::Raw,
            declared: Some(job.span.byte_len()),
            is_disputed: false,
            content: false,
            bools: false,
            uses: 0,
            ..job.clone()
        };
        let sums = || {
            let is_wanted = stored.digests != [None; 3];
            is_wanted.then(|| self.one(&stored)).transpose()
        };
        let (decoded, sums) = if job.source.is_sequential() {
            (self.decode(job), sums())
        } else {
            parallel::join(|| self.decode(job), sums)
        };
        let mut outcome = decoded?;
        if let Some(sums) = sums? {
            outcome.digests = sums.digests;
        }
        Ok(outcome)
    }

    fn decode(&self, job: &Job<'_>) -> Result<Outcome> {
        let blob = job.blob();
        let most = job.declared.unwrap_or(self.limits.decoded_len);
        let opened = BlobReader::unverified(job.source, &blob, &self.limits.with_decoded_len(most));
        let hasher = job.content.then(|| Hasher::new(DigestAlgorithm::Sha256)).transpose();
        let (mut reader, mut hasher) = match (opened, hasher) {
            (Ok(reader), Ok(hasher)) => (reader, hasher),
            (Err(error), _) | (_, Err(error)) => return Ok(Outcome::failed(error)),
        };
        let mut wrong = None;
        let mut piece = self.pool.take();
        let decoded = loop {
            if let Err(error) = zt_container::memory::resize(&mut piece.content, STRETCH) {
                break Err(error.into());
            }
            let start = reader.produced();
            match reader.read(&mut piece.content) {
                Ok(0) => break Ok(start),
                Ok(len) => {
                    let bytes = piece.content.get(..len).unwrap_or_default();
                    wrong = wrong.or_else(|| wrong_bool(job, start, bytes));
                    if let Some(hasher) = &mut hasher {
                        update(hasher, bytes, job.width);
                    }
                    self.gauge.report((len as u64).saturating_mul(job.uses))?;
                }
                // The stream is longer than all that it is declared to be.
                Err(zt_container::Error::Limit(_)) if job.is_disputed => {
                    let fault = ZstdFault::Long { expected: most };
                    break Err(zt_container::Error::from(fault).into());
                }
                Err(error) => break Err(error.into()),
            }
        };
        self.pool.give(piece);
        Ok(Outcome {
            content: hasher.filter(|_| decoded.is_ok()).map(Hasher::finish),
            decoded,
            wrong_bool: wrong,
            ..Outcome::default()
        })
    }
}
