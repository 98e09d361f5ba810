//! `zt merge`: several files, or the shards of a set, into one file.

use clap::Args;

use super::convert;
use crate::failure::{Exit, Failure};
use crate::output::Output;

#[derive(Debug, Args)]
// `convert` has the group.
#[group(skip)]
#[command(after_help = EXAMPLES, override_usage = "zt merge [OPTIONS] <IN>... <OUT>")]
pub(crate) struct Arguments {
    #[command(flatten)]
    convert: convert::Arguments,
}

const EXAMPLES: &str = "\
Examples:
  zt merge model.safetensors.index.json model.safetensors
  zt merge pytorch_model.bin.index.json model.zt --zstd
  zt merge model-0000*-of-00003.safetensors model.safetensors
  zt merge encoder.zt decoder.npz model.zt

`zt convert` with several inputs does the same.";

/// Runs `zt convert`, which takes several inputs.
pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    convert::run(&arguments.convert, output)
}
