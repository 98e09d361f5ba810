//! The corpus on disk: every file that has a JSON beside it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

/// A file of the corpus.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Where the file is.
    pub path: PathBuf,
    /// Below the corpus, with forward slashes, without the ending.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What is said of it.
    pub truth: Json,
}

/// What has to become of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It reads as its JSON says.
    Read,
    /// It reads so, and its user hears of it.
    ReadWithWarning,
    /// It is refused, or an object of it is.
    Refuse,
    /// Both will do.
    Either,
}

impl Sample {
    /// By the folder, and by what the JSON says within it.
    ///
    /// # Panics
    ///
    /// Where the JSON's verdict is none.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let word = |key: &str| self.truth[key].as_str();
        if self.name.contains("invalid/") || word("expect") == Some("reject") {
            return Verdict::Refuse;
        }
        match word("verdict") {
            None | Some("accept") => Verdict::Read,
            Some("accept_with_warning") => Verdict::ReadWithWarning,
            Some("either") => Verdict::Either,
            Some(other) => panic!("{}: no verdict: {other}", self.name),
        }
    }
}

/// Where this crate is.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// Every file of the corpus, sorted by name. What is below `foreign` is none, whatever its ending:
/// shards of zTensor 2 are called `.zt` too.
///
/// # Panics
///
/// Where a file cannot be read, or has no JSON.
#[must_use]
pub fn samples() -> Vec<Sample> {
    let corpus = folder().join("corpus");
    let mut samples: Vec<Sample> = files_below(&corpus)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "zt"))
        .filter(|path| !path.starts_with(corpus.join("foreign")))
        .map(|path| {
            let name = path.with_extension("").strip_prefix(&corpus).unwrap().to_path_buf();
            let name = name.to_string_lossy().replace('\\', "/");
            let json = fs::read_to_string(path.with_extension("json")).expect(&name);
            let truth = serde_json::from_str(&json).expect(&name);
            Sample { bytes: fs::read(&path).expect(&name), path, name, truth }
        })
        .collect();
    samples.sort_by(|a, b| a.name.cmp(&b.name));
    samples
}

/// Every file below a folder, in no order; none where there is no such folder.
///
/// # Panics
///
/// Where a folder cannot be read.
#[must_use]
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("a folder's entry").path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files
}
