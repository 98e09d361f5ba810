//! Files that zTensor's own crate wrote: their values, their shards, and what damage they show.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use zt::{Attributes, Csr, DType, DigestAlgorithm, ErrorKind, File, Memory, Value, VerifyOptions};
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

/// The attribute of a file without objects that has this CBOR.
fn attribute(value: &[u8]) -> zt::Result<Value> {
    const MAGIC: &[u8] = b"\x89ZT2\r\n\x1A\n";
    let manifest = [b"\xA2\x67objects\xA0\x6Aattributes\xA1\x61k", value].concat();
    let mut bytes = [MAGIC, &[0; 4088], &manifest].concat();
    let hash = twox_hash::XxHash3_64::oneshot(&manifest);
    let place = [4096, manifest.len() as u64, hash].map(u64::to_le_bytes).concat();
    bytes.extend([&place[..], &[2, 0, 0, 0, 0, 0, 0, 0], MAGIC].concat());
    let attributes = from_bytes(bytes)?.attributes()?.unwrap();
    Ok(attributes.get("k").unwrap().clone())
}

#[test]
fn the_shortest_form_of_each_type_is_read() {
    let cases: [(&[u8], Value); 12] = [
        (b"\x17", Value::Unsigned(23)),
        (b"\x18\x18", Value::Unsigned(24)),
        (b"\x1b\x00\x00\x00\x01\x00\x00\x00\x00", Value::Unsigned(1 << 32)),
        (b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff", Value::Negative(u64::MAX)),
        (b"\x42\x01\x02", Value::Bytes(vec![1, 2])),
        (b"\x62\xc3\xa9", Value::from("\u{e9}")),
        (b"\x82\xf5\xf6", Value::array(vec![Value::Bool(true), Value::Null])),
        (b"\xf9\x7e\x00", Value::Float(f64::NAN)),
        (b"\xf9\x80\x00", Value::Float(-0.0)),
        (b"\xfa\x47\xc3\x50\x00", Value::Float(100_000.0)),
        (b"\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a", Value::Float(1.1)),
        (b"\xa2\x01\x02\x61a\xa0", {
            let pairs = [(Value::Unsigned(1), Value::Unsigned(2))];
            let mut map: Attributes = pairs.into_iter().collect();
            map.insert("a", Attributes::new());
            Value::Map(map)
        }),
    ];
    for (bytes, expected) in cases {
        assert_eq!(attribute(bytes).unwrap(), expected, "{bytes:02x?}");
    }
}

#[test]
fn every_other_form_is_refused() {
    let cases: [&[u8]; 24] = [
        b"",
        b"\x18\x17",                             // 23 in two bytes
        b"\x19\x00\xff",                         // 255 in three
        b"\x1a\x00\x00\xff\xff",                 // 65535 in five
        b"\x1b\x00\x00\x00\x00\xff\xff\xff\xff", // 2^32 - 1 in nine
        b"\x58\x01\x00",                         // a length in two bytes
        b"\x1c",                                 // reserved
        b"\x5f\xff",                             // indefinite bytes
        b"\x9f\xff",                             // an indefinite array
        b"\xbf\xff",                             // an indefinite map
        b"\xff",                                 // a break
        b"\xc0\x00",                             // a tag
        b"\xf7",                                 // undefined
        b"\xf8\x20",                             // a simple value
        b"\xf9\x7e\x01",                         // another NaN
        b"\xfa\x7f\xc0\x00\x00",                 // a NaN in five bytes
        b"\xfa\x3f\x80\x00\x00",                 // 1.0 in five bytes
        b"\xfb\x47\xef\xff\xff\xe0\x00\x00\x00", // the greatest f32 in nine
        b"\x62\xc3\x28",                         // not UTF-8
        b"\x62a",                                // cut
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", // more items than bytes
        b"\xa2\x61b\x00\x61a\x00",               // unsorted
        b"\xa2\x61a\x00\x61a\x00",               // repeated
        b"\xa2\x62aa\x00\x61b\x00",              // by content, not by bytes
    ];
    for bytes in cases {
        assert_eq!(attribute(bytes).unwrap_err().code(), "cbor", "{bytes:02x?}");
    }
    // The map of the file and that of the attributes count, too.
    let nested = |levels: usize| [vec![0x81; levels], vec![0]].concat();
    assert!(attribute(&nested(30)).is_ok());
    assert_eq!(attribute(&nested(31)).unwrap_err().code(), "cbor");
}
