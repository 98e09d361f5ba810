//! Element types as numbers.

use zt::{DType, Result};

use crate::border::misuse;

/// How elements are stored: 0 for none, else the place in [`DType::ALL`] plus 1.
pub type zt_dtype = u32;

pub(crate) fn number(dtype: Option<DType>) -> zt_dtype {
    let known = DType::ALL.into_iter().zip(1..);
    known.into_iter().find(|(known, _)| Some(*known) == dtype).map_or(0, |(_, number)| number)
}

/// The type of a number; `None` for 0.
pub(crate) fn wanted(number: zt_dtype) -> Result<Option<DType>> {
    match of(number) {
        None if number != 0 => Err(misuse(format!("{number} is no zt_dtype"))),
        dtype => Ok(dtype),
    }
}

/// The type that a caller names, and not 0.
pub(crate) fn named(number: zt_dtype) -> Result<DType> {
    wanted(number)?.ok_or_else(|| misuse("`dtype` is ZT_NONE: name a type"))
}

pub(crate) fn of(number: zt_dtype) -> Option<DType> {
    let at = usize::try_from(number).ok()?.checked_sub(1)?;
    DType::ALL.get(at).copied()
}

/// Turns elements between the order of files, little-endian, and that of this machine.
pub(crate) fn swap_if_big(bytes: &mut [u8], dtype: DType) {
    if cfg!(target_endian = "big") && dtype.byte_len() > 1 {
        bytes.chunks_exact_mut(dtype.byte_len()).for_each(<[u8]>::reverse);
    }
}

/// Whether bytes of a file are elements of this machine.
pub(crate) fn is_native(dtype: DType) -> bool {
    cfg!(target_endian = "little") || dtype.byte_len() == 1
}
