//! Files that were cut, torn or added to, mended in place.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;
mod repaired;
mod simulated;

use std::sync::Arc;

use repaired::{
    Objects, edited, generations, look, mended, objects, options, saved, with_attributes, written,
};
use simulated::{Failure, Recorder, dense};
use zt::repair::{Fate, Standing, Verdict, examine, repair_storage};
use zt::{File, Memory, Storage, WriteOptions, Writer};
use zt_manifest::ManifestDigest;

#[test]
fn a_sound_file_is_reported_sound_and_not_changed() {
    let (file, generations) = generations();
    let files = [
        file,
        written(WriteOptions::new(), &[]),
        written(WriteOptions::new().digest(None), &[("a", &[1, 2])]),
        common::sample(WriteOptions::new().zstd(1)),
    ];
    for file in &files {
        let (recovery, after) = mended(file);
        assert_eq!(recovery.verdict(), Verdict::Sound);
        assert!(recovery.is_complete() && recovery.is_exhaustive());
        assert_eq!(recovery.surplus(), None);
        assert!(after == *file, "a sound file was changed");
    }
    assert_eq!(objects(&files[0]), generations[3]);
}

/// A manifest of no objects names no blob that would lie next to it.
#[test]
fn a_file_without_objects_is_what_readers_find() {
    let first = written(WriteOptions::new(), &[("a", &[1; 40])]);
    let second = edited(&first, |edit| edit.remove("a").unwrap());
    // As a loss of power leaves it that came before the old trailer was cleared.
    let mut kept = second.clone();
    kept[..first.len()].copy_from_slice(&first);
    // What is left of something else, in bytes that no reader looks at.
    let empty = written(WriteOptions::new(), &[]);
    let gap = [&first[..], b"ZTEN1000", &empty[8..]].concat();
    let within = [&first[..], b"ZTEN1000", &[0; 1000], &empty[8..]].concat();
    for file in [second, kept, gap, within] {
        assert_eq!(objects(&file), Objects::new());
        let (recovery, after) = mended(&file);
        assert_eq!(recovery.verdict(), Verdict::Sound);
        assert!(recovery.objects().is_empty());
        assert!(after == file, "went back over what readers find");
    }
    // Not found by readers, and next to a magic that ends a trailer: no file begins with that.
    let mut torn = [&first[..], &empty[8..], b"junk"].concat();
    let size = first.len() - 16;
    for byte in [0, 1] {
        let (recovery, after) = mended(&torn);
        assert_eq!(recovery.verdict(), Verdict::Doubtful);
        assert_eq!(recovery.others()[0].standing, Standing::Doubtful);
        assert!(after == torn);
        // Also where a byte of that trailer is another.
        torn[size + byte] ^= 1;
    }
    // Of two bytes nothing says that they were one.
    let recovery = look(&torn);
    assert_eq!(recovery.verdict(), Verdict::Doubtful);
    let offset = first.len() as u64 - 8;
    let standing = recovery.others()[0].standing;
    assert_eq!(standing, Standing::Nested { offset });
}

/// Old trailers are zeros: a file cut behind its last one is whole, one cut before it has no names.
#[test]
fn every_truncation_is_mended_or_lost() {
    let (file, generations) = generations();
    let recovery = look(&file);
    let manifest = recovery.generation().unwrap().manifest;
    for len in 0..file.len() {
        let (recovery, after) = mended(&file[..len]);
        if len as u64 >= manifest.end() {
            assert_eq!(recovery.verdict(), Verdict::Mendable, "{len}");
            assert!(after == file, "{len}: not the file");
        } else {
            assert_eq!(recovery.verdict(), Verdict::Lost, "{len}");
            assert!(after == file[..len], "{len}: changed");
            let error = saved(&recovery).unwrap_err();
            assert_eq!(Some(error.code()), recovery.refusal().map(zt::Error::code));
        }
    }
    assert_eq!(objects(&file), generations[3]);
}

#[test]
fn appended_bytes_are_removed() {
    let file = written(WriteOptions::new(), &[("a", &[1; 40])]);
    let header = &file[..8];
    for tail in [&b"\n"[..], &[0; 5000], header, b"ZTEN100", &file[..file.len() - 1]] {
        let torn = [&file, tail].concat();
        let (recovery, after) = mended(&torn);
        assert_eq!(recovery.verdict(), Verdict::Mendable);
        let surplus = recovery.surplus().unwrap();
        assert_eq!(surplus.offset(), file.len() as u64);
        assert_eq!(surplus.byte_len(), tail.len() as u64);
        assert!(after == file);
        let values = recovery.file().unwrap().tensor("a").unwrap();
        assert_eq!(values.to_vec::<i32>().unwrap(), [1; 40]);
    }
}

/// Behind the header or on the next place for a blob: farther off it is somebody else's.
#[test]
fn a_manifest_of_no_objects_lies_next_to_the_header() {
    let empty = written(WriteOptions::new(), &[]);
    for (gap, is_own) in [(0, true), (56, true), (63, true), (64, false)] {
        let file = [&empty[..8], &vec![0; gap], &empty[8..]].concat();
        let torn = [&file[..], b"junk"].concat();
        let (recovery, after) = mended(&torn);
        let expected = if is_own { Verdict::Mendable } else { Verdict::Doubtful };
        assert_eq!(recovery.verdict(), expected, "{gap}");
        assert!(after == if is_own { file } else { torn });
    }
}

#[test]
fn empty_components_are_complete_and_no_evidence() {
    for digest in [None, Some(zt::DigestAlgorithm::Crc32c)] {
        let file = written(WriteOptions::new().digest(digest), &[("a", &[])]);
        let recovery = look(&file);
        assert_eq!(recovery.objects()[0].fate, Fate::Proved);
        let generation = recovery.generation().unwrap();
        let counts = (generation.proved, generation.unproved, generation.refuted);
        assert_eq!(counts, (0, 0, 0));
    }
}

/// The last of several generations that are all there is the file's.
#[test]
fn the_last_whole_generation_is_chosen() {
    let first = written(WriteOptions::new(), &[("a", &[1; 40])]);
    let mut second = edited(&first, |edit| {
        edit.writer().add("b", &dense(&[2; 30])).unwrap();
    });
    // As a loss of power leaves it that came before the old trailer was cleared.
    second[..first.len()].copy_from_slice(&first);
    let torn = [&second[..], &[7; 100]].concat();
    let (recovery, after) = mended(&torn);
    assert_eq!(recovery.verdict(), Verdict::Mendable);
    assert!(after == second);

    // Its last bytes gone, it is still the last; a damaged blob of it is no reason to go back.
    let (_, after) = mended(&second[..second.len() - 3]);
    assert!(after == second);
    let file = File::from_bytes(second.clone()).unwrap();
    let span = common::span_of(&file, "b", "data");
    let mut torn = torn;
    torn[usize::try_from(span.offset()).unwrap()] ^= 1;
    let (recovery, after) = mended(&torn);
    assert_eq!(recovery.verdict(), Verdict::Damaged);
    assert!(after == torn, "only the caller goes back");
    let older = recovery.others().last().unwrap();
    assert_eq!(older.standing, Standing::Whole);
    assert_eq!(older.end, first.len() as u64);
    let fates: Vec<_> = recovery.objects().iter().map(|o| (&*o.name, o.fate)).collect();
    assert_eq!(fates, [("a", Fate::Proved), ("b", Fate::Lost)]);
    assert_eq!(objects(&saved(&recovery).unwrap()), objects(&first));

    let mut chosen = options();
    chosen = chosen.manifest(older.manifest.offset());
    let storage = Recorder::new(&torn, Failure::Never);
    repair_storage(Arc::clone(&storage) as Arc<dyn Storage>, &chosen).unwrap();
    assert!(storage.with(|state| state.file == first));
    // In a manifest, in the header, at a blob, at the end and nowhere.
    let len = torn.len() as u64;
    for offset in [older.manifest.offset() + 1, 0, 7, 64, len - 1, len, u64::MAX] {
        chosen = chosen.manifest(offset);
        let error = examine(Memory::new(torn.clone()), &chosen).unwrap_err();
        assert_eq!((error.code(), error.offset()), ("misuse", Some(offset)));
    }
    // What would be one reaches into the header.
    let manifest = look(&first).generation().unwrap().manifest;
    let start = usize::try_from(manifest.offset()).unwrap();
    chosen = chosen.manifest(3);
    let early = [&[0; 3][..], &first[start..]].concat();
    let error = examine(Memory::new(early), &chosen).unwrap_err();
    assert_eq!((error.code(), error.offset()), ("misuse", Some(3)));
}

/// A field of the root that no specification names comes first, being the shorter key.
#[test]
fn a_manifest_is_found_by_the_beginning_of_its_trailer() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file).unwrap();
    let mut extra = zt::Attributes::new();
    extra.insert("x", "y".repeat(300));
    writer.set_extra(extra).unwrap();
    writer.add("a", &dense(&[1; 40])).unwrap();
    writer.finish().unwrap();
    // Two bytes of the size are not zero.
    for kept in 2..16 {
        let cut = file.len() - 16 + kept;
        let (recovery, after) = mended(&file[..cut]);
        assert_eq!(recovery.verdict(), Verdict::Mendable, "{kept}");
        assert!(after == file, "{kept}");
    }
    assert_eq!(look(&file[..file.len() - 15]).verdict(), Verdict::Lost);

    // One that leads to the same place, and is wrong, does not hide the one that is right.
    let start = look(&file).generation().unwrap().manifest.offset();
    let mut wrong = [&file[..], &[7; 50]].concat();
    let size = wrong.len() as u64 - start;
    wrong.extend_from_slice(&size.to_le_bytes());
    wrong.extend_from_slice(b"ZTEN1000\n");
    let (recovery, after) = mended(&wrong);
    assert_eq!(recovery.verdict(), Verdict::Mendable);
    assert!(after == file);
}

/// Nor does one whose size reaches back into the header, or over the beginning of the file.
#[test]
fn a_trailer_without_a_possible_manifest_is_removed() {
    let file = written(WriteOptions::new(), &[("a", &[1; 40])]);
    for size in [file.len() - 7, file.len() - 4, file.len(), file.len() + 1] {
        let size = (size as u64).to_le_bytes();
        let torn = [&file[..], &size, b"ZTEN1000\n"].concat();
        let (recovery, after) = mended(&torn);
        assert_eq!(recovery.verdict(), Verdict::Mendable);
        assert!(after == file);
    }
}

/// What was added since the earlier generation is in the later one, and nothing of that can be read.
#[test]
fn a_last_manifest_that_does_not_decode_keeps_the_one_before_from_being_taken() {
    let first = written(WriteOptions::new(), &[("a", &[1; 40])]);
    let mut second = edited(&first, |edit| {
        edit.writer().add("b", &dense(&[2; 30])).unwrap();
    });
    let manifest = look(&second).generation().unwrap().manifest;
    let start = usize::try_from(manifest.offset()).unwrap();
    second[..first.len()].copy_from_slice(&first);
    let len = second.len();
    // Where the size alone is left and leads to nothing, it may be any number at the end of a blob.
    for (at, end) in [(0, len), (1, len), (20, len), (0, len - 1), (20, len - 7), (20, len - 8)] {
        let mut torn = second[..end].to_vec();
        torn[start + at] = 0xFF;
        let (recovery, after) = mended(&torn);
        assert_eq!(recovery.verdict(), Verdict::Doubtful, "{at} of {end}");
        assert!(after == torn);
        assert!(saved(&recovery).is_err());
        let [older] = recovery.others() else {
            panic!("{:?}", recovery.others());
        };
        assert_eq!(older.standing, Standing::Whole);
        let mut chosen = options();
        chosen = chosen.manifest(older.manifest.offset());
        let storage = Recorder::new(&torn, Failure::Never);
        repair_storage(Arc::clone(&storage) as Arc<dyn Storage>, &chosen).unwrap();
        assert!(storage.with(|state| state.file == first));
    }
    // Of which a page did not reach the disk: an edit that did not end.
    let mut torn = second;
    torn[start..len - 16].fill(0);
    assert!(mended(&torn).1 == first);
}

/// A page is what a disk keeps or loses, and lies where pages lie.
#[test]
fn a_manifest_without_one_of_its_pages_belongs_to_an_interrupted_edit() {
    let first = written(WriteOptions::new(), &[("a", &[1; 40])]);
    let mut second = edited(&first, |edit| {
        for at in 0..200 {
            edit.writer().add(&format!("{at}"), &dense(&[at])).unwrap();
        }
    });
    let manifest = look(&second).generation().unwrap().manifest;
    second[..first.len()].copy_from_slice(&first);
    let start = usize::try_from(manifest.offset()).unwrap();
    let page = start.next_multiple_of(4096);
    assert!(page + 2 * 4096 < second.len() && page > start);
    for (from, to, is_torn) in [
        (page, page + 4096, true),
        (start, page, true),
        (page - 1, page + 4095, false),
        (page + 1, page + 4097, false),
    ] {
        let mut torn = second.clone();
        torn[from..to].fill(0);
        let (recovery, after) = mended(&torn);
        let expected = if is_torn { Verdict::Mendable } else { Verdict::Doubtful };
        assert_eq!(recovery.verdict(), expected, "{from}..{to}");
        assert!(after == if is_torn { &first[..] } else { &torn });
    }
}

/// A copy of the manifest is the same generation, and as good as the first one.
#[test]
fn a_copy_of_the_trailer_is_the_generation_where_the_first_is_gone() {
    let file = written(WriteOptions::new(), &[("a", &[1; 40])]);
    let manifest = look(&file).generation().unwrap().manifest;
    let start = usize::try_from(manifest.offset()).unwrap();
    let trailer = &file[start..];
    let torn = [&file[..], &[9; 300], trailer, &[0; 40]].concat();
    let (recovery, after) = mended(&torn);
    let generation = recovery.generation().unwrap();
    assert_eq!((generation.copies, generation.manifest), (2, manifest));
    assert!(after == file, "cut behind the first");

    let mut torn = torn;
    torn[start] = 0;
    let (recovery, after) = mended(&torn);
    assert_eq!(recovery.verdict(), Verdict::Mendable);
    assert!(after == torn[..torn.len() - 40], "cut behind the copy");
    assert_eq!(objects(&after), objects(&file));
}

#[test]
fn a_header_that_is_gone_is_written_again() {
    let file = written(WriteOptions::new(), &[("a", &[1; 40])]);
    for damage in [0, 7] {
        let mut torn = file.clone();
        torn[damage] ^= 0x20;
        let (recovery, after) = mended(&torn);
        assert_eq!(recovery.verdict(), Verdict::Mendable);
        assert!(after == file);
    }
}

/// The other objects are there, and the file is not whole for that.
#[test]
fn an_object_whose_entry_cannot_be_read_keeps_the_file_from_being_mended() {
    let file = written(WriteOptions::new(), &[("a", &[1; 40]), ("b", &[2; 10])]);
    let dtype = b"\x63i32";
    let at = file.windows(dtype.len()).rposition(|text| text == dtype);
    let mut file = file;
    file[at.unwrap() + 1] = b'q';
    ManifestDigest::renew(&mut file);
    for torn in [&file[..], &[&file[..], b"junk"].concat()] {
        let (recovery, after) = mended(torn);
        assert_eq!(recovery.verdict(), Verdict::Damaged);
        assert!(after == torn);
        assert_eq!(recovery.generation().unwrap().refuted, 1);
        let fates = recovery.objects().iter().map(|o| o.fate);
        let lost = fates.filter(|fate| *fate == Fate::Lost).count();
        assert_eq!(lost, 1);
        assert_eq!(objects(&saved(&recovery).unwrap()).len(), 1);
    }
}

/// With a pair less in the map of objects, the item ends before the others, and decodes.
#[test]
fn a_manifest_that_ends_early_is_not_made_the_end_of_the_file() {
    let file = with_attributes(&[("a", &[1, 2]), ("b", &[3]), ("c", &[4; 9])]);
    let manifest = look(&file).generation().unwrap().manifest;
    let start = usize::try_from(manifest.offset()).unwrap();
    let key = b"\x67objects";
    let mut keys = file[start..].windows(key.len());
    let head = start + keys.position(|text| text == key).unwrap() + key.len();
    assert_eq!(file[head], 0xA3);
    for end in [file.len(), file.len() - 5, file.len() - 20] {
        let mut torn = file[..end].to_vec();
        torn[head] = 0xA2;
        let (recovery, after) = mended(&torn);
        assert_eq!(recovery.verdict(), Verdict::Doubtful);
        assert!(after == torn, "what lies behind the beginning is gone");

        let mut chosen = options();
        chosen = chosen.manifest(manifest.offset());
        let storage = Recorder::new(&torn, Failure::Never);
        let recovery = repair_storage(Arc::clone(&storage) as Arc<dyn Storage>, &chosen).unwrap();
        assert_eq!(recovery.verdict(), Verdict::Damaged);
        assert!(storage.with(|state| state.file == torn));
        let names = objects(&saved(&recovery).unwrap()).into_keys();
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
    }
}

/// A source that counts what is read of it, and knows the holes of the file.
#[cfg(target_os = "linux")]
struct CountedFile(zt::FileSource, std::sync::Arc<std::sync::atomic::AtomicU64>);

#[cfg(target_os = "linux")]
impl zt::Source for CountedFile {
    fn byte_len(&self) -> u64 {
        self.0.byte_len()
    }
    fn data_from(&self, offset: u64) -> u64 {
        self.0.data_from(offset)
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        let read = buf.len() as u64;
        self.1.fetch_add(read, std::sync::atomic::Ordering::Relaxed);
        self.0.read_at(offset, buf)
    }
}

/// Nothing of 8 TiB is read but what is stored.
#[test]
#[cfg(target_os = "linux")]
fn holes_of_a_sparse_file_are_not_read() {
    use std::os::unix::fs::FileExt;
    const LEN: u64 = 8 << 40;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    let mut writer = zt::Writer::create(&path).unwrap();
    let values = vec![1.0_f32; 1 << 18];
    let dense = zt::Dense::from_slice(&[1 << 18], &values).unwrap();
    writer.add("w", &dense).unwrap();
    writer.finish().unwrap();
    let whole = std::fs::read(&path).unwrap();

    let empty: &[u8] = &[];
    let places = [
        // Nothing; the whole file, and a hole behind it, before it and on both sides of it.
        (empty, 0, LEN),
        (&whole, 0, LEN),
        (&whole, LEN - whole.len() as u64, LEN),
        (&whole, LEN / 2 + 8, LEN),
    ];
    for (bytes, offset, byte_len) in places {
        let file = std::fs::File::create(&path).unwrap();
        if file.set_len(byte_len).is_err() {
            // A file system without files of this length.
            return;
        }
        file.write_all_at(bytes, offset).unwrap();
        let read = std::sync::Arc::default();
        let source = zt::FileSource::open(&path).unwrap();
        let source = CountedFile(source, std::sync::Arc::clone(&read));
        let recovery = zt::repair::examine(source, &Default::default()).unwrap();
        let read = read.load(std::sync::atomic::Ordering::Relaxed);
        assert!(read < 64 << 20, "{offset}: {read}");
        assert_eq!(recovery.objects().len(), usize::from(!bytes.is_empty() && offset == 0));
    }
}

/// The bytes of a hole are zeros, and their checksum follows from their number.
#[test]
#[cfg(target_os = "linux")]
fn a_hole_within_a_blob_is_proved_and_not_read() {
    use std::os::unix::fs::FileExt;
    const COUNT: usize = 24 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    for algorithm in [zt::DigestAlgorithm::Crc32c, zt::DigestAlgorithm::Sha256] {
        for is_damaged in [false, true] {
            let mut values = vec![0.0_f32; COUNT];
            values[COUNT / 2] = 1.0;
            let mut bytes = Vec::new();
            let options = zt::WriteOptions::new().digest(Some(algorithm));
            let mut writer = options.to_writer(&mut bytes).unwrap();
            let dense = zt::Dense::from_slice(&[COUNT as u64], &values).unwrap();
            writer.add("w", &dense).unwrap();
            writer.finish().unwrap();
            let file = std::fs::File::create(&path).unwrap();
            file.set_len(bytes.len() as u64).unwrap();
            for (at, piece) in bytes.chunks(4096).enumerate() {
                if piece.iter().any(|byte| *byte != 0) {
                    file.write_all_at(piece, at as u64 * 4096).unwrap();
                }
            }
            if is_damaged {
                file.write_all_at(&[1], COUNT as u64).unwrap();
            }
            let read = std::sync::Arc::default();
            let source = zt::FileSource::open(&path).unwrap();
            let source = CountedFile(source, std::sync::Arc::clone(&read));
            let recovery = zt::repair::examine(source, &Default::default()).unwrap();
            let read = read.load(std::sync::atomic::Ordering::Relaxed);
            assert!(read < 16 << 20, "{read}");
            let verdict = recovery.verdict();
            assert_eq!(verdict == Verdict::Damaged, is_damaged, "{verdict:?}");
        }
    }
}
