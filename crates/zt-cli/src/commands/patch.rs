//! `zt patch`: make a file of its base and deltas.

use std::path::PathBuf;

use clap::Args;
use zt::{Error, WriteOptions, codes};
use zt_convert::{Input, OnDuplicate};
use zt_model::{Check, Patch, patch_in_place};

use crate::args::edit::{EditArgs, WaitArgs};
use crate::args::input::nearest_file;
use crate::commands::converted::OutArgs;
use crate::failure::{Exit, Failure};
use crate::files::path::is_stdout;
use crate::files::remote::is_url;
use crate::files::stdin::is_stdin;
use crate::output::Output;
use crate::output::json::{object, paths};
use crate::output::progress::Progress;
use crate::output::text::{self, count};

/// Apply deltas of `zt delta` to their base, in place or to a new file
///
/// A wrong base is an error, and so is a result with another content identity than the delta records.
/// Then nothing is written. The base may be of another kind than the file that the delta was made from,
/// and compressed in another way, but its tensors must be the same. NEW appears complete or not at all.
/// Without it, the .zt file BASE is edited: a crash leaves the old file or the new one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The base, and its deltas in the order in which they were made. A third or later file that does not exist is NEW
    #[arg(required = true, num_args = 2.., value_names = ["BASE", "DELTA"])]
    files: Vec<PathBuf>,
    /// The file to write; `-` is stdout. The other options of output are for NEW alone
    #[arg(short, long, alias = "output", value_name = "NEW")]
    out: Option<PathBuf>,
    #[command(flatten)]
    args: OutArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt patch base.safetensors step.delta.zt -o new.safetensors
  zt patch base.zt monday.zt tuesday.zt new.zt --zstd=auto
  zt patch model.zt step.delta.zt

Keys of --json in place: `file`, `dry_run` (false), `deltas`, `written` (objects), `file_size`. With
-o, they are the same as for `zt convert`.";

/// What is wrong with the base or a delta, if that made a read of the result fail. If the base is the result already,
/// gives it.
fn blame(failure: Failure, inputs: &[Input], output: &mut Output) -> Result<Input, Failure> {
    let is_of_result =
        |error: &Error| matches!(error.code(), codes::DIGEST_MISMATCH | codes::DELTA);
    if let Failure::Error(error) = &failure
        && let Some((base, deltas)) = inputs.split_first()
        && is_of_result(error)
    {
        let result = Patch::new(base, deltas).open();
        let is_base = |result: &Input| {
            result.file().warnings().iter().any(|warning| warning.code == "is-result")
        };
        if result.as_ref().map_or(true, is_base) {
            output.forget_hints();
            return Ok(result?);
        }
    }
    Err(failure)
}

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let is_new = |last: &PathBuf| !is_stdin(last) && !is_url(last) && !last.exists();
    if arguments.out.is_none() && arguments.files.len() > 2 {
        arguments.out = arguments.files.pop_if(|last| is_new(last));
        // A delta whose name is mistyped is no file to write.
        if let Some(new) = &arguments.out
            && let Some(near) = nearest_file(new)
        {
            let new = text::path(new);
            return Err(Failure::misuse(format!(
                "{new} does not exist; did you mean \"{near}\"? -o {new} writes the result to it"
            )));
        }
    }
    let Arguments { files, out, args, wait } = &*arguments;
    if !args.convert.input.select.is_empty() {
        return Err(Failure::misuse(
            "a delta applies to a whole file: `zt convert` writes a file with some of the objects",
        ));
    }
    if let Some(out) = out {
        let mut conversion = args.open(files, out, OnDuplicate::Error, output)?;
        let Some((base, deltas)) = conversion.inputs.split_first() else {
            return Err(Failure::misuse("expected a base and a delta"));
        };
        let progress = Progress::new(base.file().decoded_len().checked_mul(2));
        let report = |bytes| progress.report(bytes);
        // What stdout gets cannot be taken back, and a wrong base is not damage to be skipped.
        let is_checked = is_stdout(out) || conversion.options.skip_damaged;
        let check = if is_checked { Check::Whole } else { Check::Copy };
        let patch = Patch::new(base, deltas).progress(zt::Progress::new(&report)).check(check);
        let result = patch.open()?;
        drop(progress);
        let read = std::mem::replace(&mut conversion.inputs, vec![result]);
        let written = conversion.write(output);
        if is_checked {
            return written;
        }
        return written.or_else(|failure| {
            conversion.inputs = vec![blame(failure, &read, output)?];
            conversion.write(output)
        });
    }
    if !args.is_plain() {
        return Err(Failure::misuse("options of output are for a new file: give it with -o"));
    }
    let Some((base, deltas)) = files.split_first() else {
        return Err(Failure::misuse("expected a base and a delta"));
    };
    let target = EditArgs { file: base.clone(), dry_run: false, wait: wait.clone() };
    let inputs = args.convert.open_all(deltas, output)?;
    let inputs = inputs.inputs;
    let mut edit = target.begin(WriteOptions::new()).inspect_err(|failure| {
        if matches!(failure, Failure::Error(error) | Failure::Refused(error) if error.code() == "unsupported") {
            output.hint("-o NEW writes the result to a new file of any kind");
        }
    })?;
    let progress = Progress::new(edit.editor.before().decoded_len().checked_mul(2));
    let report = |bytes| progress.report(bytes);
    let reported = Some(zt::Progress::new(&report));
    let written = patch_in_place(&mut edit.editor, &inputs, reported)?;
    let file_size = match written {
        Some(_) => edit.commit()?,
        None => {
            output.note("the file is the result of the deltas already");
            edit.editor.before().byte_len()
        }
    };
    let written = written.unwrap_or(0);
    drop(progress);
    let what = format!("{} written", count(written, "object", "objects"));
    let document = object! {
        file: target.shown(),
        dry_run: false,
        deltas: paths(deltas),
        written,
        file_size,
    };
    target.answer(&document, &what, output)
}
