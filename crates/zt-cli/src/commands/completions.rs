//! `zt completions`: a script that completes our arguments in a shell.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::json::object;

/// Print a script that completes arguments in a shell
///
/// The script completes commands and options. With `COMPLETE=SHELL zt`, the shell asks the program itself,
/// which completes names of objects, too, after the name of a file.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  zt completions bash > ~/.local/share/bash-completion/completions/zt
  zt completions zsh > ~/.zfunc/_zt
  zt completions fish > ~/.config/fish/completions/zt.fish

With names of objects, in the file that the shell reads at its start:
  source <(COMPLETE=bash zt)
  source <(COMPLETE=zsh zt)
  COMPLETE=fish zt | source";

pub(crate) fn run(
    arguments: &Arguments,
    mut program: Command,
    output: &mut Output,
) -> Result<Exit, Failure> {
    // Into memory first, because the generator panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "zt", &mut script);
    if output.json {
        let script = String::from_utf8_lossy(&script).into_owned();
        output.document(&object! {
            shell: arguments.shell.to_string(),
            script,
        })?;
    } else {
        output.bytes(&script)?;
    }
    Ok(Exit::Ok)
}
