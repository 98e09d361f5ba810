//! Components of numbers: scales and zero-points.

use zt_manifest::{DType, Text};

use crate::base::buffer::reserved;
use crate::base::{
    ComponentSignature, Decode, Elements, Error, FormatViolation, Registry, Result, Scalar,
    Unsupported,
};

/// The numbers that a role takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Floating-point numbers, FP8 included.
    Floats,
    /// Real numbers of any type.
    Reals,
}

/// Refuses a component whose type its role does not take. A missing dtype passes.
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
        Some(name) => {
            let decode = registry.logical_type(name).map(|logical| logical.decode);
            matches!(decode, Some(Decode::F32(_) | Decode::F64(_)))
        }
    };
    if is_taken {
        return Ok(());
    }
    let expected = match numbers {
        Numbers::Floats => "a floating-point type",
        Numbers::Reals => "a real number's type",
    };
    let found = Some(dtype);
    Err(FormatViolation::DType { expected, found }.of(component.role.to_owned()))
}

/// Refuses elements of an unknown logical type.
pub(crate) fn expect_known(elements: &Elements<'_>, registry: &Registry) -> Result<()> {
    match elements.logical_type() {
        Some(name) if registry.logical_type(name).is_none() => {
            let name = Text::Owned(name.to_owned());
            Err(Error::Unsupported(Unsupported::LogicalType(name)))
        }
        _ => Ok(()),
    }
}

/// A type to compute in.
pub(crate) trait Number: Copy + Default {
    /// The scalar, rounded once; `None` if it is complex.
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
/// Unsupported for a logical type outside the specification; malformed if the last number is not
/// whole.
pub(crate) fn to_numbers<T: Number>(role: &'static str, elements: &Elements<'_>) -> Result<Vec<T>> {
    let registry = Registry::builtin();
    expect_known(elements, &registry)?;
    let scalars = elements.scalars(&registry);
    let scalars = scalars.map_err(|error| error.with_role(role))?;
    let mut numbers = reserved(scalars.len())?;
    // Complex numbers were refused by `check_numbers`.
    numbers.extend(scalars.filter_map(T::from_scalar));
    Ok(numbers)
}
