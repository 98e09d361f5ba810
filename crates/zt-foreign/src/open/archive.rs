//! Zip archives for the kinds that are archives: the errors of `zt-zip` become errors of `zt`.

use std::io;
use std::sync::Arc;

use zt::foreign::FileBuilder;
use zt::{Error, ErrorKind, Limits, Result, Source, Span};
use zt_zip::{Archive, Content, Member, ZipViolation};

use crate::open::{InputOptions, Probe};

/// [`Archive::open`].
///
/// # Errors
///
/// As `Archive::open`.
pub fn open(source: &dyn Source, limits: &Limits) -> Result<Archive> {
    Archive::open(source, limits).map_err(error)
}

/// The archive of a file that is being opened: [`Archive::open_truncated`] if its end may be missing, with
/// a note in `builder`, else [`Archive::open`]. Faults that readers ignore become warnings. The beginnings of
/// the members are announced to a source over a network.
///
/// # Errors
///
/// As `Archive::open`.
pub fn open_noted(
    source: &dyn Source,
    builder: &mut FileBuilder,
    options: &InputOptions,
) -> Result<Archive> {
    let archive = if options.truncated {
        Archive::open_truncated(source, builder.limits())
    } else {
        Archive::open(source, builder.limits())
    };
    let archive = archive.map_err(error)?;
    if archive.is_truncated() {
        builder.truncated(source.byte_len(), None);
    }
    tolerate_surroundings(&archive, builder);
    announce(source, &archive);
    Ok(archive)
}

/// Announces the beginnings of all members to a source over a network, so that they come together.
fn announce(source: &dyn Source, archive: &Archive) {
    if source.is_remote() {
        let beginnings = archive.members().iter().filter_map(Member::beginning);
        source.will_read_all(&beginnings.collect::<Vec<_>>());
    }
}

/// Whether a file whose end came with the first request is an archive that `is_ours`. The first bytes
/// of the file and of all members come together.
///
/// # Errors
///
/// [`ErrorKind::Io`].
pub fn recognises_end(source: &dyn Source, is_ours: impl Fn(&Archive) -> bool) -> Result<bool> {
    let mut head = [0; 4];
    match open(source, &Limits::default()) {
        Ok(archive) if is_ours(&archive) => {
            announce(source, &archive);
            source.read_at(0, &mut head)?;
            Ok(zt_zip::is_archive(&head))
        }
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Ok(_) | Err(_) => Ok(false),
    }
}

/// Whether a file is an archive that `is_ours`. Without a valid directory, the name of the first
/// member decides.
///
/// # Errors
///
/// [`ErrorKind::Io`].
pub fn recognises(
    probe: &Probe<'_>,
    is_ours: impl Fn(&Archive) -> bool,
    begins_ours: impl Fn(&[u8]) -> bool,
) -> Result<bool> {
    if !zt_zip::is_archive(probe.head()) {
        return Ok(false);
    }
    match open(probe.source(), &Limits::default()) {
        Ok(archive) => Ok(is_ours(&archive)),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(_) => Ok(zt_zip::first_name(probe.head()).is_some_and(begins_ours)),
    }
}

/// [`zt_zip::behind_other_data`].
///
/// # Errors
///
/// [`ErrorKind::Io`].
pub fn behind_other_data(source: &dyn Source) -> Result<Option<Archive>> {
    zt_zip::behind_other_data(source).map_err(error)
}

/// [`Member::content`]. The source of a deflated member gives errors of `zt`.
///
/// # Errors
///
/// As `Member::content`.
pub fn content(member: &Member, archive: &Arc<dyn Source>) -> Result<Content> {
    let mut content = member.content(archive).map_err(error)?;
    if !content.is_stored {
        content.source = Arc::new(Inflated(content.source));
    }
    Ok(content)
}

/// Adds a warning for each fault of the archive that readers ignore.
pub fn tolerate_surroundings(archive: &Archive, builder: &mut FileBuilder) {
    for violation in archive.tolerated() {
        builder.tolerated(refused(violation));
    }
}

/// The same error as an error of `zt`.
pub fn error(error: zt_zip::Error) -> Error {
    match error {
        zt_zip::Error::Container(error) => error.into(),
        zt_zip::Error::Archive(violation) => refused(violation),
        other => std::io::Error::from(other).into(),
    }
}

fn refused(violation: ZipViolation) -> Error {
    let kind = if violation.is_limit() {
        ErrorKind::Limit
    } else if violation.is_unsupported() {
        ErrorKind::Unsupported
    } else {
        ErrorKind::Malformed
    };
    let (span, offset) = (violation.span(), violation.offset());
    let error = Error::new(kind, violation.code(), violation.clone());
    match (violation, span, offset) {
        (ZipViolation::Repeated { name }, ..) => error.with_object(&name),
        (_, Some(span), _) => error.with_span(span),
        (_, None, Some(offset)) => error.with_offset(offset),
        _ => error,
    }
}

struct Inflated(Arc<dyn Source>);

impl Source for Inflated {
    fn byte_len(&self) -> u64 {
        self.0.byte_len()
    }

    fn is_sequential(&self) -> bool {
        self.0.is_sequential()
    }

    fn is_remote(&self) -> bool {
        self.0.is_remote()
    }

    fn will_read_all(&self, spans: &[Span]) {
        self.0.will_read_all(spans);
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let read = self.0.read_at(offset, buf);
        read.map_err(|found| match found.downcast::<zt_zip::Error>() {
            Ok(found) => error(found).into(),
            Err(found) => found,
        })
    }
}
