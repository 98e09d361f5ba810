//! `zt patch`: make a file of its base and deltas.

use std::path::PathBuf;

use clap::Args;
use zt_convert::{OnDuplicate, patch};

use crate::commands::converted::OutArgs;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::progress::Progress;

/// Apply deltas of `zt delta` to their base, and write the result
///
/// The base and the result are checked by their content identities before anything is written. The
/// base may be of another kind than the file that the delta was made from, and compressed in another
/// way, but its tensors must be the same. NEW appears complete or not at all.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The base, and its deltas in the order in which they were made
    #[arg(required = true, num_args = 2.., value_names = ["BASE", "DELTA"])]
    files: Vec<PathBuf>,
    /// The file to write; `-` is stdout
    #[arg(short, long, value_name = "NEW")]
    out: PathBuf,
    #[command(flatten)]
    args: OutArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt patch base.safetensors step.delta.zt -o new.safetensors
  zt patch base.zt monday.zt tuesday.zt wednesday.zt -o new.zt --zstd=auto";

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { files, out, args } = arguments;
    if !args.convert.input.select.is_empty() {
        return Err(Failure::misuse(
            "a delta applies to a whole file: `zt convert` writes a file with some of the objects",
        ));
    }
    args.write(files, out, OnDuplicate::Error, output, |inputs, _| {
        let Some((base, deltas)) = inputs.split_first() else {
            return Ok(inputs);
        };
        let progress = Progress::new(Some(base.file().decoded_len().saturating_mul(2)));
        let report = |bytes| progress.report(bytes);
        Ok(vec![patch(base, deltas, Some(zt::Progress::new(&report)))?])
    })
}
