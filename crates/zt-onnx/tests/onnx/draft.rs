//! Models that are written field by field, and helpers for opened ones.

use std::path::Path;

use zt::{Element, File, Memory, Result, Source, VerifyOptions};
use zt_foreign::{FileKind, InputOptions, Probe};
use zt_onnx::Onnx;

/// Types of `TensorProto`.
pub(crate) const FLOAT: u64 = 1;
pub(crate) const UINT8: u64 = 2;
pub(crate) const INT64: u64 = 7;
pub(crate) const DOUBLE: u64 = 11;

pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}

/// A field with an integer.
pub(crate) fn int(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

/// A field with bytes: a string, packed values or a message.
pub(crate) fn field(number: u64, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

pub(crate) fn model(graph: &[Vec<u8>]) -> Vec<u8> {
    [int(1, 9), field(7, graph.concat()), field(8, int(2, 17))].concat()
}

pub(crate) fn tensor(name: &str, data_type: u64, shape: &[u64], values: &[Vec<u8>]) -> Vec<u8> {
    let shape: Vec<u8> = shape.iter().flat_map(|dimension| int(1, *dimension)).collect();
    [shape, int(2, data_type), field(8, name), values.concat()].concat()
}

pub(crate) fn raw(values: &[f32]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    field(9, bytes)
}

pub(crate) fn initializer(name: &str, values: &[f32]) -> Vec<u8> {
    field(5, tensor(name, FLOAT, &[values.len() as u64], &[raw(values)]))
}

/// The fields of a tensor with external data.
pub(crate) fn external(pairs: &[(&str, &str)]) -> Vec<u8> {
    let pair = |(key, value): &(&str, &str)| field(13, [field(1, key), field(2, value)].concat());
    let pairs: Vec<u8> = pairs.iter().flat_map(pair).collect();
    [pairs, int(14, 1)].concat()
}

pub(crate) fn beside(name: &str, pairs: &[(&str, &str)]) -> Vec<u8> {
    model(&[field(5, tensor(name, UINT8, &[4], &[external(pairs)]))])
}

pub(crate) fn opened(bytes: Vec<u8>) -> Result<File> {
    opened_with(Memory::new(bytes), InputOptions::new())
}

/// A model with one initializer.
pub(crate) fn one_tensor(tensor: impl AsRef<[u8]>) -> File {
    opened(model(&[field(5, tensor)])).unwrap()
}

pub(crate) fn is_recognised(bytes: &[u8]) -> bool {
    let source = Memory::new(bytes);
    let probe = Probe::new(&source).unwrap();
    Onnx.recognise(&probe).unwrap()
}

pub(crate) fn opened_with(
    source: impl Source + 'static,
    options: impl Into<InputOptions>,
) -> Result<File> {
    let input = Onnx.open_source(Box::new(source), &options.into())?;
    Ok(input.into_file())
}

pub(crate) fn opened_at(path: impl AsRef<Path>) -> Result<File> {
    let input = Onnx.open_path(path.as_ref(), &InputOptions::new())?;
    Ok(input.into_file())
}

/// A `NodeProto` with these attributes.
pub(crate) fn node(output: &str, name: &str, operator: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let names = [field(2, output), field(3, name), field(4, operator)].concat();
    let attributes: Vec<u8> = attributes.iter().flat_map(|it| field(5, it)).collect();
    [names, attributes].concat()
}

/// A node that gives one value.
pub(crate) fn constant(output: &str, name: &str) -> Vec<u8> {
    let value = field(5, tensor("", FLOAT, &[1], &[raw(&[2.0])]));
    node(output, name, "Constant", &[[field(1, "value"), value].concat()])
}

/// Values and indices of a `SparseTensorProto`, in a shape.
pub(crate) fn sparse(values: &[u8], indices: &[u8], shape: &[u64]) -> Vec<u8> {
    let shape: Vec<u8> = shape.iter().flat_map(|it| int(3, *it)).collect();
    [field(1, values), field(2, indices), shape].concat()
}

pub(crate) fn indices(values: &[u64], shape: &[u64]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|it| it.to_le_bytes()).collect();
    tensor("", INT64, shape, &[field(9, bytes)])
}

/// The names of what is no tensor.
pub(crate) fn left_out(file: &File) -> Vec<String> {
    let warnings = file.warnings().into_iter();
    let others = warnings.filter(|it| it.code == "not-tensor");
    others.filter_map(|it| it.object).collect()
}

/// The names of all objects, sorted.
pub(crate) fn names(file: &File) -> Vec<&str> {
    let mut names: Vec<&str> = file.names().collect();
    names.sort_unstable();
    names
}

pub(crate) fn elements<T: Element>(file: &File, name: &str) -> Vec<T> {
    let tensor = file.tensor(name).unwrap();
    tensor.values::<T>().unwrap().to_vec()
}

/// The code of a tensor's fault, which names the tensor.
pub(crate) fn code(file: &File, name: &str) -> &'static str {
    let error = file.tensor(name).unwrap_err();
    assert_eq!(error.object(), Some(name));
    assert!(error.to_string().contains(name));
    error.code()
}

/// The code that verification finds.
pub(crate) fn found(file: &File) -> &'static str {
    let report = file.verify(&VerifyOptions::default()).unwrap();
    report.problems.first().unwrap().code()
}

/// Whether strict verification finds nothing.
pub(crate) fn is_strict(file: &File) -> bool {
    let options = VerifyOptions::new().strict(true);
    file.verify(&options).unwrap().problems.is_empty()
}
