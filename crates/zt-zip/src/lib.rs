#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod crc;
mod cut;
mod directory;
mod error;
mod inflate;
mod member;
mod packed;
mod records;
mod write;

use zt_container::{Limits, Source, Span};

pub use error::{Deflate, Error, Result, ZipViolation};
pub use member::{Content, Member};
pub use records::{first_name, is_archive};
pub use write::{ArchiveWriter, MemberWriter};

/// The members of an archive.
#[derive(Debug)]
pub struct Archive {
    members: Vec<Member>,
    before: u64,
    after: Span,
    cut: Option<Span>,
    is_truncated: bool,
}

impl Archive {
    /// Reads the directory. Cost: the last 64 KiB and the directory, and the first bytes of
    /// a file whose first member does not begin it; no member is read.
    ///
    /// # Errors
    ///
    /// Code `header`; [`ZipViolation::is_limit`] for a directory or a name above the limits.
    pub fn open(source: &dyn Source, limits: &Limits) -> Result<Self> {
        let place = directory::locate(source)?;
        let mut members = directory::members(source, place, limits)?;
        bound(&mut members, place.span);
        // The first header, as `place.before` is 0 if Python's `zipfile` appended the archive: then
        // offsets count from the beginning of the file.
        let headers = members.iter().map(Member::header);
        let first = headers.fold(place.span.offset(), u64::min);
        let is_appended = first > 0 && directory::begins_otherwise(source)?;
        let before = if is_appended { first } else { 0 };
        Ok(Archive { members, before, after: place.after, cut: place.cut, is_truncated: false })
    }

    /// As [`Archive::open`], but a file that ends before the end record is opened by the local headers
    /// of its members. A member whose data is cut gives [`ZipViolation::Cut`] when it is opened. Members whose
    /// local header is not whole are unknown.
    ///
    /// Cost for such a file: the local headers, and all data whose length follows it.
    ///
    /// # Errors
    ///
    /// As [`Archive::open`]; [`ZipViolation::NoLocalHeader`] if something else follows a member.
    pub fn open_truncated(source: &dyn Source, limits: &Limits) -> Result<Self> {
        match Self::open(source, limits) {
            Err(Error::Archive(ZipViolation::NoEnd)) => Ok(Archive {
                members: cut::members(source, limits)?,
                before: 0,
                after: Span::default(),
                cut: None,
                is_truncated: true,
            }),
            opened => opened,
        }
    }

    /// Whether the file ends before the end record.
    pub const fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// The faults that readers ignore: bytes before and after the archive, and a truncated comment.
    pub fn tolerated(&self) -> impl Iterator<Item = ZipViolation> {
        let some = |span: &Span| !span.is_empty();
        let before = Span::new(0, self.before).filter(some);
        let before = before.map(|ignored| ZipViolation::Before { ignored });
        let after = Some(self.after).filter(some);
        let after = after.map(|ignored| ZipViolation::After { ignored });
        let comment = self.cut.map(|record| ZipViolation::Comment { record });
        before.into_iter().chain(after).chain(comment)
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
        member.limit = next.min(directory.offset());
    }
}

/// The archive at the end of a file that begins with other data, if there is one.
///
/// # Errors
///
/// [`zt_container::Error::Io`].
pub fn behind_other_data(source: &dyn Source) -> Result<Option<Archive>> {
    match Archive::open(source, &Limits::default()) {
        Ok(archive) => Ok(Some(archive).filter(|archive| archive.before > 0)),
        Err(error) if error.is_io() => Err(error),
        Err(_) => Ok(None),
    }
}
