//! The commands, one file for each.
//!
//! A command asks the library, prints a document or text, and gives an exit code. No command uses
//! another, except that `merge` is `convert` with several inputs. [`each`] asks a command about each
//! of several files.

mod append;
mod bench;
mod cat;
mod compact;
mod completions;
mod convert;
mod diff;
mod each;
mod explain;
mod extract;
mod hash;
mod info;
mod ls;
mod man;
mod merge;
mod meta;
mod quantize;
mod rename;
mod repair;
mod rm;
mod show;
mod split;
mod verify;

use clap::Subcommand;

use crate::failure::{Exit, Failure};
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ls(ls::Arguments),
    Info(info::Arguments),
    Show(show::Arguments),
    Cat(cat::Arguments),
    Verify(verify::Arguments),
    Hash(hash::Arguments),
    Convert(convert::Arguments),
    /// Merge files, or the shards of a set, into one file
    ///
    /// The index of a set stands for all its shards. A duplicate name is an error, and so are two
    /// values of one attribute. All options of `zt convert` apply.
    Merge(merge::Arguments),
    Split(split::Arguments),
    Quantize(quantize::Arguments),
    Extract(extract::Arguments),
    Diff(diff::Arguments),
    Append(append::Arguments),
    Rm(rm::Arguments),
    Rename(rename::Arguments),
    Meta(meta::Arguments),
    Compact(compact::Arguments),
    Repair(repair::Arguments),
    Bench(bench::Arguments),
    Explain(explain::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Runs a command. `program` describes all arguments, for `completions` and `man`.
pub(crate) fn run(
    command: Command,
    program: fn() -> clap::Command,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match command {
        Command::Ls(arguments) => ls::run(&arguments, output),
        Command::Info(arguments) => info::run(&arguments, output),
        Command::Show(arguments) => {
            show::run(&arguments, output).map_err(|failure| failure.with_path(&arguments.file))
        }
        Command::Cat(arguments) => cat::run(&arguments, output),
        Command::Verify(arguments) => verify::run(&arguments, output),
        Command::Hash(arguments) => hash::run(&arguments, output),
        Command::Convert(arguments) => convert::run(&arguments, output),
        Command::Merge(arguments) => merge::run(&arguments, output),
        Command::Split(arguments) => split::run(&arguments, output),
        Command::Quantize(arguments) => quantize::run(&arguments, output),
        Command::Extract(arguments) => {
            extract::run(&arguments, output).map_err(|failure| failure.with_path(&arguments.file))
        }
        Command::Append(arguments) => append::run(&arguments, output),
        Command::Rm(arguments) => rm::run(&arguments, output),
        Command::Rename(arguments) => rename::run(&arguments, output),
        Command::Meta(arguments) => meta::run(&arguments, output),
        Command::Compact(arguments) => compact::run(&arguments, output),
        Command::Repair(arguments) => repair::run(&arguments, output),
        Command::Bench(arguments) => {
            bench::run(&arguments, output).map_err(|failure| failure.with_path(&arguments.file))
        }
        Command::Diff(arguments) => diff::run(&arguments, output),
        Command::Explain(arguments) => explain::run(&arguments, output),
        Command::Completions(arguments) => completions::run(&arguments, program(), output),
        Command::Man(arguments) => man::run(&arguments, program(), output),
    }
}
