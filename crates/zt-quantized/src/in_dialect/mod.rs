//! Quantized weights in another dialect, without quantizing them anew.
//!
//! | target | weights | tensors |
//! | --- | --- | --- |
//! | `zt` | all | objects of `.zt`: [`Quantized::objects`] |
//! | `gguf` | MXFP4, NVFP4 | blocks, and `NAME.scale` |
//! | `gguf` | integers of 4 and 8 bits, in groups of whole blocks | blocks of Q4_0, Q4_1 and Q8_0 |
//! | `compressed-tensors` | MXFP4, NVFP4 | `weight_packed`, `weight_scale`, `weight_global_scale` |
//! | `compressed-tensors` | FP8 | `weight`, `weight_scale` |
//! | `deepseek` | FP8 in blocks | `weight`, `weight_scale_inv` |

mod config;

use std::collections::HashSet;
use std::sync::Arc;

use zt::foreign::{FileBuilder, Regrouped};
use zt::manifest::Text;
use zt::{
    Attributes, Blob, Component, DType, File, Object, OpenOptions, OwnedTensor, Result, Source,
    Span, Warning,
};

use crate::fault::Fault;
use crate::find::{Quantized, finished};
use crate::values::fp4::{Fp4, Fp4Bytes, Given, Scales};
use crate::values::integers::{IntegerBlocks, LatestParts};
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
    /// rounded to f32. All other tensors, attributes and warnings are kept, except keys of the header that describe the
    /// weights. If there is no quantized weight, a warning of code `quantized` says so.
    ///
    /// Bytes are made when they are read. Before that, nothing is read but the zero points and the `g_idx` of integers that
    /// become blocks of GGUF.
    ///
    /// # Errors
    ///
    /// Code `unsupported` for another name, and for a weight that the dialect has no place for: other codes, other groups,
    /// or transposed FP4. A scale that blocks of GGUF do not have is that error when it is read. Code `quantization` for a weight that lacks something; `duplicate-name` if a new name is
    /// taken; as [`File::attributes`].
    pub fn in_dialect(self, target: &str) -> Result<File> {
        let known = TARGETS.into_iter().find(|known| *known == target);
        let known = known.ok_or_else(|| Fault::Target { name: target.to_owned() })?;
        let is_plain = self.file().tensors().flatten().all(|it| it.format() == "dense");
        let is_nothing = is_plain && self.weights().is_empty();
        if known == "zt" && !is_nothing {
            return self.objects();
        }
        let (file, weights, mut warnings) = self.into_parts();
        if is_nothing {
            let message = format!("no quantized weight is found: nothing is written in {known}");
            warnings.push(Warning::new("quantized", message));
        }
        let (mut made, mut taken, mut keys) = (Made::default(), HashSet::new(), HashSet::new());
        for mut weight in weights {
            warnings.append(&mut weight.warnings);
            keys.extend(std::mem::take(&mut weight.header));
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
                let added = fp4.and_then(|fp4| made.add_packed(&name, fp4));
                added.map_err(|error| error.with_object(&name))?;
                taken.insert(name);
            }
        }
        finished(made.file(&file, |name| !taken.contains(name))?, warnings, &keys)
    }
}

/// A warning of code `quantized` for blocks of GGUF whose weight has a scale beside them: the dense values of the blocks
/// lack it. `None` without any.
///
/// # Errors
///
/// As [`File::owned_tensor`].
pub fn unscaled_blocks(file: &File) -> Result<Option<Warning>> {
    let found = blocks(file)?;
    let mut scaled = found.iter().filter_map(|(blocks, scale)| Some((blocks, scale.as_ref()?)));
    let Some((blocks, scale)) = scaled.next() else {
        return Ok(None);
    };
    let message = format!(
        "{} has a scale beside it, {}, and so have {} others: dense values of blocks lack it; --logical multiplies by it",
        blocks.tensor().name(),
        scale.tensor().name(),
        scaled.count()
    );
    Ok(Some(Warning::new("quantized", message)))
}

/// A file whose blocks of GGUF that have a scale of the whole weight beside them, as `NAME.scale`, are tensors of
/// ModelOpt, and the names of these tensors; `None` without any. llama.cpp multiplies by that scale after the product.
pub(crate) fn scaled_blocks(file: &File) -> Result<Option<(File, HashSet<String>)>> {
    let (mut made, mut taken) = (Made::default(), HashSet::new());
    for (blocks, scale) in blocks(file)? {
        let name = blocks.tensor().name().to_owned();
        let Some(scale) = scale else { continue };
        let of_scale = scale.tensor().name().to_owned();
        let Some(fp4) = Fp4::of_blocks(blocks, Some(scale)) else { continue };
        made.add_modelopt(&name, fp4).map_err(|error| error.with_object(&name))?;
        taken.extend([name, of_scale]);
    }
    if taken.is_empty() {
        return Ok(None);
    }
    let file = made.file(file, |name| !taken.contains(name))?;
    Ok(Some((file, taken)))
}

/// Blocks of FP4 of a GGUF file. Those of NVFP4 may have the numbers beside them that the values of their matrices are
/// multiplied by.
fn blocks(file: &File) -> Result<Vec<(OwnedTensor, Option<OwnedTensor>)>> {
    let mut found = Vec::new();
    for entry in file.entries() {
        let Ok(tensor) = entry.tensor() else { continue };
        let is_of = |scales: Scales| scales.blocks() == tensor.format();
        if !is_of(Scales::Exponents) && !is_of(Scales::Floats) {
            continue;
        }
        let scale = scale_name(entry.name());
        let is_plain = file.tensor(&scale).is_ok_and(|it| it.format() == "dense");
        let scale = (is_plain && is_of(Scales::Floats)).then(|| file.owned_tensor(&scale));
        found.push((file.owned_tensor(entry.name())?, scale.transpose()?));
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
    computed: Vec<(String, Object, Arc<dyn Source>)>,
    /// The number of the last weight of integers, and what was loaded last of one.
    number: usize,
    latest: LatestParts,
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
        let what = format!("a weight of {dialect} with such codes, groups or order of rows");
        let is_fp4 = Scales::of(&formula).is_some();
        match target {
            GGUF if !is_fp4 => {
                self.number = self.number.strict_add(1);
                let blocks = IntegerBlocks::of_formula(formula, self.number, &self.latest)?;
                self.add_integers(&name, blocks.ok_or_else(|| unknown(target, &what))?)
            }
            GGUF | PACKED => {
                let fp4 = Fp4::of_formula(formula).ok_or_else(|| unknown(target, &what))?;
                if target == PACKED {
                    self.add_packed(&name, fp4)
                } else {
                    self.add_blocks(&name, fp4)
                }
            }
            _ => Err(unknown(target, &what)),
        }
    }

    /// Integers as blocks of GGUF.
    fn add_integers(&mut self, name: &str, blocks: IntegerBlocks) -> Result<()> {
        let (shape, format) = (blocks.shape().to_vec(), blocks.format());
        self.push(name, shape, format, Component::new(DType::U8, whole(&blocks)?), blocks);
        Ok(())
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
    fn add_packed(&mut self, name: &str, fp4: Fp4) -> Result<()> {
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
    fn add_modelopt(&mut self, name: &str, fp4: Fp4) -> Result<()> {
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
        let part = Fp4Bytes { of: Arc::clone(of), given };
        let is_float = matches!(given, Given::Global { .. });
        let dtype = if is_float { DType::F32 } else { DType::U8 };
        let mut component = Component::new(dtype, whole(&part)?);
        component.logical_type = logical.map(Text::Borrowed);
        self.push(name, shape.into(), format, component, part);
        Ok(())
    }

    fn push(
        &mut self,
        name: &str,
        shape: Vec<u64>,
        format: &'static str,
        component: Component,
        part: impl Source + 'static,
    ) {
        let object = Object::new(shape, format).with_component("data", component);
        self.computed.push((name.to_owned(), object, Arc::new(part)));
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

/// All bytes of a source.
fn whole(source: &dyn Source) -> Result<Blob> {
    Ok(Blob::raw(Span::new(0, source.byte_len()).ok_or(Fault::TooLong)?))
}

/// The names of codes of FP8 and of their scales, if nothing else is part of the values.
pub(super) fn fp8(formula: &Formula) -> Option<[&str; 2]> {
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
