//! An open file, as JavaScript calls it.

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use zt::formats::Delta;
use zt::{DType, Dense, Error, ErrorKind, Slice, Tensor, VerifyOptions, codes};
use zt_convert::{Input, Kinds};
use zt_model::{Check, Patch, is_delta};

use crate::error::{OrThrow, Result, fields, warning};
use crate::host::{Host, HostFolder, HostSource};
use crate::options::Options;
use crate::value::{array, attributes, number, object};

/// A file of any kind.
#[wasm_bindgen]
pub struct OpenFile {
    input: Input,
    host: Host,
}

#[wasm_bindgen]
impl OpenFile {
    /// Opens the file. `name` is its path or URL for messages, and the files that it names are beside it. Of a delta,
    /// `bases` are the first base and the earlier deltas, and the result is opened. Weights of codes are made last.
    #[wasm_bindgen(constructor)]
    pub fn new(
        host: Host,
        name: &str,
        options: &Options,
        bases: Vec<Host>,
        check: bool,
    ) -> Result<OpenFile> {
        let open = |host: &Host, name: &str| {
            let (source, folder) = (HostSource::new(host.clone()), HostFolder(host.clone()));
            Kinds::builtin().open_in(source, name, &folder, options.input()?)
        };
        let weights = |input: Input| {
            let (folder, logical) = (HostFolder(host.clone()), options.of_weights()?);
            match logical {
                Some(logical) => Kinds::builtin().logical_in(input, &folder, logical),
                None => Ok(input),
            }
        };
        let opened = open(&host, name);
        let Some((first, earlier)) = bases.split_first() else {
            let input = opened.and_then(weights).or_throw()?;
            return Ok(OpenFile { input, host });
        };
        let base = open(first, &first.name());
        let deltas = earlier.iter().map(|host| open(host, &host.name())).chain([opened]);
        // What is missing of all files is fetched at once.
        let deltas: Vec<zt::Result<Input>> = deltas.collect();
        let deltas: Vec<Input> = deltas.into_iter().collect::<zt::Result<_>>().or_throw()?;
        let check = if check { Check::Whole } else { Check::Read };
        let result = Patch::new(&base.or_throw()?, &deltas).check(check).open();
        let input = result.and_then(weights).or_throw()?;
        Ok(OpenFile { input, host })
    }

    /// The extensions of the files that can be opened.
    pub fn extensions() -> Vec<String> {
        let kinds = Kinds::builtin();
        kinds.iter().flat_map(|kind| kind.extensions()).map(|it| (*it).to_owned()).collect()
    }

    pub fn kind(&self) -> String {
        self.file().kind().as_str().to_owned()
    }

    pub fn layout(&self) -> Option<String> {
        self.file().layout().map(str::to_owned)
    }

    #[wasm_bindgen(js_name = byteLength)]
    pub fn byte_len(&self) -> JsValue {
        number(self.file().byte_len())
    }

    pub fn names(&self) -> Vec<String> {
        self.file().names().map(str::to_owned).collect()
    }

    pub fn attributes(&self) -> Result<JsValue> {
        let found = self.file().attributes().or_throw()?;
        Ok(attributes(&found.unwrap_or_default()))
    }

    pub fn warnings(&self) -> JsValue {
        array(self.file().warnings().iter().map(warning))
    }

    /// The description of a tensor.
    pub fn tensor(&self, name: &str) -> Result<JsValue> {
        let tensor = self.found(name).or_throw()?;
        let components = tensor.components().map(|(role, component)| {
            let dtype = component.logical_type.as_deref();
            let dtype = dtype.or(component.dtype.map(DType::as_str));
            object([
                ("role", role.into()),
                ("dtype", dtype.into()),
                ("byteLength", component.blob.decoded_len.map(number).into()),
                ("encoding", component.blob.encoding.as_str().into()),
            ])
        });
        Ok(object([
            ("shape", array(tensor.shape().iter().copied().map(number))),
            ("dtype", tensor.value_type().as_deref().into()),
            ("format", tensor.format().into()),
            ("attributes", attributes(tensor.attributes())),
            ("components", array(components)),
            ("fault", tensor.fault().map(fields).into()),
        ]))
    }

    /// The values of a tensor that is stored as an array.
    pub fn values(&self, name: &str, raw: bool) -> Result<JsValue> {
        let tensor = self.with_values(name).or_throw()?;
        expect_array(&tensor, self.file().registry()).or_throw()?;
        self.array(tensor.to_dense(), raw).or_throw()
    }

    /// The dense values of any tensor: quantized ones are decoded, sparse ones filled in.
    pub fn dense(&self, name: &str, raw: bool) -> Result<JsValue> {
        let tensor = self.with_values(name).or_throw()?;
        self.array(tensor.to_dense(), raw).or_throw()
    }

    /// A part of the dense values. `parts` is a text such as `0:4,:,-1`.
    pub fn slice(&self, name: &str, parts: &str, raw: bool) -> Result<JsValue> {
        let tensor = self.with_values(name).or_throw()?;
        let slices = Slice::parse_list(parts).map_err(Error::from).or_throw()?;
        self.array(tensor.slice(&slices), raw).or_throw()
    }

    /// The bytes of a component, decompressed.
    pub fn bytes(&self, name: &str, role: &str) -> Result<JsValue> {
        let tensor = self.found(name).or_throw()?;
        let bytes = tensor.bytes(role).or_throw()?;
        self.copy(&bytes).or_throw()
    }

    /// Checks the tensors with these names, or with `undefined` the whole file.
    pub fn verify(&self, strict: bool, names: Option<Vec<String>>) -> Result<JsValue> {
        let some = names.map(|names| {
            for name in &names {
                self.found(name).map(drop)?;
            }
            let choose = |name: &str| names.iter().any(|it| it == name).then(|| name.to_owned());
            self.file().select(choose)
        });
        let some = some.transpose().or_throw()?;
        let options = VerifyOptions::new().strict(strict);
        let report = some.as_ref().unwrap_or(self.file()).verify(&options);
        let report = report.or_throw()?;
        let unverified = report.unverified.iter().map(|(name, role)| {
            object([("tensor", name.as_str().into()), ("role", role.as_str().into())])
        });
        Ok(object([
            ("ok", report.is_ok().into()),
            ("problems", array(report.problems.iter().map(fields))),
            ("warnings", array(report.warnings.iter().map(warning))),
            ("unverified", array(unverified)),
            ("manifestDigest", report.manifest_digest.map_or(JsValue::NULL, JsValue::from)),
            ("byteLength", number(report.bytes)),
        ]))
    }
}

impl OpenFile {
    pub(crate) const fn input(&self) -> &Input {
        &self.input
    }

    pub(crate) const fn file(&self) -> &zt::File {
        self.input.file()
    }

    pub(crate) fn name(&self) -> String {
        self.host.name()
    }

    /// The tensor of that name. The error for an unknown name suggests the closest one.
    fn found(&self, name: &str) -> zt::Result<Tensor<'_>> {
        self.file().tensor(name).map_err(|error| match zt::nearest(name, self.file().names()) {
            Some(near) if error.code() == codes::NOT_FOUND => {
                let message = format!("{}; did you mean {near:?}?", error.message());
                Error::new(error.kind(), error.code(), message).with_object(name)
            }
            _ => error,
        })
    }

    /// The tensor of that name, if it is no change of a delta.
    fn with_values(&self, name: &str) -> zt::Result<Tensor<'_>> {
        let tensor = self.found(name)?;
        if tensor.format() == Delta::FORMAT && is_delta(self.file()) {
            let message =
                "is a change, and has values with the base alone: open the delta with `base`";
            return Err(Error::new(ErrorKind::Misuse, codes::MISUSE, message).with_object(name));
        }
        Ok(tensor)
    }

    /// The values for JavaScript, which has no small floats: they are widened to f32 unless it asks for `raw`
    /// elements.
    fn array(&self, dense: zt::Result<Dense<'static>>, raw: bool) -> zt::Result<JsValue> {
        let mut dense = dense?;
        let elements = dense.elements();
        let is_small_float = matches!(elements.dtype, DType::F16 | DType::BF16)
            || elements.logical_type().is_some_and(|name| name.starts_with("f8_"));
        if is_small_float && !raw {
            dense = dense.to_dtype(DType::F32, self.file().registry())?;
        }
        let (shape, elements) = dense.into_elements();
        let dtype = elements.dtype.as_str();
        Ok(object([
            ("shape", array(shape.into_iter().map(number))),
            ("dtype", elements.logical_type().unwrap_or(dtype).into()),
            ("stored", dtype.into()),
            ("bytes", self.copy(&elements.bytes)?),
        ]))
    }

    fn copy(&self, bytes: &[u8]) -> zt::Result<JsValue> {
        let copied = self.host.copy(bytes);
        let copied = copied.map_err(|_| {
            let message = format!("JavaScript has no memory for {} bytes", bytes.len());
            Error::new(ErrorKind::Limit, codes::ALLOCATION, message)
        });
        Ok(copied?.into())
    }
}

/// Refuses a tensor whose components are not simply its values.
fn expect_array(tensor: &Tensor<'_>, registry: &zt::Registry) -> zt::Result<()> {
    let format = registry.format(tensor.format());
    if tensor.format() == "dense" || format.is_some_and(|format| format.is_for_compression()) {
        return Ok(());
    }
    let message = format!(
        "the format is {}: `dense` gives the decoded values, `bytes` what is stored",
        tensor.format()
    );
    let error = Error::new(ErrorKind::Misuse, codes::MISUSE, message);
    Err(error.with_object(tensor.name()))
}
