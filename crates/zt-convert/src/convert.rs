//! From any files to one of another kind, or of the same, stored in another way.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use zt::{AtomicFile, DType, Error, Kind, Progress, Result, Warning, WriteOptions};

use crate::Input;
use crate::fault::{Fault, LOSSY, Loss};
use crate::member::{self, member};
use crate::merge::Merged;
use crate::output;
use crate::overflow::Overflow;

/// How files are converted.
#[derive(Clone)]
#[non_exhaustive]
pub struct ConvertOptions<'p> {
    /// The kind of file to write.
    pub target: Kind,
    /// How `.zt` is written: compression, digests, alignment, threads. Other kinds have no say in
    /// these.
    pub write: WriteOptions,
    /// Whether sparse, quantized and other objects are written as their dense values. Each such
    /// value is made in memory.
    pub dense: bool,
    /// What floating-point values of dense objects, FP8 among them, are cast to: f64, f32, f16 or
    /// bf16, rounded once, to nearest, ties to even. Values of other types stay as they are. Finite
    /// ones that become infinite are a loss.
    pub dtype: Option<DType>,
    /// Whether what the target cannot say is a warning instead of an error. An object is written
    /// as far as the target can say it: its dense value instead of its layout, its storage type
    /// instead of its logical type; only one of which nothing can be said is left out. So is one
    /// that is at fault in its input: to know which are, inputs are verified first. Of what an input
    /// has twice, the first, or the one that an index lists, is taken.
    pub lossy: bool,
    /// Whether components of the same bytes are stored once in a `.zt` file: tied weights, whatever
    /// their names, dtypes and inputs. Copies are looked for from 4 KiB on, and compared byte for
    /// byte. On by default.
    pub deduplicate: bool,
    /// Told of bytes of values as they are written.
    pub progress: Option<Progress<'p>>,
}

impl ConvertOptions<'_> {
    /// To `target`, with nothing changed and nothing lost.
    #[must_use]
    pub fn new(target: Kind) -> Self {
        ConvertOptions {
            target,
            write: WriteOptions::new(),
            dense: false,
            dtype: None,
            lossy: false,
            deduplicate: true,
            progress: None,
        }
    }

    /// A loss is an error, unless it is allowed: then a warning.
    pub(crate) fn accept(
        &self,
        loss: Loss,
        object: Option<&str>,
        summary: &mut Summary,
    ) -> Result<()> {
        self.forgive(Fault::Lossy(loss), object, summary)
    }

    /// What a cast has made of an object's values: known once they are written, which is early enough
    /// for an output that is only used whole.
    pub(crate) fn accept_overflow(
        &self,
        overflow: Option<Overflow>,
        object: &str,
        summary: &mut Summary,
    ) -> Result<()> {
        let mut found = overflow.into_iter();
        found.try_for_each(|found| self.accept(Loss::Overflow(found), Some(object), summary))
    }

    /// A fault that is forgiven where losses are.
    pub(crate) fn forgive(
        &self,
        fault: Fault,
        object: Option<&str>,
        summary: &mut Summary,
    ) -> Result<()> {
        if !self.lossy {
            return Err(object
                .into_iter()
                .fold(Error::from(fault), Error::with_object));
        }
        summary.warnings.push(Warning {
            object: object.map(str::to_owned),
            component: None,
            code: LOSSY,
            message: fault.to_string(),
        });
        Ok(())
    }

    /// An object of an input that is at fault: its error, unless losses are allowed.
    pub(crate) fn leave_out(&self, fault: Error, name: &str, summary: &mut Summary) -> Result<()> {
        if !self.lossy {
            return Err(fault.with_object(name));
        }
        summary.left_out.push(name.to_owned());
        summary.warnings.push(Warning {
            object: Some(name.to_owned()),
            component: fault.component().map(str::to_owned),
            code: LOSSY,
            message: format!("left out, {}: {}", fault.code(), fault.message()),
        });
        Ok(())
    }
}

impl std::fmt::Debug for ConvertOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("ConvertOptions");
        debug
            .field("target", &self.target)
            .field("write", &self.write);
        debug
            .field("dense", &self.dense)
            .field("dtype", &self.dtype);
        debug
            .field("lossy", &self.lossy)
            .field("deduplicate", &self.deduplicate)
            .finish_non_exhaustive()
    }
}

/// What a conversion has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Objects that were written.
    pub objects: u64,
    /// Bytes of their values, before compression.
    pub bytes: u64,
    /// How many of these share the blob of others, and were not written again.
    pub shared: u64,
    /// Bytes of the output.
    pub byte_len: u64,
    /// Names of objects of which nothing was written, where losses are allowed. Each is in a
    /// warning, too.
    pub left_out: Vec<String>,
    /// What the inputs warn of, each with its code; what was lost, where that was allowed, code
    /// `lossy`; and that a kind is written as an experiment, code `experimental`.
    pub warnings: Vec<Warning>,
}

/// Writes the objects of all `inputs`, in their order and that of their data, as one file of the
/// kind `options.target` to `sink`.
///
/// Attributes are kept; unknown fields too, where the target has room for them. The same inputs
/// and options give the same bytes, with any number of threads. Values are streamed: memory does
/// not grow with their size, except for [`ConvertOptions::dense`], for the indices of a sparse object,
/// which are checked first, and for the zstd of old files that does not say its length. After an
/// error the sink holds an unfinished file.
///
/// ```
/// use zt_convert::{ConvertOptions, Input, ZT, convert};
///
/// let mut bytes = Vec::new();
/// let mut writer = zt::Writer::new(&mut bytes)?;
/// writer.add("weight", &zt::Dense::from_slice(&[2], &[1.0f32, 2.0])?)?;
/// writer.finish()?;
/// let input = Input::from(zt::File::from_bytes(bytes)?);
///
/// let mut options = ConvertOptions::new(ZT);
/// options.dtype = Some(zt::DType::BF16);
/// let mut halved = Vec::new();
/// let summary = convert(&[input], &mut halved, &options)?;
/// assert_eq!((summary.objects, summary.bytes), (1, 4));
/// # Ok::<(), zt::Error>(())
/// ```
///
/// # Errors
///
/// The fault of any object of an input, unless losses are allowed: none is dropped silently. Code
/// `overlap` for an input whose blobs overlap beyond [`zt::Limits::overlap`]; `duplicate-name` for
/// two objects of one name; `lossy`, with the object's name, for what the target cannot say, and for
/// two different values of one attribute, also within an input, or a tensor that is in two shards of
/// a set; `unsupported` for a target that is not written,
/// and for an object without a dense value where that was asked for; [`zt::ErrorKind::Io`] where
/// the sink fails;
/// [`zt::ErrorKind::Interrupted`].
pub fn convert(
    inputs: &[Input],
    sink: impl Write + Send,
    options: &ConvertOptions<'_>,
) -> Result<Summary> {
    let target = Target::of(options)?;
    let mut summary = Summary::default();
    let merged = Merged::new(inputs, options, &mut summary)?;
    target.write(merged, sink, options, &mut summary)?;
    Ok(summary)
}

/// The kind to be written.
pub(crate) struct Target {
    /// That of its files.
    pub(crate) extension: &'static str,
    write: member::Write,
}

impl Target {
    /// # Errors
    ///
    /// Options that cannot be obeyed.
    pub(crate) fn of(options: &ConvertOptions<'_>) -> Result<Self> {
        let kind = options.target;
        let member = member(kind.as_str()).ok_or(Fault::NoSuchMember { kind })?;
        let write = member.write.ok_or(Fault::NotWritable { kind })?;
        check_cast(options)?;
        Ok(Target {
            extension: member.extensions.first().copied().unwrap_or_default(),
            write,
        })
    }

    /// Writes one file of what was merged, or of a part of it.
    pub(crate) fn write(
        &self,
        merged: Merged<'_>,
        sink: impl Write + Send,
        options: &ConvertOptions<'_>,
        summary: &mut Summary,
    ) -> Result<()> {
        let mut sink = Sink::new(sink);
        (self.write)(merged, &mut sink, options, summary)?;
        sink.flush()?;
        summary.byte_len = sink.byte_len;
        Ok(())
    }
}

/// Refuses to cast to what is no floating-point type.
pub(crate) fn check_cast(options: &ConvertOptions<'_>) -> Result<()> {
    match options.dtype {
        Some(dtype) if !dtype.is_float() => Err(Fault::CastTarget { dtype }.into()),
        _ => Ok(()),
    }
}

/// As [`convert`], to a file that appears at `out` whole or not at all: a failure leaves neither
/// it nor a temporary file.
///
/// `overwrite` allows to replace a file that is there. One that is an input, or a shard of one, is
/// never replaced, also where a symbolic link or, on Unix, a hard link leads to it. A device or a
/// pipe is written to.
///
/// # Errors
///
/// Code `overwrite`; otherwise as [`convert`] and [`AtomicFile`].
pub fn convert_to_path(
    inputs: &[Input],
    out: impl AsRef<Path>,
    overwrite: bool,
    options: &ConvertOptions<'_>,
) -> Result<Summary> {
    let out = out.as_ref();
    let write = || {
        output::check(out, inputs, overwrite)?;
        // What was not there a moment ago stays, should it appear while this works.
        let is_there = fs::symlink_metadata(out).is_ok();
        let create = if overwrite || is_there {
            AtomicFile::create
        } else {
            AtomicFile::create_new
        };
        let mut file = create(out)?;
        let summary = convert(inputs, &mut file, options)?;
        file.publish()?;
        Ok(summary)
    };
    write().map_err(|error: Error| error.with_path(out))
}

/// What a target is written to: buffered, counted.
pub(crate) struct Sink<'s> {
    out: BufWriter<Box<dyn Write + Send + 's>>,
    byte_len: u64,
}

impl<'s> Sink<'s> {
    fn new(sink: impl Write + Send + 's) -> Self {
        Sink {
            out: BufWriter::with_capacity(1 << 16, Box::new(sink)),
            byte_len: 0,
        }
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.out.write(bytes)?;
        self.byte_len = self.byte_len.saturating_add(len as u64);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
