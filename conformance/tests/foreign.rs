//! Every kind of foreign file that is built, over the files of its own libraries. A new kind is one
//! line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use zt::ErrorKind;
use zt_conformance::corpus;
use zt_conformance::foreign::{self, Case};

/// Cases of `corpus/foreign/KIND`; `count` of them, so that none is lost unnoticed.
fn check(kind: &str, count: usize) {
    check_cases(kind, &foreign::cases(kind), count);
}

fn check_cases(kind: &str, cases: &[Case], count: usize) {
    assert_eq!(cases.len(), count, "cases of {kind}");
    let mut wrong = Vec::new();
    for case in cases {
        let problems = case.problems().into_iter();
        wrong.extend(problems.map(|problem| format!("{kind}/{}: {problem}", case.name)));
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! kinds {
    ($($kind:ident: $count:literal,)*) => {$(
        #[test]
        fn $kind() {
            check(stringify!($kind), $count);
        }
    )*};
}

/// More of PyTorch: `corpus/torch/make.py` has what was saved.
#[test]
fn torch() {
    let folder = corpus::folder().join("corpus/torch");
    check_cases("torch", &foreign::cases_in(&folder, "pt"), 27);
}

/// Pickles that torch.save did not write: `corpus/pickle/make.py`.
#[test]
fn pickles() {
    let folder = corpus::folder().join("corpus/pickle");
    let cases = foreign::cases_in(&folder, "pkl");
    check_cases("pickle", &cases, 30);
    for case in &cases {
        if let Ok(file) = zt_convert::open(&case.path) {
            assert_eq!(file.kind(), zt_convert::PICKLE, "{}", case.name);
        }
    }
}

/// PyTorch's files with objects of unknown classes, and the oldest ones: `corpus/classes/make.py`.
/// All of them convert without a loss being allowed.
#[test]
fn classes() {
    let cases = foreign::cases_in(&corpus::folder().join("corpus/classes"), "pt");
    check_cases("classes", &cases, 6);
    for case in &cases {
        for kind in [zt_convert::ZT, zt_convert::SAFETENSORS] {
            let options = zt_convert::ConvertOptions::new(kind);
            let input = zt_convert::Input::from(zt_convert::open(&case.path).unwrap());
            let names: Vec<String> = input.file().names().map(str::to_owned).collect();
            let mut written = Vec::new();
            zt_convert::Kinds::builtin()
                .convert(&[input], &mut written, &options)
                .expect(&case.name);
            let again = zt_convert::open_source(memory(&written)).unwrap();
            assert!(names.iter().all(|name| again.tensor(name).is_ok()), "{}", case.name);
        }
    }
}

/// Checkpoints of torch.distributed.checkpoint: `corpus/dcp/make.py` has what was saved.
#[test]
fn dcp() {
    let folder = corpus::folder().join("corpus/dcp");
    check_cases("dcp", &foreign::cases_in(&folder, "distcp"), 17);
}

/// More of HDF5: `corpus/hdf5/make.py` has what was written.
#[test]
fn hdf5() {
    let folder = corpus::folder().join("corpus/hdf5");
    check_cases("hdf5", &foreign::cases_in(&folder, "h5"), 38);
}

/// `torch.save` lays out its weights in another way.
#[test]
fn other_archives_of_torch_say_what_they_are() {
    for (member, how) in [
        ("m/archive_format", "torch.export"),
        ("archive_format", "torch.export"),
        ("m/.data/extern_modules", "torch.package"),
    ] {
        let members = [(member, &b"pt2"[..]), ("m/model/m.pkl", b"PK")];
        let bytes = zt_conformance::archive::stored(&members);
        let error = zt_convert::open_source(memory(&bytes)).unwrap_err();
        let found = (error.kind(), error.code());
        assert_eq!(found, (ErrorKind::Unsupported, "unsupported"), "{error}");
        assert!(error.to_string().contains(how), "{error}");
    }
}

// The folder's name, and how many cases it has.
kinds! {
    gguf: 84,
    h5: 28,
    npy: 94,
    npz: 34,
    onnx: 19,
    pt: 128,
    safetensors: 76,
    zt2: 14,
}

/// HDF5 may begin behind a user block, which may be another file that has one among its values.
#[test]
fn a_file_within_the_values_of_another_is_not_what_that_is() {
    let files = foreign::files("h5");
    let is_sound = |bytes: &[u8]| zt_convert::open_source(memory(bytes));
    let sound = files.iter().find(|(_, bytes)| is_sound(bytes).is_ok());
    let (_, hdf5) = sound.unwrap();
    let len = hdf5.len();
    let header = format!(r#"{{"w":{{"dtype":"U8","shape":[{len}],"data_offsets":[0,{len}]}}}}"#);
    let header = format!("{header:504}");
    let bytes = [&504u64.to_le_bytes()[..], header.as_bytes(), hdf5].concat();
    let file = zt_convert::open_source(memory(&bytes)).unwrap();
    assert_eq!(file.kind(), zt_convert::SAFETENSORS);
    assert!(*file.tensor("w").unwrap().bytes("data").unwrap() == *hdf5);
    // Behind a block of anything else it is found.
    let bytes = [&[b'M'; 512][..], hdf5].concat();
    let file = zt_convert::open_source(memory(&bytes)).unwrap();
    assert_eq!(file.kind(), zt_convert::HDF5);
}

fn memory(bytes: &[u8]) -> zt::Memory<Vec<u8>> {
    zt::Memory::new(bytes.to_vec())
}
