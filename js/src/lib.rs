//! The WebAssembly module of the npm package `zt-tensor`, which `zt/index.js` loads and wraps.
//!
//! ```text
//! index.js (open, TensorFile, Tensor) -> OpenFile (this crate) -> zt-model, zt-convert, every kind of file
//!     ^ retries                             | read, willRead, beside
//! session.js, readers.js <------------------+ Host
//! ```
//!
//! The engine reads synchronously, and JavaScript fetches asynchronously. So a read of bytes that are not here
//! fails, and [`host::Host`] notes them. JavaScript drops the result, fetches the bytes, and makes the same call
//! again, until no read fails. Calls have no effects but their results, and the engine keeps no error of a read.
//!
//! Absent here: fetching, caches, and which typed array has which values. They are in `zt/`.

mod convert;
mod error;
mod file;
mod host;
mod options;
mod report;
mod value;

use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn report(message: &str);
}

/// A panic ends the module. Its message goes to the console, because the exception has none.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| report(&panic.to_string())));
}
