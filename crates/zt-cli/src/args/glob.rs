//! Patterns for the names of objects.

use crate::failure::Failure;

/// Whether `name` matches `pattern`.
///
/// | pattern | matches |
/// | --- | --- |
/// | `*` | any characters, dots and slashes included, because names are not paths |
/// | `?` | one character |
/// | `[a-z0]`, `[!a-z]` | one character of the set, or outside it |
///
/// A bracket without an end, which [`pattern`] refuses, matches itself. The time is at most the
/// product of the two lengths.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut rest_of_pattern = pattern;
    let mut rest_of_name = name;
    // The pattern after the last star, and the rest of the name at that point. Only the last star
    // is tried again, because everything before it has matched as early as possible.
    let mut retry: Option<(&str, &str)> = None;
    loop {
        if let Some(after_star) = rest_of_pattern.strip_prefix('*') {
            retry = Some((after_star, rest_of_name));
            rest_of_pattern = after_star;
            continue;
        }
        let mut characters = rest_of_name.chars();
        match (characters.next(), one(rest_of_pattern)) {
            (None, None) => return true,
            (Some(character), Some((accepts, after))) if accepts.has(character) => {
                rest_of_pattern = after;
                rest_of_name = characters.as_str();
            }
            _ => {
                let Some((after_star, untaken)) = retry else {
                    return false;
                };
                let mut untaken = untaken.chars();
                if untaken.next().is_none() {
                    return false;
                }
                retry = Some((after_star, untaken.as_str()));
                (rest_of_pattern, rest_of_name) = (after_star, untaken.as_str());
            }
        }
    }
}

/// Whether `name` matches one of the patterns.
pub(crate) fn any_matches(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

/// Refuses so many patterns with a `*` that comparing them with long names would take minutes.
///
/// # Errors
///
/// Code `misuse`.
pub(crate) fn expect_few<'p>(
    patterns: impl IntoIterator<Item = &'p String>,
) -> Result<(), Failure> {
    const MOST: usize = 256;
    let count = patterns.into_iter().filter(|pattern| pattern.contains('*')).count();
    if count <= MOST {
        return Ok(());
    }
    let message = format!("there are {count} patterns with *, and at most {MOST} are compared");
    Err(Failure::misuse(message))
}

/// Checks a pattern from the command line.
///
/// # Errors
///
/// A set without an end, which is a slip and would match nothing. A pattern with a `*` of more than 1,024 bytes: the
/// time that it takes grows with its length times the length of a name.
pub(crate) fn pattern(text: &str) -> Result<String, String> {
    const MOST: usize = 1024;
    if text.len() > MOST && text.contains('*') {
        return Err(format!(
            "a pattern with * has at most {MOST} bytes, and this one has {}",
            text.len()
        ));
    }
    let mut rest = text;
    while let Some((accepts, after)) = one(rest) {
        if matches!(accepts, Accepts::One('[')) {
            return Err(format!(
                "{rest} begins a set without a closing ]; write [[] for the bracket itself"
            ));
        }
        rest = after;
    }
    Ok(text.to_owned())
}

/// The characters that one place of a pattern accepts.
enum Accepts<'p> {
    Any,
    One(char),
    Set { ranges: &'p str, negated: bool },
}

/// The first place of a pattern, and the rest of the pattern.
fn one(pattern: &str) -> Option<(Accepts<'_>, &str)> {
    let mut characters = pattern.chars();
    let first = characters.next()?;
    let after = characters.as_str();
    Some(match first {
        '?' => (Accepts::Any, after),
        '[' => {
            let body = after.strip_prefix('!');
            let (body, negated) = (body.unwrap_or(after), body.is_some());
            // A bracket at the start belongs to the set.
            let from = usize::from(body.starts_with(']'));
            match body.get(from..).and_then(|tail| tail.find(']')) {
                Some(at) => {
                    let (ranges, after) = body.split_at(from + at);
                    (Accepts::Set { ranges, negated }, after.get(1..).unwrap_or_default())
                }
                None => (Accepts::One('['), after),
            }
        }
        other => (Accepts::One(other), after),
    })
}

impl Accepts<'_> {
    fn has(&self, character: char) -> bool {
        let (ranges, negated) = match self {
            Accepts::Any => return true,
            Accepts::One(one) => return *one == character,
            Accepts::Set { ranges, negated } => (*ranges, *negated),
        };
        let mut rest = ranges;
        let mut found = false;
        while let Some(low) = rest.chars().next() {
            let after = rest.get(low.len_utf8()..).unwrap_or_default();
            let high = after.strip_prefix('-').and_then(|tail| tail.chars().next());
            let taken = high.map_or(0, |high| 1 + high.len_utf8());
            found |= (low..=high.unwrap_or(low)).contains(&character);
            rest = after.get(taken..).unwrap_or_default();
        }
        found != negated
    }
}
