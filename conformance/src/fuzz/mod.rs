//! The bodies of the fuzz targets: functions of bytes that return if all is well and panic if not.
//!
//! `fuzz/` calls them from libFuzzer, on a nightly compiler; `tests/replay.rs` calls them on stable
//! with every file of the corpus and of `fuzz-regressions`. A find becomes a file there, named for
//! what it showed.

mod container;
mod damaged;
mod delta;
mod differential;
mod edits;
mod foreign;
mod huffman;
mod in_memory;
mod parity;
mod quantized;
mod repair;
mod seal;
mod set;
mod signature;
mod slices;
mod views;
mod write_read;

use zt::Limits;

pub use container::{footer, manifest, open_all};
pub use damaged::damaged;
pub use delta::{agree as agree_on_delta, delta};
pub use differential::{assert_same, differential};
pub use edits::edits;
pub use foreign::*;
pub use huffman::{agree as agree_on_chunk, huffman};
pub use parity::parity;
pub use quantized::quantized;
pub use repair::repair;
pub use seal::seal;
pub use set::gguf_set;
pub use signature::{proof, signature};
pub use slices::slices;
pub use views::views;
pub use write_read::round_trip;

/// A target's name and body.
pub type Body = (&'static str, fn(&[u8]));

/// Every target.
pub const BODIES: [Body; 30] = [
    ("dcp", dcp),
    ("delta", delta),
    ("differential", differential),
    ("edits", edits),
    ("footer", footer),
    ("gguf", gguf),
    ("gguf_set", gguf_set),
    ("hdf5", hdf5),
    ("huffman", huffman),
    ("manifest", manifest),
    ("npy", npy),
    ("npz", npz),
    ("onnx", onnx),
    ("open_all", open_all),
    ("parity", parity),
    ("pickle", pickle),
    ("plain_pickle", plain_pickle),
    ("proof", proof),
    ("pytorch", pytorch),
    ("quantized", quantized),
    ("repair", repair),
    ("round_trip", round_trip),
    ("safetensors", safetensors),
    ("seal", seal),
    ("signature", signature),
    ("slices", slices),
    ("slm1", slm1),
    ("squizd", squizd),
    ("views", views),
    ("zt2", zt2),
];

/// Small enough that a run takes milliseconds and a leak of the limits shows.
fn limits() -> Limits {
    Limits::default().with_manifest_len(1 << 20).with_decoded_len(1 << 20)
}
