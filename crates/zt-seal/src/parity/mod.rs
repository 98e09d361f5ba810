//! Parity: blocks of a Reed-Solomon code that mend leaves without another copy. Spec: seal.md §6.
//!
//! | file | contents |
//! | --- | --- |
//! | `mod` | which leaf is in which group, and the columns that are computed at a time |
//! | `records` | the bytes of a parity file |
//! | `make` | writing it |
//! | `mend` | mending with it |

mod make;
mod mend;
mod records;
mod spool;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use zt::{Error, Result, Source, Span};

use crate::fault::Fault;
use crate::files::Files;
use crate::seal::Seal;
use crate::tree::LEAF;

pub use make::{ParityMade, Share, write_parity};
pub use mend::{ParityMended, mend_with_parity};

/// The most leaves of a group. More of them stand more scattered damage, and a mended leaf costs as many reads.
const GROUP: u64 = 4096;

/// Bytes of one group that are in memory at a time, on all cores together.
const MEMORY: usize = 512 << 20;

/// Columns that are computed at a time, at most.
const CORES: usize = 4;

/// The columns of a block are computed alone, in multiples of this many bytes.
const COLUMN: usize = 64;

/// A leaf of a group.
#[derive(Debug, Clone, Copy)]
struct Member {
    /// The number of its file in the seal.
    file: usize,
    /// Its number in the file.
    leaf: u64,
    /// Its bytes.
    span: Span,
    is_only: bool,
}

/// How leaves and blocks are put into groups. Spec: seal.md §6.
struct Layout<'s> {
    seal: &'s Seal,
    /// The number of the first leaf of each file, among all leaves.
    first: Vec<u64>,
    groups: u64,
    leaves: u64,
    /// Bytes of a block.
    block: usize,
}

impl<'s> Layout<'s> {
    fn new(seal: &'s Seal) -> Self {
        let (mut first, mut leaves, mut longest) = (Vec::with_capacity(seal.files.len()), 0, 0);
        for file in &seal.files {
            first.push(leaves);
            leaves = file.leaf_count().strict_add(leaves);
            longest = file.byte_len.max(longest);
        }
        let longest = zt::container::memory::in_memory(longest.min(LEAF));
        let block = longest.max(1).next_multiple_of(COLUMN);
        Layout { seal, first, groups: leaves.div_ceil(GROUP), leaves, block }
    }

    /// The number of a leaf among all leaves.
    fn number(&self, file: usize, leaf: u64) -> u64 {
        self.first.get(file).map_or(u64::MAX, |first| first.saturating_add(leaf))
    }

    fn group_of(&self, number: u64) -> u64 {
        number.checked_rem(self.groups).unwrap_or_default()
    }

    /// The leaves of the largest group.
    fn largest(&self) -> u64 {
        self.leaves.div_ceil(self.groups.max(1))
    }

    /// The leaves of a group, in their order.
    fn members(&self, group: u64) -> Vec<Member> {
        let step = zt::container::memory::in_memory(self.groups.max(1));
        (group..self.leaves).step_by(step).filter_map(|number| self.member(number)).collect()
    }

    fn member(&self, number: u64) -> Option<Member> {
        let file = self.first.partition_point(|first| *first <= number).checked_sub(1)?;
        let leaf = number.checked_sub(*self.first.get(file)?)?;
        let sealed = self.seal.files.get(file)?;
        Some(Member {
            file,
            leaf,
            span: sealed.leaf_span(leaf)?,
            is_only: sealed.leaf_count() == 1,
        })
    }

    /// Whether the bytes are this leaf.
    fn is_right(&self, member: &Member, bytes: &[u8]) -> bool {
        self.seal.files.get(member.file).is_some_and(|file| file.has_leaf(member.leaf, bytes))
    }

    /// The columns of a block, and how many are computed at a time.
    fn columns(&self, recovery: usize, threads: Option<usize>) -> (Vec<Range<usize>>, usize) {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        let cores = threads.unwrap_or_else(cores).clamp(1, CORES);
        // What the decoder takes, and the encoder takes less.
        let leaves = zt::container::memory::in_memory(self.largest());
        let rows = leaves.next_power_of_two().saturating_add(recovery.next_power_of_two());
        let most = MEMORY.checked_div(rows.next_power_of_two().saturating_mul(cores));
        // Powers of two, because a piece of a leaf is a subtree of its hash.
        let len = most.unwrap_or_default().clamp(1 << 10, 1 << 20).next_power_of_two();
        let starts = (0..self.block).step_by(len);
        let columns = starts.map(|at| at..at.saturating_add(len).min(self.block));
        (columns.collect(), cores)
    }
}

/// Files of the seal that are open.
struct Opened<'f> {
    files: &'f Files,
    /// The name of each file of the seal.
    names: &'f [String],
    opened: Mutex<HashMap<usize, Arc<dyn Source>>>,
}

impl<'f> Opened<'f> {
    /// Files that are open at a time. A process may have 1,024 on many systems.
    const MOST: usize = 256;

    fn new(files: &'f Files, names: &'f [String]) -> Self {
        Opened { files, names, opened: Mutex::default() }
    }

    fn source(&self, file: usize) -> Result<Arc<dyn Source>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = opened.get(&file) {
            return Ok(Arc::clone(source));
        }
        let name = self.names.get(file).map_or("", String::as_str);
        let source = self.files.open(&[name]).pop().unwrap_or(Ok(None))?;
        let missing = || Error::from(Fault::Missing { path: name.to_owned() });
        let source: Arc<dyn Source> = source.ok_or_else(missing)?.into();
        if opened.len() >= Self::MOST {
            opened.clear();
        }
        opened.insert(file, Arc::clone(&source));
        Ok(source)
    }

    /// The bytes of a leaf in a column, with zeros behind its end. Returns how many are the leaf's.
    fn read(&self, member: &Member, column: &Range<usize>, bytes: &mut Vec<u8>) -> Result<usize> {
        bytes.clear();
        bytes.resize(column.len(), 0);
        let left = member.span.byte_len().saturating_sub(column.start as u64);
        let len = zt::container::memory::in_memory(left).min(column.len());
        let at = member.span.offset().saturating_add(column.start as u64);
        if len > 0 {
            let part = bytes.get_mut(..len).unwrap_or_default();
            self.source(member.file)?.read_at(at, part)?;
        }
        Ok(len)
    }
}
