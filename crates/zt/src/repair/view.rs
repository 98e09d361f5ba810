//! A part of a file, read as if it were a complete file.

use std::io;
use std::sync::Arc;

use zt_container::memory::end_of_read;
use zt_container::{HEADER_LEN, Layout, MAGIC, MAGIC_0_1, Source, Span};

/// A part of `source` as a file: its bytes from `base` to the end of a manifest, between a correct
/// header and trailer. So a manifest can be examined by opening a file, even if its header or
/// trailer is damaged.
pub(super) struct View {
    source: Arc<dyn Source>,
    base: u64,
    /// The end of the manifest, counted from `base`, as are all offsets in the view.
    manifest_end: u64,
    header: [u8; 8],
    trailer: Vec<u8>,
}

impl View {
    /// `manifest` is its place in `source`, after `base`.
    pub(super) fn new(source: &Arc<dyn Source>, base: u64, manifest: Span, layout: Layout) -> Self {
        View {
            source: Arc::clone(source),
            base,
            manifest_end: manifest.end().strict_sub(base),
            header: header_of(layout),
            trailer: trailer_of(layout, manifest.byte_len()),
        }
    }
}

pub(super) const fn header_of(layout: Layout) -> [u8; 8] {
    match layout {
        Layout::V0_1 => MAGIC_0_1,
        _ => MAGIC,
    }
}

/// The bytes after a manifest of this length.
pub(super) fn trailer_of(layout: Layout, manifest_len: u64) -> Vec<u8> {
    let mut trailer = manifest_len.to_le_bytes().to_vec();
    if layout == Layout::V1_1 {
        trailer.extend_from_slice(&MAGIC);
    }
    trailer
}

impl Source for View {
    fn byte_len(&self) -> u64 {
        self.manifest_end.strict_add(self.trailer.len() as u64)
    }

    fn slice(&self, span: Span) -> Option<&[u8]> {
        if span.offset() < HEADER_LEN || span.end() > self.manifest_end {
            return None;
        }
        let offset = self.base.checked_add(span.offset())?;
        self.source.slice(Span::new(offset, span.byte_len())?)
    }

    fn will_read(&self, span: Span) {
        let offset = self.base.checked_add(span.offset());
        if let Some(span) = offset.and_then(|offset| Span::new(offset, span.byte_len())) {
            self.source.will_read(span);
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        end_of_read(self.byte_len(), offset, buf)?;
        let (header, rest) = split_at(buf, HEADER_LEN.saturating_sub(offset));
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        for (byte, is) in header.iter_mut().zip(self.header.iter().skip(start)) {
            *byte = *is;
        }
        let offset = offset.strict_add(header.len() as u64);
        let (stored, trailer) = split_at(rest, self.manifest_end.saturating_sub(offset));
        if !stored.is_empty() {
            self.source.read_at(self.base.strict_add(offset), stored)?;
        }
        let offset = offset.strict_add(stored.len() as u64);
        let start = usize::try_from(offset.saturating_sub(self.manifest_end)).unwrap_or(usize::MAX);
        for (byte, is) in trailer.iter_mut().zip(self.trailer.iter().skip(start)) {
            *byte = *is;
        }
        Ok(())
    }
}

/// Splits `buf` after `len` bytes, or at its end.
fn split_at(buf: &mut [u8], len: u64) -> (&mut [u8], &mut [u8]) {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    buf.split_at_mut(len.min(buf.len()))
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use zt_container::Memory;

    struct Announced(std::sync::Mutex<Vec<Span>>);

    impl Source for Announced {
        fn byte_len(&self) -> u64 {
            100
        }
        fn will_read(&self, span: Span) {
            self.0.lock().unwrap().push(span);
        }
        fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    #[test]
    fn announces_offsets_in_the_file() {
        let announced = Arc::new(Announced(std::sync::Mutex::default()));
        let source: Arc<dyn Source> = announced.clone();
        let view = View::new(&source, 20, Span::new(60, 6).unwrap(), Layout::V1_1);
        view.will_read(Span::new(8, 30).unwrap());
        view.will_read(Span::new(u64::MAX - 1, 1).unwrap());
        let found = announced.0.lock().unwrap();
        let (first, others) = found.split_first().unwrap();
        assert_eq!(*first, Span::new(28, 30).unwrap());
        assert!(others.iter().all(|span| span.is_empty()));
    }

    /// Every range of a view has the bytes of the file that it represents.
    #[test]
    fn reads_the_header_the_bytes_and_the_trailer() {
        let stored: Vec<u8> = (0..40).collect();
        let source: Arc<dyn Source> = Arc::new(Memory::new(stored.clone()));
        let manifest = Span::new(30, 6).unwrap();
        for layout in [Layout::V0_1, Layout::V1_0, Layout::V1_1] {
            for base in [0, 3] {
                let view = View::new(&source, base, manifest, layout);
                let start = usize::try_from(base).unwrap();
                let (header, trailer) = (header_of(layout), trailer_of(layout, 6));
                let whole = [&header, stored.get(start + 8..36).unwrap(), &trailer].concat();
                assert_eq!(view.byte_len(), whole.len() as u64);
                for from in 0..=whole.len() {
                    for to in from..=whole.len() {
                        let expected = whole.get(from..to).unwrap();
                        let mut found = vec![0; to - from];
                        view.read_at(from as u64, &mut found).unwrap();
                        assert_eq!(found, expected, "{from}..{to}");
                        let span = Span::between(from as u64, to as u64).unwrap();
                        // The file's bytes are borrowed, and the header and the trailer are not.
                        let is_stored = from >= 8 && to <= whole.len() - trailer.len();
                        assert_eq!(view.slice(span), is_stored.then_some(expected));
                    }
                }
                let beyond = view.read_at(whole.len() as u64, &mut [0]);
                assert!(beyond.is_err());
            }
        }
    }
}
