//! What is refused, and what is left out or changed if losses are allowed.

use std::io::Write;

use zt::formats::F8E4M3Fn;
use zt::{DType, Dense, Error, File, FloatType, Writer};
use zt_convert::{ConvertOptions, ZT};

use crate::draft::{file, one, stream, try_to, zt_with};

#[test]
fn a_name_in_two_inputs_is_an_error_and_never_a_loss() {
    let options = ConvertOptions::new(ZT).lossy(true);
    let error = try_to(&options, vec![one("a", 1.0), one("a", 1.0)]).unwrap_err();
    assert_eq!((error.code(), error.object()), ("duplicate-name", Some("a")));
}

#[test]
fn a_faulty_object_is_an_error_and_never_dropped_silently() {
    let inputs = || {
        let mut builder = zt::foreign::FileBuilder::new(ZT, zt::OpenOptions::new());
        let error = Error::new(zt::ErrorKind::Unsupported, "dtype", "no such elements");
        builder.fault("bad", zt::RawObject::default(), error);
        vec![one("a", 1.0), builder.build().unwrap()]
    };
    let error = try_to(&ConvertOptions::new(ZT), inputs()).unwrap_err();
    assert_eq!((error.code(), error.object()), ("dtype", Some("bad")));

    let options = ConvertOptions::new(ZT).lossy(true);
    let (file, summary) = try_to(&options, inputs()).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["a"]);
    assert_eq!(summary.left_out, ["bad"]);
    let warning = summary.warnings.first().unwrap();
    assert_eq!((warning.code, warning.object.as_deref()), ("lossy", Some("bad")));
    assert!(warning.message.contains("dtype: no such elements"), "{}", warning.message);
}

/// The writers of other kinds do not check bools.
#[test]
fn an_invalid_bool_is_written_to_no_kind_of_file() {
    let flags = |at: usize| {
        let mut bytes = vec![1; 3 << 20];
        bytes[at] = 2;
        let mut builder = zt::foreign::FileBuilder::new(ZT, zt::OpenOptions::new());
        let id = builder.source(zt::Memory::new(bytes));
        let all = zt::Blob::raw(zt::Span::new(0, 3 << 20).unwrap());
        let data = zt::Component::new(DType::Bool, all);
        let object = zt::Object::new(vec![3 << 20], "dense").with_component("data", data);
        builder.object("flags", object, id);
        vec![one("a", 1.0), builder.build().unwrap()]
    };
    let kinds = [
        ZT,
        #[cfg(feature = "safetensors")]
        zt_convert::SAFETENSORS,
        #[cfg(feature = "npy")]
        zt_convert::NPZ,
    ];
    for kind in kinds {
        for at in [0, (1 << 20) + 7, (3 << 20) - 1] {
            let mut options = ConvertOptions::new(kind);
            let error = try_to(&options, flags(at)).unwrap_err();
            let found = (error.code(), error.object());
            assert_eq!(found, ("bool-value", Some("flags")), "{kind}");
            let place = format!("element {at} is 2");
            assert!(error.to_string().contains(&place), "{kind}: {error}");

            options = options.lossy(true);
            let (_, summary) = try_to(&options, flags(at)).unwrap();
            assert_eq!(summary.left_out, ["flags"], "{kind}");
        }
    }
}

/// Indices are written unchanged, so no later step checks them.
#[test]
fn an_index_that_is_out_of_range_is_written_to_no_file() {
    let graph = |columns: [u64; 2]| {
        let mut bytes = vec![0; 152];
        let numbers = [(64, &columns[..]), (128, &[0, 1, 2])];
        for (at, numbers) in numbers {
            for (place, number) in bytes[at..].chunks_exact_mut(8).zip(numbers) {
                place.copy_from_slice(&number.to_le_bytes());
            }
        }
        let mut builder = zt::foreign::FileBuilder::new(ZT, zt::OpenOptions::new());
        let id = builder.source(zt::Memory::new(bytes));
        let mut object = zt::Object::new(vec![2, 3], "sparse_csr");
        for (role, dtype, offset, len) in [
            ("values", DType::F32, 0, 8),
            ("indices", DType::U64, 64, 16),
            ("indptr", DType::U64, 128, 24),
        ] {
            let blob = zt::Blob::raw(zt::Span::new(offset, len).unwrap());
            object = object.with_component(role, zt::Component::new(dtype, blob));
        }
        builder.object("graph", object, id);
        vec![one("a", 1.0), builder.build().unwrap()]
    };
    let mut options = ConvertOptions::new(ZT);
    let (_, summary) = try_to(&options, graph([2, 0])).unwrap();
    assert_eq!(summary.objects, 2);

    let error = try_to(&options, graph([2, 3])).unwrap_err();
    let found = (error.code(), error.object(), error.component());
    assert_eq!(found, ("index-value", Some("graph"), Some("indices")));
    options = options.lossy(true);
    let (file, summary) = try_to(&options, graph([2, 3])).unwrap();
    assert_eq!(summary.left_out, ["graph"]);
    assert_eq!(file.names().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn bytes_that_have_changed_are_an_error_or_left_out() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    for name in ["a", "b", "c"] {
        let values = vec![name.as_bytes()[0]; 5000];
        writer.add(name, &Dense::from_slice(&[5000], &values).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let whole = File::from_bytes(bytes.clone()).unwrap();
    let span = whole.tensor("b").unwrap().component("data").unwrap();
    bytes[span.blob.span.offset() as usize + 4999] ^= 1;
    let damaged = || vec![File::from_bytes(bytes.clone()).unwrap()];

    let mut options = ConvertOptions::new(ZT);
    let error = try_to(&options, damaged()).unwrap_err();
    let found = (error.code(), error.object());
    assert_eq!(found, ("digest-mismatch", Some("b")));
    options = options.lossy(true);
    let (rest, summary) = try_to(&options, damaged()).unwrap();
    assert_eq!(summary.left_out, ["b"]);
    assert_eq!(rest.names().collect::<Vec<_>>(), ["a", "c"]);
    let told = std::sync::atomic::AtomicU64::new(0);
    let count = |bytes| {
        told.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
        std::ops::ControlFlow::Continue(())
    };
    options.progress = Some(zt::Progress::new(&count));
    try_to(&options, damaged()).unwrap();
    assert_eq!(told.into_inner(), summary.bytes);
    // The search for damage can be stopped before values are written.
    let stop = |bytes: u64| match bytes {
        0 => std::ops::ControlFlow::Break(()),
        _ => std::ops::ControlFlow::Continue(()),
    };
    let mut options = ConvertOptions::new(ZT);
    options = options.lossy(true);
    options.progress = Some(zt::Progress::new(&stop));
    let error = try_to(&options, damaged()).unwrap_err();
    assert_eq!(error.code(), "interrupted");
}

/// The writers of all kinds treat such an object alike.
#[test]
fn an_object_without_a_dense_value_is_a_loss_in_every_other_kind() {
    let name = "layers.0.0";
    let input = || {
        file(|writer| {
            stream(writer, "x", "acme.x/1", (DType::U8, None), &[1])?;
            writer.add(name, &Dense::from_slice(&[1], &[1.5f32])?)
        })
    };
    let kinds = zt_convert::Kinds::builtin();
    let targets = kinds.iter();
    for target in targets.filter(|it| it.writer().is_some() && it.kind() != ZT) {
        for dense in [false, true] {
            let mut options = ConvertOptions::new(target.kind());
            options.dense = dense;
            let error = try_to(&options, vec![input()]).unwrap_err();
            assert_eq!((error.code(), error.object()), ("lossy", Some("x")));
            assert!(error.to_string().contains(target.kind().as_str()), "{error}");
            options = options.lossy(true);
            let (output, summary) = try_to(&options, vec![input()]).unwrap();
            assert_eq!(summary.left_out, ["x"]);
            let name = output.names().next().unwrap();
            assert_eq!(output.tensor(name).unwrap().to_vec::<f32>().unwrap(), [1.5]);
        }
    }
}

#[test]
fn shapes_that_a_kind_cannot_have_are_a_loss() {
    let kinds = zt_convert::Kinds::builtin();
    let targets = kinds.iter();
    for target in targets.filter(|it| it.writer().is_some() && it.kind() != ZT) {
        // No elements, in dimensions with a large product.
        for shape in [&[u64::MAX, 4, 0][..], &[1 << 40, 0]] {
            let input = || {
                file(|writer| {
                    let mut object = writer.begin("w", shape, "dense")?;
                    object.component("data", DType::F32, None)?.finish()?;
                    object.finish()
                })
            };
            let mut options = ConvertOptions::new(target.kind());
            options = options.lossy(true);
            match try_to(&options, vec![input()]) {
                Ok((output, summary)) if summary.left_out.is_empty() => {
                    let name = output.names().next().unwrap();
                    assert_eq!(output.tensor(name).unwrap().shape(), shape);
                }
                Ok((_, summary)) => assert_eq!(summary.left_out, ["w"]),
                // A file of that kind cannot be empty.
                Err(error) => assert_eq!(error.code(), "lossy", "{error}"),
            }
        }
    }
}

#[test]
fn a_requested_dense_value_that_does_not_exist_is_an_error() {
    let input = || file(|writer| stream(writer, "x", "acme.x/1", (DType::U8, None), &[1]));
    let options = zt_with(|options| options.dense = true);
    let error = try_to(&options, vec![input()]).unwrap_err();
    assert_eq!((error.code(), error.object()), ("unsupported", Some("x")));
    let options = ConvertOptions::new(ZT).dense(true).lossy(true);
    let (output, summary) = try_to(&options, vec![input()]).unwrap();
    assert_eq!(output.tensor("x").unwrap().format(), "acme.x/1");
    assert_eq!(summary.warnings.len(), 1);
}

/// A dense value holds the value alone, in every kind of file.
#[test]
fn extra_parts_of_an_object_are_a_loss_in_its_dense_value() {
    let graph = |role: &'static str, field: &str| {
        file(|writer| {
            let mut object = writer.begin("graph", &[1, 2], "sparse_csr")?;
            let two = [0u64, 1].map(u64::to_le_bytes).concat();
            for (role, dtype, bytes) in [
                ("values", DType::F32, &1f32.to_le_bytes()[..]),
                ("indices", DType::U64, &[0; 8]),
                ("indptr", DType::U64, &two),
                (role, DType::U8, &[1, 2]),
            ] {
                let mut component = object.component(role, dtype, None)?;
                if role == field {
                    component.set_extra([("x_more", 1u64)].into()).unwrap();
                }
                component.write_all(bytes).unwrap();
                component.finish()?;
            }
            object.finish()
        })
    };
    for target in [
        ZT,
        #[cfg(feature = "safetensors")]
        zt_convert::SAFETENSORS,
    ] {
        for (field, lost) in [("", 1), ("indptr", 2)] {
            let mut options = ConvertOptions::new(target);
            options.dense = true;
            let error = try_to(&options, vec![graph("note", field)]).unwrap_err();
            assert_eq!((error.code(), error.object()), ("lossy", Some("graph")));
            options = options.lossy(true);
            let (output, summary) = try_to(&options, vec![graph("note", field)]).unwrap();
            let told: Vec<&str> = summary.warnings.iter().map(|it| &*it.message).collect();
            assert_eq!(told.len(), lost, "{told:?}");
            assert!(told.iter().any(|it| it.contains("\"note\"")), "{told:?}");

            let values = output.tensor("graph").unwrap().to_vec::<f32>().unwrap();
            assert_eq!(values, [1.0, 0.0]);
        }
    }
    // An object that is written as it is keeps all of it.
    let (_, summary) = try_to(&ConvertOptions::new(ZT), vec![graph("note", "note")]).unwrap();
    assert!(summary.warnings.is_empty());
}

#[test]
fn values_that_a_cast_makes_infinite_are_a_loss() {
    let mut values = vec![1.0f32; 300_000];
    (values[7], values[299_999]) = (1e5, -7e4);
    (values[8], values[9]) = (f32::INFINITY, f32::NAN);
    let input = || {
        let dense = Dense::from_slice(&[300_000], &values);
        // Each copy has a warning.
        file(|writer| ["a", "b"].iter().try_for_each(|name| writer.add(name, &dense.clone()?)))
    };
    let planes = zt::WriteOptions::new().planes();
    for (target, write) in [
        (ZT, zt::WriteOptions::new()),
        (ZT, planes),
        #[cfg(feature = "safetensors")]
        (zt_convert::SAFETENSORS, zt::WriteOptions::new()),
        #[cfg(feature = "gguf")]
        (zt_convert::GGUF, zt::WriteOptions::new()),
        #[cfg(feature = "npy")]
        (zt_convert::NPZ, zt::WriteOptions::new()),
    ] {
        let mut options = ConvertOptions::new(target);
        (options.write, options.dtype) = (write, Some(FloatType::F16));
        let error = try_to(&options, vec![input()]).unwrap_err();
        assert_eq!((error.code(), error.object()), ("lossy", Some("a")), "{target}");
        options = options.lossy(true);
        let (_, summary) = try_to(&options, vec![input()]).unwrap();
        let of_objects = summary.warnings.iter().filter(|it| it.object.is_some());
        assert_eq!(of_objects.clone().count(), 2, "{target}");
        for (warning, object) in of_objects.zip(["a", "b"]) {
            assert_eq!(warning.object.as_deref(), Some(object), "{target}");
            assert!(warning.message.starts_with("2 of 300000 "), "{warning:?}");
        }
        // Infinities that were there are none of its doing.
        options = options.lossy(false).dtype(Some(FloatType::F64));
        try_to(&options, vec![input()]).unwrap();
    }
}

/// The largest value that rounds to the largest finite one, and the smallest that does not.
#[test]
fn rounding_to_the_largest_finite_value_is_no_loss() {
    let to = |dtype, value: f64| {
        let options = zt_with(|options| options.dtype = Some(dtype));
        let input = file(|writer| writer.add("w", &Dense::from_slice(&[1], &[value])?));
        try_to(&options, vec![input]).map_err(|error| error.code())
    };
    for (dtype, least) in [
        (FloatType::F16, 65_520.0),
        (FloatType::BF16, f64::from_bits(0x47EF_F000_0000_0000)),
        (FloatType::F32, f64::from_bits(0x47EF_FFFF_F000_0000)),
        (FloatType::F8E5M2, 61_440.0),
        // 464 itself is a tie, and the greatest value has the even code.
        (FloatType::F8E4M3Fn, 464f64.next_up()),
    ] {
        assert!(to(dtype, least.next_down()).is_ok(), "{dtype}");
        assert_eq!(to(dtype, -least).err(), Some("lossy"), "{dtype}");
    }
}

/// `f8_e4m3fn` has no infinities, and they are out of range.
#[test]
fn a_cast_to_fp8_saturates_on_request() {
    let values = [1.0, 500.0, f32::NEG_INFINITY, f32::NAN];
    let input = || file(|writer| writer.add("w", &Dense::from_slice(&[4], &values)?));
    let options = zt_with(|options| options.dtype = Some(FloatType::F8E4M3Fn));
    assert_eq!(try_to(&options, vec![input()]).unwrap_err().code(), "lossy");
    let (output, summary) = try_to(&options.allow_inf(true), vec![input()]).unwrap();
    let message = "2 of 4 values are out of range for f8_e4m3fn: the cast makes them 448 or -448";
    assert_eq!(summary.warnings[0].message, message);
    let codes = output.tensor("w").unwrap().to_vec::<F8E4M3Fn>().unwrap();
    let codes: Vec<u8> = codes.into_iter().map(F8E4M3Fn::to_bits).collect();
    assert_eq!(codes, [0x38, 0x7e, 0xfe, 0x7f]);
}

#[test]
fn kinds_of_other_builds_are_refused() {
    let options = ConvertOptions::new(zt::foreign::Kind::new("punch-cards"));
    assert_eq!(try_to(&options, vec![one("a", 1.0)]).unwrap_err().code(), "unsupported");
}
