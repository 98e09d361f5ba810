//! An open container: its framing, the bytes of its manifest, its blobs.

use std::borrow::Cow;

use crate::blob::Blob;
use crate::error::Result;
use crate::footer::Footer;
use crate::limits::Limits;
use crate::magic::Layout;
use crate::memory::bytes_of;
use crate::reader::BlobReader;
use crate::source::Source;

/// A `.zt` file whose manifest has been located.
///
/// Invariant: this type never interprets the manifest or the elements; it returns bytes.
///
/// ```
/// use zt_container::{Container, ContainerWriter, Limits, Memory};
/// let bytes = ContainerWriter::new(Vec::new())?.finish(b"\xA0")?;
/// let container = Container::open(Memory::new(bytes), &Limits::default())?;
/// assert_eq!(&*container.manifest_bytes()?, b"\xA0");
/// # Ok::<(), zt_container::Error>(())
/// ```
#[derive(Debug)]
pub struct Container<S> {
    source: S,
    footer: Footer,
    limits: Limits,
}

impl<S: Source> Container<S> {
    /// Locates the manifest. Cost: two small reads.
    ///
    /// # Errors
    ///
    /// As [`Footer::locate`].
    pub fn open(source: S, limits: &Limits) -> Result<Self> {
        let footer = Footer::locate(&source, limits)?;
        Ok(Container { source, footer, limits: *limits })
    }

    /// The bytes behind the container.
    pub const fn source(&self) -> &S {
        &self.source
    }

    /// The places of manifest and data.
    pub const fn footer(&self) -> &Footer {
        &self.footer
    }

    /// The generation of the framing.
    pub const fn layout(&self) -> Layout {
        self.footer.layout()
    }

    /// The manifest's CBOR: borrowed from a map or from memory, read from a file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io); [`LimitExceeded::Allocation`](crate::LimitExceeded::Allocation) if
    /// there is no memory for it.
    pub fn manifest_bytes(&self) -> Result<Cow<'_, [u8]>> {
        bytes_of(&self.source, self.footer.manifest())
    }

    /// Streams the decoded bytes of one blob. The reader checks the digest at the end.
    ///
    /// # Errors
    ///
    /// As [`BlobReader::new`].
    pub fn read_blob<'a>(&'a self, blob: &'a Blob) -> Result<BlobReader<'a>> {
        BlobReader::new(&self.source, blob, &self.limits)
    }
}
