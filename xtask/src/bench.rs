//! `cargo xtask bench`: the comparison with peers and limits, written to `docs/`.
//!
//! Every operation at full size takes 45 to 90 minutes, 4 GB of memory and 25 GB of disk. The figures are
//! only right if nothing else runs on the machine.
//!
//! With `--before PROGRAM` first, it writes the section that the page begins with: what the last round of work changed.
//! `PROGRAM` is `compare` of an older revision. Its file name is the title of a column. The two
//! take turns of one round, so there is no `--rounds`.
//!
//! With `--chart` alone, it draws README's chart anew from the page.
//!
//! With `--foreign` first, it compares files of other formats with their own libraries, and writes
//! `docs/foreign-formats.md`. `PYTHON` names the interpreter that has the libraries.
//!
//! With `--copying FOLDER...` first, it compares `zt convert` with programs that copy, on the file systems of
//! these folders, and writes `docs/copying.md`.
//!
//! With `--quantized` first, it compares `zt convert --logical` with the code of quantized checkpoints' own libraries, and
//! writes that section of the page. `PYTHON` is as above.

use std::fs;
use std::path::Path;

use crate::chart::{self, PAGE, cells};
use crate::error::{Error, Result};
use crate::shell::{Program, Shell};

pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((first, rest)) if first == "--foreign" => return run_foreign(shell, rest),
        Some((first, rest)) if first == "--before" => return run_before(shell, rest),
        Some((first, rest)) if first == "--copying" => return run_copying(shell, rest),
        Some((first, rest)) if first == "--quantized" => return run_quantized(shell, rest),
        Some((first, [])) if first == "--chart" => return chart::write(shell),
        _ => {}
    }
    shell.cargo(BUILD).run()?;
    let compare = shell.target().join("dist").join("compare");
    let command = ["cargo xtask bench"].into_iter().chain(arguments.iter().map(String::as_str));
    let command = command.collect::<Vec<_>>().join(" ");
    let program = shell.program(compare).args("--growth --report docs --command").arg(command);
    let path = shell.root().join(PAGE);
    let last = fs::read_to_string(&path).map_err(Error::file(&path))?;
    with(program, arguments).run()?;
    let now = fs::read_to_string(&path).map_err(Error::file(&path))?;
    let quantized = last.find(QUANTIZED).and_then(|at| last.get(at.saturating_sub(1)..));
    let page = [&with_section(&now, before_and_now(&last)), quantized.unwrap_or_default()].concat();
    fs::write(&path, page).map_err(Error::file(&path))?;
    chart::write(shell)
}

const BUILD: &str = "build --locked --profile dist --package zt-benches --bin compare --bin alone --package zt-cli --bin zt";

/// The line in front of a section that another benchmark writes, as `benches/quantized.py` has it.
const QUANTIZED: &str = "<!-- quantized: written by";

/// Operations that the last round of work was about.
const OWED: [&str; 10] = [
    "verify-crc32c",
    "convert-raw",
    "read-zstd-3",
    "rows-each-zstd-3",
    "read-tiny",
    "rows-raw",
    "stats",
    "diff-summary",
    "delta",
    "patch",
];

fn run_before(shell: &Shell, arguments: &[String]) -> Result<()> {
    let usage = || Error::Usage("--before needs the program `compare` of an older revision".into());
    let (before, arguments) = arguments.split_first().ok_or_else(usage)?;
    shell.cargo(BUILD).run()?;
    let compare = shell.target().join("dist").join("compare");
    let folder = shell.target().join("before");
    let read = |path: &Path| fs::read_to_string(path).map_err(Error::file(path));
    let mut operations = Vec::new();
    for operation in OWED {
        let mut pages = Vec::new();
        for program in [Path::new(before), &compare].into_iter().cycle().take(2 * TURNS) {
            let program = shell.program(program).arg(operation).args("--rounds 1 --report");
            with(program.arg(&folder), arguments).run()?;
            pages.push(read(&folder.join("benchmarks.md"))?);
        }
        operations.push(pages);
    }
    let name = Path::new(before).file_name().unwrap_or_default().to_string_lossy();
    let path = shell.root().join(PAGE);
    let page = with_section(&read(&path)?, &section(&name, &operations));
    fs::write(&path, page).map_err(Error::file(&path))
}

/// How often each of two programs measures an operation. Between its turns is a turn of the other.
const TURNS: usize = 5;

/// The section with the targets of `operations`: for each, the pages of the older program and of this one, in turn.
fn section(before: &str, operations: &[Vec<String>]) -> String {
    let lines = operations.iter().flatten().flat_map(|page| page.lines());
    let mut processors = lines.filter_map(|line| match cells(line)[..] {
        ["processor", value] => Some(value),
        _ => None,
    });
    let mut text = format!(
        "{SECTION}\nThe operations that the last round of work was about, of two revisions: the speed of zt as a multiple of another's. Both programs\n\
         measured each operation in turn, {TURNS} times: medians, with the least and the greatest. Processor: {}.\n\n\
         | operation | against | target | {before} | now | |\n| --- | --- | ---: | ---: | ---: | --- |\n",
        processors.next().unwrap_or_default(),
    );
    for pages in operations {
        let pages = pages.iter().map(|page| rows(page).skip(2).collect()).collect::<Vec<Vec<_>>>();
        for (index, row) in pages.iter().take(1).flatten().enumerate() {
            let [operation, against, target, ..] = row[..] else { continue };
            // Of the first program or the second: the median, and a cell with the range.
            let reached = |program| {
                let turns = pages.iter().skip(program).step_by(2);
                let cells = turns.filter_map(|rows| rows.get(index)?.get(3));
                let mut found: Vec<_> = cells.filter_map(|cell| multiple(cell)).collect();
                found.sort_by(f64::total_cmp);
                let (least, greatest) = (found.first()?, found.last()?);
                let median = *found.get(found.len() / 2)?;
                Some((median, format!("{median:.2}x ({least:.2} to {greatest:.2})")))
            };
            let (Some((_, old)), Some((median, new))) = (reached(0), reached(1)) else { continue };
            let is_met = multiple(target).is_some_and(|target| median >= target);
            let verdict = if is_met { "met" } else { "**not met**" };
            text +=
                &format!("| {operation} | {against} | {target} | {old} | {new} | {verdict} |\n");
        }
    }
    text + "\n"
}

/// The number of a cell such as `1.50x`.
fn multiple(cell: &str) -> Option<f64> {
    cell.strip_suffix('x')?.parse().ok()
}

/// The page with `section` in front of its targets, in the place of an older one.
fn with_section(page: &str, section: &str) -> String {
    let page = page.replacen(before_and_now(page), "", 1);
    let (head, rest) = page.split_once(TARGETS).unwrap_or((&page, ""));
    [head, section, TARGETS, rest].concat()
}

/// The section of a page that [`run_before`] writes.
fn before_and_now(page: &str) -> &str {
    let start = page.find(SECTION).unwrap_or_default();
    page.find(TARGETS)
        .and_then(|end| page.get(start..end))
        .filter(|_| start > 0)
        .unwrap_or_default()
}

/// The headings of that section, of the table of targets, and of what is behind it.
const SECTION: &str = "## Before and now\n";
const TARGETS: &str = "## Targets\n";
const BEHIND: &str = "\n## Operations\n";

/// The rows of the table of targets, its head first.
fn rows(page: &str) -> impl Iterator<Item = Vec<&str>> {
    let behind = page.split_once(TARGETS).map_or("", |(_, rest)| rest);
    let table = behind.split_once(BEHIND).map_or("", |(table, _)| table);
    table.lines().filter(|line| line.starts_with('|')).map(cells)
}

fn run_foreign(shell: &Shell, arguments: &[String]) -> Result<()> {
    shell
        .cargo(
            "build --locked --profile dist --package zt-benches --bin foreign --package zt-cli --bin zt",
        )
        .run()?;
    let foreign = shell.target().join("dist").join("foreign");
    let script = python(shell).args("benches/foreign.py").arg(foreign);
    with_zt(script, shell, "docs/foreign-formats.md", arguments)
}

fn run_copying(shell: &Shell, arguments: &[String]) -> Result<()> {
    shell.cargo("build --locked --profile dist --package zt-cli --bin zt").run()?;
    let script = python(shell).args("benches/copying.py");
    with_zt(script, shell, "docs/copying.md", arguments)
}

fn run_quantized(shell: &Shell, arguments: &[String]) -> Result<()> {
    shell.cargo("build --locked --profile dist --package zt-cli --bin zt").run()?;
    let script = python(shell).args("benches/quantized.py");
    let script = script.arg(shell.target().join("dist").join("zt"));
    with(script.args("--page").arg(PAGE), arguments).run()
}

fn python(shell: &Shell) -> Program {
    shell.program(std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned()))
}

/// Runs a script with the program, which writes `page`.
fn with_zt(script: Program, shell: &Shell, page: &str, arguments: &[String]) -> Result<()> {
    let script = script.arg(shell.target().join("dist").join("zt"));
    with(script.args("--report").arg(page), arguments).run()
}

fn with(program: Program, arguments: &[String]) -> Program {
    arguments.iter().fold(program, |program, argument| program.arg(argument))
}

#[cfg(test)]
mod tests {
    use super::{section, with_section};

    fn page(reached: &str) -> String {
        format!(
            "| rounds | 5 |\n| processor | A |\n\n## Targets\n\nText.\n\n\
             | operation | against | target | reached | |\n| --- | --- | ---: | ---: | --- |\n\
             | write | peer | 1.00x | {reached} | met |\n\n## Operations\n\n| a | b |\n"
        )
    }

    #[test]
    fn a_page_begins_with_what_two_programs_reached() {
        let pages = ["2.00x", "0.90x", "2.50x", "1.10x", "2.20x", "0.80x"].map(page);
        let section = section("old", &[pages.to_vec()]);
        let found = with_section(&page("4.00x"), &section);
        let table = "Processor: A.\n\n\
                     | operation | against | target | old | now | |\n| --- | --- | ---: | ---: | ---: | --- |\n\
                     | write | peer | 1.00x | 2.20x (2.00 to 2.50) | 0.90x (0.80 to 1.10) | **not met** |\n\n## Targets\n";
        assert!(found.contains(table), "{found}");
        assert!(found.contains("| write | peer | 1.00x | 4.00x | met |\n"), "{found}");
        assert!(found.ends_with("## Operations\n\n| a | b |\n"), "{found}");
        assert_eq!(with_section(&found, &section), found);
    }
}
