//! Names of things that have to be unique.

/// A name that is there twice. Sorting takes n log n however the names were chosen.
pub fn repeated<'a>(names: &mut [&'a str]) -> Option<&'a str> {
    names.sort_unstable();
    let mut pairs = names.iter().zip(names.iter().skip(1));
    pairs.find_map(|(a, b)| (a == b).then_some(*a))
}
