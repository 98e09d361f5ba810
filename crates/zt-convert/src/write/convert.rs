//! Converts files of any kind to one file of any kind that is written.

use std::fs;
use std::io::Write;
use std::path::Path;

use zt::foreign::{AtomicFile, parted_links};
use zt::{Error, Result};
use zt_foreign::{ConvertOptions, Input, Job, Sink, Summary};

use crate::merge::{self, Target, join_slices, merge};
use crate::table::Kinds;

impl Kinds {
    /// Writes the objects of all `inputs`, in the order of the inputs and of their data, as one file of
    /// the kind `options.target` to `sink`.
    ///
    /// Attributes are kept; unknown fields too, if the target has room for them. The same inputs
    /// and options give the same bytes, with any number of threads. Values are streamed. Memory grows
    /// with their size in four cases only: [`ConvertOptions::dense`], the indices of a sparse object,
    /// zstd in old files that do not record its decoded length, and planes of values that come over a
    /// network. After an error the sink holds an
    /// unfinished file.
    ///
    /// ```
    /// use zt_convert::{ConvertOptions, Input, Kinds, ZT};
    ///
    /// let mut bytes = Vec::new();
    /// let mut writer = zt::Writer::new(&mut bytes)?;
    /// writer.add("weight", &zt::Dense::from_slice(&[2], &[1.0f32, 2.0])?)?;
    /// writer.finish()?;
    /// let input = Input::from(zt::File::from_bytes(bytes)?);
    ///
    /// let options = ConvertOptions::new(ZT).dtype(zt::FloatType::BF16);
    /// let mut halved = Vec::new();
    /// let summary = Kinds::builtin().convert(&[input], &mut halved, &options)?;
    /// assert_eq!((summary.objects, summary.bytes), (1, 4));
    /// # Ok::<(), zt::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The fault of any object of an input, unless damaged objects are skipped: no object is dropped
    /// silently.
    ///
    /// | code | cause |
    /// | --- | --- |
    /// | `overlap` | blobs of an input overlap beyond [`zt::Limits::overlap`] |
    /// | `duplicate-name` | two objects have one name, and [`ConvertOptions::on_duplicate`] chooses none |
    /// | `lossy` | the target cannot represent some values, which are listed |
    /// | `unsupported` | the target cannot be written; an object lacks the requested dense value |
    ///
    /// [`zt::ErrorKind::Io`] if the sink fails; [`zt::ErrorKind::Interrupted`].
    pub fn convert(
        &self,
        inputs: &[Input],
        sink: impl Write + Send,
        options: &ConvertOptions<'_>,
    ) -> Result<Summary> {
        self.convert_to_sink(inputs, Sink::new(sink), options)
    }

    /// As [`Kinds::convert`], to a file that the caller publishes. Raw components without digests go from
    /// file to file without a way through memory, where the system can do that.
    ///
    /// # Errors
    ///
    /// As [`Kinds::convert`].
    pub fn convert_to_file(
        &self,
        inputs: &[Input],
        file: &mut AtomicFile,
        options: &ConvertOptions<'_>,
    ) -> Result<Summary> {
        self.convert_to_sink(inputs, Sink::file(file), options)
    }

    fn convert_to_sink(
        &self,
        inputs: &[Input],
        sink: Sink<'_>,
        options: &ConvertOptions<'_>,
    ) -> Result<Summary> {
        let options = &self.converting(options);
        let target = Target::new(self, options)?;
        let mut job = Job::new(options.target, options);
        let inputs = self.in_dialect(join_slices(inputs)?, options)?;
        let merged = merge(self, &inputs, &mut job)?;
        target.write(merged, sink, &mut job)?;
        Ok(job.summary)
    }

    /// Writes an input anew as a file of the kind `options.target`, and publishes it. `out` may have the path of the
    /// input, which is closed before the new file takes its name: not every system replaces an open file. A crash
    /// leaves the old file or the new one, and other programs that have the old one open keep it.
    ///
    /// # Errors
    ///
    /// As [`Kinds::convert`] and [`AtomicFile::publish`].
    pub fn replace(
        &self,
        input: Input,
        mut out: AtomicFile,
        options: &ConvertOptions<'_>,
    ) -> Result<Summary> {
        let parted = input.path().and_then(parted_links);
        let mut summary = self.convert_to_file(std::slice::from_ref(&input), &mut out, options)?;
        drop(input);
        out.publish()?;
        summary.warnings.extend(parted);
        Ok(summary)
    }

    /// As [`Kinds::convert`], to a file that appears at `out` complete or not at all. A failure leaves
    /// no temporary file.
    ///
    /// [`ConvertOptions::overwrite`] allows to replace an existing file. An input, or a shard of one, is never replaced,
    /// even through a symbolic link or, on Unix, a hard link. A device or a pipe is written to.
    ///
    /// # Errors
    ///
    /// Code `overwrite`; code `locked` if a program is editing the file at `out`; otherwise as [`Kinds::convert`] and [`AtomicFile`].
    pub fn convert_to_path(
        &self,
        inputs: &[Input],
        out: impl AsRef<Path>,
        options: &ConvertOptions<'_>,
    ) -> Result<Summary> {
        let out = out.as_ref();
        let write = || {
            merge::check_output(out, inputs, options.overwrite)?;
            // A file that appears during the conversion is not replaced.
            let is_there = fs::symlink_metadata(out).is_ok();
            let create = if options.overwrite || is_there {
                AtomicFile::create
            } else {
                AtomicFile::create_new
            };
            let mut file = create(out)?;
            let parted = parted_links(out);
            let mut summary = self.convert_to_file(inputs, &mut file, options)?;
            file.publish()?;
            summary.warnings.extend(parted);
            Ok(summary)
        };
        write().map_err(|error: Error| error.with_path(out))
    }
}
