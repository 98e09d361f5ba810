//! Many components in one call.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{every_source, span_of};
use zt::foreign::{FileBuilder, Kind};
use zt::{
    Blob, Bytes, Component, DType, Dense, Elements, File, Memory, Object, OpenOptions, Source,
    Span, Verify, WriteOptions,
};

/// Small objects around two large ones, and a matrix of three components.
fn file_of(options: WriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for at in 0..300u32 {
        let len = match at {
            100 | 200 => 1_500_000,
            _ => at % 40,
        };
        let values: Vec<u32> = (0..len).map(|value| (value / 5).wrapping_mul(at)).collect();
        let dense = Dense::from_slice(&[u64::from(len)], &values).unwrap();
        writer.add(&format!("{at:03}"), &dense).unwrap();
    }
    writer.add("graph", &common::graph()).unwrap();
    writer.finish().unwrap();
    bytes
}

fn all(file: &File) -> Vec<(zt::Tensor<'_>, &str)> {
    let mut all = Vec::new();
    for name in file.names() {
        let tensor = file.tensor(name).unwrap();
        all.extend(tensor.components().map(|(role, _)| (tensor, role)));
    }
    all
}

/// Every component, in an order that is not the file's.
fn wanted(file: &File) -> Vec<(zt::Tensor<'_>, &str)> {
    let mut wanted = all(file);
    wanted.reverse();
    wanted.rotate_left(77);
    wanted
}

#[test]
fn many_are_what_each_is_by_itself() {
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let bytes = file_of(options);
        let alone = File::from_bytes(bytes.clone()).unwrap();
        for (source, file) in every_source(&bytes, &OpenOptions::new()) {
            let file = file.unwrap();
            let wanted = wanted(&file);
            assert_eq!(wanted.len(), 303);
            let expected = |(tensor, role): &(zt::Tensor<'_>, &str)| -> Elements<'_> {
                alone.tensor(tensor.name()).unwrap().elements(role).unwrap()
            };
            let mut buffers: Vec<Vec<u8>> = Vec::new();
            for (one, found) in wanted.iter().zip(file.read_many(&wanted)) {
                let found = found.unwrap();
                assert!(found == expected(one), "{source}, {one:?}");
                buffers.push(vec![9; found.bytes.len()]);
            }
            let into = wanted.iter().zip(&mut buffers);
            let into = into.map(|((tensor, role), out)| (*tensor, *role, &mut out[..]));
            let results = file.read_many_into(into.collect());
            assert!(results.iter().all(Result::is_ok), "{source}");
            for (one, found) in wanted.iter().zip(buffers) {
                assert!(found == *expected(one).bytes, "{source}, {one:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_read_is_an_error_in_its_place_alone() {
    let mut bytes = file_of(WriteOptions::new());
    let file = File::from_bytes(bytes.clone()).unwrap();
    for name in ["100", "007"] {
        bytes[span_of(&file, name, "data").offset() as usize] ^= 1;
    }
    for (source, file) in every_source(&bytes, &OpenOptions::new().verify(Verify::Always)) {
        let file = file.unwrap();
        let mut wanted = wanted(&file);
        wanted.push((file.tensor("graph").unwrap(), "missing"));
        let found = file.read_many(&wanted);
        let wrong = wanted.iter().zip(&found);
        let mut wrong: Vec<(&str, &str)> = wrong
            .filter_map(|((tensor, _), found)| Some((tensor.name(), found.as_ref().err()?.code())))
            .collect();
        wrong.sort_unstable();
        let expected =
            [("007", "digest-mismatch"), ("100", "digest-mismatch"), ("graph", "not-found")];
        assert_eq!(wrong, expected, "{source}");
        let mut short = [0; 3];
        let into = vec![(file.tensor("001").unwrap(), "data", &mut short[..])];
        let error = file.read_many_into(into).remove(0).unwrap_err();
        assert_eq!(error.kind(), zt::ErrorKind::Misuse, "{source}");
    }
}

/// Counts the reads of a file.
struct Counted(Vec<u8>, Arc<AtomicU64>);

impl Source for Counted {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn slice(&self, _: Span) -> Option<&[u8]> {
        None
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

#[test]
fn small_neighbours_share_a_read() {
    let count = Arc::new(AtomicU64::new(0));
    let source = Counted(file_of(WriteOptions::new()), Arc::clone(&count));
    // What one thread verifies comes in shorter pieces.
    let options = OpenOptions::new().verify(Verify::Never);
    let file = options.open_source(source).unwrap();
    let wanted = wanted(&file);
    count.store(0, Ordering::Relaxed);
    assert!(file.read_many(&wanted).iter().all(Result::is_ok));
    // Three rows of small ones, and two large ones of six pieces each.
    assert!(count.load(Ordering::Relaxed) <= 3 + 2 * 6);
}

#[test]
fn small_neighbours_are_read_together_and_large_ones_alone() {
    const SMALL: u64 = 1 << 20;
    const GAP: u64 = 16 << 10;
    let many: Vec<(u64, u64)> = (0..40).map(|at| (at * (SMALL / 16), SMALL / 16)).collect();
    for (spans, expected) in [
        (&[(0, 10), (64, 10), (128, 10)][..], 1),
        (&[(0, 10), (10 + GAP, 1), (12 + 2 * GAP, 1)], 2),
        (&[(0, 9), (64, SMALL + 1), (65 + SMALL, 9)], 3),
        // Blobs within blobs.
        (&[(0, SMALL), (64, 1), (SMALL - 1, 1), (SMALL, 1)], 2),
        // No read is longer than a piece, however many blobs there are: 16, 16 and 8.
        (&many, 3),
    ] {
        let (count, bytes) = (Arc::new(AtomicU64::new(0)), (0..3 << 20).map(|at| at as u8));
        let bytes: Vec<u8> = bytes.collect();
        let options = OpenOptions::new().verify(Verify::Never);
        let mut builder = FileBuilder::new(Kind::new("test"), options);
        let source = builder.source(Counted(bytes.clone(), Arc::clone(&count)));
        for (at, (offset, len)) in spans.iter().enumerate() {
            let blob = Blob::raw(Span::new(*offset, *len).unwrap());
            let component = Component::new(DType::U8, blob);
            let object = Object::new([*len], "dense").with_component("data", component);
            builder.object(format!("{at:02}"), object, source);
        }
        let file = builder.build().unwrap();
        count.store(0, Ordering::Relaxed);
        for (found, (offset, len)) in file.read_many(&all(&file)).into_iter().zip(spans) {
            let expected = &bytes[*offset as usize..][..*len as usize];
            assert!(*found.unwrap().bytes == *expected, "{offset}");
        }
        assert_eq!(count.load(Ordering::Relaxed), expected, "{spans:?}");
    }
}

#[test]
fn nothing_is_read_of_nothing() {
    let file = File::from_bytes(file_of(WriteOptions::new())).unwrap();
    assert!(file.read_many(&[]).is_empty());
    assert!(file.read_many_into(Vec::new()).is_empty());
}

#[test]
fn components_of_several_sources_come_each_from_its_own() {
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let sources = [1u8, 2].map(|fill| builder.source(Memory::new(vec![fill; 100])));
    for at in 0..20 {
        let blob = Blob::raw(Span::new(at * 5, 5).unwrap());
        let object =
            Object::new([5], "dense").with_component("data", Component::new(DType::U8, blob));
        builder.object(format!("{at:02}"), object, sources[at as usize % 2]);
    }
    let file = builder.build().unwrap();
    let tensors = file.names().map(|name| (file.tensor(name).unwrap(), "data"));
    let wanted: Vec<_> = tensors.collect();
    for ((tensor, _), found) in wanted.iter().zip(file.read_many(&wanted)) {
        let at: u8 = tensor.name().parse().unwrap();
        assert_eq!(*found.unwrap().bytes, [1 + at % 2; 5]);
    }
}

/// Of several components that are not lent, each stays when the others are dropped, and no write to one is
/// seen in another.
#[test]
fn components_of_one_call_share_memory_and_stay_by_themselves() {
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let source = Counted(file_of(options), Arc::default());
        let file = OpenOptions::new().open_source(source).unwrap();
        let wanted = all(&file);
        let found = file.read_many(&wanted).into_iter();
        let found: Vec<Bytes<'_>> = found.map(|found| found.unwrap().bytes).collect();
        let place = |at: usize| found[at].as_ptr().addr();
        assert_eq!((place(2) - place(1), place(3) - place(2)), (64, 64));
        let mut written = found[7].clone().into_owned().unwrap();
        let mut kept = found.into_iter().nth(7).unwrap().into_owned().unwrap();
        written.fill(0xff);
        let expected = file.tensor("007").unwrap().bytes("data").unwrap();
        assert_eq!(*kept, *expected);
        kept[0] = 1;
        assert_eq!((kept[0], &kept[1..]), (1, &expected[1..]));
    }
}

/// What a file only declares does not keep its neighbours from being read.
#[test]
fn values_of_byte_planes_share_memory_and_stay_by_themselves() {
    let names = ["first", "small", "second", "graph", "third"];
    let mut bytes = Vec::new();
    let options = WriteOptions::new().planes();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let noise = |at: u32| f32::from_bits(0x3f80_0000 | (at.wrapping_mul(2_654_435_761) >> 9));
    let values: Vec<f32> = (0..700_000u32).map(noise).collect();
    for (name, len) in names.into_iter().zip([600_000, 100, 400_000, 0, 700_000]) {
        match name {
            "graph" => writer.add(name, &common::graph()).unwrap(),
            _ => {
                let dense = Dense::from_slice(&[len as u64], &values[..len]).unwrap();
                writer.add(name, &dense).unwrap();
            }
        }
    }
    writer.finish().unwrap();
    // The second is damaged.
    let span = span_of(&File::from_bytes(bytes.clone()).unwrap(), "second", "plane0");
    bytes[span.offset() as usize + 99] ^= 1;
    for (source, file) in every_source(&bytes, &OpenOptions::new()) {
        let file = file.unwrap();
        let all: Vec<_> = names.map(|name| file.tensor(name).unwrap()).into();
        let mut found = file.to_dense_many(&all);
        for (tensor, found) in all.iter().zip(&found) {
            match (found, tensor.to_dense()) {
                (Ok(found), Ok(alone)) => assert!(*found == alone, "{source}: {tensor:?}"),
                (found, alone) => {
                    assert_eq!(tensor.name(), "second");
                    let [found, alone] =
                        [found.clone(), alone].map(|found| found.unwrap_err().to_string());
                    assert_eq!(found, alone);
                }
            }
        }
        let at = |dense: &zt::Result<Dense<'_>>| match &dense.as_ref().unwrap().elements().bytes {
            Bytes::Owned(bytes) => bytes.as_ptr().addr(),
            Bytes::Borrowed(_) => 0,
        };
        let third = found.pop().unwrap();
        // What would lie between the two is there and not used.
        assert_eq!(at(&third) - at(&found[0]), 2_400_000 + 1_600_000);
        drop(found);
        assert!(*third.unwrap().as_slice::<f32>().unwrap() == values);
    }
}

#[test]
fn a_length_that_no_memory_has_is_an_error_in_its_place_alone() {
    const MOST: u64 = 1 << 62;
    struct Endless;
    impl Source for Endless {
        fn byte_len(&self) -> u64 {
            u64::MAX
        }
        fn slice(&self, _: Span) -> Option<&[u8]> {
            None
        }
        fn read_at(&self, _: u64, buf: &mut [u8]) -> std::io::Result<()> {
            buf.fill(7);
            Ok(())
        }
    }
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(Endless);
    for (name, len) in [("a", 5), ("b", MOST), ("c", 6)] {
        let blob = Blob::raw(Span::new(0, len).unwrap());
        let object =
            Object::new([len], "dense").with_component("data", Component::new(DType::U8, blob));
        builder.object(name, object, source);
    }
    let file = builder.build().unwrap();
    let found = file.read_many(&all(&file)).into_iter();
    let found: Vec<_> = found.map(|found| found.map(|found| found.bytes.len())).collect();
    assert!(matches!(found[..], [Ok(5), Err(_), Ok(6)]), "{found:?}");
}

#[test]
fn what_is_lent_is_not_copied() {
    let file = File::from_bytes(common::sample(WriteOptions::new())).unwrap();
    for found in file.read_many(&all(&file)) {
        assert!(matches!(found.unwrap().bytes, Bytes::Borrowed(_)));
    }
}

#[test]
fn progress_of_a_bulk_read_counts_stored_bytes_and_stops_it() {
    use std::ops::ControlFlow;
    use std::sync::atomic::{AtomicU64, Ordering};

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zt");
    let values = vec![7u8; 5 << 20];
    let mut writer = zt::Writer::create(&path).unwrap();
    for name in ["a", "b"] {
        let dense = zt::Dense::from_slice(&[5 << 20], &values).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    let file = zt::File::open(&path).unwrap();
    let (mut a, mut b) = (vec![0; 5 << 20], vec![0; 5 << 20]);
    let wanted = |a: &mut [u8], b: &mut [u8], most: u64| {
        let seen = AtomicU64::new(0);
        let count = |bytes| match seen.fetch_add(bytes, Ordering::Relaxed) {
            before if before >= most => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let wanted =
            vec![(file.tensor("a").unwrap(), "data", a), (file.tensor("b").unwrap(), "data", b)];
        let results = file.read_many_into_with(wanted, zt::Progress::new(&count));
        let is_ok = results.iter().all(Result::is_ok);
        (is_ok, seen.into_inner())
    };
    assert!(!wanted(&mut a, &mut b, 1 << 20).0);
    assert_eq!(wanted(&mut a, &mut b, u64::MAX), (true, 10 << 20));
    assert!(a == values && b == values);
}
