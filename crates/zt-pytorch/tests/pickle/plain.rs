//! Pickles that `torch.save` did not write. Those of NumPy and torch are in `conformance`.

use zt::{ErrorKind, File, Memory, Result};
use zt_foreign::{FileKind, InputOptions, Probe};
use zt_pytorch::{PICKLE, PlainPickle, PyTorch};

use crate::draft::{Py, call, f32s, file, rebuilt, storage, strided, vector};
use crate::unknown::codes;

fn opened(bytes: Vec<u8>) -> Result<File> {
    let input = PlainPickle.open_source(Box::new(Memory::new(bytes)), &InputOptions::new())?;
    Ok(input.into_file())
}

/// A storage of four `f32` in a stream of `torch.save`.
fn stream() -> Vec<u8> {
    let storage = storage("FloatStorage", "f", 4);
    file(&storage, &[("f", 4, f32s(&[1.0, 2.0, 3.0, 4.0]))])
}

/// The stream as Python pickles it in protocol 2.
fn escaped(stream: &[u8]) -> Py {
    let text = stream.iter().map(|byte| char::from(*byte)).collect();
    call("_codecs", "encode", vec![Py::Text(text), "latin1".into()])
}

fn tensor(stream: Py) -> Py {
    let storage = call("torch.storage", "_load_from_bytes", vec![stream]);
    rebuilt("_rebuild_tensor_v2", strided(storage, 1, &[2], &[2]))
}

fn list(items: Vec<Py>) -> Vec<u8> {
    Py::List(items).pickled()
}

#[test]
fn pickles_are_recognised_by_their_first_instructions() {
    let is_pickle = |bytes: &[u8]| {
        let source = Memory::new(bytes);
        let probe = Probe::new(&source).unwrap();
        let ours = PlainPickle.recognise(&probe).unwrap();
        assert!(!ours || !PyTorch.recognise(&probe).unwrap());
        ours
    };
    for bytes in [
        &b"\x80\x02}q\0."[..],
        b"\x80\x05\x95\x01\0\0\0\0\0\0\0}.",
        b"(dp0\nVw\np1\nI1\ns.",
        b"(lp0\nI1\na.",
        b"}q\0(X\x01\0\0\0wK\x01u.",
        b"]q\0K\x01a.",
        b"cnumpy.core.multiarray\n_reconstruct\n.",
    ] {
        assert!(is_pickle(bytes), "{}", bytes.escape_ascii());
    }
    for bytes in [
        &b""[..],
        b"\x80\x06}.",
        // A safetensors file whose header has 640 bytes.
        b"\x80\x02\0\0\0\0\0\0{}",
        b"(dp0\nVw\np1\nI1\ns",
        b"call me.",
        b"collections\n.",
        &stream(),
    ] {
        assert!(!is_pickle(bytes), "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_tensor_has_its_storage_in_a_stream() {
    for bytes in [Py::Bytes(stream()), escaped(&stream())] {
        let file = opened(list(vec![tensor(bytes)])).unwrap();
        assert_eq!(file.kind(), PICKLE);
        let values = file.tensor("0").unwrap().to_vec::<f32>().unwrap();
        assert_eq!(values, [2.0, 4.0]);
    }
    let storage = call("torch.storage", "_load_from_bytes", vec![Py::Bytes(stream())]);
    let file = opened(list(vec![storage])).unwrap();
    let values = file.tensor("0").unwrap().to_vec::<f32>().unwrap();
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_stream_without_a_storage_is_refused() {
    let of = |stream: Vec<u8>| opened(list(vec![tensor(Py::Bytes(stream))])).unwrap_err();
    let cut = stream()[..stream().len() - 1].to_vec();
    assert_eq!(of(cut).code(), "header");
    assert_eq!(of(list(vec![])).code(), "header");
    let code = call("os", "system", vec!["true".into()]);
    assert_eq!(of(file(&code, &[])).code(), "schema");
    assert_eq!(of(file(&Py::None, &[])).code(), "schema");
    // No call of a stream: a fault of the tensor.
    let file = opened(list(vec![tensor(1.into())])).unwrap();
    assert_eq!(file.tensor("0").unwrap_err().code(), "schema");
}

/// Any number of calls can share their bytes, and any number of times can one text be escaped.
#[test]
fn streams_that_are_loaded_again_take_no_memory_again() {
    let again = |first: Py, code: &[u8]| {
        let mut items = vec![tensor(first)];
        items.extend((0..50).map(|_| tensor(Py::Code(code.to_vec()))));
        opened(list(items))
    };
    let kept = Py::Code(Py::Bytes(stream()).then(b"q\x09", &[]));
    let file = again(kept, b"h\x09").unwrap();
    let values = file.tensor("50").unwrap().to_vec::<f32>().unwrap();
    assert_eq!(values, [2.0, 4.0]);
    let zeros = vec![0.0; 1 << 14];
    let long =
        crate::draft::file(&storage("FloatStorage", "f", 1 << 14), &[("f", 1 << 14, f32s(&zeros))]);
    let text: String = long.iter().map(|byte| char::from(*byte)).collect();
    let encode = |text: Py| call("_codecs", "encode", vec![text, "latin1".into()]);
    let first = encode(Py::Code(Py::Text(text).then(b"q\x09", &[])));
    let next = encode(Py::Code(b"h\x09".to_vec())).then(&[], &[]);
    let error = again(first, &next).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, "pickle"));
}

#[test]
fn code_is_named_and_never_run() {
    let system = || call("os", "system", vec!["true".into()]);
    let error = opened(list(vec![system()])).unwrap_err();
    assert_eq!(error.code(), "pickle-danger");
    assert!(error.to_string().contains("os.system(\"true\")"), "{error}");
    let file = opened(list(vec![system(), 1.into()])).unwrap();
    assert_eq!(codes(&file), [(Some("0".to_owned()), "unknown-class")]);
    let warnings = file.warnings();
    assert!(warnings.iter().any(|it| it.code == "pickle-danger"));
}

/// torch, Lightning, NumPy, PaddlePaddle and others wrote these files.
#[test]
fn sound_files_name_nothing_dangerous() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus");
    let mut count = 0;
    for folder in ["torch", "pickle", "foreign/pt"] {
        for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // These call something, to see that nothing is run.
            if name.contains("code") || !path.is_file() {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let of_torch = crate::draft::opened(bytes.clone());
            if let Ok(file) = of_torch.or_else(|_| opened(bytes)) {
                let warnings = file.warnings();
                let dangers: Vec<_> =
                    warnings.iter().filter(|it| it.code == "pickle-danger").collect();
                assert!(dangers.is_empty(), "{}: {dangers:?}", path.display());
                count += 1;
            }
        }
    }
    assert!(count > 40, "{count}");
}

/// The bytes of an array follow the state of its wrapper. Here, they are valid instructions.
#[test]
fn files_of_joblib_are_refused_by_name() {
    let wrapper = b"cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}b".to_vec();
    for behind in [&b"0K\x01"[..], b"\xFF\xFF"] {
        let bytes = [&b"\x80\x04"[..], &wrapper, behind, b"."].concat();
        let error = opened(bytes).unwrap_err();
        assert_eq!(error.code(), "unsupported");
        assert!(error.to_string().contains("joblib"), "{error}");
    }
}

/// A part of a file of torch: the tensors of an archive are elsewhere.
#[test]
fn a_tensor_outside_the_pickle_is_a_fault_of_its_own() {
    let file = opened(list(vec![vector("FloatStorage", "f", 4), 1.into()])).unwrap();
    let error = file.tensor("0").unwrap_err();
    assert_eq!(error.code(), "missing-component");
    assert!(file.attributes().unwrap().is_some());
}
