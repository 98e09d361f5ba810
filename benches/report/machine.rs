//! The machine in words: what figures depend on, and nothing that names it.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What figures depend on.
#[derive(Debug)]
pub struct Machine {
    /// The processor's model.
    pub processor: String,
    /// Threads that may run at once.
    pub cores: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// The system and its version.
    pub kernel: String,
    /// The file system below the folder that files are in.
    pub filesystem: String,
    /// The compiler.
    pub compiler: String,
    /// The revision of this repository; with `+` where files are changed.
    pub revision: String,
}

impl Machine {
    /// This one, with files below `folder`. What the system does not say is `unknown`.
    #[must_use]
    pub fn here(folder: &Path) -> Self {
        let unknown = || "unknown".to_owned();
        let processor = field("/proc/cpuinfo", "model name");
        let memory = field("/proc/meminfo", "MemTotal");
        let memory = memory.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let release = fs::read_to_string("/proc/sys/kernel/osrelease");
        let changed = output("git", &["status", "--porcelain", "--untracked-files=no"]);
        let mut revision =
            output("git", &["rev-parse", "--short=10", "HEAD"]).unwrap_or_else(unknown);
        if changed.is_some_and(|files| !files.is_empty()) {
            revision.push('+');
        }
        Machine {
            processor: processor.unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: memory.unwrap_or(0) << 10,
            kernel: release.map_or_else(|_| unknown(), |text| format!("Linux {}", text.trim())),
            filesystem: filesystem(folder).unwrap_or_else(unknown),
            compiler: output("rustc", &["--version"]).unwrap_or_else(unknown),
            revision,
        }
    }
}

/// The value behind `key :` in a file of such lines.
fn field(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The type of the file system that is mounted closest above `folder`.
fn filesystem(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mount = |line: &str| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    };
    let above = mounts.lines().filter_map(mount).filter(|(point, _)| folder.starts_with(point));
    // Of several on one point the last hides the others.
    above.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind)
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
