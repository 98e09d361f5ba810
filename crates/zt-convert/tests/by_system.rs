//! Raw bytes that the system copies from file to file: what arrives is what reading and writing give.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(feature = "safetensors")]

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use zt::DigestAlgorithm::{Crc32c, Sha256};
use zt::{Dense, OpenOptions, Progress, WriteOptions};
use zt_convert::{ConvertOptions, Input, Kinds, SAFETENSORS, ZT};

/// A file of large and of small tensors, of bools too, opened by position.
fn folder(name: &str) -> (TempDir, Input) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.zt");
    let mut writer = WriteOptions::new().create(&path).unwrap();
    let values: Vec<f32> = (0..3_000_001u32).map(|at| at as f32 / 3.0).collect();
    for (name, len) in [("small", 3), ("large", 3_000_001), ("last", 400_000)] {
        let dense = Dense::from_slice(&[len as u64], &values[..len]).unwrap();
        writer.add(name, &dense).unwrap();
    }
    let flags: Vec<bool> = (0..1_500_000u32).map(|at| at % 3 == 0).collect();
    let flags = Dense::from_slice(&[1_500_000], &flags).unwrap();
    writer.add("flags", &flags).unwrap();
    writer.finish().unwrap();
    let input = open(&path);
    if name.ends_with(".zt") {
        return (folder, input);
    }
    let path = folder.path().join(name);
    let options = ConvertOptions::new(SAFETENSORS);
    Kinds::builtin().convert_to_path(&[input], &path, &options).unwrap();
    let input = open(&path);
    (folder, input)
}

fn open(path: &Path) -> Input {
    Kinds::builtin().open(path, OpenOptions::new()).unwrap()
}

fn options() -> ConvertOptions<'static> {
    let mut options = ConvertOptions::new(ZT);
    options.write = WriteOptions::new().digest(None);
    options
}

/// With every digest: the system copies what crc32c needs too, and a worker hashes it in the new file. On a
/// disk in memory it copies from any place in a page.
#[test]
fn a_file_has_the_bytes_that_a_stream_has() {
    let digests = [None, Some(Crc32c), Some(Sha256)];
    let ways = digests.map(|digest| [Some(Crc32c), None].map(|chunks| (digest, chunks)));
    let in_memory = tempfile::tempdir_in("/dev/shm");
    for name in ["x.safetensors", "all.zt"] {
        let (folder, input) = folder(name);
        let inputs = [input];
        for ((digest, chunks), threads) in
            ways.into_iter().flatten().flat_map(|way| [(way, 1), (way, 3)])
        {
            let mut options = options();
            let write = WriteOptions::new().digest(digest).chunk_digests(chunks);
            options.write = write.threads(threads);
            let mut streamed = Vec::new();
            let expected = Kinds::builtin().convert(&inputs, &mut streamed, &options).unwrap();
            for folder in [Ok(&folder), in_memory.as_ref()].into_iter().flatten() {
                let out = folder.path().join("out.zt");
                let reported = AtomicU64::new(0);
                let count = |len| {
                    reported.fetch_add(len, Ordering::Relaxed);
                    ControlFlow::Continue(())
                };
                let mut options = options.clone();
                options.overwrite = true;
                options.progress = Some(Progress::new(&count));
                let summary = Kinds::builtin().convert_to_path(&inputs, &out, &options).unwrap();
                let case = format!("{name} {digest:?} {chunks:?} {threads}");
                assert!(fs::read(&out).unwrap() == streamed, "{case}");
                assert_eq!(summary.byte_len, expected.byte_len);
                assert_eq!(reported.into_inner(), 4 * 3_400_004 + 1_500_000);
            }
        }
    }
}

/// Where the new file has digests of the same algorithm, the bytes are hashed on their way into it.
#[test]
fn damage_that_a_digest_shows_is_not_copied() {
    let (folder, sound) = folder("all.zt");
    let path = folder.path().join("damaged.zt");
    let sound = [sound];
    for (stored, written, threads) in [
        (Crc32c, None, 3),
        (Crc32c, Some(Crc32c), 1),
        (Crc32c, Some(Crc32c), 3),
        (Sha256, Some(Sha256), 1),
        (Sha256, Some(Sha256), 3),
        (Sha256, Some(Crc32c), 3),
    ] {
        let mut options = options();
        options.overwrite = true;
        options.write = WriteOptions::new().digest(Some(stored));
        Kinds::builtin().convert_to_path(&sound, &path, &options).unwrap();
        let damaged = open(&path);
        options.write = WriteOptions::new().digest(written).threads(threads);
        for (name, at) in [("small", 3), ("large", 5_000_000), ("last", 1_599_999)] {
            let tensor = damaged.file().tensor(name).unwrap();
            let at = tensor.component("data").unwrap().blob.span.offset() + at;
            flip(&path, at);
            let case = format!("{stored:?} to {written:?} by {threads}, {name}");
            let out = folder.path().join("out.zt");
            let error =
                Kinds::builtin().convert_to_path(&[open(&path)], &out, &options).unwrap_err();
            let found = (error.code(), error.object(), error.path());
            assert_eq!(found, ("digest-mismatch", Some(name), Some(&*path)), "{case}");
            assert!(!out.exists(), "{case}");
            flip(&path, at);
        }
    }
}

/// Inverts a byte of a file.
fn flip(path: &Path, at: u64) {
    let mut bytes = fs::read(path).unwrap();
    bytes[usize::try_from(at).unwrap()] ^= 0xff;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_source_that_is_cut_meanwhile_is_the_error_that_reading_it_is() {
    let (folder, input) = folder("x.safetensors");
    let path = folder.path().join("x.safetensors");
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(9_000_000).unwrap();
    let inputs = [input];
    let read = Kinds::builtin().convert(&inputs, std::io::sink(), &options()).unwrap_err();
    let out = folder.path().join("out.zt");
    let copied = Kinds::builtin().convert_to_path(&inputs, &out, &options()).unwrap_err();
    assert_eq!(copied.code(), read.code());
    assert_eq!(copied.object(), read.object());
    assert_eq!(copied.message(), read.message());
    assert!(!out.exists());
}

#[test]
fn a_copy_that_is_interrupted_leaves_no_file() {
    let (folder, input) = folder("x.safetensors");
    let out = folder.path().join("out.zt");
    let mut options = options();
    options.progress = Some(Progress::new(&|_| ControlFlow::Break(())));
    let error = Kinds::builtin().convert_to_path(&[input], &out, &options).unwrap_err();
    assert_eq!(error.code(), "interrupted");
    assert!(!out.exists());
}
