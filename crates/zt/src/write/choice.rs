//! The choice of how a component is stored, by a sample, before any of it is compressed.

use std::borrow::Cow;
use std::ops::Range;

use zt_container::codec::FRAME_CONTENT;
use zt_formats::HuffmanEncoder;

use crate::error::{Error, Result};
use crate::write::options::{Compression, DEFAULT_LEVEL};
use crate::write::tools::{Effort, Tools};

/// How a component is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Raw,
    Frames(Effort),
    /// As the codes of `zt.planes/2`, whose lengths are a component of their own.
    Codes,
}

impl Method {
    /// The bytes of content in a part.
    pub(crate) const fn part_len(self) -> usize {
        match self {
            Method::Raw | Method::Frames(_) => FRAME_CONTENT,
            Method::Codes => HuffmanEncoder::CHUNK,
        }
    }

    /// The decoded length of a component of `content_len` bytes. Codes have one once they are written.
    pub(crate) fn decoded_len(self, content_len: u64) -> Option<u64> {
        (self != Method::Codes).then_some(content_len)
    }

    /// The decoded length, or a guess for codes: only the placement depends on it.
    pub(crate) fn expected_len(self, content_len: u64) -> u64 {
        self.decoded_len(content_len).unwrap_or(content_len >> 1)
    }
}

/// The sample: stretches that are spread evenly, together this share of the head.
const STRETCHES: usize = 4;
const SAMPLED: usize = 128;

/// The shortest stretch. In a shorter one, the tables of a frame outweigh what it saves.
const LEAST_STRETCH: usize = 4 << 10;

/// The effort that tests whether a search pays. With level 3, half of the time of `choose` was spent on
/// the exponents of weights.
const QUICK: Effort = Effort::Level(1);

/// Up to this length, a frame that does not shrink costs hardly more than its sample.
///
/// Pays: nothing for weights in bf16: `zt convert --zstd` of 75 MB takes as long with 0 and without samples.
const UNSAMPLED: usize = 1 << 20;

/// The share of the head that is searched for repetitions over more than a stretch, and the least.
const SEARCHED: usize = 16;
const LEAST_SEARCHED: usize = 32 << 10;

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
/// The sample is a 128th of the head, but not less than 16 KiB: of a matrix of a few MB, the 128 KiB
/// that were sampled before took up to 8 % of the compression. A sample misses repetitions over more
/// than a stretch. So before a component is stored raw, the first 16th of its head (at least 32 KiB)
/// is compressed quickly. A head of at most 1 MiB is compressed without a sample, except by
/// [`Compression::Auto`].
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
    let shrinks = || {
        let sample = sample(head)?;
        Ok::<_, Error>(frame_len(tools, effort, &sample)? < sample.len())
    };
    if head.byte_len() <= UNSAMPLED || shrinks()? {
        return Ok(Method::Frames(effort));
    }
    let repeats = effort != Effort::EntropyOnly && {
        let first = head.stretch(searched(head.byte_len()))?;
        frame_len(tools, QUICK, &first)? < first.len()
    };
    Ok(frames_if(repeats, effort))
}

const fn frames_if(repeats: bool, effort: Effort) -> Method {
    if repeats { Method::Frames(effort) } else { Method::Raw }
}

/// [`Compression::Auto`]: of the choices near the smallest, the cheapest to read.
fn choose_effort(tools: &Tools, head: &(impl Head + ?Sized)) -> Result<Method> {
    let searching = Effort::Level(DEFAULT_LEVEL);
    let sample = sample(head)?;
    let by_frequency = frame_len(tools, Effort::EntropyOnly, &sample)?;
    if !is_worth(by_frequency, sample.len()) {
        // The mantissas of weights end here: a search of the sample would take as long again.
        let first = head.stretch(searched(head.byte_len()))?;
        let repeats = is_worth(frame_len(tools, QUICK, &first)?, first.len());
        return Ok(frames_if(repeats, searching));
    }
    let by_search = frame_len(tools, QUICK, &sample)?;
    let is_searched = is_worth(by_search, by_frequency);
    Ok(Method::Frames(if is_searched { searching } else { Effort::EntropyOnly }))
}

/// Whether `len` saves more than a fiftieth. Less is not worth a reader's time.
fn is_worth(len: usize, of: usize) -> bool {
    len < of.strict_sub(of / 50)
}

/// The stretches one behind the other: the tables of one frame serve all of them.
fn sample(head: &(impl Head + ?Sized)) -> Result<Vec<u8>> {
    let mut sample = Vec::new();
    for range in stretches(head.byte_len()) {
        sample.extend_from_slice(&head.stretch(range)?);
    }
    Ok(sample)
}

fn frame_len(tools: &Tools, effort: Effort, content: &[u8]) -> Result<usize> {
    let frame = tools.compress(effort, content)?;
    let len = frame.len();
    tools.give_back(frame);
    Ok(len)
}

/// All of a short head; otherwise stretches from its beginning to its end.
fn stretches(byte_len: usize) -> impl Iterator<Item = Range<usize>> {
    let stretch = (byte_len / (STRETCHES * SAMPLED)).max(LEAST_STRETCH);
    let step = (byte_len.saturating_sub(stretch) / (STRETCHES - 1)).max(stretch);
    (0..STRETCHES)
        .map(move |at| {
            let start = at.strict_mul(step);
            start..byte_len.min(start.strict_add(stretch))
        })
        .filter(|range| !range.is_empty())
}

/// Where a head is searched for repetitions over more than a stretch.
fn searched(byte_len: usize) -> Range<usize> {
    0..byte_len.min(LEAST_SEARCHED.max(byte_len / SEARCHED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fiftieth_is_not_worth_it() {
        let found = [(97, 100), (98, 100), (0, 1), (0, 0)].map(|(len, of)| is_worth(len, of));
        assert_eq!(found, [true, false, true, false]);
    }

    #[test]
    fn a_sample_is_spread_from_the_beginning_to_the_end() {
        let starts = |byte_len| {
            let ranges = stretches(byte_len);
            let of_one = |range: Range<usize>| (range.start, range.len());
            ranges.map(of_one).collect::<Vec<_>>()
        };
        let (short, long) = (LEAST_STRETCH, 8 << 10);
        assert_eq!(starts(0), []);
        assert_eq!(starts(5_000), [(0, short), (short, 5_000 - short)]);
        let spread = |step| [0, 1, 2, 3].map(|at| (at * step, short));
        assert_eq!(starts(4 * short), spread(short));
        assert_eq!(starts(300_000 + short), spread(100_000));
        let of_a_large_one = starts(4 << 20);
        assert!(of_a_large_one.iter().all(|(_, len)| *len == long));
        // Three steps of whole bytes miss the end by at most two.
        let end = of_a_large_one.last().map_or(0, |(start, len)| start + len);
        assert!((4 << 20) - end <= 2, "{end}");
    }

    #[test]
    fn a_sixteenth_is_searched_for_repetitions() {
        let lens = [1, 100_000, 1 << 20, 4 << 20].map(|len| searched(len).len());
        assert_eq!(lens, [1, LEAST_SEARCHED, 64 << 10, 256 << 10]);
    }
}
