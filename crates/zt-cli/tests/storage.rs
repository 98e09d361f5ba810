//! The commands that write `.zt` files keep the storage of what they copy.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::*;
use tempfile::tempdir;
use zt::{Csr, Dense, DigestAlgorithm, Encoding, File, ToObject, WriteOptions};

const LEN: u16 = 60_000;

/// Every way to store a file that a flag can choose. Level 9 gives other bytes than the default.
fn storages() -> Vec<(&'static str, WriteOptions)> {
    let new = WriteOptions::new;
    let sha256 = Some(DigestAlgorithm::Sha256);
    vec![
        ("raw", new()),
        ("raw sha256", new().digest(sha256)),
        ("raw none", new().digest(None)),
        ("zstd", new().zstd(9)),
        ("zstd sha256", new().zstd(9).digest(sha256)),
        ("zstd none", new().zstd(9).digest(None)),
        ("planes", new().planes()),
        ("planes sha256", new().planes().digest(sha256)),
        ("planes none", new().planes().digest(None)),
        ("planes raw", new().planes().compression(zt::Compression::None)),
    ]
}

/// Values of several formats and types, two of them tied, under names that begin with `name`.
fn write(path: &Path, name: &str, options: WriteOptions) {
    let first = u16::from(name.as_bytes()[0]);
    let weights = (0..LEN).map(|at| f32::from((at ^ first) % 5000 / 3).sin());
    let weights: Vec<f32> = weights.collect();
    let flags: Vec<bool> = (0..LEN).map(|at| at % 7 == first % 7).collect();
    let indices: Vec<u64> = (0..u64::from(LEN)).collect();
    let graph = Csr::new([1, u64::from(LEN)], &weights[..], indices, vec![0, u64::from(LEN)]);
    let mut writer = options.deduplicate(true).create(path).unwrap();
    let mut add = |what: &str, object: &dyn ToObject| {
        writer.add(&format!("{name}{what}"), object).unwrap();
    };
    add(".weights", &Dense::from_slice(&[100, 600], &weights).unwrap());
    add(".flags", &Dense::from_slice(&[60_000], &flags).unwrap());
    add(".tied", &Dense::from_slice(&[100, 600], &weights).unwrap());
    add(".graph", &graph.unwrap());
    writer.finish().unwrap();
}

#[derive(Debug, PartialEq)]
struct Stored {
    format: String,
    role: String,
    encoding: Encoding,
    digest: Option<String>,
    bytes: Vec<u8>,
}

/// Every component as it is stored, by object.
fn stored(path: &Path) -> BTreeMap<String, Vec<Stored>> {
    let (file, bytes) = (File::open(path).unwrap(), fs::read(path).unwrap());
    let object = |entry: &zt::Entry<'_>| {
        let tensor = entry.tensor().unwrap();
        let components = tensor.components().map(|(role, component)| {
            let blob = &component.blob;
            let start = usize::try_from(blob.span.offset()).unwrap();
            let len = usize::try_from(blob.span.byte_len()).unwrap();
            Stored {
                format: tensor.format().to_owned(),
                role: role.to_owned(),
                encoding: blob.encoding,
                digest: blob.digest.as_ref().map(ToString::to_string),
                bytes: bytes[start..][..len].to_vec(),
            }
        });
        (entry.name().to_owned(), components.collect())
    };
    file.entries().iter().map(object).collect()
}

/// As `before`, except that a component without a digest may have got one.
#[track_caller]
fn assert_kept(
    found: &BTreeMap<String, Vec<Stored>>,
    before: &BTreeMap<String, Vec<Stored>>,
    what: &str,
) {
    for (name, expected) in before {
        let found = found.get(name).unwrap();
        assert_eq!(found.len(), expected.len(), "{what}: {name}");
        for (found, expected) in found.iter().zip(expected) {
            let role = &expected.role;
            assert_eq!(
                (&found.format, &found.role, found.encoding),
                (&expected.format, role, expected.encoding),
                "{what}: {name}"
            );
            assert!(found.bytes == expected.bytes, "{what}: {name}/{role}");
            if expected.digest.is_some() {
                assert_eq!(found.digest, expected.digest, "{what}: {name}/{role}");
            }
        }
    }
}

#[test]
fn every_command_keeps_encodings_digests_and_planes() {
    for (what, options) in storages() {
        let dir = tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let (a, b, out) = (path("a.zt"), path("b.zt"), path("out.zt"));
        write(&a, "a", options.clone());
        write(&b, "b", options);
        let (of_a, of_b) = (stored(&a), stored(&b));
        let is_planes = of_a["a.weights"].len() == 4;
        assert_eq!(is_planes, what.starts_with("planes"));

        zt!["convert", a, out].exits(0);
        assert_kept(&stored(&out), &of_a, &format!("convert, {what}"));
        zt!["merge", a, b, out, "--force"].exits(0);
        assert_kept(&stored(&out), &of_a, &format!("merge, {what}"));
        assert_kept(&stored(&out), &of_b, &format!("merge, {what}"));
        let set = path("set");
        zt!["split", out, "-o", set, "--max-shard-size", "200KB"].exits(0);
        let mut of_set = BTreeMap::new();
        for shard in fs::read_dir(&set).unwrap() {
            let shard = shard.unwrap().path();
            if shard.extension().unwrap() == "zt" {
                of_set.extend(stored(&shard));
            }
        }
        assert_kept(&of_set, &of_a, &format!("split, {what}"));
        assert_kept(&of_set, &of_b, &format!("split, {what}"));

        zt!["append", a, b].exits(0);
        assert_kept(&stored(&a), &of_a, &format!("append, {what}"));
        assert_kept(&stored(&a), &of_b, &format!("append, {what}"));
        zt!["rm", a, "b.graph"].exits(0);
        zt!["compact", a].exits(0);
        assert_kept(&stored(&a), &of_a, &format!("compact, {what}"));
        zt!["verify", a].exits(0);
    }
}

#[test]
fn flags_choose_another_storage() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (zstd, planes, out) = (path("a.zt"), path("b.zt"), path("out.zt"));
    write(&zstd, "a", WriteOptions::new().zstd(9));
    write(&planes, "a", WriteOptions::new().planes());
    let weights = |arguments: &[&str], input: &Path| {
        let mut all = vec!["convert", "--force"];
        all.extend(arguments);
        let paths = [input, &out].map(|path| path.to_str().unwrap());
        zt(all.into_iter().chain(paths)).exits(0);
        let mut stored = stored(&out);
        stored.remove("a.weights").unwrap()
    };
    let digest = |stored: &[Stored]| stored[0].digest.clone().unwrap_or_default();
    let before = &stored(&zstd)["a.weights"][0].bytes;

    let raw = weights(&["--raw"], &zstd);
    assert_eq!(raw[0].encoding, Encoding::Raw);
    // The blob stays, under another digest.
    let other = weights(&["--digest", "sha256"], &zstd);
    assert!(&other[0].bytes == before && digest(&other).starts_with("sha256:"));
    let none = weights(&["--digest", "none"], &zstd);
    assert!(&none[0].bytes == before && none[0].digest.is_none());
    let faster = weights(&["--zstd=1"], &zstd);
    assert!(faster[0].encoding == Encoding::Zstd && &faster[0].bytes != before);
    let split = weights(&["--planes"], &zstd);
    assert_eq!((&*split[0].format, split.len()), ("zt.planes/1", 4));
    let joined = weights(&["--dense"], &planes);
    assert_eq!((&*joined[0].format, joined.len()), ("dense", 1));
    let raw = weights(&["--raw"], &planes);
    assert!(raw.iter().all(|plane| plane.encoding == Encoding::Raw));
    assert_eq!(raw.len(), 4);
}

/// With a digest and without one.
#[test]
fn damage_is_found_where_blobs_are_copied_as_they_are() {
    let dir = tempdir().unwrap();
    let (path, out) = (dir.path().join("a.zt"), dir.path().join("out.zt"));
    for (options, code) in [
        (WriteOptions::new().zstd(9), "digest-mismatch"),
        (WriteOptions::new().zstd(9).digest(None), "zstd"),
    ] {
        write(&path, "a", options);
        let file = File::open(&path).unwrap();
        let tensor = file.tensor("a.weights").unwrap();
        let span = tensor.component("data").unwrap().blob.span;
        let mut bytes = fs::read(&path).unwrap();
        bytes[usize::try_from(span.offset() + span.byte_len() / 2).unwrap()] ^= 1;
        fs::write(&path, bytes).unwrap();
        for command in ["convert", "merge"] {
            let run = zt![command, path, out, "--json"].exits(1);
            assert_eq!(run.error_code(), code);
            let object = run.json()["error"]["object"].clone();
            assert!(object == "a.weights" || object == "a.tied", "{object}");
            assert!(!out.exists());
        }
    }
}
