//! The program `zt`: lists, verifies, hashes, shows, converts, extracts and edits tensor files.
//!
//! ```text
//! zt-container <- zt-manifest <- zt-formats <- zt <- zt-convert <- zt-cli
//!                                                                  ^ here
//!
//!   args      what may be asked          commands/*  one file per command: ask the library, print
//!   open      a path becomes a File      json table print stats size npy  how an answer looks
//!   output    stdout, stderr, colour     exit        what went wrong becomes a line and a code
//!   edit      a `.zt` that is changed    storing taking  arguments of those that write
//!   progress  bars, Ctrl-C and SIGTERM
//! ```
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
mod commands;
mod edit;
mod exit;
mod file_name;
mod folder;
mod glob;
mod json;
mod json_value;
mod npy;
mod open;
mod output;
mod print;
mod progress;
mod size;
mod stats;
mod storing;
mod table;
mod taking;
mod text;

use std::process::ExitCode;

fn main() -> ExitCode {
    let early = args::Early::of(std::env::args_os());
    let cli = match args::parse(&early) {
        Ok(cli) => cli,
        Err(told) => return args::tell(&told, &early).into(),
    };
    let mut output = output::Output::new(cli.global.json, cli.global.color);
    let result = commands::run(cli.command, &mut output);
    exit::conclude(result, &mut output).into()
}
