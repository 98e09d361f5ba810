//! Files that were cut, torn, damaged or meant to mislead, and what is left of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;
mod simulated;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use proptest::prelude::*;
use simulated::{Failure, Recorder, dense};
use zt::{
    Dense, DigestAlgorithm, Fate, File, Memory, Recovery, RepairOptions, Source, Standing, Storage,
    Verdict, WriteOptions, Writer, examine, repair_storage,
};

type Objects = BTreeMap<String, Vec<i32>>;

fn look(bytes: &[u8]) -> Recovery {
    examine(Memory::new(Vec::from(bytes)), &options()).unwrap()
}

/// The file after a repair in place.
fn mended(bytes: &[u8]) -> (Recovery, Vec<u8>) {
    let storage = Recorder::new(bytes, Failure::Never);
    let recovery = repair_storage(Arc::clone(&storage) as Arc<dyn Storage>, &options()).unwrap();
    let file = storage.with(|state| state.file.clone());
    (recovery, file)
}

fn options() -> RepairOptions<'static> {
    RepairOptions::default()
}

fn saved(recovery: &Recovery) -> zt::Result<Vec<u8>> {
    let (bytes, byte_len) = recovery.save_to(Vec::new(), None)?;
    assert_eq!(bytes.len() as u64, byte_len);
    Ok(bytes)
}

fn objects(bytes: &[u8]) -> Objects {
    simulated::values(bytes).unwrap()
}

fn written(options: WriteOptions, objects: &[(&str, &[i32])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for (name, values) in objects {
        writer.add(name, &dense(values)).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// A file whose manifest says something behind its objects, as they are ordered.
fn with_attributes(objects: &[(&str, &[i32])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let mut attributes = zt::Attributes::new();
    attributes.insert("step", 7_u64);
    writer.set_attributes(attributes);
    for (name, values) in objects {
        writer.add(name, &dense(values)).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// As it is after these edits.
fn edited(bytes: &[u8], edit: impl FnOnce(&mut zt::Editor)) -> Vec<u8> {
    let storage = Recorder::new(bytes, Failure::Never);
    let mut editor = WriteOptions::new()
        .edit_storage(Arc::clone(&storage) as Arc<dyn Storage>)
        .unwrap();
    edit(&mut editor);
    editor.commit().unwrap();
    storage.with(|state| state.file.clone())
}

/// A file and each of its generations, as long as it was then.
fn generations() -> (Vec<u8>, Vec<Objects>) {
    let first = written(WriteOptions::new(), &[("a", &[1; 40]), ("b", &[2; 10])]);
    let second = edited(&first, |edit| {
        edit.writer().add("c", &dense(&[3; 30])).unwrap();
    });
    let third = edited(&second, |edit| {
        edit.remove("b").unwrap();
        edit.rename("a", "first").unwrap();
    });
    let fourth = edited(&third, |edit| {
        edit.writer().add("d", &dense(&[4; 5])).unwrap();
    });
    let all = [&first, &second, &third, &fourth].map(|file| objects(file));
    (fourth, all.to_vec())
}

#[test]
fn a_sound_file_is_told_so_and_not_changed() {
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
    // What is left of something else, where nobody looks.
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
    let torn = [&first[..], &empty[8..], b"junk"].concat();
    let (recovery, after) = mended(&torn);
    assert_eq!(recovery.verdict(), Verdict::Doubtful);
    assert!(after == torn);
}

/// Old trailers are zeros: a file cut behind its last one is whole, one cut before it has no names.
#[test]
fn every_truncation_is_mended_or_told_to_be_lost() {
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
fn what_was_added_behind_a_file_is_taken_away() {
    let file = written(WriteOptions::new(), &[("a", &[1; 40])]);
    let header = &file[..8];
    for tail in [
        &b"\n"[..],
        &[0; 5000],
        header,
        b"ZTEN100",
        &file[..file.len() - 1],
    ] {
        let torn = [&file, tail].concat();
        let (recovery, after) = mended(&torn);
        assert_eq!(recovery.verdict(), Verdict::Mendable);
        let surplus = recovery.surplus().unwrap();
        assert_eq!(surplus.offset(), file.len() as u64);
        assert_eq!(surplus.byte_len(), tail.len() as u64);
        assert!(after == file);
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
    let fates: Vec<_> = recovery
        .objects()
        .iter()
        .map(|o| (&*o.name, o.fate))
        .collect();
    assert_eq!(fates, [("a", Fate::Proved), ("b", Fate::Lost)]);
    assert_eq!(objects(&saved(&recovery).unwrap()), objects(&first));

    let mut chosen = options();
    chosen.manifest = Some(older.manifest.offset());
    let storage = Recorder::new(&torn, Failure::Never);
    repair_storage(Arc::clone(&storage) as Arc<dyn Storage>, &chosen).unwrap();
    assert!(storage.with(|state| state.file == first));
    chosen.manifest = Some(older.manifest.offset() + 1);
    let error = examine(Memory::new(torn), &chosen).unwrap_err();
    assert_eq!(error.code(), "misuse");
}

/// A field of the root that no specification names comes first, being the shorter key.
#[test]
fn a_manifest_is_found_by_what_is_left_of_its_trailer() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file).unwrap();
    let mut extra = zt::Attributes::new();
    extra.insert("x", "y".repeat(300));
    writer.set_extra(extra);
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

/// What was added since the earlier generation is in the later one, of which nothing can be read.
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
    for (at, end) in [
        (0, len),
        (1, len),
        (20, len),
        (0, len - 1),
        (20, len - 7),
        (20, len - 8),
    ] {
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
        chosen.manifest = Some(older.manifest.offset());
        let storage = Recorder::new(&torn, Failure::Never);
        repair_storage(Arc::clone(&storage) as Arc<dyn Storage>, &chosen).unwrap();
        assert!(storage.with(|state| state.file == first));
    }
    // Of which a page did not reach the disk: an edit that did not end.
    let mut torn = second;
    torn[start..len - 16].fill(0);
    assert!(mended(&torn).1 == first);
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

/// Every byte of a file flipped, one after the other: what is said to be proved is what was written.
#[test]
fn whichever_byte_is_damaged_what_verifies_is_saved() {
    let original: &[(&str, &[i32])] = &[("a", &[1, 2, 3]), ("b", &[-4, 5]), ("c", &[0; 20])];
    let file = with_attributes(original);
    let open = File::from_bytes(file.clone()).unwrap();
    let spans: Vec<_> = original
        .iter()
        .map(|(name, _)| common::span_of(&open, name, "data"))
        .collect();
    let manifest = look(&file).generation().unwrap().manifest;
    let contents: Vec<&[i32]> = original.iter().map(|(_, values)| *values).collect();
    let (mut kept, mut lost) = (0, 0);
    for at in 0..file.len() {
        for bit in 0..8 {
            let mut torn = file.clone();
            torn[at] ^= 1 << bit;
            let (recovery, after) = mended(&torn);
            if after != torn {
                let mended = File::from_bytes(after).unwrap();
                assert_eq!(mended.entries().len(), original.len(), "{at}");
                assert!(mended.attributes().unwrap().is_some(), "{at}");
            }
            let blob = spans
                .iter()
                .position(|span| (span.offset()..span.end()).contains(&(at as u64)));
            if let Some(blob) = blob {
                // A damaged blob costs its object and no other.
                assert_eq!(recovery.verdict(), Verdict::Damaged);
                for (at, object) in recovery.objects().iter().enumerate() {
                    let expected = if at == blob { Fate::Lost } else { Fate::Proved };
                    assert_eq!(object.fate, expected);
                }
                let codes = recovery.objects()[blob].components.iter();
                let error = codes.map(|c| c.error.as_ref().unwrap().code());
                assert_eq!(error.collect::<Vec<_>>(), ["digest-mismatch"]);
            } else if (at as u64) < manifest.offset() || at as u64 >= manifest.end() {
                // Header, padding, trailer: nothing is lost.
                assert!(recovery.is_complete(), "{at}");
                assert!(matches!(
                    recovery.verdict(),
                    Verdict::Sound | Verdict::Mendable
                ));
            }
            let Ok(bytes) = saved(&recovery) else {
                assert!(
                    matches!(recovery.verdict(), Verdict::Lost | Verdict::Doubtful),
                    "{at}"
                );
                lost += 1;
                continue;
            };
            kept += 1;
            let saved = File::from_bytes(bytes).unwrap();
            assert!(
                saved
                    .verify(&zt::VerifyOptions::default())
                    .unwrap()
                    .problems
                    .iter()
                    .all(
                        // A name or a type that is another now is nothing that a digest could tell.
                        |problem| problem.code() != "digest-mismatch"
                    )
            );
            for object in recovery.objects() {
                if object.fate != Fate::Proved {
                    continue;
                }
                let tensor = saved.tensor(&object.name).unwrap();
                let bytes = tensor.bytes("data").unwrap();
                let is_original = |values: &&[i32]| {
                    let original = values.iter().flat_map(|value| value.to_le_bytes());
                    original.eq(bytes.iter().copied())
                };
                assert!(
                    contents.iter().any(is_original),
                    "{at}: proved, and not what was written"
                );
            }
        }
    }
    assert!(
        kept > lost,
        "{kept} files of which something was saved, {lost} without"
    );
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
        chosen.manifest = Some(manifest.offset());
        let storage = Recorder::new(&torn, Failure::Never);
        let recovery = repair_storage(Arc::clone(&storage) as Arc<dyn Storage>, &chosen).unwrap();
        assert_eq!(recovery.verdict(), Verdict::Damaged);
        assert!(storage.with(|state| state.file == torn));
        let names = objects(&saved(&recovery).unwrap()).into_keys();
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
    }
}

#[test]
fn without_digests_what_is_there_is_kept_and_said_to_be_unproved() {
    let file = written(
        WriteOptions::new().digest(None),
        &[("a", &[1; 40]), ("b", &[2; 9])],
    );
    let torn = [&file[..], b"junk"].concat();
    let (recovery, after) = mended(&torn);
    assert_eq!(recovery.verdict(), Verdict::Mendable);
    assert!(recovery.objects().iter().all(|o| o.fate == Fate::Unproved));
    assert!(after == file);
    assert_eq!(objects(&saved(&recovery).unwrap()), objects(&file));

    // Where frames have checksums, these tell.
    let options = WriteOptions::new().digest(None).zstd(1);
    let mut file = written(options, &[("a", &[1; 4000]), ("b", &[2; 9000])]);
    let open = File::from_bytes(file.clone()).unwrap();
    let span = common::span_of(&open, "b", "data");
    file[usize::try_from(span.end()).unwrap() - 1] ^= 1;
    let recovery = look(&file);
    let fates: Vec<_> = recovery.objects().iter().map(|o| o.fate).collect();
    assert_eq!(fates, [Fate::Unproved, Fate::Lost]);
}

/// Some of an object's components are no value of its format, and do not pass for one.
#[test]
fn what_is_left_of_an_object_is_kept_under_its_name() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.add("graph", &common::graph()).unwrap();
    writer.finish().unwrap();
    let open = File::from_bytes(bytes.clone()).unwrap();
    let span = common::span_of(&open, "graph", "indices");
    bytes[usize::try_from(span.offset()).unwrap()] ^= 1;
    let recovery = look(&bytes);
    assert_eq!(recovery.verdict(), Verdict::Damaged);
    let graph = &recovery.objects()[0];
    assert_eq!(graph.fate, Fate::Partial);
    let lost = graph.components.iter().filter(|c| c.fate == Fate::Lost);
    assert_eq!(lost.map(|c| &*c.role).collect::<Vec<_>>(), ["indices"]);

    let saved = File::from_bytes(saved(&recovery).unwrap()).unwrap();
    let partial = saved.tensor("graph").unwrap();
    assert_eq!(partial.format(), "zt.partial/1");
    assert_eq!(partial.shape(), [2, 3]);
    let format = partial
        .attributes()
        .get("zt.format")
        .and_then(|value| value.as_str());
    assert_eq!(format, Some("sparse_csr"));
    assert_eq!(*partial.bytes("values").unwrap(), [7, 0, 0, 0, 8, 0, 0, 0]);
    assert!(partial.bytes("indices").is_err());
    assert_eq!(partial.to_dense().unwrap_err().code(), "unsupported");
}

/// Its digest is right, and what it has that of are no frames: as much of it as a reader believes is
/// nothing, and the others are there.
#[test]
fn what_does_not_decode_is_lost_and_keeps_nothing_else_from_being_saved() {
    let options = WriteOptions::new().zstd(1);
    let mut file = written(options, &[("a", &[1; 4000]), ("b", &[0; 4000])]);
    let open = File::from_bytes(file.clone()).unwrap();
    let blob = open
        .tensor("b")
        .unwrap()
        .component("data")
        .unwrap()
        .blob
        .clone();
    assert!(blob.decoded_len.unwrap() > 64 * blob.span.byte_len());
    let start = usize::try_from(blob.span.offset()).unwrap();
    let end = usize::try_from(blob.span.end()).unwrap();
    file[start..end].fill(0xA5);
    let right = DigestAlgorithm::Crc32c.digest(&file[start..end]).unwrap();
    let [old, right] = [blob.digest.unwrap(), right].map(|digest| digest.to_string());
    let at = file
        .windows(old.len())
        .rposition(|text| text == old.as_bytes());
    let at = at.unwrap();
    file[at..at + old.len()].copy_from_slice(right.as_bytes());

    let recovery = look(&file);
    assert_eq!(recovery.verdict(), Verdict::Damaged);
    let fates = recovery.objects().iter().map(|o| o.fate);
    assert_eq!(fates.collect::<Vec<_>>(), [Fate::Proved, Fate::Lost]);
    let error = recovery.objects()[1].components[0].error.as_ref();
    assert_eq!(error.unwrap().object(), Some("b"));
    let saved = objects(&saved(&recovery).unwrap());
    assert_eq!(saved, Objects::from([("a".into(), vec![1; 4000])]));
}

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
        let inner = written(
            WriteOptions::new().digest(digest),
            &[("x", &[1; 40]), ("y", &[2; 10])],
        );
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
fn a_file_within_a_blob_is_told() {
    let inner = written(WriteOptions::new(), &[("x", &[1; 40]), ("y", &[2; 10])]);
    let file = holding(WriteOptions::new(), &[&[6; 500], &inner, &[6; 500]]);
    let cut = &file[..file.len() - 100];
    let recovery = look(cut);
    assert_eq!(recovery.verdict(), Verdict::Lost);
    let [nested] = recovery.others() else {
        panic!("{:?}", recovery.others());
    };
    let open = File::from_bytes(file).unwrap();
    let offset = common::span_of(&open, "blob 1", "data").offset();
    assert_eq!(nested.standing, Standing::Nested { offset });
}

/// A blob that holds a file with the same tensor as the file around it, at the same offset.
#[test]
fn what_fits_in_two_ways_is_left_to_the_caller() {
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
    chosen.manifest = Some(other.manifest.offset());
    let recovery = examine(Memory::new(Vec::from(cut)), &chosen).unwrap();
    assert_eq!(objects(&saved(&recovery).unwrap()), objects(&inner));
}

/// The `.zt` files in some folders of the corpus.
fn corpus(folders: &[&str]) -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus");
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| corpus.join(folder)).collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(extension) if extension == "zt" => files.push(path),
                _ => {}
            }
        }
    }
    files
}

/// Files of all layouts, as their own writers wrote them: found without a magic at their end.
#[test]
fn older_layouts_are_mended_and_saved() {
    let mut layouts = BTreeMap::new();
    for path in corpus(&["valid", "lenient", "writers"]) {
        let file = std::fs::read(&path).unwrap();
        let Ok(open) = File::from_bytes(file.clone()) else {
            continue;
        };
        let expected = look(&file);
        assert_eq!(expected.verdict(), Verdict::Sound, "{}", path.display());
        let proved = expected.generation().unwrap().proved;
        let bytes = saved(&expected).unwrap();
        let content = |file: &File| file.hash(&zt::HashOptions::default()).unwrap().content;
        let again = File::from_bytes(bytes).unwrap();
        assert_eq!(content(&open), content(&again), "{}", path.display());
        let layout = open.layout().unwrap();
        *layouts.entry(layout).or_insert(0) += 1;
        if proved == 0 {
            continue;
        }
        let (recovery, after) = mended(&[&file[..], &[0; 100]].concat());
        assert_eq!(recovery.verdict(), Verdict::Mendable, "{}", path.display());
        assert!(after == file, "{}", path.display());
        // Without its trailer a manifest is found by the keys that known writers begin with.
        if path.components().any(|part| part.as_os_str() == "lenient") {
            continue;
        }
        let (recovery, after) = mended(&file[..file.len() - 5]);
        assert_eq!(recovery.verdict(), Verdict::Mendable, "{}", path.display());
        assert!(after == file, "{}", path.display());
    }
    let all: Vec<_> = layouts.keys().copied().collect();
    assert_eq!(all, ["0.1", "1.0", "1.1", "1.2"], "{layouts:?}");
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

/// Trailers that each declare all that is before them, roots without end, manifests of overlapping
/// blobs: what is read stays in proportion to the file.
#[test]
fn however_many_manifests_there_seem_to_be_the_work_is_linear() {
    let fakes: [&dyn Fn(u64) -> Vec<u8>; 5] = [
        // Manifests that are sound, each of which every magic before it may be the header of.
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

/// A source of which one read fails, or every read from then on.
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
fn a_read_that_fails_is_told_and_misleads_nobody() {
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
                options.threads = Some(1);
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
            assert!(
                is_for_ever || at > errors,
                "a blob that cannot be read is lost"
            );
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
    fn nothing_wrong_is_said_to_be_proved(
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
