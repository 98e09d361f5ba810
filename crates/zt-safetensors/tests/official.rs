//! Tensors that the official crate writes, read by us and by it.
#![cfg(feature = "safetensors")]
#![allow(clippy::unwrap_used, reason = "tests")]

use safetensors::{SafeTensors as Official, serialize};
use zt::formats::{Complex, F8E4M3Fn};
use zt::{Coo, Dense, File, ToObject, WriteOptions};
use zt_foreign::{FileKind, InputOptions};
use zt_safetensors::{SafeTensors, TensorView};

fn file_of(objects: &[(&str, &dyn ToObject)]) -> File {
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().to_writer(&mut bytes).unwrap();
    for (name, object) in objects {
        writer.add(name, *object).unwrap();
    }
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

#[test]
fn tensors_go_through_the_official_writer_and_come_back() {
    let codes = [0x38u8, 0xb8].map(F8E4M3Fn::from_bits);
    let pairs = [Complex::new(1.0f32, -2.0)];
    let floats = Dense::from_slice(&[2, 2], &[1.5f32, -2.0, 0.0, 4.0]).unwrap();
    let file = file_of(&[
        ("floats", &floats),
        ("codes", &Dense::from_slice(&[2], &codes).unwrap()),
        ("pairs", &Dense::from_slice(&[1], &pairs).unwrap()),
        ("flag", &Dense::from_slice(&[], &[true]).unwrap()),
        ("none", &Dense::from_slice::<i64>(&[0, 3], &[]).unwrap()),
        ("sparse", &Coo::new([2, 2], &[7i32][..], &[1u64, 0][..]).unwrap()),
    ]);
    let views = file.names().map(|name| {
        let tensor = file.tensor(name).unwrap();
        (name, TensorView::new(&tensor).unwrap())
    });
    let bytes = serialize(views, None).unwrap();

    let theirs = Official::deserialize(&bytes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.safetensors");
    std::fs::write(&path, &bytes).unwrap();
    let ours = SafeTensors.open_path(&path, &InputOptions::new()).unwrap();
    for name in file.names() {
        let expected = file.tensor(name).unwrap().to_dense().unwrap();
        let found = ours.file().tensor(name).unwrap().to_dense().unwrap();
        assert_eq!(found, expected, "{name}");
        let found = theirs.tensor(name).unwrap();
        assert_eq!(found.data(), &*expected.elements().bytes, "{name}");
    }
}

#[test]
fn a_type_that_safetensors_lacks_is_refused() {
    let pairs = [Complex::new(1.0f64, -2.0)];
    let file = file_of(&[("w", &Dense::from_slice(&[1], &pairs).unwrap())]);
    let error = TensorView::new(&file.tensor("w").unwrap()).unwrap_err();
    assert_eq!((error.code(), error.object()), ("lossy", Some("w")));
}

#[test]
fn white_space_around_the_header_is_read_as_the_official_reader_reads_it() {
    const W: &str = r#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blank.safetensors");
    for (before, after, warns) in [
        ("", "", 0),
        ("", "   ", 0),
        ("   ", "", 1),
        ("\t\r\n", "", 1),
        ("", "\n", 1),
        (" ", " \n ", 1),
        ("\u{b}", "", 0),
        ("", "\0", 0),
        ("\u{feff}", "", 0),
    ] {
        let header = format!("{before}{W}{after}");
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(1.0f32.to_le_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let theirs = Official::deserialize(&bytes);
        let ours = SafeTensors.open_path(&path, &InputOptions::new());
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{header:?}");
        let Ok(ours) = ours else { continue };
        assert_eq!(ours.file().warnings().len(), warns, "{header:?}");
        let tensor = ours.file().tensor("w").unwrap();
        assert_eq!(*tensor.values::<f32>().unwrap(), [1.0], "{header:?}");
    }
}
