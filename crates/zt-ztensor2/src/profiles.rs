//! The layout profiles of zTensor 2 that equal our formats, with one rule more each.

use zt::formats::{
    Error, IndexBound, Places, ReadParts, Result, SparseCooFormat, SparseCsrFormat, Violation,
};
use zt::manifest::Text;
use zt::{DType, Dense, Elements, ObjectFormat, Parts, Registry, Signature};

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

/// Indices in memory: u32 or u64, little-endian.
struct Indices<'a> {
    bytes: &'a [u8],
    width: usize,
}

impl<'a> Indices<'a> {
    fn of(elements: &'a Elements<'_>) -> Self {
        Indices {
            bytes: &elements.bytes,
            width: elements.dtype.byte_len().max(1),
        }
    }

    fn len(&self) -> usize {
        self.bytes.chunks_exact(self.width).len()
    }

    fn get(&self, at: usize) -> Option<u64> {
        let start = at.checked_mul(self.width)?;
        let bytes = self.bytes.get(start..start.checked_add(self.width)?)?;
        let bytes = bytes.iter().rev();
        Some(bytes.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

/// The format has checked that row pointers rise to the number of columns.
fn check_rising(parts: &Parts<'_>) -> Result<()> {
    let columns = Indices::of(parts.component("indices")?);
    let pointers = Indices::of(parts.component("indptr")?);
    let mut starts = pointers.iter().peekable();
    let mut before: Option<u64> = None;
    for (column, position) in columns.iter().zip(0u64..) {
        // A row begins here, perhaps after empty rows.
        while starts.next_if(|start| *start <= position).is_some() {
            before = None;
        }
        if let Some(before) = before.filter(|before| *before >= column) {
            return Err(misplaced("indices", position, column, before));
        }
        before = Some(column);
    }
    Ok(())
}

/// Memory: eight bytes for each value, for sorting by place.
#[expect(clippy::expect_used, reason = "positions of stored values")]
fn check_unique(parts: &Parts<'_>) -> Result<()> {
    let coords = &Indices::of(parts.component("coords")?);
    let rank = parts.shape.len();
    let Some(stored) = coords.len().checked_div(rank) else {
        return Ok(()); // Without dimensions there are no places.
    };
    let place = |at: usize| {
        (0..rank).map(move |axis| {
            let at = axis.checked_mul(stored).and_then(|row| row.checked_add(at));
            at.and_then(|at| coords.get(at))
        })
    };
    let mut order = Vec::new();
    let byte_len = (stored as u64).saturating_mul(8);
    let reserved = order.try_reserve_exact(stored);
    reserved.map_err(|_| Error::Allocation { byte_len })?;
    order.extend(0..stored);
    order.sort_unstable_by(|a, b| place(*a).cmp(place(*b)).then(a.cmp(b)));
    let mut pairs = order.iter().zip(order.iter().skip(1));
    match pairs.find(|(a, b)| place(**a).eq(place(**b))) {
        Some((_, again)) => {
            let first = coords.get(*again).expect("a stored value");
            Err(misplaced("coords", *again as u64, first, first))
        }
        None => Ok(()),
    }
}

/// The error for an index that is not above `before`.
fn misplaced(role: &'static str, position: u64, value: u64, before: u64) -> Error {
    Violation::IndexValue {
        position,
        value: value.into(),
        bound: IndexBound::Above(before),
    }
    .of(role)
}

#[cfg(test)]
mod tests {
    use super::*;
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
