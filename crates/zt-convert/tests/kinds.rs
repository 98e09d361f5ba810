//! The kinds of this build, how files are recognised, and the errors of unknown kinds.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;

use zt::{ErrorKind, Memory, OpenOptions};
use zt_convert::{ConvertOptions, Kinds, Names, ZT};

#[test]
fn every_kind_is_found_by_its_name_and_by_its_extension() {
    let kinds = Kinds::builtin();
    for known in kinds.iter() {
        let kind = known.kind();
        assert_eq!(kinds.get(kind.as_str()).unwrap().kind(), kind);
        for extension in known.extensions() {
            let path = format!("folder/model.{}", extension.to_ascii_uppercase());
            // Files of zTensor 2 have the extension of `.zt`, which are written.
            let expected = if *extension == "zt" { ZT } else { kind };
            assert_eq!(kinds.of_extension(path.as_ref()), Some(expected));
        }
        let options = ConvertOptions::new(kind);
        for debugged in [format!("{kinds:?}"), format!("{options:?}")] {
            assert!(debugged.contains(kind.as_str()), "{debugged}");
        }
    }
    assert!(kinds.get("punch-cards").is_none());
}

/// The error comes before anything is written, and lists the kinds that can be written.
#[test]
fn a_kind_without_a_writer_is_refused_as_target() {
    for known in Kinds::builtin().iter() {
        let mut out = Vec::new();
        let result = Kinds::builtin().convert(&[], &mut out, &ConvertOptions::new(known.kind()));
        if known.writer().is_some() {
            continue;
        }
        let error = result.unwrap_err();
        let found = (error.kind(), error.code());
        assert_eq!(found, (ErrorKind::Unsupported, "unsupported"));
        let kinds = Kinds::builtin();
        let written = kinds.iter().filter(|known| known.writer().is_some());
        for writable in written {
            assert!(error.to_string().contains(writable.kind().as_str()));
        }
        assert!(out.is_empty());
    }
}

#[test]
fn a_file_of_no_kind_is_refused() {
    // An empty archive after other data. Alone, it would be an npz file.
    let archive = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let behind = [&b"#!/bin/sh\n"[..], archive].concat();
    for bytes in [&b"\0\x01\x02"[..], b"\xFF\xFEDear all,", &behind] {
        assert_eq!(Kinds::builtin().detect(&Memory::new(bytes.to_vec())).unwrap(), None);
        let source = Memory::new(bytes.to_vec());
        let error = zt_convert::open_source(source).unwrap_err();
        let found = (error.kind(), error.code());
        assert_eq!(found, (ErrorKind::Unsupported, "unknown-kind"));
        let message = error.to_string();
        assert!(Kinds::builtin().iter().all(|known| message.contains(known.kind().as_str())));
    }
}

/// The key that identifies an index may be anywhere in its first megabyte.
#[cfg(feature = "safetensors")]
#[test]
fn an_index_is_recognised_wherever_its_map_begins() {
    const PIECE: usize = 64 << 10;
    for at in [10, PIECE - 5, PIECE, 3 * PIECE - 5] {
        let padding = "x".repeat(at);
        let index = format!(r#"{{"metadata":"{padding}","weight_map":{{"w":"a.safetensors"}}}}"#);
        let kind = Kinds::builtin().detect(&Memory::new(index.clone().into_bytes())).unwrap();
        assert_eq!(kind, Some(zt_convert::SAFETENSORS));
        // Without a path, its shards cannot be found.
        let source = Memory::new(index.into_bytes());
        let error = zt_convert::open_source(source).unwrap_err();
        assert_eq!(error.code(), "unsupported");
    }
}

#[test]
fn a_list_of_names_has_a_name_on_each_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.txt");
    fs::write(&path, "a.weight\r\n\n  b c \nd").unwrap();
    let names = Names::read(&path).unwrap();
    assert_eq!(names.iter().collect::<Vec<_>>(), ["a.weight", "b c", "d"]);

    // Editors on Windows write a byte order mark. A second one is part of the name.
    fs::write(&path, "\u{FEFF}\u{FEFF}a\nb").unwrap();
    let names = Names::read(&path).unwrap();
    assert_eq!(names.iter().collect::<Vec<_>>(), ["\u{FEFF}a", "b"]);

    let refused = || {
        let error = Names::read(&path).unwrap_err();
        assert_eq!(error.path(), Some(path.as_path()));
        (error.kind(), error.code())
    };
    fs::write(&path, b"a\xFF").unwrap();
    assert_eq!(refused(), (ErrorKind::Misuse, "names"));
    let list = fs::File::create(&path).unwrap();
    list.set_len(64 << 20).unwrap();
    assert_eq!(Names::read(&path).unwrap().iter().len(), 1);
    list.set_len((64 << 20) + 1).unwrap();
    drop(list);
    assert_eq!(refused(), (ErrorKind::Misuse, "names"));
    fs::remove_file(&path).unwrap();
    assert_eq!(refused().0, ErrorKind::Io);
}

/// The extension of another kind is ignored.
#[test]
fn inputs_have_the_kind_of_their_bytes() {
    let mut bytes = Vec::new();
    zt::Writer::new(&mut bytes).unwrap().finish().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    fs::write(&path, bytes).unwrap();
    let input = zt_convert::Kinds::builtin().open(&path, OpenOptions::new()).unwrap();
    assert_eq!(input.file().kind(), ZT);
}

/// Other files have the magic of SLM1, too.
#[cfg(feature = "slm1")]
#[test]
fn a_file_of_slm1_has_its_version_and_a_header_of_its_length() {
    for (magic, version, len, is_one) in [
        (b"SLM1", 1u32, 108u32, true),
        (b"SLM1", 2, 108, false),
        (b"SLM1", 1, 107, false),
        (b"SLM2", 1, 108, false),
    ] {
        let head = [&magic[..], &version.to_le_bytes(), &len.to_le_bytes()].concat();
        let kind = Kinds::builtin().detect(&Memory::new(head)).unwrap();
        assert_eq!(kind == Some(zt_convert::SLM1), is_one, "{version} {len}");
    }
}

/// torch wrote such files before 0.1.10.
#[cfg(feature = "pytorch")]
#[test]
fn a_tar_of_torch_is_recognised_and_no_other_tar() {
    for (name, magic, is_ours) in [
        (&b"storages\0"[..], &b"ustar"[..], true),
        (b"model.bin\0", b"ustar", false),
        (b"storages\0", b"other", false),
    ] {
        let mut tar = vec![0; 1024];
        tar[..name.len()].copy_from_slice(name);
        tar[257..262].copy_from_slice(magic);
        let kind = Kinds::builtin().detect(&Memory::new(tar.clone())).unwrap();
        assert_eq!(kind, is_ours.then_some(zt_convert::PYTORCH));
        let error = zt_convert::open_source(Memory::new(tar)).unwrap_err();
        let expected = if is_ours { "header" } else { "unknown-kind" };
        assert_eq!(error.code(), expected);
    }
}

/// A file that is no archive, and has none after it, is read as a pickle.
#[cfg(feature = "pytorch")]
#[test]
fn a_file_opened_as_pytorch_is_a_pickle_or_an_archive() {
    let mut options = zt_convert::InputOptions::default();
    options.kind = Some(zt_convert::PYTORCH);
    let error =
        zt_convert::Kinds::builtin().open_source(Memory::new("\0\x01\x02"), &options).unwrap_err();
    assert_eq!(error.code(), "pickle");
}
