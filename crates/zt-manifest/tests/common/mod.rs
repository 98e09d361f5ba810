//! Manifests as real writers make them, and invalid ones.
#![allow(dead_code, reason = "each test file uses some of it")]

use ciborium::{Value, cbor};
use zt_manifest::{Fault, Index, Layout, Limits, Object, Placement, Span, Warning};

/// The bytes of a value, in the order it is written in.
pub(crate) fn encode(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
}

/// A component of 24 bytes at 64, in the field order of the 1.2 writers.
pub(crate) fn component() -> Value {
    cbor!({"dtype" => "f32", "offset" => 64, "length" => 24}).unwrap()
}

/// A dense object of one component.
pub(crate) fn object(component: Value) -> Value {
    cbor!({"shape" => [2, 3], "format" => "dense", "components" => {"data" => component}}).unwrap()
}

/// A manifest of one object `w`.
pub(crate) fn manifest(object: Value) -> Vec<u8> {
    encode(&cbor!({"version" => "1.2.0", "objects" => {"w" => object}}).unwrap())
}

/// The keys and values of `map`.
pub(crate) fn pairs(map: &mut Value) -> &mut Vec<(Value, Value)> {
    match map {
        Value::Map(pairs) => pairs,
        other => panic!("no map: {other:?}"),
    }
}

/// `map` with `key` set, at its end where it is new.
pub(crate) fn with(mut map: Value, key: &str, value: impl Into<Value>) -> Value {
    map = without(map, key);
    pairs(&mut map).push((Value::from(key), value.into()));
    map
}

/// `map` without `key`.
pub(crate) fn without(mut map: Value, key: &str) -> Value {
    pairs(&mut map).retain(|(name, _)| *name != Value::from(key));
    map
}

pub(crate) fn parse<B: AsRef<[u8]>>(bytes: B, layout: Layout) -> zt_manifest::Result<Index<B>> {
    Index::parse(bytes, layout, &Limits::default())
}

/// The code with which a manifest is refused.
pub(crate) fn refused(bytes: &[u8], layout: Layout) -> &'static str {
    match parse(bytes, layout) {
        Ok(_) => panic!("accepted: {bytes:x?}"),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            error.code()
        }
    }
}

pub(crate) fn placement(layout: Layout) -> Placement {
    Placement::new(layout, Span::new(8, 1000).unwrap(), Limits::default())
}

/// The object `w`, its data region being 8..1008, and what there is to warn of.
pub(crate) fn validated(bytes: &[u8], layout: Layout) -> Result<(Object, Vec<Warning>), Fault> {
    let index = parse(bytes, layout).unwrap();
    let (w, placement) = (index.find("w").unwrap(), placement(layout));
    let mut warnings = Vec::new();
    let object = index.object(w).validate(&placement, &mut warnings);
    let mut again = Vec::new();
    let at_once = index.validated(w, &placement, &mut again);
    assert_eq!(format!("{at_once:?}"), format!("{object:?}"));
    assert_eq!(again, warnings);
    Ok((object?, warnings))
}

/// The code, role and message of the fault of an object `w` of version 1.2.
pub(crate) fn fault(object: Value) -> (&'static str, Option<String>, String) {
    match validated(&manifest(object), Layout::V1_1) {
        Ok((object, _)) => panic!("accepted: {object:?}"),
        Err(Fault { role, error }) => (error.code(), role, error.to_string()),
    }
}
