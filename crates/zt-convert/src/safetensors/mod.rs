//! The member `safetensors`: single files and sharded sets, read and written. The index of a set may
//! list files of another kind, those of `torch.save` above all.
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

mod dtype;
mod header;
mod index;
mod json;
mod read;
pub(crate) mod sharded;
mod violation;
mod write;

use zt::{Kind, Result, Source};

use crate::detect::Probe;
use crate::input::{Input, Origin};
use crate::member::{Member, PYTORCH, SAFETENSORS, ZT, kind_of_extension};
use header::HEADER_MAX;
pub(crate) use index::{is_plain, shards_of};
pub(crate) use write::byte_len;

pub(crate) const MEMBER: Member = Member {
    kind: SAFETENSORS,
    extensions: &["safetensors"],
    recognises,
    open,
    write: Some(write::write),
};

/// The name under which a header has the file's attributes.
const METADATA: &str = "__metadata__";

fn recognises(probe: &Probe<'_>) -> Result<bool> {
    Ok(is_single(probe) || index_kind(probe)? == Some(SAFETENSORS))
}

fn open(source: Box<dyn Source>, origin: Origin<'_>) -> Result<Input> {
    if is_index(&Probe::new(&source)?)? {
        sharded::open(&source, origin)
    } else {
        read::open(source, origin)
    }
}

/// A length, then JSON. There is no magic, so this goes by what nothing else looks like; the
/// nonsense of a broken file is recognised where it cannot be another's.
fn is_single(probe: &Probe<'_>) -> bool {
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

/// The kind of the files of a set, by the ending that its index gives the first of them: what they
/// are, only opening them says. `None` where this is no index.
pub(crate) fn index_kind(probe: &Probe<'_>) -> Result<Option<Kind>> {
    if !is_index(probe)? {
        return Ok(None);
    }
    // What is wrong with an index, opening it says.
    let index = index::Index::read(probe.source(), "").ok();
    let kind = index.and_then(|index| kind_of_extension(index.shards.first()?.as_ref()));
    let kind = kind.filter(|kind| [ZT, PYTORCH].contains(kind));
    Ok(Some(kind.unwrap_or(SAFETENSORS)))
}

/// JSON text with a `weight_map`. A single file whose length looks like text has a NUL in it, which
/// no JSON does.
fn is_index(probe: &Probe<'_>) -> Result<bool> {
    let start = probe.head().get(..8).unwrap_or_default();
    let mut text = probe
        .head()
        .iter()
        .skip_while(|byte| byte.is_ascii_whitespace());
    if start.contains(&0) || text.next() != Some(&b'{') {
        return Ok(false);
    }
    probe.contains(b"\"weight_map\"", index::INDEX_MAX)
}
