//! A file with quantized values in the place of its own.

use std::collections::HashMap;
use std::sync::Arc;

use zt::formats::{Packing, PlaneCoding, Quantization, element_count};
use zt::ggml::{BlockType, FILE_TYPE, file_type};
use zt::{
    DType, Dense, File, FloatType, OwnedTensor, Quantized4Bit, QuantizedGroup, Result, Source,
    Tensor, View,
};
use zt_foreign::{DATA, Input};

use crate::arithmetic::computed::{expect_no_codes, floating};
use crate::arithmetic::fault::Fault;
use crate::arithmetic::units::{To, Units};

/// What floating-point values become.
///
/// ```
/// use zt::{Dense, File, Writer};
/// use zt_convert::Input;
/// use zt_model::Quantize;
///
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes)?;
/// writer.add("w", &Dense::from_slice(&[1, 4], &[0.0f32, 1.0, 2.0, 15.0])?)?;
/// writer.finish()?;
/// let input = Input::from(File::from_bytes(bytes)?);
/// let quantized = Quantize::groups(4, 128, false)?.of(&input, |_| true)?;
/// let w = quantized.input().file().tensor("w")?;
/// assert_eq!(w.format(), "quantized_group");
/// assert_eq!(*w.to_dense()?.as_slice::<f32>()?, [0.0, 1.0, 2.0, 15.0]);
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Quantize(To);

impl Quantize {
    /// `quantized_group`: `group_size` consecutive values share a scale and, unless they are `signed`, a zero-point.
    ///
    /// # Errors
    ///
    /// Code `misuse` if `bits` is not 1 to 16, or 1 for signed values, and for a `group_size` that is not 1 to 2^20.
    pub fn groups(bits: u32, group_size: u64, signed: bool) -> Result<Self> {
        let least = if signed { 2 } else { 1 };
        if !(least..=16).contains(&bits) {
            return Err(Fault::Bits { bits, least }.into());
        }
        if !(1..=1 << 20).contains(&group_size) {
            return Err(Fault::GroupSize(group_size).into());
        }
        let packing = Packing { per_word: 32u32.strict_div(bits), dtype: DType::I32 };
        let quantization = Quantization::new(bits, group_size, packing);
        Ok(Quantize(To::Groups(Quantization { signed, ..quantization })))
    }

    /// Blocks of ggml of a type of [`Quantize::block_types`], bit for bit as gguf-py makes them, and `iq4_nl` as ggml's
    /// reference does.
    ///
    /// # Errors
    ///
    /// Code `misuse` for another type.
    pub fn blocks(name: &str) -> Result<Self> {
        let mut known = BlockType::quantized();
        let known = known.find(|known| name_of(known) == name);
        Ok(Quantize(To::Blocks(known.ok_or_else(|| Fault::BlockType(name.to_owned()))?)))
    }

    /// The types of blocks that are made, such as `q8_0`.
    pub fn block_types() -> impl Iterator<Item = &'static str> {
        BlockType::quantized().map(name_of)
    }

    /// `input` with quantized values in the place of each tensor that can be quantized and that `takes` chooses.
    /// Everything else is kept. The values are quantized when they are read: [`zt_convert::Kinds::convert`] writes them.
    ///
    /// Dense tensors and planes of f64, f32, f16 and bf16 can be quantized, and with blocks only those whose rows are
    /// whole blocks. Most users choose those of two or more dimensions.
    ///
    /// Memory: the scales and zero-points of one tensor, and some MiB.
    ///
    /// # Errors
    ///
    /// Code `not-found` if nothing can be quantized. Code `unsupported` if tensors of the choice are quantized already,
    /// and no matrix is left to quantize.
    ///
    /// Reading the values is an error of code `misuse` if one of them is not finite, and as [`Tensor::verify`].
    pub fn of(&self, input: &Input, takes: impl Fn(&Tensor<'_>) -> bool) -> Result<Quantized> {
        let file = input.file();
        expect_no_codes(input, |name| file.tensor(name).is_ok_and(|tensor| takes(&tensor)))?;
        let latest = Arc::default();
        let mut sources = HashMap::new();
        let (mut objects, mut kept, mut made) = (Vec::new(), Vec::new(), HashMap::new());
        let (mut narrow, mut is_matrix) = (Vec::new(), false);
        // Tied weights are quantized once.
        let mut seen: HashMap<_, (OwnedTensor, Arc<Units>)> = HashMap::new();
        for entry in file.entries() {
            let name = entry.name();
            let tensor = file.owned_tensor(name).ok();
            let chosen = tensor.filter(|tensor| takes(&tensor.tensor()));
            let Some(tensor) = chosen.as_ref().filter(|tensor| self.0.can(tensor)) else {
                kept.push(name.to_owned());
                narrow.extend(chosen.filter(|tensor| is_quantized(&tensor.tensor())));
                continue;
            };
            is_matrix |= tensor.tensor().shape().len() > 1;
            let is_same = |first: &Tensor<'_>| {
                let of = tensor.tensor();
                let is_alike = first.dtype() == of.dtype() && first.format() == Dense::FORMAT;
                is_alike && of.has_blob_of(DATA, first, DATA).unwrap_or(false)
            };
            let place = tensor.tensor().component(DATA).ok().map(|data| data.blob.span);
            let first = place.and_then(|place| seen.get(&place));
            let first = first.filter(|(first, _)| is_same(&first.tensor()));
            let units = match first {
                Some((_, units)) => Arc::clone(units),
                None => Arc::new(Units::new(tensor.clone(), self.0, &latest)?),
            };
            if let Some(place) = place {
                seen.entry(place).or_insert_with(|| (tensor.clone(), Arc::clone(&units)));
            }
            made.insert(name, units.object(tensor));
            let source: Arc<dyn Source> = Arc::clone(&units) as _;
            sources.insert(name, source);
            objects.push((tensor.clone(), units));
        }
        // The vectors beside quantized matrices, such as norms, are not what anyone means to quantize.
        if let Some(first) = narrow.first().filter(|_| !is_matrix) {
            let (count, of) = (narrow.len(), first.tensor());
            let what = of.value_type().map_or(of.format().to_owned(), |it| it.to_string());
            let fault = Fault::IsQuantized { count, name: of.name().to_owned(), what };
            return Err(input.blame(fault.into()));
        }
        if objects.is_empty() {
            return Err(input.blame(Fault::NoValues.into()));
        }
        let file = file.replace(|name, _| Some(Ok((made.remove(name)?, sources.remove(name)?))))?;
        let file = with_file_type(file)?;
        let input = Input::new(file, input.paths().to_vec());
        Ok(Quantized { input, objects, kept })
    }
}

/// The file with the type that most of its values have now, if its attributes say which that is, as GGUF's do.
fn with_file_type(file: File) -> Result<File> {
    let Some(mut attributes) = file.attributes()? else {
        return Ok(file);
    };
    let entries = file.entries();
    let matrices = entries.iter().filter_map(|entry| {
        let tensor = entry.tensor().ok().filter(|tensor| tensor.shape().len() > 1)?;
        let format = BlockType::from_format(tensor.format()).map(BlockType::format);
        let name = format.or_else(|| Some(tensor.dtype()?.as_str()))?;
        Some((name, element_count(tensor.shape()).unwrap_or(0)))
    });
    match file_type(matrices) {
        Some(number) if attributes.get(FILE_TYPE).is_some_and(|old| old.as_u64().is_some()) => {
            attributes.insert(FILE_TYPE, u64::from(number));
            file.with_attributes(attributes)
        }
        _ => Ok(file),
    }
}

/// Whether a tensor is quantized, or has floating-point values of less than 16 bits.
fn is_quantized(tensor: &Tensor<'_>) -> bool {
    match tensor.format() {
        format if format == Dense::FORMAT || PlaneCoding::from_format(format).is_some() => {
            tensor.value_type().is_some_and(|name| {
                ["f8_", "f6_", "f4_"].iter().any(|narrow| name.starts_with(narrow))
            })
        }
        QuantizedGroup::FORMAT | Quantized4Bit::FORMAT => true,
        format => BlockType::from_format(format).is_some(),
    }
}

/// The name of a type as `zt ls` shows it: `q8_0` of the format `gguf.q8_0/1`.
fn name_of(block_type: &'static BlockType) -> &'static str {
    let format = block_type.format().trim_start_matches("gguf.");
    format.trim_end_matches("/1")
}

/// A file with quantized values, and their errors.
#[derive(Debug)]
pub struct Quantized {
    input: Input,
    objects: Vec<(OwnedTensor, Arc<Units>)>,
    kept: Vec<String>,
}

/// How far the quantized values of an object are from its own.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct QuantizedObject {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// The type of its own values.
    pub dtype: FloatType,
    /// The greatest absolute error.
    pub max_error: f64,
    /// The mean of the absolute errors.
    pub mean_error: f64,
    /// The root of the mean square of the errors over the deviation of the values; `None` if all are equal.
    pub error_of_std: Option<f64>,
}

impl Quantized {
    /// The file.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// The names of the objects that are kept.
    pub fn kept(&self) -> &[String] {
        &self.kept
    }

    /// The objects that are quantized, with the errors of all values that were read: write the file first.
    pub fn objects(&self) -> Vec<QuantizedObject> {
        let objects = self.objects.iter();
        let object = |(tensor, units): &(OwnedTensor, Arc<Units>)| {
            let of = tensor.tensor();
            let errors = units.errors();
            Some(QuantizedObject {
                name: of.name().to_owned(),
                shape: of.shape().to_vec(),
                dtype: floating(&of)?,
                max_error: errors.max,
                mean_error: errors.mean(),
                error_of_std: errors.of_std(),
            })
        };
        objects.filter_map(object).collect()
    }
}
