//! The kind of file that a conversion writes.

use std::io::Write;

use zt::Result;
use zt_foreign::{ConvertOptions, FileWriter, Job, Merged, Sink};

use crate::table::Kinds;

/// The kind that is written.
pub(crate) struct Target<'k> {
    /// The usual extension of its files.
    pub(crate) extension: &'static str,
    pub(crate) writer: &'k dyn FileWriter,
}

impl<'k> Target<'k> {
    pub(crate) fn new(kinds: &'k Kinds, options: &ConvertOptions<'_>) -> Result<Self> {
        let writer = kinds.writer(options.target)?;
        let kind = kinds.get(options.target.as_str());
        let extension = kind.and_then(|kind| kind.extensions().first());
        Ok(Target { extension: extension.copied().unwrap_or_default(), writer })
    }

    /// Writes one file with all merged objects or some of them.
    pub(crate) fn write(
        &self,
        merged: Merged<'_>,
        mut sink: Sink<'_>,
        job: &mut Job<'_>,
    ) -> Result<()> {
        self.writer.write(merged, &mut sink, job)?;
        job.check()?;
        job.end_attributes();
        sink.flush()?;
        job.summary.byte_len = sink.byte_len();
        Ok(())
    }
}
