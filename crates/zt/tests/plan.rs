//! Many tensors and slices, in the order of the file and within a budget of memory.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Counted, every_source};
use zt::{Dense, Error, ErrorKind, File, OpenOptions, Slice, Tensor, WriteOptions};

const COUNT: u32 = 40;

/// Matrices of 30 columns. No two have the same values.
fn file_of(options: WriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for at in 0..COUNT {
        let rows = at * 7 + 3;
        let values: Vec<u32> = (0..rows * 30).map(|value| value * COUNT + at).collect();
        let dense = Dense::from_slice(&[u64::from(rows), 30], &values).unwrap();
        writer.add(&format!("{at:03}"), &dense).unwrap();
    }
    writer.add("graph", &common::graph()).unwrap();
    writer.finish().unwrap();
    bytes
}

/// Whole tensors, rows, and columns, from the end of the file to its beginning.
fn wanted(file: &File) -> Vec<(Tensor<'_>, Vec<Slice>)> {
    let slices = |at: usize| match at % 3 {
        0 => vec![],
        1 => vec![Slice::from(1..2)],
        _ => vec![Slice::from(..), Slice::from(4..9)],
    };
    let names: Vec<&str> = file.names().collect();
    let wanted = names.iter().rev().enumerate();
    let wanted = wanted.map(|(at, name)| (file.tensor(name).unwrap(), slices(at)));
    wanted.collect()
}

#[test]
fn each_is_what_it_is_by_itself_in_the_order_of_the_file() {
    for options in [WriteOptions::new(), WriteOptions::new().planes()] {
        let bytes = file_of(options);
        for (source, file) in every_source(&bytes, &OpenOptions::new()) {
            let file = file.unwrap();
            let wanted = wanted(&file);
            for memory in [0, 10_000, u64::MAX] {
                let mut order = Vec::new();
                let plan = file.plan(wanted.clone()).memory(memory);
                let read = plan.for_each(|at, dense| {
                    let (tensor, slices) = &wanted[at];
                    let dense = dense?;
                    assert!(dense == tensor.slice(slices)?, "{source}, {tensor:?}");
                    order.push(at);
                    Ok::<(), Error>(())
                });
                read.unwrap();
                assert!(order.iter().rev().copied().eq(0..wanted.len()), "{source}");
            }
        }
    }
}

#[test]
fn no_more_is_read_ahead_than_fits_the_budget() {
    let bytes = file_of(WriteOptions::new());
    let read = Arc::new(AtomicU64::new(0));
    let source = Counted(bytes, Arc::clone(&read));
    let file = OpenOptions::new().open_source(source).unwrap();
    let wanted: Vec<_> = wanted(&file).into_iter().map(|(it, _)| (it, vec![])).collect();
    let begun = read.load(Ordering::Relaxed);
    let mut taken = 0;
    let plan = file.plan(wanted.clone()).memory(0);
    let all = plan.for_each(|at, dense| {
        dense?;
        let tensor = wanted[at].0;
        taken += tensor.components().map(|(_, it)| it.blob.span.byte_len()).sum::<u64>();
        assert_eq!(read.load(Ordering::Relaxed) - begun, taken, "{tensor:?}");
        Ok::<(), Error>(())
    });
    all.unwrap();
}

#[test]
fn what_cannot_be_read_is_an_error_in_its_place() {
    let mut bytes = file_of(WriteOptions::new());
    let file = File::from_bytes(bytes.clone()).unwrap();
    let damaged = file.tensor("005").unwrap();
    let offset = damaged.component("data").unwrap().blob.span.offset();
    bytes[offset as usize] ^= 1;
    let file = File::from_bytes(bytes).unwrap();
    let far = vec![Slice::Index(1000)];
    let wanted: Vec<_> = file.names().map(|name| (file.tensor(name).unwrap(), vec![])).collect();
    let wanted = [&wanted[..], &[(file.tensor("000").unwrap(), far)]].concat();
    let mut failed = Vec::new();
    let read = file.plan(wanted).for_each(|at, dense| {
        failed.extend(dense.err().map(|error| (at, error.code())));
        Ok::<(), Error>(())
    });
    read.unwrap();
    let slice = (COUNT as usize + 1, "misuse");
    assert_eq!(failed, [slice, (5, "digest-mismatch")]);
}

#[test]
fn an_error_of_the_caller_ends_the_plan() {
    let file = File::from_bytes(file_of(WriteOptions::new())).unwrap();
    let mut count = 0;
    let read = file.plan(wanted(&file)).for_each(|_, _| {
        count += 1;
        Err(Error::from(std::io::Error::other("enough")))
    });
    assert_eq!((read.unwrap_err().kind(), count), (ErrorKind::Io, 1));
}

#[test]
#[cfg(target_os = "linux")]
fn the_page_cache_is_left_as_it_was() {
    use std::io::Write as _;

    use rustix::fs::{Advice, fadvise, fstatfs};
    use rustix::io::{ReadWriteFlags, preadv2};
    use zt::FileSource;

    const LEN: usize = 8 << 20;
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().to_writer(&mut bytes).unwrap();
    let values = vec![1u8; LEN];
    let dense = Dense::from_slice(&[LEN as u64], &values).unwrap();
    writer.add("weight", &dense).unwrap();
    writer.finish().unwrap();
    let mut kept = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    kept.write_all(&bytes).unwrap();
    kept.sync_all().unwrap();
    if fstatfs(&kept).unwrap().f_type == 0x0102_1994 {
        return; // tmpfs is its own page cache.
    }
    // The middle of the tensor.
    let is_cached = |file: &std::fs::File| {
        let mut byte = [0];
        let bytes = &mut [std::io::IoSliceMut::new(&mut byte)];
        preadv2(file, bytes, LEN as u64 / 2, ReadWriteFlags::NOWAIT).is_ok()
    };
    for used in [false, true] {
        fadvise(&kept, 0, None, Advice::DontNeed).unwrap();
        let source = FileSource::from_file(kept.try_clone().unwrap()).unwrap();
        let file = OpenOptions::new().open_source(source).unwrap();
        let wanted = || [(file.tensor("weight").unwrap(), vec![])];
        let plan = file.plan(wanted()).page_cache(used);
        let read = plan.for_each(|_, dense| {
            assert!(*dense?.elements().bytes == values);
            Ok::<(), Error>(())
        });
        read.unwrap();
        assert_eq!(is_cached(&kept), used);
        if used {
            // What was there before stays.
            let plan = file.plan(wanted()).page_cache(false);
            plan.for_each(|_, dense| dense.map(drop)).unwrap();
            assert!(is_cached(&kept));
        }
    }
}
