//! Components of every size, stored in every way, on any number of threads: the same bytes.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::io::{self, Write};

use zt::{
    ComponentOptions, Compression, DType, Dense, DigestAlgorithm, Encoding, File, ObjectOptions,
    VerifyOptions, WriteOptions, Writer,
};

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Bytes of few values in no order: nothing repeats, and each takes less than eight bits.
fn skewed(len: usize) -> Vec<u8> {
    noise(len, 7).iter().map(|byte| byte & byte.rotate_left(3)).collect()
}

fn ramp(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at >> 9).to_le_bytes()[0]).collect()
}

/// Sizes around every border, contents that shrink and that do not, one behind the other.
fn components() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for len in [0, 1, 40_000, 1 << 20, (1 << 20) + 1, 4 << 20, (4 << 20) + 1] {
        all.extend([noise(len, 1), ramp(len), skewed(len)]);
    }
    all.extend([noise(9 << 20, 2), ramp((9 << 20) + 5), ramp(3)]);
    all
}

fn ways() -> Vec<ComponentOptions> {
    let mut ways = Vec::new();
    for compression in
        [Compression::None, Compression::Zstd(1), Compression::EntropyOnly, Compression::Auto]
    {
        for digest in [None, Some(DigestAlgorithm::Crc32c), Some(DigestAlgorithm::Sha256)] {
            ways.push(ComponentOptions { compression, digest });
        }
    }
    ways
}

fn added(options: WriteOptions, components: &[Vec<u8>], ways: &[ComponentOptions]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for (at, content) in components.iter().enumerate() {
        let way = ObjectOptions::from(ways[at % ways.len()]);
        let dense = Dense::from_slice(&[content.len() as u64], content).unwrap();
        writer.add_with(&at.to_string(), &dense, &way).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// All in one call, each by the way of the file.
fn added_together(options: WriteOptions, components: &[Vec<u8>]) -> Vec<u8> {
    let dense = |content| Dense::from_slice(&[<[u8]>::len(content) as u64], content).unwrap();
    let all: Vec<_> = components.iter().map(|content| dense(content)).collect();
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let named = all.iter().enumerate();
    let named = named.map(|(at, dense)| (at.to_string(), dense));
    writer.add_all(named).unwrap();
    writer.finish().unwrap();
    bytes
}

fn streamed(options: WriteOptions, components: &[Vec<u8>], ways: &[ComponentOptions]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for (at, content) in components.iter().enumerate() {
        let object = writer.begin(&at.to_string(), &[content.len() as u64], "dense");
        let mut object = object.unwrap().options(ways[at % ways.len()].into());
        let mut data = object.component("data", DType::U8, None).unwrap();
        for piece in content.chunks(300_007) {
            data.write_all(piece).unwrap();
        }
        data.finish().unwrap();
        object.finish().unwrap();
    }
    writer.finish().unwrap();
    bytes
}

fn assert_holds(bytes: Vec<u8>, components: &[Vec<u8>]) {
    let file = File::from_bytes(bytes).unwrap();
    let report = file.verify(&VerifyOptions::default()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    for (at, content) in components.iter().enumerate() {
        let tensor = file.tensor(&at.to_string()).unwrap();
        assert!(*tensor.values::<u8>().unwrap() == content[..], "{at}");
    }
}

#[test]
fn neither_threads_nor_pieces_change_the_bytes() {
    let components = components();
    let ways = ways();
    for first in [0, 5, 7] {
        let mut ways = ways.clone();
        ways.rotate_left(first);
        let one = added(WriteOptions::new().threads(1), &components, &ways);
        assert!(one == streamed(WriteOptions::new().threads(1), &components, &ways));
        for options in [WriteOptions::new().threads(3), WriteOptions::new()] {
            assert!(one == added(options.clone(), &components, &ways));
            assert!(one == streamed(options, &components, &ways));
        }
        assert_holds(one, &components);
    }
}

#[test]
fn components_that_are_added_together_give_the_same_bytes() {
    let components = components();
    for way in ways() {
        let options = WriteOptions::new().compression(way.compression).digest(way.digest);
        let expected = added(options.clone().threads(1), &components, &[way]);
        for threads in [1, 3] {
            let together = added_together(options.clone().threads(threads), &components);
            assert!(together == expected, "{way:?}, {threads} threads");
        }
    }
}

/// A writer goes on after an object at fault, with those before it.
#[test]
fn of_objects_that_are_added_together_those_before_a_fault_stay() {
    let dense = |content| Dense::from_slice(&[<[u8]>::len(content) as u64], content).unwrap();
    let content = [ramp(3 << 20), noise(5 << 20, 8), ramp(40)];
    let [a, b, c] = content.each_ref().map(|content| dense(content));
    for way in ways() {
        let options = WriteOptions::new().compression(way.compression).digest(way.digest);
        let mut bytes = Vec::new();
        let mut writer = options.to_writer(&mut bytes).unwrap();
        writer.add("c", &c).unwrap();
        let names = ["a", "b", "a", "d"].into_iter();
        let error = writer.add_all(names.zip([&a, &b, &c, &c])).unwrap_err();
        assert_eq!((error.code(), error.object()), ("duplicate-name", Some("a")));
        writer.add("e", &c).unwrap();
        writer.finish().unwrap();
        let file = File::from_bytes(bytes).unwrap();
        let report = file.verify(&VerifyOptions::default()).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        assert_eq!(file.names().collect::<Vec<_>>(), ["a", "b", "c", "e"]);
        assert!(*file.tensor("b").unwrap().values::<u8>().unwrap() == content[1][..]);
    }
}

#[test]
fn a_writer_within_a_pool_does_not_wait_for_itself() {
    let components = components();
    let zstd = [ComponentOptions {
        compression: Compression::Zstd(1),
        digest: Some(DigestAlgorithm::Sha256),
    }];
    let expected = added(WriteOptions::new().threads(1), &components, &zstd);
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().unwrap();
        // As many writers as threads: none of these is ever free for anything else.
        let written = pool.broadcast(|_| added(WriteOptions::new(), &components, &zstd));
        assert!(written.iter().all(|bytes| *bytes == expected), "{threads}");
    }
}

#[test]
fn the_sample_chooses_what_suits_the_content() {
    let file = |content: &[u8], compression: Compression| {
        let way = ComponentOptions { compression, digest: None };
        let bytes = added(WriteOptions::new(), &[content.to_vec()], &[way]);
        let file = File::from_bytes(bytes).unwrap();
        let blob = &file.tensor("0").unwrap().component("data").unwrap().blob;
        (blob.encoding, blob.span.byte_len())
    };
    for len in [200_000, 6 << 20] {
        let (encoding, _) = file(&noise(len, 3), Compression::Auto);
        assert_eq!(encoding, Encoding::Raw, "{len}");
        // Searching finds nothing in what is only skewed, and everything in what repeats.
        let by_frequency = file(&skewed(len), Compression::EntropyOnly);
        assert_eq!(file(&skewed(len), Compression::Auto), by_frequency, "{len}");
        assert!(by_frequency.1 < len as u64 * 9 / 10, "{by_frequency:?}");
        let by_search = file(&ramp(len), Compression::Zstd(zt::DEFAULT_LEVEL));
        assert_eq!(file(&ramp(len), Compression::Auto), by_search, "{len}");
        assert!(by_search.1 < len as u64 / 50, "{by_search:?}");
    }
}

#[test]
fn repetitions_beyond_the_sample_are_compressed() {
    let repeated = noise(100_000, 4).repeat(60);
    for compression in [Compression::Zstd(3), Compression::Auto] {
        let way = ComponentOptions { compression, digest: None };
        let bytes = added(WriteOptions::new(), std::slice::from_ref(&repeated), &[way]);
        assert!(bytes.len() < repeated.len() / 5, "{compression:?}");
        assert_holds(bytes, std::slice::from_ref(&repeated));
    }
}

/// Of pieces that only a search for short ones finds, each further away than the sample sees.
#[test]
fn components_within_the_sample_are_compressed_without_it() {
    let first = noise(32 << 10, 5);
    let (pieces, _) = first.as_chunks::<4>();
    // The same in another order.
    let second = (0..pieces.len()).flat_map(|at| pieces[at * 4409 % pieces.len()]);
    let content: Vec<u8> = first.iter().copied().chain(second).collect();
    let way = ComponentOptions { compression: Compression::Zstd(19), digest: None };
    let bytes = added(WriteOptions::new(), std::slice::from_ref(&content), &[way]);
    assert!(bytes.len() < content.len() * 9 / 10, "{}", bytes.len());
    assert_holds(bytes, &[content]);
}

/// Takes some bytes, a few at a time, now and then interrupted, and is full.
struct Reluctant {
    room: usize,
    calls: usize,
}

impl Write for Reluctant {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let taken = bytes.len().min(self.room).min(100_000);
        self.room -= taken;
        match taken {
            0 if !bytes.is_empty() => Err(io::ErrorKind::StorageFull.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn finish_reports_a_full_sink_at_the_latest() {
    let components: Vec<_> = components().into_iter().skip(9).step_by(4).collect();
    for way in ways() {
        let whole = added(WriteOptions::new(), &components, &[way]).len();
        for room in [0, whole / 3, whole - 1, whole] {
            let write = || -> zt::Result<()> {
                let mut writer = Writer::new(Reluctant { room, calls: 0 })?;
                for (at, content) in components.iter().enumerate() {
                    let dense = Dense::from_slice(&[content.len() as u64], content)?;
                    writer.add_with(&at.to_string(), &dense, &way.into())?;
                }
                writer.finish()
            };
            let together = || -> zt::Result<()> {
                let options = WriteOptions::new().compression(way.compression);
                let sink = Reluctant { room, calls: 0 };
                let mut writer = options.digest(way.digest).to_writer(sink)?;
                let dense = components
                    .iter()
                    .map(|content| Dense::from_slice(&[content.len() as u64], content));
                let all = dense.collect::<Result<Vec<_>, _>>()?;
                let named = all.iter().enumerate();
                writer.add_all(named.map(|(at, dense)| (at.to_string(), dense)))?;
                writer.finish()
            };
            let expected = if room == whole { Ok(()) } else { Err("io") };
            for written in [write(), together()] {
                let code = written.map_err(|error| error.code());
                assert_eq!(code, expected, "{way:?} {room}");
            }
        }
    }
}

#[test]
fn a_writer_that_is_dropped_with_work_under_way_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = WriteOptions::new().zstd(19).threads(2);
    let mut writer = options.create(folder.path().join("x.zt")).unwrap();
    let content = ramp(6 << 20);
    let dense = Dense::from_slice(&[content.len() as u64], &content).unwrap();
    writer.add("x", &dense).unwrap();
    drop(writer);
    assert!(common::names_in(folder.path()).is_empty());
}
