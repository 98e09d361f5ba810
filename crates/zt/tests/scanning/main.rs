//! Verifying and hashing in pieces, on any number of threads.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;
mod pieces;
mod shared;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zt::foreign::{FileBuilder, Kind};
use zt::{
    Blob, Component, DType, Encoding, File, HashOptions, Memory, Object, OpenOptions, Source,
    VerifyOptions,
};

const PIECE: usize = 1 << 20;

/// Compresses a little, and has more than four pieces.
fn content() -> Vec<u32> {
    (0..1_200_000u32).map(|value| value / 7).collect()
}

/// An object of dense values, and where they are.
fn dense(dtype: DType, len: u64, blob: Blob) -> Object {
    Object::new([len], "dense").with_component("data", Component::new(dtype, blob))
}

/// A file of objects whose bytes are all in `source`.
fn built<N: Into<String>>(
    source: impl Source + 'static,
    objects: impl IntoIterator<Item = (N, Object)>,
) -> File {
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(source);
    for (name, object) in objects {
        builder.object(name, object, source);
    }
    builder.build().unwrap()
}

fn verify(file: &File, threads: usize) -> zt::Report {
    let options = VerifyOptions::new().threads(threads);
    file.verify(&options).unwrap()
}

fn hash(file: &File, threads: usize) -> Vec<(String, String)> {
    let options = HashOptions::new().threads(threads).dense(true);
    let hash = file.hash(&options).unwrap();
    let objects = hash.objects.into_iter();
    let objects = objects.map(|(name, hash)| (name, format!("{hash:?}")));
    objects.chain([("content".into(), format!("{:?}", hash.content))]).collect()
}

fn stored(content: &[u8], encoding: Encoding) -> Vec<u8> {
    if encoding == Encoding::Raw {
        return content.to_vec();
    }
    let mut compressor = zt::container::codec::FrameCompressor::new(1).unwrap();
    let (mut frame, mut all) = (Vec::new(), Vec::new());
    for content in content.chunks(PIECE - 3) {
        compressor.compress(content, &mut frame).unwrap();
        all.extend_from_slice(&frame);
    }
    all
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Counts what is read of bytes that end early.
struct Counted(Vec<u8>, u64, Arc<AtomicU64>);

impl Source for Counted {
    fn byte_len(&self) -> u64 {
        self.1
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.2.fetch_add(buf.len() as u64, Ordering::Relaxed);
        Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

fn counted(bytes: Vec<u8>) -> (Counted, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let len = bytes.len() as u64;
    (Counted(bytes, len, Arc::clone(&count)), count)
}
