//! The program `zt`: lists, verifies, compares, converts and edits tensor files.
//!
//! ```text
//! zt-container <- zt-manifest <- zt-formats <- zt <- zt-convert <- zt-cli
//!                                                                  ^ here
//!
//! main -> cli -> commands -> args -> files -> output -> failure
//! ```
//!
//! | room | |
//! | --- | --- |
//! | [`cli`] | the arguments of the program, and their parser |
//! | [`commands`] | one file per command: it asks the library and prints the answer |
//! | [`args`] | groups of arguments that several commands share |
//! | [`files`] | paths and names of files |
//! | [`output`] | stdout and stderr: tables, JSON, colour, numbers |
//! | [`progress`] | bars |
//! | [`signals`] | Ctrl-C, SIGTERM and SIGHUP |
//! | [`failure`] | why a command fails, and its exit code |
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
mod progress;
mod signals;

use std::process::ExitCode;

use clap::CommandFactory;

fn main() -> ExitCode {
    let early = cli::Early::of(std::env::args_os());
    let cli = match cli::parse(&early) {
        Ok(cli) => cli,
        Err(error) => return cli::print(&error, &early).into(),
    };
    files::limit::raise();
    let mut output = output::Output::new(cli.global.json, cli.global.color);
    let result = commands::run(cli.command, cli::Cli::command, &mut output);
    output.conclude(result).into()
}
