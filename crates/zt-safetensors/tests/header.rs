//! The header of a file, as `layout` writes it and `Header` reads it.

use zt::{ErrorKind, Memory};
use zt_safetensors::{Dtype, Header, SafetensorsViolation, TensorInfo, layout};

fn entry<'t>(name: &'t str, dtype: Dtype, shape: &'t [u64]) -> TensorInfo<'t> {
    TensorInfo { name, dtype, shape }
}

#[test]
fn tensors_are_laid_out_by_alignment_and_then_by_name() {
    let mut entries = [
        entry("b", Dtype::F4, &[2, 3]),
        entry("c", Dtype::F32, &[]),
        entry("a", Dtype::F32, &[0, 3]),
    ];
    let metadata = [("format".to_owned(), "pt".to_owned())];
    let mut file = layout(Some(&metadata), &mut entries).unwrap();
    assert!(file.len().is_multiple_of(8));
    file.extend([0; 4 + 3]);

    let header = Header::read(&Memory::new(file)).unwrap();
    let names = |tensors: &mut dyn Iterator<Item = &zt_safetensors::Tensor>| {
        tensors.map(|tensor| tensor.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut header.tensors().iter()), ["a", "c", "b"]);
    assert_eq!(names(&mut header.by_name()), ["a", "b", "c"]);
    assert_eq!(header.tensor("b").unwrap().dtype, Dtype::F4);
    assert_eq!(header.tensor("b").unwrap().span.byte_len(), 3);
    assert!(header.tensor("d").is_none());
    assert_eq!(header.metadata().unwrap(), metadata);
}

#[test]
fn a_tensor_named_like_the_metadata_is_refused() {
    let error = layout(None, &mut [entry("__metadata__", Dtype::U8, &[1])]).unwrap_err();
    assert_eq!(error.code(), "lossy");
    assert_eq!(error.object(), Some("__metadata__"));
}

#[test]
fn a_shape_that_overflows_is_refused() {
    let error = layout(None, &mut [entry("w", Dtype::F64, &[1 << 62])]).unwrap_err();
    assert_eq!((error.code(), error.object()), ("lossy", Some("w")));
}

#[test]
fn an_error_names_the_rule_that_the_file_breaks() {
    let error = Header::read(&Memory::new([0u8; 4])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    let violation = error.inner().and_then(|inner| inner.downcast_ref());
    assert!(matches!(violation, Some(SafetensorsViolation::TooShort { byte_len: 4 })));
}
