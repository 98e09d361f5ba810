//! Locating the manifest by the header and the footer of a file.

#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use crate::error::{Error, LimitExceeded, Result, Violation};
use crate::exact::in_memory;
use crate::{Exact, HEADER_LEN, Layout, Limits, MAGIC, MAGIC_0_1, SIZE_LEN, Source, Span};

/// Where manifest and data are.
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
    /// The declared size is compared with the file and with [`Limits::manifest_len`] here, so that
    /// [`Footer::manifest`] may be read as it is. Spec: §2.
    ///
    /// # Errors
    ///
    /// [`Violation::NotZt`], [`Violation::Truncated`] and [`Violation::ManifestSize`] where the
    /// file is at fault, [`LimitExceeded::Manifest`], and [`Error::Io`].
    pub fn locate(source: &(impl Source + ?Sized), limits: &Limits) -> Result<Self> {
        let byte_len = source.byte_len();
        let layout = layout_of(source, byte_len)?;
        let trailer_len = match layout {
            Layout::V0_1 | Layout::V1_0 => SIZE_LEN,
            Layout::V1_1 => SIZE_LEN.plus(MAGIC.len() as u64),
        };
        let framing = HEADER_LEN.plus(trailer_len);
        let Some(available) = byte_len.checked_sub(framing).filter(|room| *room > 0) else {
            let minimum = framing.plus(1);
            return Err(Violation::Truncated { byte_len, minimum }.into());
        };

        let size_offset = byte_len.minus(trailer_len);
        let mut size = [0; 8];
        source.read_at(size_offset, &mut size)?;
        let declared = u64::from_le_bytes(size);
        let start = size_offset
            .checked_sub(declared)
            .filter(|start| *start >= HEADER_LEN);
        // The 1.0 text wants `size < file - 16`; its real writers reach equality in empty files.
        let (Some(start), 1..) = (start, declared) else {
            let has_footer = layout == Layout::V1_1;
            return Err(Violation::ManifestSize {
                offset: size_offset,
                declared,
                available,
                has_footer,
            }
            .into());
        };
        if declared > limits.manifest_len {
            let limit = limits.manifest_len;
            return Err(Error::Limit(LimitExceeded::Manifest {
                limit,
                found: declared,
            }));
        }
        let span = |start, end| Span::between(start, end).unwrap_or_default();
        Ok(Footer {
            layout,
            data: span(HEADER_LEN, start),
            manifest: span(start, size_offset),
        })
    }

    /// The generation of the framing.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Where blobs may lie: after the header magic and before the manifest.
    #[must_use]
    pub const fn data(&self) -> Span {
        self.data
    }

    /// The bytes of the manifest.
    #[must_use]
    pub const fn manifest(&self) -> Span {
        self.manifest
    }
}

/// Decides by the magics at both ends.
fn layout_of(source: &(impl Source + ?Sized), byte_len: u64) -> Result<Layout> {
    let mut head = [0; 8];
    let head_len = in_memory(byte_len.min(HEADER_LEN));
    let head = head.get_mut(..head_len).unwrap_or_default();
    source.read_at(0, head)?;
    if head == MAGIC_0_1 {
        return Ok(Layout::V0_1);
    }
    if head != MAGIC {
        // A prefix of the magic is a file cut very short, not a file of another format.
        let cut = !head.is_empty() && (MAGIC.starts_with(head) || MAGIC_0_1.starts_with(head));
        return Err(if cut {
            Violation::Truncated {
                byte_len,
                minimum: HEADER_LEN.plus(SIZE_LEN).plus(1),
            }
            .into()
        } else {
            Violation::NotZt {
                found: head.to_vec(),
            }
            .into()
        });
    }
    // Read as a 1.0 size, the footer magic is 3.47e18, so the two cannot be confused. A file as
    // short as one magic is its own header.
    let Some(tail_offset) = byte_len.checked_sub(8).filter(|tail| *tail >= HEADER_LEN) else {
        return Ok(Layout::V1_0);
    };
    let mut tail = [0; 8];
    source.read_at(tail_offset, &mut tail)?;
    Ok(if tail == MAGIC {
        Layout::V1_1
    } else {
        Layout::V1_0
    })
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use crate::Memory;

    fn locate(bytes: &[u8]) -> Result<Footer> {
        Footer::locate(&Memory::new(bytes), &Limits::default())
    }

    fn file(head: &[u8], manifest: &[u8], size: u64, foot: &[u8]) -> Vec<u8> {
        [head, manifest, &size.to_le_bytes(), foot].concat()
    }

    #[test]
    fn tells_the_layouts_apart_by_bytes() {
        let cases = [
            (file(b"ZTEN0001", b"\x80", 1, b""), Layout::V0_1),
            (file(b"ZTEN1000", b"\xA0", 1, b""), Layout::V1_0),
            (file(b"ZTEN1000", b"\xA0", 1, b"ZTEN1000"), Layout::V1_1),
        ];
        for (bytes, layout) in cases {
            let footer = locate(&bytes).unwrap();
            assert_eq!(footer.layout(), layout);
            assert_eq!(footer.data(), Span::new(8, 0).unwrap());
            assert_eq!(footer.manifest(), Span::new(8, 1).unwrap());
        }
    }

    #[test]
    fn refuses_a_manifest_longer_than_the_file() {
        for size in [0, 2, 9, 1 << 32, u64::MAX, u64::MAX - 7] {
            for foot in [&b""[..], b"ZTEN1000"] {
                let error = locate(&file(b"ZTEN1000", b"\xA0", size, foot)).unwrap_err();
                assert_eq!(error.code(), "manifest-size", "{size}");
            }
        }
    }

    /// One cut is left to the manifest's reader: without its last eight bytes, a file of layout
    /// 1.1 is framed like one of 1.0. Its manifest then says `objects` where 1.0 says `tensors`.
    #[test]
    fn refuses_every_cut_but_that_of_the_footer_magic() {
        let bytes = file(b"ZTEN1000", &[0; 100], 100, b"ZTEN1000");
        let footer = bytes.len() - 8;
        assert_eq!(
            locate(bytes.get(..footer).unwrap()).unwrap().layout(),
            Layout::V1_0
        );
        for len in (0..bytes.len()).filter(|len| *len != footer) {
            let code = locate(bytes.get(..len).unwrap()).unwrap_err().code();
            assert!(
                ["truncated", "not-zt", "manifest-size"].contains(&code),
                "{len}: {code}"
            );
        }
    }

    /// A file that is as long as its framing has no room for a manifest, whatever its size says.
    #[test]
    fn a_beginning_of_a_file_is_a_cut_one() {
        for head in [&b"Z"[..], b"ZTEN", b"ZTEN0", b"ZTEN1", b"ZTEN100"] {
            assert_eq!(locate(head).unwrap_err().code(), "truncated", "{head:?}");
        }
        for head in [&b""[..], b"z", b"ZTEN2", b"ZTEN1001"] {
            assert_eq!(locate(head).unwrap_err().code(), "not-zt", "{head:?}");
        }
        for foot in [&b""[..], b"ZTEN1000"] {
            for size in [0, 1] {
                let bytes = file(b"ZTEN1000", b"", size, foot);
                let minimum = bytes.len() as u64 + 1;
                let error = locate(&bytes).unwrap_err();
                assert!(
                    matches!(error, Error::Malformed(Violation::Truncated { minimum: told, .. }) if told == minimum),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn says_what_a_foreign_file_begins_with() {
        let error = locate(b"GGUF\x03\0\0\0............................").unwrap_err();
        assert_eq!(error.code(), "not-zt");
        assert!(error.to_string().contains("GGUF\\x03"), "{error}");
    }

    #[test]
    fn holds_the_manifest_against_the_limit() {
        let bytes = file(b"ZTEN1000", &[0; 100], 100, b"ZTEN1000");
        let limits = |manifest_len| Limits {
            manifest_len,
            ..Limits::default()
        };
        assert!(Footer::locate(&Memory::new(&bytes), &limits(100)).is_ok());
        let error = Footer::locate(&Memory::new(&bytes), &limits(99)).unwrap_err();
        assert!(matches!(
            error,
            Error::Limit(LimitExceeded::Manifest {
                limit: 99,
                found: 100
            })
        ));
    }
}
