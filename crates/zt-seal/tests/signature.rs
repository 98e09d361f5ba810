//! Signatures and proofs: the vectors of spec/signature.md §5, those of `model_signing`, and what is refused.
//! `UPDATE_GOLDEN=1` writes our vectors.
#![cfg(feature = "sign")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{model, safetensors, sealed};
use zt::{FileSource, Memory};
use zt_convert::Kinds;
use zt_seal::{Contents, Files, Proof, PublicKey, Seal, SealOptions, SecretKey, Statement, seal};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data/signature").join(name)
}

fn read(name: &str) -> Vec<u8> {
    fs::read(data(name)).unwrap()
}

#[track_caller]
fn expect(name: &str, bytes: &[u8]) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(data(name), bytes).unwrap();
    }
    assert!(read(name) == bytes, "{name} differs");
}

fn secret(name: &str) -> SecretKey {
    SecretKey::from_bytes(&read(name)).unwrap()
}

fn public(name: &str) -> PublicKey {
    PublicKey::from_bytes(&read(name)).unwrap()
}

/// The folder of the vectors, and its seal.
fn folder() -> (tempfile::TempDir, Seal) {
    let dir = tempfile::tempdir().unwrap();
    model(dir.path());
    let seal = sealed(dir.path()).seal;
    (dir, seal)
}

fn signed() -> Statement {
    Statement::open(&read("p256.sig"), &public("p256.pub")).unwrap()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: zt::Result<T>, code: &str) {
    assert_eq!(result.unwrap_err().code(), code);
}

#[test]
fn our_signatures_are_the_vectors_and_hold() {
    let (_dir, seal) = folder();
    for key in ["p256", "ed25519"] {
        let statement = Statement::new(&seal, "model", false).unwrap();
        expect(&format!("{key}.sig"), &statement.sign(&secret(&format!("{key}.pem"))).unwrap());
        let opened =
            Statement::open(&read(&format!("{key}.sig")), &public(&format!("{key}.pub"))).unwrap();
        assert_eq!(opened, statement);
        let compared = opened.compare(&seal, None);
        assert!(compared.files_hold() && compared.content_holds());
        opened.expect_seal(&seal).unwrap();
    }
}

#[test]
fn signatures_of_model_signing_hold() {
    let (dir, seal) = folder();
    let statement = Statement::open(&read("oms.sig"), &public("p256.pub")).unwrap();
    let compared = statement.compare(&seal, None);
    assert!(compared.files_hold() && !compared.content_holds() && !compared.has_contents);
    refused(statement.expect_seal(&seal), "unsupported");
    // Both sign the same digests in the same order.
    let ours: serde_json::Value =
        serde_json::from_slice(&Statement::new(&seal, "model", false).unwrap().to_json().unwrap())
            .unwrap();
    let theirs: serde_json::Value = serde_json::from_slice(&statement.to_json().unwrap()).unwrap();
    assert_eq!(ours["subject"], theirs["subject"]);
    assert_eq!(ours["predicate"]["resources"], theirs["predicate"]["resources"]);
    // A file alone, under another name.
    let statement = Statement::open(&read("oms-file.sig"), &public("p256.pub")).unwrap();
    let bytes = fs::read(dir.path().join("model-00002-of-00002.safetensors")).unwrap();
    for (flip, holds) in [(0, true), (1, false)] {
        let other = tempfile::tempdir().unwrap();
        let path = other.path().join("other.bin");
        let mut bytes = bytes.clone();
        *bytes.last_mut().unwrap() ^= flip;
        fs::write(&path, bytes).unwrap();
        let contents = Contents::of_file("other.bin");
        let files = Files::local(other.path());
        let made = seal_of(&files, &contents);
        assert_eq!(statement.compare(&made, Some(&path)).files_hold(), holds);
    }
    refused(Statement::open(&read("oms-certificate.sig"), &public("p256.pub")), "unsupported");
}

fn seal_of(files: &Files, contents: &Contents) -> Seal {
    seal(&Kinds::builtin(), files, contents, &SealOptions::new()).unwrap().seal
}

#[test]
fn all_forms_of_a_key_are_one_key() {
    for (key, private) in [
        ("p256", &["p256.pem", "p256-sec1.pem", "p256.ssh"][..]),
        ("ed25519", &["ed25519.pem", "ed25519.ssh"]),
    ] {
        let expected = public(&format!("{key}.pub"));
        assert_eq!(public(&format!("{key}.ssh.pub")), expected);
        for name in private {
            assert_eq!(secret(name).public(), expected, "{name}");
            assert!(!format!("{:?}", secret(name)).contains("SigningKey"), "{name}");
            refused(PublicKey::from_bytes(&read(name)), "key");
        }
        refused(SecretKey::from_bytes(&read(&format!("{key}.pub"))), "key");
        refused(SecretKey::from_bytes(&read(&format!("{key}.ssh.pub"))), "key");
    }
    for name in ["p256.encrypted", "p256-sec1.encrypted", "ed25519.ssh.encrypted"] {
        let error = SecretKey::from_bytes(&read(name)).unwrap_err();
        assert_eq!(error.code(), "key");
        assert!(error.to_string().contains("the key is encrypted"), "{error}");
    }
    // Cut and changed keys are refused, or are other keys; none panics.
    for name in ["p256.pem", "p256-sec1.pem", "p256.ssh", "ed25519.ssh", "ed25519.ssh.pub"] {
        let bytes = read(name);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            for bytes in [&bytes[..at], &flipped] {
                let _ = (SecretKey::from_bytes(bytes), PublicKey::from_bytes(bytes));
            }
        }
    }
}

#[test]
fn another_key_is_refused() {
    refused(Statement::open(&read("p256.sig"), &public("ed25519.pub")), "signature-key");
    refused(Statement::open(&read("ed25519.sig"), &public("p256.pub")), "signature-key");
    // One that names the wanted key.
    let theirs = public("ed25519.pub").fingerprint().unwrap();
    let ours = public("p256.pub").fingerprint().unwrap();
    let forged = String::from_utf8(read("p256.sig")).unwrap().replace(&ours, &theirs);
    refused(Statement::open(forged.as_bytes(), &public("ed25519.pub")), "signature-invalid");
}

#[test]
fn a_changed_envelope_is_refused() {
    let (bytes, key, statement) = (read("p256.sig"), public("p256.pub"), signed());
    // Every seventh byte, because a check of a signature takes a while.
    for at in (0..bytes.len()).step_by(7) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        match Statement::open(&changed, &key) {
            // A name of a field that is not looked at.
            Ok(opened) => assert_eq!(opened, statement),
            Err(error) => assert!(error.code().starts_with("signature"), "{error}"),
        }
        refused(Statement::open(&bytes[..at], &key), "signature");
    }
    let text = String::from_utf8(bytes).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from));
        Statement::open(text.replacen(from, to, 1).as_bytes(), &key)
    };
    refused(changed("application/vnd.in-toto+json", "text/plain"), "signature");
    refused(changed("bundle.v0.3", "bundle.v0.2"), "signature");
    refused(changed("\"signatures\":[", "\"signatures\":[{\"sig\":\"\"},"), "signature");
    refused(changed("\"payload\":\"", "\"payload\":\" "), "signature");
    refused(changed("\"payload\":\"", "\"payload\":\"ew==\",\"payload\":\""), "signature");
    // Another payload with the old signature.
    let payload = STANDARD.encode(signed().to_json().unwrap());
    let other =
        STANDARD.encode(Statement::new(&folder().1, "x", false).unwrap().to_json().unwrap());
    refused(changed(&payload, &other), "signature-invalid");
    let long = vec![b' '; 1 + usize::try_from(Statement::MAX_LEN).unwrap()];
    refused(Statement::open(&long, &key), "signature");
}

/// What the holder of a key has signed may still be no statement.
#[test]
fn a_statement_that_contradicts_itself_is_refused() {
    let json = String::from_utf8(signed().to_json().unwrap()).unwrap();
    Statement::from_json(json.as_bytes()).unwrap();
    for (from, to, code) in [
        ("in-toto.io/Statement/v1", "in-toto.io/Statement/v2", "signature"),
        ("model_signing/signature/v1.0", "model_signing/Digests/v0.1", "signature"),
        ("\"method\":\"files\"", "\"method\":\"shards\"", "unsupported"),
        ("\"hash_type\":\"sha256\"", "\"hash_type\":\"blake2b\"", "unsupported"),
        ("\"hash_type\":\"sha256\"", "\"hash_type\":\"blake3\"", "signature"),
        ("\"algorithm\":\"sha256\"", "\"algorithm\":\"blake3\"", "signature"),
        ("\"digest\":\"4", "\"digest\":\"5", "signature"),
        ("\"digest\":\"4", "\"digest\":\"", "signature"),
        ("\"name\":\"config.json\"", "\"name\":\"empty.txt\"", "signature"),
        ("\"name\":\"config.json\"", "\"name\":\"../config.json\"", "signature"),
        ("\"name\":\"config.json\"", "\"name\":\"/etc/passwd\"", "signature"),
        ("\"path\":\"config.json\"", "\"path\":\"empty.txt\"", "signature"),
        ("zt.signature/1", "zt.signature/2", "signature"),
        ("\"seal\":", "\"seals\":", "signature"),
        ("\"size\":2", "\"size\":-2", "signature"),
        ("\"tensors\":3", "\"tensors\":3,\"more\":1", "signature"),
    ] {
        assert!(json.contains(from), "{from}");
        let changed = json.replacen(from, to, 1);
        let error = Statement::from_json(changed.as_bytes()).unwrap_err();
        assert_eq!(error.code(), code, "{from}: {error}");
    }
    // A verifier ignores what is new elsewhere.
    let more = json.replacen("\"predicate\":{", "\"predicate\":{\"card\":{\"a\":[1]},", 1);
    assert_eq!(Statement::from_json(more.as_bytes()).unwrap(), signed());
    refused(Statement::from_json("[".repeat(100_000).as_bytes()), "signature");
}

#[test]
fn another_seal_is_refused() {
    let (_dir, mut seal) = folder();
    signed().expect_seal(&seal).unwrap();
    seal.models[0].tensors[0].identity[0] ^= 1;
    refused(signed().expect_seal(&seal), "signature-mismatch");
}

#[test]
fn files_that_were_changed_or_added_are_told() {
    let (dir, _) = folder();
    let state = |name: &str| {
        let compared = signed().compare(&sealed(dir.path()).seal, None);
        let found = compared.files.iter().find(|(path, _)| path == name);
        (found.unwrap().1.as_str(), compared.files_hold(), compared.content_holds())
    };
    fs::write(dir.path().join("config.json"), "[]").unwrap();
    assert_eq!(state("config.json"), ("changed", false, true));
    fs::remove_file(dir.path().join("config.json")).unwrap();
    assert_eq!(state("config.json"), ("missing", false, true));
    fs::write(dir.path().join("more.txt"), "").unwrap();
    assert_eq!(state("more.txt"), ("unsigned", false, true));
    // A second model is not signed, and then the folder is not.
    fs::write(dir.path().join("adapter.safetensors"), safetensors(&[("a", 8)])).unwrap();
    assert_eq!(state("adapter.safetensors"), ("unsigned", false, false));
}

#[test]
fn proofs_of_a_tensor_and_of_rows_are_the_vectors_and_hold() {
    let (dir, seal) = folder();
    let (statement, kinds, seal) = (signed(), Kinds::builtin(), Arc::new(seal));
    let proof = Proof::of_tensor(&seal, "b").unwrap();
    expect("b.proof", &proof.to_bytes().unwrap());
    let identity = |name: &str| {
        seal.models[0].tensors.iter().find(|tensor| tensor.name == name).unwrap().identity
    };
    proof.check_tensor(&statement, &identity("b")).unwrap();
    refused(proof.check_tensor(&statement, &identity("a")), "signature-mismatch");
    refused(Proof::of_tensor(&seal, "none"), "misuse");

    let path = dir.path().join("model-00002-of-00002.safetensors");
    let open = || FileSource::open(&path).unwrap();
    let of_rows = |rows| Proof::of_rows(&seal, 3, open(), &kinds, "c", rows);
    let proof = of_rows(2_000_000..2_000_009).unwrap();
    expect("rows.proof", &proof.to_bytes().unwrap());
    let values = proof.check_rows(&statement, &open(), &kinds).unwrap();
    assert_eq!(
        values.elements().as_slice::<u8>().unwrap()[..],
        common::pattern(5_000_000)[2_000_000..2_000_009]
    );
    refused(of_rows(5..5), "misuse");
    refused(of_rows(0..5_000_001), "misuse");
    refused(Proof::of_rows(&seal, 2, open(), &kinds, "a", 0..1), "seal-mismatch");
    // A byte that the proof covers, and one that it does not.
    let bytes = fs::read(&path).unwrap();
    for (at, holds) in [(20, false), (2_000_080, false), (3_500_000, true)] {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        let checked = proof.check_rows(&statement, &Memory::new(bytes), &kinds);
        if holds { drop(checked.unwrap()) } else { refused(checked, "signature-mismatch") }
    }
    let cut = Memory::new(bytes[..4_000_000].to_vec());
    refused(proof.check_rows(&statement, &cut, &kinds), "signature-mismatch");
    // Of another signature.
    let theirs = Statement::open(&read("oms.sig"), &public("p256.pub")).unwrap();
    refused(proof.check_rows(&theirs, &open(), &kinds), "unsupported");
}

#[test]
fn a_changed_or_truncated_proof_is_refused() {
    let (dir, seal) = folder();
    let (statement, kinds) = (signed(), Kinds::builtin());
    let identity = seal.models[0].tensors[1].identity;
    let path = dir.path().join("model-00002-of-00002.safetensors");
    let source = Memory::new(fs::read(path).unwrap());
    let check = |bytes: &[u8]| -> zt::Result<()> {
        let proof = Proof::from_bytes(bytes)?;
        match proof.rows() {
            None => proof.check_tensor(&statement, &identity),
            Some(_) => proof.check_rows(&statement, &source, &kinds).map(drop),
        }
    };
    for (name, step) in [("b.proof", 1), ("rows.proof", 3)] {
        let bytes = read(name);
        check(&bytes).unwrap();
        for at in 0..bytes.len() {
            refused(check(&bytes[..at]), "proof");
            if at % step == 0 {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                let code = check(&changed).map_err(|error| error.code().to_owned());
                // Other rows, or a name that no tensor has, in bytes that are right.
                let is_other = name == "rows.proof"
                    && code.is_ok()
                    && Proof::from_bytes(&changed).unwrap().rows()
                        != Proof::from_bytes(&bytes).unwrap().rows();
                let known = ["proof", "signature-mismatch", "misuse"];
                assert!(is_other || code.is_err_and(|code| known.contains(&&*code)), "{name} {at}");
            }
        }
        refused(check(&[&bytes[..], &bytes].concat()), "proof");
    }
}

#[test]
fn trees_of_any_size_prove_each_tensor() {
    let mut lines = Vec::new();
    for count in [1, 2, 3, 4, 5, 7, 8, 9, 33] {
        let dir = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..count).map(|at| format!("t{at:02}")).collect();
        let tensors: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 8)).collect();
        fs::write(dir.path().join("m.safetensors"), safetensors(&tensors)).unwrap();
        let seal = sealed(dir.path()).seal;
        let statement = Statement::new(&seal, "m", false).unwrap();
        let facts = statement.facts().unwrap();
        let root = facts.models[0].root.map(|byte| format!("{byte:02x}")).concat();
        lines.push(format!("  {{\"tensors\": {count}, \"root\": \"{root}\"}}"));
        for (at, tensor) in seal.models[0].tensors.iter().enumerate() {
            let proof = Proof::of_tensor(&seal, &tensor.name).unwrap();
            let bytes = proof.to_bytes().unwrap();
            Proof::from_bytes(&bytes).unwrap().check_tensor(&statement, &tensor.identity).unwrap();
            let mut other = tensor.identity;
            other[at % 32] ^= 1;
            refused(proof.check_tensor(&statement, &other), "signature-mismatch");
            refused(proof.check_tensor(&signed(), &tensor.identity), "proof");
        }
    }
    expect("tree.json", format!("[\n{}\n]\n", lines.join(",\n")).as_bytes());
}

#[test]
fn proofs_are_short_for_many_tensors_and_refused_for_a_long_name() {
    let (_dir, mut seal) = folder();
    let tensor = seal.models[0].tensors[0].clone();
    let tensors = (0..100_000).map(|at| {
        let mut tensor = tensor.clone();
        tensor.name = format!("model.layers.{at:06}.mlp.experts.up_proj.weight");
        tensor
    });
    seal.models[0].tensors = tensors.collect();
    let name = seal.models[0].tensors[77_777].name.clone();
    let proof = Proof::of_tensor(&seal, &name).unwrap();
    assert_eq!(proof.to_bytes().unwrap().len(), 682);
    let statement = Statement::new(&seal, "m", false).unwrap();
    proof.check_tensor(&statement, &tensor.identity).unwrap();
    let long = "x".repeat(3000);
    seal.models[0].tensors[0].name.clone_from(&long);
    seal.models[0].tensors.sort_by(|a, b| a.name.cmp(&b.name));
    refused(Proof::of_tensor(&seal, &long), "misuse");
}
