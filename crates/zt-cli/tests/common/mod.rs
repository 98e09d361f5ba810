//! Runs the program, and makes files for it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use zt::formats::{Complex, F8E4M3Fn, bf16};
use zt::{Attributes, Csr, DType, Dense, Elements, Writer};

/// The result of a run of the program.
pub struct Run {
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
}

impl Run {
    pub fn text(&self) -> String {
        String::from_utf8(self.out.clone()).unwrap()
    }

    /// Stdout, which must be one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|error| {
            panic!("{error}: {} {}", String::from_utf8_lossy(&self.out), self.err)
        })
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert!(!self.err.contains("panicked"), "{}", self.err);
        assert_eq!(self.code, Some(code), "{} {}", String::from_utf8_lossy(&self.out), self.err);
        self
    }

    /// The code of the error document. Checks its keys, and the code on stderr.
    #[track_caller]
    pub fn error_code(&self) -> String {
        let document = self.json();
        let error = document["error"].as_object().unwrap();
        assert_eq!(
            keys(&document["error"]),
            ["code", "component", "file", "message", "object", "offset"]
        );
        let code = error["code"].as_str().unwrap().to_owned();
        assert!(self.err.contains(&format!("error[{code}]: ")), "{}", self.err);
        code
    }
}

pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zt"));
    command.env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

pub fn zt(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
    run(command().args(arguments))
}

pub fn run(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code(),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Whether programs that this one starts hear the signal of this number. They do not hear SIGHUP below
/// `nohup` and SIGINT in the background of a script, and no shell can change that.
pub fn hears(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_none_or(|mask| mask >> (signal - 1) & 1 == 0)
}

/// `zt!["ls", path, "--json"]`
#[macro_export]
macro_rules! zt {
    ($($argument:expr),* $(,)?) => {
        $crate::common::zt([$(std::ffi::OsStr::new(&$argument)),*])
    };
}

/// The keys of a JSON object, sorted.
#[track_caller]
pub fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// A value of every CBOR type, named after the type.
pub fn attributes() -> Attributes {
    use zt::Value as V;
    Attributes::from([
        ("text", V::from("größe")),
        ("large", V::Unsigned(u64::MAX)),
        ("least", V::Negative(u64::MAX)),
        ("bytes", V::Bytes(vec![0, 255])),
        ("list", V::array(vec![V::Bool(true), V::Null])),
        ("map", V::Map(Attributes::from([(V::from(1u64), V::from("one"))]))),
        ("tag", V::Tag(1, Box::new(V::from(5u64)))),
        ("nan", V::Float(f64::NAN)),
        ("inf", V::Float(f64::NEG_INFINITY)),
        ("float", V::Float(2.0)),
        ("undefined", V::Undefined),
        ("simple", V::Simple(99)),
    ])
}

/// A file with objects of many types: see the names.
pub fn sample(dir: &Path) -> PathBuf {
    let path = dir.join("model.zt");
    let mut writer = Writer::create(&path).unwrap();
    writer.set_attributes(attributes()).unwrap();
    let values = [1.5f32, -2.0, 0.0, f32::NAN, f32::INFINITY, 0.1];
    writer.add("w", &Dense::from_slice(&[2, 3], &values).unwrap()).unwrap();
    let halves = [1.0, 3.0].map(bf16::from_f32);
    writer.add("half", &Dense::from_slice(&[2], &halves).unwrap()).unwrap();
    let eights = [0.5, -448.0].map(F8E4M3Fn::from_f32);
    writer.add("fp8", &Dense::from_slice(&[2], &eights).unwrap()).unwrap();
    let complex = [Complex::new(1.0f32, -2.0)];
    writer.add("complex", &Dense::from_slice(&[1], &complex).unwrap()).unwrap();
    writer.add("flags", &Dense::from_slice(&[2], &[true, false]).unwrap()).unwrap();
    writer.add("scalar", &Dense::from_slice(&[], &[i64::MIN]).unwrap()).unwrap();
    let graph = Csr::new([2, 3], &[7i32, 8], &[2, 0], &[0, 1, 2]).unwrap();
    writer.add("graph", &graph).unwrap();
    writer.finish().unwrap();
    path
}

/// A file with one object of an unknown format.
pub fn of_unknown_format(dir: &Path) -> PathBuf {
    let path = dir.join("unknown.zt");
    let mut writer = Writer::create(&path).unwrap();
    let mut object = writer.begin("blocks", &[2, 2], "acme.blocks/1").unwrap();
    let mut component = object.component("cells", DType::U8, None).unwrap();
    component.write_all(&[1, 2, 3]).unwrap();
    component.finish().unwrap();
    object.finish().unwrap();
    writer.finish().unwrap();
    path
}

/// A file with one dense object `w` of these values.
pub fn of_floats(path: &Path, values: &[f32]) {
    let mut writer = Writer::create(path).unwrap();
    let dense = Dense::from_slice(&[values.len() as u64], values).unwrap();
    writer.add("w", &dense).unwrap();
    writer.finish().unwrap();
}

/// As [`of_floats`], with one bit of the data flipped.
pub fn damaged(dir: &Path) -> PathBuf {
    let path = dir.join("damaged.zt");
    of_floats(&path, &[1.0, 2.0, 3.0]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[64 + 5] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    path
}

/// A file with the objects `bad`, of an unknown dtype, and `good`.
pub fn faulty(dir: &Path) -> PathBuf {
    let path = dir.join("faulty.zt");
    let mut writer = Writer::create(&path).unwrap();
    writer.add("bad", &Dense::from_slice(&[1], &[1.0f32]).unwrap()).unwrap();
    writer.add("good", &Dense::from_slice(&[1], &[1u8]).unwrap()).unwrap();
    writer.finish().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(4).rposition(|window| window == b"\x63f32").unwrap();
    bytes[at..at + 4].copy_from_slice(b"\x63f99");
    zt::manifest::ManifestDigest::renew(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// A safetensors file with a tensor of zeros, which is sparse on most file systems.
pub fn of_zeros(path: &Path, byte_len: u64) {
    let file = safetensors(path, "w", "F32", byte_len / 4, byte_len);
    let header_ends = file.metadata().unwrap().len();
    file.set_len(header_ends + byte_len).unwrap();
}

/// A safetensors file with the bools `flags`, stored as these bytes.
pub fn of_bools(dir: &Path, bytes: [u8; 2]) -> PathBuf {
    let path = dir.join("flags.safetensors");
    let mut file = safetensors(&path, "flags", "BOOL", 2, 2);
    file.write_all(&bytes).unwrap();
    path
}

/// A safetensors file with one vector, without its data.
fn safetensors(path: &Path, name: &str, dtype: &str, count: u64, byte_len: u64) -> std::fs::File {
    let mut header = format!(
        r#"{{"{name}":{{"dtype":"{dtype}","shape":[{count}],"data_offsets":[0,{byte_len}]}}}}"#
    );
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file
}

/// The names in a folder, sorted.
pub fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// Elements of one byte each.
pub fn bytes(values: &[u8]) -> Elements<'_> {
    Elements::from(values)
}

/// A safetensors file of zeros with these names, any names, and their sizes.
pub fn of_sizes(path: &Path, objects: &[(&str, u64)]) {
    let mut header = serde_json::Map::new();
    let mut end = 0;
    for (name, len) in objects {
        let offsets = [end, end + len];
        let tensor = serde_json::json!({"dtype": "U8", "shape": [len], "data_offsets": offsets});
        header.insert((*name).to_owned(), tensor);
        end += len;
    }
    let header = Value::Object(header).to_string();
    let len = (header.len() as u64).to_le_bytes();
    let zeros = vec![0; usize::try_from(end).unwrap()];
    std::fs::write(path, [&len[..], header.as_bytes(), &zeros].concat()).unwrap();
}
