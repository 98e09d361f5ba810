//! `zt index`: write the index of shards that have none.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Exit, Failure};
use crate::files::kinds;
use crate::files::remote::expect_local;
use crate::files::stdin::refuse_stdin;
use crate::output::Output;
use crate::output::json::{object, path_text, paths};
use crate::output::size::human;
use crate::output::text::{self, count};

/// Write the index of shards that have none
///
/// Reads the headers of the shards in FOLDER, such as model-00001-of-00002.safetensors, and writes
/// model.safetensors.index.json, which names the shard of each tensor. All shards must be there. A
/// tensor in two shards is an error.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The folder of the shards
    folder: PathBuf,
    /// Replace the index if it exists
    #[arg(short, long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  zt index models/llama
  zt verify --headers models/llama    find shards that do not fit together first

Keys of --json: `folder`, `index`, `shards`, `tensors`, `total_size`, `left_out` (files\nof weights whose names have no number of a shard).";

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { folder, force } = arguments;
    refuse_stdin(folder)?;
    expect_local(folder, "an index is written into a folder of this machine")?;
    let written = zt_model::write_index(kinds::table(), folder, *force);
    let written = written.inspect_err(|error| {
        if error.code() == "overwrite" {
            output.hint("--force replaces it");
        }
    })?;
    if output.json {
        output.document(&object! {
            folder: path_text(folder),
            index: path_text(&written.path),
            shards: written.shards,
            tensors: written.tensors,
            total_size: written.total_size,
            left_out: paths(&written.left_out),
        })?;
    } else {
        let path = text::path(&written.path);
        let tensors = count(written.tensors, "tensor", "tensors");
        let shards = count(written.shards, "shard", "shards");
        let bytes = human(written.total_size);
        output.line(&format!("{path}: {tensors} in {shards}, {bytes} of values"))?;
    }
    for path in &written.left_out {
        let path = text::path(path);
        output
            .note(&format!("{path}: not in the index, because its name has no number of a shard"));
    }
    Ok(Exit::Ok)
}
