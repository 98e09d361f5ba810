//! The kind `npz`: arrays in a zip archive, as `numpy.savez` and `numpy.savez_compressed` write
//! them.
//!
//! Every member that begins like an array is an object, named as NumPy names it: without `.npy`.
//! What NumPy gives as bytes (a read-me, a broken array) is an object that cannot be read, so that
//! nothing is there unseen. Stored arrays stay ranges of the archive, and the archive's CRC-32
//! becomes their digest; deflated ones are inflated as they are read.
//!
//! SciPy's sparse matrices are five arrays by convention only. They are listed as what they are.

mod write;

use std::collections::HashSet;
use std::sync::Arc;

use zt::foreign::{FileBuilder, Kind, SourceId};
use zt::{RawComponent, RawObject, Result, Source};
use zt_foreign::{FileKind, FileWriter, Input, Job, Merged, Opening, Probe, Sink, strided::Bands};

use zt_zip::{self as zip, Archive};

use crate::array::Data;

/// Arrays of NumPy in a zip archive.
pub const NPZ: Kind = Kind::new("npz");

/// The kind: recognises, opens and, if it has a writer, writes such files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Npz;

impl FileKind for Npz {
    fn kind(&self) -> Kind {
        NPZ
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["npz"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        recognise(probe)
    }

    fn recognise_behind(&self, probe: &Probe<'_>) -> Result<bool> {
        let archive = zip::behind_other_data(probe.source())?;
        Ok(archive.is_some_and(|archive| has_array(&archive)))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        open(source, opening)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}

impl FileWriter for Npz {
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        write::write(merged, sink, job)
    }
}

const ENDING: &str = ".npy";

/// An archive with an array in it, or an empty one; without a sound directory, one whose first
/// member is called like an array.
fn recognise(probe: &Probe<'_>) -> Result<bool> {
    if !zip::is_archive(probe.head()) {
        return Ok(false);
    }
    let is_array = |name: &[u8]| name.ends_with(ENDING.as_bytes());
    match Archive::open(probe.source(), &zt::Limits::default()) {
        Ok(archive) => Ok(archive.members().is_empty() || has_array(&archive)),
        Err(error) if error.kind() == zt::ErrorKind::Io => Err(error),
        Err(_) => Ok(zip::first_name(probe.head()).is_some_and(is_array)),
    }
}

/// Whether an array is in an archive, by the names in it.
pub(crate) fn has_array(archive: &Archive) -> bool {
    let mut members = archive.members().iter();
    members.any(|member| member.name().ends_with(ENDING))
}

fn open(source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
    let source: Arc<dyn Source> = source.into();
    let mut builder = opening.builder(NPZ);
    let archive = Archive::open(&source, builder.limits())?;
    archive.tolerate_surroundings(&mut builder);
    let id = builder.source(Arc::clone(&source));
    let names = names(&archive);
    let bands = Bands::default();
    for (member, name) in archive.members().iter().zip(names) {
        // Folders hold nothing.
        if member.name().ends_with('/') && member.byte_len() == 0 {
            continue;
        }
        let is_bf16 = opening.options.void2_as_bf16;
        add(&mut builder, &source, id, member, &name, &bands, is_bf16)?;
    }
    opening.build(builder)
}

fn add(
    builder: &mut FileBuilder,
    source: &Arc<dyn Source>,
    id: SourceId,
    member: &zip::Member,
    name: &str,
    bands: &Bands,
    void2_is_bf16: bool,
) -> Result<()> {
    let content = match member.content(source) {
        Ok(content) => content,
        Err(error) if error.kind() == zt::ErrorKind::Io => return Err(error),
        Err(error) => {
            builder.fault(name, listed(member), error);
            return Ok(());
        }
    };
    let archive = (id, member.header());
    let data = Data {
        source: Arc::clone(&content.source),
        span: content.span,
        id: match content.is_stored {
            true => id,
            false => builder.derived_from(Arc::clone(&content.source), id, member.header()),
        },
        archive,
        digest_behind: &|head| content.digest_behind(head),
        void2_is_bf16,
    };
    // What the system cannot read is nobody's fault.
    data.add_to(builder, name, bands, |kind| kind == zt::ErrorKind::Io)
}

/// What a listing shows of a member that cannot even be looked at.
fn listed(member: &zip::Member) -> RawObject {
    let mut data = RawComponent::default();
    data.offset = Some(member.header());
    data.length = Some(member.byte_len());
    let mut raw = RawObject::default();
    raw.components = vec![("data".into(), data)];
    raw
}

/// The members' names without their ending, as NumPy has them. One that would then have the name of
/// another keeps it. No two have one name, as no two members have.
fn names(archive: &Archive) -> Vec<String> {
    let members = archive.members().iter().map(zip::Member::name);
    let (mut arrays, plain): (Vec<&str>, Vec<&str>) =
        members.clone().partition(|name| name.ends_with(ENDING));
    let mut whole: HashSet<&str> = plain.into_iter().collect();
    // What keeps its ending takes the name of a longer one: that is asked later.
    arrays.sort_unstable_by_key(|name| name.len());
    for name in arrays {
        if name
            .strip_suffix(ENDING)
            .is_some_and(|short| whole.contains(short))
        {
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
