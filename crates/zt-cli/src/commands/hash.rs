//! `zt hash`: an identity of the tensors, independent of the file.

use std::path::Path;

use clap::Args;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use zt::{ContentHash, Digest, HashOptions, ObjectHash};
use zt_convert::Input;

use crate::args::files::FilesArgs;
use crate::args::input::{InputArgs, Truncated};
use crate::args::jobs::Jobs;
use crate::commands::each::{Answer, each};
use crate::failure::{Exit, Failure, of_findings};
use crate::files::remote::{self, location};
use crate::files::sums;
use crate::output::Output;
use crate::output::json::{ErrorBody, FaultBody, Pairs, object, path_text};
use crate::output::progress::Progress;
use crate::output::text::{self, count, printable};
use crate::output::value::hex;

/// Hash the decoded bytes of every component, and all tensors together
///
/// Two files with the same `content` hash hold the same tensors under the same names. The kind of the
/// file, compression, planes, offsets, digests and order do not change it. Formats of other values
/// do: a sparse tensor has another hash than the dense one. To compare values alone, compare the
/// hashes of --dense. The array of an .npy file is named after the file.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: FilesArgs,
    /// Also hash the dense value of every object: sparse tensors with their zeros, quantized ones as f32
    #[arg(long)]
    dense: bool,
    /// Print one line per file, which --check reads; the default for several files without --dense
    #[arg(long, conflicts_with = "dense")]
    sums: bool,
    /// Read such lines from FILE, and check the files that they name
    #[arg(short, long, conflicts_with_all = ["sums", "dense", "recursive"])]
    check: bool,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt hash model.zt
  zt hash --json model.safetensors | jq -r .content
  zt hash --json --dense quantized.zt
  zt hash -r models > SUMS
  zt hash --check SUMS

For several files, --json prints a list of documents, and the exit code is the highest one. A line
of --sums is `sha256:HASH  PATH`. --check prints `PATH: OK` or `PATH: FAILED`, and exits with 1 if a
file has another hash. Its --json is a list with `file`, `ok`, `expected`, `content` and `error`.";

struct ObjectBody<'a> {
    hash: &'a zt::Result<ObjectHash>,
    /// Whether dense values were asked for.
    dense: bool,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    if arguments.check {
        return check(arguments, output);
    }
    let Arguments { files, input, .. } = arguments;
    each(files, input, Truncated::Refused, output, |path, opened, answer| {
        print(path, &opened?, arguments, answer)
    })
}

/// Hashes the file, and prints the errors of its objects.
fn hash(input: &Input, arguments: &Arguments, output: &Output) -> Result<ContentHash, Failure> {
    let progress = Progress::of(|| Some(input.file().decoded_len()));
    let report = |bytes| progress.report(bytes);
    let options = HashOptions::new()
        .dense(arguments.dense)
        .threads(arguments.jobs.threads())
        .progress(zt::Progress::new(&report));
    let hash = input.file().hash(&options);
    drop(progress);
    let hash = hash.map_err(|error| input.blame(error))?;
    for error in hash.errors() {
        output.error(&input.blame(error.clone()));
    }
    Ok(hash)
}

fn content_of(hash: &ContentHash) -> Option<String> {
    hash.content.map(|sum| Digest::Sha256(sum).to_string())
}

fn print(
    path: &Path,
    input: &Input,
    arguments: &Arguments,
    answer: &mut Answer<'_>,
) -> Result<Exit, Failure> {
    answer.output.unfinished_edit(path, input.file());
    let hash = hash(input, arguments, answer.output)?;
    let content = content_of(&hash);
    let printed = if answer.output.json {
        let objects = hash.objects.iter();
        let dense = arguments.dense;
        let objects: Vec<_> =
            objects.map(|(name, hash)| (name.as_str(), ObjectBody { hash, dense })).collect();
        answer.document(&object! {
            file: path_text(path),
            content,
            objects: Pairs(&objects),
        })
    } else if arguments.sums || answer.is_one_of_several() && !arguments.dense {
        // The errors of its objects are the answer about a file without a hash.
        content.map_or(Ok(()), |content| answer.output.line(&sums::line(&content, path)))
    } else {
        let objects = hash.objects.iter();
        let lines = objects.filter_map(|(name, hash)| Some(lines_of(name, hash.as_ref().ok()?)));
        let mut text: Vec<String> = lines.flatten().collect();
        if let Some(content) = content {
            text.push(format!("content {content}"));
        }
        if text.is_empty() { Ok(()) } else { answer.text(&text.join("\n")) }
    };
    Failure::unless_closed(printed).map(|()| of_findings(hash.errors()))
}

/// Checks the files that the lists name, as `sha256sum --check` does.
fn check(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    /// The longest list of a store.
    const LONGEST: u64 = 64 << 20;
    let mut listed = Vec::new();
    for list in arguments.files.given() {
        let list = location(list);
        let text = list.read(LONGEST, &remote::options(&arguments.input.remote));
        let refused = if list.is_url() { Failure::Refused } else { Failure::Error };
        let text = text.map_err(refused)?;
        // The byte order mark of an editor.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            listed.push(sums::parse(line).ok_or_else(|| {
                Failure::misuse(format!(
                    "{list}: line {}: expected a line of `zt hash --sums`: sha256:HASH, two spaces, a path",
                    at + 1
                ))
            })?);
        }
    }
    let (mut exit, mut failed) = (Exit::Ok, 0);
    let mut results = Vec::with_capacity(listed.len());
    for (expected, path) in listed {
        let (content, of_file, error) = match content_at(&path, arguments, output) {
            Ok((content, of_file)) => (content, of_file, None),
            Err(failure) if failure.ends_all() => return Err(failure),
            Err(failure) => {
                output.failure(&failure);
                (None, failure.exit(), ErrorBody::of(&failure))
            }
        };
        let ok = content.as_ref() == Some(&expected);
        exit = exit.max(of_file).max(if ok { Exit::Ok } else { Exit::Failed });
        if !output.json {
            let verdict = match (&content, ok) {
                (_, true) => "OK",
                (Some(_), _) => "FAILED",
                (None, _) => "FAILED open or read",
            };
            output.report(&format!("{}: {verdict}", text::path(&path)))?;
            Failure::unless_closed(output.flush())?;
        }
        failed += u64::from(!ok);
        results.push(object! { file: path_text(&path), ok, expected, content, error });
    }
    if output.json {
        Failure::unless_closed(output.document(&results))?;
    } else if failed > 0 {
        let files = count(results.len() as u64, "file", "files");
        output.note(&format!("{failed} of {files} failed the check"));
    }
    Ok(exit)
}

/// The hash of a file, and the exit code for damage in it.
fn content_at(
    path: &Path,
    arguments: &Arguments,
    output: &Output,
) -> Result<(Option<String>, Exit), Failure> {
    let input = arguments.input.open_input(path, Truncated::Refused)?;
    let hash = hash(&input, arguments, output)?;
    Ok((content_of(&hash), of_findings(hash.errors())))
}

/// Lines in the form of `sha256sum`.
fn lines_of(name: &str, hash: &ObjectHash) -> Vec<String> {
    let name = printable(name);
    let components = hash.components.iter();
    let mut lines: Vec<String> = components
        .map(|(role, bytes)| format!("{}  {name}/{}", hex(&bytes.sha256), printable(role)))
        .collect();
    if let Some(dense) = &hash.dense {
        lines.push(format!("{}  {name} (dense {})", hex(&dense.bytes.sha256), dense.dtype));
    }
    lines
}

impl Serialize for ObjectBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hash = match self.hash {
            Ok(hash) => hash,
            Err(error) => return object! { error: FaultBody::from(error) }.serialize(serializer),
        };
        let components = hash.components.iter();
        let components: Vec<_> = components
            .map(|(role, bytes)| {
                let body = object! { sha256: hex(&bytes.sha256), nbytes: bytes.byte_len };
                (role.as_str(), body)
            })
            .collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("components", &Pairs(&components))?;
        // With --dense, `null` means that there is no dense value. Without it, there is no key.
        if self.dense {
            let dense = hash.dense.as_ref().map(|dense| {
                object! {
                    dtype: dense.dtype.as_str(),
                    r#type: dense.dtype.logical_type(dense.logical_type.as_deref()),
                    sha256: hex(&dense.bytes.sha256),
                    nbytes: dense.bytes.byte_len,
                }
            });
            map.serialize_entry("dense", &dense)?;
        }
        for (key, fault) in [("dense_error", &hash.dense_error), ("error", &hash.fault)] {
            if let Some(fault) = fault {
                map.serialize_entry(key, &FaultBody::from(fault))?;
            }
        }
        map.end()
    }
}
