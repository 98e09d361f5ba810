//! `zt hash`: an identity of the tensors, independent of the file.

use std::path::PathBuf;

use clap::Args;
use serde::{Serialize, Serializer};
use zt::{BytesHash, DenseHash, HashOptions, ObjectHash};

use crate::args::input::{InputArgs, decoded_len};
use crate::args::jobs::Jobs;
use crate::failure::{Exit, Failure, of_findings};
use crate::output::Output;
use crate::output::json::{FaultBody, Pairs};
use crate::output::text::printable;
use crate::output::value::hex;
use crate::progress::Progress;

/// Hash the decoded bytes of every component, and all tensors together
///
/// Two files with the same `content` hash hold the same tensors under the same names. The kind of the
/// file, compression, planes, offsets, digests and order do not change it. Formats of other values
/// do: a sparse tensor has another hash than the dense one. To compare values alone, compare the
/// hashes of --dense. The array of an .npy file is named after the file.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of any kind, or the index of a sharded set
    file: PathBuf,
    /// Also hash the dense value of every object: sparse tensors with their zeros, quantized ones as f32
    #[arg(long)]
    dense: bool,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt hash model.zt
  zt hash --json model.safetensors | jq -r .content
  zt hash --json --dense quantized.zt";

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    content: Option<String>,
    objects: Pairs<'a, ObjectBody<'a>>,
}

enum ObjectBody<'a> {
    Hashed { hash: &'a ObjectHash, dense: bool },
    Error(FaultBody),
}

#[derive(Serialize)]
struct BytesBody {
    sha256: String,
    nbytes: u64,
}

#[derive(Serialize)]
struct DenseBody<'a> {
    dtype: &'a str,
    r#type: Option<&'a str>,
    sha256: String,
    nbytes: u64,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let file = arguments.input.open(&arguments.file)?;
    let progress = Progress::new(Some(decoded_len(&file)));
    let report = |bytes| progress.report(bytes);
    let options = HashOptions::new()
        .dense(arguments.dense)
        .threads(arguments.jobs.threads())
        .progress(zt::Progress::new(&report));
    let hash = file.hash(&options)?;
    drop(progress);

    for error in hash.errors() {
        output.error(error);
    }
    let content = hash.content.map(|sum| format!("sha256:{}", hex(&sum)));
    let printed = if output.json {
        let objects = hash.objects.iter();
        let objects: Vec<(&str, ObjectBody<'_>)> = objects
            .map(|(name, hash)| (name.as_str(), ObjectBody::of(hash, arguments.dense)))
            .collect();
        let file = arguments.file.display().to_string();
        output.document(&Document {
            file,
            content,
            objects: Pairs(&objects),
        })
    } else {
        let lines = hash
            .objects
            .iter()
            .filter_map(|(name, hash)| Some((name, hash.as_ref().ok()?)));
        let mut text: Vec<String> = lines
            .flat_map(|(name, hash)| lines_of(name, hash))
            .collect();
        if let Some(content) = content {
            text.push(format!("content {content}"));
        }
        if text.is_empty() {
            Ok(())
        } else {
            output.line(&text.join("\n"))
        }
    };
    Failure::unless_closed(printed).map(|()| of_findings(hash.errors()))
}

/// Lines in the form of `sha256sum`.
fn lines_of(name: &str, hash: &ObjectHash) -> Vec<String> {
    let name = printable(name);
    let components = hash.components.iter();
    let mut lines: Vec<String> = components
        .map(|(role, bytes)| format!("{}  {name}/{}", hex(&bytes.sha256), printable(role)))
        .collect();
    if let Some(dense) = &hash.dense {
        lines.push(format!(
            "{}  {name} (dense {})",
            hex(&dense.bytes.sha256),
            dense.dtype
        ));
    }
    lines
}

impl<'a> ObjectBody<'a> {
    fn of(hash: &'a zt::Result<ObjectHash>, dense: bool) -> Self {
        match hash {
            Ok(hash) => ObjectBody::Hashed { hash, dense },
            Err(error) => ObjectBody::Error(FaultBody::from(error)),
        }
    }
}

impl Serialize for ObjectBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Hashed<'a> {
            components: Pairs<'a, BytesBody>,
            #[serde(skip_serializing_if = "Option::is_none")]
            dense: Option<Option<DenseBody<'a>>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            dense_error: Option<FaultBody>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<FaultBody>,
        }
        #[derive(Serialize)]
        struct Faulty<'a> {
            error: &'a FaultBody,
        }
        match self {
            ObjectBody::Error(error) => Faulty { error }.serialize(serializer),
            ObjectBody::Hashed { hash, dense } => {
                let components: Vec<(&str, BytesBody)> = hash
                    .components
                    .iter()
                    .map(|(role, bytes)| (role.as_str(), bytes.into()))
                    .collect();
                // With --dense, `null` means that there is no dense value. Without it, there is no
                // key.
                let dense = dense.then(|| hash.dense.as_ref().map(DenseBody::from));
                Hashed {
                    components: Pairs(&components),
                    dense,
                    dense_error: hash.dense_error.as_ref().map(FaultBody::from),
                    error: hash.fault.as_ref().map(FaultBody::from),
                }
                .serialize(serializer)
            }
        }
    }
}

impl From<&BytesHash> for BytesBody {
    fn from(hash: &BytesHash) -> Self {
        BytesBody {
            sha256: hex(&hash.sha256),
            nbytes: hash.byte_len,
        }
    }
}

impl<'a> From<&'a DenseHash> for DenseBody<'a> {
    fn from(hash: &'a DenseHash) -> Self {
        DenseBody {
            dtype: hash.dtype.as_str(),
            r#type: hash.dtype.logical_type(hash.logical_type.as_deref()),
            sha256: hex(&hash.bytes.sha256),
            nbytes: hash.bytes.byte_len,
        }
    }
}
