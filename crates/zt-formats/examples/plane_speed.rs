//! Bytes per second of splitting elements into planes and of merging them, on one core, beside
//! copying: `cargo run --release -p zt-formats --example plane_speed`.

use std::hint::black_box;
use std::time::Instant;

use zt_formats::PlaneCodec;
use zt_manifest::DType;

/// Elements of one tile, as long as a frame of a compressed plane.
const ELEMENTS: usize = 1 << 20;
const ROUNDS: usize = 40;

fn main() -> zt_formats::Result<()> {
    println!("{:>5} {:>10} {:>10} {:>10}   GB/s", "", "copy", "split", "merge");
    for dtype in [DType::BF16, DType::F32, DType::F64] {
        let codec = PlaneCodec::new(dtype, None)?;
        let byte_len = ELEMENTS * dtype.byte_len();
        let elements: Vec<u8> = (0..byte_len).map(|at| ((at * 37) >> 3).to_le_bytes()[0]).collect();
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
        let lent: Vec<&[u8]> = planes.iter().map(Vec::as_slice).collect();
        let merge = rate(byte_len, || {
            codec.merge(black_box(&lent), &mut merged);
            black_box(&merged);
        });
        assert_eq!(merged, elements);
        println!("{:>5} {copy:>10.1} {split:>10.1} {merge:>10.1}", dtype.as_str());
    }
    Ok(())
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
