//! Tables for people.

use unicode_width::UnicodeWidthStr;

use crate::output::text::is_plain;

/// A table without rules: a header, and one line per row.
///
/// Invariant: cells hold no line breaks, because [`crate::output::text`] escapes them.
pub(crate) struct Table {
    columns: Columns,
    widths: Widths,
    /// The cells of all rows. A line break ends each.
    cells: String,
    /// The rows that are coloured.
    marked: Vec<bool>,
}

/// The columns of a table: their heads. One that begins with `>` aligns its column to the right.
#[derive(Clone, Copy)]
pub(crate) struct Columns(&'static [&'static str]);

/// The widths of columns, in columns of a terminal: those of the widest cells so far.
#[derive(Debug, Default)]
pub(crate) struct Widths(Vec<usize>);

/// Spaces between columns.
const GAP: usize = 2;

impl Columns {
    pub(crate) const fn new(heads: &'static [&'static str]) -> Self {
        Columns(heads)
    }

    fn heads(self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|head| head.trim_start_matches('>'))
    }

    /// The widths of the heads.
    pub(crate) fn widths(self) -> Widths {
        let mut widths = Widths::default();
        widths.add(self.heads());
        widths
    }

    /// Adds the line of the heads, and no line break.
    pub(crate) fn push_header(self, widths: &Widths, colored: bool, text: &mut String) {
        let color = colored.then_some("\x1b[1m");
        self.push_line(widths, self.heads(), color, text);
    }

    /// Adds the line of a row, and no line break. The row is coloured if `is_marked` and `colored`.
    pub(crate) fn push_row(
        self,
        widths: &Widths,
        cells: impl IntoIterator<Item = impl AsRef<str>>,
        is_marked: bool,
        colored: bool,
        text: &mut String,
    ) {
        let color = (is_marked && colored).then_some("\x1b[31m");
        self.push_line(widths, cells, color, text);
    }

    fn push_line(
        self,
        widths: &Widths,
        cells: impl IntoIterator<Item = impl AsRef<str>>,
        color: Option<&str>,
        text: &mut String,
    ) {
        text.extend(color);
        let start = text.len();
        for ((head, column), cell) in self.0.iter().zip(&widths.0).zip(cells) {
            let cell = cell.as_ref();
            let space = column.saturating_sub(width(cell));
            let before = if head.starts_with('>') { space } else { 0 };
            push_spaces(before, text);
            text.push_str(cell);
            push_spaces(space - before + GAP, text);
        }
        let line = text.get(start..).unwrap_or_default();
        text.truncate(start + line.trim_end().len());
        text.extend(color.map(|_| "\x1b[0m"));
    }
}

impl Widths {
    /// Makes room for the cells of a row.
    pub(crate) fn add(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        for (at, cell) in cells.into_iter().enumerate() {
            self.widen(at, width(cell.as_ref()));
        }
    }

    /// Makes room for all that `other` has room for.
    pub(crate) fn merge(&mut self, other: &Widths) {
        for (at, width) in other.0.iter().enumerate() {
            self.widen(at, *width);
        }
    }

    fn widen(&mut self, at: usize, width: usize) {
        match self.0.get_mut(at) {
            Some(widest) => *widest = width.max(*widest),
            None => self.0.push(width),
        }
    }
}

/// Columns of a terminal.
fn width(cell: &str) -> usize {
    if is_plain(cell) {
        cell.len()
    } else {
        cell.width()
    }
}

fn push_spaces(mut count: usize, text: &mut String) {
    const SPACES: &str = "                                ";
    while let Some(rest) = count.checked_sub(SPACES.len()) {
        text.push_str(SPACES);
        count = rest;
    }
    text.push_str(SPACES.get(..count).unwrap_or_default());
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(heads: &'static [&'static str]) -> Self {
        let columns = Columns(heads);
        Table {
            columns,
            widths: columns.widths(),
            cells: String::new(),
            marked: Vec::new(),
        }
    }

    pub(crate) fn row<I: IntoIterator<Item = String>>(&mut self, cells: I) {
        self.marked_row(false, cells);
    }

    /// A row that is coloured if `is_marked`.
    pub(crate) fn marked_row<I: IntoIterator<Item = String>>(&mut self, is_marked: bool, cells: I) {
        let mut cells = cells.into_iter();
        for at in 0..self.columns.0.len() {
            if let Some(cell) = cells.next() {
                self.widths.widen(at, width(&cell));
                self.cells.push_str(&cell);
            }
            self.cells.push('\n');
        }
        self.marked.push(is_marked);
    }

    /// The lines, without a line break after the last.
    pub(crate) fn render(&self, colored: bool) -> String {
        let mut text = String::new();
        self.columns.push_header(&self.widths, colored, &mut text);
        let mut cells = self.cells.split('\n');
        for is_marked in &self.marked {
            text.push('\n');
            let row = cells.by_ref().take(self.columns.0.len());
            self.columns
                .push_row(&self.widths, row, *is_marked, colored, &mut text);
        }
        text
    }
}
