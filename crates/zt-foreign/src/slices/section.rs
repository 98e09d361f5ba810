//! A range of a file as a source of its own.

use std::io;
use std::sync::Arc;

use zt::container::memory::end_of_read;
use zt::{Source, Span};

/// A range of a file, in which offsets count from its beginning.
pub struct Section {
    file: Arc<dyn Source>,
    span: Span,
}

impl Section {
    /// The bytes of `span` in `file`. Reads beyond the file fail.
    pub fn new(file: Arc<dyn Source>, span: Span) -> Self {
        Section { file, span }
    }
}

impl Source for Section {
    fn byte_len(&self) -> u64 {
        self.span.byte_len()
    }

    fn is_sequential(&self) -> bool {
        self.file.is_sequential()
    }

    fn made_of(&self, span: Span) -> Option<Vec<(Arc<dyn Source>, Span)>> {
        let span = Span::new(self.span.offset().checked_add(span.offset())?, span.byte_len())?;
        let own = || vec![(Arc::clone(&self.file), span)];
        Some(self.file.made_of(span).unwrap_or_else(own))
    }

    fn is_remote(&self) -> bool {
        self.file.is_remote()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        end_of_read(self.span.byte_len(), offset, out)?;
        self.file.read_at(self.span.offset().strict_add(offset), out)
    }
}
