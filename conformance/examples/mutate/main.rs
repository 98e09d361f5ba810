//! Damages files of every kind and runs every command that reads on each.
//!
//! ```text
//! mutate PATH/TO/zt FOLDER SECONDS SEED [NUMBER]
//! ```
//!
//! Mutant NUMBER of SEED is the same in every run, and all commands run on it, each in a process of
//! its own. A command fails the check if it
//!
//! * ends by a signal, or takes more than 10 seconds of a processor or 60 of the clock;
//! * exits with a code that the contract does not give to a file at fault: bytes are never wrong
//!   arguments;
//! * asks for more than [`MEMORY`];
//! * prints a character that controls a terminal, or, with `--json`, anything but one document;
//! * writes a file that `zt verify` refuses as a whole, or at all where it found nothing in the mutant.
//!
//! The mutant of a failure stays in FOLDER, which is emptied first. Linux only: limits of data count
//! what is mapped nowhere else.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a tool of developers")]

mod commands;

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use zt_conformance::mutation::{self, Base, Numbers};

use commands::Bench;

/// What a process may have for its data, in KiB. The files here have at most 64 KiB, and the largest
/// fixed allowances of SECURITY.md are 64 MiB.
const MEMORY: u64 = 512 << 10;

/// After so many there is enough to look at.
const MOST_FAILURES: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [zt, folder, seconds, seed, rest @ ..] = &arguments[..] else {
        return Err("usage: mutate PATH/TO/zt FOLDER SECONDS SEED [NUMBER]".into());
    };
    let (zt, folder) = (fs::canonicalize(zt)?, PathBuf::from(folder));
    let (seconds, seed): (u64, u64) = (seconds.parse()?, seed.parse()?);
    let only: Option<u64> = rest.first().map(|number| number.parse()).transpose()?;
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;

    let kinds = mutation::KINDS.map(|(kind, _)| mutation::bases(kind));
    let next = AtomicU64::new(only.unwrap_or(0));
    let runs = AtomicU64::new(0);
    let failures = Mutex::new(Vec::new());
    let begin = Instant::now();
    let is_over = |number| match only {
        Some(only) => number > only,
        None => begin.elapsed() >= Duration::from_secs(seconds),
    };
    let work = |worker: usize| {
        let bench = Bench::new(&zt, &folder.join(format!("worker-{worker}")), MEMORY);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if is_over(number) || failures.lock().unwrap().len() >= MOST_FAILURES {
                return;
            }
            let mutant = Mutant::new(&kinds, seed, number);
            let (ran, found) = bench.try_all(&mutant);
            runs.fetch_add(ran, Ordering::Relaxed);
            if !found.is_empty() {
                let path = folder.join(format!("{seed}-{number}-{}", mutant.file_name()));
                fs::write(&path, &mutant.bytes).expect("a file for what was found");
                let told = found.join("\n    ");
                eprintln!("seed {seed}, mutant {number} of {}:\n    {told}", mutant.base.name);
                failures.lock().unwrap().push(path);
            }
        }
    };
    let workers = if only.is_some() { 1 } else { thread::available_parallelism()?.get() };
    thread::scope(|scope| {
        for worker in 0..workers {
            scope.spawn(move || work(worker));
        }
    });

    let mutants = next.into_inner().saturating_sub(workers as u64);
    println!("mutate: seed {seed}: {mutants} files, {} commands", runs.into_inner());
    let failures = failures.into_inner()?;
    for path in &failures {
        println!("  kept: {}", path.display());
    }
    exit(i32::from(!failures.is_empty()))
}

/// A file to be tried.
struct Mutant<'b> {
    base: &'b Base,
    bytes: Vec<u8>,
}

impl<'b> Mutant<'b> {
    /// Kinds take turns, so that each is tried equally often, however many files it has.
    fn new(kinds: &'b [Vec<Base>], seed: u64, number: u64) -> Self {
        let mut numbers = Numbers::of(seed ^ number.rotate_left(32));
        let turn = usize::try_from(number % kinds.len() as u64).expect("one of a few");
        let bases = &kinds[turn];
        let base = numbers.pick(bases);
        let other = numbers.pick(bases);
        Self { base, bytes: mutation::mutant(&base.bytes, &other.bytes, numbers.draw()) }
    }

    fn file_name(&self) -> String {
        let name = self.base.path.file_name();
        name.unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Files that the base may name: the shards of an index, the data of a model.
    fn beside(&self) -> Vec<PathBuf> {
        let folder = self.base.path.parent().unwrap_or(Path::new(""));
        let name = self.file_name();
        let Ok(entries) = fs::read_dir(folder) else {
            return Vec::new();
        };
        let (stem, _) = name.split_once('.').unwrap_or((&name, ""));
        let is_index = name.ends_with(".index.json");
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut beside: Vec<PathBuf> = paths
            .filter(|path| {
                let found = path.file_name().unwrap_or_default().to_string_lossy();
                path.is_file()
                    && found != name
                    && !found.ends_with(".json")
                    && (is_index || found.strip_prefix(stem).is_some_and(|it| it.starts_with('.')))
            })
            .collect();
        beside.sort();
        beside
    }
}
