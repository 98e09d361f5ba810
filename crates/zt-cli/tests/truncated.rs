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
        let refused = zt!["convert", file, converted].err;
        assert!(refused.contains("--skip-damaged"), "{refused}");
        assert!(!converted.exists());
        zt!["convert", "--skip-damaged", file, converted].exits(1);
        let lost = all - whole;
        let run = zt!["repair", file, "-o", saved].exits(1);
        assert!(
            run.text().contains(&format!("saved {whole} objects")),
            "{}",
            run.text()
        );
        assert!(
            run.text().contains(&format!("{lost} left out")),
            "{}",
            run.text()
        );
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
    assert_eq!(
        (&run["verdict"], &run["saved"]),
        (&"damaged".into(), &27.into())
    );
    zt!["verify", out].exits(0);
    zt!["repair", file].exits(5);
}
