//! The kind `npz`: arrays in a zip archive, as `numpy.savez` and `numpy.savez_compressed` write
//! them.
//!
//! Every array is an object with NumPy's name for it, which lacks `.npy`. A damaged array is an object
//! with a fault. A member that is another file, and an array of texts, records or Python objects, are no
//! tensors: a warning names them. Stored arrays are ranges of the archive, and the archive's CRC-32 is
//! their digest. Deflated arrays are inflated when they are read.
//!
//! SciPy saves a sparse matrix as the arrays of an archive. It is one object: see `scipy`.

mod scipy;
mod write;

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use zt::foreign::{FileBuilder, Kind, SourceId};
use zt::{ErrorKind, RawComponent, RawObject, Result, Source, Span};
use zt_foreign::{FileKind, FileWriter, Input, MlDtype, Opening, Probe, archive, strided::Bands};
use zt_zip::{Archive, Content, Member};

use crate::array::Data;
use crate::header;
use crate::npy::name_of;

/// Arrays of NumPy in a zip archive.
pub const NPZ: Kind = Kind::new("npz");

/// The kind `npz`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Npz;

impl FileKind for Npz {
    fn kind(&self) -> Kind {
        NPZ
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["npz"]
    }

    fn read_from_end(&self) -> &'static [&'static str] {
        &["npz", "zip"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        // Without a valid directory, the name of the first member decides.
        let is_ours = |archive: &Archive| archive.members().is_empty() || has_array(archive);
        let is_array = |name: &[u8]| name.ends_with(ENDING.as_bytes());
        archive::recognises(probe, is_ours, is_array)
    }

    fn recognise_end(&self, source: &dyn Source) -> Result<bool> {
        archive::recognises_end(source, has_array)
    }

    fn recognise_behind(&self, probe: &Probe<'_>) -> Result<bool> {
        let found = archive::behind_other_data(probe.source())?;
        Ok(found.is_some_and(|archive| has_array(&archive)))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let source: Arc<dyn Source> = source.into();
        let mut builder = opening.builder(NPZ);
        let members = archive::open_noted(&source, &mut builder, opening.options)?;
        let id = builder.source(Arc::clone(&source));
        let names = names(&members);
        let shared = Shared {
            source: Arc::clone(&source),
            id,
            ml_dtypes: &opening.options.ml_dtypes,
            bands: Bands::default(),
            left: Cell::new(source.byte_len().saturating_mul(REREAD).saturating_add(SLACK)),
        };
        if scipy::add(&mut builder, &members, &shared, &name_of(&opening))? {
            return opening.build(builder);
        }
        for (member, name) in members.members().iter().zip(names) {
            // A folder has no content.
            if member.name().ends_with('/') && member.byte_len() == 0 {
                continue;
            }
            add(&mut builder, member, &name, &shared)?;
        }
        opening.build(builder)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}

const ENDING: &str = ".npy";

/// The most bytes behind arrays that are read to compare checksums, in lengths of the file, and beside
/// them. Members of a crafted archive share their bytes. The sum saturates: no archive has so much to read.
const REREAD: u64 = 8;
const SLACK: u64 = 16 << 20;

struct Shared<'o> {
    source: Arc<dyn Source>,
    id: SourceId,
    ml_dtypes: &'o [MlDtype],
    bands: Bands,
    /// How many bytes behind arrays may still be read.
    left: Cell<u64>,
}

/// Whether the name of a member is the name of an array.
pub(crate) fn has_array(archive: &Archive) -> bool {
    let mut members = archive.members().iter();
    members.any(|member| member.name().ends_with(ENDING))
}

impl Shared<'_> {
    fn content(&self, member: &Member) -> Result<Content> {
        archive::content(member, &self.source)
    }

    /// Gives the content of a member as the bytes of an array.
    fn with_data<T>(
        &self,
        builder: &mut FileBuilder,
        member: &Member,
        content: &Content,
        take: impl FnOnce(&Data<'_>, &mut FileBuilder) -> Result<T>,
    ) -> Result<T> {
        let source = Arc::clone(&content.source);
        let digest_between = |head: &[u8], rest: Span| {
            let cost = match content.is_stored {
                _ if rest.is_empty() => 0,
                true => rest.byte_len(),
                // All of it is inflated.
                false => content.span.byte_len(),
            };
            let Some(left) = self.left.get().checked_sub(cost) else {
                return Ok(None);
            };
            self.left.set(left);
            content.digest_between(head, rest).map_err(archive::error)
        };
        let data = Data {
            id: if content.is_stored {
                self.id
            } else {
                builder.derived_from(Arc::clone(&source), self.id, member.header())
            },
            source,
            span: content.span,
            archive: (self.id, member.header()),
            digest_between: &digest_between,
            ml_dtypes: self.ml_dtypes,
        };
        take(&data, builder)
    }
}

/// Adds a member: an array, or a warning that it is none.
fn add(builder: &mut FileBuilder, member: &Member, name: &str, shared: &Shared<'_>) -> Result<()> {
    let content = shared.content(member).and_then(|content| {
        let is_array =
            member.name().ends_with(ENDING) || header::is_array(&content.source, content.span)?;
        Ok((content, is_array))
    });
    match content {
        Ok((content, true)) => shared.with_data(builder, member, &content, |data, builder| {
            // An error of the system is not a fault of the array.
            let refuses = |kind| kind == ErrorKind::Io;
            data.add_to(builder, name, &shared.bands, refuses)
        }),
        Ok((_, false)) => {
            builder.not_a_tensor(name, "a file of another kind");
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(error) => {
            builder.fault(name, listed(member), error);
            Ok(())
        }
    }
}

/// A listing shows this of a member without readable content.
fn listed(member: &Member) -> RawObject {
    let mut data = RawComponent::default();
    data.offset = Some(member.header());
    data.length = Some(member.byte_len());
    let mut raw = RawObject::default();
    raw.components = vec![("data".into(), data)];
    raw
}

/// The members' names without `.npy`, as in NumPy. A name keeps the ending if another member has the
/// shorter name. The names are unique, because the members' names are.
fn names(archive: &Archive) -> Vec<String> {
    let members = archive.members().iter().map(Member::name);
    let (mut arrays, plain): (Vec<&str>, Vec<&str>) =
        members.clone().partition(|name| name.ends_with(ENDING));
    let mut whole: HashSet<&str> = plain.into_iter().collect();
    // A name that keeps its ending may be the short form of a longer one, so short names go first.
    arrays.sort_unstable_by_key(|name| name.len());
    for name in arrays {
        if name.strip_suffix(ENDING).is_some_and(|short| whole.contains(short)) {
            whole.insert(name);
        }
    }
    members
        .map(|name| match name.strip_suffix(ENDING) {
            Some(short) if !whole.contains(name) => short.to_owned(),
            _ => name.to_owned(),
        })
        .collect()
}
