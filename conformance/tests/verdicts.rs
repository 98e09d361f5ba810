//! Our readers beside the official ones, on mutants that both were given.
//!
//! `verdicts/KIND.json` has what the official reader made of each, by `cargo xtask verdicts`; the mutants
//! are made again from their recipes. Ours may refuse more. It takes nothing that the other refuses, unless
//! a rule says why, and where both give a tensor, it is the same one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value as Json;
use zt::{DigestAlgorithm, HashOptions, Memory, VerifyOptions};
use zt_conformance::json::hex;
use zt_conformance::{corpus, hash, mutation};
use zt_convert::{Input, InputOptions, Kinds};

/// Where ours is right to take more, or to read otherwise: the kind, words of the disagreement, and why.
const KNOWN: [(&str, &str, &str); 9] = [
    (
        "gguf",
        "is not a valid GGMLQuantizationType",
        "the bytes of an unknown type are kept, and no values are claimed",
    ),
    (
        "gguf",
        "appears to be version 1 which we cannot handle",
        "we read every version; `corpus/foreign/gguf/v1_little.json` has the truth",
    ),
    (
        "gguf",
        "foreign/gguf/v3_big.gguf: \"lora.15.router.weight\"",
        "gguf-py does not turn the bytes of bf16 in big-endian files",
    ),
    (
        "h5",
        "invalid superblock - extension message should not be def",
        "the superblock's address of free space, which no reader follows",
    ),
    (
        "h5",
        "bad flag combination for message",
        "flags that contradict each other, of a message on which no value depends",
    ),
    (
        "zt",
        "Invalid magic number. Expected 'ZTEN1000'",
        "without the magic at its end a file has layout 1.0, which this release does not read",
    ),
    (
        "zt",
        "invalid type: simple, expected known simpl",
        "CBOR that `corpus/own/lenient` lets a reader take",
    ),
    ("npz", "foreign/npz/scipy_", "a matrix of SciPy is one object, and NumPy has its arrays"),
    ("zt", "logical_complex64", "this release counts stored elements where it should count values"),
];

/// A tensor as we read it: its shape, and the digest of each of its components and of its dense value.
/// `None` for one at fault.
type Tensor = Option<(Vec<u64>, Vec<String>)>;

/// What we make of a file.
struct Ours {
    /// Whether nothing in it is at fault, and nothing is left out: what is not a tensor is not read.
    is_sound: bool,
    tensors: BTreeMap<String, Tensor>,
}

fn ours(bytes: Vec<u8>) -> Option<Ours> {
    let options = InputOptions::default();
    let input = Kinds::builtin().open_source(Memory::new(bytes), &options);
    let file = input.map(Input::into_file).ok()?;
    let report = file.verify(&VerifyOptions::default()).expect("no stop");
    let hashes = file.hash(&HashOptions::new().dense(true)).expect("no stop");
    let entries = file.entries();
    let tensors = entries.iter().zip(&hashes.objects).map(|(entry, (_, hash))| {
        let at_fault = report.problems.iter().any(|it| it.object() == Some(entry.name()));
        let tensor = match (entry.object(), hash) {
            (Ok(object), Ok(hash)) if !at_fault => {
                let components = hash.components.iter().map(|(_, sum)| &sum.sha256);
                let dense = hash.dense.iter().map(|dense| &dense.bytes.sha256);
                let sums = components.chain(dense);
                let sums = sums.map(|sum| hex(sum)[..12].to_owned()).collect();
                Some((object.shape.clone(), sums))
            }
            _ => None,
        };
        (entry.name().to_owned(), tensor)
    });
    Some(Ours {
        is_sound: report.is_ok() && report.warnings.iter().all(|it| it.code != "not-tensor"),
        tensors: tensors.collect(),
    })
}

/// What is wrong with what we make of a mutant, beside `theirs`.
fn disagreements(ours: Option<&Ours>, theirs: &Json) -> Vec<String> {
    let Some(ours) = ours else {
        return Vec::new();
    };
    if let (Some(why), true) = (theirs["refused"].as_str(), ours.is_sound) {
        return vec![format!("takes what the official reader refuses: {why}")];
    }
    let mut wrong = Vec::new();
    for (name, theirs) in theirs["tensors"].as_object().into_iter().flatten() {
        // A file of NumPy has one array and no name for it.
        let found = match name.is_empty() {
            true => ours.tensors.values().next(),
            false => ours.tensors.get(name),
        };
        match (found, theirs) {
            (Some(Some(_)), Json::Null) => {
                wrong.push(format!("{name:?}: reads a tensor that the official reader refuses"))
            }
            (Some(Some((shape, sums))), Json::Array(theirs)) => {
                let their_shape: Vec<u64> = serde_json::from_value(theirs[0].clone()).unwrap();
                if *shape != their_shape || !sums.iter().any(|sum| theirs[1] == **sum) {
                    wrong.push(format!("{name:?}: {shape:?} {sums:?}, and it is {theirs:?}"));
                }
            }
            (None, Json::Array(_)) if ours.is_sound => wrong.push(format!("{name:?}: is left out")),
            _ => {}
        }
    }
    wrong
}

fn check(kind: &str) {
    let path = corpus::folder().join(format!("verdicts/{kind}.json"));
    let stored: Json = serde_json::from_slice(&fs::read(&path).expect(kind)).expect(kind);
    let bases: BTreeMap<String, Vec<u8>> =
        mutation::bases(kind).into_iter().map(|base| (base.name, base.bytes)).collect();
    let mutants = stored["mutants"].as_array().expect(kind);
    let (mut wrong, mut both) = (Vec::new(), 0);
    for recipe in mutants {
        let text = |key: &str| recipe[key].as_str().expect(key);
        let [base, other] = ["base", "other"].map(|key| &bases[text(key)]);
        let mutant = mutation::mutant(base, other, recipe["seed"].as_u64().expect("a seed"));
        let sum = hash(DigestAlgorithm::Sha256, &mutant);
        assert_eq!(
            &sum[..12],
            text("sha256"),
            "{kind}: `cargo xtask verdicts` asks about other mutants"
        );
        let ours = ours(mutant);
        let found = disagreements(ours.as_ref(), recipe);
        both +=
            usize::from(ours.is_some_and(|ours| ours.is_sound) && recipe["tensors"].is_object());
        wrong.extend(
            found.into_iter().map(|it| format!("{} of {}: {it}", text("sha256"), text("base"))),
        );
    }
    let known = KNOWN.iter().filter(|(of, ..)| *of == kind);
    let (known, stale): (Vec<_>, Vec<_>) =
        known.partition(|(_, words, _)| wrong.iter().any(|it| it.contains(words)));
    wrong.retain(|it| !known.iter().any(|(_, words, _)| it.contains(words)));
    let reader = &stored["reader"];
    assert!(wrong.is_empty(), "{kind} beside {reader}:\n{}", wrong.join("\n"));
    assert!(stale.is_empty(), "{kind}: no mutant shows {stale:?}");
    // A test of refusals alone would hold for a reader that refuses everything.
    assert!(both * 25 >= mutants.len(), "{kind}: both take {both} of {}", mutants.len());
}

macro_rules! kinds {
    ($($kind:ident)*) => {$(
        #[test]
        fn $kind() {
            check(stringify!($kind));
        }
    )*};
}

kinds!(gguf h5 npy npz onnx safetensors zt);
