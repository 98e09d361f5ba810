//! Blobs that overlap, which a few bytes of a manifest can make as many times the file as it names
//! them: nothing that reads or writes all of them takes as much.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[allow(unused_imports, reason = "each test uses some of it")]
mod common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Counted, span_of};
use zt::container::ContainerWriter;
use zt::diff::{Change, DiffOptions};
use zt::manifest::Manifest;
use zt::{
    Attributes, Blob, Component, Digest, DigestAlgorithm, Encoding, Entry, ErrorKind, File,
    HashOptions, Limits, Object, OpenOptions, Span, Value, VerifyOptions,
};

const SLACK: u64 = 16 << 20;

/// `count` objects of `len` bytes, each `step` bytes behind the last.
struct Shingles {
    count: u64,
    step: u64,
    len: u64,
}

impl Shingles {
    fn data(&self) -> Vec<u8> {
        let byte_len = usize::try_from(self.step * (self.count - 1) + self.len).unwrap();
        let bytes = (0..byte_len).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[2]);
        bytes.collect()
    }

    fn component(&self, at: u64, data: &[u8], dtype: zt::DType) -> Component {
        let start = usize::try_from(at * self.step).unwrap();
        let bytes = &data[start..][..usize::try_from(self.len).unwrap()];
        let digest = match at % 3 {
            0 => Some(DigestAlgorithm::Crc32c.digest(bytes).unwrap()),
            1 => Some(DigestAlgorithm::Sha256.digest(bytes).unwrap()),
            _ => None,
        };
        let span = Span::new(64 + at * self.step, self.len).unwrap();
        let blob = Blob { digest, ..Blob::raw(span) };
        Component::new(dtype, blob)
    }

    fn build(&self) -> Vec<u8> {
        let data = self.data();
        let object = |at| {
            let component = self.component(at, &data, zt::DType::U8);
            Object::new([self.len], "dense").with_component("data", component)
        };
        let objects = (0..self.count).map(|at| (format!("w{at}"), object(at)));
        file(&data, objects.collect())
    }
}

fn file(data: &[u8], objects: Vec<(String, Object)>) -> Vec<u8> {
    let mut container = ContainerWriter::new(Vec::new()).unwrap();
    container.begin_blob(64, None).unwrap();
    container.write(data).unwrap();
    container.end_blob().unwrap();
    let manifest = Manifest { attributes: None, objects, extra: Attributes::new() };
    container.finish(&manifest.to_cbor().unwrap()).unwrap()
}

/// 1 MiB each, so that they stand for a hundred times the file.
fn many() -> Shingles {
    Shingles { count: 128, step: 64, len: 1 << 20 }
}

fn opened(bytes: &[u8], overlap: u64) -> (File, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let limits = Limits::default().with_overlap(overlap);
    let source = Counted(bytes.to_vec(), Arc::clone(&count));
    let file = OpenOptions::new().limits(limits).open_source(source);
    (file.unwrap(), count)
}

fn values(file: &File) -> Vec<(String, Vec<u8>)> {
    let read = |entry: &Entry<'_>| {
        let values = entry.tensor().unwrap().to_vec::<u8>().unwrap();
        (entry.name().to_owned(), values)
    };
    let mut values: Vec<_> = file.entries().iter().map(read).collect();
    values.sort();
    values
}

#[test]
fn they_are_compacted_as_one_and_share_what_they_shared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    // No more than eight times the file, so that each digest is compared.
    let few = Shingles { count: 20, step: 64 << 10, len: 1 << 20 };
    for step in [64, 4096, few.step] {
        let bytes = Shingles { step, ..few }.build();
        std::fs::write(&path, &bytes).unwrap();
        let before = values(&File::from_bytes(bytes.clone()).unwrap());
        let planned = zt::compacted_len(&path).unwrap();
        let (old, new) = zt::compact(&path, None).unwrap();
        assert_eq!((old, new), planned);
        assert!(new <= old, "{old} became {new}");
        let compacted = File::open(&path).unwrap();
        assert_eq!(compacted.byte_len(), new);
        assert!(values(&compacted) == before);
        assert!(compacted.verify(&VerifyOptions::default()).unwrap().is_ok());
        let between = |a, b| {
            span_of(&compacted, b, "data").offset() - span_of(&compacted, a, "data").offset()
        };
        assert_eq!(between("w0", "w1"), step);
    }
}

/// Each alone in front of others, and with unused bytes between them.
#[test]
fn compacting_never_makes_a_file_longer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    let data = vec![7; 4 << 20];
    let of = |offset: u64, len: u64| {
        let component = Component::new(zt::DType::U8, Blob::raw(Span::new(offset, len).unwrap()));
        Object::new([len], "dense").with_component("data", component)
    };
    let objects = [
        of(64, 1),
        of(128, 200),
        of(192, 1000),
        of(192, 0),
        of(4096, 1 << 20),
        of(4096 + 64, 1 << 20),
        of((1 << 20) + 4096 + 128, 64),
        of((2 << 20) + 64, 1 << 20),
        // A page begins here, and not where the bytes begin that move together.
        of((2 << 20) + 4096, 1 << 20),
    ];
    let named = objects.into_iter().enumerate();
    let objects = named.map(|(at, object)| (format!("w{at}"), object));
    std::fs::write(&path, file(&data, objects.collect())).unwrap();
    let before = values(&File::open(&path).unwrap());
    let (old, new) = zt::compact(&path, None).unwrap();
    assert!(new <= old, "{old} became {new}");
    assert_eq!(values(&File::open(&path).unwrap()), before);
    assert_eq!(zt::compact(&path, None).unwrap(), (new, new));
}

#[test]
fn a_digest_that_is_wrong_stops_a_compaction_whichever_it_is() {
    let shingles = Shingles { count: 4, step: 64, len: 4096 };
    let data = shingles.data();
    for wrong in 0..4 {
        let object = |at| {
            let mut component = shingles.component(at, &data, zt::DType::U8);
            if at == wrong {
                component.blob.digest = Some(Digest::Crc32c(1));
            }
            Object::new([shingles.len], "dense").with_component("data", component)
        };
        let objects = (0..shingles.count).map(|at| (format!("w{at}"), object(at)));
        let bytes = file(&data, objects.collect());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.zt");
        std::fs::write(&path, &bytes).unwrap();
        let error = zt::compact(&path, None).unwrap_err();
        assert_eq!(error.code(), "digest-mismatch");
        assert_eq!(error.object(), Some(&*format!("w{wrong}")));
        assert!(std::fs::read(&path).unwrap() == bytes);
    }
}

#[test]
fn digests_that_take_more_than_the_limit_are_not_all_compared_to_compact() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    let bytes = many().build();
    std::fs::write(&path, &bytes).unwrap();
    let error = zt::compact(&path, None).unwrap_err();
    assert_eq!((error.code(), error.kind()), ("overlap", ErrorKind::Limit));
    assert!(std::fs::read(&path).unwrap() == bytes);
}

#[test]
fn verifying_and_hashing_read_so_many_times_the_file_and_no_more() {
    let bytes = many().build();
    let present = bytes.len() as u64;
    let (file, read) = opened(&bytes, Limits::default().overlap);
    let report = file.verify(&VerifyOptions::default()).unwrap();
    let spent = read.swap(0, Ordering::Relaxed);
    assert!(spent <= 9 * present + SLACK, "{spent} of {present}");
    assert!(!report.problems.is_empty());
    for problem in &report.problems {
        assert_eq!((problem.code(), problem.kind()), ("overlap", ErrorKind::Limit));
        assert!(problem.object().is_some() && problem.component() == Some("data"));
    }
    assert_eq!(report.components, 128);
    let read_all = report.bytes;
    assert!(read_all > 8 * present && read_all <= 8 * present + SLACK, "{read_all}");

    let hash = file.hash(&HashOptions::default()).unwrap();
    let spent = read.swap(0, Ordering::Relaxed);
    assert!(spent <= 9 * present + SLACK, "{spent} of {present}");
    assert_eq!(hash.content, None);
    assert_eq!(hash.errors().next().unwrap().code(), "overlap");
    assert_eq!(file.check_overlap().unwrap_err().code(), "overlap");

    // One at a time, each can be read.
    assert_eq!(file.tensor("w127").unwrap().to_vec::<u8>().unwrap().len(), 1 << 20);
    // And all of them, for a caller that asks for it.
    let (file, _) = opened(&bytes, 128);
    file.check_overlap().unwrap();
    assert!(file.verify(&VerifyOptions::default()).unwrap().is_ok());
    assert!(file.hash(&HashOptions::default()).unwrap().content.is_some());
}

#[test]
fn a_repair_reads_so_many_times_the_file_and_no_more() {
    let mut bytes = many().build();
    bytes.extend(b"junk");
    let present = bytes.len() as u64;
    let read = Arc::new(AtomicU64::new(0));
    let source = Counted(bytes, Arc::clone(&read));
    let recovery = zt::repair::examine(source, &zt::repair::RepairOptions::default()).unwrap();
    let spent = read.load(Ordering::Relaxed);
    assert!(spent <= 12 * present + SLACK, "{spent} of {present}");
    // What was not looked at is not said to be there.
    assert!(!recovery.is_exhaustive() && !recovery.is_complete());
    let mut lost = 0;
    for object in recovery.objects() {
        let [component] = &object.components[..] else {
            panic!("{object:?}");
        };
        if object.fate == zt::repair::Fate::Lost {
            let error = component.error.as_ref().unwrap();
            assert_eq!((error.code(), error.kind()), ("overlap", ErrorKind::Limit));
            assert_eq!(error.object(), Some(&*object.name));
            lost += 1;
        }
    }
    assert!(lost > 0 && lost < recovery.objects().len());
}

#[test]
fn comparing_reads_so_many_times_the_file_and_no_more() {
    let bytes = many().build();
    let present = 2 * bytes.len() as u64;
    let (a, of_a) = opened(&bytes, Limits::default().overlap);
    let (b, of_b) = opened(&bytes, Limits::default().overlap);
    let diff = zt::diff::diff(&a, &b, &DiffOptions::default()).unwrap();
    let spent = of_a.load(Ordering::Relaxed) + of_b.load(Ordering::Relaxed);
    assert!(spent <= 9 * present + SLACK, "{spent} of {present}");
    assert!(diff.same > 8 && !diff.changed.is_empty());
    for object in &diff.changed {
        let [Change::Unreadable { error, .. }] = &object.changes[..] else {
            panic!("{object:?}");
        };
        assert_eq!((error.code(), error.object()), ("overlap", Some(&*object.name)));
    }
}

#[test]
fn comparing_keeps_to_the_stricter_of_two_limits() {
    // Two pairs take 24 MiB, of files of 12: more than the 16 that any may have read.
    let bytes = Shingles { count: 2, step: 64, len: 6 << 20 };
    let bytes = bytes.build();
    for (of_a, of_b, changed) in [(1, 0, 1), (0, 1, 1), (1, 1, 0)] {
        let [(a, _), (b, _)] = [of_a, of_b].map(|overlap| opened(&bytes, overlap));
        let diff = zt::diff::diff(&a, &b, &DiffOptions::default()).unwrap();
        assert_eq!(diff.changed.len(), changed, "{of_a} and {of_b}");
    }
}

/// Names of the same bytes, on each side: compared once, and told of each.
#[test]
fn what_objects_share_is_compared_once() {
    let shared = |values: &[u8], digest| {
        let blob = Blob { digest, ..Blob::raw(Span::new(64, values.len() as u64).unwrap()) };
        let object = Object::new([values.len() as u64], "dense")
            .with_component("data", Component::new(zt::DType::U8, blob));
        let objects = (0..1000).map(|at| (format!("w{at}"), object.clone()));
        file(values, objects.collect())
    };
    let len = 100_000;
    let (a, of_a) = opened(&shared(&vec![1; len], None), 8);
    let (b, _) = opened(&shared(&vec![2; len], None), 8);
    let (damaged, _) = opened(&shared(&vec![1; len], Some(Digest::Crc32c(1))), 8);
    let options = DiffOptions::new().values(true);
    assert_eq!(zt::diff::diff(&a, &a.clone(), &options).unwrap().same, 1000);
    let spent = of_a.load(Ordering::Relaxed);
    assert!(spent <= 4 * len as u64, "{spent}");
    let diff = zt::diff::diff(&a, &b, &options).unwrap();
    assert_eq!(diff.changed.len(), 1000);
    let all_differ = |change: &Change| matches!(change, Change::Values { diff, .. } if diff.different == len as u64);
    assert!(diff.changed.iter().all(|object| object.changes.iter().all(all_differ)));
    let diff = zt::diff::diff(&a, &damaged, &options).unwrap();
    assert_eq!(diff.changed.len(), 1000);
    for object in &diff.changed {
        let [Change::Unreadable { error, .. }] = &object.changes[..] else {
            panic!("{object:?}");
        };
        let (code, name) = (error.code(), error.object());
        assert_eq!((code, name), ("digest-mismatch", Some(&*object.name)));
    }
}

/// The same indices for a thousand shapes: their bytes are one range, and are read once, but are
/// held to each of the shapes.
#[test]
fn indices_are_held_to_so_many_shapes_and_no_more() {
    let count = 64u64 << 10;
    let values = vec![0; usize::try_from(count).unwrap()];
    let indices: Vec<u8> = (0..count).flat_map(u64::to_le_bytes).collect();
    let data = [&values[..], &indices, &0u64.to_le_bytes(), &count.to_le_bytes()].concat();
    let part =
        |dtype, offset, len| Component::new(dtype, Blob::raw(Span::new(64 + offset, len).unwrap()));
    let object = |at| {
        Object::new([1, count + at], "sparse_csr")
            .with_component("values", part(zt::DType::U8, 0, count))
            .with_component("indices", part(zt::DType::U64, count, count * 8))
            .with_component("indptr", part(zt::DType::U64, count * 9, 16))
    };
    let objects = (0..256).map(|at| (format!("w{at}"), object(at)));
    let bytes = file(&data, objects.collect());
    let present = bytes.len() as u64;
    let (sparse, read) = opened(&bytes, Limits::default().overlap);
    let report = sparse.verify(&VerifyOptions::default()).unwrap();
    let spent = read.load(Ordering::Relaxed);
    assert!(spent <= 9 * present + SLACK, "{spent} of {present}");
    assert!(report.problems.iter().all(|problem| problem.code() == "overlap"));
    assert!((100..256).contains(&report.problems.len()), "{}", report.problems.len());
    let (sparse, _) = opened(&bytes, 1000);
    assert!(sparse.verify(&VerifyOptions::default()).unwrap().is_ok());
}

/// The same planes under many names are decoded once; with other attributes, so many times.
#[test]
fn planes_are_decoded_for_their_identity_so_many_times_and_no_more() {
    let len = 64u64 << 10;
    let data = vec![0; usize::try_from(2 * len).unwrap()];
    let plane = |at: u64| {
        let span = Span::new(64 + at * len, len).unwrap();
        Component::new(zt::DType::U8, Blob::raw(span))
    };
    let planes = |at: u64, note: u64| {
        let attributes: Attributes = [("dtype", Value::from("bf16")), ("note", note.into())].into();
        let mut object = Object::new([len], "zt.planes/1")
            .with_component("plane0", plane(0))
            .with_component("plane1", plane(1));
        object.attributes = Some(attributes);
        (format!("w{at}"), object)
    };
    let bytes_of = |note: fn(u64) -> u64| {
        let objects = (0..256).map(|at| planes(at, note(at)));
        file(&data, objects.collect())
    };
    let (file, read) = opened(&bytes_of(|_| 0), Limits::default().overlap);
    let hash = file.hash(&HashOptions::default()).unwrap();
    assert!(hash.content.is_some() && hash.errors().next().is_none());
    let spent = read.load(Ordering::Relaxed);
    assert!(spent <= 2 * file.byte_len(), "{spent}");

    let (file, read) = opened(&bytes_of(|at| at), Limits::default().overlap);
    let hash = file.hash(&HashOptions::default()).unwrap();
    assert_eq!(hash.content, None);
    assert!(hash.errors().all(|error| error.code() == "overlap"));
    let spent = read.load(Ordering::Relaxed);
    assert!(spent <= 9 * file.byte_len() + SLACK, "{spent}");
    let (file, _) = opened(&bytes_of(|at| at), 256);
    let hash = file.hash(&HashOptions::default()).unwrap();
    assert!(hash.content.is_some());
}

/// Spec: §4. The same range may have several names; what lies within another range, or over the end
/// of one, is refused, and what comes behind is compared with the one that ends last.
#[test]
fn strict_verification_finds_every_range_that_overlaps_another() {
    let data = [0; 400];
    let object = |offset: u64, len: u64| {
        let component =
            Component::new(zt::DType::U8, Blob::raw(Span::new(64 + offset, len).unwrap()));
        Object::new([len], "dense").with_component("data", component)
    };
    let objects = [
        ("outer", object(0, 200)),
        ("outer again", object(0, 200)),
        ("within", object(64, 30)),
        ("over the end", object(128, 100)),
        ("behind", object(256, 144)),
    ];
    let named = objects.map(|(name, object)| (name.to_owned(), object));
    let file = File::from_bytes(file(&data, named.into())).unwrap();
    let mut options = VerifyOptions::default();
    assert!(file.verify(&options).unwrap().is_ok());
    options = options.strict(true);
    let report = file.verify(&options).unwrap();
    let found = report.problems.iter();
    let found: Vec<_> = found.map(|e| (e.code(), e.object().unwrap())).collect();
    assert_eq!(found, [("overlap", "within"), ("overlap", "over the end")]);
}

/// Objects of one range that begins with `frame` of `decoded_len` bytes. Each has one more
/// skippable frame at its end than the last, so that no two have the same blob.
fn bomb(frame: &[u8], decoded_len: u64, count: u64) -> Vec<u8> {
    const SKIPPABLE: [u8; 8] = [0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0];
    let count = usize::try_from(count).unwrap();
    let data = [frame, &SKIPPABLE.repeat(count)].concat();
    let object = |at: usize| {
        let stored = &data[..frame.len() + SKIPPABLE.len() * at];
        let blob = Blob {
            encoding: Encoding::Zstd,
            decoded_len: Some(decoded_len),
            digest: Some(DigestAlgorithm::Crc32c.digest(stored).unwrap()),
            ..Blob::raw(Span::new(64, stored.len() as u64).unwrap())
        };
        let component = Component::new(zt::DType::U8, blob);
        Object::new([decoded_len], "dense").with_component("data", component)
    };
    let objects = (0..count).map(|at| (format!("w{at}"), object(at)));
    file(&data, objects.collect())
}

/// A frame of zeros, which are the most that so few bytes can become.
fn zeros(byte_len: u64) -> Vec<u8> {
    const BLOCK: u64 = 128 << 10;
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0xA0];
    frame.extend(u32::try_from(byte_len).unwrap().to_le_bytes());
    for block in (0..byte_len / BLOCK).rev() {
        // A run of one byte, and whether it is the last.
        let head = (BLOCK << 3 | 1 << 1 | u64::from(block == 0)).to_le_bytes();
        frame.extend([head[0], head[1], head[2], 0]);
    }
    frame
}

#[test]
fn frames_that_blobs_share_are_decoded_so_many_times_the_file_and_no_more() {
    let decoded_len = 4 << 20;
    let frame = zeros(decoded_len);
    let bytes = bomb(&frame, decoded_len, 1500);
    let present = bytes.len() as u64;
    let most = 8 * present + SLACK + decoded_len;
    let (file, _) = opened(&bytes, Limits::default().overlap);
    assert_eq!(file.check_overlap().unwrap_err().code(), "overlap");
    let report = file.verify(&VerifyOptions::default()).unwrap();
    assert!(report.bytes <= most && report.bytes > decoded_len);
    assert!(report.problems.len() > 1400);
    let of_overlap =
        |error: &zt::Error| (error.code(), error.kind()) == ("overlap", ErrorKind::Limit);
    assert!(report.problems.iter().all(of_overlap));

    let hash = file.hash(&HashOptions::default()).unwrap();
    assert_eq!(hash.content, None);
    let hashed = hash.objects.iter().flat_map(|(_, hash)| hash);
    let hashed = hashed.flat_map(|hash| &hash.components);
    assert!(hashed.map(|(_, bytes)| bytes.byte_len).sum::<u64>() <= most);
    assert!(hash.errors().all(of_overlap));

    let (other, _) = opened(&bomb(&frame, decoded_len, 1501), 8);
    let diff = zt::diff::diff(&file, &other, &DiffOptions::default()).unwrap();
    assert!(diff.changed.len() > 1400, "{} are the same", diff.same);

    // Nothing says how long they are that could be believed, so a repair decodes them, too.
    let bytes = [&bytes[..], b"junk"].concat();
    let counted = AtomicU64::new(0);
    let note = |len| {
        counted.fetch_add(len, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let options = zt::repair::RepairOptions::default().progress(zt::Progress::new(&note));
    let recovery = zt::repair::examine(zt::Memory::new(bytes), &options).unwrap();
    assert!(!recovery.is_exhaustive());
    let counted = counted.into_inner();
    assert!(counted <= most + 12 * present, "{counted} of {present}");
    let one = file.tensor("w1499").unwrap().to_vec::<u8>().unwrap();
    assert_eq!(one.len() as u64, decoded_len);
}

/// Tied weights that shrink a thousand times are decoded once, whatever the limit.
#[test]
fn a_frame_that_objects_share_whole_costs_nothing_more() {
    let decoded_len = 4 << 20;
    let frame = zeros(decoded_len);
    let blob = Blob {
        encoding: Encoding::Zstd,
        decoded_len: Some(decoded_len),
        ..Blob::raw(Span::new(64, frame.len() as u64).unwrap())
    };
    let component = Component::new(zt::DType::U8, blob);
    let object = Object::new([decoded_len], "dense").with_component("data", component);
    let objects = (0..1000).map(|at| (format!("w{at}"), object.clone()));
    let (file, _) = opened(&file(&frame, objects.collect()), 0);
    file.check_overlap().unwrap();
    let report = file.verify(&VerifyOptions::default()).unwrap();
    assert!(report.is_ok() && report.components == 1000);
    assert!(file.hash(&HashOptions::default()).unwrap().content.is_some());
    let diff = zt::diff::diff(&file, &file.clone(), &DiffOptions::default()).unwrap();
    assert_eq!(diff.same, 1000);
}
