//! Hints to a source about the next reads, while the program works on the bytes before them.

use std::ptr;

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

/// Stored bytes that are announced together where they are many blobs.
const AHEAD: u64 = 8 << 20;

/// Announces the blobs behind bundle number `at`, about [`AHEAD`] bytes of them, at the first bundle in
/// each stretch of that length. The caller calls it before it reads each bundle. `place` gives the
/// source and the stretch of each bundle, in the order of the file.
///
/// Blobs of a few MiB have too few pieces for [`announce`]: without this, reading and decoding them took
/// turns.
pub(crate) fn announce_behind<'s>(
    at: usize,
    place: impl Fn(usize) -> Option<(&'s dyn Source, Span)>,
) {
    let Some((source, here)) = place(at) else {
        return;
    };
    let of_source =
        |at: usize| place(at).filter(|(other, _)| ptr::addr_eq(ptr::from_ref(source), *other));
    let stretch = |span: Span| span.offset() / AHEAD;
    let before = at.checked_sub(1).and_then(of_source);
    if before.is_some_and(|(_, before)| stretch(before) == stretch(here)) {
        return;
    }
    let limit = here.end().saturating_add(AHEAD);
    let behind = (at.plus(1)..).map_while(of_source).map(|(_, span)| span);
    let mut behind = behind.take_while(|span| span.offset() < limit);
    let Some(first) = behind.next() else {
        return;
    };
    let end = behind.last().unwrap_or(first).end().min(limit);
    if let Some(span) = Span::between(first.offset(), end) {
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
