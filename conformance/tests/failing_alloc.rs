//! Memory that is not there: every large allocation of every call fails in turn, once and from then on.
//! Each time there is an error of kind `Limit`, and afterwards the same file gives the same values.
//!
//! Large is what is longer than any buffer of a fixed size, 256 KiB, so that only the input can have
//! made it so long: the code that asks for 200 KiB of a small tensor asks for 2 GB of a large one.
//! Not owed, and not tried:
//!
//! * Smaller allocations. std's collections, texts, threads and errors end the process where there
//!   is no memory for them, here as in nearly every program in Rust.
//! * Lists with an item for each object: of calls that return no `Result` (`File::entries`) or go
//!   through all objects, and of readers of other kinds of files. They are a few dozen bytes for each
//!   entry of an index that is in memory already. Files here have few objects, but for a `.zt` that
//!   is opened and asked for one of many.
//! * What zstd's own code asks for: a window is at most 8 MiB, and C says so where it gets none.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking, and its numbers are small"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zt::formats::{Packing, PlaneCoding, Quantization};
use zt::ggml::{BLOCK_TYPES, BlockType, Blocks};
use zt::{
    Compression, Coo, Csr, DType, Dense, DigestAlgorithm, Entry, ErrorKind, File, HashOptions,
    Memory, QuantizedGroup, Slice, Source, ToObject, VerifyOptions, WriteOptions,
};
use zt_conformance::foreign;
use zt_convert::{ConvertOptions, Input, Kinds};

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// The longest that does not count.
const SMALL: usize = 256 << 10;

/// Large allocations since the last was begun to be counted.
static COUNT: AtomicU64 = AtomicU64::new(0);
/// Which of them fails; 0 for none.
static FAILS: AtomicU64 = AtomicU64::new(0);
static FOR_EVER: AtomicBool = AtomicBool::new(false);

struct Failing;

fn is_refused(byte_len: usize) -> bool {
    if byte_len <= SMALL {
        return false;
    }
    let at = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
    let fails = FAILS.load(Ordering::SeqCst);
    fails > 0 && (at == fails || at > fails && FOR_EVER.load(Ordering::SeqCst))
}

// SAFETY: every call is handed on to the system's allocator as it came, or answered with null, which
// says that there is no memory.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise about `layout` is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if is_refused(new_size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as in `dealloc`; the caller vouches for `new_size`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// One test at a time: allocations of others would count as well.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does the work with every large allocation failing in turn, and once more after each. How many
/// there were.
#[track_caller]
fn each_fails<T: PartialEq + Debug>(case: &str, work: impl Fn() -> zt::Result<T>) -> u64 {
    let expected = work().expect(case);
    let mut most = 0;
    for is_for_ever in [false, true] {
        FOR_EVER.store(is_for_ever, Ordering::SeqCst);
        for at in 1.. {
            COUNT.store(0, Ordering::SeqCst);
            FAILS.store(at, Ordering::SeqCst);
            let outcome = work();
            FAILS.store(0, Ordering::SeqCst);
            let is_hit = COUNT.load(Ordering::SeqCst) >= at;
            match outcome {
                // Memory that only makes a call faster may be missing.
                Ok(value) => assert!(value == expected, "{case}, allocation {at}"),
                Err(error) => {
                    assert!(is_hit, "{case}: {error}");
                    assert_eq!(error.kind(), ErrorKind::Limit, "{case}: {error:?}");
                    assert_eq!(error.code(), "allocation", "{case}: {error:?}");
                }
            }
            if !is_hit {
                most = most.max(at - 1);
                break;
            }
            assert!(work().expect(case) == expected, "{case}, after {at}");
        }
    }
    println!("| {case} | {most} |");
    most
}

/// Bytes that are lent, and bytes that have to be copied.
struct ByPosition(Arc<[u8]>);

impl Source for ByPosition {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

fn opened(bytes: &Arc<[u8]>, is_lent: bool) -> zt::Result<File> {
    match is_lent {
        true => zt_convert::open_source(Memory::new(Arc::clone(bytes))),
        false => zt_convert::open_source(ByPosition(Arc::clone(bytes))),
    }
}

const SHAPE: [u64; 2] = [540, 540];

/// More than a piece of 1 MiB, that shrink; their planes are longer than what is small, too.
fn values() -> Vec<f32> {
    let count = SHAPE[0] * SHAPE[1];
    (0..count).map(|at| (at % 1021) as f32).collect()
}

/// A quarter of the places has a value.
fn csr() -> Csr<'static> {
    let of_row = SHAPE[1] / 4;
    let count = SHAPE[0] * of_row;
    let indices: Vec<u64> = (0..count).map(|at| at % of_row * 4).collect();
    let indptr: Vec<u64> = (0..=SHAPE[0]).map(|row| row * of_row).collect();
    let values = values()[..count as usize].to_vec();
    Csr::new(SHAPE, values, indices, indptr).unwrap()
}

fn coo() -> Coo<'static> {
    let of_row = SHAPE[1] / 4;
    let count = SHAPE[0] * of_row;
    let rows = (0..count).map(|at| at / of_row);
    let columns = (0..count).map(|at| at % of_row * 4);
    let coords: Vec<u64> = rows.chain(columns).collect();
    let values = values()[..count as usize].to_vec();
    Coo::new(SHAPE, values, coords).unwrap()
}

fn quantized() -> QuantizedGroup<'static> {
    let packing = Packing { per_word: 4, dtype: DType::U32 };
    QuantizedGroup::quantize(SHAPE, &values(), Quantization::new(8, 4, packing)).unwrap()
}

/// Blocks of 32 values in 34 bytes.
fn blocks() -> Blocks<'static> {
    let shape = vec![SHAPE[0], 32 * 32];
    let named = |block_type: &&BlockType| block_type.name() == "Q8_0";
    let block_type = BLOCK_TYPES.iter().find(named).unwrap();
    let byte_len = block_type.byte_len(shape[0] * shape[1]).unwrap();
    // Every byte below 64: no scale of half precision is infinite.
    let bytes: Vec<u8> = (0..byte_len).map(|at| (at * 37 % 61) as u8).collect();
    let bytes = zt::Buffer::try_from_slice(&bytes).unwrap();
    Blocks::new(block_type, shape, bytes).unwrap()
}

fn file(object: &impl ToObject, options: WriteOptions) -> Arc<[u8]> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    writer.add("x", object).unwrap();
    writer.finish().unwrap();
    bytes.into()
}

/// One object each, stored in each way.
fn files() -> Vec<(&'static str, Arc<[u8]>)> {
    let values = values();
    let dense = Dense::from_slice(&SHAPE, &values).unwrap();
    let new = WriteOptions::new;
    vec![
        ("raw", file(&dense, new())),
        ("zstd", file(&dense, new().zstd(1))),
        ("planes", file(&dense, new().planes())),
        ("coded planes", file(&dense, new().planes_in(PlaneCoding::Huffman))),
        ("csr", file(&csr(), new())),
        ("csr, zstd", file(&csr(), new().zstd(1))),
        ("coo", file(&coo(), new())),
        ("quantized", file(&quantized(), new())),
        ("blocks", file(&blocks(), new().zstd(1))),
    ]
}

/// A way to read the object of each file, whose bytes are copied. A `File` is opened once, so that the
/// one that failed is the one that works afterwards.
#[track_caller]
fn reading<T: PartialEq + Debug>(call: &str, read: impl Fn(&File) -> zt::Result<T>) {
    reading_of(call, &[false], read);
}

/// As [`reading`], of bytes that are lent, too.
#[track_caller]
fn reading_of<T: PartialEq + Debug>(
    call: &str,
    are_lent: &[bool],
    read: impl Fn(&File) -> zt::Result<T>,
) {
    let _alone = alone();
    let mut count = 0;
    for (stored, bytes) in files() {
        for is_lent in are_lent {
            let file = opened(&bytes, *is_lent).unwrap();
            let case = match is_lent {
                true => format!("{call}, {stored}, lent"),
                false => format!("{call}, {stored}"),
            };
            count += each_fails(&case, || read(&file));
        }
    }
    assert!(count > 0, "{call}: nothing was ever refused");
}

fn sum(bytes: &[u8]) -> String {
    zt_conformance::hash(DigestAlgorithm::Crc32c, bytes)
}

/// Sums of pieces, in their order.
struct Sums(Vec<String>);

impl Sums {
    fn take(&mut self) -> impl FnMut(&[u8]) -> zt::Result<()> + Send {
        |piece| {
            self.0.push(sum(piece));
            Ok(())
        }
    }
}

#[test]
fn bytes_and_elements() {
    reading_of("bytes", &[false, true], |file| {
        let tensor = file.tensor("x")?;
        let sums = tensor.components().map(|(role, _)| Ok(sum(&tensor.bytes(role)?)));
        sums.collect::<zt::Result<Vec<_>>>()
    });
    reading_of("elements", &[false, true], |file| {
        let tensor = file.tensor("x")?;
        let sums = tensor.components().map(|(role, _)| Ok(sum(&tensor.elements(role)?.bytes)));
        sums.collect::<zt::Result<Vec<_>>>()
    });
}

#[test]
fn dense_values() {
    // What becomes of a dense value does not depend on where it is from.
    let of_dense = |file: &File| {
        let tensor = file.tensor("x")?;
        if tensor.format() != "dense" {
            return Ok((Vec::new(), None));
        }
        let values = tensor.to_vec::<f32>()?;
        let cast = tensor.to_dense()?.to_dtype(DType::F64, file.registry())?;
        Ok((values, Some(cast)))
    };
    reading("to_vec, to_dtype", of_dense);
    reading("dense_reader", |file| {
        let mut sums = Sums(Vec::new());
        let mut reader = file.tensor("x")?.dense_reader()?;
        reader.for_each_piece(1 << 20, sums.take())?;
        Ok(sums.0)
    });
}

#[test]
fn slices() {
    let parts = [
        Slice::parse_list("10:500").unwrap(),
        Slice::parse_list("5:,::3").unwrap(),
        Slice::parse_list("::-1,7").unwrap(),
    ];
    reading("slice", |file| {
        let tensor = file.tensor("x")?;
        let parts = parts.iter().map(|part| tensor.slice(part));
        parts.collect::<zt::Result<Vec<_>>>()
    });
}

#[test]
fn many_at_a_time() {
    reading("read_many", |file| {
        let tensor = file.tensor("x")?;
        let wanted: Vec<_> = tensor.components().map(|(role, _)| (tensor, role)).collect();
        let read = file.read_many(&wanted).into_iter();
        let sums = read.map(|elements| Ok(sum(&elements?.bytes)));
        sums.collect::<zt::Result<Vec<_>>>()
    });
    reading("to_dense_many", |file| {
        let tensor = file.tensor("x")?;
        let dense = file.to_dense_many(&[tensor]);
        dense.into_iter().collect::<zt::Result<Vec<_>>>()
    });
}

#[test]
fn sparse_objects_as_what_they_are() {
    let most = Slice::parse_list("3:").unwrap();
    reading_of("slice_csr and view", &[false, true], |file| {
        let tensor = file.tensor("x")?;
        if tensor.format() != "sparse_csr" {
            return Ok(None);
        }
        let view: Csr<'_> = tensor.view()?;
        let part = tensor.slice_csr(&most)?;
        let total = |csr: &Csr<'_>| csr.indices().iter().chain(csr.indptr()).sum::<u64>();
        Ok(Some((total(&view), total(&part))))
    });
}

/// Their pieces have a fixed size and are used again, so a reader asks for nothing large.
#[test]
fn reading_in_pieces() {
    let _alone = alone();
    for (name, bytes) in files() {
        for is_lent in [false, true] {
            let file = opened(&bytes, is_lent).unwrap();
            let read = || {
                let tensor = file.tensor("x")?;
                let mut sums = Sums(Vec::new());
                for (role, _) in tensor.components() {
                    tensor.reader(role)?.for_each_piece(1 << 20, sums.take())?;
                }
                Ok(sums.0)
            };
            assert_eq!(each_fails(name, read), 0, "{name}");
        }
    }
}

#[test]
fn verifying_hashing_and_comparing() {
    reading_of("verify", &[false, true], |file| {
        let report = file.verify(&VerifyOptions::default())?;
        match report.problems.first() {
            Some(error) => Err(error.clone()),
            None => Ok(report.bytes),
        }
    });
    for dense in [false, true] {
        reading("hash", |file| {
            let options = HashOptions::new().dense(dense);
            let hash = file.hash(&options)?;
            match hash.errors().next() {
                Some(error) => Err(error.clone()),
                None => Ok(hash.content),
            }
        });
    }
    reading("diff", |file| {
        let options = zt::diff::DiffOptions::new().values(true);
        let diff = zt::diff::diff(file, file, &options)?;
        let mut changes = diff.changed.iter().flat_map(|object| &object.changes);
        let error = changes.find_map(|change| match change {
            zt::diff::Change::Unreadable { error, .. } => Some(error.clone()),
            _ => None,
        });
        error.map_or(Ok(diff.same), Err)
    });
}

#[test]
fn opening_and_finding_one_of_many() {
    let _alone = alone();
    let mut bytes = Vec::new();
    let mut writer = zt::Writer::new(&mut bytes).unwrap();
    let dense = Dense::from_slice(&[3], &[1u8, 2, 3]).unwrap();
    for at in 0..100_000 {
        writer.add(&format!("layers.{at}.weight"), &dense).unwrap();
    }
    writer.finish().unwrap();
    let bytes: Arc<[u8]> = bytes.into();
    for is_lent in [false, true] {
        let count = each_fails("open", || {
            let file = opened(&bytes, is_lent)?;
            let last = file.tensor("layers.99999.weight")?.to_vec::<u8>()?;
            Ok((file.len(), file.names().count(), last))
        });
        assert!(count > 0);
    }
}

/// Counts, and keeps nothing.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn writing() {
    let _alone = alone();
    let values = values();
    let dense = Dense::from_slice(&SHAPE, &values).unwrap();
    let (csr, coo) = (csr(), coo());
    for (case, options) in [
        ("write raw", WriteOptions::new()),
        ("write zstd", WriteOptions::new().zstd(3)),
        ("write auto", WriteOptions::new().compression(Compression::Auto)),
        ("write planes", WriteOptions::new().planes()),
        ("write coded planes", WriteOptions::new().planes_in(PlaneCoding::Huffman)),
        ("write deduplicated", WriteOptions::new().deduplicate(true)),
    ] {
        each_fails(case, || {
            let mut sink = Counted(0);
            let mut writer = options.clone().to_writer(&mut sink)?;
            writer.add("dense", &dense)?;
            writer.add("csr", &csr)?;
            writer.add("coo", &coo)?;
            writer.finish()?;
            Ok(sink.0)
        });
    }
}

#[test]
fn editing_compacting_and_repairing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    let values = values();
    let dense = Dense::from_slice(&SHAPE, &values).unwrap();
    let whole = file(&dense, WriteOptions::new());
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        each_fails("edit", || {
            std::fs::write(&path, &whole)?;
            let mut edit = options.clone().edit(&path)?;
            edit.writer().add("y", &dense)?;
            let outcome = edit.commit();
            let file = File::open(&path)?;
            if outcome.is_err() {
                assert_eq!(std::fs::metadata(&path)?.len(), whole.len() as u64);
            }
            outcome.map(|()| file.byte_len())
        });
    }
    std::fs::write(&path, &whole).unwrap();
    each_fails("compact", || zt::compact(&path, None));
    let torn = [&whole[..whole.len() - 5], &[0; 5]].concat();
    let torn: Arc<[u8]> = torn.into();
    each_fails("repair", || {
        let recovery = zt::repair::examine(
            ByPosition(Arc::clone(&torn)),
            &zt::repair::RepairOptions::default(),
        )?;
        let lost = recovery.objects().iter().flat_map(|object| &object.components);
        if let Some(error) = lost.clone().find_map(|component| component.error.clone()) {
            return Err(error);
        }
        let (sink, byte_len) = recovery.save_to(Counted(0), None)?;
        assert_eq!(sink.0, byte_len);
        Ok(byte_len)
    });
}

/// What is read of another kind of file: all of its objects, their dense values, and one written as
/// `.zt`.
fn imported(bytes: &Arc<[u8]>) -> zt::Result<(usize, u64)> {
    let file = opened(bytes, false)?;
    let dense = |entry: &Entry<'_>| -> zt::Result<u64> {
        let dense = entry.tensor()?.to_dense()?;
        Ok(dense.elements().bytes.len() as u64)
    };
    let lens: Vec<u64> = file.entries().iter().map(dense).collect::<zt::Result<_>>()?;
    let mut sink = Counted(0);
    Kinds::builtin().convert(
        &[Input::from(file)],
        &mut sink,
        &ConvertOptions::new(zt_convert::ZT),
    )?;
    Ok((lens.len(), lens.iter().sum::<u64>() + sink.0))
}

#[test]
fn files_of_other_kinds() {
    let _alone = alone();
    for kind in [zt_convert::SAFETENSORS, zt_convert::GGUF, zt_convert::NPZ, zt_convert::NPY] {
        let name = kind.as_str();
        let large = || {
            let values = values();
            let dense = Dense::from_slice(&SHAPE, &values).unwrap();
            let zt = file(&dense, WriteOptions::new());
            let input = Input::from(opened(&zt, true).unwrap());
            let mut options = ConvertOptions::new(kind);
            options = options.lossy(true);
            let mut bytes = Vec::new();
            Kinds::builtin().convert(&[input], &mut bytes, &options).unwrap();
            Arc::<[u8]>::from(bytes)
        };
        let bytes = large();
        let count = each_fails(name, || imported(&bytes));
        assert!(count > 0, "{name}");
        let input = Input::from(
            opened(
                &file(&Dense::from_slice(&SHAPE, &values()).unwrap(), WriteOptions::new().zstd(1)),
                false,
            )
            .unwrap(),
        );
        each_fails(&format!("to {name}"), || {
            let mut options = ConvertOptions::new(kind);
            options = options.lossy(true);
            let mut sink = Counted(0);
            Kinds::builtin().convert(std::slice::from_ref(&input), &mut sink, &options)?;
            Ok(sink.0)
        });
    }
}

/// Most are small, and ask for nothing large.
#[test]
fn the_foreign_files_of_the_corpus() {
    let _alone = alone();
    for (kind, _) in foreign::KINDS {
        for (name, bytes) in foreign::files(kind) {
            let bytes: Arc<[u8]> = bytes.into();
            if imported(&bytes).is_ok() {
                each_fails(&name, || imported(&bytes));
            }
        }
    }
}
