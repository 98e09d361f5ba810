//! Quantized weights as objects of a container, and back to the tensors that they were. Spec: formats/zt.quantized.

use std::collections::HashSet;

use zt::foreign::Regrouped;
use zt::formats::{QuantizedWeightFormat, StoredPart};
use zt::manifest::Text;
use zt::{Attributes, Error, ErrorKind, File, FloatType, Result, Tensor, Value, Warning};

use crate::fault::Fault;
use crate::find::Quantized;
use crate::values::weight::Formula;
use crate::weight::Weight;

const DIALECT: &str = "dialect";
const DTYPE: &str = "dtype";
const HEADER: &str = "header";
const VALUE: &str = "value";

impl Quantized {
    /// The file with each quantized weight as one object, whose components are its codes and scales, byte for byte. A
    /// weight that fits the format `quantized_group` is one of it, and others are of `zt.quantized/1`. A dialect that has
    /// no values here keeps its tensors, with a warning of code `quantized`.
    ///
    /// Nothing is read. [`stored`] gives the tensors back.
    ///
    /// # Errors
    ///
    /// Code `quantization`: the first weight that lacks something; `duplicate-name` if a weight has the name of another
    /// tensor; as [`File::attributes`].
    pub fn objects(self) -> Result<File> {
        let (file, weights, mut warnings) = self.into_parts();
        let (mut made, mut taken) = (Vec::new(), HashSet::new());
        for weight in &weights {
            warnings.extend(weight.warnings.iter().cloned());
            let formula = match &weight.formula {
                Ok(formula) => formula,
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    let message = format!("kept as the tensors that it is: {}", error.message());
                    warnings.push(Warning::new("quantized", message).with_object(&weight.name));
                    continue;
                }
                Err(error) => return Err(error.clone()),
            };
            // A tensor of several weights, such as a mark, is with the first of them.
            let own = weight.parts.iter().filter(|part| !taken.contains(part.as_str()));
            let own: Vec<&str> = own.map(String::as_str).collect();
            let object = regrouped(&file, weight, formula, &own);
            made.push(object.map_err(|error| error.with_object(&weight.name))?);
            taken.extend(own);
        }
        let file = file.regroup(|name| !taken.contains(name), made)?;
        if warnings.is_empty() { Ok(file) } else { file.with_warnings(warnings) }
    }
}

/// The object of a weight.
fn regrouped(file: &File, weight: &Weight, formula: &Formula, own: &[&str]) -> Result<Regrouped> {
    let group = formula.as_group();
    let mut roles: Vec<(&str, String)> = Vec::new();
    for (role, tensor) in formula.roles() {
        let role = match (role, group) {
            ("codes", Some(_)) => "packed_weight",
            ("biases", Some(_)) => "zeros",
            _ => role,
        };
        let name = tensor.tensor().name();
        if let Some(name) = own.iter().find(|own| **own == name)
            && !roles.iter().any(|(known, _)| known == name)
        {
            roles.push((*name, role.to_owned()));
        }
    }
    for name in own {
        if !roles.iter().any(|(known, _)| known == name) {
            let last = name.rsplit('.').next().unwrap_or(name);
            let is_used = |role: &str| roles.iter().any(|(_, known)| known == role);
            let numbered = (1..).map(|number: u64| format!("{last}{number}"));
            let mut candidates = std::iter::once(last.to_owned()).chain(numbered);
            let role = candidates.find(|role| !is_used(role)).unwrap_or_default();
            roles.push((*name, role));
        }
    }
    let role_of = |tensor: &zt::OwnedTensor| {
        let name = tensor.tensor().name();
        let role = roles.iter().find(|(known, _)| *known == name).map(|(_, role)| role.clone());
        let what = || format!("{name}, which several weights share,");
        let dialect = QuantizedWeightFormat::ID;
        role.ok_or_else(|| Error::from(Fault::Unknown { dialect, what: what() }))
    };
    let mut attributes = group.map_or_else(Attributes::new, |group| group.to_attributes());
    attributes.insert(DIALECT, &*weight.dialect);
    attributes.insert(DTYPE, weight.float.dtype().as_str());
    attributes.insert(VALUE, formula.describe(role_of)?);
    if !weight.header.is_empty() {
        let keys = weight.header.iter().map(|key| Value::from(key.as_str()));
        attributes.insert(HEADER, Value::array(keys.collect()));
    }
    let (mut parts, mut components) = (Vec::new(), Vec::new());
    for (name, role) in &roles {
        let tensor = file.tensor(name)?;
        parts.push(StoredPart {
            role: role.clone(),
            name: (*name).to_owned(),
            shape: tensor.shape().to_vec(),
            attributes: tensor.attributes().clone(),
        });
        components.push((Text::Owned(role.clone()), (*name).to_owned(), Text::Borrowed("data")));
    }
    let (key, value) = StoredPart::to_attribute(&parts);
    attributes.insert(key, value);
    let format = if group.is_some() { "quantized_group" } else { QuantizedWeightFormat::ID };
    let (name, shape) = (weight.name.clone(), formula.shape().to_vec());
    Ok(Regrouped { name, shape, format: Text::Borrowed(format), attributes, components })
}

/// A file whose objects of quantized weights are the tensors that they were made of; `None` if it has no such object.
///
/// Nothing is read.
///
/// # Errors
///
/// Code `duplicate-name` if a part has the name of another tensor; as [`File::attributes`].
pub fn stored(file: &File) -> Result<Option<File>> {
    Ok(unpack(file)?.map(|(file, _)| file))
}

/// As [`stored`], and the objects.
pub(crate) fn unpack(file: &File) -> Result<Option<(File, Vec<WeightObject>)>> {
    let mut objects = Vec::new();
    for entry in file.entries() {
        if let Ok(tensor) = entry.tensor()
            && tensor.fault().is_none()
            && let Some(object) = WeightObject::of(tensor)?
        {
            objects.push(object);
        }
    }
    if objects.is_empty() {
        return Ok(None);
    }
    let made = objects.iter().flat_map(|object| {
        object.parts.iter().map(|part| Regrouped {
            name: part.name.clone(),
            shape: part.shape.clone(),
            format: Text::Borrowed("dense"),
            attributes: part.attributes.clone(),
            components: vec![(
                Text::Borrowed("data"),
                object.name.clone(),
                Text::Owned(part.role.clone()),
            )],
        })
    });
    let names: HashSet<&str> = objects.iter().map(|object| &*object.name).collect();
    let file = file.regroup(|name| !names.contains(name), made)?;
    Ok(Some((file, objects)))
}

/// An object of a quantized weight.
pub(crate) struct WeightObject {
    pub(crate) name: String,
    shape: Vec<u64>,
    attributes: Attributes,
    parts: Vec<StoredPart>,
}

impl WeightObject {
    fn of(tensor: Tensor<'_>) -> Result<Option<Self>> {
        let attributes = tensor.attributes();
        let is_one = [QuantizedWeightFormat::ID, "quantized_group"].contains(&tensor.format());
        if !is_one || attributes.get(VALUE).is_none() {
            return Ok(None);
        }
        let blame = |error| Error::from(error).with_object(tensor.name());
        let Some(mut parts) = StoredPart::of(attributes).map_err(blame)? else {
            return Ok(None);
        };
        // Parts whose component is not there are none. A component that is no part would be lost.
        parts.retain(|part| tensor.component(&part.role).is_ok());
        if parts.len() != tensor.components().count() {
            return Ok(None);
        }
        parts.sort_by_key(|part| !["codes", "packed_weight"].contains(&&*part.role));
        let (name, shape) = (tensor.name().to_owned(), tensor.shape().to_vec());
        Ok(Some(WeightObject { name, shape, attributes: attributes.clone(), parts }))
    }

    /// The weight, of the tensors of `file`.
    pub(crate) fn weight(&self, file: &File) -> Weight {
        let text = |key: &str| self.attributes.get(key).and_then(Value::as_str);
        let dialect = text(DIALECT).unwrap_or(QuantizedWeightFormat::ID).to_owned();
        let float = text(DTYPE).and_then(FloatType::from_name).unwrap_or(FloatType::F32);
        let part = |role: &str| {
            let part = self.parts.iter().find(|part| part.role == role);
            let dialect = QuantizedWeightFormat::ID;
            let part = part.ok_or_else(|| Fault::Missing { dialect, part: role.to_owned() })?;
            file.owned_tensor(&part.name)
        };
        let value = self.attributes.get(VALUE).unwrap_or(&Value::Null);
        let formula = Formula::described(&self.shape, value, part);
        let parts = self.parts.iter().map(|part| part.name.clone());
        let keys = self.attributes.get(HEADER).and_then(Value::as_array).unwrap_or_default();
        let keys = keys.iter().filter_map(|key| Some(key.as_str()?.to_owned()));
        Weight::new(&self.name, dialect, parts, float, formula).with_header(keys)
    }
}
