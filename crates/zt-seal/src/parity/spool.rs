//! Blocks that are made column by column and read row by row.

use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use tempfile::SpooledTempFile;
use zt::{Error, Result};

/// Rows of equal length: in memory while they are few, else in a file without a name.
pub(super) struct Spool {
    file: SpooledTempFile,
    row: usize,
}

impl Spool {
    const IN_MEMORY: usize = 16 << 20;

    /// Rows of `row` bytes, in `folder`.
    pub(super) fn new(folder: &Path, row: usize) -> Self {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Spool { file: tempfile::spooled_tempfile_in(Self::IN_MEMORY, folder), row }
    }

    fn seek(&mut self, row: usize, at: usize) -> Result<()> {
        let start = (row as u64).strict_mul(self.row as u64).strict_add(at as u64);
        self.file.seek(SeekFrom::Start(start)).map_err(Error::from)?;
        Ok(())
    }

    /// Writes a part of a row.
    pub(super) fn write(&mut self, row: usize, column: &Range<usize>, bytes: &[u8]) -> Result<()> {
        self.seek(row, column.start)?;
        Ok(self.file.write_all(bytes)?)
    }

    /// The first bytes of a row.
    pub(super) fn read(&mut self, row: usize, bytes: &mut [u8]) -> Result<()> {
        self.seek(row, 0)?;
        Ok(self.file.read_exact(bytes)?)
    }
}
