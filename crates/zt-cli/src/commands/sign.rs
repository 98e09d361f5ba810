//! `zt sign`: a signature of a model.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use zt::foreign::AtomicFile;
use zt_model::seal::{SecretKey, Statement};

use crate::args::jobs::Jobs;
use crate::failure::{Exit, Failure};
use crate::files::remote::{self, RemoteArgs, expect_local};
use crate::files::seals;
use crate::output::Output;
use crate::output::json::{object, path_text, warnings};
use crate::output::text::{self, count};

/// Sign a model: the digests of its files, and the identities of its tensors
///
/// `zt verify --signature` checks the signature, and so does `model_signing verify key` for a P-256 key. What is
/// signed are the files, and beside them the content: it still holds after `zt convert`, `zt split` and compression.
/// FILE is a seal of `zt seal`, or what `zt seal` takes; then it is sealed first, and the seal is not kept.
///
/// KEY is an Ed25519 or ECDSA P-256 key without a password, in PEM (PKCS#8 or SEC 1) or OpenSSH form.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The seal; or the file, the index of a set, the folder, or the URL of a file
    file: PathBuf,
    /// The signature to write
    #[arg(value_name = "OUT", required_unless_present = "output")]
    to: Option<PathBuf>,
    /// OUT, in the place of the second file
    #[arg(short, long, alias = "out", value_name = "OUT", conflicts_with = "to")]
    output: Option<PathBuf>,
    /// The private key
    #[arg(long, value_name = "KEY")]
    key: PathBuf,
    /// Replace OUT if it exists
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    remote: RemoteArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt sign llama.seal --key key.pem -o llama.sig
  zt sign models/llama --key ~/.ssh/id_ed25519 -o llama.sig
  zt verify models/llama --signature llama.sig --key key.pub
  model_signing verify key models/llama --signature llama.sig --public_key key.pub

Keys of --json: `file`, `output`, `key` (the fingerprint of the public key), `algorithm`, `files` and `models`
(numbers), `seal` (the SHA-256 of the seal), `signature_size`, `warnings`.";

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { file, to, output: given, key, force, jobs, remote } = arguments;
    let Some(out) = given.as_ref().or(to.as_ref()) else {
        return Err(Failure::misuse("expected OUT"));
    };
    expect_local(out, "the signature must be a file of this machine")?;
    expect_local(key, "the key must be a file of this machine")?;
    for input in [&*file, &*key] {
        if zt_convert::is_same_file(out, input) {
            return Err(Failure::overwrite(out, "is the input"));
        }
    }
    if !*force && out.symlink_metadata().is_ok() {
        return Err(Failure::overwrite(out, "exists; --force replaces it"));
    }
    let options = remote::options(remote);
    let secret = SecretKey::from_bytes(&seals::small(key, &options)?);
    let secret = secret.map_err(|error| error.with_path(key))?;
    let (statement, told) = if is_seal(file) {
        let seal = seals::read(file, &options)?;
        (Statement::new(&seal, name_of(file.file_stem()), false)?, Vec::new())
    } else {
        let sealed = seals::make(file, Some(out), None, jobs.threads(), remote)?;
        let name = name_of(file.canonicalize().as_deref().unwrap_or(file).file_name());
        let is_alone = sealed.file.is_some();
        (Statement::new(&sealed.made.seal, name, is_alone)?, sealed.made.warnings)
    };
    let bytes = statement.sign(&secret)?;
    let mut written = if *force { AtomicFile::create(out)? } else { AtomicFile::create_new(out)? };
    written.write_all(&bytes).map_err(|error| zt::Error::from(error).with_path(out))?;
    written.publish()?;
    let facts = statement.facts()?;
    let (files, models) = (facts.files.len() as u64, facts.models.len() as u64);
    let public = secret.public();
    if output.json {
        output.document(&object! {
            file: path_text(file),
            output: path_text(out),
            key: public.fingerprint()?,
            algorithm: public.algorithm(),
            files: files,
            models: models,
            seal: crate::output::value::hex(&facts.seal),
            signature_size: bytes.len(),
            warnings: warnings(&told),
        })?;
        return Ok(Exit::Ok);
    }
    output.warnings_about(file, &told);
    let (files, models) = (count(files, "file", "files"), count(models, "model", "models"));
    let algorithm = public.algorithm();
    output.line(&format!("{}: {files}, {models} signed with {algorithm}", text::path(out)))?;
    Ok(Exit::Ok)
}

/// Whether the file of this machine begins as a seal does.
fn is_seal(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(6).read_to_end(&mut start));
    read.is_ok() && zt_model::seal::Seal::is_seal(&start)
}

fn name_of(name: Option<&std::ffi::OsStr>) -> String {
    name.unwrap_or_default().to_string_lossy().into_owned()
}
