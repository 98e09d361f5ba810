//! Statistics and distances of arrays that all cores read together.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use zt::diff::{Change, DiffOptions, summary};
use zt::stats::{BlockKind, Bound, Finite, Sketch, Stats, StatsOptions, stats};
use zt::{Dense, DigestAlgorithm, Element, Elements, File, Registry, WriteOptions, Writer};

/// More than cores read together, and no whole number of stretches.
fn values() -> Vec<f64> {
    let values = (0..2_100_011u32).map(|at| f64::from(at * 37 % 1009) - 500.0);
    values.collect()
}

fn file(options: WriteOptions, values: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let shape = [values.len() as u64];
    writer.add("w", &Dense::from_slice(&shape, values).unwrap()).unwrap();
    writer.finish().unwrap();
    bytes
}

fn stats_of(file: &File, threads: usize) -> zt::Result<Stats> {
    let options = StatsOptions::new().threads(threads);
    let mut all = stats(file, &options).unwrap();
    all.remove(0).map(|stats| stats.values)
}

#[test]
fn large_arrays_have_the_same_figures_however_they_are_stored() {
    let values = values();
    let raw = file(WriteOptions::new(), &values);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("raw.zt");
    std::fs::write(&path, &raw).unwrap();
    let on_disk = File::open(&path).unwrap();
    let expected = stats_of(&on_disk, 1).unwrap();
    let finite = expected.finite.unwrap();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    let std = (squares.sum::<f64>() / count).sqrt();
    assert_eq!(expected.count, values.len() as u64);
    assert!((finite.mean - mean).abs() < 1e-9 && (finite.std / std - 1.0).abs() < 1e-12);
    assert_eq!((finite.min.as_f64(), finite.max.as_f64()), (-500.0, 508.0));
    let zeros = values.iter().filter(|value| **value == 0.0).count();
    assert_eq!(expected.zeros, zeros as u64);

    let chained = WriteOptions::new().digest(Some(DigestAlgorithm::Sha256));
    let zstd = file(WriteOptions::new().zstd(1), &values);
    for (bytes, threads) in [(raw, 3), (file(chained, &values), 3), (zstd, 1)] {
        let other = File::from_bytes(bytes).unwrap();
        let found = stats_of(&other, threads).unwrap();
        assert_eq!((found.count, found.zeros), (expected.count, expected.zeros));
        let found = found.finite.unwrap();
        assert_eq!((found.min, found.max), (finite.min, finite.max));
        assert!((found.mean - finite.mean).abs() < 1e-12);
        assert!((found.std / finite.std - 1.0).abs() < 1e-12);
        let options = DiffOptions::new().threads(threads);
        let summary = summary(&on_disk, &other, &options).unwrap();
        let distance = summary.objects[0].distance.as_ref().unwrap();
        assert_eq!(distance.count, expected.count);
        assert_eq!((distance.different, distance.relative()), (0, 0.0));
        assert!((distance.cosine().unwrap() - 1.0).abs() < 1e-15);
    }
}

#[test]
fn a_large_array_with_a_wrong_digest_has_no_figures() {
    let values = values();
    let mut bytes = file(WriteOptions::new(), &values);
    let sound = File::from_bytes(bytes.clone()).unwrap();
    bytes[10 << 20] ^= 1;
    let open = || File::from_bytes(bytes.clone()).unwrap();
    assert_eq!(stats_of(&open(), 2).unwrap_err().code(), "digest-mismatch");
    let summary = summary(&sound, &open(), &DiffOptions::new()).unwrap();
    let changes = summary.objects[0].distance.as_ref().unwrap_err();
    let [Change::Unreadable { error, .. }] = &changes[..] else {
        panic!("{changes:?}");
    };
    assert_eq!(error.code(), "digest-mismatch");
}

/// In pieces of `len` values.
fn of(elements: &Elements<'_>, len: usize) -> Stats {
    let registry = Registry::builtin();
    let mut stats = Stats::default();
    for bytes in elements.bytes.chunks(len * elements.dtype.byte_len()) {
        stats.append(&Stats::of(&elements.of_same_type(bytes), &registry).unwrap());
    }
    stats
}

fn finite(values: &[f64]) -> Finite {
    of(&Elements::from(values), 1).finite.unwrap()
}

#[test]
fn nan_and_infinities_are_counted_and_left_out() {
    let values = [1.0, f64::NAN, 3.0, f64::INFINITY, -f64::INFINITY, 0.0, -0.0];
    for len in [1, 3, 7] {
        let stats = of(&Elements::from(&values), len);
        assert_eq!((stats.count, stats.zeros, stats.nan, stats.inf), (7, 2, 1, 2));
        let finite = stats.finite.unwrap();
        let (min, max) = (Bound::Real(0.0), Bound::Real(3.0));
        assert_eq!((finite.min, finite.max, finite.mean), (min, max, 1.0));
        assert!((finite.std - 1.5f64.sqrt()).abs() < 1e-12);
        assert!(!stats.is_constant());
    }
    assert_eq!(of(&Elements::from(&[f32::NAN; 3]), 2).finite, None);
    assert!(of(&Elements::from(&[5.0; 4]), 2).is_constant());
}

#[test]
fn the_widest_range_does_not_overflow() {
    let three = finite(&[f64::MAX, f64::MIN, 0.0]);
    assert!((three.mean / f64::MAX).abs() < 1e-15);
    assert!((three.std / f64::MAX - (2f64 / 3.0).sqrt()).abs() < 1e-12);
    let two = finite(&[f64::MAX, f64::MIN]);
    assert!((two.std / f64::MAX - 1.0).abs() < 1e-12, "{}", two.std);
    let whole = of(&Elements::from(&[f64::MAX, f64::MIN, 0.0]), 3);
    assert!((whole.finite.unwrap().std / three.std - 1.0).abs() < 1e-12);
}

#[test]
fn deviations_are_right_if_their_squares_overflow() {
    for unit in [1e200, 1e-200, f64::MIN_POSITIVE / 4.0] {
        for len in [1, 2] {
            let stats = of(&Elements::from(&[unit, 3.0 * unit]), len);
            let finite = stats.finite.unwrap();
            assert!((finite.mean / unit - 2.0).abs() < 1e-12, "{unit}");
            assert!((finite.std / unit - 1.0).abs() < 1e-12, "{unit}");
        }
    }
}

#[test]
fn digits_of_values_far_from_zero_are_kept() {
    let values: Vec<f64> = (0..100_000).map(|at| 1e9 + f64::from(at % 2)).collect();
    let finite = of(&Elements::from(&values), 5000).finite.unwrap();
    assert!((finite.mean - 1e9 - 0.5).abs() < 1e-5);
    assert!((finite.std - 0.5).abs() < 1e-9, "{}", finite.std);
}

#[test]
fn a_value_counts_wherever_it_is() {
    for at in 0..300 {
        for (value, zeros) in [(-2.0, 0), (3.0, 0), (0.0, 1)] {
            let mut values = [1.0f32; 300];
            values[at] = value;
            let stats = of(&Elements::from(&values), 300);
            let finite = stats.finite.unwrap();
            let bounds = [1.0f32.min(value), 1.0f32.max(value)];
            let bounds = bounds.map(|bound| Bound::Real(bound.into()));
            assert_eq!(([finite.min, finite.max], stats.zeros), (bounds, zeros));
            let mean = 1.0 + (f64::from(value) - 1.0) / 300.0;
            assert!((finite.mean - mean).abs() < 1e-14, "{at}: {value}");
        }
    }
}

#[test]
fn integers_and_complex_numbers_have_statistics() {
    let odd = 9_007_199_254_740_993i64;
    let stats = of(&Elements::from(&[odd, -odd, 0]), 2);
    let finite = stats.finite.unwrap();
    let (min, max) = (Bound::Integer((-odd).into()), Bound::Integer(odd.into()));
    assert_eq!((finite.min, finite.max, stats.zeros), (min, max, 1));
    let complex = [zt::formats::Complex::new(3f32, 4.0)];
    let elements = Elements::from(&complex);
    let stats = Stats::of(&elements, &Registry::builtin()).unwrap();
    assert_eq!(stats.finite.unwrap().max, Bound::Real(5.0));
}

fn sketch<T: Element>(shape: &[u64], values: &[T]) -> Sketch {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.add("w", &Dense::from_slice(shape, values).unwrap()).unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    let stats = stats(&file, &StatsOptions::new().sketches(48)).unwrap();
    stats.into_iter().next().unwrap().unwrap().sketch.unwrap()
}

#[test]
fn bins_have_exact_edges_and_hold_every_value() {
    for scale in [1.0, 1e-30, 1e30, 1e-300, f64::MAX / 2.0] {
        let values: Vec<f64> = (-500..=500).map(|at| f64::from(at) / 500.0 * scale).collect();
        let found = sketch(&[1001], &values).histogram.unwrap();
        assert!((33..=64).contains(&found.counts.len()), "{}", found.counts.len());
        for (at, count) in (found.start..).zip(&found.counts) {
            let (low, high) = (at as f64 * found.width, (at + 1) as f64 * found.width);
            let is_in = |value: &&f64| match at < 0 {
                true => low < **value && **value <= high && **value != 0.0,
                false => low <= **value && **value < high,
            };
            assert_eq!(values.iter().filter(is_in).count() as u64, *count, "{low}");
        }
    }
}

#[test]
fn integers_have_bins_of_whole_numbers() {
    let found = sketch(&[5], &[0i32, 1, 1, 3, -2]).histogram.unwrap();
    assert_eq!((found.start, found.width), (-3, 1.0));
    assert_eq!(found.counts, [1, 0, 0, 1, 2, 0, 1]);
}

#[test]
fn blocks_have_the_mean_of_their_elements() {
    // Cores look at pieces that begin and end within rows.
    let (rows, columns) = (300u32, 130u32);
    let value = |at: u32| f64::from(at % 7) - 3.0;
    let values: Vec<f64> = (0..rows * columns).map(value).collect();
    let blocks = sketch(&[rows.into(), columns.into()], &values).blocks.unwrap();
    assert_eq!((blocks.rows, blocks.columns, blocks.kind), (48, 48, BlockKind::MeanAbs));
    let mut sums = vec![(0.0, 0u32); 48 * 48];
    for (at, value) in (0..).zip(&values) {
        let (row, column) = (at / columns, at % columns);
        let (sum, count) = &mut sums[(row * 48 / rows * 48 + column * 48 / columns) as usize];
        (*sum, *count) = (*sum + value.abs(), *count + 1);
    }
    for (mean, (sum, count)) in blocks.values.iter().zip(sums) {
        assert!((f64::from(*mean) - sum / f64::from(count)).abs() < 1e-6);
    }
}
