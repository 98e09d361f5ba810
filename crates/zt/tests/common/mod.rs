//! What the tests of this folder share.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test uses some of it")]

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use zt::{Csr, Dense, File, OpenOptions, Slice, Source, Span, ToObject, WriteOptions};

/// A source that lends nothing, as a file.
pub struct ByPosition(pub Vec<u8>);

impl Source for ByPosition {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        zt::Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

/// A source that lends nothing and counts what is read of it.
pub struct Counted(pub Vec<u8>, pub Arc<AtomicU64>);

impl Source for Counted {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.1.fetch_add(buf.len() as u64, Ordering::Relaxed);
        zt::Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

/// Bytes that are made in order: going back makes them again from the start. How many were made, and
/// where the last ended.
pub struct InOrder(Vec<u8>, Arc<AtomicU64>, AtomicU64);

impl InOrder {
    pub fn new(bytes: Vec<u8>) -> (Self, Arc<AtomicU64>) {
        let made = Arc::new(AtomicU64::new(0));
        (InOrder(bytes, Arc::clone(&made), AtomicU64::new(0)), made)
    }
}

impl Source for InOrder {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn is_sequential(&self) -> bool {
        true
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset + buf.len() as u64;
        let at = self.2.swap(end, Ordering::Relaxed);
        let from = if offset < at { 0 } else { at };
        self.1.fetch_add(end - from, Ordering::Relaxed);
        zt::Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

/// A source that lends nothing and notes what is announced of it.
pub struct Announced(pub Vec<u8>, pub Arc<Mutex<Vec<Span>>>);

impl Source for Announced {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn will_read(&self, span: Span) {
        self.1.lock().unwrap().push(span);
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        zt::Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

/// The file, and the bytes that have been read of it since it was opened.
pub fn counted(bytes: Vec<u8>) -> (File, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let source = Counted(bytes, Arc::clone(&count));
    let file = OpenOptions::new().open_source(source).unwrap();
    let _ = file.entries();
    count.store(0, Ordering::Relaxed);
    (file, count)
}

/// Any slice of a dimension of up to some `extent`.
pub fn any_slice(extent: i64) -> impl Strategy<Value = Slice> {
    let bound = || prop::option::of(-extent - extent / 4 - 2..extent + extent / 4 + 2);
    let step = prop_oneof![3 => Just(1i64), 1 => 1i64..4, 1 => -3i64..0];
    let range = (bound(), bound(), step);
    prop_oneof![
        5 => range.prop_map(|(start, stop, step)| Slice::Range { start, stop, step }),
        1 => (-extent..extent).prop_map(Slice::Index),
        1 => Just(Slice::ALL),
    ]
}

/// Files that hold the same object, each stored and read in another way.
pub fn files_of(object: &impl ToObject) -> Vec<(String, File)> {
    let mut files = Vec::new();
    for (encoding, options) in [("raw", WriteOptions::new()), ("zstd", WriteOptions::new().zstd(1))]
    {
        let bytes = written(object, options);
        for (source, file) in every_source(&bytes, &OpenOptions::new()) {
            files.push((format!("{encoding} {source}"), file.unwrap()));
        }
    }
    files
}

/// A file of the object, as `x`.
pub fn written(object: &impl ToObject, options: WriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    writer.add("x", object).unwrap();
    writer.finish().unwrap();
    bytes
}

/// A part of each object `x` equals the same part of its dense value.
pub fn agree(files: &[(String, File)], slices: &[Slice]) -> Result<(), TestCaseError> {
    for (name, file) in files {
        let tensor = file.tensor("x").unwrap();
        let expected = tensor.to_dense().unwrap().slice(slices);
        let found = tensor.slice(slices);
        match (found, expected) {
            (Ok(found), Ok(expected)) => prop_assert!(found == expected, "{}", name),
            (found, expected) => prop_assert_eq!(found.is_err(), expected.is_err(), "{}", name),
        }
    }
    Ok(())
}

/// A file with one object of each kind, in memory.
pub fn sample(options: WriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let ramp: Vec<f32> = (0..6000u16).map(f32::from).collect();
    writer.add("ramp", &Dense::from_slice(&[60, 100], &ramp).unwrap()).unwrap();
    writer.add("flags", &Dense::from_slice(&[3], &[true, false, true]).unwrap()).unwrap();
    writer.add("graph", &graph()).unwrap();
    writer.add("none", &Dense::from_slice::<u8>(&[0, 7], &[]).unwrap()).unwrap();
    writer.finish().unwrap();
    bytes
}

pub fn graph() -> Csr<'static> {
    Csr::new([2, 3], &[7i32, 8][..], &[2u64, 0][..], &[0u64, 1, 2][..]).unwrap()
}

/// The file over every way of reading bytes.
pub fn every_source(bytes: &[u8], options: &OpenOptions) -> Vec<(&'static str, zt::Result<File>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.zt");
    std::fs::write(&path, bytes).unwrap();
    let files = vec![
        ("memory", options.open_bytes(bytes.to_vec())),
        ("shared", options.open_source(zt::Memory::new(Arc::<[u8]>::from(bytes)))),
        ("position", options.open_source(ByPosition(bytes.to_vec()))),
        ("file", options.open(&path)),
    ];
    #[cfg(feature = "mmap")]
    let files = {
        // SAFETY: no other process knows the folder; unlinking it later leaves the map whole.
        let map = unsafe { zt::Map::open(&path) };
        let mapped = ("map", options.open_source(map.unwrap()));
        files.into_iter().chain([mapped]).collect()
    };
    files
}

/// Where the blob of a component lies.
pub fn span_of(file: &File, name: &str, role: &str) -> Span {
    file.tensor(name).unwrap().component(role).unwrap().blob.span
}

pub fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A checksum that takes its bytes in order: FNV-1a.
pub static CHAIN: zt::Checksum = zt::Checksum {
    name: "chain",
    hasher: || Box::new(Fnv(0xCBF2_9CE4_8422_2325)),
    combine: None,
    spell: |sum| format!("{sum:016x}"),
};

struct Fnv(u64);

impl std::hash::Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        let next = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        self.0 = bytes.iter().fold(self.0, next);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A checksum that combines: all bytes added up.
pub static ADDED: zt::Checksum = zt::Checksum {
    name: "added",
    hasher: || Box::new(Added(0)),
    combine: Some(|first, next, _| first.wrapping_add(next)),
    spell: |sum| sum.to_string(),
};

struct Added(u64);

impl std::hash::Hasher for Added {
    fn write(&mut self, bytes: &[u8]) {
        let next = |sum: u64, byte: &u8| sum.wrapping_add((*byte).into());
        self.0 = bytes.iter().fold(self.0, next);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
