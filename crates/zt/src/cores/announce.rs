//! Hints to a source about the next reads, while the program works on the bytes before them.

use std::ptr;

use zt_container::{Source, Span};

/// Pieces of about 1 MiB that are announced together.
const BATCH: usize = 8;

/// Announces the next batch of pieces at the first piece of each batch. The caller calls it before
/// it reads each piece. `stored` gives the place of each piece, in the order of the file.
pub(crate) fn announce(source: &dyn Source, at: usize, stored: impl Fn(usize) -> Option<Span>) {
    if !at.is_multiple_of(BATCH) {
        return;
    }
    let next = at.strict_add(BATCH);
    let behind = next.strict_add(BATCH);
    let last = (next..behind).rev().find_map(&stored);
    let span = stored(next).zip(last);
    if let Some(span) = span.and_then(|(first, last)| Span::between(first.offset(), last.end())) {
        source.will_read(span);
    }
}

/// Announces all of `items` to remote sources, which fetch them in this order. They are sorted by
/// source and offset.
pub(crate) fn announce_all<'s, T>(items: &[T], place: impl Fn(&T) -> (&'s dyn Source, Span)) {
    let of_one_source = |a: &T, b: &T| ptr::addr_eq(place(a).0, place(b).0);
    for items in items.chunk_by(of_one_source) {
        let source = items.first().map(|first| place(first).0);
        if let Some(source) = source.filter(|source| source.is_remote()) {
            let spans: Vec<Span> = items.iter().map(|item| place(item).1).collect();
            source.will_read_all(&spans);
        }
    }
}
