//! Finds blobs that partly overlap. Spec: §2.4.

use std::collections::HashMap;

use zt::Span;

/// The ranges of one file that partly overlap another one, and the offset of the other. Empty ranges
/// overlap nothing; equal ranges count as one.
///
/// Cost: one sort. A range that overlaps any earlier range overlaps the earlier range that reaches
/// furthest.
pub(super) fn overlapping(mut spans: Vec<Span>) -> HashMap<Span, u64> {
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable_by_key(|span| (span.offset(), span.end()));
    spans.dedup();
    let mut found = HashMap::new();
    let mut furthest = Span::default();
    for span in spans {
        if span.offset() < furthest.end() {
            found.insert(span, furthest.offset());
            found.entry(furthest).or_insert(span.offset());
        }
        if span.end() > furthest.end() {
            furthest = span;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let spans = ranges.iter().map(|(start, end)| Span::between(*start, *end).unwrap());
        let found = overlapping(spans.collect());
        let mut found: Vec<_> = found.keys().map(|span| (span.offset(), span.end())).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn equal_and_disjoint_ranges_are_fine() {
        assert_eq!(names(&[(8, 16), (0, 8), (8, 16), (16, 16), (4, 4)]), []);
    }

    #[test]
    fn every_overlapping_range_is_found() {
        assert_eq!(names(&[(0, 8), (4, 12), (12, 16)]), [(0, 8), (4, 12)]);
        let within = [(0, 100), (10, 20), (30, 40), (100, 110)];
        assert_eq!(names(&within), [(0, 100), (10, 20), (30, 40)]);
        assert_eq!(names(&[(0, 8), (0, 4)]), [(0, 4), (0, 8)]);
    }

    #[test]
    fn ranges_with_equal_ends_overlap_the_first() {
        let ends_at_10 = |start| Span::between(start, 10).unwrap();
        let found = overlapping([0, 5, 7].map(ends_at_10).to_vec());
        assert_eq!(found.get(&ends_at_10(7)), Some(&0));
    }
}
