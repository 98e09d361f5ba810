//! Outputs that a conversion writes, and files that it never replaces.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zt::foreign::AtomicFile;
use zt::{Dense, ErrorKind, OpenOptions, Result, Source, Writer};
use zt_convert::{ConvertOptions, Input, Kinds, Summary, ZT};

/// A folder with `a.zt`, which is open.
fn folder() -> (TempDir, PathBuf, Input) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zt");
    let mut writer = Writer::create(&path).unwrap();
    let values = vec![1.5f32; 500_000];
    writer.add("weight", &Dense::from_slice(&[500_000], &values).unwrap()).unwrap();
    writer.finish().unwrap();
    let input = zt_convert::Kinds::builtin().open(&path, OpenOptions::new()).unwrap();
    (folder, path, input)
}

fn to(out: &Path, input: &Input, overwrite: bool) -> Result<Summary> {
    let options = ConvertOptions::new(ZT).overwrite(overwrite);
    Kinds::builtin().convert_to_path(std::slice::from_ref(input), out, &options)
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_output_appears_whole() {
    let (folder, path, input) = folder();
    let out = folder.path().join("b.zt");
    let summary = to(&out, &input, false).unwrap();
    assert_eq!(summary.byte_len, fs::metadata(&out).unwrap().len());
    assert_eq!(fs::read(&out).unwrap(), fs::read(&path).unwrap());
    assert_eq!(names(&folder), ["a.zt", "b.zt"]);
}

#[test]
fn an_existing_output_is_replaced_only_on_request() {
    let (folder, _, input) = folder();
    let out = folder.path().join("b.zt");
    fs::write(&out, "mine").unwrap();
    let error = to(&out, &input, false).unwrap_err();
    assert_eq!((error.code(), error.kind()), ("overwrite", ErrorKind::Misuse));
    assert_eq!(error.path(), Some(out.as_path()));
    assert_eq!(fs::read(&out).unwrap(), b"mine");
    to(&out, &input, true).unwrap();
    assert!(zt_convert::open(&out).is_ok());
}

#[test]
fn an_input_is_never_overwritten() {
    let (folder, path, input) = folder();
    let before = fs::read(&path).unwrap();
    let mut outs = vec![path.clone(), folder.path().join(".").join("a.zt")];
    #[cfg(unix)]
    for (name, is_hard) in [("soft.zt", false), ("hard.zt", true)] {
        let link = folder.path().join(name);
        match is_hard {
            true => fs::hard_link(&path, &link).unwrap(),
            false => std::os::unix::fs::symlink(&path, &link).unwrap(),
        }
        outs.push(link);
    }
    outs.push(folder.path().to_owned().join("a.zt"));
    for out in outs {
        for overwrite in [false, true] {
            assert_eq!(to(&out, &input, overwrite).unwrap_err().code(), "overwrite");
        }
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Not every system replaces an open file.
#[test]
fn an_input_is_closed_before_it_is_replaced() {
    struct Opened {
        bytes: zt::Memory<Vec<u8>>,
        path: PathBuf,
    }
    impl Source for Opened {
        fn byte_len(&self) -> u64 {
            self.bytes.byte_len()
        }
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
            self.bytes.read_at(offset, buf)
        }
    }
    impl Drop for Opened {
        fn drop(&mut self) {
            assert_eq!(fs::read(&self.path).unwrap(), b"old");
        }
    }
    let (folder, path, _) = folder();
    let source = Opened { bytes: zt::Memory::new(fs::read(&path).unwrap()), path: path.clone() };
    fs::write(&path, "old").unwrap();
    let kinds = zt_convert::Kinds::builtin();
    let input = kinds.open_source(source, OpenOptions::new()).unwrap();
    let out = AtomicFile::create(&path).unwrap();
    let summary = kinds.replace(input, out, &ConvertOptions::new(ZT)).unwrap();
    assert_eq!(summary.byte_len, fs::metadata(&path).unwrap().len());
    assert_eq!(names(&folder), ["a.zt"]);
}

#[cfg(feature = "safetensors")]
#[test]
fn a_shard_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../conformance/corpus/foreign/safetensors/sharded");
    for entry in fs::read_dir(data).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, folder.path().join(from.file_name().unwrap())).unwrap();
    }
    let index = folder.path().join("model.safetensors.index.json");
    let input = zt_convert::Kinds::builtin().open(&index, OpenOptions::new()).unwrap();
    for out in ["model-00002-of-00003.safetensors", "model.safetensors.index.json"] {
        let error = to(&folder.path().join(out), &input, true).unwrap_err();
        assert_eq!(error.code(), "overwrite");
    }
    to(&folder.path().join("whole.zt"), &input, false).unwrap();
}

#[test]
fn a_failure_leaves_neither_output_nor_temporary_file() {
    let (folder, _, input) = folder();
    let out = folder.path().join("b.zt");
    let stop = |_: u64| ControlFlow::Break(());
    let mut options = ConvertOptions::new(ZT);
    options.progress = Some(zt::Progress::new(&stop));
    let inputs = [input];
    let error = Kinds::builtin().convert_to_path(&inputs, &out, &options).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Interrupted, "interrupted"));
    assert_eq!(names(&folder), ["a.zt"]);

    // An existing output stays.
    fs::write(&out, "mine").unwrap();
    assert!(Kinds::builtin().convert_to_path(&inputs, &out, &options.overwrite(true)).is_err());
    assert_eq!(fs::read(&out).unwrap(), b"mine");
    assert_eq!(names(&folder), ["a.zt", "b.zt"]);
}

#[test]
fn a_damaged_input_is_named_and_leaves_no_output() {
    let (folder, path, _) = folder();
    let mut bytes = fs::read(&path).unwrap();
    bytes[5000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let input = zt_convert::Kinds::builtin().open(&path, OpenOptions::new()).unwrap();
    let error = to(&folder.path().join("b.zt"), &input, false).unwrap_err();
    assert_eq!((error.code(), error.object()), ("digest-mismatch", Some("weight")));
    assert_eq!(error.path(), Some(path.as_path()));
    assert_eq!(names(&folder), ["a.zt"]);
}

#[test]
fn progress_counts_the_bytes_of_values() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let (folder, _, input) = folder();
    let total = AtomicU64::new(0);
    let count = |bytes: u64| {
        total.fetch_add(bytes, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let mut options = ConvertOptions::new(ZT);
    options.progress = Some(zt::Progress::new(&count));
    let out = folder.path().join("b.zt");
    let summary = Kinds::builtin().convert_to_path(&[input], out, &options).unwrap();
    assert_eq!((summary.bytes, total.into_inner()), (2_000_000, 2_000_000));
}

#[test]
fn a_missing_folder_is_an_io_error() {
    let (folder, _, input) = folder();
    let error = to(&folder.path().join("none/b.zt"), &input, false).unwrap_err();
    assert_eq!(error.code(), "io");
}

#[test]
fn kinds_are_recognised_by_bytes_and_not_by_names() {
    let (folder, path, _) = folder();
    let misnamed = folder.path().join("model.safetensors");
    fs::copy(&path, &misnamed).unwrap();
    let input = zt_convert::Kinds::builtin().open(&misnamed, OpenOptions::new()).unwrap();
    assert_eq!((input.file().kind(), input.paths()), (ZT, &[misnamed][..]));
}

#[test]
fn the_error_of_an_unknown_kind_shows_the_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    for (text, part) in [("Dear", r#""Dear""#), ("\0\u{1}", r#"\x00\x01"#)] {
        fs::write(&path, text).unwrap();
        let error = zt_convert::open(&path).unwrap_err();
        assert_eq!((error.code(), error.kind()), ("unknown-kind", ErrorKind::Unsupported));
        assert_eq!(error.path(), Some(path.as_path()));
        assert!(error.message().contains(part) && error.message().contains("zt"), "{error}");
    }
    let error = zt_convert::Kinds::builtin()
        .open(&path, zt_convert::InputOptions::from(&OpenOptions::new()).kind(ZT))
        .map(zt_convert::Input::into_file)
        .unwrap_err();
    assert_eq!(error.code(), "not-zt");
    // The kind of the extension says what is wrong.
    let named = folder.path().join("notes.zt");
    fs::copy(&path, &named).unwrap();
    assert_eq!(zt_convert::open(&named).unwrap_err().code(), "not-zt");
    let none = zt::foreign::Kind::new("none");
    assert_eq!(
        zt_convert::Kinds::builtin()
            .open(&path, zt_convert::InputOptions::from(&OpenOptions::new()).kind(none))
            .map(zt_convert::Input::into_file)
            .unwrap_err()
            .code(),
        "unsupported"
    );
}

#[test]
fn texts_other_than_an_index_have_no_kind() {
    for text in ["{}", r#"{"weights": {}}"#, r#"["weight_map"]"#, "{"] {
        assert_eq!(Kinds::builtin().detect(&zt::Memory::new(text)).unwrap(), None, "{text}");
    }
}

/// With `overwrite`, it does not matter when the file appeared.
#[test]
fn a_file_that_appears_meanwhile_is_replaced_only_on_request() {
    let (folder, _, input) = folder();
    let inputs = [input];
    for overwrite in [false, true] {
        let out = folder.path().join(format!("{overwrite}.zt"));
        let appear = |_: u64| {
            fs::write(&out, "theirs").unwrap();
            ControlFlow::Continue(())
        };
        let mut options = ConvertOptions::new(ZT);
        options.progress = Some(zt::Progress::new(&appear));
        let result = Kinds::builtin().convert_to_path(&inputs, &out, &options.overwrite(overwrite));
        assert_eq!(result.map_err(|error| error.code()).err(), (!overwrite).then_some("overwrite"));
        assert_eq!(fs::read(&out).unwrap() == b"theirs", !overwrite);
    }
}

/// A device is written to and not replaced.
#[cfg(unix)]
#[test]
fn a_device_is_written_to_without_overwrite() {
    let (_folder, _, input) = folder();
    let summary = to(Path::new("/dev/null"), &input, false).unwrap();
    assert!(summary.byte_len > 2_000_000);
}

/// The disk may be full when the last bytes are flushed.
#[test]
fn a_sink_that_fails_at_the_end_is_an_error() {
    struct Full {
        takes: bool,
    }
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            match self.takes {
                true => Ok(bytes.len()),
                false => Err(std::io::ErrorKind::StorageFull.into()),
            }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
    }
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.add("w", &Dense::from_slice(&[1], &[1.0f32]).unwrap()).unwrap();
    writer.finish().unwrap();
    let inputs = [Input::from(zt::File::from_bytes(bytes).unwrap())];
    for takes in [false, true] {
        for member in zt_convert::Kinds::builtin().iter().filter(|member| member.writer().is_some())
        {
            let mut options = ConvertOptions::new(member.kind());
            options = options.lossy(true);
            let error = Kinds::builtin().convert(&inputs, Full { takes }, &options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{}: {error}", member.kind());
        }
    }
}

#[cfg(unix)]
#[test]
fn other_names_of_a_replaced_file_keep_it_with_a_warning() {
    let (folder, _, input) = folder();
    let [out, other] = ["out.zt", "other.zt"].map(|name| folder.path().join(name));
    let warnings = || to(&out, &input, true).unwrap().warnings;
    assert_eq!(warnings(), []);
    fs::hard_link(&out, &other).unwrap();
    let parted = warnings();
    assert_eq!((parted.len(), parted[0].code), (1, "hard-links"));
    assert!(parted[0].message.contains("2 names"), "{}", parted[0]);
    assert_eq!(warnings(), []);
}
