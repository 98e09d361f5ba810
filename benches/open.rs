//! Opening a file of 100,000 objects and reading one of them: ours by position and mapped, with
//! the peers' readers in the same run, and the bare read of the manifest's bytes as the floor.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a failed benchmark has nobody to tell"
)]

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use safetensors::tensor::{Dtype, TensorView};
use zt_benches::{TINY_COUNT, TINY_VALUES, tiny, write_tiny};

fn write_safetensors(path: &Path) {
    let tensors: Vec<(String, Vec<u8>)> = (0..TINY_COUNT)
        .map(|at| {
            let (name, values) = tiny(at);
            (
                name,
                values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect(),
            )
        })
        .collect();
    let views = tensors.iter().map(|(name, bytes)| {
        (
            name,
            TensorView::new(Dtype::F32, vec![TINY_VALUES], bytes).unwrap(),
        )
    });
    safetensors::serialize_to_file(views, None, path).unwrap();
}

fn write_ztensor(path: &Path) {
    let mut writer = ztensor::Writer::create(path).unwrap();
    for at in 0..TINY_COUNT {
        let (name, values) = tiny(at);
        writer.add(&name, &[TINY_VALUES as u64], &values).unwrap();
    }
    writer.finish().unwrap();
}

fn open_and_read_one(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let ours = write_tiny(folder.path()).unwrap();
    let theirs = folder.path().join("ztensor.zt");
    write_ztensor(&theirs);
    let safe = folder.path().join("tiny.safetensors");
    write_safetensors(&safe);
    let (wanted, values) = tiny(TINY_COUNT / 2);

    let mut group = c.benchmark_group("open_100k_read_one");
    group.sample_size(20);
    group.bench_function("zt/position", |b| {
        b.iter(|| {
            let file = zt::File::open(black_box(&ours)).unwrap();
            let read = file.tensor(&wanted).unwrap().to_vec::<f32>().unwrap();
            assert_eq!(read, values);
        });
    });
    group.bench_function("zt/map", |b| {
        b.iter(|| {
            // SAFETY: nobody else knows the file.
            let map = unsafe { zt::Map::open(black_box(&ours)) }.unwrap();
            let file = zt::OpenOptions::new().open_source(map).unwrap();
            assert_eq!(
                *file.tensor(&wanted).unwrap().as_slice::<f32>().unwrap(),
                values
            );
        });
    });
    group.bench_function("zt/position, file of ztensor 1.2.3", |b| {
        b.iter(|| {
            let file = zt::File::open(black_box(&theirs)).unwrap();
            assert_eq!(
                file.tensor(&wanted).unwrap().to_vec::<f32>().unwrap(),
                values
            );
        });
    });
    group.bench_function("ztensor 1.2.3/map", |b| {
        b.iter(|| {
            let file = ztensor::Reader::open_mmap(black_box(&theirs)).unwrap();
            assert_eq!(file.view_as::<f32>(&wanted).unwrap(), values);
        });
    });
    group.bench_function("safetensors 0.8/map", |b| {
        b.iter(|| {
            // SAFETY: nobody else knows the file.
            let map = unsafe { zt::Map::open(black_box(&safe)) }.unwrap();
            let span = zt::Span::new(0, zt::Source::byte_len(&map)).unwrap();
            let bytes = zt::Source::slice(&map, span).unwrap();
            let file = safetensors::SafeTensors::deserialize(bytes).unwrap();
            assert_eq!(file.tensor(&wanted).unwrap().data().len(), TINY_VALUES * 4);
        });
    });
    group.bench_function("floor: read of the manifest's bytes", |b| {
        let file = zt::File::open(&ours).unwrap();
        let start = file.data_region().unwrap().end();
        let source = zt::FileSource::open(&ours).unwrap();
        let len = usize::try_from(zt::Source::byte_len(&source) - start).unwrap();
        b.iter(|| {
            let mut manifest = vec![0; len];
            zt::Source::read_at(&source, black_box(start), &mut manifest).unwrap();
            manifest
        });
    });
    group.finish();
}

criterion_group!(benches, open_and_read_one);
criterion_main!(benches);
