//! A file of safetensors or GGUF that is edited: see [`zt_model::Rewrite`].

use zt::File;
use zt::foreign::expect_unlocked;
use zt_convert::foreign::AttributeChange;

use crate::args::edit::EditArgs;
use crate::args::input::{InputArgs, Truncated};
use crate::failure::Failure;
use crate::files::kinds;
use crate::files::remote::expect_file;
use crate::output::Output;
use crate::output::progress::Progress;

/// A file that will be written anew.
pub(crate) struct Rewrite<'a> {
    target: &'a EditArgs,
    rewrite: zt_model::Rewrite,
}

impl EditArgs {
    /// The file, if it is of a kind that is written anew; `None` for any other.
    ///
    /// # Errors
    ///
    /// As [`zt_model::Rewrite::new`].
    pub(crate) fn rewrite(&self) -> Result<Option<Rewrite<'_>>, Failure> {
        expect_file(&self.file, "a remote file cannot be edited")?;
        if !self.dry_run {
            // Before the file is read: the edit that is waited for is not to be undone.
            self.wait.retry(|| expect_unlocked(&self.file))?;
        }
        let input = InputArgs::default().open_input(&self.file, Truncated::Refused)?;
        let rewrite = zt_model::Rewrite::new(&self.file, input)?;
        Ok(rewrite.map(|rewrite| Rewrite { target: self, rewrite }))
    }
}

impl Rewrite<'_> {
    pub(crate) const fn file(&self) -> &File {
        self.rewrite.file()
    }

    /// Writes the file with these objects, under these names, and with changed attributes. Returns its length.
    pub(crate) fn commit(
        self,
        choose: impl FnMut(&str) -> Option<String>,
        attributes: Vec<AttributeChange>,
        output: &Output,
    ) -> Result<u64, Failure> {
        let Rewrite { target, rewrite } = self;
        let progress = Progress::new(Some(rewrite.file().decoded_len()));
        let report = |bytes| progress.report(bytes);
        let done = zt::Progress::new(&report);
        let summary = rewrite.commit(choose, attributes, kinds::table(), target.dry_run, done)?;
        drop(progress);
        output.warnings(&summary.warnings);
        Ok(summary.byte_len)
    }
}
