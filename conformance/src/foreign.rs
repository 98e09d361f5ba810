//! Files of other formats, written by their own libraries, held against the truth beside them.
//!
//! `corpus/foreign/README.md` says what the keys of a truth mean. What is judged here is what a
//! user of the program sees: listing, verification, hashes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use zt::{Entry, ErrorKind, File, HashOptions, Memory, ObjectHash, VerifyOptions};

use crate::corpus;
use crate::json::{hex, of_value};
use crate::observe::agree;

/// The kinds of files in `corpus/foreign`: each in a folder of its own, with one ending.
pub const KINDS: [(&str, &str); 10] = [
    ("gguf", "gguf"),
    ("h5", "h5"),
    ("npy", "npy"),
    ("npz", "npz"),
    ("onnx", "onnx"),
    ("pt", "pt"),
    ("safetensors", "safetensors"),
    ("slm1", "slm"),
    ("squizd", "squizd"),
    ("zt2", "zt2"),
];

/// A file of another format, and what is known of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name below the folder of its kind, without the ending.
    pub name: String,
    /// The file to open.
    pub path: PathBuf,
    /// What is said of it.
    pub truth: Json,
}

/// The folder `corpus/foreign`.
#[must_use]
pub fn folder() -> PathBuf {
    corpus::folder().join("corpus/foreign")
}

/// Every case of a kind, sorted by name; `kind` is the folder and the ending of its files.
///
/// # Panics
///
/// Where a truth cannot be read.
#[must_use]
pub fn cases(kind: &str) -> Vec<Case> {
    cases_in(&folder().join(kind), kind)
}

/// Every case in a folder, sorted by name, of files with that ending.
///
/// # Panics
///
/// Where a truth cannot be read.
#[must_use]
pub fn cases_in(folder: &Path, ending: &str) -> Vec<Case> {
    let entries = fs::read_dir(folder).expect(ending);
    let paths = entries.map(|entry| entry.expect(ending).path());
    let truths = paths.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let mut cases: Vec<Case> = truths
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy();
            let text = fs::read_to_string(&path).expect(&name);
            let truth: Json = serde_json::from_str(&text).expect(&name);
            Case {
                path: match truth["entry"].as_str() {
                    Some(entry) => folder.join(entry),
                    None => path.with_extension(ending),
                },
                name: name.into_owned(),
                truth,
            }
        })
        .collect();
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
        let mut wrong = Wrong::default();
        let opened = zt_convert::open(&self.path);
        match (opened, self.truth["expect"].as_str()) {
            (Err(error), expected) => {
                let is_said = matches!(
                    error.kind(),
                    ErrorKind::Malformed | ErrorKind::Unsupported | ErrorKind::Limit
                );
                wrong.unless(is_said, || format!("{:?} is no verdict: {error}", error.kind()));
                let may = expected == Some("reject")
                    || expected == Some("partial") && is_empty(&self.truth["objects"]);
                wrong.unless(may, || format!("refused: {error}"));
            }
            (Ok(file), Some("reject")) => {
                let report = file.verify(&VerifyOptions::default()).expect("no stop");
                let optional = &self.truth["optional"];
                if report.is_ok() && is_empty(optional) {
                    wrong.add(format!("accepted: {}", self.truth["about"]));
                } else if report.is_ok() {
                    self.check_objects(&file, optional, &mut wrong);
                }
            }
            (Ok(file), Some("read")) => {
                let report = file.verify(&VerifyOptions::default()).expect("no stop");
                wrong.unless(report.is_ok(), || format!("{:?}", report.problems));
                let listed: BTreeSet<&str> = file.names().collect();
                let wanted: BTreeSet<&str> = keys(&self.truth["objects"]).collect();
                wrong.unless(listed == wanted, || {
                    format!("lists {listed:?}, and there are {wanted:?}")
                });
                self.check_objects(&file, &self.truth["objects"], &mut wrong);
                self.check_attributes(&file, &mut wrong);
            }
            (Ok(file), Some("partial")) => {
                self.check_attributes(&file, &mut wrong);
                self.check_objects(&file, &self.truth["objects"], &mut wrong);
                // Of unknown types we keep the bytes.
                self.check_objects(&file, &self.truth["opaque"], &mut wrong);
                let mut optional = self.truth["optional"].clone();
                if let Some(optional) = optional.as_object_mut() {
                    // torch adds the values of a sparse tensor to zeros, which drops the sign of -0.
                    let is_dense = |name: &str| {
                        let tensor = file.tensor(name);
                        tensor.is_ok_and(|tensor| tensor.format() == "dense")
                    };
                    optional.retain(|name, _| is_dense(name));
                }
                self.check_objects(&file, &optional, &mut wrong);
                self.check_refused(&file, &mut wrong);
            }
            (Ok(_), other) => panic!("{}: no verdict: {other:?}", self.name),
        }
        self.check_warnings(&mut wrong);
        self.check_sources(&mut wrong);
        wrong.0
    }

    /// Shapes, types and values of every object of `truth`.
    fn check_objects(&self, file: &File, truth: &Json, wrong: &mut Wrong) {
        let options = HashOptions::new().dense(true);
        let hashes = file.hash(&options).expect("no stop").objects;
        let entries = file.entries();
        for (name, truth) in truth.as_object().into_iter().flatten() {
            let found = entries.iter().zip(&hashes).find(|(entry, _)| entry.name() == name);
            match found {
                None => wrong.add(format!("no object {name:?}")),
                Some((_, (_, Err(error)))) => wrong.add(format!("{name:?}: {error}")),
                Some((entry, (_, Ok(hash)))) => check_object(entry, hash, truth, wrong),
            }
        }
    }

    /// Attributes of the file, as far as JSON can say them: not NaN, nor integers beyond 64 bits.
    fn check_attributes(&self, file: &File, wrong: &mut Wrong) {
        let attributes = file.attributes().expect("no stop").unwrap_or_default();
        for (key, truth) in self.truth["attributes"].as_object().into_iter().flatten() {
            // Fields of ONNX itself have its name before theirs.
            let field = format!("onnx.{key}");
            let found = attributes.get(key).or_else(|| attributes.get(&field));
            let found = found.map(of_value);
            match &found {
                Some(Json::Object(unsayable))
                    if unsayable.keys().any(|key| key.starts_with('$')) => {}
                Some(found) if same(found, truth) => {}
                _ => wrong.add(format!("attribute {key:?} is {found:?}, and it is {truth}")),
            }
        }
    }

    /// The codes of all warnings, where the truth says them.
    fn check_warnings(&self, wrong: &mut Wrong) {
        let Some(truth) = self.truth["warnings"].as_array() else {
            return;
        };
        let Ok(file) = zt_convert::open(&self.path) else {
            return;
        };
        let warnings = file.warnings();
        let codes = warnings.iter().map(|warning| warning.code);
        // Each of these is in `refused`.
        let mut codes: Vec<&str> = codes.filter(|code| *code != "not-tensor").collect();
        codes.sort_unstable();
        wrong.unless(codes == *truth, || {
            format!("warns {:?}, and should {truth:?}", file.warnings())
        });
    }

    /// What cannot be represented is refused by name: listed, or a warning that it is not a tensor, and
    /// never readable in silence.
    fn check_refused(&self, file: &File, wrong: &mut Wrong) {
        let report = file.verify(&VerifyOptions::default()).expect("no stop");
        let entries = file.entries();
        let is_other = |name: &str| {
            let mut warnings = report.warnings.iter();
            warnings.any(|it| it.code == "not-tensor" && it.object.as_deref() == Some(name))
        };
        for (name, label) in self.truth["refused"].as_object().into_iter().flatten() {
            let optional = &self.truth["optional"][name];
            let entry = entries.iter().find(|entry| entry.name() == name);
            let is_said = report.problems.iter().any(|error| error.object() == Some(name));
            let opaque = &self.truth["opaque"][name];
            let may_be_read = !optional.is_null()
                || !opaque.is_null()
                || label.as_str().is_some_and(|text| text.contains("or read"));
            // Several that would have one name may each have one of their own.
            let are_renamed = label.as_str().is_some_and(|text| text.starts_with("two tensors"))
                && entries.len() >= keys(&self.truth["objects"]).count() + 2;
            if entry.is_none() && (are_renamed || is_other(name)) {
                continue;
            }
            wrong.unless(entry.is_some(), || format!("{name:?} is dropped: {label}"));
            wrong.unless(is_said || may_be_read, || format!("{name:?} reads: {label}"));
        }
    }

    /// A file that stands alone is the same from a path and from memory, however it is read.
    fn check_sources(&self, wrong: &mut Wrong) {
        if self.truth["files"].is_object() || self.truth["single"] == true {
            return;
        }
        let bytes = fs::read(&self.path).expect(&self.name);
        let same = agree(zt_convert::open(&self.path), zt_convert::open_source(Memory::new(bytes)));
        wrong.unless(same, || "memory and file disagree".to_owned());
    }
}

/// Whether two values are equal, and numbers by their value.
fn same(found: &Json, truth: &Json) -> bool {
    match (found, truth) {
        (Json::Array(found), Json::Array(truth)) => {
            let mut pairs = found.iter().zip(truth);
            found.len() == truth.len() && pairs.all(|(found, truth)| same(found, truth))
        }
        // NaN and infinities are texts in a truth.
        (Json::Object(found), Json::String(text)) => found["$float"] == *text,
        _ => found == truth || found.is_number() && found.as_f64() == truth.as_f64(),
    }
}

/// As `Case::problems` says, of one object.
fn check_object(entry: &Entry<'_>, hash: &ObjectHash, truth: &Json, wrong: &mut Wrong) {
    let name = entry.name();
    let (Ok(object), None) = (entry.object(), entry.fault()) else {
        return wrong.add(format!("{name:?}: {:?}", entry.fault()));
    };
    let shape: Option<Vec<u64>> = serde_json::from_value(truth["shape"].clone()).ok();
    wrong.unless(shape.as_ref() == Some(&object.shape), || {
        format!("{name:?}: shape {:?}, and it is {}", object.shape, truth["shape"])
    });
    let sums: Vec<String> = hash.components.iter().map(|(_, sum)| hex(&sum.sha256)).collect();
    let dense = hash.dense.as_ref().map(|dense| hex(&dense.bytes.sha256));
    let has = |sum: &str| sums.iter().any(|found| found == sum);
    let is_dense = |sum: &str| dense.as_deref() == Some(sum);
    let text = |key: &str| truth[key].as_str();

    if let Some(sum) = text("sha256") {
        wrong.unless(has(sum) || is_dense(sum), || format!("{name:?}: other values"));
        if object.format == "dense" {
            let data = object.component("data").expect("a dense object has data");
            let types = (data.dtype.map(|dtype| dtype.as_str()), data.logical_type.as_deref());
            wrong.unless(types == (text("dtype"), text("type")), || {
                format!("{name:?}: {types:?}, and it is {}", truth["dtype"])
            });
        }
    }
    let dense_sum = text("dense_f32_sha256").or(truth["dense"]["sha256"].as_str());
    if let Some(sum) = dense_sum {
        wrong.unless(is_dense(sum), || format!("{name:?}: another dense value"));
    }
    if let (Some(sum), None, None) = (text("raw_sha256"), text("sha256"), text("format")) {
        wrong.unless(has(sum), || format!("{name:?}: other stored bytes"));
    }
}

/// Everything that is wrong, because a reader of a failed run wants to see it all.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn add(&mut self, problem: String) {
        self.0.push(problem);
    }

    fn unless(&mut self, holds: bool, problem: impl FnOnce() -> String) {
        if !holds {
            self.add(problem());
        }
    }
}

fn keys(object: &Json) -> impl Iterator<Item = &str> {
    object.as_object().into_iter().flatten().map(|(key, _)| key.as_str())
}

fn is_empty(object: &Json) -> bool {
    keys(object).next().is_none()
}

/// The bytes of every file of a kind, the broken ones included: seeds of its fuzz target.
///
/// # Panics
///
/// Where a file cannot be read, or there is none.
#[must_use]
pub fn files(kind: &str) -> Vec<(String, Vec<u8>)> {
    let ending = KINDS.iter().find(|(known, _)| *known == kind);
    let (_, ending) = ending.expect(kind);
    files_in(&folder().join(kind), ending)
}

/// The bytes of every file in a folder that has that ending.
///
/// # Panics
///
/// Where a file cannot be read, or there is none.
#[must_use]
pub fn files_in(folder: &Path, ending: &str) -> Vec<(String, Vec<u8>)> {
    let is_file = |path: &Path| path.extension().is_some_and(|found| found == ending);
    let mut paths = corpus::files_below(folder);
    paths.retain(|path| is_file(path));
    paths.sort();
    assert!(!paths.is_empty(), "{}: no .{ending}", folder.display());
    let file = |path: PathBuf| {
        let name = path.display().to_string();
        let bytes = fs::read(&path).expect(&name);
        (name, bytes)
    };
    paths.into_iter().map(file).collect()
}
