//! `cargo xtask coverage`: which lines and branches of the crates no test has reached.
//!
//! `cargo llvm-cov` runs all tests with instrumented code, and the figures are added up here by layer.
//! Branches need a nightly compiler. Not every machine can fetch the toolchain's own LLVM tools; LLVM 19 or
//! later from a distribution reads the profiles as well.
//!
//! Lines come from the report in the format of lcov. Branches come from the JSON report, because lcov lists
//! the branches of a generic function once for each type. The summaries of `cargo llvm-cov` are not used: they
//! count the unit tests at the end of a file, which always run. They leave out the branches of functions that
//! no test calls, and of a generic function they count one type: `zt-container` alone, without features, has 236
//! branches, and its summary has 142.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::kinds;
use crate::shell::{Program, Shell};

/// Part of the code, and the share that its tests must reach, in percent. Code that parses files from
/// strangers needs more than code that only talks to its user.
struct Layer {
    name: &'static str,
    crates: &'static [&'static str],
    lines: f64,
    branches: f64,
}

const LAYERS: [Layer; 3] = [
    Layer {
        name: "core",
        crates: &["zt-container", "zt-manifest", "zt-formats", "zt-ggml", "zt"],
        lines: 98.0,
        branches: 95.0,
    },
    Layer {
        name: "importers",
        crates: &[
            "zt-foreign",
            "zt-zip",
            "zt-pickle",
            "zt-quantized",
            kinds::EACH,
            "zt-convert",
            "zt-seal",
            "zt-model",
        ],
        lines: 95.0,
        branches: 90.0,
    },
    Layer { name: "program", crates: &["zt-capi", "zt-cli"], lines: 90.0, branches: 80.0 },
];

/// `[--report]`: prints the figures of the last run, without running the tests.
pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let again = match arguments {
        [] => true,
        [only] if only == "--report" => false,
        _ => return Err(Error::Usage("`coverage` takes `--report` only".into())),
    };
    let cargo = || shell.program("cargo").arg("+nightly").arg("llvm-cov");
    if !cargo().arg("--version").succeeds() {
        let reason = "cargo-llvm-cov or a nightly toolchain is not installed";
        return Err(Error::Unavailable(reason.into()));
    }
    let with_tools = |mut program: Program| {
        for (variable, tool) in [("LLVM_COV", "llvm-cov-19"), ("LLVM_PROFDATA", "llvm-profdata-19")]
        {
            if env::var_os(variable).is_none() && shell.program(tool).arg("--version").succeeds() {
                program = program.env(variable, tool);
            }
        }
        program
    };
    if again {
        let tests =
            "--branch --no-report --locked --workspace --exclude zt-benches --exclude xtask";
        with_tools(cargo().args(tests)).run()?;
    }
    let report = |kind: &str| {
        let path = shell.target().join("coverage.report");
        // A program that a test runs on a full disk leaves half a profile, which is left out.
        let report = cargo().args("report --branch --failure-mode all").args(kind);
        with_tools(report.arg("--output-path").arg(&path)).run()?;
        fs::read_to_string(&path).map_err(Error::file(&path))
    };
    let mut files = lines(&report("--lcov")?, shell.root());
    let report = report("--json --skip-functions")?;
    let report = serde_json::from_str(&report);
    let report = report.map_err(|error| Error::file(Path::new("coverage.report"))(error.into()))?;
    branches(&report, shell.root(), &mut files);
    let list = shell.target().join("coverage.txt");
    fs::write(&list, unreached(&files)).map_err(Error::file(&list))?;
    println!("{:<14}{:>18}{:>20}", "", "lines", "branches");
    let mut short = Vec::new();
    for layer in &LAYERS {
        let mut whole = Figures::default();
        for name in kinds::expand(layer.crates) {
            let folder = format!("crates/{name}/src/");
            let mut sum = Figures::default();
            for (_, file) in
                files.range(folder.clone()..).take_while(|(path, _)| path.starts_with(&folder))
            {
                sum.add(&file.figures());
            }
            println!("  {name:<12}{sum}");
            whole.add(&sum);
        }
        println!("{:<14}{whole}", layer.name);
        for (what, share, floor) in [
            ("lines", whole.lines.percent(), layer.lines),
            ("branches", whole.branches.percent(), layer.branches),
        ] {
            if share < floor {
                short.push(format!(
                    "{}: {share:.1} % of {what}, {floor} % are asked for",
                    layer.name
                ));
            }
        }
    }
    println!("what was not reached, line by line: {}", list.display());
    Error::unless_empty("coverage is below what is asked for:", short)
}

/// The lines and branches of one file that a test run reached.
#[derive(Default)]
struct Reached {
    /// How often each line was run, by its number from 1.
    lines: BTreeMap<u64, u64>,
    /// How often each condition was true and false, by its line and columns.
    branches: BTreeMap<[u64; 4], [u64; 2]>,
}

impl Reached {
    fn figures(&self) -> Figures {
        Figures {
            lines: Share::of(self.lines.values().map(|&count| count > 0)),
            branches: Share::of(self.branches.values().flatten().map(|&count| count > 0)),
        }
    }
}

#[derive(Default)]
struct Figures {
    lines: Share,
    branches: Share,
}

impl Figures {
    fn add(&mut self, other: &Self) {
        self.lines.add(other.lines);
        self.branches.add(other.branches);
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}  {}", self.lines, self.branches)
    }
}

#[derive(Clone, Copy, Default)]
struct Share {
    reached: u32,
    of: u32,
}

impl Share {
    fn of(each: impl Iterator<Item = bool>) -> Self {
        each.fold(Self::default(), |sum, reached| Self {
            reached: sum.reached + u32::from(reached),
            of: sum.of + 1,
        })
    }

    fn add(&mut self, other: Self) {
        self.reached += other.reached;
        self.of += other.of;
    }

    fn percent(self) -> f64 {
        100.0 * f64::from(self.reached) / f64::from(self.of.max(1))
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>6} of {:>5} {:>5.1} %", self.reached, self.of, self.percent())
    }
}

/// The lines of every file of ours in a report. A line that was compiled several times, for types or for
/// programs, is reached if one of them is; branches likewise.
fn lines(trace: &str, root: &Path) -> BTreeMap<String, Reached> {
    let mut files: BTreeMap<String, Reached> = BTreeMap::new();
    let mut current = None;
    for line in trace.lines() {
        match (line.split_once(':'), &current) {
            (Some(("SF", path)), _) => current = ours(path, root),
            (Some(("DA", numbers)), Some((name, shipped))) => {
                let numbers = numbers.split_once(',');
                let numbers = numbers.map(|(line, count)| (line.parse(), count.parse::<u64>()));
                if let Some((Ok(line), Ok(count))) = numbers
                    && line <= *shipped
                {
                    let file = files.entry(name.clone()).or_default();
                    *file.lines.entry(line).or_default() += count;
                }
            }
            _ => {}
        }
    }
    files
}

/// Adds the branches of every file of ours in a report.
fn branches(report: &Value, root: &Path, files: &mut BTreeMap<String, Reached>) {
    for file in report["data"][0]["files"].as_array().into_iter().flatten() {
        let Some((name, shipped)) = file["filename"].as_str().and_then(|path| ours(path, root))
        else {
            continue;
        };
        let reached = files.entry(name).or_default();
        for branch in file["branches"].as_array().into_iter().flatten() {
            let number = |at: usize| branch[at].as_u64().unwrap_or(0);
            let place = [number(0), number(1), number(2), number(3)];
            if place[0] <= shipped {
                let counts = reached.branches.entry(place).or_default();
                *counts = [counts[0] + number(4), counts[1] + number(5)];
            }
        }
    }
}

/// The name of a file below `root`, and how many lines it has before its unit tests.
fn ours(path: &str, root: &Path) -> Option<(String, u64)> {
    let name = Path::new(path).strip_prefix(root).ok()?;
    let shipped = fs::read_to_string(path).map_or(u64::MAX, |text| shipped_lines(&text));
    Some((name.to_string_lossy().into_owned(), shipped))
}

/// The number of lines before the unit tests at the end of a file: a module with a body, which may have
/// more attributes.
fn shipped_lines(text: &str) -> u64 {
    const TESTS: &str = "\n#[cfg(test)]\n";
    let starts = text.match_indices(TESTS).find(|(at, _)| {
        let mut items = text[at + TESTS.len()..].lines();
        let item = items.find(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
        item.is_some_and(|item| item.starts_with("mod ") && item.ends_with('{'))
    });
    starts.map_or(u64::MAX, |(at, _)| text[..at].lines().count() as u64)
}

/// One line of text for each line and each condition that was not reached.
fn unreached(files: &BTreeMap<String, Reached>) -> String {
    let mut text = String::new();
    for (path, file) in files {
        for (line, _) in file.lines.iter().filter(|&(_, &count)| count == 0) {
            let _ = writeln!(text, "{path}:{line}: not run");
        }
        for (place, counts) in &file.branches {
            let never = match counts.map(|count| count > 0) {
                [false, true] => "true",
                [true, false] => "false",
                // If it was neither, its line is in the list.
                _ => continue,
            };
            let _ = writeln!(text, "{path}:{}:{}: never {never}", place[0], place[1]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
SF:/clone/crates/zt/src/a.rs
DA:1,3
DA:2,0
end_of_record
SF:/elsewhere/lib.rs
DA:1,0
";

    /// One condition, compiled for two types, and another.
    const REPORT: &str = r#"{"data":[{"files":[{
        "filename":"/clone/crates/zt/src/a.rs",
        "branches":[[1,4,1,9,3,0,0,0,4],[1,4,1,9,2,0,0,0,4],[1,10,1,12,1,1,0,0,4]]
    }]}]}"#;

    fn reached() -> BTreeMap<String, Reached> {
        let root = Path::new("/clone");
        let mut files = lines(TRACE, root);
        branches(&serde_json::from_str(REPORT).unwrap(), root, &mut files);
        files
    }

    #[test]
    fn counts_lines_and_branches_of_the_workspace_only() {
        let files = reached();
        let figures = files["crates/zt/src/a.rs"].figures();
        assert_eq!((figures.lines.reached, figures.lines.of), (1, 2));
        assert_eq!((figures.branches.reached, figures.branches.of), (3, 4));
        assert_eq!(files.len(), 1);
    }

    #[test]
    fn names_what_was_not_reached() {
        let expected = "crates/zt/src/a.rs:2: not run\ncrates/zt/src/a.rs:1:4: never false\n";
        assert_eq!(unreached(&reached()), expected);
    }

    #[test]
    fn unit_tests_at_the_end_of_a_file_are_not_counted() {
        assert_eq!(shipped_lines("a\nb\n#[cfg(test)]\nmod tests {\n}\n"), 2);
        let allowed = "a\nb\n#[cfg(test)]\n#[allow(\n    clippy::unwrap_used\n)]\nmod tests {\n}\n";
        assert_eq!(shipped_lines(allowed), 2);
        // An item that is only compiled for tests does not end a file.
        assert_eq!(shipped_lines("a\n#[cfg(test)]\nconst A: u8 = 1;\nb\n"), u64::MAX);
        assert_eq!(shipped_lines("a\nb\n"), u64::MAX);
    }
}
