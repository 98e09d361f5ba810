//! safetensors files, read and written as tensors.
//!
//! ```text
//! 0         8                 8 + n
//! +---------+-----------------+-------------------------------------------+
//! | n: u64  | header: JSON,   | data of the tensors, without gaps, in the |
//! | LE      | n bytes         | order of their offsets                    |
//! +---------+-----------------+-------------------------------------------+
//! ```
//!
//! The header maps names to `{"dtype", "shape", "data_offsets": [start, end]}`, offsets counting
//! from the first byte of the data, and `__metadata__` to texts. The rules are those that the
//! official library, version 0.8, enforces and those that its README states; a file that breaks
//! one is refused as a whole, because then nothing says which of its bytes are whose.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod dtype;
mod header;
mod json;
mod read;
mod violation;
mod write;

use zt::foreign::Kind;
use zt::{Result, Source};
use zt_foreign::{FileKind, FileWriter, Incoming, Input, Job, Merged, Opening, Probe, Sink};

use header::HEADER_MAX;

/// safetensors files.
pub const SAFETENSORS: Kind = Kind::new("safetensors");

/// The kind: recognises, opens and, if it has a writer, writes such files.
#[derive(Debug, Clone, Copy, Default)]
pub struct SafeTensors;

impl FileKind for SafeTensors {
    fn kind(&self) -> Kind {
        SAFETENSORS
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["safetensors"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(is_safetensors(probe))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        read::open(source, opening)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}

impl FileWriter for SafeTensors {
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        write::write(merged, sink, job)
    }

    fn has_sets(&self) -> bool {
        true
    }

    fn shard_len(&self, object: &Incoming<'_>, job: &mut Job<'_>) -> Result<Option<u64>> {
        write::byte_len(object, job)
    }
}

/// The name under which a header has the file's attributes.
const METADATA: &str = "__metadata__";

/// A length, then JSON. There is no magic, so this goes by what nothing else looks like; the
/// nonsense of a broken file is recognised where it cannot be another's.
fn is_safetensors(probe: &Probe<'_>) -> bool {
    let Some((len, header)) = probe.head().split_first_chunk() else {
        return false;
    };
    let len = u64::from_le_bytes(*len);
    let available = probe.byte_len().saturating_sub(8);
    match header {
        // Whatever the length says.
        [b'{', ..] => true,
        [] => len == 0,
        // A sound length, and other JSON, a byte order mark or white space.
        [b'[' | b'"' | b' ' | b'\t' | b'\n' | b'\r' | 0xEF, ..] => {
            (2..=HEADER_MAX.min(available)).contains(&len)
        }
        _ => false,
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
