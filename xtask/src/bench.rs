//! `cargo xtask bench`: the comparison with peers and limits, written to `docs/`.
//!
//! Every operation at full size takes about 45 minutes, 4 GB of memory and 25 GB of disk. The figures are
//! only right if nothing else runs on the machine.
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

use std::collections::HashMap;
use std::fs;

use crate::chart::{self, PAGE, cells};
use crate::error::{Error, Result};
use crate::shell::{Program, Shell};

pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((first, rest)) if first == "--foreign" => return run_foreign(shell, rest),
        Some((first, rest)) if first == "--copying" => return run_copying(shell, rest),
        Some((first, rest)) if first == "--quantized" => return run_quantized(shell, rest),
        Some((first, [])) if first == "--chart" => return chart::write(shell),
        _ => {}
    }
    shell
        .cargo("build --locked --profile dist --package zt-benches --package zt-cli --bins")
        .run()?;
    let compare = shell.target().join("dist").join("compare");
    let command = ["cargo xtask bench"].into_iter().chain(arguments.iter().map(String::as_str));
    let command = command.collect::<Vec<_>>().join(" ");
    let program = shell.program(compare).args("--growth --report docs --command").arg(command);
    let path = shell.root().join(PAGE);
    let before = fs::read_to_string(&path).map_err(Error::file(&path))?;
    with(program, arguments).run()?;
    let now = fs::read_to_string(&path).map_err(Error::file(&path))?;
    let page = [beside(&before, &now), quantized(&before).to_owned()].concat();
    fs::write(&path, page).map_err(Error::file(&path))?;
    chart::write(shell)
}

/// The section of a page that another benchmark writes.
fn quantized(page: &str) -> &str {
    page.find(QUANTIZED).and_then(|at| page.get(at.saturating_sub(1)..)).unwrap_or_default()
}

/// The line in front of that section, as `benches/quantized.py` has it.
const QUANTIZED: &str = "<!-- quantized: written by";

/// The page `now`, its targets with one more column: what the page `before` reached on another processor, or
/// what it has of another one.
fn beside(before: &str, now: &str) -> String {
    let is_other = value(before, "processor") != value(now, "processor");
    let title = match is_other {
        true => format!(
            "{}, revision {}",
            value(before, "processor"),
            value(before, "zt").trim_start_matches("revision ")
        ),
        false => match rows(before).next().as_deref() {
            Some([_, _, _, _, _, title]) => (*title).to_owned(),
            _ => return now.to_owned(),
        },
    };
    let reached: HashMap<(&str, &str), &str> = rows(before)
        .filter_map(|cells| match (&cells[..], is_other) {
            ([operation, against, _, reached, ..], true)
            | ([operation, against, _, _, _, reached], false) => {
                Some(((*operation, *against), *reached))
            }
            _ => None,
        })
        .collect();
    let of_row = |line: &str| match &cells(line)[..] {
        ["operation", ..] => title.clone(),
        ["---", ..] => "---:".to_owned(),
        [operation, against, ..] => {
            let found = reached.get(&(*operation, *against));
            found.copied().unwrap_or_default().to_owned()
        }
        _ => String::new(),
    };
    let (head, rest) = now.split_once(TARGETS).unwrap_or((now, ""));
    let (targets, tail) = rest.split_once(BEHIND).unwrap_or((rest, ""));
    let targets: String = targets
        .lines()
        .map(|line| match line.starts_with('|') {
            true => format!("{line} {} |\n", of_row(line)),
            false => format!("{line}\n"),
        })
        .collect();
    [head, TARGETS, &targets, BEHIND, tail].concat()
}

/// The headings of the table of targets, and of what is behind it.
const TARGETS: &str = "## Targets\n";
const BEHIND: &str = "\n## Operations\n";

/// A value in a page's table of the machine.
fn value<'p>(page: &'p str, what: &str) -> &'p str {
    let mut lines = page.lines().map(cells);
    let value = lines.find_map(|cells| match cells[..] {
        [found, value] if found == what => Some(value),
        _ => None,
    });
    value.unwrap_or_default()
}

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
    use super::beside;

    fn page(processor: &str, revision: &str, reached: &str) -> String {
        format!(
            "| zt | revision {revision} |\n| processor | {processor} |\n\n## Targets\n\nText.\n\n\
             | operation | against | target | reached | |\n| --- | --- | ---: | ---: | --- |\n\
             | write | peer | 1.00x | {reached} | met |\n\n## Operations\n\n| a | b |\n"
        )
    }

    #[test]
    fn targets_keep_what_another_processor_reached() {
        let found = beside(&page("A", "1", "2.00x"), &page("B", "2", "3.00x"));
        let head = "| operation | against | target | reached | | A, revision 1 |\n";
        assert!(found.contains(head), "{found}");
        let row = "| write | peer | 1.00x | 3.00x | met | 2.00x |\n";
        assert!(found.contains(row), "{found}");
        assert!(found.ends_with("## Operations\n\n| a | b |\n"), "{found}");
        // The same processor again.
        let again = beside(&found, &page("B", "3", "4.00x"));
        assert!(again.contains(head), "{again}");
        let row = "| write | peer | 1.00x | 4.00x | met | 2.00x |\n";
        assert!(again.contains(row), "{again}");
    }
}
