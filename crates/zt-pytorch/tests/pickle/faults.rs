//! Versions, keys and storages.

use std::io;

use zt::{ErrorKind, Memory, OpenOptions, Source};

use crate::draft::{Py, f32s, file, list, opened, opened_with, vector, with_keys};

fn object() -> Py {
    vector("FloatStorage", "f", 1)
}

#[test]
fn refuses_storages_that_the_object_does_not_have() {
    let sound = file(&object(), &[("f", 1, f32s(&[1.5]))]);
    let tensor = opened(sound.clone()).unwrap();
    assert_eq!(tensor.tensor("tensor").unwrap().to_vec::<f32>().unwrap(), [1.5]);
    // No elements, at the end of the file.
    let empty = opened(file(&vector("FloatStorage", "f", 0), &[("f", 0, vec![])])).unwrap();
    assert_eq!(empty.tensor("tensor").unwrap().shape(), [0]);
    let cut = |len: usize| sound[..sound.len() - len].to_vec();
    for bytes in [
        // Truncated elements, and truncated counts.
        cut(1),
        cut(5),
        cut(12),
        file(&object(), &[("f", 2, f32s(&[1.5, 2.5]))]),
        file(&object(), &[("f", -1, f32s(&[1.5]))]),
        file(&object(), &[("g", 1, f32s(&[1.5]))]),
        with_keys(&object(), &list([1])),
        with_keys(&object(), &Py::None),
    ] {
        assert_eq!(opened(bytes).unwrap_err().code(), "header");
    }
    // A missing storage is a fault of the tensor, not of the file.
    let file = opened(file(&object(), &[])).unwrap();
    assert_eq!(file.tensor("tensor").unwrap_err().code(), "missing-component");
}

/// Long pickles are read in longer and longer windows.
#[test]
fn a_pickle_may_be_longer_than_the_first_window() {
    let text = Py::Text("x".repeat(5 << 20));
    let items = vec![("text".into(), text), ("w".into(), object())];
    let bytes = file(&Py::Dict(items), &[("f", 1, f32s(&[2.5]))]);
    let file = opened(bytes.clone()).unwrap();
    assert_eq!(file.tensor("w").unwrap().to_vec::<f32>().unwrap(), [2.5]);
    let attributes = file.attributes().unwrap().unwrap();
    assert_eq!(attributes.get("text").unwrap().as_str().unwrap().len(), 5 << 20);
    let error = opened(bytes[..2 << 20].to_vec()).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Malformed, "pickle"));
}

/// Refuses reads of more than the first window.
struct Windowed(Vec<u8>);

impl Source for Windowed {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if buf.len() > 1 << 20 {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Memory::new(&self.0).read_at(offset, buf)
    }
}

/// More bytes would not make it valid.
#[test]
fn an_invalid_pickle_is_read_once() {
    let wrong = file(&Py::Code(vec![0xFF]), &[]);
    let bytes = [wrong, vec![0; 2 << 20]].concat();
    let options = OpenOptions::new();
    let error = opened_with(Windowed(bytes), &options).unwrap_err();
    assert_eq!(error.code(), "pickle", "{error}");
}

#[test]
fn the_magic_number_may_have_redundant_bytes() {
    let magic = b"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    let bytes = file(&object(), &[("f", 1, f32s(&[1.5]))]);
    let with = |number: &[u8]| {
        let len = u8::try_from(number.len()).unwrap();
        let behind = &bytes[2 + 2 + magic.len()..];
        opened([&[0x80, 3, 0x8a, len], number, behind].concat())
    };
    assert!(with(magic).is_ok());
    assert!(with(&[&magic[..], &[0]].concat()).is_ok());
    for number in [&[&magic[..], &[1]].concat()[..], &magic[..9], &[1; 10]] {
        assert_eq!(with(number).unwrap_err().code(), "header");
    }
}

/// A tar archive of the oldest versions.
fn tar() -> Vec<u8> {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/corpus");
    std::fs::read(format!("{corpus}/classes/tar.pt")).unwrap()
}

#[test]
fn a_truncated_tar_archive_is_refused() {
    let bytes = tar();
    assert_eq!(opened(bytes.clone()).unwrap().len(), 4);
    // Zeros may follow the last member, or may not.
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for len in (512..end).step_by(7) {
        let error = opened(bytes[..len].to_vec()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{len}: {error}");
    }
    assert!(opened(bytes[..end].to_vec()).is_ok());
}

#[test]
fn faults_of_a_tar_archive_are_errors_or_those_of_a_tensor() {
    let bytes = tar();
    let place = |name: &[u8]| bytes.windows(name.len()).position(|bytes| bytes == name).unwrap();
    let changed = |at: usize, new: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        opened(bytes)
    };
    let (tensors, storages) = (place(b"tensors\0"), place(b"storages\0"));
    for (at, new) in [
        (tensors, &b"others"[..]),
        (tensors + 124, b"x"),
        (tensors + 124, b"77777777777"),
        // The counts.
        (tensors + 512 + 3, &[9]),
        (tensors + 512 + 2, b"N."),
        (storages + 512 + 3, &[9]),
        (storages + 512 + 2, b"N."),
    ] {
        let error = changed(at, new).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{at}: {error}");
    }
    // The rank of the first tensor, its first size, and its offset.
    let rank = tensors
        + bytes[tensors..].windows(8).position(|word| word == [2, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    assert!(changed(rank, &[65]).is_err());
    assert!(changed(rank, &[0xFF; 4]).is_err());
    for (at, code) in [(rank + 8, "bounds"), (rank + 40, "bounds")] {
        let file = changed(at, &[100]).unwrap();
        assert_eq!(file.tensor("w").unwrap_err().code(), code);
        assert!(file.tensor("part").is_ok());
    }
}
