//! The values by which two tensors differ.

use zt::container::memory::in_memory;
use zt::formats::{PlaneCoding, element_count};
use zt::{Dense, OwnedTensor, Result, Tensor, View};
use zt_foreign::DATA;

use crate::arithmetic::values;

/// Elements that are compared at a time.
const BATCH: usize = 1 << 22;

/// The values by which a tensor differs from another: see [`new_values`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewValues {
    /// Positions in row-major order, ascending.
    pub positions: Vec<u32>,
    /// The new values there, little-endian.
    pub values: Vec<u8>,
}

/// Where the dense values of `new` differ from those of `base`, bit by bit, and the new values there. `None` if
/// that takes more bytes than all values, if the tensors differ in their shape or type or are not dense, and for
/// 2^31 elements or more.
///
/// Both tensors are verified first, so the new values of a [`Patch`](crate::Patch) are right, whatever
/// its base is. Memory: the result, and 2^22 elements of each tensor.
///
/// # Errors
///
/// As [`zt::Tensor::verify`] and [`zt::Tensor::slice`].
///
/// ```
/// use zt::{Dense, File, Writer};
///
/// let tensor = |values: &[f32]| {
///     let mut bytes = Vec::new();
///     let mut writer = Writer::new(&mut bytes)?;
///     writer.add("w", &Dense::from_slice(&[2, 2], values)?)?;
///     writer.finish()?;
///     File::from_bytes(bytes)?.owned_tensor("w")
/// };
/// let (base, new) = (tensor(&[1.0, 2.0, 3.0, 4.0])?, tensor(&[1.0, 2.0, 3.5, 4.0])?);
/// let found = zt_model::new_values(&base, &new)?.unwrap_or_default();
/// assert_eq!(found.positions, [2]);
/// assert_eq!(found.values, 3.5f32.to_le_bytes());
/// # Ok::<(), zt::Error>(())
/// ```
pub fn new_values(base: &OwnedTensor, new: &OwnedTensor) -> Result<Option<NewValues>> {
    let (of_base, per_value) = (elements_of_value(base)?, elements_of_value(new)?);
    let (base, new) = (base.tensor(), new.tensor());
    let is_alike = base.shape() == new.shape() && of_base == per_value;
    let count = element_count(new.shape()).filter(|count| is_alike && *count < 1 << 31);
    let count = count.and_then(|count| u32::try_from(count).ok());
    let (Some(count), Some(per_value)) = (count, per_value) else {
        return Ok(None);
    };
    let mut found = NewValues::default();
    for first in (0..count).step_by(BATCH) {
        let from = u64::from(first).strict_mul(per_value);
        let some = u64::from(count.strict_sub(first)).min(BATCH as u64).strict_mul(per_value);
        let read = |tensor: &Tensor<'_>| values(tensor, from, some);
        let (old, now) = (read(&base)?, read(&new)?);
        if old.dtype != now.dtype || old.logical_type() != now.logical_type() {
            return Ok(None);
        }
        let width = now.dtype.byte_len().strict_mul(in_memory(per_value));
        found.compare(first, width, &old.bytes, &now.bytes);
        let positions = found.positions.len().strict_mul(size_of::<u32>());
        if positions.strict_add(found.values.len()) > in_memory(count.into()).strict_mul(width) {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

/// Elements of the component in which each dense value is: two of a complex number. `None` if the tensor is not
/// dense, or its values are no whole elements.
fn elements_of_value(tensor: &OwnedTensor) -> Result<Option<u64>> {
    let of = tensor.tensor();
    if PlaneCoding::from_format(of.format()).is_some() {
        return Ok(Some(1));
    }
    if of.format() != Dense::FORMAT {
        return Ok(None);
    }
    let (dtype, component) = (of.dtype_to_write(DATA)?, of.component(DATA)?);
    let registry = tensor.file().registry();
    let value_len = registry.value_len(dtype, component.logical_type.as_deref())?;
    let width = dtype.byte_len() as u64;
    Ok(value_len
        .filter(|len| *len > 0 && len.is_multiple_of(width))
        .map(|len| len.strict_div(width)))
}

impl NewValues {
    /// Adds the elements of `new` that differ. The first one is at `position`.
    fn compare(&mut self, position: u32, width: usize, old: &[u8], new: &[u8]) {
        /// Elements that are compared at once: few differ.
        const BLOCK: usize = 64;
        let block = BLOCK.strict_mul(width);
        let blocks = old.chunks(block).zip(new.chunks(block));
        for (start, (old, new)) in (position..).step_by(BLOCK).zip(blocks) {
            if old == new {
                continue;
            }
            let elements = old.chunks(width).zip(new.chunks(width));
            for (position, (_, new)) in (start..).zip(elements).filter(|(_, (old, new))| old != new)
            {
                self.positions.push(position);
                self.values.extend_from_slice(new);
            }
        }
    }
}
