//! `alone OPERATION ...`: one operation in a process of its own, for [`zt_benches::growth`].
//!
//! Prints three numbers: seconds, the most bytes that the process had resident, and the memory of the
//! operation. The allocator that counts it is why this is a program apart: it would slow down those who
//! allocate much.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use zt::foreign::AtomicFile;
use zt::{DType, OpenOptions, Verify, WriteOptions, Writer};
use zt_benches::contestants::{Digest, Storage, ours};
use zt_benches::growth::{anonymous, resident};
use zt_benches::random::Random;
use zt_benches::workload::gaussian_bf16;
use zt_benches::{Result, Workload};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(Cost { took, memory }) => {
            println!("{} {} {memory}", took.as_secs_f64(), resident("/proc/self/status"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// What an operation took.
struct Cost {
    took: Duration,
    /// The most bytes that it had allocated at once, or what it holds at its end, if that is more. Large pages
    /// do not come from the allocator.
    memory: u64,
}

/// Does the work, with its time and its memory; what it makes is dropped afterwards.
fn cost<T>(work: impl FnOnce() -> Result<T>) -> Result<Cost> {
    let before = (ALLOCATOR.current_usage(), anonymous());
    ALLOCATOR.reset_peak_usage();
    let start = Instant::now();
    let outcome = work();
    let took = start.elapsed();
    let heap = ALLOCATOR.peak_usage().saturating_sub(before.0) as u64;
    let held = anonymous().saturating_sub(before.1);
    drop(outcome?);
    Ok(Cost { took, memory: heap.max(held) })
}

fn run(arguments: &[&str]) -> Result<Cost> {
    match *arguments {
        ["make-objects", count, path] => {
            let workload = Workload::tiny(count.parse()?)?;
            cost(|| write_objects(&workload, BufWriter::new(File::create(path)?)))
        }
        ["write-objects", count, path] => {
            let workload = Workload::tiny(count.parse()?)?;
            cost(|| write_objects(&workload, AtomicFile::create(path)?))
        }
        ["open", path] => cost(|| ours::open(Path::new(path), Verify::OnRead)),
        ["find", path] => {
            let file = ours::open(Path::new(path), Verify::OnRead)?;
            let name = file.names().nth(file.len() / 2).ok_or("no objects")?;
            cost(|| Ok(file.tensor(name)?.bytes("data")?))
        }
        ["list", path] => {
            let file = ours::open(Path::new(path), Verify::OnRead)?;
            cost(|| Ok(file.entries()))
        }
        ["make-bytes", byte_len, path] => {
            let (byte_len, piece) = (byte_len.parse()?, piece());
            let sink = BufWriter::new(File::create(path)?);
            cost(|| write_bytes(byte_len, &piece, sink))
        }
        ["write-bytes", byte_len, path] => {
            let (byte_len, piece) = (byte_len.parse()?, piece());
            cost(|| write_bytes(byte_len, &piece, AtomicFile::create(path)?))
        }
        ["make-safetensors", byte_len, path] => {
            cost(|| write_safetensors(byte_len.parse()?, Path::new(path)))
        }
        ["read-into", path] => cost(|| read_into(Path::new(path))),
        ["verify", path] => cost(|| ours::verify(&ours::open(Path::new(path), Verify::OnRead)?)),
        ["copy", from, to] => {
            let copied = cost(|| Ok(fs::copy(from, to)?))?;
            fs::remove_file(to)?;
            Ok(copied)
        }
        ["convert-raw", from, to] => convert(from, to, Storage::Raw),
        ["convert-zstd", from, to] => convert(from, to, Storage::Zstd(3)),
        _ => Err("alone is started by compare".into()),
    }
}

fn convert(from: &str, to: &str, storage: Storage) -> Result<Cost> {
    let options = ours::write_options(storage, Digest::Crc32c);
    cost(|| ours::convert(Path::new(from), Path::new(to), options))
}

/// What is written is complete and, where it is an `AtomicFile`, is removed with it.
fn write_objects<W: Write + Send>(workload: &Workload, mut sink: W) -> Result<W> {
    let mut writer = Writer::new(&mut sink)?;
    for tensor in &workload.tensors {
        writer.add(&tensor.name, &tensor.dense()?)?;
    }
    writer.finish()?;
    sink.flush()?;
    Ok(sink)
}

/// Bytes that are written or read at a time.
const PIECE: usize = 1 << 20;
/// Bytes of a tensor, the last and smaller one apart.
const TENSOR: u64 = 128 << 20;
/// Elements of a row.
const COLUMNS: u64 = 8192;

/// The names and the shapes of bf16 tensors of so many bytes together.
fn tensors(byte_len: u64) -> impl Iterator<Item = (String, [u64; 2], u64)> {
    let whole = std::iter::repeat_n(TENSOR, usize::try_from(byte_len / TENSOR).unwrap_or(0));
    let lengths = whole.chain(Some(byte_len % TENSOR).filter(|rest| *rest > 0));
    (0..).zip(lengths).map(|(at, len)| {
        let name = format!("model.layers.{at}.weight");
        (name, [len / 2 / COLUMNS, COLUMNS], len)
    })
}

/// A piece of weights, to be written again and again: no frame of zstd sees two of them.
fn piece() -> Vec<u8> {
    let mut piece = vec![0; PIECE];
    gaussian_bf16(&mut piece, Random::new(0, 0), 0);
    piece
}

fn write_bytes<W: Write + Send>(byte_len: u64, piece: &[u8], mut sink: W) -> Result<W> {
    let mut writer = WriteOptions::new().to_writer(&mut sink)?;
    for (name, shape, len) in tensors(byte_len) {
        let mut object = writer.begin(&name, &shape, "dense")?;
        let mut component = object.component("data", DType::BF16, None)?;
        for _ in 0..len / PIECE as u64 {
            component.write_all(piece)?;
        }
        component.finish()?;
        object.finish()?;
    }
    writer.finish()?;
    sink.flush()?;
    Ok(sink)
}

fn write_safetensors(byte_len: u64, path: &Path) -> Result<()> {
    let piece = piece();
    let mut end = 0;
    let entries = tensors(byte_len).map(|(name, [rows, columns], len)| {
        let start = end;
        end += len;
        format!("\"{name}\":{{\"dtype\":\"BF16\",\"shape\":[{rows},{columns}],\"data_offsets\":[{start},{end}]}}")
    });
    let mut header = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
    // What follows the header begins at a multiple of 8.
    header.extend(std::iter::repeat_n(' ', (8 - header.len() % 8) % 8));
    let mut file = File::create(path)?;
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    for _ in 0..byte_len / PIECE as u64 {
        file.write_all(&piece)?;
    }
    Ok(())
}

fn read_into(path: &Path) -> Result<u64> {
    let file = OpenOptions::new().open(path)?;
    let mut buffer = Vec::new();
    let mut total = 0;
    for entry in file.entries() {
        let tensor = entry.tensor()?;
        let len = tensor.decoded_len("data")?;
        buffer.resize(usize::try_from(len)?, 0);
        tensor.read_into("data", &mut buffer)?;
        total += len;
    }
    Ok(total)
}
