//! `zt show`: print the values of one object.

use std::path::PathBuf;

use clap::Args;
use serde::{Serialize, Serializer};
use zt::formats::{Scalar, Scalars, Slice};
use zt::{Dense, Elements, File, Tensor};

use crate::args::input::InputArgs;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::array;
use crate::output::stats::Stats;
use crate::output::text::{cell, shape};
use crate::output::value::Float;

/// Show the values of an object
///
/// Values are decoded to numbers. Sparse and quantized objects are shown as dense arrays. An array
/// of more than 1000 elements shows its corners; JSON has all values.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of any kind, or the index or the folder of a sharded set; `-` is stdin
    pub(super) file: PathBuf,
    /// Name of the object
    name: String,
    /// Show the stored elements of this component, as a flat array
    #[arg(long, value_name = "ROLE")]
    component: Option<String>,
    /// Part of the object, as NumPy slices: `0:4,:`, `-1`, `::2,...`
    #[arg(long, value_name = "SLICE", allow_hyphen_values = true)]
    slice: Option<String>,
    /// Also show minimum, maximum, mean, standard deviation, zeros, NaN, infinities and a histogram
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt show model.zt embed.weight
  zt show model.zt layers.0.q_proj.weight --slice 0:4,:8 --stats
  zt show model.zt graph --component indices
  zt show --json model.zt bias | jq '.values | max'";

#[derive(Serialize)]
struct Document<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<&'a str>,
    shape: &'a [u64],
    r#type: &'a str,
    values: Values<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let file = arguments.input.open(&arguments.file)?;
    let tensor = file.tensor(&arguments.name)?;
    let slices = arguments
        .slice
        .as_deref()
        .map(Slice::parse_list)
        .transpose();
    let slices = slices.map_err(zt::Error::from)?;
    let dense = match (&arguments.component, &slices) {
        (Some(role), Some(slices)) => {
            let flat = stored(&tensor, role)?;
            flat.slice(slices).map_err(|error| blame(&tensor, error))?
        }
        (Some(role), None) => stored(&tensor, role)?,
        (None, Some(slices)) => tensor.slice(slices)?,
        (None, None) => tensor.to_dense()?,
    };
    let shown = Shown::of(&dense, &tensor, &file, output)?;
    let stats = arguments.stats.then(|| Stats::of(&shown.values.0));
    if output.json {
        output.document(&Document {
            name: &arguments.name,
            component: arguments.component.as_deref(),
            shape: &shown.shape,
            r#type: shown.type_name,
            values: shown.values,
            stats,
        })?;
        return Ok(Exit::Ok);
    }
    let name = cell(&arguments.name);
    let what = match &arguments.component {
        Some(role) => format!("{name}/{}", cell(role)),
        None => format!("{name}: {}", cell(tensor.format())),
    };
    output.line(&format!(
        "{what} {} {}",
        cell(shown.type_name),
        shape(&shown.shape)
    ))?;
    output.line(&shown.text())?;
    if let Some(stats) = stats {
        output.line(&stats.render())?;
    }
    Ok(Exit::Ok)
}

/// The stored elements of a component: an FP8 byte is a number from 0 to 255.
fn stored(tensor: &Tensor<'_>, role: &str) -> Result<Dense<'static>, Failure> {
    let Elements { dtype, bytes, .. } = tensor.elements(role)?;
    let elements = Elements::new(dtype, bytes);
    let count = elements.element_count();
    let flat = Dense::from_elements([count], elements).and_then(Dense::into_owned);
    Ok(flat.map_err(|error| blame(tensor, error))?)
}

fn blame(tensor: &Tensor<'_>, error: impl Into<zt::Error>) -> zt::Error {
    error.into().with_object(tensor.name())
}

/// The array to show.
struct Shown<'a> {
    shape: Vec<u64>,
    type_name: &'a str,
    values: Values<'a>,
}

impl<'a> Shown<'a> {
    fn of(
        dense: &'a Dense<'_>,
        tensor: &Tensor<'_>,
        file: &File,
        output: &Output,
    ) -> Result<Self, Failure> {
        let elements = dense.elements();
        let values = elements.scalars(file.registry());
        let values = values.map_err(|error| blame(tensor, error))?;
        let logical_type = elements.logical_type();
        let mut shape = dense.shape().to_vec();
        if let Some(name) = logical_type
            && file.registry().logical_type(name).is_none()
        {
            // The number of stored elements per value is unknown too.
            shape = vec![values.len() as u64];
            let dtype = elements.dtype;
            let name = cell(name);
            output.note(&format!(
                "unknown type {name}: showing its stored {dtype} elements as a flat array"
            ));
        }
        let type_name = logical_type.unwrap_or(elements.dtype.as_str());
        Ok(Shown {
            shape,
            type_name,
            values: Values(values),
        })
    }

    fn text(&self) -> String {
        let place = |place: u64| usize::try_from(place).ok();
        let value = |at: u64| self.values.0.clone().nth(place(at)?);
        let cells = array::shown(&self.shape).into_iter();
        let cells: Vec<String> = cells
            .map(|at| value(at).map(text).unwrap_or_default())
            .collect();
        array::array(&self.shape, &cells)
    }
}

/// A value, as NumPy prints it.
fn text(value: Scalar) -> String {
    match value {
        Scalar::Bool(true) => "True".to_owned(),
        Scalar::Bool(false) => "False".to_owned(),
        value => value.to_string().replace("NaN", "nan"),
    }
}

/// All values in row-major order.
struct Values<'a>(Scalars<'a>);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone().map(Number))
    }
}

struct Number(Scalar);

impl Serialize for Number {
    /// Narrow floats are printed as f64, so that a reader gets the exact value in f64 and in f32.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Scalar::Int(value) => serializer.serialize_i64(value),
            Scalar::UInt(value) => serializer.serialize_u64(value),
            Scalar::Bool(value) => serializer.serialize_bool(value),
            Scalar::Complex64(value) => {
                [Float(value.re.into()), Float(value.im.into())].serialize(serializer)
            }
            Scalar::Complex128(value) => [Float(value.re), Float(value.im)].serialize(serializer),
            value => Float(value.as_f64().unwrap_or(f64::NAN)).serialize(serializer),
        }
    }
}
