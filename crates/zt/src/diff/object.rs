//! The comparison of two objects of one name.

use std::collections::HashMap;

use zt_formats::{Dense, View, dense_byte_len};
use zt_manifest::{DType, Text, Value};

use super::distance::Distance;
use super::number::{Rule, compare};
use super::stream::for_pairs;
use super::{Change, DiffOptions, Side, ValueDiff, attributes, unless_interrupted};
use crate::cores::progress::Gauge;
use crate::error::{Error, Result};
use crate::file::tensor::{Located, Tensor};
use crate::read::arrays as values;
use crate::read::compressed::DATA;
use crate::read::per_value;

/// The differences of two objects. Only an interruption is an error.
pub(super) fn changes(
    a: &Tensor<'_>,
    b: &Tensor<'_>,
    options: &DiffOptions<'_>,
    gauge: &Gauge<'_>,
) -> Result<Vec<Change>> {
    let mut pair = Pair {
        a: *a,
        b: *b,
        types: a.dense_type().zip(b.dense_type()),
        options,
        gauge,
        changes: Vec::new(),
    };
    match pair.compare() {
        Ok(()) => {}
        Err((side, error)) => pair.changes.push(unless_interrupted(side, error)?),
    }
    Ok(pair.changes)
}

/// The distance of the dense values of two objects, or why there is none. Only an interruption is an error.
pub(super) fn distance(
    a: &Tensor<'_>,
    b: &Tensor<'_>,
    gauge: &Gauge<'_>,
) -> Result<Result<Distance, Change>> {
    if a.shape() != b.shape() {
        let (a, b) = (a.shape().to_vec(), b.shape().to_vec());
        return Ok(Err(Change::Shape { a, b }));
    }
    let found = match (values::Array::of_value(a), values::Array::of_value(b)) {
        (Err(error), _) => Err((Side::A, error)),
        (_, Err(error)) => Err((Side::B, error)),
        (Ok(a), Ok(b)) => for_pairs(a, b, gauge, |a, b, _| Distance::of(a, b)),
    };
    match found {
        Ok(distance) => Ok(Ok(distance)),
        Err((side, error)) => Ok(Err(unless_interrupted(side, error)?)),
    }
}

/// The number of bytes to compare of an object; the maximum if it is unknown.
pub(super) fn byte_len(tensor: &Tensor<'_>, options: &DiffOptions<'_>) -> u64 {
    let lens = tensor.components();
    let lens = lens.map(|(_, component)| component.blob.decoded_len.unwrap_or(u64::MAX));
    let stored = lens.fold(0, u64::saturating_add);
    let is_decoded = options.by_dense_value() || options.values || options.tolerance.is_some();
    match tensor.dense_type().filter(|_| is_decoded) {
        Some((dtype, logical_type)) => {
            let value_len = tensor.value_len(dtype, logical_type.as_deref());
            let dense = dense_byte_len(tensor.shape(), value_len as u64);
            stored.max(dense.unwrap_or(u64::MAX))
        }
        None => stored,
    }
}

type Type = (DType, Option<Text>);

struct Pair<'f, 'o> {
    a: Tensor<'f>,
    b: Tensor<'f>,
    /// The dense values, if both objects have one.
    types: Option<(Type, Type)>,
    options: &'o DiffOptions<'o>,
    gauge: &'o Gauge<'o>,
    changes: Vec<Change>,
}

impl Pair<'_, '_> {
    fn compare(&mut self) -> Result<(), (Side, Error)> {
        let (a, b) = (self.a, self.b);
        let by_value = self.types.clone().filter(|_| self.options.by_dense_value());
        let is_by_value = by_value.is_some();
        let (of_a, of_b) = (format(&a), format(&b));
        let is_one_format = of_a == of_b;
        if a.shape() != b.shape() {
            let (a, b) = (a.shape().to_vec(), b.shape().to_vec());
            self.changes.push(Change::Shape { a, b });
        }
        if !is_one_format && !is_by_value {
            let (a, b) = (of_a.to_owned(), of_b.to_owned());
            self.changes.push(Change::Format { a, b });
        }
        let matters = |side, key: &Value| {
            let tensor = if side == Side::A { &a } else { &b };
            let is_decoded = is_by_value || tensor.stands_for().is_some();
            !is_decoded || !tensor.is_parameter(key)
        };
        let only_values = self.options.only_values;
        if !only_values {
            let changed = attributes(a.attributes(), b.attributes(), matters);
            self.changes.extend(changed.map_err(|error| (Side::A, error))?);
        }

        let has_one_shape = a.shape() == b.shape();
        let mut is_same = false;
        if let Some((a, b)) = by_value {
            if !only_values {
                self.add_types(None, a, b);
            }
        } else if is_one_format {
            is_same = self.compare_components(has_one_shape)?;
        }
        let is_measured = is_by_value || self.measures();
        match self.types.take() {
            Some(types) if has_one_shape && is_measured && !is_same => self.compare_values(types),
            _ => Ok(()),
        }
    }

    /// Whether to compare values as numbers if possible.
    fn measures(&self) -> bool {
        self.options.values || self.options.tolerance.is_some()
    }

    fn add_types(&mut self, role: Option<&str>, a: Type, b: Type) -> bool {
        let role = || role.map(str::to_owned);
        let named = |(dtype, logical_type): &Type| {
            let name = dtype.logical_type(logical_type.as_deref());
            name.map(str::to_owned)
        };
        let (of_a, of_b) = (named(&a), named(&b));
        let (a, b) = (a.0, b.0);
        if a != b {
            self.changes.push(Change::DType { role: role(), a, b });
        }
        let is_one_type = a == b && of_a == of_b;
        if of_a != of_b {
            let (role, a, b) = (role(), of_a, of_b);
            self.changes.push(Change::LogicalType { role, a, b });
        }
        is_one_type
    }

    /// Compares roles and types of components, and their values unless numbers are compared.
    /// Returns whether all values are equal.
    fn compare_components(&mut self, has_one_shape: bool) -> Result<bool, (Side, Error)> {
        let (a, b) = (self.a, self.b);
        // If every component has a part of each value, comparing numbers is enough.
        let format = a.registry().format(a.format());
        let is_plain = format.is_some_and(|format| per_value(&a, format).is_some());
        let is_later = self.types.is_some() && self.measures();
        let is_later = is_later && (is_plain || self.options.tolerance.is_some());
        let is_of_value = roles_of_value(&a);
        let others = arrays(&b);
        let mut others: HashMap<&str, Array<'_>> =
            others.map(|array| (array.role(), array)).collect();
        let mut is_same = !is_later;
        for array in arrays(&a) {
            let role = array.role();
            let Some(other) = others.remove(role) else {
                self.add_lonely(role, Side::A);
                is_same = false;
                continue;
            };
            let of_a = array.stored_type(&a).map_err(|error| (Side::A, error))?;
            let of_b = other.stored_type(&b).map_err(|error| (Side::B, error))?;
            let is_one_type = self.add_types(Some(role), of_a.clone(), of_b.clone());
            is_same &= is_one_type;
            let is_later = is_later && is_of_value(role);
            if is_later || !is_one_type || !has_one_shape {
                continue;
            }
            let exact = Rule { measure: false, tolerance: None };
            let diff =
                self.compare_arrays(array.values(&a, of_a), other.values(&b, of_b), exact)?;
            if diff.different > 0 {
                let role = Some(role.to_owned());
                self.changes.push(Change::Values { role, diff });
                is_same = false;
            }
        }
        for array in arrays(&b).filter(|array| others.contains_key(array.role())) {
            self.add_lonely(array.role(), Side::B);
            is_same = false;
        }
        Ok(is_same)
    }

    fn add_lonely(&mut self, role: &str, side: Side) {
        let role = role.to_owned();
        self.changes.push(Change::Component { role, side });
    }

    fn compare_arrays(
        &self,
        a: values::Array<'_>,
        b: values::Array<'_>,
        rule: Rule,
    ) -> Result<ValueDiff, (Side, Error)> {
        for_pairs(a, b, self.gauge, |a, b, first| compare(a, b, rule, first))
    }

    fn compare_values(&mut self, (of_a, of_b): (Type, Type)) -> Result<(), (Side, Error)> {
        let rule = Rule { measure: self.measures(), tolerance: self.options.tolerance };
        let (a, b) =
            (values::Array::new(&self.a, None, of_a), values::Array::new(&self.b, None, of_b));
        let diff = self.compare_arrays(a, b, rule)?;
        if diff.different > 0 {
            self.changes.push(Change::Values { role: None, diff });
        }
        Ok(())
    }
}

/// The format of the object, or of the dense one that it stands for.
fn format<'f>(tensor: &Tensor<'f>) -> &'f str {
    match tensor.stands_for() {
        Some(_) => Dense::FORMAT,
        None => tensor.format(),
    }
}

/// An array of values: a component of an object, or of the dense object that it stands for.
enum Array<'f> {
    Component(Located<'f>),
    Dense(Type),
}

/// Whether the values are made of the array of a role, as [`arrays`] lists them.
fn roles_of_value(tensor: &Tensor<'_>) -> impl Fn(&str) -> bool {
    let (stands, is_of_value) = (tensor.stands_for().is_some(), tensor.roles_of_value());
    move |role| is_of_value(role) || stands && role == DATA
}

/// The arrays of the object, or of the dense one that it stands for.
fn arrays<'f>(tensor: &Tensor<'f>) -> impl Iterator<Item = Array<'f>> {
    let dense = tensor.stands_for();
    let (stands, is_of_value) = (dense.is_some(), tensor.roles_of_value());
    let parts = tensor.located();
    let parts = parts.filter(move |part| !stands || !is_of_value(part.role));
    dense.map(Array::Dense).into_iter().chain(parts.map(Array::Component))
}

impl<'f> Array<'f> {
    fn role(&self) -> &'f str {
        match self {
            Array::Component(part) => part.role,
            Array::Dense(_) => DATA,
        }
    }

    fn stored_type(&self, tensor: &Tensor<'f>) -> Result<Type> {
        match self {
            Array::Component(part) => {
                let dtype = tensor.dtype_to_write_of(*part)?;
                Ok((dtype, part.component.logical_type.clone()))
            }
            Array::Dense(dense) => Ok(dense.clone()),
        }
    }

    fn values(&self, tensor: &Tensor<'f>, of: Type) -> values::Array<'f> {
        let part = match self {
            Array::Component(part) => Some(*part),
            Array::Dense(_) => None,
        };
        values::Array::new(tensor, part, of)
    }
}
