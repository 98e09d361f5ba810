//! One file per command.

pub(crate) mod append;
pub(crate) mod bench;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod extract;
pub(crate) mod hash;
pub(crate) mod info;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod meta;
pub(crate) mod rename;
pub(crate) mod repair;
pub(crate) mod rm;
pub(crate) mod show;
pub(crate) mod split;
pub(crate) mod verify;

use crate::args::Command;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Does what is asked.
pub(crate) fn run(command: Command, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        Command::Ls(arguments) => ls::run(&arguments, output),
        Command::Info(arguments) => info::run(&arguments, output),
        Command::Show(arguments) => show::run(&arguments, output),
        Command::Verify(arguments) => verify::run(&arguments, output),
        Command::Hash(arguments) => hash::run(&arguments, output),
        Command::Convert(arguments) => convert::run(&arguments, output),
        Command::Merge(arguments) => merge::run(&arguments, output),
        Command::Split(arguments) => split::run(&arguments, output),
        Command::Extract(arguments) => extract::run(&arguments, output),
        Command::Append(arguments) => append::run(&arguments, output),
        Command::Rm(arguments) => rm::run(&arguments, output),
        Command::Rename(arguments) => rename::run(&arguments, output),
        Command::Meta(arguments) => meta::run(&arguments, output),
        Command::Compact(arguments) => compact::run(&arguments, output),
        Command::Repair(arguments) => repair::run(&arguments, output),
        Command::Bench(arguments) => bench::run(&arguments, output),
        Command::Diff(arguments) => diff::run(&arguments, output),
        Command::Explain(arguments) => explain::run(&arguments, output),
        Command::Completions(arguments) => completions::run(&arguments, output),
        Command::Man(arguments) => man::run(&arguments, output),
    }
}
