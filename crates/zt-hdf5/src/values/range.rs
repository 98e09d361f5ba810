//! A range of a file as a source of its own.

use std::io;
use std::sync::Arc;

use zt::{Source, Span};

pub(crate) struct Range {
    pub(crate) file: Arc<dyn Source>,
    pub(crate) span: Span,
}

impl Source for Range {
    fn byte_len(&self) -> u64 {
        self.span.byte_len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.byte_len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file
            .read_at(self.span.offset().saturating_add(offset), buf)
    }
}
