//! The pickle machine, with the globals of torch.

pub(crate) use zt_pickle::{PickleError, PickleFault, load, pieces};

use crate::global::Global;

/// The limit of a pickle's length. The pickle of 100,000 tensors has about 30 MB.
pub(crate) const PICKLE_LEN: u64 = 256 << 20;

pub(crate) type Heap<'p> = zt_pickle::Heap<'p, Global>;
pub(crate) type Made = zt_pickle::Made<Global>;
pub(crate) type Node<'p> = zt_pickle::Node<'p, Global>;
pub(crate) type Pickle<'p> = zt_pickle::Pickle<'p, Global>;
pub(crate) type Value = zt_pickle::Value<Global>;
