//! HDF5: what its truths do not say.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use zt::{ErrorKind, File, Value, VerifyOptions};
use zt_conformance::corpus;

fn open(name: &str) -> zt::Result<File> {
    let path = corpus::folder().join("corpus/hdf5").join(name);
    zt_convert::open(path)
}

/// What unfolds to more than the file justifies is a limit, and not said to be damaged.
#[test]
fn links_that_unfold_without_end_are_beyond_a_limit() {
    let error = open("links_unfold.h5").unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, "structure-limit"), "{error}");
}

#[test]
fn a_metadata_cache_image_is_unsupported() {
    let error = open("cache_image.h5").unwrap_err();
    let found = (error.kind(), error.code());
    assert_eq!(found, (ErrorKind::Unsupported, "unsupported"), "{error}");
}

/// An index of chunks takes memory for as long as the file is open.
#[test]
fn indices_of_chunks_that_datasets_share_are_beyond_a_limit() {
    let file = open("shared_index.h5").unwrap();
    for _ in 0..2 {
        let report = file.verify(&VerifyOptions::default()).unwrap();
        let (read, problems) = (101 - report.problems.len(), report.problems);
        assert!((1..20).contains(&read), "{read} were read");
        let is_limit = |error: &zt::Error| error.kind() == ErrorKind::Limit;
        assert!(problems.iter().all(is_limit), "{problems:?}");
    }
}

/// The names of an enumeration are there once, and every dataset says where.
#[test]
fn names_of_values_that_datasets_share_are_kept_once() {
    for name in ["earliest_named_type.h5", "latest_named_type.h5"] {
        let file = open(name).unwrap();
        let (mut has_map, mut said) = (Vec::new(), Vec::new());
        for entry in file.entries() {
            let attributes = entry.object().unwrap().attributes.clone().unwrap();
            match attributes.get("hdf5.enum").unwrap() {
                Value::Map(names) => {
                    assert_eq!(names.len(), 600);
                    assert_eq!(names.get("label_0007"), Some(&Value::Unsigned(7)));
                    has_map.push(entry.name().to_owned());
                }
                other => said.push(other.as_str().unwrap().to_owned()),
            }
        }
        assert_eq!((has_map.len(), said.len()), (1, 199));
        assert!(said.iter().all(|said| *said == has_map[0]));
    }
}

/// An attribute of a dataset that is larger than a block of the heap, and one whose name a root
/// attribute has taken.
#[test]
fn attributes_are_those_that_were_written() {
    let file = open("attributes.h5").unwrap();
    let entries = file.entries();
    let entry = entries.iter().find(|entry| entry.name() == "w").unwrap();
    let attributes = entry.object().unwrap().attributes.clone().unwrap();
    let Some(Value::Array(large)) = attributes.get("larger") else {
        panic!("{attributes:?}");
    };
    assert_eq!(large.len(), 20_000);
    assert_eq!(large.last(), Some(&Value::Unsigned(19_999)));
    let said = |code: &str| {
        let warnings = file.warnings().into_iter();
        let found = warnings.filter(|warning| warning.code == code);
        let messages: Vec<String> = found.map(|warning| warning.message).collect();
        messages.join("\n")
    };
    let left_out = said("attribute");
    assert!(left_out.contains("\"reference\"") && left_out.contains("\"group@record\""));
    assert!(said("attribute-conflict").contains("\"group@x\""));
}

/// An option opens two opaque bytes as bf16. It does not help with three.
#[test]
fn opaque_pairs_of_bytes_are_bf16_on_request() {
    let mut options = zt_convert::InputOptions::default();
    options.ml_dtypes = vec![zt_convert::MlDtype::BFLOAT16];
    let path = corpus::folder().join("corpus/hdf5/opaque.h5");
    let input = zt_convert::Kinds::builtin().open(path, &options).unwrap();
    let tensor = input.file().tensor("unsaid").unwrap();
    assert_eq!(*tensor.bytes("data").unwrap(), [0xC0, 0x3F, 0x00, 0xC0]);
    assert_eq!(input.file().tensor("bytes").unwrap_err().code(), "not-found");
    let unasked = open("opaque.h5").unwrap();
    let error = unasked.tensor("unsaid").unwrap_err();
    assert_eq!(error.code(), "dtype");
    assert!(error.to_string().contains("bf16"), "{error}");
}

/// Shared attributes are the object's own: one in the header, and those in a heap.
#[test]
fn attributes_in_the_table_of_shared_messages_are_read() {
    let file = open("shared_messages.h5").unwrap();
    let tensor = file.tensor("w07").unwrap();
    let attributes = tensor.object().attributes.clone().unwrap();
    assert_eq!(attributes.get("own"), Some(&Value::Unsigned(7)));
    assert!(attributes.get("same").is_some());
}

/// Bytes in memory have no files beside them. A path has, and all of them are named.
#[test]
fn virtual_datasets_take_values_from_files_beside_their_own() {
    let path = corpus::folder().join("corpus/hdf5/latest_virtual.h5");
    let options = zt_convert::InputOptions::default();
    let input = zt_convert::Kinds::builtin().open(&path, &options).unwrap();
    let names = ["latest_virtual", "p0", "p1", "p2", "nested"];
    let has = |name: &str| {
        let mut paths = input.paths().iter();
        paths.any(|path| path.file_stem().is_some_and(|stem| stem == name))
    };
    assert!(names.into_iter().all(has), "{:?}", input.paths());
    let bytes = std::fs::read(&path).unwrap();
    let memory = zt_convert::open_source(zt::Memory::new(bytes)).unwrap();
    assert!(memory.tensor("here").is_ok());
    let error = memory.tensor("nested").unwrap_err();
    assert_eq!(error.code(), "unsupported", "{error}");
}

/// As h5py refuses them: a byte that no value depends on, in the blocks and tables of a heap of links.
#[test]
fn damaged_blocks_and_tables_of_heaps_are_refused() {
    let path = corpus::folder().join("corpus/foreign/h5/latest_groups.h5");
    let bytes = std::fs::read(path).unwrap();
    let mut tried = 0;
    for (at, magic) in bytes.windows(4).enumerate() {
        // A direct block of 512 bytes; the last entry of a table of four.
        let damaged = match magic {
            b"FHDB" => at + 511,
            b"FHIB" => at + 4 + 1 + 8 + 4 + 3 * 8,
            _ => continue,
        };
        let mut bytes = bytes.clone();
        bytes[damaged] ^= 1;
        // Of a group, or of the attributes of a dataset.
        let found = match zt_convert::open_source(zt::Memory::new(bytes)) {
            Ok(file) => file.verify(&VerifyOptions::default()).unwrap().problems,
            Err(error) => vec![error],
        };
        let found = found.iter().map(ToString::to_string).collect::<String>();
        assert!(found.contains("checksum"), "{at}: {found}");
        tried += 1;
    }
    assert_eq!(tried, 3);
}

/// As h5py: a link to a file beside its own is followed, and one that leads nowhere is legal.
#[test]
fn links_lead_to_files_beside_their_own() {
    let data = |name: &str| corpus::folder().join("data/hdf5_links").join(name);
    let options = zt_convert::InputOptions::default();
    let input = zt_convert::Kinds::builtin().open(data("master.h5"), &options).unwrap();
    for name in ["ext", "g/deep"] {
        let tensor = input.file().tensor(name).unwrap();
        assert_eq!(*tensor.values::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }
    assert!(input.paths().iter().any(|path| path.ends_with("src.h5")));
    let file = zt_convert::open(data("dangling.h5")).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["w"]);
    let warnings = file.warnings();
    assert!(warnings.iter().all(|warning| warning.code == "dangling-link"));
    assert_eq!(warnings.len(), 2);
    assert!(file.verify(&zt::VerifyOptions::new()).unwrap().is_ok());
    // Bytes in memory have no files beside them.
    let bytes = std::fs::read(data("master.h5")).unwrap();
    let memory = zt_convert::open_source(zt::Memory::new(bytes)).unwrap();
    assert_eq!(memory.tensor("ext").unwrap_err().code(), "unsupported");
}

/// Two files that lead to each other end.
#[test]
fn files_that_lead_to_each_other_end() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(corpus::folder().join("data/hdf5_links/master.h5")).unwrap();
    // Both links lead to the root of the file itself, by its name.
    let at = |text: &[u8]| bytes.windows(text.len()).position(|it| it == text);
    let mut own = bytes.clone();
    let mut from = 0;
    while let Some(found) = own[from..].windows(9).position(|it| it == b"src.h5\0/a") {
        own[from + found..from + found + 9].copy_from_slice(b"own.h5\0/\0");
        from += found + 9;
    }
    assert!(at(b"src.h5\0/a").is_some() && from > 0);
    let path = folder.path().join("own.h5");
    std::fs::write(&path, own).unwrap();
    let started = std::time::Instant::now();
    let opened = zt_convert::open(&path);
    assert!(started.elapsed().as_secs() < 20);
    if let Ok(file) = opened {
        assert!(file.entries().iter().any(|entry| entry.tensor().is_err()));
    }
}
