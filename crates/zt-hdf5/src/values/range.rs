//! A range of a file as a source of its own.

use std::io;
use std::sync::Arc;

use zt::{Source, Span};

use crate::bytes::store::expect_within;

pub(crate) struct Range {
    pub(crate) file: Arc<dyn Source>,
    pub(crate) span: Span,
}

impl Source for Range {
    fn byte_len(&self) -> u64 {
        self.span.byte_len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        expect_within(self, offset, buf)?;
        self.file
            .read_at(self.span.offset().saturating_add(offset), buf)
    }
}
