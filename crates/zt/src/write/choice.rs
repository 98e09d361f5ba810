//! The choice of how a component is stored, by a sample, before any of it is compressed.

use std::borrow::Cow;
use std::ops::Range;

use zt_container::codec::FRAME_CONTENT;

use crate::error::Result;
use crate::write::options::{Compression, DEFAULT_LEVEL};
use crate::write::tools::{Effort, Tools};

/// How a component is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Raw,
    Frames(Effort),
}

/// The sample: this number of stretches of this length, spread evenly.
const STRETCHES: usize = 4;
const STRETCH: usize = 32 << 10;

/// The first bytes of a component, from which the sample is taken.
pub(crate) trait Head {
    fn byte_len(&self) -> usize;

    /// The bytes of `range`, which lies within.
    fn stretch(&self, range: Range<usize>) -> Result<Cow<'_, [u8]>>;
}

impl Head for [u8] {
    fn byte_len(&self) -> usize {
        self.len()
    }

    fn stretch(&self, range: Range<usize>) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(self.get(range).unwrap_or_default()))
    }
}

/// Chooses the storage of a component from its first bytes. The same bytes are always stored the
/// same way.
///
/// A sample costs a few percent of the compression. It misses repetitions over more than a stretch,
/// so before a component is stored raw, one frame is compressed quickly.
pub(crate) fn choose(
    tools: &Tools,
    compression: Compression,
    head: &(impl Head + ?Sized),
) -> Result<Method> {
    let effort = match compression {
        Compression::None => return Ok(Method::Raw),
        Compression::Zstd(level) => Effort::Level(level),
        Compression::EntropyOnly => Effort::EntropyOnly,
        Compression::Auto => return choose_effort(tools, head),
    };
    if head.byte_len() <= STRETCHES * STRETCH || shrinks(tools, effort, head)? {
        return Ok(Method::Frames(effort));
    }
    let repeats = effort != Effort::EntropyOnly && {
        let first = head.stretch(0..head.byte_len().min(FRAME_CONTENT))?;
        frame_len(tools, Effort::Level(1), &first)? < first.len()
    };
    Ok(if repeats {
        Method::Frames(effort)
    } else {
        Method::Raw
    })
}

/// [`Compression::Auto`]: of the choices near the smallest, the cheapest to read.
fn choose_effort(tools: &Tools, head: &(impl Head + ?Sized)) -> Result<Method> {
    let mut len = 0usize;
    let (mut by_frequency, mut by_search) = (0usize, 0usize);
    for range in sample(head.byte_len()) {
        let stretch = head.stretch(range)?;
        len += stretch.len();
        by_frequency += frame_len(tools, Effort::EntropyOnly, &stretch)?;
        by_search += frame_len(tools, Effort::Level(DEFAULT_LEVEL), &stretch)?;
    }
    let searched = Method::Frames(Effort::Level(DEFAULT_LEVEL));
    if !is_worth(by_frequency.min(by_search), len) {
        let first = head.stretch(0..head.byte_len().min(FRAME_CONTENT))?;
        let repeats = is_worth(frame_len(tools, Effort::Level(1), &first)?, first.len());
        return Ok(if repeats { searched } else { Method::Raw });
    }
    Ok(if is_worth(by_search, by_frequency) {
        searched
    } else {
        Method::Frames(Effort::EntropyOnly)
    })
}

/// Whether `len` saves more than a fiftieth. Less is not worth a reader's time.
fn is_worth(len: usize, of: usize) -> bool {
    len < of - of / 50
}

fn shrinks(tools: &Tools, effort: Effort, head: &(impl Head + ?Sized)) -> Result<bool> {
    let (mut stored, mut len) = (0usize, 0usize);
    for range in sample(head.byte_len()) {
        let stretch = head.stretch(range)?;
        stored += frame_len(tools, effort, &stretch)?;
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

/// All of a short head; otherwise stretches from its beginning to its end.
fn sample(byte_len: usize) -> impl Iterator<Item = Range<usize>> {
    let step = (byte_len.saturating_sub(STRETCH) / (STRETCHES - 1)).max(STRETCH);
    (0..STRETCHES)
        .map(move |at| at * step..byte_len.min(at * step + STRETCH))
        .filter(|range| !range.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fiftieth_is_not_worth_it() {
        for (len, of, expected) in [
            (97, 100, true),
            (98, 100, false),
            (0, 1, true),
            (0, 0, false),
        ] {
            assert_eq!(is_worth(len, of), expected, "{len} of {of}");
        }
    }

    #[test]
    fn a_sample_is_spread_from_the_beginning_to_the_end() {
        let starts = |byte_len| {
            let ranges = sample(byte_len);
            let of_one = |range: Range<usize>| (range.start, range.len());
            ranges.map(of_one).collect::<Vec<_>>()
        };
        assert_eq!(starts(0), []);
        assert_eq!(starts(40_000), [(0, STRETCH), (STRETCH, 40_000 - STRETCH)]);
        let all = [0, 1, 2, 3].map(|at| (at * STRETCH, STRETCH));
        assert_eq!(starts(STRETCHES * STRETCH), all);
        let spread = [0, 1, 2, 3].map(|at| (at * 100_000, STRETCH));
        assert_eq!(starts(300_000 + STRETCH), spread);
    }
}
