//! The value of a `Constant` that is a number or a list of numbers, and no `TensorProto`.
//!
//! Operator `Constant` of `ai.onnx`, since version 12. The name of the attribute gives the type.

use zt::{Limits, Result, Span};

use crate::element::{STRING, Values};
use crate::fault::OnnxFault;
use crate::tensor::{Stored, Tensor};
use crate::typed::{RUNS_MAX, Runs};
use crate::wire::{Field, Fields, Window};

/// Numbers of the fields of an `AttributeProto`.
mod field {
    pub(super) const FLOAT: u32 = 2;
    pub(super) const INT: u32 = 3;
    pub(super) const STRING: u32 = 4;
    pub(super) const FLOATS: u32 = 7;
    pub(super) const INTS: u32 = 8;
    pub(super) const STRINGS: u32 = 9;
    pub(super) const TYPE: u32 = 20;
    pub(super) const REFERENCE: u32 = 21;
}

/// An attribute that a `Constant` may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Constant {
    /// The field with its value.
    field: u32,
    /// Its `AttributeProto.AttributeType`.
    attribute_type: i64,
    is_list: bool,
    /// The `TensorProto.DataType` of the tensor.
    data_type: i64,
    /// The field in which a tensor stores such values; `None` for strings.
    values: Option<Values>,
}

impl Constant {
    pub(super) fn of(name: &str) -> Option<Self> {
        let (floats, ints) = ((1, Some(Values::Float)), (7, Some(Values::Int64)));
        let strings = (STRING, None);
        let (field, attribute_type, is_list, (data_type, values)) = match name {
            "value_float" => (field::FLOAT, 1, false, floats),
            "value_int" => (field::INT, 2, false, ints),
            "value_string" => (field::STRING, 3, false, strings),
            "value_floats" => (field::FLOATS, 6, true, floats),
            "value_ints" => (field::INTS, 7, true, ints),
            "value_strings" => (field::STRINGS, 8, true, strings),
            _ => return None,
        };
        Some(Constant { field, attribute_type, is_list, data_type, values })
    }

    /// The tensor of the attribute in `span`; `None` if a function gets the value from its caller.
    #[expect(clippy::arithmetic_side_effects, reason = "a value has a byte")]
    pub(super) fn read(
        self,
        window: &mut Window<'_>,
        span: Span,
        limits: &Limits,
    ) -> Result<Option<Tensor>> {
        let mut runs = self.values.map(Runs::new);
        let (mut count, mut fault) = (0u64, None);
        let mut fields = Fields::of(span);
        while let Some(field) = fields.next(window)? {
            match field.number {
                field::REFERENCE if !field.bytes()?.is_empty() => return Ok(None),
                field::TYPE if field.integer()? != self.attribute_type => {
                    fault = Some(OnnxFault::Fields)
                }
                number if number == self.field => {
                    if !self.is_list {
                        // The last of several equal fields counts.
                        (runs, count) = (self.values.map(Runs::new), 0);
                    }
                    count += self.count(window, &field)?;
                    let is_kept = runs.as_mut().map(|runs| runs.push(&field)).transpose()?;
                    if is_kept == Some(false) {
                        let limit = RUNS_MAX;
                        fault.get_or_insert(OnnxFault::Scattered { limit });
                    }
                }
                field::FLOAT..=field::STRING | field::FLOATS..=field::STRINGS => {
                    fault = Some(OnnxFault::Fields);
                }
                _ => {}
            }
        }
        let shape: Vec<u64> = self.is_list.then_some(count).into_iter().collect();
        if shape.len() > limits.rank {
            let limit = limits.rank;
            fault.get_or_insert(OnnxFault::Rank { limit });
        }
        let stored = match runs {
            // Writers of proto3 omit a 0.
            Some(_) if !self.is_list && count == 0 => Stored::Zero,
            Some(runs) => Stored::Typed(runs),
            None => Stored::Raw(Span::default()),
        };
        Ok(Some(Tensor {
            name: String::new(),
            shape,
            data_type: self.data_type,
            stored,
            attributes: None,
            repeated: None,
            span,
            fault,
        }))
    }

    /// The number of values in a field: several packed ones, or one. A truncated last one is found
    /// when the values are read.
    fn count(self, window: &mut Window<'_>, field: &Field) -> Result<u64> {
        let Some(values) = self.values else {
            return field.bytes().map(|_| 1);
        };
        if !self.is_list || field.wire == values.wire() {
            return field.expect(values.wire()).map(|()| 1);
        }
        let packed = field.bytes()?;
        match values {
            Values::Float => Ok(packed.byte_len() / 4),
            _ => window.varints(packed),
        }
    }
}
