//! Parts of the inputs that are kept, and parts that are changed on request.

use std::io::Write;

use zt::formats::{Decode, F8E4M3Fn};
use zt::{
    Attributes, Csr, DType, Dense, File, FloatType, LogicalType, OpenOptions, Registry, Value,
    WriteOptions, Writer,
};
use zt_convert::{ConvertOptions, Input, Kinds, ZT};

use crate::draft::{file, one, quantized, sparse, try_to, with_attribute, zt_with};

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
fn attributes_unite_and_the_first_value_is_kept_with_a_warning() {
    let options = ConvertOptions::new(ZT);
    let inputs = || vec![with_attribute("a", "k", "1"), with_attribute("b", "k", "1")];
    let (file, _) = try_to(&options, inputs()).unwrap();
    assert_eq!(file.attributes().unwrap().unwrap().len(), 1);

    let inputs = || vec![with_attribute("a", "k", "1"), with_attribute("b", "k", "2")];
    let (file, summary) = try_to(&options, inputs()).unwrap();
    let attributes = file.attributes().unwrap().unwrap();
    assert_eq!(attributes.get("k").unwrap().as_str(), Some("1"));
    assert_eq!(summary.warnings.len(), 1);
    assert_eq!(summary.warnings[0].code, "lossy");
}

#[test]
fn all_metadata_of_a_file_survive() {
    let map = |key: &str| {
        let list = Value::array(vec![Value::Null, Value::Bytes(vec![1]), Value::Float(0.5)]);
        let mut map = Attributes::new();
        map.insert(key, list);
        map
    };
    let input = file(|writer| {
        writer.set_attributes(map("of the file")).unwrap();
        writer.set_extra(map("x_root")).unwrap();
        let mut object = writer.begin("w", &[2], "acme.unknown/1")?;
        object.set_attributes(map("of the object")).unwrap();
        object.set_extra(map("x_object")).unwrap();
        for role in ["second", "first"] {
            let mut component = object.component(role, DType::U8, Some("acme.type".into()))?;
            component.set_extra(map("x_component")).unwrap();
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
fn a_file_with_the_same_storage_comes_out_byte_for_byte() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let graph = Csr::new([2, 3], &[7i32, 8], vec![2, 0], vec![0, 1, 2]).unwrap();
    writer.add("z", &graph).unwrap();
    writer.add("a", &Dense::from_slice(&[1], &[1.0f32]).unwrap()).unwrap();
    writer.finish().unwrap();
    let input = Input::from(File::from_bytes(bytes.clone()).unwrap());
    let mut output = Vec::new();
    Kinds::builtin().convert(&[input], &mut output, &ConvertOptions::new(ZT)).unwrap();
    assert!(output == bytes);
}

#[test]
fn floating_values_are_cast_and_others_stay() {
    // More bytes than are read at a time.
    let many: Vec<f64> = (0..300_000u32).map(|i| f64::from(i) / 7.0).collect();
    let f8: Vec<F8E4M3Fn> = (0..=255).map(F8E4M3Fn::from_bits).collect();
    let input = file(|writer| {
        writer.add("many", &Dense::from_slice(&[300_000], &many)?)?;
        writer.add("f8", &Dense::from_slice(&[256], &f8)?)?;
        writer.add("int", &Dense::from_slice(&[1], &[1u16])?)?;
        writer.add("same", &Dense::from_slice(&[1], &[f32::from_bits(0x7fc0_1234)])?)?;
        writer.add("sparse", &Csr::new([1, 1], &[1.0f64], vec![0], vec![0, 1])?)
    });
    let options = zt_with(|options| options.dtype = Some(FloatType::F32));
    let (output, summary) = try_to(&options, vec![input]).unwrap();
    let expected: Vec<f32> = many.iter().map(|value| *value as f32).collect();
    assert!(output.tensor("many").unwrap().to_vec::<f32>().unwrap() == expected);
    let values = output.tensor("f8").unwrap().to_vec::<f32>().unwrap();
    assert!(values.iter().zip(&f8).all(|(a, b)| a.to_bits() == b.to_f32().to_bits()));
    assert_eq!(output.tensor("int").unwrap().to_vec::<u16>().unwrap(), [1]);
    let same = output.tensor("same").unwrap().to_vec::<f32>().unwrap();
    assert_eq!(same[0].to_bits(), 0x7fc0_1234);
    assert_eq!(output.tensor("sparse").unwrap().format(), "sparse_csr");
    assert_eq!(summary.bytes, 1_200_000 + 1024 + 2 + 4 + 8 + 8 + 16);
}

#[test]
fn a_cast_changes_values_alone() {
    let input = file(|writer| {
        let mut object = writer.begin("w", &[1], "dense")?;
        for role in ["data", "scale"] {
            let mut component = object.component(role, DType::F64, None)?;
            component.write_all(&1.5f64.to_le_bytes()).unwrap();
            component.finish()?;
        }
        object.finish()
    });
    let options = zt_with(|options| options.dtype = Some(FloatType::F32));
    let (output, _) = try_to(&options, vec![input]).unwrap();
    let tensor = output.tensor("w").unwrap();
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.5]);
    let scale = tensor.component("scale").unwrap();
    assert_eq!(scale.dtype, Some(DType::F64));
    assert_eq!(*tensor.bytes("scale").unwrap(), 1.5f64.to_le_bytes());
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
    assert_eq!(*tensor.values::<f32>().unwrap(), *expected.as_slice::<f32>().unwrap());
    // Attributes that were needed for decoding are gone.
    assert!(tensor.attributes().is_empty());
}

#[test]
fn attributes_of_coordinates_are_dropped_with_them() {
    let coo = file(|writer| {
        let mut object = writer.begin("a", &[2, 2], "sparse_coo")?;
        object.set_attributes([("is_coalesced", true)].into_iter().collect()).unwrap();
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

/// A piece that is read at a time ends with a whole value, for values of any length.
#[test]
fn values_of_three_bytes_are_cast_whole() {
    let decode = Decode::F32(|bytes| f32::from(u16::from_le_bytes([bytes[0], bytes[2]])));
    let mut u24 = LogicalType::new("acme.u24", DType::U8, decode);
    u24.storage_elements = std::num::NonZero::new(3).unwrap();
    let registry = Registry::builtin().with_logical_type(u24);
    let mut bytes = Vec::new();
    let options = WriteOptions::new().registry(registry.clone());
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let numbers = || (0..400_000u32).map(|at| at as u16);
    let mut object = writer.begin("w", &[400_000], "dense").unwrap();
    let mut data = object.component("data", DType::U8, Some("acme.u24".into())).unwrap();
    let stored: Vec<u8> = numbers().flat_map(|it| [it as u8, 7, (it >> 8) as u8]).collect();
    data.write_all(&stored).unwrap();
    data.finish().unwrap();
    object.finish().unwrap();
    writer.finish().unwrap();
    let input = OpenOptions::new().registry(registry).open_bytes(bytes).unwrap();
    let options = zt_with(|options| options.dtype = Some(FloatType::F32));
    let (output, _) = try_to(&options, vec![input]).unwrap();
    let found = output.tensor("w").unwrap().to_vec::<f32>().unwrap();
    assert!(found.into_iter().eq(numbers().map(f32::from)));
}

#[test]
fn an_object_that_breaks_a_rule_of_its_format_is_kept_with_a_warning() {
    let mut bytes = Vec::new();
    let mut writer = zt::Writer::new(&mut bytes).unwrap();
    let object = writer.begin("w", &[2, 4], "quantized_group").unwrap();
    let mut object = object.unchecked();
    let mut packed = object.component("packed_weight", zt::DType::U8, None).unwrap();
    std::io::Write::write_all(&mut packed, &[1, 2, 3, 4]).unwrap();
    packed.finish().unwrap();
    object.finish().unwrap();
    writer.finish().unwrap();

    for lossy in [false, true] {
        let input = Input::from(zt::File::from_bytes(bytes.clone()).unwrap());
        let mut options = ConvertOptions::new(ZT);
        options = options.lossy(lossy);
        let mut out = Vec::new();
        let summary = Kinds::builtin().convert(&[input], &mut out, &options).unwrap();
        assert_eq!(summary.objects, 1);
        assert_eq!(summary.warnings[0].object.as_deref(), Some("w"));
        let file = zt::File::from_bytes(out).unwrap();
        let tensor = file.tensor("w").unwrap();
        assert_eq!(*tensor.bytes("packed_weight").unwrap(), [1, 2, 3, 4]);
        assert!(tensor.fault().is_some());
    }
}
