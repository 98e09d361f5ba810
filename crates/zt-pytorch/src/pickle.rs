//! The pickle machine, with the globals of torch.

pub(crate) use zt_pickle::{PickleError, PickleFault, load, pieces};

use zt::{Error, ErrorKind, Result, Source, Span};
use zt_pickle::{Outline, OutlineError};

use crate::fault::TorchFault;
use crate::global::Global;

/// The limit of a pickle's length, without the strings that an outline leaves out. The pickle of 100,000
/// tensors has about 30 MB.
pub(crate) const PICKLE_LEN: u64 = 256 << 20;

pub(crate) type Heap<'p> = zt_pickle::Heap<'p, Global>;
pub(crate) type Made = zt_pickle::Made<Global>;
pub(crate) type Node<'p> = zt_pickle::Node<'p, Global>;
pub(crate) type Pickle<'p> = zt_pickle::Pickle<'p, Global>;
pub(crate) type Value = zt_pickle::Value<Global>;

/// Looks up a global. TorchScript has more of them.
pub(crate) type Find = fn(&str, &str, u32) -> Option<Global>;

/// Reads the pickle of a record, which begins at `start` of the file if its bytes are there.
pub(crate) fn load_record<'p>(
    record: &'static str,
    bytes: &'p [u8],
    start: Option<u64>,
    find: Find,
) -> Result<Pickle<'p>> {
    load(bytes, find).map_err(|error| refused(record, start, error))
}

fn refused(record: &'static str, start: Option<u64>, error: PickleError) -> Error {
    let at = start.and_then(|start| start.checked_add(error.at));
    let error = Error::from(TorchFault::Pickle { record, error });
    match at {
        Some(at) => error.with_offset(at),
        None => error,
    }
}

/// A pickle that lies in a source. Its long byte strings stay there.
pub(crate) struct Record {
    name: &'static str,
    start: u64,
    outline: Outline,
}

impl Record {
    /// Reads the pickle at the beginning of `span`. Its outline has at most `limit` bytes.
    pub(crate) fn read(
        name: &'static str,
        source: &dyn Source,
        span: Span,
        limit: u64,
    ) -> Result<Self> {
        let read_at = |offset, buf: &mut [u8]| source.read_at(offset, buf);
        let outline = Outline::read(span.offset()..span.end(), limit, &read_at);
        let outline = outline.map_err(|error| match error {
            OutlineError::Io(error) => Error::from(error),
            OutlineError::TooLong { limit } => TorchFault::PickleTooLong { limit }.into(),
            OutlineError::Allocation { byte_len } => {
                TorchFault::Memory(PickleFault::Allocation { byte_len }).into()
            }
            other => Error::new(ErrorKind::Unsupported, "pickle", other),
        })?;
        Ok(Record { name, start: span.offset(), outline })
    }

    pub(crate) fn load(
        &self,
        find: impl Fn(&str, &str, u32) -> Option<Global>,
    ) -> Result<Pickle<'_>> {
        let loaded = self.outline.load(find);
        loaded.map_err(|error| refused(self.name, Some(self.start), error))
    }

    /// Where the pickle begins in the source.
    pub(crate) const fn start(&self) -> u64 {
        self.start
    }

    /// Where it ends.
    pub(crate) const fn end(&self) -> u64 {
        self.start.strict_add(self.outline.byte_len())
    }
}

/// The bytes of a text and an encoding. Protocol 2 has no bytes, so Python writes them in Latin-1.
pub(crate) fn encoded(heap: &Heap<'_>, made: Made) -> Option<Vec<u8>> {
    let [text, encoding] = heap.tuple(made.arguments)? else {
        return None;
    };
    if !matches!(heap.text(*encoding)?, "latin1" | "latin-1" | "iso-8859-1") {
        return None;
    }
    let bytes = heap.text(*text)?.chars();
    bytes.map(|c| u8::try_from(u32::from(c)).ok()).collect()
}
