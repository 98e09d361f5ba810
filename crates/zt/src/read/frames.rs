//! Parts of a compressed component that lie in many frames, decoded on all cores.
//!
//! If all of a frame is wanted, it is decoded in its place. Other frames are decoded into the memory of
//! a core, and the values are copied from there.

use zt_container::codec::Frame;
use zt_container::memory::{fetch, in_memory, resize};
use zt_container::{Source, Span};

use crate::cores::announce::announce_all;
use crate::cores::parallel;
use crate::cores::scratch::{self, Pool, Scratch};
use crate::error::Result;

/// For fewer frames, waking other cores costs more than they save.
const MANY: usize = 3;

/// The same for less content.
pub(crate) const WORTH_IT: usize = 1 << 20;

/// Frames with more stored bytes are not decoded on several cores, which would hold them all at once.
const LARGEST_STORED: u64 = 16 << 20;

/// Values of a component at even distances, and the memory for them.
///
/// ```text
///            at            at + step     at + 2 * step
/// component  [value].......[value].......[value]......
/// out        [value][value][value]
/// ```
///
/// With a negative step, each value lies before the last one. Neighbouring bytes are a single value.
pub(crate) struct Wanted<'o> {
    /// Where in the decoded component the first value begins.
    at: u64,
    /// Bytes from the start of a value to the start of the next one.
    step: i64,
    value_len: usize,
    out: &'o mut [u8],
}

struct Task<'o> {
    frame: Frame,
    parts: Vec<Wanted<'o>>,
}

/// Copies all values. False if they lie in few frames, or if a frame cannot be decoded. The memory then
/// has unspecified contents, and the caller reads again with one thread, which finds the error.
pub(crate) fn copy(
    source: &dyn Source,
    frames: &[Frame],
    pool: &Pool,
    wanted: &mut [Wanted<'_>],
) -> bool {
    let Some(mut tasks) = tasks(frames, wanted) else {
        return false;
    };
    let content = tasks.iter().map(|task| task.frame.content.byte_len());
    if tasks.len() < MANY || content.fold(0, u64::strict_add) < WORTH_IT as u64 {
        return false;
    }
    tasks.sort_by_key(|task| task.frame.stored.offset());
    announce_all(&tasks, |task| (source, task.frame.stored));
    let copied =
        parallel::map_owned(tasks, |task| pool.with(|scratch| task.decode(source, scratch)));
    copied.is_ok()
}

/// The values frame by frame. `None` if a value is in no frame, lies across two, or if a frame is too long.
fn tasks<'o>(frames: &[Frame], wanted: &'o mut [Wanted<'_>]) -> Option<Vec<Task<'o>>> {
    let mut tasks: Vec<Task<'o>> = Vec::new();
    for wanted in wanted {
        let mut rest = Wanted { out: &mut *wanted.out, ..*wanted };
        while !rest.out.is_empty() {
            let is_in = |content: Span| (content.offset()..content.end()).contains(&rest.at);
            let last = tasks.last_mut();
            if let Some(task) = last.filter(|task| is_in(task.frame.content)) {
                task.parts.push(rest.take_within(task.frame.content)?);
                continue;
            }
            let place = frames.partition_point(|frame| frame.content.end() <= rest.at);
            let frame = *frames.get(place)?;
            if frame.stored.byte_len() > LARGEST_STORED {
                return None;
            }
            let parts = vec![rest.take_within(frame.content)?];
            tasks.push(Task { frame, parts });
        }
    }
    Some(tasks)
}

impl<'o> Wanted<'o> {
    /// Neighbouring bytes, from `at` on.
    pub(crate) fn bytes(at: u64, out: &'o mut [u8]) -> Self {
        Self::values(at, 0, out.len(), out)
    }

    /// Values of `value_len` bytes, the first at `at`, the others `step` bytes from one to the next.
    pub(crate) fn values(at: u64, step: i64, value_len: usize, out: &'o mut [u8]) -> Self {
        Wanted { at, step, value_len: value_len.max(1), out }
    }

    /// The values one by one, each with its place in the component.
    pub(crate) fn each_value(&mut self) -> impl Iterator<Item = (u64, &mut [u8])> {
        let (mut at, step) = (self.at, self.step);
        self.out.chunks_mut(self.value_len).map(move |value| {
            let place = at;
            // The step after the last one may lead below 0.
            at = at.saturating_add_signed(step);
            (place, value)
        })
    }

    /// Takes the first values, as far as they lie within a frame. The frame has the byte `at`.
    ///
    /// ```text
    /// frame   |...............................|.........
    /// values  [value].......[value].......[value].......[value]
    /// taken   [value].......[value]
    /// ```
    ///
    /// A single value may begin in one frame and end in a later one: its first bytes are taken. One of
    /// several values must not, and is `None` where it is the first.
    fn take_within(&mut self, content: Span) -> Option<Wanted<'o>> {
        let room = content.end().checked_sub(self.at)?;
        let (at, value_len) = (self.at, self.value_len);
        let len = if self.out.len() <= value_len {
            let len = in_memory(room.min(self.out.len() as u64));
            self.at = at.strict_add(len as u64);
            len
        } else {
            let spare = match self.step {
                ..0 => at.checked_sub(content.offset()),
                _ => room.checked_sub(value_len as u64),
            };
            room.checked_sub(value_len as u64)?;
            let steps = spare?.checked_div(self.step.unsigned_abs())?;
            let count = steps.checked_add(1)?;
            let count = count.min((self.out.len() / value_len) as u64);
            let distance = i64::try_from(count).ok()?.checked_mul(self.step)?;
            self.at = at.saturating_add_signed(distance);
            in_memory(count.strict_mul(value_len as u64))
        };
        let (out, rest) = std::mem::take(&mut self.out).split_at_mut_checked(len)?;
        self.out = rest;
        self.value_len = value_len.min(self.out.len().max(1));
        Some(Wanted { at, step: self.step, value_len: value_len.min(out.len()), out })
    }
}

impl Task<'_> {
    fn decode(mut self, source: &dyn Source, scratch: &mut Scratch) -> Result<()> {
        let (span, place) = (self.frame.stored, self.frame.content);
        let bytes = match source.slice(span) {
            Some(bytes) => bytes,
            None => fetch(&mut scratch.stored, source, span)?,
        };
        let content = &mut scratch.content;
        let decompressor = scratch::decompressor(&mut scratch.decompressor)?;
        if let [part] = &mut self.parts[..]
            && part.value_len as u64 == place.byte_len()
        {
            return Ok(decompressor.decode_into(bytes, part.out)?);
        }
        resize(content, place.byte_len())?;
        decompressor.decode_into(bytes, content)?;
        for part in &mut self.parts {
            for (at, value) in part.each_value() {
                let start = in_memory(at.strict_sub(place.offset()));
                let held = content.get(start..start.strict_add(value.len()));
                value.copy_from_slice(held.unwrap_or_default());
            }
        }
        Ok(())
    }
}
