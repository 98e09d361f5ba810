//! `zt split`: files as a set of shards with an index.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use zt::Kind;
use zt_convert::{SAFETENSORS, Shard, Split, ZT};

use crate::args::convert::{ConvertArgs, kinds};
use crate::args::size::parse;
use crate::args::write::WriteArgs;
use crate::failure::{Exit, Failure};
use crate::files::folder::Folder;
use crate::output::Output;
use crate::output::json::{WarningBody, paths, warnings};
use crate::output::size::human;
use crate::output::text::{count, left_out, printable};
use crate::progress::Progress;

/// Split a file into a set of shards with an index
///
/// Shards are named and cut as the Hugging Face Hub does it: model-00001-of-00003.safetensors and so
/// on, beside model.safetensors.index.json, which opens the set. A tensor that is larger than the
/// limit is a shard by itself; where all fits one shard, that is model.safetensors, without an
/// index. All files appear or none; with --force they replace the whole set of that name. A kill
/// leaves what was written, and what was being replaced, in a hidden folder.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The file, of any kind; of a set that is to be cut anew, its index
    file: PathBuf,
    /// The most bytes of values in a shard, before compression: 5GB, 500MB, 2GiB, or bytes
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "5GB",
        value_parser = parse,
        allow_hyphen_values = true
    )]
    max_shard_size: u64,
    /// Where to write, made if it is not there [the folder of FILE]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What the set is called: the MODEL in MODEL-00001-of-00003.safetensors [as FILE, without its
    /// ending]
    #[arg(long, value_name = "MODEL")]
    name: Option<String>,
    /// What to write [what FILE is]
    #[arg(long, value_name = "KIND", value_parser = kinds(|member| is_target(member.kind())))]
    to: Option<Kind>,
    #[command(flatten)]
    storing: WriteArgs,
    /// Replace files that are there; an input is never replaced
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    taking: ConvertArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt split model.safetensors --max-shard-size 5GB -o shards
  zt split model.gguf --to zt --zstd -o shards
  zt split checkpoint-900.safetensors --name model -o shards
  zt split model.safetensors.index.json --max-shard-size 500MB -o smaller
  zt merge shards/model.safetensors.index.json model.safetensors

GB is 10^9 bytes as on the Hub, GiB is 2^30. With --json the keys are `file`, `kind`, `index` (null
for one shard), `total_size`, `shards`, each with `path`, `objects`, `bytes` of values and
`file_size`, `left_out` (names of objects), `removed` (files of the set that was replaced) and
`warnings`.";

fn is_target(kind: Kind) -> bool {
    [ZT, SAFETENSORS].contains(&kind)
}

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    kind: &'a str,
    index: Option<String>,
    total_size: u64,
    shards: Vec<ShardBody>,
    left_out: &'a [String],
    removed: Vec<String>,
    warnings: Vec<WarningBody<'a>>,
}

#[derive(Serialize)]
struct ShardBody {
    path: String,
    objects: u64,
    bytes: u64,
    file_size: u64,
}

impl From<&Shard> for ShardBody {
    fn from(shard: &Shard) -> Self {
        ShardBody {
            path: shard.path.display().to_string(),
            objects: shard.objects,
            bytes: shard.bytes,
            file_size: shard.byte_len,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let files = std::slice::from_ref(&arguments.file);
    let (inputs, total) = arguments.taking.open(files)?;
    let kind = inputs.first().map_or(ZT, |input| input.file().kind());
    let target = arguments
        .to
        .or_else(|| Some(kind).filter(|kind| is_target(*kind)));
    let target = target.ok_or_else(|| {
        Failure::misuse(format!(
            "there are no sets of {kind} files: choose with --to zt or --to safetensors"
        ))
    })?;
    let write = arguments.storing.options_for(target)?;
    let progress = Progress::new(Some(total));
    let report = |bytes| progress.report(bytes);
    let mut options = arguments.taking.options(target);
    options.write = write;
    options.deduplicate = !arguments.storing.no_dedup;
    options.progress = Some(&report);
    let folder = match &arguments.output {
        Some(folder) => folder.clone(),
        None => arguments
            .file
            .parent()
            .unwrap_or(Path::new(""))
            .to_path_buf(),
    };
    let stem = match &arguments.name {
        Some(name) => name.clone(),
        None => stem(&arguments.file)?,
    };
    let _made = Folder::at(&folder)?;
    let split = zt_convert::split(
        &inputs,
        &folder,
        &stem,
        arguments.max_shard_size,
        arguments.force,
        &options,
    );
    drop(progress);
    let split = split.map_err(Failure::from).inspect_err(|failure| {
        let taking = &arguments.taking;
        taking.hint(failure, &inputs, arguments.force, output);
        if matches!(failure, Failure::Error(error) if error.code() == "overwrite")
            && arguments.output.is_none()
        {
            output.hint("-o DIR writes to another folder than that of FILE");
        }
    })?;
    output.warnings(&split.warnings);
    tell(arguments, target, &split, output)?;
    Ok(Exit::Ok)
}

/// What the files are called: as the input, without what is after its name.
fn stem(path: &Path) -> Result<String, Failure> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.map(|name| name.strip_suffix(".index.json").unwrap_or(name));
    let stem = name.and_then(|name| Path::new(name).file_stem()?.to_str());
    let stem = stem.map(str::to_owned);
    stem.ok_or_else(|| {
        let path = path.display();
        Failure::misuse(format!(
            "{path}: its name, which shards are called by, is no text; --name gives another"
        ))
    })
}

fn tell(
    arguments: &Arguments,
    target: Kind,
    split: &Split,
    output: &mut Output,
) -> Result<(), Failure> {
    if output.json {
        output.document(&Document {
            file: arguments.file.display().to_string(),
            kind: target.as_str(),
            index: split.index.as_ref().map(|path| path.display().to_string()),
            total_size: split.total_size,
            shards: split.shards.iter().map(ShardBody::from).collect(),
            left_out: &split.left_out,
            removed: paths(&split.removed),
            warnings: warnings(&split.warnings),
        })?;
        return Ok(());
    }
    if !split.removed.is_empty() {
        let removed = count(split.removed.len() as u64, "file", "files");
        output.note(&format!("also removed {removed} of the set that was there"));
    }
    // In the last line, which is that of the set.
    let left_out = left_out(&split.left_out);
    let of_shards = if split.index.is_none() { &left_out } else { "" };
    for shard in &split.shards {
        output.line(&format!(
            "{}: {}, {} in {}{of_shards}",
            printable(&shard.path.display().to_string()),
            count(shard.objects, "object", "objects"),
            human(shard.bytes),
            human(shard.byte_len)
        ))?;
    }
    if let Some(index) = &split.index {
        output.line(&format!(
            "{}: {target}; {}, {}{left_out}",
            printable(&index.display().to_string()),
            count(split.shards.len() as u64, "shard", "shards"),
            human(split.total_size)
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn sets_are_called_as_what_they_are_of() {
        let stem = |path: &str| stem(path.as_ref()).ok();
        for path in [
            "a/model.safetensors",
            "model.zt",
            "model.safetensors.index.json",
            "model",
        ] {
            assert_eq!(stem(path).as_deref(), Some("model"), "{path}");
        }
        assert_eq!(stem("v1.5.gguf").as_deref(), Some("v1.5"));
        assert_eq!(stem(".."), None);
    }
}
