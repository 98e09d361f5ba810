//! What a command makes of its inputs, written as one file of any kind.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use zt::foreign::Kind;
use zt_convert::foreign::AttributeChange;
use zt_convert::{ConvertOptions, Input, Kinds, OnDuplicate, Summary, ZT};

use crate::args::convert::{ConvertArgs, exit_without, kinds};
use crate::args::input::{Opened, byte_len};
use crate::args::value;
use crate::failure::{Exit, Failure};
use crate::files::kinds;
use crate::files::path::is_stdout;
use crate::files::remote::{self, location};
use crate::files::stdout::{expect_free, to_stdout};
use crate::output::Output;
use crate::output::absent::{self, Absent};
use crate::output::json::{casts, object, path_text, paths as paths_shown, warnings};
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text::{self, count, left_out, shared};

/// The inputs, the output, and how it is written.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// The inputs, of any kind, and last OUT, the file to write; `-` is stdin, and stdout as OUT
    // One list, because clap allows no options between a repeated positional argument and another.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// OUT, in the place of the last FILE
    #[arg(short = 'o', long = "out", alias = "output", value_name = "OUT")]
    named: Option<PathBuf>,
    #[command(flatten)]
    out: OutArgs,
}

/// How the output is written.
#[derive(Debug, Args)]
pub(crate) struct OutArgs {
    /// Kind of OUT; by default, its extension decides. `squizd` is experimental
    #[arg(long, value_name = "KIND", value_parser = kinds(|kind| kind.writer().is_some()))]
    to: Option<Kind>,
    #[command(flatten)]
    pub(crate) convert: ConvertArgs,
    /// Set an attribute of OUT, as `zt meta set` does; may be given several times
    #[arg(long, value_name = "KEY=VALUE", hide_short_help = true)]
    set: Vec<String>,
    /// Replace OUT if it exists; an input is never replaced
    #[arg(short, long)]
    force: bool,
}

/// Open inputs, and how they are written to OUT.
pub(crate) struct Conversion<'a> {
    args: &'a OutArgs,
    paths: &'a [PathBuf],
    out: &'a Path,
    excluded: Vec<Absent>,
    /// What is written. A command may put other inputs here, which it has computed of these.
    pub(crate) inputs: Vec<Input>,
    pub(crate) options: ConvertOptions<'a>,
}

impl Files {
    /// Opens the inputs.
    pub(crate) fn open(
        &self,
        policy: OnDuplicate,
        output: &mut Output,
    ) -> Result<Conversion<'_>, Failure> {
        if let Some(out) = &self.named {
            return self.out.open(&self.files, out, policy, output);
        }
        let Some((out, paths @ [_, ..])) = self.files.split_last() else {
            return Err(Failure::misuse("expected at least two files: an input and OUT"));
        };
        self.out.open(paths, out, policy, output)
    }
}

impl OutArgs {
    /// Whether no option changes what is written.
    pub(crate) fn is_plain(&self) -> bool {
        self.to.is_none() && self.set.is_empty() && !self.force && self.convert.keeps_contents()
    }

    /// Opens the inputs, to be written to `out`.
    pub(crate) fn open<'a>(
        &'a self,
        paths: &'a [PathBuf],
        out: &'a Path,
        policy: OnDuplicate,
        output: &mut Output,
    ) -> Result<Conversion<'a>, Failure> {
        let is_stdout = is_stdout(out);
        if self.to.is_none() {
            hint_at_extension(out, output);
        }
        let target = target(self.to, kinds::table(), out, is_stdout)?;
        let mut options = self.convert.options(target)?.overwrite(self.force);
        options.attributes = changes(&self.set)?;
        options.on_duplicate = policy;
        if is_stdout {
            expect_free(output, self.force)?;
        }
        let Opened { inputs, excluded, .. } = self.convert.open_all(paths, output)?;
        self.convert.choose_types(&inputs, &mut options)?;
        Ok(Conversion { args: self, paths, out, excluded, inputs, options })
    }
}

impl Conversion<'_> {
    /// Writes the inputs to OUT, and answers.
    pub(crate) fn write(&self, output: &mut Output) -> Result<Exit, Failure> {
        let written = self.convert(output)?;
        let (kind, objects) = (self.options.target, written.summary.objects);
        let what = format!("{kind}; {},", count(objects, "object", "objects"));
        self.answer(&written, &what, (), output)
    }

    /// Writes the inputs to OUT.
    pub(crate) fn convert(&self, output: &mut Output) -> Result<Written, Failure> {
        let Conversion { args, out, excluded, inputs, options, .. } = self;
        let OutArgs { convert, force, .. } = args;
        let progress = Progress::new(byte_len(inputs));
        let report = |bytes| progress.report(bytes);
        let options = options.clone().progress(Some(zt::Progress::new(&report)));
        let converted = if is_stdout(out) {
            to_stdout(|stdout| kinds::table().convert(inputs, stdout, &options))
        } else {
            let stores = remote::options(&convert.input.remote);
            location(out).convert(inputs, &options, &stores).map_err(Failure::from)
        };
        drop(progress);
        let summary =
            converted.inspect_err(|failure| convert.hint(failure, inputs, *force, output))?;
        output.warnings(&summary.warnings);
        let exit = exit_without(&summary.damaged, inputs);
        let duplicates = absent::duplicates(&summary.duplicates);
        let left_out = [
            left_out(&summary.left_out),
            absent::text("excluded", excluded),
            absent::text("duplicates left out", &duplicates),
        ];
        Ok(Written { exit, duplicates, left_out: left_out.concat(), summary })
    }

    /// Prints `what` was written, in JSON with these `more` keys; a note alone if that went to stdout.
    pub(crate) fn answer(
        &self,
        written: &Written,
        what: &str,
        more: impl Serialize,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let Written { summary, exit, duplicates, left_out } = written;
        output.casts(&summary.casts);
        if is_stdout(self.out) {
            if let Some(left_out) = left_out.strip_prefix("; ") {
                output.note(left_out);
            }
        } else if output.json {
            let written = object! {
                inputs: paths_shown(self.paths),
                output: path_text(self.out),
                kind: self.options.target.as_str(),
                objects: summary.objects,
                bytes: summary.bytes,
                shared_bytes: summary.shared,
                file_size: summary.byte_len,
                left_out: &summary.left_out,
                damaged: &summary.damaged,
                excluded: &self.excluded,
                duplicates: duplicates,
                casts: casts(&summary.casts),
                warnings: warnings(&summary.warnings),
            };
            output.document(&Document { written, more })?;
        } else {
            let (logical, stored) = (human(summary.bytes), human(summary.byte_len));
            let (path, shared) = (text::path(self.out), shared(summary.shared));
            output.line(&format!(
                "{path}: {what} {logical} of values in {stored}{shared}{left_out}"
            ))?;
        }
        Ok(*exit)
    }
}

/// What was written.
pub(crate) struct Written {
    pub(crate) summary: Summary,
    exit: Exit,
    duplicates: Vec<Absent>,
    /// What of the inputs was not written, for people.
    left_out: String,
}

/// The keys of every command that writes a file, and those of one.
#[derive(Serialize)]
struct Document<W, M> {
    #[serde(flatten)]
    written: W,
    #[serde(flatten)]
    more: M,
}

/// The changes of --set.
fn changes(set: &[String]) -> Result<Vec<AttributeChange>, Failure> {
    let change = |text: &String| {
        let expected = || Failure::misuse("--set expects KEY=VALUE");
        let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, value) = pair.ok_or_else(expected)?;
        Ok(AttributeChange {
            key: key.to_owned(),
            values: value::readings(value, false)?,
            value_type: None,
        })
    };
    set.iter().map(change).collect()
}

/// The kind of the output.
fn target(to: Option<Kind>, kinds: &Kinds, out: &Path, is_stdout: bool) -> Result<Kind, Failure> {
    let by_path = || {
        if is_stdout { Some(ZT) } else { kinds.of_extension(out) }
    };
    to.or_else(by_path).ok_or_else(|| {
        let path = out.display();
        if out.is_dir() {
            let message = format!("{path}: is a folder; OUT is the file to write");
            return Failure::misuse(message);
        }
        let written = kinds.iter().filter(|kind| kind.writer().is_some());
        let extensions: Vec<String> = written
            .flat_map(|kind| kind.extensions())
            .map(|extension| format!(".{extension}"))
            .collect();
        let extensions = extensions.join(", ");
        Failure::misuse(format!(
            "{path}: unknown output extension: use one of {extensions}, or --to KIND"
        ))
    })
}

/// A hint for an error about the extensions that users try first.
fn hint_at_extension(out: &Path, output: &mut Output) {
    let extension = out.extension().and_then(|extension| extension.to_str());
    output.hint(match extension {
        Some("st") => "the extension of safetensors is .safetensors; --to safetensors takes any",
        Some("bin") => {
            "a .bin file is one of PyTorch, which is only read; --to KIND writes another"
        }
        Some("pt" | "pth" | "ckpt") => {
            "files of PyTorch are only read: write .safetensors, which torch loads without pickle"
        }
        _ => return,
    });
}

/// A finite number from the command line.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "expected a number".to_owned())
}
