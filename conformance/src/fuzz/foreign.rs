//! The parsers of other formats, each with files of its own kind.

use zt::foreign::Kind;
use zt::{File, Memory, OpenOptions, Source, VerifyOptions};
use zt_convert::foreign::{Folder, Opened};
use zt_convert::{Input, InputOptions, MlDtype};

use super::limits;
use crate::observe::observe;
use crate::zt2 as zt2_file;

/// A checkpoint of torch.distributed.checkpoint: the length of its metadata in four bytes, the metadata, and
/// the file that every item is in. What is listed without a fault is a `.zt` file too, of the same values.
pub fn dcp(bytes: &[u8]) {
    let Some((len, bytes)) = bytes.split_first_chunk() else {
        return;
    };
    let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
    let (metadata, items) = bytes.split_at(len.min(bytes.len()));
    let mut options = InputOptions::from(OpenOptions::new().limits(limits()));
    options.kind = Some(zt_convert::DCP);
    let open = || {
        let source = Memory::new(Vec::from(metadata));
        let opened =
            zt_convert::Kinds::builtin().open_in(source, "m/.metadata", &Items(items), &options);
        opened.map(Input::into_file)
    };
    kept(open, zt_convert::DCP);
}

/// A folder in which every name is one file.
#[derive(Debug)]
struct Items<'b>(&'b [u8]);

impl Folder for Items<'_> {
    fn open(&self, locations: &[&str]) -> Vec<Opened> {
        let source = || -> Box<dyn Source> { Box::new(Memory::new(Vec::from(self.0))) };
        locations.iter().map(|_| Ok(Some(source()))).collect()
    }
}

/// A whole GGUF file: opened and read as one. What it says, GGUF can say again.
pub fn gguf(bytes: &[u8]) {
    written_again(bytes, zt_convert::GGUF);
}

/// A whole array of NumPy: opened and read as one. It can be written again.
pub fn npy(bytes: &[u8]) {
    written_again(bytes, zt_convert::NPY);
}

/// A whole archive of NumPy's arrays: opened and read as one. It can be written again.
pub fn npz(bytes: &[u8]) {
    written_again(bytes, zt_convert::NPZ);
}

/// A whole ONNX model: opened and read as one.
pub fn onnx(bytes: &[u8]) {
    let _ = observe(open_as(bytes, zt_convert::ONNX, false));
}

/// What a file of some kind says, and what it says when it has been written again, as that kind.
fn written_again(bytes: &[u8], kind: Kind) {
    let seen = observe(open_as(bytes, kind, false));
    let Ok(file) = open_as(bytes, kind, false) else {
        return;
    };
    if file.entries().iter().any(|entry| entry.fault().is_some()) || !seen.problems.is_empty() {
        return;
    }
    let mut written = Vec::new();
    let options = zt_convert::ConvertOptions::new(kind);
    // GGUF lacks long names, big-endian blocks of unknown types, dimensions beyond i64 (errors), and
    // some alignments (a warning).
    match zt_convert::Kinds::builtin().convert(&[Input::from(file)], &mut written, &options) {
        Ok(summary) if summary.warnings.iter().all(|it| it.code != "lossy") => {}
        _ => return,
    }
    let again = observe(open_as(&written, kind, false));
    assert_eq!(again.refused, None);
    assert_eq!(again.attributes, seen.attributes);
    assert!(again.objects.keys().eq(seen.objects.keys()));
    for (name, object) in &seen.objects {
        let again = &again.objects[name];
        assert_eq!((&again.shape, &again.format), (&object.shape, &object.format));
        assert_eq!(again.dense, object.dense, "{name}");
    }
}

/// The pickle of a PyTorch file, whose archive is sound and has one storage: opened and read.
pub fn pickle(bytes: &[u8]) {
    let storage: Vec<u8> = (0..64).collect();
    let members = [("m/data.pkl", bytes), ("m/data/0", storage.as_slice())];
    pytorch(&crate::archive::stored(&members));
}

/// A whole pickle that `torch.save` did not write: opened and read as one. What is listed without a fault
/// is a `.zt` file too, of the same values.
pub fn plain_pickle(bytes: &[u8]) {
    kept_as_zt(bytes, zt_convert::PICKLE);
}

/// A whole PyTorch file, an archive or one of the older streams: opened and read as one. What is
/// listed without a fault is a `.zt` file too, of the same values.
pub fn pytorch(bytes: &[u8]) {
    kept_as_zt(bytes, zt_convert::PYTORCH);
}

/// A whole safetensors file: opened and read as one.
pub fn safetensors(bytes: &[u8]) {
    foreign(bytes, zt_convert::SAFETENSORS);
}

/// A whole SLM1 file: opened and read as one, plainly and strictly.
pub fn slm1(bytes: &[u8]) {
    foreign(bytes, zt_convert::SLM1);
}

/// A whole SQUIZD file: opened and read as one, plainly and strictly.
pub fn squizd(bytes: &[u8]) {
    foreign(bytes, zt_convert::SQUIZD);
}

/// A whole HDF5 file: opened and read as one. Damage of chunks shows only when they are decoded.
pub fn hdf5(bytes: &[u8]) {
    let _ = observe(open_as(bytes, zt_convert::HDF5, false));
}

/// A whole file of some kind, whatever it looks like.
fn foreign(bytes: &[u8], kind: Kind) {
    let plain = open_as(bytes, kind, false);
    if let (Ok(plain), Ok(_)) = (&plain, open_as(bytes, kind, true)) {
        assert!(plain.entries().iter().all(|entry| entry.fault().is_none()));
        // Numbers and bools are looked at in verification alone.
        let report = plain.verify(&strictly()).expect("no stop");
        assert!(
            report.problems.iter().all(|problem| matches!(problem.code(), "value" | "bool-value"))
        );
    }
    let _ = observe(plain);
}

pub(super) fn open_as(bytes: &[u8], kind: Kind, strict: bool) -> zt::Result<File> {
    let mut options = InputOptions::default();
    options.open = OpenOptions::new().limits(limits()).strict(strict);
    options.kind = Some(kind);
    // Values that are packed when they are read, and bf16.
    let ml_dtypes = ["int4", "bfloat16"].map(MlDtype::from_name);
    options.ml_dtypes.extend(ml_dtypes.into_iter().flatten());
    zt_convert::Kinds::builtin()
        .open_source(Memory::new(Vec::from(bytes)), &options)
        .map(Input::into_file)
}

fn strictly() -> VerifyOptions<'static> {
    VerifyOptions::new().strict(true)
}

/// A whole file of zTensor 2, or the manifest of one: opened and read as one. What is sound in it,
/// `.zt` can say.
pub fn zt2(bytes: &[u8]) {
    let bytes = match bytes.starts_with(&zt2_file::MAGIC) {
        true => bytes.to_vec(),
        false => zt2_file::framed(&[], bytes),
    };
    kept_as_zt(&bytes, zt_convert::ZT2);
}

/// A file that is read whole can be written as `.zt`, with the same values.
fn kept_as_zt(bytes: &[u8], kind: Kind) {
    let options = OpenOptions::new().limits(limits());
    let open = || {
        zt_convert::Kinds::builtin()
            .open_source(Memory::new(Vec::from(bytes)), &options)
            .map(zt_convert::Input::into_file)
    };
    kept(open, kind);
}

/// As [`kept_as_zt`], for what `open` opens.
fn kept(open: impl Fn() -> zt::Result<File>, kind: Kind) {
    let seen = observe(open());
    let Ok(file) = open() else {
        return;
    };
    if file.kind() != kind || seen.refusals().next().is_some() {
        return;
    }
    let mut written = Vec::new();
    let ours = zt_convert::ConvertOptions::new(zt_convert::ZT);
    let input = zt_convert::Input::from(file);
    zt_convert::Kinds::builtin()
        .convert(&[input], &mut written, &ours)
        .expect("what reads can be kept");
    let again = observe(OpenOptions::new().limits(limits()).open_bytes(written));
    assert_eq!(again.refused, None);
    assert_eq!(again.attributes, seen.attributes);
    assert!(again.objects.keys().eq(seen.objects.keys()));
    for (name, object) in &seen.objects {
        assert_eq!(again.objects[name].dense, object.dense, "{name}");
    }
}
