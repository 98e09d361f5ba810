//! Files of formats whose specification leaves much open, held against what is settled for each.
//!
//! `corpus/foreign/README.md` says what `read` and `strict` mean.

use std::fs;
use std::path::PathBuf;

use serde_json::Value as Json;
use zt::{
    DType, DigestAlgorithm, File, Memory, OpenOptions, QuantizedGroup, Tensor, VerifyOptions,
};

use crate::observe::agree;
use crate::{foreign, hash};

/// A file and what a plain and a strict reader are to make of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Folder and name, without the ending.
    pub name: String,
    path: PathBuf,
    truth: Json,
}

/// A tensor that a file has to have.
struct Expected<'t> {
    name: String,
    truth: &'t Json,
}

/// The file, if a plain or a strict reader takes it: it opens and everything in it verifies.
///
/// # Panics
///
/// Where verification is stopped, which no test asks for.
#[must_use]
pub fn accepted(opened: zt::Result<File>, strict: bool) -> Option<File> {
    let options = VerifyOptions::new().strict(strict);
    let file = opened.ok()?;
    let report = file.verify(&options).expect("no stop");
    report.is_ok().then_some(file)
}

/// Every case of `squizd` or `slm1`, whose files end in `extension`.
///
/// # Panics
///
/// Where a truth cannot be read.
#[must_use]
pub fn cases(kind: &str, extension: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for folder in ["valid", "policy", "invalid"] {
        let path = foreign::folder().join(kind).join(folder);
        for entry in fs::read_dir(&path).expect(kind) {
            let path = entry.expect(kind).path();
            if path.extension().is_some_and(|ending| ending == "json") {
                let stem = path.file_stem().expect("a name").to_string_lossy();
                let text = fs::read_to_string(&path).expect(&stem);
                cases.push(Case {
                    name: format!("{folder}/{stem}"),
                    path: path.with_extension(extension),
                    truth: serde_json::from_str(&text).expect(&stem),
                });
            }
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

impl Case {
    /// What is wrong with what we make of the file; empty if nothing is.
    ///
    /// # Panics
    ///
    /// Where two ways to read one thing disagree.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let open = |strict| {
            zt_convert::Kinds::builtin()
                .open(&self.path, OpenOptions::new().strict(strict))
                .map(zt_convert::Input::into_file)
        };
        let (plain, strict) = (accepted(open(false), false), accepted(open(false), true));
        for (key, verdict) in [("read", &plain), ("strict", &strict)] {
            let expected = self.truth[key].as_str().expect("a verdict");
            let found = if verdict.is_some() { "accept" } else { "reject" };
            if expected != "either" && expected != found {
                wrong.push(format!("{key} is {found}: {}", self.truth["about"]));
            }
        }
        if open(true).is_ok() && plain.is_none() {
            wrong.push("opens strictly, and does not verify".to_owned());
        }
        if open(true).is_err() && strict.is_some() {
            wrong.push("verifies strictly, and does not open so".to_owned());
        }
        if let Some(file) = plain.filter(|_| self.name.starts_with("valid/")) {
            for expected in self.tensors() {
                if let Some(problem) = expected.problem(&file) {
                    wrong.push(format!("{}: {problem}", expected.name));
                }
            }
        }
        let memory = Memory::new(fs::read(&self.path).expect("a file"));
        if !agree(open(false), zt_convert::open_source(memory)) {
            wrong.push("memory and file disagree".to_owned());
        }
        wrong
    }

    /// The tensors that the truth describes, by the names that we give them.
    fn tensors(&self) -> Vec<Expected<'_>> {
        let truth = &self.truth;
        let mut tensors = Vec::new();
        let mut add = |name, truth| tensors.push(Expected { name, truth });
        if let Some(layers) = truth["layers"].as_array() {
            for layer in layers {
                let idx = &layer["layer_idx"];
                for tensor in layer["tensors"].as_array().expect("a list") {
                    add(format!("layers.{idx}.{}", tensor["index"]), tensor);
                }
                if layer["mask"].is_object() {
                    add(format!("layers.{idx}.mask"), &layer["mask"]);
                }
            }
            for tensor in truth["draft"]["tensors"].as_array().into_iter().flatten() {
                add(format!("draft.{}", tensor["index"]), tensor);
            }
            if truth["coreml"].is_object() {
                add("coreml".to_owned(), &truth["coreml"]);
            }
            return tensors;
        }
        let layers = truth["header"]["layer_count"].as_u64().expect("a number");
        for truth in truth["tensors"].as_array().expect("a list") {
            let name = truth["name_not_in_file"].as_str().expect("a name");
            let hash = truth["name_hash"].as_str().expect("a hash");
            match is_canonical(name, layers) {
                true => add(name.to_owned(), truth),
                false => add(format!("tensor_{}", &hash[2..]), truth),
            }
        }
        tensors
    }
}

/// Whether a name is one that an SLM1 model of so many layers has.
fn is_canonical(name: &str, layers: u64) -> bool {
    let parts: Vec<&str> = name.split('.').collect();
    let of_layer = ["attn_norm", "ffn_norm", "wq", "wk", "wv", "wo", "w1", "w2", "w3"];
    match parts.as_slice() {
        ["tok_embeddings" | "norm" | "output", "weight"] => true,
        ["layers", layer, part, "weight"] => {
            layer.parse::<u64>().is_ok_and(|layer| layer < layers) && of_layer.contains(part)
        }
        _ => false,
    }
}

impl Expected<'_> {
    /// The first thing that is wrong with the tensor.
    fn problem(&self, file: &File) -> Option<String> {
        let tensor = match file.tensor(&self.name) {
            Ok(tensor) => tensor,
            Err(error) => return Some(error.to_string()),
        };
        let shape = self.truth["shape"].as_array();
        let shape = shape.map(|dims| dims.iter().filter_map(Json::as_u64).collect::<Vec<_>>());
        if shape.is_some_and(|shape| shape != tensor.shape()) {
            return Some(format!("shape {:?}", tensor.shape()));
        }
        let sum = |bytes: &[u8]| hash(DigestAlgorithm::Sha256, bytes);
        for (key, bytes) in [
            ("payload_sha256", stored(&tensor)),
            ("sha256", stored(&tensor)),
            ("scales_sha256", component(&tensor, "scales")),
            ("as_f32_sha256", values(&tensor)),
            ("values_f32_sha256", values(&tensor)),
            ("dequantized_f32_sha256", values(&tensor)),
            ("quantized_i8_sha256", quantized(&tensor)),
        ] {
            let expected = self.truth[key].as_str();
            if let Some(expected) = expected
                && bytes.is_none_or(|bytes| sum(&bytes) != expected)
            {
                return Some(format!("{key} differs"));
            }
        }
        None
    }
}

fn component(tensor: &Tensor<'_>, role: &str) -> Option<Vec<u8>> {
    tensor.bytes(role).ok().map(|bytes| bytes.to_vec())
}

/// The bytes of the values as the file has them: of a bitmap and its values, both.
fn stored(tensor: &Tensor<'_>) -> Option<Vec<u8>> {
    let roles: &[&str] = match tensor.format() {
        "quantized_group" => &["packed_weight"],
        "squizd.tca_tbe/1" => &["bitmap", "values"],
        _ => &["data"],
    };
    let parts = roles.iter().map(|role| component(tensor, role));
    parts.collect::<Option<Vec<_>>>().map(|parts| parts.concat())
}

fn values(tensor: &Tensor<'_>) -> Option<Vec<u8>> {
    let dense = tensor.to_dense().ok()?;
    let dense = dense.to_dtype(DType::F32, &zt::Registry::builtin()).ok()?;
    Some(dense.elements().bytes.to_vec())
}

/// One signed byte a value. A q8_0 payload is that already, but goes the same way.
fn quantized(tensor: &Tensor<'_>) -> Option<Vec<u8>> {
    let group = tensor.view::<QuantizedGroup<'_>>().ok()?;
    Some(group.quantized().map(|value| value as u8).collect())
}
