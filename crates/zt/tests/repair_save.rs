//! Files that were damaged, and what is left of them in another file.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;
mod repaired;
mod simulated;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use repaired::{Objects, look, mended, objects, saved, with_attributes, written};
use zt::repair::{Fate, Verdict};
use zt::{DigestAlgorithm, File, WriteOptions, Writer};
use zt_manifest::ManifestDigest;

/// Every byte of a file flipped, one after the other: what is said to be proved is what was written.
#[test]
fn whichever_byte_is_damaged_what_verifies_is_saved() {
    let original: &[(&str, &[i32])] = &[("a", &[1, 2, 3]), ("b", &[-4, 5]), ("c", &[0; 20])];
    let file = with_attributes(original);
    let open = File::from_bytes(file.clone()).unwrap();
    let spans: Vec<_> =
        original.iter().map(|(name, _)| common::span_of(&open, name, "data")).collect();
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
            let blob =
                spans.iter().position(|span| (span.offset()..span.end()).contains(&(at as u64)));
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
                assert!(matches!(recovery.verdict(), Verdict::Sound | Verdict::Mendable));
            }
            let Ok(bytes) = saved(&recovery) else {
                assert!(matches!(recovery.verdict(), Verdict::Lost | Verdict::Doubtful), "{at}");
                lost += 1;
                continue;
            };
            kept += 1;
            let saved = File::from_bytes(bytes).unwrap();
            assert!(saved.verify(&zt::VerifyOptions::default()).unwrap().problems.iter().all(
                // A name or a type that is another now is nothing that a digest could tell.
                |problem| problem.code() != "digest-mismatch"
            ));
            for object in recovery.objects() {
                if object.fate != Fate::Proved {
                    continue;
                }
                let tensor = saved.tensor(&object.name).unwrap();
                // A role that is another now breaks the format, and its bytes are the same.
                let (role, _) = tensor.components().next().unwrap();
                let bytes = tensor.bytes(role).unwrap();
                let is_original = |values: &&[i32]| {
                    let original = values.iter().flat_map(|value| value.to_le_bytes());
                    original.eq(bytes.iter().copied())
                };
                assert!(contents.iter().any(is_original), "{at}: proved, and not what was written");
            }
        }
    }
    assert!(kept > lost, "something was saved of {kept} files, and nothing of {lost}");
}

#[test]
fn sound_objects_are_saved_as_they_are_stored() {
    let objects: &[(&str, &[i32])] = &[("a", &[1; 4000]), ("b", &[2; 9]), ("c", &[])];
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let file = written(options, objects);
        assert!(saved(&look(&file)).unwrap() == file);
    }
}

#[test]
fn sound_objects_are_saved_to_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    let file = written(WriteOptions::new(), &[("a", &[1; 40])]);
    let recovery = look(&[&file[..], b"junk"].concat());
    for replace in [false, true] {
        let byte_len = recovery.save(&path, replace, None).unwrap();
        assert_eq!(byte_len, file.len() as u64);
        assert!(std::fs::read(&path).unwrap() == file);
    }
    assert_eq!(recovery.save(&path, false, None).unwrap_err().code(), "overwrite");
}

#[test]
fn components_without_digests_are_saved_as_unproved() {
    let file = written(WriteOptions::new().digest(None), &[("a", &[1; 40]), ("b", &[2; 9])]);
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
fn partial_objects_keep_their_name() {
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
    let format = partial.attributes().get("zt.format").and_then(|value| value.as_str());
    assert_eq!(format, Some("sparse_csr"));
    assert_eq!(*partial.bytes("values").unwrap(), [7, 0, 0, 0, 8, 0, 0, 0]);
    assert!(partial.bytes("indices").is_err());
    assert_eq!(partial.to_dense().unwrap_err().code(), "unsupported");
}

/// The component has the right digest, but its bytes are no frames. A reader believes none of them, and
/// the other components are saved.
#[test]
fn what_is_left_is_read_also_where_there_is_no_room_to_say_what_it_was() {
    // What it was takes 10 bytes and 11.
    for (room, count) in [(0, 1), (20, 1), (21, 2)] {
        saves_the_rest_of_an_object_that_has_room(room, count);
    }
}

fn saves_the_rest_of_an_object_that_has_room(room: usize, count: usize) {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file).unwrap();
    let most = zt::Limits::default().attributes_len;
    // With the heads of a map, of a text of one byte and of a string: as many as there may be.
    let filler = zt::Value::Bytes(vec![0; most - 8 - room]);
    let mut graph = writer.begin("graph", &[2, 2], "sparse_xyz").unwrap();
    graph.set_attributes([("x", filler)].into()).unwrap();
    for (role, byte) in [("p", 1), ("q", 2)] {
        let mut component = graph.component(role, zt::DType::U8, None).unwrap();
        component.write_all(&[byte; 64]).unwrap();
        component.finish().unwrap();
    }
    graph.finish().unwrap();
    writer.finish().unwrap();
    let open = File::from_bytes(file.clone()).unwrap();
    let span = common::span_of(&open, "graph", "q");
    file[usize::try_from(span.offset()).unwrap()] ^= 1;
    let recovery = look(&file);
    assert_eq!(recovery.objects()[0].fate, Fate::Partial);
    let saved = File::from_bytes(saved(&recovery).unwrap()).unwrap();
    let partial = saved.tensor("graph").unwrap();
    assert_eq!(partial.attributes().len(), count, "{room}");
    assert_eq!(*partial.bytes("p").unwrap(), [1; 64]);
}

#[test]
fn undecodable_components_are_lost_and_all_others_saved() {
    let options = WriteOptions::new().zstd(1);
    let mut file = written(options, &[("a", &[1; 4000]), ("b", &[0; 4000])]);
    let open = File::from_bytes(file.clone()).unwrap();
    let blob = open.tensor("b").unwrap().component("data").unwrap().blob.clone();
    assert!(blob.decoded_len.unwrap() > 64 * blob.span.byte_len());
    let start = usize::try_from(blob.span.offset()).unwrap();
    let end = usize::try_from(blob.span.end()).unwrap();
    file[start..end].fill(0xA5);
    let right = DigestAlgorithm::Crc32c.digest(&file[start..end]).unwrap();
    let [old, right] = [blob.digest.unwrap(), right].map(|digest| digest.to_string());
    let at = file.windows(old.len()).rposition(|text| text == old.as_bytes());
    let at = at.unwrap();
    file[at..at + old.len()].copy_from_slice(right.as_bytes());
    ManifestDigest::renew(&mut file);

    let recovery = look(&file);
    assert_eq!(recovery.verdict(), Verdict::Damaged);
    let fates = recovery.objects().iter().map(|o| o.fate);
    assert_eq!(fates.collect::<Vec<_>>(), [Fate::Proved, Fate::Lost]);
    let error = recovery.objects()[1].components[0].error.as_ref();
    assert_eq!(error.unwrap().object(), Some("b"));
    let saved = objects(&saved(&recovery).unwrap());
    assert_eq!(saved, Objects::from([("a".into(), vec![1; 4000])]));
}

/// Elements that are stored the other way round are written anew, as often as they are stored: a
/// manifest gives them to any number of objects.
#[test]
fn big_endian_elements_that_objects_share_are_written_once() {
    let text = |text: &str| [&[0x60 | u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let uint = |value: u32| [&[0x1A][..], &value.to_be_bytes()].concat();
    let values: Vec<u32> = (0..1 << 14).collect();
    let blob: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
    let byte_len = u32::try_from(blob.len()).unwrap();
    let types = [
        ("uint32", 4, "big"),
        ("float32", 4, "big"),
        ("uint16", 2, "big"),
        ("uint32", 4, "little"),
    ];
    let digest = DigestAlgorithm::Crc32c.digest(&blob).unwrap().to_string();
    let object = |at: u32| {
        let (dtype, width, order) = types[at as usize % types.len()];
        let pairs = [
            ("name", text(&format!("{at:03}"))),
            ("offset", uint(64)),
            ("size", uint(byte_len)),
            ("dtype", text(dtype)),
            ("layout", text("dense")),
            ("shape", [vec![0x81], uint(byte_len / width)].concat()),
            ("encoding", text("raw")),
            ("data_endianness", text(order)),
            ("checksum", text(&digest)),
        ];
        let pairs = pairs.map(|(key, value)| [text(key), value].concat());
        [&[0xA9][..], &pairs.concat()].concat()
    };
    let objects: Vec<u8> = (0..100).flat_map(object).collect();
    let manifest = [&[0x98, 100][..], &objects].concat();
    let size = (manifest.len() as u64).to_le_bytes();
    let file = [b"ZTEN0001", &[0; 56][..], &blob, &manifest, &size].concat();

    let saved = saved(&look(&file)).unwrap();
    assert!(saved.len() < 3 * blob.len() + (100 << 10), "{}", saved.len());
    assert_eq!(look(&saved).generation().unwrap().proved, 100);
    let (before, after) = (File::from_bytes(file).unwrap(), File::from_bytes(saved).unwrap());
    assert_eq!(after.tensor("000").unwrap().to_vec::<u32>().unwrap(), values);
    assert_eq!(after.entries().len(), 100);
    for entry in after.entries() {
        let written = entry.tensor().unwrap().bytes("data").unwrap();
        let stored = before.tensor(entry.name()).unwrap();
        assert!(*written == *stored.bytes("data").unwrap(), "{}", entry.name());
    }
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
        if layout == "1.0" {
            // The magic of later layouts makes it no manifest of theirs.
            let (recovery, after) = mended(&[&file[..], b"ZTEN1000"].concat());
            assert_eq!(recovery.verdict(), Verdict::Mendable, "{}", path.display());
            assert!(after == file, "{}", path.display());
        }
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
