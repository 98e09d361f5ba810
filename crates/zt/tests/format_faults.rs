//! Objects that break a rule of their format: their components stay readable, and only their
//! meaning is an error.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;

use zt::{Attributes, DType, File, HashOptions, VerifyOptions, Writer};

/// A file of `w`, a `quantized_group` without `packing`, as ztensor 1.2.3 wrote it, and `x`, which
/// is sound.
fn file() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let mut object = writer.begin("w", &[2, 4], "quantized_group").unwrap().unchecked();
    let mut attributes = Attributes::new();
    attributes.insert("bits", 4u64);
    attributes.insert("group_size", 4u64);
    object.set_attributes(attributes).unwrap();
    for (role, dtype, bytes) in [
        ("packed_weight", DType::U8, &[0x10, 0x32, 0x54, 0x76][..]),
        ("scales", DType::F32, &[0, 0, 128, 63, 0, 0, 0, 64]),
    ] {
        let mut component = object.component(role, dtype, None).unwrap();
        component.write_all(bytes).unwrap();
        component.finish().unwrap();
    }
    object.finish().unwrap();
    let x = zt::Dense::from_slice(&[1], &[1.0f32]).unwrap();
    writer.add("x", &x).unwrap();
    writer.finish().unwrap();
    bytes
}

#[test]
fn components_are_read_and_the_meaning_is_an_error() {
    let file = File::from_bytes(file()).unwrap();
    let tensor = file.tensor("w").unwrap();
    assert_eq!(*tensor.bytes("packed_weight").unwrap(), [0x10, 0x32, 0x54, 0x76]);
    assert_eq!(tensor.component("scales").unwrap().dtype, Some(DType::F32));
    assert_eq!(tensor.fault().unwrap().code(), "attribute");
    for error in [
        tensor.to_dense().unwrap_err(),
        tensor.slice(&[]).unwrap_err(),
        tensor.dense_reader().unwrap_err(),
        tensor.check_data().unwrap_err(),
        tensor.view::<zt::QuantizedGroup<'_>>().unwrap_err(),
    ] {
        assert_eq!((error.code(), error.object()), ("attribute", Some("w")));
    }
    let entries = file.entries();
    assert!(entries[0].fault().is_some() && entries[0].raw().is_none());
    assert!(entries[1].fault().is_none());
}

#[test]
fn the_whole_file_is_refused_where_strictness_is_asked_for() {
    let options = zt::OpenOptions::new().strict(true);
    let error = options.open_bytes(file()).unwrap_err();
    assert_eq!(error.code(), "attribute");
}

#[test]
fn verification_reports_the_fault_and_checks_the_digests() {
    let mut bytes = file();
    let report = File::from_bytes(bytes.clone()).unwrap();
    let report = report.verify(&VerifyOptions::new()).unwrap();
    let codes: Vec<_> = report.problems.iter().map(zt::Error::code).collect();
    assert_eq!(codes, ["attribute"]);
    assert_eq!(report.components, 3);

    let at = bytes.windows(4).position(|w| w == [0x10, 0x32, 0x54, 0x76]);
    bytes[at.unwrap()] ^= 1;
    let report = File::from_bytes(bytes).unwrap();
    let report = report.verify(&VerifyOptions::new()).unwrap();
    let codes: Vec<_> = report.problems.iter().map(zt::Error::code).collect();
    assert_eq!(codes, ["attribute", "digest-mismatch"]);
}

#[test]
fn every_component_is_hashed_and_there_is_no_content_identity() {
    let file = File::from_bytes(file()).unwrap();
    let hash = file.hash(&HashOptions::new().dense(true)).unwrap();
    assert_eq!(hash.content, None);
    let (_, of_w) = &hash.objects[0];
    let of_w = of_w.as_ref().unwrap();
    assert_eq!(of_w.components.len(), 2);
    assert_eq!(of_w.fault.as_ref().unwrap().code(), "attribute");
    assert_eq!(hash.errors().count(), 1);
}

#[test]
fn a_copy_keeps_the_object_as_it_is() {
    let file = File::from_bytes(file()).unwrap();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.copy("w", &file.tensor("w").unwrap()).unwrap();
    writer.finish().unwrap();
    let copy = File::from_bytes(bytes).unwrap();
    let tensor = copy.tensor("w").unwrap();
    assert_eq!(tensor.object().attributes, file.tensor("w").unwrap().object().attributes);
    assert_eq!(tensor.fault().unwrap().code(), "attribute");
    assert_eq!(tensor.bytes("scales").unwrap().len(), 8);
}
