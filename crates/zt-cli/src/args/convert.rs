//! How the objects of the inputs are converted.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Command, ValueEnum};
use zt::foreign::Kind;
use zt::formats::{Decode, FloatType};
use zt::{Entry, Error, ErrorKind, File, codes};
use zt_convert::foreign::{Fault, Loss};
use zt_convert::quantized::TARGETS;
use zt_convert::{ConvertOptions, FileKind, Input, is_same_file};

use crate::args::glob;
use crate::args::input::{InputArgs, Opened};
use crate::args::write::WriteArgs;
use crate::failure::{Exit, Failure};
use crate::files::kinds;
use crate::files::remote::is_url;
use crate::output::Output;

/// The choice between objects of one name, for commands with several inputs.
#[derive(Debug, Args)]
pub(crate) struct DuplicateArgs {
    /// Which of several objects of one name to write; with `same` they must be equal
    #[arg(long, value_name = "WHICH", value_enum, default_value = "error")]
    on_duplicate: OnDuplicate,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OnDuplicate {
    Error,
    First,
    Last,
    Same,
}

impl DuplicateArgs {
    pub(crate) const fn policy(&self) -> zt_convert::OnDuplicate {
        match self.on_duplicate {
            OnDuplicate::Error => zt_convert::OnDuplicate::Error,
            OnDuplicate::First => zt_convert::OnDuplicate::First,
            OnDuplicate::Last => zt_convert::OnDuplicate::Last,
            OnDuplicate::Same => zt_convert::OnDuplicate::Same,
        }
    }
}

/// The options of every command that writes the tensors of other files.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    write: WriteArgs,
    /// Kind of the inputs; by default, their bytes decide
    #[arg(long, value_name = "KIND", value_parser = kinds(|_| true), hide_short_help = true)]
    pub(crate) from: Option<Kind>,
    /// Write every object as a dense one
    #[arg(long)]
    dense: bool,
    /// Cast floating-point values of dense objects; a value that is out of range is an error. PATTERN=TYPE casts the
    /// objects whose name in OUT matches, may be given several times, and the last one that matches counts
    #[arg(long, value_name = "TYPE", value_parser = Casts)]
    dtype: Vec<CastTo>,
    /// Write quantized weights in this dialect, without quantizing them anew: objects of `.zt` (`zt`), blocks of
    /// `gguf`, or the tensors of another one
    #[arg(long, hide_short_help = true, value_parser = TARGETS, conflicts_with = "logical")]
    pub(crate) dialect: Option<String>,
    /// Drop values that the output kind cannot represent, with a warning for each
    #[arg(long, hide_short_help = true)]
    drop_unsupported: bool,
    /// Leave out damaged objects, with a warning for each, and exit with 1; the inputs are verified
    /// first
    #[arg(long)]
    skip_damaged: bool,
    /// Let --dtype turn values that are out of range into infinite ones (448 or -448 in f8_e4m3fn), with a
    /// warning for each object
    #[arg(long, hide_short_help = true)]
    allow_inf: bool,
    /// The same as --drop-unsupported --skip-damaged --allow-inf
    #[arg(long)]
    lossy: bool,
    #[command(flatten)]
    pub(crate) input: InputArgs,
}

impl ConvertArgs {
    /// The options of the library for files of kind `target`.
    pub(crate) fn options<'p>(&self, target: Kind) -> Result<ConvertOptions<'p>, Failure> {
        let mut options = ConvertOptions::new(target);
        options.write = self.write.options_for(target)?;
        options.deduplicate = !self.write.no_dedup;
        // Blocks of GGUF are codes, too.
        options.dense = self.dense || self.input.logical;
        options.dtype = self.dtype()?;
        options.dialect.clone_from(&self.dialect);
        options.drop_unsupported = self.drop_unsupported || self.lossy;
        options.skip_damaged = self.skip_damaged || self.lossy;
        options.allow_inf = self.allow_inf || self.lossy;
        Ok(options)
    }

    /// The type without a pattern.
    fn dtype(&self) -> Result<Option<FloatType>, Failure> {
        let mut types = self.dtype.iter().filter(|cast| cast.pattern.is_none());
        let dtype = types.next().map(|cast| cast.to);
        if types.next().is_some() {
            return Err(Failure::misuse(
                "--dtype TYPE is given twice: use --dtype PATTERN=TYPE for some objects",
            ));
        }
        Ok(dtype)
    }

    /// Adds the types of single objects: those that the patterns of --dtype choose.
    ///
    /// # Errors
    ///
    /// Code `not-found` for a pattern that matches no object.
    pub(crate) fn choose_types(
        &self,
        inputs: &[Input],
        options: &mut ConvertOptions<'_>,
    ) -> Result<(), Failure> {
        let chosen = self.dtype.iter().filter_map(|cast| Some((cast.pattern.as_ref()?, cast.to)));
        glob::expect_few(chosen.clone().map(|(pattern, _)| pattern))?;
        for (pattern, to) in chosen {
            let names = inputs.iter().flat_map(|input| input.file().names());
            let names = names.filter(|name| glob::matches(pattern, name)).map(str::to_owned);
            let mut any = false;
            options.dtypes.extend(names.inspect(|_| any = true).map(|name| (name, to)));
            if !any {
                let message = format!("no object matches --dtype {pattern:?}; `zt ls` lists names");
                return Err(Error::new(ErrorKind::Misuse, codes::NOT_FOUND, message).into());
            }
        }
        Ok(())
    }

    /// Weights of --logical are computed in the type that is written, or in f32, which is cast.
    fn logical_type(&self) -> Result<Option<FloatType>, Failure> {
        let is_direct = |it: &FloatType| [FloatType::F16, FloatType::BF16].contains(it);
        match self.dtype()? {
            // Without a type for all, the weights have types of their own, and would be rounded twice.
            None if self.input.logical && !self.dtype.is_empty() => Err(Failure::misuse(
                "with --logical, --dtype PATTERN=TYPE needs --dtype TYPE for the other weights",
            )),
            Some(dtype) if self.dtype.len() == 1 => {
                Ok(Some(dtype).filter(is_direct).or(Some(FloatType::F32)))
            }
            dtype => Ok(dtype.and(Some(FloatType::F32))),
        }
    }

    /// Opens the inputs. A truncated one is refused unless damaged objects are skipped, and a hint says
    /// how many of its objects are whole.
    pub(crate) fn open_all(
        &self,
        paths: &[PathBuf],
        output: &mut Output,
    ) -> Result<Opened, Failure> {
        let opened = self.input.open_all(paths, self.from, self.logical_type()?)?;
        if self.skip_damaged || self.lossy {
            return Ok(opened);
        }
        for input in &opened.inputs {
            if let Some(error) = input.file().truncated() {
                let entries = input.file().entries();
                let whole = entries.iter().filter(|it| it.fault().is_none()).count();
                let all = entries.len();
                output.hint(format!(
                    "--skip-damaged writes the {whole} of {all} objects that are whole"
                ));
                return Err(Failure::Refused(input.blame(error.clone())));
            }
        }
        Ok(opened)
    }

    /// Whether no option changes what is written.
    pub(crate) fn keeps_contents(&self) -> bool {
        let keeps_values = !self.dense && !self.input.logical;
        let keeps_values = keeps_values && self.dtype.is_empty() && self.dialect.is_none();
        keeps_values && self.write.only_of_zt().is_none() && self.input.select.is_empty()
    }

    /// Adds a hint at the option that would help, --force only unless `is_forced`.
    pub(crate) fn hint(
        &self,
        failure: &Failure,
        inputs: &[Input],
        is_forced: bool,
        output: &mut Output,
    ) {
        let Failure::Error(error) = failure else {
            return;
        };
        let mut read = inputs.iter().flat_map(Input::paths);
        let path = error.path().unwrap_or(Path::new(""));
        match error.code() {
            "overwrite"
                if !is_forced
                    && is_replaceable(path)
                    && !read.any(|input| input == path || is_same_file(input, path)) =>
            {
                output.hint("--force replaces it");
            }
            "lossy" => self.hint_at_losses(error, output),
            "duplicate-name" => hint_at_duplicates(error, output),
            _ if !self.skip_damaged && !self.lossy => hint_at_faults(error, inputs, output),
            _ => {}
        }
    }

    fn hint_at_losses(&self, error: &Error, output: &mut Output) {
        let losses: Vec<&Loss> = match Fault::of(error) {
            Some(Fault::Lossy { loss, .. }) => vec![loss],
            Some(Fault::Losses { losses, .. }) => losses.iter().filter_map(loss_of).collect(),
            _ => return,
        };
        let has_dense_value =
            |loss: &&Loss| matches!(loss, Loss::Format { has_dense_value, .. } if *has_dense_value);
        if !self.dense && losses.iter().any(has_dense_value) {
            output.hint("--dense writes dense values");
        }
        let is_name = |loss: &&Loss| matches!(loss, Loss::LongName { .. } | Loss::Name);
        let registry = zt::registry();
        let is_float = |loss: &&Loss| match loss {
            Loss::Type { logical_type: Some(name), .. } => registry
                .logical_type(name)
                .is_some_and(|it| matches!(it.decode, Decode::F32(_) | Decode::F64(_))),
            Loss::Type { dtype, .. } => dtype.is_float(),
            _ => false,
        };
        if losses.iter().any(is_name) {
            output.hint(
                "--rename 's/OLD/NEW/' gives other names and keeps the values; --rename-from FILE takes a \
                 list of names",
            );
        }
        if self.dtype.is_empty() && losses.iter().any(is_float) {
            output.hint("--dtype f32 casts the values to a type that the output kind has");
        }
        let is_half_complex = |loss: &&Loss| {
            let Loss::Type { logical_type, .. } = loss else {
                return false;
            };
            matches!(logical_type.as_deref(), Some("complex32" | "bcomplex32"))
        };
        if losses.iter().any(is_half_complex) {
            output.hint(
                "only .zt keeps complex numbers with parts of 16 bits; --exclude NAME leaves them out",
            );
        }
        if matches!(losses[..], [Loss::Overflow(_)]) {
            output.hint("--allow-inf casts values that are out of range, too");
        } else {
            output.hint("--drop-unsupported drops what the output kind cannot represent, with a warning for each");
        }
    }
}

/// The exit code of a command that left out damaged objects. A truncated input lacks objects even if none is
/// listed.
pub(crate) fn exit_without(damaged: &[String], inputs: &[Input]) -> Exit {
    let mut files = inputs.iter().map(Input::file);
    if damaged.is_empty() && !files.any(|file| file.truncated().is_some()) {
        Exit::Ok
    } else {
        Exit::Failed
    }
}

fn hint_at_duplicates(error: &Error, output: &mut Output) {
    let fault = Fault::of(error);
    if let Some(Fault::Repeated { .. } | Fault::Taken { .. }) = fault {
        output.hint(
            "--on-duplicate first or last takes one of them, and same takes equal ones as one",
        );
    }
    if fault.is_some() {
        output.hint(
            "--exclude N:NAME leaves it out of input N, --rename N:RULE renames it there; N counts from 1",
        );
    }
}

fn loss_of(error: &Error) -> Option<&Loss> {
    match Fault::of(error) {
        Some(Fault::Lossy { loss, .. }) => Some(loss),
        _ => None,
    }
}

/// Whether the file at `path` can be replaced.
fn is_replaceable(path: &Path) -> bool {
    let there = path.symlink_metadata();
    is_url(path) || there.is_ok_and(|there| there.is_file() || there.is_symlink() && !path.is_dir())
}

/// If an object is at fault, adds a hint that --skip-damaged leaves it out. The number of such objects is known
/// only from metadata.
fn hint_at_faults(error: &Error, inputs: &[Input], output: &mut Output) {
    // --skip-damaged does not help if the file that is appended to is damaged.
    let mut read = inputs.iter().flat_map(Input::paths);
    let is_other = |path: &Path| !read.any(|input| input == path);
    if error.path().is_some_and(is_other) {
        return;
    }
    let files = inputs.iter().map(Input::file);
    let entries: Vec<Entry<'_>> = files.flat_map(File::entries).collect();
    let faulty = entries.iter().filter(|entry| entry.fault().is_some());
    let names: Vec<&str> = faulty.map(Entry::name).collect();
    // Another error may have stopped the work at this object.
    if error.object().is_some_and(|name| names.contains(&name)) {
        let (faulty, all) = (names.len(), entries.len());
        output.hint(format!(
            "{faulty} of {all} objects cannot be read: --skip-damaged leaves them out, with a warning for each"
        ));
    } else if let (Some(_), ErrorKind::Malformed | ErrorKind::DigestMismatch) =
        (error.object(), error.kind())
    {
        output
            .hint("--skip-damaged leaves out objects that cannot be read, with a warning for each");
    }
}

/// Parses the name of a kind that is `wanted`.
pub(crate) fn kinds(wanted: fn(&dyn FileKind) -> bool) -> impl TypedValueParser<Value = Kind> {
    let kinds = kinds::table();
    let names = kinds.iter().filter(|kind| wanted(*kind));
    let names: Vec<&str> = names.map(|kind| kind.kind().as_str()).collect();
    PossibleValuesParser::new(names)
        .try_map(move |name| kinds.get(&name).map(FileKind::kind).ok_or("no such kind"))
}

/// The type that some objects are cast to, or all.
#[derive(Debug, Clone)]
struct CastTo {
    pattern: Option<String>,
    to: FloatType,
}

/// Parses `TYPE` and `PATTERN=TYPE`.
#[derive(Debug, Clone)]
struct Casts;

impl Casts {
    fn types() -> [PossibleValue; FloatType::ALL.len()] {
        FloatType::ALL.map(|of| PossibleValue::new(of.as_str()).aliases(of.other_names()))
    }
}

impl TypedValueParser for Casts {
    type Value = CastTo;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<CastTo, clap::Error> {
        let text = value.to_string_lossy();
        // A pattern may have an equals sign, and a type has none.
        let (pattern, name) = match text.rsplit_once('=') {
            Some((pattern, name)) => (Some(pattern), name),
            None => (None, &*text),
        };
        let pattern = pattern.map(|pattern| {
            let parser =
                TypedValueParser::try_map(StringValueParser::new(), |it| glob::pattern(&it));
            parser.parse_ref(command, arg, OsStr::new(pattern))
        });
        if let Some(to) = FloatType::from_typed(name) {
            return Ok(CastTo { pattern: pattern.transpose()?, to });
        }
        // For the error, which names the types.
        let types = PossibleValuesParser::new(Self::types());
        let types = types.try_map(|name| FloatType::from_typed(&name).ok_or("no such type"));
        let to = types.parse_ref(command, arg, OsStr::new(name))?;
        Ok(CastTo { pattern: pattern.transpose()?, to })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Self::types().into_iter()))
    }
}
