//! What a conversion keeps, changes, refuses and says.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

use std::io::Write;

use zt::formats::{F8E4M3Fn, Packing, Quantization};
use zt::{Attributes, Csr, DType, Dense, Error, File, QuantizedGroup, Value, Writer};
use zt_convert::{ConvertOptions, Input, Summary, ZT, convert};

/// A `.zt` file of whatever `fill` writes.
fn file(fill: impl FnOnce(&mut Writer<'_>) -> Result<(), Error>) -> File {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    fill(&mut writer).unwrap();
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

fn one(name: &str, value: f32) -> File {
    file(|writer| writer.add(name, &Dense::from_slice(&[1], &[value])?))
}

fn with_attribute(name: &str, key: &str, value: impl Into<Value>) -> File {
    file(|writer| {
        let mut attributes = Attributes::new();
        attributes.insert(key, value);
        writer.set_attributes(attributes);
        writer.add(name, &Dense::from_slice(&[1], &[0u8])?)
    })
}

fn sparse() -> File {
    file(|writer| {
        writer.add(
            "graph",
            &Csr::new([2, 3], &[7i32, 8], vec![2, 0], vec![0, 1, 2])?,
        )?;
        writer.add("weight", &Dense::from_slice(&[1], &[1.0f32])?)
    })
}

fn quantized() -> File {
    let values: Vec<f32> = (0u8..64).map(f32::from).collect();
    file(|writer| {
        let packing = Packing {
            per_word: 8,
            dtype: DType::I32,
        };
        let quantization = Quantization::new(4, 32, packing);
        let group = QuantizedGroup::quantize([8, 8], &values, quantization)?;
        writer.add("q", &group)
    })
}

fn stream(
    writer: &mut Writer<'_>,
    name: &str,
    format: &'static str,
    (dtype, logical_type): (DType, Option<&'static str>),
    bytes: &[u8],
) -> Result<(), Error> {
    let mut object = writer.begin(name, &[1], format)?;
    let mut data = object.component("data", dtype, logical_type.map(Into::into))?;
    data.write_all(bytes).unwrap();
    data.finish()?;
    object.finish()
}

/// Converts, and opens the result.
fn try_to(options: &ConvertOptions<'_>, inputs: Vec<File>) -> Result<(File, Summary), Error> {
    let inputs: Vec<Input> = inputs.into_iter().map(Input::from).collect();
    let mut bytes = Vec::new();
    let summary = convert(&inputs, &mut bytes, options)?;
    assert_eq!(summary.byte_len, bytes.len() as u64);
    let file = zt_convert::open_source(zt::Memory::new(bytes), &zt::OpenOptions::new())?;
    assert_eq!(file.kind(), options.target);
    assert_eq!(file.len() as u64, summary.objects);
    Ok((file, summary))
}

fn zt_with(change: impl FnOnce(&mut ConvertOptions<'_>)) -> ConvertOptions<'static> {
    let mut options = ConvertOptions::new(ZT);
    change(&mut options);
    options
}

#[test]
fn inputs_merge_in_their_order() {
    let (file, summary) =
        try_to(&ConvertOptions::new(ZT), vec![one("b", 1.0), one("a", 2.0)]).unwrap();
    let entries = file.entries();
    let names: Vec<_> = entries.iter().map(zt::Entry::name).collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!((summary.objects, summary.bytes), (2, 8));
}

#[test]
fn a_name_in_two_inputs_is_an_error_and_never_a_loss() {
    let options = zt_with(|options| options.lossy = true);
    let error = try_to(&options, vec![one("a", 1.0), one("a", 1.0)]).unwrap_err();
    assert_eq!(
        (error.code(), error.object()),
        ("duplicate-name", Some("a"))
    );
}

#[test]
fn attributes_unite_and_a_conflict_is_a_loss() {
    let options = ConvertOptions::new(ZT);
    let inputs = || vec![with_attribute("a", "k", "1"), with_attribute("b", "k", "1")];
    let (file, _) = try_to(&options, inputs()).unwrap();
    assert_eq!(file.attributes().unwrap().unwrap().len(), 1);

    let inputs = || vec![with_attribute("a", "k", "1"), with_attribute("b", "k", "2")];
    assert_eq!(try_to(&options, inputs()).unwrap_err().code(), "lossy");
    let (file, summary) = try_to(&zt_with(|options| options.lossy = true), inputs()).unwrap();
    let attributes = file.attributes().unwrap().unwrap();
    assert_eq!(attributes.get("k").unwrap().as_str(), Some("1"));
    assert_eq!(summary.warnings.len(), 1);
    assert_eq!(summary.warnings[0].code, "lossy");
}

#[test]
fn everything_that_a_file_says_survives() {
    let map = |key: &str| {
        let list = Value::Array(vec![Value::Null, Value::Bytes(vec![1]), Value::Float(0.5)]);
        let mut map = Attributes::new();
        map.insert(key, list);
        map
    };
    let input = file(|writer| {
        writer.set_attributes(map("of the file"));
        writer.set_extra(map("x_root"));
        let mut object = writer.begin("w", &[2], "acme.unknown/1")?;
        object.set_attributes(map("of the object"));
        object.set_extra(map("x_object"));
        for role in ["second", "first"] {
            let mut component = object.component(role, DType::U8, Some("acme.type".into()))?;
            component.set_extra(map("x_component"));
            component.write_all(&[1, 2, 3]).unwrap();
            component.finish()?;
        }
        object.finish()
    });
    let (output, _) = try_to(&ConvertOptions::new(ZT), vec![input.clone()]).unwrap();
    assert_eq!(output.attributes().unwrap(), input.attributes().unwrap());
    assert_eq!(output.extra().unwrap(), input.extra().unwrap());
    let object = |file: &File| file.entries()[0].object().unwrap().clone();
    assert_eq!(object(&output), object(&input));
}

#[test]
fn a_file_that_is_stored_alike_comes_out_byte_for_byte() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let graph = Csr::new([2, 3], &[7i32, 8], vec![2, 0], vec![0, 1, 2]).unwrap();
    writer.add("z", &graph).unwrap();
    writer
        .add("a", &Dense::from_slice(&[1], &[1.0f32]).unwrap())
        .unwrap();
    writer.finish().unwrap();
    let input = Input::from(File::from_bytes(bytes.clone()).unwrap());
    let mut output = Vec::new();
    convert(&[input], &mut output, &ConvertOptions::new(ZT)).unwrap();
    assert!(output == bytes);
}

#[test]
fn a_faulty_object_is_an_error_and_never_dropped_silently() {
    let inputs = || {
        let mut builder = zt::FileBuilder::new(ZT, zt::OpenOptions::new());
        let error = Error::new(zt::ErrorKind::Unsupported, "dtype", "no such elements");
        builder.fault("bad", zt::RawObject::default(), error);
        vec![one("a", 1.0), builder.build().unwrap()]
    };
    let error = try_to(&ConvertOptions::new(ZT), inputs()).unwrap_err();
    assert_eq!((error.code(), error.object()), ("dtype", Some("bad")));

    let options = zt_with(|options| options.lossy = true);
    let (file, summary) = try_to(&options, inputs()).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["a"]);
    assert_eq!(summary.left_out, ["bad"]);
    let warning = summary.warnings.first().unwrap();
    assert_eq!(
        (warning.code, warning.object.as_deref()),
        ("lossy", Some("bad"))
    );
    assert!(
        warning.message.contains("dtype: no such elements"),
        "{}",
        warning.message
    );
}

/// Other kinds of files than ours have no writer that looks at them.
#[test]
fn a_bool_that_is_none_is_written_to_no_kind_of_file() {
    let flags = |at: usize| {
        let mut bytes = vec![1; 3 << 20];
        bytes[at] = 2;
        let mut builder = zt::FileBuilder::new(ZT, zt::OpenOptions::new());
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
        #[cfg(feature = "npz")]
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

            options.lossy = true;
            let (_, summary) = try_to(&options, flags(at)).unwrap();
            assert_eq!(summary.left_out, ["flags"], "{kind}");
        }
    }
}

/// Components of indices are written as they are stored: nobody else looks at them on the way.
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
        let mut builder = zt::FileBuilder::new(ZT, zt::OpenOptions::new());
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
    options.lossy = true;
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
        writer
            .add(name, &Dense::from_slice(&[5000], &values).unwrap())
            .unwrap();
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
    options.lossy = true;
    let (rest, summary) = try_to(&options, damaged()).unwrap();
    assert_eq!(summary.left_out, ["b"]);
    assert_eq!(rest.names().collect::<Vec<_>>(), ["a", "c"]);
    let told = std::sync::atomic::AtomicU64::new(0);
    let count = |bytes| {
        told.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
        std::ops::ControlFlow::Continue(())
    };
    options.progress = Some(&count);
    try_to(&options, damaged()).unwrap();
    assert_eq!(told.into_inner(), summary.bytes);
}

#[test]
fn floating_values_are_cast_and_others_stay() {
    // More than is read at a time.
    let many: Vec<f64> = (0..300_000u32).map(|i| f64::from(i) / 7.0).collect();
    let f8: Vec<F8E4M3Fn> = (0..=255).map(F8E4M3Fn::from_bits).collect();
    let input = file(|writer| {
        writer.add("many", &Dense::from_slice(&[300_000], &many)?)?;
        writer.add("f8", &Dense::from_slice(&[256], &f8)?)?;
        writer.add("int", &Dense::from_slice(&[1], &[1u16])?)?;
        writer.add(
            "same",
            &Dense::from_slice(&[1], &[f32::from_bits(0x7fc0_1234)])?,
        )?;
        writer.add("sparse", &Csr::new([1, 1], &[1.0f64], vec![0], vec![0, 1])?)
    });
    let options = zt_with(|options| options.dtype = Some(DType::F32));
    let (output, summary) = try_to(&options, vec![input]).unwrap();
    let expected: Vec<f32> = many.iter().map(|value| *value as f32).collect();
    assert!(output.tensor("many").unwrap().to_vec::<f32>().unwrap() == expected);
    let values = output.tensor("f8").unwrap().to_vec::<f32>().unwrap();
    assert!(
        values
            .iter()
            .zip(&f8)
            .all(|(a, b)| a.to_bits() == b.to_f32().to_bits())
    );
    assert_eq!(output.tensor("int").unwrap().to_vec::<u16>().unwrap(), [1]);
    let same = output.tensor("same").unwrap().to_vec::<f32>().unwrap();
    assert_eq!(same[0].to_bits(), 0x7fc0_1234);
    assert_eq!(output.tensor("sparse").unwrap().format(), "sparse_csr");
    assert_eq!(summary.bytes, 1_200_000 + 1024 + 2 + 4 + 8 + 8 + 16);

    let options = zt_with(|options| options.dtype = Some(DType::I8));
    assert_eq!(
        try_to(&options, vec![one("a", 1.0)]).unwrap_err().code(),
        "misuse"
    );
}

#[test]
fn a_cast_is_of_the_values_alone() {
    let input = file(|writer| {
        let mut object = writer.begin("w", &[1], "dense")?;
        for role in ["data", "scale"] {
            let mut component = object.component(role, DType::F64, None)?;
            component.write_all(&1.5f64.to_le_bytes()).unwrap();
            component.finish()?;
        }
        object.finish()
    });
    let options = zt_with(|options| options.dtype = Some(DType::F32));
    let (output, _) = try_to(&options, vec![input]).unwrap();
    let tensor = output.tensor("w").unwrap();
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.5]);
    let scale = tensor.component("scale").unwrap();
    assert_eq!(scale.dtype, Some(DType::F64));
    assert_eq!(*tensor.bytes("scale").unwrap(), 1.5f64.to_le_bytes());
}

/// Each kind has a writer of its own, and what none of them can say is treated alike.
#[test]
fn what_has_no_dense_value_is_a_loss_in_every_other_kind() {
    let name = "layers.0.0";
    let input = || {
        file(|writer| {
            stream(writer, "x", "acme.x/1", (DType::U8, None), &[1])?;
            writer.add(name, &Dense::from_slice(&[1], &[1.5f32])?)
        })
    };
    let targets = zt_convert::members().iter();
    for target in targets.filter(|it| it.is_writable() && it.kind() != ZT) {
        for dense in [false, true] {
            let mut options = ConvertOptions::new(target.kind());
            options.dense = dense;
            let error = try_to(&options, vec![input()]).unwrap_err();
            assert_eq!((error.code(), error.object()), ("lossy", Some("x")));
            assert!(
                error.to_string().contains(target.kind().as_str()),
                "{error}"
            );
            options.lossy = true;
            let (output, summary) = try_to(&options, vec![input()]).unwrap();
            assert_eq!(summary.left_out, ["x"]);
            let name = output.names().next().unwrap();
            assert_eq!(output.tensor(name).unwrap().to_vec::<f32>().unwrap(), [1.5]);
        }
    }
}

#[test]
fn shapes_that_a_kind_cannot_have_are_a_loss() {
    let targets = zt_convert::members().iter();
    for target in targets.filter(|it| it.is_writable() && it.kind() != ZT) {
        // Nothing, in dimensions that count for themselves.
        for shape in [&[u64::MAX, 4, 0][..], &[1 << 40, 0]] {
            let input = || {
                file(|writer| {
                    let mut object = writer.begin("w", shape, "dense")?;
                    object.component("data", DType::F32, None)?.finish()?;
                    object.finish()
                })
            };
            let mut options = ConvertOptions::new(target.kind());
            options.lossy = true;
            match try_to(&options, vec![input()]) {
                Ok((output, summary)) if summary.left_out.is_empty() => {
                    let name = output.names().next().unwrap();
                    assert_eq!(output.tensor(name).unwrap().shape(), shape);
                }
                Ok((_, summary)) => assert_eq!(summary.left_out, ["w"]),
                // No file of that kind holds nothing.
                Err(error) => assert_eq!(error.code(), "lossy", "{error}"),
            }
        }
    }
}

#[test]
fn objects_with_a_dense_value_are_decoded_on_request() {
    let options = zt_with(|options| options.dense = true);
    let (output, _) = try_to(&options, vec![sparse()]).unwrap();
    let graph = output.tensor("graph").unwrap();
    assert_eq!(graph.to_vec::<i32>().unwrap(), [0, 0, 7, 8, 0, 0]);

    let input = quantized();
    let expected = input.tensor("q").unwrap().to_dense().unwrap();
    let (output, _) = try_to(&options, vec![input]).unwrap();
    let tensor = output.tensor("q").unwrap();
    assert_eq!(
        *tensor.as_slice::<f32>().unwrap(),
        *expected.as_slice::<f32>().unwrap()
    );
    // What only said how to decode is gone with the need to.
    assert!(tensor.attributes().is_empty());
}

#[test]
fn what_is_said_of_coordinates_does_not_go_with_the_dense_value() {
    let coo = file(|writer| {
        let mut object = writer.begin("a", &[2, 2], "sparse_coo")?;
        object.set_attributes([("is_coalesced", true)].into_iter().collect());
        for (role, values) in [("values", &[7u64][..]), ("coords", &[1, 0])] {
            let mut component = object.component(role, DType::U64, None)?;
            let bytes: Vec<u8> = values.iter().flat_map(|it| it.to_le_bytes()).collect();
            component.write_all(&bytes).unwrap();
            component.finish()?;
        }
        object.finish()
    });
    let (output, _) = try_to(&zt_with(|options| options.dense = true), vec![coo]).unwrap();
    let tensor = output.tensor("a").unwrap();
    assert_eq!(tensor.to_vec::<u64>().unwrap(), [0, 0, 7, 0]);
    assert!(tensor.attributes().is_empty());
}

#[test]
fn dense_values_that_are_not_there_are_missed() {
    let input = || file(|writer| stream(writer, "x", "acme.x/1", (DType::U8, None), &[1]));
    let options = zt_with(|options| options.dense = true);
    let error = try_to(&options, vec![input()]).unwrap_err();
    assert_eq!((error.code(), error.object()), ("unsupported", Some("x")));
    let options = zt_with(|options| (options.dense, options.lossy) = (true, true));
    let (output, summary) = try_to(&options, vec![input()]).unwrap();
    assert_eq!(output.tensor("x").unwrap().format(), "acme.x/1");
    assert_eq!(summary.warnings.len(), 1);
}

#[test]
fn kinds_that_are_not_here_are_refused() {
    let options = ConvertOptions::new(zt::Kind::new("punch-cards"));
    assert_eq!(
        try_to(&options, vec![one("a", 1.0)]).unwrap_err().code(),
        "unsupported"
    );
}

#[cfg(feature = "safetensors")]
mod to_safetensors {
    use super::*;
    use zt_convert::SAFETENSORS;

    fn options(dense: bool, lossy: bool) -> ConvertOptions<'static> {
        let mut options = ConvertOptions::new(SAFETENSORS);
        (options.dense, options.lossy) = (dense, lossy);
        options
    }

    /// Refused for the `object`; with the loss allowed, so many objects come out.
    fn lossy(input: File, object: Option<&str>, left: usize) -> File {
        let error = try_to(&options(false, false), vec![input.clone()]).unwrap_err();
        assert_eq!((error.code(), error.object()), ("lossy", object), "{error}");
        let (output, summary) = try_to(&options(false, true), vec![input]).unwrap();
        assert_eq!(output.len(), left);
        let objects: Vec<_> = summary
            .warnings
            .iter()
            .map(|w| w.object.as_deref())
            .collect();
        assert_eq!(objects, [object]);
        assert!(
            summary
                .warnings
                .iter()
                .all(|warning| warning.code == "lossy")
        );
        output
    }

    #[test]
    fn layouts_become_dense_values_on_request_or_as_a_loss() {
        let dense = [0, 0, 7, 8, 0, 0];
        let values = |file: &File| file.tensor("graph").unwrap().to_vec::<i32>().unwrap();
        assert_eq!(values(&lossy(sparse(), Some("graph"), 2)), dense);
        let (output, summary) = try_to(&options(true, false), vec![sparse()]).unwrap();
        assert_eq!(
            (values(&output), summary.warnings.len()),
            (dense.to_vec(), 0)
        );
        let (output, _) = try_to(&options(true, false), vec![quantized()]).unwrap();
        assert_eq!(output.tensor("q").unwrap().shape(), [8, 8]);
    }

    #[test]
    fn casts_reach_decoded_values() {
        let mut options = options(true, false);
        options.dtype = Some(DType::BF16);
        let (output, summary) = try_to(&options, vec![quantized()]).unwrap();
        let data = output.tensor("q").unwrap().component("data").unwrap().dtype;
        assert_eq!((data, summary.bytes), (Some(DType::BF16), 128));
    }

    #[test]
    fn what_has_no_dense_value_is_left_out_as_a_loss_alone() {
        let unknown = || file(|w| stream(w, "x", "acme.x/1", (DType::U8, None), &[1]));
        lossy(unknown(), Some("x"), 0);
        let error = try_to(&options(true, false), vec![unknown()]).unwrap_err();
        assert_eq!(error.code(), "lossy");
    }

    #[test]
    fn types_that_it_lacks_are_losses() {
        let complex = (DType::F64, Some("complex128"));
        lossy(
            file(|w| stream(w, "z", "dense", complex, &[0; 16])),
            Some("z"),
            0,
        );
        // One element a value: at least the elements can be said.
        let own = (DType::U8, Some("acme.level"));
        let output = lossy(file(|w| stream(w, "l", "dense", own, &[9])), Some("l"), 1);
        assert_eq!(output.tensor("l").unwrap().to_vec::<u8>().unwrap(), [9]);
        let own = (DType::U8, Some("acme.pair"));
        lossy(
            file(|w| stream(w, "p", "dense", own, &[9, 9])),
            Some("p"),
            0,
        );
    }

    #[test]
    fn types_that_it_has_are_none() {
        for (types, len) in [
            ((DType::U8, Some("f8_e4m3fn")), 1),
            ((DType::U8, Some("f8_e5m2")), 1),
            ((DType::U8, Some("f8_e4m3fnuz")), 1),
            ((DType::U8, Some("f8_e5m2fnuz")), 1),
            ((DType::F32, Some("complex64")), 8),
            ((DType::Bool, None), 1),
        ] {
            let input = file(|writer| stream(writer, "t", "dense", types, &vec![1; len]));
            let (output, _) = try_to(&options(false, false), vec![input.clone()]).unwrap();
            let data = |file: &File| {
                let data = file.tensor("t").unwrap().component("data").unwrap().clone();
                (data.dtype, data.logical_type)
            };
            assert_eq!(data(&output), data(&input));
        }
    }

    #[test]
    fn attributes_other_than_texts_of_the_file_are_losses() {
        lossy(with_attribute("a", "k", 1u64), None, 1);
        let input = file(|writer| {
            let mut object = writer.begin("w", &[0], "dense")?;
            object.set_attributes([("k", "v")].into());
            object.component("data", DType::F32, None)?.finish()?;
            object.finish()
        });
        lossy(input, Some("w"), 1);
    }

    #[test]
    fn unknown_fields_and_other_components_are_losses() {
        let input = file(|writer| {
            writer.set_extra([("x_root", "1")].into());
            Ok(())
        });
        lossy(input, None, 0);
        let input = file(|writer| {
            let mut object = writer.begin("w", &[0], "dense")?;
            object.component("data", DType::F32, None)?.finish()?;
            object.component("scale", DType::F32, None)?.finish()?;
            object.finish()
        });
        lossy(input, Some("w"), 1);
    }

    #[test]
    fn the_name_of_the_metadata_is_no_tensors() {
        lossy(one("__metadata__", 1.0), Some("__metadata__"), 0);
    }

    #[test]
    fn shapes_that_its_readers_refuse_are_losses() {
        let input = file(|writer| {
            let mut object = writer.begin("w", &[1 << 63, 4, 0], "dense")?;
            object.component("data", DType::F32, None)?.finish()?;
            object.finish()
        });
        lossy(input, Some("w"), 0);
    }

    #[test]
    fn the_same_tensors_give_the_same_bytes_in_any_order() {
        let bytes = |names: [&str; 3]| {
            let inputs = names.map(|name| Input::from(one(name, 1.0)));
            let mut bytes = Vec::new();
            convert(&inputs, &mut bytes, &options(false, false)).unwrap();
            bytes
        };
        assert_eq!(bytes(["c", "a", "b"]), bytes(["b", "c", "a"]));
    }
}
