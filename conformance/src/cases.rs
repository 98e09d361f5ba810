//! The corpus's own cases: small files, each around one rule, each put together from parts.
//!
//! [`all`] is exported to `corpus/own` by `cargo run -p zt-conformance --example export_cases`, and a
//! test keeps the two equal. A case is named for the rule and what is done to it; where a rule has a
//! border, both sides of it are there.

mod attributes;
mod coded_planes;
mod delta;
mod digests;
mod encodings;
mod framing;
mod legacy;
mod manifest;
mod packed;
mod placement;
mod planes;
mod quantized;
mod quantized_weight;
mod schema;
mod sparse;
mod types;

use serde_json::{Map, Value as Json, json};
use zt::DigestAlgorithm;

use crate::draft::{Draft, Generation, Item, Part};
use crate::{hash, json};

/// One file and what has to become of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Unique; the file's name.
    pub name: &'static str,
    /// The folder of the corpus.
    pub folder: Folder,
    /// The file.
    pub bytes: Vec<u8>,
    /// The keys of `corpus/README.md`.
    pub expectation: Map<String, Json>,
}

/// What is said of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Folder {
    /// Has to be accepted.
    Valid,
    /// Has to be refused.
    Invalid,
    /// Is tolerated.
    Lenient,
}

impl Folder {
    /// Its name in the corpus.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Folder::Valid => "valid",
            Folder::Invalid => "invalid",
            Folder::Lenient => "lenient",
        }
    }
}

/// Every case, by folder and name.
#[must_use]
pub fn all() -> Vec<Case> {
    let mut cases = [
        framing::cases(),
        manifest::cases(),
        schema::cases(),
        placement::cases(),
        encodings::cases(),
        digests::cases(),
        types::cases(),
        sparse::cases(),
        quantized::cases(),
        planes::cases(),
        coded_planes::cases(),
        quantized_weight::cases(),
        packed::cases(),
        delta::cases(),
        attributes::cases(),
        legacy::cases(),
    ]
    .concat();
    cases.sort_by(|a, b| (a.folder, a.name).cmp(&(b.folder, b.name)));
    cases
}

/// How deep one has to look to see a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The metadata shows it.
    Open,
    /// Decoding the component shows it.
    Read,
    /// A full check of the contents shows it.
    Verify,
}

impl Case {
    fn new(folder: Folder, name: &'static str, spec: &str, about: &str, bytes: Vec<u8>) -> Self {
        let mut expectation = Map::new();
        expectation.insert("case".into(), json!(name));
        expectation.insert("about".into(), json!(about));
        expectation.insert("spec".into(), json!(spec));
        expectation.insert("file_size".into(), json!(bytes.len()));
        expectation.insert("file_sha256".into(), json!(hash(DigestAlgorithm::Sha256, &bytes)));
        Case { name, folder, bytes, expectation }
    }

    /// The JSON as it is written: keys sorted, two spaces, a newline at the end.
    #[must_use]
    pub fn json(&self) -> String {
        format!("{:#}\n", Json::Object(self.expectation.clone()))
    }

    fn truth(mut self, draft: &Draft) -> Self {
        let (generation, version, attributes, items) = draft.truth();
        // The two that are one layout share a word, as in the cases that are not ours.
        let layout = match generation {
            Generation::V0_1 => "0.1",
            Generation::V1_0 => "1.0",
            Generation::V1_1 | Generation::V1_2 => "1.2",
        };
        let version = (generation != Generation::V0_1).then_some(version);
        let objects: Map<String, Json> =
            items.into_iter().map(|(name, item)| (name, object(item))).collect();
        let fields = [
            ("layout", json!(layout)),
            ("version", json!(version)),
            ("attributes", json::of_attributes(attributes)),
            ("objects", Json::Object(objects)),
        ];
        self.expectation.extend(fields.map(|(key, value)| (key.to_owned(), value)));
        self
    }

    fn set(mut self, key: &str, value: Json) -> Self {
        self.expectation.insert(key.to_owned(), value);
        self
    }

    /// Other codes that are as right.
    fn also(self, codes: &[&str]) -> Self {
        self.set("also", json!(codes))
    }

    fn stage(self, stage: Stage) -> Self {
        self.set(
            "stage",
            json!(match stage {
                Stage::Open => "open",
                Stage::Read => "read",
                Stage::Verify => "verify",
            }),
        )
    }

    /// Whose fault it is.
    fn at(self, object: &str, component: Option<&str>) -> Self {
        self.set("object", json!(object)).set("component", json!(component))
    }
}

/// A file that has to be read as the draft says.
fn valid(name: &'static str, spec: &str, about: &str, draft: Draft) -> Case {
    Case::new(Folder::Valid, name, spec, about, draft.build()).truth(&draft)
}

/// A file that is tolerated, and has to be read as the draft says.
fn accepted(name: &'static str, spec: &str, about: &str, why: &str, draft: Draft) -> Case {
    lenient(name, spec, about, "accept", why, draft)
}

/// As [`accepted`], and the user has to hear of it.
fn warned(name: &'static str, spec: &str, about: &str, why: &str, draft: Draft) -> Case {
    lenient(name, spec, about, "accept_with_warning", why, draft)
}

fn lenient(
    name: &'static str,
    spec: &str,
    about: &str,
    verdict: &str,
    why: &str,
    draft: Draft,
) -> Case {
    let case = Case::new(Folder::Lenient, name, spec, about, draft.build()).truth(&draft);
    case.set("verdict", json!(verdict)).set("why", json!(why))
}

/// Bytes that have to be refused as a whole, with that code.
fn refused(name: &'static str, spec: &str, about: &str, code: &str, bytes: Vec<u8>) -> Case {
    let case = Case::new(Folder::Invalid, name, spec, about, bytes);
    let case = case.set("error", json!(code)).set("also", json!([])).stage(Stage::Open);
    case.set("object", Json::Null).set("component", Json::Null)
}

/// A file whose object `bad` has to be refused with that code, as its metadata shows.
fn faulty(name: &'static str, spec: &str, about: &str, code: &str, draft: Draft) -> Case {
    refused(name, spec, about, code, draft.build()).at("bad", None)
}

/// As [`faulty`], for one item in a file of 1.2 that also has an object `good`.
fn bad(name: &'static str, spec: &str, about: &str, code: &str, item: Item) -> Case {
    faulty(name, spec, about, code, Draft::v1_2().with("good", good()).with("bad", item))
}

/// An object that nothing is wrong with.
fn good() -> Item {
    Item::dense(&[3], zt::DType::U8, b"abc")
}

fn object(item: &Item) -> Json {
    let components: Map<String, Json> =
        item.parts.iter().map(|part| (part.role.clone(), component(part))).collect();
    json!({
        "shape": item.shape,
        "format": item.format,
        "attributes": json::of_attributes(item.attributes.as_ref()),
        "components": components,
    })
}

fn component(part: &Part) -> Json {
    let dtype = part.dtype.map(|dtype| dtype.as_str());
    let logical_type = part.logical_type.as_deref().filter(|name| Some(*name) != dtype);
    let algorithm = part.digest.as_deref().and_then(|text| text.split(':').next());
    let mut truth = json!({
        "dtype": dtype,
        "type": logical_type,
        "encoding": if part.zstd { "zstd" } else { "raw" },
        "digest": algorithm.map(str::to_ascii_lowercase),
        "nbytes": part.decoded.len(),
        "sha256": hash(DigestAlgorithm::Sha256, &part.decoded),
    });
    if part.decoded.len() <= 128 {
        truth["hex"] = json!(json::hex(&part.decoded));
    }
    truth
}
