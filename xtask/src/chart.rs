//! README's chart: ten things that a user does, out of the tables of `docs/benchmarks.md`.
//!
//! The page has every operation and every way of doing it. The chart has one sentence for a row, and
//! a bar for zt, for each peer and for the limit of the machine. It is drawn from the page, so that the
//! two never disagree.

use std::fmt::Write;
use std::fs;

use crate::error::{Error, Result};
use crate::shell::Shell;

pub(crate) const PAGE: &str = "docs/benchmarks.md";
const CHART: &str = "docs/chart.svg";

/// A row of the chart.
struct Row {
    /// What the user does.
    sentence: &'static str,
    /// The heading of its table on the page.
    heading: &'static str,
    /// The names of the contestants there: zt first, the machine's limit last.
    contestants: &'static [&'static str],
}

const ROWS: [Row; 10] = [
    Row {
        sentence: "Load a model of 1 GB into memory",
        heading: "Read all tensors of a raw file into fresh memory, W2b",
        contestants: &["zt", SAFETENSORS, ZTENSOR, "pread, huge pages, all threads"],
    },
    Row {
        sentence: "Load it from a disk that nothing has read yet",
        heading: "Read all tensors of a raw file into fresh memory, W2b, cold cache, on a disk",
        contestants: &["zt", SAFETENSORS, ZTENSOR, "pread, huge pages, all threads"],
    },
    Row {
        sentence: "Save it to a disk, with checksums (safetensors has none)",
        heading: "Write raw with crc32c, W2b, on a disk",
        contestants: &[
            "zt, crc32c",
            "safetensors 0.8, no digests",
            "ztensor 1.2.3, crc32c",
            "pwrite + crc32c, preallocated, all threads",
        ],
    },
    Row {
        sentence: "Check every byte of it",
        heading: "Verify crc32c of a raw file, W2b",
        contestants: &[
            "zt, mapped",
            "ztensor 1.2.3, reading with verification",
            "bare kernel over a map, all threads",
        ],
    },
    Row {
        sentence: "Save it compressed with zstd",
        heading: "Write zstd level 3, W2b",
        contestants: &["zt", ZTENSOR, "1 MiB frames + pwrite"],
    },
    Row {
        sentence: "Load it compressed",
        heading: "Read all tensors of a zstd-3 file into fresh memory, W2b",
        contestants: &["zt", ZTENSOR, "1 MiB frames in memory, all threads"],
    },
    Row {
        sentence: "Read 16 rows of a compressed matrix of 131 MiB",
        heading: "Open, and read 16 rows of a zstd-3 tensor of 131 MiB",
        contestants: &["zt", ZTENSOR],
    },
    Row {
        sentence: "Read 16 rows of a raw one (zt compares checksums)",
        heading: "Open, and read 16 rows of a raw tensor of 131 MiB",
        contestants: &["zt", SAFETENSORS, ZTENSOR, "pread at a known offset"],
    },
    Row {
        sentence: "Find one tensor among 100,000",
        heading: "Open a file of 100000 objects and read one",
        contestants: &["zt", SAFETENSORS, ZTENSOR, "pread of the manifest"],
    },
    Row {
        sentence: "Convert a safetensors file of 0.5 GB, on a disk",
        heading: "Convert safetensors to .zt, raw, W2a, on a disk",
        contestants: &["zt, crc32c", "ztensor 1.2.3, crc32c", "cp (copy_file_range)"],
    },
];

const SAFETENSORS: &str = "safetensors 0.8";
const ZTENSOR: &str = "ztensor 1.2.3";

/// Draws the chart anew.
pub(crate) fn write(shell: &Shell) -> Result<()> {
    let [page, chart] = [PAGE, CHART].map(|name| shell.root().join(name));
    let text = fs::read_to_string(&page).map_err(Error::file(&page))?;
    fs::write(&chart, svg(&text)?).map_err(Error::file(&chart))
}

/// A contestant's time in one row.
struct Bar<'p> {
    label: &'static str,
    class: &'static str,
    median: &'p str,
    /// Median, shortest and longest time, in seconds.
    seconds: [f64; 3],
}

const WIDTH: usize = 900;
const COLUMN: f64 = 450.0;
const TOP: f64 = 34.0;
const ROW: f64 = 96.0;
/// Where bars begin in a column, and the longest one's length.
const BARS: f64 = 108.0;
const LONGEST: f64 = 205.0;

const STYLE: &str = "\
text{font:11px system-ui,sans-serif;fill:#59636e}\
.what{font-size:13px;font-weight:600;fill:#1f2328}\
.zt{fill:#1a7f37}.safetensors{fill:#0969da}.ztensor{fill:#bc4c00}.limit{fill:#afb8c1}\
line{stroke:#1f2328}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.what{fill:#f0f6fc}line{stroke:#f0f6fc}\
.zt{fill:#3fb950}.safetensors{fill:#4493f8}.ztensor{fill:#f0883e}.limit{fill:#656c76}}";

/// The chart of the page `page`: two columns of rows, and in each row bars from zero.
fn svg(page: &str) -> Result<String> {
    let height = TOP + ROW * ROWS.len().div_ceil(2) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Times of zt, of peers and of the machine's limit\">\n<style>{STYLE}</style>\n\
         <text x=\"8\" y=\"16\">Median time of five rounds, shorter is better; the thin line is the range. \
         Limit: the same work by bare system calls and codecs.</text>\n"
    );
    for (at, row) in ROWS.iter().enumerate() {
        let x = COLUMN * (at % 2) as f64 + 8.0;
        let y = TOP + ROW * (at / 2) as f64;
        draw(&mut svg, row, &bars(page, row)?, x, y);
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn draw(svg: &mut String, row: &Row, bars: &[Bar<'_>], x: f64, y: f64) {
    let _ = writeln!(
        svg,
        "<text class=\"what\" x=\"{x}\" y=\"{:.1}\">{}</text>",
        y + 14.0,
        row.sentence
    );
    let longest = bars.iter().map(|bar| bar.seconds[2]).fold(0.0, f64::max);
    for (at, bar) in bars.iter().enumerate() {
        let top = y + 22.0 + 17.0 * at as f64;
        let [median, least, most] = bar.seconds.map(|time| LONGEST * time / longest);
        let (start, middle, base) = (x + BARS, top + 6.0, top + 10.0);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{}</text>\
             <rect class=\"{}\" x=\"{start:.1}\" y=\"{top:.1}\" width=\"{median:.1}\" height=\"12\"/>\
             <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>\
             <text x=\"{:.1}\" y=\"{base:.1}\">{}</text>",
            start - 6.0,
            bar.label,
            bar.class,
            start + least,
            start + most,
            start + most.max(median) + 6.0,
            bar.median,
        );
    }
}

/// The bars of `row`, in its order.
fn bars<'p>(page: &'p str, row: &Row) -> Result<Vec<Bar<'p>>> {
    let missing = |what: &str| Error::Usage(format!("{PAGE} has no {what}"));
    let behind = page.split_once(&format!("\n### {}\n", row.heading));
    let (_, behind) = behind.ok_or_else(|| missing(row.heading))?;
    let table = behind.split("\n### ").next().unwrap_or_default();
    let bar = |name: &&'static str| {
        let mut lines = table.lines().map(cells);
        let cells = lines.find(|cells| cells[0].trim_matches('*') == *name);
        let cells = cells.ok_or_else(|| missing(name))?;
        let (least, most) = cells[2].split_once(" to ").ok_or_else(|| missing("range"))?;
        let [median, least, most] = [cells[1], least, most].map(seconds);
        let class = ["zt", "safetensors", "ztensor"]
            .into_iter()
            .find(|class| name.split([' ', ',']).next() == Some(class));
        Ok(Bar {
            label: class.map_or("limit", |_| name.split(',').next().unwrap_or(name)),
            class: class.unwrap_or("limit"),
            median: cells[1],
            seconds: [median, least, most],
        })
    };
    row.contestants.iter().map(bar).collect()
}

/// `1.2 ms` in seconds; a malformed time has none.
fn seconds(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').unwrap_or_default();
    let scale = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        _ => 1e-6,
    };
    number.parse::<f64>().unwrap_or(f64::NAN) * scale
}

/// The cells of a row of a table; one empty cell of another line.
pub(crate) fn cells(line: &str) -> Vec<&str> {
    let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inner.unwrap_or_default().split('|').map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_is_what_the_page_gives() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let [page, chart] = [PAGE, CHART].map(|name| fs::read_to_string(root.join(name)).unwrap());
        let drawn = svg(&page).unwrap();
        assert!(drawn == chart, "draw it anew: cargo xtask bench --chart");
        assert!(!drawn.contains("NaN"));
    }
}
