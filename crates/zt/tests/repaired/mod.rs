//! Files to be repaired, and what a repair makes of them.
#![allow(dead_code, reason = "each test uses some of it")]

use std::collections::BTreeMap;
use std::sync::Arc;

use zt::repair::{Recovery, RepairOptions, examine, repair_storage};
use zt::{Memory, Storage, WriteOptions, Writer};

use crate::simulated::{self, Failure, Recorder, dense};

pub(crate) type Objects = BTreeMap<String, Vec<i32>>;

pub(crate) fn look(bytes: &[u8]) -> Recovery {
    examine(Memory::new(Vec::from(bytes)), &options()).unwrap()
}

/// The file after a repair in place.
pub(crate) fn mended(bytes: &[u8]) -> (Recovery, Vec<u8>) {
    let storage = Recorder::new(bytes, Failure::Never);
    let recovery = repair_storage(Arc::clone(&storage) as Arc<dyn Storage>, &options()).unwrap();
    let file = storage.with(|state| state.file.clone());
    (recovery, file)
}

pub(crate) fn options() -> RepairOptions<'static> {
    RepairOptions::default()
}

pub(crate) fn saved(recovery: &Recovery) -> zt::Result<Vec<u8>> {
    let (bytes, byte_len) = recovery.save_to(Vec::new(), None)?;
    assert_eq!(bytes.len() as u64, byte_len);
    Ok(bytes)
}

pub(crate) fn objects(bytes: &[u8]) -> Objects {
    simulated::values(bytes).unwrap()
}

pub(crate) fn written(options: WriteOptions, objects: &[(&str, &[i32])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for (name, values) in objects {
        writer.add(name, &dense(values)).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// A file whose manifest says something behind its objects, as they are ordered.
pub(crate) fn with_attributes(objects: &[(&str, &[i32])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let mut attributes = zt::Attributes::new();
    attributes.insert("step", 7_u64);
    writer.set_attributes(attributes).unwrap();
    for (name, values) in objects {
        writer.add(name, &dense(values)).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// As it is after these edits.
pub(crate) fn edited(bytes: &[u8], edit: impl FnOnce(&mut zt::Editor)) -> Vec<u8> {
    let storage = Recorder::new(bytes, Failure::Never);
    let mut editor =
        WriteOptions::new().edit_storage(Arc::clone(&storage) as Arc<dyn Storage>).unwrap();
    edit(&mut editor);
    editor.commit().unwrap();
    storage.with(|state| state.file.clone())
}

/// A file and each of its generations, as long as it was then.
pub(crate) fn generations() -> (Vec<u8>, Vec<Objects>) {
    let first = written(WriteOptions::new(), &[("a", &[1; 40]), ("b", &[2; 10])]);
    let second = edited(&first, |edit| {
        edit.writer().add("c", &dense(&[3; 30])).unwrap();
    });
    let third = edited(&second, |edit| {
        edit.remove("b").unwrap();
        edit.rename("a", "first").unwrap();
    });
    let fourth = edited(&third, |edit| {
        edit.writer().add("d", &dense(&[4; 5])).unwrap();
    });
    let all = [&first, &second, &third, &fourth].map(|file| objects(file));
    (fourth, all.to_vec())
}
