//! The kinds of files that this build knows, how a file is told to be of one, and what is said where
//! it is of none.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;

use zt::{ErrorKind, Memory, OpenOptions};
use zt_convert::{
    ConvertOptions, Input, Names, ZT, convert, detect, kind_of_extension, member, members,
    open_source,
};

#[test]
fn every_kind_is_found_by_its_name_and_by_its_extension() {
    for known in members() {
        let kind = known.kind();
        assert_eq!(member(kind.as_str()).unwrap().kind(), kind);
        for extension in known.extensions() {
            let path = format!("folder/model.{}", extension.to_ascii_uppercase());
            // Files of zTensor 2 end like ours, which are the ones that are written.
            let expected = if *extension == "zt" { ZT } else { kind };
            assert_eq!(kind_of_extension(path.as_ref()), Some(expected));
        }
        let options = ConvertOptions::new(kind);
        for debugged in [format!("{known:?}"), format!("{options:?}")] {
            assert!(debugged.contains(kind.as_str()), "{debugged}");
        }
    }
    assert!(member("punch-cards").is_none());
}

/// What is only read is refused before anything is written, and the message lists what can be.
#[test]
fn a_kind_that_is_not_written_is_refused() {
    for known in members() {
        let mut out = Vec::new();
        let result = convert(&[], &mut out, &ConvertOptions::new(known.kind()));
        if known.is_writable() {
            continue;
        }
        let error = result.unwrap_err();
        let found = (error.kind(), error.code());
        assert_eq!(found, (ErrorKind::Unsupported, "unsupported"));
        let written = members().iter().filter(|known| known.is_writable());
        for writable in written {
            assert!(error.to_string().contains(writable.kind().as_str()));
        }
        assert!(out.is_empty());
    }
}

#[test]
fn a_file_of_no_kind_is_said_to_be_none() {
    // An archive of no arrays, behind something else: alone, it is one of NumPy's.
    let archive = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let behind = [&b"#!/bin/sh\n"[..], archive].concat();
    for bytes in [&b""[..], b"Dear all,", &behind] {
        assert_eq!(detect(&Memory::new(bytes.to_vec())).unwrap(), None);
        let source = Memory::new(bytes.to_vec());
        let error = open_source(source, &OpenOptions::new()).unwrap_err();
        let found = (error.kind(), error.code());
        assert_eq!(found, (ErrorKind::Unsupported, "unknown-kind"));
        let said = error.to_string();
        assert!(
            members()
                .iter()
                .all(|known| said.contains(known.kind().as_str()))
        );
    }
}

/// A set is told by a key that may be anywhere in the first megabyte of its index.
#[cfg(feature = "safetensors")]
#[test]
fn an_index_is_known_wherever_its_map_begins() {
    const PIECE: usize = 64 << 10;
    for at in [10, PIECE - 5, PIECE, 3 * PIECE - 5] {
        let padding = "x".repeat(at);
        let index = format!(r#"{{"metadata":"{padding}","weight_map":{{"w":"a.safetensors"}}}}"#);
        let kind = detect(&Memory::new(index.clone().into_bytes())).unwrap();
        assert_eq!(kind, Some(zt_convert::SAFETENSORS));
        // Its shards lie beside it, and this one lies nowhere.
        let source = Memory::new(index.into_bytes());
        let error = open_source(source, &OpenOptions::new()).unwrap_err();
        assert_eq!(error.code(), "unsupported");
    }
}

#[test]
fn a_list_of_names_is_a_name_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.txt");
    fs::write(&path, "a.weight\r\n\n  b c \nd").unwrap();
    let names = Names::read(&path).unwrap();
    assert_eq!(names.iter().collect::<Vec<_>>(), ["a.weight", "b c", "d"]);

    // As editors on Windows begin a text; a second one is of the name.
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
    fs::File::create(&path)
        .unwrap()
        .set_len((64 << 20) + 1)
        .unwrap();
    assert_eq!(refused(), (ErrorKind::Misuse, "names"));
    fs::remove_file(&path).unwrap();
    assert_eq!(refused().0, ErrorKind::Io);
}

/// A file under the name of another kind is opened as what it is.
#[test]
fn inputs_say_what_they_are() {
    let mut bytes = Vec::new();
    zt::Writer::new(&mut bytes).unwrap().finish().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    fs::write(&path, bytes).unwrap();
    let input = Input::open(&path, &OpenOptions::new()).unwrap();
    assert_eq!(input.file().kind(), ZT);
}
