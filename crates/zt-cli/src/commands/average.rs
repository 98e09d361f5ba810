//! `zt average`: the mean of the tensors of several files.

use clap::Args;
use zt_convert::OnDuplicate;
use zt_model::average;

use crate::commands::converted::{Files, number};
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Average the tensors of several checkpoints
///
/// Writes the first input to OUT with the mean of all inputs in the place of each dense floating-point
/// tensor. All inputs must have the same names and shapes. Where integers differ, OUT has the first
/// input's, with a warning for each tensor. Everything else must be equal. A mean is computed as f64
/// and rounded once, to the type of the first input or to --dtype. Memory use does not grow with the
/// size of the tensors.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "zt average [OPTIONS] <IN>... <OUT>")]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: Files,
    /// Weights of the inputs, separated by commas; their sum divides the result [default: 1 each]
    #[arg(
        long,
        value_name = "W,...",
        value_delimiter = ',',
        value_parser = number,
        allow_negative_numbers = true
    )]
    weights: Vec<f64>,
}

const EXAMPLES: &str = "\
Examples:
  zt average step-1000.safetensors step-2000.safetensors mean.safetensors
  zt average a.zt b.zt c.zt mean.zt --weights 1,2,1 --exclude 'optimizer.*'

The keys of --json are the same as in `zt convert`.";

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { files, weights } = arguments;
    let mut conversion = files.open(OnDuplicate::Error, output)?;
    conversion.inputs =
        vec![average(&conversion.inputs, weights, &conversion.options.before_cast())?];
    conversion.write(output)
}
