//! Hints to a source about the next reads, while the program works on the bytes before them.

use zt_container::{Exact, Source, Span};

/// Pieces of about 1 MiB that are announced together.
const BATCH: usize = 8;

/// Announces the next batch of pieces at the first piece of each batch. The caller calls it before
/// it reads each piece. `stored` gives the place of each piece, in the order of the file.
pub(crate) fn announce(source: &dyn Source, at: usize, stored: impl Fn(usize) -> Option<Span>) {
    if !at.is_multiple_of(BATCH) {
        return;
    }
    let next = at.plus(BATCH);
    let behind = next.plus(BATCH);
    let last = (next..behind).rev().find_map(&stored);
    let span = stored(next).zip(last);
    if let Some(span) = span.and_then(|(first, last)| Span::between(first.offset(), last.end())) {
        source.will_read(span);
    }
}
