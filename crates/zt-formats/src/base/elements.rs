//! Bytes together with the type of their elements.

use zt_manifest::memory::in_memory;
use zt_manifest::{DType, Text};

use crate::base::buffer::{Buffer, Bytes};
use crate::base::cast::{self, Real, Reals};
use crate::base::element::Element;
use crate::base::error::{Error, Misuse, Result, Unsupported};
use crate::base::float_type::FloatType;
use crate::base::logical::LogicalType;
use crate::base::registry::Registry;
use crate::base::scalar::Scalars;
use crate::base::typed::{Typed, to_le};

/// The elements of one component: little-endian bytes, a dtype, and sometimes a logical type.
///
/// Constructors check nothing. Formats check whole components, and every method that reads values
/// checks what it needs.
///
/// ```
/// use zt_formats::{Elements, F8E4M3Fn};
/// use zt_formats::DType;
///
/// let codes = [0x38, 0xb8];
/// let elements = Elements::new(DType::U8, &codes[..]).with_logical_type("f8_e4m3fn");
/// let values = elements.as_slice::<F8E4M3Fn>()?;
/// assert!(values.is_borrowed());
/// assert_eq!(values[1].to_f32(), -1.0);
/// # Ok::<(), zt_formats::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Elements<'a> {
    /// The storage type. Spec: §7.1.
    pub dtype: DType,
    /// The logical type, if the values are not simply of the dtype. Spec: §7.2.
    pub logical_type: Option<Text>,
    /// The elements: little-endian, no gaps.
    pub bytes: Bytes<'a>,
}

impl<'a> Elements<'a> {
    /// Elements without a logical type.
    pub fn new(dtype: DType, bytes: impl Into<Bytes<'a>>) -> Self {
        Elements { dtype, logical_type: None, bytes: bytes.into() }
    }

    /// Elements of type `T` with these bytes, which are little-endian.
    pub(crate) fn of_type<T: Element>(bytes: impl Into<Bytes<'a>>) -> Self {
        Elements {
            logical_type: T::LOGICAL_TYPE.map(Text::Borrowed),
            ..Elements::new(T::DTYPE, bytes)
        }
    }

    /// Other elements of the same type.
    pub fn of_same_type<'b>(&self, bytes: impl Into<Bytes<'b>>) -> Elements<'b> {
        Elements { dtype: self.dtype, logical_type: self.logical_type.clone(), bytes: bytes.into() }
    }

    /// The same elements with a logical type.
    pub fn with_logical_type(self, name: impl Into<Text>) -> Self {
        Elements { logical_type: Some(name.into()), ..self }
    }

    /// The logical type; `None` if there is none or it only repeats the dtype's name.
    pub fn logical_type(&self) -> Option<&str> {
        self.dtype.logical_type(self.logical_type.as_deref())
    }

    /// The number of whole storage elements. A value of a logical type may have several.
    pub fn element_count(&self) -> u64 {
        self.bytes.len().strict_div(self.dtype.byte_len()) as u64
    }

    /// The same elements, borrowed.
    pub fn borrow(&self) -> Elements<'_> {
        self.of_same_type(&*self.bytes)
    }

    /// The same elements, owned. Copies borrowed ones.
    ///
    /// # Errors
    ///
    /// [`Allocation`](crate::base::error::Error::Allocation) if there is no memory for the copy.
    pub fn into_owned(self) -> Result<Elements<'static>> {
        Ok(Elements {
            dtype: self.dtype,
            logical_type: self.logical_type,
            bytes: self.bytes.into_owned()?.into(),
        })
    }

    /// The elements as a slice of `T`: borrowed if they are aligned for `T` and the host is
    /// little-endian, else copied.
    ///
    /// `T` is the type of the values: `f32`, `F8E4M3Fn`, `Complex<f64>`. For a logical type that
    /// has no Rust type here, `T` is the dtype's type, and the slice holds the storage elements.
    /// The specification permits this fallback.
    ///
    /// # Errors
    ///
    /// Misuse: the elements are not of type `T`. Malformed: the last one is not whole, or a bool is
    /// neither 0 nor 1 (`bool-value`). Spec: §7.1.
    pub fn as_slice<T: Element>(&self) -> Result<Typed<'_, T>> {
        self.borrow().into_typed()
    }

    /// As [`Elements::as_slice`], but the slice outlives this value: owned bytes move into it
    /// without a copy.
    ///
    /// # Errors
    ///
    /// As [`Elements::as_slice`].
    pub fn into_typed<T: Element>(self) -> Result<Typed<'a, T>> {
        let logical_type = self.logical_type();
        let is_of_type = match T::LOGICAL_TYPE {
            Some(name) => logical_type == Some(name),
            None => logical_type.is_none_or(|name| LogicalType::builtin(name).is_none()),
        };
        if self.dtype != T::DTYPE || !is_of_type {
            return Err(Misuse::ElementType {
                asked: T::NAME,
                dtype: self.dtype,
                logical_type: self.logical_type,
            }
            .into());
        }
        Typed::from_le_bytes(self.bytes)
    }

    /// The values one by one, each in its own precision: for printing and statistics. If `registry`
    /// does not know the logical type, these are the storage elements.
    ///
    /// # Errors
    ///
    /// Malformed: the last value is not whole, a bool is neither 0 nor 1, or a known logical type
    /// has a dtype other than its own.
    pub fn scalars(&self, registry: &Registry) -> Result<Scalars<'_>> {
        Scalars::new(self, registry)
    }

    /// The values in another floating-point dtype, rounded once, to nearest, ties to even.
    ///
    /// Converts from f64, f32, f16, bf16 and real logical types (FP8) to f64, f32, f16 or bf16.
    ///
    /// # Errors
    ///
    /// Unsupported: another source or target type. Malformed: as
    /// [`Elements::scalars`]. Allocation.
    pub fn to_dtype(&self, dtype: DType, registry: &Registry) -> Result<Elements<'static>> {
        match FloatType::of_dtype(dtype) {
            Some(to) => self.cast(to, registry),
            None => {
                let from = Text::Owned(self.type_name().to_owned());
                Err(Error::Unsupported(Unsupported::Cast { from, to: dtype }))
            }
        }
    }

    /// The values as f32, integers and bools too.
    ///
    /// Each value is rounded once, to nearest, ties to even. So integers up to 2^24 are exact, and a
    /// larger one becomes a neighbour. A bool becomes 0 or 1.
    ///
    /// ```
    /// use zt_formats::{Elements, Registry};
    ///
    /// let elements = Elements::from(&[-3i64, 16_777_217]);
    /// let values = elements.to_f32(&Registry::builtin())?;
    /// assert_eq!(*values.as_slice::<f32>()?, [-3.0, 16_777_216.0]);
    /// # Ok::<(), zt_formats::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Unsupported: complex numbers, or a logical type that `registry` does not know. Otherwise as
    /// [`Elements::scalars`]. Allocation.
    pub fn to_f32(&self, registry: &Registry) -> Result<Elements<'static>> {
        let is_plain = self.logical_type().is_none() && !self.dtype.is_float();
        if !is_plain {
            return self.to_dtype(DType::F32, registry);
        }
        let scalars = self.scalars(registry)?;
        let mut out = Buffer::try_zeroed_values(self.element_count(), 4)?;
        for (place, scalar) in out.as_chunks_mut().0.iter_mut().zip(scalars) {
            *place = scalar.as_f32().unwrap_or_default().to_le_bytes();
        }
        Ok(Elements::new(DType::F32, out))
    }

    /// As [`Elements::to_dtype`], also to FP8, where the codes are those of torch 2.15. `f8_e4m3fn` saturates: what
    /// is out of range, infinities included, becomes 448 or -448. Out of range for `f8_e5m2` is infinite.
    ///
    /// # Errors
    ///
    /// As [`Elements::to_dtype`].
    pub fn cast(&self, to: FloatType, registry: &Registry) -> Result<Elements<'static>> {
        cast::cast(self, to, registry)
    }

    /// Calls `take` with the values as numbers, in order and 1024 at a time, except the
    /// last. Nothing is allocated.
    ///
    /// # Errors
    ///
    /// As [`Elements::to_dtype`].
    pub fn for_each_real(&self, registry: &Registry, take: impl FnMut(Reals<'_>)) -> Result<()> {
        let real = Real::of(self, DType::F64, registry)?;
        real.for_each(&self.bytes, take);
        Ok(())
    }

    /// Bytes of one of `count` values: see [`value_len`].
    pub(crate) fn value_len(&self, count: u64) -> Result<usize> {
        value_len(self.dtype, self.type_name(), self.bytes.len() as u64, count).map(in_memory)
    }

    /// The logical type, or else the dtype.
    pub(crate) fn type_name(&self) -> &str {
        self.logical_type().unwrap_or(self.dtype.as_str())
    }
}

/// Bytes of one of `count` values, all as long: also of an unknown logical type, whose name is `name`.
/// Unsupported if a value is not made of whole elements, such as one of several in a byte.
pub(crate) fn value_len(dtype: DType, name: &str, byte_len: u64, count: u64) -> Result<u64> {
    let value_len =
        byte_len.checked_div(count).filter(|len| len.checked_mul(count) == Some(byte_len));
    let is_whole = |len: &u64| *len > 0 && len.is_multiple_of(dtype.byte_len() as u64);
    let unknown = || Error::Unsupported(Unsupported::LogicalType(Text::Owned(name.to_owned())));
    value_len.filter(is_whole).ok_or_else(unknown)
}

/// Borrows on a little-endian host, else copies.
impl<'a, T: Element> From<&'a [T]> for Elements<'a> {
    fn from(elements: &'a [T]) -> Self {
        if cfg!(target_endian = "little") {
            Elements::of_type::<T>(T::bytes(elements))
        } else {
            copied(elements)
        }
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for Elements<'a> {
    fn from(elements: &'a [T; N]) -> Self {
        Elements::from(&elements[..])
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Elements<'a> {
    fn from(elements: &'a Vec<T>) -> Self {
        Elements::from(&elements[..])
    }
}

/// Copies: a vector's memory is not aligned for every type.
impl<T: Element> From<Vec<T>> for Elements<'_> {
    fn from(elements: Vec<T>) -> Self {
        copied(&elements)
    }
}

fn copied<T: Element>(elements: &[T]) -> Elements<'static> {
    let mut buffer = Buffer::copied(T::bytes(elements));
    to_le(&mut buffer, T::DTYPE.byte_len());
    Elements::of_type::<T>(buffer)
}
