//! `zt verify`: check files for damage and against the rules.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use zt::{Report, VerifyOptions};

use crate::args::input::{InputArgs, decoded_len};
use crate::args::jobs::Jobs;
use crate::failure::{Exit, Failure, of_findings};
use crate::output::Output;
use crate::output::json::{ErrorBody, WarningBody, warnings};
use crate::output::size::human;
use crate::output::text::{count, printable};
use crate::progress::Progress;

/// Check files: framing, manifest, objects, digests and values
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files of any kind, or indexes of sharded sets
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Also report what readers accept but writers must not write
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt verify model.zt
  zt verify --strict *.zt
  zt verify --json model.zt | jq -r '.problems[].object'

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
    problems: Vec<ErrorBody>,
    warnings: Vec<WarningBody<'a>>,
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

/// The result of one file.
struct Finding {
    path: PathBuf,
    report: Report,
    refused: Option<Failure>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let mut exit = Exit::Ok;
    let mut findings = Vec::new();
    for path in &arguments.files {
        let finding = verify(path, arguments)?;
        exit = exit.max(finding.exit());
        // The exit code is an answer even if nothing reads the output.
        Failure::unless_closed(finding.print(output))?;
        findings.push(finding);
    }
    if output.json {
        let printed = match findings.as_slice() {
            [finding] => output.document(&finding.document()),
            findings => {
                let documents: Vec<Document<'_>> = findings.iter().map(Finding::document).collect();
                output.document(&documents)
            }
        };
        Failure::unless_closed(printed)?;
    }
    Ok(exit)
}

/// Only an interruption is an error. Everything else is a finding.
fn verify(path: &Path, arguments: &Arguments) -> Result<Finding, Failure> {
    let finding = |report, refused| Finding {
        path: path.to_owned(),
        report,
        refused,
    };
    let file = match arguments.input.open(path) {
        Ok(file) => file,
        Err(failure) => return Ok(finding(Report::default(), Some(failure))),
    };
    let progress = Progress::new(Some(decoded_len(&file)));
    let report_progress = |bytes| progress.report(bytes);
    let options = VerifyOptions::new()
        .strict(arguments.strict)
        .threads(arguments.jobs.threads())
        .progress(zt::Progress::new(&report_progress));
    Ok(finding(file.verify(&options)?, None))
}

impl Finding {
    fn exit(&self) -> Exit {
        match &self.refused {
            Some(failure) => failure.exit(),
            None => of_findings(&self.report.problems),
        }
    }

    fn document(&self) -> Document<'_> {
        let Report {
            objects,
            components,
            bytes,
            unverified,
            unchecked,
            problems,
            warnings: remarks,
            ..
        } = &self.report;
        let error = self.refused.as_ref().and_then(ErrorBody::of);
        let problems = problems.iter().map(ErrorBody::from).chain(error.clone());
        Document {
            file: self.path.display().to_string(),
            ok: self.refused.is_none() && self.report.is_ok(),
            objects: *objects,
            components: *components,
            bytes: *bytes,
            unverified: unverified
                .iter()
                .map(|(object, role)| format!("{object}/{role}"))
                .collect(),
            unverified_components: unverified
                .iter()
                .map(|(object, component)| ComponentBody { object, component })
                .collect(),
            unchecked,
            problems: problems.collect(),
            warnings: warnings(remarks),
            error,
        }
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
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
        output.warnings(&report.warnings);
        let path = self.path.display().to_string();
        let path = printable(&path);
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
        output.line(&format!(
            "{path}: {verdict}; {objects}, {components}, {bytes} read{unverified}{unchecked}"
        ))
    }
}
