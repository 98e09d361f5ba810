//! Statistics and distances of arrays that all cores read together.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use zt::diff::{Change, DiffOptions, summary};
use zt::stats::{Stats, StatsOptions, stats};
use zt::{Dense, DigestAlgorithm, File, WriteOptions};

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
