//! A file of another kind, written without a file system.

use std::io::{self, Write};

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use zt::{FloatType, WriteOptions};
use zt_convert::{ConvertOptions, Kinds};

use crate::error::{OrThrow, Result, warning};
use crate::file::OpenFile;
use crate::options::misuse;
use crate::value::{array, number, object};

#[wasm_bindgen]
extern "C" {
    /// What `convert` in `zt/index.js` was asked for.
    pub type Wanted;

    #[wasm_bindgen(method, getter)]
    fn kind(this: &Wanted) -> String;

    #[wasm_bindgen(method, getter)]
    fn names(this: &Wanted) -> Option<Vec<String>>;

    #[wasm_bindgen(method, getter)]
    fn dtype(this: &Wanted) -> Option<String>;

    #[wasm_bindgen(method, getter)]
    fn dialect(this: &Wanted) -> Option<String>;

    #[wasm_bindgen(method, getter)]
    fn zstd(this: &Wanted) -> Option<f64>;

    #[wasm_bindgen(method, getter)]
    fn planes(this: &Wanted) -> bool;

    #[wasm_bindgen(method, getter)]
    fn dense(this: &Wanted) -> bool;

    #[wasm_bindgen(method, getter, js_name = dropUnsupported)]
    fn drop_unsupported(this: &Wanted) -> bool;

    #[wasm_bindgen(method, getter, js_name = skipDamaged)]
    fn skip_damaged(this: &Wanted) -> bool;

    #[wasm_bindgen(method, getter, js_name = allowInf)]
    fn allow_inf(this: &Wanted) -> bool;

    /// Copies the next bytes of the new file. Throws if JavaScript has no memory for them.
    #[wasm_bindgen(method, catch)]
    fn write(this: &Wanted, bytes: &[u8]) -> Result<(), JsValue>;
}

#[wasm_bindgen]
impl OpenFile {
    /// Writes the file as another kind, piece by piece, to `wanted.write`. A call that is made again writes the same bytes.
    pub fn convert(&self, wanted: &Wanted) -> Result<JsValue> {
        let kinds = Kinds::builtin();
        let options = wanted.options(&kinds).or_throw()?;
        let names = wanted.names();
        let file = self.some(names.as_deref()).or_throw()?;
        let input = self.input().clone().with_file(file);
        let summary = kinds.convert(&[input], Out(wanted), &options).or_throw()?;
        Ok(object([
            ("byteLength", number(summary.byte_len)),
            ("warnings", array(summary.warnings.iter().map(warning))),
        ]))
    }
}

impl Wanted {
    fn options(&self, kinds: &Kinds) -> zt::Result<ConvertOptions<'static>> {
        let name = self.kind();
        let kind = kinds.get(&name).filter(|kind| kind.writer().is_some()).ok_or_else(|| {
            let all = kinds.iter().filter(|kind| kind.writer().is_some());
            let all: Vec<&str> = all.map(|kind| kind.kind().as_str()).collect();
            misuse(format!("kind is {name:?}: pass one of {}", all.join(", ")))
        })?;
        let mut write = WriteOptions::new();
        if self.planes() {
            write = write.planes();
        }
        if let Some(level) = self.zstd() {
            #[expect(clippy::cast_possible_truncation, reason = "compared with the number")]
            let whole = level as i32;
            if f64::from(whole) != level || !(-7..=22).contains(&whole) {
                return Err(misuse(format!("zstd is {level}: pass a level from -7 to 22")));
            }
            write = write.zstd(whole);
        }
        let dtype = self.dtype().map(|name| {
            FloatType::from_typed(&name).ok_or_else(|| {
                let all = FloatType::ALL.map(FloatType::as_str);
                misuse(format!("dtype is {name:?}: pass one of {}", all.join(", ")))
            })
        });
        Ok(ConvertOptions::new(kind.kind())
            .write(write)
            .dtype(dtype.transpose()?)
            .dialect(self.dialect())
            .dense(self.dense())
            .drop_unsupported(self.drop_unsupported())
            .skip_damaged(self.skip_damaged())
            .allow_inf(self.allow_inf()))
    }
}

/// The sink of JavaScript.
struct Out<'w>(&'w Wanted);

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(_) => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
