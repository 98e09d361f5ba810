//! `cargo xtask fuzz` and `cargo xtask fuzz-smoke`: the targets of `fuzz/`, built once, run side by
//! side, their finds and figures gathered.
//!
//! At a desk everything runs under AddressSanitizer, which is also what makes the limit on one
//! allocation work, with a limit on memory and on the time of one input. Inputs start from the corpora
//! and from those that earlier runs have kept; what is new goes to `fuzz/corpus`, which git ignores.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::error::{Error, Result};
use crate::shell::{Program, Shell};

/// For each target, as a check.
const SECONDS: u64 = 60;

/// Inputs are files, and small ones show as much. Memory and one allocation are far below what a
/// declared length can ask for, and far above what these inputs need.
const OPTIONS: &str = "-max_len=16384 -rss_limit_mb=1536 -malloc_limit_mb=512 -print_final_stats=1";

/// How the targets are built and started.
struct Mode {
    /// Arguments of `cargo fuzz build`.
    build: &'static str,
    /// The folder of the programs that it builds.
    profile: &'static str,
    options: &'static str,
}

/// New ground in every run.
const AT_A_DESK: Mode = Mode { build: "", profile: "release", options: "-timeout=10" };

/// The same inputs in the same order in every run, and patience with a busy machine: a change that
/// was right yesterday must not fail today. The build takes most of the time: without the sanitizer it
/// is a third less, and little optimisation saves more. What the sanitizer would see is in one file of
/// ours and in the C of zstd.
const IN_CI: Mode =
    Mode { build: "--dev --sanitizer none", profile: "debug", options: "-timeout=60 -seed=1" };

/// Which words a target's inputs are made of, where that is not said by its own name.
const DICTIONARIES: [(&str, &str); 12] = [
    ("dcp", "pickle"),
    ("differential", "zt"),
    ("footer", "zt"),
    ("gguf_set", "gguf"),
    ("manifest", "zt"),
    ("npz", "npy"),
    ("open_all", "zt"),
    ("plain_pickle", "pickle"),
    ("pytorch", "pickle"),
    ("quantized", "safetensors"),
    ("repair", "zt"),
    ("views", "zt"),
];

/// `[--seconds N] [--target NAME]… [-j N]`: every target for a while, as a check.
pub(crate) fn smoke(shell: &Shell, arguments: &[String]) -> Result<()> {
    let mut plan = Plan::new(shell, SECONDS, AT_A_DESK)?;
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        match option.as_str() {
            "--seconds" => plan.seconds = number(option, rest.next())?,
            "--target" => plan.name(rest.next().map_or("", String::as_str))?,
            "-j" => plan.jobs = number(option, rest.next())?,
            _ => return Err(Error::Usage(format!("no option `{option}`"))),
        }
    }
    plan.run(shell)
}

/// `[--minutes N] [-j N] [TARGET…]`: some targets, or all, for longer.
pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let mut plan = Plan::new(shell, 30 * 60, AT_A_DESK)?;
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        match option.as_str() {
            "--minutes" => plan.seconds = 60 * number::<u64>(option, rest.next())?,
            "-j" => plan.jobs = number(option, rest.next())?,
            name => plan.name(name)?,
        }
    }
    plan.run(shell)
}

/// As [`smoke`], as a step of `cargo xtask ci`: a few seconds for each target.
pub(crate) fn in_ci(shell: &Shell) -> Result<()> {
    Plan::new(shell, 5, IN_CI)?.run(shell)
}

pub(crate) fn number<T: std::str::FromStr>(option: &str, value: Option<&String>) -> Result<T> {
    let number = value.and_then(|value| value.parse().ok());
    number.ok_or_else(|| Error::Usage(format!("`{option}` takes a number")))
}

struct Plan {
    targets: Vec<String>,
    /// Those asked for; all where there are none.
    wanted: Vec<String>,
    seconds: u64,
    jobs: usize,
    mode: Mode,
}

impl Plan {
    fn new(shell: &Shell, seconds: u64, mode: Mode) -> Result<Self> {
        let folder = shell.root().join("fuzz/src/bin");
        let mut targets = Vec::new();
        for entry in fs::read_dir(&folder).map_err(Error::file(&folder))? {
            let path = entry.map_err(Error::file(&folder))?.path();
            targets.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
        targets.sort();
        Ok(Plan {
            targets,
            wanted: Vec::new(),
            seconds,
            jobs: thread::available_parallelism().map_or(1, usize::from),
            mode,
        })
    }

    fn name(&mut self, name: &str) -> Result<()> {
        if !self.targets.iter().any(|known| known == name) {
            let known = self.targets.join(" ");
            return Err(Error::Usage(format!("no target `{name}`; there are: {known}")));
        }
        self.wanted.push(name.to_owned());
        Ok(())
    }

    fn run(&self, shell: &Shell) -> Result<()> {
        if !nightly(shell).args("fuzz --version").succeeds() {
            let reason = "cargo-fuzz or a nightly toolchain is not installed (fuzz/README.md)";
            return Err(Error::Unavailable(reason.into()));
        }
        if !shell.program("python3").arg("--version").succeeds() {
            return Err(Error::Unavailable("python3 is not installed".into()));
        }
        let built = shell.target().join("fuzz");
        // Without a name all targets are built, in one go.
        let names = self.wanted.iter().map(String::as_str);
        let builds = if self.wanted.is_empty() { vec![""] } else { names.collect() };
        for target in builds {
            let build = nightly(shell).args("fuzz build").args(self.mode.build);
            build.arg("--target-dir").arg(&built).args(target).run()?;
        }
        shell.program("python3").arg("fuzz/seed").run()?;
        self.unpack(shell)?;

        let wanted = match &self.wanted[..] {
            [] => &self.targets,
            wanted => wanted,
        };
        let programs = programs(&built, self.mode.profile, wanted)?;
        eprintln!("{:<14}{:>14}{:>10}", "target", "executions", "coverage");
        let next = AtomicUsize::new(0);
        let finds = Mutex::new(Vec::new());
        let work = || {
            while let Some(target) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(find) = self.fuzz(shell, &programs.join(target), target)
                    && let Ok(mut finds) = finds.lock()
                {
                    finds.push(find);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(work);
            }
        });
        Error::unless_empty("fuzzing has found", finds.into_inner().unwrap_or_default())
    }

    /// The kept inputs, below `fuzz/corpus`. `tar` unpacks those of a few targets, if it knows zstd. The
    /// program that unpacks all, and makes the seeds of `repair`, takes a build of the workspace.
    fn unpack(&self, shell: &Shell) -> Result<()> {
        let by_tar = |target: &String| {
            let folder = shell.root().join("fuzz/corpus").join(target);
            let archive = format!("conformance/fuzz-inputs/{target}.tar.zst");
            let has_none = !shell.root().join(&archive).exists();
            let tar = || shell.program("tar").arg("-C").arg(&folder).args("-xf").arg(&archive);
            target != "repair"
                && fs::create_dir_all(&folder).is_ok()
                && (has_none || tar().succeeds())
        };
        if !self.wanted.is_empty() && self.wanted.iter().all(by_tar) {
            return Ok(());
        }
        let inputs = shell.built("example", "fuzz_inputs")?;
        shell.program(inputs).args("unpack fuzz/corpus").run()
    }

    /// One target, and one line of figures. What went wrong is told in words.
    fn fuzz(&self, shell: &Shell, program: &Path, target: &str) -> std::result::Result<(), String> {
        let fuzz = shell.root().join("fuzz");
        let (corpus, artifacts) =
            (fuzz.join("corpus").join(target), fuzz.join("artifacts").join(target));
        let log = program.with_extension("log");
        let told = |error: std::io::Error| format!("{target}: {error}");
        for folder in [&corpus, &artifacts] {
            fs::create_dir_all(folder).map_err(told)?;
        }
        let suppressed = format!("suppressions={}", fuzz.join("leaks.supp").display());
        let output = File::create(&log).map_err(told)?;
        let words = DICTIONARIES.iter().find(|(known, _)| *known == target);
        let words = words.map_or(target, |(_, words)| words);
        let dictionary = fuzz.join("dictionaries").join(format!("{words}.dict"));

        let mut command = Command::new(program);
        command.current_dir(shell.root()).arg(&corpus);
        command.env("LSAN_OPTIONS", suppressed);
        command.args(OPTIONS.split_whitespace());
        command.args(self.mode.options.split_whitespace());
        command.arg(format!("-max_total_time={}", self.seconds));
        command.arg(format!("-artifact_prefix={}/", artifacts.display()));
        if dictionary.is_file() {
            command.arg(format!("-dict={}", dictionary.display()));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        let status = command.status().map_err(told)?;

        let said = fs::read(&log).map_err(told)?;
        let said = String::from_utf8_lossy(&said);
        let executions = last_after(&said, "stat::number_of_executed_units:");
        let coverage = last_after(&said, "cov:");
        eprintln!("{target:<14}{executions:>14}{coverage:>10}");
        if status.success() {
            return Ok(());
        }
        let is_news = |line: &&str| {
            ["panicked at", "ERROR", "SUMMARY", "Test unit written"]
                .iter()
                .any(|word| line.contains(word))
        };
        let news: Vec<&str> = said.lines().filter(is_news).collect();
        Err(format!("{target}: {}; see {}", news.join("; "), log.display()))
    }
}

/// The word that follows the last `mark`.
fn last_after<'t>(text: &'t str, mark: &str) -> &'t str {
    let behind = text.rsplit_once(mark).map(|(_, behind)| behind);
    behind.and_then(|behind| behind.split_whitespace().next()).unwrap_or("?")
}

/// The compiler that libFuzzer needs, whichever runs us.
fn nightly(shell: &Shell) -> Program {
    shell.program("cargo").arg("+nightly")
}

/// The folder of the built targets, below a folder with the name of the machine.
fn programs(built: &Path, profile: &str, wanted: &[String]) -> Result<PathBuf> {
    for entry in fs::read_dir(built).map_err(Error::file(built))? {
        let folder = entry.map_err(Error::file(built))?.path().join(profile);
        if wanted.iter().all(|target| folder.join(target).is_file()) {
            return Ok(folder);
        }
    }
    Err(Error::Usage(format!("nothing was built in {}", built.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_the_last_that_were_printed() {
        let log = "#2 INITED cov: 12 ft: 13\n#9 NEW    cov: 15 ft: 13\nstat::number_of_executed_units: 99\n";
        assert_eq!(last_after(log, "cov:"), "15");
        assert_eq!(last_after(log, "stat::number_of_executed_units:"), "99");
        assert_eq!(last_after("", "cov:"), "?");
    }
}
