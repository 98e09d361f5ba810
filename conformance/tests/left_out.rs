//! One object that cannot be read stops a conversion, or is left out by name where losses are
//! allowed: of every kind of file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;

use zt::{Entry, File, OpenOptions, VerifyOptions};
use zt_conformance::corpus;
use zt_convert::{ConvertOptions, Kinds, ZT};

/// Files of a folder that were converted without what is at fault in them.
fn converted(folder: &Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Some(Ok(input)) =
            path.is_file().then(|| zt_convert::Kinds::builtin().open(&path, OpenOptions::new()))
        else {
            continue;
        };
        let entries = input.file().entries();
        let verified = input.file().verify(&VerifyOptions::default()).unwrap();
        // An object that only breaks a rule of its format is kept.
        let damaged = |name| {
            let kept = input.file().tensor(name).ok();
            let kept = kept.and_then(|tensor| tensor.fault()).map(ToString::to_string);
            let mut problems = verified.problems.iter();
            problems.any(|it| it.object() == Some(name) && Some(it.to_string()) != kept)
        };
        let faulty = entries.iter().filter(|entry| damaged(entry.name()));
        let faulty: Vec<&str> = faulty.map(Entry::name).collect();
        if faulty.is_empty() {
            continue;
        }
        let all = entries.len();
        let inputs = [input.clone()];
        let to_zt = |lossy| {
            let mut options = ConvertOptions::new(ZT);
            options = options.lossy(lossy);
            let mut out = Vec::new();
            Kinds::builtin().convert(&inputs, &mut out, &options).map(|summary| (out, summary))
        };
        let error = to_zt(false).unwrap_err();
        assert!(error.object().is_some_and(|name| faulty.contains(&name)), "{path:?}: {error}");
        let (out, summary) = to_zt(true).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert_eq!(summary.left_out, faulty, "{path:?}");
        let losses = summary.warnings.iter().filter(|it| it.code == "lossy");
        let warned = losses.map(|it| it.object.as_deref());
        let warned: Vec<&str> = warned.flatten().collect();
        assert_eq!(warned, faulty, "{path:?}");
        let rest = File::from_bytes(out).unwrap();
        assert_eq!(rest.len(), all - faulty.len(), "{path:?}");
        let verified = rest.verify(&VerifyOptions::default()).unwrap();
        let kept = rest.entries().iter().filter(|it| it.fault().is_some()).count();
        assert_eq!(verified.problems.len(), kept, "{path:?}");
        count += 1;
    }
    count
}

#[test]
fn what_cannot_be_read_is_left_out_by_name_of_every_kind() {
    let corpus = corpus::folder().join("corpus");
    for folder in [
        "foreign/gguf",
        "foreign/h5",
        "foreign/npz",
        "foreign/onnx",
        "foreign/pt",
        "foreign/slm1/invalid",
        "foreign/squizd/invalid",
        "invalid",
    ] {
        let count = converted(&corpus.join(folder));
        println!("{folder}: {count}");
        assert!(count > 0, "{folder}");
    }
}
