//! How files of a kind are written.

use zt::{Attributes, Result};

use crate::faults::Fault;
use crate::outgoing::{Incoming, Job, Merged, Sink};

/// How the files of a set are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetForm {
    /// An index beside the files lists them, as on the Hugging Face Hub.
    Indexed,
    /// Each file has its number, in its name and in its attributes. The first file has the attributes of
    /// the set, and there is no index.
    Numbered,
}

/// The place of a file in a numbered set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardPlace {
    /// The number of the file, from 0 on.
    pub no: u64,
    /// The files of the set.
    pub count: u64,
    /// The objects of the set.
    pub objects: u64,
}

/// How files of a kind are written.
pub trait FileWriter {
    /// Writes the objects of `merged` to `sink`. For anything that the kind cannot represent,
    /// [`Job::accept`] gives an error or a warning.
    ///
    /// # Errors
    ///
    /// A loss that is not allowed; the fault of an object; [`zt::ErrorKind::Io`].
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()>;

    /// How files of this kind are written as sets of shards; `None` if they are not.
    fn set_form(&self) -> Option<SetForm> {
        None
    }

    /// The attributes of a file of a [numbered](SetForm::Numbered) set, from those of the set. The reverse is
    /// [`FileKind::merge_attributes`](crate::FileKind::merge_attributes).
    ///
    /// # Errors
    ///
    /// Code `lossy` for more files than a set can have.
    fn part_attributes(
        &self,
        set: Option<Attributes>,
        _part: ShardPlace,
    ) -> Result<Option<Attributes>> {
        Ok(set)
    }

    /// Bytes of an object's values in a shard, before compression; `None` if the object is left
    /// out. Called only for kinds that have a [form of sets](FileWriter::set_form).
    ///
    /// # Errors
    ///
    /// As [`FileWriter::write`].
    fn shard_len(&self, _object: &Incoming<'_>, job: &mut Job<'_>) -> Result<Option<u64>> {
        Err(Fault::NoSets { kind: job.target }.into())
    }
}
