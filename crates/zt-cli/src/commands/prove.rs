//! `zt prove`: a proof of one tensor of a signed model.

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;

use clap::Args;
use zt::foreign::AtomicFile;
use zt_model::Beside;
use zt_model::seal::Proof;

use crate::failure::{Exit, Failure};
use crate::files::kinds;
use crate::files::remote::{self, RemoteArgs, expect_local, location};
use crate::files::seals;
use crate::output::Output;
use crate::output::json::{object, path_text};
use crate::output::text;

/// Write a proof that a tensor, or rows of one, are those of a signed model
///
/// The proof has at most 2 KiB. `zt verify --proof` checks it against the signature of the seal, and reads nothing of
/// the model but the tensor. The proof of a tensor holds in files of any kind. The proof of rows holds in FILE alone:
/// it is about leaves of 1 MiB.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The seal that was signed
    seal: PathBuf,
    /// Name of the tensor
    name: String,
    /// The proof to write
    #[arg(value_name = "OUT", required_unless_present = "output")]
    to: Option<PathBuf>,
    /// OUT, in the place of the third argument
    #[arg(short, long, alias = "out", value_name = "OUT", conflicts_with = "to")]
    output: Option<PathBuf>,
    /// Prove these rows only: those from A on that lie before B
    #[arg(long, value_name = "A:B", requires = "of", value_parser = rows)]
    rows: Option<Range<u64>>,
    /// The sealed file that has the tensor, or its URL
    #[arg(long, value_name = "FILE", requires = "rows")]
    of: Option<PathBuf>,
    /// Replace OUT if it exists
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt prove llama.seal embed.weight -o embed.proof
  zt prove llama.seal embed.weight --rows 0:8 --of llama/model.safetensors -o rows.proof
  zt verify https://host/llama/model.safetensors --signature llama.sig --key key.pub --proof rows.proof

Keys of --json: `seal`, `output`, `object`, `rows` (two numbers or null), `file` (the path in the seal, or null),
`proof_size`.";

fn rows(text: &str) -> Result<Range<u64>, String> {
    let rows = text.split_once(':').and_then(|(from, to)| {
        let rows: Range<u64> = from.parse().ok()?..to.parse().ok()?;
        (!rows.is_empty()).then_some(rows)
    });
    rows.ok_or_else(|| "expected two numbers with a colon between them, such as 0:8".to_owned())
}

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { seal: path, name, to, output: given, rows, of, force, remote } = arguments;
    let Some(out) = given.as_ref().or(to.as_ref()) else {
        return Err(Failure::misuse("expected OUT"));
    };
    expect_local(out, "the proof must be a file of this machine")?;
    if !*force && out.symlink_metadata().is_ok() {
        return Err(Failure::overwrite(out, "exists; --force replaces it"));
    }
    let options = remote::options(remote);
    let seal = seals::read(path, &options)?;
    let mut file = None;
    let proof = match (&*rows, &*of) {
        (Some(rows), Some(of)) => {
            let Beside { files, name: last, found, .. } = location(of).beside(None, &options)?;
            let Some(last) = last else {
                return Err(Failure::misuse("--of is a folder: give the file that has the tensor"));
            };
            let at = seal.find(&found).map_err(|error| error.with_path(of))?;
            file = seal.files.get(at).map(|file| file.path.clone());
            let source = files.open_one(&last)?;
            let kinds = kinds::table();
            Proof::of_rows(&seal, at, source, kinds, name, rows.clone())
                .map_err(|error| error.with_path(of))?
        }
        _ => Proof::of_tensor(&seal, name).map_err(|error| error.with_path(path))?,
    };
    let bytes = proof.to_bytes()?;
    let mut written = if *force { AtomicFile::create(out)? } else { AtomicFile::create_new(out)? };
    written.write_all(&bytes).map_err(|error| zt::Error::from(error).with_path(out))?;
    written.publish()?;
    if output.json {
        output.document(&object! {
            seal: path_text(path),
            output: path_text(out),
            object: name,
            rows: rows.as_ref().map(|rows| [rows.start, rows.end]),
            file: file,
            proof_size: bytes.len(),
        })?;
        return Ok(Exit::Ok);
    }
    let what =
        rows.as_ref().map_or(String::new(), |it| format!(" rows {}..{} of", it.start, it.end));
    let (out, name, len) = (text::path(out), text::cell(name), bytes.len());
    output.line(&format!("{out}: proves{what} {name} in {len} bytes"))?;
    Ok(Exit::Ok)
}
