//! The body of the fuzz target `capi`: calls in any order, with any arguments that zt.h allows. `fuzz/src/bin/capi.rs`
//! has it, too. It is here because it calls as C does, in unsafe code.
//!
//! Input: the number of bytes that decide, these bytes, and a file. No call may be ZT_PANIC, and handles of failed calls
//! are NULL. Memory is exactly as long as a call is told, so AddressSanitizer sees what goes beyond.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "a fuzzer calls as C does, and its files are small"
)]

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use zt_capi::*;

struct Decisions<'b>(&'b [u8]);

impl Decisions<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    /// Mostly small, and sometimes at the end of what numbers hold.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX,
            254 => i64::MAX as u64,
            253 => u64::MAX / 2 + 2,
            small => small.into(),
        }
    }
}

/// What the program holds.
struct Program<'b> {
    bytes: &'b [u8],
    file: *mut zt_file,
    tensor: *const zt_tensor,
    writer: *mut zt_writer,
    arrays: Vec<*mut DLManagedTensorVersioned>,
}

pub(crate) fn calls(input: &[u8]) {
    let Some((count, rest)) = input.split_first() else {
        return;
    };
    let (decisions, bytes) = rest.split_at(rest.len().min((*count).into()));
    let none = (ptr::null_mut(), ptr::null(), ptr::null_mut());
    let mut program =
        Program { bytes, file: none.0, tensor: none.1, writer: none.2, arrays: Vec::new() };
    let mut decisions = Decisions(decisions);
    program.open(&mut decisions);
    while let Some(call) = decisions.next() {
        program.call(call, &mut decisions);
    }
    unsafe {
        zt_file_close(Some(&mut program.file));
        zt_writer_free(Some(&mut program.writer));
        for array in program.arrays {
            // NULL for an array without elements.
            touch((*array).dl_tensor.data, 1);
            ((*array).deleter.unwrap())(array);
        }
    }
}

/// Looks at the error of a call, and frees it.
fn checked(call: impl FnOnce(Option<&mut MaybeUninit<*mut zt_error>>) -> zt_status) -> bool {
    let mut error = MaybeUninit::new(ptr::null_mut());
    let status = call(Some(&mut error));
    let mut error = unsafe { error.assume_init() };
    assert_eq!(error.is_null(), status == ZT_OK);
    if let Some(error) = unsafe { error.as_ref() } {
        assert_ne!(status, ZT_PANIC, "{:?}", unsafe {
            CStr::from_ptr(zt_error_message(Some(error)))
        });
        assert_eq!(zt_error_status(Some(error)), status);
        look(error);
    }
    unsafe { zt_error_free(Some(&mut error)) };
    status == ZT_OK
}

fn look(error: &zt_error) {
    let error = Some(error);
    for text in [zt_error_code(error), zt_error_message(error)] {
        assert!(unsafe { CStr::from_ptr(text) }.to_str().is_ok());
    }
    for text in [zt_error_object(error), zt_error_component(error), zt_error_path(error)] {
        assert!(text.is_null() || unsafe { CStr::from_ptr(text) }.to_str().is_ok());
    }
    let (mut begin, mut end) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    if zt_error_place(error, Some(&mut begin), Some(&mut end)) {
        assert!(unsafe { begin.assume_init() <= end.assume_init() });
    }
}

/// Reads lent memory.
fn touch(data: *const c_void, len: usize) {
    if len > 0 && !data.is_null() {
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
        std::hint::black_box(bytes.iter().fold(0u8, |sum, byte| sum ^ byte));
    }
}

unsafe extern "C" fn read_at(
    data: *mut c_void,
    offset: u64,
    buffer: *mut c_void,
    len: usize,
) -> i32 {
    let bytes = unsafe { *data.cast::<&[u8]>() };
    let Some(part) = bytes.get(offset as usize..).and_then(|rest| rest.get(..len)) else {
        return 1;
    };
    // One place of the disk is broken.
    if part.first() == Some(&0x42) {
        return -1;
    }
    unsafe { part.as_ptr().copy_to_nonoverlapping(buffer.cast(), len) };
    0
}

impl Program<'_> {
    fn file(&self) -> Option<&zt_file> {
        unsafe { self.file.as_ref() }
    }

    fn tensor(&self) -> Option<&zt_tensor> {
        unsafe { self.tensor.as_ref() }
    }

    fn open(&mut self, decisions: &mut Decisions<'_>) {
        self.tensor = ptr::null();
        unsafe { zt_file_close(Some(&mut self.file)) };
        assert!(self.file.is_null());
        let how = decisions.byte();
        let options = zt_open_options {
            struct_size: size_of::<zt_open_options>(),
            kind: ptr::null(),
            verify: (how / 4 % 4).into(),
            map: 1,
            strict: (how / 16 % 2).into(),
            truncated: (how / 32 % 2).into(),
            logical: (how / 64 % 2).into(),
            reserved: 0,
            max_decoded_len: 1 << 20,
            max_manifest_len: 1 << 20,
        };
        let mut place = MaybeUninit::uninit();
        let (data, len) = (self.bytes.as_ptr().cast(), self.bytes.len());
        checked(|error| unsafe {
            if how % 4 == 3 {
                let source = zt_source {
                    struct_size: size_of::<zt_source>(),
                    user_data: (&raw mut self.bytes).cast(),
                    byte_len: len as u64,
                    read_at: Some(read_at),
                    close: None,
                };
                zt_file_open_source(&source, &options, Some(&mut place), error)
            } else {
                zt_file_open_memory(data, len, how % 2 == 1, &options, Some(&mut place), error)
            }
        });
        self.file = unsafe { place.assume_init() };
        self.tensor = zt_file_tensor_at(self.file(), 0);
    }

    fn call(&mut self, call: u8, decisions: &mut Decisions<'_>) {
        match call % 16 {
            0 => self.open(decisions),
            1 if decisions.byte() % 4 == 1 => {
                self.tensor = ptr::null();
                unsafe { zt_file_close(Some(&mut self.file)) };
            }
            1 | 2 => {
                let count = zt_file_tensor_count(self.file());
                let at = usize::from(decisions.byte()) % count.saturating_add(1);
                self.tensor = zt_file_tensor_at(self.file(), at);
            }
            3 => self.by_name(),
            4 => self.read(decisions, &[]),
            5 => {
                let row =
                    zt_range { start: decisions.number(), count: decisions.number(), step: 1 };
                self.read(decisions, &[row]);
            }
            6 => {
                let count = decisions.byte() % 4;
                let ranges: Vec<_> = (0..count)
                    .map(|_| zt_range {
                        start: decisions.number(),
                        count: decisions.number(),
                        step: decisions.number(),
                    })
                    .collect();
                self.read(decisions, &ranges);
            }
            7 => {
                let (mut data, mut len) = (MaybeUninit::uninit(), MaybeUninit::uninit());
                if checked(|error| {
                    zt_tensor_borrow(self.tensor(), Some(&mut data), Some(&mut len), error)
                }) {
                    unsafe { touch(data.assume_init(), len.assume_init()) };
                }
            }
            8 => self.component(decisions),
            9 => {
                let mut json = MaybeUninit::uninit();
                let is_of_file = decisions.byte().is_multiple_of(2);
                let is_there = checked(|error| {
                    if is_of_file {
                        return zt_file_attributes(self.file(), Some(&mut json), error);
                    }
                    zt_tensor_attributes(self.tensor(), Some(&mut json), error)
                });
                if is_there {
                    let text = unsafe { CStr::from_ptr(json.assume_init()) }.to_str().unwrap();
                    assert!(text.starts_with('{') && text.ends_with('}'));
                }
            }
            10 => self.report(decisions),
            11 => {
                let mut text = vec![1u8; 70 + usize::from(decisions.byte() % 16)];
                let (data, len) = (text.as_mut_ptr().cast(), text.len());
                if checked(|error| unsafe { zt_file_hash(self.file(), data, len, error) }) {
                    assert!(CStr::from_bytes_until_nul(&text).is_ok());
                }
            }
            12 => self.parts(decisions),
            13 => {
                let mut place = MaybeUninit::uninit();
                let copy = decisions.byte() % 2 == 1;
                checked(|error| zt_tensor_dlpack(self.tensor(), copy, Some(&mut place), error));
                let array: *mut DLManagedTensorVersioned = unsafe { place.assume_init() };
                if !array.is_null() {
                    self.arrays.push(array);
                }
            }
            14 => self.write(decisions),
            _ => {
                checked(|error| zt_tensor_fault(self.tensor(), error));
                for text in [zt_tensor_type(self.tensor()), zt_tensor_format(self.tensor())] {
                    assert!(text.is_null() || unsafe { CStr::from_ptr(text) }.to_str().is_ok());
                }
            }
        }
    }

    /// A tensor of the name of this one is this one, unless a NUL or an equal name is in the way.
    fn by_name(&self) {
        let name: *const c_char = zt_tensor_name(self.tensor());
        let found = unsafe { zt_file_tensor(self.file(), name) };
        assert!(found.is_null() || !self.file.is_null());
    }

    fn read(&self, decisions: &mut Decisions<'_>, ranges: &[zt_range]) {
        let dtype = (decisions.byte() % 15).into();
        let mut byte_len = MaybeUninit::uninit();
        let whole =
            checked(|error| zt_tensor_byte_len(self.tensor(), dtype, Some(&mut byte_len), error));
        let mut len = if whole { unsafe { byte_len.assume_init() } } else { 0 };
        if !ranges.is_empty() {
            let mut shape = MaybeUninit::uninit();
            let rank = zt_tensor_shape(self.tensor(), Some(&mut shape));
            let shape: &[u64] = match rank {
                0 => &[],
                rank => unsafe { std::slice::from_raw_parts(shape.assume_init(), rank) },
            };
            let chosen = shape.iter().take(ranges.len());
            let chosen = chosen.fold(1u64, |product, len| product.saturating_mul(*len)).max(1);
            let kept = ranges.iter().take(rank).map(|range| range.count);
            len = kept.fold(len / chosen, |len, count| len.saturating_mul(count));
        }
        if len > 8 << 20 {
            return;
        }
        // One byte too few, too many, or as many as it takes.
        let len = (len as usize + usize::from(decisions.byte() % 8 == 1))
            .saturating_sub(usize::from(decisions.byte() % 8 == 1));
        let mut memory = vec![0u8; len];
        let data = memory.as_mut_ptr().cast();
        checked(|error| unsafe {
            zt_tensor_slice(self.tensor(), ranges.as_ptr(), ranges.len(), dtype, data, len, error)
        });
    }

    fn component(&self, decisions: &mut Decisions<'_>) {
        let index = (decisions.byte() % 8).into();
        let mut found: zt_component = unsafe { std::mem::zeroed() };
        found.struct_size = size_of::<zt_component>() - usize::from(decisions.byte() % 4) * 8;
        if !checked(|error| unsafe { zt_tensor_component(self.tensor(), index, &mut found, error) })
        {
            return;
        }
        let (mut data, mut len) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let tensor = self.tensor();
        if checked(|error| {
            zt_tensor_component_borrow(tensor, index, Some(&mut data), Some(&mut len), error)
        }) {
            unsafe { touch(data.assume_init(), len.assume_init()) };
        }
        if found.byte_len <= 8 << 20 {
            let mut memory = vec![0u8; found.byte_len as usize];
            let (data, len) = (memory.as_mut_ptr().cast(), memory.len());
            checked(|error| unsafe { zt_tensor_component_read(tensor, index, data, len, error) });
        }
    }

    fn report(&self, decisions: &mut Decisions<'_>) {
        let mut place = MaybeUninit::uninit();
        let strict = decisions.byte();
        checked(|error| match strict % 3 {
            0 => zt_file_warnings(self.file(), Some(&mut place), error),
            strict => zt_file_verify(self.file(), strict == 1, Some(&mut place), error),
        });
        let mut report: *mut zt_report = unsafe { place.assume_init() };
        let it = unsafe { report.as_ref() };
        for at in 0..zt_report_count(it) {
            look(unsafe { zt_report_at(it, at).as_ref() }.unwrap());
        }
        assert!(zt_report_at(it, zt_report_count(it)).is_null());
        unsafe { zt_report_free(Some(&mut report)) };
    }

    /// Two or three parts, which may share memory.
    fn parts(&self, decisions: &mut Decisions<'_>) {
        let mut memory = vec![0u8; 1 << 16];
        let range = zt_range { start: decisions.number(), count: decisions.number(), step: 0 };
        let count = decisions.byte() % 4;
        let mut parts: Vec<_> = (0..count)
            .map(|_| {
                let tensor = zt_file_tensor_at(self.file(), (decisions.byte() % 4).into());
                let mut byte_len = MaybeUninit::uninit();
                let dtype = (decisions.byte() % 14).into();
                let found = zt_tensor_byte_len(
                    unsafe { tensor.as_ref() },
                    dtype,
                    Some(&mut byte_len),
                    None,
                );
                let wanted = if found == ZT_OK { unsafe { byte_len.assume_init() } } else { 4 };
                let byte_len = wanted.min(1 << 14) as usize;
                let start = usize::from(decisions.byte()) * 128;
                zt_part {
                    tensor,
                    ranges: &range,
                    range_count: decisions.byte().is_multiple_of(4).into(),
                    data: memory[start..].as_mut_ptr().cast(),
                    byte_len,
                    dtype,
                    status: 0,
                }
            })
            .collect();
        let options = zt_read_options {
            struct_size: size_of::<zt_read_options>(),
            memory: decisions.number(),
            threads: (decisions.byte() % 3).into(),
            past_cache: 0,
        };
        let (start, count) = (parts.as_mut_ptr(), parts.len());
        let is_ok = checked(|error| unsafe { zt_parts_read(start, count, &options, error) });
        assert!(!is_ok || parts.iter().all(|part| part.status == ZT_OK));
    }

    fn write(&mut self, decisions: &mut Decisions<'_>) {
        let what = decisions.byte();
        if what.is_multiple_of(8) || self.writer.is_null() {
            unsafe { zt_writer_free(Some(&mut self.writer)) };
            let options = zt_write_options {
                struct_size: size_of::<zt_write_options>(),
                compression: (what / 8 % 4).into(),
                level: 0,
                digest: (what / 32 % 4).into(),
                threads: 1,
                create_new: 0,
                reserved: 0,
            };
            let mut place = MaybeUninit::uninit();
            let path = c"/dev/null".as_ptr();
            checked(|error| unsafe { zt_writer_create(path, &options, Some(&mut place), error) });
            self.writer = unsafe { place.assume_init() };
            return;
        }
        let writer = unsafe { self.writer.as_ref() };
        let name = [c"a", c"b", c"", c"\xff"][usize::from(decisions.byte() % 4)];
        let shape = [decisions.number(), decisions.number()];
        let object = zt_object {
            struct_size: size_of::<zt_object>(),
            name: name.as_ptr(),
            dtype: (decisions.byte() % 15).into(),
            rank: (decisions.byte() % 3).into(),
            shape: shape.as_ptr(),
            logical_type: if decisions.byte() % 4 == 1 {
                c"f8_e4m3fn".as_ptr()
            } else {
                ptr::null()
            },
            attributes: [ptr::null(), c"{\"a\":1}".as_ptr(), c"[".as_ptr()]
                [usize::from(decisions.byte() % 3)],
        };
        let bytes = self.bytes.get(..decisions.byte().into()).unwrap_or_default();
        let (data, len) = (bytes.as_ptr().cast(), bytes.len());
        checked(|error| unsafe {
            match what % 8 {
                1 => zt_writer_add(writer, &object, data, len, error),
                2 => zt_writer_begin(writer, &object, error),
                3 | 4 => zt_writer_write(writer, data, len, error),
                5 => zt_writer_end(writer, error),
                6 => zt_writer_copy(writer, name.as_ptr(), self.tensor(), error),
                _ => zt_writer_finish(writer, error),
            }
        });
    }
}
