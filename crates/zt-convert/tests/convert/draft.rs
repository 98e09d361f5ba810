//! Files to convert, and options.

use std::io::Write;

use zt::formats::{Packing, Quantization};
use zt::{Attributes, Csr, DType, Dense, Error, File, QuantizedGroup, Value, Writer};
use zt_convert::{ConvertOptions, Input, Kinds, Summary, ZT};

/// A `.zt` file that `fill` writes.
pub(crate) fn file(fill: impl FnOnce(&mut Writer<'_>) -> Result<(), Error>) -> File {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    fill(&mut writer).unwrap();
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

pub(crate) fn one(name: &str, value: f32) -> File {
    file(|writer| writer.add(name, &Dense::from_slice(&[1], &[value])?))
}

pub(crate) fn with_attribute(name: &str, key: &str, value: impl Into<Value>) -> File {
    file(|writer| {
        let mut attributes = Attributes::new();
        attributes.insert(key, value);
        writer.set_attributes(attributes).unwrap();
        writer.add(name, &Dense::from_slice(&[1], &[0u8])?)
    })
}

pub(crate) fn sparse() -> File {
    file(|writer| {
        writer.add("graph", &Csr::new([2, 3], &[7i32, 8], vec![2, 0], vec![0, 1, 2])?)?;
        writer.add("weight", &Dense::from_slice(&[1], &[1.0f32])?)
    })
}

pub(crate) fn quantized() -> File {
    let values: Vec<f32> = (0u8..64).map(f32::from).collect();
    file(|writer| {
        let packing = Packing { per_word: 8, dtype: DType::I32 };
        let quantization = Quantization::new(4, 32, packing);
        let group = QuantizedGroup::quantize([8, 8], &values, quantization)?;
        writer.add("q", &group)
    })
}

pub(crate) fn stream(
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
pub(crate) fn try_to(
    options: &ConvertOptions<'_>,
    inputs: Vec<File>,
) -> Result<(File, Summary), Error> {
    let inputs: Vec<Input> = inputs.into_iter().map(Input::from).collect();
    let mut bytes = Vec::new();
    let summary = Kinds::builtin().convert(&inputs, &mut bytes, options)?;
    assert_eq!(summary.byte_len, bytes.len() as u64);
    let file = zt_convert::open_source(zt::Memory::new(bytes))?;
    assert_eq!(file.kind(), options.target);
    assert_eq!(file.len() as u64, summary.objects);
    Ok((file, summary))
}

pub(crate) fn zt_with(change: impl FnOnce(&mut ConvertOptions<'_>)) -> ConvertOptions<'static> {
    let mut options = ConvertOptions::new(ZT);
    change(&mut options);
    options
}
