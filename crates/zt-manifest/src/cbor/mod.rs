//! CBOR (RFC 8949): a cursor over bytes, one checking pass, decoding and deterministic encoding.
//!
//! ```text
//! bytes -> scan (well-formed, UTF-8, unique keys, limits) -> decode (values)
//! values -> encode (RFC 8949 §4.2.1) -> bytes
//! ```
//!
//! Invariant: `decode` is for bytes that have passed `scan`, so it checks only types. On other bytes it
//! returns wrong values or errors, but neither panics nor reads out of bounds.

mod canonical;
mod cursor;
mod decode;
mod encode;
mod float;
mod scan;
mod unique;

pub(crate) use cursor::{Cursor, Flaw, Head, text_at};
pub(crate) use encode::{Encoder, Pairs};
pub(crate) use scan::Scanner;
pub(crate) use unique::{compare_texts, text_cmp, whole};

/// The highest limit on nesting, because a [`crate::Value`] is decoded, compared and dropped recursively. A
/// level takes less than 1 KiB of stack in a debug build.
pub const MAX_NESTING: usize = 512;

/// The longest key that is an array, a map or a tag, in encoded bytes. It bounds the memory and time to
/// compare such keys by the length of their map. Spec: §12.
pub const MAX_KEY_LEN: usize = 4096;
