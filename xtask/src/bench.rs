//! `cargo xtask bench`: the comparison with peers and limits, written to `docs/`.
//!
//! Every operation at full size takes about ten minutes, 4 GB of memory and 25 GB of disk. The
//! figures depend on the machine being quiet, and it is on whoever runs this to see to that.
//!
//! With `--foreign` first, files of other formats beside their own libraries, written to
//! `docs/foreign-formats.md`; the libraries are those of the interpreter that `PYTHON` names.

use crate::error::Result;
use crate::shell::{Program, Shell};

pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    if let Some((first, arguments)) = arguments.split_first()
        && first == "--foreign"
    {
        return run_foreign(shell, arguments);
    }
    shell
        .cargo("build --locked --profile dist --package zt-benches --package zt-cli --bins")
        .run()?;
    let compare = shell.target().join("dist").join("compare");
    let command = ["cargo xtask bench"]
        .into_iter()
        .chain(arguments.iter().map(String::as_str));
    let command = command.collect::<Vec<_>>().join(" ");
    let program = shell
        .program(compare)
        .args("--growth --report docs --command")
        .arg(command);
    with(program, arguments).run()
}

fn run_foreign(shell: &Shell, arguments: &[String]) -> Result<()> {
    shell
        .cargo(
            "build --locked --profile dist --package zt-benches --bin foreign --package zt-cli --bin zt",
        )
        .run()?;
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let built = shell.target().join("dist");
    let script = shell
        .program(python)
        .args("benches/foreign.py")
        .arg(built.join("foreign"))
        .arg(built.join("zt"))
        .args("--report docs/foreign-formats.md");
    with(script, arguments).run()
}

fn with(program: Program, arguments: &[String]) -> Program {
    arguments
        .iter()
        .fold(program, |program, argument| program.arg(argument))
}
