//! Locating the manifest by the header and the footer of a file.

use crate::error::{Error, FramingViolation, LimitExceeded, Result};
use crate::limits::Limits;
use crate::magic::{HEADER_LEN, Layout, MAGIC, MAGIC_0_1, SIZE_LEN};
use crate::memory::in_memory;
use crate::source::Source;
use crate::span::Span;

/// The places of manifest and data.
///
/// ```text
/// 0        8                    data.end()      manifest.end()   +8       +16
/// | magic  | blobs and padding  | CBOR manifest | size, u64 LE | ZTEN1000 |
///                                                               (1.1 on)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footer {
    layout: Layout,
    data: Span,
    manifest: Span,
}

impl Footer {
    /// Finds the manifest: two small reads, at the start and at the end.
    ///
    /// If a remote source ends with a footer magic, its start is not read, because that would be one more
    /// request. [`Footer::check_header`] reads it.
    ///
    /// The declared size is compared with the file and with [`Limits::manifest_len`] here, so a caller can
    /// read [`Footer::manifest`] without further checks. Spec: §2.
    ///
    /// # Errors
    ///
    /// [`FramingViolation::NotZt`], [`FramingViolation::Truncated`] and [`FramingViolation::ManifestSize`] if the file is at
    /// fault; [`LimitExceeded::Manifest`]; [`Error::Io`].
    pub fn locate(source: &(impl Source + ?Sized), limits: &Limits) -> Result<Self> {
        let byte_len = source.byte_len();
        let layout = layout_of(source, byte_len)?;
        let trailer_len = match layout {
            Layout::V0_1 | Layout::V1_0 => SIZE_LEN,
            Layout::V1_1 => SIZE_LEN.strict_add(MAGIC.len() as u64),
        };
        let framing = HEADER_LEN.strict_add(trailer_len);
        let Some(available) = byte_len.checked_sub(framing).filter(|room| *room > 0) else {
            let minimum = framing.strict_add(1);
            return Err(FramingViolation::Truncated { byte_len, minimum }.into());
        };

        let size_offset = byte_len.strict_sub(trailer_len);
        let mut size = [0; 8];
        source.read_at(size_offset, &mut size)?;
        let declared = u64::from_le_bytes(size);
        let start = size_offset.checked_sub(declared);
        let start = start.filter(|start| *start >= HEADER_LEN);
        // The text of 1.0 demands `size < file - 16`, but its writers reach equality in empty files.
        let (Some(start), 1..) = (start, declared) else {
            let has_footer = layout == Layout::V1_1;
            return Err(FramingViolation::ManifestSize {
                offset: size_offset,
                declared,
                available,
                has_footer,
            }
            .into());
        };
        let (limit, found) = (limits.manifest_len, declared);
        if found > limit {
            return Err(Error::Limit(LimitExceeded::Manifest { limit, found }));
        }
        Ok(Footer {
            layout,
            data: Span::exact_between(HEADER_LEN, start),
            manifest: Span::exact_between(start, size_offset),
        })
    }

    /// Checks the header, which [`Footer::locate`] does not read in remote sources. Spec: §2.
    ///
    /// # Errors
    ///
    /// [`FramingViolation::NotZt`], [`FramingViolation::Truncated`] and [`Error::Io`].
    pub fn check_header(source: &(impl Source + ?Sized)) -> Result<()> {
        is_of_0_1(source, source.byte_len()).map(drop)
    }

    /// The generation of the framing.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Where blobs may lie: after the header magic and before the manifest.
    pub const fn data(&self) -> Span {
        self.data
    }

    /// The bytes of the manifest.
    pub const fn manifest(&self) -> Span {
        self.manifest
    }
}

/// The layout, by the magics at both ends.
fn layout_of(source: &(impl Source + ?Sized), byte_len: u64) -> Result<Layout> {
    let is_located = source.is_remote() && has_footer_magic(source, byte_len)?;
    if !is_located && is_of_0_1(source, byte_len)? {
        return Ok(Layout::V0_1);
    }
    Ok(if is_located || has_footer_magic(source, byte_len)? { Layout::V1_1 } else { Layout::V1_0 })
}

/// Whether the header is the magic of layout 0.1. An unknown header is an error.
fn is_of_0_1(source: &(impl Source + ?Sized), byte_len: u64) -> Result<bool> {
    let mut head = [0; 8];
    let head_len = in_memory(byte_len.min(HEADER_LEN));
    let head = head.get_mut(..head_len).unwrap_or_default();
    source.read_at(0, head)?;
    if head == MAGIC || head == MAGIC_0_1 {
        return Ok(head == MAGIC_0_1);
    }
    // A file that is a prefix of the magic is truncated, not of another format.
    if !head.is_empty() && (MAGIC.starts_with(head) || MAGIC_0_1.starts_with(head)) {
        let minimum = HEADER_LEN.strict_add(SIZE_LEN).strict_add(1);
        return Err(FramingViolation::Truncated { byte_len, minimum }.into());
    }
    let found = head.to_vec();
    Err(FramingViolation::NotZt { found }.into())
}

/// Whether the file ends with the footer magic. As a size of layout 1.0, these bytes would be 3.47e18, so
/// no file is ambiguous. A file of eight bytes has only a header.
fn has_footer_magic(source: &(impl Source + ?Sized), byte_len: u64) -> Result<bool> {
    let Some(tail_offset) = byte_len.checked_sub(8).filter(|tail| *tail >= HEADER_LEN) else {
        return Ok(false);
    };
    let mut tail = [0; 8];
    source.read_at(tail_offset, &mut tail)?;
    Ok(tail == MAGIC)
}
