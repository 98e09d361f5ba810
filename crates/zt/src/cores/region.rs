//! Small blobs that lie close together: one unit of work, and one read.

use zt_container::{Source, Span};

/// Larger blobs are cut into pieces and belong to no region.
pub(crate) const SMALL: u64 = 1 << 20;

/// Blobs with at most this many bytes between them share a read: these bytes cost less than another
/// read.
const GAP: u64 = 16 << 10;

/// A stretch of a source that is in memory, and the source around it.
pub(crate) struct Region<'a> {
    source: &'a dyn Source,
    span: Span,
    bytes: &'a [u8],
}

impl<'a> Region<'a> {
    /// The stretch that holds all of `spans`, borrowed or read into `memory`. `None` if it cannot
    /// be read as a whole, as in a truncated file. Then each blob is read by itself.
    pub(crate) fn around(
        source: &'a dyn Source,
        spans: impl Iterator<Item = Span>,
        memory: &'a mut Vec<u8>,
    ) -> Option<Self> {
        let around = |all: Span, span: Span| {
            let start = all.offset().min(span.offset());
            Span::between(start, all.end().max(span.end())).unwrap_or(all)
        };
        let span = spans.reduce(around)?;
        let bytes = match source.slice(span) {
            Some(lent) => lent,
            None => zt_container::memory::fetch(memory, source, span).ok()?,
        };
        Some(Region { source, span, bytes })
    }
}

impl Source for Region<'_> {
    fn byte_len(&self) -> u64 {
        self.source.byte_len()
    }

    fn slice(&self, span: Span) -> Option<&[u8]> {
        if !self.span.contains(span) {
            return self.source.slice(span);
        }
        let start = usize::try_from(span.offset().checked_sub(self.span.offset())?).ok()?;
        let len = usize::try_from(span.byte_len()).ok()?;
        self.bytes.get(start..)?.get(..len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        let span = Span::new(offset, buf.len() as u64);
        match span.and_then(|span| self.slice(span)) {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => self.source.read_at(offset, buf),
        }
    }
}

/// Ranges of items that are done together: several small blobs, or one of any size. `items` are
/// sorted by source and offset.
pub(crate) fn bundles<'i, 'f, T>(
    items: &'i [T],
    place: impl Fn(&T) -> (&'f dyn Source, Span),
) -> Vec<&'i [T]> {
    // The beginning and the end of the bundle with the last item.
    let (mut start, mut end) = (0u64, 0u64);
    let chunks = items.chunk_by(|before, next| {
        let ((source, span), (next_source, next_span)) = (place(before), place(next));
        if end < span.end() {
            (start, end) = (span.offset(), span.end());
        }
        let joins = is_same(source, next_source)
            && next_span.offset().saturating_sub(end) <= GAP
            && next_span.end().strict_sub(start) <= SMALL;
        if joins {
            end = end.max(next_span.end());
        } else {
            (start, end) = (next_span.offset(), next_span.end());
        }
        joins
    });
    chunks.collect()
}

fn is_same(a: &dyn Source, b: &dyn Source) -> bool {
    std::ptr::addr_eq(std::ptr::from_ref(a), std::ptr::from_ref(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zt_container::Memory;

    fn lengths(source: &Memory<Vec<u8>>, spans: &[(u64, u64)]) -> Vec<usize> {
        let spans = spans.iter().map(|(at, len)| Span::new(*at, *len).unwrap());
        let spans: Vec<Span> = spans.collect();
        let bundles = bundles(&spans, |span| (source as &dyn Source, *span));
        bundles.iter().map(|bundle| bundle.len()).collect()
    }

    #[test]
    fn neighbours_of_two_sources_stay_apart() {
        let sources = [Memory::new(vec![0; 20]), Memory::new(vec![0; 20])];
        let items = [(0usize, 0), (0, 10), (1, 10)];
        let bundles = bundles(&items, |(source, offset)| {
            let source: &dyn Source = &sources[*source];
            (source, Span::new(*offset, 10).unwrap())
        });
        assert_eq!(bundles, [&[(0, 0), (0, 10)][..], &[(1, 10)]]);
    }

    #[test]
    fn a_region_stands_for_all_of_its_source() {
        let source = Memory::new((0..20).collect::<Vec<u8>>());
        let spans = [(3, 2), (7, 1)].map(|(offset, len)| Span::new(offset, len).unwrap());
        let mut memory = Vec::new();
        let region = Region::around(&source, spans.into_iter(), &mut memory).unwrap();
        assert_eq!(region.byte_len(), 20);
        assert_eq!(region.bytes, [3, 4, 5, 6, 7]);
        let mut found = [0; 4];
        region.read_at(4, &mut found).unwrap();
        assert_eq!(found, [4, 5, 6, 7]);
        region.read_at(5, &mut found).unwrap();
        assert_eq!(found, [5, 6, 7, 8]);
    }

    #[test]
    fn small_neighbours_go_together_and_large_ones_alone() {
        let source = Memory::new(Vec::new());
        let large = SMALL + 1;
        for (spans, expected) in [
            (&[][..], &[][..]),
            (&[(0, 10), (64, 10), (128, 10)], &[3]),
            (&[(0, 10), (10 + GAP, 1), (12 + 2 * GAP, 1)], &[2, 1]),
            (&[(0, 9), (64, large), (64 + large, 9)], &[1, 1, 1]),
            // Blobs within blobs.
            (&[(0, SMALL), (64, 1), (SMALL - 1, 1), (SMALL, 1)], &[3, 1]),
        ] {
            assert_eq!(lengths(&source, spans), expected);
        }
        // No bundle is longer than a piece, however many blobs there are.
        let many: Vec<(u64, u64)> = (0..40).map(|at| (at * (SMALL / 16), SMALL / 16)).collect();
        assert_eq!(lengths(&source, &many), [16, 16, 8]);
    }
}
