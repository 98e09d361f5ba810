//! Tables for people.

use std::borrow::Cow;
use std::collections::BTreeMap;

use unicode_width::UnicodeWidthStr;

use crate::output::text::{abridged, is_plain};

/// A table without rules: a header, and one line per row.
///
/// Invariant: cells hold no line breaks, because [`crate::output::text`] escapes them.
pub(crate) struct Table {
    /// The heads of the columns. One that begins with `>` aligns its column to the right.
    heads: &'static [&'static str],
    /// The width of the widest cell of each column, in columns of a terminal.
    widths: Vec<usize>,
    /// How many cells of the first column have each width.
    firsts: BTreeMap<usize, usize>,
    /// The cells of all rows. A line break ends each.
    cells: String,
    /// Whether a row is coloured.
    marked: Vec<bool>,
}

/// Spaces between columns.
const GAP: usize = 2;

impl Table {
    /// A table with these columns.
    pub(crate) fn new(heads: &'static [&'static str]) -> Self {
        Table {
            heads,
            widths: heads.iter().map(|head| width(name(head))).collect(),
            firsts: BTreeMap::new(),
            cells: String::new(),
            marked: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        self.marked_row(false, cells);
    }

    /// A row that is coloured if `is_marked`.
    pub(crate) fn marked_row(
        &mut self,
        is_marked: bool,
        cells: impl IntoIterator<Item = impl AsRef<str>>,
    ) {
        let mut cells = cells.into_iter();
        for (at, widest) in self.widths.iter_mut().enumerate() {
            if let Some(cell) = cells.next() {
                let cell = cell.as_ref();
                let width = width(cell);
                *widest = width.max(*widest);
                if at == 0 {
                    *self.firsts.entry(width).or_default() += 1;
                }
                self.cells.push_str(cell);
            }
            self.cells.push('\n');
        }
        self.marked.push(is_marked);
    }

    /// Makes the columns fit the rows of `other`, a table with the same columns.
    pub(crate) fn widen(&mut self, other: &Table) {
        for (widest, width) in self.widths.iter_mut().zip(&other.widths) {
            *widest = *width.max(widest);
        }
        for (width, count) in &other.firsts {
            *self.firsts.entry(*width).or_default() += count;
        }
    }

    /// Cuts the longest cells of the first column in the middle, so that the lines fit `columns`. Only a few may
    /// be cut: at most one in eight. A table that needs more, or that does not fit then, stays as it is.
    pub(crate) fn fit(&mut self, columns: usize) {
        const LEAST: usize = 24;
        let rest = self.widths.iter().skip(1).map(|width| width + GAP);
        let Some(room) = columns.checked_sub(rest.sum()) else {
            return;
        };
        let long: usize = self.firsts.range(room + 1..).map(|(_, count)| count).sum();
        let all: usize = self.firsts.values().sum();
        if room >= LEAST && long > 0 && long * 8 <= all {
            self.widths[0] = room;
        }
    }

    /// The lines, without a line break after the last.
    pub(crate) fn render(&self, colored: bool) -> String {
        let mut text = String::new();
        let heads = self.heads.iter().map(|head| name(head));
        self.push_line(heads, colored.then_some("\x1b[1m"), &mut text);
        self.push_rows(self, colored, &mut text);
        text
    }

    /// Adds the rows of `other`, a table with the same columns, each behind a line break.
    pub(crate) fn push_rows(&self, other: &Table, colored: bool, text: &mut String) {
        let mut cells = other.cells.split('\n');
        for is_marked in &other.marked {
            text.push('\n');
            let row = cells.by_ref().take(self.heads.len());
            let color = (*is_marked && colored).then_some("\x1b[31m");
            self.push_line(row, color, text);
        }
    }

    fn push_line<'c>(
        &self,
        cells: impl Iterator<Item = &'c str>,
        color: Option<&str>,
        text: &mut String,
    ) {
        text.extend(color);
        let start = text.len();
        for ((head, column), cell) in self.heads.iter().zip(&self.widths).zip(cells) {
            let mut wide = width(cell);
            let mut cell = Cow::Borrowed(cell);
            if wide > *column {
                cell = abridged(&cell, *column - 1).into_owned().into();
                wide = width(&cell);
            }
            let space = wide.max(*column) - wide;
            let before = if head.starts_with('>') { space } else { 0 };
            push_spaces(before, text);
            text.push_str(&cell);
            push_spaces(space - before + GAP, text);
        }
        let line = text.get(start..).unwrap_or_default();
        text.truncate(start + line.trim_end().len());
        text.extend(color.map(|_| "\x1b[0m"));
    }
}

/// A head without the sign of its alignment.
fn name(head: &'static str) -> &'static str {
    head.trim_start_matches('>')
}

/// Columns of a terminal.
fn width(cell: &str) -> usize {
    if is_plain(cell) { cell.len() } else { cell.width() }
}

fn push_spaces(mut count: usize, text: &mut String) {
    const SPACES: &str = "                                ";
    while let Some(rest) = count.checked_sub(SPACES.len()) {
        text.push_str(SPACES);
        count = rest;
    }
    text.push_str(SPACES.get(..count).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(long: usize, all: usize) -> Table {
        let mut table = Table::new(&["NAME", ">SIZE"]);
        for at in 0..all {
            let name = if at < long { "a".repeat(99) + "z" } else { format!("layers.{at}") };
            table.row([name.as_str(), "4 B"]);
        }
        table
    }

    #[test]
    fn a_few_long_names_are_cut_to_fit() {
        let mut few = table(2, 16);
        few.fit(40);
        let text = few.render(false);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains("…") && text.contains("az  "), "{text}");
        for (mut table, columns) in [(table(3, 16), 40), (table(2, 16), 20), (table(2, 16), 120)] {
            table.fit(columns);
            assert!(table.render(false).contains(&"a".repeat(99)));
        }
    }
}
