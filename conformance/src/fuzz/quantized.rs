//! Quantized checkpoints that a stranger wrote.

use zt::{File, FloatType, Slice};
use zt_convert::SAFETENSORS;
use zt_quantized::{Dialects, Quantized, Settings, find};

use super::foreign::open_as;

/// Bytes of values that are read at a time: values of two and of four bytes begin before them.
const PIECE: u64 = 37;

/// The number of a settings file, its length in two bytes, the settings, and a safetensors file. All weights are found
/// and read. A weight has no more values than its codes have bits, and any part of it is a part of the whole.
pub fn quantized(bytes: &[u8]) {
    let [settings, low, high, rest @ ..] = bytes else {
        return;
    };
    let len = usize::from(u16::from_le_bytes([*low, *high]));
    let Some((json, tensors)) = rest.split_at_checked(len) else {
        return;
    };
    let name = Settings::FILES[usize::from(*settings) % Settings::FILES.len()];
    let mut known = Settings::default();
    if known.add(name, json).is_err() {
        known = Settings::default();
    }
    let Ok(file) = open_as(tensors, SAFETENSORS, false) else {
        return;
    };
    let found = || find(&file, &known, &Dialects::builtin());
    let Ok(quantized) = found() else {
        return;
    };
    let _ = quantized.check_scales();
    for weight in quantized.weights() {
        let Ok(formula) = &weight.formula else { continue };
        let count = zt::formats::element_count(formula.shape()).expect("counted before");
        assert!(count <= 8 * tensors.len() as u64, "{}: {count} values", weight.name);
        let _ = quantized.bits(weight);
    }
    for float in [None, Some(FloatType::F32)] {
        let logical = found().and_then(|quantized: Quantized| quantized.logical(float));
        if let Ok(logical) = logical {
            parts_are_of_the_whole(&logical);
        }
    }
}

fn parts_are_of_the_whole(logical: &File) {
    for tensor in logical.tensors().filter_map(Result::ok) {
        let Ok(whole) = tensor.bytes("data") else {
            continue;
        };
        let (source, span) = tensor.stored_bytes("data").expect("it was read");
        let mut start = 0;
        while start < span.byte_len() {
            let mut part = vec![0; PIECE.min(span.byte_len() - start) as usize];
            source.read_at(span.offset() + start, &mut part).expect("all of it was read");
            assert_eq!(
                part,
                whole[start as usize..][..part.len()],
                "{} from {start}",
                tensor.name()
            );
            start += part.len() as u64;
        }
        if let Some(rows) = tensor.shape().first().filter(|rows| **rows > 1) {
            let half = tensor.slice(&[Slice::from(rows / 2..)]).expect("all of it was read");
            assert!(whole.ends_with(&half.into_elements().1.bytes), "{}", tensor.name());
        }
    }
}
