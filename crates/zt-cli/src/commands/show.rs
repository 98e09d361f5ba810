//! `zt show`: print the values of one object.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Serialize, Serializer};
use zt::container::CHUNK;
use zt::formats::{Places, Scalar, Scalars, Slice, View};
use zt::{DType, Dense, Elements, Registry, Tensor, codes};

use crate::args::complete;
use crate::args::hints;
use crate::args::input::InputArgs;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::array;
use crate::output::size::human;
use crate::output::stats::Shown;
use crate::output::text::{self, cell, shape as shape_text};
use crate::output::value::Float;

/// Show the values of an object
///
/// Values are decoded to numbers. Sparse and quantized objects are shown as dense arrays. An array
/// of more than 1000 elements shows its corners: only they are read, and verified by digests of chunks
/// if there are any. JSON has all values.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of any kind, or the index or the folder of a sharded set; `-` is stdin
    pub(crate) file: PathBuf,
    /// Name of the object
    #[arg(add = complete::names())]
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

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// The component of a dense object.
const DATA: &str = "data";

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
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    chunk_digests: BTreeMap<&'a str, &'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk_length: Option<u64>,
    values: Values<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Shown>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let file = arguments.input.open(&arguments.file);
    let file = file.inspect_err(|_| {
        hints::hint_at_order(&arguments.file, &arguments.name, output);
    })?;
    output.truncated(&arguments.file, &file);
    let tensor = file.tensor(&arguments.name);
    let tensor = hints::hinted(tensor, &arguments.file, &file, None, output)?;
    let shown = show(arguments, &tensor, file.registry(), output);
    shown.inspect_err(|failure| {
        let Failure::Error(error) = failure else {
            return;
        };
        let is_unknown = file.registry().format(tensor.format()).is_none();
        match (error.code(), tensor.components().next()) {
            (codes::ALLOCATION, _) => output.hint("--slice shows a part, which needs less memory"),
            (codes::UNSUPPORTED, Some((role, _))) if is_unknown => {
                let (path, name) = (text::path(&arguments.file), cell(&arguments.name));
                let call = format!("zt cat {path} {name} --component {}", cell(role));
                output.hint(format!("{call} writes the bytes of a component"));
            }
            _ => {}
        }
    })
}

fn show(
    arguments: &Arguments,
    tensor: &Tensor<'_>,
    registry: &Registry,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let is_incomplete = |fault: &&zt::Error| fault.code() == codes::MISSING_COMPONENT;
    let fault = tensor.fault().filter(is_incomplete);
    if let Some(fault) = fault.filter(|_| arguments.component.is_none()) {
        return Err(fault.clone().with_path(&arguments.file).into());
    }
    let array = Array::of(arguments, tensor, registry, output)?;
    let shape = array.shown_shape();
    let chunk_digests = array.chunk_digests();
    if output.json {
        let dense = array.whole()?;
        let values = array.values(&dense)?;
        let stats = arguments.stats.then(|| array.stats_of(&dense)).transpose()?;
        output.document(&Document {
            name: &arguments.name,
            component: arguments.component.as_deref(),
            shape: &shape,
            r#type: array.type_of(dense.elements()),
            chunk_length: (!chunk_digests.is_empty()).then_some(CHUNK),
            chunk_digests,
            values: Values(values),
            stats,
        })?;
        return Ok(Exit::Ok);
    }
    let name = cell(&arguments.name);
    let what = match &arguments.component {
        Some(role) => format!("{name}/{}", cell(role)),
        None => format!("{name}: {}", cell(tensor.format())),
    };
    let parts = array::shown(&shape);
    let whole: Vec<Range<u64>> = shape.iter().map(|dimension| 0..*dimension).collect();
    let is_whole = parts == [whole];
    let mut cells = BTreeMap::new();
    let mut first = None;
    for part in parts {
        let dense = if is_whole { array.whole()? } else { array.part(&part)? };
        let texts = array.values(&dense)?.map(text);
        cells.extend(array::indices(&part).into_iter().zip(texts));
        first.get_or_insert(dense);
    }
    let Some(dense) = first else {
        return Ok(Exit::Ok); // An array has a part.
    };
    let cells: Vec<String> = cells.into_values().collect();
    let type_name = cell(array.type_of(dense.elements()));
    output.line(&format!("{what} {type_name} {}", shape_text(&shape)))?;
    for (role, algorithm) in chunk_digests {
        let (role, chunk) = (cell(role), human(CHUNK));
        output.line(&format!("{role} has a {algorithm} of each {chunk}"))?;
    }
    output.line(&array::array(&shape, &cells))?;
    if arguments.stats {
        let stats =
            if is_whole { array.stats_of(&dense)? } else { array.stats(dense.elements())? };
        output.line(&stats.render())?;
    }
    Ok(Exit::Ok)
}

/// The value of an object, or the stored elements of a component, or a part of either.
struct Array<'a> {
    tensor: &'a Tensor<'a>,
    registry: &'a Registry,
    path: &'a Path,
    /// The component whose stored elements are the array: an FP8 byte is a number from 0 to 255.
    role: Option<&'a str>,
    /// The type of the elements, if it is unknown what they mean.
    unknown: Option<&'a str>,
    slices: Option<Vec<Slice>>,
    /// The places that the slices take.
    places: Vec<Places>,
}

impl<'a> Array<'a> {
    fn of(
        arguments: &'a Arguments,
        tensor: &'a Tensor<'a>,
        registry: &'a Registry,
        output: &Output,
    ) -> Result<Self, Failure> {
        let slices = arguments.slice.as_deref().map(Slice::parse_list);
        let slices = slices.transpose().map_err(zt::Error::from)?;
        let mut array = Array {
            tensor,
            registry,
            path: &arguments.file,
            role: arguments.component.as_deref(),
            unknown: None,
            slices,
            places: Vec::new(),
        };
        if array.role.is_none() && array.slices.is_none() && tensor.format() == Dense::FORMAT {
            let data = tensor.component(DATA)?;
            let logical_type =
                data.dtype.and_then(|dtype| dtype.logical_type(data.logical_type.as_deref()));
            array.unknown = logical_type.filter(|name| array.registry.logical_type(name).is_none());
        }
        if let Some(name) = array.unknown {
            // The number of stored elements per value is unknown too.
            array.role = Some(DATA);
            let (name, dtype) = (cell(name), array.dtype_of(DATA)?);
            output.note(&format!(
                "unknown type {name}: showing its stored {dtype} elements as a flat array"
            ));
        }
        let flat;
        let shape = match array.role {
            Some(role) => {
                let width = array.dtype_of(role)?.byte_len() as u64;
                flat = [tensor.decoded_len(role)?.checked_div(width).unwrap_or(0)];
                &flat
            }
            None => tensor.shape(),
        };
        let places = Places::resolve(array.slices.as_deref().unwrap_or_default(), shape);
        array.places = places.map_err(|error| array.blame(error))?;
        Ok(array)
    }

    fn shown_shape(&self) -> Vec<u64> {
        let kept = self.places.iter().filter(|places| !places.is_index());
        kept.map(Places::count).collect()
    }

    /// The algorithm of the chunk digests of each component that has any.
    fn chunk_digests(&self) -> BTreeMap<&'a str, &'static str> {
        let components = &self.tensor.object().components;
        let shown =
            components.iter().filter(|(role, _)| self.role.is_none_or(|shown| *role == shown));
        let algorithms = shown.filter_map(|(role, component)| {
            let chunks = component.blob.chunks.as_deref()?;
            Some((&**role, chunks.digest.algorithm()?.as_str()))
        });
        algorithms.collect()
    }

    fn dtype_of(&self, role: &str) -> zt::Result<DType> {
        Ok(self.tensor.component(role)?.dtype.unwrap_or(DType::U8))
    }

    /// The name of the type of these elements, which are of this array.
    fn type_of<'e>(&self, elements: &'e Elements<'_>) -> &'e str
    where
        'a: 'e,
    {
        let known = elements.logical_type().unwrap_or(elements.dtype.as_str());
        self.unknown.unwrap_or(known)
    }

    fn values<'d>(&self, dense: &'d Dense<'_>) -> zt::Result<Scalars<'d>> {
        let values = dense.elements().scalars(self.registry);
        values.map_err(|error| self.blame(error))
    }

    fn blame(&self, error: impl Into<zt::Error>) -> zt::Error {
        let error = error.into().with_object(self.tensor.name());
        error.with_path(self.path)
    }

    fn whole(&self) -> zt::Result<Dense<'static>> {
        match &self.slices {
            Some(slices) => self.slice(slices),
            None if self.role.is_some() => self.slice(&[]),
            None => self.tensor.to_dense().map_err(|error| self.blame(error)),
        }
    }

    /// A part of the array, read without the rest.
    fn part(&self, part: &[Range<u64>]) -> zt::Result<Dense<'static>> {
        let mut part = part.iter();
        let slices = self.places.iter().map(|places| {
            let at = |place: u64| i64::try_from(place).ok();
            if places.is_index() {
                return Some(Slice::Index(at(places.start())?));
            }
            let range = part.next().filter(|range| !range.is_empty())?;
            let (first, last) = (places.get(range.start)?, places.get(range.end - 1)?);
            let (start, step) = (at(first)?, places.step());
            let stop = at(last)?.checked_add(step.signum())?;
            Some(Slice::Range {
                start: Some(start),
                // -1 would be the last place.
                stop: (stop >= 0).then_some(stop),
                step,
            })
        });
        // An array without elements, or one that is too large for any memory, is no part.
        let Some(slices) = slices.collect::<Option<Vec<Slice>>>() else {
            return self.whole();
        };
        self.slice(&slices)
    }

    fn slice(&self, slices: &[Slice]) -> zt::Result<Dense<'static>> {
        let part = match self.role {
            Some(role) => self.tensor.slice_component(role, slices),
            None => self.tensor.slice(slices),
        };
        part.map_err(|error| self.blame(error))
    }

    /// Statistics of the whole array, whose elements are of the type of `like`.
    fn stats(&self, like: &Elements<'_>) -> zt::Result<Shown> {
        if self.slices.is_some() {
            return self.stats_of(&self.whole()?);
        }
        let stats = zt::stats::of_pieces(self.registry, |take| {
            let take = |bytes: &[u8]| take(&like.of_same_type(bytes));
            match self.role {
                Some(role) => self.tensor.reader(role)?.for_each_piece(PIECE, take),
                None => self.tensor.dense_reader()?.for_each_piece(PIECE, take),
            }
        });
        stats.map(Shown::new).map_err(|error| self.blame(error))
    }

    fn stats_of(&self, dense: &Dense<'_>) -> zt::Result<Shown> {
        let stats = zt::stats::of_pieces(self.registry, |take| take(dense.elements()));
        stats.map(Shown::new).map_err(|error| self.blame(error))
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
