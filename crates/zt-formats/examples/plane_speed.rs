//! Bytes per second of splitting elements into planes and of merging them, and the same with plane 0
//! coded as in `zt.planes/2`, on one core, beside copying:
//! `cargo run --release -p zt-formats --example plane_speed`.

use std::hint::black_box;
use std::time::Instant;

use zt_formats::{
    Dense, Elements, HuffmanEncoder, PlaneCodec, PlaneCoding, Planes, Registry, bf16,
};
use zt_manifest::DType;

/// Elements of one tile, as long as a frame of a compressed plane.
const ELEMENTS: usize = 1 << 20;
const ROUNDS: usize = 40;

fn main() -> zt_formats::Result<()> {
    println!(
        "{:>5} {:>7} {:>7} {:>7} {:>7} {:>7}   GB/s",
        "", "copy", "split", "merge", "code", "decode"
    );
    let registry = Registry::builtin();
    let format = registry.format(PlaneCoding::Huffman.format());
    for dtype in [DType::BF16, DType::F32, DType::F64] {
        let codec = PlaneCodec::new(dtype, None)?;
        let elements: Vec<u8> = (0..ELEMENTS as u64).flat_map(|at| element(dtype, at)).collect();
        let byte_len = elements.len();
        let mut planes = vec![vec![0u8; ELEMENTS]; codec.plane_count()];
        let mut merged = vec![0u8; byte_len];

        let copy = rate(byte_len, || {
            merged.copy_from_slice(black_box(&elements));
            black_box(&merged);
        });
        let split = rate(byte_len, || {
            for (at, plane) in planes.iter_mut().enumerate() {
                codec.split(at, black_box(&elements), plane);
            }
            black_box(&planes);
        });
        let (mut encoder, mut codes) = (HuffmanEncoder::new()?, Vec::new());
        let code = rate(byte_len, || {
            codes.clear();
            for (at, plane) in planes.iter_mut().enumerate() {
                codec.split(at, black_box(&elements), plane);
            }
            for symbols in planes.iter().take(1).flat_map(|it| it.chunks(HuffmanEncoder::CHUNK)) {
                encoder.encode(symbols, &mut codes);
            }
            black_box(&codes);
        });
        let lent: Vec<&[u8]> = planes.iter().map(Vec::as_slice).collect();
        let merge = rate(byte_len, || {
            codec.merge(black_box(&lent), &mut merged);
            black_box(&merged);
        });
        assert_eq!(merged, elements);
        let dense = Dense::from_elements([ELEMENTS as u64], Elements::new(dtype, &elements[..]))?;
        let parts = Planes::from_dense(&dense)?;
        let parts = parts.to_object_in(PlaneCoding::Huffman)?.into_parts();
        merged.fill(0);
        let decode = rate(byte_len, || {
            let decoded = format.map(|format| format.decode_into(parts.clone(), &mut merged));
            assert_eq!(black_box(decoded), Some(Ok(())));
        });
        assert_eq!(merged, elements);
        println!(
            "{:>5} {copy:>7.1} {split:>7.1} {merge:>7.1} {code:>7.2} {decode:>7.2}",
            dtype.as_str()
        );
    }
    Ok(())
}

/// Sums of random numbers, which are about normal, as weights are.
fn element(dtype: DType, at: u64) -> Vec<u8> {
    let mut state = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut uniform = || {
        state = (state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let value = (0..8).map(|_| uniform()).sum::<f64>() * 0.025;
    match dtype {
        DType::BF16 => bf16::from_f64(value).to_le_bytes().to_vec(),
        #[expect(clippy::cast_possible_truncation, reason = "it is rounded on purpose")]
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    }
}

/// The fastest of several rounds.
fn rate(byte_len: usize, mut work: impl FnMut()) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        work();
        byte_len as f64 / start.elapsed().as_secs_f64() / 1e9
    });
    rounds.fold(0.0, f64::max)
}
