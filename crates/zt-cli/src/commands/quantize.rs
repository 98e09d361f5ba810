//! `zt quantize`: floating-point tensors as `quantized_group`, or in blocks of ggml.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use zt::foreign::{Kind, ReadAhead};
use zt::formats::{Packing, Quantization, Signature};
use zt::ggml::BlockType;
use zt::stats::Stats;
use zt::{
    DType, Dense, Elements, Error, ErrorKind, FileSource, OpenOptions, Planes, QuantizedGroup,
    Registry, Span, Tensor, View, WriteOptions, Writer, codes,
};
use zt_convert::{ConvertOptions, GGUF, Input, Kinds, ZT, is_same_file};

use crate::args::glob;
use crate::args::input::{InputArgs, Truncated};
use crate::failure::{Exit, Failure};
use crate::files::npy::{PIECE, Value};
use crate::files::path::is_stdout;
use crate::files::remote::{RemoteArgs, expect_local};
use crate::output::Output;
use crate::output::json::{object, path_text, warnings};
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::table::Table;
use crate::output::text::{self, cell, count, shape};
use crate::output::value::Float;

/// Quantize the floating-point tensors of a file
///
/// Dense f64, f32, f16 and bf16 tensors of two or more dimensions become `quantized_group`: each
/// group of values has a scale, and a zero-point unless --signed is given. With --type they become
/// blocks of ggml, bit for bit as gguf-py makes them, if their rows are whole blocks of 32 values.
/// Every other object is kept as it is stored. Readers get the values back as f32, with the errors
/// that this command prints.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of any kind, or the index or the folder of a sharded set; `-` is stdin
    #[arg(value_name = "IN")]
    file: PathBuf,
    /// The .zt file to write; with --type, a .zt or a .gguf
    out: PathBuf,
    /// Write blocks of ggml of this type
    #[arg(long, value_name = "TYPE", value_parser = block_type(), conflicts_with_all = ["bits", "group_size", "signed"])]
    r#type: Option<&'static BlockType>,
    /// Bits of a quantized value: 1 to 16
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    bits: u32,
    /// Consecutive values that share a scale
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    group_size: u64,
    /// Use signed values without zero-points: zero stays zero
    #[arg(long)]
    signed: bool,
    /// Quantize only objects whose name matches, of any number of dimensions: `*` is any text, `?`
    /// one character, `[a-z]` a set; may be given several times
    #[arg(long, value_name = "PATTERN", value_parser = glob::pattern)]
    include: Vec<String>,
    /// Keep objects whose name matches as they are; may be given several times
    #[arg(long, value_name = "PATTERN", value_parser = glob::pattern)]
    exclude: Vec<String>,
    /// Replace OUT if it exists; the input is never replaced
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt quantize model.safetensors model-4bit.zt
  zt quantize model.zt model-8bit.zt --bits 8 --group-size 64 --exclude 'lm_head.*'
  zt quantize model.zt small.zt --include '*.mlp.*' --signed
  zt quantize model.safetensors model.gguf --type q8_0

OF STD is the root mean square of the errors as a share of the deviation of the values.

Keys of --json: `file`, `output`, `bits`, `group_size`, `signed` (these three are null with --type),
`type` (of the blocks, or null), `quantized` (each with `name`, `shape`, `type`, `max_error` and
`mean_error`, which are absolute, and `error_of_std`), `kept` (names), `bytes` (of all values
before), `file_size`, `warnings`.";

/// A quantized object.
#[derive(Serialize)]
struct Quantized<'a> {
    name: &'a str,
    shape: &'a [u64],
    r#type: &'static str,
    max_error: Float,
    mean_error: Float,
    error_of_std: Option<f64>,
}

/// What values become.
#[derive(Clone, Copy)]
enum Target {
    Groups(Quantization),
    Blocks(&'static BlockType),
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let target = match arguments.r#type {
        Some(block_type) => Target::Blocks(block_type),
        None => Target::Groups(arguments.quantization()?),
    };
    let input = InputArgs::from(arguments.remote.clone());
    let input = input.open_input(&arguments.file, Truncated::Refused)?;
    let kind = arguments.kind_of_output(&input)?;
    let file = input.file();
    file.check_overlap()?;
    let tensors = file.entries().into_iter().map(|entry| entry.tensor());
    let tensors = tensors.collect::<zt::Result<Vec<_>>>();
    let tensors = tensors.map_err(|error| error.with_path(&arguments.file))?;
    if !tensors.iter().any(|tensor| arguments.takes(tensor, file.registry())) {
        let message = if arguments.include.is_empty() {
            "no float tensor with two dimensions or more can be quantized; --include takes others"
        } else {
            "no float tensor that matches --include can be quantized"
        };
        let error = Error::new(ErrorKind::Misuse, codes::NOT_FOUND, message);
        return Err(error.with_path(&arguments.file).into());
    }

    let bytes = file.decoded_len();
    let of_out = |error: Error| error.with_path(&arguments.out);
    let options = WriteOptions::new().empty_names(true);
    // A file of another kind is written from a `.zt` file without a name.
    let nameless = (kind != ZT).then(|| nameless(&arguments.out)).transpose()?;
    let writer = match &nameless {
        Some(file) => options.to_writer(file.try_clone().map_err(|error| of_out(error.into()))?),
        None if arguments.force => options.create(&arguments.out),
        None => options.create_new(&arguments.out),
    };
    let (mut quantized, mut kept) = (Vec::new(), Vec::new());
    let mut job = Job {
        writer: writer.map_err(of_out)?,
        target,
        registry: file.registry(),
        progress: Progress::new(Some(bytes)),
        stored: HashMap::new(),
        errors: HashMap::new(),
    };
    if let Some(attributes) = file.attributes().map_err(Failure::Refused)? {
        job.writer.set_attributes(attributes);
    }
    job.writer.set_extra(file.extra().map_err(Failure::Refused)?);
    let mut ahead = ReadAhead::new(tensors.iter().copied());
    for tensor in tensors {
        ahead.advance();
        if arguments.takes(&tensor, file.registry()) {
            let done = job.quantize(tensor);
            let done = done.map_err(|error| of_out(error.with_object(tensor.name())));
            quantized.push(done.map_err(Failure::from).inspect_err(|failure| {
                if let Failure::Error(error) = failure
                    && error.code() == codes::MISUSE
                {
                    output.hint("--exclude keeps an object as it is");
                }
            })?);
        } else {
            job.keep(tensor).map_err(of_out)?;
            kept.push(tensor.name());
        }
    }
    let Job { mut writer, progress, .. } = job;
    let checked = writer.check_copied();
    checked.map_err(|error| error.with_path(&arguments.file))?;
    writer.finish().map_err(of_out)?;
    let mut remarks = file.warnings();
    if let Some(file) = nameless {
        let source = FileSource::from_file(file).map_err(|error| of_out(error.into()))?;
        let input = Input::from(OpenOptions::new().open_source(source).map_err(of_out)?);
        let options = ConvertOptions::new(kind).overwrite(arguments.force);
        let converted = Kinds::builtin().convert_to_path(&[input], &arguments.out, &options);
        remarks.extend(converted?.warnings);
    }
    drop(progress);
    output.warnings(&remarks);

    let metadata = arguments.out.metadata();
    let file_size = metadata.map_err(|error| of_out(error.into()))?.len();
    if output.json {
        let groups = match target {
            Target::Groups(quantization) => Some(quantization),
            Target::Blocks(_) => None,
        };
        output.document(&object! {
            file: path_text(&arguments.file),
            output: path_text(&arguments.out),
            bits: groups.map(|groups| groups.bits),
            group_size: groups.map(|groups| groups.group_size),
            signed: groups.map(|groups| groups.signed),
            r#type: arguments.r#type.map(lower),
            quantized: &quantized,
            kept: &kept,
            bytes,
            file_size,
            warnings: warnings(&remarks),
        })?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&["NAME", "TYPE", "SHAPE", ">MAX ERROR", ">MEAN ERROR", ">OF STD"]);
    for object in &quantized {
        table.row([
            cell(object.name).into_owned(),
            object.r#type.to_owned(),
            shape(object.shape),
            format!("{:.3e}", object.max_error.0),
            format!("{:.3e}", object.mean_error.0),
            object.error_of_std.map_or("-".to_owned(), |share| format!("{:.3} %", 100.0 * share)),
        ]);
    }
    output.line(&table.render(output.colored()))?;
    output.line(&format!(
        "{}: {} quantized, {} kept; {} of values in {}",
        text::path(&arguments.out),
        count(quantized.len() as u64, "object", "objects"),
        kept.len(),
        human(bytes),
        human(file_size)
    ))?;
    Ok(Exit::Ok)
}

impl Arguments {
    fn quantization(&self) -> Result<Quantization, Failure> {
        if self.signed && self.bits < 2 {
            return Err(Failure::misuse("--signed needs at least 2 bits"));
        }
        let packing = Packing { per_word: 32 / self.bits, dtype: DType::I32 };
        Ok(Quantization {
            signed: self.signed,
            ..Quantization::new(self.bits, self.group_size, packing)
        })
    }

    /// The kind of the file to write, which may be written.
    fn kind_of_output(&self, input: &Input) -> Result<Kind, Failure> {
        let out = &*self.out;
        expect_local(out, "quantized objects cannot be written to a store")?;
        let kind = Kinds::builtin().of_extension(out).unwrap_or(ZT);
        if is_stdout(out) || kind != ZT && (kind != GGUF || self.r#type.is_none()) {
            let out = out.display();
            return Err(Failure::misuse(format!(
                "{out}: quantized objects are written to .zt files, and with --type to .gguf files"
            )));
        }
        if input.paths().iter().any(|path| is_same_file(path, out)) {
            return Err(Failure::overwrite(out, "is also the input: choose another output"));
        }
        if !self.force && out.symlink_metadata().is_ok() {
            return Err(Failure::overwrite(out, "exists; --force replaces it"));
        }
        Ok(kind)
    }

    /// Whether the arguments choose the object.
    fn takes(&self, tensor: &Tensor<'_>, registry: &Registry) -> bool {
        let matches = |patterns: &[String]| glob::any_matches(patterns, tensor.name());
        let is_named =
            matches(&self.include) || self.include.is_empty() && tensor.shape().len() >= 2;
        let row_len = tensor.shape().last().copied().unwrap_or(1);
        let is_whole = |block_type: &BlockType| row_len.is_multiple_of(block_type.block_len());
        is_named
            && !matches(&self.exclude)
            && self.r#type.is_none_or(is_whole)
            && floating(tensor, registry).is_some()
    }
}

/// The dtype of a sound and plain array of real floating-point numbers that is not empty.
fn floating(tensor: &Tensor<'_>, registry: &Registry) -> Option<DType> {
    let is_array = [Dense::FORMAT, Planes::FORMAT].contains(&tensor.format());
    if !is_array || tensor.fault().is_some() || tensor.element_count() == Some(0) {
        return None;
    }
    let format = registry.format(tensor.format())?;
    let (dtype, logical_type) = format.dense_type(&Signature::of(tensor.object()), registry)?;
    let types = [DType::F64, DType::F32, DType::F16, DType::BF16];
    (types.contains(&dtype) && logical_type.is_none()).then_some(dtype)
}

/// Parses the name of a type of blocks.
fn block_type() -> impl TypedValueParser<Value = &'static BlockType> {
    let names = BlockType::quantized().map(lower);
    PossibleValuesParser::new(names).try_map(|name| {
        let mut types = BlockType::quantized();
        types.find(|known| lower(known) == name).ok_or("no such type")
    })
}

/// Its name as `ls` shows it: `q8_0` of the format `gguf.q8_0/1`.
fn lower(block_type: &'static BlockType) -> &'static str {
    let format = block_type.format().trim_start_matches("gguf.");
    format.trim_end_matches("/1")
}

/// A file in the folder of `out` that is gone once it is closed.
fn nameless(out: &Path) -> Result<std::fs::File, Failure> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let file = tempfile::tempfile_in(folder.unwrap_or(Path::new(".")));
    Ok(file.map_err(|error| Error::from(error).with_path(out))?)
}

const DATA: &str = "data";
const PACKED: &str = "packed_weight";
const SCALES: &str = "scales";
const ZEROS: &str = "zeros";

struct Job<'f, 'w> {
    writer: Writer<'w>,
    target: Target,
    registry: &'f Registry,
    progress: Progress,
    /// The first component with some stored bytes, for quantized and for kept objects: tied weights
    /// are stored once.
    stored: HashMap<(Span, bool), (Tensor<'f>, &'f str)>,
    /// The errors of the objects that were quantized.
    errors: HashMap<&'f str, Errors>,
}

impl<'f> Job<'f, '_> {
    /// The object and the role whose component has the same stored bytes, if one was written.
    fn same(
        &mut self,
        tensor: Tensor<'f>,
        role: &'f str,
        quantized: bool,
    ) -> Option<(&'f str, &'f str)> {
        let span = tensor.component(role).ok()?.blob.span;
        let (first, first_role) = *self.stored.entry((span, quantized)).or_insert((tensor, role));
        let is_first = (first.name(), first_role) == (tensor.name(), role);
        let is_same = !is_first
            && first.dtype() == tensor.dtype()
            && tensor.has_blob_of(role, &first, first_role).unwrap_or(false);
        is_same.then(|| (first.name(), first_role))
    }

    /// Copies an object with its storage.
    fn keep(&mut self, tensor: Tensor<'f>) -> zt::Result<()> {
        let roles: Vec<_> = tensor.components().collect();
        let same: Vec<_> = roles.iter().map(|(role, _)| self.same(tensor, role, false)).collect();
        let object =
            self.writer.begin(tensor.name(), tensor.shape(), tensor.format().to_owned())?;
        let mut object = match tensor.fault() {
            Some(_) => object.unchecked(),
            None => object,
        };
        if !tensor.attributes().is_empty() {
            object.set_attributes(tensor.attributes().clone());
        }
        object.set_extra(tensor.object().extra.clone());
        let report = |bytes| self.progress.report(bytes);
        for ((role, component), same) in roles.into_iter().zip(same) {
            let dtype = tensor.dtype_to_write(role)?;
            let mut out =
                object.component(role.to_owned(), dtype, component.logical_type.clone())?;
            out.set_extra(component.extra.clone());
            match same {
                Some((name, other)) => out.share(name, other)?,
                None => out.copy(&tensor, role, Some(zt::Progress::new(&report))).map(drop)?,
            }
        }
        object.finish()
    }

    fn quantize(&mut self, tensor: Tensor<'f>) -> zt::Result<Quantized<'f>> {
        let same = self.same(tensor, DATA, true);
        let mut attributes = tensor.attributes().clone();
        let format = self.registry.format(tensor.format());
        for parameter in format.map_or(&[][..], |format| format.parameters()) {
            attributes.remove(parameter);
        }
        let (id, packed) = match self.target {
            Target::Groups(_) => (QuantizedGroup::FORMAT, (PACKED, DType::I32)),
            Target::Blocks(block_type) => (block_type.format(), (DATA, DType::U8)),
        };
        let mut rest = Vec::new();
        if let Target::Groups(quantization) = self.target {
            for (key, value) in quantization.to_attributes() {
                attributes.insert(key, value);
            }
            rest.push(SCALES);
            rest.extend((!quantization.signed).then_some(ZEROS));
        }
        let shape = tensor.shape();
        let mut object = self.writer.begin(tensor.name(), shape, id)?;
        if !attributes.is_empty() {
            object.set_attributes(attributes);
        }
        let (role, dtype) = packed;
        let errors = if let Some((name, _)) = same {
            object.component(role, dtype, None)?.share(name, role)?;
            for role in rest {
                object.component(role, DType::F32, None)?.share(name, role)?;
            }
            self.errors.get(name).cloned().unwrap_or_default()
        } else {
            let mut out = object.component(role, dtype, None)?;
            let mut groups = Groups::new(self.target, |bytes| Ok(out.write_all(bytes)?));
            let value = Value::of(&tensor, None, self.registry)?;
            value.for_each_piece(|elements| {
                let values = elements.to_dtype(DType::F32, self.registry)?;
                groups.add(&values.as_slice::<f32>()?)?;
                self.progress.advance(elements.bytes.len() as u64)
            })?;
            groups.quantize()?;
            let Groups { scales, zeros, errors, .. } = groups;
            out.finish()?;
            for (role, values) in rest.into_iter().zip([scales, zeros]) {
                let mut out = object.component(role, DType::F32, None)?;
                out.write_all(&values)?;
                out.finish()?;
            }
            errors
        };
        object.finish()?;
        let quantized = Quantized {
            name: tensor.name(),
            shape,
            r#type: floating(&tensor, self.registry).map_or("", DType::as_str),
            max_error: Float(errors.max),
            mean_error: Float(errors.sum / errors.count as f64),
            error_of_std: errors.of_std(),
        };
        self.errors.insert(tensor.name(), errors);
        Ok(quantized)
    }
}

/// The absolute errors of quantized values.
#[derive(Clone, Default)]
struct Errors {
    max: f64,
    sum: f64,
    squares: f64,
    count: u64,
    /// Of the values.
    stats: Stats,
}

impl Errors {
    fn add(&mut self, values: &[f32], restored: impl Iterator<Item = f32>) -> zt::Result<()> {
        for (value, restored) in values.iter().zip(restored) {
            let error = (f64::from(*value) - f64::from(restored)).abs();
            self.max = self.max.max(error);
            self.sum += error;
            self.squares += error * error;
        }
        self.count += values.len() as u64;
        let values = Elements::from(values);
        self.stats.append(&Stats::of(&values, &Registry::builtin())?);
        Ok(())
    }

    /// The root of the mean square over the deviation of the values; `None` if all are equal.
    fn of_std(&self) -> Option<f64> {
        let std = self.stats.finite.map(|finite| finite.std);
        let std = std.filter(|std| *std > 0.0)?;
        Some((self.squares / self.count as f64).sqrt() / std)
    }
}

/// Quantizes the values of an object piece by piece. Scales and zero-points stay in memory.
struct Groups<W> {
    target: Target,
    /// Takes packed words or blocks.
    write: W,
    /// The values that whole groups and words, or blocks, take at a time.
    unit: usize,
    /// Values that are not quantized yet.
    held: Vec<f32>,
    scales: Vec<u8>,
    zeros: Vec<u8>,
    errors: Errors,
}

impl<W: FnMut(&[u8]) -> zt::Result<()>> Groups<W> {
    fn new(target: Target, write: W) -> Self {
        let unit = match target {
            // A multiple of both, if not the least.
            Target::Groups(quantization) => {
                let group = usize::try_from(quantization.group_size).unwrap_or(usize::MAX);
                group.saturating_mul(quantization.packing.per_word as usize)
            }
            Target::Blocks(block_type) => usize::try_from(block_type.block_len()).unwrap_or(1),
        };
        Groups {
            target,
            write,
            unit: unit.saturating_mul((PIECE / 4 / unit).max(1)),
            held: Vec::new(),
            scales: Vec::new(),
            zeros: Vec::new(),
            errors: Errors::default(),
        }
    }

    fn add(&mut self, mut values: &[f32]) -> zt::Result<()> {
        while !values.is_empty() {
            let room = self.unit - self.held.len();
            let (now, later) = values.split_at(room.min(values.len()));
            self.held.extend_from_slice(now);
            values = later;
            if self.held.len() == self.unit {
                self.quantize()?;
            }
        }
        Ok(())
    }

    /// Quantizes the values that are held.
    fn quantize(&mut self) -> zt::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        if let Some(at) = self.held.iter().position(|value| !value.is_finite()) {
            let position = self.errors.count.saturating_add(at as u64);
            let message = format!("the value at position {position} is not finite");
            return Err(Error::new(ErrorKind::Misuse, codes::MISUSE, message));
        }
        match self.target {
            Target::Groups(quantization) => {
                let shape = [self.held.len() as u64];
                let quantized = QuantizedGroup::quantize(shape, &self.held, quantization)?;
                (self.write)(&quantized.packed().bytes)?;
                self.scales.extend_from_slice(&quantized.scales().bytes);
                if let Some(zeros) = quantized.zeros() {
                    self.zeros.extend_from_slice(&zeros.bytes);
                }
                let restored = quantized.to_dense()?;
                let restored = restored.as_slice::<f32>()?;
                self.errors.add(&self.held, restored.iter().copied())?;
            }
            Target::Blocks(block_type) => {
                let mut blocks = Vec::new();
                block_type.quantize(&self.held, &mut blocks);
                (self.write)(&blocks)?;
                let mut restored = vec![[0; 4]; self.held.len()];
                block_type.dequantize(&blocks, &mut restored);
                let restored = restored.into_iter().map(f32::from_le_bytes);
                self.errors.add(&self.held, restored)?;
            }
        }
        self.held.clear();
        Ok(())
    }
}
