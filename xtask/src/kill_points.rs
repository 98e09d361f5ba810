//! `cargo xtask kill-points`: what is left of a file when the program is killed on entry to each
//! system call that changes one, or when each of these calls fails from then on.
//!
//! strace does both. Every operation that writes over a file is run once to count its calls, and
//! then once for each number of each call, on a fresh copy: it is cut short where the first of its
//! threads comes to that number, because strace counts for each thread by itself. What `zt hash` and `zt meta get` say of the file
//! afterwards has to be what they say of the old one or of the new one, and the next edit has to
//! work; a file that is torn is repaired, and after a repair that is cut short, by another one.
//! After an error no other file may be left; after a kill one may, where a file is written
//! anew under another name, and the next run of the same operation removes it.
//!
//! Sets are split over sets the same way: the index must open the old set or the new one, and the same
//! split again must remove all files that a kill left.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::files::empty;
use crate::shell::{Program, Shell};

/// Calls that change a file, its name or what is durable of it.
const CHANGING: &str = "write,pwrite64,writev,pwritev,pwritev2,copy_file_range,truncate,ftruncate,\
    fallocate,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,fchmod,fchown";

/// The commands of the program. FILE is written over, and so is SAFETENSORS or GGUF, a file of that kind, and SEAL or
/// SIG, the seal or the signature of the old file. TORN needs a repair.
const OPERATIONS: [&str; 19] = [
    "append FILE IN --jobs 1",
    "append FILE IN --jobs 1 --zstd",
    "rm FILE a",
    "rename FILE a z",
    "meta set FILE key value",
    "meta rm FILE old",
    "meta set SAFETENSORS key value",
    "rename SAFETENSORS a z",
    "rm SAFETENSORS a",
    "meta set GGUF key value",
    "rm GGUF a",
    "compact FILE",
    "convert IN FILE --force --jobs 1",
    "repair TORN -o FILE --force --jobs 1",
    "seal MORE SEAL --force --jobs 1",
    "sign MORE SIG --key KEY --force --jobs 1",
    "repair FILE --seal SEALED --from MORE --jobs 1",
    "repair FILE --seal SEALED --parity PARITY --jobs 1",
    REPAIR,
];

/// Splits over the set x in SET, of two shards: to as many shards, to three, to one file, and of the set
/// itself.
const SPLITS: [&str; 4] = [
    "split MORE --max-shard-size 17000 -o SET --name x --force --jobs 1",
    "split MORE --max-shard-size 15000 -o SET --name x --force --jobs 1",
    "split MORE -o SET --name x --force --jobs 1",
    "split SET --max-shard-size 5000 --force --jobs 1",
];

/// The operation whose FILE is torn before.
const REPAIR: &str = "repair FILE --jobs 1";

/// What happens to a call: its name in the table, and strace's options.
struct Cut {
    name: &'static str,
    /// Before and after the number of the call.
    injected: [&'static str; 2],
    is_kill: bool,
}

const CUTS: [Cut; 2] = [
    Cut { name: "a kill", injected: ["signal=KILL:when=", ""], is_kill: true },
    Cut { name: "no space from then on", injected: ["error=ENOSPC:when=", "+"], is_kill: false },
];

/// How often the file was what.
#[derive(Default)]
struct Row {
    points: u64,
    old: u64,
    new: u64,
    left: u64,
}

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    if !shell.program("strace").arg("-V").succeeds() {
        return Err(Error::Unavailable("strace is not installed".into()));
    }
    let bench = Bench::new(shell)?;
    println!("| operation | cut short by | cuts | old file | new file | neither | another left |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let mut places = Vec::new();
    for operation in OPERATIONS {
        for cut in &CUTS {
            let row = bench.cut_everywhere(operation, cut, &mut places)?;
            let neither = row.points - row.old - row.new;
            println!(
                "| `{operation}` | {} | {} | {} | {} | {neither} | {} |",
                cut.name, row.points, row.old, row.new, row.left
            );
        }
    }
    for split in SPLITS {
        for cut in &CUTS {
            let row = bench.cut_split(split, cut, &mut places)?;
            let neither = row.points - row.old - row.new;
            println!(
                "| `{split}` | {} | {} | {} | {} | {neither} | {} |",
                cut.name, row.points, row.old, row.new, row.left
            );
        }
    }
    empty(&bench.folder)?;
    Error::unless_empty("whatever is cut short leaves the old file or the new one", places)
}

/// The program, and the folder for trying operations.
struct Bench<'s> {
    shell: &'s Shell,
    zt: PathBuf,
    folder: PathBuf,
}

impl<'s> Bench<'s> {
    fn new(shell: &'s Shell) -> Result<Self> {
        let bench = Bench {
            shell,
            zt: shell.built("bin", "zt")?,
            folder: shell.target().join("kill-points"),
        };
        empty(&bench.folder)?;
        let arrays = [("a", 5000), ("b", 100), ("unwanted", 3000), ("in", 500_000)];
        let arrays = arrays.into_iter().chain([("c", 4000), ("d", 4500), ("e", 100)]);
        for (name, len) in arrays {
            let path = bench.path(name).with_extension("npy");
            fs::write(&path, array(len)).map_err(Error::file(&path))?;
        }
        let mut merge = shell.program(&bench.zt).arg("convert");
        for name in ["a.npy", "b.npy", "unwanted.npy", "old.zt"] {
            merge = merge.arg(bench.path(name));
        }
        merge.output()?;
        let mut more = shell.program(&bench.zt).arg("convert");
        for name in ["c.npy", "d.npy", "e.npy", "more.zt"] {
            more = more.arg(bench.path(name));
        }
        more.output()?;
        let of_two = "split FILE --max-shard-size 15000 -o SET --name x";
        bench.zt(of_two, &bench.path("old.zt")).output()?;
        fs::rename(bench.path("tried"), bench.path("set")).map_err(Error::file(&bench.folder))?;
        // So that there is something to compact, and an attribute to remove.
        let old = bench.path("old.zt");
        bench.zt("rm FILE unwanted", &old).output()?;
        bench.zt("meta set FILE old value", &old).output()?;
        for kind in ["safetensors", "gguf"] {
            let other = bench.path("old").with_extension(kind);
            let convert = shell.program(&bench.zt).arg("convert");
            convert.arg(&old).arg(other).output()?;
        }
        // A repair by the seal of another file makes that file.
        bench.zt("seal MORE FILE --parity 100%", &bench.path("more.seal")).output()?;
        let [seal, signature] = ["old.seal", "old.sig"].map(|name| bench.path(name));
        shell.program(&bench.zt).arg("seal").arg(&old).arg(seal).output()?;
        bench.zt("sign FILE --key KEY -o", &old).arg(signature).output()?;
        let torn = bench.path("torn.zt");
        bench.zt("convert IN FILE", &torn).output()?;
        tear(&torn)?;
        Ok(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The program, about to do something to `file`.
    fn zt(&self, operation: &str, file: &Path) -> Program {
        self.asked(self.shell.program(&self.zt), operation, file)
    }

    /// As [`Bench::zt`], under strace.
    fn traced(&self, options: &str, operation: &str, file: &Path) -> Program {
        let log = self.path("log");
        let strace = self.shell.program("strace").args("-f -o").arg(log);
        self.asked(strace.args(options).arg(&self.zt), operation, file)
    }

    fn asked(&self, program: Program, operation: &str, file: &Path) -> Program {
        let words = operation.split_whitespace();
        words.fold(program, |program, word| match word {
            "FILE" | "SAFETENSORS" | "GGUF" | "SEAL" | "SIG" => program.arg(file),
            "KEY" => program.arg(self.shell.root().join("conformance/data/signature/ed25519.pem")),
            "PUBLIC" => {
                program.arg(self.shell.root().join("conformance/data/signature/ed25519.pub"))
            }
            "IN" => program.arg(self.path("in.npy")),
            "TORN" => program.arg(self.path("torn.zt")),
            "SEALED" => program.arg(self.path("more.seal")),
            "PARITY" => program.arg(self.path("more.seal.parity")),
            "MORE" => program.arg(self.path("more.zt")),
            "SET" => program.arg(self.path("tried")),
            word => program.arg(word),
        })
    }

    /// A folder with nothing but a copy of the old file that the operation changes.
    fn fresh(&self, operation: &str) -> Result<PathBuf> {
        let folder = self.path("tried");
        empty(&folder)?;
        let kind = ["safetensors", "gguf", "seal", "sig"]
            .into_iter()
            .find(|kind| operation.split_whitespace().any(|word| word == kind.to_uppercase()));
        let kind = kind.unwrap_or("zt");
        let file = folder.join("x").with_extension(kind);
        let old = self.path("old").with_extension(kind);
        fs::copy(old, &file).map_err(Error::file(&file))?;
        Ok(file)
    }

    /// Nothing but a copy of the old set.
    fn fresh_set(&self) -> Result<()> {
        let (folder, set) = (self.path("tried"), self.path("set"));
        empty(&folder)?;
        for entry in fs::read_dir(&set).map_err(Error::file(&set))?.flatten() {
            let copy = folder.join(entry.file_name());
            fs::copy(entry.path(), &copy).map_err(Error::file(&copy))?;
        }
        Ok(())
    }

    /// All that the program says of the set, and the index; or of the single file. And the number of
    /// files that do not belong to it.
    fn set(&self) -> Result<([String; 3], u64)> {
        let folder = self.path("tried");
        let index = folder.join("x.zt.index.json");
        let (opened, json) = match fs::read_to_string(&index) {
            Ok(json) => (index, json),
            Err(_) => (folder.join("x.zt"), String::new()),
        };
        let [hash, attributes] = self.contents(&opened)?;
        let entries = fs::read_dir(&folder).map_err(Error::file(&folder))?;
        let others = entries.flatten().filter(|entry| {
            let name = entry.file_name().into_string().unwrap_or_default();
            entry.path() != opened && !json.contains(&format!("{name:?}"))
        });
        let others = others.count() as u64;
        Ok(([hash, attributes, json], others))
    }

    /// As [`Bench::cut_everywhere`], for a split over a set.
    fn cut_split(&self, split: &str, cut: &Cut, places: &mut Vec<String>) -> Result<Row> {
        self.fresh_set()?;
        let (old, _) = self.set()?;
        let unused = self.path("tried");
        if !self.traced(&format!("-e trace={CHANGING}"), split, &unused).succeeds() {
            return Err(Error::Unavailable(format!("strace or the program fails: {split}")));
        }
        let (new, others) = self.set()?;
        if others > 0 {
            places.push(format!("{split}: {others} other files are left"));
        }
        let log = self.path("log");
        let log = fs::read_to_string(&log).map_err(Error::file(&log))?;
        let mut row = Row::default();
        for (call, count) in calls(&log) {
            for at in 1..=count {
                self.fresh_set()?;
                let [before, after] = cut.injected;
                let options = format!("-e trace={call} -e inject={call}:{before}{at}{after}");
                let succeeded = self.traced(&options, split, &unused).succeeds();
                row.points += 1;
                let place = format!("{split}: {} at {call} {at} of {count}", cut.name);
                let (is_old, is_new) = match self.set() {
                    Ok((found, left)) => {
                        row.left += u64::from(left > 0);
                        // Files stay if removing them fails. Old shards stay if the commit may not be
                        // durable.
                        let may_stay = call.starts_with("unlink") || found == new;
                        if left > 0 && !cut.is_kill && !may_stay {
                            places.push(format!("{place}: {left} other files are left"));
                        }
                        (found == old, found == new)
                    }
                    Err(_) => (false, false),
                };
                row.old += u64::from(is_old);
                row.new += u64::from(is_new);
                if !is_old && !is_new {
                    places.push(format!("{place}: neither set is there"));
                }
                if succeeded && (cut.is_kill || is_old) {
                    places.push(format!("{place}: and it succeeds"));
                }
                let again = self.zt(split, &unused).succeeds();
                let found = self.set();
                if !again || !found.is_ok_and(|(found, left)| found[..2] == new[..2] && left == 0) {
                    places.push(format!("{place}: the next split fails, or leaves files"));
                }
            }
        }
        Ok(row)
    }

    /// All that the program says of a file's contents; an error where it cannot be read. Of a seal or a signature,
    /// its bytes.
    fn contents(&self, file: &Path) -> Result<[String; 2]> {
        if is_about_others(file) {
            let bytes = fs::read(file).map_err(Error::file(file))?;
            return Ok([format!("{bytes:?}"), String::new()]);
        }
        let hash = self.zt("hash --json FILE", file).output()?;
        Ok([hash, self.zt("meta get FILE", file).output()?])
    }

    /// Cuts the operation short at each of its calls.
    fn cut_everywhere(&self, operation: &str, cut: &Cut, places: &mut Vec<String>) -> Result<Row> {
        let is_repair = operation == REPAIR;
        let fresh = || {
            let file = self.fresh(operation)?;
            if is_repair {
                tear(&file)?;
            }
            Ok(file)
        };
        let old = self.contents(&self.fresh(operation)?)?;
        let file = fresh()?;
        let trace = format!("-e trace={CHANGING}");
        if !self.traced(&trace, operation, &file).succeeds() {
            let reason = "strace cannot trace here, or the program fails";
            return Err(Error::Unavailable(format!("{reason}: {operation}")));
        }
        let (new, new_len) = (self.contents(&file)?, byte_len(&file)?);
        let log = self.path("log");
        let log = fs::read_to_string(&log).map_err(Error::file(&log))?;
        let mut row = Row::default();
        for (call, count) in calls(&log) {
            for at in 1..=count {
                let file = fresh()?;
                let [before, after] = cut.injected;
                let options = format!("-e trace={call} -e inject={call}:{before}{at}{after}");
                let succeeded = self.traced(&options, operation, &file).succeeds();
                row.points += 1;
                let place = format!("{operation}: {} at {call} {at} of {count}", cut.name);
                if is_repair {
                    self.zt(REPAIR, &file).output()?;
                }
                let found = self.contents(&file).ok();
                // Compaction and repairing change nothing but the length.
                let is_new =
                    found.as_ref() == Some(&new) && (old != new || byte_len(&file)? == new_len);
                let is_old = !is_new && found.as_ref() == Some(&old);
                row.old += u64::from(is_old);
                row.new += u64::from(is_new);
                if !is_old && !is_new {
                    places.push(format!("{place}: neither file is there"));
                }
                if succeeded && (cut.is_kill || is_old) {
                    places.push(format!("{place}: and it succeeds"));
                }
                let left = others(&file)?;
                row.left += left;
                if left > u64::from(cut.is_kill) {
                    places.push(format!("{place}: {left} other files are left"));
                }
                if left > 0 {
                    self.zt(operation, &file).output()?;
                    if others(&file)? > 0 {
                        places.push(format!("{place}: the next run does not remove what is left"));
                    }
                }
                let (next, verify) = match file.extension().and_then(|it| it.to_str()) {
                    Some("seal") => (operation, "verify MORE --seal FILE"),
                    Some("sig") => (operation, "verify MORE --signature FILE --key PUBLIC"),
                    _ => ("meta set FILE next value", "verify FILE"),
                };
                let next = self.zt(next, &file).succeeds();
                if !next || !self.zt(verify, &file).succeeds() {
                    places.push(format!("{place}: the next edit fails"));
                }
            }
        }
        Ok(row)
    }
}

/// Bytes behind the end, which a repair takes away.
fn tear(file: &Path) -> Result<()> {
    let mut bytes = fs::read(file).map_err(Error::file(file))?;
    bytes.extend_from_slice(&[7; 5000]);
    fs::write(file, bytes).map_err(Error::file(file))
}

/// How many other files are in the folder of `file`.
fn others(file: &Path) -> Result<u64> {
    let folder = file.parent().unwrap_or(file);
    let entries = fs::read_dir(folder).map_err(Error::file(folder))?;
    Ok(entries.count().saturating_sub(1) as u64)
}

/// Whether it is a seal or a signature.
fn is_about_others(file: &Path) -> bool {
    file.extension().is_some_and(|it| it == "seal" || it == "sig")
}

fn byte_len(file: &Path) -> Result<u64> {
    let metadata = fs::metadata(file).map_err(Error::file(file))?;
    Ok(metadata.len())
}

/// How often each call was made by the thread that made it most often.
fn calls(log: &str) -> BTreeMap<&str, u64> {
    let mut by_thread: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for line in log.lines() {
        // `1234 fsync(4) = 0`, and `1234 <... fsync resumed>` for the rest of one.
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        if let Some((call, _)) = call.trim_start().split_once('(')
            && CHANGING.split(',').any(|name| name == call)
        {
            *by_thread.entry((thread, call)).or_default() += 1;
        }
    }
    let mut calls = BTreeMap::new();
    for ((_, call), count) in by_thread {
        let most: &mut u64 = calls.entry(call).or_default();
        *most = count.max(*most);
    }
    calls
}

/// A file of NumPy with so many floats, none like the one before.
fn array(len: u32) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({len},), }}");
    let padding = 64 - (10 + header.len() + 1) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend(u16::try_from(header.len()).unwrap_or(0).to_le_bytes());
    file.extend(header.bytes());
    file.extend((0..len).flat_map(|at| (at.wrapping_mul(0x9e37_79b9) >> 4).to_le_bytes()));
    file
}

#[cfg(test)]
mod tests {
    use super::{array, calls};

    #[test]
    fn calls_are_counted_by_the_thread_that_makes_most() {
        let log = "1 fsync(4) = 0\n1 pwrite64(4, \"fsync(\", 6, 0) = 6\n2 fsync(4 <unfinished ...>\n\
                   2 <... fsync resumed>) = 0\n2   fsync(4) = 0\n1 openat(3) = 4\n1 +++ exited +++\n";
        assert_eq!(calls(log).into_iter().collect::<Vec<_>>(), [("fsync", 2), ("pwrite64", 1)]);
    }

    #[test]
    fn arrays_begin_at_a_multiple_of_64() {
        for len in [1, 100, 5000] {
            assert_eq!(array(len).len() % 64, len as usize * 4 % 64);
        }
    }
}
