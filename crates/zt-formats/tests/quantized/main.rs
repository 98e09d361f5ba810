//! The quantized formats: each by itself, and rows of both.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

mod four_bit;
mod group;
mod rows;

use std::borrow::Cow;

use zt_formats::{Elements, Parts, f16};
use zt_manifest::Value;

pub(crate) const MISMATCH: &str = "shape-size-mismatch";

/// The worked example of spec §3 at a 64th of its size.
pub(crate) fn example() -> Parts<'static> {
    let attributes = [
        ("bits", Value::from(4u64)),
        ("group_size", Value::from(128u64)),
        ("packing", Value::from("8_per_i32")),
    ];
    Parts {
        shape: Cow::Borrowed(&[64, 64]),
        attributes: Cow::Owned(attributes.into_iter().collect()),
        elements: vec![
            ("packed_weight".into(), Elements::from(vec![0i32; 512])),
            ("scales".into(), Elements::from(vec![f16::ONE; 32])),
            ("zeros".into(), Elements::from(vec![f16::ONE; 32])),
        ],
    }
}

pub(crate) fn on(code: &'static str, role: &str) -> (&'static str, Option<String>) {
    (code, Some(role.to_owned()))
}
