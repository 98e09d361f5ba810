//! The bytes of a file, which JavaScript has.

use std::io;

use js_sys::Uint8Array;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use zt::{Source, Span};
use zt_convert::foreign::{Folder, Opened};

#[wasm_bindgen]
extern "C" {
    /// A file of JavaScript: `Host` of `zt/session.js`.
    #[derive(Debug, Clone)]
    pub type Host;

    #[wasm_bindgen(method, getter, js_name = byteLength)]
    fn byte_len(this: &Host) -> f64;

    #[wasm_bindgen(method, getter)]
    pub(crate) fn name(this: &Host) -> String;

    #[wasm_bindgen(method, getter, js_name = isRemote)]
    fn is_remote(this: &Host) -> bool;

    /// Fills `out`. If some bytes are not here, notes which, and returns `false`.
    #[wasm_bindgen(method)]
    fn read(this: &Host, offset: f64, out: &mut [u8]) -> bool;

    #[wasm_bindgen(method, js_name = willRead)]
    fn will_read(this: &Host, offset: f64, byte_len: f64);

    /// The file at `location` in the folder of this one. `undefined` if there is none, or if it is not known
    /// yet, which is noted.
    #[wasm_bindgen(method)]
    fn beside(this: &Host, location: &str) -> Option<Host>;

    /// A copy of `bytes` in memory of JavaScript. Throws if there is none.
    #[wasm_bindgen(method, catch)]
    pub(crate) fn copy(this: &Host, bytes: &[u8]) -> Result<Uint8Array, JsValue>;
}

/// The engine's source over a [`Host`].
pub(crate) struct HostSource {
    host: Host,
    byte_len: u64,
}

impl HostSource {
    pub(crate) fn new(host: Host) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number; others saturate")]
        let byte_len = host.byte_len() as u64;
        HostSource { host, byte_len }
    }

    fn contains(&self, span: Span) -> bool {
        span.end() <= self.byte_len
    }
}

impl Source for HostSource {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_remote(&self) -> bool {
        self.host.is_remote()
    }

    fn will_read(&self, span: Span) {
        self.will_read_all(&[span]);
    }

    fn will_read_all(&self, spans: &[Span]) {
        for span in spans.iter().filter(|span| self.contains(**span)) {
            self.host.will_read(exact(span.offset()), exact(span.byte_len()));
        }
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let span = Span::new(offset, out.len() as u64);
        if !span.is_some_and(|span| self.contains(span)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if out.is_empty() || self.host.read(exact(offset), out) {
            return Ok(());
        }
        // Nobody sees this error: the call is made again, or JavaScript throws its own.
        Err(io::Error::other("the bytes are not here"))
    }
}

/// A place in a file. JavaScript's lengths are below 2^53, and so are the places in a file.
fn exact(place: u64) -> f64 {
    place as f64
}

/// The folder of a [`Host`].
#[derive(Debug)]
pub(crate) struct HostFolder(pub(crate) Host);

impl Folder for HostFolder {
    fn open(&self, locations: &[&str]) -> Vec<Opened> {
        let open = |location: &&str| {
            let host = self.0.beside(location);
            Ok(host.map(|host| Box::new(HostSource::new(host)) as Box<dyn Source>))
        };
        locations.iter().map(open).collect()
    }
}
