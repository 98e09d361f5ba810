//! `zt verify --signature`: files and tensors are compared with what was signed.

use std::path::Path;

use serde::Serialize;
use zt::{Error, HashOptions, Warning, codes};
use zt_model::Beside;
use zt_model::seal::{Comparison, FileState, Proof, PublicKey, SignatureFault, Statement};

use super::Arguments;
use crate::failure::{Exit, Failure};
use crate::files::kinds;
use crate::files::remote::{self, location};
use crate::files::seals::{self, Sealed};
use crate::output::Output;
use crate::output::json::{object, path_text};
use crate::output::text::{self, count};

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    signature: String,
    /// The fingerprint of the public key.
    key: String,
    algorithm: &'a str,
    /// The name of the model when it was signed.
    name: &'a str,
    ok: bool,
    /// `files`, `content`, or both.
    held: Vec<&'a str>,
    /// The files that were looked for or found.
    files: usize,
    /// The models that were found.
    models: Vec<ModelBody<'a>>,
    problems: Vec<Problem<'a>>,
}

#[derive(Serialize)]
struct ModelBody<'a> {
    file: &'a str,
    /// Whether its content was signed.
    signed: bool,
}

/// What differs, with the keys of every problem first. It is also listed if the content holds.
#[derive(Serialize)]
struct Problem<'a> {
    code: &'static str,
    message: String,
    file: String,
    object: Option<&'a str>,
    component: Option<&'a str>,
    offset: Option<u64>,
    /// `changed`, `missing` or `unsigned`.
    state: &'a str,
}

pub(super) fn run(
    arguments: &Arguments,
    signature: &Path,
    key: &Path,
    output: &mut Output,
) -> Result<Exit, Failure> {
    if arguments.headers || !arguments.input.select.is_empty() || arguments.input.logical {
        let message = "--signature compares whole files: leave out --headers, --logical and the \
                       choice of objects";
        return Err(Failure::misuse(message));
    }
    let options = remote::options(&arguments.input.remote);
    let signed = seals::signed(signature, key, &options)?;
    if let Some(proof) = &arguments.proof {
        return by_proof(arguments, signature, &signed, proof, output);
    }
    let (threads, remote) = (arguments.jobs.threads(), &arguments.input.remote);
    let mut all = Vec::new();
    for file in arguments.files.given() {
        let sealed = seals::make(file, None, Some(&signed.0), threads, remote);
        let Sealed { made, file: sealed, .. } =
            sealed.map_err(|failure| failure.with_path(file))?;
        if !output.json {
            output.warnings_about(file, &made.warnings);
        }
        let comparison = signed.0.compare(&made.seal, sealed.as_deref());
        all.push(Found { path: file, comparison, is_folder: sealed.is_none() });
    }
    for found in &all {
        Failure::unless_closed(found.print(output))?;
    }
    if output.json {
        let documents = all.iter().map(|found| found.document(signature, &signed));
        let documents: Vec<_> = documents.collect();
        let printed = match &documents[..] {
            [document] if !arguments.files.is_list() => output.document(document),
            documents => output.document(&documents),
        };
        Failure::unless_closed(printed)?;
    }
    Ok(all.iter().map(Found::exit).max().unwrap_or(Exit::Ok))
}

/// What was found of a file or of a folder.
struct Found<'f> {
    path: &'f Path,
    comparison: Comparison,
    is_folder: bool,
}

impl Found<'_> {
    fn held(&self) -> Vec<&'static str> {
        let files = self.comparison.files_hold().then_some("files");
        files.into_iter().chain(self.comparison.content_holds().then_some("content")).collect()
    }

    fn exit(&self) -> Exit {
        if self.held().is_empty() { Exit::Failed } else { Exit::Ok }
    }

    fn document<'a>(
        &'a self,
        signature: &Path,
        (statement, key): &'a (Statement, PublicKey),
    ) -> Document<'a> {
        let models = self.comparison.models.iter();
        Document {
            file: path_text(self.path),
            signature: path_text(signature),
            key: key.fingerprint().unwrap_or_default(),
            algorithm: key.algorithm(),
            name: &statement.name,
            ok: self.exit() == Exit::Ok,
            held: self.held(),
            files: self.comparison.files.len(),
            models: models.map(|(file, signed)| ModelBody { file, signed: *signed }).collect(),
            problems: self.problems(),
        }
    }

    fn problems(&self) -> Vec<Problem<'static>> {
        let shown = |name: &str| match self.is_folder {
            true => self.path.join(name),
            false => self.path.to_owned(),
        };
        let problem = |name: &str, state, what: &str| {
            let path = shown(name);
            Problem {
                code: codes::SIGNATURE_MISMATCH,
                message: format!("{}: {what}", text::path(&path)),
                file: path_text(&path),
                object: None,
                component: None,
                offset: None,
                state,
            }
        };
        let files = self.comparison.files.iter().filter_map(|(name, state)| {
            let what = match state {
                FileState::Right => return None,
                FileState::Changed => "is not as it was signed",
                FileState::Missing => "was signed and is missing",
                _ => "was not signed",
            };
            Some(problem(name, state.as_str(), what))
        });
        let models = self.comparison.models.iter().filter(|(_, is_signed)| !is_signed);
        let models = models.filter(|_| self.comparison.has_contents);
        let models = models.map(|(name, _)| {
            problem(name, "changed", "has tensors other than those that were signed")
        });
        let missing = self.comparison.missing.iter();
        let missing = missing
            .map(|name| problem(name, "missing", "no file has the signed tensors of this model"));
        files.chain(models).chain(missing).collect()
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        /// Problems that are told; `--json` has all.
        const TOLD: usize = 20;
        let (held, problems) = (self.held(), self.problems());
        let is_told = held.is_empty() || self.is_folder;
        for problem in problems.iter().filter(|_| is_told).take(TOLD) {
            if held.is_empty() {
                output.problem(problem.code, &problem.message);
            } else if !output.json {
                output.warnings(&[Warning::new(problem.code, problem.message.as_str())]);
            }
        }
        if let Some(more @ 1..) = problems.len().checked_sub(TOLD).filter(|_| is_told) {
            let path = text::path(self.path);
            output.note(&format!("{path}: {more} more differ; --json lists all"));
        }
        if output.json {
            return Ok(());
        }
        let verdict = match &held[..] {
            ["files", "content"] => "files and content are as they were signed",
            ["files"] => "the files are as they were signed",
            ["content"] => "the content is as it was signed, the files are not",
            _ => "neither the files nor the content are as they were signed",
        };
        let files = count(self.comparison.files.len() as u64, "file", "files");
        let models = count(self.comparison.models.len() as u64, "model", "models");
        output.line(&format!("{}: {verdict}; {files}, {models}", text::path(self.path)))
    }
}

/// Checks a tensor, or rows of one.
fn by_proof(
    arguments: &Arguments,
    signature: &Path,
    (statement, key): &(Statement, PublicKey),
    path: &Path,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let [file] = arguments.files.given() else {
        return Err(Failure::misuse("--proof is about one file: give one"));
    };
    let options = remote::options(&arguments.input.remote);
    let proof = Proof::from_bytes(&seals::small(path, &options)?);
    let proof = proof.map_err(|error| error.with_path(path))?;
    let name = proof.name();
    let blame = |error: Error| error.with_path(file).with_object(name);
    let place = location(file);
    if proof.rows().is_some() {
        let within = proof.file(statement).map_err(|error| error.with_path(path))?;
        let Beside { files, name: last, .. } = place.beside(Some(within), &options)?;
        let source = files.open_one(last.as_deref().unwrap_or(within))?;
        proof.check_rows(statement, &*source, kinds::table()).map_err(blame)?;
    } else {
        let input = place.open(&options).map_err(Failure::Refused)?;
        let one = input.file().select(|it| (it == name).then(|| name.to_owned()))?;
        let hash = one.hash(&HashOptions::new().threads(arguments.jobs.threads()))?;
        let absent = || SignatureFault::Absent { name: name.to_owned() };
        let (_, hash) =
            hash.objects.into_iter().next().ok_or_else(absent).map_err(|it| blame(it.into()))?;
        let identity = hash.map_err(blame)?.identity;
        let identity = identity.ok_or(SignatureFault::Tensor).map_err(|it| blame(it.into()))?;
        proof.check_tensor(statement, &identity).map_err(blame)?;
    }
    if output.json {
        output.document(&object! {
            file: path_text(file),
            signature: path_text(signature),
            proof: path_text(path),
            key: key.fingerprint()?,
            algorithm: key.algorithm(),
            name: &statement.name,
            ok: true,
            held: [if proof.rows().is_some() { "rows" } else { "tensor" }],
            object: name,
            rows: proof.rows().map(|rows| [rows.start, rows.end]),
            problems: [(); 0],
        })?;
        return Ok(Exit::Ok);
    }
    let what =
        proof.rows().map_or(String::new(), |it| format!("rows {}..{} of ", it.start, it.end));
    let (file, name) = (text::path(file), text::cell(name));
    output.line(&format!("{file}: {what}{name}: as it was signed; nothing else was checked"))?;
    Ok(Exit::Ok)
}
