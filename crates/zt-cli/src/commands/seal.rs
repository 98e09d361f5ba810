//! `zt seal`: a side file with the digests of files, leaves and tensors.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use zt::Digest;
use zt::foreign::AtomicFile;
use zt_model::seal::{Made, ParityMade, Seal, SealOptions, Share, write_parity};

use crate::args::jobs::Jobs;
use crate::failure::{Exit, Failure};
use crate::files::remote::{RemoteArgs, expect_local};
use crate::files::seals::{self, Sealed, parity_of};
use crate::output::Output;
use crate::output::json::{object, path_text, warnings};
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text::{self, count};
use crate::output::value::hex;

/// Write a seal: a small file with digests of files, of each MiB of them, and of tensors
///
/// `zt verify --seal` then says which bytes of a copy are wrong, `zt repair --seal` fetches these alone, and
/// `--seal` of commands that read compares what they read. For a folder, all files are sealed, also those that are
/// no tensors; hidden files and files that end in .seal or .sig are left out. For the index of a set, the set.
///
/// A seal says what the files are now, and not whether they are sound: `zt verify` does.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The file, the index of a set, or the folder; or the URL of a file
    file: PathBuf,
    /// The seal to write
    #[arg(value_name = "OUT", required_unless_present = "output")]
    to: Option<PathBuf>,
    /// OUT, in the place of the second file
    #[arg(short, long, alias = "out", value_name = "OUT", conflicts_with = "to")]
    output: Option<PathBuf>,
    /// Replace OUT if it exists
    #[arg(short, long)]
    force: bool,
    /// Write OUT.parity, too: blocks that `zt repair` mends wrong leaves with, without another copy. 1% mends one leaf of
    /// a hundred
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    parity: Option<Share>,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    remote: RemoteArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt seal models/llama -o llama.seal
  zt seal model.safetensors.index.json -o model.seal
  zt verify models/llama --seal llama.seal
  zt repair models/llama/model.safetensors --seal llama.seal --from https://host/llama/
  zt seal models/llama -o llama.seal --parity 1%
  zt repair models/llama --seal llama.seal                       with llama.seal.parity

Keys of --json: `file`, `output`, `files` and `models` (each with `file`, `content` and `tensors`, a number),
`bytes` of all files, `leaves`, `seal_size`, `sha256` of the seal, `parity` (null, or `output`, `size`, `blocks`, `groups`, and
`mends`: the wrong leaves that each group stands), `warnings`.";

/// A number of percent, with or without the sign.
fn percent(text: &str) -> Result<Share, String> {
    let wrong = || "expected a number of percent above 0 and up to 100, such as 1%".to_owned();
    let number: f64 = text.trim_end_matches('%').trim().parse().map_err(|_| wrong())?;
    let millionths = (number * 10_000.0).round();
    if !(1.0..=1_000_000.0).contains(&millionths) {
        return Err(wrong());
    }
    // The range was checked.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let millionths = millionths as u32;
    Share::millionths(millionths).ok_or_else(wrong)
}

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { file, to, output: given, force, parity, jobs, remote } = arguments;
    let Some(out) = given.as_ref().or(to.as_ref()) else {
        return Err(Failure::misuse("expected OUT"));
    };
    expect_local(out, "the seal must be a file of this machine")?;
    if zt_convert::is_same_file(out, file) {
        return Err(Failure::overwrite(out, "is the input"));
    }
    if !*force && out.symlink_metadata().is_ok() {
        return Err(Failure::overwrite(out, "exists; --force replaces it"));
    }
    let parity_out = parity_of(out);
    if parity.is_some() {
        expect_local(file, "--parity is made of files of this machine")?;
        if !*force && parity_out.symlink_metadata().is_ok() {
            return Err(Failure::overwrite(&parity_out, "exists; --force replaces it"));
        }
    }
    let Sealed { made, files, .. } = seals::make(file, Some(out), None, jobs.threads(), remote)?;
    let bytes = made.seal.to_bytes()?;
    let mut written = if *force { AtomicFile::create(out)? } else { AtomicFile::create_new(out)? };
    written.write_all(&bytes).map_err(|error| zt::Error::from(error).with_path(out))?;
    written.publish()?;
    let mut parity_made = None;
    if let Some(share) = *parity {
        let bytes = made.seal.files.iter().map(|file| file.byte_len);
        let progress = Progress::new(Some(bytes.fold(0, u64::saturating_add)));
        let report = |bytes| progress.report(bytes);
        let options =
            SealOptions::new().threads(jobs.threads()).progress(zt::Progress::new(&report));
        let written = write_parity(&files, &made.seal, share, &parity_out, *force, &options)?;
        parity_made = Some((parity_out, written));
    }
    print(file, out, &made, bytes.len() as u64, parity_made.as_ref(), output)?;
    Ok(Exit::Ok)
}

fn print(
    file: &Path,
    out: &Path,
    made: &Made,
    seal_size: u64,
    parity: Option<&(PathBuf, ParityMade)>,
    output: &mut Output,
) -> Result<(), Failure> {
    let Seal { files, models, .. } = &made.seal;
    let bytes = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.byte_len));
    if output.json {
        let models = models.iter().map(|model| {
            object! {
                file: &model.path,
                content: model.content.map(|sum| Digest::Sha256(sum).to_string()),
                tensors: model.tensors.len(),
            }
        });
        return output.document(&object! {
            file: path_text(file),
            output: path_text(out),
            files: files.len(),
            models: models.collect::<Vec<_>>(),
            bytes: bytes,
            leaves: files.iter().map(|file| file.leaf_count()).sum::<u64>(),
            seal_size: seal_size,
            sha256: hex(&made.seal.sha256()?),
            parity: parity.map(|(path, made)| object! {
                output: path_text(path),
                size: made.byte_len,
                blocks: made.blocks,
                groups: made.groups,
                mends: made.recovery,
            }),
            warnings: warnings(&made.warnings),
        });
    }
    output.warnings_about(file, &made.warnings);
    let tensors = models.iter().map(|model| model.tensors.len() as u64).sum();
    let files = count(files.len() as u64, "file", "files");
    let tensors = count(tensors, "tensor", "tensors");
    let (bytes, size) = (human(bytes), human(seal_size));
    output.line(&format!("{}: {files}, {tensors}, {bytes} sealed in {size}", text::path(out)))?;
    if let Some((path, made)) = parity {
        let (path, size) = (text::path(path), human(made.byte_len));
        let leaves = count(made.recovery, "wrong leaf", "wrong leaves");
        let groups = match made.groups {
            0 | 1 => String::new(),
            groups => format!(" in each of {groups} groups"),
        };
        output.line(&format!("{path}: {size}, mends {leaves}{groups}"))?;
    }
    Ok(())
}
