//! `cargo xtask mutants`: small faults put into the crates one by one, to see whether a test fails.
//!
//! `cargo mutants` makes and runs them. First, the tests of its own crate run with a fault, which takes
//! seconds. If they pass, the tests of every crate above and of `conformance` run, which takes a minute. A
//! fault that passes both is listed: a test is missing, or the fault has no visible effect and goes into
//! `.cargo/mutants.toml` with the reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::graph::LAYERS;
use crate::shell::Shell;

/// The share of compiling faults that tests must find, in percent. It is lower for importers, whose faults
/// show in values more often than in an error.
const CORE: f64 = 95.0;
const IMPORTERS: f64 = 85.0;

/// The crates whose faults are asked for where none is named; the program has its own contract.
fn packages() -> &'static [&'static str] {
    LAYERS.split_last().map_or(&[][..], |(_, below)| below)
}

/// The crates that are no importers.
const CORES: [&str; 5] = ["zt-container", "zt-manifest", "zt-formats", "zt-ggml", "zt-tensor"];

/// `[--shard K/N] [PACKAGE…]`: every N-th fault of some crates, or of all below the program.
pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    if !shell.cargo("mutants --version").succeeds() {
        return Err(Error::Unavailable("cargo-mutants is not installed".into()));
    }
    let mut shard = None;
    let mut wanted = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--shard" => shard = rest.next(),
            name if packages().contains(&name) => wanted.push(name),
            name => {
                let known = packages().join(" ");
                return Err(Error::Usage(format!("no `{name}`; there are: {known}")));
            }
        }
    }
    if wanted.is_empty() {
        wanted.extend(packages());
    }

    let mut short = Vec::new();
    for name in wanted {
        let found = crate_of(shell, name, shard.map(String::as_str))?;
        println!("{name}: {found}");
        for survivor in &found.missed {
            println!("  {survivor}");
        }
        let owed = if CORES.contains(&name) { CORE } else { IMPORTERS };
        if found.percent() < owed {
            short.push(format!("{name}: {found}, {owed} % are asked for"));
        }
    }
    Error::unless_empty("too many faults pass every test:", short)
}

/// The faults of one crate.
fn crate_of(shell: &Shell, name: &str, shard: Option<&str>) -> Result<Outcomes> {
    let folder = shell.target().join("mutants");
    fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    let mutants = |round: &str, tests: &[&str]| {
        let output = folder.join(format!("{name}-{round}"));
        let program = shell
            .cargo("mutants --no-shuffle --colors never --all-features --package")
            .arg(name)
            .arg("--output")
            .arg(&output);
        let program =
            tests.iter().fold(program, |program, test| program.arg("--test-package").arg(test));
        (output.join("mutants.out"), program)
    };
    let (output, mut program) = mutants("own", &[name]);
    if let Some(shard) = shard {
        program = program.arg("--shard").arg(shard);
    }
    tolerate_survivors(program.run())?;
    let mut found = Outcomes::read(&output)?;
    if found.missed.is_empty() {
        return Ok(found);
    }

    let above = LAYERS.iter().skip_while(|layer| **layer != name).skip(1);
    let tests: Vec<&str> = above.copied().chain(["zt-conformance"]).collect();
    let (output, program) = mutants("above", &tests);
    let again = found
        .missed
        .iter()
        .fold(program, |program, fault| program.arg("--re").arg(format!("^{}$", escaped(fault))));
    tolerate_survivors(again.run())?;
    let second = Outcomes::read(&output)?;
    found.caught += second.caught;
    found.missed = second.missed;
    Ok(found)
}

/// `cargo mutants` exits with 2 where a fault passed and with 3 where one took too long, which are
/// what is counted here.
fn tolerate_survivors(run: Result<()>) -> Result<()> {
    match run {
        Err(Error::Failed { status, .. }) if matches!(status.code(), Some(2 | 3)) => Ok(()),
        other => other,
    }
}

/// The outcomes of the faults that compile.
struct Outcomes {
    /// Those that a test failed on, or that made one run for ever.
    caught: usize,
    /// Those that no test noticed, as `cargo mutants` names them.
    missed: BTreeSet<String>,
}

impl Outcomes {
    fn read(output: &Path) -> Result<Self> {
        let list = |name: &str| {
            let path = output.join(name);
            fs::read_to_string(&path).map_err(Error::file(&path))
        };
        Ok(Outcomes {
            caught: list("caught.txt")?.lines().count() + list("timeout.txt")?.lines().count(),
            missed: list("missed.txt")?.lines().map(str::to_owned).collect(),
        })
    }

    fn percent(&self) -> f64 {
        let of = self.caught + self.missed.len();
        100.0 * self.caught as f64 / of.max(1) as f64
    }
}

impl std::fmt::Display for Outcomes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = self.caught + self.missed.len();
        write!(f, "{} of {of} faults are caught, {:.1} %", self.caught, self.percent())
    }
}

/// A name as a regular expression that means just that name.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_not_an_expression() {
        assert_eq!(escaped("a.rs:1: f -> (0)"), r"a\.rs:1: f -> \(0\)");
    }

    #[test]
    fn what_passed_is_a_share_of_what_compiles() {
        let outcomes = Outcomes { caught: 3, missed: BTreeSet::from(["one".to_owned()]) };
        assert_eq!(outcomes.to_string(), "3 of 4 faults are caught, 75.0 %");
    }
}
