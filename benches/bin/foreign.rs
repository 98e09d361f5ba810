//! `foreign WAY FILE`: opens a file of any kind, lists it and reads all of it, for `foreign.py`.
//!
//! Prints seconds, how many bytes the tensors have, and their [`sum`], by which the script sees that
//! all have read the same. Freeing is no part of the time, and neither is the sum where the bytes are
//! in memory of their own.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use zt::{Buffer, File, FileSource, Map, OpenOptions, Source, Tensor, Verify};
use zt_benches::Result;
use zt_benches::contestants::limits::{self, Threads};
use zt_benches::contestants::{peer_safetensors, sum};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(Read { took, byte_len, sum }) => {
            println!("{} {byte_len} {sum}", took.as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("foreign: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What was read, and how long it took.
struct Read {
    took: Duration,
    byte_len: u64,
    sum: u64,
}

fn run(arguments: &[&str]) -> Result<Read> {
    let [way, path] = *arguments else {
        return Err("foreign is started by foreign.py".into());
    };
    let path = Path::new(path);
    // As the peers do, which compare nothing.
    let options = OpenOptions::new().verify(Verify::Never);
    let start = Instant::now();
    match way {
        "zt" => {
            let file = zt_convert::Kinds::builtin()
                .open(path, &options)
                .map(zt_convert::Input::into_file)?;
            let tensors = tensors(&file)?;
            let wanted: Vec<_> = tensors.iter().map(|tensor| (*tensor, "data")).collect();
            let read = file.read_many(&wanted);
            let took = start.elapsed();
            let read = read.into_iter().map(|found| Ok(found?.bytes));
            let read = read.collect::<zt::Result<Vec<_>>>()?;
            Ok(Read::of(took, read.iter().map(|bytes| &**bytes)))
        }
        "zt-mapped" => {
            // SAFETY: as in `ours::open_map`.
            let map = unsafe { Map::open(path) }?;
            let file = zt_convert::Kinds::builtin()
                .open_source(map, &options)
                .map(zt_convert::Input::into_file)?;
            let tensors = tensors(&file)?;
            let read = tensors.iter().map(|tensor| tensor.bytes("data"));
            let read = read.collect::<zt::Result<Vec<_>>>()?;
            let mut whole = Read::of(Duration::ZERO, read.iter().map(|bytes| &**bytes));
            whole.took = start.elapsed();
            Ok(whole)
        }
        "safetensors" => {
            let file = peer_safetensors::Mapped::open(path)?;
            let tensors = file.parse()?;
            let read = tensors.iter().map(|(_, tensor)| tensor.data().to_vec());
            let read: Vec<Vec<u8>> = read.collect();
            Ok(Read::of(start.elapsed(), read.iter().map(Vec::as_slice)))
        }
        "map" => {
            let sum = limits::sum_map(path, Threads::One)?;
            Ok(Read { took: start.elapsed(), byte_len: std::fs::metadata(path)?.len(), sum })
        }
        "pread" => {
            let source = FileSource::open(path)?;
            let mut bytes = Buffer::try_zeroed(source.byte_len())?;
            source.read_at(0, &mut bytes)?;
            Ok(Read::of(start.elapsed(), [&bytes[..]]))
        }
        _ => Err(format!("no way {way}").into()),
    }
}

/// Every tensor, listed as its users list them.
fn tensors(file: &File) -> Result<Vec<Tensor<'_>>> {
    let entries = file.entries();
    let tensors = entries.iter().map(zt::Entry::tensor);
    Ok(tensors.collect::<zt::Result<_>>()?)
}

impl Read {
    fn of<'b>(took: Duration, parts: impl IntoIterator<Item = &'b [u8]>) -> Self {
        let mut read = Read { took, byte_len: 0, sum: 0 };
        for part in parts {
            read.byte_len += part.len() as u64;
            read.sum = read.sum.wrapping_add(sum(part));
        }
        read
    }
}
