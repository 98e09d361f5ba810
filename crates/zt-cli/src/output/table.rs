//! Tables for people.

use comfy_table::{CellAlignment, ContentArrangement, presets};

/// A table without rules: a header, and one line per row.
///
/// Invariant: cells hold no line breaks, because [`crate::output::text`] escapes them.
pub(crate) struct Table {
    table: comfy_table::Table,
    /// The rows that are coloured.
    marked: Vec<bool>,
}

impl Table {
    /// A table with these column heads. A head that begins with `>` aligns its column to the right.
    pub(crate) fn new(heads: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(heads.iter().map(|head| head.trim_start_matches('>')));
        for (head, column) in heads.iter().zip(table.column_iter_mut()) {
            column.set_padding((0, 2));
            if head.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Table {
            table,
            marked: Vec::new(),
        }
    }

    pub(crate) fn row<I: IntoIterator<Item = String>>(&mut self, cells: I) {
        self.marked_row(false, cells);
    }

    /// A row that is coloured if `is_marked`, for an object at fault.
    pub(crate) fn marked_row<I: IntoIterator<Item = String>>(&mut self, is_marked: bool, cells: I) {
        self.table.add_row(cells);
        self.marked.push(is_marked);
    }

    /// The lines, without a line break after the last.
    pub(crate) fn render(&self, colored: bool) -> String {
        let mut lines = Vec::with_capacity(self.marked.len() + 1);
        let header_and_rows = std::iter::once(None).chain(self.marked.iter().map(Some));
        for (line, marked) in self.table.lines().zip(header_and_rows) {
            let line = line.trim_end();
            lines.push(match marked {
                None if colored => format!("\x1b[1m{line}\x1b[0m"),
                Some(true) if colored => format!("\x1b[31m{line}\x1b[0m"),
                _ => line.to_owned(),
            });
        }
        lines.join("\n")
    }
}
