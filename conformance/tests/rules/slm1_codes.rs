//! Errors and warnings of SLM1 files that break a rule or are ambiguous.

use zt::{ErrorKind, File, Memory, OpenOptions};
use zt_conformance::slm1::{Slm1, Tensor};
use zt_convert::{Input, InputOptions, SLM1};

use super::patched;
use super::slm1::{model, tensor};

/// Where the entry of the only tensor has the offset of its values.
const OFFSET: usize = 192 + 32;

/// Opens a file as SLM1, because without its version nothing else shows the kind.
fn open(bytes: &[u8], strict: bool) -> zt::Result<File> {
    let mut options = InputOptions::from(&OpenOptions::new().strict(strict));
    options.kind = Some(SLM1);
    zt_convert::Kinds::builtin()
        .open_source(Memory::new(Vec::from(bytes)), &options)
        .map(Input::into_file)
}

fn file(tensors: Vec<Tensor>) -> Vec<u8> {
    let extension = Vec::new();
    Slm1 { tensors, extension }.to_bytes()
}

/// Two floats.
fn smallest() -> Vec<u8> {
    model(1, &[2], 8, &[], 0).to_bytes()
}

#[test]
fn a_broken_file_is_refused_by_the_code_of_its_rule() {
    let twice = tensor("norm.weight", 1, &[2], 8, &[], 0);
    let behind = smallest().len() as u64 + 64;
    for (about, bytes, code) in [
        ("cut", smallest()[..107].to_vec(), "truncated"),
        ("version", patched(smallest(), 4, &[2]), "version"),
        ("header length", patched(smallest(), 8, &[107]), "header"),
        ("tokenizer", patched(smallest(), 64, &[0xFF; 8]), "bounds"),
        ("tensor count", patched(smallest(), 88, &[0xFF; 4]), "bounds"),
        ("data off the grid", patched(smallest(), 92, &[1]), "alignment"),
        ("data", patched(smallest(), 92, &behind.to_le_bytes()), "bounds"),
        ("hash", file(vec![twice.clone(), twice]), "duplicate-name"),
    ] {
        let error = open(&bytes, false).unwrap_err();
        let expected = (ErrorKind::Malformed, code);
        assert_eq!((error.kind(), error.code()), expected, "{about}");
        let is_named = error.message().contains("tokenizer");
        assert_eq!(is_named, about == "tokenizer", "{error}");
    }
}

#[test]
fn a_broken_tensor_is_refused_by_the_code_of_its_rule() {
    let x = |dtype, dims: &[u32], payload, scales: &[f32], block_size| {
        model(dtype, dims, payload, scales, block_size).to_bytes()
    };
    for (about, bytes, code) in [
        ("dtype", x(4, &[2], 8, &[], 0), "dtype"),
        ("no dimensions", x(1, &[], 4, &[], 0), "shape-size-mismatch"),
        ("of zero", x(1, &[2, 0], 0, &[], 0), "shape-size-mismatch"),
        ("too many", x(1, &[u32::MAX; 4], 0, &[], 0), "shape-size-mismatch"),
        ("length", x(1, &[2], 7, &[], 0), "shape-size-mismatch"),
        ("block", x(2, &[2, 3], 6, &[1.0; 2], 6), "attribute"),
        ("scales", x(2, &[2, 3], 6, &[], 3), "missing-component"),
        ("offset", patched(smallest(), OFFSET, &[0xFF; 8]), "bounds"),
    ] {
        let file = open(&bytes, false).unwrap();
        let error = file.tensor("norm.weight").unwrap_err();
        let expected = (ErrorKind::Malformed, code);
        assert_eq!((error.kind(), error.code()), expected, "{about}");
    }
    let file = open(&x(4, &[2, 3], 8, &[], 0), false).unwrap();
    let entries = file.entries();
    let broken = entries.iter().find(|entry| entry.name() == "norm.weight");
    let raw = broken.unwrap().raw().unwrap();
    assert_eq!(raw.shape.as_deref(), Some(&[2, 3][..]));
    let (_, data) = &raw.components[0];
    assert_eq!((data.offset, data.length), (Some(256), Some(8)));
}

#[test]
fn what_strict_readers_mind_has_a_code() {
    assert!(open(&smallest(), true).is_ok());
    for (about, bytes, code) in [
        ("rope_theta", patched(smallest(), 56, &[0; 4]), "value"),
        ("values over the header", patched(smallest(), OFFSET, &[0; 8]), "overlap"),
        ("values off the grid", patched(smallest(), OFFSET, &[4]), "alignment"),
    ] {
        assert!(open(&bytes, false).is_ok(), "{about}");
        let error = open(&bytes, true).unwrap_err();
        assert_eq!(error.code(), code, "{about}");
    }
}

/// A header of no tokenizer, no tensors and nothing else.
#[test]
fn a_header_is_a_file() {
    let mut bytes = file(Vec::new());
    bytes.truncate(108);
    bytes[64..100].fill(0);
    assert_eq!(open(&bytes, false).unwrap().len(), 0);
}

#[test]
fn what_a_header_says_and_has_behind_its_fields_is_kept() {
    for (len, is_kept) in [(0, false), (20, true), (65_536, true), (65_537, false)] {
        let (tensors, extension) = (Vec::new(), vec![9; len]);
        let bytes = Slm1 { tensors, extension }.to_bytes();
        let file = open(&bytes, false).unwrap();
        let attributes = file.attributes().unwrap().unwrap();
        let fields = attributes.get("slm1").unwrap().as_map().unwrap();
        assert_eq!(fields.get("vocab_size").unwrap().as_u64(), Some(260));
        assert_eq!(fields.get("rope_theta").unwrap().as_f64(), Some(10_000.0));
        let kept = fields.get("header_extension");
        let kept = kept.map(|value| value.as_bytes().unwrap().len());
        assert_eq!(kept, is_kept.then_some(len));
        let warnings = file.warnings();
        let warned = |code| warnings.iter().any(|warning| warning.code == code);
        assert!(warned("unknown-digest"));
        assert_eq!(warned("ambiguous"), len > 65_536);
    }
}

#[test]
fn tensors_before_the_data_have_a_warning() {
    let two = ["norm.weight", "output.weight"].map(|name| tensor(name, 1, &[2], 8, &[], 0));
    let mut bytes = file(two.to_vec());
    let warned = |bytes: &[u8]| {
        let warnings = open(bytes, false).unwrap().warnings().into_iter();
        let warnings = warnings.filter(|warning| warning.code == "ambiguous");
        warnings.filter_map(|warning| warning.object).collect::<Vec<_>>()
    };
    assert!(warned(&bytes).is_empty());
    // The data may begin at the end of the file.
    let end = bytes.len() as u64;
    bytes[92..100].copy_from_slice(&end.to_le_bytes());
    assert_eq!(warned(&bytes), ["norm.weight", "output.weight"]);
}

#[test]
fn an_overlap_is_the_fault_of_the_later_tensor() {
    let names = ["wq", "wk", "wv", "wo", "w1"].map(|name| format!("layers.0.{name}.weight"));
    let lengths: [usize; 5] = [32, 16, 8, 32, 16];
    let tensors = names.iter().zip(lengths);
    let tensors = tensors.map(|(name, len)| tensor(name, 1, &[len as u32], 4 * len, &[], 0));
    let mut bytes = file(tensors.collect());
    let place = |at: usize| 192 + 64 * at + 32;
    let offset = |bytes: &[u8], at: usize| {
        let (offset, _) = bytes[place(at)..].split_first_chunk().unwrap();
        u64::from_le_bytes(*offset)
    };
    // The second and third end where the first does; the last lies within the fourth.
    for (at, within, skip) in [(1, 0, 64), (2, 0, 96), (4, 3, 64)] {
        let moved = offset(&bytes, within) + skip;
        bytes[place(at)..place(at) + 8].copy_from_slice(&moved.to_le_bytes());
    }
    let file = open(&bytes, false).unwrap();
    for (name, other) in names.iter().zip([None, Some(0), Some(0), None, Some(3)]) {
        let error = file.tensor(name).err();
        assert_eq!(error.is_some(), other.is_some(), "{name}");
        if let (Some(error), Some(other)) = (error, other) {
            assert_eq!(error.code(), "overlap");
            assert!(error.message().contains(&*names[other]), "{error}");
        }
    }
}
