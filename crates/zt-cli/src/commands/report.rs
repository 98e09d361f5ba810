//! `zt report`: one HTML page that shows a model.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use zt::foreign::AtomicFile;
use zt::{ErrorKind, File};
use zt_convert::Input;
use zt_report::{FileSummary, Report, ReportOptions};

use crate::args::input::{InputArgs, Truncated, byte_len};
use crate::args::jobs::Jobs;
use crate::failure::{Exit, Failure};
use crate::files::path::is_stdout;
use crate::files::remote::expect_local;
use crate::output::Output;
use crate::output::json::{object, path_text};
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text::{self, abridged, count};
use crate::output::value::Any;

/// Write one HTML page that shows a model, or what changed between two
///
/// The page opens from disk in any browser, and nothing leaves it. It has what `zt verify` finds, a map of
/// modules by size, and all objects with the figures of `zt stats`, histograms and pictures of matrices.
/// For two files it has what changed, as `zt diff --summary` measures it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of any kind, or the index or the folder of a sharded set; two to compare them
    #[arg(required = true, num_args = 1..=3, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The page; `-` is stdout. Without this option, the last FILE is the page, if it ends with .html
    #[arg(short, long, alias = "out", value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace OUT if it exists
    #[arg(short, long)]
    force: bool,
    /// Keep the histograms and pictures of all objects, and make finer pictures [default: at most 1 MiB
    /// and 250 bytes an object, the largest objects first]
    #[arg(long)]
    detail: bool,
    /// Look at the headers and at 256 KiB of each object, and verify nothing; for one FILE
    #[arg(long)]
    sample: bool,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt report model.safetensors -o model.html
  zt report base.gguf tuned.gguf -o change.html
  zt report base.zt change.zt --base base.zt -o change.html
  zt report --detail checkpoint.pt -o checkpoint.html
  zt report --sample hf://org/model/model.safetensors -o look.html

Problems of the files are on the page, and the exit code is 0: `zt verify` and `zt stats --problems`
are for scripts. Keys of --json: output, bytes, objects, problems, odd, unread (objects whose values
were not read), sample (whether the values are a sample).";

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let is_page = |path: &PathBuf| path.extension().is_some_and(|it| it == "html" || it == "htm");
    if arguments.output.is_none() && arguments.files.len() > 1 {
        arguments.output = arguments.files.pop_if(|last| is_page(last));
    }
    let arguments = &*arguments;
    let Some(out) = arguments.output.as_deref().filter(|_| arguments.files.len() < 3) else {
        let message = "expected one or two files, and -o OUT or OUT.html for the page";
        return Err(Failure::misuse(message.to_owned()));
    };
    expect_local(out, "a page cannot be written to a store")?;
    let to_stdout = out == Path::new("-") || is_stdout(out);
    if !to_stdout && !arguments.force && out.symlink_metadata().is_ok() {
        return Err(Failure::overwrite(out, "exists; --force replaces it"));
    }
    if arguments.sample && arguments.files.len() > 1 {
        let message = "--sample is for one file: two are compared as a whole";
        return Err(Failure::misuse(message.to_owned()));
    }
    let mut inputs = Vec::new();
    for path in &arguments.files {
        let input = arguments.input.open_input(path, Truncated::Opened)?;
        let some = arguments.input.select.expect_some([input.file()]);
        some.map_err(|failure| failure.with_path(path))?;
        output.warnings_about(path, &input.file().warnings());
        arguments.input.warn_of_codes(path, input.file(), output);
        inputs.push(input);
    }
    arguments.input.expect_all_used()?;
    let options = ReportOptions::new()
        .detail(arguments.detail)
        .sample(arguments.sample)
        .threads(arguments.jobs.threads());
    let report = report(arguments, &inputs, options)?;
    let page = report.to_html(options.limit());
    if to_stdout {
        output.bytes(page.as_bytes())?;
        return Ok(Exit::Ok);
    }
    let mut file =
        if arguments.force { AtomicFile::create(out)? } else { AtomicFile::create_new(out)? };
    let written = file.write_all(page.as_bytes());
    written.map_err(|error| zt::Error::from(error).with_path(out))?;
    file.publish()?;
    print(&report, out, page.len() as u64, output)
}

fn report(
    arguments: &Arguments,
    inputs: &[Input],
    options: ReportOptions<'_>,
) -> Result<Report, Failure> {
    let passes = inputs.len() as u64 + 1;
    let progress = Progress::of(|| byte_len(inputs)?.checked_mul(passes));
    let advance = |bytes| progress.report(bytes);
    let options = options.progress(zt::Progress::new(&advance));
    let paths: Vec<String> = arguments.files.iter().map(|path| path_text(path)).collect();
    let found = match (inputs, &*paths) {
        ([a, b], [of_a, of_b]) => Report::compare([a.file(), b.file()], [of_a, of_b], &options),
        ([input, ..], [path, ..]) => Report::of(input.file(), path, &options),
        _ => Ok(Report::default()),
    };
    let mut report = found.map_err(|error| match error.kind() {
        ErrorKind::Interrupted => Failure::Error(error),
        _ => Failure::Refused(error),
    })?;
    for (summary, input) in report.files.iter_mut().zip(inputs) {
        add_attributes(summary, input.file())?;
    }
    Ok(report)
}

/// The first attributes of the file, as `zt info` prints them, each no longer than a page can show.
fn add_attributes(summary: &mut FileSummary, file: &File) -> Result<(), Failure> {
    const MOST: usize = 200;
    const TEXT: usize = 200;
    let attributes = file.attributes().map_err(Failure::Refused)?;
    let json = |value: &zt::Value| match value {
        zt::Value::Text(text) => text.clone(),
        value => serde_json::to_string(&Any(value)).unwrap_or_default(), // Fails for no value.
    };
    for (key, value) in attributes.iter().flat_map(zt::Attributes::iter).take(MOST) {
        let [key, value] = [json(key), json(value)].map(|text| abridged(&text, TEXT).into_owned());
        summary.attributes.push((key, value));
    }
    Ok(())
}

fn print(report: &Report, out: &Path, bytes: u64, output: &mut Output) -> Result<Exit, Failure> {
    let objects = report.objects.len() as u64;
    let problems: u64 = report.files.iter().map(|file| file.problems.count).sum();
    let odd = report.objects.iter().filter(|it| !it.problems.is_empty());
    let odd = odd.count() as u64;
    let unread = report.objects.iter().filter(|it| it.values.is_none()).count() as u64;
    let sample = report.is_sample;
    if output.json {
        let output_path = path_text(out);
        output.document(
            &object! { output: output_path, bytes, objects, problems, odd, unread, sample },
        )?;
        return Ok(Exit::Ok);
    }
    let (out, bytes) = (text::path(out), human(bytes));
    let objects = count(objects, "object", "objects");
    let problems = count(problems, "problem", "problems");
    let of_sample = if sample { " in the sample" } else { "" };
    let unread = match unread {
        0 => String::new(),
        unread => format!(", {unread} without values that were read"),
    };
    output.line(&format!(
        "{out}: {bytes}; {objects}, {problems}, {odd} with unusual values{of_sample}{unread}"
    ))?;
    Ok(Exit::Ok)
}
