//! Files that were made to mislead a repair, or to take its time.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;
mod repaired;
mod simulated;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use proptest::prelude::*;
use repaired::{look, mended, objects, options, saved, written};
use simulated::{Failure, Recorder, dense};
use zt::repair::{Fate, Standing, Verdict, examine, repair_storage};
use zt::{Dense, DigestAlgorithm, File, Memory, Source, Storage, WriteOptions, Writer};

/// Bytes as a tensor.
fn blob(bytes: &[u8]) -> Dense<'_> {
    Dense::from_slice(&[bytes.len() as u64], bytes).unwrap()
}

/// A file that holds other files, whole and as they are.
fn holding(options: WriteOptions, blobs: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for (at, bytes) in blobs.iter().enumerate() {
        writer.add(&format!("blob {at}"), &blob(bytes)).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// The file within is never taken for the file, wherever it lies and wherever the file is cut.
#[test]
fn a_file_within_a_blob_does_not_pass_for_the_file() {
    for digest in [Some(DigestAlgorithm::Crc32c), None] {
        let inner =
            written(WriteOptions::new().digest(digest), &[("x", &[1; 40]), ("y", &[2; 10])]);
        let padded = |before: usize| [&vec![5; before][..], &inner].concat();
        let (one, other) = (padded(1), padded(100));
        for blobs in [
            &[&inner[..]][..],
            &[&inner, &[6; 500]],
            &[&[6; 500], &inner],
            &[&one, &[6; 10]],
            &[&[6; 10], &other],
            &[&inner, &one, &other],
        ] {
            let file = holding(WriteOptions::new(), blobs);
            let expected = look(&file);
            assert_eq!(expected.verdict(), Verdict::Sound);
            let manifest = expected.generation().unwrap().manifest;
            for len in (0..manifest.end()).step_by(7).chain([manifest.end() - 1]) {
                let cut = &file[..usize::try_from(len).unwrap()];
                let (recovery, after) = mended(cut);
                assert!(after == cut, "{len}");
                // A file that is cut exactly behind the other one reads as that, and without
                // digests nothing speaks against it.
                let reads = File::from_bytes(cut.to_vec()).is_ok();
                assert!(recovery.generation().is_none() || reads, "{len}");
            }
            for len in manifest.end()..file.len() as u64 {
                let (_, after) = mended(&file[..usize::try_from(len).unwrap()]);
                assert!(after == file, "{len}");
            }
            let (recovery, after) = mended(&[&file[..], &inner].concat());
            assert_eq!(recovery.generation().map(|g| g.manifest), Some(manifest));
            assert!(after == file);
        }
    }
}

#[test]
fn a_file_within_a_blob_is_reported() {
    let apart: [(&str, &[i32]); 2] = [("x", &[1; 40]), ("y", &[2; 10])];
    // Tied: one blob, which stands for both wherever the file begins.
    let tied: [(&str, &[i32]); 3] = [("x", &[1; 40]), ("y", &[1; 40]), ("z", &[2; 10])];
    for objects in [&apart[..], &tied] {
        let inner = written(WriteOptions::new().deduplicate(true), objects);
        let file = holding(WriteOptions::new(), &[&[6; 500], &inner, &[6; 500]]);
        let cut = &file[..file.len() - 100];
        let recovery = look(cut);
        assert_eq!(recovery.verdict(), Verdict::Lost);
        assert!(!recovery.is_complete());
        let [nested] = recovery.others() else {
            panic!("{:?}", recovery.others());
        };
        let open = File::from_bytes(file).unwrap();
        let offset = common::span_of(&open, "blob 1", "data").offset();
        assert_eq!(nested.standing, Standing::Nested { offset });
    }
}

/// A blob that holds a file with the same tensor as the file around it, at the same offset.
#[test]
fn a_manifest_that_fits_in_two_ways_is_left_to_the_caller() {
    let inner = written(WriteOptions::new(), &[("x", &[1; 40])]);
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file).unwrap();
    writer.add("x", &dense(&[1; 40])).unwrap();
    writer.add("backup", &blob(&inner)).unwrap();
    writer.add("more", &dense(&[3; 40])).unwrap();
    writer.finish().unwrap();
    assert_eq!(look(&file).verdict(), Verdict::Sound);

    let cut = &file[..file.len() - 150];
    let (recovery, after) = mended(cut);
    assert_eq!(recovery.verdict(), Verdict::Doubtful);
    assert!(after == cut);
    assert!(saved(&recovery).is_err());
    let [other] = recovery.others() else {
        panic!("{:?}", recovery.others());
    };
    assert_eq!(other.standing, Standing::Doubtful);
    let mut chosen = options();
    chosen = chosen.manifest(other.manifest.offset());
    let recovery = examine(Memory::new(Vec::from(cut)), &chosen).unwrap();
    assert_eq!(objects(&saved(&recovery).unwrap()), objects(&inner));
    // All that it names is where it says, whosever it is.
    assert!(other.is_mendable());
    let (recovery, after) = named(cut, other.manifest.offset());
    assert_eq!(recovery.verdict(), Verdict::Mendable);
    assert_eq!(objects(&after), objects(&inner));
}

/// The file after a repair in place by the manifest at an offset.
fn named(bytes: &[u8], offset: u64) -> (zt::repair::Recovery, Vec<u8>) {
    let mut chosen = options();
    chosen = chosen.manifest(offset);
    let storage = Recorder::new(bytes, Failure::Never);
    let recovery = repair_storage(Arc::clone(&storage) as Arc<dyn Storage>, &chosen).unwrap();
    let file = storage.with(|state| state.file.clone());
    (recovery, file)
}

/// Somebody who names it may be wrong, and what is cut off is gone: it goes to another file.
#[test]
fn a_doubtful_generation_is_not_mended_even_if_chosen() {
    for digest in [None, Some(DigestAlgorithm::Crc32c)] {
        let options = || WriteOptions::new().digest(digest);
        let inner = written(options(), &[("x", &[1, 2, 3, 4]), ("y", &[2; 10])]);
        let file = holding(options(), &[&[6; 500], &inner, &[6; 500]]);
        let within = [
            file[..file.len() - 100].to_vec(),
            [b"\xef\xbb\xbf\n", &inner[..], b"junk"].concat(),
            [b"\xef\xbb\xbf\n", &inner[..]].concat(),
        ];
        for cut in within {
            let recovery = look(&cut);
            let [nested] = recovery.others() else {
                panic!("{:?}", recovery.others());
            };
            assert!(!nested.is_mendable());
            let (recovery, after) = named(&cut, nested.manifest.offset());
            assert!(after == cut, "cut to a file within");
            assert_eq!(recovery.verdict(), Verdict::Damaged);
            let generation = recovery.generation().unwrap();
            assert_eq!(generation.standing, nested.standing);
            assert_eq!((generation.manifest, generation.refuted), (nested.manifest, 0));
            // Counted from where it begins.
            assert!(recovery.is_complete());
            assert_eq!(objects(&saved(&recovery).unwrap()), objects(&inner));
        }
    }
    // In doubt, and without digests.
    let file = written(WriteOptions::new().digest(None), &[("a", &[1, 2])]);
    let mut torn = file.clone();
    torn[3] ^= 1;
    let recovery = look(&torn);
    let [other] = recovery.others() else {
        panic!("{:?}", recovery.others());
    };
    assert!(other.standing == Standing::Doubtful && !other.is_mendable());
    let (recovery, after) = named(&torn, other.manifest.offset());
    assert_eq!(recovery.verdict(), Verdict::Damaged);
    assert!(after == torn);
    assert_eq!(objects(&saved(&recovery).unwrap()), objects(&file));
    // What readers find is theirs already, also where its place leaves it in doubt.
    let more = written(WriteOptions::new().digest(None), &[("a", &[1, 2]), ("b", &[3; 40])]);
    let gap = repaired::edited(&more, |edit| edit.remove("b").unwrap());
    for file in [file, gap] {
        let manifest = look(&file).generation().unwrap().manifest;
        let (recovery, after) = named(&file, manifest.offset());
        assert_eq!(recovery.verdict(), Verdict::Sound);
        assert!(after == file);
    }
}

/// Every value would be another: offsets count from where the file began.
#[test]
fn bytes_before_a_file_do_not_move_its_values() {
    for digest in [None, Some(DigestAlgorithm::Crc32c)] {
        let options = || WriteOptions::new().digest(digest);
        let file = written(options(), &[("a", &[1, 2, 3, 4]), ("b", &[5; 40])]);
        let edited = repaired::edited(&file, |edit| {
            edit.writer().add("c", &dense(&[6; 30])).unwrap();
        });
        let mut befores: Vec<Vec<u8>> = (1..64).chain([100]).map(|len| vec![7; len]).collect();
        befores.push(b"\xef\xbb\xbf\n".to_vec());
        for (file, before) in
            [&file, &edited].iter().flat_map(|f| befores.iter().map(move |b| (f, b)))
        {
            let offset = before.len() as u64;
            for behind in [&b""[..], b"junk"] {
                let moved = [before, &file[..], behind].concat();
                let (recovery, after) = mended(&moved);
                assert!(after == moved, "{offset}: changed");
                assert!(recovery.generation().is_none(), "{offset}");
                let last = recovery.others().first().unwrap();
                assert_eq!(last.standing, Standing::Nested { offset });
            }
            // Nor where nothing says that it began there.
            let mut torn = [before, &file[..]].concat();
            torn[before.len()] ^= 1;
            let (recovery, after) = mended(&torn);
            assert!(after == torn, "{offset}: changed");
            let is_left = matches!(recovery.verdict(), Verdict::Doubtful | Verdict::Lost);
            assert!(is_left || digest.is_some(), "{offset}");
        }
    }
}

/// Where neither the header nor a digest says that offsets count from the file's beginning.
#[test]
fn without_header_and_digests_a_file_is_left_to_the_caller() {
    let file = written(WriteOptions::new().digest(None), &[("a", &[1, 2])]);
    let mut torn = file.clone();
    torn[3] ^= 1;
    let (recovery, after) = mended(&torn);
    assert_eq!(recovery.verdict(), Verdict::Doubtful);
    assert!(after == torn);
    // Nor one digest that is right.
    let mut torn = written(WriteOptions::new(), &[("a", &[1, 2])]);
    torn[3] ^= 1;
    torn[64] ^= 1;
    assert_eq!(look(&torn).verdict(), Verdict::Doubtful);
    // Of no blobs none is another.
    let mut empty = written(WriteOptions::new(), &[("a", &[])]);
    let expected = empty.clone();
    empty[3] ^= 1;
    assert!(mended(&empty).1 == expected);
}

/// Blobs of layout 1.0 lie anywhere, also next to the header.
#[test]
fn a_file_within_the_first_bytes_of_one_of_layout_1_0_does_not_pass_for_it() {
    for digest in [None, Some(DigestAlgorithm::Crc32c)] {
        let inner = written(WriteOptions::new().digest(digest), &[("x", &[1, 2, 3, 4])]);
        for base in [8, 9, 16, 32, 56, 63] {
            // Behind it the other tensors; the outer manifest is gone.
            let start = [&b"ZTEN1000"[..], &vec![5; base - 8]].concat();
            let cut = [&start, &inner, &[6; 500][..]].concat();
            let (recovery, after) = mended(&cut);
            assert!(after == cut, "{base}: the other tensor is gone");
            assert_eq!(recovery.verdict(), Verdict::Lost);
            let [nested] = recovery.others() else {
                panic!("{:?}", recovery.others());
            };
            let offset = base as u64;
            assert_eq!(nested.standing, Standing::Nested { offset });
        }
    }
}

/// A source that counts the bytes and the calls that it is read by.
struct Metered(Vec<u8>, AtomicU64, AtomicU64);

impl Source for Metered {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        self.1.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.2.fetch_add(1, Ordering::Relaxed);
        Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

/// Also one that tells of some of its blobs only that they are there.
#[test]
fn a_sound_file_is_read_once() {
    let first = written(WriteOptions::new().digest(None), &[("a", &[1; 100_000])]);
    let file = repaired::edited(&first, |edit| {
        edit.writer().add("b", &dense(&[2; 100_000])).unwrap();
    });
    let source = Arc::new(Metered(file, 0.into(), 0.into()));
    let recovery = examine(Arc::clone(&source), &options()).unwrap();
    assert_eq!(recovery.verdict(), Verdict::Sound);
    let generation = recovery.generation().unwrap();
    assert_eq!((generation.proved, generation.unproved), (1, 1));
    let (read, len) = (source.1.load(Ordering::Relaxed), source.byte_len());
    assert!(read < len + len / 4, "{read} of {len}");
}

/// Some of so many magics are not kept. The report then does not claim that all were looked at.
#[test]
fn unexamined_manifests_are_reported() {
    let file = written(WriteOptions::new(), &[("a", &[1; 40])]);
    for (count, is_exhaustive) in [(1000, true), (70_000, false)] {
        let torn = [&file[..], &b"ZTEN1000".repeat(count), b"\n"].concat();
        let (recovery, after) = mended(&torn);
        assert_eq!(recovery.verdict(), Verdict::Mendable);
        assert_eq!(recovery.is_exhaustive(), is_exhaustive);
        assert!(after == file);
    }
}

/// Where some of its blobs lie at the same place in the file around it.
#[test]
fn the_place_with_more_right_digests_is_reported() {
    let small: [(&str, &[i32]); 3] = [("a", &[1; 10]), ("b", &[2; 10]), ("c", &[3; 10])];
    let large: [(&str, &[i32]); 2] = [("d", &[4; 40]), ("e", &[5; 40])];
    let inner = written(WriteOptions::new(), &[&small[..], &large].concat());
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file).unwrap();
    for (name, values) in small {
        writer.add(name, &dense(values)).unwrap();
    }
    writer.add("inner", &blob(&inner)).unwrap();
    writer.add("more", &dense(&[6; 40])).unwrap();
    writer.finish().unwrap();
    let open = File::from_bytes(file.clone()).unwrap();
    let offset = common::span_of(&open, "inner", "data").offset();
    let recovery = look(&file[..file.len() - 100]);
    let [nested] = recovery.others() else {
        panic!("{:?}", recovery.others());
    };
    assert_eq!(nested.standing, Standing::Nested { offset });
}

/// The blobs of a file twice, as far as they are there, and its manifest behind the second.
#[test]
fn the_nearer_of_two_equal_places_is_reported() {
    let mut inner = written(WriteOptions::new(), &[("x", &[1; 40]), ("y", &[2; 40])]);
    let manifest = look(&inner).generation().unwrap().manifest;
    inner[64] ^= 1;
    let blobs = &inner[..usize::try_from(manifest.offset()).unwrap()];
    let file = holding(WriteOptions::new(), &[&[6; 500], blobs, &inner, &[6; 500]]);
    let open = File::from_bytes(file.clone()).unwrap();
    let offset = common::span_of(&open, "blob 2", "data").offset();
    let recovery = look(&file[..file.len() - 100]);
    let [nested] = recovery.others() else {
        panic!("{:?}", recovery.others());
    };
    assert_eq!(nested.standing, Standing::Nested { offset });
}

/// Trailers that each declare all that is before them, roots without end, manifests of overlapping
/// blobs: what is read stays in proportion to the file.
#[test]
fn however_many_manifests_there_seem_to_be_the_work_is_linear() {
    let fakes: [&dyn Fn(u64) -> Vec<u8>; 5] = [
        // Sound manifests. For each, every magic before it may be its header.
        &|at| {
            let values = [1, 2, 3].map(|value| value + i32::try_from(at).unwrap());
            let file = written(WriteOptions::new(), &[("x", &values)]);
            file[76..].to_vec()
        },
        &|at| [&(at - 8).to_le_bytes()[..], b"ZTEN1000"].concat(),
        &|_| b"\xA2\x67objects\xBF\x60".to_vec(),
        &|_| b"\xA1\x67version\x9F".to_vec(),
        &|_| [&7_u64.to_le_bytes()[..], b"\xBF\x67objectsZTEN1000"].concat(),
    ];
    for fake in fakes {
        let mut file = written(WriteOptions::new(), &[("a", &[1; 40])]);
        file.truncate(file.len() - 20);
        while file.len() < 1 << 20 {
            let next = fake(file.len() as u64);
            file.extend_from_slice(&next);
        }
        let len = file.len() as u64;
        let source = Arc::new(Metered(file, 0.into(), 0.into()));
        let recovery = examine(Arc::clone(&source), &options()).unwrap();
        assert_ne!(recovery.verdict(), Verdict::Sound);
        let (read, calls) = (&source.1, &source.2);
        let (read, calls) = (read.load(Ordering::Relaxed), calls.load(Ordering::Relaxed));
        assert!(read <= 16 * len + (64 << 20), "{read} of {len}");
        assert!(calls <= 500_000, "{calls} reads");
    }
}

/// A file of `objects`, with magics between its blobs and its manifest. A file within a blob may begin
/// with any of them.
fn with_magics(objects: &[(&str, &[i32])], count: usize) -> (Vec<u8>, usize) {
    let file = written(WriteOptions::new(), objects);
    let manifest = look(&file).generation().unwrap().manifest;
    let (blobs, trailer) = file.split_at(usize::try_from(manifest.offset()).unwrap());
    let file = [blobs, &b"ZTEN1000".repeat(count), trailer].concat();
    (file, trailer.len())
}

/// Each digest is looked for behind each magic, for as long as the file is worth it.
#[test]
fn among_more_beginnings_than_are_tried_nothing_is_taken_for_the_file() {
    let (few, _) = with_magics(&[("a", &[1; 40])], 100);
    let (recovery, after) = mended(&[&few[..], b"junk"].concat());
    assert_eq!(recovery.verdict(), Verdict::Mendable);
    assert!(after == few && recovery.is_exhaustive());

    // With a manifest behind it that would be the last, if that could be told.
    let (mut many, _) = with_magics(&[("a", &[1; 40])], 40_000);
    let (later, len) = with_magics(&[("b", &[1; 40])], 0);
    many.extend_from_slice(&later[later.len() - len..]);
    many.extend_from_slice(b"junk");
    let mut options = options();
    options = options.limits(zt::Limits::default().with_overlap(0));
    let recovery = examine(Memory::new(many), &options).unwrap();
    assert_eq!(recovery.verdict(), Verdict::Doubtful);
    assert!(!recovery.is_exhaustive());
    let standings = recovery.others().iter().map(|other| other.standing);
    assert_eq!(standings.collect::<Vec<_>>(), [Standing::Doubtful; 2]);
}

/// A source whose read number N fails, alone or with all later ones.
struct Failing {
    bytes: Vec<u8>,
    at: usize,
    is_for_ever: bool,
    calls: AtomicUsize,
}

impl Source for Failing {
    fn byte_len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if call == self.at || self.is_for_ever && call > self.at {
            return Err(std::io::Error::other("a bad sector"));
        }
        Memory::new(&self.bytes[..]).read_at(offset, buf)
    }
}

/// What cannot be read is an error, or the reason why an object is lost: nothing else is taken for
/// the file, and nothing is proved that was not read.
#[test]
fn a_failed_read_is_an_error() {
    let file = written(WriteOptions::new(), &[("a", &[1; 40]), ("b", &[2; 10])]);
    let torn = [&file[..], &[3; 100]].concat();
    let generation = look(&torn).generation().unwrap().manifest;
    for bytes in [file, torn] {
        for is_for_ever in [false, true] {
            let (mut errors, mut at) = (0, 0);
            loop {
                let source = Arc::new(Failing {
                    bytes: bytes.clone(),
                    at,
                    is_for_ever,
                    calls: AtomicUsize::new(0),
                });
                let mut options = options();
                options = options.threads(1);
                match examine(Arc::clone(&source), &options) {
                    Err(error) => {
                        assert_eq!(error.code(), "io");
                        errors += 1;
                    }
                    Ok(recovery) if source.calls.load(Ordering::Relaxed) > at => {
                        assert_eq!(recovery.verdict(), Verdict::Damaged);
                        assert_eq!(recovery.generation().unwrap().manifest, generation);
                        let errors = recovery.objects().iter().flat_map(|o| &o.components);
                        let codes: Vec<_> = errors.filter_map(|c| c.error.as_ref()).collect();
                        assert!(!codes.is_empty() && codes.iter().all(|e| e.code() == "io"));
                    }
                    Ok(_) => break,
                }
                at += 1;
            }
            assert!(errors > 3, "{errors} errors of {at} reads");
            assert!(is_for_ever || at > errors, "a blob that cannot be read is lost");
        }
    }
}

#[test]
fn fake_trailers_behind_a_file_do_not_hide_it() {
    let file = written(WriteOptions::new(), &[("a", &[1; 40])]);
    let mut torn = file.clone();
    for size in 0..1000_u64 {
        torn.extend_from_slice(&[&[0xA2; 32][..], &size.to_le_bytes(), b"ZTEN1000"].concat());
    }
    // What the file ends with may be its last generation, damaged.
    let (recovery, after) = mended(&torn);
    assert_eq!(recovery.verdict(), Verdict::Doubtful);
    assert!(after == torn);
    torn.push(b'\n');
    let (recovery, after) = mended(&torn);
    assert_eq!(recovery.verdict(), Verdict::Mendable);
    assert!(after == file);
}

proptest! {
    /// Whatever is done to a file: nothing that is said to be proved is other bytes than were
    /// written, what is saved reads, and a file that was mended is sound.
    #[test]
    fn no_wrong_bytes_count_as_proved(
        lens in prop::collection::vec(0_usize..200, 0..6),
        has_digests in any::<bool>(),
        zstd in any::<bool>(),
        keep in 0.5_f64..1.2,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        tail in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut options = WriteOptions::new();
        if !has_digests {
            options = options.digest(None);
        }
        if zstd {
            options = options.zstd(1);
        }
        let values: Vec<Vec<i32>> = lens
            .iter()
            .zip(0..)
            .map(|(len, at)| vec![at; *len])
            .collect();
        let names: Vec<String> = (0..values.len()).map(|at| format!("n{at}")).collect();
        let originals: Vec<(&str, &[i32])> = names
            .iter()
            .zip(&values)
            .map(|(name, values)| (&name[..], &values[..]))
            .collect();
        let mut file = written(options, &originals);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let len = (file.len() as f64 * keep) as usize;
        file.truncate(len.min(file.len()));
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        file.extend_from_slice(&tail);
        let (recovery, after) = mended(&file);
        match recovery.verdict() {
            Verdict::Mendable => prop_assert_eq!(look(&after).verdict(), Verdict::Sound),
            _ => prop_assert!(after == file),
        }
        let Ok(bytes) = saved(&recovery) else {
            prop_assert!(recovery.generation().is_none());
            return Ok(());
        };
        let saved = File::from_bytes(bytes).unwrap();
        for object in recovery.objects().iter().filter(|o| o.fate == Fate::Proved) {
            let Ok(found) = saved.tensor(&object.name).and_then(|t| t.bytes("data").map(|b| b.to_vec())) else {
                continue;
            };
            let is_original = |values: &Vec<i32>| {
                values.iter().flat_map(|v| v.to_le_bytes()).eq(found.iter().copied())
            };
            prop_assert!(found.is_empty() || values.iter().any(is_original));
        }
    }
}
