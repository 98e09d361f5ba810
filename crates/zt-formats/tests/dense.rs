//! `dense` objects and the elements in them.

use zt_formats::{
    AttributeFault, Buffer, Bytes, Complex, ComponentSignature, Dense, Elements, Error, F8E4M3Fn,
    F8E4M3FnUz, F8E5M2, F8E5M2FnUz, FormatViolation, IndexBound, Misuse, Registry, Scalar,
    Signature, SizeMismatch, ToObject, Unsupported, View, bf16, check_bools_from, f16,
};
use zt_manifest::{Attributes, DType};

/// The result of the registry's check of a dense object with this metadata.
fn check(
    shape: &[u64],
    dtype: DType,
    logical_type: Option<&str>,
    byte_len: Option<u64>,
) -> Result<(), &'static str> {
    let signature = Signature {
        shape,
        attributes: &Attributes::new(),
        components: vec![ComponentSignature {
            role: "data",
            dtype: Some(dtype),
            logical_type,
            byte_len,
        }],
    };
    let checked = Registry::builtin().check("dense", &signature);
    checked.map_err(|error| error.code())
}

/// With the registered types of this crate only.
#[test]
fn a_vector_of_bytes_becomes_elements() {
    let bytes: Vec<u8> = [1.0f32, 2.0].map(f32::to_le_bytes).concat();
    let elements = Elements::new(zt_formats::DType::F32, bytes);
    let dense = Dense::from_elements([2], elements).unwrap();
    assert_eq!(*dense.as_slice::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn data_has_exactly_the_bytes_of_the_shape() {
    let mismatch = Err("shape-size-mismatch");
    assert_eq!(check(&[2, 3], DType::F32, None, Some(24)), Ok(()));
    assert_eq!(check(&[2, 3], DType::F32, None, Some(23)), mismatch);
    assert_eq!(check(&[2, 3], DType::F32, None, Some(20)), mismatch);
    assert_eq!(check(&[2, 3], DType::F32, None, Some(28)), mismatch);
    assert_eq!(check(&[], DType::F64, None, Some(8)), Ok(()));
    assert_eq!(check(&[], DType::F64, None, Some(0)), mismatch);
    assert_eq!(check(&[0, 1 << 40, 1 << 40], DType::F64, None, Some(0)), Ok(()));
    assert_eq!(check(&[0], DType::F64, None, Some(8)), mismatch);
}

#[test]
fn refuses_sizes_that_wrap() {
    let mismatch = Err("shape-size-mismatch");
    assert_eq!(check(&[1 << 32, 1 << 32], DType::U8, None, Some(0)), mismatch);
    assert_eq!(check(&[(1 << 62) + 4], DType::F32, None, Some(16)), mismatch);
    assert_eq!(check(&[1 << 62], DType::F32, None, None), mismatch);
}

#[test]
fn a_missing_length_is_no_fault_and_follows_from_the_shape() {
    assert_eq!(check(&[2, 3], DType::F32, None, None), Ok(()));
    let registry = Registry::builtin();
    let signature = Signature {
        shape: &[2, 3],
        attributes: &Attributes::new(),
        components: vec![ComponentSignature {
            role: "data",
            dtype: Some(DType::I16),
            logical_type: None,
            byte_len: None,
        }],
    };
    let format = registry.format("dense").unwrap();
    assert_eq!(format.expected_len("data", &signature, &registry), Some(12));
    assert_eq!(format.expected_len("other", &signature, &registry), None);
}

#[test]
fn logical_types_count_values_and_have_their_own_dtype() {
    assert_eq!(check(&[3], DType::U8, Some("f8_e5m2"), Some(3)), Ok(()));
    assert_eq!(check(&[3], DType::F32, Some("complex64"), Some(24)), Ok(()));
    assert_eq!(check(&[3], DType::F32, Some("complex64"), Some(12)), Err("shape-size-mismatch"));
    assert_eq!(check(&[3], DType::F32, Some("complex128"), Some(24)), Err("logical-type"));
    assert_eq!(check(&[3], DType::F32, Some("f32"), Some(12)), Ok(()));
    assert_eq!(
        check(&[3], DType::F32, Some("f16"), Some(12)),
        Ok(()),
        "another dtype's name is an unknown logical type"
    );
}

#[test]
fn an_unknown_logical_type_leaves_its_storage_elements() {
    assert_eq!(check(&[9], DType::U16, Some("vendor.mx6"), Some(4)), Ok(()));
    assert_eq!(check(&[9], DType::U16, Some("vendor.mx6"), Some(5)), Err("shape-size-mismatch"));
    let elements = Elements::from(&[1u16, 2]).with_logical_type("vendor.mx6");
    let dense = Dense::from_elements([9], elements).unwrap();
    assert_eq!(*dense.as_slice::<u16>().unwrap(), [1, 2]);
    assert_eq!(dense.slice(&[]).unwrap_err().code(), "unsupported");
    let half = Elements::from(&[1u8, 2]).with_logical_type("acme.nib");
    let half = Dense::from_elements([2, 2], half).unwrap();
    let message = "the logical type \"acme.nib\" is not known here";
    assert_eq!(half.slice(&[0.into()]).unwrap_err().to_string(), message);
    assert_eq!(dense.to_f32().unwrap_err().code(), "unsupported");
    let scalars = dense.elements().scalars(&Registry::builtin()).unwrap();
    assert_eq!(scalars.last(), Some(Scalar::UInt(2)));
}

#[test]
fn a_partial_element_is_refused_by_every_read() {
    let registry = Registry::builtin();
    let elements = Elements::new(DType::F32, &[0; 5][..]);
    let words = "5 bytes are not a multiple of 4";
    for error in [
        elements.as_slice::<f32>().map(drop).unwrap_err(),
        elements.to_dtype(DType::F16, &registry).unwrap_err(),
        elements.scalars(&registry).map(drop).unwrap_err(),
    ] {
        assert_eq!((error.code(), &error.to_string()[..]), ("shape-size-mismatch", words));
        // The first role that is set stays.
        let error = error.with_role("scales").with_role("data");
        assert_eq!(error.role(), Some("scales"));
    }
}

#[test]
fn the_component_data_is_required() {
    let values = [1f32];
    let dense = Dense::from_slice(&[1], &values).unwrap();
    let mut object = dense.to_object().unwrap();
    object.components[0].0 = "DATA".into();
    let error = Dense::from_parts(object.into_parts()).unwrap_err();
    assert_eq!(error.code(), "missing-component");
    assert_eq!(error.role(), Some("data"));

    // A length may be missing, the dtype may not.
    let object = dense.to_object().unwrap();
    let mut signature = object.signature();
    signature.components[0].dtype = None;
    let error = Registry::builtin().check("dense", &signature).unwrap_err();
    let words = "component `data`: takes a dtype, not an unsaid dtype";
    assert_eq!(error.to_string(), words);
}

#[test]
fn aligned_elements_are_borrowed() {
    let words = [0u64; 4];
    let bytes: &[u8] = bytemuck::cast_slice(&words);
    let aligned = Elements::new(DType::F32, &bytes[..8]);
    let slice = aligned.as_slice::<f32>().unwrap();
    assert_eq!(slice.is_borrowed(), cfg!(target_endian = "little"));
    let misaligned = Elements::new(DType::F32, &bytes[1..9]);
    let slice = misaligned.as_slice::<f32>().unwrap();
    assert!(!slice.is_borrowed());
    assert_eq!(*slice, [0.0, 0.0]);
}

#[test]
fn typed_elements_outlive_their_handle() {
    let values = [1.5f64, -2.0];
    let typed = {
        let dense = Dense::from_slice(&[2], &values).unwrap();
        dense.into_typed::<f64>().unwrap()
    };
    assert_eq!(*typed, values);
    assert_eq!(typed.clone().into_vec(), values);
    assert_eq!((typed.as_ref(), &format!("{typed:?}")[..]), (&values[..], "[1.5, -2.0]"));
    assert_eq!(typed.try_into_vec().unwrap(), values);
    let dense = Dense::from_slice(&[2], &values).unwrap();
    assert_eq!(dense.into_elements(), (vec![2], Elements::from(&values)));
}

#[test]
fn elements_are_refused_as_another_type() {
    let elements = Elements::from(&[1u8, 2]);
    let error = elements.as_slice::<i8>().unwrap_err();
    let misuse = Misuse::ElementType { asked: "i8", dtype: DType::U8, logical_type: None };
    assert_eq!(error, misuse.into());
    assert_eq!(error.to_string(), "asked for i8, the elements are u8");
    let elements = Elements::from(&[F8E4M3Fn::MAX]);
    let error = elements.as_slice::<i8>().unwrap_err();
    assert_eq!(error.to_string(), "asked for i8, the elements are u8 of type f8_e4m3fn");
    assert_eq!(elements.as_slice::<F8E4M3Fn>().unwrap()[0].to_f32(), 448.0);
    assert!(elements.as_slice::<u8>().is_err());
    let values = [Complex::new(1f32, 2.0)];
    let elements = Elements::from(&values);
    assert_eq!(elements.element_count(), 2);
    assert!(elements.as_slice::<f32>().is_err());
    assert!(elements.as_slice::<Complex<f64>>().is_err());
}

#[test]
fn bools_are_zero_or_one() {
    let dense = Dense::from_elements([3], Elements::new(DType::Bool, &[0, 1, 1][..])).unwrap();
    assert_eq!(*dense.as_slice::<bool>().unwrap(), [false, true, true]);
    let owned = dense.into_owned().unwrap().into_typed::<bool>().unwrap();
    assert_eq!(*owned, [false, true, true]);
    assert_eq!(owned.clone().into_vec(), [false, true, true]);
    assert_eq!(owned.try_into_vec().unwrap(), [false, true, true]);

    let dense = Dense::from_elements([3], Elements::new(DType::Bool, &[0, 1, 2][..])).unwrap();
    let error = dense.as_slice::<bool>().unwrap_err();
    assert_eq!(error.code(), "bool-value");
    assert_eq!(error.role(), Some("data"));
    assert_eq!(error.to_string(), "component `data`: element 2 is 2, not 0 or 1");
    let registry = Registry::builtin();
    assert!(dense.elements().scalars(&registry).is_err());

    // Two equal bytes, whose bits would cancel out in a sum by xor.
    let dense = Dense::from_elements([3], Elements::new(DType::Bool, &[0, 2, 2][..])).unwrap();
    let error = dense.as_slice::<bool>().unwrap_err();
    assert_eq!(error.to_string(), "component `data`: element 1 is 2, not 0 or 1");
}

#[test]
fn floats_of_any_width_are_cast_to_any_other() {
    let registry = Registry::builtin();
    let values = [0.0f32, -0.0, 1.0, 0.1, 65504.0, 1e-8, f32::INFINITY];
    let dense = Dense::from_slice(&[7], &values).unwrap();
    let halves = dense.to_dtype(DType::F16, &registry).unwrap();
    let expected = values.map(f16::from_f32);
    assert_eq!(*halves.as_slice::<f16>().unwrap(), expected);
    let back = halves.to_f32().unwrap();
    assert_eq!(*back.as_slice::<f32>().unwrap(), expected.map(f16::to_f32));
    let brains = dense.to_dtype(DType::BF16, &registry).unwrap();
    let expected = values.map(bf16::from_f32);
    assert_eq!(*brains.as_slice::<bf16>().unwrap(), expected);
    let wide = brains.to_dtype(DType::F64, &registry).unwrap();
    assert_eq!(*wide.as_slice::<f64>().unwrap(), expected.map(bf16::to_f64));
    let codes = [F8E4M3Fn::MAX, F8E4M3Fn::from_f32(-0.5)];
    let fp8 = Dense::from_slice(&[2], &codes).unwrap();
    assert_eq!(*fp8.to_f32().unwrap().as_slice::<f32>().unwrap(), [448.0, -0.5]);
}

#[test]
fn long_arrays_are_cast_to_the_last_value() {
    let registry = Registry::builtin();
    // Values that all these types have, in several blocks. The last block is not whole.
    let values: Vec<f32> = (0u8..16).cycle().take(5000).map(f32::from).collect();
    let codes: Vec<F8E4M3Fn> = values.iter().copied().map(F8E4M3Fn::from_f32).collect();
    let narrow = Elements::from(&values);
    let wide = narrow.to_dtype(DType::F64, &registry).unwrap();
    for from in [narrow, wide, Elements::from(&codes)] {
        for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
            let cast = from.to_dtype(dtype, &registry).unwrap();
            let back: Vec<f64> =
                cast.scalars(&registry).unwrap().map(|scalar| scalar.as_f64().unwrap()).collect();
            let expected: Vec<f64> = values.iter().copied().map(f64::from).collect();
            assert_eq!(back, expected, "{} to {dtype}", from.dtype);
        }
    }
}

#[test]
fn typed_elements_are_equal_if_their_values_are() {
    let (one, two) = ([1u16, 2], [1u16, 3]);
    let (one, two) = (Elements::from(&one), Elements::from(&two));
    let (one, two) = (one.as_slice::<u16>().unwrap(), two.as_slice::<u16>().unwrap());
    assert_eq!(one, one.clone());
    assert_ne!(one, two);
}

#[test]
fn only_real_floats_are_cast() {
    let registry = Registry::builtin();
    let values = [Complex::new(1f64, 0.0)];
    for (elements, dtype, words) in [
        (Elements::from(&[1i32]), DType::F32, "i32 is not cast to f32"),
        (Elements::from(&values), DType::F32, "complex128 is not cast to f32"),
        (Elements::from(&[1f32]), DType::I32, "f32 is not cast to i32"),
    ] {
        let error = elements.to_dtype(dtype, &registry).unwrap_err();
        assert_eq!((error.code(), &error.to_string()[..]), ("unsupported", words));
    }
}

#[test]
fn values_come_one_by_one_with_their_precision() {
    let registry = Registry::builtin();
    let all =
        |elements: Elements<'_>| -> Vec<Scalar> { elements.scalars(&registry).unwrap().collect() };
    assert_eq!(all((&[i64::MIN]).into()), [Scalar::Int(i64::MIN)]);
    assert_eq!(all((&[u64::MAX]).into()), [Scalar::UInt(u64::MAX)]);
    assert_eq!(all((&[-1i8, 1]).into()), [Scalar::Int(-1), Scalar::Int(1)]);
    assert_eq!(all((&[true]).into()), [Scalar::Bool(true)]);
    assert_eq!(all((&[f16::ONE]).into()), [Scalar::F16(f16::ONE)]);
    let fp8 = [F8E4M3Fn::from_f32(0.5)];
    assert_eq!(all((&fp8).into()), [Scalar::F32(0.5)]);
    let fp8 = [F8E5M2::from_f32(-0.75)];
    assert_eq!(all((&fp8).into()), [Scalar::F32(-0.75)]);
    let fp8 = [F8E4M3FnUz::from_f32(240.0)];
    assert_eq!(all((&fp8).into()), [Scalar::F32(240.0)]);
    let fp8 = [F8E5M2FnUz::from_f32(-57344.0)];
    assert_eq!(all((&fp8).into()), [Scalar::F32(-57344.0)]);
    let complex = Complex::new(0.5, -2.0);
    assert_eq!(all((&[complex]).into()), [Scalar::Complex64(complex)]);
    let complex = Complex::new(1.0, -1.0);
    assert_eq!(all((&[complex]).into()), [Scalar::Complex128(complex)]);
    let elements = Elements::from(&[1u16, 2, 3]);
    let mut scalars = elements.scalars(&registry).unwrap();
    assert_eq!(scalars.len(), 3);
    assert_eq!(scalars.nth(1), Some(Scalar::UInt(2)));
    assert_eq!(scalars.len(), 1);
    let elements = Elements::new(DType::F32, Bytes::Borrowed(&[0; 5]));
    assert_eq!(elements.scalars(&registry).map(drop).unwrap_err().code(), "shape-size-mismatch");
}

#[test]
fn a_fold_gives_the_same_values_as_next() {
    let registry = Registry::builtin();
    let fp8 = [F8E4M3Fn::from_f32(-1.5), F8E4M3Fn::from_f32(2.0)];
    for elements in [
        Elements::from(&[-1.5f64, 2.0]),
        Elements::from(&[-1.5f32, 2.0]),
        Elements::from(&[-1.5, 2.0].map(f16::from_f32)),
        Elements::from(&[-1.5, 2.0].map(bf16::from_f32)),
        Elements::from(&[i64::MIN, 2]),
        Elements::from(&[i32::MIN, 2]),
        Elements::from(&[i16::MIN, 2]),
        Elements::from(&[i8::MIN, 2]),
        Elements::from(&[1u64 << 63, 2]),
        Elements::from(&[u32::MAX, 2]),
        Elements::from(&[u16::MAX, 2]),
        Elements::from(&[u8::MAX, 2]),
        Elements::from(&[true, false]),
        Elements::from(&fp8),
    ] {
        let scalars = elements.scalars(&registry).unwrap();
        let mut one_by_one = 0.0;
        for scalar in scalars.clone() {
            one_by_one += scalar.as_f64().unwrap();
        }
        let expected = match elements.dtype {
            DType::I64 => 2.0 - 2f64.powi(63),
            DType::I32 => 2.0 - 2f64.powi(31),
            DType::I16 => 2.0 - 2f64.powi(15),
            DType::I8 => 2.0 - 2f64.powi(7),
            DType::U64 => 2.0 + 2f64.powi(63),
            DType::U32 => 1.0 + 2f64.powi(32),
            DType::U16 => 1.0 + 2f64.powi(16),
            DType::U8 if elements.logical_type().is_none() => 1.0 + 2f64.powi(8),
            DType::Bool => 1.0,
            _ => 0.5,
        };
        let sum = scalars.fold(0.0, |sum, scalar| sum + scalar.as_f64().unwrap());
        assert_eq!((sum, one_by_one), (expected, expected), "{}", elements.dtype);
    }
}

#[test]
fn errors_other_than_broken_rules_have_plain_texts() {
    for (error, code, words) in [
        (
            Error::Unsupported(Unsupported::Format("acme.x/1".into())),
            "unsupported",
            "the format \"acme.x/1\" is not known here",
        ),
        (
            Error::Unsupported(Unsupported::LogicalType("acme.x".into())),
            "unsupported",
            "the logical type \"acme.x\" is not known here",
        ),
        (
            Error::Unsupported(Unsupported::BigEndian("gguf.iq1_s/1".into())),
            "unsupported",
            "the format \"gguf.iq1_s/1\" has no known big-endian form",
        ),
        (
            Error::Unsupported(Unsupported::Untyped { role: "mask".into() }),
            "unsupported",
            "component `mask`: the file does not say its dtype",
        ),
        (
            Buffer::try_zeroed(1 << 62).unwrap_err(),
            "allocation",
            "no memory for 4611686018427387904 bytes",
        ),
        (
            check_bools_from(1 << 40, &[1, 0, 2]).unwrap_err(),
            "bool-value",
            "element 1099511627778 is 2, not 0 or 1",
        ),
    ] {
        assert_eq!((error.code(), &error.to_string()[..]), (code, words));
    }
}

#[test]
fn broken_rules_have_plain_texts() {
    let logical_type = |expected| FormatViolation::LogicalType {
        name: "complex64".into(),
        expected,
        found: DType::U8,
    };
    let value = |bound| FormatViolation::IndexValue { position: 7, value: -1, bound };
    let attribute = |fault| FormatViolation::Attribute { name: "packing", fault };
    let dtype = |found| FormatViolation::DType { expected: "u8", found };
    for (violation, words) in [
        (
            SizeMismatch::Bytes { expected: 24, found: 23 }.into(),
            "the shape takes 24 bytes, there are 23",
        ),
        (
            SizeMismatch::Row { len: 33, multiple: 32 }.into(),
            "rows of 33 are not a multiple of the block, 32",
        ),
        (
            SizeMismatch::Rank { expected: 2, found: 3 }.into(),
            "takes 2 dimensions, the shape has 3",
        ),
        (FormatViolation::MissingComponent, "is missing, and the format requires it"),
        (FormatViolation::IndexDType { found: Some(DType::F32) }, "indices are u64, not f32"),
        (FormatViolation::IndexDType { found: None }, "indices are u64, not an unsaid dtype"),
        (dtype(Some(DType::Bool)), "takes u8, not bool"),
        (dtype(None), "takes u8, not an unsaid dtype"),
        (value(IndexBound::AtLeast(3)), "element 7 is -1, below the 3 before it"),
        (value(IndexBound::Exactly(0)), "element 7 is -1, not 0"),
        (value(IndexBound::Above(3)), "element 7 is -1, not above the 3 before it"),
        (logical_type(Some(DType::F32)), "the logical type complex64 is stored as f32, not u8"),
        (logical_type(None), "takes plain u8, not the logical type complex64"),
        (
            attribute(AttributeFault::Missing),
            "attribute `packing`: is missing, and the format requires it",
        ),
        (
            attribute(AttributeFault::Component { expected: DType::I32, found: DType::U8 }),
            "attribute `packing`: says i32, the component is u8",
        ),
    ] {
        assert_eq!(violation.to_string(), words);
    }
    assert_eq!(value(IndexBound::NotNegative).code(), "index-value");
}

#[test]
fn bytes_are_compared_by_content_and_printed_by_length() {
    let lent = Bytes::Borrowed(b"abc");
    let owned = Bytes::Owned(Buffer::try_from_slice(b"abc").unwrap());
    assert_eq!(lent, owned);
    assert_ne!(lent, Bytes::Borrowed(b"abd"));
    assert!(lent.is_borrowed() && !owned.is_borrowed());
    assert_eq!(format!("{lent:?} {owned:?}"), "Borrowed(3 bytes) Owned(3 bytes)");
    let buffer = owned.into_owned().unwrap();
    assert_eq!(buffer, buffer.clone());
    assert_ne!(buffer, Buffer::default());
    assert_eq!(format!("{buffer:?} {:?}", Buffer::default()), "Buffer(3 bytes) Buffer(0 bytes)");
    let both: [&dyn AsRef<[u8]>; 2] = [&buffer, &lent];
    assert!(both.iter().all(|bytes| bytes.as_ref() == b"abc"));
}
