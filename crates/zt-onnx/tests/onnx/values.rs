//! Values in every field and packing that a tensor may have.

use zt::ErrorKind;

use super::draft::{
    DOUBLE, FLOAT, INT64, UINT8, code, elements, field, found, indices, initializer, int,
    is_strict, left_out, model, one_tensor, opened, raw, sparse, tensor, varint,
};

/// Values packed in two pieces, then one by one, are legal, but no writer does that.
#[test]
fn values_are_read_however_they_are_packed() {
    let packed = |values: &[u64]| {
        let values: Vec<u8> = values.iter().flat_map(|value| varint(*value)).collect();
        field(7, values)
    };
    let long: Vec<u64> = (0..200_000u64).map(|i| u64::MAX / (i + 1)).collect();
    let (first, rest) = long.split_at(70_000);
    let (second, third) = rest.split_at(70_000);
    let single: Vec<u8> = third.iter().flat_map(|value| int(7, *value)).collect();
    let values = [packed(first), packed(&[]), packed(second), single];
    let bytes = model(&[field(5, tensor("x", INT64, &[200_000], &values))]);
    let file = opened(bytes).unwrap();
    let tensor = file.tensor("x").unwrap();
    // Backwards, so that every place is searched again.
    for (start, end) in [(199_999, 200_000), (131_071, 131_075), (65_530, 65_540), (0, 3)] {
        let slice = tensor.slice(&[format!("{start}:{end}").parse().unwrap()]).unwrap();
        let expected: Vec<u64> = long[start..end].to_vec();
        let found: Vec<u64> =
            slice.as_slice::<i64>().unwrap().iter().map(|v| v.cast_unsigned()).collect();
        assert_eq!(found, expected);
    }
    let all: Vec<u64> = tensor.values::<i64>().unwrap().iter().map(|v| v.cast_unsigned()).collect();
    assert_eq!(all, long);
}

#[test]
fn numbers_of_eight_bytes_may_each_be_a_field() {
    let single: Vec<u8> = [1.5f64, -2.0]
        .iter()
        .flat_map(|value| [varint(10 << 3 | 1), value.to_le_bytes().to_vec()].concat())
        .collect();
    let doubles = |count: u64| {
        let values = std::slice::from_ref(&single);
        one_tensor(tensor("x", DOUBLE, &[count], values))
    };
    assert_eq!(elements::<f64>(&doubles(2), "x"), [1.5, -2.0]);
    assert_eq!(code(&doubles(3), "x"), "shape-size-mismatch");
}

#[test]
fn another_number_of_values_than_the_shape_requires_is_found() {
    let counted = |count: u64, values: &[u8]| {
        let values = field(5, values);
        one_tensor(tensor("x", UINT8, &[count], &[values]))
    };
    assert!(counted(3, &[1, 2, 3]).tensor("x").is_ok());
    // More values than bytes, and no value.
    assert_eq!(code(&counted(4, &[1, 2, 3]), "x"), "shape-size-mismatch");
    assert_eq!(code(&counted(0, &[1, 2, 3]), "x"), "shape-size-mismatch");
    // A count that is possible is found when the values are read.
    assert_eq!(found(&counted(2, &[1, 2, 3])), "shape-size-mismatch");
    // The third varint is truncated.
    assert_eq!(found(&counted(3, &[1, 2, 0x83])), "header");
    // Neither piece is a whole number of values.
    let pieces = [field(4, [0; 5]), field(4, [0; 3])];
    let cut = one_tensor(tensor("x", FLOAT, &[3], &pieces));
    assert_eq!(code(&cut, "x"), "shape-size-mismatch");
    // 300 is out of range for UINT8.
    let file = counted(2, &[1, 0xAC, 2]);
    assert_eq!(found(&file), "header");
    let error = file.tensor("x").unwrap().bytes("data").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("300") && text.contains("UINT8"), "{text}");

    let raw = one_tensor(tensor("x", UINT8, &[4], &[field(9, [1, 2, 3])]));
    assert_eq!(code(&raw, "x"), "shape-size-mismatch");
    let none = one_tensor(tensor("x", UINT8, &[4], &[]));
    assert_eq!(code(&none, "x"), "shape-size-mismatch");
    let twice = [field(5, [1]), field(9, [1])];
    let twice = one_tensor(tensor("x", UINT8, &[1], &twice));
    assert_eq!(code(&twice, "x"), "header");
    // An empty field is ignored, whatever its type.
    let empty = [field(7, []), field(9, [1]), field(5, [])];
    let empty = one_tensor(tensor("x", UINT8, &[1], &empty));
    assert_eq!(elements::<u8>(&empty, "x"), [1]);
    let others = one_tensor(tensor("x", FLOAT, &[1], &[field(5, [1])]));
    assert_eq!(code(&others, "x"), "header");
    let overflow = tensor("x", UINT8, &[1 << 62, 1 << 62], &[]);
    assert_eq!(code(&one_tensor(overflow), "x"), "shape-size-mismatch");
}

#[test]
fn a_tensor_that_cannot_be_read_does_not_hide_its_neighbours() {
    let strange = |data_type: u64| tensor("strange", data_type, &[2], &[field(9, [1, 2])]);
    let negative = tensor("strange", UINT8, &[u64::MAX], &[]);
    let segment = tensor("strange", UINT8, &[1], &[field(3, int(1, 0)), field(9, [1])]);
    for (bad, expected) in [
        (strange(0), "dtype"),
        (strange(99), "dtype"),
        (negative, "header"),
        (segment, "unsupported"),
        (tensor("strange", UINT8, &[1; 65], &[field(9, [1])]), "header"),
    ] {
        let file = opened(model(&[field(5, bad), initializer("w", &[1.0])])).unwrap();
        assert_eq!(code(&file, "strange"), expected);
        let kind = file.tensor("strange").unwrap_err().kind();
        let is_unsupported = ["dtype", "unsupported"].contains(&expected);
        assert_eq!(kind == ErrorKind::Unsupported, is_unsupported, "{expected}");
        assert_eq!(elements::<f32>(&file, "w"), [1.0]);
    }
}

#[test]
fn texts_are_left_out_of_a_sound_file() {
    let text = tensor("text", 8, &[2], &[field(6, "a"), field(6, "b")]);
    let coo = sparse(&tensor("coo", 8, &[1], &[]), &indices(&[1], &[1]), &[2]);
    let fields = [field(5, text), field(15, coo), initializer("w", &[1.0])];
    let file = opened(model(&fields)).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["w"]);
    assert_eq!(left_out(&file), ["text", "coo"]);
    assert!(file.verify(&zt::VerifyOptions::default()).unwrap().is_ok());
    // A text with an invalid shape is damaged.
    let negative = tensor("x", 8, &[u64::MAX], &[]);
    assert_eq!(code(&one_tensor(negative), "x"), "header");
}

#[test]
fn a_tensor_that_cannot_be_read_is_listed_with_its_known_fields() {
    let known = |number: u64, broken: &[u8], sparse: &[u8]| {
        let content = if sparse.is_empty() { broken } else { sparse };
        let bytes = model(&[field(number, content)]);
        let at = bytes.windows(broken.len()).position(|it| it == broken);
        let file = opened(bytes).unwrap();
        let entries = file.entries();
        let raw = entries[0].raw().unwrap();
        let (role, data) = &raw.components[0];
        assert_eq!(data.offset, at.map(|at| at as u64));
        assert_eq!(data.length, Some(broken.len() as u64));
        let dtype = data.dtype.as_deref().map(str::to_owned);
        let format = raw.format.as_deref().unwrap().to_owned();
        (role.to_string(), dtype, format, raw.shape.clone().unwrap())
    };
    let listed = |role: &str, dtype: Option<&str>, format: &str, shape: &[u64]| {
        let dtype = dtype.map(str::to_owned);
        (role.to_owned(), dtype, format.to_owned(), shape.to_vec())
    };
    for (data_type, dtype) in [(22, Some("INT4")), (FLOAT, Some("FLOAT")), (99, None)] {
        let x = tensor("x", data_type, &[3], &[field(9, [1])]);
        assert_eq!(known(5, &x, &[]), listed("data", dtype, "dense", &[3]));
    }
    let values = tensor("s", FLOAT, &[2], &[raw(&[1.0, 2.0])]);
    let coo = sparse(&values, &indices(&[1], &[1]), &[2, 3]);
    let expected = listed("values", Some("FLOAT"), "sparse_coo", &[2, 3]);
    assert_eq!(known(15, &values, &coo), expected);
}

/// They are plain elements already.
#[test]
fn packed_floats_lie_in_the_model() {
    let values = [1.0f32, 2.0].map(f32::to_le_bytes).concat();
    let bytes = model(&[field(5, tensor("x", FLOAT, &[2], &[field(4, &values)]))]);
    let file = opened(bytes.clone()).unwrap();
    let entries = file.entries();
    let data = entries[0].object().unwrap().component("data").unwrap();
    let begins = usize::try_from(data.blob.span.offset()).unwrap();
    assert_eq!(bytes[begins..begins + 8], *values);
}

#[test]
fn dimensions_may_be_packed() {
    let dimensions = field(1, [2, 0x80, 1, 0]);
    let parts = [dimensions, int(2, FLOAT), field(8, "x")];
    let file = one_tensor(parts.concat());
    assert_eq!(file.tensor("x").unwrap().shape(), [2, 128, 0]);
}

/// As exponents from PyTorch do.
#[test]
fn exponents_of_8_bits_keep_their_bytes() {
    const FLOAT8E8M0: u64 = 24;
    let typed = field(5, [126, 0xFF, 1, 0]);
    for values in [field(9, [126, 255, 0]), typed] {
        let x = tensor("x", FLOAT8E8M0, &[3], &[values]);
        let file = one_tensor(x);
        let tensor = file.tensor("x").unwrap();
        let data = tensor.component("data").unwrap();
        assert_eq!(
            (data.dtype, data.logical_type.as_deref()),
            (Some(zt::DType::U8), Some("f8_e8m0fnu"))
        );
        assert_eq!(*tensor.bytes("data").unwrap(), [126, 255, 0]);
        let report = file.verify(&zt::VerifyOptions::default()).unwrap();
        assert!(report.problems.is_empty());
    }
}

#[test]
fn sparse_tensors_have_the_coordinates_of_either_kind_of_indices() {
    let values = tensor("s", FLOAT, &[2], &[raw(&[1.0, 2.0])]);
    let model = |values: &[u8], indices: &[u8], shape: &[u64]| {
        opened(model(&[field(15, sparse(values, indices, shape))])).unwrap()
    };
    let found_at = |found: &[u64], shape: &[u64]| model(&values, &indices(found, shape), &[2, 3]);
    for file in [found_at(&[1, 5], &[2]), found_at(&[0, 1, 1, 2], &[2, 2])] {
        let dense = file.tensor("s").unwrap().to_dense().unwrap();
        assert_eq!(*dense.as_slice::<f32>().unwrap(), [0.0, 1.0, 0.0, 0.0, 0.0, 2.0]);
        // The indices have the dtype of the format, and are equal for both kinds.
        assert!(is_strict(&file));
        let tensor = file.tensor("s").unwrap();
        let coords: Vec<u8> = [0u64, 1, 1, 2].iter().flat_map(|it| it.to_le_bytes()).collect();
        assert_eq!(*tensor.bytes("coords").unwrap(), coords);
    }
    for file in [
        found_at(&[1, 6], &[2]),
        found_at(&[1, u64::MAX], &[2]),
        found_at(&[0, 3, 1, 2], &[2, 2]),
        found_at(&[0, u64::MAX, 1, 2], &[2, 2]),
    ] {
        assert_eq!(found(&file), "index-value");
    }
    let two = indices(&[1, 5], &[2]);
    let matrix = tensor("s", FLOAT, &[2, 1], &[raw(&[1.0, 2.0])]);
    let floats = tensor("", FLOAT, &[2], &[raw(&[1.0, 5.0])]);
    for (file, expected) in [
        (found_at(&[1, 5, 5], &[3]), "header"),
        // One index per value, in a matrix.
        (found_at(&[1, 5], &[2, 1]), "header"),
        (found_at(&[1, 5], &[1, 2]), "header"),
        (found_at(&[1, 5], &[2, 1, 1]), "header"),
        (model(&matrix, &two, &[2, 3]), "header"),
        (model(&values, &floats, &[2, 3]), "header"),
        (model(&values, &two, &[2, u64::MAX]), "header"),
        (model(&values, &two, &[]), "shape-size-mismatch"),
    ] {
        assert_eq!(code(&file, "s"), expected);
    }
}
