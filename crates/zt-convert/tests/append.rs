//! Objects of any files, added to an existing `.zt` file.
#![cfg(feature = "safetensors")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use zt::{
    Attributes, Dense, File, OpenOptions, Storage, Value, VerifyOptions, WriteOptions, Writer,
};
use zt_convert::{ConvertOptions, Input, Kinds, SAFETENSORS, Summary, ZT};

/// A `.zt` file with objects of one value each, and attributes.
fn file(folder: &Path, name: &str, values: &[(&str, f32)], attributes: &[(&str, u64)]) -> PathBuf {
    let path = folder.join(name);
    let mut writer = Writer::create(&path).unwrap();
    for (name, value) in values {
        let values = vec![*value; 2000];
        writer.add(name, &Dense::from_slice(&[2000], &values).unwrap()).unwrap();
    }
    if !attributes.is_empty() {
        writer.set_attributes(attributes.iter().copied().collect()).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn open(path: &Path) -> Input {
    zt_convert::Kinds::builtin().open(path, OpenOptions::new()).unwrap()
}

fn run(path: &Path, inputs: &[Input], options: &ConvertOptions<'_>) -> zt::Result<Summary> {
    let mut edit = options.write.clone().edit(path)?;
    let summary = Kinds::builtin().append(inputs, &mut edit, options)?;
    edit.commit()?;
    Ok(summary)
}

fn first_value(file: &File, name: &str) -> f32 {
    file.tensor(name).unwrap().to_vec::<f32>().unwrap()[0]
}

#[test]
fn objects_and_missing_attributes_are_added() {
    let dir = tempfile::tempdir().unwrap();
    let old = file(dir.path(), "old.zt", &[("a", 1.0)], &[("x", 1)]);
    let one = file(dir.path(), "one.zt", &[("b", 2.0), ("c", 3.0)], &[("y", 2)]);
    let other = dir.path().join("other.safetensors");
    let two = file(dir.path(), "two.zt", &[("d", 2.0)], &[]);
    let options = ConvertOptions::new(SAFETENSORS);
    zt_convert::Kinds::builtin().convert_to_path(&[open(&two)], &other, &options).unwrap();

    let before = std::fs::metadata(&old).unwrap().len();
    let summary = run(&old, &[open(&one), open(&other)], &ConvertOptions::new(ZT)).unwrap();
    assert_eq!((summary.objects, summary.bytes), (3, 24_000));
    assert_eq!(summary.byte_len, before);
    assert_eq!(summary.shared, 8000, "d has the bytes of b");
    let file = File::open(&old).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    for (name, value) in [("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 2.0)] {
        assert_eq!(first_value(&file, name), value);
    }
    let attributes = file.attributes().unwrap().unwrap();
    assert_eq!(attributes, Attributes::from([("x", 1u64), ("y", 2)]));
    let options = VerifyOptions::new().strict(true);
    assert!(file.verify(&options).unwrap().is_ok());
}

#[test]
fn the_file_is_unchanged_after_a_refusal() {
    let dir = tempfile::tempdir().unwrap();
    let old = file(dir.path(), "old.zt", &[("a", 1.0)], &[("x", 1)]);
    let before = std::fs::read(&old).unwrap();
    let same_name = file(dir.path(), "name.zt", &[("b", 1.0), ("a", 2.0)], &[]);
    let second = file(dir.path(), "second.zt", &[("b", 1.0)], &[]);
    let other = file(dir.path(), "b.zt", &[("b", 1.0)], &[]);
    let damaged = file(dir.path(), "damaged.zt", &[("b", 1.0), ("c", 1.0)], &[]);
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes[10_000] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();

    let options = ConvertOptions::new(ZT);
    let error_of = |inputs: &[&Path], options: &ConvertOptions<'_>| {
        let inputs: Vec<Input> = inputs.iter().map(|path| open(path)).collect();
        let error = run(&old, &inputs, options).unwrap_err();
        assert!(std::fs::read(&old).unwrap() == before, "{error}");
        (error.code(), error.object().map(str::to_owned))
    };
    let of_object = |code, name: &str| (code, Some(name.to_owned()));
    assert_eq!(error_of(&[&same_name], &options), of_object("duplicate-name", "a"));
    assert_eq!(error_of(&[&other, &second], &options), of_object("duplicate-name", "b"));
    assert_eq!(error_of(&[&old], &options), ("overwrite", None));
    assert_eq!(error_of(&[&damaged], &options), of_object("digest-mismatch", "c"));
    let mut stopped = ConvertOptions::new(ZT);
    stopped.progress = Some(zt::Progress::new(&|_| std::ops::ControlFlow::Break(())));
    assert_eq!(error_of(&[&other], &stopped).0, "interrupted");
}

#[test]
fn a_different_value_of_an_attribute_is_left_out_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let old = file(dir.path(), "old.zt", &[("a", 1.0)], &[("x", 1)]);
    let other = file(dir.path(), "b.zt", &[("b", 1.0)], &[("x", 2), ("y", 3)]);
    let summary = run(&old, &[open(&other)], &ConvertOptions::new(ZT)).unwrap();
    assert_eq!(summary.warnings.len(), 1);
    assert_eq!(summary.warnings[0].code, "lossy");
    let attributes = File::open(&old).unwrap().attributes().unwrap().unwrap();
    assert_eq!(attributes.get("x"), Some(&Value::from(1u64)));
    assert_eq!(attributes.get("y"), Some(&Value::from(3u64)));
}

#[test]
fn the_edit_decides_storage_and_the_options_decide_casts() {
    let dir = tempfile::tempdir().unwrap();
    let old = file(dir.path(), "old.zt", &[("a", 1.0)], &[]);
    let other = file(dir.path(), "b.zt", &[("b", 1.5)], &[]);
    let mut options = ConvertOptions::new(ZT);
    options.write = WriteOptions::new().zstd(3);
    options.dtype = Some(zt::FloatType::BF16);
    run(&old, &[open(&other)], &options).unwrap();
    let file = File::open(&old).unwrap();
    let data = |name: &str| file.tensor(name).unwrap().component("data").unwrap().clone();
    assert_eq!(data("a").dtype, Some(zt::DType::F32), "the first value stays");
    assert_eq!(data("b").dtype, Some(zt::DType::BF16));
    assert_eq!(data("b").blob.encoding, zt::Encoding::Zstd);

    let sparse = dir.path().join("sparse.zt");
    let mut writer = zt::Writer::create(&sparse).unwrap();
    let graph = zt::Csr::new([1, 2], &[7i32], vec![1], vec![0, 1]).unwrap();
    writer.add("graph", &graph).unwrap();
    writer.finish().unwrap();
    let mut options = ConvertOptions::new(ZT);
    options.dense = true;
    run(&old, &[open(&sparse)], &options).unwrap();
    let graph = File::open(&old).unwrap();
    assert_eq!(graph.tensor("graph").unwrap().to_vec::<i32>().unwrap(), [0, 7]);
}

#[test]
fn nothing_is_added_to_a_file_with_faults() {
    let dir = tempfile::tempdir().unwrap();
    let old = file(dir.path(), "old.zt", &[("a", 1.0), ("b", 1.0)], &[]);
    let mut bytes = std::fs::read(&old).unwrap();
    let at = bytes.windows(4).rposition(|it| it == b"\x63f32").unwrap();
    bytes[at..at + 4].copy_from_slice(b"\x63f99");
    zt::manifest::ManifestDigest::renew(&mut bytes);
    std::fs::write(&old, &bytes).unwrap();
    let other = file(dir.path(), "c.zt", &[("c", 1.0)], &[]);
    let options = ConvertOptions::new(ZT);
    let error = run(&old, &[open(&other)], &options).unwrap_err();
    assert_eq!((error.code(), error.object()), ("dtype", Some("b")));
    assert!(std::fs::read(&old).unwrap() == bytes);

    let mut edit = File::edit(&old).unwrap();
    edit.remove("b").unwrap();
    Kinds::builtin().append(&[open(&other)], &mut edit, &options).unwrap();
    edit.commit().unwrap();
    let file = File::open(&old).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["a", "c"]);
}

/// Spans of every component of an object.
fn spans(file: &File, name: &str) -> Vec<zt::Span> {
    let tensor = file.tensor(name).unwrap();
    let components = tensor.components();
    components.map(|(_, component)| component.blob.span).collect()
}

fn weights(path: &Path, name: &str, values: &[f32], options: WriteOptions) {
    let mut writer = options.create(path).unwrap();
    let shape = [values.len() as u64];
    let dense = Dense::from_slice(&shape, values).unwrap();
    writer.add(name, &dense).unwrap();
    writer.finish().unwrap();
}

/// Short components and long ones, whatever the storage and the digest are on either side.
#[test]
fn components_that_the_file_has_are_not_stored_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let storages = || {
        let new = WriteOptions::new;
        let sha256 = Some(zt::DigestAlgorithm::Sha256);
        vec![new(), new().digest(sha256), new().digest(None), new().zstd(1)]
    };
    for len in [40u16, 2000, 60_000] {
        let values: Vec<f32> = (0..len).map(f32::from).collect();
        let mut other = values.clone();
        other[usize::from(len) - 1] = -1.0;
        for (at, of_file) in storages().into_iter().enumerate() {
            for (of_input, storage) in storages().into_iter().enumerate() {
                let (old, new, third) = (path("old.zt"), path("new.zt"), path("third.zt"));
                weights(&old, "a", &values, of_file.clone());
                weights(&new, "b", &values, storage.clone());
                weights(&third, "c", &other, storage);
                let before = std::fs::metadata(&old).unwrap().len();
                let inputs = [open(&new), open(&third)];
                let summary = run(&old, &inputs, &ConvertOptions::new(ZT)).unwrap();
                // Short copies are found by their digests alone.
                let is_found = len >= 2000 || at < 2;
                let what = format!("{len} values, {at} and {of_input}");
                let shared = if is_found { u64::from(len) * 4 } else { 0 };
                assert_eq!(summary.shared, shared, "{what}");
                let file = File::open(&old).unwrap();
                assert_eq!(spans(&file, "a") == spans(&file, "b"), is_found, "{what}");
                assert_ne!(spans(&file, "a"), spans(&file, "c"), "{what}");
                let read = |name: &str| file.tensor(name).unwrap().to_vec::<f32>().unwrap();
                assert!(read("b") == values && read("c") == other);
                assert!(file.verify(&VerifyOptions::default()).unwrap().is_ok());
                if is_found && len == 60_000 && of_input < 3 {
                    assert!(file.byte_len() < before + 300_000, "{what}");
                }
            }
        }
    }
    let (old, new) = (path("old.zt"), path("new.zt"));
    weights(&old, "a", &[1.0; 5000], WriteOptions::new());
    weights(&new, "b", &[1.0; 5000], WriteOptions::new());
    let mut options = ConvertOptions::new(ZT);
    options.deduplicate = false;
    assert_eq!(run(&old, &[open(&new)], &options).unwrap().shared, 0);
}

/// Under the name that its object has now, another object may be.
#[test]
fn only_objects_that_an_edit_keeps_are_shared_with() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old.zt"), dir.path().join("new.zt"));
    let names = ["a", "b", "c", "d"];
    let mut writer = Writer::create(&old).unwrap();
    for (at, name) in names.into_iter().enumerate() {
        let values = [at as f32; 2000];
        writer.add(name, &Dense::from_slice(&[2000], &values).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let mut writer = Writer::create(&new).unwrap();
    for at in 0..4u8 {
        let values = [f32::from(at); 2000];
        let dense = Dense::from_slice(&[2000], &values).unwrap();
        writer.add(&format!("new {at}"), &dense).unwrap();
    }
    writer.finish().unwrap();

    let mut edit = File::edit(&old).unwrap();
    edit.remove("a").unwrap();
    edit.rename("b", "a").unwrap();
    edit.rename("c", "b").unwrap();
    assert_eq!(names.map(|name| edit.keeps(name)), [false, false, false, true]);
    assert!(!edit.keeps("new 0"));
    let summary =
        Kinds::builtin().append(&[open(&new)], &mut edit, &ConvertOptions::new(ZT)).unwrap();
    edit.commit().unwrap();
    assert_eq!(summary.shared, 8000);
    let file = File::open(&old).unwrap();
    assert_eq!(spans(&file, "new 3"), spans(&file, "d"));
    for at in 0..4u8 {
        assert_eq!(first_value(&file, &format!("new {at}")), f32::from(at));
    }
    assert!(file.verify(&VerifyOptions::default()).unwrap().is_ok());
}

/// No digest shows that a byte of the file is no bool: sharing it would hide the fault of the input.
#[test]
fn an_invalid_bool_is_not_shared() {
    let dir = tempfile::tempdir().unwrap();
    let bools = |name: &str, object: &str| {
        let path = dir.path().join(name);
        let mut writer = WriteOptions::new().digest(None).create(&path).unwrap();
        let dense = Dense::from_slice(&[5000], &[true; 5000]).unwrap();
        writer.add(object, &dense).unwrap();
        writer.finish().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[64 + 4999] = 2;
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let (old, new) = (bools("old.zt", "a"), bools("new.zt", "b"));
    let error = run(&old, &[open(&new)], &ConvertOptions::new(ZT)).unwrap_err();
    assert_eq!((error.code(), error.object()), ("bool-value", Some("b")));
}

/// A copy that has changed is not shared with, and the input's bytes are written.
#[test]
fn a_damaged_component_of_the_file_is_not_shared() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old.zt"), dir.path().join("new.zt"));
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        weights(&old, "a", &[1.0; 9000], options.clone());
        weights(&new, "b", &[1.0; 9000], options);
        let mut bytes = std::fs::read(&old).unwrap();
        bytes[70] ^= 1;
        std::fs::write(&old, bytes).unwrap();
        let summary = run(&old, &[open(&new)], &ConvertOptions::new(ZT)).unwrap();
        assert_eq!(summary.shared, 0);
        assert_eq!(first_value(&File::open(&old).unwrap(), "b"), 1.0);
    }
}

/// A file in memory that counts the bytes that are read.
#[derive(Default)]
struct Counted(Mutex<Vec<u8>>, AtomicU64);

impl Storage for Counted {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.1.fetch_add(buf.len() as u64, Ordering::Relaxed);
        let (bytes, start) = (self.0.lock().unwrap(), usize::try_from(offset).unwrap());
        let found = bytes.get(start..).and_then(|rest| rest.get(..buf.len()));
        buf.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, new: &[u8]) -> io::Result<()> {
        let (mut bytes, start) = (self.0.lock().unwrap(), usize::try_from(offset).unwrap());
        let end = start + new.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(new);
        Ok(())
    }

    fn set_len(&self, byte_len: u64) -> io::Result<()> {
        let byte_len = usize::try_from(byte_len).unwrap();
        self.0.lock().unwrap().resize(byte_len, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Digests exclude components without a read; without them, the first bytes of each are read once.
#[test]
fn of_the_file_no_more_is_read_than_tells_its_components_apart() {
    const COUNT: u16 = 50;
    const LEN: u64 = 400_000;
    let weights = |seed: u16| -> Vec<f32> {
        let values = (0..100_000u32).map(|at| (at ^ u32::from(seed) << 5) as f32);
        values.collect()
    };
    let model = |name: &str, seeds: std::ops::Range<u16>, options: WriteOptions| {
        let mut bytes = Vec::new();
        let mut writer = options.to_writer(&mut bytes).unwrap();
        for seed in seeds {
            let weights = weights(seed);
            let dense = Dense::from_slice(&[100_000], &weights).unwrap();
            writer.add(&format!("{name}{seed}"), &dense).unwrap();
        }
        writer.finish().unwrap();
        bytes
    };
    let plain = WriteOptions::new;
    let nothing = 100_000;
    // A reader fetches 256 KiB at a time.
    let samples = u64::from(COUNT) * (256 << 10) + nothing;
    for (options, seeds, most) in [
        (plain(), COUNT..COUNT + 4, nothing),
        (plain().digest(None), COUNT..COUNT + 4, samples),
        (plain(), 0..4, 4 * LEN + nothing),
        (plain().digest(None), 0..4, 4 * LEN + samples),
    ] {
        let storage = Arc::new(Counted::default());
        *storage.0.lock().unwrap() = model("old", 0..COUNT, plain());
        let input = Input::from(File::from_bytes(model("new", seeds.clone(), options)).unwrap());
        let edit = WriteOptions::new().edit_storage(Arc::clone(&storage) as Arc<dyn Storage>);
        let mut edit = edit.unwrap();
        storage.1.store(0, Ordering::Relaxed);
        let summary =
            Kinds::builtin().append(&[input], &mut edit, &ConvertOptions::new(ZT)).unwrap();
        let read = storage.1.load(Ordering::Relaxed);
        assert!(read <= most, "{read} of {most}");
        let shared = if seeds.start == 0 { 4 * LEN } else { 0 };
        assert_eq!(summary.shared, shared);
        edit.commit().unwrap();
    }
}
