//! What the tests of this folder share.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test uses some of it"
)]

use std::io;
use std::path::Path;
use std::sync::Arc;

use zt::{Csr, Dense, File, OpenOptions, Source, Span, WriteOptions};

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

/// A file with one object of each kind, in memory.
pub fn sample(options: WriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let ramp: Vec<f32> = (0..6000u16).map(f32::from).collect();
    writer
        .add("ramp", &Dense::from_slice(&[60, 100], &ramp).unwrap())
        .unwrap();
    writer
        .add(
            "flags",
            &Dense::from_slice(&[3], &[true, false, true]).unwrap(),
        )
        .unwrap();
    writer.add("graph", &graph()).unwrap();
    writer
        .add("none", &Dense::from_slice::<u8>(&[0, 7], &[]).unwrap())
        .unwrap();
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
        (
            "shared",
            options.open_source(zt::Memory::new(Arc::<[u8]>::from(bytes))),
        ),
        ("position", options.open_source(ByPosition(bytes.to_vec()))),
        ("file", options.open(&path)),
    ];
    #[cfg(feature = "mmap")]
    let files = {
        // SAFETY: nobody else knows the folder; unlinking it later leaves the map whole.
        let map = unsafe { zt::Map::open(&path) };
        let mapped = ("map", options.open_source(map.unwrap()));
        files.into_iter().chain([mapped]).collect()
    };
    files
}

/// Where the blob of a component lies.
pub fn span_of(file: &File, name: &str, role: &str) -> Span {
    file.tensor(name)
        .unwrap()
        .component(role)
        .unwrap()
        .blob
        .span
}

pub fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
