//! Bytes that decode as a manifest, and the copies of them in the file.

use std::collections::{HashMap, HashSet};

use zt_container::memory::in_memory;
use zt_container::{DigestAlgorithm, Hasher, Layout, Limits, Source, Span, bytes_of};
use zt_manifest::{Error as ManifestError, Index, Rule};

use super::places::{Places, Root};
use super::view::trailer_of;
use crate::error::Result;
use crate::file::unfinished::{FIRST, MORE, pages};

/// A manifest that decodes strictly. It may belong to another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) manifest: Span,
    pub(super) layout: Layout,
    /// Whether its size, and the magic of 1.1, follow it.
    pub(super) has_trailer: bool,
    /// Whether the bytes after it confirm its length: its trailer, with one wrong byte at most, or
    /// at the file's end the beginning of the trailer, perhaps with zeros after it if a repair lost
    /// power. A changed bit in the head of a map can end the item early, and it still decodes; only
    /// this check notices.
    pub(super) is_closed: bool,
}

impl Candidate {
    /// The length of a file that ends with it.
    pub(super) fn end(&self) -> u64 {
        let trailer = trailer_of(self.layout, self.manifest.byte_len());
        self.manifest.end().strict_add(trailer.len() as u64)
    }
}

/// A manifest and its copies. An edit in place writes the trailer once more at the end.
#[derive(Debug)]
pub(super) struct Copies {
    /// The last in the file.
    pub(super) last: Candidate,
    /// Equal copies before it, the last of them first.
    pub(super) others: Vec<Candidate>,
}

impl Copies {
    pub(super) const fn of(last: Candidate) -> Self {
        Copies { last, others: Vec::new() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Candidate> {
        self.others.iter().chain([&self.last])
    }

    /// Whether one of them ends there. One byte of its trailer may be wrong.
    pub(super) fn is_closed_at(&self, end: u64) -> bool {
        let mut all = self.all();
        all.any(|copy| copy.is_closed && copy.manifest.end() == end)
    }

    /// Whether the length of one of them is confirmed.
    pub(super) fn is_closed(&self) -> bool {
        self.all().any(|copy| copy.is_closed)
    }
}

/// Reads and decodes manifests, within a budget that depends on the file's length.
pub(super) struct Search<'s> {
    source: &'s dyn Source,
    limits: &'s Limits,
    /// The number of bytes that may still be read.
    budget: u64,
    /// Whether the budget was exceeded.
    pub(super) is_cut: bool,
}

impl<'s> Search<'s> {
    pub(super) fn new(source: &'s dyn Source, limits: &'s Limits) -> Self {
        let budget = source.byte_len().saturating_mul(4);
        Search { source, limits, budget: budget.saturating_add(16 << 20), is_cut: false }
    }

    /// Every manifest at these places, and the one that readers find. The manifest with the last
    /// end comes first.
    pub(super) fn manifests(
        &mut self,
        places: &Places,
        read: Option<Candidate>,
    ) -> Result<Vec<Copies>> {
        let mut candidates = Vec::from_iter(read);
        // Both ends make the key: a size with a wrong bit may lead to the same manifest as the
        // right size.
        let mut spans: HashSet<Span> = read.iter().map(|c| c.manifest).collect();
        for span in &places.trailers {
            if spans.insert(*span)
                && let Some(candidate) = self.at(Root::Map(span.offset()), span.end())?
                && candidate.manifest == *span
                && candidate.layout == Layout::V1_1
            {
                candidates.push(candidate);
            }
        }
        for ending in &places.endings {
            if spans.insert(ending.manifest)
                && let Some(candidate) = self.at(ending.root, ending.manifest.end())?
                && candidate.manifest == ending.manifest
            {
                candidates.push(candidate);
            }
        }
        let taken: HashSet<u64> = candidates.iter().map(|c| c.manifest.offset()).collect();
        for root in &places.roots {
            if !taken.contains(&root.offset()) {
                candidates.extend(self.at(*root, self.source.byte_len())?);
            }
        }
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.manifest.end()));
        self.group(candidates)
    }

    /// The manifest that begins there and ends at `end` or before.
    pub(super) fn at(&mut self, root: Root, end: u64) -> Result<Option<Candidate>> {
        let layouts: &[Layout] = match root {
            Root::Map(_) => &[Layout::V1_1, Layout::V1_0],
            Root::Array(_) => &[Layout::V0_1],
        };
        for layout in layouts {
            if let Some(manifest) = self.item(root.offset(), end, *layout)? {
                return Ok(Some(self.candidate(manifest, *layout)?));
            }
        }
        Ok(None)
    }

    /// The manifest at `start`. Without a trailer, only decoding finds its length.
    fn item(&mut self, start: u64, end: u64, layout: Layout) -> Result<Option<Span>> {
        let Some(available) = end.checked_sub(start) else {
            return Ok(None);
        };
        let available = available.min(self.limits.manifest_len);
        let mut len = FIRST.min(available);
        loop {
            let Some(bytes) = self.bytes(start, len)? else {
                return Ok(None);
            };
            match Index::parse(&bytes[..], layout, self.limits) {
                Ok(_) => return Ok(Span::new(start, len)),
                Err(ManifestError::Cbor { offset, rule: Rule::Trailing { .. } })
                    if offset > 0 && offset < len =>
                {
                    len = offset
                }
                Err(ManifestError::Cbor {
                    rule: Rule::Truncated | Rule::Length { .. }, ..
                }) if len < available => len = len.saturating_mul(MORE).min(available),
                Err(_) => return Ok(None),
            }
        }
    }

    /// Whether a page of it is zeros. No manifest has such a page, so a power loss during an edit
    /// left it.
    pub(super) fn is_torn(&mut self, manifest: Span) -> Result<bool> {
        let len = manifest.byte_len().min(self.limits.manifest_len);
        let Some(bytes) = self.bytes(manifest.offset(), len)? else {
            return Ok(false);
        };
        let is_zeros = |page: &[u8]| !page.is_empty() && page.iter().all(|byte| *byte == 0);
        Ok(pages(manifest, &bytes).any(is_zeros))
    }

    /// A manifest, compared with what follows it.
    fn candidate(&self, manifest: Span, layout: Layout) -> Result<Candidate> {
        let trailer = trailer_of(layout, manifest.byte_len());
        let left = self.source.byte_len().strict_sub(manifest.end());
        let mut found = vec![0; in_memory(left.min(trailer.len() as u64))];
        self.source.read_at(manifest.end(), &mut found)?;
        let pairs = || found.iter().zip(&trailer);
        let wrong = pairs().filter(|(found, right)| found != right).count();
        let mut rest = pairs().skip_while(|(found, right)| found == right);
        let is_beginning = left <= trailer.len() as u64 && rest.all(|(found, _)| *found == 0);
        let is_there = found.len() == trailer.len();
        Ok(Candidate {
            manifest,
            layout,
            has_trailer: is_there && wrong == 0,
            is_closed: is_beginning || is_there && wrong <= 1,
        })
    }

    fn group(&mut self, candidates: Vec<Candidate>) -> Result<Vec<Copies>> {
        let mut manifests: Vec<Copies> = Vec::new();
        let mut places: HashMap<(String, u64), usize> = HashMap::new();
        for candidate in candidates {
            let manifest = candidate.manifest;
            let identity = match self.bytes(manifest.offset(), manifest.byte_len())? {
                Some(bytes) => {
                    let mut hasher = Hasher::new(DigestAlgorithm::Sha256)?;
                    hasher.update(&bytes);
                    hasher.finish().to_string()
                }
                // Beyond the budget, a manifest is a group of its own.
                None => manifest.offset().to_string(),
            };
            let key = (identity, manifest.byte_len());
            let known = places.get(&key).copied();
            match known.and_then(|at| manifests.get_mut(at)) {
                Some(copies) => copies.others.push(candidate),
                None => {
                    places.insert(key, manifests.len());
                    manifests.push(Copies::of(candidate));
                }
            }
        }
        Ok(manifests)
    }

    fn bytes(&mut self, start: u64, len: u64) -> Result<Option<std::borrow::Cow<'s, [u8]>>> {
        let Some(left) = self.budget.checked_sub(len) else {
            self.is_cut = true;
            return Ok(None);
        };
        self.budget = left;
        let Some(span) = Span::new(start, len) else {
            return Ok(None);
        };
        Ok(Some(bytes_of(self.source, span)?))
    }
}
