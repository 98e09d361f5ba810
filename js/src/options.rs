//! How a file is opened, as JavaScript asks for it.

use js_sys::{Array, Object};
use wasm_bindgen::prelude::wasm_bindgen;
use zt::{Error, ErrorKind, FloatType, Limits, OpenOptions, Result, codes};
use zt_convert::{InputOptions, Logical, MlDtype};

#[wasm_bindgen]
extern "C" {
    /// The options of `open` in `zt/index.js`.
    pub type Options;

    #[wasm_bindgen(method, getter)]
    fn strict(this: &Options) -> bool;

    #[wasm_bindgen(method, getter)]
    fn truncated(this: &Options) -> bool;

    #[wasm_bindgen(method, getter)]
    fn names(this: &Options) -> Option<Vec<String>>;

    #[wasm_bindgen(method, getter, js_name = mlDtypes)]
    fn ml_dtypes(this: &Options) -> Vec<String>;

    #[wasm_bindgen(method, getter)]
    fn limits(this: &Options) -> Object;

    #[wasm_bindgen(method, getter)]
    fn logical(this: &Options) -> Option<String>;
}

impl Options {
    /// How the weights of quantized checkpoints are read, if they are: with a type, or an empty text for the library's own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`] for another type.
    pub(crate) fn of_weights(&self) -> Result<Option<Logical>> {
        let Some(name) = self.logical().filter(|name| !name.is_empty()) else {
            return Ok(self.logical().map(|_| Logical::new()));
        };
        let known = [FloatType::F32, FloatType::BF16, FloatType::F16];
        match FloatType::from_name(&name).filter(|float| known.contains(float)) {
            Some(float) => Ok(Some(Logical::new().float(float))),
            None => {
                Err(misuse(format!("logical is {name:?}: pass true, \"f32\", \"bf16\" or \"f16\"")))
            }
        }
    }

    /// The options of the engine.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`] for a type or a limit that it does not have.
    pub(crate) fn input(&self) -> Result<InputOptions> {
        let open = OpenOptions::new().strict(self.strict()).limits(limits(&self.limits())?);
        let known = |name: &String| {
            let unknown = || misuse(format!("ml_dtypes has no {name:?} that files can have"));
            MlDtype::from_name(name).ok_or_else(unknown)
        };
        let ml_dtypes: Result<Vec<_>> = self.ml_dtypes().iter().map(known).collect();
        Ok(InputOptions::new()
            .open(open)
            .truncated(self.truncated())
            .names(self.names().map(|names| names.into_iter().collect()))
            .ml_dtypes(ml_dtypes?))
    }
}

fn limits(asked: &Object) -> Result<Limits> {
    let mut limits = Limits::default();
    for entry in Object::entries(asked).iter().map(|it| Array::from(&it)) {
        let (name, value) = (entry.get(0).as_string(), entry.get(1).as_f64());
        let (Some(name), Some(value)) = (name, value) else {
            return Err(misuse("a limit is not a number".into()));
        };
        #[expect(clippy::cast_possible_truncation, reason = "others saturate")]
        let value = value as u64;
        let count = usize::try_from(value).unwrap_or(usize::MAX);
        match name.as_str() {
            "manifestLength" => limits.manifest_len = value,
            "nesting" => limits.nesting = count,
            "decodedLength" => limits.decoded_len = value,
            "rank" => limits.rank = count,
            "components" => limits.components = count,
            "nameLength" => limits.name_len = count,
            "attributesLength" => limits.attributes_len = count,
            "overlap" => limits.overlap = value,
            _ => return Err(misuse(format!("there is no limit {name:?}"))),
        }
    }
    Ok(limits)
}

pub(crate) fn misuse(message: String) -> Error {
    Error::new(ErrorKind::Misuse, codes::MISUSE, message)
}
