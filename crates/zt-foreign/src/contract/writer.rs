//! How files of a kind are written.

use zt::Result;

use crate::faults::Fault;
use crate::outgoing::{Incoming, Job, Merged, Sink};

/// How files of a kind are written.
pub trait FileWriter {
    /// Writes the objects of `merged` to `sink`. For anything that the kind cannot represent,
    /// [`Job::accept`] gives an error or a warning.
    ///
    /// # Errors
    ///
    /// A loss that is not allowed; the fault of an object; [`zt::ErrorKind::Io`].
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()>;

    /// Whether files of this kind can be written as sets of shards.
    fn has_sets(&self) -> bool {
        false
    }

    /// Bytes of an object's values in a shard, before compression; `None` if the object is left
    /// out. Called only for kinds that [have sets](FileWriter::has_sets).
    ///
    /// # Errors
    ///
    /// As [`FileWriter::write`].
    fn shard_len(&self, _object: &Incoming<'_>, job: &mut Job<'_>) -> Result<Option<u64>> {
        Err(Fault::NoSets { kind: job.target }.into())
    }
}
