//! Seals: what `seal`, `verify --seal`, `repair --seal` and `--seal` of commands that read say and do.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{names_in, of_sizes, zt};
use tempfile::{TempDir, tempdir};

const MIB: usize = 1 << 20;

/// A folder with a file of tensors, one of text, and their seal.
struct Sealed {
    dir: TempDir,
}

impl Sealed {
    fn new() -> Self {
        let dir = tempdir().unwrap();
        let model = dir.path().join("model");
        fs::create_dir(&model).unwrap();
        of_sizes(
            &model.join("w.safetensors"),
            &[("a", 3 * MIB as u64), ("b", 100), ("c", 2 * MIB as u64)],
        );
        // All bytes are zeros: leaves shall differ.
        let mut bytes = fs::read(model.join("w.safetensors")).unwrap();
        let header = bytes.len() - 5 * MIB - 100;
        for (at, byte) in bytes.iter_mut().enumerate().skip(header).take(3 * MIB) {
            *byte = u8::try_from(at / 11 % 251).unwrap();
        }
        fs::write(model.join("w.safetensors"), bytes).unwrap();
        fs::write(model.join("config.json"), "{}").unwrap();
        let sealed = Sealed { dir };
        zt(["seal", &sealed.path("model"), &sealed.path("m.seal")]).exits(0);
        sealed
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(self.at(name)).unwrap();
        change(&mut bytes);
        fs::write(self.at(name), bytes).unwrap();
    }

    fn verify(&self, name: &str) -> common::Run {
        zt(["verify", &self.path(name), "--seal", &self.path("m.seal")])
    }

    fn repair(&self, name: &str, from: &str) -> common::Run {
        let (file, from) = (self.path(name), self.path(from));
        zt(["repair", &file, "--seal", &self.path("m.seal"), "--from", &from])
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in names_in(from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

#[test]
fn the_seal_has_the_identity_that_hash_prints() {
    let sealed = Sealed::new();
    let [model, seal] = ["model", "m.seal"].map(|name| sealed.path(name));
    zt(["seal", &model, &seal]).exits(2);
    let document = zt(["seal", &model, "-o", &seal, "--force", "--json"]).exits(0).json();
    let hash = zt(["hash", &sealed.path("model/w.safetensors"), "--json"]).exits(0).json();
    assert_eq!(document["models"][0]["content"], hash["content"]);
    assert_eq!((&document["files"], &document["models"][0]["tensors"]), (&2.into(), &3.into()));
    assert_eq!(document["seal_size"], fs::read(&seal).unwrap().len());
    let before = fs::read(&seal).unwrap();
    zt(["seal", &model, &seal, "-f", "-j", "1"]).exits(0);
    assert_eq!(fs::read(&seal).unwrap(), before, "the seal is deterministic");
    // A seal in the folder is no part of it.
    zt(["seal", &model, &sealed.path("model/own.bin")]).exits(0);
    assert_eq!(fs::read(sealed.at("model/own.bin")).unwrap(), before);
    zt(["seal", &model, &sealed.path("model/own.bin"), "-f"]).exits(0);
    assert_eq!(fs::read(sealed.at("model/own.bin")).unwrap(), before);
    zt(["seal", &sealed.path("none"), &sealed.path("x.seal")]).exits(4);
    assert!(!sealed.at("x.seal").exists());
}

#[test]
fn wrong_leaves_are_named_with_their_bytes_and_tensors() {
    let sealed = Sealed::new();
    let run = sealed.verify("model").exits(0);
    assert!(run.text().contains("model: ok; 2 files"), "{}", run.text());
    sealed.change("model/w.safetensors", |bytes| {
        bytes[100] ^= 1;
        bytes[2 * MIB..3 * MIB].fill(0);
    });
    let run = sealed.verify("model").exits(1);
    let path = sealed.path("model/w.safetensors");
    let lines: Vec<&str> = run.err.lines().collect();
    let expected = [
        format!(
            "error[seal-mismatch]: leaf 0 of {path}: bytes 0..1048576 differ from the seal, in a"
        ),
        format!(
            "error[seal-mismatch]: leaf 2 of {path}: bytes 2097152..3145728 are zeros, and the seal has others, in a"
        ),
    ];
    assert_eq!(lines, expected);
    assert!(run.text().contains("1 file differs from the seal"), "{}", run.text());
    let json = ["verify", &path, "--seal", &sealed.path("m.seal"), "--json"];
    let document = zt(json).exits(1).json();
    assert_eq!(document["ok"], false);
    let problem = &document["problems"][1];
    assert_eq!((&problem["leaf"], &problem["leaves"]), (&2.into(), &1.into()));
    assert_eq!((&problem["offset"], &problem["end"]), (&2_097_152.into(), &3_145_728.into()));
    assert_eq!((&problem["damage"], &problem["tensors"][0]), (&"zeros".into(), &"a".into()));
}

#[test]
fn cut_long_missing_extra_and_swapped_files_are_named() {
    let sealed = Sealed::new();
    let right = fs::read(sealed.at("model/w.safetensors")).unwrap();
    let says = |sealed: &Sealed, text: &str| {
        let run = sealed.verify("model").exits(1);
        assert!(run.err.contains(text), "{}", run.err);
    };
    sealed.change("model/w.safetensors", |bytes| bytes.truncate(2 * MIB + 5));
    says(&sealed, "its end is missing");
    says(&sealed, "bytes 2097152..");
    sealed.change("model/w.safetensors", |bytes| *bytes = [&right[..], b"more"].concat());
    says(&sealed, "something is behind its end");
    fs::rename(sealed.at("model/w.safetensors"), sealed.at("model/v.safetensors")).unwrap();
    says(&sealed, "w.safetensors: is missing");
    says(&sealed, "v.safetensors: is not in the seal");
    sealed.change("model/v.safetensors", |bytes| bytes.clone_from(&right));
    says(
        &sealed,
        "v.safetensors: is not in the seal; it is the file \"w.safetensors\" of the seal",
    );
    // Files that the seal is not about.
    fs::write(sealed.at("model/m.sig"), "").unwrap();
    fs::rename(sealed.at("model/v.safetensors"), sealed.at("model/w.safetensors")).unwrap();
    sealed.verify("model").exits(0);
    sealed.verify("model/m.sig").exits(2);
}

#[test]
fn commands_that_read_refuse_a_wrong_leaf_and_read_the_others() {
    let sealed = Sealed::new();
    let (path, seal) = (sealed.path("model/w.safetensors"), sealed.path("m.seal"));
    let c = ["show", &path, "c", "--slice", "0:3", "--seal", &seal];
    let plain = zt(&c[..5]).exits(0).text();
    sealed.change("model/w.safetensors", |bytes| bytes[2 * MIB] ^= 1);
    assert_eq!(zt(c).exits(0).text(), plain);
    let run = zt(["show", &path, "a", "--slice", "2097000:2097300", "--seal", &seal]).exits(1);
    assert!(
        run.err.contains("error[seal-mismatch]") && run.err.contains("leaf 2 of w.safetensors"),
        "{}",
        run.err
    );
    for command in ["hash", "stats"] {
        zt([command, &path, "--seal", &seal]).exits(1);
    }
    let out = sealed.path("out.safetensors");
    zt(["convert", &path, &out, "--seal", &seal]).exits(1);
    assert!(!sealed.at("out.safetensors").exists());
    // The folder stands for the model of the seal, and a file that the seal does not have is refused.
    zt(["ls", &sealed.path("model"), "--seal", &seal]).exits(0);
    of_sizes(&sealed.at("other.safetensors"), &[("x", 8)]);
    zt(["ls", &sealed.path("other.safetensors"), "--seal", &seal]).exits(2);
    zt(["ls", &path, "--seal", &path]).exits(3);
}

#[test]
fn a_repair_takes_wrong_leaves_from_another_copy() {
    let sealed = Sealed::new();
    copy(&sealed.at("model"), &sealed.at("copy"));
    let right = fs::read(sealed.at("model/w.safetensors")).unwrap();
    sealed.change("copy/w.safetensors", |bytes| bytes[3 * MIB] ^= 1);
    let damaged = fs::read(sealed.at("copy/w.safetensors")).unwrap();
    let run = sealed.repair("copy/w.safetensors", "copy").exits(1);
    assert!(
        run.err.contains("the source of the repair is wrong, too: leaf 3 of w.safetensors"),
        "{}",
        run.err
    );
    assert!(fs::read(sealed.at("copy/w.safetensors")).unwrap() == damaged);
    let run = sealed.repair("copy/w.safetensors", "model").exits(0);
    assert!(run.text().contains("w.safetensors: repaired; 1 leaf, 1.0 MiB"), "{}", run.text());
    assert!(fs::read(sealed.at("copy/w.safetensors")).unwrap() == right);
    let run = sealed.repair("copy/w.safetensors", "none").exits(0);
    assert!(run.text().contains("sound; nothing was changed"), "{}", run.text());
    // A folder, with a file that is missing.
    fs::remove_file(sealed.at("copy/config.json")).unwrap();
    sealed.change("copy/w.safetensors", |bytes| bytes.truncate(10));
    sealed.repair("copy", "model").exits(0);
    assert_eq!(names_in(&sealed.at("copy")), names_in(&sealed.at("model")));
    sealed.verify("copy").exits(0);
    zt(["repair", &sealed.path("copy/w.safetensors"), "--seal", &sealed.path("m.seal")]).exits(2);
}

#[test]
fn a_set_is_sealed_and_checked_by_its_index() {
    let sealed = Sealed::new();
    let set = sealed.path("set");
    let size = ["--max-shard-size", "3MiB"];
    zt(["split", &sealed.path("model/w.safetensors"), size[0], size[1], "-o", &set]).exits(0);
    let index = names_in(&sealed.at("set")).into_iter().find(|it| it.contains(".index.")).unwrap();
    let index = sealed.path(&format!("set/{index}"));
    let seal = sealed.path("set.seal");
    let document = zt(["seal", &index, &seal, "--json"]).exits(0).json();
    assert_eq!(document["files"], names_in(&sealed.at("set")).len());
    zt(["verify", &index, "--seal", &seal]).exits(0);
    let hash = |extra: &[&str]| zt([&["hash", &index, "--json"], extra].concat()).exits(0).json();
    assert_eq!(hash(&["--seal", &seal])["content"], hash(&[])["content"]);
    let shard = names_in(&sealed.at("set")).into_iter().find(|it| it.contains("-00001-")).unwrap();
    sealed.change(&format!("set/{shard}"), |bytes| bytes[MIB] ^= 1);
    zt(["verify", &index, "--seal", &seal]).exits(1);
    zt(["hash", &index, "--seal", &seal]).exits(1);
}

#[test]
fn parity_mends_without_another_copy() {
    let sealed = Sealed::new();
    let right = fs::read(sealed.at("model/w.safetensors")).unwrap();
    let (model, seal) = (sealed.path("model"), sealed.path("p.seal"));
    for wrong in ["0%", "101%", "x", "-1"] {
        zt(["seal", &model, &seal, &format!("--parity={wrong}")]).exits(2);
    }
    assert!(!sealed.at("p.seal").exists());
    let run = zt(["seal", &model, &seal, "--parity", "25%"]).exits(0);
    assert!(run.text().contains("p.seal.parity: 2.0 MiB, mends 2 wrong leaves"), "{}", run.text());
    zt(["seal", &model, &seal, "--parity", "25%"]).exits(2);
    let run = zt(["seal", &model, &seal, "--parity", "25%", "--force", "--json"]).exits(0);
    assert_eq!(run.json()["parity"]["mends"], 2);
    let repair = |extra: &[&str]| zt([&["repair", &model, "--seal", &seal], extra].concat());
    sealed.change("model/w.safetensors", |bytes| {
        bytes[7] ^= 1;
        bytes.truncate(5 * MIB + 1);
    });
    assert_eq!(repair(&["--dry-run", "--json"]).exits(0).json()[1]["verdict"], "mendable");
    assert!(fs::read(sealed.at("model/w.safetensors")).unwrap() != right);
    let run = repair(&[]).exits(0);
    assert!(run.text().contains("w.safetensors: repaired; 2 leaves"), "{}", run.text());
    assert!(fs::read(sealed.at("model/w.safetensors")).unwrap() == right);
    repair(&[]).exits(0);
    // One file, and a missing one.
    fs::remove_file(sealed.at("model/config.json")).unwrap();
    let config = sealed.path("model/config.json");
    let run = zt(["repair", &config, "--seal", &seal, "--parity", &sealed.path("p.seal.parity")]);
    assert!(run.exits(0).text().contains("config.json: repaired; 1 leaf"));
    assert_eq!(fs::read(sealed.at("model/config.json")).unwrap(), b"{}");
    // Too much.
    sealed.change("model/w.safetensors", |bytes| bytes[MIB - 1..3 * MIB + 1].fill(1));
    let damaged = fs::read(sealed.at("model/w.safetensors")).unwrap();
    let run = repair(&[]).exits(1);
    assert!(
        run.text().contains("the parity cannot mend 4 leaves; nothing was changed"),
        "{}",
        run.text()
    );
    assert!(run.err.contains("error[seal-mismatch]: leaves 0..4 of "), "{}", run.err);
    let document = repair(&["--json"]).exits(1).json();
    assert_eq!(
        (&document[1]["verdict"], &document[1]["changed"]),
        (&"damaged".into(), &false.into())
    );
    assert_eq!(document[1]["left"][0]["leaves"], 4);
    assert!(fs::read(sealed.at("model/w.safetensors")).unwrap() == damaged);
    // Not a parity file, and none.
    zt(["repair", &model, "--seal", &seal, "--parity", &seal]).exits(3);
    zt(["repair", &model, "--seal", &sealed.path("m.seal")]).exits(2);
}
