//! PyTorch: sets of files, and what other readers of pickles got wrong.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(all(feature = "pytorch", feature = "safetensors"))]

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zt::{ErrorKind, File, FileSource, OpenOptions, VerifyOptions};
use zt_convert::{ConvertOptions, Input, InputOptions, Kinds, PICKLE, PYTORCH};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus")
}

fn opened(name: &str) -> File {
    zt_convert::open(corpus().join(name)).unwrap()
}

/// A folder with these files of the corpus, and an index of these tensors.
fn set(files: &[(&str, &str)], map: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in files {
        fs::copy(corpus().join(from), folder.path().join(to)).unwrap();
    }
    let entry = |(tensor, file): &(&str, &str)| ((*tensor).to_owned(), (*file).into());
    let map: serde_json::Map<_, _> = map.iter().map(entry).collect();
    let path = folder.path().join("pytorch_model.bin.index.json");
    fs::write(&path, serde_json::json!({"weight_map": map}).to_string()).unwrap();
    (folder, path)
}

#[test]
fn an_index_of_bin_files_opens_as_one_file() {
    let path = corpus().join("torch/sharded/pytorch_model.bin.index.json");
    let index = FileSource::open(&path).unwrap();
    assert_eq!(Kinds::builtin().detect(&index).unwrap(), Some(PYTORCH));
    let input = zt_convert::Kinds::builtin().open(&path, OpenOptions::new()).unwrap();
    assert_eq!((input.file().kind(), input.paths().len()), (PYTORCH, 3));
    assert!(input.file().warnings().is_empty());
}

#[test]
fn a_fault_in_a_shard_is_that_of_its_object() {
    let (_folder, path) = set(
        &[("torch/layouts.pt", "1.bin"), ("foreign/pt/small.pt", "2.bin")],
        &[("dense", "1.bin"), ("batched", "1.bin")],
    );
    let file = zt_convert::open(path).unwrap();
    assert_eq!(
        *file.tensor("dense").unwrap().values::<f32>().unwrap(),
        [1.0, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0]
    );
    let error = file.tensor("batched").unwrap_err();
    assert_eq!((error.kind(), error.object()), (ErrorKind::Unsupported, Some("batched")));
}

#[test]
fn shards_are_of_one_kind_and_no_sets_themselves() {
    let index = "torch/sharded/pytorch_model.bin.index.json";
    for other in ["foreign/gguf/no_tensors.gguf", index] {
        let (_folder, path) = set(
            &[("torch/keys.pt", "1.bin"), (other, "2.bin")],
            &[("a.b", "1.bin"), ("w", "2.bin")],
        );
        let error = zt_convert::open(path).unwrap_err();
        assert!(["header", "unsupported"].contains(&error.code()), "{error}");
    }
}

/// One tensor under two names kept the first name only (ztensor 2.1).
#[test]
fn tied_tensors_keep_every_name_and_share_their_bytes() {
    let file = opened("foreign/pt/tied.pt");
    let listed: Vec<_> = file.names().collect();
    assert!(listed.len() > 2);
    let entries = file.entries();
    let mut spans: Vec<_> = entries
        .iter()
        .map(|entry| entry.object().unwrap().component("data").unwrap().blob.span)
        .collect();
    spans.sort_by_key(|span| (span.offset(), span.byte_len()));
    let count = spans.len();
    spans.dedup();
    assert!(spans.len() < count);
}

/// Integer keys of an optimizer collided, and a dict of parameters had no tensors (ztensor 2.1).
#[test]
fn optimizers_and_parameters_list_every_tensor() {
    let file = opened("torch/lightning.pt");
    for name in ["0.exp_avg", "3.exp_avg_sq", "1.step"] {
        let name = format!("optimizer_states.0.state.{name}");
        assert!(file.tensor(&name).is_ok(), "{name}");
    }
    let parameters = opened("foreign/pt/parameters.pt");
    let entries = parameters.entries();
    assert!(entries.len() > 1 && entries.iter().all(|entry| entry.fault().is_none()));
}

/// Strides were ignored, so that a transposed matrix read as another (ztensor 1.2), or refused the
/// file (2.1).
#[test]
fn a_transposed_matrix_reads_as_it_is() {
    let file = opened("torch/layouts.pt");
    let transposed = file.tensor("last").unwrap();
    assert_eq!(transposed.shape(), [4, 2]);
    let values = transposed.values::<f32>().unwrap();
    assert_eq!(*values, [1.0, 0.0, 0.0, 3.0, 2.0, 0.0, 0.0, 0.0]);
}

/// A negative offset ended the process (ztensor 1.2).
#[test]
fn a_negative_offset_is_a_fault_of_its_tensor() {
    let file = opened("foreign/pt/bad_tensor_offset_negative.pt");
    let report = file.verify(&VerifyOptions::default()).unwrap();
    assert!(!report.is_ok());
    assert!(report.problems.iter().all(|error| error.kind() == ErrorKind::Malformed));
}

/// Older streams, FP8 and u16 to u64 were not read (ztensor 1.2 and 2.1).
#[test]
fn every_generation_and_type_is_read() {
    for name in ["legacy_dtypes", "dtypes"] {
        let file = opened(&format!("foreign/pt/{name}.pt"));
        let report = file.verify(&VerifyOptions::default()).unwrap();
        assert!(report.is_ok() && report.objects > 10, "{name}");
    }
}

#[test]
fn an_array_of_numpy_is_a_tensor() {
    let file = opened("torch/numpy_protocol_2.pt");
    let steps = file.tensor("steps").unwrap();
    assert_eq!(steps.shape(), [2, 3]);
    assert_eq!(steps.to_vec::<i32>().unwrap(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn an_archive_of_torchscript_says_that_its_code_is_not_read() {
    for (name, is_script) in [("script", true), ("script_constants", true), ("keys", false)] {
        let file = opened(&format!("torch/{name}.pt"));
        let codes: Vec<_> = file.warnings().iter().map(|warning| warning.code).collect();
        assert_eq!(codes == ["torchscript"], is_script, "{name}: {codes:?}");
    }
}

#[test]
fn a_pickle_of_plain_values_is_a_sound_file_without_tensors() {
    let plain = opened("torch/plain_pickle.pt");
    assert_eq!((plain.kind(), plain.len()), (PICKLE, 0));
    assert!(plain.warnings().is_empty());
}

#[test]
fn a_whole_module_has_its_parameters_and_a_warning() {
    let whole = opened("torch/whole_module_legacy.pt");
    assert_eq!(whole.warnings()[0].code, "unknown-class");
    assert!(whole.tensor("_parameters.weight").is_ok());
}

/// Of one byte there is one order, whatever the archive says of all.
#[test]
fn elements_of_several_bytes_are_in_the_order_of_the_archive() {
    use zt::manifest::ByteOrder;
    let file = opened("foreign/pt/big_endian.pt");
    for (name, order) in [("w", ByteOrder::Big), ("h", ByteOrder::Big), ("b", ByteOrder::Little)] {
        let tensor = file.tensor(name).unwrap();
        assert_eq!(tensor.component("data").unwrap().byte_order, order);
    }
}

/// The archive with the bytes at `at` changed, and with every CRC-32 as 0 if there are `no_sums`.
fn changed(name: &str, member: &str, no_sums: bool) -> File {
    let mut bytes = fs::read(corpus().join(name)).unwrap();
    let records = |signature: &[u8; 4]| {
        let places = bytes.windows(4).enumerate().filter(|(_, it)| it == signature);
        places.map(|(at, _)| at).collect::<Vec<_>>()
    };
    let (local, central) = (records(b"PK\x03\x04"), records(b"PK\x01\x02"));
    let content = local.into_iter().find_map(|at| {
        let len = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let name_end = at + 30 + len(at + 26);
        bytes[at + 30..name_end].ends_with(member.as_bytes()).then(|| name_end + len(at + 28))
    });
    bytes[content.unwrap()] ^= 1;
    for record in central.into_iter().filter(|_| no_sums) {
        bytes[record + 16..record + 20].fill(0);
    }
    let input = Kinds::builtin().open_source(zt::Memory::new(bytes), InputOptions::new());
    input.unwrap().into_file()
}

#[test]
fn verification_compares_the_checksums_of_the_archive() {
    let codes = |file: &File| {
        let report = file.verify(&VerifyOptions::new()).unwrap();
        report.problems.iter().map(|it| it.code().to_owned()).collect::<Vec<_>>()
    };
    let whole = opened("torch/narrow.pt");
    assert!(whole.verify(&VerifyOptions::new()).unwrap().unverified.is_empty());
    // Views that are a part of a storage, or in another order, count, too.
    for name in ["narrow", "layouts", "storages", "script"].map(|it| format!("torch/{it}.pt")) {
        let member = "data/0";
        let found = codes(&changed(&name, member, false));
        let known = |code: &String| codes(&opened(&name)).contains(code);
        let mut new = found.iter().filter(|code| !known(code)).peekable();
        assert!(new.peek().is_some() && new.all(|it| it == "digest-mismatch"), "{found:?}");
        let unsummed = changed(&name, member, true);
        assert!(!codes(&unsummed).iter().any(|code| code == "digest-mismatch"), "{name}");
        assert!(!unsummed.verify(&VerifyOptions::new()).unwrap().unverified.is_empty());
    }
}

#[test]
fn a_pickle_with_another_checksum_is_a_warning_and_a_problem_of_verification() {
    let mut bytes = fs::read(corpus().join("torch/narrow.pt")).unwrap();
    let record = bytes.windows(4).position(|it| it == b"PK\x01\x02").unwrap();
    bytes[record + 16] ^= 1;
    let input = Kinds::builtin().open_source(zt::Memory::new(bytes), InputOptions::new());
    let file = input.unwrap().into_file();
    assert_eq!(file.warnings()[0].code, "digest-mismatch");
    for options in [VerifyOptions::new(), VerifyOptions::new().strict(true)] {
        let report = file.verify(&options).unwrap();
        let found = report.problems.iter().filter(|it| it.code() == "digest-mismatch");
        assert_eq!(found.count(), 1);
    }
}

/// transformers before 4.46 loads no safetensors file without the format.
#[test]
fn safetensors_made_of_a_file_of_torch_have_its_format() {
    let mut bytes = Vec::new();
    let input = Input::from(opened("torch/narrow.pt"));
    let options = ConvertOptions::new(zt_convert::SAFETENSORS).lossy(true);
    Kinds::builtin().convert(&[input], &mut bytes, &options).unwrap();
    let input = Kinds::builtin().open_source(zt::Memory::new(bytes), InputOptions::new());
    let attributes = input.unwrap().file().attributes().unwrap().unwrap();
    assert_eq!(attributes.get("format").and_then(|it| it.as_str()), Some("pt"));
}
