//! Components of numbers that take part in arithmetic: scales and zero-points.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use zt_manifest::{DType, Text};

use crate::base::buffer::reserved;
use crate::base::elements::Elements;
use crate::base::error::{Error, Result, Unsupported, Violation};
use crate::base::logical::Decode;
use crate::base::registry::Registry;
use crate::base::scalar::Scalar;
use crate::base::signature::ComponentSignature;

/// Which numbers a role takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Floating-point ones, FP8 included.
    Floats,
    /// Any real ones.
    Reals,
}

/// Refuses a component of other types than its role takes. A dtype that the file does not say is no
/// fault here.
pub(crate) fn check_numbers(
    component: &ComponentSignature<'_>,
    numbers: Numbers,
    registry: &Registry,
) -> Result<()> {
    let Some(dtype) = component.dtype else {
        return Ok(());
    };
    let is_taken = match component.logical_type() {
        None if numbers == Numbers::Floats => dtype.is_float(),
        None => dtype != DType::Bool,
        Some(name) => registry
            .logical_type(name)
            .is_some_and(|logical| matches!(logical.decode, Decode::F32(_) | Decode::F64(_))),
    };
    if is_taken {
        return Ok(());
    }
    let expected = match numbers {
        Numbers::Floats => "a floating-point type",
        Numbers::Reals => "a real number's type",
    };
    let found = Some(dtype);
    Err(Violation::DType { expected, found }.of(component.role.to_owned()))
}

/// Refuses elements of a logical type that has no known numbers.
///
/// # Errors
///
/// Unsupported, with the logical type.
pub(crate) fn expect_known(elements: &Elements<'_>, registry: &Registry) -> Result<()> {
    match elements.logical_type() {
        Some(name) if registry.logical_type(name).is_none() => {
            let name = Text::Owned(name.to_owned());
            Err(Error::Unsupported(Unsupported::LogicalType(name)))
        }
        _ => Ok(()),
    }
}

/// A type that arithmetic is done in.
pub(crate) trait Number: Copy + Default {
    /// The scalar, rounded once; `None` where it is complex.
    fn from_scalar(scalar: Scalar) -> Option<Self>;
}

impl Number for f32 {
    fn from_scalar(scalar: Scalar) -> Option<Self> {
        scalar.as_f32()
    }
}

impl Number for f64 {
    fn from_scalar(scalar: Scalar) -> Option<Self> {
        scalar.as_f64()
    }
}

/// The numbers as f32 or f64, rounded once.
///
/// # Errors
///
/// Unsupported: a logical type outside the specification. Malformed: the last number is not whole.
pub(crate) fn to_numbers<T: Number>(role: &'static str, elements: &Elements<'_>) -> Result<Vec<T>> {
    let registry = Registry::builtin();
    expect_known(elements, &registry)?;
    let scalars = elements
        .scalars(&registry)
        .map_err(|error| error.with_role(role))?;
    let mut numbers = reserved(scalars.len())?;
    // Complex numbers were refused by `check_numbers`.
    numbers.extend(scalars.filter_map(T::from_scalar));
    Ok(numbers)
}
