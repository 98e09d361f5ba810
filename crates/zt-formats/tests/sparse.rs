//! `sparse_csr` and `sparse_coo`: the faults that they refuse, with their positions.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

use zt_formats::{
    Complex, ComponentSignature, Coo, Csr, Elements, Error, FormatViolation, IndexBound,
    ObjectFormat, Parts, Places, Registry, Signature, ToObject, View, indices,
};
use zt_manifest::{Attributes, DType, Value};

fn csr(shape: [u64; 2], values: &[f32], indices: &[u64], indptr: &[u64]) -> Result<(), Error> {
    Csr::new(shape, values, indices, indptr).map(drop)
}

fn coo(shape: &[u64], values: &[f32], coords: &[u64]) -> Result<(), Error> {
    Coo::new(shape, values, coords).map(drop)
}

/// The code and the role of an expected error.
fn blame<T>(result: Result<T, Error>) -> (&'static str, Option<String>) {
    let error = result.map(drop).unwrap_err();
    (error.code(), error.role().map(str::to_owned))
}

fn on(code: &'static str, role: &str) -> (&'static str, Option<String>) {
    (code, Some(role.to_owned()))
}

fn index_fault(position: u64, value: i128, bound: IndexBound, role: &'static str) -> Error {
    FormatViolation::IndexValue { position, value, bound }.of(role)
}

/// The parts of [[0, 5, 0], [7, 0, 8]].
fn csr_parts() -> Parts<'static> {
    let csr = Csr::new([2, 3], &[5f32, 7.0, 8.0], &[1, 0, 2], &[0, 1, 3]).unwrap();
    let parts = csr.to_object().unwrap().into_parts();
    parts.into_owned().unwrap()
}

/// The same parts with other elements in one role.
fn with<'a>(mut parts: Parts<'a>, role: &'static str, elements: Elements<'a>) -> Parts<'a> {
    parts.take(role).unwrap();
    parts.elements.push((role.into(), elements));
    parts
}

#[test]
fn csr_lengths_follow_from_the_shape_and_each_other() {
    assert_eq!(csr([2, 3], &[5.0], &[1], &[0, 1, 1]), Ok(()));
    assert_eq!(csr([0, 5], &[], &[], &[0]), Ok(()));
    let mismatch = "shape-size-mismatch";
    assert_eq!(blame(csr([2, 3], &[5.0], &[1], &[0, 1])), on(mismatch, "indptr"));
    assert_eq!(blame(csr([2, 3], &[5.0], &[1], &[0, 1, 1, 1])), on(mismatch, "indptr"));
    assert_eq!(blame(csr([2, 3], &[5.0], &[1, 2], &[0, 1, 1])), on(mismatch, "indices"));
    assert_eq!(blame(csr([u64::MAX, 3], &[], &[], &[0])), on(mismatch, "indptr"));
    let mut parts = csr_parts();
    parts.shape = vec![2, 3, 1].into();
    assert_eq!(blame(Csr::from_parts(parts)), (mismatch, None));
}

#[test]
fn csr_needs_all_of_its_components() {
    for role in ["values", "indices", "indptr"] {
        let mut parts = csr_parts();
        parts.take(role).unwrap();
        assert_eq!(blame(Csr::from_parts(parts)), on("missing-component", role));
    }
}

#[test]
fn csr_pointers_rise_from_zero_to_the_number_of_values() {
    assert_eq!(
        csr([2, 3], &[5.0], &[1], &[1, 1, 1]),
        Err(index_fault(0, 1, IndexBound::Exactly(0), "indptr"))
    );
    assert_eq!(
        csr([2, 3], &[5.0, 6.0], &[1, 2], &[0, 2, 1]),
        Err(index_fault(2, 1, IndexBound::AtLeast(2), "indptr"))
    );
    assert_eq!(
        csr([2, 3], &[5.0], &[1], &[0, 1, 2]),
        Err(index_fault(2, 2, IndexBound::Exactly(1), "indptr"))
    );
    assert_eq!(
        csr([2, 3], &[5.0], &[1], &[0, u64::MAX, 1]),
        Err(index_fault(2, 1, IndexBound::AtLeast(u64::MAX), "indptr"))
    );
}

#[test]
fn csr_columns_lie_within_the_shape() {
    assert_eq!(
        csr([2, 3], &[5.0, 6.0], &[2, 3], &[0, 1, 2]),
        Err(index_fault(1, 3, IndexBound::Below(3), "indices"))
    );
    let error = csr([1, 3], &[5.0], &[1 << 63], &[0, 1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "component `indices`: element 0 is 9223372036854775808, not in 0..3"
    );
}

#[test]
fn indices_of_any_integer_dtype_are_read_and_only_u64_is_strictly_right() {
    let registry = Registry::builtin();
    let expected = Csr::new([2, 3], &[5f32, 7.0, 8.0], &[1, 0, 2], &[0, 1, 3]).unwrap();
    let (i8s, i16s, i32s, i64s) = ([1i8, 0, 2], [1i16, 0, 2], [1i32, 0, 2], [1i64, 0, 2]);
    let (u8s, u16s, u32s) = ([1u8, 0, 2], [1u16, 0, 2], [1u32, 0, 2]);
    let narrow: [Elements<'_>; 7] = [
        (&i8s).into(),
        (&i16s).into(),
        (&i32s).into(),
        (&i64s).into(),
        (&u8s).into(),
        (&u16s).into(),
        (&u32s).into(),
    ];
    for indices in narrow {
        let parts = with(csr_parts(), "indices", indices);
        registry.check("sparse_csr", &parts.signature()).unwrap();
        let strict = registry.check_strict("sparse_csr", &parts.signature());
        assert_eq!(blame(strict), on("index-dtype", "indices"));
        assert_eq!(Csr::from_parts(parts).unwrap(), expected);
    }
    let signature = csr_parts();
    registry.check_strict("sparse_csr", &signature.signature()).unwrap();
    let (values, coords) = ([1f32], [2u64]);
    let coo = Coo::new([3], &values, &coords).unwrap();
    let signed = Elements::from(&[2i64]);
    let parts = with(coo.to_object().unwrap().into_parts(), "coords", signed);
    registry.check("sparse_coo", &parts.signature()).unwrap();
    let strict = registry.check_strict("sparse_coo", &parts.signature());
    assert_eq!(blame(strict), on("index-dtype", "coords"));
    // A u64 with a logical type is not plain u64.
    let named = Elements::from(&[1u64, 0, 2]).with_logical_type("acme.column");
    let parts = with(csr_parts(), "indices", named);
    registry.check("sparse_csr", &parts.signature()).unwrap();
    let strict = registry.check_strict("sparse_csr", &parts.signature());
    assert_eq!(blame(strict), on("index-dtype", "indices"));
}

#[test]
fn indices_are_integers_and_not_negative() {
    let floats = [1f64, 0.0, 2.0];
    let parts = with(csr_parts(), "indices", (&floats).into());
    assert_eq!(blame(Csr::from_parts(parts)), on("index-dtype", "indices"));
    let bools = Elements::new(DType::Bool, &[0, 1, 1][..]);
    let parts = with(csr_parts(), "indptr", bools);
    assert_eq!(blame(Csr::from_parts(parts)), on("index-dtype", "indptr"));
    let codes = Elements::new(DType::U8, &[0, 1, 3][..]).with_logical_type("f8_e5m2");
    let parts = with(csr_parts(), "indptr", codes);
    assert_eq!(blame(Csr::from_parts(parts)), on("index-dtype", "indptr"));

    let negative = [1i64, -1, 2];
    let parts = with(csr_parts(), "indices", (&negative).into());
    let format = Registry::builtin();
    let format = format.format("sparse_csr").unwrap();
    let fault = index_fault(1, -1, IndexBound::Below(3), "indices");
    assert_eq!(format.check_data(&parts), Err(fault));
    let negative = [0i32, 1, -5];
    let parts = with(csr_parts(), "indptr", (&negative).into());
    let error = format.check_data(&parts).unwrap_err();
    let fault = index_fault(2, -5, IndexBound::NotNegative, "indptr");
    assert_eq!(error, fault);
    let words = "component `indptr`: element 2 is -5, which is negative";
    assert_eq!(error.to_string(), words);
}

#[test]
fn contents_are_checked_without_the_values() {
    let registry = Registry::builtin();
    let format = registry.format("sparse_csr").unwrap();
    let mut parts = csr_parts();
    parts.take("values").unwrap();
    let roles = format.data_roles().unwrap();
    assert!(parts.elements.iter().all(|(role, _)| roles.contains(&&**role)));
    format.check_data(&parts).unwrap();
}

#[test]
fn coo_has_a_coordinate_for_each_value_and_dimension() {
    assert_eq!(coo(&[3, 4, 5], &[1.0], &[2, 3, 4]), Ok(()));
    assert_eq!(coo(&[3, 4, 5], &[], &[]), Ok(()));
    let mismatch = on("shape-size-mismatch", "coords");
    assert_eq!(blame(coo(&[3, 4], &[1.0], &[2])), mismatch);
    assert_eq!(blame(coo(&[3, 4], &[1.0], &[2, 3, 1])), mismatch);
    assert_eq!(blame(coo(&[3, 4], &[1.0], &[])), mismatch);
    assert_eq!(blame(coo(&[], &[1.0], &[0])), mismatch);
}

#[test]
fn coo_coordinates_lie_within_their_own_dimension() {
    // The flat place 0 * 4 + 4 exists, but belongs to another row.
    assert_eq!(
        coo(&[3, 4], &[1.0, 2.0], &[0, 1, 0, 4]),
        Err(index_fault(3, 4, IndexBound::Below(4), "coords"))
    );
    assert_eq!(
        coo(&[3, 4], &[1.0], &[u64::MAX, 0]),
        Err(index_fault(0, u64::MAX.into(), IndexBound::Below(3), "coords"))
    );
    let values = [1f32];
    let coo = Coo::new([3, 4], &values, &[0, 0]).unwrap();
    let negative = [0i16, -7];
    let parts = with(coo.to_object().unwrap().into_parts(), "coords", (&negative).into());
    assert_eq!(
        Coo::from_parts(parts).unwrap_err(),
        index_fault(1, -7, IndexBound::Below(4), "coords")
    );
}

#[test]
fn a_view_keeps_whether_it_is_coalesced_and_nothing_else() {
    for is_coalesced in [None, Some(false), Some(true)] {
        let values = [1f32];
        let coo = Coo::new([3, 4], &values, &[2, 3]).unwrap();
        assert_eq!(coo.is_coalesced(), None);
        let mut parts = coo.to_object().unwrap().into_parts();
        let said = is_coalesced.map(|is| ("is_coalesced", Value::from(is)));
        let kept: Attributes = said.into_iter().collect();
        let mut attributes = kept.clone();
        attributes.insert("note", "kept by the tensor");
        parts.attributes = std::borrow::Cow::Owned(attributes);
        let read = Coo::from_parts(parts).unwrap();
        assert_eq!(read.is_coalesced(), is_coalesced);
        let written = read.to_object().unwrap().into_parts();
        assert_eq!(*written.attributes, kept);
    }
}

#[test]
fn a_scalar_is_the_sum_of_its_values() {
    let coo = Coo::new([], &[1.5f32, 2.0], &[]).unwrap();
    let dense = coo.to_dense().unwrap();
    assert_eq!(dense.shape(), [0u64; 0]);
    assert_eq!(*dense.as_slice::<f32>().unwrap(), [3.5]);
}

#[test]
fn values_that_share_a_place_are_added_and_others_keep_every_bit() {
    let coo = Coo::new([2], &[200u8, 100], &[1, 1]).unwrap();
    assert_eq!(*coo.to_dense().unwrap().as_slice::<u8>().unwrap(), [0, 44]);
    let coo = Coo::new([2], &[true, true], &[1, 1]).unwrap();
    let dense = coo.to_dense().unwrap();
    assert_eq!(*dense.as_slice::<bool>().unwrap(), [false, true]);
    let one = Complex::new(1f32, -1.0);
    let coo = Coo::new([2], Elements::from(vec![one, one]), &[0, 0]).unwrap();
    let dense = coo.to_dense().unwrap();
    let values = dense.as_slice::<Complex<f32>>().unwrap();
    assert_eq!(*values, [one + one, Complex::ZERO]);
    // Half of one, and one: 1.5 of every kind of FP8.
    for (name, half, one, sum) in [
        ("f8_e4m3fn", 0x30u8, 0x38u8, 0x3cu8),
        ("f8_e5m2", 0x38, 0x3c, 0x3e),
        ("f8_e4m3fnuz", 0x38, 0x40, 0x44),
        ("f8_e5m2fnuz", 0x3c, 0x40, 0x42),
    ] {
        let codes = Elements::from(vec![half, one]).with_logical_type(name);
        let dense = Coo::new([2], codes, &[1, 1]).unwrap().to_dense().unwrap();
        assert_eq!(*dense.elements().bytes, [0, sum], "{name}");
    }

    let odd_nan = f32::from_bits(0x7f80_0001);
    let coo = Coo::new([3], Elements::from(vec![-0.0, odd_nan]), &[0, 2]).unwrap();
    let dense = coo.to_dense().unwrap();
    let bits: Vec<u32> = dense.as_slice::<f32>().unwrap().iter().map(|x| x.to_bits()).collect();
    assert_eq!(bits, [0x8000_0000, 0, 0x7f80_0001]);
}

#[test]
fn values_of_an_unknown_type_are_placed_and_not_added() {
    let values = [1u16, 2, 3, 4];
    let values = || Elements::from(&values).with_logical_type("vendor.pair");
    let dense = Coo::new([3], values(), &[2, 0]).unwrap().to_dense().unwrap();
    assert_eq!(*dense.as_slice::<u16>().unwrap(), [3, 4, 0, 0, 1, 2]);
    let error = Coo::new([3], values(), &[0, 0]).unwrap().to_dense().unwrap_err();
    assert_eq!(error.code(), "unsupported");
    // Without whole values, the place where a value begins is unknown.
    for (shape, places) in [([3], &[0, 1, 2][..]), ([9], &[0, 1, 2, 3, 4, 5, 6, 7]), ([3], &[])] {
        let coo = Coo::new(shape, values(), places).unwrap();
        assert_eq!(coo.to_dense().unwrap_err().code(), "unsupported");
        let parts = coo.to_object().unwrap().into_parts();
        let registry = Registry::builtin();
        let places = Places::resolve(&[], &shape).unwrap();
        let part = Coo::read_part(&places, &mut parts.reader(&registry)).unwrap_err();
        assert_eq!(part.code(), "unsupported");
    }
    let none = Elements::new(DType::U16, &[][..]).with_logical_type("vendor.pair");
    let none = Coo::new([2], none, &[]).unwrap();
    assert_eq!(none.to_dense().unwrap_err().code(), "unsupported");
}

#[test]
fn a_shape_that_no_array_has_is_refused_and_not_allocated() {
    let coo = Coo::new([1 << 40, 1 << 40], &[1f32], &[0, 0]).unwrap();
    assert_eq!(blame(coo.to_dense()), on("shape-size-mismatch", "values"));
    let coo = Coo::new([1 << 61], &[1f32], &[0]).unwrap();
    assert_eq!(coo.to_dense().unwrap_err().code(), "allocation");
    let csr = Csr::new([2, u64::MAX], &[1f32], &[0], &[0, 0, 1]).unwrap();
    assert_eq!(blame(csr.to_dense()), on("shape-size-mismatch", "values"));
}

#[test]
fn missing_lengths_of_old_files_follow_from_the_others() {
    let registry = Registry::builtin();
    let format: &dyn ObjectFormat = registry.format("sparse_csr").unwrap();
    let parts = csr_parts();
    for role in ["values", "indices", "indptr"] {
        let mut signature = parts.signature();
        let component = signature.components.iter_mut().find(|c| c.role == role).unwrap();
        let expected = component.byte_len.take();
        registry.check("sparse_csr", &signature).unwrap();
        assert_eq!(format.expected_len(role, &signature, &registry), expected);
    }
    let coo = Coo::new([3, 4], &[1f64], &[0, 0]).unwrap();
    let format: &dyn ObjectFormat = registry.format("sparse_coo").unwrap();
    let parts = coo.to_object().unwrap().into_parts();
    for role in ["values", "coords"] {
        let mut signature = parts.signature();
        let component = signature.components.iter_mut().find(|c| c.role == role).unwrap();
        let expected = component.byte_len.take();
        registry.check("sparse_coo", &signature).unwrap();
        assert_eq!(format.expected_len(role, &signature, &registry), expected);
    }
}

#[test]
fn without_any_length_nothing_follows() {
    let registry = Registry::builtin();
    let coo = Coo::new([3, 4], &[1f64], &[0, 0]).unwrap();
    let coo = coo.to_object().unwrap().into_parts();
    for (format, parts) in [("sparse_csr", csr_parts()), ("sparse_coo", coo)] {
        let mut signature = parts.signature();
        for component in &mut signature.components {
            component.byte_len = None;
        }
        registry.check(format, &signature).unwrap();
        let of = registry.format(format).unwrap();
        for component in &signature.components {
            // The number of rows of a CSR array follows from the shape.
            let expected = (component.role == "indptr").then_some(24);
            let len = of.expected_len(component.role, &signature, &registry);
            assert_eq!(len, expected, "{} of {format}", component.role);
        }
    }
}

#[test]
fn a_role_that_the_format_does_not_know_has_no_length() {
    let registry = Registry::builtin();
    let component = |role, dtype| ComponentSignature {
        role,
        dtype: Some(dtype),
        logical_type: None,
        byte_len: Some(8),
    };
    let attributes = [
        ("bits", Value::from(4u64)),
        ("group_size", Value::from(8u64)),
        ("packing", Value::from("8_per_u32")),
    ];
    let attributes: Attributes = attributes.into_iter().collect();
    for (format, roles) in [
        ("sparse_csr", &["values", "indices", "indptr"][..]),
        ("sparse_coo", &["values", "coords"]),
        ("quantized_group", &["packed_weight", "scales", "zeros"]),
        ("quantized_4bit", &["data", "scale", "zero_point"]),
    ] {
        let roles = roles.iter().chain(&["notes"]);
        let components = roles.clone().map(|role| component(role, DType::U64));
        let signature =
            Signature { shape: &[2, 3], attributes: &attributes, components: components.collect() };
        let of = registry.format(format).unwrap();
        for role in roles {
            let len = of.expected_len(role, &signature, &registry);
            assert_eq!(len.is_none(), *role == "notes", "{role} of {format}");
        }
    }
}

#[test]
fn a_number_of_coordinates_that_overflows_is_a_mismatch() {
    let registry = Registry::builtin();
    let check = |coords_len| {
        let component = |role, dtype, byte_len| ComponentSignature {
            role,
            dtype: Some(dtype),
            logical_type: None,
            byte_len,
        };
        let signature = Signature {
            shape: &[3, 4],
            attributes: &Attributes::new(),
            components: vec![
                component("values", DType::U8, Some(1 << 63)),
                component("coords", DType::U64, coords_len),
            ],
        };
        registry.check("sparse_coo", &signature)
    };
    assert_eq!(check(None), Ok(()), "the file does not say");
    assert_eq!(
        check(Some(16)).unwrap_err().to_string(),
        "component `values`: takes 1 elements, there are 9223372036854775808"
    );
}

#[test]
fn a_row_is_a_range_of_columns_and_values() {
    let (values, indices, indptr) = (vec![5f32, 7.0, 8.0], vec![1u64, 0, 2], vec![0u64, 1, 1, 3]);
    let csr = Csr::new([3, 3], &values, &indices, &indptr).unwrap();
    let rows: Vec<_> = (0..4).map(|row| csr.row(row)).collect();
    assert_eq!(rows, [Some(0..1), Some(1..1), Some(1..3), None]);
    assert_eq!(csr.row(usize::MAX), None);
    assert_eq!(csr.indices()[csr.row(2).unwrap()], [0, 2]);
}

#[test]
fn a_part_of_a_component_is_read_with_its_own_positions() {
    let (wide, narrow) = ([4u64, 0, 3], [4i16, 0, 3]);
    for elements in [Elements::from(&wide), Elements::from(&narrow)] {
        let read = indices("coords", elements.borrow(), 100, 5).unwrap();
        assert_eq!(*read, wide);
        let error = indices("coords", elements, 100, 4).unwrap_err();
        let expected = index_fault(100, 4, IndexBound::Below(4), "coords");
        assert_eq!(error, expected);
        let words = "component `coords`: element 100 is 4, not in 0..4";
        assert_eq!(error.to_string(), words);
    }
    let negative = [0i8, -1];
    let error = indices("coords", (&negative).into(), 7, 5).unwrap_err();
    let expected = index_fault(8, -1, IndexBound::Below(5), "coords");
    assert_eq!(error, expected);
    // A part can be read without a check of the metadata.
    let codes = Elements::from(&[0u8, 1]).with_logical_type("f8_e5m2");
    for elements in [Elements::from(&[0f32, 1.0]), Elements::from(&[true]), codes] {
        let refused = indices("coords", elements, 7, 5);
        assert_eq!(blame(refused), on("index-dtype", "coords"));
    }
}

#[test]
fn contents_of_a_wrong_length_are_refused_without_the_metadata() {
    let registry = Registry::builtin();
    let mismatch = "shape-size-mismatch";
    let csr = registry.format("sparse_csr").unwrap();
    for rows in [1, 3, u64::MAX] {
        let mut parts = csr_parts();
        parts.shape = vec![rows, 3].into();
        let error = csr.check_data(&parts).unwrap_err();
        let expected = rows.saturating_add(1);
        let words = format!("component `indptr`: takes {expected} elements, there are 3");
        assert_eq!(error.to_string(), words);
    }
    let coo = registry.format("sparse_coo").unwrap();
    let object = Coo::new([3, 4], &[1f32], &[2, 3]).unwrap();
    let object = object.to_object().unwrap().into_parts();
    // A partial coordinate, and coordinates of a scalar, which has none.
    for (shape, is_sound) in [(&[3, 4][..], true), (&[4], true), (&[3, 4, 5], false), (&[], false)]
    {
        let mut parts = object.clone();
        parts.shape = shape.into();
        match coo.check_data(&parts) {
            Ok(()) => assert!(is_sound, "{shape:?}"),
            refused => assert_eq!(blame(refused), on(mismatch, "coords"), "{shape:?}"),
        }
    }
}

#[test]
fn views_borrow_the_elements_of_the_object() {
    let (values, indices, indptr) = ([5f32, 7.0, 8.0], [1u64, 0, 2], [0u64, 1, 3]);
    let csr = Csr::new([2, 4], &values, &indices, &indptr).unwrap();
    assert_eq!((csr.shape(), csr.stored_count()), ([2, 4], 3));
    assert_eq!(csr.values(), &Elements::from(&values));
    assert_eq!((csr.indices(), csr.indptr()), (&indices[..], &indptr[..]));
    let coords = [1u64, 0, 1, 2, 0, 3];
    let coo = Coo::new([2, 4], &values, &coords).unwrap();
    assert_eq!(coo.shape(), [2, 4]);
    assert_eq!(coo.values(), &Elements::from(&values));
    let along = [coo.coords(0), coo.coords(1), coo.coords(2)];
    assert_eq!(along, [Some(&coords[..3]), Some(&coords[3..]), None]);
    let empty = Coo::new([2, 4], &[0f32; 0], &[0; 0]).unwrap();
    assert_eq!([empty.coords(1), empty.coords(2)], [Some(&[][..]), None]);
}

#[test]
fn indices_of_every_integer_type_make_the_same_matrix() {
    let values = [5f32, 7.0, 8.0];
    let expected = Csr::new([2, 3], &values, &[1, 0, 2], &[0, 1, 3]).unwrap();
    fn made<'a, T: zt_formats::Element>(
        values: &'a [f32],
        indices: &'a [T],
        indptr: &'a [T],
    ) -> Csr<'a> {
        Csr::from_indices([2, 3], values, indices, indptr).unwrap()
    }
    assert_eq!(made(&values, &[1u64, 0, 2], &[0, 1, 3]), expected);
    assert_eq!(made(&values, &[1u32, 0, 2], &[0, 1, 3]), expected);
    assert_eq!(made(&values, &[1i32, 0, 2], &[0, 1, 3]), expected);
    // i64 have the same bytes on little-endian systems, and stay borrowed.
    let (indices, indptr) = ([1i64, 0, 2], [0i64, 1, 3]);
    let csr = made(&values, &indices, &indptr);
    assert_eq!(csr, expected);
    if cfg!(target_endian = "little") {
        assert_eq!(csr.indices().as_ptr().addr(), indices.as_ptr().addr());
        assert_eq!(csr.indptr().as_ptr().addr(), indptr.as_ptr().addr());
    }
    let coo = Coo::from_coords([2, 2], &[5i32, 7], &[0i32, 1, 1, 0]).unwrap();
    assert_eq!(coo, Coo::new([2, 2], &[5i32, 7], &[0, 1, 1, 0]).unwrap());
}

#[test]
fn a_negative_index_is_refused_at_its_position() {
    let values = [5f32];
    let below = |bound, role| index_fault(0, -1, IndexBound::Below(bound), role);
    let refused = Csr::from_indices([1, 4], &values, &[-1i64], &[0i64, 1]).unwrap_err();
    assert_eq!(refused, below(4, "indices"));
    let refused = Csr::from_indices([1, 4], &values, &[1i32], &[0i32, -1]).unwrap_err();
    assert_eq!(refused, index_fault(1, -1, IndexBound::NotNegative, "indptr"));
    let refused = Coo::from_coords([3, 2], &values, &[-1i64, 0]).unwrap_err();
    assert_eq!(refused, below(3, "coords"));
    let refused = Csr::from_indices([1, 4], &values, &[1f32], &[0i32, 1]);
    assert_eq!(blame(refused), on("index-dtype", "indices"));
}
