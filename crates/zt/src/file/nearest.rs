//! The name that a user meant.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "rows of a table that has a place for each letter"
)]

/// Characters of the longest name that is compared.
const LONGEST: usize = 256;

/// The most edits between a name and its suggestion, however long they are.
const EDITS: usize = 8;

/// The name with the fewest edits from `asked`, to suggest it; `None` if more than a third of `asked` is
/// edited. Time: the number of names times the length of `asked`.
///
/// ```
/// assert_eq!(zt::nearest("wieght", ["bias", "weight"].into_iter()), Some("weight"));
/// ```
pub fn nearest<'n>(asked: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let asked: Vec<char> = asked.chars().take(LONGEST + 1).collect();
    if asked.len() > LONGEST {
        return None;
    }
    let mut limit = (asked.len() / 3).clamp(1, EDITS);
    let mut nearest = None;
    for name in names {
        let letters: Vec<char> = name.chars().take(LONGEST + EDITS + 1).collect();
        if let Some(edits) = edits(&asked, &letters, limit) {
            nearest = Some(name);
            // Only a closer name is better.
            limit = edits.saturating_sub(1);
        }
    }
    nearest
}

/// The number of letters to add, remove, replace or swap with the next; `None` if it exceeds `limit`.
/// The time is the length times `limit`: letters that far apart need more edits.
fn edits(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    // Rows of the table of edits between the beginnings of both.
    let too_many = limit + 1;
    let mut before_last = vec![too_many; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).map(|len| len.min(too_many)).collect();
    for i in 1..=a.len() {
        let mut row = vec![too_many; b.len() + 1];
        row[0] = i.min(too_many);
        for j in i.saturating_sub(limit).max(1)..=(i + limit).min(b.len()) {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut edits = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                edits = edits.min(before_last[j - 2] + 1);
            }
            row[j] = edits.min(too_many);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|edits| *edits <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_up_to_the_limit() {
        let edits = |a: &str, b: &str, limit| {
            let [a, b] = [a, b].map(|text| text.chars().collect::<Vec<_>>());
            assert_eq!(edits(&a, &b, limit), edits(&b, &a, limit));
            edits(&a, &b, limit)
        };
        assert_eq!(edits("kitten", "sitting", 3), Some(3));
        assert_eq!(edits("kitten", "sitting", 2), None);
        assert_eq!(edits("ab", "ba", 1), Some(1));
        assert_eq!(edits("", "abc", 3), Some(3));
        assert_eq!(edits("same", "same", 0), Some(0));
        assert_eq!(edits("same", "some", 0), None);
    }
}
