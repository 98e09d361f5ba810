//! Names and numbers, fit for a terminal.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

pub(crate) use zt_report::digits;

use crate::output::size::human;

/// Characters of one cell of a table. JSON has the whole text.
const CELL: usize = 120;

/// `text`, with every character escaped that could move the cursor, change colours or reorder the
/// text beside it. Names in files are not trusted.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !has_unsafe(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unsafe(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// A path, as [`printable`].
pub(crate) fn path(path: &Path) -> String {
    printable(&path.display().to_string()).into_owned()
}

/// As [`printable`], no longer than a cell of a table. It is quoted if it is empty, or begins or ends
/// with a space.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    if text.trim() != text || text.is_empty() {
        return format!("\"{}\"", abridged(text, CELL)).into();
    }
    abridged(text, CELL)
}

/// As [`printable`], with `limit` characters of a longer text: its beginning, a sign, its end.
pub(crate) fn abridged(text: &str, limit: usize) -> Cow<'_, str> {
    let text = printable(text);
    if text.len() <= limit {
        return text;
    }
    if text.chars().nth(limit).is_none() {
        return text;
    }
    // The ends of names differ, and the middle does not.
    let mut places = text.char_indices().map(|(at, _)| at);
    let tail = limit / 2;
    let ends = (places.nth(limit - tail), places.nth_back(tail - 1));
    let head = text.get(..ends.0.unwrap_or(0)).unwrap_or_default();
    let tail = text.get(ends.1.unwrap_or(0)..).unwrap_or_default();
    format!("{head}…{tail}").into()
}

/// Whether a character [`is_unsafe`].
pub(crate) fn has_unsafe(text: &str) -> bool {
    !is_plain(text) && text.contains(is_unsafe)
}

/// Whether a text is printable ASCII. Nearly every text is, and to look at all bytes takes less time than
/// to stop at the first of another kind.
pub(crate) fn is_plain(text: &str) -> bool {
    let is_plain = |byte| matches!(byte, b' '..=b'~');
    text.bytes().fold(true, |all, byte| all & is_plain(byte))
}

/// Controls, and the invisible characters that Unicode TR 36 warns about: directions, joiners, tags.
pub(crate) fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// `2×3`; `scalar` without dimensions.
pub(crate) fn shape(shape: &[u64]) -> String {
    if shape.is_empty() {
        return "scalar".to_owned();
    }
    let mut text = String::new();
    for (at, extent) in shape.iter().enumerate() {
        let sign = if at == 0 { "" } else { "×" };
        let _ = write!(text, "{sign}{extent}"); // A string takes every write.
    }
    if text.len() > CELL {
        return cell(&text).into_owned();
    }
    text
}

/// `, 1.5 MiB shared`; nothing for 0.
pub(crate) fn shared(byte_len: u64) -> String {
    match byte_len {
        0 => String::new(),
        shared => format!(", {} shared", human(shared)),
    }
}

/// `; 3 left out: a, b, c`, with the first names only; nothing for no names.
pub(crate) fn left_out(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!("; {} left out: {}", names.len(), listed(names, 10))
}

/// `a, b, …`: the first names, at most `most`. JSON has all.
pub(crate) fn listed(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).map(|name| cell(name));
    let more = (names.len() > most).then_some("…".into());
    shown.chain(more).collect::<Vec<_>>().join(", ")
}

/// `1 object`, `2 objects`.
pub(crate) fn count(count: u64, one: &str, many: &str) -> String {
    let word = if count == 1 { one } else { many };
    format!("{count} {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_names_of_skipped_objects_are_printed() {
        let names = |count: usize| vec!["\u{1b}".to_owned(); count];
        assert_eq!(left_out(&[]), "");
        assert_eq!(left_out(&names(2)), "; 2 left out: \\u{1b}, \\u{1b}");
        let many = left_out(&names(11));
        assert!(many.starts_with("; 11 left out: ") && many.ends_with(", …"), "{many}");
        assert_eq!(many.matches("1b").count(), 10);
    }
}
