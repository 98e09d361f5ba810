//! The kits for strangers, run by our own formats and kinds: `zt::test_kit` and `zt_foreign::test_kit`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use zt::formats::ComponentSignature;
use zt::{DType, File, NewObject, Signature, ToObject, test_kit};
use zt_convert::Kinds;
use zt_convert::foreign::test_kit::check_kind;

/// The most objects of a format, and files of a kind: each is tried with thousands of damages.
const MOST: usize = 1;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The files below a folder, smallest first.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort_by_key(|path| (fs::metadata(path).unwrap().len(), path.clone()));
    found
}

/// Small objects of every format of the corpus pass its kit.
#[test]
fn every_format_passes_its_kit() {
    const LARGEST: usize = 512;
    let registry = zt::registry();
    let mut objects: BTreeMap<String, Vec<NewObject<'static>>> = BTreeMap::new();
    for folder in ["valid", "own/valid"] {
        for path in files(&corpus().join(folder)) {
            if path.extension().is_none_or(|extension| extension != "zt") {
                continue;
            }
            let Ok(file) = zt_convert::open(&path) else { continue };
            let file: &'static File = Box::leak(Box::new(file));
            for tensor in file.tensors().filter_map(Result::ok) {
                let of_format = objects.entry(tensor.format().to_owned()).or_default();
                let Ok(parts) = tensor.parts() else { continue };
                let byte_len: usize = parts.elements.iter().map(|(_, it)| it.bytes.len()).sum();
                let is_known =
                    registry.format(tensor.format()).is_some() && tensor.fault().is_none();
                if of_format.len() == MOST || byte_len > LARGEST || !is_known {
                    continue;
                }
                of_format.push(NewObject {
                    shape: parts.shape,
                    format: tensor.format().to_owned().into(),
                    attributes: tensor.object().attributes.clone(),
                    components: parts.elements,
                });
            }
        }
    }
    let attributes = zt::Attributes::new();
    for format in registry.formats() {
        let mut of_format = objects.remove(format.id()).unwrap_or_default();
        if of_format.is_empty() {
            // Blocks of GGUF may have any bytes.
            let data = ComponentSignature {
                role: "data",
                dtype: Some(DType::U8),
                logical_type: None,
                byte_len: None,
            };
            let shape = &[2, 256];
            let signature = Signature { shape, attributes: &attributes, components: vec![data] };
            let len = format.expected_len("data", &signature, &registry);
            let len = len.unwrap_or_else(|| panic!("no object of {}", format.id()));
            let bytes: Vec<u8> = (0..len).map(|at| (at * 7 % 251) as u8).collect();
            of_format.push(NewObject {
                shape: shape[..].into(),
                format: format.id().to_owned().into(),
                attributes: None,
                components: vec![("data".into(), bytes.into())],
            });
        }
        let of_format: Vec<&dyn ToObject> = of_format.iter().map(|it| it as _).collect();
        test_kit::check_format(&registry, &of_format);
    }
}

/// Small files of every kind that their own programs wrote pass its kit.
#[test]
fn every_kind_passes_its_kit() {
    /// Most files of zTensor 2 have two pages.
    const LARGEST: usize = 9 << 10;
    for kind in Kinds::builtin().iter() {
        let mut samples = Vec::new();
        for path in files(&corpus()) {
            let bytes = fs::read(&path).unwrap();
            let folder = path.strip_prefix(corpus()).unwrap().to_string_lossy().into_owned();
            let is_sound = !["invalid", "lenient"].iter().any(|name| folder.contains(name));
            if samples.len() == MOST || bytes.len() > LARGEST || !is_sound {
                continue;
            }
            let source = zt::Memory::new(bytes.clone());
            if Kinds::builtin().detect(&source).unwrap() == Some(kind.kind())
                && Kinds::builtin()
                    .open_source(source, zt_convert::InputOptions::new())
                    .and_then(|input| input.file().verify(&zt::VerifyOptions::new()))
                    .is_ok_and(|report| report.is_ok())
            {
                samples.push(bytes);
            }
        }
        // The files of a checkpoint are found beside its metadata.
        let needs_a_folder = kind.kind() == zt_convert::DCP;
        assert!(!samples.is_empty() || needs_a_folder, "no file of {}", kind.kind());
        let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
        check_kind(kind, &samples);
    }
}
