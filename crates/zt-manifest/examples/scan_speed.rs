//! How long one pass over a manifest of 100,000 objects takes, beside two passes that do less:
//! `cargo run --release -p zt-manifest --example scan_speed`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use zt_manifest::{Blob, Component, DType, Index, Layout, Limits, Manifest, Object, Placement};
use zt_manifest::{Result, Span};

fn main() -> Result<()> {
    let objects = (0..100_000u64).map(|i| {
        let span = Span::new((i + 1) * 8192, 8192).unwrap_or_default();
        let data = Component::new(DType::BF16, Blob::raw(span));
        let object = Object::new([64, 64], "dense").with_component("data", data);
        let name = format!("model.layers.{:03}.mlp.experts.{i:06}.weight", i % 80);
        (name, object)
    });
    let manifest = Manifest { objects: objects.collect(), ..Manifest::default() };
    let limits = Limits::default();
    let placement = Placement::new(Layout::V1_1, Span::new(8, 1 << 40).unwrap_or_default(), limits);

    let cbor = manifest.to_cbor()?;
    println!("{} bytes, {} objects", cbor.len(), manifest.objects.len());
    print("sum of bytes", best(|| cbor.iter().map(|byte| u64::from(*byte)).sum::<u64>()));
    print("UTF-8 check of as many bytes", {
        let text = vec![b'x'; cbor.len()];
        best(|| std::str::from_utf8(black_box(&text)).is_ok())
    });
    print("to_cbor", best(|| manifest.to_cbor().map(|cbor| cbor.len())));
    print("Index::parse", best(|| Index::parse(&cbor, Layout::V1_1, &limits).is_ok()));
    let index = Index::parse(&cbor, Layout::V1_1, &limits)?;
    print(
        "find, every name",
        best(|| manifest.objects.iter().filter_map(|(name, _)| index.find(name)).count()),
    );
    print(
        "object and validate, every object",
        best(|| {
            let mut warnings = Vec::new();
            (0..index.len())
                .filter(|&i| index.validated(i, &placement, &mut warnings).is_ok())
                .count()
        }),
    );
    Ok(())
}

/// The best of eleven runs: on a machine that others use, the one least disturbed.
fn best<T>(mut run: impl FnMut() -> T) -> Duration {
    let times = (0..11).map(|_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

fn print(what: &str, time: Duration) {
    println!("{:8.2} ms  {what}", time.as_secs_f64() * 1e3);
}
