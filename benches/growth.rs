//! How cost grows with the number of objects and of bytes: each operation alone, in a process of
//! its own (the program `alone`), so that its memory can be seen.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Result, Size};

/// All tables.
#[derive(Debug, Default)]
pub struct Growth {
    /// One over objects, one over bytes.
    pub tables: Vec<Table>,
}

/// Cost over one variable.
#[derive(Debug)]
pub struct Table {
    /// What grows.
    pub title: &'static str,
    /// What has to be known to read it.
    pub remark: &'static str,
    /// The head of the first column.
    pub variable: &'static str,
    /// The heads of the others: the operations.
    pub columns: Vec<&'static str>,
    /// A value of the variable and its cost in each operation; `None` where it was left out.
    pub rows: Vec<(String, Vec<Option<Measured>>)>,
}

/// The cost of one operation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured {
    /// The median of its rounds.
    pub seconds: f64,
    /// The most bytes that a process had resident, of all rounds.
    pub resident: u64,
    /// The memory of the operation itself, of all rounds.
    pub memory: u64,
    /// Decoded bytes, where they matter.
    pub byte_len: Option<u64>,
    /// Bytes of the manifest, if the memory must be compared with them.
    pub manifest: Option<u64>,
}

/// A target for cost.
#[derive(Debug)]
pub struct Owed {
    /// The operation.
    pub what: String,
    /// Compared with what.
    pub against: &'static str,
    /// The bound, in words.
    pub owed: String,
    /// What was found, in words.
    pub found: String,
    /// Whether it is within the bound.
    pub is_met: bool,
}

const OPEN: &str = "open";
const CONVERT_RAW: &str = "convert, raw + crc32c";
const CONVERT_ZSTD: &str = "convert, zstd-3";
const COPY: &str = "cp";

impl Growth {
    /// Measures everything that there is room for below `folder`.
    ///
    /// # Errors
    ///
    /// Where the program `alone` is not beside this one, or fails.
    pub fn measure(size: Size, folder: &Path) -> Result<Self> {
        let alone = Alone::find()?;
        let mut growth = Growth::default();
        growth.tables.push(objects(&alone, size, folder)?);
        growth.tables.push(command_line(&alone, size, folder)?);
        growth.tables.push(bytes(&alone, size, folder)?);
        Ok(growth)
    }

    /// What is owed, at the largest size that was measured.
    #[must_use]
    pub fn targets(&self) -> Vec<Owed> {
        self.tables.iter().flat_map(Table::targets).collect()
    }
}

impl Table {
    fn targets(&self) -> Vec<Owed> {
        let mut all = Vec::new();
        let Some((value, cells)) = self.rows.last() else {
            return all;
        };
        let cell = |name: &str| {
            let mut columns = self.columns.iter().zip(cells);
            columns.find(|(column, _)| **column == name).and_then(|(_, cell)| *cell)
        };
        if let Some(Measured { memory, manifest: Some(manifest), .. }) = cell(OPEN) {
            all.push(Owed {
                what: format!("memory to open a file of {value} objects"),
                against: "its manifest",
                owed: "at most 8x + 1 MiB".into(),
                found: format!("{:.2}x", memory as f64 / manifest as f64),
                is_met: memory <= 8 * manifest + (1 << 20),
            });
        }
        for (name, most) in [(LS, 1.2), (LS_JSON, 1.0), (VERIFY, 1.0)] {
            if let Some(Measured { seconds, resident, .. }) =
                cell(name).filter(|_| value == "1000000")
            {
                all.push(Owed {
                    what: format!("{name}, {value} objects"),
                    against: "time and resident memory",
                    owed: format!("at most {most:.1} s, 200 MiB"),
                    found: format!("{seconds:.2} s, {} MiB", resident >> 20),
                    is_met: seconds <= most && resident <= 200 << 20,
                });
            }
        }
        for name in [CONVERT_RAW, CONVERT_ZSTD] {
            if let Some(Measured { resident, .. }) = cell(name) {
                all.push(Owed {
                    what: format!("{name}, {value} of safetensors"),
                    against: "resident memory",
                    owed: "at most 256 MiB".into(),
                    found: format!("{} MiB", resident >> 20),
                    is_met: resident <= 256 << 20,
                });
            }
        }
        if let (Some(ours), Some(copy)) = (cell(CONVERT_RAW), cell(COPY)) {
            let speed = copy.seconds / ours.seconds;
            all.push(Owed {
                what: format!("{CONVERT_RAW}, {value} of safetensors"),
                against: COPY,
                owed: "0.90x".into(),
                found: format!("{speed:.2}x"),
                is_met: speed >= 0.9,
            });
        }
        all
    }
}

fn objects(alone: &Alone, size: Size, folder: &Path) -> Result<Table> {
    let mut table = Table {
        title: "With the number of objects",
        remark: "Dense objects of 160 bytes, as in W3. `find` looks up one object in an open file and reads it; `list` decodes and \
                 checks every object.",
        variable: "objects",
        columns: vec!["write", OPEN, "find", "list"],
        rows: Vec::new(),
    };
    let most = match size {
        Size::Full => 1_000_000,
        Size::Quick => 10_000,
    };
    let mut count = 1000u64;
    while count <= most {
        let folder = tempfile::tempdir_in(folder)?;
        let path = folder.path().join("objects.zt");
        let path = path.display().to_string();
        alone.run(&["make-objects", &count.to_string(), &path])?;
        let manifest = manifest_len(Path::new(&path))?;
        let spare = folder.path().join("spare.zt").display().to_string();
        let mut cells =
            vec![Some(alone.measure(3, &["write-objects", &count.to_string(), &spare])?)];
        let open = alone.measure(3, &["open", &path])?;
        let manifest = Some(manifest);
        cells.push(Some(Measured { manifest, ..open }));
        cells.push(Some(alone.measure(3, &["find", &path])?));
        cells.push(Some(alone.measure(3, &["list", &path])?));
        table.rows.push((count.to_string(), cells));
        count *= 10;
    }
    Ok(table)
}

const LS: &str = "zt ls";
const LS_JSON: &str = "zt ls --json";
const SHOW: &str = "zt show of one";
const VERIFY: &str = "zt verify";

/// The program, from its start to its end.
fn command_line(alone: &Alone, size: Size, folder: &Path) -> Result<Table> {
    let mut table = Table {
        title: "The command line, with the number of objects",
        remark: "Dense objects of 160 bytes, as in W3. The time is that of the whole program, with its output \
                 to `/dev/null`.",
        variable: "objects",
        columns: vec![LS, LS_JSON, SHOW, VERIFY],
        rows: Vec::new(),
    };
    let zt = beside("zt")?;
    let counts: &[u64] = match size {
        Size::Full => &[1, 1000, 100_000, 1_000_000],
        Size::Quick => &[1, 1000],
    };
    for count in counts {
        let folder = tempfile::tempdir_in(folder)?;
        let path = folder.path().join("objects.zt");
        let path = path.display().to_string();
        alone.run(&["make-objects", &count.to_string(), &path])?;
        let name = zt::File::open(&path)?.names().next().map(str::to_owned);
        let name = name.ok_or("no objects")?;
        let commands: [&[&str]; 4] =
            [&["ls", &path], &["ls", "--json", &path], &["show", &path, &name], &["verify", &path]];
        let mut cells = Vec::new();
        for arguments in commands {
            cells.push(Some(program(&zt, 3, arguments)?));
        }
        table.rows.push((count.to_string(), cells));
    }
    Ok(table)
}

/// The time and the resident memory of a program, which is looked at each millisecond while it runs.
fn program(path: &Path, rounds: usize, arguments: &[&str]) -> Result<Measured> {
    let mut seconds = Vec::new();
    let mut measured = Measured::default();
    for _ in 0..rounds {
        let start = Instant::now();
        let mut child = Command::new(path).args(arguments).stdout(Stdio::null()).spawn()?;
        let status = format!("/proc/{}/status", child.id());
        let ended = AtomicBool::new(false);
        let (exit, took) = thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    measured.resident = measured.resident.max(resident(&status));
                    thread::sleep(Duration::from_millis(1));
                }
            });
            let exit = child.wait();
            let took = start.elapsed();
            ended.store(true, Ordering::Relaxed);
            (exit, took)
        });
        if !exit?.success() {
            return Err(format!("zt {} failed", arguments.join(" ")).into());
        }
        seconds.push(took.as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    measured.seconds = seconds.get(rounds / 2).copied().unwrap_or(f64::NAN);
    Ok(measured)
}

/// The most bytes that a process has had resident, as Linux counts them in this file; 0 if it is gone.
#[must_use]
pub fn resident(status: &str) -> u64 {
    in_status(status, "VmHWM:")
}

/// The bytes that this process has in memory and in no file.
#[must_use]
pub fn anonymous() -> u64 {
    in_status("/proc/self/status", "RssAnon:")
}

fn in_status(status: &str, name: &str) -> u64 {
    let status = fs::read_to_string(status).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

fn bytes(alone: &Alone, size: Size, folder: &Path) -> Result<Table> {
    let mut table = Table {
        title: "With the number of bytes",
        remark: "Tensors of bf16 of up to 128 MiB, as in W2. They are written as a stream of 1 MiB pieces, and read into one buffer that \
                 is reused. From a few GB on, the disk slows every operation, `cp` included: no program syncs, but the system \
                 writes some pages early.",
        variable: "bytes",
        columns: vec![
            "write, raw + crc32c",
            "read into a buffer",
            "verify crc32c",
            COPY,
            CONVERT_RAW,
            CONVERT_ZSTD,
        ],
        rows: Vec::new(),
    };
    let sizes: &[(&str, u64)] = match size {
        Size::Full => {
            &[("64 MiB", 64 << 20), ("512 MiB", 512 << 20), ("2 GiB", 2 << 30), ("8 GiB", 8 << 30)]
        }
        Size::Quick => &[("64 MiB", 64 << 20)],
    };
    for &(name, byte_len) in sizes {
        // The input, the output, and the room that a system needs to breathe.
        if free(folder)? < 3 * byte_len {
            table.rows.push((name.to_owned(), vec![None; table.columns.len()]));
            continue;
        }
        let folder = tempfile::tempdir_in(folder)?;
        let path = |name: &str| folder.path().join(name).display().to_string();
        let [source, ours, spare] = ["source.safetensors", "ours.zt", "spare"].map(path);
        let rounds = if byte_len > 1 << 30 { 1 } else { 3 };
        let mut cells = Vec::new();
        let mut add = |arguments: &[&str]| -> Result<()> {
            let measured = alone.measure(rounds, arguments)?;
            let byte_len = Some(byte_len);
            cells.push(Some(Measured { byte_len, ..measured }));
            Ok(())
        };
        let length = byte_len.to_string();
        add(&["write-bytes", &length, &spare])?;
        alone.run(&["make-bytes", &length, &ours])?;
        add(&["read-into", &ours])?;
        add(&["verify", &ours])?;
        fs::remove_file(&ours)?;
        alone.run(&["make-safetensors", &length, &source])?;
        add(&["copy", &source, &spare])?;
        add(&["convert-raw", &source, &spare])?;
        add(&["convert-zstd", &source, &spare])?;
        table.rows.push((name.to_owned(), cells));
    }
    Ok(table)
}

/// The program that does one operation and says what it cost.
struct Alone(PathBuf);

impl Alone {
    fn find() -> Result<Self> {
        beside("alone").map(Alone)
    }

    /// One run; its time in seconds, its resident and its allocated memory.
    fn run(&self, arguments: &[&str]) -> Result<(f64, u64, u64)> {
        let output = Command::new(&self.0).args(arguments).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("alone {}: {said}", arguments.join(" ")).into());
        }
        let text = String::from_utf8(output.stdout)?;
        let mut words = text.split_whitespace();
        let mut next = || words.next().ok_or("alone: too few figures");
        Ok((next()?.parse()?, next()?.parse()?, next()?.parse()?))
    }

    fn measure(&self, rounds: usize, arguments: &[&str]) -> Result<Measured> {
        let mut seconds = Vec::new();
        let mut measured = Measured::default();
        for _ in 0..rounds {
            let (took, resident, memory) = self.run(arguments)?;
            seconds.push(took);
            measured.resident = measured.resident.max(resident);
            measured.memory = measured.memory.max(memory);
        }
        seconds.sort_by(f64::total_cmp);
        measured.seconds = seconds.get(rounds / 2).copied().unwrap_or(f64::NAN);
        Ok(measured)
    }
}

/// A program that was built with this one.
fn beside(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if !path.is_file() {
        let build = "cargo build --profile dist -p zt-benches -p zt-cli --bins";
        return Err(format!(
            "the program `{name}` is not beside this one: build it with `{build}`"
        )
        .into());
    }
    Ok(path)
}

fn manifest_len(path: &Path) -> Result<u64> {
    let file = zt::File::open(path)?;
    let end = file.data_region().ok_or("no data region")?.end();
    Ok(file.byte_len() - end)
}

/// Bytes that may still be written below `folder`.
fn free(folder: &Path) -> Result<u64> {
    let stat = rustix::fs::fstatvfs(File::open(folder)?)?;
    Ok(stat.f_bavail * stat.f_frsize)
}
