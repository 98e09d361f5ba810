//! Zip archives, as far as tensor files are made of them: the ground of `.npz`, `.pt` and `.keras`.
//!
//! ```text
//! +--------------+------+--------------+------+-----+-----------+-------------------------+-----+
//! | local header | data | local header | data | ... | directory | zip64 record, locator   | end |
//! | and name     |      | and name     |      |     |           | where something is huge |     |
//! +--------------+------+--------------+------+-----+-----------+-------------------------+-----+
//! ```
//!
//! The directory decides; local headers only say where data begins. A directory that lies about
//! itself (its place, its length, the number of its members), or that has a name twice, refuses
//! the archive. Bytes before and behind it are told of, and passed over. What is wrong with one
//! member is found when that member is opened: a local header of another name, data that would reach
//! into the next member or the directory, an encoding that nobody writes for tensors.
//!
//! Nothing is believed before it is compared: lengths with the file and with what deflate can
//! reach, names with the limit, contents with their CRC-32. Nothing is ever extracted, so names
//! are only names. Reference: PKWARE's APPNOTE.TXT 6.3.10, §4.3 and §4.5.3.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod crc;
mod directory;
mod inflate;
mod member;
mod violation;
mod write;

use zt::foreign::FileBuilder;
use zt::{Error, Limits, Result, Source, Span};
use zt_foreign::fields::Fields;

pub use member::Content;
pub use member::Member;
use violation::Violation;
pub use write::ArchiveWriter;

/// The members of an archive.
#[derive(Debug)]
pub struct Archive {
    members: Vec<Member>,
    before: u64,
    behind: Span,
}

impl Archive {
    /// Reads the directory. Cost: the last 64 KiB and the directory; no member is looked at.
    ///
    /// # Errors
    ///
    /// Code `header`. [`zt::ErrorKind::Limit`] for a directory or a
    /// name beyond the limits.
    pub fn open(source: &dyn Source, limits: &Limits) -> Result<Self> {
        let place = directory::locate(source)?;
        let mut members = directory::members(source, place, limits)?;
        bound(&mut members, place.span);
        // Offsets may count what is before, too: so Python's `zipfile` appends to another file.
        let first = members.iter().map(Member::header).min();
        let before = match place.begins_otherwise {
            true => first.unwrap_or(place.span.offset()),
            false => 0,
        };
        Ok(Archive {
            members,
            before,
            behind: place.behind,
        })
    }

    /// Tells the builder of what lies before and behind the archive: other readers pass over it.
    pub fn tolerate_surroundings(&self, builder: &mut FileBuilder) {
        if self.before > 0 {
            let bytes = self.before;
            let span = Span::new(0, bytes).unwrap_or_default();
            builder.tolerated(Error::from(Violation::Before { bytes }).with_span(span));
        }
        if !self.behind.is_empty() {
            let bytes = self.behind.byte_len();
            builder.tolerated(Error::from(Violation::After { bytes }).with_span(self.behind));
        }
    }

    /// The members, in the order of the directory.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// As [`Archive::members`], owned.
    pub fn into_members(self) -> Vec<Member> {
        self.members
    }
}

/// Tells every member where the next thing begins: what reaches beyond overlaps it.
fn bound(members: &mut [Member], directory: Span) {
    let mut starts: Vec<u64> = members.iter().map(Member::header).collect();
    starts.sort_unstable();
    for member in members {
        let after = starts.partition_point(|start| *start <= member.header());
        // Two members at one place are both bounded by the next: their names tell them apart.
        let next = starts.get(after).copied().unwrap_or(directory.offset());
        member.set_limit(next.min(directory.offset()));
    }
}

/// Whether a file begins like an archive, or is an empty one.
pub fn is_archive(head: &[u8]) -> bool {
    head.starts_with(LOCAL) || head.starts_with(END)
}

/// The archive at the end of a file that begins otherwise; `None` where there is none.
pub fn behind_other_data(source: &dyn Source) -> Result<Option<Archive>> {
    match Archive::open(source, &Limits::default()) {
        Ok(archive) => Ok(Some(archive).filter(|archive| archive.before > 0)),
        Err(error) if error.kind() == zt::ErrorKind::Io => Err(error),
        Err(_) => Ok(None),
    }
}

/// The name in the local header that a file begins with: what an archive without a sound directory
/// was meant to be.
pub fn first_name(head: &[u8]) -> Option<&[u8]> {
    let fields = Fields(head.strip_prefix(LOCAL)?);
    head.get(LOCAL_LEN..)?.get(..usize::from(fields.u16(22)?))
}

const LOCAL: &[u8] = b"PK\x03\x04";
const CENTRAL: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const LOCATOR_64: &[u8] = b"PK\x06\x07";

/// Bytes of a local header before the name.
const LOCAL_LEN: usize = 30;
