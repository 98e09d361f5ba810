//! What is quantized in a file, and the file of the weights.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use zt::foreign::on_all_cores;
use zt::{DType, File, FloatType, Result, Value, Warning};

use crate::dialects::Dialects;
use crate::in_dialect::scaled_blocks;
use crate::model::Model;
use crate::objects::unpack;
use crate::settings::Settings;
use crate::suspects::suspects;
use crate::values::{Computed, Latest};
use crate::weight::Weight;

/// Looks for quantized weights in a file.
///
/// Objects of quantized weights are weights. The dialects are asked for the other tensors, in the order of their table.
/// A tensor belongs to the first that takes it.
///
/// # Errors
///
/// As reading the small tensors that describe others, such as shapes. What a single weight lacks is in
/// [`Weight::formula`].
pub fn find(file: &File, settings: &Settings, dialects: &Dialects) -> Result<Quantized> {
    let (file, packed) = unpack(file)?.unwrap_or_else(|| (file.clone(), Vec::new()));
    let (file, blocks) = scaled_blocks(&file)?.unwrap_or((file, HashSet::new()));
    let mut model = Model::new(&file, settings)?;
    let mut weights: Vec<Weight> = packed.iter().map(|object| object.weight(&file)).collect();
    weights.iter().for_each(|weight| model.take(weight));
    for dialect in dialects.iter() {
        // Weights of one dialect may share a tensor, such as a mark.
        let mut found = dialect.weights(&model)?;
        // A header may still describe weights that are objects.
        let mut names: HashSet<String> = packed.iter().map(|object| object.name.clone()).collect();
        found.retain(|weight| model.is_free(weight) && names.insert(weight.name.clone()));
        if settings.is_shard() {
            found.iter_mut().for_each(Weight::in_shard);
        }
        found.iter().for_each(|weight| model.take(weight));
        weights.extend(found);
    }
    let warnings = suspects(&model, &weights);
    let objects = packed.into_iter().map(|object| object.name).chain(blocks).collect();
    Ok(Quantized { file, weights, objects, warnings })
}

/// The quantized weights of a file.
#[derive(Debug)]
pub struct Quantized {
    /// The file of the tensors.
    file: File,
    weights: Vec<Weight>,
    /// The names of the objects that weights were. The file has their tensors in their place.
    objects: Vec<String>,
    /// What no weight says.
    warnings: Vec<Warning>,
}

impl Quantized {
    /// The weights, by dialects.
    pub fn weights(&self) -> &[Weight] {
        &self.weights
    }

    /// A warning of code `quantized` for each dialect, for a command that shows or casts stored values.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut weights: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for weight in &self.weights {
            weights.entry(&weight.dialect).or_default().push(&weight.name);
        }
        let warning = |(dialect, names): (&str, Vec<&str>)| {
            let (count, first) = (names.len(), names.first().copied().unwrap_or_default());
            let (weights, are) = if count == 1 { ("weight", "is") } else { ("weights", "are") };
            let message = format!(
                "{count} quantized {weights} ({dialect}), such as {first:?}, {are} read as codes and scales; --logical \
                 gives the values"
            );
            Warning::new("quantized", message)
        };
        weights.into_iter().map(warning).collect()
    }

    /// The names of all tensors that weights are made of, and of the objects that are weights.
    pub fn parts(&self) -> HashSet<&str> {
        let parts = self.weights.iter().flat_map(|weight| &weight.parts);
        parts.chain(&self.objects).map(String::as_str).collect()
    }

    /// The file of the tensors.
    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// The file of the tensors, the weights, and what no weight says.
    pub(crate) fn into_parts(self) -> (File, Vec<Weight>, Vec<Warning>) {
        (self.file, self.weights, self.warnings)
    }

    /// Bits that are stored for each value of a weight, scales included.
    pub fn bits(&self, weight: &Weight) -> Option<f64> {
        let formula = weight.formula.as_ref().ok()?;
        let len = |name: &String| self.file.tensor(name).ok()?.decoded_len("data").ok();
        let bytes: u64 = weight.parts.iter().filter_map(len).sum();
        let count = zt::formats::element_count(formula.shape())?;
        (count > 0).then(|| bytes as f64 * 8.0 / count as f64)
    }

    /// The file of the weights: each is a dense tensor under its own name, and what it is made of is no tensor. All
    /// other tensors, attributes and warnings are kept. Values are of the type `float`, rounded once from f32, or of the
    /// type of the dialect's own code.
    ///
    /// Nothing is read. A weight without values is listed, and reading it is the error of its [`Weight::formula`].
    ///
    /// # Errors
    ///
    /// Code `duplicate-name` if a weight has the name of another tensor; as [`File::attributes`].
    pub fn logical(self, float: Option<FloatType>) -> Result<File> {
        let Quantized { file, weights, mut warnings, .. } = self;
        let (mut objects, mut names, mut parts) = (HashMap::new(), HashMap::new(), HashSet::new());
        let mut keys = HashSet::new();
        let latest = Latest::default();
        for (number, weight) in weights.into_iter().enumerate() {
            warnings.extend(weight.warnings);
            keys.extend(weight.header);
            let float = float.unwrap_or(weight.float);
            let object = weight
                .formula
                .and_then(|formula| Computed::object(formula, float, number, Arc::clone(&latest)));
            let object = object.map_err(|error| error.with_object(&weight.name));
            let [codes, ..] = &*weight.parts else { continue };
            objects.insert(codes.clone(), object);
            names.insert(codes.clone(), weight.name);
            parts.extend(weight.parts);
        }
        let replaced = file.replace(|name, _| objects.remove(name))?;
        let chosen = replaced.select(|name| match names.get(name) {
            Some(name) => Some(name.clone()),
            None => (!parts.contains(name)).then(|| name.to_owned()),
        })?;
        finished(chosen, warnings, &keys)
    }

    /// Looks at all scales: a warning of code `quantized-scale` for each weight that has scales that are zero, NaN or
    /// infinite.
    ///
    /// # Errors
    ///
    /// As reading the scales.
    pub fn check_scales(&self) -> Result<Vec<Warning>> {
        let weights = self.weights.iter().collect();
        let warnings = on_all_cores(weights, |weight: &Weight| {
            let Ok(formula) = &weight.formula else { return Ok(None) };
            let (mut zero, mut not_finite, mut name) = (0usize, 0usize, None);
            formula.for_each_scale(|tensor, numbers| {
                let zeros = numbers.iter().filter(|number| **number == 0.0).count();
                let others = numbers.iter().filter(|number| !number.is_finite()).count();
                if zeros.strict_add(others) > 0 {
                    name.get_or_insert_with(|| tensor.tensor().name().to_owned());
                }
                (zero, not_finite) = (zero.strict_add(zeros), not_finite.strict_add(others));
            })?;
            Ok(name.map(|name| {
                let message = format!(
                    "{name} has {zero} scales of zero and {not_finite} that are NaN or infinite: the weight is not what was trained"
                );
                Warning::new("quantized-scale", message).with_object(&weight.name)
            }))
        })?;
        Ok(warnings.into_iter().flatten().collect())
    }
}

/// The file with these warnings, and without these keys of its header.
pub(crate) fn finished(
    file: File,
    warnings: Vec<Warning>,
    dropped: &HashSet<String>,
) -> Result<File> {
    let file = if warnings.is_empty() { file } else { file.with_warnings(warnings)? };
    match file.attributes()?.filter(|_| !dropped.is_empty()) {
        None => Ok(file),
        Some(attributes) => {
            let is_kept = |key: &Value| key.as_str().is_none_or(|key| !dropped.contains(key));
            let pairs = attributes.iter().filter(|(key, _)| is_kept(key));
            let pairs = pairs.map(|(key, value)| (key.clone(), value.clone()));
            file.with_attributes(pairs.collect())
        }
    }
}

/// The values of the codes of a byte, of this logical type or dtype.
pub(crate) fn byte_values(value_type: &str) -> Result<Vec<f32>> {
    let codes: Vec<u8> = (0..=255).collect();
    match value_type {
        "u8" => Ok(codes.into_iter().map(f32::from).collect()),
        "i8" => Ok(codes.into_iter().map(|code| f32::from(code.cast_signed())).collect()),
        _ => {
            let elements =
                zt::Elements::new(DType::U8, &*codes).with_logical_type(value_type.to_owned());
            let values = elements.cast(FloatType::F32, &zt::Registry::builtin())?;
            Ok(values.as_slice::<f32>()?.to_vec())
        }
    }
}
