//! The layout profiles of zTensor 2 that equal our formats, with one rule more each.

use zt::formats::{
    Error, FormatViolation, IndexBound, Places, ReadParts, Result, SparseCooFormat,
    SparseCsrFormat, indices,
};
use zt::manifest::Text;
use zt::{DType, Dense, ObjectFormat, Parts, Registry, Signature, Typed};

/// `zt.sparse_csr/1`: columns rise within a row, without duplicates.
pub(super) struct RisingCsr;

/// `zt.sparse_coo/1`: places are unique.
pub(super) struct UniqueCoo;

/// The metadata have the rules of our format; the contents have one rule more. `check_strict` is left
/// out, because zTensor 2 allows u32 indices.
macro_rules! stricter {
    ($profile:ty, $format:expr, $check:expr) => {
        impl ObjectFormat for $profile {
            fn id(&self) -> &str {
                $format.id()
            }

            fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
                $format.check(signature, registry)
            }

            fn data_roles(&self) -> Option<&[&str]> {
                // The roles are borrowed from `$format`, so it has to be a constant.
                const { &$format }.data_roles()
            }

            fn is_of_value(&self, role: &str, signature: &Signature<'_>) -> bool {
                $format.is_of_value(role, signature)
            }

            fn check_data(&self, parts: &Parts<'_>) -> Result<()> {
                $format.check_data(parts)?;
                $check(parts)
            }

            fn dense_type(
                &self,
                signature: &Signature<'_>,
                registry: &Registry,
            ) -> Option<(DType, Option<Text>)> {
                $format.dense_type(signature, registry)
            }

            fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
                $format.to_dense(parts)
            }

            fn slice(
                &self,
                places: &[Places],
                reader: &mut dyn ReadParts<'_>,
            ) -> Result<Option<Dense<'static>>> {
                $format.slice(places, reader)
            }
        }
    };
}

stricter!(RisingCsr, SparseCsrFormat, check_rising);
stricter!(UniqueCoo, SparseCooFormat, check_unique);

/// The indices of a component, which the format has checked.
fn checked<'p>(parts: &'p Parts<'_>, role: &'static str) -> Result<Typed<'p, u64>> {
    indices(role, parts.component(role)?.borrow(), 0, u64::MAX)
}

/// The format has checked that row pointers rise to the number of columns.
fn check_rising(parts: &Parts<'_>) -> Result<()> {
    let (columns, pointers) = (checked(parts, "indices")?, checked(parts, "indptr")?);
    let mut starts = pointers.iter().peekable();
    let mut before: Option<u64> = None;
    for (column, position) in columns.iter().zip(0u64..) {
        // A row begins here, perhaps after empty rows.
        while starts.next_if(|start| **start <= position).is_some() {
            before = None;
        }
        if let Some(before) = before.filter(|before| before >= column) {
            return Err(misplaced("indices", position, *column, before));
        }
        before = Some(*column);
    }
    Ok(())
}

/// Memory: eight bytes for each value, for sorting by place.
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "numbers of stored values, which are in memory"
)]
fn check_unique(parts: &Parts<'_>) -> Result<()> {
    let coords = checked(parts, "coords")?;
    let Some(stored) = coords.len().checked_div(parts.shape.len()) else {
        return Ok(()); // Without dimensions there are no places.
    };
    // One coordinate in each dimension. Called for stored values only, so the step is not 0.
    let place = |at: usize| coords.iter().skip(at).step_by(stored);
    let mut order = Vec::new();
    let byte_len = stored as u64 * 8;
    let reserved = order.try_reserve_exact(stored);
    reserved.map_err(|_| Error::Allocation { byte_len })?;
    order.extend(0..stored);
    order.sort_unstable_by(|a, b| place(*a).cmp(place(*b)).then(a.cmp(b)));
    let mut pairs = order.iter().zip(order.iter().skip(1));
    match pairs.find(|(a, b)| place(**a).eq(place(**b))) {
        Some((_, again)) => {
            let first = coords[*again];
            Err(misplaced("coords", *again as u64, first, first))
        }
        None => Ok(()),
    }
}

/// The error for an index that is not above `before`.
fn misplaced(role: &'static str, position: u64, value: u64, before: u64) -> Error {
    FormatViolation::IndexValue { position, value: value.into(), bound: IndexBound::Above(before) }
        .of(role)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zt::Elements;
    use zt::formats::View;

    fn code(result: Result<()>) -> Option<&'static str> {
        result.err().map(|error| error.code())
    }

    #[test]
    fn columns_rise_within_each_row() {
        let csr = |indices: &[u64], indptr: &[u64]| {
            let parts = Parts {
                shape: vec![3, 9].into(),
                attributes: std::borrow::Cow::Owned(zt::Attributes::new()),
                elements: vec![
                    ("indices".into(), Elements::from(indices.to_vec())),
                    ("indptr".into(), Elements::from(indptr.to_vec())),
                ],
            };
            code(RisingCsr.check_data(&parts))
        };
        assert_eq!(csr(&[1, 4, 0, 8], &[0, 2, 2, 4]), None);
        assert_eq!(csr(&[4, 0, 8, 0], &[0, 1, 3, 4]), None);
        assert_eq!(csr(&[4, 1, 0, 8], &[0, 2, 2, 4]), Some("index-value"));
        assert_eq!(csr(&[1, 4, 4, 8], &[0, 1, 1, 4]), Some("index-value"));
        assert_eq!(zt::Csr::FORMAT, RisingCsr.id());
    }

    #[test]
    fn places_are_unique() {
        let coo = |coords: &[u32]| {
            let parts = Parts {
                shape: vec![3, 9].into(),
                attributes: std::borrow::Cow::Owned(zt::Attributes::new()),
                elements: vec![("coords".into(), Elements::from(coords.to_vec()))],
            };
            code(UniqueCoo.check_data(&parts))
        };
        assert_eq!(coo(&[2, 1, 2, 0, 0, 1]), None);
        assert_eq!(coo(&[2, 1, 2, 0, 0, 0]), Some("index-value"));
    }
}
