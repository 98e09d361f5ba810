//! Tables for people.

use unicode_width::UnicodeWidthStr;

/// A table without rules: a header, and one line per row.
///
/// A file can have a hundred thousand objects in a few bytes each, so that a cell takes little more
/// than its text.
///
/// Invariant: cells hold no line breaks, because [`crate::output::text`] escapes them.
pub(crate) struct Table {
    columns: Vec<Column>,
    /// The cells of the header and of all rows. A line break ends each.
    cells: String,
    /// The rows that are coloured.
    marked: Vec<bool>,
}

struct Column {
    is_right: bool,
    /// Columns of a terminal.
    width: usize,
}

/// Spaces between columns.
const GAP: usize = 2;

impl Table {
    /// A table with these column heads. A head that begins with `>` aligns its column to the right.
    pub(crate) fn new(heads: &[&str]) -> Self {
        let column = |head: &&str| Column {
            is_right: head.starts_with('>'),
            width: 0,
        };
        let mut table = Table {
            columns: heads.iter().map(column).collect(),
            cells: String::new(),
            marked: Vec::new(),
        };
        table.add(heads.iter().map(|head| head.trim_start_matches('>')));
        table
    }

    pub(crate) fn row<I: IntoIterator<Item = String>>(&mut self, cells: I) {
        self.marked_row(false, cells);
    }

    /// A row that is coloured if `is_marked`, for an object at fault.
    pub(crate) fn marked_row<I: IntoIterator<Item = String>>(&mut self, is_marked: bool, cells: I) {
        self.add(cells);
        self.marked.push(is_marked);
    }

    fn add(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        let mut cells = cells.into_iter();
        for column in &mut self.columns {
            if let Some(cell) = cells.next() {
                let cell = cell.as_ref();
                column.width = column.width.max(cell.width());
                self.cells.push_str(cell);
            }
            self.cells.push('\n');
        }
    }

    /// The lines, without a line break after the last.
    pub(crate) fn render(&self, colored: bool) -> String {
        let mut cells = self.cells.split('\n');
        let header_and_rows = std::iter::once(None).chain(self.marked.iter().map(Some));
        let (mut text, mut line) = (String::new(), String::new());
        for marked in header_and_rows {
            line.clear();
            for (column, cell) in self.columns.iter().zip(&mut cells) {
                let space = column.width.saturating_sub(cell.width());
                let before = if column.is_right { space } else { 0 };
                line.extend(std::iter::repeat_n(' ', before));
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', space - before + GAP));
            }
            let line = line.trim_end();
            if marked.is_some() {
                text.push('\n');
            }
            match marked {
                None if colored => text.extend(["\x1b[1m", line, "\x1b[0m"]),
                Some(true) if colored => text.extend(["\x1b[31m", line, "\x1b[0m"]),
                _ => text.push_str(line),
            }
        }
        text
    }
}
