//! A build without the feature `zstd`: what is raw is read, and what is compressed is listed.
#![cfg(not(feature = "zstd"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use zt::container::{Encoding, Unsupported};
use zt::{Dense, ErrorKind, File, VerifyOptions, WriteOptions};

const FILE: &[u8] = include_bytes!("../../../conformance/corpus/valid/csr_values_zstd.zt");

#[test]
fn raw_components_are_read_and_compressed_ones_are_unsupported() {
    let file = File::from_bytes(FILE).unwrap();
    let mut counts = [0, 0];
    for tensor in file.tensors() {
        let tensor = tensor.unwrap();
        for (role, component) in &tensor.object().components {
            let read = tensor.bytes(role);
            match component.blob.encoding {
                Encoding::Raw => {
                    counts[0] += 1;
                    read.unwrap();
                }
                _ => {
                    counts[1] += 1;
                    let error = read.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Unsupported);
                    let words = Unsupported::Zstd.to_string();
                    assert!(error.to_string().contains(&words), "{error}");
                }
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    let report = file.verify(&VerifyOptions::default()).unwrap();
    assert!(!report.is_ok());
    for problem in &report.problems {
        assert_eq!(problem.kind(), ErrorKind::Unsupported, "{problem}");
    }
}

#[test]
fn nothing_is_compressed() {
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().zstd(3).to_writer(&mut bytes).unwrap();
    let values = vec![0f32; 1 << 16];
    let dense = Dense::from_slice(&[1 << 16], &values).unwrap();
    let added = writer.add("zeros", &dense);
    let error = added.and_then(|_| writer.finish().map(drop)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}
