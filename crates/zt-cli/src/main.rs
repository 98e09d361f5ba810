//! The program `zt`: lists, verifies, hashes, shows, converts, extracts and edits tensor files.
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
//! | [`cli`] | what may be asked, and how it is parsed |
//! | [`commands`] | one file per command: ask the library, print |
//! | [`args`] | groups of arguments that several commands share |
//! | [`files`] | the paths that are read and written |
//! | [`output`] | stdout and stderr: tables, JSON, colour, numbers |
//! | [`progress`] | bars, Ctrl-C and SIGTERM |
//! | [`failure`] | what went wrong, and its exit code |
//!
//! Every command works on every kind of file, because all of them open as a `zt::File`; those that
//! change a file in place work on `.zt`.
//!
//! ```text
//! $ zt ls model.zt
//! NAME          FORMAT  TYPE  SHAPE         SIZE  STORED  DIGEST
//! embed.weight  dense   bf16  32000×4096  250.0 MiB  78%  crc32c
//! ```
//!
//! Invariants: nothing here parses a tensor file; nothing but this crate prints; files are read by
//! position and never mapped; whatever the bytes of a file, the outcome is an error with a code and
//! never a panic.
#![forbid(unsafe_code)]

mod args;
mod cli;
mod commands;
mod failure;
mod files;
mod output;
mod progress;

use std::process::ExitCode;

use clap::CommandFactory;

fn main() -> ExitCode {
    let early = cli::Early::of(std::env::args_os());
    let cli = match cli::parse(&early) {
        Ok(cli) => cli,
        Err(told) => return cli::tell(&told, &early).into(),
    };
    let mut output = output::Output::new(cli.global.json, cli.global.color);
    let result = commands::run(cli.command, cli::Cli::command, &mut output);
    output.conclude(result).into()
}
