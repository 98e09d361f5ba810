//! Quantized weights in another dialect, without quantizing them anew.
//!
//! | target | weights | tensors |
//! | --- | --- | --- |
//! | `zt` | all | objects of `.zt`: [`Quantized::objects`] |
//! | `gguf` | MXFP4, NVFP4 | blocks, and `NAME.scale` |
//! | `compressed-tensors` | MXFP4, NVFP4 | `weight_packed`, `weight_scale`, `weight_global_scale` |
//! | `compressed-tensors` | FP8 | `weight`, `weight_scale` |
//! | `deepseek` | FP8 in blocks | `weight`, `weight_scale_inv` |

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use zt::foreign::{FileBuilder, Regrouped};
use zt::manifest::Text;
use zt::{
    Attributes, Blob, Component, DType, File, Object, OpenOptions, OwnedTensor, Result, Span,
};

use crate::fault::Fault;
use crate::find::Quantized;
use crate::values::fp4::{Fp4, Given, Part, Scales};
use crate::values::weight::Formula;
use crate::weight::Weight;

/// The names of the dialects that quantized weights can be written in.
pub const TARGETS: [&str; 4] = ["zt", GGUF, PACKED, DEEPSEEK];

const GGUF: &str = "gguf";
const PACKED: &str = "compressed-tensors";
const DEEPSEEK: &str = "deepseek";

impl Quantized {
    /// The file with its quantized weights in the dialect `target`, one of [`TARGETS`]. Codes keep their meaning: nothing
    /// is quantized anew. Scales keep their bits. One that divides becomes its reciprocal where the dialect multiplies,
    /// rounded to f32. All other tensors, attributes and warnings are kept.
    ///
    /// Nothing is read, and bytes are made when they are read.
    ///
    /// # Errors
    ///
    /// Code `unsupported` for another name, and for a weight that the dialect has no place for: other codes, other groups,
    /// or a transposed matrix. Code `quantization` for a weight that lacks something; `duplicate-name` if a new name is
    /// taken; as [`File::attributes`].
    pub fn in_dialect(self, target: &str) -> Result<File> {
        let known = TARGETS.into_iter().find(|known| *known == target);
        let known = known.ok_or_else(|| Fault::Target { name: target.to_owned() })?;
        if known == "zt" {
            return self.objects();
        }
        let (file, weights) = self.into_parts();
        let (mut made, mut taken) = (Made::default(), HashSet::new());
        for weight in weights {
            let name = weight.name.clone();
            let parts = weight.parts.clone();
            let added = made.add(&file, weight, known);
            added.map_err(|error: zt::Error| error.with_object(&name))?;
            taken.extend(parts);
        }
        if known == PACKED {
            for (blocks, _) in blocks(&file)? {
                let name = blocks.tensor().name().to_owned();
                let fp4 = Fp4::of_blocks(blocks, None);
                let fp4 = fp4.ok_or_else(|| unknown(known, "blocks without columns"));
                let added = fp4.and_then(|fp4| made.pack(&name, fp4));
                added.map_err(|error| error.with_object(&name))?;
                taken.insert(name);
            }
        }
        made.file(&file, |name| !taken.contains(name))
    }
}

impl Quantized {
    /// What `config.json` says of weights in the dialect `target`; `None` for a dialect that needs no such settings.
    pub fn settings_in(&self, target: &str) -> Option<Value> {
        if target == DEEPSEEK {
            let mut blocks = self.weights().iter().filter_map(|it| it.formula.as_ref().ok());
            let block = blocks.find(|it| fp8(it).is_some())?.block_len();
            return Some(json!({
                "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": block,
                "modules_to_not_convert": self.plain_modules(),
            }));
        }
        if target != PACKED {
            return None;
        }
        // A scheme each, with the modules that have it.
        let mut schemes: Vec<(&str, Value, Vec<&str>)> = Vec::new();
        for weight in self.weights() {
            let module = weight.name.strip_suffix(".weight").unwrap_or(&weight.name);
            let Some((format, scheme)) = weight.formula.as_ref().ok().and_then(scheme) else {
                continue;
            };
            match schemes.iter_mut().find(|(known, it, _)| *known == format && *it == scheme) {
                Some((.., modules)) => modules.push(module),
                None => schemes.push((format, scheme, vec![module])),
            }
        }
        let format = match &*schemes {
            [] => return None,
            [(format, ..)] => format,
            _ => "mixed-precision",
        };
        let groups = schemes.iter().enumerate().map(|(at, (format, weights, targets))| {
            let group = json!({ "format": format, "targets": targets, "weights": weights });
            (format!("group_{at}"), group)
        });
        let groups: serde_json::Map<String, Value> = groups.collect();
        Some(json!({
            "quant_method": PACKED, "quantization_status": "compressed", "format": format, "config_groups": groups,
            "ignore": self.plain_modules(),
        }))
    }

    /// The modules whose weight is a matrix that is not quantized.
    fn plain_modules(&self) -> Vec<&str> {
        let parts = self.parts();
        let tensors = self.file().tensors().filter_map(Result::ok);
        let plain = tensors.filter(|it| it.shape().len() == 2 && !parts.contains(it.name()));
        plain.filter_map(|it| it.name().strip_suffix(".weight")).collect()
    }
}

/// The format of compressed-tensors for a weight, and what it says of the codes.
fn scheme(formula: &Formula) -> Option<(&'static str, Value)> {
    let common = json!({ "type": "float", "symmetric": true, "dynamic": false });
    let (format, more) = match Scales::of(formula) {
        Some(Scales::Floats) => (
            "nvfp4-pack-quantized",
            json!({
                "num_bits": 4, "strategy": "tensor_group", "group_size": 16,
                "scale_dtype": "torch.float8_e4m3fn",
            }),
        ),
        Some(Scales::Exponents) => (
            "mxfp4-pack-quantized",
            json!({
                "num_bits": 4, "strategy": "group", "group_size": 32, "scale_dtype": "torch.uint8",
            }),
        ),
        None => {
            fp8(formula)?;
            let [_, rows, columns] = formula.grid();
            let of_codes = formula.shape();
            let strategy = match (rows, columns) {
                (1, 1) => json!({ "strategy": "tensor" }),
                (rows, 1) if of_codes.first() == Some(&rows) => json!({ "strategy": "channel" }),
                _ => json!({ "strategy": "block", "block_structure": formula.block_len() }),
            };
            ("float-quantized", with(json!({ "num_bits": 8 }), strategy))
        }
    };
    Some((format, with(common, more)))
}

/// Both objects as one.
fn with(mut all: Value, more: Value) -> Value {
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    all
}

/// A file whose blocks of GGUF that have a scale of the whole weight beside them, as `NAME.scale`, are tensors of
/// ModelOpt, and the names of these tensors; `None` without any. llama.cpp multiplies by that scale after the product.
pub(crate) fn scaled_blocks(file: &File) -> Result<Option<(File, Vec<String>)>> {
    let (mut made, mut taken) = (Made::default(), Vec::new());
    for (blocks, scale) in blocks(file)? {
        let name = blocks.tensor().name().to_owned();
        let Some(scale) = scale.filter(|_| blocks.tensor().format() == Scales::Floats.blocks())
        else {
            continue;
        };
        let of_scale = scale.tensor().name().to_owned();
        let Some(fp4) = Fp4::of_blocks(blocks, Some(scale)) else { continue };
        made.unpack(&name, fp4).map_err(|error| error.with_object(&name))?;
        taken.extend([name, of_scale]);
    }
    if taken.is_empty() {
        return Ok(None);
    }
    let file = made.file(file, |name| !taken.iter().any(|taken| taken == name))?;
    Ok(Some((file, taken)))
}

/// Blocks of FP4 of a GGUF file, each with the numbers that the values of its matrices are multiplied by.
fn blocks(file: &File) -> Result<Vec<(OwnedTensor, Option<OwnedTensor>)>> {
    let mut found = Vec::new();
    for entry in file.entries() {
        let Ok(tensor) = entry.tensor() else { continue };
        if [Scales::Exponents, Scales::Floats].iter().all(|it| it.blocks() != tensor.format()) {
            continue;
        }
        let scale = scale_name(entry.name());
        let is_plain = file.tensor(&scale).is_ok_and(|it| it.format() == "dense");
        let scale = is_plain.then(|| file.owned_tensor(&scale)).transpose()?;
        found.push((file.owned_tensor(entry.name())?, scale));
    }
    Ok(found)
}

/// The name that llama.cpp gives the scale of a whole weight.
fn scale_name(name: &str) -> String {
    match name.strip_suffix("weight") {
        Some(stem) => format!("{stem}scale"),
        None => format!("{name}.scale"),
    }
}

/// The tensors of a dialect.
#[derive(Default)]
struct Made {
    /// Those with the bytes of others.
    renamed: Vec<Regrouped>,
    computed: Vec<(String, Object, Part)>,
    /// Rows and columns that share a scale of FP8.
    block: Option<[u64; 2]>,
}

impl Made {
    /// Adds the tensors of a weight.
    fn add(&mut self, file: &File, weight: Weight, target: &'static str) -> Result<()> {
        let Weight { name, formula, dialect, .. } = weight;
        let formula = formula?;
        if target != GGUF
            && let Some([codes, scales]) = fp8(&formula)
        {
            return self.add_fp8(file, &name, &formula, [codes, scales], target);
        }
        let fp4 = Fp4::of_formula(formula).filter(|_| target != DEEPSEEK);
        let what = || format!("a weight of {dialect} with such codes, groups or order of rows");
        let fp4 = fp4.ok_or_else(|| unknown(target, &what()))?;
        if target == PACKED { self.pack(&name, fp4) } else { self.add_blocks(&name, fp4) }
    }

    /// FP8 keeps its bytes under other names.
    fn add_fp8(
        &mut self,
        file: &File,
        name: &str,
        formula: &Formula,
        [codes, scales]: [&str; 2],
        target: &'static str,
    ) -> Result<()> {
        let end = if target == DEEPSEEK { "_scale_inv" } else { "_scale" };
        if target == DEEPSEEK {
            let [rows, columns] = formula.block_len();
            let grid = formula.grid();
            let is_grid = file.tensor(scales)?.shape() == &grid[1..];
            let is_block = rows > 1 && columns > 1 && rows != u64::MAX && columns != u64::MAX;
            let is_same = self.block.is_none_or(|block| block == [rows, columns]);
            if !is_grid || !is_block || !is_same || formula.shape().len() != 2 {
                return Err(unknown(target, "FP8 with scales of other than one kind of blocks"));
            }
            self.block = Some([rows, columns]);
        }
        for (name, of) in [(name.to_owned(), codes), (format!("{name}{end}"), scales)] {
            let tensor = file.tensor(of)?;
            self.renamed.push(Regrouped {
                name,
                shape: tensor.shape().to_vec(),
                format: Text::Borrowed("dense"),
                attributes: tensor.attributes().clone(),
                components: vec![("data".into(), of.to_owned(), "data".into())],
            });
        }
        Ok(())
    }

    /// FP4 as blocks of GGUF.
    fn add_blocks(&mut self, name: &str, fp4: Fp4) -> Result<()> {
        if !fp4.is_whole_blocks() {
            return Err(unknown(GGUF, "a row that is no whole blocks of 64 values"));
        }
        let fp4 = Arc::new(fp4);
        let (shape, format) = (fp4.shape().to_vec(), fp4.scales.blocks());
        if let Some(count) = fp4.globals() {
            let given = Given::Global { divides: false };
            self.compute(&scale_name(name), [count], "dense", None, &fp4, given)?;
        }
        self.compute(name, shape, format, None, &fp4, Given::Blocks)
    }

    /// FP4 as pairs of codes, as compressed-tensors has them.
    fn pack(&mut self, name: &str, fp4: Fp4) -> Result<()> {
        if fp4.shape().len() != 2 || fp4.globals().is_some_and(|count| count != 1) {
            return Err(unknown(
                PACKED,
                "a weight that is no matrix, or has several scales of the whole",
            ));
        }
        let (fp4, of) = (Arc::new(fp4), |end: &str| format!("{name}_{end}"));
        self.pairs(&of("packed"), &of("scale"), &fp4)?;
        match fp4.scales {
            Scales::Exponents => Ok(()),
            Scales::Floats => {
                let given = Given::Global { divides: true };
                self.compute(&of("global_scale"), [1], "dense", None, &fp4, given)
            }
        }
    }

    /// FP4 as pairs of codes, as ModelOpt has them.
    fn unpack(&mut self, name: &str, fp4: Fp4) -> Result<()> {
        let (fp4, of) = (Arc::new(fp4), |end: &str| format!("{name}_{end}"));
        self.pairs(name, &of("scale"), &fp4)?;
        let (count, given) = (fp4.globals().unwrap_or(1), Given::Global { divides: false });
        self.compute(&of("scale_2"), [count], "dense", None, &fp4, given)
    }

    fn pairs(&mut self, codes: &str, scales: &str, fp4: &Arc<Fp4>) -> Result<()> {
        let shape = |each: u64| {
            let mut shape = fp4.shape().to_vec();
            shape.iter_mut().rev().take(1).for_each(|columns| *columns = columns.div_ceil(each));
            shape
        };
        self.compute(codes, shape(2), "dense", None, fp4, Given::Pairs)?;
        // The exponents of MXFP4 are plain bytes.
        let logical = (fp4.scales == Scales::Floats).then(|| fp4.scales.type_name());
        let shape = shape(fp4.scales.group());
        self.compute(scales, shape, "dense", logical, fp4, Given::Scales)
    }

    fn compute(
        &mut self,
        name: &str,
        shape: impl Into<Vec<u64>>,
        format: &'static str,
        logical: Option<&'static str>,
        of: &Arc<Fp4>,
        given: Given,
    ) -> Result<()> {
        let part = Part { of: Arc::clone(of), given };
        let span = Span::new(0, zt::Source::byte_len(&part)).ok_or(Fault::TooLong)?;
        let is_float = matches!(given, Given::Global { .. });
        let dtype = if is_float { DType::F32 } else { DType::U8 };
        let mut component = Component::new(dtype, Blob::raw(span));
        component.logical_type = logical.map(Text::Borrowed);
        let object = Object::new(shape, format).with_component("data", component);
        self.computed.push((name.to_owned(), object, part));
        Ok(())
    }

    /// The file of these tensors, and of those that are kept.
    fn file(self, file: &File, keep: impl FnMut(&str) -> bool) -> Result<File> {
        let rest = file.regroup(keep, self.renamed)?;
        if self.computed.is_empty() {
            return Ok(rest);
        }
        let options = OpenOptions::new().registry(file.registry().clone());
        let mut builder = FileBuilder::new(rest.kind(), options);
        builder.include(&rest, |_| true);
        for (name, object, part) in self.computed {
            let source = builder.derived(part);
            builder.object(name, object, source);
        }
        builder.attributes(rest.attributes()?.unwrap_or_else(Attributes::new));
        builder.extra(rest.extra()?);
        builder.build()
    }
}

/// The names of codes of FP8 and of their scales, if nothing else is part of the values.
fn fp8(formula: &Formula) -> Option<[&str; 2]> {
    let mut roles = formula.roles();
    let (codes, scales) = (roles.next()?.1.tensor(), roles.next()?.1.tensor());
    let is_plain = roles.next().is_none() && formula.is_scaled();
    let is_fp8 = codes.value_type()? == "f8_e4m3fn" && codes.shape() == formula.shape();
    let is_number = ["f32", "bf16", "f16"].contains(&&*scales.value_type()?);
    (is_plain && is_fp8 && is_number).then(|| [codes.name(), scales.name()])
}

fn unknown(dialect: &'static str, what: &str) -> zt::Error {
    Fault::NoPlace { dialect, what: what.to_owned() }.into()
}
