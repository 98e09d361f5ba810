//! The bodies of the fuzz targets: functions of bytes that return if all is well and panic if not.
//!
//! `fuzz/` calls them from libFuzzer, on a nightly compiler; `tests/replay.rs` calls them on stable
//! with every file of the corpus and of `fuzz-regressions`. A find becomes a file there, named for
//! what it showed.

use zt::container::{Footer, MAGIC_2};
use zt::manifest::{Index, Manifest, Placement};
use zt::{File, Kind, Layout, Limits, Memory, Object, OpenOptions, VerifyOptions};
use zt_convert::{Input, InputOptions};

use crate::decisions::Decisions;
use crate::generate;
use crate::observe::observe;
use crate::zt2;

/// A target's name and body.
pub type Body = (&'static str, fn(&[u8]));

/// Every target.
pub const BODIES: [Body; 15] = [
    ("footer", footer),
    ("gguf", gguf),
    ("hdf5", hdf5),
    ("manifest", manifest),
    ("npy", npy),
    ("npz", npz),
    ("onnx", onnx),
    ("open_all", open_all),
    ("pickle", pickle),
    ("pytorch", pytorch),
    ("round_trip", round_trip),
    ("safetensors", safetensors),
    ("slm1", slm1),
    ("squizd", squizd),
    ("zt2", zt2),
];

/// Small enough that a run takes milliseconds and a leak of the limits shows.
fn limits() -> Limits {
    Limits {
        manifest_len: 1 << 20,
        decoded_len: 1 << 20,
        ..Limits::default()
    }
}

/// A whole file: where its manifest and its data are.
pub fn footer(bytes: &[u8]) {
    let Ok(footer) = Footer::locate(&Memory::new(bytes), &limits()) else {
        return;
    };
    let (data, manifest) = (footer.data(), footer.manifest());
    assert_eq!(data.offset(), 8);
    assert_eq!(data.end(), manifest.offset());
    assert!(!manifest.is_empty());
    let trailer = if footer.layout() == Layout::V1_1 {
        16
    } else {
        8
    };
    assert_eq!(manifest.end() + trailer, bytes.len() as u64);
}

/// A manifest: read as each layout, every object decoded and judged, written again.
pub fn manifest(bytes: &[u8]) {
    for layout in [Layout::V0_1, Layout::V1_0, Layout::V1_1] {
        if let Ok(index) = Index::parse(bytes, layout, &limits()) {
            check_index(&index, layout);
        }
    }
}

fn check_index(index: &Index<&[u8]>, layout: Layout) {
    let data = zt::Span::new(8, 1 << 40).expect("no overflow");
    let placement = Placement {
        layout,
        data,
        limits: limits(),
    };
    let mut objects = Vec::new();
    let mut warnings = Vec::new();
    for at in 0..index.len() {
        assert_eq!(
            index.find(index.name(at)),
            Some(at),
            "names are unique and found"
        );
        match index.object(at).validate(&placement, &mut warnings) {
            Ok(object) => objects.push((index.name(at).to_owned(), object)),
            Err(fault) => assert!(!fault.error.to_string().is_empty()),
        }
    }
    let attributes = index.attributes().expect("small");
    let extra = index.extra().expect("small");
    // Layouts before 1.1 say things that 1.2 has no place for.
    if layout != Layout::V1_1 || objects.iter().any(|(_, object)| has_no_length(object)) {
        return;
    }
    let manifest = Manifest {
        attributes,
        objects,
        extra,
    };
    let cbor = manifest.to_cbor().expect("what was read can be written");
    let again =
        Index::parse(&cbor[..], layout, &Limits::default()).expect("what was written reads");
    assert_eq!(again.attributes().unwrap(), manifest.attributes);
    assert_eq!(again.extra().unwrap(), manifest.extra);
    assert_eq!(again.len(), manifest.objects.len());
    for (name, object) in &manifest.objects {
        let at = again.find(name).expect("every name that was written");
        let read = again
            .object(at)
            .validate(&placement, &mut warnings)
            .expect("as before");
        assert_eq!(normal(read), normal(object.clone()));
    }
}

/// What is the same to a reader: roles have no order, and a type that repeats the dtype says nothing.
fn normal(mut object: Object) -> Object {
    object.components.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (_, component) in &mut object.components {
        let dtype = component.dtype.map(|dtype| dtype.as_str());
        component
            .logical_type
            .take_if(|name| Some(&**name) == dtype);
    }
    object
}

/// Version 1.1 has zstd without a length, which version 1.2 does not.
fn has_no_length(object: &Object) -> bool {
    object
        .components
        .iter()
        .any(|(_, component)| component.blob.decoded_len.is_none())
}

/// A whole file: opened, listed, read in every way, verified, hashed.
pub fn open_all(bytes: &[u8]) {
    let seen = observe(
        OpenOptions::new()
            .limits(limits())
            .open_bytes(bytes.to_vec()),
    );
    let strict = OpenOptions::new()
        .limits(limits())
        .strict(true)
        .open_bytes(bytes.to_vec());
    let faulty = seen.objects.values().any(|object| object.fault.is_some());
    assert_eq!(strict.is_err(), faulty || seen.refused.is_some());
}

/// Decisions about a file: written, read back value for value, and now and then written with other
/// threads, whose starting takes longer than all the rest.
pub fn round_trip(bytes: &[u8]) {
    let file = generate::file(&mut Decisions::new(bytes));
    let written = file.write(None).expect("what is generated can be written");
    if bytes.len().is_multiple_of(32) {
        let again = file.write(2).expect("as before");
        assert!(again == written, "two threads write other bytes");
    }
    file.assert_is(&written);
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
    // Of GGUF, long names, big-endian blocks that nobody knows and dimensions beyond i64 are losses.
    if zt_convert::convert(&[Input::from(file)], &mut written, &options).is_err() {
        return;
    }
    let again = observe(open_as(&written, kind, false));
    assert_eq!(again.refused, None);
    assert_eq!(again.attributes, seen.attributes);
    assert!(again.objects.keys().eq(seen.objects.keys()));
    for (name, object) in &seen.objects {
        let again = &again.objects[name];
        assert_eq!(
            (&again.shape, &again.format),
            (&object.shape, &object.format)
        );
        assert_eq!(again.dense, object.dense, "{name}");
    }
}

/// The pickle of a PyTorch file, whose archive is sound and has one storage: opened and read.
pub fn pickle(bytes: &[u8]) {
    let storage: Vec<u8> = (0..64).collect();
    let members = [("m/data.pkl", bytes), ("m/data/0", storage.as_slice())];
    pytorch(&crate::archive::stored(&members));
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
        // Numbers are looked at in verification alone.
        let report = plain.verify(&strictly()).expect("no stop");
        assert!(
            report
                .problems
                .iter()
                .all(|problem| problem.code() == "value")
        );
    }
    let _ = observe(plain);
}

fn open_as(bytes: &[u8], kind: Kind, strict: bool) -> zt::Result<File> {
    let mut options = InputOptions::default();
    options.open = OpenOptions::new().limits(limits()).strict(strict);
    options.kind = Some(kind);
    Input::from_source(Memory::new(Vec::from(bytes)), &options).map(Input::into_file)
}

fn strictly() -> VerifyOptions<'static> {
    let mut options = VerifyOptions::default();
    options.strict = true;
    options
}

/// A whole file of zTensor 2, or the manifest of one: opened and read as one. What is sound in it,
/// `.zt` can say.
pub fn zt2(bytes: &[u8]) {
    let bytes = match bytes.starts_with(&MAGIC_2) {
        true => bytes.to_vec(),
        false => zt2::framed(&[], bytes),
    };
    kept_as_zt(&bytes, zt_convert::ZT2);
}

/// A file of which nothing is refused is a `.zt` file too, of the same values.
fn kept_as_zt(bytes: &[u8], kind: Kind) {
    let options = OpenOptions::new().limits(limits());
    let open = || zt_convert::open_source(Memory::new(Vec::from(bytes)), &options);
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
    zt_convert::convert(&[input], &mut written, &ours).expect("what reads can be kept");
    let again = observe(options.open_bytes(written));
    assert_eq!(again.refused, None);
    assert_eq!(again.attributes, seen.attributes);
    assert!(again.objects.keys().eq(seen.objects.keys()));
    for (name, object) in &seen.objects {
        assert_eq!(again.objects[name].dense, object.dense, "{name}");
    }
}
