//! `zt convert`: write the objects of any files to one file of any kind. `zt merge` is the same with
//! several inputs.

use std::path::PathBuf;

use clap::Args;
use zt_convert::join_slices;
use zt_model::Lora;

use crate::args::convert::DuplicateArgs;
use crate::args::input::similar;
use crate::commands::converted::{Files, number};
use crate::failure::{Exit, Failure};
use crate::files::kinds;
use crate::files::remote::expect_local;
use crate::output::Output;

/// Convert files to another kind, or change compression, digests or types
///
/// Writes all objects and attributes of the inputs to OUT. Several inputs are merged. An object that
/// the kind of OUT cannot represent is an error, and so is a duplicate name. Memory use does not grow
/// with the size of the tensors. OUT appears complete or not at all. Warnings about the inputs are
/// repeated.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "zt convert [OPTIONS] <IN>... <OUT>")]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    duplicates: DuplicateArgs,
    /// Add the weights of a LoRA adapter to the only input: the file or the folder that peft saved
    #[arg(long, value_name = "ADAPTER")]
    lora: Option<PathBuf>,
    /// Factor of the adapter's weights, in place of the one in its adapter_config.json
    #[arg(hide_short_help = true, long, value_name = "S", requires = "lora", value_parser = number, allow_negative_numbers = true)]
    scale: Option<f64>,
}

const EXAMPLES: &str = "\
Examples:
  zt convert model.safetensors model.zt
  zt convert model.safetensors.index.json model.zt --zstd=9 --digest sha256
  zt convert model.safetensors model.zt --zstd=auto
  zt convert model.safetensors model.zt --planes
  zt convert model.zt half.zt --dtype bf16
  zt convert sparse.zt dense.safetensors --dense
  zt convert encoder.zt decoder.zt model.zt
  zt convert model.safetensors s3://bucket/model.zt
  zt convert model.zt - --to safetensors | ssh host 'cat > model.safetensors'";

pub(crate) const EXAMPLES_OF_MERGE: &str = "\
Examples:
  zt merge model.safetensors.index.json model.safetensors
  zt merge pytorch_model.bin.index.json model.zt --zstd
  zt merge model-0000*-of-00003.safetensors model.safetensors
  zt merge encoder.zt decoder.npz model.zt
  zt merge base.safetensors tuned.safetensors model.zt --on-duplicate last
  zt merge base.safetensors tuned.safetensors --lora adapter/
  zt merge base.safetensors head.safetensors model.zt --exclude '2:pooler.*' --rename '2:s/^/head./'

In --include, --exclude and --rename, a number and a colon make a pattern or a rule one of a single
input, counted from 1.

`zt convert` with several inputs does the same.";

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let policy = arguments.duplicates.policy();
    let mut conversion = arguments.files.open(policy, output)?;
    if let Some(adapter) = &arguments.lora {
        let joined = join_slices(&conversion.inputs)?;
        let [base] = &joined[..] else {
            return Err(Failure::misuse(
                "--lora is for one input: merge several inputs first, and open a set by its index",
            ));
        };
        expect_local(adapter, "an adapter must be a file or a folder of this machine")?;
        let lora = Lora::open(adapter, kinds::table());
        let lora = lora.map_err(|error| Failure::Refused(similar(adapter, error)))?;
        let merged = lora.scale(arguments.scale).merge(base, &conversion.options.before_cast())?;
        conversion.inputs = vec![merged];
    }
    conversion.write(output)
}
