//! `sparse_csr`: a sparse matrix by rows. Spec: formats/sparse_csr.

use std::ops::Range;

use zt_manifest::{DType, Text};

use crate::base::{
    Dense, Elements, IndexBound, NewObject, ObjectFormat, Parts, Places, ReadParts, Registry,
    Result, Signature, SizeMismatch, ToObject, Typed, View, element_count,
};
use crate::formats::index::{check_below, check_dtype, check_strict, to_u64, violation};
use crate::formats::scatter::scatter;
use crate::formats::sparse_part::slice;

pub(crate) const VALUES: &str = "values";
pub(crate) const INDICES: &str = "indices";
pub(crate) const INDPTR: &str = "indptr";

/// The rules of `sparse_csr`.
///
/// * The shape has two dimensions.
/// * `indptr` has one pointer for each row and one more. The first is 0, none is below the one
///   before it, and the last is the number of values.
/// * `indices` has one column for each of `values`, within the shape. The columns of a row may be
///   in any order. They may repeat: such values are added.
/// * Indices are u64. Other integers are read, because existing writers use them;
///   [`ObjectFormat::check_strict`] refuses them.
#[derive(Debug, Clone, Copy, Default)]
pub struct SparseCsrFormat;

impl ObjectFormat for SparseCsrFormat {
    fn id(&self) -> &str {
        Csr::FORMAT
    }

    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        let [rows, _] = matrix(signature.shape)?;
        let values = signature.component(VALUES)?;
        let indices = signature.component(INDICES)?;
        let indptr = signature.component(INDPTR)?;
        check_dtype(indices)?;
        check_dtype(indptr)?;
        let pointers = rows.checked_add(1);
        let pointers = pointers.ok_or_else(|| signature.overflow(INDPTR))?;
        indptr.expect_elements(pointers)?;
        match values.value_count(registry)? {
            Some(count) => indices.expect_elements(count),
            None => Ok(()),
        }
    }

    fn check_strict(&self, signature: &Signature<'_>, _: &Registry) -> Result<()> {
        check_strict(signature.component(INDICES)?)?;
        check_strict(signature.component(INDPTR)?)
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[INDICES, INDPTR])
    }

    fn check_data(&self, parts: &Parts<'_>) -> Result<()> {
        let [rows, cols] = matrix(&parts.shape)?;
        let indices = parts.component(INDICES)?.borrow();
        let indptr = parts.component(INDPTR)?.borrow();
        read_indices(rows, cols, indices, indptr).map(drop)
    }

    fn is_of_value(&self, role: &str, _: &Signature<'_>) -> bool {
        [VALUES, INDICES, INDPTR].contains(&role)
    }

    fn dense_type(&self, signature: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        signature.get(VALUES)?.dense_type()
    }

    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        Csr::from_parts(parts)?.to_dense()
    }

    fn slice(
        &self,
        places: &[Places],
        reader: &mut dyn ReadParts<'_>,
    ) -> Result<Option<Dense<'static>>> {
        slice(places, reader, |places, reader| Csr::read_part(places, reader)?.to_dense())
    }

    fn expected_len(
        &self,
        role: &str,
        signature: &Signature<'_>,
        registry: &Registry,
    ) -> Option<u64> {
        let component = signature.get(role)?;
        let width = component.dtype?.byte_len() as u64;
        match role {
            INDPTR => signature.shape.first()?.checked_add(1)?.checked_mul(width),
            INDICES => {
                let values = signature.get(VALUES)?;
                values.value_count(registry).ok()??.checked_mul(width)
            }
            VALUES => {
                let count = signature.get(INDICES)?.element_count().ok()??;
                let value_len = component.value_len(registry).ok()??;
                count.checked_mul(value_len)
            }
            _ => None,
        }
    }
}

/// A sparse matrix by rows. Row `r` has the columns and values at `indptr[r]..indptr[r + 1]`.
///
/// Always well-formed: pointers never decrease and end with the number of values, and columns lie
/// within the shape. Borrowed components stay borrowed; indices only if they are u64 or i64.
///
/// ```
/// use zt_formats::Csr;
///
/// // [[0, 5, 0],
/// //  [7, 0, 8]]
/// let csr = Csr::new([2, 3], &[5i32, 7, 8], &[1, 0, 2], &[0, 1, 3])?;
/// assert_eq!(*csr.to_dense()?.as_slice::<i32>()?, [0, 5, 0, 7, 0, 8]);
/// # Ok::<(), zt_formats::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Csr<'a> {
    shape: [u64; 2],
    values: Elements<'a>,
    indices: Typed<'a, u64>,
    indptr: Typed<'a, u64>,
}

impl<'a> Csr<'a> {
    /// A matrix of `[rows, columns]`.
    ///
    /// # Errors
    ///
    /// Malformed: a rule of [`SparseCsrFormat`], with the role and the position.
    pub fn new(
        shape: [u64; 2],
        values: impl Into<Elements<'a>>,
        indices: impl Into<Typed<'a, u64>>,
        indptr: impl Into<Typed<'a, u64>>,
    ) -> Result<Self> {
        let csr =
            Csr { shape, values: values.into(), indices: indices.into(), indptr: indptr.into() };
        let object = csr.to_object()?;
        Registry::builtin().check(Self::FORMAT, &object.signature())?;
        let [_, cols] = shape;
        check_indices(cols, &csr.indices, &csr.indptr)?;
        Ok(csr)
    }

    /// As [`Csr::new`], with indices of any integer type, such as SciPy and PyTorch use.
    ///
    /// Indices of u64 and i64 are borrowed. Narrower ones are copied, because files hold u64.
    ///
    /// # Errors
    ///
    /// As [`Csr::new`]; a negative index is Malformed (`index-value`).
    ///
    /// ```
    /// use zt_formats::Csr;
    ///
    /// let (indices, indptr) = ([1i32, 0, 2], [0i64, 1, 3]);
    /// let csr = Csr::from_indices([2, 3], &[5f32, 7.0, 8.0], &indices, &indptr)?;
    /// assert_eq!(csr.indices(), [1, 0, 2]);
    /// assert!(Csr::from_indices([1, 1], &[5f32], &[-1i32], &[0i32, 1]).is_err());
    /// # Ok::<(), zt_formats::Error>(())
    /// ```
    pub fn from_indices(
        shape: [u64; 2],
        values: impl Into<Elements<'a>>,
        indices: impl Into<Elements<'a>>,
        indptr: impl Into<Elements<'a>>,
    ) -> Result<Self> {
        let [_, cols] = shape;
        let indices = to_u64(INDICES, indices.into(), 0, |_| IndexBound::Below(cols))?;
        let indptr = to_u64(INDPTR, indptr.into(), 0, |_| IndexBound::NotNegative)?;
        Self::new(shape, values, indices, indptr)
    }

    /// Rows and columns.
    pub const fn shape(&self) -> [u64; 2] {
        self.shape
    }

    /// The stored values, row by row.
    pub const fn values(&self) -> &Elements<'a> {
        &self.values
    }

    /// The column of each value.
    pub fn indices(&self) -> &[u64] {
        &self.indices
    }

    /// The start of each row in [`Csr::indices`] and the values, and the end of the last row.
    pub fn indptr(&self) -> &[u64] {
        &self.indptr
    }

    /// The number of stored values.
    pub fn stored_count(&self) -> u64 {
        self.indices.len() as u64
    }

    /// The range of a row in [`Csr::indices`] and the values.
    pub fn row(&self, row: usize) -> Option<Range<usize>> {
        let start = *self.indptr.get(row)?;
        let end = *self.indptr.get(row.checked_add(1)?)?;
        Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    fn columns(&self, start: u64, end: u64) -> &[u64] {
        let places = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let columns = places.and_then(|(start, end)| self.indices.get(start..end));
        columns.unwrap_or_default()
    }

    /// The matrix as a plain array. Values that share a place are added in their own type; all
    /// others keep every bit.
    ///
    /// # Errors
    ///
    /// Malformed: the shape is larger than any array (`shape-size-mismatch`), or a value is no bool
    /// (`bool-value`). Unsupported: values of a type outside the specification share a place.
    /// Allocation.
    pub fn to_dense(&self) -> Result<Dense<'static>> {
        let shape = self.shape.to_vec();
        let Some(count) = element_count(&shape) else {
            return Err(SizeMismatch::Overflow { shape }.of(VALUES));
        };
        let [_, cols] = self.shape;
        let rows = (0u64..).zip(self.indptr.iter().zip(self.indptr.iter().skip(1)));
        let places = rows.flat_map(|(row, (&start, &end))| {
            let columns = self.columns(start, end).iter();
            // Below `rows * cols`, which is `count`.
            columns.map(move |column| row.wrapping_mul(cols).wrapping_add(*column))
        });
        let elements = scatter(&self.values, places, self.indices.len(), count);
        let elements = elements.map_err(|error| error.with_role(VALUES))?;
        Ok(Dense::from_checked(shape, elements))
    }
}

impl<'a> View<'a> for Csr<'a> {
    const FORMAT: &'static str = "sparse_csr";

    fn from_parts(mut parts: Parts<'a>) -> Result<Self> {
        Registry::builtin().check(Self::FORMAT, &parts.signature())?;
        let shape @ [rows, cols] = matrix(&parts.shape)?;
        let values = parts.take(VALUES)?;
        let (indices, indptr) =
            read_indices(rows, cols, parts.take(INDICES)?, parts.take(INDPTR)?)?;
        Ok(Csr { shape, values, indices, indptr })
    }
}

impl ToObject for Csr<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let components = [
            (VALUES, self.values.borrow()),
            (INDICES, self.indices().into()),
            (INDPTR, self.indptr().into()),
        ];
        Ok(NewObject::new(&self.shape, Self::FORMAT, None, components))
    }
}

fn matrix(shape: &[u64]) -> Result<[u64; 2]> {
    shape.try_into().map_err(|_| {
        let (expected, found) = (2, shape.len() as u64);
        SizeMismatch::Rank { expected, found }.of_object()
    })
}

/// Checks columns and pointers, and gives them as u64.
fn read_indices<'a>(
    rows: u64,
    cols: u64,
    indices: Elements<'a>,
    indptr: Elements<'a>,
) -> Result<(Typed<'a, u64>, Typed<'a, u64>)> {
    let indices = to_u64(INDICES, indices, 0, |_| IndexBound::Below(cols))?;
    let indptr = to_u64(INDPTR, indptr, 0, |_| IndexBound::NotNegative)?;
    let found = indptr.len() as u64;
    // Nothing in memory has u64::MAX elements.
    let expected = rows.saturating_add(1);
    if found != expected {
        return Err(SizeMismatch::Elements { expected, found }.of(INDPTR));
    }
    check_indices(cols, &indices, &indptr)?;
    Ok((indices, indptr))
}

/// Checks contents. The caller has checked the length of `indptr`.
fn check_indices(cols: u64, indices: &[u64], indptr: &[u64]) -> Result<()> {
    let fault = |position: usize, value: u64, bound: IndexBound| -> Result<()> {
        Err(violation(position as u64, value.into(), bound).of(INDPTR))
    };
    let first = indptr.first().copied().unwrap_or(0);
    if first != 0 {
        return fault(0, first, IndexBound::Exactly(0));
    }
    let mut steps = indptr.iter().zip(indptr.iter().skip(1));
    if let Some(before) = steps.position(|(before, next)| next < before) {
        let at = |position: usize| indptr.get(position).copied().unwrap_or_default();
        let position = before.strict_add(1);
        return fault(position, at(position), IndexBound::AtLeast(at(before)));
    }
    let stored = indices.len() as u64;
    let last = indptr.last().copied().unwrap_or(stored);
    if last != stored {
        let position = indptr.len().strict_sub(1);
        return fault(position, last, IndexBound::Exactly(stored));
    }
    check_below(INDICES, indices, cols, 0)
}
