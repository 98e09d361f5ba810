//! The header of a file, as `layout` writes it and `Header` reads it.

use zt::formats::PackedType;
use zt::{DType, ErrorKind, Memory};
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

const NAMES: [&str; 22] = [
    "BOOL",
    "F4",
    "F6_E2M3",
    "F6_E3M2",
    "U8",
    "I8",
    "F8_E5M2",
    "F8_E4M3",
    "F8_E8M0",
    "F8_E4M3FNUZ",
    "F8_E5M2FNUZ",
    "I16",
    "U16",
    "F16",
    "BF16",
    "I32",
    "U32",
    "F32",
    "C64",
    "F64",
    "I64",
    "U64",
];

#[test]
fn names_and_meanings_identify_their_dtype() {
    let all = NAMES.map(|name| Dtype::from_name(name).unwrap());
    assert!(all.is_sorted());
    assert_eq!(all.map(Dtype::as_str), NAMES);
    for name in ["f32", "F33", "", "F32 ", "BFLOAT16"] {
        assert_eq!(Dtype::from_name(name), None);
    }
    let packed = [PackedType::F4E2M1Fn, PackedType::F6E2M3Fn, PackedType::F6E3M2Fn];
    for (packed, dtype) in packed.into_iter().zip([Dtype::F4, Dtype::F6E2M3, Dtype::F6E3M2]) {
        assert_eq!(Dtype::from_packed(packed), Some(dtype));
        assert_eq!(dtype.byte_len(&[8]).unwrap(), u64::from(packed.bits()));
    }
    let plain = NAMES.iter().filter(|name| !name.contains('_') && !["F4", "C64"].contains(name));
    for dtype in plain.filter_map(|name| Dtype::from_name(name)) {
        let own = DType::from_name(&dtype.as_str().to_lowercase()).unwrap();
        assert_eq!(Dtype::from_types(own, None), Some(dtype));
        assert_eq!(dtype.byte_len(&[1]).unwrap(), own.byte_len() as u64);
    }
    for (dtype, own, logical) in [
        (Dtype::F8E5M2, DType::U8, "f8_e5m2"),
        (Dtype::F8E4M3, DType::U8, "f8_e4m3fn"),
        (Dtype::F8E8M0, DType::U8, "f8_e8m0fnu"),
        (Dtype::F8E4M3FnUz, DType::U8, "f8_e4m3fnuz"),
        (Dtype::F8E5M2FnUz, DType::U8, "f8_e5m2fnuz"),
        (Dtype::C64, DType::F32, "complex64"),
    ] {
        assert_eq!(Dtype::from_types(own, Some(logical)), Some(dtype));
    }
}

#[test]
fn sizes_are_counted_in_bits_and_in_order() {
    assert_eq!(Dtype::F4.byte_len(&[2, 8]).unwrap(), 8);
    assert_eq!(Dtype::F6E2M3.byte_len(&[4]).unwrap(), 3);
    assert_eq!(Dtype::F32.byte_len(&[]).unwrap(), 4);
    assert_eq!(Dtype::F32.byte_len(&[0, 1 << 63, 4]).unwrap(), 0);
    let partial = Dtype::F4.byte_len(&[3]);
    assert!(matches!(partial, Err(SafetensorsViolation::PartialByte { .. })));
    for (dtype, shape) in [(Dtype::F32, &[1 << 63, 4, 0][..]), (Dtype::U8, &[1 << 61])] {
        let overflow = dtype.byte_len(shape);
        assert!(matches!(overflow, Err(SafetensorsViolation::Overflow { .. })));
    }
}
