//! Feature `ndarray`: dense values as arrays of the crate `ndarray`, and its arrays as objects.

use std::borrow::Cow;
use std::slice;

use ndarray::{Array, ArrayBase, ArrayD, ArrayView, CowArray, Data, Dimension, IxDyn};
use zt_manifest::Text;

use crate::base::buffer::Buffer;
use crate::base::dense::{DATA, Dense};
use crate::base::element::Element;
use crate::base::elements::Elements;
use crate::base::error::{Error, Result, SizeMismatch};
use crate::base::format::{ToObject, View};
use crate::base::parts::NewObject;
use crate::base::shape::element_count;
use crate::base::signature::overflow;
use crate::base::typed::to_le;

impl<'a> Dense<'a> {
    /// The values as an array of the crate `ndarray`: a view of the elements where they are aligned
    /// for `T` and the host is little-endian, else a copy. Feature `ndarray`.
    ///
    /// Elements that a `Dense` owns are aligned for every type. `T` is as in
    /// [`Elements::as_slice`].
    ///
    /// ```
    /// use zt_formats::Dense;
    ///
    /// let dense = Dense::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let array = dense.array::<f32>()?;
    /// assert!(array.is_view());
    /// assert_eq!(array.shape(), [2, 3]);
    /// assert_eq!(array[[1, 0]], 4.0);
    /// # Ok::<(), zt_formats::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Elements::as_slice`]. Malformed (`shape-size-mismatch`): the shape is too large for
    /// `ndarray`, or, under a logical type outside the specification, an element is not a value.
    /// Allocation.
    pub fn array<T: Element>(&self) -> Result<CowArray<'_, T, IxDyn>> {
        cow_array(self.shape(), self.as_slice()?.into_cow()?)
    }

    /// As [`Dense::array`], of all the lifetime of borrowed elements. Owned ones are copied.
    /// Feature `ndarray`.
    ///
    /// # Errors
    ///
    /// As [`Dense::array`].
    pub fn into_array<T: Element>(self) -> Result<CowArray<'a, T, IxDyn>> {
        let (shape, elements) = self.into_elements();
        cow_array(&shape, elements.into_typed()?.into_cow()?)
    }

    /// A copy of the values as an array of the crate `ndarray`. Feature `ndarray`.
    ///
    /// # Errors
    ///
    /// As [`Dense::array`].
    pub fn to_array<T: Element>(&self) -> Result<ArrayD<T>> {
        let elements = self.as_slice()?.try_into_vec()?;
        let array = Array::from_shape_vec(array_shape(self.shape(), elements.len())?, elements);
        array.map_err(|_| too_large(self.shape()))
    }
}

fn cow_array<'e, T: Element>(
    shape: &[u64],
    elements: Cow<'e, [T]>,
) -> Result<CowArray<'e, T, IxDyn>> {
    let lengths = array_shape(shape, elements.len())?;
    let array = match elements {
        Cow::Borrowed(elements) => ArrayView::from_shape(lengths, elements).map(CowArray::from),
        Cow::Owned(elements) => Array::from_shape_vec(lengths, elements).map(CowArray::from),
    };
    array.map_err(|_| too_large(shape))
}

fn array_shape(shape: &[u64], elements: usize) -> Result<Vec<usize>> {
    let (expected, found) = (element_count(shape), elements as u64);
    let expected = expected.ok_or_else(|| too_large(shape))?;
    if found != expected {
        return Err(SizeMismatch::Elements { expected, found }.of(DATA));
    }
    let lengths: Result<_, _> = shape.iter().copied().map(usize::try_from).collect();
    lengths.map_err(|_| too_large(shape))
}

fn too_large(shape: &[u64]) -> Error {
    overflow(shape, DATA)
}

/// A `dense` object. Borrows elements in standard layout (row-major, no gaps) on a little-endian
/// host; copies others. Feature `ndarray`.
///
/// ```
/// use ndarray::array;
/// use zt_formats::{Dense, ToObject, View};
///
/// let columns = array![[1i64, 2, 3], [4, 5, 6]].reversed_axes();
/// let dense = Dense::from_parts(columns.to_object()?.into_parts())?;
/// assert_eq!(dense.shape(), [3, 2]);
/// assert_eq!(dense.array::<i64>()?, columns.view().into_dyn());
/// # Ok::<(), zt_formats::Error>(())
/// ```
impl<S: Data<Elem: Element>, D: Dimension> ToObject for ArrayBase<S, D> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let shape = self.shape().iter().map(|length| *length as u64).collect();
        let elements = match self.as_slice() {
            Some(elements) => Elements::from(elements),
            None => row_major(self)?,
        };
        Ok(NewObject {
            shape: Cow::Owned(shape),
            format: Text::Borrowed(Dense::FORMAT),
            attributes: None,
            components: vec![(Text::Borrowed(DATA), elements)],
        })
    }
}

/// A copy of the elements in row-major order.
fn row_major<T, S, D>(array: &ArrayBase<S, D>) -> Result<Elements<'static>>
where
    T: Element,
    S: Data<Elem = T>,
    D: Dimension,
{
    let mut bytes = Buffer::try_zeroed_values(array.len() as u64, size_of::<T>() as u64)?;
    for (place, element) in bytes.chunks_exact_mut(size_of::<T>()).zip(array) {
        place.copy_from_slice(T::bytes(slice::from_ref(element)));
    }
    to_le(&mut bytes, T::DTYPE.byte_len());
    Ok(Elements::of_type::<T>(bytes))
}
