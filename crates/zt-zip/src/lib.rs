//! Zip archives as `.npz`, `.pt` and `.keras` files use them.
//!
//! ```text
//! +--------------+------+--------------+------+-----+-----------+-------------------------+-----+
//! | local header | data | local header | data | ... | directory | zip64 record, locator   | end |
//! | and name     |      | and name     |      |     |           | if a number is too big  |     |
//! +--------------+------+--------------+------+-----+-----------+-------------------------+-----+
//! ```
//!
//! The directory decides; a local header only gives the offset of the data. The archive is refused
//! if the directory's offset, length or count is wrong, or if a name is duplicate. Bytes before and
//! after the archive give a warning. A fault of one member is found when that member is opened: a
//! contradicting local header, data that overlaps the next record, an unsupported compression.
//!
//! Every number is compared before it is used: lengths with the file and with the ratio of deflate,
//! names with the limit, contents with their CRC-32. Nothing is extracted to disk, so a name cannot
//! lead out of a folder. Reference: PKWARE's APPNOTE.TXT 6.3.10, §4.3 and §4.5.3.
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
    after: Span,
    cut: Option<Span>,
}

impl Archive {
    /// Reads the directory. Cost: the last 64 KiB and the directory; no member is read.
    ///
    /// # Errors
    ///
    /// Code `header`; [`zt::ErrorKind::Limit`] for a directory or a name above the limits.
    pub fn open(source: &dyn Source, limits: &Limits) -> Result<Self> {
        let place = directory::locate(source)?;
        let mut members = directory::members(source, place, limits)?;
        bound(&mut members, place.span);
        // The first header, as `place.before` is 0 if Python's `zipfile` appended the archive: then
        // offsets count from the beginning of the file.
        let before = if place.begins_otherwise {
            let headers = members.iter().map(Member::header);
            headers.fold(place.span.offset(), u64::min)
        } else {
            0
        };
        Ok(Archive {
            members,
            before,
            after: place.after,
            cut: place.cut,
        })
    }

    /// Adds a warning for bytes before and after the archive, which readers ignore, and for a truncated
    /// comment.
    pub fn tolerate_surroundings(&self, builder: &mut FileBuilder) {
        let bytes = self.before;
        if let Some(span) = Span::new(0, bytes).filter(|span| !span.is_empty()) {
            builder.tolerated(Error::from(Violation::Before { bytes }).with_span(span));
        }
        if !self.after.is_empty() {
            let bytes = self.after.byte_len();
            builder.tolerated(Error::from(Violation::After { bytes }).with_span(self.after));
        }
        if let Some(record) = self.cut {
            builder.tolerated(Error::from(Violation::Comment).with_span(record));
        }
    }

    /// The members, in the order of the directory.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The members, in the order of the directory.
    pub fn into_members(self) -> Vec<Member> {
        self.members
    }
}

/// Gives every member the offset of the next record, where its data ends at the latest.
fn bound(members: &mut [Member], directory: Span) {
    let mut starts: Vec<u64> = members.iter().map(Member::header).collect();
    starts.sort_unstable();
    for member in members {
        let after = starts.partition_point(|start| *start <= member.header());
        // Two members at one offset have the same bound; the local header has the name of one.
        let next = starts.get(after).copied().unwrap_or(directory.offset());
        member.set_limit(next.min(directory.offset()));
    }
}

/// Whether a file begins like an archive; an empty archive is only an end record.
pub fn is_archive(head: &[u8]) -> bool {
    head.starts_with(LOCAL) || head.starts_with(END)
}

/// The archive at the end of a file that begins with other data, if there is one.
///
/// # Errors
///
/// [`zt::ErrorKind::Io`].
pub fn behind_other_data(source: &dyn Source) -> Result<Option<Archive>> {
    match Archive::open(source, &Limits::default()) {
        Ok(archive) => Ok(Some(archive).filter(|archive| archive.before > 0)),
        Err(error) if error.kind() == zt::ErrorKind::Io => Err(error),
        Err(_) => Ok(None),
    }
}

/// The name in the local header at the beginning of a file. It tells the kind of a broken archive.
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
