//! What the table of formats in README.md says about copying: a file in memory, or mapped, lends the
//! bytes of its tensors, whatever kind it is of.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;

use zt::Memory;
use zt_conformance::corpus;

/// Tensors that are lent, and those that are copied, of the files of one folder that open.
fn count(folder: &Path) -> (usize, usize) {
    let (mut lent, mut copied) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_file = path.is_file() && path.extension().is_none_or(|end| end != "json");
        let source = || Memory::new(std::fs::read(&path).unwrap());
        let Some(Ok(file)) = is_file.then(|| zt_convert::open_source(source())) else {
            continue;
        };
        for entry in file.entries() {
            let Ok(tensor) = entry.tensor() else { continue };
            for (role, _) in &tensor.object().components {
                match tensor.bytes(role) {
                    Ok(bytes) if bytes.is_empty() => {}
                    Ok(bytes) if bytes.is_borrowed() => lent += 1,
                    Ok(_) => copied += 1,
                    Err(_) => {}
                }
            }
        }
    }
    (lent, copied)
}

#[test]
fn every_kind_lends_what_is_plain() {
    let corpus = corpus::folder().join("corpus");
    for (folder, always) in [
        ("foreign/safetensors", true),
        ("foreign/gguf", false),
        ("foreign/npy", false),
        ("foreign/npz", false),
        ("foreign/pt", false),
        ("foreign/onnx", false),
        ("foreign/h5", false),
        ("foreign/zt2", false),
        ("foreign/squizd/valid", false),
        ("foreign/slm1/valid", true),
        ("valid", false),
    ] {
        let (lent, copied) = count(&corpus.join(folder));
        println!("{folder}: {lent} lent, {copied} copied");
        assert!(lent > 0, "{folder}");
        assert!(!always || copied == 0, "{folder}: {copied} copied");
    }
}
