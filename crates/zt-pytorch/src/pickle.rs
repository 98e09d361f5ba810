//! The pickle machine, with the globals of torch.

pub(crate) use zt_pickle::{PickleError, PickleFault, load, pieces};

use zt::{Error, Result};

use crate::global::Global;
use crate::violation::Violation;

/// The limit of a pickle's length. The pickle of 100,000 tensors has about 30 MB.
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
    load(bytes, find).map_err(|error| {
        let at = start.and_then(|start| start.checked_add(error.at as u64));
        let error = Error::from(Violation::Pickle { record, error });
        match at {
            Some(at) => error.with_offset(at),
            None => error,
        }
    })
}
