//! Components that share the blob of an earlier component.

use std::collections::HashMap;

use zt_container::{Blob, Digest, DigestAlgorithm};
use zt_manifest::{DType, Object, Text};

use crate::cores::parallel;
use crate::cores::work::Workers;
use crate::error::{Error, Fault, Result};
use crate::write::component::ComponentWriter;
use crate::write::encode::Placed;
use crate::write::options::{ComponentOptions, ObjectOptions};

/// Content is hashed in pieces of this size, on all cores.
///
/// Pays: a writer that looks for copies in 128 MB takes 0.88 of the time of one core, and as much CPU time. With 64 KiB
/// it takes as long.
const PIECE: usize = 1 << 20;

/// The components that a deduplicating writer has stored, by content and storage.
#[derive(Default)]
pub(crate) struct Shares {
    pub(crate) components: HashMap<(Content, ComponentOptions), Placed>,
    /// The planes of objects that were split. The values are places and not names, because an edit
    /// can give a name to another object.
    pub(crate) split: HashMap<SplitKey, Vec<Placed>>,
}

/// The key of an object that is split: its values and its storage.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct SplitKey {
    pub(crate) content: Content,
    pub(crate) dtype: DType,
    pub(crate) logical_type: Option<Text>,
    pub(crate) options: ObjectOptions,
}

/// The key is a sha256 and no shorter hash. The bytes are not kept for a comparison, so equal keys must
/// mean equal bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Content {
    byte_len: usize,
    /// The sha256 of the bytes; if there is more than one piece, of the sha256 of each piece.
    sum: [u8; 32],
}

impl Content {
    pub(crate) fn of(bytes: &[u8], workers: &Workers) -> Result<Self> {
        let sum = if bytes.len() <= PIECE {
            sha256(bytes)?
        } else {
            let pieces: Vec<&[u8]> = bytes.chunks(PIECE).collect();
            let sums = match workers.threads() {
                1 => pieces.iter().map(|piece| sha256(piece)).collect(),
                _ => workers.install(|| parallel::map(&pieces, |piece| sha256(piece))),
            };
            let sums: Vec<[u8; 32]> = sums?;
            sha256(sums.as_flattened())?
        };
        let byte_len = bytes.len();
        Ok(Content { byte_len, sum })
    }
}

/// The data for sharing with an object: its roles in order, and the place, the type and the blob of
/// each component.
///
/// It is kept for large objects. Otherwise a thousand objects that share with one would decode its
/// entry a thousand times.
pub(crate) struct Sharable(Box<[(Text, Shared)]>);

type Shared = (usize, Option<DType>, Blob);

impl Sharable {
    pub(crate) fn of(object: &Object) -> Self {
        let components = object.components.iter().enumerate();
        let shared = components
            .map(|(at, (role, found))| (role.clone(), (at, found.dtype, found.blob.clone())));
        let mut shared: Box<[_]> = shared.collect();
        shared.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Sharable(shared)
    }

    /// The component of that role, with its blob as far as it is known.
    pub(crate) fn get(&self, role: &str) -> Option<Shared> {
        let at = self.0.binary_search_by(|(found, _)| (**found).cmp(role));
        self.0.get(at.ok()?).map(|(_, shared)| shared.clone())
    }
}

impl ComponentWriter<'_, '_, '_> {
    /// Ends the component, which must be empty, with the blob of `role` of `object`, an earlier
    /// object or this one. The caller guarantees that the bytes are the same. The writer checks
    /// only their number against this object's format.
    ///
    /// ```
    /// use std::io::Write;
    /// use zt::{DType, File, Writer};
    ///
    /// let mut bytes = Vec::new();
    /// let mut writer = Writer::new(&mut bytes)?;
    /// let mut embed = writer.begin("embed", &[4], "dense")?;
    /// let mut data = embed.component("data", DType::U8, None)?;
    /// data.write_all(&[1, 2, 3, 4])?;
    /// data.finish()?;
    /// embed.finish()?;
    /// let mut head = writer.begin("head", &[2, 2], "dense")?;
    /// head.component("data", DType::U8, None)?.share("embed", "data")?;
    /// head.finish()?;
    /// writer.finish()?;
    /// let file = File::from_bytes(bytes)?;
    /// assert_eq!(*file.tensor("head")?.values::<u8>()?, [1, 2, 3, 4]);
    /// # Ok::<(), zt::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Code `not-found`; [`crate::ErrorKind::Misuse`] after a byte was written, and for bools that
    /// would share bytes that were not written as bools. The file cannot be finished then.
    pub fn share(mut self, object: &str, role: &str) -> Result<()> {
        if self.written() > 0 {
            return Err(Error::out_of_order());
        }
        let placed = self.find(object, role);
        let placed = placed.map_err(|error| error.with_object(object).with_component(role))?;
        self.place(placed);
        Ok(())
    }

    fn find(&mut self, object: &str, role: &str) -> Result<Placed> {
        let (dtype, placed) = if object == self.object.state.name {
            self.object.shared(role)?
        } else {
            self.object.writer.shared(object, role)?
        };
        if self.state.dtype == DType::Bool && dtype != Some(DType::Bool) {
            return Err(Fault::UncheckedBools.into());
        }
        Ok(placed)
    }
}

fn sha256(bytes: &[u8]) -> Result<[u8; 32]> {
    match DigestAlgorithm::Sha256.digest(bytes)? {
        Digest::Sha256(sum) => Ok(sum),
        _ => Err(Error::out_of_order()), // Unreachable: no other result was asked for.
    }
}
