//! `zt bench`: measure how fast this machine reads, verifies and writes a file.

use std::hint::black_box;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use zt::{Compression, VerifyOptions, WriteOptions};
use zt_convert::{ConvertOptions, Input};
use zt_model::Check;

use crate::args::input::{InputArgs, Truncated};
use crate::args::jobs::Jobs;
use crate::failure::{Exit, Failure};
use crate::files::kinds;
use crate::files::remote::expect_local;
use crate::files::stdin::refuse_stdin;
use crate::output::Output;
use crate::output::json::path_text;
use crate::output::progress::Progress;
use crate::output::size::{Sum, human, percent};
use crate::output::table::Table;
use crate::output::text::{count, printable};

/// Measure how fast this machine reads, verifies and writes a file
///
/// Each round runs every operation once. The first round is not counted, so that the file comes from
/// the cache and not from the disk. Nothing is written to the disk. A damaged file is not measured;
/// the exit code is then the same as for `zt verify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of any kind, or the index or the folder of a sharded set
    pub(crate) file: PathBuf,
    /// Number of rounds
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt bench model.zt
  zt bench model.safetensors --rounds 9 --jobs 2
  zt bench --json model.gguf | jq '.operations[] | {operation, bytes_per_second}'

Operations:
  file       read the bytes of the file, 1 MiB at a time, on one thread
  memory     copy the same number of bytes in memory, on one thread
  open       open the file
  stream     read and decode every component in order, 1 MiB at a time, and check its digest
  own        read and decode each component into new memory, and check its digest
  verify     check everything, as `zt verify` does
  raw        read the file and write it as .zt, uncompressed, with crc32c
  zstd-1, zstd-3
             the same, compressed at level 1 or 3
  zstd-auto  the same, compressed where a sample of a component shrinks

Keys of an operation with --json: `operation`, `bytes` (null for `open`), `seconds` (median),
`seconds_min`, `seconds_max`, `bytes_per_second` and, for raw and zstd, `output_size`.";

/// Does something with the file. It was opened again, because an open file remembers which digests it has
/// checked.
type Operation = fn(&Bench<'_>, Input) -> Result<Turn, Failure>;

const OPERATIONS: [(&str, Operation); 10] = [
    ("file", |bench, _| reading(|| bench.file())),
    ("memory", |bench, _| bench.memory()),
    ("open", |bench, _| timed(|| bench.open().map(black_box).map(|_| (None, None)))),
    ("stream", |bench, input| reading(|| bench.stream(&input))),
    ("own", |bench, input| reading(|| bench.own(&input))),
    ("verify", |bench, input| reading(|| bench.verify(&input))),
    ("raw", |bench, input| bench.store(&[input], Compression::None)),
    ("zstd-1", |bench, input| bench.store(&[input], Compression::Zstd(1))),
    ("zstd-3", |bench, input| bench.store(&[input], Compression::Zstd(3))),
    ("zstd-auto", |bench, input| bench.store(&[input], Compression::Auto)),
];

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    kind: &'a str,
    file_size: u64,
    objects: usize,
    decoded_size: u64,
    rounds: u16,
    jobs: Option<u16>,
    operations: Vec<OperationBody>,
}

#[derive(Serialize)]
struct OperationBody {
    operation: &'static str,
    bytes: Option<u64>,
    seconds: f64,
    seconds_min: f64,
    seconds_max: f64,
    bytes_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_size: Option<u64>,
}

/// The result of one operation in one round.
struct Turn {
    took: Duration,
    /// Bytes that were read or copied.
    bytes: Option<u64>,
    /// Bytes that were written.
    stored: Option<u64>,
}

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    refuse_stdin(&arguments.file)?;
    expect_local(&arguments.file, "a remote file cannot be measured")?;
    let opened = arguments.input.open_input(&arguments.file, Truncated::Refused)?;
    arguments.input.expect_all_used()?;
    // The base was checked now, and is not measured.
    arguments.input.check = Check::Read;
    let arguments = &*arguments;
    let file = opened.file();
    let decoded = file.decoded_len();
    let rounds = u64::from(arguments.rounds) + 1;
    // Every operation except `open` reads all bytes.
    let work = decoded.checked_mul(rounds * (OPERATIONS.len() as u64 - 1));
    let progress = Progress::new(work);
    let bench = Bench {
        path: &arguments.file,
        input: &arguments.input,
        paths: opened.paths(),
        jobs: arguments.jobs.threads(),
        progress: &progress,
    };
    let mut turns: Vec<Vec<Turn>> = OPERATIONS.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for ((_, operation), turns) in OPERATIONS.iter().zip(&mut turns) {
            let turn = operation(&bench, bench.open()?)?;
            if round > 0 {
                turns.push(turn);
            }
        }
    }
    drop(progress);
    let bodies = OPERATIONS.iter().zip(turns);
    let operations = bodies.filter_map(|((name, _), turns)| body(name, turns));
    let document = Document {
        file: path_text(&arguments.file),
        kind: file.kind().as_str(),
        file_size: file.byte_len(),
        objects: file.len(),
        decoded_size: decoded,
        rounds: arguments.rounds,
        jobs: arguments.jobs.jobs,
        operations: operations.collect(),
    };
    if output.json {
        output.document(&document)?;
    } else {
        output.line(&table(&document).render(output.colored()))?;
        output.line(&format!(
            "{}: {}, {}, {} decoded; median of {}",
            printable(&document.file),
            document.kind,
            count(document.objects as u64, "object", "objects"),
            human(decoded),
            count(arguments.rounds.into(), "round", "rounds"),
        ))?;
    }
    Ok(Exit::Ok)
}

/// Measures work that returns the bytes it read and the bytes it wrote.
fn timed(
    work: impl FnOnce() -> Result<(Option<u64>, Option<u64>), Failure>,
) -> Result<Turn, Failure> {
    let start = Instant::now();
    let (bytes, stored) = work()?;
    let took = start.elapsed();
    Ok(Turn { took, bytes, stored })
}

/// As [`timed`], for work that writes nothing.
fn reading(work: impl FnOnce() -> Result<u64, Failure>) -> Result<Turn, Failure> {
    timed(|| Ok((Some(work()?), None)))
}

fn body(operation: &'static str, mut turns: Vec<Turn>) -> Option<OperationBody> {
    turns.sort_by_key(|turn| turn.took);
    let seconds = |turn: &Turn| turn.took.as_secs_f64();
    let middle = turns.get(turns.len() / 2)?;
    let took = seconds(middle);
    let rate = |bytes: u64| (took > 0.0).then_some(bytes as f64 / took);
    Some(OperationBody {
        operation,
        bytes: middle.bytes,
        seconds: took,
        seconds_min: turns.first().map(seconds)?,
        seconds_max: turns.last().map(seconds)?,
        bytes_per_second: middle.bytes.and_then(rate),
        output_size: middle.stored,
    })
}

fn table(document: &Document<'_>) -> Table {
    let mut table =
        Table::new(&["OPERATION", ">MEDIAN", ">FASTEST", ">SLOWEST", ">GB/S", ">STORED"]);
    for operation in &document.operations {
        let milliseconds = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
        let rate = operation.bytes_per_second;
        let stored = operation.output_size;
        table.row([
            operation.operation.to_owned(),
            milliseconds(operation.seconds),
            milliseconds(operation.seconds_min),
            milliseconds(operation.seconds_max),
            rate.map_or(String::new(), |rate| format!("{:.2}", rate / 1e9)),
            stored.map_or(String::new(), |stored| percent(stored, document.decoded_size)),
        ]);
    }
    table
}

/// Bytes of one read or copy.
const PIECE: usize = 1 << 20;

struct Bench<'a> {
    path: &'a Path,
    input: &'a InputArgs,
    /// All files that are read; a sharded set has several.
    paths: &'a [PathBuf],
    jobs: Option<usize>,
    progress: &'a Progress,
}

impl Bench<'_> {
    fn open(&self) -> Result<Input, Failure> {
        self.input.open_input(self.path, Truncated::Refused)
    }

    fn file(&self) -> Result<u64, Failure> {
        let mut piece = vec![0; PIECE];
        let mut total = 0u64;
        for path in self.paths {
            let failed = |error: zt::Error| error.with_path(path);
            let opened = zt::container::open_regular(path);
            let mut file = opened.map_err(|error| failed(error.into()))?;
            loop {
                match file.read(&mut piece) {
                    Ok(0) => break,
                    Ok(len) => total = self.count(total, len as u64)?,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed(error.into()).into()),
                }
            }
        }
        Ok(total)
    }

    /// Copies between two buffers that are larger than the caches. A smaller file counts as one
    /// buffer. The buffers are made before the time is taken.
    fn memory(&self) -> Result<Turn, Failure> {
        const BUFFER: usize = 64 << 20;
        let total = self.paths.iter().filter_map(|path| path.metadata().ok());
        let total = Sum::of(total.map(|metadata| metadata.len())).or_most().max(1);
        let (from, mut to) = (vec![1u8; BUFFER], vec![2u8; BUFFER]);
        reading(|| {
            let mut done = 0;
            while done < total {
                for (to, from) in to.chunks_mut(PIECE).zip(from.chunks(PIECE)) {
                    to.copy_from_slice(from);
                }
                black_box(&mut to);
                done = self.count(done, BUFFER as u64)?;
            }
            Ok(done)
        })
    }

    fn stream(&self, opened: &Input) -> Result<u64, Failure> {
        let mut piece = vec![0; PIECE];
        let mut total = 0u64;
        for entry in opened.file().entries() {
            let tensor = entry.tensor()?;
            for (role, _) in tensor.components() {
                let mut reader = tensor.reader(role)?;
                loop {
                    match reader.read(&mut piece).map_err(zt::Error::from)? {
                        0 => break,
                        len => total = self.count(total, len as u64)?,
                    }
                }
            }
        }
        Ok(total)
    }

    fn own(&self, opened: &Input) -> Result<u64, Failure> {
        let mut total = 0u64;
        for entry in opened.file().entries() {
            let tensor = entry.tensor()?;
            for (role, _) in tensor.components() {
                let bytes = black_box(tensor.bytes(role)?);
                total = self.count(total, bytes.len() as u64)?;
            }
        }
        Ok(total)
    }

    fn verify(&self, opened: &Input) -> Result<u64, Failure> {
        let report = |bytes| self.progress.report(bytes);
        let options = VerifyOptions::new().threads(self.jobs).progress(zt::Progress::new(&report));
        let report = opened.file().verify(&options)?;
        match report.problems.into_iter().next() {
            Some(problem) => Err(problem.into()),
            None => Ok(report.bytes),
        }
    }

    /// Converts the file, and drops what is written.
    fn store(&self, inputs: &[Input], compression: Compression) -> Result<Turn, Failure> {
        let report = |bytes| self.progress.report(bytes);
        let mut options = ConvertOptions::new(zt_convert::ZT);
        options.write = WriteOptions::new().compression(compression).threads(self.jobs);
        options.progress = Some(zt::Progress::new(&report));
        timed(|| {
            let summary = kinds::table().convert(inputs, io::sink(), &options)?;
            Ok((Some(summary.bytes), Some(summary.byte_len)))
        })
    }

    /// Adds to the sum, and stops if the user asks for it.
    fn count(&self, total: u64, more: u64) -> Result<u64, Failure> {
        self.progress.advance(more)?;
        Ok(total + more)
    }
}
