//! Files that zTensor's own crate wrote: their values, their shards, and what damage they show.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use zt::{Csr, DType, DigestAlgorithm, ErrorKind, File, Memory, VerifyOptions};
use zt_foreign::{FileKind, Input, InputOptions, Probe};
use zt_ztensor2::{ZT2, ZTensor2};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/foreign/zt2")
}

fn path(name: &str) -> PathBuf {
    folder().join(name)
}

fn opened(path: impl AsRef<Path>) -> Input {
    ZTensor2.open_path(path.as_ref(), &InputOptions::new()).unwrap()
}

fn from_bytes(bytes: Vec<u8>) -> zt::Result<File> {
    let source = Box::new(Memory::new(bytes));
    Ok(ZTensor2.open_source(source, &InputOptions::new())?.into_file())
}

/// The expectations of a file.
fn truth(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap()
}

#[test]
fn dense_objects_have_the_types_and_bytes_of_the_ground_truth() {
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "zt2") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        assert!(ZTensor2.recognise(&Probe::new(&Memory::new(bytes)).unwrap()).unwrap());
        let file = opened(&path).into_file();
        assert_eq!(file.kind(), ZT2);
        assert!(file.verify(&VerifyOptions::new()).unwrap().is_ok(), "{}", path.display());
        for (name, truth) in truth(&path)["objects"].as_object().unwrap() {
            let Some(dtype) = truth["dtype"].as_str() else {
                continue;
            };
            let tensor = file.tensor(name).unwrap();
            let shape: Vec<u64> = serde_json::from_value(truth["shape"].clone()).unwrap();
            let (format, logical_type) = match truth["type"].as_str() {
                Some("f4_e2m1fn") => ("zt.f4_e2m1fn/1", None),
                other => ("dense", other),
            };
            assert_eq!((tensor.shape(), tensor.format()), (&shape[..], format));
            let data = tensor.component("data").unwrap();
            assert_eq!(data.dtype, DType::from_name(dtype), "{name}");
            assert_eq!(data.logical_type.as_deref(), logical_type, "{name}");
            let bytes = tensor.bytes("data").unwrap();
            let digest = DigestAlgorithm::Sha256.digest(&bytes).unwrap().to_string();
            let expected = truth["sha256"].as_str().unwrap();
            assert_eq!(digest.split(':').next_back(), Some(expected), "{name}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

/// The first element is in the low half of its byte.
#[test]
fn fp4_and_e8m0_have_values() {
    const FP4: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let file = opened(path("types.zt2")).into_file();
    let values = |name: &str| {
        let tensor = file.tensor(name).unwrap();
        let dense = tensor.to_dense().unwrap().to_f32().unwrap();
        let values = dense.as_slice::<f32>().unwrap().to_vec();
        (tensor.bytes("data").unwrap().to_vec(), values)
    };
    let (bytes, found) = values("f4_e2m1");
    let codes = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
    let expected = codes.map(|code| {
        let value = FP4[usize::from(code & 7)];
        if code > 7 { -value } else { value }
    });
    assert_eq!(found, expected.take(7).collect::<Vec<_>>());
    let (bytes, found) = values("f8_e8m0");
    let expected = bytes.iter().map(|byte| (f32::from(*byte) - 127.0).exp2());
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn sparse_arrays_of_the_profiles_are_views_of_ours() {
    let file = opened(path("csr.zt2")).into_file();
    for name in ["u32", "u64", "encoded"] {
        let csr = file.tensor(name).unwrap().view::<Csr<'_>>().unwrap();
        assert_eq!((csr.indices(), csr.indptr()), (&[1, 3, 0, 3][..], &[0, 2, 2, 4][..]));
    }
    // Indices as narrow as these are allowed there, so strict verification finds nothing.
    let options = VerifyOptions::new().strict(true);
    assert!(file.verify(&options).unwrap().is_ok());
}

#[test]
fn a_broken_frame_of_the_file_is_refused_by_the_code_of_its_rule() {
    let good = fs::read(path("tied.zt2")).unwrap();
    let footer = good.len() - 40;
    let patched = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] ^= byte;
        bytes
    };
    let (malformed, unsupported) = (ErrorKind::Malformed, ErrorKind::Unsupported);
    for (bytes, kind, code) in [
        (good[..47].to_vec(), malformed, "truncated"),
        (good[..good.len() - 1].to_vec(), malformed, "truncated"),
        (patched(3, 1), malformed, "header"),
        (patched(footer, 1), malformed, "alignment"),
        (patched(footer + 6, 1), malformed, "manifest-size"),
        (patched(footer + 16, 1), malformed, "digest-mismatch"),
        (patched(footer + 24, 1), unsupported, "version"),
        (patched(footer - 1, 1), malformed, "digest-mismatch"),
    ] {
        let error = from_bytes(bytes).unwrap_err();
        assert_eq!((error.kind(), error.code()), (kind, code), "{error}");
    }
}

#[test]
fn a_changed_byte_of_a_blob_is_found_by_its_digest() {
    let mut bytes = fs::read(path("tied.zt2")).unwrap();
    bytes[4096] ^= 1;
    let file = from_bytes(bytes).unwrap();
    let error = file.tensor("flat").unwrap().bytes("data").unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
}

#[test]
fn a_model_without_its_shards_opens_and_names_the_missing_one() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("other.zt");
    fs::copy(path("sharded.zt2"), &root).unwrap();
    let file = opened(&root).into_file();
    assert_eq!(file.tensor("delta").unwrap().shape(), [4]);
    let error = file.tensor("weight").unwrap_err();
    let missing = folder.path().join("other-base.zt");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(&*missing)));
    // One of another size is another one.
    let base = fs::read(path("sharded-base.zt")).unwrap();
    fs::write(&missing, [&base[..], &[0]].concat()).unwrap();
    let file = opened(&root).into_file();
    assert_eq!(file.tensor("weight").unwrap_err().code(), "bounds");
    fs::write(&missing, base).unwrap();
    let input = opened(&root);
    assert_eq!(input.paths(), [root, missing]);
    assert!(input.file().verify(&VerifyOptions::default()).unwrap().is_ok());
    let from_memory = from_bytes(fs::read(path("sharded.zt2")).unwrap()).unwrap();
    assert_eq!(from_memory.tensor("weight").unwrap_err().code(), "unsupported");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_of_the_folder_is_followed_only_on_request() {
    let [folder, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let root = folder.path().join("m.zt");
    fs::copy(path("sharded.zt2"), &root).unwrap();
    let secret = outside.path().join("secret");
    fs::copy(path("sharded-base.zt"), &secret).unwrap();
    std::os::unix::fs::symlink(&secret, folder.path().join("m-base.zt")).unwrap();
    let file = opened(&root).into_file();
    assert_eq!(file.tensor("weight").unwrap_err().code(), "path");
    let options = InputOptions::new().follow_links(true);
    let input = ZTensor2.open_path(&root, &options).unwrap();
    assert!(input.file().tensor("weight").is_ok());
}

#[cfg(target_os = "linux")]
#[test]
fn shards_are_found_where_names_of_files_are_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let named = |name: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(name));
    let root = named(b"m\xFF.zt");
    fs::copy(path("sharded.zt2"), &root).unwrap();
    fs::copy(path("sharded-base.zt"), named(b"m\xFF-base.zt")).unwrap();
    let file = opened(&root).into_file();
    assert!(file.verify(&VerifyOptions::default()).unwrap().is_ok());
}
