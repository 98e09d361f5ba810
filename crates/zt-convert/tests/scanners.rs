//! Pickles of the classes that scanners were reported to miss. `conformance/data/scanners/make.py` wrote them; Python's
//! own unpickler lists what it would import.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(feature = "pytorch")]

use std::fs;
use std::path::Path;

use serde_json::Value;
use zt::{OpenOptions, VerifyOptions};
use zt_convert::Kinds;

/// The codes and texts about a file, and whether strict verification passes. A file without tensors is refused.
fn said_of(path: &Path) -> (Vec<(&'static str, String)>, bool) {
    match Kinds::builtin().open(path, OpenOptions::new()) {
        Ok(input) => {
            let warnings = input.file().warnings().into_iter();
            let said = warnings.map(|it| (it.code, it.message)).collect();
            let report = input.file().verify(&VerifyOptions::new().strict(true));
            (said, report.unwrap().is_ok())
        }
        Err(error) => (vec![(error.code(), error.to_string())], false),
    }
}

#[test]
fn what_scanners_were_reported_to_miss_is_named() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data/scanners");
    let truth: Value =
        serde_json::from_slice(&fs::read(folder.join("truth.json")).unwrap()).unwrap();
    let truth = truth.as_object().unwrap();
    assert!(truth.len() >= 10);
    for (name, case) in truth {
        let (said, is_sound) = said_of(&folder.join(name));
        assert!(!is_sound, "{name}");
        // An invalid pickle runs what is before its fault. Without a global, no program loads the file.
        let globals = case["globals"].as_array().unwrap();
        let is_told = |(code, text): &(&str, String)| match *code {
            "pickle-danger" => true,
            "pickle" => text.contains("; before that, Python would "),
            code => code == "unsupported" && globals.is_empty(),
        };
        assert!(said.iter().any(is_told), "{name}: {said:?}");
        for global in globals.iter().map(|it| it.as_str().unwrap()) {
            let is_named = said.iter().any(|(_, text)| text.contains(global));
            assert!(is_named, "{name}: {global} is not named: {said:?}");
        }
    }
}
