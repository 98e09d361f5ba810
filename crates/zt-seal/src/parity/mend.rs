//! Mending with a parity file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use reed_solomon_simd::ReedSolomonDecoder;
use zt::foreign::{on_all_cores, on_threads};
use zt::{Result, Source, Span};

use super::records::Records;
use super::spool::Spool;
use super::{Layout, Member, Opened};
use crate::check::{Checked, Damage, Flaw, State, check};
use crate::fault::Fault;
use crate::files::Files;
use crate::mend::{Mended, Mending};
use crate::options::SealOptions;
use crate::seal::Seal;
use crate::tree::LEAF;

/// What [`mend_with_parity`] has done, or would do.
#[derive(Debug)]
#[non_exhaustive]
pub struct ParityMended {
    /// Each wanted file, and what was wrong with it.
    pub files: Vec<Mended>,
    /// The leaves that could not be mended: the number of the file in the seal, and leaves. If there are any, no
    /// file was changed.
    pub left: Vec<(usize, Flaw)>,
    /// Wrong leaves of other files, which took a part of the parity.
    pub others: u64,
}

/// Compares files with the seal, and replaces the wrong ones of `wanted` by files whose wrong leaves are computed from
/// the parity and from right leaves of all files. `names` has the name of each file of the seal in `files`, which is a
/// folder of this machine. Either all wrong leaves of the wanted files can be mended, or no file is changed. Every leaf
/// is checked before and as it is written.
///
/// With `dry_run`, nothing is written.
///
/// The memory is at most 512 MiB for any number of bytes, and less for less than 2 GiB.
///
/// # Errors
///
/// Code `seal` if the parity is not of this seal; `locked`; [`zt::ErrorKind::Io`]; an interruption.
pub fn mend_with_parity(
    files: &Files,
    seal: &Seal,
    names: &[String],
    wanted: &[usize],
    parity: impl FnOnce() -> Result<Box<dyn Source>> + Send,
    dry_run: bool,
    options: &SealOptions<'_>,
) -> Result<ParityMended> {
    let all: Vec<(usize, String)> = names.iter().cloned().enumerate().collect();
    let mut checked = check(files, seal, &all, &[], options)?;
    let layout = Layout::new(seal);
    let lost = lost_leaves(&layout, &checked);
    let mut mended = ParityMended { files: Vec::new(), left: Vec::new(), others: 0 };
    for at in wanted {
        let state = checked.get_mut(*at).map(|it| std::mem::replace(&mut it.state, State::Missing));
        mended.files.push(Mended::of(state.unwrap_or(State::Missing), seal, *at)?);
    }
    let is_wanted = |member: &Member| wanted.contains(&member.file);
    let members = lost.iter().filter_map(|number| layout.member(*number));
    mended.others = members.filter(|member| !is_wanted(member)).count() as u64;
    let groups: BTreeSet<u64> = lost
        .iter()
        .filter(|number| layout.member(**number).is_some_and(|member| is_wanted(&member)))
        .map(|number| layout.group_of(*number))
        .collect();
    let opened = Opened::new(files, names);
    on_threads(options.threads, || {
        let spool = Spool::new(files.path(), layout.block);
        let mut restoring =
            Restoring { layout: &layout, opened: &opened, options, spool, rows: HashMap::new() };
        let (mut left, mut wrong_after) = (Vec::new(), Vec::new());
        if !groups.is_empty() {
            let parity = parity()?;
            let records = Records::open(&*parity, &layout)?;
            // Which leaves have too few blocks is known before anything is computed.
            let mut enough = Vec::new();
            for group in groups {
                let (members, wrong) = restoring.wrong(group, &lost);
                let blocks = records.whole(group, wrong.len())?;
                if blocks.len() < wrong.len() {
                    let wrong = wrong.iter().filter_map(|at| members.get(*at).copied());
                    left.extend(wrong.filter(is_wanted));
                } else {
                    enough.push((group, blocks));
                }
            }
            for (group, blocks) in enough.into_iter().take_while(|_| left.is_empty()) {
                let stays = restoring.group(&records, group, &lost, blocks)?;
                wrong_after.extend(stays.into_iter().filter(is_wanted));
            }
            left.append(&mut wrong_after);
        }
        let damage = |member: &Member| {
            let at = wanted.iter().position(|at| *at == member.file);
            let flaws = at.and_then(|at| mended.files.get(at)).map(|it| it.flaws.iter());
            let mut flaws = flaws.into_iter().flatten();
            flaws.find(|flaw| flaw.leaves.contains(&member.leaf)).map(|flaw| flaw.damage)
        };
        mended.left = joined(seal, left, damage);
        if dry_run || !mended.left.is_empty() {
            return Ok(());
        }
        let spool = Arc::new(Mutex::new(restoring.spool));
        for (at, mended) in wanted.iter().zip(&mended.files).filter(|(_, it)| it.changed) {
            let Some(sealed) = seal.files.get(*at) else { continue };
            let path = files.path_of(names.get(*at).map_or("", String::as_str));
            let rows = restoring.rows.iter().filter(|((file, _), _)| file == at);
            let rows = rows.map(|((_, leaf), row)| (*leaf, *row)).collect();
            let restored = Restored { byte_len: sealed.byte_len, spool: Arc::clone(&spool), rows };
            let mending = Mending { seal, file: *at, sealed, mended, options };
            mending.write(&path, || Ok(Box::new(restored) as Box<dyn Source>))?;
        }
        Ok(())
    })?;
    Ok(mended)
}

/// The numbers of all wrong leaves, among all leaves.
fn lost_leaves(layout: &Layout<'_>, checked: &[Checked]) -> BTreeSet<u64> {
    let mut lost = BTreeSet::new();
    for (at, checked) in checked.iter().enumerate() {
        let count = layout.seal.files.get(at).map_or(0, |file| file.leaf_count());
        let mut add = |leaves: Range<u64>| {
            lost.extend(leaves.map(|leaf| layout.number(at, leaf)));
        };
        match &checked.state {
            State::Right => {}
            State::Wrong { flaws, .. } => flaws.iter().for_each(|flaw| add(flaw.leaves.clone())),
            _ => add(0..count),
        }
    }
    lost
}

/// Leaves as ranges: adjacent ones with the same damage together.
fn joined(
    seal: &Seal,
    mut leaves: Vec<Member>,
    damage: impl Fn(&Member) -> Option<Damage>,
) -> Vec<(usize, Flaw)> {
    leaves.sort_by_key(|member| (member.file, member.leaf));
    let mut all: Vec<(usize, Flaw)> = Vec::new();
    for member in leaves {
        let damage = damage(&member).unwrap_or(Damage::Other);
        let last = all.last_mut().filter(|(file, it)| {
            *file == member.file && it.leaves.end == member.leaf && it.damage == damage
        });
        if let Some((_, last)) = last {
            last.leaves.end = member.leaf.strict_add(1);
            let len = member.span.end().strict_sub(last.span.offset());
            last.span = Span::new(last.span.offset(), len).unwrap_or(last.span);
        } else {
            let leaves = member.leaf..member.leaf.strict_add(1);
            let flaw = Flaw { leaves, span: member.span, damage, tensors: Vec::new() };
            all.push((member.file, flaw));
        }
    }
    for (file, flaw) in &mut all {
        flaw.name_tensors(seal, *file);
    }
    all
}

struct Restoring<'r> {
    layout: &'r Layout<'r>,
    opened: &'r Opened<'r>,
    options: &'r SealOptions<'r>,
    spool: Spool,
    /// The row of the spool that has a leaf of a file.
    rows: HashMap<(usize, u64), usize>,
}

impl Restoring<'_> {
    /// The leaves of a group, and the numbers of the wrong ones among them.
    fn wrong(&self, group: u64, lost: &BTreeSet<u64>) -> (Vec<Member>, Vec<usize>) {
        let members = self.layout.members(group);
        let is_lost =
            |member: &Member| lost.contains(&self.layout.number(member.file, member.leaf));
        let wrong = members.iter().enumerate().filter(|(_, it)| is_lost(it)).map(|(at, _)| at);
        let wrong = wrong.collect();
        (members, wrong)
    }

    /// Computes the wrong leaves of a group from as many blocks. Returns those that stay wrong.
    fn group(
        &mut self,
        records: &Records<'_>,
        group: u64,
        lost: &BTreeSet<u64>,
        blocks: Vec<usize>,
    ) -> Result<Vec<Member>> {
        let (members, wrong) = self.wrong(group, lost);
        let all = || wrong.iter().filter_map(|at| members.get(*at).copied());
        let decoding = Decoding { records, group, members: &members, wrong: &wrong, blocks };
        let recovery = zt::container::memory::in_memory(records.recovery);
        let (columns, at_a_time) = self.layout.columns(recovery, self.options.threads);
        let first = self.rows.len();
        for columns in columns.chunks(at_a_time) {
            let work = |column: Range<usize>| {
                let restored = decoding.column(self.opened, &column, self.options)?;
                Ok((column, restored))
            };
            for (column, restored) in on_all_cores(columns.to_vec(), work)? {
                for (row, bytes) in (first..).zip(restored) {
                    self.spool.write(row, &column, &bytes)?;
                }
            }
        }
        let (mut left, mut block) = (Vec::new(), vec![0; self.layout.block]);
        for (row, member) in (first..).zip(all()) {
            self.rows.insert((member.file, member.leaf), row);
            self.spool.read(row, &mut block)?;
            let len = zt::container::memory::in_memory(member.span.byte_len());
            // A leaf that was believed right has changed, or a stranger made the parity.
            if !self.layout.is_right(&member, block.get(..len).unwrap_or_default()) {
                left.push(member);
            }
        }
        Ok(left)
    }
}

/// A group whose wrong leaves are computed.
struct Decoding<'d> {
    records: &'d Records<'d>,
    group: u64,
    members: &'d [Member],
    /// The wrong ones among the members.
    wrong: &'d [usize],
    /// As many blocks that are whole.
    blocks: Vec<usize>,
}

impl Decoding<'_> {
    /// A column of each wrong leaf.
    fn column(
        &self,
        opened: &Opened<'_>,
        column: &Range<usize>,
        options: &SealOptions<'_>,
    ) -> Result<Vec<Vec<u8>>> {
        let recovery = zt::container::memory::in_memory(self.records.recovery);
        let mut decoder = ReedSolomonDecoder::new(self.members.len(), recovery, column.len())
            .map_err(Fault::Code)?;
        let mut bytes = Vec::new();
        let mut wrong = self.wrong.iter().copied().peekable();
        for (at, member) in self.members.iter().enumerate() {
            if wrong.next_if_eq(&at).is_some() {
                continue;
            }
            let len = opened.read(member, column, &mut bytes)?;
            decoder.add_original_shard(at, &bytes).map_err(Fault::Code)?;
            options.report(len as u64)?;
        }
        bytes.clear();
        bytes.resize(column.len(), 0);
        for at in &self.blocks {
            self.records.read(self.group, *at, column.start, &mut bytes)?;
            decoder.add_recovery_shard(*at, &bytes).map_err(Fault::Code)?;
        }
        let decoded = decoder.decode().map_err(Fault::Code)?;
        let restored: BTreeMap<usize, Vec<u8>> =
            decoded.restored_original_iter().map(|(at, bytes)| (at, bytes.to_vec())).collect();
        Ok(restored.into_values().collect())
    }
}

/// A file with wrong leaves, which alone can be read.
struct Restored {
    byte_len: u64,
    spool: Arc<Mutex<Spool>>,
    rows: HashMap<u64, usize>,
}

impl Source for Restored {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn slice(&self, _: Span) -> Option<&[u8]> {
        None
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let row = self.rows.get(&(offset / LEAF)).filter(|_| offset.is_multiple_of(LEAF));
        let row = row.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let mut spool = self.spool.lock().unwrap_or_else(PoisonError::into_inner);
        spool.read(*row, buf).map_err(io::Error::other)
    }
}
