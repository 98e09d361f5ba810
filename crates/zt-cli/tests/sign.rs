//! Signatures: what `sign`, `prove`, `verify --signature` and `--signature` beside `--seal` say and do.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use common::{Run, zt};
use tempfile::{TempDir, tempdir};
use zt::Writer;

const KEYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/data/signature");

/// A key that is no secret.
fn key(name: &str) -> String {
    format!("{KEYS}/{name}")
}

/// Tensors of a file: the name, the shape, the values, and an attribute.
type Tensors<'t> = &'t [(&'t str, [u64; 2], [f32; 6], &'t str)];

const VALUES: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
const OTHERS: [f32; 6] = [6.0, 5.0, 4.0, 3.0, 2.0, 1.0];
const MODEL: Tensors<'static> =
    &[("a", [2, 3], VALUES, "x"), ("b", [2, 3], OTHERS, "x"), ("c", [3, 2], OTHERS, "y")];

fn write(path: &Path, tensors: Tensors<'_>) {
    let mut writer = Writer::create(path).unwrap();
    for (name, shape, values, attribute) in tensors {
        let mut object = writer.begin(name, shape, "dense").unwrap();
        object.set_attributes([("note", *attribute)].into()).unwrap();
        let mut component = object.component("data", zt::DType::F32, None).unwrap();
        component.write_all(&values.map(f32::to_le_bytes).concat()).unwrap();
        component.finish().unwrap();
        object.finish().unwrap();
    }
    writer.finish().unwrap();
}

/// A folder with a model, its seal and its signature.
struct Signed {
    dir: TempDir,
}

impl Signed {
    fn new() -> Self {
        let signed = Signed { dir: tempdir().unwrap() };
        fs::create_dir(signed.at("model")).unwrap();
        write(&signed.at("model/w.zt"), MODEL);
        fs::write(signed.at("model/config.json"), "{}").unwrap();
        let [model, seal, signature] = ["model", "m.seal", "m.sig"].map(|name| signed.path(name));
        zt(["seal", &model, &seal]).exits(0);
        zt(["sign", &seal, &signature, "--key", &key("p256.pem")]).exits(0);
        signed
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    /// `verify` with the signature, and more arguments.
    fn verify(&self, name: &str, more: &[&str]) -> Run {
        let (name, signature, key) = (self.path(name), self.path("m.sig"), key("p256.pub"));
        let arguments = ["verify", &name, "--signature", &signature, "--key", &key];
        zt(arguments.iter().chain(more))
    }

    /// The codes of the problems, or of the error.
    fn code(&self, name: &str, more: &[&str]) -> String {
        let run = self.verify(name, &[more, &["--json"]].concat()).exits(1);
        match &run.json()["problems"] {
            serde_json::Value::Array(problems) => problems[0]["code"].as_str().unwrap().to_owned(),
            _ => run.error_code(),
        }
    }
}

#[test]
fn a_signature_holds_for_files_and_for_their_content() {
    let signed = Signed::new();
    let document = signed.verify("model", &["--json"]).exits(0).json();
    assert_eq!(document["held"], serde_json::json!(["files", "content"]));
    assert_eq!((&document["files"], &document["models"][0]["signed"]), (&2.into(), &true.into()));
    assert!(signed.verify("model", &[]).exits(0).text().contains("files and content are as"));
    // The same key and model give the same bytes, whatever was signed.
    let other = signed.path("other.sig");
    zt(["sign", &signed.path("model"), &other, "--key", &key("p256-sec1.pem")]).exits(0);
    zt(["sign", &signed.path("model"), &other, "--key", &key("p256.ssh")]).exits(2);
    let document =
        zt(["sign", &signed.path("model"), &other, "--key", &key("p256.ssh"), "-f", "--json"]);
    assert_eq!(document.exits(0).json()["algorithm"], "ecdsa-p256");
    // Other shapes of the model.
    let model = signed.path("model/w.zt");
    for (name, options) in
        [("z.zt", &["--zstd"][..]), ("p.zt", &["--planes"]), ("r.zt", &["--digest", "sha256"])]
    {
        let out = signed.path(name);
        zt(["convert", &model, &out].iter().chain(options)).exits(0);
        let document = signed.verify(name, &["--json"]).exits(0).json();
        assert_eq!(document["held"], serde_json::json!(["content"]), "{name}");
    }
    let set = signed.path("set");
    zt(["split", &model, "--max-shard-size", "100", "-o", &set]).exits(0);
    let run = signed.verify("set", &[]).exits(0);
    assert!(run.text().contains("the content is as it was signed, the files are not"));
    assert!(run.err.contains("config.json: was signed and is missing"), "{}", run.err);
    zt(["merge", &set, &signed.path("merged.zt")]).exits(0);
    signed.verify("merged.zt", &[]).exits(0);
    // Other files may change, and are told.
    fs::write(signed.at("model/config.json"), "[]").unwrap();
    fs::write(signed.at("model/README.md"), "new").unwrap();
    let run = signed.verify("model", &[]).exits(0);
    assert!(run.err.contains("config.json: is not as it was signed"), "{}", run.err);
    assert!(run.err.contains("README.md: was not signed"), "{}", run.err);
    assert_eq!(signed.code("model/config.json", &[]), "signature-mismatch");
}

/// What an attacker may change, and the file that shows it.
const FORGERIES: [(&str, Tensors<'static>); 5] = [
    ("a value", &[("a", [2, 3], OTHERS, "x"), MODEL[1], MODEL[2]]),
    ("a name", &[("d", [2, 3], VALUES, "x"), MODEL[1], MODEL[2]]),
    ("a shape", &[("a", [3, 2], VALUES, "x"), MODEL[1], MODEL[2]]),
    ("an attribute", &[("a", [2, 3], VALUES, "z"), MODEL[1], MODEL[2]]),
    ("swapped", &[("a", [2, 3], OTHERS, "x"), ("b", [2, 3], VALUES, "x"), MODEL[2]]),
];

#[test]
fn a_changed_tensor_is_refused_with_and_without_a_proof() {
    let signed = Signed::new();
    let proof = signed.path("a.proof");
    zt(["prove", &signed.path("m.seal"), "a", &proof]).exits(0);
    signed.verify("model/w.zt", &["--proof", &proof]).exits(0);
    for (what, tensors) in FORGERIES {
        write(&signed.at("forged.zt"), tensors);
        assert_eq!(signed.code("forged.zt", &[]), "signature-mismatch", "{what}");
        assert_eq!(signed.code("forged.zt", &["--proof", &proof]), "signature-mismatch", "{what}");
        fs::copy(signed.at("forged.zt"), signed.at("model/w.zt")).unwrap();
        assert_eq!(signed.code("model", &[]), "signature-mismatch", "{what}");
        fs::remove_file(signed.at("forged.zt")).unwrap();
    }
    // The tensor alone is enough for its proof.
    write(&signed.at("alone.zt"), &MODEL[..1]);
    let run = signed.verify("alone.zt", &["--proof", &proof]).exits(0);
    assert!(run.text().contains("nothing else was checked"), "{}", run.text());
    assert_eq!(signed.code("alone.zt", &[]), "signature-mismatch");
}

#[test]
fn rows_are_proved_in_the_sealed_file() {
    let signed = Signed::new();
    let (seal, file, proof) =
        (signed.path("m.seal"), signed.path("model/w.zt"), signed.path("rows.proof"));
    zt(["prove", &seal, "a", &proof, "--rows", "0:1"]).exits(2);
    zt(["prove", &seal, "a", &proof, "--rows", "1:1", "--of", &file]).exits(2);
    zt(["prove", &seal, "a", &proof, "--rows", "0:3", "--of", &file]).exits(2);
    let rows = ["prove", &seal, "a", &proof, "--rows", "1:2", "--of", &file, "--json"];
    let document = zt(rows).exits(0).json();
    assert_eq!(
        (&document["file"], &document["rows"]),
        (&"w.zt".into(), &serde_json::json!([1, 2]))
    );
    assert_eq!(document["proof_size"], fs::read(&proof).unwrap().len());
    for name in ["model/w.zt", "model"] {
        let document = signed.verify(name, &["--proof", &proof, "--json"]).exits(0).json();
        assert_eq!(document["held"], serde_json::json!(["rows"]));
    }
    let bytes = fs::read(&proof).unwrap();
    fs::write(&proof, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(signed.code("model/w.zt", &["--proof", &proof]), "proof");
    fs::write(&proof, &bytes).unwrap();
    let mut changed = fs::read(&file).unwrap();
    changed[70] ^= 1;
    fs::write(&file, changed).unwrap();
    assert_eq!(signed.code("model/w.zt", &["--proof", &proof]), "signature-mismatch");
}

#[test]
fn another_key_envelope_or_seal_is_refused() {
    let signed = Signed::new();
    let (model, signature) = (signed.path("model"), signed.path("m.sig"));
    let other = key("ed25519.pub");
    let run = zt(["verify", &model, "--signature", &signature, "--key", &other, "--json"]);
    assert_eq!(run.exits(1).error_code(), "signature-key");
    zt(["verify", &model, "--signature", &signature]).exits(2);
    let text = fs::read_to_string(&signature).unwrap();
    let changed = |from: &str, to: &str| {
        fs::write(&signature, text.replacen(from, to, 1)).unwrap();
        let code = signed.code("model", &[]);
        fs::write(&signature, &text).unwrap();
        code
    };
    assert_eq!(changed("\"sig\":\"M", "\"sig\":\"N"), "signature-invalid");
    assert_eq!(changed("application/vnd.in-toto+json", "text/plain"), "signature");
    assert_eq!(changed("}", ""), "signature");
    // While reading.
    let (seal, public) = (signed.path("m.seal"), key("p256.ssh.pub"));
    let ls = |seal: &str, key: &str| {
        zt(["ls", &model, "--seal", seal, "--signature", &signature, "--key", key, "--json"])
    };
    ls(&seal, &public).exits(0);
    assert_eq!(ls(&seal, &other).exits(1).error_code(), "signature-key");
    fs::write(signed.at("model/config.json"), "[]").unwrap();
    let unsigned = signed.path("unsigned.seal");
    zt(["seal", &model, &unsigned]).exits(0);
    assert_eq!(ls(&unsigned, &public).exits(1).error_code(), "signature-mismatch");
    assert_eq!(signed.code("model", &["--seal", &unsigned]), "signature-mismatch");
    signed.verify("model", &["--seal", &seal]).exits(1);
    zt(["ls", &model, "--signature", &signature, "--key", &public]).exits(2);
    // Keys that are not read.
    for (name, code) in [("p256.encrypted", 5), ("p256.pub", 1)] {
        let out = signed.path("none.sig");
        let run = zt(["sign", &model, &out, "--key", &key(name), "--json"]).exits(code);
        assert_eq!(run.error_code(), "key");
        assert!(!Path::new(&out).exists());
    }
}

#[test]
fn signatures_of_model_signing_are_verified() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("any.bin");
    // The bytes of `oms-file.sig`: crates/zt-seal/tests/signature.rs has the whole folder.
    let header = br#"{"c":{"dtype":"U8","shape":[5000000],"data_offsets":[0,5000000]}}       "#;
    let pattern = (0..5_000_000).map(|at| u8::try_from(at / 7 % 251).unwrap());
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend(pattern);
    fs::write(&path, &bytes).unwrap();
    let file = path.display().to_string();
    let verify = |signature: &str| {
        zt(["verify", &file, "--signature", &key(signature), "--key", &key("p256.pub"), "--json"])
    };
    assert_eq!(verify("oms-file.sig").exits(0).json()["held"], serde_json::json!(["files"]));
    verify("oms.sig").exits(1);
    assert_eq!(verify("oms-certificate.sig").exits(5).error_code(), "unsupported");
    bytes[1000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    verify("oms-file.sig").exits(1);
}
