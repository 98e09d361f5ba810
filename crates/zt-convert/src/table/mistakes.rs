//! Files that are mistaken for tensor files: pages, pointers, archives, texts.
//!
//! A file is looked up here only if no kind recognises it, so no tensor file is in the table's way.

use std::path::Path;

use zt::ErrorKind;
use zt_foreign::Probe;

/// What a file is instead of a tensor file, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("not a tensor file but {what}; {advice}")]
pub(crate) struct Mistake {
    what: String,
    advice: &'static str,
}

impl From<Mistake> for zt::Error {
    fn from(mistake: Mistake) -> Self {
        zt::Error::new(ErrorKind::Unsupported, "unknown-kind", mistake)
    }
}

const DECOMPRESS: &str = "decompress it first";
const EXTRACT: &str = "extract it first, and open the files in it";
const EXPORT: &str = "this program cannot read it: save the tensors as safetensors or npz";
const DOWNLOAD: &str = "check the address and the access rights, and download the file again";
const JOBLIB: &str = "load it with joblib, and save the arrays as npz";
const ONNX_TEXT: &str = "parse it with onnx.parser.parse_model, and save it as .onnx";
const OLD_GGML: &str = "convert it to GGUF with the tools of an old llama.cpp";

/// Bytes, their offset, what has them there, and what to do with it.
#[rustfmt::skip]
const MAGICS: &[(&[u8], usize, &str, &str)] = &[
    (b"version https://git-lfs.github.com/spec/", 0,
        "a Git LFS pointer", "run `git lfs pull` to fetch the file"),
    (b"/annex/objects/", 0, "a git-annex pointer", "run `git annex get` to fetch the file"),
    (b"\x1F\x8B\x08", 0, "a gzip file", DECOMPRESS),
    (b"\x28\xB5\x2F\xFD", 0, "a zstd file", DECOMPRESS),
    (b"\xFD7zXZ\0", 0, "an xz file", DECOMPRESS),
    (b"BZh", 0, "a bzip2 file", DECOMPRESS),
    (b"\x04\x22\x4D\x18", 0, "an lz4 file", DECOMPRESS),
    (b"7z\xBC\xAF\x27\x1C", 0, "a 7z archive", EXTRACT),
    (b"Rar!\x1A\x07", 0, "a RAR archive", EXTRACT),
    (b"ustar", 257, "a tar archive", EXTRACT),
    (b"PK\x03\x04", 0,
        "a zip archive without tensor files of a known kind, or a truncated one", EXTRACT),
    (b"TFL3", 4, "a TensorFlow Lite model", EXPORT),
    // Messages that begin with version 1 and with the field 2, which has the model.
    (b"\x08\x01\x12", 0, "a TensorFlow SavedModel or a Core ML model", EXPORT),
    (b"lmgg", 0, "a GGML file from before GGUF", OLD_GGML),
    (b"fmgg", 0, "a GGML file from before GGUF", OLD_GGML),
    (b"tjgg", 0, "a GGML file from before GGUF", OLD_GGML),
    (b"PAR1", 0, "a Parquet file", EXPORT),
    (b"ARROW1", 0, "an Arrow file", EXPORT),
    (b"MATLAB 5.0 MAT-file", 0, "a MATLAB file", EXPORT),
    (b"CDF", 0, "a NetCDF 3 file", "convert it to HDF5: `nccopy -k nc4`"),
];

/// A file in a folder, and what such a folder is.
const FOLDERS: &[(&str, &str)] = &[
    ("saved_model.pb", "a TensorFlow SavedModel"),
    ("Manifest.json", "a Core ML package"),
    ("zarr.json", "a Zarr store"),
    (".zgroup", "a Zarr store"),
    (".zarray", "a Zarr store"),
    ("manifest.ocdbt", "an Orbax checkpoint"),
    ("_CHECKPOINT_METADATA", "an Orbax checkpoint"),
    ("checkpoint", "a TensorFlow checkpoint"),
    ("flax_model.msgpack", "a model of Flax"),
    ("model_index.json", DIFFUSERS),
    ("adapter_config.json", ADAPTER),
];

const DIFFUSERS: &str = "a pipeline of diffusers";
const ADAPTER: &str = "an adapter of PEFT";

/// The mistake that a path shows: a folder of another format, or one data file of a checkpoint. `None` for any
/// other path.
pub(crate) fn of_path(path: &Path) -> Option<Mistake> {
    if path.extension().is_some_and(|it| it == "distcp") && path.is_file() {
        return Some(Mistake {
            what: "a part of a checkpoint of torch.distributed.checkpoint".to_owned(),
            advice: "open its folder, or .metadata in it",
        });
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.contains(".data-") && name.contains("-of-") && path.is_file() {
        return Some(Mistake {
            what: "a part of a TensorFlow checkpoint".to_owned(),
            advice: EXPORT,
        });
    }
    let mut known = FOLDERS.iter();
    let (_, what) = known.find(|(name, _)| path.join(name).is_file())?;
    Some(Mistake {
        what: (*what).to_owned(),
        advice: match *what {
            DIFFUSERS => {
                "give one of its folders, such as unet, transformer or vae; -r takes all of them"
            }
            ADAPTER => {
                "open adapter_model.safetensors in it, or fetch that; `zt merge BASE OUT --lora FOLDER` adds it to its base"
            }
            _ => EXPORT,
        },
    })
}

/// Fewer zeros may begin a file of an unknown kind.
const ZEROS_MIN: usize = 16;

/// The least bytes of a text. A shorter file may be the beginning of another one.
const TEXT_MIN: usize = 8;

/// The mistake that a file is, which no kind recognises.
pub(crate) fn find(probe: &Probe<'_>) -> Option<Mistake> {
    let head = probe.head();
    let mistake = |what: &str, advice| {
        let what = what.to_owned();
        Some(Mistake { what, advice })
    };
    if head.is_empty() {
        return mistake(
            "an empty file, or one of the system without a length",
            "download or write it again",
        );
    }
    let zeros = head.iter().take_while(|byte| **byte == 0).count();
    if zeros >= ZEROS_MIN {
        let what = format!(
            "one whose first {zeros} bytes or more are zero, as a download that was cut leaves them"
        );
        return mistake(&what, DOWNLOAD);
    }
    let has = |magic: &[u8], at| head.get(at..).is_some_and(|from| from.starts_with(magic));
    if let Some((.., what, advice)) = MAGICS.iter().find(|(magic, at, ..)| has(magic, *at)) {
        return mistake(what, advice);
    }
    // A small map whose first key is a short text. JSON and CBOR begin otherwise.
    if matches!(head, [0x81..=0x8F, 0xA1..=0xBF, key, ..] if key.is_ascii_alphabetic()) {
        return mistake("a MessagePack file, as Flax writes", EXPORT);
    }
    // The levels of zlib; `x^` may also begin a text.
    if let ([b'x', 0x01 | 0x5E | 0x9C | 0xDA, ..], None) = (head, text_of(head)) {
        return mistake("zlib data, as joblib compresses a pickle", JOBLIB);
    }
    let text = text_of(head)?.trim_start_matches('\u{FEFF}').trim_start();
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("<!doctype html") || lower.starts_with("<html") {
        return mistake("an HTML page", DOWNLOAD);
    }
    if lower.strip_prefix('<').is_some_and(|rest| rest.trim_start().starts_with("ir_version")) {
        return mistake("an ONNX model in its text form", ONNX_TEXT);
    }
    if lower.starts_with('<') {
        return mistake("an XML document or a part of a page", DOWNLOAD);
    }
    let line: String = text.lines().next()?.chars().take(80).collect();
    if let Some(fields) = lower.strip_prefix('{') {
        let errors = ["\"error", "\"message\"", "\"detail\""];
        if errors.iter().any(|key| fields.trim_start().starts_with(key)) {
            return mistake(&format!("an error message in JSON, {line}"), DOWNLOAD);
        }
        let advice = "open the file of weights, or an index of shards with a \"weight_map\"";
        return mistake("a JSON document", advice);
    }
    let what = format!("a text that begins with \"{}\"", line.escape_debug());
    mistake(&what, "check the path")
}

/// The bytes as text, without a character that is cut at the end. Control characters are no text.
fn text_of(head: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(head.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    let is_text = |c: char| !c.is_control() || c.is_ascii_whitespace();
    (head.len() >= TEXT_MIN && text.chars().all(is_text)).then_some(text)
}
