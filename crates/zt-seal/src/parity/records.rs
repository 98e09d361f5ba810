//! The bytes of a parity file: records of equal length, each a head and a block. Spec: seal.md §6.
//!
//! A record says itself what it is of, so damage of one leaves the others usable.

use zt::container::memory::fetch;
use zt::{Result, Source, Span};

use super::{GROUP, Layout};
use crate::fault::Fault;
use crate::tree::Sum;

/// Bytes of a head.
pub(super) const HEAD: usize = 96;

const MAGIC: &[u8; 16] = b"zt.parity/1\0\0\0\0\0";

/// The head of record `number`, whose group has `recovery` blocks.
pub(super) fn head(seal: &Sum, recovery: u64, number: u64, block: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    let fields = [&MAGIC[..], &recovery.to_le_bytes(), &number.to_le_bytes(), seal].concat();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&fields).update(blake3::hash(block).as_bytes());
    let all = [&fields[..], hasher.finalize().as_bytes()].concat();
    for (to, from) in head.iter_mut().zip(all) {
        *to = from;
    }
    head
}

/// A parity file that is of a seal. Its blocks are compared with their heads when they are asked for.
pub(super) struct Records<'r> {
    source: &'r dyn Source,
    seal: Sum,
    block: usize,
    /// Blocks of each group.
    pub(super) recovery: u64,
}

impl<'r> Records<'r> {
    /// Finds the first record that is whole: it says how many a group has.
    pub(super) fn open(source: &'r dyn Source, layout: &Layout<'_>) -> Result<Self> {
        let seal = layout.seal.sha256()?;
        let mut records = Records { source, seal, block: layout.block, recovery: 0 };
        let (mut bytes, mut is_other) = (Vec::new(), false);
        let most = layout.groups.saturating_mul(GROUP);
        for number in (0..most).take_while(|number| records.span(*number).is_some()) {
            let record = records.record(number, &mut bytes)?;
            let field = |at: usize| record.get(at..)?.first_chunk::<8>().copied();
            let recovery = field(16).map_or(0, u64::from_le_bytes);
            if (1..=GROUP).contains(&recovery)
                && number < layout.groups.saturating_mul(recovery)
                && records.is_whole(recovery, number, record)
            {
                records.recovery = recovery;
                return Ok(records);
            }
            is_other |= record.starts_with(MAGIC) && record.get(32..64) != Some(&records.seal[..]);
        }
        Err(Fault::NoParity { is_other }.into())
    }

    fn span(&self, number: u64) -> Option<Span> {
        let len = (self.block as u64).checked_add(HEAD as u64)?;
        let span = Span::new(number.checked_mul(len)?, len)?;
        (span.end() <= self.source.byte_len()).then_some(span)
    }

    fn record<'b>(&self, number: u64, bytes: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        Ok(fetch(bytes, self.source, self.span(number).unwrap_or_default())?)
    }

    fn is_whole(&self, recovery: u64, number: u64, record: &[u8]) -> bool {
        let whole = record.split_at_checked(HEAD).filter(|(_, block)| block.len() == self.block);
        whole.is_some_and(|(found, block)| *found == head(&self.seal, recovery, number, block))
    }

    /// The number of a block among all of them.
    fn number(&self, group: u64, at: usize) -> u64 {
        group.saturating_mul(self.recovery).saturating_add(at as u64)
    }

    /// The numbers of the blocks of a group that are whole, `most` of them at most.
    pub(super) fn whole(&self, group: u64, most: usize) -> Result<Vec<usize>> {
        let (mut found, mut bytes) = (Vec::new(), Vec::new());
        for at in 0..zt::container::memory::in_memory(self.recovery) {
            let number = self.number(group, at);
            if found.len() == most || self.span(number).is_none() {
                break;
            }
            if self.is_whole(self.recovery, number, self.record(number, &mut bytes)?) {
                found.push(at);
            }
        }
        Ok(found)
    }

    /// Reads a part of a block.
    pub(super) fn read(&self, group: u64, at: usize, from: usize, bytes: &mut [u8]) -> Result<()> {
        let span = self.span(self.number(group, at)).unwrap_or_default();
        let offset = span.offset().saturating_add(HEAD as u64).saturating_add(from as u64);
        Ok(self.source.read_at(offset, bytes)?)
    }
}
