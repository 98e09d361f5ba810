//! Hints to a source about the next reads, while the program works on the bytes before them.

use std::collections::HashMap;
use std::ptr;

use zt_container::{Source, Span};

/// Pieces of about 1 MiB that are announced together.
///
/// Pays: not measured.
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

/// Announces all of `items` to remote sources, which fetch them in this order. The items of one source are sorted by
/// offset.
pub(crate) fn announce_all<'s, T>(items: &'s [T], place: impl Fn(&'s T) -> (&'s dyn Source, Span)) {
    let mut places = HashMap::new();
    let mut sources: Vec<(&dyn Source, Vec<Span>)> = Vec::new();
    let remote = items.iter().map(place).filter(|(source, _)| source.is_remote());
    for (source, span) in remote {
        let at = *places.entry(ptr::from_ref(source).addr()).or_insert(sources.len());
        match sources.get_mut(at) {
            Some((_, spans)) => spans.push(span),
            None => sources.push((source, vec![span])),
        }
    }
    for (source, spans) in sources {
        source.will_read_all(&spans);
    }
}
