//! The functions of zt.h: the only file of this crate with unsafe code.
//!
//! A pointer to a handle or to a result is a reference here, `None` for NULL. That it leads to what its type says, and
//! that nobody writes there during the call, is the caller's part of the contract in zt.h. The helpers at the end turn
//! texts, arrays and structs of the caller into values. Everything else is safe code in the other files.
#![expect(unsafe_code, reason = "texts, arrays and handles of C are pointers")]
#![expect(clippy::missing_safety_doc, reason = "zt.h has the contract of each function")]

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::path::Path;
use std::{fs, io, ptr, slice};

use memmap2::Mmap;
use zt::{Error, ErrorKind, Limits, Memory, OpenOptions, Result, Source, Verify, codes};
use zt_convert::{FileKind, InputOptions, Kinds, Logical};

use crate::border::{Out, call, give, given, misuse, place, value};
use crate::convert::{Wanted, convert};
use crate::dlpack::{self, DLManagedTensorVersioned, Managed};
use crate::dtype::{self, zt_dtype};
use crate::error::{NAMES, ZT_MISUSE, ZT_OK, zt_error, zt_status};
use crate::file::{Opening, zt_file};
use crate::json;
use crate::options::{
    writing, zt_component, zt_convert_options, zt_object, zt_open_options, zt_part, zt_range,
    zt_read_options, zt_source, zt_write_options,
};
use crate::parts::{self, Job};
use crate::report::zt_report;
use crate::tensor::{expect_len, zt_tensor};
use crate::writer::{Described, zt_writer};

/// `read_at` of a `zt_source`.
pub type ReadAt = unsafe extern "C" fn(*mut c_void, u64, *mut c_void, usize) -> i32;

/// `close` of a `zt_source`.
pub type Close = unsafe extern "C" fn(*mut c_void);

/// Gives an array of DLPack back.
pub type Deleter = unsafe extern "C" fn(*mut DLManagedTensorVersioned);

/// The version of the library: `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn zt_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// The name of a status.
#[unsafe(no_mangle)]
pub extern "C" fn zt_status_name(status: zt_status) -> *const c_char {
    let at = usize::try_from(status).unwrap_or(usize::MAX);
    NAMES.get(at).unwrap_or(&c"unknown").as_ptr()
}

/// The status of an error.
#[unsafe(no_mangle)]
pub extern "C" fn zt_error_status(error: Option<&zt_error>) -> zt_status {
    error.map_or(0, zt_error::status)
}

/// Its stable code.
#[unsafe(no_mangle)]
pub extern "C" fn zt_error_code(error: Option<&zt_error>) -> *const c_char {
    error.map_or(c"ok".as_ptr(), |error| error.code.as_ptr())
}

/// Its text.
#[unsafe(no_mangle)]
pub extern "C" fn zt_error_message(error: Option<&zt_error>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// The tensor at fault.
#[unsafe(no_mangle)]
pub extern "C" fn zt_error_object(error: Option<&zt_error>) -> *const c_char {
    text_or_null(error.and_then(|error| error.object.as_deref()))
}

/// The component at fault.
#[unsafe(no_mangle)]
pub extern "C" fn zt_error_component(error: Option<&zt_error>) -> *const c_char {
    text_or_null(error.and_then(|error| error.component.as_deref()))
}

/// The file at fault.
#[unsafe(no_mangle)]
pub extern "C" fn zt_error_path(error: Option<&zt_error>) -> *const c_char {
    text_or_null(error.and_then(|error| error.path.as_deref()))
}

/// The bytes at fault.
#[unsafe(no_mangle)]
pub extern "C" fn zt_error_place(
    error: Option<&zt_error>,
    begin: Out<'_, u64>,
    end: Out<'_, u64>,
) -> bool {
    let Some(place) = error.and_then(|error| error.place) else {
        return false;
    };
    begin.map(|out| out.write(place.0));
    end.map(|out| out.write(place.1));
    true
}

/// Frees an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_error_free(error: Option<&mut *mut zt_error>) {
    // SAFETY: the handle came from this library.
    unsafe { free(error) }
}

/// The name of a type.
#[unsafe(no_mangle)]
pub extern "C" fn zt_dtype_name(dtype: zt_dtype) -> *const c_char {
    const TEXTS: [&CStr; 13] = [
        c"f64", c"f32", c"f16", c"bf16", c"i64", c"i32", c"i16", c"i8", c"u64", c"u32", c"u16",
        c"u8", c"bool",
    ];
    let at = usize::try_from(dtype).unwrap_or(0).wrapping_sub(1);
    TEXTS.get(at).unwrap_or(&c"none").as_ptr()
}

/// Bytes of an element.
#[unsafe(no_mangle)]
pub extern "C" fn zt_dtype_byte_len(dtype: zt_dtype) -> usize {
    dtype::of(dtype).map_or(0, |dtype| dtype.byte_len())
}

/// Opens a path, a folder or a URL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_file_open(
    location: *const c_char,
    options: *const zt_open_options,
    file: Out<'_, *mut zt_file>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        let out = place(file, "file")?;
        // SAFETY: both are NULL or the caller's.
        let (location, opening) = unsafe { (path(location, "location")?, opening(options)?) };
        give(out, zt_file::open(location, opening)?);
        Ok(())
    })
}

/// Opens a file in memory, lent or copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_file_open_memory(
    data: *const c_void,
    byte_len: usize,
    copy: bool,
    options: *const zt_open_options,
    file: Out<'_, *mut zt_file>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        let out = place(file, "file")?;
        // SAFETY: the caller's. If they are lent, zt.h asks that they stay until the file is closed, and every view
        // of its tensors is given back. So they live as long as anything that reads them.
        let (bytes, opening) = unsafe { (bytes::<'static>(data, byte_len)?, opening(options)?) };
        let opened = if copy {
            let mut own = Vec::new();
            let refused =
                |_| Error::new(ErrorKind::Limit, codes::ALLOCATION, "no memory for a copy");
            own.try_reserve_exact(bytes.len()).map_err(refused)?;
            own.extend_from_slice(bytes);
            zt_file::from_source(Memory::new(own), opening)?
        } else {
            zt_file::from_source(Memory::new(bytes), opening)?
        };
        give(out, opened);
        Ok(())
    })
}

/// Opens a file that functions of the caller read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_file_open_source(
    source: *const zt_source,
    options: *const zt_open_options,
    file: Out<'_, *mut zt_file>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        // First, so that it is closed whatever is wrong with the other arguments.
        // SAFETY: the caller's.
        let source = Callbacks(unsafe { growing(not_null(source, "source")?)? });
        let out = place(file, "file")?;
        given(source.0.read_at, "read_at")?;
        // SAFETY: the caller's.
        let opening = unsafe { opening(options)? };
        give(out, zt_file::from_source(source, opening)?);
        Ok(())
    })
}

/// Closes a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_file_close(file: Option<&mut *mut zt_file>) {
    // SAFETY: the handle came from this library.
    unsafe { free(file) }
}

/// The kind of a file.
#[unsafe(no_mangle)]
pub extern "C" fn zt_file_kind(file: Option<&zt_file>) -> *const c_char {
    text_or_null(file.map(zt_file::kind))
}

/// The attributes of a file as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn zt_file_attributes(
    file: Option<&zt_file>,
    json: Out<'_, *const c_char>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        let text = of_file(file, zt_file::attributes)?;
        given(json, "json")?.write(text.as_ptr());
        Ok(())
    })
}

/// The number of tensors.
#[unsafe(no_mangle)]
pub extern "C" fn zt_file_tensor_count(file: Option<&zt_file>) -> usize {
    file.map_or(0, zt_file::len)
}

/// The tensor at a place.
#[unsafe(no_mangle)]
pub extern "C" fn zt_file_tensor_at(file: Option<&zt_file>, index: usize) -> *const zt_tensor {
    value(ptr::null(), || file?.tensor_at(index).map(ptr::from_ref))
}

/// The tensor of a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_file_tensor(
    file: Option<&zt_file>,
    name: *const c_char,
) -> *const zt_tensor {
    value(ptr::null(), || {
        // SAFETY: NULL or a text of the caller.
        let name = unsafe { text(name, "name") }.ok()?;
        file?.tensor(name).map(ptr::from_ref)
    })
}

/// What a user should know about a file.
#[unsafe(no_mangle)]
pub extern "C" fn zt_file_warnings(
    file: Option<&zt_file>,
    report: Out<'_, *mut zt_report>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        let out = place(report, "report")?;
        give(out, given(file, "file")?.warnings());
        Ok(())
    })
}

/// Checks all of a file.
#[unsafe(no_mangle)]
pub extern "C" fn zt_file_verify(
    file: Option<&zt_file>,
    strict: bool,
    report: Out<'_, *mut zt_report>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        let out = place(report, "report")?;
        give(out, of_file(file, |file| file.verify(strict))?);
        Ok(())
    })
}

/// The identity of the tensors of a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_file_hash(
    file: Option<&zt_file>,
    text: *mut c_char,
    text_len: usize,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        // SAFETY: the caller's.
        let out = unsafe { bytes_mut(text.cast(), text_len)? };
        // `sha256:`, 64 digits and the end.
        let out = out.get_mut(..72).ok_or_else(|| misuse("the text takes 72 bytes"))?;
        let hash = of_file(file, zt_file::hash)?;
        out.iter_mut().zip(hash.bytes().chain([0])).for_each(|(place, byte)| *place = byte);
        Ok(())
    })
}

/// The number of entries of a report.
#[unsafe(no_mangle)]
pub extern "C" fn zt_report_count(report: Option<&zt_report>) -> usize {
    report.map_or(0, |report| report.0.len())
}

/// An entry of a report.
#[unsafe(no_mangle)]
pub extern "C" fn zt_report_at(report: Option<&zt_report>, index: usize) -> *const zt_error {
    report.and_then(|report| report.0.get(index)).map_or(ptr::null(), ptr::from_ref)
}

/// Frees a report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_report_free(report: Option<&mut *mut zt_report>) {
    // SAFETY: the handle came from this library.
    unsafe { free(report) }
}

/// The name of a tensor.
#[unsafe(no_mangle)]
pub extern "C" fn zt_tensor_name(tensor: Option<&zt_tensor>) -> *const c_char {
    text_or_null(tensor.map(|tensor| &*tensor.name))
}

/// The dimensions of a tensor.
#[unsafe(no_mangle)]
pub extern "C" fn zt_tensor_shape(tensor: Option<&zt_tensor>, shape: Out<'_, *const u64>) -> usize {
    let dimensions = value(&[][..], || tensor.map(zt_tensor::shape));
    shape.map(|out| out.write(dimensions.as_ptr()));
    dimensions.len()
}

/// How the dense values of a tensor are stored.
#[unsafe(no_mangle)]
pub extern "C" fn zt_tensor_dtype(tensor: Option<&zt_tensor>) -> zt_dtype {
    tensor.map_or(0, |tensor| tensor.dtype)
}

/// The name of the type of its values.
#[unsafe(no_mangle)]
pub extern "C" fn zt_tensor_type(tensor: Option<&zt_tensor>) -> *const c_char {
    text_or_null(tensor.and_then(|tensor| tensor.value_type.as_deref()))
}

/// How components make its value.
#[unsafe(no_mangle)]
pub extern "C" fn zt_tensor_format(tensor: Option<&zt_tensor>) -> *const c_char {
    text_or_null(tensor.map(|tensor| &*tensor.format))
}

/// The attributes of a tensor as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn zt_tensor_attributes(
    tensor: Option<&zt_tensor>,
    json: Out<'_, *const c_char>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        let text = of_tensor(tensor, zt_tensor::attributes)?;
        given(json, "json")?.write(text.as_ptr());
        Ok(())
    })
}

/// Why a tensor cannot be read.
#[unsafe(no_mangle)]
pub extern "C" fn zt_tensor_fault(
    tensor: Option<&zt_tensor>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || of_tensor(tensor, |tensor| tensor.fault()?.map_or(Ok(()), Err)))
}

/// Bytes of its dense values.
#[unsafe(no_mangle)]
pub extern "C" fn zt_tensor_byte_len(
    tensor: Option<&zt_tensor>,
    dtype: zt_dtype,
    byte_len: Out<'_, u64>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        let dtype = dtype::wanted(dtype)?;
        let found = of_tensor(tensor, |tensor| tensor.byte_len(tensor.shape(), dtype))?;
        given(byte_len, "byte_len")?.write(found);
        Ok(())
    })
}

/// Lends the values of a tensor.
#[unsafe(no_mangle)]
pub extern "C" fn zt_tensor_borrow(
    tensor: Option<&zt_tensor>,
    data: Out<'_, *const c_void>,
    byte_len: Out<'_, usize>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || lend(of_tensor(tensor, zt_tensor::lend_values)?, data, byte_len))
}

/// Copies the values of a tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_tensor_read(
    tensor: Option<&zt_tensor>,
    dtype: zt_dtype,
    data: *mut c_void,
    byte_len: usize,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    // SAFETY: no ranges, and otherwise the caller's.
    unsafe { zt_tensor_slice(tensor, ptr::null(), 0, dtype, data, byte_len, error) }
}

/// Copies some rows of a tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_tensor_rows(
    tensor: Option<&zt_tensor>,
    first: u64,
    count: u64,
    dtype: zt_dtype,
    data: *mut c_void,
    byte_len: usize,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    let rows = zt_range { start: first, count, step: 1 };
    // SAFETY: one range, and otherwise the caller's.
    unsafe { zt_tensor_slice(tensor, &rows, 1, dtype, data, byte_len, error) }
}

/// Copies a part of a tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_tensor_slice(
    tensor: Option<&zt_tensor>,
    ranges: *const zt_range,
    range_count: usize,
    dtype: zt_dtype,
    data: *mut c_void,
    byte_len: usize,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        let tensor = given(tensor, "tensor")?;
        // SAFETY: the caller's.
        let (ranges, out) =
            unsafe { (array(ranges, range_count, "ranges")?, bytes_mut(data, byte_len)?) };
        let (slices, counts) = tensor.slices(ranges)?;
        let dtype = dtype::wanted(dtype)?;
        let mut read = || {
            // Before anything is read.
            expect_len(out, tensor.byte_len(&counts, dtype)?)?;
            tensor.read(&slices, dtype, out)
        };
        read().map_err(|error| tensor.blame(error))
    })
}

/// A tensor for DLPack.
#[unsafe(no_mangle)]
pub extern "C" fn zt_tensor_dlpack(
    tensor: Option<&zt_tensor>,
    copy: bool,
    managed: Out<'_, *mut DLManagedTensorVersioned>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        let out = place(managed, "managed")?;
        let made = of_tensor(tensor, |tensor| dlpack::export(tensor, copy, delete_managed))?;
        out.write(Box::into_raw(made).cast());
        Ok(())
    })
}

/// The number of components.
#[unsafe(no_mangle)]
pub extern "C" fn zt_tensor_component_count(tensor: Option<&zt_tensor>) -> usize {
    tensor.map_or(0, zt_tensor::component_count)
}

/// A component.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_tensor_component(
    tensor: Option<&zt_tensor>,
    index: usize,
    component: *mut zt_component,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        let tensor = given(tensor, "tensor")?;
        let (of, role, stored) = tensor.component(index)?;
        let part = tensor.part(index)?;
        let encoding = match stored.blob.encoding {
            zt::Encoding::Raw => c"raw",
            zt::Encoding::Zstd => c"zstd",
            _ => c"unknown",
        };
        let found = zt_component {
            struct_size: 0,
            role: part.role.as_ptr(),
            logical_type: text_or_null(part.logical_type.as_deref()),
            encoding: encoding.as_ptr(),
            dtype: dtype::number(stored.dtype),
            has_digest: stored.blob.algorithm().is_some().into(),
            byte_len: of.decoded_len(role).map_err(|error| tensor.blame(error))?,
            stored_len: stored.blob.span.byte_len(),
        };
        // SAFETY: the caller's, which begins with its size.
        unsafe { fill(component, found) }
    })
}

/// Lends the bytes of a component.
#[unsafe(no_mangle)]
pub extern "C" fn zt_tensor_component_borrow(
    tensor: Option<&zt_tensor>,
    index: usize,
    data: Out<'_, *const c_void>,
    byte_len: Out<'_, usize>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || lend(of_tensor(tensor, |tensor| tensor.lend(index))?, data, byte_len))
}

/// Copies a component.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_tensor_component_read(
    tensor: Option<&zt_tensor>,
    index: usize,
    data: *mut c_void,
    byte_len: usize,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        // SAFETY: the caller's.
        let out = unsafe { bytes_mut(data, byte_len)? };
        of_tensor(tensor, |tensor| tensor.read_component(index, out))
    })
}

/// Reads many parts of tensors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_parts_read(
    parts: *mut zt_part,
    count: usize,
    options: *const zt_read_options,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        // SAFETY: the caller's.
        let (parts, options) = unsafe { (array_mut(parts, count, "parts")?, growing(options)?) };
        // Of all parts, if two share memory.
        parts.iter_mut().for_each(|part| part.status = ZT_MISUSE);
        expect_apart(parts)?;
        let (mut jobs, mut places, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (at, part) in parts.iter_mut().enumerate() {
            // SAFETY: the tensor, the ranges and the memory are the caller's. No two parts share memory.
            match unsafe { job(part) } {
                Ok(job) => {
                    jobs.push(job);
                    places.push((at, &mut part.status));
                }
                Err(error) => failed.push((at, error)),
            }
        }
        for ((at, status), done) in places.into_iter().zip(parts::read(jobs, &options)) {
            *status = done.as_ref().map_or_else(|error| zt_error::of(error).status(), |()| ZT_OK);
            failed.extend(done.err().map(|error| (at, error)));
        }
        let first = failed.into_iter().min_by_key(|(at, _)| *at);
        first.map_or(Ok(()), |(_, error)| Err(error))
    })
}

/// Begins a `.zt` file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_writer_create(
    path: *const c_char,
    options: *const zt_write_options,
    writer: Out<'_, *mut zt_writer>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        let out = place(writer, "writer")?;
        // SAFETY: both are NULL or the caller's.
        let (path, options) = unsafe { (self::path(path, "path")?, growing(options)?) };
        give(out, zt_writer::create(path, writing(&options)?, options.create_new != 0)?);
        Ok(())
    })
}

/// Sets the attributes of the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_writer_set_attributes(
    writer: Option<&zt_writer>,
    json: *const c_char,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        // SAFETY: NULL or a text of the caller.
        let attributes = json::parse(unsafe { text(json, "json")? })?;
        given(writer, "writer")?.set_attributes(attributes)
    })
}

/// Adds a tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_writer_add(
    writer: Option<&zt_writer>,
    object: *const zt_object,
    data: *const c_void,
    byte_len: usize,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        // SAFETY: the caller's.
        let (object, bytes) = unsafe { (described(object)?, bytes(data, byte_len)?) };
        given(writer, "writer")?.add(object, bytes)
    })
}

/// Begins a tensor whose bytes come in pieces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_writer_begin(
    writer: Option<&zt_writer>,
    object: *const zt_object,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        // SAFETY: the caller's.
        let object = unsafe { described(object)? };
        given(writer, "writer")?.begin(object)
    })
}

/// Writes a piece of the tensor that was begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_writer_write(
    writer: Option<&zt_writer>,
    data: *const c_void,
    byte_len: usize,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        // SAFETY: the caller's.
        let bytes = unsafe { bytes(data, byte_len)? };
        given(writer, "writer")?.write(bytes)
    })
}

/// Ends the tensor that was begun.
#[unsafe(no_mangle)]
pub extern "C" fn zt_writer_end(
    writer: Option<&zt_writer>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || given(writer, "writer")?.end())
}

/// Adds a tensor of an open file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_writer_copy(
    writer: Option<&zt_writer>,
    name: *const c_char,
    tensor: Option<&zt_tensor>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        // SAFETY: NULL or a text of the caller.
        let name = unsafe { text(name, "name")? };
        given(writer, "writer")?.copy(name, given(tensor, "tensor")?)
    })
}

/// Finishes the file, and gives it its name.
#[unsafe(no_mangle)]
pub extern "C" fn zt_writer_finish(
    writer: Option<&zt_writer>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || given(writer, "writer")?.finish())
}

/// Frees a writer. Without `zt_writer_finish` nothing is left of its file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_writer_free(writer: Option<&mut *mut zt_writer>) {
    // SAFETY: the handle came from this library.
    unsafe { free(writer) }
}

/// Writes a file of any kind as another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zt_convert(
    from: *const c_char,
    to: *const c_char,
    options: *const zt_convert_options,
    warnings: Out<'_, *mut zt_report>,
    error: Out<'_, *mut zt_error>,
) -> zt_status {
    call(error, || {
        let out = warnings.map(|out| out.write(ptr::null_mut()));
        // SAFETY: NULL or the caller's.
        let (from, to, options) =
            unsafe { (path(from, "from")?, path(to, "to")?, growing(options)?) };
        // SAFETY: as above.
        let wanted = unsafe {
            Wanted {
                kind: text_if_any(options.kind, "kind")?,
                dtype: text_if_any(options.dtype, "dtype")?,
                write: (!options.write.is_null())
                    .then(|| writing(&growing(options.write)?))
                    .transpose()?,
                dense: options.dense != 0,
                lossy: options.lossy != 0,
                overwrite: options.overwrite != 0,
            }
        };
        let report = convert(from, to, wanted)?;
        if let Some(out) = out {
            *out = Box::into_raw(Box::new(report));
        }
        Ok(())
    })
}

/// A map of an open file, for `zt_open_options.map`.
pub(crate) fn map(file: &fs::File) -> io::Result<Mmap> {
    // SAFETY: the caller of the library asked for a map. zt.h says what it promises by that: while the file is open, no
    // program changes it. A change shows in lent values, and touching a page behind a new end ends the process.
    unsafe { Mmap::map(file) }
}

/// Functions of the caller that read a file.
struct Callbacks(zt_source);

// SAFETY: zt.h asks that both functions can be called from any thread, and from several at once.
unsafe impl Send for Callbacks {}
// SAFETY: as above.
unsafe impl Sync for Callbacks {}

impl Source for Callbacks {
    fn byte_len(&self) -> u64 {
        self.0.byte_len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        zt::container::memory::end_of_read(self.0.byte_len, offset, buf)?;
        let Some(read_at) = self.0.read_at else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        // SAFETY: the function fills the buffer, which is initialised and `buf.len()` bytes long, as zt.h asks.
        match unsafe { read_at(self.0.user_data, offset, buf.as_mut_ptr().cast(), buf.len()) } {
            0 => Ok(()),
            code => Err(io::Error::other(format!("`read_at` of the caller returned {code}"))),
        }
    }
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        if let Some(close) = self.0.close {
            // SAFETY: nothing reads any more, and this is called once.
            unsafe { close(self.0.user_data) }
        }
    }
}

/// The deleter of `zt_tensor_dlpack`.
unsafe extern "C" fn delete_managed(managed: *mut DLManagedTensorVersioned) {
    value((), || {
        // SAFETY: the box of `zt_tensor_dlpack`, whose first field this is. DLPack calls the deleter once.
        drop(unsafe { Box::from_raw(managed.cast::<Managed>()) });
        Some(())
    });
}

/// A text that lives as long as the handle that has it.
fn text_or_null(text: Option<&CStr>) -> *const c_char {
    text.map_or(ptr::null(), CStr::as_ptr)
}

/// A result of a file. Its error has the path of the file.
fn of_file<'a, T>(
    file: Option<&'a zt_file>,
    work: impl FnOnce(&'a zt_file) -> Result<T>,
) -> Result<T> {
    let file = given(file, "file")?;
    work(file).map_err(|error| file.blame(error))
}

/// A result of a tensor. Its error has the path of the file.
fn of_tensor<'a, T>(
    tensor: Option<&'a zt_tensor>,
    work: impl FnOnce(&'a zt_tensor) -> Result<T>,
) -> Result<T> {
    let tensor = given(tensor, "tensor")?;
    work(tensor).map_err(|error| tensor.blame(error))
}

fn lend(bytes: &[u8], data: Out<'_, *const c_void>, byte_len: Out<'_, usize>) -> Result<()> {
    given(data, "data")?.write(bytes.as_ptr().cast());
    given(byte_len, "byte_len")?.write(bytes.len());
    Ok(())
}

/// Refuses parts whose memory overlaps.
fn expect_apart(parts: &[zt_part]) -> Result<()> {
    let filled = parts.iter().filter(|part| part.byte_len > 0);
    let mut places: Vec<(usize, usize)> =
        filled.map(|part| (part.data.addr(), part.byte_len)).collect();
    places.sort_unstable();
    let pairs = places.iter().zip(places.iter().skip(1));
    let overlap = |(a, b): (&(usize, usize), &(usize, usize))| b.0.wrapping_sub(a.0) < a.1;
    if pairs.into_iter().any(overlap) {
        return Err(misuse("two parts share memory"));
    }
    Ok(())
}

/// # Safety
///
/// The pointers of the part are NULL or the caller's, and nothing else uses its memory.
unsafe fn job<'a>(part: &zt_part) -> Result<Job<'a>> {
    // SAFETY: as above.
    let (tensor, ranges, out) = unsafe {
        let ranges = array(part.ranges, part.range_count, "ranges")?;
        (part.tensor.as_ref(), ranges, bytes_mut(part.data, part.byte_len)?)
    };
    let tensor = given(tensor, "tensor")?;
    let (slices, counts) = tensor.slices(ranges)?;
    Ok(Job { tensor, slices, counts, dtype: dtype::wanted(part.dtype)?, out })
}

/// # Safety
///
/// NULL or a struct of the caller, whose texts and arrays are NULL or the caller's.
unsafe fn described<'a>(object: *const zt_object) -> Result<Described<'a>> {
    // SAFETY: as above.
    unsafe {
        let object = growing(not_null(object, "object")?)?;
        let rank = usize::try_from(object.rank).unwrap_or(usize::MAX);
        let attributes = text_if_any(object.attributes, "attributes")?;
        Ok(Described {
            name: text(object.name, "name")?,
            shape: array(object.shape, rank, "shape")?,
            dtype: dtype::named(object.dtype)?,
            logical_type: text_if_any(object.logical_type, "logical_type")?,
            attributes: attributes.map(json::parse).transpose()?,
        })
    }
}

/// # Safety
///
/// NULL or a struct of the caller, whose text is NULL or the caller's.
unsafe fn opening(options: *const zt_open_options) -> Result<Opening> {
    // SAFETY: as above.
    let options = unsafe { growing(options)? };
    // SAFETY: as above.
    let kind = unsafe { text_if_any(options.kind, "kind")? };
    let kind = kind.map(|name| {
        let kinds = Kinds::builtin();
        let kind = kinds.get(name).map(FileKind::kind);
        kind.ok_or_else(|| misuse(format!("this build has no kind {name:?}")))
    });
    let verify = match options.verify {
        0 => Verify::OnRead,
        1 => Verify::Always,
        2 => Verify::Never,
        other => return Err(misuse(format!("{other} is no zt_verify"))),
    };
    let mut limits = Limits::default();
    if options.max_decoded_len > 0 {
        limits = limits.with_decoded_len(options.max_decoded_len);
    }
    if options.max_manifest_len > 0 {
        limits = limits.with_manifest_len(options.max_manifest_len);
    }
    let open = OpenOptions::new().limits(limits).verify(verify).strict(options.strict != 0);
    let input = InputOptions::new()
        .open(open)
        .kind(kind.transpose()?)
        .truncated(options.truncated != 0)
        .logical((options.logical != 0).then(Logical::new));
    Ok(Opening { input, map: options.map != 0 })
}

/// # Safety
///
/// NULL, or a text of the caller that does not change during the call.
unsafe fn text_if_any<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: as above.
    unsafe { self::text(text, name).map(Some) }
}

/// # Safety
///
/// As [`text_if_any`].
unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str> {
    // SAFETY: as above.
    let text = unsafe { CStr::from_ptr(not_null(text, name)?) };
    text.to_str().map_err(|_| misuse(format!("`{name}` is not UTF-8")))
}

/// # Safety
///
/// As [`text_if_any`].
unsafe fn path<'a>(path: *const c_char, name: &str) -> Result<&'a Path> {
    // SAFETY: as above.
    let bytes = unsafe { CStr::from_ptr(not_null(path, name)?) };
    #[cfg(unix)]
    let path: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(bytes.to_bytes());
    #[cfg(not(unix))]
    let path: &OsStr =
        bytes.to_str().map_err(|_| misuse(format!("`{name}` is not UTF-8")))?.as_ref();
    if path.is_empty() {
        return Err(misuse(format!("`{name}` is empty")));
    }
    Ok(Path::new(path))
}

/// # Safety
///
/// NULL, or `byte_len` bytes that do not change during the call.
unsafe fn bytes<'a>(data: *const c_void, byte_len: usize) -> Result<&'a [u8]> {
    // SAFETY: as above.
    unsafe { array(data.cast(), byte_len, "data") }
}

/// # Safety
///
/// NULL, or `byte_len` bytes that nothing else uses during the call. They are written to, and not read.
unsafe fn bytes_mut<'a>(data: *mut c_void, byte_len: usize) -> Result<&'a mut [u8]> {
    // SAFETY: as above. Memory from malloc is not initialised, and every byte is a `u8`.
    unsafe { array_mut(data.cast(), byte_len, "data") }
}

/// # Safety
///
/// NULL, or an array of this length that does not change during the call.
unsafe fn array<'a, T>(start: *const T, len: usize, name: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    expect_array(start, len, name)?;
    // SAFETY: as above. The array does not wrap around, and begins where its type can.
    Ok(unsafe { slice::from_raw_parts(start, len) })
}

/// # Safety
///
/// NULL, or an array of this length that nothing else uses during the call.
unsafe fn array_mut<'a, T>(start: *mut T, len: usize, name: &str) -> Result<&'a mut [T]> {
    if len == 0 {
        return Ok(&mut []);
    }
    expect_array(start, len, name)?;
    // SAFETY: as in `array`.
    Ok(unsafe { slice::from_raw_parts_mut(start, len) })
}

/// A struct may be shorter than its type here, so there is no reference to it.
fn not_null<T>(pointer: *const T, name: &str) -> Result<*const T> {
    given((!pointer.is_null()).then_some(pointer), name)
}

fn expect_array<T>(start: *const T, len: usize, name: &str) -> Result<()> {
    not_null(start, name)?;
    if !start.is_aligned() {
        return Err(misuse(format!("`{name}` is not aligned for its type")));
    }
    let byte_len = len.checked_mul(size_of::<T>()).filter(|it| isize::try_from(*it).is_ok());
    let end = byte_len.and_then(|byte_len| start.addr().checked_add(byte_len));
    end.map(drop).ok_or_else(|| misuse(format!("`{name}` is longer than memory")))
}

/// A struct that begins with its size.
///
/// # Safety
///
/// Every field is a number, a pointer or a function that may be NULL. So any bytes of a caller, and zeros, are a value.
unsafe trait Growing: Copy {}
// SAFETY: it has such fields.
unsafe impl Growing for zt_open_options {}
// SAFETY: as above.
unsafe impl Growing for zt_read_options {}
// SAFETY: as above.
unsafe impl Growing for zt_write_options {}
// SAFETY: as above.
unsafe impl Growing for zt_convert_options {}
// SAFETY: as above.
unsafe impl Growing for zt_object {}
// SAFETY: as above.
unsafe impl Growing for zt_source {}

/// The caller's struct, with zeros for the fields that it does not have. Zeros for NULL: these are the defaults.
///
/// # Safety
///
/// NULL, or a struct that begins with its size.
unsafe fn growing<T: Growing>(of_caller: *const T) -> Result<T> {
    let mut own = MaybeUninit::<T>::zeroed();
    if !of_caller.is_null() {
        expect_array(of_caller, 1, "a struct")?;
        // SAFETY: the size is the first field.
        let found = unsafe { of_caller.cast::<usize>().read() };
        expect_size(found)?;
        let (start, known) = (of_caller.cast::<u8>(), size_of::<T>());
        // SAFETY: the caller's struct has as many bytes.
        let newer = unsafe { slice::from_raw_parts(start, found) }.get(known..).unwrap_or_default();
        if newer.iter().any(|byte| *byte != 0) {
            let message = "a struct has a field of a newer zt.h, which this library does not know";
            return Err(Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, message));
        }
        // SAFETY: both are at least that long.
        unsafe { start.copy_to_nonoverlapping(own.as_mut_ptr().cast(), found.min(known)) };
    }
    // SAFETY: of the type's safety: these bytes are a value.
    Ok(unsafe { own.assume_init() })
}

/// Fills the caller's struct as far as it goes.
///
/// # Safety
///
/// NULL, or a struct that begins with its size.
unsafe fn fill(of_caller: *mut zt_component, mut found: zt_component) -> Result<()> {
    if of_caller.is_null() {
        return Err(misuse("`component` is NULL"));
    }
    // SAFETY: the size is the first field.
    let size = unsafe { of_caller.cast::<usize>().read_unaligned() };
    expect_size(size)?;
    found.struct_size = size;
    let len = size.min(size_of::<zt_component>());
    // SAFETY: both are at least that long.
    unsafe { ptr::from_ref(&found).cast::<u8>().copy_to_nonoverlapping(of_caller.cast(), len) };
    Ok(())
}

fn expect_size(found: usize) -> Result<()> {
    if (size_of::<usize>()..=4096).contains(&found) {
        return Ok(());
    }
    Err(misuse(format!("`struct_size` is {found}: set it to the size of the struct")))
}

/// # Safety
///
/// NULL, or a handle of this library that nothing uses any more. It is NULL then.
unsafe fn free<T>(handle: Option<&mut *mut T>) {
    value((), || {
        let handle = std::mem::replace(handle?, ptr::null_mut());
        if !handle.is_null() {
            // SAFETY: the box of `give`, which is freed once: the caller's handle is NULL from now on.
            drop(unsafe { Box::from_raw(handle) });
        }
        Some(())
    });
}
