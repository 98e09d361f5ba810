//! A plain array in row-major order: the dense value of an object.

use zt_manifest::DType;

use crate::base::element::Element;
use crate::base::elements::Elements;
use crate::base::error::{Error, FormatViolation, Result, SliceFault, Unsupported};
use crate::base::format::{ToObject, View};
use crate::base::parts::{NewObject, Parts};
use crate::base::places::Places;
use crate::base::registry::Registry;
use crate::base::select::select;
use crate::base::selection::Selection;
use crate::base::shape::dense_byte_len;
use crate::base::signature::{ComponentSignature, overflow};
use crate::base::slice::Slice;
use crate::base::typed::Typed;

pub(crate) const DATA: &str = "data";

/// A plain array: a shape and the elements in row-major (C-contiguous) order.
///
/// The number of values is the shape's, except for logical types outside the specification: of
/// these only the storage elements are known.
///
/// ```
/// use zt_formats::{Dense, Slice};
///
/// let dense = Dense::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let column = dense.slice(&Slice::parse_list(":,1")?)?;
/// assert_eq!(column.shape(), [2]);
/// assert_eq!(*column.as_slice::<f32>()?, [2.0, 5.0]);
/// # Ok::<(), zt_formats::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Dense<'a> {
    shape: Vec<u64>,
    elements: Elements<'a>,
}

impl<'a> Dense<'a> {
    /// An array of `elements` in row-major order. Borrows them (copies on a big-endian host).
    ///
    /// # Errors
    ///
    /// Malformed: their number is not the shape's (`shape-size-mismatch`).
    pub fn from_slice<T: Element>(shape: &[u64], elements: &'a [T]) -> Result<Self> {
        Dense::from_elements(shape.to_vec(), elements)
    }

    /// An array of `elements` in row-major order.
    ///
    /// # Errors
    ///
    /// Malformed: their length does not fit the shape (`shape-size-mismatch`), or their logical
    /// type has a dtype other than its own (`logical-type`).
    pub fn from_elements(
        shape: impl Into<Vec<u64>>,
        elements: impl Into<Elements<'a>>,
    ) -> Result<Self> {
        let dense = Dense { shape: shape.into(), elements: elements.into() };
        let data = ComponentSignature {
            role: DATA,
            dtype: Some(dense.elements.dtype),
            logical_type: dense.elements.logical_type.as_deref(),
            byte_len: Some(dense.elements.bytes.len() as u64),
        };
        let registry = Registry::specified_types();
        data.check(registry)?;
        check_data(&dense.shape, &data, registry)?;
        Ok(dense)
    }

    /// An array whose elements are known to fit the shape.
    pub(crate) const fn from_checked(shape: Vec<u64>, elements: Elements<'a>) -> Self {
        Dense { shape, elements }
    }

    /// The dimensions, slowest first.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The elements.
    pub const fn elements(&self) -> &Elements<'a> {
        &self.elements
    }

    /// The shape and the elements.
    pub fn into_elements(self) -> (Vec<u64>, Elements<'a>) {
        (self.shape, self.elements)
    }

    /// The elements as a slice of `T`, borrowed if possible: see [`Elements::as_slice`].
    ///
    /// # Errors
    ///
    /// As [`Elements::as_slice`].
    pub fn as_slice<T: Element>(&self) -> Result<Typed<'_, T>> {
        self.elements.as_slice().map_err(of_data)
    }

    /// The elements as a slice of `T` that outlives this value: see [`Elements::into_typed`].
    ///
    /// # Errors
    ///
    /// As [`Elements::as_slice`].
    pub fn into_typed<T: Element>(self) -> Result<Typed<'a, T>> {
        self.elements.into_typed().map_err(of_data)
    }

    /// The same array, owned. Copies borrowed elements.
    ///
    /// # Errors
    ///
    /// Allocation.
    pub fn into_owned(self) -> Result<Dense<'static>> {
        let elements = self.elements.into_owned()?;
        Ok(Dense::from_checked(self.shape, elements))
    }

    /// The values as f32: [`Dense::to_dtype`] with the specification's logical types.
    /// [`Elements::to_f32`] takes a registry, and integers too.
    ///
    /// # Errors
    ///
    /// As [`Elements::to_dtype`].
    pub fn to_f32(&self) -> Result<Dense<'static>> {
        let registry = Registry::specified_types();
        let elements = &self.elements;
        let is_known =
            || elements.logical_type().is_some_and(|it| registry.logical_type(it).is_some());
        self.to_dtype(DType::F32, registry).map_err(|error| match error {
            Error::Unsupported(Unsupported::Cast { from, .. }) if !is_known() => {
                Error::Unsupported(Unsupported::ToF32 { from })
            }
            error => error,
        })
    }

    /// The values in another floating-point dtype, rounded once: see [`Elements::to_dtype`].
    ///
    /// # Errors
    ///
    /// As [`Elements::to_dtype`].
    pub fn to_dtype(&self, dtype: DType, registry: &Registry) -> Result<Dense<'static>> {
        let elements = self.elements.to_dtype(dtype, registry).map_err(of_data)?;
        Ok(Dense::from_checked(self.shape.clone(), elements))
    }

    /// A copy of a part of the array, by NumPy's basic slicing.
    ///
    /// # Errors
    ///
    /// Misuse: the slices do not fit the shape. Malformed: the logical type is outside the
    /// specification, and the bytes do not divide into the shape's values. Allocation.
    pub fn slice(&self, slices: &[Slice]) -> Result<Dense<'static>> {
        self.select(&Places::resolve(slices, &self.shape)?)
    }

    /// A copy of the part of the array at these places, one for each dimension.
    ///
    /// # Errors
    ///
    /// Misuse: places of another shape. Otherwise as [`Dense::slice`].
    pub fn select(&self, places: &[Places]) -> Result<Dense<'static>> {
        let dimensions = places.iter().map(Places::dimension);
        if !dimensions.eq(self.shape.iter().copied()) {
            return Err(SliceFault::OtherShape.into());
        }
        select(self, &Selection::of(places)?)
    }
}

fn of_data(error: Error) -> Error {
    error.with_role(DATA)
}

/// Refuses a component `data` without a dtype, or of a length that does not fit `shape`.
pub(crate) fn check_data(
    shape: &[u64],
    data: &ComponentSignature<'_>,
    registry: &Registry,
) -> Result<()> {
    if data.dtype.is_none() {
        let (expected, found) = ("a dtype", None);
        return Err(FormatViolation::DType { expected, found }.of(DATA));
    }
    let Some(value_len) = data.value_len(registry)? else {
        return Ok(());
    };
    let expected = dense_byte_len(shape, value_len).ok_or_else(|| overflow(shape, DATA))?;
    data.expect_bytes(expected)
}

impl<'a> View<'a> for Dense<'a> {
    const FORMAT: &'static str = "dense";

    fn from_parts(mut parts: Parts<'a>) -> Result<Self> {
        let elements = parts.take(DATA)?;
        Dense::from_elements(parts.shape, elements)
    }
}

impl ToObject for Dense<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let components = [(DATA, self.elements.borrow())];
        Ok(NewObject::new(&self.shape, Self::FORMAT, None, components))
    }
}
