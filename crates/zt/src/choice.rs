//! How a component is stored, decided by a sample before any of it is compressed.

use zt_container::codec::FRAME_CONTENT;

use crate::error::Result;
use crate::options::{Compression, DEFAULT_LEVEL};
use crate::tools::{Effort, Tools};

/// What becomes of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Raw,
    Frames(Effort),
}

/// The sample: so many stretches of so many bytes, spread evenly.
const STRETCHES: usize = 4;
const STRETCH: usize = 32 << 10;

/// How `head`, the first bytes of a component, says that the component is stored. The same bytes
/// are always stored the same way.
///
/// A sample costs a few percent of compressing what it speaks for. It cannot see what repeats over
/// more than a stretch, so before anything is stored raw, one frame is compressed quickly.
pub(crate) fn choose(tools: &Tools, compression: Compression, head: &[u8]) -> Result<Method> {
    let effort = match compression {
        Compression::None => return Ok(Method::Raw),
        Compression::Zstd(level) => Effort::Level(level),
        Compression::EntropyOnly => Effort::EntropyOnly,
        Compression::Auto => return choose_effort(tools, head),
    };
    if head.len() <= STRETCHES * STRETCH || shrinks(tools, effort, head)? {
        return Ok(Method::Frames(effort));
    }
    let repeats = effort != Effort::EntropyOnly && {
        let first = head.get(..FRAME_CONTENT).unwrap_or(head);
        frame_len(tools, Effort::Level(1), first)? < first.len()
    };
    Ok(if repeats {
        Method::Frames(effort)
    } else {
        Method::Raw
    })
}

/// [`Compression::Auto`]: the cheapest to read of what is nearly the smallest.
fn choose_effort(tools: &Tools, head: &[u8]) -> Result<Method> {
    let mut len = 0usize;
    let (mut by_frequency, mut by_search) = (0usize, 0usize);
    for stretch in sample(head) {
        len = len.saturating_add(stretch.len());
        by_frequency += frame_len(tools, Effort::EntropyOnly, stretch)?;
        by_search += frame_len(tools, Effort::Level(DEFAULT_LEVEL), stretch)?;
    }
    let searched = Method::Frames(Effort::Level(DEFAULT_LEVEL));
    if !is_worth(by_frequency.min(by_search), len) {
        let first = head.get(..FRAME_CONTENT).unwrap_or(head);
        let repeats = is_worth(frame_len(tools, Effort::Level(1), first)?, first.len());
        return Ok(if repeats { searched } else { Method::Raw });
    }
    Ok(if is_worth(by_search, by_frequency) {
        searched
    } else {
        Method::Frames(Effort::EntropyOnly)
    })
}

/// Whether `len` saves at least a fiftieth: less is not worth the time of a reader.
fn is_worth(len: usize, of: usize) -> bool {
    len < of - of / 50
}

fn shrinks(tools: &Tools, effort: Effort, head: &[u8]) -> Result<bool> {
    let (mut stored, mut len) = (0usize, 0usize);
    for stretch in sample(head) {
        stored += frame_len(tools, effort, stretch)?;
        len += stretch.len();
    }
    Ok(stored < len)
}

fn frame_len(tools: &Tools, effort: Effort, content: &[u8]) -> Result<usize> {
    let frame = tools.compress(effort, content)?;
    let len = frame.len();
    tools.give_back(frame);
    Ok(len)
}

/// All of a short head, else stretches from its beginning to its end.
fn sample(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let step = (head.len().saturating_sub(STRETCH) / (STRETCHES - 1)).max(STRETCH);
    (0..STRETCHES).filter_map(move |at| {
        let start = at * step;
        let end = head.len().min(start + STRETCH);
        head.get(start..end).filter(|stretch| !stretch.is_empty())
    })
}
