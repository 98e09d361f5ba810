//! `zt quantize`: floating-point tensors as `quantized_group`, or in blocks of ggml.

use std::path::PathBuf;
use std::slice;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use zt::{Tensor, codes};
use zt_convert::{GGUF, OnDuplicate, ZT};
use zt_model::{Quantize, QuantizedObject};

use crate::commands::converted::OutArgs;
use crate::failure::{Exit, Failure};
use crate::files::path::is_stdout;
use crate::output::Output;
use crate::output::json::{object, path_text};
use crate::output::table::Table;
use crate::output::text::{cell, count, shape};
use crate::output::value::Float;

/// Quantize the floating-point tensors of a file
///
/// Dense f64, f32, f16 and bf16 tensors of two or more dimensions become `quantized_group`: each
/// group of values has a scale, and a zero-point unless --signed is given. With --type they become
/// blocks of ggml, bit for bit as gguf-py makes them, if their rows are whole blocks of 32 values.
/// Every other object is kept as it is stored. Readers get the values back as f32, with the errors
/// that this command prints.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("include", |arg| arg.help(
        "Quantize only objects whose name matches, of any number of dimensions: `*` is any text, `?` \
        one character, `[a-z]` a set; may be given several times"
    )),
    mut_arg("exclude", |arg| arg.help(
        "Keep objects whose name matches as they are; may be given several times"
    )),
)]
pub(crate) struct Arguments {
    /// A file of any kind, or the index or the folder of a sharded set; `-` is stdin
    #[arg(value_name = "IN")]
    file: PathBuf,
    /// The .zt file to write; with --type, a .zt or a .gguf; `-` is stdout
    #[arg(required_unless_present = "named")]
    out: Option<PathBuf>,
    /// OUT, in the place of the second file
    #[arg(short = 'o', long = "out", alias = "output", value_name = "OUT", conflicts_with = "out")]
    named: Option<PathBuf>,
    /// Write blocks of ggml of this type
    #[arg(
        long,
        value_name = "TYPE",
        value_parser = block_types(),
        ignore_case = true,
        conflicts_with_all = ["bits", "group_size", "signed"]
    )]
    r#type: Option<String>,
    /// Bits of a quantized value: 1 to 16
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    bits: u32,
    /// Consecutive values that share a scale
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    group_size: u64,
    /// Use signed values without zero-points: zero stays zero
    #[arg(long)]
    signed: bool,
    #[command(flatten)]
    args: OutArgs,
}

/// The types of blocks that are made. K-quants are understood, to say that they are not.
fn block_types() -> impl TypedValueParser<Value = String> {
    const K_QUANTS: [&str; 14] = [
        "q2_k", "q2_k_s", "q3_k", "q3_k_s", "q3_k_m", "q3_k_l", "q4_k", "q4_k_s", "q4_k_m", "q5_k",
        "q5_k_s", "q5_k_m", "q6_k", "q8_k",
    ];
    let hidden = K_QUANTS.map(|name| PossibleValue::new(name).hide(true));
    let made = Quantize::block_types().map(PossibleValue::new);
    PossibleValuesParser::new(made.chain(hidden)).map(|name| name.to_ascii_lowercase())
}

const EXAMPLES: &str = "\
Examples:
  zt quantize model.safetensors model-4bit.zt
  zt quantize model.zt model-8bit.zt --bits 8 --group-size 64 --exclude 'lm_head.*'
  zt quantize model.zt small.zt --include '*.mlp.*' --signed
  zt quantize model.safetensors model.gguf --type q8_0
  zt quantize hf://openai-community/gpt2/model.safetensors s3://bucket/gpt2-4bit.zt

OF STD is the root mean square of the errors as a share of the deviation of the values.

Keys of --json: those of `zt convert`, where `bytes` is of all values before, and `file`, `bits`,
`group_size`, `signed` (these three are null with --type), `type` (of the blocks, or null),
`quantized` (each with `name`, `shape`, `type`, `max_error` and `mean_error`, which are absolute,
and `error_of_std`), `kept` (names).";

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let names = arguments.args.convert.input.select.take_patterns();
    names.expect_few()?;
    let Some(out) = arguments.out.as_ref().or(arguments.named.as_ref()) else {
        return Err(Failure::misuse("expected OUT"));
    };
    let Arguments { file, r#type, bits, group_size, signed, args, .. } = &*arguments;
    let quantize = match r#type {
        Some(name) => Quantize::blocks(name)?,
        None => Quantize::groups(*bits, *group_size, *signed)?,
    };
    let mut conversion = args.open(slice::from_ref(file), out, OnDuplicate::Error, output)?;
    let target = conversion.options.target;
    if target != ZT && (target != GGUF || r#type.is_none()) {
        let out = out.display();
        return Err(Failure::misuse(format!(
            "{out}: quantized objects are written to .zt files, and with --type to .gguf files"
        )));
    }
    let takes = |tensor: &Tensor<'_>| {
        names.takes(tensor.name()) && (names.has_include() || tensor.shape().len() >= 2)
    };
    // One path is one input.
    let input = conversion.inputs.swap_remove(0);
    let quantized = quantize.of(&input, takes)?;
    conversion.inputs.push(quantized.input().clone());
    let is_of_value = |it: &zt::Error| it.code() == codes::MISUSE && it.object().is_some();
    let mut written = conversion.convert(output).inspect_err(|failure| {
        if matches!(failure, Failure::Error(error) if is_of_value(error)) {
            output.hint("--exclude keeps an object as it is");
        }
    })?;
    written.summary.bytes = input.file().decoded_len();
    let (objects, kept) = (quantized.objects(), quantized.kept());
    let is_grouped = r#type.is_none();
    let document = object! {
        file: path_text(file),
        bits: is_grouped.then_some(bits),
        group_size: is_grouped.then_some(group_size),
        signed: is_grouped.then_some(signed),
        r#type: r#type,
        quantized: objects.iter().map(body).collect::<Vec<_>>(),
        kept: kept,
    };
    if !output.json && !is_stdout(out) {
        output.line(&table(&objects).render(output.colored()))?;
    }
    let quantized = count(objects.len() as u64, "object", "objects");
    let what = format!("{quantized} quantized, {} kept;", kept.len());
    conversion.answer(&written, &what, document, output)
}

fn body(object: &QuantizedObject) -> impl Serialize {
    object! {
        name: &object.name,
        shape: &object.shape,
        r#type: object.dtype.as_str(),
        max_error: Float(object.max_error),
        mean_error: Float(object.mean_error),
        error_of_std: object.error_of_std,
    }
}

fn table(objects: &[QuantizedObject]) -> Table {
    let mut table = Table::new(&["NAME", "TYPE", "SHAPE", ">MAX ERROR", ">MEAN ERROR", ">OF STD"]);
    for object in objects {
        let share = object.error_of_std;
        table.row([
            cell(&object.name).into_owned(),
            object.dtype.as_str().to_owned(),
            shape(&object.shape),
            format!("{:.3e}", object.max_error),
            format!("{:.3e}", object.mean_error),
            share.map_or("-".to_owned(), |share| format!("{:.3} %", 100.0 * share)),
        ]);
    }
    table
}
