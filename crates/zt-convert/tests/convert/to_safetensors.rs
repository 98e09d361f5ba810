//! What safetensors can represent, and what is a loss.

use zt::foreign::FileBuilder;
use zt::formats::ObjectFormat;
use zt::{
    Blob, Component, DType, File, FloatType, Memory, Object, OpenOptions, Registry, Signature, Span,
};
use zt_convert::{ConvertOptions, Input, Kinds, SAFETENSORS, ZT};

use crate::draft::{file, one, quantized, sparse, stream, try_to, with_attribute};

fn options(dense: bool, lossy: bool) -> ConvertOptions<'static> {
    ConvertOptions::new(SAFETENSORS).dense(dense).lossy(lossy)
}

/// Refused because of the `object`; with losses allowed, `left` objects are written.
fn lossy(input: File, object: Option<&str>, left: usize) -> File {
    let error = try_to(&options(false, false), vec![input.clone()]).unwrap_err();
    assert_eq!((error.code(), error.object()), ("lossy", object), "{error}");
    warned(input, object, true, left)
}

/// Written with one warning about the `object`, as are `left` objects.
fn warned(input: File, object: Option<&str>, allowed: bool, left: usize) -> File {
    let (output, summary) = try_to(&options(false, allowed), vec![input]).unwrap();
    assert_eq!(output.len(), left);
    let objects: Vec<_> = summary.warnings.iter().map(|w| w.object.as_deref()).collect();
    assert_eq!(objects, [object]);
    assert!(summary.warnings.iter().all(|warning| warning.code == "lossy"));
    output
}

#[test]
fn layouts_become_dense_values_on_request_or_as_a_loss() {
    let dense = [0, 0, 7, 8, 0, 0];
    let values = |file: &File| file.tensor("graph").unwrap().to_vec::<i32>().unwrap();
    assert_eq!(values(&lossy(sparse(), Some("graph"), 2)), dense);
    let (output, summary) = try_to(&options(true, false), vec![sparse()]).unwrap();
    assert_eq!((values(&output), summary.warnings.len()), (dense.to_vec(), 0));
    let (output, _) = try_to(&options(true, false), vec![quantized()]).unwrap();
    assert_eq!(output.tensor("q").unwrap().shape(), [8, 8]);
}

#[test]
fn casts_reach_decoded_values() {
    let mut options = options(true, false);
    options.dtype = Some(FloatType::BF16);
    let (output, summary) = try_to(&options, vec![quantized()]).unwrap();
    let data = output.tensor("q").unwrap().component("data").unwrap().dtype;
    assert_eq!((data, summary.bytes), (Some(DType::BF16), 128));
}

#[test]
fn an_object_without_a_dense_value_is_left_out_as_a_loss() {
    let unknown = || file(|w| stream(w, "x", "acme.x/1", (DType::U8, None), &[1]));
    lossy(unknown(), Some("x"), 0);
    let error = try_to(&options(true, false), vec![unknown()]).unwrap_err();
    assert_eq!(error.code(), "lossy");
}

/// In PyTorch and ONNX, too. zTensor 1.2 keeps their bytes under a name.
#[test]
fn exponents_of_8_bits_are_no_loss() {
    let types = (DType::U8, Some("f8_e8m0fnu"));
    let input = file(|w| stream(w, "e", "dense", types, &[126]));
    let (output, summary) = try_to(&options(false, false), vec![input]).unwrap();
    assert!(summary.warnings.is_empty());
    let tensor = output.tensor("e").unwrap();
    let data = tensor.component("data").unwrap();
    assert_eq!((data.dtype, data.logical_type.as_deref()), (Some(types.0), types.1));
    assert_eq!(*tensor.bytes("data").unwrap(), [126]);
}

#[test]
fn types_that_it_lacks_are_losses() {
    let complex = (DType::F64, Some("complex128"));
    lossy(file(|w| stream(w, "z", "dense", complex, &[0; 16])), Some("z"), 0);
    // One element per value: the elements can be represented.
    let own = (DType::U8, Some("acme.level"));
    let output = lossy(file(|w| stream(w, "l", "dense", own, &[9])), Some("l"), 1);
    assert_eq!(output.tensor("l").unwrap().to_vec::<u8>().unwrap(), [9]);
    let own = (DType::U8, Some("acme.pair"));
    lossy(file(|w| stream(w, "p", "dense", own, &[9, 9])), Some("p"), 0);
}

#[test]
fn types_that_it_has_are_no_losses() {
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
fn attributes_other_than_texts_of_the_file_are_lost_with_a_warning() {
    warned(with_attribute("a", "k", 1u64), None, false, 1);
    let input = file(|writer| {
        let mut object = writer.begin("w", &[0], "dense")?;
        object.set_attributes([("k", "v")].into()).unwrap();
        object.component("data", DType::F32, None)?.finish()?;
        object.finish()
    });
    warned(input, Some("w"), false, 1);
}

#[test]
fn unknown_fields_are_lost_with_a_warning_and_other_components_are_losses() {
    let input = file(|writer| {
        writer.set_extra([("x_root", "1")].into()).unwrap();
        Ok(())
    });
    warned(input, None, false, 0);
    let input = file(|writer| {
        let mut object = writer.begin("w", &[0], "dense")?;
        object.component("data", DType::F32, None)?.finish()?;
        object.component("scale", DType::F32, None)?.finish()?;
        object.finish()
    });
    lossy(input, Some("w"), 1);
}

#[test]
fn a_tensor_with_the_name_of_the_metadata_is_a_loss() {
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
        Kinds::builtin().convert(&inputs, &mut bytes, &options(false, false)).unwrap();
        bytes
    };
    assert_eq!(bytes(["c", "a", "b"]), bytes(["b", "c", "a"]));
}

/// The reader of another kind may check less. The written length is always the declared one.
#[test]
fn an_array_that_is_shorter_than_its_shape_is_refused() {
    struct Lax;
    impl ObjectFormat for Lax {
        fn id(&self) -> &str {
            "dense"
        }
        fn check(&self, _: &Signature<'_>, _: &Registry) -> zt::formats::Result<()> {
            Ok(())
        }
    }
    let mut builder = FileBuilder::new(ZT, OpenOptions::new());
    builder.format(Lax);
    let source = builder.source(Memory::new([0; 8]));
    let data = Component::new(DType::F32, Blob::raw(Span::new(0, 8).unwrap()));
    let object = Object::new([4], "dense").with_component("data", data);
    builder.object("w", object, source);
    let error = try_to(&options(false, false), vec![builder.build().unwrap()]).unwrap_err();
    let found = (error.code(), error.object());
    assert_eq!(found, ("shape-size-mismatch", Some("w")));
}
