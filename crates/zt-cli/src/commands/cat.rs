//! `zt cat`: the bytes of one object on stdout.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use zt::formats::Slice;

use crate::args::complete;
use crate::args::hints;
use crate::args::input::InputArgs;
use crate::failure::{Exit, Failure};
use crate::files::npy::{PIECE, Value, write_npy};
use crate::files::stdout::{expect_free, to_stdout};
use crate::output::Output;

/// Write the bytes of one object to stdout
///
/// The bytes are the values in row-major order, decoded and little-endian, without a header. Sparse
/// and quantized objects are written as their dense values. Memory use does not grow with the size
/// of the object. After an error, stdout has a part of the bytes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of any kind, or the index or the folder of a sharded set; `-` is stdin
    file: PathBuf,
    /// Name of the object
    #[arg(add = complete::names())]
    name: String,
    /// Write an .npy file of NumPy; bf16, FP8, FP6 and FP4 become f32
    #[arg(long)]
    npy: bool,
    /// Write the stored elements of this component
    #[arg(long, value_name = "ROLE", conflicts_with_all = ["npy", "slice"])]
    component: Option<String>,
    /// Part of the object, as NumPy slices: `0:4,:`, `-1`, `::2,...`
    #[arg(long, value_name = "SLICE", allow_hyphen_values = true)]
    slice: Option<String>,
    /// Write to a terminal too
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt cat model.zt embed.weight > embed.bin
  zt cat model.zt embed.weight --slice 0:4 | xxd
  zt cat model.safetensors bias --npy > bias.npy

--json is refused, because stdout has the bytes.";

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    expect_free(output, arguments.force)?;
    let file = arguments.input.open(&arguments.file);
    let file = file.inspect_err(|_| {
        hints::hint_at_order(&arguments.file, &arguments.name, output);
    })?;
    output.truncated(&arguments.file, &file);
    let tensor = file.tensor(&arguments.name);
    let tensor = hints::hinted(tensor, &arguments.file, &file, None, output)?;
    let slices = arguments.slice.as_deref().map(Slice::parse_list);
    let slices = slices.transpose().map_err(zt::Error::from)?;
    let (slices, registry) = (slices.as_deref(), file.registry());
    to_stdout(|stdout| {
        if let Some(role) = &arguments.component {
            let mut reader = tensor.reader(role)?;
            return reader.for_each_piece(PIECE, |bytes| Ok(stdout.write_all(bytes)?));
        }
        let value = Value::of(&tensor, slices, registry)?;
        if arguments.npy {
            return write_npy(&value, None, || Ok(stdout), |_| Ok(())).map(drop);
        }
        value.for_each_piece(|elements| Ok(stdout.write_all(&elements.bytes)?))
    })
    .map_err(|failure| failure.with_path(&arguments.file))?;
    Ok(Exit::Ok)
}
