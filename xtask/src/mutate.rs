//! `cargo xtask mutate`: damaged files of every kind through every command that reads.
//!
//! `conformance/examples/mutate` damages them, and says what a command may do. A seed repeats a run, as
//! far as its time goes; with `--number` one file of it is tried again.

use crate::error::{Error, Result};
use crate::fuzz::number;
use crate::shell::Shell;

/// As a step of `ci`, and where nothing else is asked for.
const SECONDS: u64 = 60;

/// `[--seconds N] [--seed S] [--number N]`
pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let (mut seconds, mut seed, mut only) = (SECONDS, 1, None);
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        match option.as_str() {
            "--seconds" => seconds = number(option, rest.next())?,
            "--seed" => seed = number(option, rest.next())?,
            "--number" => only = Some(number(option, rest.next())?),
            _ => return Err(Error::Usage(format!("no option `{option}`"))),
        }
    }
    tried(shell, seconds, seed, only)
}

/// A minute of the same files in the same order in every run.
pub(crate) fn in_ci(shell: &Shell) -> Result<()> {
    tried(shell, SECONDS, 1, None)
}

fn tried(shell: &Shell, seconds: u64, seed: u64, only: Option<u64>) -> Result<()> {
    if !cfg!(target_os = "linux") {
        let reason = "the limits on memory are those of Linux";
        return Err(Error::Unavailable(reason.into()));
    }
    let program = shell.built("bin", "zt")?;
    let mutate = shell.program(shell.built("example", "mutate")?);
    let mutate = mutate.arg(program).arg(shell.target().join("mutate"));
    let mutate = mutate.args(&format!("{seconds} {seed}"));
    match only {
        Some(only) => mutate.arg(only.to_string()).run(),
        None => mutate.run(),
    }
}
