//! Names that must be unique.

/// A duplicate name. Sorting takes n log n, however hostile the names are.
pub fn repeated<'a>(names: &mut [&'a str]) -> Option<&'a str> {
    names.sort_unstable();
    let mut pairs = names.iter().zip(names.iter().skip(1));
    pairs.find_map(|(a, b)| (a == b).then_some(*a))
}
