//! Objects of any files, added to an existing `.zt` file.
#![cfg(feature = "safetensors")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};

use zt::{Attributes, Dense, File, OpenOptions, Value, VerifyOptions, WriteOptions, Writer};
use zt_convert::{ConvertOptions, Input, SAFETENSORS, Summary, ZT, append};

/// A `.zt` file with objects of one value each, and attributes.
fn file(folder: &Path, name: &str, values: &[(&str, f32)], attributes: &[(&str, u64)]) -> PathBuf {
    let path = folder.join(name);
    let mut writer = Writer::create(&path).unwrap();
    for (name, value) in values {
        let values = vec![*value; 2000];
        writer
            .add(name, &Dense::from_slice(&[2000], &values).unwrap())
            .unwrap();
    }
    if !attributes.is_empty() {
        writer.set_attributes(attributes.iter().copied().collect());
    }
    writer.finish().unwrap();
    path
}

fn open(path: &Path) -> Input {
    zt_convert::Kinds::builtin()
        .open(path, OpenOptions::new())
        .unwrap()
}

fn run(path: &Path, inputs: &[Input], options: &ConvertOptions<'_>) -> zt::Result<Summary> {
    let mut edit = options.write.clone().edit(path)?;
    let summary = append(inputs, &mut edit, options)?;
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
    zt_convert::convert_to_path(
        &[open(&two)],
        &other,
        false,
        &ConvertOptions::new(SAFETENSORS),
    )
    .unwrap();

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
    let again = file(dir.path(), "again.zt", &[("b", 1.0)], &[]);
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
    assert_eq!(
        error_of(&[&same_name], &options),
        of_object("duplicate-name", "a")
    );
    assert_eq!(
        error_of(&[&other, &again], &options),
        of_object("duplicate-name", "b")
    );
    assert_eq!(error_of(&[&old], &options), ("overwrite", None));
    assert_eq!(
        error_of(&[&damaged], &options),
        of_object("digest-mismatch", "c")
    );
    let mut stopped = ConvertOptions::new(ZT);
    stopped.progress = Some(zt::Progress::new(&|_| std::ops::ControlFlow::Break(())));
    assert_eq!(error_of(&[&other], &stopped).0, "interrupted");
    let mut cast = ConvertOptions::new(ZT);
    cast.dtype = Some(zt::DType::I8);
    assert_eq!(error_of(&[&other], &cast).0, "misuse");
}

#[test]
fn a_different_value_is_left_out_if_losses_are_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let old = file(dir.path(), "old.zt", &[("a", 1.0)], &[("x", 1)]);
    let other = file(dir.path(), "b.zt", &[("b", 1.0)], &[("x", 2), ("y", 3)]);
    let mut options = ConvertOptions::new(ZT);
    options = options.lossy(true);
    let summary = run(&old, &[open(&other)], &options).unwrap();
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
    options.dtype = Some(zt::DType::BF16);
    run(&old, &[open(&other)], &options).unwrap();
    let file = File::open(&old).unwrap();
    let data = |name: &str| {
        file.tensor(name)
            .unwrap()
            .component("data")
            .unwrap()
            .clone()
    };
    assert_eq!(
        data("a").dtype,
        Some(zt::DType::F32),
        "the first value stays"
    );
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
    assert_eq!(
        graph.tensor("graph").unwrap().to_vec::<i32>().unwrap(),
        [0, 7]
    );
}

#[test]
fn nothing_is_added_to_a_file_with_faults() {
    let dir = tempfile::tempdir().unwrap();
    let old = file(dir.path(), "old.zt", &[("a", 1.0), ("b", 1.0)], &[]);
    let mut bytes = std::fs::read(&old).unwrap();
    let at = bytes.windows(4).rposition(|it| it == b"\x63f32").unwrap();
    bytes[at..at + 4].copy_from_slice(b"\x63f99");
    std::fs::write(&old, &bytes).unwrap();
    let other = file(dir.path(), "c.zt", &[("c", 1.0)], &[]);
    let options = ConvertOptions::new(ZT);
    let error = run(&old, &[open(&other)], &options).unwrap_err();
    assert_eq!((error.code(), error.object()), ("dtype", Some("b")));
    assert!(std::fs::read(&old).unwrap() == bytes);

    let mut edit = File::edit(&old).unwrap();
    edit.remove("b").unwrap();
    append(&[open(&other)], &mut edit, &options).unwrap();
    edit.commit().unwrap();
    let file = File::open(&old).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["a", "c"]);
}
