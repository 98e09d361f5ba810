//! `zt split`: split a file into a set of shards.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use zt::foreign::{AtomicFile, Kind};
use zt::{Error, File, codes};
use zt_convert::quantized::Settings;
use zt_convert::{FileKind, Input, Split, SplitOptions, ZT, is_same_file, set_name};

use crate::args::convert::{ConvertArgs, exit_without, kinds};
use crate::args::input::byte_len;
use crate::args::size::Size;
use crate::failure::{Exit, Failure};
use crate::files::folder::Folder;
use crate::files::kinds;
use crate::files::remote::{self, is_url, location};
use crate::files::stdin::is_stdin;
use crate::output::Output;
use crate::output::absent::{self, Absent};
use crate::output::json::{casts, object, path_text, paths, warnings};
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text::{self, count, left_out};

/// Split a file into a set of shards
///
/// Shards have the sizes and the form of names that the Hugging Face Hub uses, with the name of FILE:
/// model-00001-of-00003.safetensors and so on, with model.safetensors.index.json. transformers looks for
/// names that begin with `model`: --name model. Every command opens the set by this index. A tensor
/// above the limit gets a shard of its own. If one shard is enough, it is model.safetensors, without
/// an index; if that is FILE itself, nothing is done.
///
/// GGUF files become a set as gguf-split of llama.cpp writes it, without an index: any of its files opens
/// it. It does not open before its last step, in which the first file gets its name. --force replaces
/// files of the same names, and a kill in the middle leaves no whole set.
///
/// All files appear or none. With --force they replace the whole set of the same name in one step, also
/// if that set is FILE. Where a new shard would have the name of an old one, the new shards are called
/// model-g2-00001-of-00003.safetensors and so on. A kill leaves the old set or the new one, and the next
/// split to the same name removes the rest.
///
/// DIR can be the URL of a folder of a store. Each shard appears when it is complete, and the index is
/// last. After an error or a signal the new shards are removed; a kill may leave some of them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of any kind, or the index or the folder of a set to split again; `-` is stdin
    file: PathBuf,
    /// Limit on the uncompressed bytes of a shard: 5GB, 500MB, 2GiB, or a number of bytes
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "5GB",
        value_parser = Size::parse,
        allow_hyphen_values = true
    )]
    max_shard_size: Size,
    /// Limit on the tensors of a shard
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tensors: Option<u64>,
    /// Folder for the set, made if it does not exist, or a URL [default: the folder of FILE]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// DIR, in the place of the second argument
    #[arg(short, long, alias = "out", value_name = "DIR", conflicts_with = "folder")]
    output: Option<PathBuf>,
    /// Name of the set, as in MODEL-00001-of-00003.safetensors [default: the name of FILE without
    /// its extension, and without the number of a shard if FILE opens a set]
    #[arg(long, value_name = "MODEL")]
    name: Option<String>,
    /// Kind of the shards [default: the kind of FILE]
    #[arg(long, value_name = "KIND", value_parser = kinds(is_target))]
    to: Option<Kind>,
    #[command(flatten)]
    convert: ConvertArgs,
    /// Replace files that exist; an input is replaced only if it is the whole set
    #[arg(short, long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  zt split model.safetensors --max-shard-size 5GB -o shards
  zt split model.gguf --max-tensors 128 -o shards
  zt split model.gguf --to zt --zstd -o shards
  zt split checkpoint-900.safetensors --name model -o shards
  zt split model.safetensors.index.json --max-shard-size 500MB -o smaller
  zt split model.zt -o s3://bucket/folder/
  zt merge shards/model.safetensors.index.json model.safetensors

GB is 10^9 bytes, as on the Hub; GiB is 2^30.

Keys of --json: `file`, `kind`, `index` (null for one shard and for GGUF), `total_size`, `shards`
(each with `path`, `objects`, `bytes` and `file_size`), `left_out` and `damaged` (names), `excluded`
(each with `input` and `names`), `removed` (files of the replaced set), `casts`,
`warnings`.";

fn is_target(kind: &dyn FileKind) -> bool {
    let writer = kind.writer();
    writer.is_some_and(|writer| writer.set_form().is_some())
}

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    arguments.output = arguments.output.take().or(arguments.folder.take());
    let arguments = &*arguments;
    let convert = &arguments.convert;
    let files = std::slice::from_ref(&arguments.file);
    let opened = convert.open_all(files, output)?;
    let inputs = &opened.inputs;
    let total = byte_len(inputs);
    arguments.max_shard_size.note("--max-shard-size", output);
    // A folder stands for a file in it.
    let file = inputs.first().and_then(Input::path);
    let file = file.unwrap_or(&arguments.file);
    let kind = inputs.first().map_or(ZT, |input| input.file().kind());
    let kinds = kinds::table();
    let has_sets = kinds.get(kind.as_str()).is_some_and(is_target);
    let target = arguments.to.or(has_sets.then_some(kind));
    let target = target.ok_or_else(|| {
        Failure::misuse(format!(
            "{kind} files cannot be sharded: use --to zt, --to safetensors or --to gguf"
        ))
    })?;
    let mut options = convert.options(target)?;
    convert.choose_types(inputs, &mut options)?;
    let progress = Progress::new(total);
    let report = |bytes| progress.report(bytes);
    options.progress = Some(zt::Progress::new(&report));
    let folder = match &arguments.output {
        Some(folder) => folder.clone(),
        None => file.parent().unwrap_or(Path::new("")).to_path_buf(),
    };
    let stem = match &arguments.name {
        Some(name) => name.clone(),
        None => stem(file, inputs.iter().any(|input| input.paths().len() > 1))?,
    };
    if arguments.output.is_none() && is_url(file) {
        return Err(Failure::misuse(
            "a file of a URL has no default folder for its set: name one with -o DIR",
        ));
    }
    let options = SplitOptions::new(options.overwrite(arguments.force));
    let options = options.max_shard_size(arguments.max_shard_size.bytes).stem(&stem);
    let options = options.max_tensors(arguments.max_tensors.unwrap_or(u64::MAX));
    let folder = location(&folder);
    let made = if folder.is_url() { Folder::none() } else { Folder::at(folder.path())? };
    let split = folder.split(inputs, &options, &remote::options(&convert.input.remote));
    drop(made);
    drop(progress);
    if let Err(error) = &split
        && is_one_shard(error, file, &stem)
        && convert.keeps_contents()
    {
        return print_nothing(file, inputs, total, output);
    }
    let split = split.map_err(Failure::from).inspect_err(|failure| {
        convert.hint(failure, inputs, arguments.force, output);
        if matches!(failure, Failure::Error(error) if error.code() == "overwrite")
            && arguments.output.is_none()
        {
            output.hint("-o DIR writes to another folder");
        }
    })?;
    output.warnings(&split.warnings);
    let quantization = match (&convert.dialect, inputs.first()) {
        (Some(dialect), Some(input)) => {
            kinds.quantized(input).map_err(Failure::Refused)?.settings_in(dialect)
        }
        _ => None,
    };
    if (convert.input.logical || quantization.is_some()) && !folder.is_url() {
        write_config(file, folder.path(), quantization, output)?;
    }
    print(arguments, target, &split, &opened.excluded, output)?;
    Ok(exit_without(&split.damaged, inputs))
}

/// Writes `config.json` beside the shards, unless there is one: with the settings of the dialect that they are in, or without any
/// quantization for weights that were computed.
fn write_config(
    file: &Path,
    folder: &Path,
    quantization: Option<serde_json::Value>,
    output: &Output,
) -> Result<(), Failure> {
    let (from, to) = (file.with_file_name("config.json"), folder.join("config.json"));
    let Ok(config) = fs::read(&from) else {
        return Ok(());
    };
    let what = if quantization.is_some() { "the new settings" } else { "no quantization" };
    let path = text::path(&to);
    if to.symlink_metadata().is_ok() {
        output.note(&format!("{path} is there already: of these weights it must have {what}"));
        return Ok(());
    }
    let config = Settings::config_with(&config, quantization);
    let config = config.map_err(|error| error.with_path(&from))?;
    let mut file = AtomicFile::create_new(&to)?;
    file.write_all(&config).map_err(|error| Error::from(error).with_path(&to))?;
    file.publish()?;
    output.note(&format!("{path} has {what} of the weights"));
    Ok(())
}

/// Whether the only shard would be the file itself.
fn is_one_shard(error: &Error, file: &Path, stem: &str) -> bool {
    // A shard of several has a number in its name.
    let is_file = error
        .path()
        .is_some_and(|path| path.file_stem() == Some(stem.as_ref()) && is_same_file(path, file));
    error.code() == codes::OVERWRITE && is_file
}

/// Says that the file is small enough as it is.
fn print_nothing(
    file: &Path,
    inputs: &[Input],
    bytes: Option<u64>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    /// Nothing was left out or removed.
    const NONE: [&str; 0] = [];
    if output.json {
        let of_path = |error: std::io::Error| Error::from(error).with_path(file);
        let metadata = file.metadata().map_err(of_path)?;
        let path = path_text(file);
        let files = || inputs.iter().map(Input::file);
        output.document(&object! {
            file: path.clone(),
            kind: files().next().map_or(ZT, File::kind).as_str(),
            index: None::<&str>,
            total_size: bytes,
            shards: [object! {
                path,
                objects: files().map(|file| file.len() as u64).sum::<u64>(),
                bytes,
                file_size: metadata.len(),
            }],
            left_out: NONE,
            damaged: NONE,
            excluded: NONE,
            removed: NONE,
            warnings: NONE,
        })?;
    } else {
        let path = text::path(file);
        output.line(&format!("{path}: fits in one shard: nothing to do"))?;
    }
    Ok(Exit::Ok)
}

/// [`set_name`], or the error of a path without one.
fn stem(path: &Path, opens_set: bool) -> Result<String, Failure> {
    if is_stdin(path) {
        return Err(Failure::misuse("stdin has no name: name the set with --name"));
    }
    set_name(path, opens_set).ok_or_else(|| {
        let path = path.display();
        Failure::misuse(format!("{path}: the file name is not UTF-8: name the set with --name"))
    })
}

fn print(
    arguments: &Arguments,
    target: Kind,
    split: &Split,
    excluded: &[Absent],
    output: &mut Output,
) -> Result<(), Failure> {
    if output.json {
        let shards = split.shards.iter().map(|shard| {
            object! {
                path: path_text(&shard.path),
                objects: shard.objects,
                bytes: shard.bytes,
                file_size: shard.byte_len,
            }
        });
        output.document(&object! {
            file: path_text(&arguments.file),
            kind: target.as_str(),
            index: split.index.as_deref().map(path_text),
            total_size: split.total_size,
            shards: shards.collect::<Vec<_>>(),
            left_out: &split.left_out,
            damaged: &split.damaged,
            excluded,
            removed: paths(&split.removed),
            casts: casts(&split.casts),
            warnings: warnings(&split.warnings),
        })?;
        return Ok(());
    }
    output.casts(&split.casts);
    if !split.removed.is_empty() {
        let removed = count(split.removed.len() as u64, "file", "files");
        output.note(&format!("removed {removed} of the replaced set"));
    }
    // Only the last line names the objects that were left out.
    let left_out = left_out(&split.left_out) + &absent::text("excluded", excluded);
    let is_one = split.shards.len() == 1;
    let of_shards = if is_one { &left_out } else { "" };
    for shard in &split.shards {
        output.line(&format!(
            "{}: {}, {} of values in {}{of_shards}",
            text::path(&shard.path),
            count(shard.objects, "object", "objects"),
            human(shard.bytes),
            human(shard.byte_len)
        ))?;
    }
    let first = split.shards.first().map(|shard| &shard.path);
    if let Some(path) = split.index.as_ref().or(first.filter(|_| !is_one)) {
        output.line(&format!(
            "{}: {target}; {}, {}{left_out}",
            text::path(path),
            count(split.shards.len() as u64, "shard", "shards"),
            human(split.total_size)
        ))?;
    }
    Ok(())
}
