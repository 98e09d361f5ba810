//! `.zt` from the outside in: framing, manifest, everything.

use zt::container::Footer;
use zt::manifest::{Index, Manifest, Placement};
use zt::{Layout, Limits, Memory, Object, OpenOptions};

use super::limits;
use crate::observe::observe;

/// A whole file: where its manifest and its data are.
pub fn footer(bytes: &[u8]) {
    let Ok(footer) = Footer::locate(&Memory::new(bytes), &limits()) else {
        return;
    };
    let (data, manifest) = (footer.data(), footer.manifest());
    assert_eq!(data.offset(), 8);
    assert_eq!(data.end(), manifest.offset());
    assert!(!manifest.is_empty());
    let trailer = if footer.layout() == Layout::V1_1 { 16 } else { 8 };
    assert_eq!(manifest.end() + trailer, bytes.len() as u64);
}

/// A manifest: read as each layout, every object decoded and judged, written again.
pub fn manifest(bytes: &[u8]) {
    for layout in [Layout::V0_1, Layout::V1_0, Layout::V1_1] {
        if let Ok(index) = Index::parse(bytes, layout, &limits()) {
            check_index(&index, layout);
        }
    }
}

fn check_index(index: &Index<&[u8]>, layout: Layout) {
    let data = zt::Span::new(8, 1 << 40).expect("no overflow");
    let placement = Placement::new(layout, data, limits());
    let mut objects = Vec::new();
    let mut warnings = Vec::new();
    for at in 0..index.len() {
        assert_eq!(index.find(index.name(at)), Some(at), "names are unique and found");
        let object = index.object(at).validate(&placement, &mut warnings);
        let at_once = index.validated(at, &placement, &mut Vec::new());
        assert_eq!(format!("{at_once:?}"), format!("{object:?}"));
        match object {
            Ok(object) => objects.push((index.name(at).to_owned(), object)),
            Err(fault) => assert!(!fault.error.to_string().is_empty()),
        }
    }
    let attributes = index.attributes().expect("small");
    let extra = index.extra().expect("small");
    // Layouts before 1.1 say things that 1.2 has no place for.
    if layout != Layout::V1_1 || objects.iter().any(|(_, object)| has_no_length(object)) {
        return;
    }
    let manifest = Manifest { attributes, objects, extra };
    let cbor = manifest.to_cbor().expect("what was read can be written");
    let again =
        Index::parse(&cbor[..], layout, &Limits::default()).expect("what was written reads");
    assert_eq!(again.attributes().unwrap(), manifest.attributes);
    assert_eq!(again.extra().unwrap(), manifest.extra);
    assert_eq!(again.len(), manifest.objects.len());
    for (name, object) in &manifest.objects {
        let at = again.find(name).expect("every name that was written");
        let read = again.object(at).validate(&placement, &mut warnings).expect("as before");
        assert_eq!(normal(read), normal(object.clone()));
    }
}

/// What is the same to a reader: roles have no order, and a type that repeats the dtype says nothing.
fn normal(mut object: Object) -> Object {
    object.components.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (_, component) in &mut object.components {
        let dtype = component.dtype.map(|dtype| dtype.as_str());
        component.logical_type.take_if(|name| Some(&**name) == dtype);
    }
    object
}

/// Version 1.1 has zstd without a length, which version 1.2 does not.
fn has_no_length(object: &Object) -> bool {
    object.components.iter().any(|(_, component)| component.blob.decoded_len.is_none())
}

/// A whole file: opened, listed, read in every way, verified, hashed.
pub fn open_all(bytes: &[u8]) {
    let seen = observe(OpenOptions::new().limits(limits()).open_bytes(bytes.to_vec()));
    let strict = OpenOptions::new().limits(limits()).strict(true).open_bytes(bytes.to_vec());
    let faulty = seen.objects.values().any(|object| object.fault.is_some());
    assert_eq!(strict.is_err(), faulty || seen.refused.is_some());
}
