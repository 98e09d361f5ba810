//! The path of an input becomes an open file.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use zt::foreign::Kind;
use zt::{ErrorKind, File, FloatType};
use zt_convert::{Input, Logical, MlDtype, Names};
use zt_model::seal::Seal;
use zt_model::{BASE_UNUSED, Check, LocationOptions};

use crate::args::select::SelectArgs;
use crate::failure::Failure;
use crate::files::kinds;
use crate::files::limit::explained;
use crate::files::remote::{self, RemoteArgs, location};
use crate::files::seals;
use crate::output::Output;
use crate::output::absent::Absent;
use crate::output::progress::Progress;
use crate::output::text::printable;

/// The options of every command that reads files of any kind.
#[derive(Debug, Default, Args)]
pub(crate) struct InputArgs {
    /// Text file with tensor names, one per line, for kinds that do not store names (SQUIZD, SLM1)
    // `extract` has an argument `names` of its own.
    #[arg(
        id = "name_list",
        long = "names",
        value_name = "FILE",
        display_order = 80,
        hide_short_help = true
    )]
    names: Option<PathBuf>,

    /// Read opaque elements of NumPy (V1, V2, f1) and of HDF5 as this type of ml_dtypes: bfloat16,
    /// float8_e4m3fn, int4, ...; once for each length
    #[arg(
        long = "ml-dtype",
        value_name = "TYPE",
        value_parser = ml_dtype(),
        hide_possible_values = true,
        display_order = 81,
        hide_short_help = true
    )]
    ml_dtypes: Vec<MlDtype>,

    /// The same as --ml-dtype bfloat16
    #[arg(long, hide = true)]
    v2_as_bf16: bool,

    /// Follow links that lead out of the folder, from a set to a shard or from a file to one that it
    /// names
    #[arg(long, display_order = 82, hide_short_help = true)]
    follow_links: bool,

    /// Read a delta of `zt delta` as the file that it makes of BASE; for several deltas in a row, give BASE
    /// and then the earlier deltas, each with --base
    // `delta` has an argument `base` of its own.
    #[arg(
        id = "of_base",
        long = "base",
        value_name = "BASE",
        display_order = 83,
        hide_short_help = true
    )]
    base: Vec<PathBuf>,

    /// Read a quantized checkpoint as the weights that its codes and scales mean; config.json beside it is read, too
    #[arg(hide_short_help = true, long, display_order = 84)]
    pub(crate) logical: bool,

    /// Compare what is read with this seal of `zt seal`: a wrong leaf of 1 MiB is an error
    #[arg(hide_short_help = true, long, value_name = "SEAL", display_order = 85)]
    pub(crate) seal: Option<PathBuf>,

    /// The signature of SEAL, which must be the one that was signed
    #[arg(
        hide_short_help = true,
        long,
        value_name = "SIG",
        requires = "public_key",
        display_order = 86
    )]
    pub(crate) signature: Option<PathBuf>,

    /// The public key of --signature: Ed25519 or ECDSA P-256, in PEM or OpenSSH form
    // `meta` has an argument `key` of its own.
    #[arg(
        id = "public_key",
        hide_short_help = true,
        long = "key",
        value_name = "PUB",
        requires = "signature",
        display_order = 87
    )]
    pub(crate) key: Option<PathBuf>,

    /// The seal, once it was read.
    #[arg(skip)]
    read_seal: OnceLock<Arc<Seal>>,

    /// What is checked of BASE. A command that shows no values asks for less.
    #[arg(skip)]
    pub(crate) check: Check,

    /// Whether all scales of --logical are looked at: a command that reads a part of the values does not.
    #[arg(skip)]
    pub(crate) checks_scales: bool,

    /// Whether one of the files is a delta of BASE.
    #[arg(skip)]
    is_base_used: AtomicBool,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

impl From<RemoteArgs> for InputArgs {
    fn from(remote: RemoteArgs) -> Self {
        InputArgs { remote, ..InputArgs::default() }
    }
}

/// What is done with a file whose end is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truncated {
    Refused,
    /// Its kind may be able to open what is there.
    Opened,
}

impl InputArgs {
    /// Opens the file at `path`, whatever its kind, to be read by position. It has the chosen objects
    /// only, and at least one of them. A folder stands for the index of a set in it, or for its only
    /// tensor file. A file whose end is missing opens with what is there.
    pub(crate) fn open(&self, path: &Path) -> Result<File, Failure> {
        let file = self.open_input(path, Truncated::Opened)?.into_file();
        self.expect_all_used()?;
        let some = self.select.expect_some([&file]);
        some.map_err(|failure| failure.with_path(path))?;
        Ok(file)
    }

    /// Opens files of `kind`, which is not detected if it is given. At least one file has a chosen object.
    /// Patterns and rules may be for one of the files. Weights of --logical are computed as `float`. A file whose end is missing opens with what is there.
    pub(crate) fn open_all(
        &self,
        paths: &[PathBuf],
        kind: Option<Kind>,
        float: Option<FloatType>,
    ) -> Result<Opened, Failure> {
        let logical = Logical::new().float(float).checks_scales(true);
        let open = |path| self.open_whole(path, kind, Truncated::Opened, logical);
        let all: Vec<Input> = paths.iter().map(|path| open(path)).collect::<Result<_, _>>()?;
        if self.select.is_empty() {
            self.expect_all_used()?;
            return Ok(Opened { inputs: all, excluded: Vec::new() });
        }
        // Patterns are for whole tensors. Without them, what writes or computes joins slices.
        let joined = zt_convert::join_slices(&all)?;
        let (mut inputs, mut excluded) = (Vec::new(), Vec::new());
        for (at, input) in joined.iter().enumerate() {
            // Files of slices are one input, which has the numbers of all of them.
            let is_part = |part: &Input| {
                part.path().is_some_and(|it| input.paths().iter().any(|path| path == it))
            };
            let numbers = if joined.len() == all.len() {
                vec![at + 1]
            } else {
                let parts = all.iter().enumerate().filter(|(_, part)| is_part(part));
                parts.map(|(at, _)| at + 1).collect()
            };
            let select = self.select.of_input(&numbers, all.len())?;
            let names = input.file().names().filter(|name| !select.takes(name));
            let names: Vec<String> = names.map(str::to_owned).collect();
            if !names.is_empty() {
                let input = input.path().unwrap_or(Path::new("")).to_owned();
                excluded.push(Absent { input, names });
            }
            inputs.push(choose(&select, input.clone())?);
        }
        self.select.expect_some(inputs.iter().map(Input::file))?;
        self.expect_all_used()?;
        Ok(Opened { inputs, excluded })
    }

    /// As [`InputArgs::open`], with the paths of all files that are read, and perhaps without objects.
    pub(crate) fn open_input(&self, path: &Path, truncated: Truncated) -> Result<Input, Failure> {
        let logical = Logical::new().checks_scales(self.checks_scales);
        let input = self.open_whole(path, None, truncated, logical)?;
        choose(&self.select, input)
    }

    /// The whole file at `path`, or what it makes of its base.
    fn open_whole(
        &self,
        path: &Path,
        kind: Option<Kind>,
        truncated: Truncated,
        logical: Logical,
    ) -> Result<Input, Failure> {
        self.select.expect_few()?;
        let location = location(path);
        let progress = location.is_stdin().then(Progress::of_reading);
        let report = |bytes| match &progress {
            Some(progress) => progress.report(bytes),
            None => ControlFlow::Continue(()),
        };
        let mut options = self.options()?.check(self.check);
        options.input.kind = kind;
        if self.logical {
            options.input.logical = Some(logical);
        }
        options.progress = Some(zt::Progress::new(&report));
        let opened = location.open(&options);
        // A file that does not open may be a delta.
        self.is_base_used.fetch_or(opened.is_err(), Ordering::Relaxed);
        let input = opened.map_err(|error| match error.kind() {
            ErrorKind::Misuse if location.is_stdin() => Failure::misuse(error.message()),
            // The files were opened, and do not fit together.
            _ if error.object().is_some() || matches!(error.code(), "wrong-base" | "delta") => {
                Failure::Error(error)
            }
            _ => Failure::Refused(explained(similar(path, error))),
        })?;
        if !input.file().warnings().iter().any(|it| it.code == BASE_UNUSED) {
            self.is_base_used.store(true, Ordering::Relaxed);
        }
        match input.file().truncated() {
            Some(error) if truncated == Truncated::Refused => {
                Err(Failure::Refused(input.blame(error.clone())))
            }
            _ => Ok(input),
        }
    }

    /// Once all files are open: refuses a BASE if no file is a delta, and a list of new names that has an object of
    /// no file.
    pub(crate) fn expect_all_used(&self) -> Result<(), Failure> {
        self.select.expect_names_found()?;
        if self.base.is_empty() || self.is_base_used.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Failure::misuse("--base is for a delta of `zt delta`, and no file is one"))
    }

    /// Warns of values that are codes of quantized weights, for commands that show values as they are stored.
    pub(crate) fn warn_of_codes(&self, path: &Path, file: &File, output: &Output) {
        if self.logical {
            return;
        }
        let input = Input::new(file.clone(), vec![path.to_owned()]);
        // Settings that cannot be read are no matter of a command that does not use them.
        let found = kinds::table().quantized(&input);
        output.warnings_about(path, &found.map_or_else(|_| Vec::new(), |found| found.warnings()));
    }

    /// The seal at a path, which was signed if the arguments have a signature.
    pub(crate) fn read_seal(
        &self,
        path: &Path,
        options: &LocationOptions<'_>,
    ) -> Result<Arc<Seal>, Failure> {
        let seal = seals::read(path, options)?;
        if let (Some(signature), Some(key)) = (&self.signature, &self.key) {
            let (statement, _) = seals::signed(signature, key, options)?;
            statement.expect_seal(&seal).map_err(|error| error.with_path(path))?;
        }
        Ok(seal)
    }

    /// How every input is opened.
    fn options(&self) -> Result<LocationOptions<'_>, Failure> {
        let mut options = remote::options(&self.remote);
        options.base = self.base.iter().map(|base| location(base)).collect();
        let input = &mut options.input;
        input.names = self.names.as_ref().map(Names::read).transpose()?;
        input.ml_dtypes.clone_from(&self.ml_dtypes);
        if self.v2_as_bf16 {
            input.ml_dtypes.push(MlDtype::BFLOAT16);
        }
        input.follow_links = self.follow_links;
        input.truncated = true;
        if let Some(path) = &self.seal {
            let seal = match self.read_seal.get() {
                Some(seal) => Arc::clone(seal),
                None => self.read_seal(path, &options)?,
            };
            options.seal = Some(Arc::clone(self.read_seal.get_or_init(|| seal)));
        } else if self.signature.is_some() {
            let message = "--signature is of a seal: give --seal, too. `zt verify` needs none";
            return Err(Failure::misuse(message));
        }
        Ok(options)
    }
}

/// Several open files, each with the chosen objects only.
pub(crate) struct Opened {
    pub(crate) inputs: Vec<Input>,
    /// The objects that were not chosen.
    pub(crate) excluded: Vec<Absent>,
}

/// The decoded bytes of all objects of files; `None` if the sum is too large for a number.
pub(crate) fn byte_len(inputs: &[Input]) -> Option<u64> {
    inputs.iter().map(|input| input.file().decoded_len()).try_fold(0, u64::checked_add)
}

/// The file with the chosen objects only.
fn choose(select: &SelectArgs, input: Input) -> Result<Input, Failure> {
    let chosen = select.apply(input.file().clone());
    let chosen = chosen.map_err(|failure| match input.path() {
        Some(path) => failure.with_path(path),
        None => failure,
    })?;
    Ok(input.with_file(chosen))
}

/// A file in the folder of a path whose name is like that of the path, as people read it.
pub(crate) fn nearest_file(path: &Path) -> Option<String> {
    let name = path.file_name().and_then(OsStr::to_str)?;
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let files = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten();
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    let near = zt::nearest(name, names.iter().map(String::as_str))?;
    Some(printable(&path.with_file_name(near).display().to_string()).into_owned())
}

/// The error, with the name of a file beside the missing one that is like it.
pub(crate) fn similar(path: &Path, error: zt::Error) -> zt::Error {
    let io = std::error::Error::source(&error).and_then(|it| it.downcast_ref::<io::Error>());
    let is_missing = io.is_some_and(|io| io.kind() == io::ErrorKind::NotFound) && !path.exists();
    let Some(near) = is_missing.then(|| nearest_file(path)).flatten() else {
        return error;
    };
    let message = format!("{}; did you mean \"{near}\"?", error.message());
    let similar = zt::Error::new(error.kind(), error.code(), message);
    match error.path() {
        Some(path) => similar.with_path(path),
        None => similar,
    }
}

/// Parses the name of a type of `ml_dtypes`.
fn ml_dtype() -> impl TypedValueParser<Value = MlDtype> {
    let value = |it: &MlDtype| PossibleValue::new(it.name).aliases(it.other_names());
    PossibleValuesParser::new(MlDtype::all().iter().map(value))
        .try_map(|name| MlDtype::from_name(&name).ok_or("no such type"))
}
