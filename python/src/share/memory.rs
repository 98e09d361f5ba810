//! Bytes that Python and Rust share: private maps, memory for Python, and buffers that Python lends.
//!
//! Invariant: nothing here makes a Rust reference to bytes that Python may write to at that time. Maps
//! and memory are handed on as pointers, and the engine reads files by position.
#![expect(unsafe_code, reason = "Python's buffer protocol and maps are pointers")]

use std::any::Any;
use std::ffi::{CStr, c_int, c_void};
use std::fs;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use zt::{Buffer, Source, Span};

use crate::share::error::Result;

/// A whole file in memory. A write makes a page this process's own, and never reaches the file.
pub(crate) struct PrivateMap(MmapRaw);

impl PrivateMap {
    /// Maps all of `file`, which is not empty. Cost: no I/O.
    pub(crate) fn new(file: &fs::File) -> io::Result<Self> {
        // The system reserves no swap: weights may exceed the memory, and Python writes to few pages.
        // SAFETY: Rust never makes a reference to the bytes, and `PrivateMap` hands out pointers alone.
        // So Python may write to the bytes, and another program to the file. If the file is cut,
        // touching a page behind its end ends the process, as the docs of `zt.open` warn.
        let map = unsafe { MmapOptions::new().no_reserve_swap().map_copy(file)? };
        Ok(PrivateMap(map.into()))
    }

    /// Where the bytes of `span` are; `None` if the file was shorter when it was mapped.
    pub(crate) fn place(&self, span: Span) -> Option<NonNull<u8>> {
        let start = usize::try_from(span.offset()).ok()?;
        let end = usize::try_from(span.end()).ok()?;
        if end > self.0.len() {
            return None;
        }
        NonNull::new(self.0.as_mut_ptr().wrapping_add(start))
    }
}

/// A buffer of the engine without a reference in Rust: only pointers into it are used.
pub(crate) struct Detached(NonNull<Buffer>);

// SAFETY: the buffer is `Send`, and nothing but `drop` refers to it.
unsafe impl Send for Detached {}
// SAFETY: as above. Only Python reads and writes its bytes, through `Memory`.
unsafe impl Sync for Detached {}

impl Detached {
    fn new(buffer: Buffer) -> (Self, NonNull<u8>, usize) {
        let mut place = NonNull::from(Box::leak(Box::new(buffer)));
        // SAFETY: the box was leaked just now, and nothing else refers to it.
        let bytes: &mut [u8] = unsafe { place.as_mut() };
        let (start, byte_len) = (NonNull::from(&mut *bytes).cast(), bytes.len());
        (Detached(place), start, byte_len)
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a leaked box, and is freed once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Bytes for Python, which arrays and tensors are views of. They stay as long as any view, also when
/// the file is closed.
#[pyclass(frozen, module = "zt._zt", name = "Memory")]
#[derive(Clone)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    byte_len: usize,
    is_readonly: bool,
    /// Whether another object of Python owns the bytes. They never become writable then.
    is_lent: bool,
    /// Whether the bytes belong to this object alone.
    is_own: bool,
    /// Holds the bytes in place.
    _keeper: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the pointer is valid as long as `_keeper`, which is `Send`. Python decides who writes where,
// as for any of its buffers.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// The bytes of `span` of a map; `None` if the map is shorter.
    pub(crate) fn of_map(map: &Arc<PrivateMap>, span: Span) -> Option<Self> {
        let byte_len = usize::try_from(span.byte_len()).ok()?;
        Some(Self::new(map.place(span)?, byte_len, Arc::clone(map) as _))
    }

    /// Bytes that were read or computed.
    pub(crate) fn of_buffer(buffer: Buffer) -> Self {
        let (buffer, start, byte_len) = Detached::new(buffer);
        Memory { is_readonly: false, is_own: true, ..Self::new(start, byte_len, Arc::new(buffer)) }
    }

    /// Bytes of an immutable object of Python, which `keeper` holds in place.
    pub(crate) fn lent(keeper: Arc<dyn Any + Send + Sync>, bytes: &[u8]) -> Self {
        Memory { is_lent: true, ..Self::new(NonNull::from(bytes).cast(), bytes.len(), keeper) }
    }

    fn new(start: NonNull<u8>, byte_len: usize, keeper: Arc<dyn Any + Send + Sync>) -> Self {
        Memory {
            start,
            byte_len,
            is_readonly: true,
            is_lent: false,
            is_own: false,
            _keeper: keeper,
        }
    }

    /// The part of these bytes from `at` on.
    pub(crate) fn part(&self, at: usize, byte_len: usize) -> Option<Self> {
        let end = at.checked_add(byte_len)?;
        if end > self.byte_len {
            return None;
        }
        Some(Memory {
            start: NonNull::new(self.start.as_ptr().wrapping_add(at))?,
            byte_len,
            ..self.clone()
        })
    }

    /// The same bytes, writable, unless they are lent. A page of a map becomes this process's own when
    /// it is written to.
    pub(crate) fn writable(self) -> Self {
        Memory { is_readonly: self.is_lent, ..self }
    }

    pub(crate) fn is_readonly(&self) -> bool {
        self.is_readonly
    }

    pub(crate) fn is_own(&self) -> bool {
        self.is_own
    }

    pub(crate) fn byte_len(&self) -> usize {
        self.byte_len
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn is_aligned_to(&self, byte_len: usize) -> bool {
        self.start.as_ptr().addr().is_multiple_of(byte_len)
    }

    /// A copy of its own.
    pub(crate) fn to_own(&self) -> zt::Result<Self> {
        let mut buffer = Buffer::try_zeroed(self.byte_len as u64)?;
        // SAFETY: both are valid for `byte_len` bytes, and the buffer is new. If Python writes to the
        // bytes meanwhile, the copy has old and new ones, as any copy in Python has.
        unsafe {
            self.start.as_ptr().copy_to_nonoverlapping(buffer.as_mut_ptr(), self.byte_len);
        }
        Ok(Memory::of_buffer(buffer))
    }
}

#[pymethods]
impl Memory {
    fn __len__(&self) -> usize {
        self.byte_len
    }

    #[expect(clippy::needless_pass_by_value, reason = "PyO3's signature")]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> Result<()> {
        let this = slf.get();
        let byte_len = isize::try_from(this.byte_len).map_err(PyBufferError::new_err)?;
        // SAFETY: the caller owns `view`. The view keeps the object, and the object keeps the bytes.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                this.start.as_ptr().cast::<c_void>(),
                byte_len,
                this.is_readonly.into(),
                flags,
            )
        };
        if filled != 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        Ok(())
    }
}

/// The array that a view of Python describes. It stays at its address until the view is released.
pub(crate) struct View {
    _memory: Memory,
    shape: Vec<isize>,
    strides: Vec<isize>,
}

/// Fills `view` with an array in row-major order.
///
/// # Safety
///
/// `view` is the argument of `__getbuffer__`, and `__releasebuffer__` calls [`release`].
pub(crate) unsafe fn fill(
    view: *mut ffi::Py_buffer,
    flags: c_int,
    exporter: Bound<'_, PyAny>,
    memory: Memory,
    shape: Vec<isize>,
    format: &'static CStr,
    item_len: usize,
) -> Result<()> {
    if memory.is_readonly && flags & ffi::PyBUF_WRITABLE != 0 {
        return Err(PyBufferError::new_err(
            "the tensor is read-only: `numpy(writable=True)` gives a writable array",
        ));
    }
    let too_large = || PyBufferError::new_err("the tensor is too large for a buffer");
    let byte_len = isize::try_from(memory.byte_len).map_err(|_| too_large())?;
    let item_len = isize::try_from(item_len).map_err(|_| too_large())?;
    let mut strides = vec![item_len; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at].saturating_mul(shape[at]);
    }
    let ndim = c_int::try_from(shape.len()).map_err(|_| too_large())?;
    let (start, is_readonly) = (memory.start, memory.is_readonly);
    let described = Box::leak(Box::new(View { _memory: memory, shape, strides }));
    let if_asked = |flag, place: *mut isize| {
        if flags & flag == flag { place } else { std::ptr::null_mut() }
    };
    let shape = if_asked(ffi::PyBUF_ND, described.shape.as_mut_ptr());
    let strides = if_asked(ffi::PyBUF_STRIDES, described.strides.as_mut_ptr());
    let format = if flags & ffi::PyBUF_FORMAT == ffi::PyBUF_FORMAT {
        format.as_ptr().cast_mut()
    } else {
        std::ptr::null_mut()
    };
    // SAFETY: the caller lets us fill `view`. It points to `described` and to static data alone.
    unsafe {
        (*view).buf = start.as_ptr().cast();
        (*view).obj = exporter.into_ptr();
        (*view).len = byte_len;
        (*view).itemsize = item_len;
        (*view).readonly = is_readonly.into();
        (*view).ndim = ndim;
        (*view).format = format;
        (*view).shape = shape;
        (*view).strides = strides;
        (*view).suboffsets = std::ptr::null_mut();
        (*view).internal = std::ptr::from_mut(described).cast();
    }
    Ok(())
}

/// Ends a view that [`fill`] filled.
///
/// # Safety
///
/// `view` was filled by [`fill`], and is released once.
pub(crate) unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: `internal` is the box that `fill` leaked.
    drop(unsafe { Box::from_raw((*view).internal.cast::<View>()) });
}

/// Contiguous bytes that an object of Python lends: a file in memory, a piece that a file object has read, or
/// an array to fill.
///
/// If Python changes them meanwhile, a copy has old and new bytes. So nothing reads them twice.
pub(crate) struct Lent(PyUntypedBuffer);

impl Lent {
    /// The bytes of `object` through the buffer protocol.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Result<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err(
                "the buffer is not contiguous: pass a contiguous copy",
            ));
        }
        Ok(Lent(buffer))
    }

    /// The addresses of its first byte and of the byte behind its last one.
    pub(crate) fn place(&self) -> (usize, usize) {
        let start = self.0.buf_ptr().addr();
        (start, start.saturating_add(self.0.len_bytes()))
    }

    /// The bytes, for work during which Python does not write to them.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the buffer is contiguous. It is exported as long as `self` lives, so it is not moved
        // or freed. The caller copies them once: see the type.
        unsafe { slice(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }

    /// The bytes, for one reader of a file that fills them.
    ///
    /// # Errors
    ///
    /// `ValueError` if the object is read-only.
    #[expect(clippy::mut_from_ref, reason = "the memory is Python's")]
    pub(crate) fn bytes_mut(&self) -> Result<&mut [u8]> {
        if self.0.readonly() {
            return Err(PyValueError::new_err("the array is read-only"));
        }
        if self.0.len_bytes() == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as in `bytes`. The memory is writable, and the caller takes each byte once.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0.buf_ptr().cast(), self.0.len_bytes()) })
    }
}

/// Bytes at an address that a caller of Python passes.
///
/// The caller keeps them valid until its call returns, as the docs of `TensorSpec` ask.
pub(crate) struct Addressed {
    pub(crate) address: u64,
    pub(crate) byte_len: usize,
}

impl Addressed {
    pub(crate) fn bytes(&self) -> &[u8] {
        let start = std::ptr::with_exposed_provenance(self.address as usize);
        // SAFETY: the caller keeps them valid: see the type. The modules of this package keep their
        // arrays.
        unsafe { slice(start, self.byte_len) }
    }
}

/// # Safety
///
/// As [`std::slice::from_raw_parts`]. With a length of 0, any pointer will do.
unsafe fn slice<'b>(start: *const u8, byte_len: usize) -> &'b [u8] {
    if byte_len == 0 {
        return &[];
    }
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(start, byte_len) }
}

/// A tensor file in an object of Python that may be writable. Reads copy its bytes: it lends none.
impl Source for Lent {
    fn byte_len(&self) -> u64 {
        self.0.len_bytes() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = usize::try_from(offset).ok().and_then(|at| at.checked_add(buf.len()));
        let Some(end) = end.filter(|end| *end <= self.0.len_bytes()) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let start = self.0.buf_ptr().cast::<u8>().wrapping_add(end - buf.len());
        // SAFETY: the range is within the buffer, which stays while it is exported. If Python writes to
        // it meanwhile, the copy has old and new bytes, and a digest shows that.
        unsafe { start.copy_to_nonoverlapping(buf.as_mut_ptr(), buf.len()) };
        Ok(())
    }
}

/// An array of Python, of any strides, for copying.
///
/// If Python changes it meanwhile, a copy has old and new values. So nothing reads it twice.
pub(crate) struct Strided {
    start: *const u8,
    shape: Vec<usize>,
    /// In bytes.
    strides: Vec<isize>,
    item_len: usize,
    /// Holds the array in place.
    _keeper: Box<dyn Any + Send + Sync>,
}

// SAFETY: the pointer is valid as long as the keeper, and any thread may drop that. The memory is only
// read.
unsafe impl Send for Strided {}
// SAFETY: as above.
unsafe impl Sync for Strided {}

impl Strided {
    /// The array that a buffer describes; `None` for an array of pointers.
    pub(crate) fn of_buffer(buffer: PyUntypedBuffer) -> Option<Self> {
        if buffer.suboffsets().is_some() {
            return None;
        }
        let (start, item_len) = (buffer.buf_ptr().cast_const().cast(), buffer.item_size());
        let (shape, strides) = (buffer.shape().to_vec(), buffer.strides().to_vec());
        // SAFETY: the buffer protocol guarantees the shape and the strides until the buffer is
        // released.
        Some(unsafe { Self::new(start, shape, strides, item_len, buffer) })
    }

    /// An array at `start`, with strides in bytes.
    ///
    /// # Safety
    ///
    /// The shape and the strides lead to elements of `item_len` bytes, as long as `keeper` lives.
    pub(crate) unsafe fn new(
        start: *const u8,
        shape: Vec<usize>,
        strides: Vec<isize>,
        item_len: usize,
        keeper: impl Send + Sync + 'static,
    ) -> Self {
        Strided { start, shape, strides, item_len, _keeper: Box::new(keeper) }
    }

    /// Removes the dimensions of an array of one element.
    pub(crate) fn make_scalar(&mut self) {
        if self.count() == 1 {
            self.shape.clear();
            self.strides.clear();
        }
    }

    /// Its dimensions.
    pub(crate) fn shape(&self) -> Vec<u64> {
        self.shape.iter().map(|len| *len as u64).collect()
    }

    pub(crate) fn item_len(&self) -> usize {
        self.item_len
    }

    /// The bytes of all elements.
    pub(crate) fn byte_len(&self) -> usize {
        self.count().saturating_mul(self.item_len)
    }

    /// The address and the length of the elements, if they are in row-major order without gaps. Equal
    /// places are one array under two names.
    pub(crate) fn place(&self) -> Option<(usize, usize)> {
        self.is_contiguous().then(|| (self.start.addr(), self.byte_len()))
    }

    fn count(&self) -> usize {
        self.shape.iter().fold(1, |count: usize, len| count.saturating_mul(*len))
    }

    fn is_contiguous(&self) -> bool {
        let mut expected = self.item_len as isize;
        if self.count() == 0 {
            return true;
        }
        for (len, stride) in self.shape.iter().zip(&self.strides).rev() {
            if *len != 1 && *stride != expected {
                return false;
            }
            expected = expected.saturating_mul(*len as isize);
        }
        true
    }

    /// Copies bytes of elements that are in row-major order without gaps, from the byte `offset` on.
    ///
    /// # Errors
    ///
    /// The elements are not in that order, or are fewer.
    pub(crate) fn read_at(&self, offset: usize, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len());
        if !self.is_contiguous() || end.is_none_or(|end| end > self.byte_len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let start = self.start.wrapping_add(offset);
        // SAFETY: that many elements are there as long as `self`. If Python writes to them meanwhile,
        // the copy has old and new bytes.
        unsafe { start.copy_to_nonoverlapping(buf.as_mut_ptr(), buf.len()) };
        Ok(())
    }

    /// A copy of the elements, in row-major order.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    pub(crate) fn to_buffer(&self) -> zt::formats::Result<Buffer> {
        let mut buffer = Buffer::try_zeroed_values(self.count() as u64, self.item_len as u64)?;
        if self.read_at(0, &mut buffer).is_ok() {
            return Ok(buffer);
        }
        let out = buffer.as_mut_ptr();
        // SAFETY: the shape and the strides lead to elements alone, and `out` has room for all. There
        // is an element: an array without any is contiguous, and was copied above.
        unsafe {
            match self.item_len {
                1 => self.copy::<1>(out),
                2 => self.copy::<2>(out),
                4 => self.copy::<4>(out),
                8 => self.copy::<8>(out),
                _ => self.copy::<16>(out),
            }
        }
        Ok(buffer)
    }

    /// # Safety
    ///
    /// There is an element, elements have `N` bytes, and `out` has room for all of them.
    unsafe fn copy<const N: usize>(&self, out: *mut u8) {
        /// Rows and columns of a tile, so that the lines of a transposed matrix stay in the cache.
        const TILE: usize = 64;
        let outer = self.shape.len().saturating_sub(2);
        let (shape, strides) = (&self.shape[outer..], &self.strides[outer..]);
        let ((rows, row), (columns, column)) = match (shape, strides) {
            ([rows, columns], [row, column]) => ((*rows, *row), (*columns, *column)),
            ([columns], [column]) => ((1, 0), (*columns, *column)),
            _ => ((1, 0), (1, 0)),
        };
        let mut index = vec![0; outer];
        let (mut from, mut to) = (self.start, out);
        loop {
            for top in (0..rows).step_by(TILE) {
                for left in (0..columns).step_by(TILE) {
                    for y in top..rows.min(top + TILE) {
                        for x in left..columns.min(left + TILE) {
                            let place = row * y as isize + column * x as isize;
                            // SAFETY: an element is at `place`, and `to` has room for a whole matrix.
                            unsafe {
                                let value = from.offset(place).cast::<[u8; N]>().read_unaligned();
                                let at = (y * columns + x) * N;
                                to.add(at).cast::<[u8; N]>().write_unaligned(value);
                            }
                        }
                    }
                }
            }
            to = to.wrapping_add(rows * columns * N);
            // The next matrix, as an odometer counts.
            let mut at = outer;
            loop {
                if at == 0 {
                    return;
                }
                at -= 1;
                index[at] += 1;
                from = from.wrapping_offset(self.strides[at]);
                if index[at] < self.shape[at] {
                    break;
                }
                from = from.wrapping_offset(-self.strides[at] * self.shape[at] as isize);
                index[at] = 0;
            }
        }
    }
}
