//! A manifest in the file, and whether it is the file's own.

use zt_container::{Layout, Span};

use super::candidate::{Candidate, Copies};
use super::fate::Evidence;
use super::ledger::Ledger;
use crate::error::Result;

/// A manifest in a file that may be damaged, and the evidence about it in the file's bytes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Generation {
    /// The place of the manifest. If there are several copies, the first behind all blobs.
    pub manifest: Span,
    /// The layout of its container.
    pub layout: Layout,
    /// The length of the file that ends with this manifest and its trailer.
    pub end: u64,
    /// Whether the trailer is there.
    pub has_trailer: bool,
    /// The number of equal copies of the manifest: an edit copies it.
    pub copies: usize,
    /// The number of its objects.
    pub objects: usize,
    /// The number of components whose digest is right. Empty components do not count.
    pub proved: u64,
    /// The number of components without a digest that can be checked.
    pub unproved: u64,
    /// The number of components whose bytes are wrong, and of objects whose entries cannot be read.
    pub refuted: u64,
    /// The conclusion.
    pub standing: Standing,
    /// Whether the bytes after it confirm its length.
    pub(super) is_closed: bool,
}

/// Whether a manifest is the file's own, and whether its objects are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Standing {
    /// It is the file's own and complete. Every entry can be read, and every blob has the right digest
    /// or, without a digest, decodes.
    Whole,
    /// It is the file's own, and some of its objects are incomplete.
    Damaged,
    /// It may be the file's own. It may also belong to a `.zt` file within a blob, or be the beginning
    /// of another manifest.
    Doubtful,
    /// It belongs to a file within a blob.
    Nested {
        /// The offset of that file's header.
        offset: u64,
    },
}

impl Generation {
    pub(super) fn new(copies: &Copies, evidence: &Evidence, standing: Standing) -> Self {
        let copy = best(copies, evidence.blobs_end);
        Generation {
            manifest: copy.manifest,
            layout: copy.layout,
            end: copy.end(),
            has_trailer: copy.has_trailer,
            copies: 1_usize.strict_add(copies.others.len()),
            objects: evidence.objects.len(),
            proved: evidence.proved,
            unproved: evidence.unproved,
            refuted: evidence.refuted,
            standing,
            is_closed: copies.is_closed(),
        }
    }

    /// Whether the file can be mended in place with this generation, if it is the chosen one
    /// ([`RepairOptions::manifest`](crate::repair::RepairOptions::manifest)).
    ///
    /// A generation is mendable if it is whole. A doubtful one is mendable if its end is known and
    /// every digest was checked. Any other can only be saved to a new file.
    pub const fn is_mendable(&self) -> bool {
        match self.standing {
            Standing::Whole => true,
            Standing::Doubtful => self.is_closed && self.refuted == 0 && self.unproved == 0,
            Standing::Damaged | Standing::Nested { .. } => false,
        }
    }
}

/// The first copy behind the blobs, because the bytes between it and later copies belong to an
/// unfinished edit. A copy with its trailer is preferred.
pub(super) fn best(copies: &Copies, blobs_end: u64) -> Candidate {
    let behind = |copy: &&Candidate| copy.manifest.offset() >= blobs_end;
    let all = || copies.others.iter().rev().chain([&copies.last]);
    let mut whole = all().filter(behind).filter(|copy| copy.has_trailer);
    let found = whole.next().or_else(|| all().find(behind));
    found.copied().unwrap_or(copies.last)
}

impl Standing {
    /// Decides by the manifest's place, the digests and the header.
    ///
    /// Offsets count from the beginning of the file. For a file within a blob, which begins at an
    /// inner header, the blobs seem to end earlier than they do: there is a gap before the
    /// manifest, as long as the bytes before the inner header. Writers leave no gap. The gap is at
    /// least 64 bytes, except after a few surplus bytes or in a blob of layout 1.0, which may lie
    /// anywhere. Digests then find the blobs, counted from the inner header. But an edit leaves
    /// gaps too, and a file can hold a copy of itself. So a manifest that fits in two ways, or has
    /// no digests, stays doubtful. So does a manifest if neither a header nor a digest shows that
    /// its offsets count from the file's beginning.
    pub(super) fn of(
        copies: &Copies,
        evidence: &Evidence,
        headers: &[u64],
        has_header: bool,
        ledger: &mut Ledger<'_>,
    ) -> Result<Self> {
        let standing = Self::by_place(copies, evidence, headers, ledger)?;
        let has_blobs = evidence.unproved > 0 || evidence.refuted > 0;
        Ok(match standing {
            Standing::Whole | Standing::Damaged
                if !has_header && evidence.proved == 0 && has_blobs =>
            {
                Standing::Doubtful
            }
            standing => standing,
        })
    }

    fn by_place(
        copies: &Copies,
        evidence: &Evidence,
        headers: &[u64],
        ledger: &mut Ledger<'_>,
    ) -> Result<Self> {
        let standing = match evidence.refuted {
            _ if !copies.is_closed() => Standing::Doubtful,
            0 => Standing::Whole,
            _ => Standing::Damaged,
        };
        let start = best(copies, evidence.blobs_end).manifest.offset();
        let bases = headers.iter().copied().filter_map(|base| {
            let end = base.checked_add(evidence.blobs_end)?;
            (end <= start).then_some((base, end))
        });
        let mut bases = bases.peekable();
        // Counted from any of these, the manifest follows its blobs directly, too.
        if is_next_to(start, evidence.blobs_end) && bases.peek().is_none() {
            return Ok(standing);
        }
        if evidence.digested.is_empty() {
            let mut nested = bases.filter(|(_, end)| is_next_to(start, *end));
            let nested = nested.next().map(|(offset, _)| Standing::Nested { offset });
            return Ok(nested.unwrap_or(Standing::Doubtful));
        }
        let all: u64 = evidence.digested.iter().map(|(_, count)| count).sum();
        let (mut most, mut offset) = (0, 0);
        for (base, _) in bases {
            if !ledger.may_try() {
                return Ok(Standing::Doubtful);
            }
            let Some(proved) = evidence.proved_at(base, ledger)? else {
                return Ok(Standing::Doubtful);
            };
            if proved > most {
                (most, offset) = (proved, base);
            }
            if proved == all {
                break;
            }
        }
        Ok(match most.cmp(&evidence.proved) {
            std::cmp::Ordering::Greater => Standing::Nested { offset },
            std::cmp::Ordering::Equal => Standing::Doubtful,
            std::cmp::Ordering::Less => standing,
        })
    }
}

/// Writers put the manifest directly after the last blob, or at the next aligned offset.
fn is_next_to(manifest: u64, blobs_end: u64) -> bool {
    let gap = manifest.checked_sub(blobs_end);
    gap.is_some_and(|gap| gap < zt_container::ALIGNMENT)
}
