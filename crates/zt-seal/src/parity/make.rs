//! Writing a parity file.

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use reed_solomon_simd::ReedSolomonEncoder;
use zt::foreign::{AtomicFile, on_all_cores, on_threads};
use zt::{Error, Result};

use super::records::head;
use super::spool::Spool;
use super::{GROUP, Layout, Member, Opened};
use crate::check::{Damage, Flaw};
use crate::fault::Fault;
use crate::files::Files;
use crate::options::SealOptions;
use crate::seal::Seal;
use crate::tree::{Sum, digest, joined, piece};

/// How many blocks of parity there are for the leaves: between a millionth and as many as leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    millionths: u32,
}

impl Share {
    /// This many blocks for a million leaves; `None` for none, and for more than leaves.
    pub fn millionths(millionths: u32) -> Option<Self> {
        (1..=1_000_000).contains(&millionths).then_some(Share { millionths })
    }

    /// The blocks of a group.
    fn of(self, leaves: u64) -> u64 {
        let blocks = leaves.min(GROUP).strict_mul(self.millionths.into()).div_ceil(1_000_000);
        blocks.max(1)
    }
}

/// A parity file that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParityMade {
    /// Its bytes.
    pub byte_len: u64,
    /// Its blocks, of all groups.
    pub blocks: u64,
    /// Groups of leaves. Leaf `n` of all files together is in group `n mod groups`.
    pub groups: u64,
    /// The wrong leaves that are mended in each group.
    pub recovery: u64,
}

/// Writes the parity of files that were sealed to `path`. They are read once more, and compared with the seal.
///
/// The memory is at most 512 MiB for any number of bytes, and less for less than 2 GiB. Blocks are collected in a file
/// without a name beside `path`.
///
/// # Errors
///
/// Code `seal-mismatch` if a file has changed since it was sealed; `overwrite`; [`zt::ErrorKind::Io`]; an interruption.
pub fn write_parity(
    files: &Files,
    seal: &Seal,
    share: Share,
    path: &Path,
    replaces: bool,
    options: &SealOptions<'_>,
) -> Result<ParityMade> {
    let layout = Layout::new(seal);
    let names: Vec<String> = seal.files.iter().map(|file| file.path.clone()).collect();
    let opened = Opened::new(files, &names);
    let recovery = share.of(layout.largest());
    let making =
        Making { layout: &layout, opened: &opened, options, sum: seal.sha256()?, recovery };
    let mut out = if replaces { AtomicFile::create(path)? } else { AtomicFile::create_new(path)? };
    on_threads(options.threads, || {
        for group in 0..layout.groups {
            making.group(group, path, &mut out)?;
        }
        Ok(())
    })?;
    let byte_len = out.byte_len();
    out.publish()?;
    let groups = layout.groups;
    Ok(ParityMade { byte_len, blocks: groups.saturating_mul(recovery), groups, recovery })
}

struct Making<'m> {
    layout: &'m Layout<'m>,
    opened: &'m Opened<'m>,
    options: &'m SealOptions<'m>,
    sum: Sum,
    recovery: u64,
}

/// A column of all blocks of a group.
struct Column {
    /// Of each leaf, the digest of its piece.
    pieces: Vec<Option<Sum>>,
    blocks: Vec<Vec<u8>>,
}

impl Making<'_> {
    fn group(&self, group: u64, path: &Path, out: &mut AtomicFile) -> Result<()> {
        let blame = |error: Error| error.with_path(path);
        let members = self.layout.members(group);
        let rows = zt::container::memory::in_memory(self.recovery);
        let (columns, at_a_time) = self.layout.columns(rows, self.options.threads);
        let mut spool = Spool::new(path.parent().unwrap_or(Path::new("")), self.layout.block);
        let mut pieces: Vec<Vec<Sum>> = vec![Vec::new(); members.len()];
        for columns in columns.chunks(at_a_time) {
            let work = |column: Range<usize>| Ok((column.clone(), self.column(&members, column)?));
            for (column, made) in on_all_cores(columns.to_vec(), work)? {
                for (all, piece) in pieces.iter_mut().zip(made.pieces) {
                    all.extend(piece);
                }
                for (row, block) in made.blocks.iter().enumerate() {
                    spool.write(row, &column, block).map_err(blame)?;
                }
            }
        }
        for (member, pieces) in members.iter().zip(&pieces) {
            self.expect_same(member, pieces)?;
        }
        let mut block = vec![0; self.layout.block];
        for row in 0..rows {
            spool.read(row, &mut block).map_err(blame)?;
            let number = group.strict_mul(self.recovery).strict_add(row as u64);
            let head = head(&self.sum, self.recovery, number, &block);
            let written = out.write_all(&head).and_then(|()| out.write_all(&block));
            written.map_err(|error| blame(error.into()))?;
        }
        Ok(())
    }

    fn column(&self, members: &[Member], column: Range<usize>) -> Result<Column> {
        let rows = zt::container::memory::in_memory(self.recovery);
        let mut encoder =
            ReedSolomonEncoder::new(members.len(), rows, column.len()).map_err(Fault::Code)?;
        let (mut bytes, mut pieces) = (Vec::new(), Vec::with_capacity(members.len()));
        for member in members {
            let len = self.opened.read(member, &column, &mut bytes)?;
            let part = bytes.get(..len).unwrap_or_default();
            let is_all = column.start == 0 && len as u64 == member.span.byte_len();
            pieces.push(match len {
                _ if is_all => Some(digest(part, member.leaf, member.is_only)),
                0 => None,
                _ => Some(piece(part, member.span.offset().strict_add(column.start as u64))),
            });
            encoder.add_original_shard(&bytes).map_err(Fault::Code)?;
            self.options.report(len as u64)?;
        }
        let encoded = encoder.encode().map_err(Fault::Code)?;
        let blocks = encoded.recovery_iter().map(<[u8]>::to_vec).collect();
        Ok(Column { pieces, blocks })
    }

    /// Refuses a leaf that has changed since it was sealed.
    fn expect_same(&self, member: &Member, pieces: &[Sum]) -> Result<()> {
        let sealed = self.layout.seal.files.get(member.file);
        let found = match pieces {
            [only] => *only,
            pieces => joined(pieces, member.is_only),
        };
        if sealed.and_then(|file| file.leaf(member.leaf)) == Some(&found) {
            return Ok(());
        }
        let path = sealed.map_or_else(String::new, |file| file.path.clone());
        let leaves = member.leaf..member.leaf.strict_add(1);
        let mut flaw =
            Flaw { leaves, span: member.span, damage: Damage::Other, tensors: Vec::new() };
        flaw.name_tensors(self.layout.seal, member.file);
        Err(Fault::Leaf { path, flaw: Box::new(flaw) }.into())
    }
}
