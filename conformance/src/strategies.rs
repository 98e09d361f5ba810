//! Arbitrary files for proptest. What they can be is said once, in [`crate::generate`]; proptest
//! chooses the bytes that decide, and shrinks them: fewer bytes make smaller files.

use proptest::collection::vec;
use proptest::prelude::*;
use zt::{Attributes, NewObject, Value};

use crate::decisions::Decisions;
use crate::generate;
use crate::written::NewFile;

/// A file: up to five objects of different names, attributes, and how they are stored.
pub fn file() -> impl Strategy<Value = NewFile> {
    decided(1500, generate::file)
}

/// An object of any format, known or not.
pub fn object() -> impl Strategy<Value = NewObject<'static>> {
    decided(400, generate::object)
}

/// A map of attributes, some of whose keys are no text.
pub fn attributes() -> impl Strategy<Value = Attributes> {
    decided(200, generate::attributes)
}

/// Any value that CBOR can say, a few levels deep.
pub fn value() -> impl Strategy<Value = Value> {
    decided(100, generate::value)
}

/// A name or a role: any text, mostly short, now and then empty.
pub fn name() -> impl Strategy<Value = String> {
    decided(20, generate::name)
}

fn decided<T: std::fmt::Debug>(
    most: usize,
    make: fn(&mut Decisions<'_>) -> T,
) -> impl Strategy<Value = T> {
    vec(any::<u8>(), 0..most).prop_map(move |bytes| make(&mut Decisions::new(&bytes)))
}
