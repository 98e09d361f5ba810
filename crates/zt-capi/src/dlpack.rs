//! DLPack 1.1: tensors that other libraries take without a copy.

use std::ffi::c_void;

use zt::{Elements, Result};

use crate::border::misuse;
use crate::dtype;
use crate::ffi::Deleter;
use crate::tensor::{Kept, zt_tensor};

/// The version of the structs.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DLPackVersion {
    /// Another major version has other structs.
    pub major: u32,
    /// A later minor version has more types and flags.
    pub minor: u32,
}

/// Where the memory is: type 1 is the CPU.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DLDevice {
    /// The type of the device.
    pub device_type: i32,
    /// Its number.
    pub device_id: i32,
}

/// The type of the elements.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DLDataType {
    /// 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool, 10 and more FP8.
    pub code: u8,
    /// Bits of an element.
    pub bits: u8,
    /// 1.
    pub lanes: u16,
}

/// An array.
#[repr(C)]
#[derive(Debug)]
pub struct DLTensor {
    /// The first element.
    pub data: *mut c_void,
    /// The device of the memory.
    pub device: DLDevice,
    /// The number of dimensions.
    pub ndim: i32,
    /// The type of the elements.
    pub dtype: DLDataType,
    /// The dimensions.
    pub shape: *mut i64,
    /// The distances of elements, in elements.
    pub strides: *mut i64,
    /// Zero.
    pub byte_offset: u64,
}

/// An array that its user gives back by `deleter`.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// 1.1.
    pub version: DLPackVersion,
    /// Ours.
    pub manager_ctx: *mut c_void,
    /// Gives the array back.
    pub deleter: Option<Deleter>,
    /// 1: the memory is read-only; 2: it is a copy.
    pub flags: u64,
    /// The array.
    pub dl_tensor: DLTensor,
}

const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

/// An array with what it points to. The consumer sees `head` alone.
#[repr(C)]
pub(crate) struct Managed {
    pub(crate) head: DLManagedTensorVersioned,
    _kept: Keeper,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
}

/// What holds the values in memory.
#[expect(dead_code, reason = "they are only held")]
enum Keeper {
    Lent(Kept),
    Copy(Elements<'static>),
}

/// Any thread gives an array back.
const fn is_sent<T: Send>() {}
const _: () = is_sent::<Keeper>();

/// The values, lent if they can be, otherwise a copy if that is allowed.
pub(crate) fn export(tensor: &zt_tensor, copy: bool, deleter: Deleter) -> Result<Box<Managed>> {
    let lent = tensor.lend_values();
    let (data, keeper, flags, dtype) = match (lent, copy) {
        (Err(error), false) => return Err(error),
        (Ok(bytes), _) => {
            let data = bytes.as_ptr();
            (data, Keeper::Lent(tensor.keeper()), READ_ONLY, of_name(tensor)?)
        }
        (Err(_), true) => {
            let (_, mut elements) = tensor.tensor()?.to_dense()?.into_elements();
            let name = elements.logical_type().unwrap_or(elements.dtype.as_str());
            let dtype = data_type(name)?;
            let mut bytes = elements.bytes.into_owned()?;
            dtype::swap_if_big(&mut bytes, elements.dtype);
            let data = bytes.as_ptr();
            elements.bytes = bytes.into();
            (data, Keeper::Copy(elements), IS_COPIED, dtype)
        }
    };
    let too_large = || misuse("the tensor is too large for DLPack");
    let shape = tensor.shape().iter().map(|len| i64::try_from(*len).map_err(|_| too_large()));
    let shape: Box<[i64]> = shape.collect::<Result<_>>()?;
    let ndim = i32::try_from(shape.len()).map_err(|_| too_large())?;
    let mut stride = 1i64;
    let strides = shape.iter().rev().map(|len| {
        let this = stride;
        stride = stride.saturating_mul((*len).max(1));
        this
    });
    let mut strides: Box<[i64]> = strides.collect();
    strides.reverse();
    // DLPack asks for it.
    let data = if shape.contains(&0) { std::ptr::null() } else { data };
    let mut managed = Box::new(Managed {
        head: DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 1 },
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(deleter),
            flags,
            dl_tensor: DLTensor {
                data: data.cast_mut().cast(),
                device: DLDevice { device_type: 1, device_id: 0 },
                ndim,
                dtype,
                shape: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: 0,
            },
        },
        _kept: keeper,
        shape,
        strides,
    });
    managed.head.dl_tensor.shape = managed.shape.as_mut_ptr();
    managed.head.dl_tensor.strides = managed.strides.as_mut_ptr();
    Ok(managed)
}

/// The type of lent values.
fn of_name(tensor: &zt_tensor) -> Result<DLDataType> {
    data_type(tensor.value_type.as_ref().and_then(|name| name.to_str().ok()).unwrap_or(""))
}

fn data_type(name: &str) -> Result<DLDataType> {
    let (code, bits) = match name {
        "i8" => (0, 8),
        "i16" => (0, 16),
        "i32" => (0, 32),
        "i64" => (0, 64),
        "u8" => (1, 8),
        "u16" => (1, 16),
        "u32" => (1, 32),
        "u64" => (1, 64),
        "f16" => (2, 16),
        "f32" => (2, 32),
        "f64" => (2, 64),
        "bf16" => (4, 16),
        "complex64" => (5, 64),
        "complex128" => (5, 128),
        "bool" => (6, 8),
        "f8_e4m3fn" => (10, 8),
        "f8_e4m3fnuz" => (11, 8),
        "f8_e5m2" => (12, 8),
        "f8_e5m2fnuz" => (13, 8),
        "f8_e8m0fnu" => (14, 8),
        other => {
            let message = format!("DLPack has no type {other}");
            return Err(zt::Error::new(
                zt::ErrorKind::Unsupported,
                zt::codes::UNSUPPORTED,
                message,
            ));
        }
    };
    Ok(DLDataType { code, bits, lanes: 1 })
}
