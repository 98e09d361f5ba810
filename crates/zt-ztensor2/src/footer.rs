//! Where the manifest is. Spec: §2.

use twox_hash::XxHash3_64;
use zt::container::LimitExceeded;
use zt::{Error, Limits, Result, Source, Span};

use crate::violation::Violation;
use crate::{ALIGNMENT, MAGIC};

const HEADER_LEN: u64 = 8;

/// Bytes of the footer, the last of the file.
const FOOTER_LEN: u64 = 40;

/// The version that this module reads. Spec: §2.3.
const VERSION: u32 = 2;

/// The longest manifest. Spec: §3.1.
const MANIFEST_MAX: u64 = 1 << 30;

/// The footer of a sound frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Footer {
    /// Where blobs may lie.
    pub(super) data: Span,
    /// The manifest and the XXH3 of it; none in a file that is a shard alone.
    pub(super) manifest: Option<(Span, u64)>,
}

impl Footer {
    /// Finds the manifest: two small reads, at the start and at the end.
    ///
    /// # Errors
    ///
    /// Codes `truncated`, `header`, `version`, `manifest-size`, `alignment`.
    pub(super) fn read(source: &dyn Source, limits: &Limits) -> Result<Self> {
        let byte_len = source.byte_len();
        let minimum = HEADER_LEN.saturating_add(FOOTER_LEN);
        let Some(start) = byte_len
            .checked_sub(FOOTER_LEN)
            .filter(|_| byte_len >= minimum)
        else {
            return Err(Violation::Short { byte_len, minimum }.into());
        };
        let mut head = [0; 8];
        source.read_at(0, &mut head)?;
        if head != MAGIC {
            let found = head.to_vec();
            return Err(Violation::Magic { found }.into());
        }
        let mut footer = [0; 40];
        source.read_at(start, &mut footer)?;
        let (fields, magic) = footer.split_at(32);
        if magic != MAGIC {
            return Err(Error::from(Violation::NoFooter).with_offset(start));
        }
        let [offset, length, hash, last] = numbers(fields);
        // The lower half; the upper one is reserved, and ignored.
        let version = u32::try_from(last & u64::from(u32::MAX)).unwrap_or_default();
        if version != VERSION {
            return Err(Error::from(Violation::Version { found: version }).with_offset(start));
        }
        let data = region(byte_len).unwrap_or_default();
        let footer = Footer {
            data,
            manifest: None,
        };
        if length == 0 {
            return match (offset, hash) {
                (0, 0) => Ok(footer),
                _ => Err(Error::from(Violation::NoManifest).with_offset(start)),
            };
        }
        let limit = MANIFEST_MAX.min(limits.manifest_len);
        if length > limit {
            let found = length;
            return Err(
                zt::container::Error::Limit(LimitExceeded::Manifest { limit, found }).into(),
            );
        }
        if !offset.is_multiple_of(ALIGNMENT) || offset < ALIGNMENT {
            return Err(Violation::ManifestPlace { offset }.into());
        }
        let span = Span::new(offset, length).filter(|span| data.contains(*span));
        let outside = || Violation::ManifestOutside {
            offset,
            length,
            end: start,
        };
        let manifest = Some((span.ok_or_else(outside)?, hash));
        Ok(Footer { data, manifest })
    }

    /// The manifest's bytes, as long as they are those that were written.
    ///
    /// # Errors
    ///
    /// Code `digest-mismatch`.
    pub(super) fn check(manifest: &[u8], expected: u64) -> Result<()> {
        let found = XxHash3_64::oneshot(manifest);
        if found != expected {
            return Err(Violation::ManifestHash { expected, found }.into());
        }
        Ok(())
    }
}

/// Where blobs may lie in a file of that length: from the first multiple of the grid to the footer.
pub(super) fn region(byte_len: u64) -> Option<Span> {
    let end = byte_len.checked_sub(FOOTER_LEN)?;
    Span::between(ALIGNMENT.min(end), end)
}

/// Four little-endian numbers.
fn numbers(fields: &[u8]) -> [u64; 4] {
    let (numbers, _) = fields.as_chunks::<8>();
    let number = |at: usize| numbers.get(at).copied().map_or(0, u64::from_le_bytes);
    [number(0), number(1), number(2), number(3)]
}
