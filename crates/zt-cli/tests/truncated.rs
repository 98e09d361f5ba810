//! Downloads that stopped: what is whole in them is listed and saved.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::tempdir;

/// The first `len` bytes of a file of the corpus, in a file of the same name.
fn cut(dir: &Path, path: &str, len: usize) -> PathBuf {
    let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let source = conformance.join(path);
    let to = dir.join(source.file_name().unwrap());
    fs::write(&to, &fs::read(&source).unwrap()[..len]).unwrap();
    to
}

#[test]
fn what_is_whole_in_a_cut_file_is_listed_and_saved() {
    let dir = tempdir().unwrap();
    for (path, len, whole, all) in [
        ("data/two-moons.safetensors", 3000, 5, 8),
        ("corpus/foreign/gguf/quant_mixed.gguf", 1200, 2, 7),
        ("corpus/foreign/npz/stored.npz", 13000, 29, 30),
        ("corpus/foreign/pt/state_dict.pt", 2400, 6, 10),
    ] {
        let file = cut(dir.path(), path, len);
        let list = zt!["ls", "--json", file].exits(0).json();
        let objects = list["objects"].as_array().unwrap();
        let sound = objects.iter().filter(|object| object["fault"].is_null());
        assert_eq!((sound.count(), objects.len()), (whole, all), "{path}");
        assert_eq!(list["warnings"][0]["code"], "truncated", "{path}");

        let report = zt!["verify", "--json", file].exits(1).json();
        assert_eq!(report["problems"][0]["offset"], len, "{path}");
        let text = zt!["verify", file].exits(1);
        let fetch = format!("fetch the rest from byte {len} on");
        assert!(text.err.contains(&fetch), "{}", text.err);

        let [converted, saved] = ["converted.zt", "saved.zt"].map(|name| dir.path().join(name));
        let refused = zt!["convert", "--json", file, converted].exits(3);
        assert_eq!(refused.error_code(), "truncated", "{path}");
        assert!(refused.err.contains("--skip-damaged"), "{}", refused.err);
        assert!(!converted.exists());
        for run in [zt!["hash", file], zt!["quantize", file, converted]] {
            assert!(run.exits(3).err.contains(&fetch), "{path}");
        }
        zt!["convert", "--skip-damaged", file, converted].exits(1);
        let lost = all - whole;
        let run = zt!["repair", file, "-o", saved].exits(1);
        assert!(run.text().contains(&format!("saved {whole} objects")), "{}", run.text());
        assert!(run.text().contains(&format!("{lost} left out")), "{}", run.text());
        zt!["diff", converted, saved].exits(0);
        for out in [converted, saved] {
            fs::remove_file(out).unwrap();
        }
    }
}

#[test]
fn an_archive_without_a_directory_is_never_complete() {
    let dir = tempdir().unwrap();
    let file = cut(dir.path(), "corpus/foreign/npz/stored.npz", 9300);
    let out = dir.path().join("out.npz");
    zt!["convert", file, out].exits(3);
    zt!["hash", file].exits(3);
    assert!(!out.exists());
    zt!["repair", "-n", file, "-o", out].exits(1);
    assert!(!out.exists());
    let run = zt!["repair", "--json", file, "-o", out].exits(1).json();
    assert_eq!((&run["verdict"], &run["saved"]), (&"damaged".into(), &27.into()));
    zt!["verify", out].exits(0);
    zt!["repair", file].exits(5);
}

#[test]
fn whole_objects_of_a_cut_file_are_shown_extracted_and_compared() {
    let dir = tempdir().unwrap();
    for (path, len, whole, cut_one) in [
        ("data/two-moons.safetensors", 3000, "layers.0.bias", Some("active")),
        (
            "corpus/foreign/gguf/quant_mixed.gguf",
            1200,
            "norm.17.router.weight",
            Some("gate.14.value.weight"),
        ),
        ("corpus/foreign/npz/stored.npz", 13000, "zero_d", Some("rows")),
        // No listed array is cut.
        ("corpus/foreign/npz/stored.npz", 9300, "f64.4", None),
        ("corpus/foreign/pt/state_dict.pt", 2400, "body.0.weight", Some("body.2.weight")),
    ] {
        let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
        let original = conformance.join(path);
        let file = cut(dir.path(), path, len);
        let is_warned = |err: &str| assert!(err.contains("warning[truncated]"), "{path}: {err}");

        for command in ["show", "cat"] {
            let expected = zt![command, original, whole].exits(0);
            let run = zt![command, file, whole].exits(0);
            assert_eq!(run.out, expected.out, "{path}");
            is_warned(&run.err);
            if let Some(cut_one) = cut_one {
                zt![command, file, cut_one].exits(1);
            }
        }
        let folder = dir.path().join("out");
        zt!["extract", file, whole, "-o", folder].exits(0);
        zt!["extract", "--force", file, "-o", folder].exits(1);
        let count = fs::read_dir(&folder).unwrap().count();
        let list = zt!["ls", "--json", file].exits(0).json();
        let objects = list["objects"].as_array().unwrap();
        let sound = objects.iter().filter(|object| object["fault"].is_null());
        assert_eq!(count, sound.count(), "{path}");
        fs::remove_dir_all(&folder).unwrap();

        let stats = zt!["stats", "--json", file].exits(1);
        is_warned(&stats.err);
        let stats = stats.json();
        assert_eq!(stats["objects"].as_array().unwrap().len(), count, "{path}");
        let same = zt!["diff", "--json", file, file].exits(1);
        is_warned(&same.err);
        assert_eq!(same.json()["same"], false, "{path}");
        zt!["diff", "--summary", file, file].exits(1);
        zt!["diff", file, file, "--include", whole].exits(1);
    }
}
