//! Writes HDF5 files: structures of the specification with 8-byte addresses and lengths, and any values
//! in their fields.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zt::{ErrorKind, File, Memory, Result, Source};
use zt_foreign::{FileKind, InputOptions};
use zt_hdf5::Hdf5;

use crate::checksum::lookup3;

/// The undefined address.
pub(crate) const UNDEFINED: u64 = u64::MAX;

/// The types of messages. Spec: IV.A.2.
pub(crate) const DATASPACE: u16 = 0x01;
pub(crate) const LINK_INFO: u16 = 0x02;
pub(crate) const DATATYPE: u16 = 0x03;
pub(crate) const OLD_FILL_VALUE: u16 = 0x04;
pub(crate) const FILL_VALUE: u16 = 0x05;
pub(crate) const LINK: u16 = 0x06;
pub(crate) const LAYOUT: u16 = 0x08;
pub(crate) const FILTERS: u16 = 0x0B;
pub(crate) const ATTRIBUTE: u16 = 0x0C;
pub(crate) const SYMBOL_TABLE: u16 = 0x11;
pub(crate) const ATTRIBUTE_INFO: u16 = 0x15;

/// The flag of a message with its content in another place.
pub(crate) const SHARED: u8 = 2;

/// A message of an object header.
#[derive(Clone)]
pub(crate) struct Message {
    pub(crate) kind: u16,
    pub(crate) flags: u8,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn message(kind: u16, body: impl Into<Vec<u8>>) -> Message {
    Message { kind, flags: 0, body: body.into() }
}

/// Numbers, each in its own width.
macro_rules! bytes {
    ($($number:expr),* $(,)?) => {
        [$(&$number.to_le_bytes()[..]),*].concat()
    };
}
pub(crate) use bytes;

/// A file that is being written.
pub(crate) struct Draft(Vec<u8>);

const SUPERBLOCK_LEN: usize = 96;

impl Draft {
    pub(crate) fn new() -> Self {
        Draft(vec![0; SUPERBLOCK_LEN])
    }

    /// Appends bytes, and returns their address.
    pub(crate) fn put(&mut self, bytes: impl AsRef<[u8]>) -> u64 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let address = self.0.len() as u64;
        self.0.extend_from_slice(bytes.as_ref());
        address
    }

    /// Appends bytes and their checksum.
    pub(crate) fn put_checked(&mut self, parts: &[&[u8]]) -> u64 {
        let bytes = parts.concat();
        let sum = lookup3(&bytes);
        self.put([bytes, bytes!(sum)].concat())
    }

    /// An object header of version 1.
    pub(crate) fn object(&mut self, messages: &[Message]) -> u64 {
        let count = u16::try_from(messages.len()).unwrap();
        let mut content = Vec::new();
        for Message { kind, flags, body } in messages {
            let len = u16::try_from(body.len().next_multiple_of(8)).unwrap();
            content.extend(bytes!(kind, len, flags, 0u8, 0u16));
            content.extend(body);
            content.resize(content.len().next_multiple_of(8), 0);
        }
        let len = u32::try_from(content.len()).unwrap();
        self.put([bytes!(1u8, 0u8, count, 1u32, len, 0u32), content].concat())
    }

    /// The file with a root group of these messages.
    pub(crate) fn finish(mut self, root: &[Message]) -> Vec<u8> {
        let root = self.object(root);
        let end = self.0.len() as u64;
        let superblock = [
            b"\x89HDF\r\n\x1a\n".to_vec(),
            bytes!(0u8, 0u32, 8u8, 8u8, 0u8, 4u16, 16u16, 0u32),
            bytes!(0u64, UNDEFINED, end, UNDEFINED),
            bytes!(0u64, root, 0u32, 0u32, 0u128),
        ];
        self.0[..SUPERBLOCK_LEN].copy_from_slice(&superblock.concat());
        self.0
    }

    /// A dataset of these elements, in one piece.
    pub(crate) fn dataset(
        &mut self,
        datatype: Vec<u8>,
        shape: &[u64],
        values: &[u8],
    ) -> Vec<Message> {
        let address = self.put(values);
        let len = values.len() as u64;
        vec![
            message(DATASPACE, dataspace(shape)),
            message(DATATYPE, datatype),
            message(LAYOUT, bytes!(3u8, 1u8, address, len)),
        ]
    }

    /// A dataset of three `i32` in chunks of two, with this layout.
    pub(crate) fn chunked(&mut self, layout: Vec<u8>) -> Vec<Message> {
        let mut messages = self.dataset(int(4, 8), &[3], &[]);
        messages[2].body = layout;
        messages
    }

    /// A tree of version 2 with one leaf of these records.
    pub(crate) fn tree2(&mut self, node_type: u8, records: &[Vec<u8>]) -> u64 {
        let leaf = self.put_checked(&[b"BTLF", &[0, node_type], &records.concat()]);
        let len = u16::try_from(records[0].len()).unwrap();
        let count = u16::try_from(records.len()).unwrap();
        self.tree2_of(&bytes!(0u8, node_type, 512u32, len, 0u16, 0u16), leaf, count)
    }

    /// A tree of version 2 with this head after its signature.
    pub(crate) fn tree2_of(&mut self, head: &[u8], root: u64, records: u16) -> u64 {
        let rest = bytes!(root, records, u64::from(records));
        self.put_checked(&[b"BTHD", head, &rest])
    }
}

/// A link of a group to an object.
pub(crate) fn link(name: &str, address: u64) -> Message {
    let len = u8::try_from(name.len()).unwrap();
    let body = [&[1, 0, len], name.as_bytes(), &address.to_le_bytes()];
    message(LINK, body.concat())
}

pub(crate) fn dataspace(shape: &[u64]) -> Vec<u8> {
    let rank = u8::try_from(shape.len()).unwrap();
    let dimensions: Vec<u8> = shape.iter().flat_map(|count| count.to_le_bytes()).collect();
    [bytes!(1u8, rank, 0u8, 0u8, 0u32), dimensions].concat()
}

/// A datatype: its class, the bits of the class, the bytes of an element, its properties.
pub(crate) fn datatype(version: u8, class: u8, bits: u32, len: u32, properties: &[u8]) -> Vec<u8> {
    let mut head = bytes!(version << 4 | class);
    head.extend(&bits.to_le_bytes()[..3]);
    [head, bytes!(len), properties.to_vec()].concat()
}

/// An integer of `len` bytes. It is signed if the bits have 8.
pub(crate) fn int(len: u16, bits: u32) -> Vec<u8> {
    datatype(1, 0, bits, len.into(), &bytes!(0u16, len * 8))
}

/// An IEEE float of 4 or 8 bytes.
pub(crate) fn float(len: u16) -> Vec<u8> {
    let (exponent, mantissa, bias) = if len == 4 { (8u8, 23u8, 127u32) } else { (11, 52, 1023) };
    let sign = u32::from(len) * 8 - 1;
    let properties = bytes!(0u16, len * 8, mantissa, exponent, 0u8, mantissa, bias);
    datatype(1, 1, sign << 8 | 2 << 4, len.into(), &properties)
}

pub(crate) fn opened(bytes: Vec<u8>) -> Result<File> {
    opened_with(Memory::new(bytes), InputOptions::new())
}

pub(crate) fn opened_with(
    source: impl Source + 'static,
    options: impl Into<InputOptions>,
) -> Result<File> {
    let input = Hdf5.open_source(Box::new(source), &options.into())?;
    Ok(input.into_file())
}

/// The bytes of a file with a valid `w`, and with `x`, a dataset or a group of these messages.
pub(crate) fn bytes_beside(make: impl FnOnce(&mut Draft) -> Vec<Message>) -> Vec<u8> {
    let mut draft = Draft::new();
    let x = make(&mut draft);
    let x = draft.object(&x);
    let w = draft.dataset(int(4, 8), &[2], &bytes!(1i32, -2i32));
    let w = draft.object(&w);
    draft.finish(&[link("x", x), link("w", w)])
}

/// Opens such a file, and reads `w`.
pub(crate) fn beside(make: impl FnOnce(&mut Draft) -> Vec<Message>) -> File {
    let file = opened(bytes_beside(make)).unwrap();
    let values = file.tensor("w").unwrap().to_vec::<i32>().unwrap();
    assert_eq!(values, [1, -2]);
    file
}

/// The code of a dataset's fault when it is listed or read. The error must name the dataset.
pub(crate) fn code(file: &File, name: &str) -> &'static str {
    let error = match file.tensor(name) {
        Err(error) => error,
        Ok(tensor) => tensor.bytes("data").unwrap_err(),
    };
    assert_eq!(error.object(), Some(name));
    assert!(error.to_string().contains(name));
    let kind = match error.code() {
        "dtype" | "unsupported" => ErrorKind::Unsupported,
        "digest-mismatch" => ErrorKind::DigestMismatch,
        "decompression-limit" | "structure-limit" => ErrorKind::Limit,
        _ => ErrorKind::Malformed,
    };
    assert_eq!(error.kind(), kind, "{error}");
    error.code()
}

/// A source with one read that fails.
struct Failing {
    memory: Memory<Vec<u8>>,
    at: usize,
    reads: Arc<AtomicUsize>,
}

impl Source for Failing {
    fn byte_len(&self) -> u64 {
        self.memory.byte_len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        match self.reads.fetch_add(1, Ordering::Relaxed) {
            read if read == self.at => Err(io::Error::other("the disk is gone")),
            _ => self.memory.read_at(offset, buf),
        }
    }
}

/// Makes every read fail once. `work` must fail each time.
pub(crate) fn strike_every_read(bytes: &[u8], work: impl Fn(Box<dyn Source>) -> Result<()>) {
    for at in 0.. {
        let reads = Arc::new(AtomicUsize::new(0));
        let result = work(Box::new(Failing {
            memory: Memory::new(bytes.to_vec()),
            at,
            reads: Arc::clone(&reads),
        }));
        if reads.load(Ordering::Relaxed) <= at {
            return result.unwrap();
        }
        let kind = result.map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::Io), "read {at}");
    }
}
