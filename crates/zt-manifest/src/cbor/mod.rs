//! CBOR (RFC 8949): a cursor over bytes, one checking pass, decoding and deterministic encoding.
//!
//! ```text
//! bytes -> scan (well-formed, UTF-8, unique keys, limits) -> decode (values)
//! values -> encode (RFC 8949 §4.2.1) -> bytes
//! ```
//!
//! Invariant: `decode` reads only bytes that have passed `scan`, so it checks nothing but types. On
//! other bytes it still neither panics nor reads out of bounds.

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

/// No limit on nesting can be set higher than this, because a [`crate::Value`] is decoded, compared
/// and dropped recursively. A level takes below 1 KiB of stack in a debug build.
pub const MAX_NESTING: usize = 512;

/// Bytes of a key that is an array, a map or a tag, as it is encoded: beside them, a map of such keys
/// costs nothing to compare that its own bytes would not pay for. Spec: §12.
pub const MAX_KEY_LEN: usize = 4096;
