//! `zt convert`: from any files to one of another kind, or stored in another way.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::Serialize;
use zt::{Compression, DEFAULT_LEVEL, DType, DigestAlgorithm, Kind, WriteOptions};
use zt_convert::{ConvertOptions, Input, Member, Summary};

use crate::exit::{Exit, Failure};
use crate::json::{WarningBody, warnings};
use crate::open::{Opening, decoded_len, input};
use crate::output::Output;
use crate::progress::Progress;
use crate::size::human;
use crate::text::{count, printable};

/// Convert files to another kind, or store them in another way
///
/// All objects and attributes of all inputs go to OUT, in memory that does not grow with their
/// size. What OUT's kind cannot say is an error that names the object. OUT appears whole or not at
/// all.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The files to read, of any kind; several are merged, and no name may occur twice
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// The file to write; `-` is stdout
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// What the inputs are, instead of what their bytes look like
    #[arg(long, value_name = "KIND", value_parser = kinds(|_| true))]
    from: Option<Kind>,
    /// What to write, instead of what the extension of OUT says; `squizd` is an experiment
    #[arg(long, value_name = "KIND", value_parser = kinds(Member::is_writable))]
    to: Option<Kind>,
    /// Compress components that shrink, at this level [3]; `auto` chooses for each, by a sample
    #[arg(
        long,
        value_name = "LEVEL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "3",
        value_parser = compression
    )]
    zstd: Option<Compression>,
    /// Split floating-point tensors into planes of bytes, which compress without loss; components
    /// are compressed as with --zstd=auto unless --zstd says otherwise
    #[arg(long)]
    planes: bool,
    /// The digest to record of each component [crc32c]
    #[arg(long, value_enum)]
    digest: Option<Digest>,
    /// Write every object as its dense value
    #[arg(long)]
    dense: bool,
    /// Cast floating-point values of dense objects
    #[arg(long, value_enum)]
    dtype: Option<Cast>,
    /// Begin components at multiples of so many bytes: a power of two of at least 64
    #[arg(long, value_name = "N")]
    align: Option<u64>,
    /// Store components of the same bytes as often as they occur, instead of once
    #[arg(long)]
    no_dedup: bool,
    /// Threads; as many as there are cores by default. The bytes are the same
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Replace OUT if it exists; an input is never replaced
    #[arg(short, long)]
    force: bool,
    /// Leave out what OUT's kind cannot say, with a warning
    #[arg(long)]
    lossy: bool,
    #[command(flatten)]
    opening: Opening,
}

const EXAMPLES: &str = "\
Examples:
  zt convert model.safetensors model.zt
  zt convert model.safetensors.index.json model.zt --zstd=9 --digest sha256
  zt convert model.safetensors model.zt --zstd=auto
  zt convert model.safetensors model.zt --planes
  zt convert model.zt half.zt --dtype bf16
  zt convert sparse.zt dense.safetensors --dense
  zt convert encoder.zt decoder.zt model.zt
  zt convert model.zt - --to safetensors | ssh host 'cat > model.safetensors'";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Digest {
    Crc32c,
    Sha256,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Cast {
    F64,
    F32,
    F16,
    Bf16,
}

#[derive(Serialize)]
struct Document<'a> {
    inputs: Vec<String>,
    output: String,
    kind: &'a str,
    objects: u64,
    bytes: u64,
    shared_bytes: u64,
    file_size: u64,
    warnings: Vec<WarningBody<'a>>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let to_stdout = arguments.out == Path::new("-");
    let target = target(arguments, to_stdout)?;
    let write = write_options(arguments, target)?;
    if to_stdout && output.json {
        return Err(Failure::misuse(
            "stdout cannot hold both the file and the JSON",
        ));
    }
    if to_stdout && io::stdout().is_terminal() && !arguments.force {
        return Err(Failure::misuse(
            "the file would go to the terminal: redirect it, or use --force",
        ));
    }
    let mut inputs = Vec::with_capacity(arguments.inputs.len());
    for path in &arguments.inputs {
        if path == Path::new("-") {
            return Err(Failure::misuse(
                "stdin cannot be read: files are read by position",
            ));
        }
        inputs.push(input(path, arguments.from, &arguments.opening)?);
    }

    let total = inputs
        .iter()
        .map(|input| decoded_len(input.file()))
        .fold(0, u64::saturating_add);
    let progress = Progress::new(Some(total));
    let report = |bytes| progress.report(bytes);
    let mut options = ConvertOptions::new(target);
    options.write = write;
    options.dense = arguments.dense;
    options.dtype = arguments.dtype.map(DType::from);
    options.lossy = arguments.lossy;
    options.deduplicate = !arguments.no_dedup;
    options.progress = Some(&report);
    let summary = if to_stdout {
        convert_to_stdout(&inputs, &options)?
    } else {
        zt_convert::convert_to_path(&inputs, &arguments.out, arguments.force, &options)?
    };
    drop(progress);
    output.warnings(&summary.warnings);
    match to_stdout {
        true => Ok(Exit::Ok),
        false => tell(arguments, target, &summary, output),
    }
}

fn tell(
    arguments: &Arguments,
    target: Kind,
    summary: &Summary,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let path = arguments.out.display().to_string();
    if output.json {
        output.document(&Document {
            inputs: arguments
                .inputs
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
            output: path,
            kind: target.as_str(),
            objects: summary.objects,
            bytes: summary.bytes,
            shared_bytes: summary.shared,
            file_size: summary.byte_len,
            warnings: warnings(&summary.warnings),
        })?;
    } else {
        let objects = count(summary.objects, "object", "objects");
        let (logical, stored) = (human(summary.bytes), human(summary.byte_len));
        let path = printable(&path);
        let shared = match summary.shared {
            0 => String::new(),
            shared => format!(", {} shared", human(shared)),
        };
        output.line(&format!(
            "{path}: {target}; {objects}, {logical} in {stored}{shared}"
        ))?;
    }
    Ok(Exit::Ok)
}

/// What to write.
fn target(arguments: &Arguments, to_stdout: bool) -> Result<Kind, Failure> {
    let named = arguments.to.or_else(|| match to_stdout {
        true => Some(zt_convert::ZT),
        false => zt_convert::kind_of_extension(&arguments.out),
    });
    named.ok_or_else(|| {
        let path = arguments.out.display();
        Failure::misuse(format!(
            "{path}: the extension does not say what to write, and there is no --to"
        ))
    })
}

fn write_options(arguments: &Arguments, target: Kind) -> Result<WriteOptions, Failure> {
    let Arguments {
        zstd,
        planes,
        digest,
        align,
        no_dedup,
        jobs,
        ..
    } = arguments;
    let only_zt = [
        ("--zstd", zstd.is_some()),
        ("--planes", *planes),
        ("--digest", digest.is_some()),
        ("--align", align.is_some()),
        ("--no-dedup", *no_dedup),
    ];
    if target != zt_convert::ZT
        && let Some((flag, _)) = only_zt.iter().find(|(_, given)| *given)
    {
        return Err(Failure::misuse(format!(
            "{flag} is for .zt files, and {target} is to be written"
        )));
    }
    let mut options = WriteOptions::new();
    if *planes {
        options = options.planes();
    }
    if let Some(compression) = zstd {
        options = options.compression(*compression);
    }
    if let Some(digest) = digest {
        options = options.digest(match digest {
            Digest::Crc32c => Some(DigestAlgorithm::Crc32c),
            Digest::Sha256 => Some(DigestAlgorithm::Sha256),
            Digest::None => None,
        });
    }
    if let Some(align) = align {
        if !align.is_power_of_two() || *align < zt::container::ALIGNMENT {
            return Err(Failure::misuse(format!(
                "--align {align}: not a power of two of at least 64"
            )));
        }
        options = options.alignment(*align);
    }
    if let Some(jobs) = jobs {
        options = options.threads(usize::from(*jobs));
    }
    Ok(options)
}

fn convert_to_stdout(inputs: &[Input], options: &ConvertOptions<'_>) -> Result<Summary, Failure> {
    let closed = AtomicBool::new(false);
    let sink = Stdout {
        out: stdout().map_err(zt::Error::from)?,
        closed: &closed,
    };
    zt_convert::convert(inputs, sink, options).map_err(|error| {
        match closed.load(Ordering::Relaxed) {
            true => Failure::CutOff,
            false => Failure::Error(error),
        }
    })
}

/// Stdout without the standard library's search for line breaks.
#[cfg(unix)]
fn stdout() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd;
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

#[cfg(not(unix))]
fn stdout() -> io::Result<io::Stdout> {
    Ok(io::stdout())
}

/// Remembers whether the reader of a pipe has gone.
struct Stdout<'c, W> {
    out: W,
    closed: &'c AtomicBool,
}

impl<W: Write> Write for Stdout<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        if written
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        {
            self.closed.store(true, Ordering::Relaxed);
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The value of `--zstd`.
pub(crate) fn compression(text: &str) -> Result<Compression, String> {
    const LEVELS: std::ops::RangeInclusive<i32> = -7..=22;
    match text.parse() {
        Ok(level) if LEVELS.contains(&level) => Ok(Compression::Zstd(level)),
        _ if text == "auto" => Ok(Compression::Auto),
        _ => Err("`auto`, or a level from -7 to 22".to_owned()),
    }
}

/// The kinds that are `wanted`, by name.
pub(crate) fn kinds(wanted: fn(&Member) -> bool) -> impl TypedValueParser<Value = Kind> {
    let members = zt_convert::members()
        .iter()
        .filter(move |member| wanted(member));
    PossibleValuesParser::new(members.map(|member| member.kind().as_str())).try_map(|name| {
        zt_convert::member(&name)
            .map(Member::kind)
            .ok_or("no such kind")
    })
}

impl From<Cast> for DType {
    fn from(cast: Cast) -> Self {
        match cast {
            Cast::F64 => DType::F64,
            Cast::F32 => DType::F32,
            Cast::F16 => DType::F16,
            Cast::Bf16 => DType::BF16,
        }
    }
}

const _: () = assert!(DEFAULT_LEVEL == 3, "the help says so");
