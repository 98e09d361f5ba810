//! DLPack 1.1: exchanges memory with torch, jax and others.
#![expect(unsafe_code, reason = "DLPack's structures hold pointers")]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::share::array::Array;
use crate::share::dtype::Row;
use crate::share::error::{OrRaise, Result};
use crate::share::memory::{Memory, Strided};

/// The device of the CPU.
pub(crate) const CPU: (i32, i32) = (1, 0);

const PLAIN: &CStr = c"dltensor";
const PLAIN_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: (i32, i32),
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct ManagedVersioned {
    version: (u32, u32),
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// The memory and the dimensions that a structure points to. `context` is the address of its box.
struct Context {
    _memory: Memory,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

fn describe(array: Array) -> Result<(DlTensor, Box<Context>)> {
    let too_large = || PyBufferError::new_err("the tensor is too large for DLPack");
    let shape = array.shape.iter().map(|len| i64::try_from(*len));
    let shape: Vec<i64> = shape.collect::<std::result::Result<_, _>>().map_err(|_| too_large())?;
    let mut strides = vec![1i64; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at].saturating_mul(shape[at].max(1));
    }
    let data = array.memory.start().as_ptr().cast();
    let mut context = Box::new(Context { _memory: array.memory, shape, strides });
    let tensor = DlTensor {
        data,
        device: CPU,
        ndim: i32::try_from(context.shape.len()).map_err(|_| too_large())?,
        dtype: DataType {
            code: array.row.dlpack,
            bits: u8::try_from(array.row.item_len * 8).map_err(|_| too_large())?,
            lanes: 1,
        },
        shape: context.shape.as_mut_ptr(),
        strides: context.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    Ok((tensor, context))
}

/// The capsule of an array.
///
/// A versioned capsule marks a view of a map, or of lent bytes, as read-only. An unversioned one
/// cannot. It gives a view of a map as it is: a write makes the page this process's own. It copies lent
/// bytes.
pub(crate) fn export<'py>(
    py: Python<'py>,
    mut array: Array,
    max_version: Option<(u32, u32)>,
    copy: Option<bool>,
) -> Result<Bound<'py, PyAny>> {
    if max_version.is_some_and(|(major, _)| major >= 1) {
        let mut flags = 0;
        if array.memory.is_readonly() {
            flags |= READ_ONLY;
        }
        if array.memory.is_own() {
            flags |= IS_COPIED;
        }
        let (tensor, context) = describe(array)?;
        let managed = Box::new(ManagedVersioned {
            version: (1, 1),
            context: Box::into_raw(context).cast(),
            deleter: Some(delete_versioned),
            flags,
            tensor,
        });
        let managed = NonNull::from(Box::leak(managed)).cast();
        // SAFETY: the name of the capsule is right for the structure. The structure stays until its
        // deleter is called: by the consumer, which renames the capsule, or by `end_versioned`.
        let capsule = unsafe {
            PyCapsule::new_with_pointer_and_destructor(py, managed, VERSIONED, Some(end_versioned))?
        };
        return Ok(capsule.into_any());
    }
    if array.memory.clone().writable().is_readonly() {
        if copy == Some(false) {
            let text = "the bytes are read-only, and only a versioned capsule can say so";
            return Err(PyBufferError::new_err(text));
        }
        array.memory = py.detach(|| array.memory.to_own()).or_raise()?;
    }
    let (tensor, context) = describe(array)?;
    let managed =
        Box::new(Managed { tensor, context: Box::into_raw(context).cast(), deleter: Some(delete) });
    let managed = NonNull::from(Box::leak(managed)).cast();
    // SAFETY: as above.
    let capsule =
        unsafe { PyCapsule::new_with_pointer_and_destructor(py, managed, PLAIN, Some(end))? };
    Ok(capsule.into_any())
}

unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: `export` leaked both boxes, and the deleter is called once.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(managed.context.cast::<Context>()) });
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as in `delete`.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(managed.context.cast::<Context>()) });
}

/// Ends a capsule whose tensor no consumer took.
unsafe extern "C" fn end(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a capsule that it frees. If the capsule has its first name, it
    // still owns the structure.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn end_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as in `end`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// A tensor that was taken out of another library's capsule.
pub(crate) struct Imported {
    owner: Owner,
    row: &'static Row,
}

enum Owner {
    Plain(NonNull<Managed>),
    Versioned(NonNull<ManagedVersioned>),
}

// SAFETY: this value owns the structure, and DLPack lets any thread call the deleter. A deleter that
// needs the interpreter attaches to it, and `drop` does so too.
unsafe impl Send for Imported {}
// SAFETY: as above; the structure is only read.
unsafe impl Sync for Imported {}

impl Imported {
    /// The tensor of an object with `__dlpack__`, in memory of the CPU.
    ///
    /// # Errors
    ///
    /// `TypeError` if it is on another device, or has elements that files do not have; any exception of
    /// the object.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Result<Self> {
        let py = object.py();
        let (device, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
        if device != CPU.0 {
            return Err(PyTypeError::new_err(
                "the tensor is on another device: pass a copy in memory of the CPU",
            ));
        }
        let versioned = PyDict::new(py);
        versioned.set_item("max_version", (1, 1))?;
        let capsule = match object.call_method("__dlpack__", (), Some(&versioned)) {
            // An exporter from before version 1.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                object.call_method0("__dlpack__")?
            }
            capsule => capsule?,
        };
        let capsule = capsule.cast::<PyCapsule>()?;
        let pointer = capsule.as_ptr();
        // SAFETY: a capsule of this name holds this structure. The consumer that renames the capsule
        // owns it.
        let take = |name: &CStr, used: &'static CStr| unsafe {
            if ffi::PyCapsule_IsValid(pointer, name.as_ptr()) != 1 {
                return None;
            }
            let managed = ffi::PyCapsule_GetPointer(pointer, name.as_ptr());
            ffi::PyCapsule_SetName(pointer, used.as_ptr());
            NonNull::new(managed)
        };
        let versioned = take(VERSIONED, VERSIONED_USED).map(|it| Owner::Versioned(it.cast()));
        let plain = || take(PLAIN, PLAIN_USED).map(|it| Owner::Plain(it.cast()));
        let owner = versioned.or_else(plain);
        let owner = owner.ok_or_else(|| PyTypeError::new_err("`__dlpack__` gave no tensor"))?;
        // From here on, an error drops it, which gives it back.
        let mut imported = Imported { owner, row: Row::of(zt::DType::U8, None) };
        let dtype = &imported.tensor().dtype;
        let row = Row::of_dlpack(dtype.code, dtype.bits, dtype.lanes);
        imported.row = row.ok_or_else(|| {
            let (code, bits) = (dtype.code, dtype.bits);
            PyTypeError::new_err(format!(
                "no file has elements of DLPack's code {code}, {bits} bits"
            ))
        })?;
        Ok(imported)
    }

    fn tensor(&self) -> &DlTensor {
        // SAFETY: the structure stays until it is deleted in `drop`.
        unsafe {
            match &self.owner {
                Owner::Plain(managed) => &managed.as_ref().tensor,
                Owner::Versioned(managed) => &managed.as_ref().tensor,
            }
        }
    }

    /// The type of its elements.
    pub(crate) fn row(&self) -> &'static Row {
        self.row
    }

    /// The array, which keeps the tensor alive; `None` if it is larger than any memory.
    pub(crate) fn into_array(self) -> Option<Strided> {
        let (start, shape, strides) = self.layout()?;
        // SAFETY: DLPack guarantees the shape and the strides until `drop` calls the deleter.
        Some(unsafe { Strided::new(start, shape, strides, self.row.item_len, self) })
    }

    /// Its first element, its shape, and its strides in bytes.
    fn layout(&self) -> Option<(*const u8, Vec<usize>, Vec<isize>)> {
        let tensor = self.tensor();
        let ndim = usize::try_from(tensor.ndim).ok()?;
        // SAFETY: DLPack has `ndim` numbers at both places. Old versions may have no strides.
        let (shape, strides) = unsafe {
            if ndim == 0 {
                (&[][..], None)
            } else if tensor.strides.is_null() {
                (std::slice::from_raw_parts(tensor.shape, ndim), None)
            } else {
                let strides = std::slice::from_raw_parts(tensor.strides, ndim);
                (std::slice::from_raw_parts(tensor.shape, ndim), Some(strides))
            }
        };
        let item_len = isize::try_from(self.row.item_len).ok()?;
        let dimensions = shape.iter().map(|len| usize::try_from(*len).ok());
        let dimensions: Vec<usize> = dimensions.collect::<Option<_>>()?;
        let mut dense = item_len;
        let mut byte_strides = vec![0; ndim];
        for at in (0..ndim).rev() {
            byte_strides[at] = match strides {
                Some(strides) => isize::try_from(strides[at]).ok()?.checked_mul(item_len)?,
                None => dense,
            };
            dense = dense.checked_mul(isize::try_from(dimensions[at].max(1)).ok()?)?;
        }
        let offset = usize::try_from(tensor.byte_offset).ok()?;
        let start = tensor.data.cast::<u8>().wrapping_add(offset);
        Some((start, dimensions, byte_strides))
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        // When the interpreter exits, nothing takes the tensor back.
        Python::try_attach(|_| {
            // SAFETY: this value owns the structure, and deletes it once.
            unsafe {
                match self.owner {
                    Owner::Plain(managed) => {
                        if let Some(deleter) = managed.as_ref().deleter {
                            deleter(managed.as_ptr());
                        }
                    }
                    Owner::Versioned(managed) => {
                        if let Some(deleter) = managed.as_ref().deleter {
                            deleter(managed.as_ptr());
                        }
                    }
                }
            }
        });
    }
}
