//! Values in files beside the model.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::draft::{
    FLOAT, INT64, UINT8, beside, code, elements, external, field, found, model, opened, opened_at,
    sparse, tensor,
};

#[test]
fn external_data_is_read_from_below_the_folder_of_the_model() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    write("data/w.bin", &[0, 1, 2, 3, 4, 5]);
    let read = |pairs: &[(&str, &str)]| {
        write("m.onnx", &beside("w", pairs));
        opened_at(folder.path().join("m.onnx")).unwrap()
    };
    let at = ("location", "./data/w.bin");
    for (pairs, values) in [
        (&[at, ("offset", "2"), ("length", "4")][..], [2, 3, 4, 5]),
        (&[("length", "4"), at], [0, 1, 2, 3]),
        (&[at, ("offset", "1"), ("unknown", "key")], [1, 2, 3, 4]),
        (&[at, (&"k".repeat(5000), "a key above the limit")], [0, 1, 2, 3]),
    ] {
        assert_eq!(elements::<u8>(&read(pairs), "w"), values);
    }
    let checked = read(&[at, ("checksum", "da39a3ee")]);
    assert_eq!(checked.warnings()[0].code, "unknown-digest");
    for (pairs, expected) in [
        (&[at, ("offset", "3")][..], "bounds"),
        (&[at, ("offset", "18446744073709551615")], "bounds"),
        (&[at, ("offset", "-1")], "header"),
        (&[at, ("offset", "0x1")], "header"),
        (&[at, ("length", "5")], "shape-size-mismatch"),
        (&[], "path"),
        (&[("location", "")], "path"),
        (&[("location", "data")], "path"),
        (&[("location", "none.bin")], "path"),
        (&[("location", "data/../data/w.bin")], "path"),
        (&[("location", "/etc/hostname")], "path"),
    ] {
        assert_eq!(code(&read(pairs), "w"), expected, "{pairs:?}");
    }
    let refused = read(&[("location", "w\\x.bin")]);
    assert_eq!(code(&refused, "w"), "path");
    let from_memory = opened(beside("w", &[at])).unwrap();
    assert_eq!(code(&from_memory, "w"), "unsupported");
}

/// The values, then the indices.
#[test]
fn indices_of_sparse_tensors_may_be_external() {
    let folder = TempDir::new().unwrap();
    let model_of = |found: &[i64], shape: &[u64], data_type: u64| {
        let values = [1f32, 2.0].map(f32::to_le_bytes).concat();
        let bytes = found.iter().flat_map(|it| it.to_le_bytes());
        let bytes: Vec<u8> = values.into_iter().chain(bytes).collect();
        fs::write(folder.path().join("sp.bin"), bytes).unwrap();
        let at = |offset| external(&[("location", "sp.bin"), ("offset", offset)]);
        let values = tensor("s", FLOAT, &[2], &[at("0")]);
        let indices = tensor("", data_type, shape, &[at("8")]);
        let model = model(&[field(15, sparse(&values, &indices, &[2, 3]))]);
        fs::write(folder.path().join("m.onnx"), model).unwrap();
        opened_at(folder.path().join("m.onnx")).unwrap()
    };
    for (found, shape) in [(&[1, 5][..], &[2][..]), (&[0, 1, 1, 2], &[2, 2])] {
        let file = model_of(found, shape, INT64);
        let dense = file.tensor("s").unwrap().to_dense().unwrap();
        assert_eq!(*dense.as_slice::<f32>().unwrap(), [0., 1., 0., 0., 0., 2.]);
    }
    assert_eq!(found(&model_of(&[1, 6], &[2], INT64)), "index-value");
    assert_eq!(found(&model_of(&[1], &[2], INT64)), "bounds");
    assert_eq!(found(&model_of(&[1, 5], &[2], FLOAT)), "header");
}

/// Some exporters write a file for every tensor.
#[test]
fn hundreds_of_external_files_are_read() {
    let folder = TempDir::new().unwrap();
    let mut tensors = Vec::new();
    for at in 0..200u8 {
        let name = format!("w{at}");
        fs::write(folder.path().join(&name), [at; 4]).unwrap();
        let values = external(&[("location", &name)]);
        tensors.push(field(5, tensor(&name, UINT8, &[4], &[values])));
    }
    fs::write(folder.path().join("m.onnx"), model(&tensors)).unwrap();
    let file = opened_at(folder.path().join("m.onnx")).unwrap();
    for at in 0..200u8 {
        let tensor = file.tensor(&format!("w{at}")).unwrap();
        assert_eq!(*tensor.values::<u8>().unwrap(), [at; 4]);
    }
}

/// Systems grant some hundreds of open files.
#[cfg(unix)]
#[test]
fn sixty_four_of_many_external_files_stay_open() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let names: Vec<String> = (0..66).map(|at| format!("w{at}")).collect();
    let mut tensors = Vec::new();
    for name in &names {
        fs::write(path(name), [1; 4]).unwrap();
        let values = external(&[("location", name)]);
        tensors.push(field(5, tensor(name, UINT8, &[4], &[values])));
    }
    fs::write(path("m.onnx"), model(&tensors)).unwrap();
    let file = opened_at(path("m.onnx")).unwrap();
    for (at, name) in names.iter().enumerate() {
        fs::remove_file(path(name)).unwrap();
        let tensor = file.tensor(name).unwrap();
        match tensor.bytes("data") {
            Ok(bytes) => assert!(at < 64 && *bytes == [1; 4], "{name}"),
            Err(error) => assert!(at >= 64 && error.kind() == zt::ErrorKind::Io, "{error}"),
        };
    }
}

/// The path of the model has no folder then.
#[cfg(unix)]
#[test]
fn a_model_in_the_current_folder_may_be_a_link() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("elsewhere")).unwrap();
    let model = beside("w", &[("location", "w.bin")]);
    fs::write(path("elsewhere/m"), model).unwrap();
    fs::write(path("w.bin"), [1, 2, 3, 4]).unwrap();
    std::os::unix::fs::symlink("elsewhere/m", path("m.onnx")).unwrap();
    // No other test here has a relative path.
    let before = std::env::current_dir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    let file = opened_at("m.onnx");
    std::env::set_current_dir(before).unwrap();
    let file = file.unwrap();
    assert_eq!(elements::<u8>(&file, "w"), [1, 2, 3, 4]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_within_the_folder_and_to_the_models_own_folder() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    for below in ["blobs", "snapshot", "elsewhere"] {
        fs::create_dir(path(below)).unwrap();
    }
    let link = |to: &str, from: &Path| std::os::unix::fs::symlink(to, from).unwrap();
    let model = beside("w", &[("location", "w.bin")]);
    fs::write(path("blobs/1f"), &model).unwrap();
    fs::write(path("blobs/2e"), [1, 2, 3, 4]).unwrap();
    // As in the cache of the Hugging Face Hub.
    link("../blobs/1f", &path("snapshot/m.onnx"));
    link("../blobs/2e", &path("snapshot/w.bin"));
    let file = opened_at(path("snapshot/m.onnx")).unwrap();
    assert_eq!(elements::<u8>(&file, "w"), [1, 2, 3, 4]);

    // The model is not a link, but its data is: an unpacked archive could contain such a link.
    fs::write(path("elsewhere/m.onnx"), &model).unwrap();
    link("../blobs/2e", &path("elsewhere/w.bin"));
    let file = opened_at(path("elsewhere/m.onnx")).unwrap();
    assert_eq!(code(&file, "w"), "path");
}
