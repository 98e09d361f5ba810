//! The commands, and what each may do.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::Mutant;

/// Every command that reads a file. FILE is the mutant, BASE what it was made of, NAME its first object, OUT
/// a folder that is empty.
const COMMANDS: [&str; 27] = [
    "ls FILE",
    "ls --json FILE",
    "ls -l FILE",
    "ls --tree FILE",
    "info FILE",
    "info --json FILE",
    "verify FILE",
    "verify --strict --json FILE",
    "hash FILE",
    "hash --dense --json FILE",
    "meta get FILE",
    "meta get --json FILE",
    "diff FILE BASE",
    "diff --values --dense --json BASE FILE",
    "show FILE NAME --stats",
    "show --json FILE NAME",
    "cat FILE NAME",
    "extract FILE -o OUT/arrays",
    "extract --json FILE -o OUT/more",
    "convert FILE OUT/plain.zt",
    "convert --json --zstd --planes --skip-damaged FILE OUT/packed.zt",
    "convert --lossy --dense FILE OUT/dense.safetensors",
    "split --to zt --max-shard-size 300 --lossy FILE -o OUT --name set",
    "split --json --to safetensors --max-shard-size 300 --lossy FILE -o OUT --name json",
    "repair -n FILE",
    "repair -n --json FILE",
    "repair --json FILE -o OUT/repaired.zt",
];

/// Codes that a file can bring about: README.md has what they mean. Of 4, reading and writing, only what
/// is not there, or is longer than a file may be.
const EXITS: [i32; 5] = [0, 1, 3, 4, 5];

/// Of a processor.
const SECONDS: u64 = 10;
/// Of the clock, on a machine that others use.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest file, in blocks of 512 bytes. What is short and unfolds without end shall not fill a disk.
const BLOCKS: u64 = (64 << 20) / 512;

/// Where commands are run.
pub(crate) struct Bench {
    zt: PathBuf,
    folder: PathBuf,
    limits: String,
}

/// What a command left behind.
struct Ended {
    status: Option<ExitStatus>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Bench {
    pub(crate) fn new(zt: &Path, folder: &Path, memory: u64) -> Self {
        let limits = [("-c", 0), ("-t", SECONDS), ("-d", memory), ("-f", BLOCKS)];
        let limits = limits.map(|(which, limit)| format!("ulimit {which} {limit} && "));
        Self {
            zt: zt.to_owned(),
            folder: folder.to_owned(),
            limits: limits.concat() + r#"exec "$0" "$@""#,
        }
    }

    /// How many commands ran on a mutant, and what is wrong with some.
    pub(crate) fn try_all(&self, mutant: &Mutant<'_>) -> (u64, Vec<String>) {
        let _ = fs::remove_dir_all(&self.folder);
        let out = self.folder.join("out");
        fs::create_dir_all(&out).expect("a folder");
        let file = self.folder.join(mutant.file_name());
        fs::write(&file, &mutant.bytes).expect("the mutant");
        for path in mutant.beside() {
            let name = path.file_name().expect("a name");
            fs::copy(&path, self.folder.join(name)).expect("a file beside it");
        }
        let (mut ran, mut found) = (0, Vec::new());
        let (mut name, mut is_sound) = (None, false);
        for command in COMMANDS {
            if command.contains("NAME") && name.is_none() {
                continue;
            }
            let words = command.split(' ').map(|word| match word {
                "FILE" => file.display().to_string(),
                "BASE" => mutant.base.path.display().to_string(),
                "NAME" => name.clone().unwrap_or_default(),
                word => word.replace("OUT", &out.display().to_string()),
            });
            let words: Vec<String> = words.collect();
            let ended = self.run(&words);
            ran += 1;
            if let Err(wrong) = ended.judge(command) {
                found.push(format!("zt {command}: {wrong}"));
            }
            if command == "verify FILE" {
                is_sound = ended.exits(0);
            } else if command == "ls --json FILE" {
                let listed: Option<Json> = serde_json::from_slice(&ended.stdout).ok();
                name = listed.and_then(|listed| {
                    let name = listed["objects"][0]["name"].as_str()?;
                    // An option it cannot be.
                    (!name.starts_with('-') && !name.contains('\0')).then(|| name.to_owned())
                });
            }
            let written = words
                .iter()
                .find(|word| word.starts_with(&*out.to_string_lossy()) && word.ends_with(".zt"));
            if let (Some(written), true) = (written, ended.exits(0)) {
                let verified = self.run(&["verify".to_owned(), written.clone()]);
                ran += 1;
                // The fault of one object may go with it, and no other may come of it.
                if !verified.exits(0) && (is_sound || !verified.exits(1)) {
                    let told = verified.told();
                    found.push(format!("zt {command}: what it wrote is refused: {told}"));
                }
            }
        }
        (ran, found)
    }

    fn run(&self, words: &[String]) -> Ended {
        let paths = ["stdout", "stderr"].map(|name| self.folder.join(name));
        let [stdout, stderr] = paths.each_ref().map(|path| File::create(path).expect("a file"));
        let mut child = Command::new("sh")
            .args(["-c", &self.limits])
            .arg(&self.zt)
            .args(words)
            .env_remove("RUST_BACKTRACE")
            // Of its own pools, the library of C counts in whole.
            .env("MALLOC_ARENA_MAX", "2")
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .expect("a shell");
        let begin = Instant::now();
        let mut pause = Duration::from_micros(500);
        let status = loop {
            match child.try_wait().expect("a child") {
                Some(status) => break Some(status),
                None if begin.elapsed() > PATIENCE => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break None;
                }
                None => thread::sleep(pause),
            }
            pause = (pause * 3 / 2).min(Duration::from_millis(20));
        };
        let [stdout, stderr] = paths.map(|path| fs::read(path).expect("what was printed"));
        Ended { status, stdout, stderr }
    }
}

impl Ended {
    fn exits(&self, code: i32) -> bool {
        self.status.is_some_and(|status| status.code() == Some(code))
    }

    /// The first lines of its errors.
    fn told(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let text: String = text.chars().take(600).collect();
        text.escape_debug().to_string()
    }

    fn judge(&self, command: &str) -> Result<(), String> {
        let Some(status) = self.status else {
            return Err(format!("no end after {} s", PATIENCE.as_secs()));
        };
        let Some(code) = status.code() else {
            return Err(format!("{status}: {}", self.told()));
        };
        let errors = String::from_utf8_lossy(&self.stderr);
        if !EXITS.contains(&code) {
            return Err(format!("exits {code}: {}", self.told()));
        }
        if errors.contains("error[allocation]") {
            return Err(format!("more memory than it may have: {}", self.told()));
        }
        let is_text = |stream: &[u8]| {
            let text = std::str::from_utf8(stream);
            text.is_ok_and(|text| !text.contains(controls))
        };
        let has_values = command.starts_with("cat ");
        if !is_text(&self.stderr) || !has_values && !is_text(&self.stdout) {
            return Err("prints what controls a terminal".to_owned());
        }
        let json = || serde_json::from_slice::<Json>(&self.stdout);
        if command.contains("--json")
            && let Err(error) = json()
        {
            return Err(format!("exits {code} without a document: {error}: {}", self.told()));
        }
        Ok(())
    }
}

/// Controls but the end of a line, and what Unicode TR 36 warns about: directions, joiners, tags.
fn controls(character: char) -> bool {
    character.is_control() && character != '\n'
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}
