//! What is signed: an in-toto statement with OMS's predicate, and the facts of a seal in a key of our own.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use zt::Result;

use crate::contents::{Contents, Model};
use crate::decode::check_path;
use crate::seal::{Seal, SealedModel};
use crate::sign::envelope::{open, seal as envelope_of, shown};
use crate::sign::fault::SignatureFault as Fault;
use crate::sign::hash::{from_hex, hex, hex_option, sha256, to_hex};
use crate::sign::keys::{PublicKey, SecretKey};
use crate::sign::tree::{merge_tensors, sum_of, tensor_leaf};
use crate::tree::Sum;

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const PREDICATE: &str = "https://model_signing/signature/v1.0";
const FACTS: &str = "zt.signature/1";

/// What `model_signing` leaves out of every folder.
const IGNORED: [&str; 4] = [".git", ".gitattributes", ".github", ".gitignore"];

/// The name of a resource that is the whole model: a single file.
const ALONE: &str = ".";

/// What was signed: digests of files, and the facts of a seal. One that [`Statement::open`] gives was signed by the
/// key. Spec: signature.md.
///
/// ```
/// use zt_convert::Kinds;
/// use zt_seal::{Contents, Files, PublicKey, SealOptions, SecretKey, Statement, seal};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("config.json"), "{}")?;
/// let contents = Contents::of_folder(&Kinds::builtin(), folder.path(), None)?;
/// let made = seal(&Kinds::builtin(), &Files::local(folder.path()), &contents, &SealOptions::new())?;
///
/// let key = SecretKey::from_bytes(b"-----BEGIN PRIVATE KEY-----
/// MC4CAQAwBQYDK2VwBCIEIGPaSItq6ET3YtNDVgJI56Fv8IFn5EHQ78eztfPq8wIS
/// -----END PRIVATE KEY-----")?;
/// let signature = Statement::new(&made.seal, "model", false)?.sign(&key)?;
/// let statement = Statement::open(&signature, &key.public())?;
/// assert!(statement.compare(&made.seal, None).files_hold());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statement {
    /// The name of the model, which nothing depends on.
    pub name: String,
    /// Paths of files with their digests, as OMS has them.
    pub(super) resources: Vec<(String, Sum)>,
    /// Whether the digests are BLAKE3 and not SHA-256.
    pub(super) is_blake3: bool,
    /// Whether the model is a single file, whose name is not signed.
    pub(super) is_alone: bool,
    /// Paths that may be in the folder and were not signed.
    pub(super) ignored: Vec<String>,
    /// What `zt sign` has added.
    pub(super) facts: Option<Facts>,
}

/// The facts of a seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Facts {
    format: String,
    /// The SHA-256 of the seal.
    #[serde(with = "hex")]
    pub seal: Sum,
    /// In the order of the seal.
    pub files: Vec<SignedFile>,
    /// In the order of the seal.
    pub models: Vec<SignedModel>,
}

/// A file of a seal that was signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SignedFile {
    /// Below the folder, with `/` between names.
    pub path: String,
    /// The number of its bytes.
    #[serde(rename = "size")]
    pub byte_len: u64,
    /// The root of its leaves.
    #[serde(with = "hex")]
    pub blake3: Sum,
}

/// A model of a seal that was signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SignedModel {
    /// The file that opens it.
    pub path: String,
    /// The content identity, as `zt hash` prints it.
    #[serde(with = "hex_option", default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Sum>,
    /// The number of tensors.
    pub tensors: u64,
    /// The root of the tree over names and identities of tensors.
    #[serde(with = "hex")]
    pub root: Sum,
}

#[derive(Serialize, Deserialize)]
struct Document {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: Predicate,
}

/// The types alone: of another one, the rest may be anything.
#[derive(Deserialize)]
struct Types {
    #[serde(rename = "_type", default)]
    kind: String,
    #[serde(rename = "predicateType", default)]
    predicate_type: String,
}

#[derive(Serialize, Deserialize)]
struct Subject {
    name: String,
    digest: SubjectDigest,
}

#[derive(Serialize, Deserialize)]
struct SubjectDigest {
    sha256: String,
}

#[derive(Serialize, Deserialize)]
struct Predicate {
    serialization: Serialization,
    resources: Vec<Resource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zt: Option<Facts>,
}

#[derive(Serialize, Deserialize)]
struct Serialization {
    method: String,
    hash_type: String,
    allow_symlinks: bool,
    #[serde(default)]
    ignore_paths: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Resource {
    name: String,
    algorithm: String,
    digest: String,
}

impl Statement {
    /// The longest signature file that is read: of some ten thousand files.
    pub const MAX_LEN: u64 = 16 << 20;

    /// The statement about the files and models of a seal. `is_alone`: the model is the only file of the seal,
    /// and `model_signing` finds it under any name.
    ///
    /// # Errors
    ///
    /// Code `seal` for a seal that [`Seal::to_bytes`] refuses.
    pub fn new(seal: &Seal, name: impl Into<String>, is_alone: bool) -> Result<Self> {
        let is_alone = is_alone && seal.files.len() == 1;
        let mut resources: Vec<(String, Sum)> =
            seal.files.iter().map(|file| (file.path.clone(), file.sha256)).collect();
        // The order of `model_signing`: by the names in the paths.
        resources.sort_by(|(a, _), (b, _)| a.split('/').cmp(b.split('/')));
        if let (true, [(path, _)]) = (is_alone, &mut resources[..]) {
            ALONE.clone_into(path);
        }
        let ignored = IGNORED.map(str::to_owned).to_vec();
        let facts = Some(Facts::new(seal)?);
        let name = name.into();
        Ok(Statement { name, resources, is_blake3: false, is_alone, ignored, facts })
    }

    /// The signature file: the same for the same statement and key.
    ///
    /// # Errors
    ///
    /// Code `signature` for a statement that is too long.
    pub fn sign(&self, key: &SecretKey) -> Result<Vec<u8>> {
        let bytes = envelope_of(&self.to_json()?, key)?;
        expect_short(&bytes)?;
        Ok(bytes)
    }

    /// The statement in a signature file, which the key has signed.
    ///
    /// # Errors
    ///
    /// Code `signature` for a file that is no signature of a model, `signature-key` for one by another key,
    /// `signature-invalid` if the key has not signed what is there, `unsupported` for one by a certificate.
    pub fn open(bytes: &[u8], key: &PublicKey) -> Result<Self> {
        expect_short(bytes)?;
        Self::from_json(&open(bytes, key)?)
    }

    /// The payload of the envelope.
    ///
    /// # Errors
    ///
    /// None of a sound statement.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        let algorithm = if self.is_blake3 { "blake3" } else { "sha256" };
        let resources = self.resources.iter().map(|(name, digest)| Resource {
            name: name.clone(),
            algorithm: algorithm.to_owned(),
            digest: to_hex(digest),
        });
        let sha256 = to_hex(&subject_digest(&self.resources)?);
        let document = Document {
            kind: STATEMENT.to_owned(),
            subject: vec![Subject { name: self.name.clone(), digest: SubjectDigest { sha256 } }],
            predicate_type: PREDICATE.to_owned(),
            predicate: Predicate {
                serialization: Serialization {
                    method: "files".to_owned(),
                    hash_type: algorithm.to_owned(),
                    allow_symlinks: false,
                    ignore_paths: self.ignored.clone(),
                },
                resources: resources.collect(),
                zt: self.facts.clone(),
            },
        };
        serde_json::to_vec(&document).map_err(|error| Fault::NoSignature(error.to_string()).into())
    }

    /// The statement in the payload of an envelope, which nothing has verified.
    ///
    /// # Errors
    ///
    /// Code `signature` if it is no statement about a model; `unsupported` for other digests than SHA-256 and
    /// BLAKE3 of whole files.
    pub fn from_json(payload: &[u8]) -> Result<Self> {
        let malformed = |error: serde_json::Error| Fault::NoSignature(error.to_string());
        let types: Types = serde_json::from_slice(payload).map_err(malformed)?;
        for (what, found, expected) in
            [("type", types.kind, STATEMENT), ("predicate", types.predicate_type, PREDICATE)]
        {
            if found != expected {
                return Err(Fault::Statement { what, found: shown(&found) }.into());
            }
        }
        let document: Document = serde_json::from_slice(payload).map_err(malformed)?;
        let Predicate { serialization, resources, zt: facts } = document.predicate;
        let unsupported = |what, found: &str| Fault::Method { what, found: shown(found) };
        if serialization.method != "files" {
            return Err(unsupported("method", &serialization.method).into());
        }
        let is_blake3 = serialization.hash_type == "blake3";
        if !is_blake3 && serialization.hash_type != "sha256" {
            return Err(unsupported("hash", &serialization.hash_type).into());
        }
        let resources = resources.into_iter().map(|Resource { name, algorithm, digest }| {
            let digest = from_hex(&digest).filter(|_| algorithm == serialization.hash_type);
            Ok((name, digest.ok_or(Fault::Field { field: "digest of a file" })?))
        });
        let resources = resources.collect::<Result<Vec<_>, Fault>>()?;
        let is_alone = matches!(&resources[..], [(name, _)] if name == ALONE);
        if !is_alone {
            let paths = resources.iter().map(|(path, _)| path.as_str());
            expect_paths(paths, "list of files")?;
        }
        let [subject] = <[Subject; 1]>::try_from(document.subject)
            .map_err(|_| Fault::Field { field: "subject" })?;
        if from_hex(&subject.digest.sha256) != Some(subject_digest(&resources)?) {
            return Err(Fault::Field { field: "digest of all files" }.into());
        }
        if let Some(facts) = &facts {
            facts.validate()?;
        }
        let ignored = serialization.ignore_paths;
        Ok(Statement { name: subject.name, resources, is_blake3, is_alone, ignored, facts })
    }

    /// The facts of the seal.
    ///
    /// # Errors
    ///
    /// Code `unsupported` if another program has made the signature.
    pub fn facts(&self) -> Result<&Facts> {
        Ok(self.facts.as_ref().ok_or(Fault::NoFacts)?)
    }

    /// Refuses a seal other than the one whose facts were signed.
    ///
    /// # Errors
    ///
    /// Code `signature-mismatch` for another seal; `unsupported` if another program has made the signature.
    pub fn expect_seal(&self, seal: &Seal) -> Result<()> {
        // Digests of files would not do: a seal of a stranger may have them beside other leaves.
        if self.facts()?.seal != seal.sha256()? {
            return Err(Fault::Seal.into());
        }
        Ok(())
    }

    /// The paths of the signed files. A single file has none.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.resources.iter().filter(|_| !self.is_alone).map(|(path, _)| path.as_str())
    }

    /// The signed files and models, to be looked for in a place that cannot be listed.
    pub fn contents(&self) -> Contents {
        let mut files: Vec<String> = self.paths().map(str::to_owned).collect();
        files.sort_unstable();
        let models = self.facts.iter().flat_map(|facts| &facts.models);
        let models = models.filter(|model| files.contains(&model.path));
        let models = models.map(|model| Model { path: model.path.clone(), parts: Vec::new() });
        let models = models.collect();
        Contents { files, models }
    }
}

impl Facts {
    fn new(seal: &Seal) -> Result<Self> {
        let files = seal.files.iter().map(|file| SignedFile {
            path: file.path.clone(),
            byte_len: file.byte_len,
            blake3: file.blake3,
        });
        let models = seal.models.iter().map(|model| {
            Ok(SignedModel {
                path: model.path.clone(),
                content: model.content,
                tensors: model.tensors.len() as u64,
                root: root_of(model)?,
            })
        });
        let models = models.collect::<Result<_>>()?;
        Ok(Facts { format: FACTS.to_owned(), seal: seal.sha256()?, files: files.collect(), models })
    }

    fn validate(&self) -> Result<()> {
        if self.format != FACTS {
            let found = shown(&self.format);
            return Err(Fault::Statement { what: "format of facts", found }.into());
        }
        expect_paths(self.files.iter().map(|file| file.path.as_str()), "list of sealed files")?;
        let models = self.models.iter().map(|model| model.path.as_str());
        // A folder of slices may be the sealed folder.
        expect_paths(models.filter(|path| !path.is_empty()), "list of models")
    }
}

/// The root of the tree over the tensors of a model.
fn root_of(model: &SealedModel) -> Result<Sum> {
    if model.tensors.is_empty() {
        return sha256(&[]);
    }
    let leaves: Vec<Sum> = model
        .tensors
        .iter()
        .map(|tensor| tensor_leaf(&tensor.name, &tensor.identity))
        .collect::<Result<_>>()?;
    let leaf = |at: u64| {
        let leaf = usize::try_from(at).ok().and_then(|at| leaves.get(at));
        Ok(leaf.copied().unwrap_or_default())
    };
    sum_of(&(0..leaves.len() as u64), true, &leaf, merge_tensors)
}

/// OMS's digest of all files: the SHA-256 of their digests.
fn subject_digest(resources: &[(String, Sum)]) -> Result<Sum> {
    let digests: Vec<&[u8]> = resources.iter().map(|(_, digest)| &digest[..]).collect();
    sha256(&digests)
}

/// Refuses paths that are repeated, or not below a folder.
fn expect_paths<'a>(paths: impl Iterator<Item = &'a str>, field: &'static str) -> Result<()> {
    let mut seen = HashSet::new();
    for path in paths {
        if check_path(path).is_err() || !seen.insert(path) {
            return Err(Fault::Field { field }.into());
        }
    }
    Ok(())
}

fn expect_short(bytes: &[u8]) -> Result<()> {
    let (byte_len, limit) = (bytes.len() as u64, Statement::MAX_LEN);
    if byte_len > limit {
        return Err(Fault::TooLong { byte_len, limit }.into());
    }
    Ok(())
}
