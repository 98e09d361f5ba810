//! `sparse_coo`: a sparse array as values with coordinates. Spec: formats/sparse_coo.

use zt_manifest::memory::in_memory;
use zt_manifest::{DType, Text, Value};

use crate::base::{
    Dense, Elements, IndexBound, NewObject, ObjectFormat, Parts, Places, ReadParts, Registry,
    Result, Signature, SizeMismatch, ToObject, Typed, View, element_count,
};
use crate::formats::index::{check_below, check_dtype, check_strict, to_u64};
use crate::formats::scatter::scatter;
use crate::formats::sparse_part::slice;

const VALUES: &str = "values";
pub(crate) const COORDS: &str = "coords";
const IS_COALESCED: &str = "is_coalesced";

/// The rules of `sparse_coo`.
///
/// * `coords` has a coordinate for each of `values` in each dimension, dimension by dimension. The
///   values of a scalar have none.
/// * Every coordinate lies within its dimension.
/// * Values may be in any order. Values that share a place are added.
/// * Coordinates are u64. Other integers are read, because existing writers use them;
///   [`ObjectFormat::check_strict`] refuses them.
#[derive(Debug, Clone, Copy, Default)]
pub struct SparseCooFormat;

impl ObjectFormat for SparseCooFormat {
    fn id(&self) -> &str {
        Coo::FORMAT
    }

    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        let values = signature.component(VALUES)?;
        let coords = signature.component(COORDS)?;
        check_dtype(coords)?;
        let rank = signature.shape.len() as u64;
        let count = values.value_count(registry)?;
        let found = coords.element_count()?;
        match (count.map(|count| count.checked_mul(rank)), found) {
            (Some(Some(expected)), _) => coords.expect_elements(expected),
            (_, None) => Ok(()),
            // More values than any coordinates are for.
            (Some(None), Some(found)) => values.expect_values(found.strict_div(rank), registry),
            (None, Some(found)) => stored_count(signature.shape.len(), found).map(drop),
        }
    }

    fn check_strict(&self, signature: &Signature<'_>, _: &Registry) -> Result<()> {
        check_strict(signature.component(COORDS)?)
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[COORDS])
    }

    fn check_data(&self, parts: &Parts<'_>) -> Result<()> {
        let coords = parts.component(COORDS)?.borrow();
        read_coords(&parts.shape, coords).map(drop)
    }

    fn is_of_value(&self, role: &str, _: &Signature<'_>) -> bool {
        [VALUES, COORDS].contains(&role)
    }

    fn dense_type(&self, signature: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        signature.get(VALUES)?.dense_type()
    }

    /// PyTorch's statement about the coordinates, which conversions keep.
    fn parameters(&self) -> &[&str] {
        &[IS_COALESCED]
    }

    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        Coo::from_parts(parts)?.to_dense()
    }

    fn slice(
        &self,
        places: &[Places],
        reader: &mut dyn ReadParts<'_>,
    ) -> Result<Option<Dense<'static>>> {
        slice(places, reader, |places, reader| Coo::read_part(places, reader)?.to_dense())
    }

    fn expected_len(
        &self,
        role: &str,
        signature: &Signature<'_>,
        registry: &Registry,
    ) -> Option<u64> {
        let component = signature.get(role)?;
        match role {
            COORDS => {
                let values = signature.get(VALUES)?;
                let count = values.value_count(registry).ok()??;
                let elements = count.checked_mul(signature.shape.len() as u64)?;
                elements.checked_mul(component.dtype?.byte_len() as u64)
            }
            VALUES => {
                let coords = signature.get(COORDS)?.element_count().ok()??;
                let count = coords.checked_div(signature.shape.len() as u64)?;
                count.checked_mul(component.value_len(registry).ok()??)
            }
            _ => None,
        }
    }
}

/// A sparse array: values and their coordinates.
///
/// Always well-formed: each value has a coordinate in each dimension, which lies within it.
/// Borrowed components stay borrowed; coordinates only if they are u64 or i64.
///
/// ```
/// use zt_formats::Coo;
///
/// // 5 at (0, 1), 7 at (1, 0)
/// let coo = Coo::new([2, 2], &[5i32, 7], &[0, 1, 1, 0])?;
/// assert_eq!(coo.coords(1), Some(&[1, 0][..]));
/// assert_eq!(*coo.to_dense()?.as_slice::<i32>()?, [0, 5, 7, 0]);
/// # Ok::<(), zt_formats::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Coo<'a> {
    shape: Vec<u64>,
    values: Elements<'a>,
    coords: Typed<'a, u64>,
    is_coalesced: Option<bool>,
}

impl<'a> Coo<'a> {
    /// An array of `shape`. `coords` are dimension-major: the coordinates of all values along the
    /// first dimension come first.
    ///
    /// # Errors
    ///
    /// Malformed: a rule of [`SparseCooFormat`], with the role and the position.
    pub fn new(
        shape: impl Into<Vec<u64>>,
        values: impl Into<Elements<'a>>,
        coords: impl Into<Typed<'a, u64>>,
    ) -> Result<Self> {
        let coo = Coo {
            shape: shape.into(),
            values: values.into(),
            coords: coords.into(),
            is_coalesced: None,
        };
        let object = coo.to_object()?;
        Registry::builtin().check(Self::FORMAT, &object.signature())?;
        check_coords(&coo.shape, &coo.coords)?;
        Ok(coo)
    }

    /// As [`Coo::new`], with coordinates of any integer type, such as SciPy and PyTorch use.
    ///
    /// Coordinates of u64 and i64 are borrowed. Narrower ones are copied, because files hold u64.
    ///
    /// # Errors
    ///
    /// As [`Coo::new`]; a negative coordinate is Malformed (`index-value`).
    pub fn from_coords(
        shape: impl Into<Vec<u64>>,
        values: impl Into<Elements<'a>>,
        coords: impl Into<Elements<'a>>,
    ) -> Result<Self> {
        let shape = shape.into();
        let coords = read_coords(&shape, coords.into())?;
        Self::new(shape, values, coords)
    }

    /// The dimensions.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The stored values.
    pub const fn values(&self) -> &Elements<'a> {
        &self.values
    }

    /// The coordinates of all values along one dimension.
    pub fn coords(&self, axis: usize) -> Option<&[u64]> {
        let count = self.coords.len().checked_div(self.shape.len())?;
        let start = axis.checked_mul(count)?;
        let is_axis = axis < self.shape.len();
        is_axis.then_some(self.coords.get(start..start.checked_add(count)?))?
    }

    /// The attribute `is_coalesced`, if the object has it: whether coordinates increase and no two
    /// values share a place. PyTorch writes it. It is not checked, and nothing here relies on it.
    pub const fn is_coalesced(&self) -> Option<bool> {
        self.is_coalesced
    }

    /// The array as a plain one. Values that share a place are added in their own type; all others
    /// keep every bit.
    ///
    /// # Errors
    ///
    /// Malformed: the shape is larger than any array (`shape-size-mismatch`), or a value is no bool
    /// (`bool-value`). Unsupported: values of a type outside the specification share a place.
    /// Allocation.
    pub fn to_dense(&self) -> Result<Dense<'static>> {
        let shape = self.shape.clone();
        let Some(count) = element_count(&shape) else {
            return Err(SizeMismatch::Overflow { shape }.of(VALUES));
        };
        let along = (0..shape.len()).filter_map(|axis| self.coords(axis));
        let axes: Vec<(&[u64], u64)> = along.zip(shape.iter().copied()).collect();
        let stored = match self.coords.len().checked_div(shape.len()) {
            Some(stored) => stored,
            // The values of a scalar, all at its only place.
            None => self.scalar_count()?,
        };
        let places = (0..stored).map(|position| {
            axes.iter().fold(0u64, |place, (coords, dimension)| {
                let coord = coords.get(position).copied().unwrap_or_default();
                // Below the product of the dimensions, which is `count`.
                place.wrapping_mul(*dimension).wrapping_add(coord)
            })
        });
        let elements = scatter(&self.values, places, stored, count);
        let elements = elements.map_err(|error| error.with_role(VALUES))?;
        Ok(Dense::from_checked(shape, elements))
    }

    fn scalar_count(&self) -> Result<usize> {
        let object = self.to_object()?;
        let values = object.signature();
        let count = values.component(VALUES)?;
        let count = count.value_count(&Registry::builtin())?;
        // The number of values of an unknown type is unknown: all bytes are one value.
        Ok(count.map_or(1, in_memory))
    }
}

impl<'a> View<'a> for Coo<'a> {
    const FORMAT: &'static str = "sparse_coo";

    fn from_parts(mut parts: Parts<'a>) -> Result<Self> {
        Registry::builtin().check(Self::FORMAT, &parts.signature())?;
        let values = parts.take(VALUES)?;
        let coords = parts.take(COORDS)?;
        let coords = read_coords(&parts.shape, coords)?;
        let is_coalesced = parts.attributes.get(IS_COALESCED).and_then(Value::as_bool);
        Ok(Coo { is_coalesced, shape: parts.shape.into_owned(), values, coords })
    }
}

impl ToObject for Coo<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let attributes = self.is_coalesced.map(|is| [(IS_COALESCED, is)].into());
        let components = [(VALUES, self.values.borrow()), (COORDS, self.coords[..].into())];
        let format = Self::FORMAT;
        Ok(NewObject::new(&self.shape, format, attributes, components))
    }
}

/// The number of values that have `coords` coordinates; `None` for a scalar, whose values have
/// none.
pub(crate) fn stored_count(rank: usize, coords: u64) -> Result<Option<u64>> {
    let rank = rank as u64;
    match (coords.checked_rem(rank), coords.checked_div(rank)) {
        (Some(0), stored) => Ok(stored),
        (None, _) if coords == 0 => Ok(None),
        (over, _) => {
            let (expected, found) = (coords.strict_sub(over.unwrap_or(coords)), coords);
            Err(SizeMismatch::Elements { expected, found }.of(COORDS))
        }
    }
}

/// Checks coordinates, and gives them as u64.
fn read_coords<'a>(shape: &[u64], coords: Elements<'a>) -> Result<Typed<'a, u64>> {
    // The bound that a negative coordinate breaks depends on its dimension.
    let stored = stored_count(shape.len(), coords.element_count())?;
    let bound_at = |position: u64| {
        let axis = stored.and_then(|stored| position.checked_div(stored));
        let axis = axis.and_then(|axis| usize::try_from(axis).ok());
        let dimension = axis.and_then(|axis| shape.get(axis));
        IndexBound::Below(dimension.copied().unwrap_or_default())
    };
    let coords = to_u64(COORDS, coords, 0, bound_at)?;
    check_coords(shape, &coords)?;
    Ok(coords)
}

/// Checks contents. Each dimension has the same number of coordinates.
fn check_coords(shape: &[u64], coords: &[u64]) -> Result<()> {
    let stored = coords.len().checked_div(shape.len()).unwrap_or(0);
    let axes = coords.chunks(stored.max(1)).zip(shape);
    for ((along, &dimension), axis) in axes.zip(0u64..) {
        let from = axis.strict_mul(stored as u64);
        check_below(COORDS, along, dimension, from)?;
    }
    Ok(())
}
