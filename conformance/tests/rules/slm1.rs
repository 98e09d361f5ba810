//! Which SLM1 files are taken, and what they hold.

use zt_conformance::slm1::{Slm1, Tensor};
use zt_conformance::squizd::fnv1a;

use super::Verdict::{Both, PlainOnly, Refused};
use super::{expect, open, patched, values};

/// A tensor, with numbers from 0 on for its bytes.
pub(crate) fn tensor(
    name: &str,
    dtype: u32,
    dims: &[u32],
    payload: usize,
    scales: &[f32],
    block_size: u32,
) -> Tensor {
    Tensor {
        name: name.to_owned(),
        dtype,
        dims: dims.to_vec(),
        payload: (0u8..).take(payload).collect(),
        scales: scales.to_vec(),
        block_size,
    }
}

/// A file of one tensor.
pub(crate) fn model(
    dtype: u32,
    dims: &[u32],
    payload: usize,
    scales: &[f32],
    block_size: u32,
) -> Slm1 {
    Slm1 {
        tensors: vec![tensor("norm.weight", dtype, dims, payload, scales, block_size)],
        ..Slm1::default()
    }
}

#[test]
fn tensors() {
    for (verdict, file) in [
        (Both, model(1, &[2], 8, &[], 0)),
        (Both, model(1, &[1, 1, 1, 2], 8, &[], 0)),
        (Refused, model(1, &[2], 7, &[], 0)),
        (Refused, model(0, &[2], 8, &[], 0)),
        (Refused, model(4, &[2], 8, &[], 0)),
        (Refused, model(1, &[], 4, &[], 0)),
        (Refused, model(1, &[2, 0], 0, &[], 0)),
        (PlainOnly, model(1, &[2], 8, &[], 2)),
        (PlainOnly, model(1, &[2], 8, &[1.0], 0)),
        (Both, model(2, &[3], 3, &[1.0], 3)),
        (Both, model(2, &[2, 3], 6, &[1.0, 2.0], 3)),
        (Refused, model(2, &[2, 3], 6, &[1.0, 2.0], 6)),
        (Refused, model(2, &[2, 3], 6, &[], 3)),
        (PlainOnly, model(2, &[3], 3, &[0.0], 3)),
        (PlainOnly, model(2, &[3], 3, &[f32::NAN], 3)),
        (Both, model(3, &[2, 4], 4, &[1.0; 4], 2)),
        (Both, model(3, &[2, 6], 6, &[1.0; 2], 6)),
        (Refused, model(3, &[2, 6], 6, &[1.0; 3], 4)),
        (Refused, model(3, &[2, 6], 6, &[1.0; 4], 3)),
        (Refused, model(3, &[2, 6], 6, &[1.0; 4], 0)),
        (Refused, model(3, &[2, 6], 5, &[1.0; 2], 6)),
        (PlainOnly, model(3, &[4], 2, &[-1.0, 1.0], 2)),
    ] {
        expect(verdict, &file.to_bytes(), &format!("{:?}", file.tensors));
    }
    // Leading dimensions are rows together; nibbles are two's complement, the lower one first.
    let mut file = model(3, &[2, 1, 2], 2, &[1.0, 10.0], 2);
    file.tensors[0].payload = vec![0x87, 0xF1];
    let opened = open(&file.to_bytes(), false).unwrap();
    assert_eq!(values(&opened, "norm.weight"), [7.0, -8.0, 10.0, -10.0]);
    let mut file = model(2, &[2, 1, 2], 4, &[1.0, 10.0], 2);
    file.tensors[0].payload = vec![0x80, 0x7F, 0xFF, 1];
    let opened = open(&file.to_bytes(), false).unwrap();
    assert_eq!(values(&opened, "norm.weight"), [-128.0, 127.0, -10.0, 10.0]);
}

#[test]
fn headers_and_names() {
    let mut file = model(1, &[2], 8, &[], 0);
    file.extension = vec![9; 20];
    expect(Both, &file.to_bytes(), "a longer header");
    file.tensors[0].name = "layers.0.wq.weight".to_owned();
    let mut other = file.tensors[0].clone();
    // The model has one layer.
    other.name = "layers.1.wq.weight".to_owned();
    file.tensors.push(other.clone());
    let opened = open(&file.to_bytes(), false).unwrap();
    let unknown = format!("tensor_{:016x}", fnv1a(b"layers.1.wq.weight"));
    for name in ["layers.0.wq.weight", unknown.as_str(), "tokenizer"] {
        assert!(opened.tensor(name).is_ok(), "{name}");
    }
    file.tensors.push(other);
    expect(Refused, &file.to_bytes(), "one hash twice");

    let number = |number: u32| number.to_le_bytes();
    for (verdict, at, bytes, about) in [
        (Refused, 4, number(2), "version"),
        (Refused, 8, number(107), "header length"),
        (PlainOnly, 12, number(0), "model type"),
        (Both, 16, number(1), "tied output"),
        (Refused, 16, number(3), "flags"),
        (PlainOnly, 20, number(261), "the tokenizer's vocabulary is another"),
        (PlainOnly, 24, number(3), "special tokens"),
        (Refused, 28, number(0), "hidden width"),
        (PlainOnly, 28, number(9), "heads of another width"),
        (Both, 40, number(1), "grouped heads"),
        (PlainOnly, 40, number(3), "heads that do not group"),
        (Refused, 48, number(0), "feed-forward width"),
        (PlainOnly, 56, f32::INFINITY.to_le_bytes(), "rope_theta"),
        (PlainOnly, 60, (-1f32).to_le_bytes(), "rms_norm_epsilon"),
        (Refused, 64, number(u32::MAX), "tokenizer offset"),
        (Refused, 88, number(u32::MAX), "tensor count"),
        (Refused, 92, number(1), "data offset off the grid"),
        (Refused, 100, number(0), "no checksum"),
    ] {
        let file = model(1, &[2], 8, &[], 0).to_bytes();
        expect(verdict, &patched(file, at, &bytes), about);
    }
}
