//! Faults of other readers, such as `ztensor` 1.2.3 and 2.1, on files from each kind's own library.
//! Each fault is a test here: `never::` and the fault.
//!
//! | kind | fault | test |
//! | --- | --- | --- |
//! | safetensors | one FP8, F4 or complex tensor closes the whole file (1.2.3, 2.1) | `one_strange_tensor_closes_a_safetensors_file` |
//! | safetensors | `__metadata__` is dropped (1.2.3) | `the_metadata_of_safetensors_is_dropped` |
//! | npz, npy | `>f4` is returned unswapped (1.2.3) | `big_endian_arrays_come_back_unswapped` |
//! | npz, npy | Fortran order comes back transposed (1.2.3) or is refused (2.1) | `fortran_order_comes_back_transposed` |
//! | npz | one complex or string member closes the whole file (1.2.3) | `one_strange_member_closes_an_npz_file` |
//! | npz, npy | arrays of no dimensions become `[1]` (1.2.3, from Python) | `scalars_become_vectors` |
//! | npy | a file of one array is not recognised (2.1) | `a_single_array_is_not_recognised` |
//! | onnx | varints of typed fields are taken for fixed widths (1.2.3) | `typed_integers_of_onnx_are_taken_for_fixed_widths` |
//! | onnx | external data is refused (1.2.3, 2.1) | `external_data_of_onnx_is_refused` |
//! | onnx | one FP8, INT4 or string tensor closes the whole model (1.2.3) | `one_strange_tensor_closes_an_onnx_model` |
//! | onnx | values are copied when the model is opened (2.1) | `opening_an_onnx_model_reads_its_values` |
//! | all | an output that is an input destroys it (2.1) | `output.rs`: `an_input_is_never_overwritten` |
//! | all | a conversion that fails leaves a stub behind (1.2.3) | `output.rs`: `a_failure_leaves_neither_output_nor_temporary_file` |
//! | all | the extension decides the kind of a file (1.2.3) | `output.rs`: `kinds_are_recognised_by_bytes_and_not_by_names` |
//!
//! GGUF has its own in `gguf.rs`.
#![cfg(all(feature = "npy", feature = "onnx", feature = "safetensors"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value as Json;
use zt::{File, HashOptions, Memory, Signature, Source};
use zt_convert::{NPY, ONNX};

fn path(kind: &str, name: &str) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/foreign");
    corpus.join(kind).join(format!("{name}.{kind}"))
}

fn truth(kind: &str, name: &str) -> Json {
    let path = path(kind, name).with_extension("json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Opens a file and checks the shape, type and values of every object in its JSON. Returns the file
/// with the objects that may be refused.
fn right(kind: &str, name: &str) -> (File, Vec<String>) {
    let file = zt_convert::open(path(kind, name)).unwrap();
    let truth = truth(kind, name);
    let options = HashOptions::new();
    let hashes = file.hash(&options).unwrap().objects;
    for (name, truth) in truth["objects"].as_object().unwrap() {
        let tensor = file.tensor(name).unwrap();
        let shape: Vec<u64> = serde_json::from_value(truth["shape"].clone()).unwrap();
        assert_eq!(tensor.shape(), shape, "{name}");
        let data = tensor.component("data").unwrap();
        assert_eq!(data.dtype.unwrap().as_str(), truth["dtype"], "{name}");
        let signature = Signature::of(tensor.object());
        let found = file.registry().value_type(tensor.format(), &signature);
        let expected = truth["type"].as_str().or(truth["dtype"].as_str());
        assert_eq!(found.as_deref(), expected, "{name}");
        let (_, hash) = hashes.iter().find(|(found, _)| found == name).unwrap();
        let (_, stored) = &hash.as_ref().unwrap().components[0];
        let sum: String = stored.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sum, truth["sha256"], "{name}");
    }
    let refused = truth["refused"].as_object().into_iter().flatten();
    (file, refused.map(|(name, _)| name.clone()).collect())
}

/// Whether the file has elements of this type.
fn has_type(file: &File, name: &str) -> bool {
    let entries = file.entries();
    let mut objects = entries.iter().filter_map(|entry| entry.object().ok());
    objects.any(|object| {
        let data = object.component("data").unwrap();
        data.logical_type.as_deref() == Some(name)
    })
}

/// Counts the bytes that are read.
struct Counted {
    bytes: Vec<u8>,
    read: Arc<AtomicU64>,
}

impl Source for Counted {
    fn byte_len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.read.fetch_add(buf.len() as u64, Ordering::Relaxed);
        Memory::new(&self.bytes).read_at(offset, buf)
    }
}

/// Faults of other readers, which this one does not have.
mod never {
    use super::*;

    #[test]
    fn one_strange_tensor_closes_a_safetensors_file() {
        let (file, _) = right("safetensors", "torch_dtypes");
        for name in ["f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz", "complex64"] {
            assert!(has_type(&file, name), "{name}");
        }
        for name in ["torch_f4", "torch_e8m0", "f6"] {
            right("safetensors", name);
        }
    }

    #[test]
    fn the_metadata_of_safetensors_is_dropped() {
        for name in ["numpy_dtypes", "torch_dtypes", "no_tensors", "model_tied"] {
            let (file, _) = right("safetensors", name);
            let attributes = file.attributes().unwrap().unwrap();
            let truth = truth("safetensors", name);
            let truth = truth["attributes"].as_object().unwrap();
            assert_eq!(attributes.len(), truth.len());
            for (key, value) in truth {
                assert_eq!(attributes.get(key).unwrap().as_str(), value.as_str(), "{key}");
            }
        }
    }

    #[test]
    fn big_endian_arrays_come_back_unswapped() {
        let dtypes = ["f16", "f32", "f64", "i16", "i32", "i64", "u16", "u32", "u64"];
        for name in dtypes.into_iter().chain(["complex64", "complex128"]) {
            let name = format!("dtype_big_{name}");
            // The descr of the file shows that the case tests its subject.
            assert!(fs::read(path("npy", &name)).unwrap()[10..].starts_with(b"{'descr': '>"));
            right("npy", &name);
        }
        right("npz", "stored");
        right("npz", "compressed");
    }

    #[test]
    fn fortran_order_comes_back_transposed() {
        for name in ["fortran_2d", "fortran_3d", "fortran_big_3d", "transposed"] {
            let bytes = fs::read(path("npy", name)).unwrap();
            let is_fortran = bytes.windows(23).any(|text| text == b"'fortran_order': True, ");
            assert!(is_fortran, "{name}");
            right("npy", name);
        }
    }

    #[test]
    fn one_strange_member_closes_an_npz_file() {
        let (file, _) = right("npz", "stored");
        assert!(has_type(&file, "complex64") && has_type(&file, "complex128"));
        for name in ["refused_members", "refused_members_compressed"] {
            let (file, refused) = right("npz", name);
            assert!(!refused.is_empty());
            let warnings = file.warnings();
            let is_other = |name: &str| {
                let mut others = warnings.iter().filter(|it| it.code == "not-tensor");
                others.any(|it| it.object.as_deref() == Some(name))
            };
            for name in refused {
                let code = file.tensor(&name).unwrap_err().code();
                let expected = if is_other(&name) { "not-found" } else { "dtype" };
                assert_eq!(code, expected, "{name}");
            }
        }
    }

    #[test]
    fn scalars_become_vectors() {
        for name in ["scalar", "scalar_big"] {
            let (file, _) = right("npy", name);
            let entries = file.entries();
            assert_eq!(entries[0].tensor().unwrap().shape().len(), 0);
        }
        let (file, _) = right("onnx", "shapes");
        assert_eq!(file.tensor("zero_d.typed").unwrap().shape().len(), 0);
    }

    #[test]
    fn a_single_array_is_not_recognised() {
        let bytes = fs::read(path("npy", "version_1")).unwrap();
        let file = zt_convert::open_source(Memory::new(bytes)).unwrap();
        assert_eq!(file.kind(), NPY);
    }

    #[test]
    fn typed_integers_of_onnx_are_taken_for_fixed_widths() {
        let (file, _) = right("onnx", "typed_dtypes");
        // 19 types: int32_data alone holds thirteen of them.
        assert_eq!(file.len(), 19);
        right("onnx", "not_packed");
    }

    #[test]
    fn external_data_of_onnx_is_refused() {
        for name in ["external", "external_dot", "external_library"] {
            right("onnx", name);
        }
    }

    #[test]
    fn one_strange_tensor_closes_an_onnx_model() {
        let (file, _) = right("onnx", "raw_dtypes");
        for name in ["f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz"] {
            assert!(has_type(&file, name), "{name}");
        }
        let (file, refused) = right("onnx", "refused");
        assert_eq!(refused.len(), 2);
        assert_eq!(file.tensor("text").unwrap_err().code(), "not-found");
    }

    #[test]
    fn opening_an_onnx_model_reads_its_values() {
        // Both have a name, a data type and a million values: in raw_data and in int32_data.
        let count = 1u32 << 20;
        let length = b"\x80\x80\x40"; // 2^20
        let tensor = |name: u8, field: u8| {
            let start =
                [&b"\x08"[..], length, b"\x10\x02\x42\x01", &[name, field << 3 | 2], length];
            [start.concat(), vec![1; count as usize]].concat()
        };
        let field = |key: u8, content: Vec<u8>| {
            let len = u32::try_from(content.len()).unwrap();
            let mut bytes = vec![key << 3 | 2];
            bytes.extend([0, 7, 14].map(|shift| (len >> shift).to_le_bytes()[0] | 0x80));
            bytes.push((len >> 21).to_le_bytes()[0]);
            [bytes, content].concat()
        };
        let graph = [field(5, tensor(b'r', 9)), field(5, tensor(b't', 5))].concat();
        let bytes = [b"\x08\x09".to_vec(), field(7, graph)].concat();

        let read = Arc::new(AtomicU64::new(0));
        let source = Counted { bytes, read: Arc::clone(&read) };
        let file = zt_convert::open_source(source).unwrap();
        assert_eq!((file.kind(), file.len()), (ONNX, 2));
        let opened = read.swap(0, Ordering::Relaxed);
        assert!(opened < 32 << 10, "{opened} bytes are read to open it");
        for name in ["r", "t"] {
            let values = file.tensor(name).unwrap().to_vec::<u8>().unwrap();
            assert_eq!(values, vec![1; count as usize]);
        }
        assert!(read.load(Ordering::Relaxed) >= 2 << 20);
    }
}
