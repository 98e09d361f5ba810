//! Caches of the Hugging Face Hub.

use std::fs;

use crate::folder::{A, B, Make, Model, lora};

/// A cache of the Hub with one snapshot of each repository; every file is a link to a blob.
fn cache(repositories: &[(&str, Make)]) -> Model {
    let cache = Model::new();
    for (name, make) in repositories {
        let source = Model::new();
        make(&source);
        for entry in fs::read_dir(source.0.path()).unwrap() {
            let entry = entry.unwrap();
            let bytes = fs::read(entry.path()).unwrap();
            let digest = zt::DigestAlgorithm::Sha256.digest(&bytes).unwrap().to_string();
            let digest = digest.strip_prefix("sha256:").unwrap().to_owned();
            let root = format!("models--{}", name.replace('/', "--"));
            cache.bytes(&format!("{root}/blobs/{digest}"), &bytes);
            let file = entry.file_name().into_string().unwrap();
            let link = cache.path(&format!("{root}/snapshots/0123abc/{file}"));
            std::os::unix::fs::symlink(format!("../../blobs/{digest}"), link).unwrap();
        }
    }
    cache
}

#[test]
fn a_cache_of_the_hub_is_sound_and_knows_the_base_of_an_adapter() {
    let right: Make = |m| {
        m.set("model", &[("model.layers.0.q_proj.weight", "BF16", &[16, 8]), A]);
    };
    let wrong: Make = |m| {
        m.set("model", &[A, B]);
    };
    for (base, expected) in [(right, &[][..]), (wrong, &["adapter-base"])] {
        let cache = cache(&[("own/lora", |m| lora(m, "", "meta/base")), ("meta/base", base)]);
        let codes = |below| {
            let findings = cache.findings(below).into_iter();
            findings.map(|it| it.code).collect::<Vec<_>>()
        };
        assert_eq!(codes("models--own--lora/snapshots/0123abc"), expected);
        assert!(codes("models--meta--base/snapshots/0123abc").is_empty());
    }
}

#[test]
fn the_name_of_a_blob_is_the_digest_of_its_bytes() {
    let cache = cache(&[("a/b", |m| {
        m.weights("model.safetensors", &[A]);
    })]);
    let path = cache.path("models--a--b/snapshots/0123abc/model.safetensors");
    assert!(zt_model::verify_blob(&path, None).unwrap());
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    let error = zt_model::verify_blob(&path, None).unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
    assert_eq!(error.path(), Some(&*path));
    // Any other file has no such name.
    let other = cache.path("model.safetensors");
    fs::write(&other, &bytes).unwrap();
    assert!(!zt_model::verify_blob(&other, None).unwrap());
}
