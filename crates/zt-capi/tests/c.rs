//! The functions, called as C calls them.
#![cfg(all(feature = "all-kinds", feature = "zstd"))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::undocumented_unsafe_blocks,
    reason = "a test calls as C does, and fails by panicking"
)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use zt_capi::*;

/// A result of a call.
fn out<T>(call: impl FnOnce(Option<&mut MaybeUninit<T>>) -> zt_status) -> Result<T, zt_status> {
    let mut place = MaybeUninit::uninit();
    match call(Some(&mut place)) {
        ZT_OK => Ok(unsafe { place.assume_init() }),
        status => Err(status),
    }
}

fn text(text: *const c_char) -> String {
    assert!(!text.is_null());
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

fn c(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

/// A file handle that closes itself.
struct File(*mut zt_file);

impl File {
    fn open(path: &Path, options: *const zt_open_options) -> Result<Self, zt_status> {
        out(|file| unsafe { zt_file_open(c(path).as_ptr(), options, file, None) }).map(File)
    }

    fn get(&self) -> Option<&zt_file> {
        unsafe { self.0.as_ref() }
    }

    fn tensor(&self, name: &CStr) -> Option<&zt_tensor> {
        unsafe { zt_file_tensor(self.get(), name.as_ptr()).as_ref() }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        unsafe { zt_file_close(Some(&mut self.0)) };
        assert!(self.0.is_null());
        unsafe { zt_file_close(Some(&mut self.0)) };
    }
}

const OPTIONS: zt_open_options = zt_open_options {
    struct_size: size_of::<zt_open_options>(),
    kind: ptr::null(),
    verify: 0,
    map: 0,
    strict: 0,
    truncated: 0,
    logical: 0,
    reserved: 0,
    max_decoded_len: 0,
    max_manifest_len: 0,
};

const WRITE: zt_write_options = zt_write_options {
    struct_size: size_of::<zt_write_options>(),
    compression: 0,
    level: 0,
    digest: 0,
    threads: 0,
    create_new: 0,
    reserved: 0,
};

fn object<'a>(name: &'a CStr, dtype: zt_dtype, shape: &'a [u64]) -> zt_object {
    zt_object {
        struct_size: size_of::<zt_object>(),
        name: name.as_ptr(),
        dtype,
        rank: shape.len() as u32,
        shape: shape.as_ptr(),
        logical_type: ptr::null(),
        attributes: ptr::null(),
    }
}

const F32: zt_dtype = 2;
const BF16: zt_dtype = 4;
const I64: zt_dtype = 5;

fn values() -> Vec<f32> {
    (0..100u8).map(f32::from).collect()
}

/// `rows`, 20×5 of f32, in pieces; `steps`, a scalar, at once.
fn write(path: &Path, options: &zt_write_options) {
    let mut writer =
        out(|it| unsafe { zt_writer_create(c(path).as_ptr(), options, it, None) }).unwrap();
    let it = || unsafe { writer.as_ref() };
    unsafe {
        assert_eq!(zt_writer_set_attributes(it(), c"{\"a\":[1,2.5]}".as_ptr(), None), ZT_OK);
        let rows = object(c"rows", F32, &[20, 5]);
        assert_eq!(zt_writer_write(it(), ptr::null(), 0, None), ZT_MISUSE);
        assert_eq!(zt_writer_begin(it(), &rows, None), ZT_OK);
        assert_eq!(zt_writer_begin(it(), &rows, None), ZT_MISUSE);
        assert_eq!(zt_writer_finish(it(), None), ZT_MISUSE);
        for piece in values().chunks(7) {
            assert_eq!(
                zt_writer_write(it(), piece.as_ptr().cast(), size_of_val(piece), None),
                ZT_OK
            );
        }
        assert_eq!(zt_writer_end(it(), None), ZT_OK);
        assert_eq!(zt_writer_end(it(), None), ZT_MISUSE);
        let mut steps = object(c"steps", I64, &[]);
        steps.attributes = c"{\"unit\":\"s\"}".as_ptr();
        assert_eq!(
            zt_writer_add(it(), &steps, (&7i64 as *const i64).cast(), 7, None),
            ZT_MALFORMED
        );
        assert_eq!(zt_writer_add(it(), &steps, (&7i64 as *const i64).cast(), 8, None), ZT_OK);
        assert_eq!(zt_writer_add(it(), &steps, (&7i64 as *const i64).cast(), 8, None), ZT_MISUSE);
        assert!(!path.exists());
        assert_eq!(zt_writer_finish(it(), None), ZT_OK);
        assert_eq!(zt_writer_finish(it(), None), ZT_MISUSE);
        zt_writer_free(Some(&mut writer));
        zt_writer_free(Some(&mut writer));
    }
}

fn read<T: Copy + Default>(tensor: Option<&zt_tensor>, dtype: zt_dtype, len: usize) -> Vec<T> {
    let mut values = vec![T::default(); len];
    let byte_len = size_of_val(&values[..]);
    assert_eq!(out(|it| zt_tensor_byte_len(tensor, dtype, it, None)), Ok(byte_len as u64));
    let data = values.as_mut_ptr().cast();
    assert_eq!(unsafe { zt_tensor_read(tensor, dtype, data, byte_len, None) }, ZT_OK);
    assert_eq!(unsafe { zt_tensor_read(tensor, dtype, data, byte_len - 1, None) }, ZT_MISUSE);
    values
}

#[test]
fn what_is_written_is_read_in_every_way() {
    let folder = tempfile::tempdir().unwrap();
    for (name, compression) in [("raw.zt", 0), ("zstd.zt", 1), ("planes.zt", 2)] {
        let path = folder.path().join(name);
        write(&path, &zt_write_options { compression, ..WRITE });
        let file = File::open(&path, ptr::null()).unwrap();
        assert_eq!(text(zt_file_kind(file.get())), "zt");
        assert_eq!(zt_file_tensor_count(file.get()), 2);
        assert!(zt_file_tensor_at(file.get(), 2).is_null());
        let json = out(|it| zt_file_attributes(file.get(), it, None)).unwrap();
        assert_eq!(text(json), r#"{"a":[1,2.5]}"#);

        let rows = file.tensor(c"rows");
        assert!(rows.is_some() && file.tensor(c"row").is_none());
        assert_eq!(text(zt_tensor_name(rows)), "rows");
        let mut shape = MaybeUninit::uninit();
        assert_eq!(zt_tensor_shape(rows, Some(&mut shape)), 2);
        assert_eq!(unsafe { std::slice::from_raw_parts(shape.assume_init(), 2) }, [20, 5]);
        assert_eq!((zt_tensor_dtype(rows), text(zt_tensor_type(rows))), (F32, "f32".to_owned()));
        assert_eq!(read::<f32>(rows, 0, 100), values());
        assert_eq!(read::<u16>(rows, BF16, 100)[99], 0x42c6); // 99
        let steps = file.tensor(c"steps");
        assert_eq!(read::<i64>(steps, 0, 1), [7]);
        assert_eq!(read::<f32>(steps, F32, 1), [7.0]);
        let json = out(|it| zt_tensor_attributes(steps, it, None)).unwrap();
        assert_eq!(text(json), r#"{"unit":"s"}"#);

        let mut part = [0f32; 10];
        let data: *mut c_void = part.as_mut_ptr().cast();
        assert_eq!(unsafe { zt_tensor_rows(rows, 3, 2, 0, data, 40, None) }, ZT_OK);
        assert_eq!(part[..], values()[15..25]);
        assert_eq!(unsafe { zt_tensor_rows(rows, 19, 2, 0, data, 40, None) }, ZT_MISUSE);
        assert_eq!(unsafe { zt_tensor_rows(rows, u64::MAX, 2, 0, data, 40, None) }, ZT_MISUSE);
        assert_eq!(unsafe { zt_tensor_rows(steps, 0, 1, 0, data, 8, None) }, ZT_MISUSE);
        let ranges =
            [zt_range { start: 1, count: 5, step: 4 }, zt_range { start: 1, count: 2, step: 0 }];
        assert_eq!(unsafe { zt_tensor_slice(rows, ranges.as_ptr(), 2, 0, data, 40, None) }, ZT_OK);
        assert_eq!(part, [6.0, 7.0, 26.0, 27.0, 46.0, 47.0, 66.0, 67.0, 86.0, 87.0]);

        let report = out(|it| zt_file_verify(file.get(), true, it, None)).unwrap();
        assert_eq!(zt_report_count(unsafe { report.as_ref() }), 0);
        unsafe { zt_report_free(Some(&mut { report })) };
        let mut hash = [0u8; 72];
        assert_eq!(
            unsafe { zt_file_hash(file.get(), hash.as_mut_ptr().cast(), 71, None) },
            ZT_MISUSE
        );
        assert_eq!(unsafe { zt_file_hash(file.get(), hash.as_mut_ptr().cast(), 72, None) }, ZT_OK);
        assert!(hash.starts_with(b"sha256:") && hash[71] == 0);
    }
}

#[test]
fn raw_values_are_lent_by_memory_and_by_a_map_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zt");
    write(&path, &WRITE);
    let bytes = std::fs::read(&path).unwrap();
    let borrow = |file: &File| {
        let (mut data, mut len) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let rows = file.tensor(c"rows");
        match zt_tensor_borrow(rows, Some(&mut data), Some(&mut len), None) {
            ZT_OK => unsafe {
                let data = data.assume_init().cast::<f32>();
                Ok(std::slice::from_raw_parts(data, len.assume_init() / 4).to_vec())
            },
            status => Err(status),
        }
    };
    let memory = |copy| {
        let (data, len) = (bytes.as_ptr().cast(), bytes.len());
        File(
            out(|it| unsafe { zt_file_open_memory(data, len, copy, ptr::null(), it, None) })
                .unwrap(),
        )
    };
    assert_eq!(borrow(&File::open(&path, ptr::null()).unwrap()), Err(ZT_UNSUPPORTED));
    assert_eq!(
        borrow(&File::open(&path, &zt_open_options { map: 1, ..OPTIONS }).unwrap()),
        Ok(values())
    );
    assert_eq!(borrow(&memory(true)), Ok(values()));
    // A vector is aligned as its bytes happen to be.
    let lent = borrow(&memory(false));
    assert!(lent == Ok(values()) || lent == Err(ZT_UNSUPPORTED));

    let file = memory(true);
    let rows = file.tensor(c"rows");
    assert_eq!(zt_tensor_component_count(rows), 1);
    let mut component: zt_component = unsafe { std::mem::zeroed() };
    assert_eq!(unsafe { zt_tensor_component(rows, 0, &mut component, None) }, ZT_MISUSE);
    component.struct_size = size_of::<zt_component>();
    assert_eq!(unsafe { zt_tensor_component(rows, 0, &mut component, None) }, ZT_OK);
    assert_eq!(
        (text(component.role), component.dtype, component.byte_len),
        ("data".into(), F32, 400)
    );
    assert_eq!((text(component.encoding), component.has_digest), ("raw".into(), 1));
    assert_eq!(unsafe { zt_tensor_component(rows, 1, &mut component, None) }, ZT_MISUSE);
    let mut data = [0f32; 100];
    assert_eq!(
        unsafe { zt_tensor_component_read(rows, 0, data.as_mut_ptr().cast(), 400, None) },
        ZT_OK
    );
    assert_eq!(data[..], values());
}

#[test]
fn a_tensor_of_dlpack_outlives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zt");
    write(&path, &WRITE);
    for map in [0, 1] {
        let file = File::open(&path, &zt_open_options { map, ..OPTIONS }).unwrap();
        let rows = file.tensor(c"rows");
        assert_eq!(out(|it| zt_tensor_dlpack(rows, false, it, None)).is_ok(), map == 1);
        let managed = out(|it| zt_tensor_dlpack(rows, true, it, None)).unwrap();
        drop(file);
        unsafe {
            let head = &*managed;
            assert_eq!((head.version.major, head.flags), (1, if map == 1 { 1 } else { 2 }));
            let tensor = &head.dl_tensor;
            assert_eq!((tensor.ndim, tensor.dtype.code, tensor.dtype.bits), (2, 2, 32));
            assert_eq!(std::slice::from_raw_parts(tensor.shape, 2), [20, 5]);
            assert_eq!(std::slice::from_raw_parts(tensor.strides, 2), [5, 1]);
            assert_eq!(std::slice::from_raw_parts(tensor.data.cast::<f32>(), 100), values());
            head.deleter.unwrap()(managed);
        }
    }
}

#[test]
fn many_parts_are_read_and_each_has_a_status() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [("a.zt", 0), ("b.zt", 1)].map(|(name, compression)| {
        let path = folder.path().join(name);
        write(&path, &zt_write_options { compression, ..WRITE });
        path
    });
    let files = paths.map(|path| File::open(&path, ptr::null()).unwrap());
    let rows = |file: &File| file.tensor(c"rows").map_or(ptr::null(), ptr::from_ref);
    let range = zt_range { start: 10, count: 1, step: 1 };
    let mut memory = [[0f32; 100]; 4];
    let mut steps = [0u8; 5];
    let [a, b, c, d] = &mut memory;
    let part = |tensor, memory: &mut [f32]| zt_part {
        tensor,
        ranges: ptr::null(),
        range_count: 0,
        data: memory.as_mut_ptr().cast(),
        byte_len: size_of_val(memory),
        dtype: 0,
        status: 99,
    };
    let one = zt_part { ranges: &range, range_count: 1, ..part(rows(&files[1]), &mut c[..5]) };
    let short =
        zt_part { byte_len: 5, data: steps.as_mut_ptr().cast(), ..part(rows(&files[0]), d) };
    let none = part(ptr::null(), d);
    let mut parts = [part(rows(&files[1]), a), part(rows(&files[0]), b), one, short, none];
    let mut read = |options| unsafe {
        let status = zt_parts_read(parts.as_mut_ptr(), 5, options, None);
        (status, parts.map(|part| part.status))
    };
    let expected = (ZT_MISUSE, [ZT_OK, ZT_OK, ZT_OK, ZT_MISUSE, ZT_MISUSE]);
    assert_eq!(read(ptr::null()), expected);
    let options = zt_read_options {
        struct_size: size_of::<zt_read_options>(),
        memory: 100,
        threads: 2,
        past_cache: 0,
    };
    assert_eq!(read(&options), expected);
    assert_eq!(memory[0][..], values());
    assert_eq!(memory[1][..], values());
    assert_eq!(memory[2][..5], values()[50..55]);
    let [same, ..] = &mut memory;
    let mut twice = [part(rows(&files[0]), same), part(rows(&files[1]), same)];
    assert_eq!(unsafe { zt_parts_read(twice.as_mut_ptr(), 2, ptr::null(), None) }, ZT_MISUSE);
    assert_eq!(unsafe { zt_parts_read(ptr::null_mut(), 0, ptr::null(), None) }, ZT_OK);
}

#[test]
fn an_error_has_a_code_and_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zt");
    write(&path, &WRITE);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[64] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let file = File::open(&path, ptr::null()).unwrap();
    let mut error = MaybeUninit::uninit();
    let mut data = [0f32; 100];
    let status = unsafe {
        zt_tensor_read(file.tensor(c"rows"), 0, data.as_mut_ptr().cast(), 400, Some(&mut error))
    };
    assert_eq!(status, ZT_DIGEST_MISMATCH);
    let mut error = unsafe { error.assume_init() };
    let it = unsafe { error.as_ref() };
    assert_eq!(text(zt_error_code(it)), "digest-mismatch");
    assert_eq!(
        (text(zt_error_object(it)), text(zt_error_component(it))),
        ("rows".into(), "data".into())
    );
    assert_eq!(text(zt_error_path(it)), path.to_str().unwrap());
    assert!(text(zt_error_message(it)).contains("rows/data at 64..464"));
    let (mut begin, mut end) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    assert!(zt_error_place(it, Some(&mut begin), Some(&mut end)));
    assert_eq!(unsafe { (begin.assume_init(), end.assume_init()) }, (64, 464));
    assert_eq!(text(zt_status_name(status)), "digest-mismatch");
    unsafe { zt_error_free(Some(&mut error)) };
    unsafe { zt_error_free(Some(&mut error)) };
    unsafe { zt_error_free(None) };

    let report = out(|it| zt_file_verify(file.get(), false, it, None)).unwrap();
    let report = unsafe { report.as_ref() };
    assert_eq!(zt_report_count(report), 1);
    let problem = unsafe { zt_report_at(report, 0).as_ref() };
    assert_eq!(zt_error_status(problem), ZT_DIGEST_MISMATCH);
    assert!(zt_report_at(report, 1).is_null());
    unsafe {
        zt_report_free(Some(&mut report.map_or(ptr::null_mut(), |it| ptr::from_ref(it).cast_mut())))
    };
    assert_eq!(File::open(&folder.path().join("none"), ptr::null()).map(drop), Err(ZT_IO));
}

#[test]
fn types_have_the_numbers_of_their_order() {
    for (dtype, number) in zt::DType::ALL.into_iter().zip(1..) {
        assert_eq!(text(zt_dtype_name(number)), dtype.as_str());
        assert_eq!(zt_dtype_byte_len(number), dtype.byte_len());
    }
    assert_eq!((text(zt_dtype_name(0)), zt_dtype_byte_len(14)), ("none".into(), 0));
}

#[test]
fn null_is_misuse_everywhere() {
    unsafe {
        assert_eq!(zt_file_open(ptr::null(), ptr::null(), None, None), ZT_MISUSE);
        assert_eq!(zt_file_open(c"x".as_ptr(), ptr::null(), None, None), ZT_MISUSE);
        assert_eq!(
            zt_file_open(c"".as_ptr(), ptr::null(), Some(&mut MaybeUninit::uninit()), None),
            ZT_MISUSE
        );
        assert_eq!(
            zt_file_open_memory(
                ptr::null(),
                9,
                false,
                ptr::null(),
                Some(&mut MaybeUninit::uninit()),
                None
            ),
            ZT_MISUSE
        );
        assert_eq!(
            zt_file_open_source(ptr::null(), ptr::null(), Some(&mut MaybeUninit::uninit()), None),
            ZT_MISUSE
        );
        assert_eq!((zt_file_tensor_count(None), zt_report_count(None)), (0, 0));
        assert!(zt_file_kind(None).is_null() && zt_file_tensor(None, ptr::null()).is_null());
        assert_eq!(zt_file_verify(None, false, None, None), ZT_MISUSE);
        assert_eq!(zt_file_hash(None, ptr::null_mut(), 72, None), ZT_MISUSE);
        assert_eq!(zt_tensor_read(None, 0, ptr::null_mut(), 0, None), ZT_MISUSE);
        assert_eq!(zt_tensor_borrow(None, None, None, None), ZT_MISUSE);
        assert_eq!((zt_tensor_shape(None, None), zt_tensor_dtype(None)), (0, 0));
        assert_eq!(zt_tensor_component(None, 0, ptr::null_mut(), None), ZT_MISUSE);
        assert_eq!(zt_tensor_dlpack(None, true, None, None), ZT_MISUSE);
        assert_eq!(zt_writer_create(ptr::null(), ptr::null(), None, None), ZT_MISUSE);
        assert_eq!(zt_writer_add(None, ptr::null(), ptr::null(), 0, None), ZT_MISUSE);
        assert_eq!(zt_writer_finish(None, None), ZT_MISUSE);
        assert_eq!(zt_parts_read(ptr::null_mut(), 1, ptr::null(), None), ZT_MISUSE);
        assert_eq!(zt_convert(ptr::null(), ptr::null(), ptr::null(), None, None), ZT_MISUSE);
        zt_file_close(None);
        zt_writer_free(Some(&mut ptr::null_mut()));
        assert_eq!(text(zt_error_code(None)), "ok");
    }
}

#[test]
fn structs_of_another_size_are_read_as_far_as_they_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zt");
    write(&path, &WRITE);
    let open = |options: *const c_void| File::open(&path, options.cast()).map(drop);
    let old = [size_of::<usize>(), usize::MAX, usize::MAX];
    assert_eq!(open(old.as_ptr().cast()), Ok(()));
    for wrong in [0, 1, 5000] {
        assert_eq!(
            open(
                (&zt_open_options { struct_size: wrong, ..OPTIONS } as *const zt_open_options)
                    .cast()
            ),
            Err(ZT_MISUSE)
        );
    }
    #[repr(C)]
    struct Newer(zt_open_options, u64);
    let newer = |more| Newer(zt_open_options { struct_size: size_of::<Newer>(), ..OPTIONS }, more);
    assert_eq!(open((&newer(0) as *const Newer).cast()), Ok(()));
    assert_eq!(open((&newer(1) as *const Newer).cast()), Err(ZT_UNSUPPORTED));
    assert_eq!(
        open((&zt_open_options { verify: 3, ..OPTIONS } as *const zt_open_options).cast()),
        Err(ZT_MISUSE)
    );
    assert_eq!(
        open(
            (&zt_open_options { kind: c"x".as_ptr(), ..OPTIONS } as *const zt_open_options).cast()
        ),
        Err(ZT_MISUSE)
    );
}

static CLOSED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn read_at(
    data: *mut c_void,
    offset: u64,
    buffer: *mut c_void,
    len: usize,
) -> i32 {
    let bytes = unsafe { &*data.cast::<Vec<u8>>() };
    if bytes.is_empty() {
        return 5;
    }
    let offset = offset as usize;
    unsafe { bytes[offset..offset + len].as_ptr().copy_to_nonoverlapping(buffer.cast(), len) };
    0
}

unsafe extern "C" fn close(_: *mut c_void) {
    CLOSED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn functions_of_the_caller_are_a_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zt");
    write(&path, &WRITE);
    let mut bytes = std::fs::read(&path).unwrap();
    let mut source = zt_source {
        struct_size: size_of::<zt_source>(),
        user_data: (&raw mut bytes).cast(),
        byte_len: bytes.len() as u64,
        read_at: Some(read_at),
        close: Some(close),
    };
    let open = |source: &zt_source| {
        out(|it| unsafe { zt_file_open_source(source, ptr::null(), it, None) }).map(File)
    };
    let file = open(&source).unwrap();
    assert_eq!(read::<f32>(file.tensor(c"rows"), 0, 100), values());
    assert_eq!(CLOSED.load(Ordering::Relaxed), 0);
    drop(file);
    assert_eq!(CLOSED.load(Ordering::Relaxed), 1);
    let mut empty = Vec::<u8>::new();
    source.user_data = (&raw mut empty).cast();
    assert_eq!(open(&source).map(drop), Err(ZT_IO));
    source.read_at = None;
    assert_eq!(open(&source).map(drop), Err(ZT_MISUSE));
    assert_eq!(CLOSED.load(Ordering::Relaxed), 3);
}

#[test]
fn one_file_serves_many_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zt");
    write(&path, &WRITE);
    let file = File::open(&path, &zt_open_options { map: 1, ..OPTIONS }).unwrap();
    let shared = file.get().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let rows = unsafe { zt_file_tensor(Some(shared), c"rows".as_ptr()).as_ref() };
                    assert_eq!(read::<f32>(rows, 0, 100), values());
                    let (mut data, mut len) = (MaybeUninit::uninit(), MaybeUninit::uninit());
                    assert_eq!(
                        zt_tensor_borrow(rows, Some(&mut data), Some(&mut len), None),
                        ZT_OK
                    );
                    assert_eq!(unsafe { len.assume_init() }, 400);
                }
            });
        }
    });
}

#[test]
fn an_unfinished_file_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zt");
    let mut writer =
        out(|it| unsafe { zt_writer_create(c(&path).as_ptr(), ptr::null(), it, None) }).unwrap();
    unsafe {
        let it = writer.as_ref();
        assert_eq!(zt_writer_begin(it, &object(c"a", F32, &[2]), None), ZT_OK);
        assert_eq!(zt_writer_write(it, [0u8; 4].as_ptr().cast(), 4, None), ZT_OK);
        assert_eq!(zt_writer_end(it, None), ZT_MALFORMED);
        assert_eq!(zt_writer_finish(it, None), ZT_MISUSE);
        zt_writer_free(Some(&mut writer));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_file_is_copied_and_converted() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, d] = ["a.zt", "b.zt", "d.safetensors"].map(|name| folder.path().join(name));
    write(&a, &zt_write_options { compression: 1, ..WRITE });
    let file = File::open(&a, ptr::null()).unwrap();
    let mut writer =
        out(|it| unsafe { zt_writer_create(c(&b).as_ptr(), ptr::null(), it, None) }).unwrap();
    unsafe {
        let it = writer.as_ref();
        assert_eq!(zt_writer_copy(it, c"r".as_ptr(), file.tensor(c"rows"), None), ZT_OK);
        assert_eq!(zt_writer_finish(it, None), ZT_OK);
        zt_writer_free(Some(&mut writer));
    }
    let copy = File::open(&b, ptr::null()).unwrap();
    assert_eq!(read::<f32>(copy.tensor(c"r"), 0, 100), values());

    let mut options = zt_convert_options {
        struct_size: size_of::<zt_convert_options>(),
        kind: ptr::null(),
        dtype: c"bf16".as_ptr(),
        write: ptr::null(),
        dense: 0,
        lossy: 0,
        overwrite: 0,
        reserved: 0,
    };
    let (from, to) = (c(&a), c(&d));
    let convert = |options: &zt_convert_options| unsafe {
        zt_convert(from.as_ptr(), to.as_ptr(), options, None, None)
    };
    assert_eq!(convert(&options), ZT_OK);
    assert_eq!(convert(&options), ZT_MISUSE); // It exists.
    options.overwrite = 1;
    let report = out(|it| unsafe { zt_convert(from.as_ptr(), to.as_ptr(), &options, it, None) });
    unsafe { zt_report_free(Some(&mut report.unwrap())) };
    let opened = File::open(&d, ptr::null()).unwrap();
    assert_eq!(text(zt_file_kind(opened.get())), "safetensors");
    assert_eq!(zt_tensor_dtype(opened.tensor(c"rows")), BF16);
    options.kind = c"exe".as_ptr();
    assert_eq!(convert(&options), ZT_MISUSE);
}
