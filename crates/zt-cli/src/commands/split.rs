//! `zt split`: files as a set of shards with an index.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use zt::{Compression, Error, Kind, WriteOptions};
use zt_convert::{ConvertOptions, SAFETENSORS, Shard, Split, ZT};

use crate::exit::{Exit, Failure};
use crate::json::{WarningBody, warnings};
use crate::open::{Opening, decoded_len, input};
use crate::output::Output;
use crate::progress::Progress;
use crate::size::{human, parse};
use crate::storing::compression;
use crate::taking::kinds;
use crate::text::{count, printable};

/// Split a file into a set of shards with an index
///
/// Shards are named and cut as the Hugging Face Hub does it: model-00001-of-00003.safetensors and so
/// on, beside model.safetensors.index.json, which opens the set. A tensor that is larger than the
/// limit is a shard by itself; where all fits one shard, that is model.safetensors, without an
/// index. All files appear or none.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The file, of any kind; of a set that is to be cut anew, its index
    file: PathBuf,
    /// The most bytes of values in a shard, before compression: 5GB, 500MB, 2GiB, or bytes
    #[arg(long, value_name = "SIZE", default_value = "5GB", value_parser = parse)]
    max_shard_size: u64,
    /// Where to write, made if it is not there [the folder of FILE]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What to write [what FILE is]
    #[arg(long, value_name = "KIND", value_parser = kinds(|member| is_target(member.kind())))]
    to: Option<Kind>,
    /// Compress components of .zt shards that shrink, as in `zt convert`
    #[arg(
        long,
        value_name = "LEVEL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "3",
        value_parser = compression
    )]
    zstd: Option<Compression>,
    /// Threads; as many as there are cores by default. The bytes are the same
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Replace files that are there; an input is never replaced
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    opening: Opening,
}

const EXAMPLES: &str = "\
Examples:
  zt split model.safetensors --max-shard-size 5GB -o shards
  zt split model.gguf --to zt --zstd -o shards
  zt split model.safetensors.index.json --max-shard-size 500MB -o smaller
  zt merge shards/model.safetensors.index.json model.safetensors

GB is 10^9 bytes as on the Hub, GiB is 2^30. With --json the keys are `file`, `kind`, `index` (null
for one shard), `total_size` and `shards`, each with `path`, `objects`, `bytes` of values and
`file_size`, and `warnings`.";

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
    let opened = input(&arguments.file, None, &arguments.opening)?;
    let kind = opened.file().kind();
    let target = arguments
        .to
        .or_else(|| Some(kind).filter(|kind| is_target(*kind)));
    let target = target.ok_or_else(|| {
        Failure::misuse(format!(
            "there are no sets of {kind} files: choose with --to zt or --to safetensors"
        ))
    })?;
    if arguments.zstd.is_some() && target != ZT {
        return Err(Failure::misuse(format!(
            "--zstd is for .zt files, and {target} is to be written"
        )));
    }
    let progress = Progress::new(Some(decoded_len(opened.file())));
    let report = |bytes| progress.report(bytes);
    let mut options = ConvertOptions::new(target);
    options.write = write_options(arguments);
    options.progress = Some(&report);
    let folder = match &arguments.output {
        Some(folder) => folder.clone(),
        None => arguments
            .file
            .parent()
            .unwrap_or(Path::new(""))
            .to_path_buf(),
    };
    let made = !folder.as_os_str().is_empty() && !folder.is_dir();
    if made {
        fs::create_dir_all(&folder).map_err(|error| Error::from(error).with_path(&folder))?;
    }
    let split = zt_convert::split(
        &[opened],
        &folder,
        &stem(&arguments.file)?,
        arguments.max_shard_size,
        arguments.force,
        &options,
    );
    drop(progress);
    let split = split.inspect_err(|_| {
        if made {
            let _ = fs::remove_dir(&folder); // A command that fails leaves nothing behind.
        }
    })?;
    output.warnings(&split.warnings);
    tell(arguments, target, &split, output)?;
    Ok(Exit::Ok)
}

fn write_options(arguments: &Arguments) -> WriteOptions {
    let mut options = WriteOptions::new();
    if let Some(compression) = arguments.zstd {
        options = options.compression(compression);
    }
    if let Some(jobs) = arguments.jobs {
        options = options.threads(usize::from(jobs));
    }
    options
}

/// What the files are called: as the input, without what is after its name.
fn stem(path: &Path) -> Result<String, Failure> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.map(|name| name.strip_suffix(".index.json").unwrap_or(name));
    let stem = name.and_then(|name| Path::new(name).file_stem()?.to_str());
    let stem = stem.map(str::to_owned);
    stem.ok_or_else(|| Failure::misuse("the name of the file is not text"))
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
            warnings: warnings(&split.warnings),
        })?;
        return Ok(());
    }
    for shard in &split.shards {
        output.line(&format!(
            "{}: {}, {} in {}",
            printable(&shard.path.display().to_string()),
            count(shard.objects, "object", "objects"),
            human(shard.bytes),
            human(shard.byte_len)
        ))?;
    }
    if let Some(index) = &split.index {
        output.line(&format!(
            "{}: {target}; {}, {}",
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
