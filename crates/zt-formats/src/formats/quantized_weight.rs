//! `zt.quantized/1`: a weight as the codes and scales of a quantized checkpoint. Spec: formats/zt.quantized.

use zt_manifest::{Attributes, Text, Value};

use crate::base::{
    AttributeFault, Error, ObjectFormat, Registry, Result, Signature, Unsupported, attribute,
    element_count,
};

const CODES: &str = "codes";
const PARTS: &str = "parts";
const VALUE: &str = "value";
const NAME: &str = "name";
const SHAPE: &str = "shape";
const ATTRIBUTES: &str = "attributes";

/// The rules of `zt.quantized/1`.
///
/// Each component is a tensor of a quantized checkpoint, byte for byte: `codes`, their scales, and what describes them.
/// The attribute `parts` has the name and the shape that each had, and the attribute `value` says how the values of the
/// weight are made of them. This crate checks the lengths; `zt-quantized` computes values.
#[derive(Debug, Clone, Copy, Default)]
pub struct QuantizedWeightFormat;

/// A tensor of a quantized checkpoint that is a component of an object, as it was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPart {
    /// Its role in the object.
    pub role: String,
    /// Its name in the checkpoint.
    pub name: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its attributes.
    pub attributes: Attributes,
}

impl StoredPart {
    /// The parts that the attribute `parts` of an object lists; `None` without that attribute.
    ///
    /// # Errors
    ///
    /// Malformed: it is not as the specification says (`attribute`).
    pub fn of(attributes: &Attributes) -> Result<Option<Vec<StoredPart>>> {
        let Some(parts) = attribute::map(attributes, PARTS)? else {
            return Ok(None);
        };
        let part = |(role, part): (&Value, &Value)| {
            let map = part.as_map()?;
            let shape = map.get(SHAPE)?.as_array()?.iter().map(Value::as_u64);
            Some(StoredPart {
                role: role.as_str()?.to_owned(),
                name: map.get(NAME)?.as_str()?.to_owned(),
                shape: shape.collect::<Option<_>>()?,
                attributes: match map.get(ATTRIBUTES) {
                    Some(attributes) => attributes.as_map()?.clone(),
                    None => Attributes::new(),
                },
            })
        };
        let parts: Option<Vec<StoredPart>> = parts.iter().map(part).collect();
        let expected = "a map of names and shapes";
        parts.map(Some).ok_or_else(|| attribute::fault(PARTS, AttributeFault::Type { expected }))
    }

    /// The attribute `parts` for these parts.
    pub fn to_attribute<'p>(parts: impl IntoIterator<Item = &'p StoredPart>) -> (String, Value) {
        let pair = |part: &StoredPart| {
            let mut map = Attributes::new();
            map.insert(NAME, part.name.as_str());
            map.insert(SHAPE, Value::array(part.shape.iter().copied().map(Value::from).collect()));
            if !part.attributes.is_empty() {
                map.insert(ATTRIBUTES, Value::Map(part.attributes.clone()));
            }
            (Value::from(part.role.as_str()), Value::Map(map))
        };
        (PARTS.to_owned(), Value::Map(parts.into_iter().map(pair).collect()))
    }
}

impl QuantizedWeightFormat {
    /// The id of the format.
    pub const ID: &str = "zt.quantized/1";
}

impl ObjectFormat for QuantizedWeightFormat {
    fn id(&self) -> &str {
        Self::ID
    }

    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        signature.component(CODES)?;
        signature.element_count(CODES)?;
        attribute::map(signature.attributes, VALUE)?.ok_or_else(|| attribute::missing(VALUE))?;
        let fault = |expected| attribute::fault(PARTS, AttributeFault::Type { expected });
        let parts = StoredPart::of(signature.attributes)?;
        let parts = parts.ok_or_else(|| attribute::missing(PARTS))?;
        for component in &signature.components {
            let part = parts.iter().find(|part| part.role == component.role);
            let part = part.ok_or_else(|| fault("a map with each component"))?;
            let count = element_count(&part.shape);
            let count = count.ok_or_else(|| fault("a map of shapes of fewer than 2^64 values"))?;
            if component.is_understood(registry) {
                component.expect_values(count, registry)?;
            }
        }
        Ok(())
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[])
    }

    fn value_type(&self, signature: &Signature<'_>) -> Option<Text> {
        let codes = signature.get(CODES)?;
        if let Some(name) = codes.logical_type() {
            return Some(Text::Owned(name.to_owned()));
        }
        let value = attribute::map(signature.attributes, VALUE).ok()??;
        let packing = value.get(CODES)?.as_map()?.get("packing")?.as_map()?;
        Some(Text::Owned(format!("{}-bit", packing.get("bits")?.as_u64()?)))
    }

    fn to_dense(&self, _: crate::base::Parts<'_>) -> Result<crate::base::Dense<'static>> {
        Err(Error::Unsupported(Unsupported::Logical))
    }
}
