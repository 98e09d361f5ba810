//! The footer, which leads to the manifest. Spec: §2.

use zt::container::LimitExceeded;
use zt::{Error, Limits, Result, Source, Span};
use zt_foreign::fields::Record;

use crate::violation::Violation;

/// The first and the last eight bytes.
pub(super) const MAGIC: [u8; 8] = *b"\x89ZT2\r\n\x1A\n";

/// Every blob begins at a multiple of this, from this offset on. Spec: §2.4.
pub(super) const ALIGNMENT: u64 = 4096;

const HEADER_LEN: u64 = 8;

/// Bytes of the footer, the last part of the file.
const FOOTER_LEN: u64 = 40;

/// The version that this crate reads. Spec: §2.3.
const VERSION: u32 = 2;

/// The longest manifest. Spec: §3.1.
const MANIFEST_MAX: u64 = 1 << 30;

/// A checked footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Footer {
    /// The region of blobs.
    pub(super) data: Span,
    /// The manifest and its XXH3; `None` in a file that is only a shard.
    pub(super) manifest: Option<(Span, u64)>,
}

impl Footer {
    /// Finds the manifest with two small reads, at the start and at the end.
    pub(super) fn read(source: &dyn Source, limits: &Limits) -> Result<Self> {
        let byte_len = source.byte_len();
        let minimum = HEADER_LEN + FOOTER_LEN;
        let data = region(byte_len).filter(|_| byte_len >= minimum);
        let data = data.ok_or(Violation::Short { byte_len, minimum })?;
        let start = data.end();
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
        let fields = Record(fields);
        let [offset, length, hash] = [0, 8, 16].map(|at| fields.u64(at));
        // The four bytes after the version are reserved and ignored.
        let version = fields.u32(24);
        if version != VERSION {
            return Err(Error::from(Violation::Version { found: version }).with_offset(start));
        }
        let footer = Footer { data, manifest: None };
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
                zt::container::Error::Limit(LimitExceeded::Manifest { limit, found }).into()
            );
        }
        if !offset.is_multiple_of(ALIGNMENT) || offset < ALIGNMENT {
            let what = "the manifest";
            return Err(Violation::Alignment { what, offset }.into());
        }
        let span = Span::new(offset, length).filter(|span| data.contains(*span));
        let outside = || Violation::ManifestOutside { offset, length, end: start };
        let manifest = Some((span.ok_or_else(outside)?, hash));
        Ok(Footer { data, manifest })
    }
}

/// The region of blobs in a file of this length: from the first multiple of the alignment to the
/// footer.
pub(super) fn region(byte_len: u64) -> Option<Span> {
    let end = byte_len.checked_sub(FOOTER_LEN)?;
    Span::between(ALIGNMENT.min(end), end)
}
