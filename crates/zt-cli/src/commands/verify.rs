//! `zt verify`: check files for damage and against the rules.

use std::path::Path;

use clap::Args;
use serde::Serialize;
use zt::{Report, VerifyOptions};
use zt_convert::Input;

use crate::args::files::FilesArgs;
use crate::args::input::InputArgs;
use crate::args::jobs::Jobs;
use crate::commands::each::each;
use crate::failure::{Exit, Failure, of_findings};
use crate::output::Output;
use crate::output::json::{ErrorBody, WarningBody, path_text, warnings};
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text::{self, count};

/// Check files: framing, manifest, objects, digests and values
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: FilesArgs,
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
  zt verify -r models
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
struct Finding<'p> {
    path: &'p Path,
    report: Report,
    refused: Option<Failure>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { files, input, .. } = arguments;
    each(files, input, output, |path, opened, answer| {
        let finding = verify(path, opened, arguments)?;
        // The exit code is an answer even if nothing reads the output.
        Failure::unless_closed(finding.print(answer.output))?;
        if answer.output.json {
            Failure::unless_closed(answer.document(&finding.document()))?;
        }
        Ok(finding.exit())
    })
}

/// Only an interruption is an error. Everything else is a finding.
fn verify<'p>(
    path: &'p Path,
    opened: Result<Input, Failure>,
    arguments: &Arguments,
) -> Result<Finding<'p>, Failure> {
    let finding = |report, refused| Finding {
        path,
        report,
        refused,
    };
    let input = match opened {
        Ok(input) => input,
        Err(failure) => return Ok(finding(Report::default(), Some(failure))),
    };
    let progress = Progress::of(|| input.file().decoded_len());
    let report_progress = |bytes| progress.report(bytes);
    let options = VerifyOptions::new()
        .strict(arguments.strict)
        .threads(arguments.jobs.threads())
        .progress(zt::Progress::new(&report_progress));
    let mut report = input.file().verify(&options)?;
    for problem in &mut report.problems {
        *problem = input.blame(problem.clone());
    }
    Ok(finding(report, None))
}

impl Finding<'_> {
    fn exit(&self) -> Exit {
        match &self.refused {
            Some(failure) => failure.exit(),
            None => of_findings(&self.report.problems),
        }
    }

    fn document(&self) -> Document<'_> {
        let report = &self.report;
        let error = self.refused.as_ref().and_then(ErrorBody::of);
        let problems = report.problems.iter().map(ErrorBody::from);
        let unverified = report.unverified.iter();
        Document {
            file: path_text(self.path),
            ok: self.refused.is_none() && report.is_ok(),
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
            problems: problems.chain(error.clone()).collect(),
            warnings: warnings(&report.warnings),
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
        output.line(&format!(
            "{path}: {verdict}; {objects}, {components}, {bytes} read{unverified}{unchecked}"
        ))
    }
}
