//! `cargo xtask bench`: the comparison with peers and limits, written to `docs/`.
//!
//! Every operation at full size takes about ten minutes, 4 GB of memory and 25 GB of disk. The
//! figures depend on the machine being quiet, and it is on whoever runs this to see to that.

use crate::error::Result;
use crate::shell::Shell;

pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    shell
        .cargo("build --locked --release --package zt-benches --bins")
        .run()?;
    let compare = shell.target().join("release").join("compare");
    let command = ["cargo xtask bench"]
        .into_iter()
        .chain(arguments.iter().map(String::as_str));
    let command = command.collect::<Vec<_>>().join(" ");
    let program = shell
        .program(compare)
        .args("--growth --report docs --command")
        .arg(command);
    arguments
        .iter()
        .fold(program, |program, argument| program.arg(argument))
        .run()
}
