//! What is announced to remote sources before it is read.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io;
use std::sync::{Arc, Mutex};

use zt::foreign::{FileBuilder, Kind, ReadAhead};
use zt::{Blob, Component, DType, File, Object, OpenOptions, Source, Span, Writer};

type Announced = Arc<Mutex<Vec<Vec<Span>>>>;

/// So many zeros over a network. It notes what is announced.
struct Remote(u64, Announced);

impl Source for Remote {
    fn byte_len(&self) -> u64 {
        self.0
    }
    fn is_remote(&self) -> bool {
        true
    }
    fn will_read_all(&self, spans: &[Span]) {
        self.1.lock().unwrap().push(spans.to_vec());
    }
    fn read_at(&self, _: u64, buf: &mut [u8]) -> io::Result<()> {
        buf.fill(0);
        Ok(())
    }
}

/// A remote file with so many tensors of `len` bytes, and their places.
fn file(count: u64, len: u64) -> (File, Vec<Span>, Announced) {
    let announced = Announced::default();
    let mut builder = FileBuilder::new(Kind::ZT, OpenOptions::new());
    let source = builder.source(Remote(count * len, Arc::clone(&announced)));
    let spans = (0..count).map(|at| Span::new(at * len, len).unwrap());
    let spans: Vec<Span> = spans.collect();
    for (at, span) in spans.iter().enumerate() {
        let data = Component::new(DType::U8, Blob::raw(*span));
        let object = Object::new(vec![len], "dense").with_component("data", data);
        builder.object(format!("{at}"), object, source);
    }
    (builder.build().unwrap(), spans, announced)
}

#[test]
fn the_next_tensors_are_announced_together_and_in_order() {
    let (file, spans, announced) = file(10, 32 << 20);
    let mut ahead = ReadAhead::new(file.tensors().map(Result::unwrap));
    let mut advance = || {
        ahead.advance();
        std::mem::take(&mut *announced.lock().unwrap())
    };
    // 192 MiB, and more once fewer than 128 MiB of them are left.
    let at_each: [&[&[Span]]; 10] =
        [&[&spans[..6]], &[], &[], &[&spans[6..9]], &[], &[], &[&spans[9..]], &[], &[], &[]];
    for (at, expected) in at_each.into_iter().enumerate() {
        assert_eq!(advance(), expected, "{at}");
    }
}

#[test]
fn a_stream_announces_its_component_at_once() {
    let (file, spans, announced) = file(1, 3 << 20);
    let tensor = file.tensor("0").unwrap();
    assert!(tensor.is_remote());
    let mut reader = tensor.reader("data").unwrap();
    assert_eq!(*announced.lock().unwrap(), [&spans[..]]);
    let read = reader.for_each_piece(1 << 20, |_| Ok::<(), zt::Error>(()));
    read.unwrap();
    let mut writer = Writer::new(io::sink()).unwrap();
    writer.copy("copy", &tensor).unwrap();
    assert_eq!(*announced.lock().unwrap(), [&spans[..], &spans[..]]);
}
