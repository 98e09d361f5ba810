//! A file of safetensors or GGUF that is edited: it is written anew, and replaces the old one when it is complete.

use zt::foreign::{AtomicFile, expect_unlocked};
use zt::{ByteOrder, Error, ErrorKind, File, codes};
use zt_convert::foreign::AttributeChange;
use zt_convert::{ConvertOptions, Input};
use zt_model::is_blob;

use crate::args::edit::EditArgs;
use crate::args::input::{InputArgs, Truncated};
use crate::failure::Failure;
use crate::files::kinds;
use crate::files::remote::expect_file;
use crate::output::Output;
use crate::output::progress::Progress;

/// The kinds whose files are edited so. Their headers have no room for a journal, so that an edit in place could
/// leave a file that no program opens.
const KINDS: [&str; 2] = ["safetensors", "gguf"];

/// A file that will be written anew.
pub(crate) struct Rewrite<'a> {
    target: &'a EditArgs,
    input: Input,
}

impl EditArgs {
    /// The file, if it is of a kind that is written anew; `None` for any other.
    ///
    /// # Errors
    ///
    /// Code `unsupported` for a sharded set, for a big-endian file, and for a file of a cache of the Hub.
    pub(crate) fn rewrite(&self) -> Result<Option<Rewrite<'_>>, Failure> {
        expect_file(&self.file, "a remote file cannot be edited")?;
        if !self.dry_run {
            // Before the file is read: the edit that is waited for is not to be undone.
            self.wait.retry(|| expect_unlocked(&self.file))?;
        }
        let input = InputArgs::default().open_input(&self.file, Truncated::Refused)?;
        if !KINDS.contains(&input.file().kind().as_str()) {
            return Ok(None);
        }
        let is_big = |file: &File| {
            let entries = file.entries().into_iter();
            let mut objects = entries.filter_map(|entry| entry.object().ok());
            objects.any(|object| {
                let mut components = object.components.iter();
                components.any(|(_, component)| component.byte_order == ByteOrder::Big)
            })
        };
        let what = if input.paths().len() > 1 {
            "a sharded set cannot be edited: edit its files, or merge them first"
        } else if is_big(input.file()) {
            "a big-endian file cannot be edited: convert it first"
        } else if is_blob(&self.file) {
            "a file of a cache of the Hub has its digest as its name: edit a copy"
        } else {
            let target = self;
            return Ok(Some(Rewrite { target, input }));
        };
        let error = Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, what);
        Err(Failure::Error(error.with_path(&self.file)))
    }
}

impl Rewrite<'_> {
    pub(crate) const fn file(&self) -> &File {
        self.input.file()
    }

    /// Writes the file with these objects, under these names, and with changed attributes. Returns its length.
    pub(crate) fn commit(
        self,
        choose: impl FnMut(&str) -> Option<String>,
        attributes: Vec<AttributeChange>,
        output: &Output,
    ) -> Result<u64, Failure> {
        let Rewrite { target, input } = self;
        let (path, paths) = (&target.file, input.paths().to_vec());
        let kind = input.file().kind();
        let chosen = input.into_file().select(choose);
        let chosen = chosen.map_err(|error| error.with_path(path))?;
        let input = Input::new(chosen, paths);
        let progress = Progress::new(Some(input.file().decoded_len()));
        let report = |bytes| progress.report(bytes);
        let options = ConvertOptions::new(kind).attributes(attributes);
        let options = options.progress(Some(zt::Progress::new(&report)));
        let kinds = kinds::table();
        let summary = if target.dry_run {
            kinds.convert(std::slice::from_ref(&input), std::io::sink(), &options)
        } else {
            AtomicFile::create(path).and_then(|out| kinds.replace(input, out, &options))
        };
        let summary = summary.map_err(|error| error.with_path(path))?;
        drop(progress);
        output.warnings(&summary.warnings);
        Ok(summary.byte_len)
    }
}
