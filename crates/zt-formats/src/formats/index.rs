//! Components of indices: their dtypes, and their values as u64.

use zt_manifest::DType;

use crate::base::buffer::reserved;
use crate::base::{
    ComponentSignature, Element, Elements, Error, FormatViolation, IndexBound, LogicalType, Result,
    Typed,
};

/// A part of a component of indices as u64: borrowed if they are u64 or i64, and aligned. `from` is
/// the position of the first one in the component, which errors count from.
///
/// # Errors
///
/// Malformed: a dtype without integers (`index-dtype`), or an index that is not below `limit`
/// (`index-value`). Allocation.
pub fn indices<'a>(
    role: &'static str,
    elements: Elements<'a>,
    from: u64,
    limit: u64,
) -> Result<Typed<'a, u64>> {
    let indices = to_u64(role, elements, from, |_| IndexBound::Below(limit))?;
    check_below(role, &indices, limit, from)?;
    Ok(indices)
}

/// Refuses indices of a dtype without integers. The specification permits only u64. But the
/// reference implementation up to 1.2.3 writes the caller's type, which is i32 for SciPy. Spec:
/// formats/sparse_csr.
pub(crate) fn check_dtype(component: &ComponentSignature<'_>) -> Result<()> {
    let is_integer = component.dtype.is_some_and(is_integer);
    // An unknown logical type leaves storage elements that are integers. Codes of FP8 are none.
    let is_plain = component.logical_type();
    let is_plain = is_plain.is_none_or(|name| LogicalType::builtin(name).is_none());
    if is_integer && is_plain { Ok(()) } else { Err(refused(component)) }
}

/// Refuses indices that are not u64. Spec: formats/sparse_csr, formats/sparse_coo.
pub(crate) fn check_strict(component: &ComponentSignature<'_>) -> Result<()> {
    match (component.dtype, component.logical_type()) {
        (Some(DType::U64), None) => Ok(()),
        _ => Err(refused(component)),
    }
}

fn refused(component: &ComponentSignature<'_>) -> Error {
    let found = component.dtype;
    FormatViolation::IndexDType { found }.of(component.role.to_owned())
}

pub(crate) const fn is_integer(dtype: DType) -> bool {
    !dtype.is_float() && !matches!(dtype, DType::Bool)
}

/// The indices as u64: borrowed if they are u64 or i64. `from` is the position of the first one in
/// the component. `bound` is the rule that a negative index at a position breaks.
pub(crate) fn to_u64<'a>(
    role: &'static str,
    elements: Elements<'a>,
    from: u64,
    bound: impl Fn(u64) -> IndexBound,
) -> Result<Typed<'a, u64>> {
    let found = Some(elements.dtype);
    let indices = match elements.dtype {
        DType::U64 => elements.into_typed::<u64>(),
        DType::I64 => non_negative(elements, from, bound),
        DType::I32 => widen::<i32>(&elements, from, bound),
        DType::I16 => widen::<i16>(&elements, from, bound),
        DType::I8 => widen::<i8>(&elements, from, bound),
        DType::U32 => widen::<u32>(&elements, from, bound),
        DType::U16 => widen::<u16>(&elements, from, bound),
        DType::U8 => widen::<u8>(&elements, from, bound),
        _ => Err(FormatViolation::IndexDType { found }.of(role)),
    };
    indices.map_err(|error| match error {
        // A known logical type of integers.
        Error::Misuse(_) => FormatViolation::IndexDType { found }.of(role),
        error => error.with_role(role),
    })
}

/// i64 that are not negative have the same bytes as u64.
fn non_negative(
    elements: Elements<'_>,
    from: u64,
    bound: impl Fn(u64) -> IndexBound,
) -> Result<Typed<'_, u64>> {
    // The minimum first: a loop without an exit is vectorised.
    let signed = elements.as_slice::<i64>()?;
    if signed.iter().min().is_some_and(|least| *least < 0) {
        return widen::<i64>(&elements, from, bound);
    }
    drop(signed);
    let dtype = DType::U64;
    Elements { dtype, ..elements }.into_typed()
}

fn widen<T: Element + Into<i128>>(
    elements: &Elements<'_>,
    from: u64,
    bound: impl Fn(u64) -> IndexBound,
) -> Result<Typed<'static, u64>> {
    let narrow = elements.as_slice::<T>()?;
    let mut wide = reserved(narrow.len())?;
    for (&value, position) in narrow.iter().zip(from..) {
        let value = value.into();
        let index = u64::try_from(value);
        wide.push(index.map_err(|_| violation(position, value, bound(position)).of_object())?);
    }
    Ok(wide.into())
}

/// Refuses indices that are not below `limit`. `from` is the position of the first one in the
/// component.
pub(crate) fn check_below(
    role: &'static str,
    indices: &[u64],
    limit: u64,
    from: u64,
) -> Result<()> {
    // The maximum first: a loop without an exit is vectorised.
    let greatest = indices.iter().max();
    if greatest.is_none_or(|greatest| *greatest < limit) {
        return Ok(());
    }
    let mut faulty = indices.iter().zip(from..);
    let first = faulty.find(|(index, _)| **index >= limit);
    first.map_or(Ok(()), |(&index, position)| {
        Err(violation(position, index.into(), IndexBound::Below(limit)).of(role))
    })
}

pub(crate) const fn violation(position: u64, value: i128, bound: IndexBound) -> FormatViolation {
    FormatViolation::IndexValue { position, value, bound }
}
