//! The program `zt`: lists, verifies, compares, converts and edits tensor files.
//!
//! Place in the graph: above every other crate.
//!
//! ```text
//! cli -> commands -> args -> files -> output -> failure
//! ```
//!
//! It is a library, because the package for Python has the program too. A room uses itself and the rooms
//! after it.
//!
//! | room | |
//! | --- | --- |
//! | `cli` | the arguments of the program, and their parser |
//! | `commands` | one file per command: it asks the library and prints the answer |
//! | `args` | groups of arguments that several commands share |
//! | `files` | paths and names of files |
//! | `output` | stdout and stderr: tables, JSON, colour, numbers, bars |
//! | `failure` | why a command ends: exit codes, failures, signals |
//!
//! Every kind of file opens as a `zt::File`, so every command reads every kind. A command that edits
//! a file in place takes `.zt` alone.
//!
//! ```text
//! $ zt ls model.zt
//! NAME          FORMAT  TYPE  SHAPE         SIZE  STORED  DIGEST
//! embed.weight  dense   bf16  32000×4096  250.0 MiB  78%  crc32c
//! ```
//!
//! Invariants: this crate parses no tensor file. No other crate prints. Files are read by position
//! and never mapped. No bytes of a file cause a panic: they cause an error with a code.
#![forbid(unsafe_code)]

mod args;
mod cli;
mod commands;
mod failure;
mod files;
mod output;

use std::ffi::OsString;

use zt_convert::Kinds;

use output::Output;

/// Runs the program and returns its exit code. The first argument is the name of the program. It may be called
/// once in a process, because it sets handlers for signals.
#[must_use]
pub fn main(arguments: impl Iterator<Item = OsString>) -> u8 {
    main_with(arguments, Kinds::builtin())
}

/// As [`main`], with kinds of files and object formats of your own, which every command knows. This is a whole
/// program:
///
/// ```no_run
/// # fn kinds() -> zt_convert::Kinds { zt_convert::Kinds::builtin() }
/// fn main() -> std::process::ExitCode {
///     // `Kinds::builtin().with(MyKind).registry(zt::registry().with_format(MyFormat))`
///     std::process::ExitCode::from(zt_cli::main_with(std::env::args_os(), kinds()))
/// }
/// ```
///
/// `examples/own_program.rs` has a kind and a format.
#[must_use]
pub fn main_with(arguments: impl Iterator<Item = OsString>, kinds: Kinds) -> u8 {
    files::kinds::set(kinds);
    let early = cli::Early::of(arguments);
    let cli = match cli::parse(&early) {
        Ok(cli) => cli,
        Err(error) => return cli::print(error, &early) as u8,
    };
    files::limit::raise();
    let mut output = Output::new(cli.global.json, cli.global.color);
    let result = cli.command.run(&mut output);
    files::remote::report(&output);
    output.conclude(result) as u8
}
