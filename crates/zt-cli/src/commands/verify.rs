//! `zt verify`: check files for damage and against the rules.

mod sealed;
mod signed;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use zt::{ErrorKind, File, Report, VerifyOptions, Warning};
use zt_convert::Input;
use zt_model::{ExamineOptions, Finding, verify_blob};

use crate::args::files::{FilesArgs, Found};
use crate::args::input::{InputArgs, Truncated};
use crate::args::jobs::Jobs;
use crate::commands::each::each_of;
use crate::failure::{Exit, Failure, of_findings};
use crate::files::kinds;
use crate::output::Output;
use crate::output::json::{ErrorBody, WarningBody, path_text, paths, warnings};
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text::{self, count};

/// Check files: framing, manifest, objects, digests and values
///
/// For a folder, also whether its files make one model: shards of an older split, indexes that
/// contradict each other, weights that contradict config.json, an adapter of another base. A file of
/// a cache of the Hugging Face Hub is compared with the digest that is its name.
///
/// With --seal, all bytes are compared with a seal of `zt seal`, and nothing else is checked. Wrong leaves of 1 MiB
/// are named with their bytes and tensors, and files that are missing, swapped or not in the seal.
///
/// With --signature and --key, files and tensors are compared with what `zt sign` or `model_signing` signed, and
/// nothing else is checked. It holds if the files are the signed ones, or if all tensors are, in files of any kind.
/// With --seal as well, the seal must be the signed one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: FilesArgs,
    /// Also report violations that readers tolerate
    #[arg(long)]
    strict: bool,
    /// Read headers only: no values, no digests
    #[arg(long)]
    headers: bool,
    /// With --signature: check one tensor or rows of one, by a proof of `zt prove`, and read nothing else
    #[arg(long, value_name = "PROOF", requires = "signature", conflicts_with = "seal")]
    proof: Option<PathBuf>,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt verify model.zt
  zt verify --strict *.zt
  zt verify -r models
  zt verify --headers models/llama
  zt verify --json model.zt | jq -r '.problems[].object'
  zt verify models/llama --seal llama.seal
  zt verify llama.zt --signature llama.sig --key key.pub
  zt verify https://host/llama.zt --signature llama.sig --key key.pub --proof w.proof

Exit: 0  no problems
      1  a file has problems
      3  a file is refused as a whole
      4  a file cannot be read, or there is not enough memory
      5  this build does not support a file
For several files, the exit code is the highest one, and --json prints a list of documents.";

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    ok: bool,
    objects: u64,
    components: u64,
    bytes: u64,
    /// `object/role`; ambiguous if a name has a slash.
    unverified: Vec<String>,
    unverified_components: Vec<ComponentBody<'a>>,
    /// Objects of unknown formats.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    unchecked: &'a [String],
    /// Whether the manifest of a .zt file has a digest of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    manifest_digest: Option<bool>,
    problems: Vec<ErrorBody>,
    warnings: Vec<WarningBody<'a>>,
    /// Of the folder, in the document of its first file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<FindingBody<'a>>,
    /// The reason why the file is refused as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

/// A component, with the keys that a problem has.
#[derive(Serialize)]
struct ComponentBody<'a> {
    object: &'a str,
    component: &'a str,
}

/// Files of a folder that do not fit together.
#[derive(Serialize)]
struct FindingBody<'a> {
    code: &'a str,
    message: &'a str,
    advice: &'a str,
    files: Vec<String>,
    /// Whether it counts for the exit code.
    problem: bool,
}

/// The result of one file.
struct Verdict<'p> {
    path: &'p Path,
    report: Report,
    refused: Option<Failure>,
    /// Of the folder of the file.
    findings: Vec<Finding>,
    is_strict: bool,
}

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    arguments.input.checks_scales = true;
    let arguments = &*arguments;
    if let Some(seal) = &arguments.input.seal {
        return sealed::run(arguments, seal, output);
    }
    if let (Some(signature), Some(key)) = (&arguments.input.signature, &arguments.input.key) {
        return signed::run(arguments, signature, key, output);
    }
    let Arguments { files, input, .. } = arguments;
    let found = files.found();
    let paths: Vec<PathBuf> = found.iter().map(|found| found.path.clone()).collect();
    let mut examined = HashSet::new();
    // Files that were opened with the first one of their folder.
    let kept = RefCell::new(HashMap::new());
    let open = |found: Found| {
        let kept = kept.borrow_mut().remove(&found.path);
        kept.map_or_else(|| found.open(input, Truncated::Opened), Ok)
    };
    each_of(found, files, input, open, output, |path, opened, answer| {
        let mut findings = Vec::new();
        let folder = folder_of(path, files.given());
        if let Some(folder) = folder.filter(|folder| examined.insert(folder.clone())) {
            let beside = paths.iter().filter(|it| it.parent() == Some(&folder));
            let others = open_some(beside.filter(|it| *it != path), input);
            let inputs = opened.iter().chain(others.values()).cloned();
            findings = examine(&folder, &inputs.collect::<Vec<_>>(), arguments)?;
            kept.borrow_mut().extend(others);
        }
        let mut verdict = verify(path, opened, arguments)?;
        verdict.findings = findings;
        // The exit code is an answer even if nothing reads the output.
        Failure::unless_closed(verdict.print(answer.output))?;
        if answer.output.json {
            Failure::unless_closed(answer.document(&verdict.document()))?;
        }
        Ok(verdict.exit())
    })
}

/// The first of some files, open. One that cannot be opened is opened again in its turn, which gives the error.
fn open_some<'p>(
    paths: impl Iterator<Item = &'p PathBuf>,
    input: &InputArgs,
) -> HashMap<PathBuf, Input> {
    /// Systems limit open files, some to 256.
    const KEPT: usize = 200;
    let opened = paths.take(KEPT).filter_map(|path| {
        let opened = input.open_input(path, Truncated::Opened);
        Some((path.clone(), opened.ok()?))
    });
    opened.collect()
}

/// What does not fit together in a folder. The files `opened` are open.
fn examine(
    folder: &Path,
    opened: &[Input],
    arguments: &Arguments,
) -> Result<Vec<Finding>, Failure> {
    // A file without some of its objects, or with the weights of its codes, does not show what it has.
    let is_whole = arguments.input.select.is_empty() && !arguments.input.logical;
    let opened = if is_whole { opened } else { &[] };
    let progress = Progress::of(|| Some(0));
    let report_progress = |bytes| progress.report(bytes);
    let options = ExamineOptions::new()
        .values(!arguments.headers)
        .opened(opened)
        .progress(zt::Progress::new(&report_progress));
    match zt_model::examine(kinds::table(), folder, &options) {
        Err(error) if error.kind() == ErrorKind::Interrupted => Err(error.into()),
        // A folder that cannot be listed is the error of its file.
        findings => Ok(findings.unwrap_or_default()),
    }
}

/// The folder of a file that was found in one of the given folders.
fn folder_of(path: &Path, given: &[PathBuf]) -> Option<PathBuf> {
    let folder = if path.is_dir() { path } else { path.parent()? };
    let mut given = given.iter();
    let is_found = given.any(|it| it.is_dir() && path.starts_with(it));
    is_found.then(|| folder.to_owned())
}

/// Only an interruption is an error. Everything else is a verdict.
fn verify<'p>(
    path: &'p Path,
    opened: Result<Input, Failure>,
    arguments: &Arguments,
) -> Result<Verdict<'p>, Failure> {
    let verdict = |report, refused| Verdict {
        path,
        report,
        refused,
        findings: Vec::new(),
        is_strict: arguments.strict,
    };
    let input = match opened {
        Ok(input) => input,
        Err(failure) => return Ok(verdict(Report::default(), Some(failure))),
    };
    if arguments.headers {
        let mut report = of_headers(input.file());
        for problem in &mut report.problems {
            *problem = input.blame(problem.clone());
        }
        return Ok(verdict(report, None));
    }
    let progress = Progress::of(|| Some(input.file().decoded_len()));
    let report_progress = |bytes| progress.report(bytes);
    let options = VerifyOptions::new()
        .strict(arguments.strict)
        .threads(arguments.jobs.threads())
        .progress(zt::Progress::new(&report_progress));
    let mut report = input.file().verify(&options)?;
    for problem in &mut report.problems {
        *problem = input.blame(problem.clone());
    }
    for path in input.paths() {
        match verify_blob(path, Some(zt::Progress::new(&report_progress))) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error.into()),
            checked => report.problems.extend(checked.err()),
        }
    }
    Ok(verdict(report, None))
}

/// The faults and warnings that headers show.
fn of_headers(file: &File) -> Report {
    let mut report = Report::default();
    report.objects = file.len() as u64;
    let entries = file.entries();
    let faults = entries.iter().filter_map(|entry| entry.fault().cloned());
    report.problems = faults.collect();
    report.warnings = file.warnings();
    report
}

impl Verdict<'_> {
    fn exit(&self) -> Exit {
        let of_file = match &self.refused {
            Some(failure) => failure.exit(),
            None => of_findings(&self.report.problems),
        };
        if self.findings.iter().any(|finding| self.is_problem(finding)) {
            return of_file.max(Exit::Failed);
        }
        of_file
    }

    /// Whether a finding counts for the exit code.
    fn is_problem(&self, finding: &Finding) -> bool {
        self.is_strict || finding.is_problem()
    }

    fn document(&self) -> Document<'_> {
        let report = &self.report;
        let error = self.refused.as_ref().and_then(ErrorBody::of);
        let problems = report.problems.iter().map(ErrorBody::from);
        let unverified = report.unverified.iter();
        Document {
            file: path_text(self.path),
            ok: self.exit() == Exit::Ok,
            objects: report.objects,
            components: report.components,
            bytes: report.bytes,
            unverified: unverified
                .clone()
                .map(|(object, role)| format!("{object}/{role}"))
                .collect(),
            unverified_components: unverified
                .map(|(object, component)| ComponentBody { object, component })
                .collect(),
            unchecked: &report.unchecked,
            manifest_digest: report.manifest_digest,
            problems: problems.chain(error.clone()).collect(),
            warnings: warnings(&report.warnings),
            findings: self.findings.iter().map(|it| self.finding(it)).collect(),
            error,
        }
    }

    fn finding<'f>(&self, finding: &'f Finding) -> FindingBody<'f> {
        FindingBody {
            code: finding.code,
            message: &finding.message,
            advice: &finding.advice,
            files: paths(&finding.files),
            problem: self.is_problem(finding),
        }
    }

    fn print_findings(&self, output: &Output) {
        let (problems, others): (Vec<&Finding>, Vec<&Finding>) =
            self.findings.iter().partition(|it| self.is_problem(it));
        let folder = self.findings.iter().flat_map(|it| &it.files).next();
        let Some(folder) = folder.and_then(|path| path.parent()) else {
            return;
        };
        for finding in problems {
            output.problem(finding.code, &format!("{}: {finding}", folder.display()));
        }
        if !output.json {
            let others = others.iter();
            let others = others.map(|it| Warning::new(it.code, it.to_string()));
            output.warnings_about(folder, &others.collect::<Vec<_>>());
        }
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        self.print_findings(output);
        if let Some(failure) = &self.refused {
            output.failure(failure);
            return Ok(());
        }
        let report = &self.report;
        for problem in &report.problems {
            output.error(problem);
        }
        if output.json {
            return Ok(());
        }
        output.warnings_about(self.path, &report.warnings);
        let path = text::path(self.path);
        let objects = count(report.objects, "object", "objects");
        let components = count(report.components, "component", "components");
        let bytes = human(report.bytes);
        let verdict = match report.problems.len() as u64 {
            0 => "ok".to_owned(),
            problems => count(problems, "problem", "problems"),
        };
        let unverified = match report.unverified.len() as u64 {
            0 => String::new(),
            unverified => {
                let components = count(unverified, "component has", "components have");
                format!("; {components} no digest")
            }
        };
        let unchecked = match report.unchecked.len() as u64 {
            0 => String::new(),
            unchecked => {
                let objects = count(unchecked, "object is", "objects are");
                format!("; {objects} of an unknown format and not checked")
            }
        };
        let manifest = match report.manifest_digest {
            Some(false) => "; the manifest has no digest",
            _ => "",
        };
        output.line(&format!(
            "{path}: {verdict}; {objects}, {components}, {bytes} read{unverified}{manifest}{unchecked}"
        ))
    }
}
