//! An object format outside the crate, in one file: `ObjectFormat`, `View` and `ToObject` for the
//! diagonal of a square matrix.

use std::borrow::Cow;

use zt_formats::{
    Complex, ComponentSignature, Decode, Dense, Elements, Error, FormatViolation, LogicalType,
    NewObject, ObjectFormat, Parts, Registry, Result, Scalar, Signature, SizeMismatch, ToObject,
    Unsupported, View, bf16, f16,
};
use zt_manifest::{Attributes, DType, Text, Value};

const DIAGONAL: &str = "diagonal";

/// The rules: a square shape, and a value for each row.
struct DiagonalFormat;

impl ObjectFormat for DiagonalFormat {
    fn id(&self) -> &str {
        Diagonal::FORMAT
    }

    fn check(&self, signature: &Signature<'_>, registry: &Registry) -> Result<()> {
        let &[rows, cols] = signature.shape else {
            let found = signature.shape.len() as u64;
            let mismatch = SizeMismatch::Rank { expected: 2, found };
            return Err(FormatViolation::from(mismatch).of_object());
        };
        if rows != cols {
            let mismatch = SizeMismatch::Elements { expected: rows, found: cols };
            return Err(FormatViolation::from(mismatch).of_object());
        }
        let diagonal = signature.component(DIAGONAL)?;
        diagonal.expect_values(rows, registry)
    }

    fn data_roles(&self) -> Option<&[&str]> {
        Some(&[])
    }

    fn dense_type(&self, signature: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        Some((signature.get(DIAGONAL)?.dtype?, None))
    }

    fn to_dense(&self, parts: Parts<'_>) -> Result<Dense<'static>> {
        let Diagonal { values } = Diagonal::from_parts(parts)?;
        let values = values.as_slice::<f32>()?;
        let mut dense = vec![0f32; values.len() * values.len()];
        for (row, value) in values.iter().enumerate() {
            dense[row * values.len() + row] = *value;
        }
        let rows = values.len() as u64;
        Dense::from_elements([rows, rows], Elements::from(dense))
    }
}

/// The view.
struct Diagonal<'a> {
    values: Elements<'a>,
}

impl<'a> View<'a> for Diagonal<'a> {
    const FORMAT: &'static str = "acme.diagonal/1";

    fn from_parts(mut parts: Parts<'a>) -> Result<Self> {
        DiagonalFormat.check(&parts.signature(), &Registry::builtin())?;
        let values = parts.take(DIAGONAL)?;
        Ok(Diagonal { values })
    }
}

impl ToObject for Diagonal<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let rows = self.values.element_count();
        Ok(NewObject {
            shape: Cow::Owned(vec![rows, rows]),
            format: Text::Borrowed(Self::FORMAT),
            attributes: None,
            components: vec![(Text::Borrowed(DIAGONAL), self.values.borrow())],
        })
    }
}

#[test]
fn a_format_from_outside_is_checked_viewed_and_written_like_any_other() {
    let registry = Registry::builtin().with_format(DiagonalFormat);
    let values = [1.0f32, 2.0];
    let diagonal = Diagonal { values: Elements::from(&values) };
    let object = diagonal.to_object().unwrap();
    registry.check(&object.format, &object.signature()).unwrap();
    // A `NewObject` gives itself, without a copy of its elements.
    let again = object.to_object().unwrap();
    assert_eq!((&again.shape, &again.format), (&object.shape, &object.format));
    assert_eq!((&again.attributes, &again.components), (&None, &object.components));
    assert!(again.components[0].1.bytes.is_borrowed());

    let format = registry.format("acme.diagonal/1").unwrap();
    let dense = format.to_dense(object.into_parts()).unwrap();
    assert_eq!(dense.shape(), [2, 2]);
    assert_eq!(*dense.as_slice::<f32>().unwrap(), [1.0, 0.0, 0.0, 2.0]);
}

#[test]
fn its_rules_hold_where_it_is_registered_and_only_there() {
    let attributes = Attributes::new();
    let signature = Signature {
        shape: &[2, 3],
        attributes: &attributes,
        components: vec![ComponentSignature {
            role: DIAGONAL,
            dtype: Some(DType::F32),
            logical_type: None,
            byte_len: Some(8),
        }],
    };
    let id = Diagonal::FORMAT;
    let registry = Registry::builtin().with_format(DiagonalFormat);
    let error = registry.check(id, &signature).unwrap_err();
    assert_eq!(error.code(), "shape-size-mismatch");
    Registry::builtin().check(id, &signature).unwrap();
}

/// A format with the required methods only.
struct Opaque;

impl ObjectFormat for Opaque {
    fn id(&self) -> &str {
        "acme.opaque/1"
    }

    fn check(&self, signature: &Signature<'_>, _: &Registry) -> Result<()> {
        signature.component("data").map(drop)
    }
}

#[test]
fn the_type_of_values_comes_from_the_format_or_else_from_a_component() {
    let component = |role, dtype, logical_type| ComponentSignature {
        role,
        dtype,
        logical_type,
        byte_len: None,
    };
    let registry = Registry::builtin().with_format(DiagonalFormat);
    let value_type = |format: &str, attributes: &[(&str, Value)], components| {
        let attributes: Attributes = attributes.iter().cloned().collect();
        let signature = Signature { shape: &[2, 2], attributes: &attributes, components };
        registry.value_type(format, &signature)
    };
    let data = |dtype, logical_type| vec![component("data", Some(dtype), logical_type)];
    let plain = [
        ("dense", data(DType::F32, None), "f32"),
        ("dense", data(DType::U8, Some("f8_e5m2")), "f8_e5m2"),
        ("acme.unknown/1", data(DType::I8, None), "i8"),
        ("quantized_4bit", data(DType::U8, None), "4-bit"),
        (
            "sparse_coo",
            vec![
                component("coords", Some(DType::U64), None),
                component("values", Some(DType::F16), None),
            ],
            "f16",
        ),
        (Diagonal::FORMAT, vec![component(DIAGONAL, Some(DType::BF16), None)], "bf16"),
    ];
    for (format, components, name) in plain {
        assert_eq!(value_type(format, &[], components).as_deref(), Some(name));
    }
    let bytes = || data(DType::U8, None);
    let bits = [("bits", Value::from(3u64))];
    let group = value_type("quantized_group", &bits, bytes());
    assert_eq!(group.as_deref(), Some("3-bit"));
    let planes = [("dtype", Value::from("bf16"))];
    let planes = value_type("zt.planes/1", &planes, bytes());
    assert_eq!(planes.as_deref(), Some("bf16"));
    assert_eq!(value_type("zt.planes/1", &[], bytes()), None);
    assert_eq!(value_type("dense", &[], vec![]), None);
    assert_eq!(value_type("dense", &[], vec![component("data", None, None)]), None);
}

#[test]
fn a_format_with_the_required_methods_only_has_no_dense_value() {
    let registry = Registry::builtin().with_format(Opaque);
    let format = registry.format("acme.opaque/1").unwrap();
    let parts = Parts {
        shape: Cow::Borrowed(&[3]),
        attributes: Cow::Owned(Attributes::new()),
        elements: vec![("data".into(), Elements::from(&[1u8, 2, 3]))],
    };
    let signature = parts.signature();
    registry.check("acme.opaque/1", &signature).unwrap();
    registry.check_strict("acme.opaque/1", &signature).unwrap();
    format.check_data(&parts).unwrap();
    assert_eq!(format.data_roles(), None, "all");
    assert_eq!(format.dense_type(&signature, &registry), None);
    assert_eq!(format.row_unit(&signature, &registry), None);
    assert_eq!(format.expected_len("data", &signature, &registry), None);
    assert_eq!(format.parameters(), [""; 0]);
    let error = format.to_dense(parts).unwrap_err();
    let expected = Unsupported::ToDense("acme.opaque/1".into());
    assert_eq!(error, Error::Unsupported(expected));
    let words = "the format \"acme.opaque/1\" has no dense value";
    assert_eq!((error.code(), &error.to_string()[..]), ("unsupported", words));
    // The object of an unknown format passes.
    let nothing = Signature { shape: &[], attributes: &Attributes::new(), components: vec![] };
    assert!(registry.check_strict("acme.opaque/1", &nothing).is_err());
    registry.check_strict("acme.opaque/2", &nothing).unwrap();
}

#[test]
fn a_registry_lists_what_it_knows_in_order() {
    let third = LogicalType::new("acme.third", DType::I64, Decode::F64(|_| 0.0));
    let text = format!("{third:?}");
    assert!(text.ends_with("decode: F64 }"), "no address: {text}");
    let registry = Registry::empty()
        .with_format(Opaque)
        .with_format(DiagonalFormat)
        .with_format(Opaque)
        .with_logical_type(third);
    let ids: Vec<&str> = registry.formats().map(ObjectFormat::id).collect();
    assert_eq!(ids, ["acme.diagonal/1", "acme.opaque/1"], "the last counts");
    assert_eq!(
        format!("{registry:?}"),
        "Registry { formats: [\"acme.diagonal/1\", \"acme.opaque/1\"], \
         logical_types: [\"acme.third\"] }"
    );
    let decodes: Vec<String> = Registry::default()
        .logical_types()
        .map(|logical| format!("{} {:?}", logical.name, logical.decode))
        .collect();
    let expected = [
        "f8_e4m3fn F32",
        "f8_e5m2 F32",
        "f8_e4m3fnuz F32",
        "f8_e5m2fnuz F32",
        "f8_e8m0fnu F32",
        "complex32 Complex64",
        "bcomplex32 Complex64",
        "complex64 Complex64",
        "complex128 Complex128",
    ];
    assert_eq!(decodes, expected);
}

#[test]
fn checks_read_only_indices_and_dense_values_drop_only_parameters() {
    let registry = Registry::builtin();
    let (none, group) = (&[][..], ["bits", "group_size", "packing", "signed", "zero_kind"]);
    for (id, roles, parameters) in [
        ("dense", none, none),
        ("sparse_csr", &["indices", "indptr"], none),
        ("sparse_coo", &["coords"], &["is_coalesced"]),
        ("quantized_group", none, &group),
        ("quantized_4bit", none, none),
        ("zt.planes/1", none, &["dtype", "type"]),
        ("zt.i4/1", none, none),
    ] {
        let format = registry.format(id).unwrap();
        assert_eq!(format.id(), id);
        assert_eq!(format.data_roles(), Some(roles), "{id}");
        assert_eq!(format.parameters(), parameters, "{id}");
    }
}

#[test]
fn a_value_is_made_of_the_roles_of_its_format_and_of_no_others() {
    let registry = Registry::builtin().with_format(Opaque);
    let attributes = Attributes::from([("dtype", "bf16")]);
    let signature = Signature { shape: &[], attributes: &attributes, components: vec![] };
    for (id, roles) in [
        ("dense", &["data"][..]),
        ("sparse_csr", &["values", "indices", "indptr"]),
        ("sparse_coo", &["values", "coords"]),
        ("quantized_group", &["packed_weight", "scales", "zeros"]),
        ("quantized_4bit", &["data", "scale", "zero_point"]),
        ("zt.planes/1", &["plane0", "plane1"]),
        ("acme.opaque/1", &["plane2", "note"]), // All, by default.
    ] {
        let format = registry.format(id).unwrap();
        for role in roles {
            assert!(format.is_of_value(role, &signature), "{id} {role}");
        }
        let is_opaque = id == "acme.opaque/1";
        for role in ["plane2", "note"] {
            assert_eq!(format.is_of_value(role, &signature), is_opaque, "{id}");
        }
    }
}

/// Fixed-point numbers of 64 bits, 16 of them after the point: more than an f32 holds.
#[test]
fn a_logical_type_from_outside_is_read_and_cast_in_its_own_precision() {
    let fixed = |bytes: &[u8]| {
        let bits = bytes.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes));
        bits as f64 / 65_536.0
    };
    let fixed = LogicalType::new("acme.fixed", DType::I64, Decode::F64(fixed));
    let registry = Registry::builtin().with_logical_type(fixed);
    let bits = [1i64 << 16, -(1 << 15), (1 << 40) + 1];
    let elements = Elements::from(&bits).with_logical_type("acme.fixed");
    let wide = [1.0, -0.5, f64::from(1 << 24) + 1.0 / 65_536.0];
    let scalars: Vec<Scalar> = elements.scalars(&registry).unwrap().collect();
    assert_eq!(scalars, wide.map(Scalar::F64));
    let cast = |dtype| elements.to_dtype(dtype, &registry).unwrap();
    assert_eq!(*cast(DType::F64).as_slice::<f64>().unwrap(), wide);
    let narrow = [1.0f32, -0.5, 16_777_216.0];
    assert_eq!(*cast(DType::F32).as_slice::<f32>().unwrap(), narrow);
    let brains = wide.map(bf16::from_f64);
    assert_eq!(*cast(DType::BF16).as_slice::<bf16>().unwrap(), brains);
    // A registry without the type cannot decode it.
    let error = elements.to_dtype(DType::F32, &Registry::builtin()).unwrap_err();
    assert_eq!(error.to_string(), "acme.fixed is not cast to f32");
}

#[test]
fn scalars_are_numbers_and_texts() {
    let complex = Complex::new(1.5f32, -2.0);
    let (tenth, third) = (f16::from_f32(0.1), bf16::from_f32(1.0 / 3.0));
    for (scalar, wide, narrow, text) in [
        (Scalar::Bool(true), Some(1.0), Some(1.0), "true"),
        (Scalar::Bool(false), Some(0.0), Some(0.0), "false"),
        (Scalar::Int(-3), Some(-3.0), Some(-3.0), "-3"),
        (Scalar::F64(0.1), Some(0.1), Some(0.1), "0.1"),
        // The f64 is the exact value, and not the one that is printed.
        (Scalar::F32(0.1), Some(0.1f32.into()), Some(0.1), "0.1"),
        (Scalar::F16(tenth), Some(tenth.into()), Some(tenth.into()), "0.1"),
        (Scalar::BF16(third), Some(third.into()), Some(third.into()), "0.334"),
        (Scalar::UInt(u64::MAX), Some(2f64.powi(64)), Some(2f32.powi(64)), "18446744073709551615"),
        (Scalar::Complex64(complex), None, None, "1.5-2.0j"),
        (Scalar::Complex128(Complex::new(-0.1, 1e300)), None, None, "-0.1+1e300j"),
    ] {
        assert_eq!((scalar.as_f64(), scalar.as_f32()), (wide, narrow), "{text}");
        assert_eq!(scalar.to_string(), text);
    }
}
