//! Arrays of NumPy, written from other kinds.
#![cfg(all(feature = "npy", feature = "safetensors"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use zt::{DType, Memory, OpenOptions, Warning};
use zt_convert::{ConvertOptions, Kinds, NPZ};

/// NumPy lacks bf16 and FP8; f32 represents all of their values.
#[test]
fn types_that_numpy_lacks_are_widened_exactly_with_a_warning() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/foreign");
    let path = corpus.join("safetensors/torch_dtypes.safetensors");
    let input = Kinds::builtin().open(&path, OpenOptions::new()).unwrap();
    let (mut bytes, options) = (Vec::new(), ConvertOptions::new(NPZ));
    let summary =
        Kinds::builtin().convert(std::slice::from_ref(&input), &mut bytes, &options).unwrap();
    assert!(summary.warnings.iter().all(|warning| warning.code == "lossy"));
    let written = zt_convert::open_source(Memory::new(bytes)).unwrap();
    assert_eq!(written.len(), input.file().len());
    let mut widened = 0;
    for entry in input.file().entries() {
        let (ours, theirs) = (entry.tensor().unwrap(), written.tensor(entry.name()).unwrap());
        let data = ours.component("data").unwrap();
        let is_known = data.dtype != Some(DType::BF16)
            && data.logical_type.as_deref().is_none_or(|name| name == "complex64");
        if is_known {
            assert_eq!(*ours.bytes("data").unwrap(), *theirs.bytes("data").unwrap());
            continue;
        }
        widened += 1;
        let dense = ours.to_dense().unwrap().to_f32().unwrap();
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let found = theirs.values::<f32>().unwrap();
        assert_eq!(bits(&found), bits(&dense.as_slice::<f32>().unwrap()));
        let is_named = |warning: &Warning| warning.object.as_deref() == Some(entry.name());
        assert!(summary.warnings.iter().any(is_named), "{}", entry.name());
    }
    assert_eq!(widened, 5);
}
