//! `zt extract`: write objects as `.npy` files of NumPy.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use zt::foreign::AtomicFile;
use zt::foreign::ReadAhead;
use zt::formats::Slice;
use zt::{DType, Elements, Error, ErrorKind, File};
use zt_convert::{Input, is_same_file};

use crate::args::complete;
use crate::args::hints;
use crate::args::input::{InputArgs, Truncated};
use crate::failure::{Exit, Failure};
use crate::files::folder::Folder;
use crate::files::name::file_name;
use crate::files::npy::{Npy, Value, write_npy};
use crate::files::path::is_stdout;
use crate::files::remote::expect_local;
use crate::files::stdout::{expect_free, to_stdout};
use crate::output::Output;
use crate::output::json::{ErrorBody, object, path_text};
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text::{printable, shape};

/// Extract objects to .npy files
///
/// Sparse and quantized objects are written as their dense values. NumPy has no bf16 and no FP8:
/// they are written as f32, which holds each value exactly. In a folder, a file is named after its
/// object, and characters that are unsafe in a file name are percent-encoded.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of any kind, or the index or the folder of a sharded set; `-` is stdin
    pub(crate) file: PathBuf,
    /// Names of objects, all by default; and last DIR or OUT.npy, unless -o names it
    #[arg(value_name = "NAME", add = complete::names())]
    names: Vec<String>,
    /// The folder for the files, made if it does not exist; for one object also a path that ends in
    /// .npy, or `-` for stdout
    #[arg(short, long, alias = "out", value_name = "DIR|OUT.npy")]
    output: Option<PathBuf>,
    /// Part of each object, as NumPy slices: `0:4,:`, `-1`, `::2,...`
    #[arg(long, value_name = "SLICE", allow_hyphen_values = true)]
    slice: Option<String>,
    /// Replace files that exist; the input is never replaced
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt extract model.zt embed.weight -o embed.npy
  zt extract model.safetensors weights/
  zt extract model.zt embed.weight --slice 0:100 -o head.npy
  zt extract model.zt embed.weight -o - | ssh host 'cat > embed.npy'";

impl Arguments {
    fn out(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new(""))
    }
}

/// The output, where no option names it: the last argument, unless it is meant as a name.
fn last(names: &mut Vec<String>, file: &File, output: &mut Output) -> Result<PathBuf, Failure> {
    let last = names.pop().ok_or_else(|| Failure::misuse("expected DIR or OUT.npy"))?;
    let near = zt::nearest(&last, file.names());
    if near == Some(&last) || near.is_some() && !Path::new(&last).exists() {
        hints::hint_at_nearest(&last, near.filter(|near| *near != last).into_iter(), output);
        let last = printable(&last);
        return Err(Failure::misuse(format!(
            "\"{last}\" looks like an object, and no output is given: use -o DIR"
        )));
    }
    Ok(last.into())
}

/// A written file.
#[derive(Serialize)]
struct Extracted {
    name: String,
    path: String,
    /// NumPy's dtype.
    descr: String,
    shape: Vec<u64>,
    nbytes: u64,
    /// The type of the values, if NumPy does not have it.
    converted_from: Option<String>,
}

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let source = arguments.input.open_input(&arguments.file, Truncated::Opened);
    let source = source.inspect_err(|_| {
        let name = arguments.names.first().map_or("", String::as_str);
        hints::hint_at_order(&arguments.file, name, output);
    })?;
    arguments.input.expect_all_used()?;
    if arguments.output.is_none() {
        arguments.output = Some(last(&mut arguments.names, source.file(), output)?);
    }
    let arguments = &*arguments;
    expect_local(arguments.out(), "objects cannot be extracted to a store")?;
    arguments.input.select.expect_some([source.file()])?;
    output.truncated(&arguments.file, source.file());
    let slices = arguments.slice.as_deref().map(Slice::parse_list);
    let slices = slices.transpose().map_err(Error::from)?;
    let wanted = wanted(arguments, source.file(), output)?;
    if is_stdout(arguments.out()) {
        return print(&wanted, arguments, &source, slices.as_deref(), output);
    }
    let plan = plan(wanted, arguments, &source)?;
    if arguments.names.is_empty() {
        source.file().check_overlap()?;
    }
    let _folder = if plan.iter().any(|(_, path)| path == arguments.out()) {
        Folder::none()
    } else {
        Folder::at(arguments.out())?
    };
    let job = Job { source: &source, slices, progress: Progress::new(total(&source, &plan)) };
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    let file = source.file();
    // All objects are wanted, and some of them may not be listed.
    let is_cut = arguments.names.is_empty() && file.truncated().is_some();
    let mut exit = if is_cut { Exit::Failed } else { Exit::Ok };
    let tensors = plan.iter().filter_map(|(name, _)| file.tensor(name).ok());
    // Of a slice, only some rows are read.
    let mut ahead = ReadAhead::new(tensors.filter(|_| job.slices.is_none()));
    for (name, path) in plan {
        ahead.advance();
        let written = match job.extract(&name, &path) {
            Ok(extracted) => vec![extracted],
            // The other objects would fail too, or the user has stopped the work.
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Interrupted) => {
                return Err(error.into());
            }
            Err(error) => {
                let error = source.blame(error);
                output.error(&error);
                errors.push(ErrorBody::from(&error));
                exit = exit.max(Failure::Error(error).exit());
                job.components(&name, &path, arguments.force)?
            }
        };
        for extracted in written {
            if !output.json {
                output.report(&extracted.line())?;
            }
            all.push(extracted);
        }
    }
    drop(job);
    if output.json {
        output.document(&object! { file: path_text(&arguments.file), extracted: all, errors })?;
    }
    Ok(exit)
}

/// Writes one object to stdout.
fn print(
    names: &[&str],
    arguments: &Arguments,
    source: &Input,
    slices: Option<&[Slice]>,
    output: &Output,
) -> Result<Exit, Failure> {
    let [name] = *names else {
        let count = names.len();
        return Err(Failure::misuse(format!(
            "stdout takes one .npy file, not {count}: name one object, or give a folder"
        )));
    };
    expect_free(output, arguments.force)?;
    let file = source.file();
    let tensor = file.tensor(name)?;
    let written = to_stdout(|stdout| {
        let value = Value::of(&tensor, slices, file.registry())?;
        write_npy(&value, None, || Ok(stdout), |_| Ok(())).map(drop)
    });
    written.map_err(|failure| failure.with_path(&arguments.file))?;
    Ok(Exit::Ok)
}

/// The names of the objects to write, each once.
fn wanted<'a>(
    arguments: &'a Arguments,
    file: &'a File,
    output: &mut Output,
) -> Result<Vec<&'a str>, Failure> {
    if arguments.names.is_empty() {
        return Ok(file.entries().iter().map(zt::Entry::name).collect());
    }
    let mut names: Vec<&str> = arguments.names.iter().map(String::as_str).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    for name in &names {
        // An unknown name is an error now. A damaged object is reported later, in its turn.
        if file.get(name).is_none() {
            let found = file.tensor(name);
            hints::hinted(found, &arguments.file, file, Some("--include"), output)?;
        }
    }
    Ok(names)
}

/// The file of each object. Nothing is written unless every path is free.
fn plan(
    names: Vec<&str>,
    arguments: &Arguments,
    source: &Input,
) -> Result<Vec<(String, PathBuf)>, Failure> {
    let out = arguments.out();
    let is_file = out.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
    let plan: Vec<(String, PathBuf)> = if is_file && !out.is_dir() {
        let [name] = names[..] else {
            let count = names.len();
            return Err(Failure::misuse(format!(
                "{count} objects do not fit in one .npy file: name one object, or give a folder"
            )));
        };
        vec![(name.to_owned(), out.to_owned())]
    } else {
        let mut plan = Vec::with_capacity(names.len());
        let mut taken: HashMap<String, &str> = HashMap::new();
        for name in names {
            let file_name = format!("{}.npy", file_name(name));
            // The encoding gives different file names, but some file systems ignore case.
            let key = if cfg!(any(windows, target_os = "macos")) {
                file_name.to_lowercase()
            } else {
                file_name.clone()
            };
            if let Some(other) = taken.insert(key, name) {
                let (name, other) = (printable(name), printable(other));
                return Err(Failure::misuse(format!(
                    "{name} and {other} would be written to the same file"
                )));
            }
            plan.push((name.to_owned(), out.join(file_name)));
        }
        plan
    };
    for (_, path) in &plan {
        check_target(path, source, arguments.force)?;
    }
    Ok(plan)
}

fn check_target(path: &Path, source: &Input, force: bool) -> Result<(), Failure> {
    if source.paths().iter().any(|input| is_same_file(input, path)) {
        return Err(Failure::overwrite(path, "is also the input: choose another output"));
    }
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        // A link may point out of the folder.
        Ok(metadata) if metadata.is_symlink() => {
            Err(Failure::overwrite(path, "is a symbolic link, which is not followed"))
        }
        Ok(metadata) if metadata.is_file() && !force => {
            Err(Failure::overwrite(path, "exists; --force replaces it"))
        }
        Ok(metadata) if metadata.is_file() => Ok(()),
        // Opening a pipe could block.
        Ok(_) => Err(Failure::overwrite(path, "is not a file that can be replaced")),
    }
}

fn total(source: &Input, plan: &[(String, PathBuf)]) -> Option<u64> {
    let tensors = plan.iter().filter_map(|(name, _)| source.file().tensor(name).ok());
    let components =
        tensors.flat_map(|tensor| tensor.components().map(|(_, c)| c.blob.decoded_len));
    components.flatten().try_fold(0, u64::checked_add)
}

struct Job<'a> {
    source: &'a Input,
    slices: Option<Vec<Slice>>,
    progress: Progress,
}

impl Job<'_> {
    fn extract(&self, name: &str, path: &Path) -> zt::Result<Extracted> {
        let file = self.source.file();
        let tensor = file.tensor(name)?;
        let open = || AtomicFile::create(path);
        let advance = |byte_len| self.progress.advance(byte_len);
        let value = Value::of(&tensor, self.slices.as_deref(), file.registry())?;
        let npy = write_npy(&value, Some(path), open, advance)?;
        Extracted::publish(npy, name, path, value.shape)
    }

    /// Writes each component of an object that breaks a rule of its format as an array of one
    /// dimension: `NAME.ROLE.npy`.
    fn components(&self, name: &str, path: &Path, force: bool) -> Result<Vec<Extracted>, Failure> {
        let tensor = match self.source.file().tensor(name) {
            Ok(tensor) if tensor.fault().is_some() => tensor,
            _ => return Ok(Vec::new()),
        };
        let mut written = Vec::new();
        for (role, component) in tensor.components() {
            let path = path.with_extension(format!("{}.npy", file_name(role)));
            check_target(&path, self.source, force)?;
            let dtype = component.dtype.unwrap_or(DType::U8);
            let bytes = tensor.bytes(role)?;
            let count = bytes.len().checked_div(dtype.byte_len()).unwrap_or(0) as u64;
            let like = Elements::new(dtype, bytes);
            let registry = self.source.file().registry();
            let open = || AtomicFile::create(&path);
            let mut npy = Npy::begin(&like, &[count], registry, Some(&path), open)?;
            npy.write(&like, registry)?;
            written.push(Extracted::publish(npy, name, &path, vec![count])?);
        }
        Ok(written)
    }
}

impl Extracted {
    /// Gives the file its name.
    fn publish(npy: Npy<AtomicFile>, name: &str, path: &Path, shape: Vec<u64>) -> zt::Result<Self> {
        npy.out.publish_unsynced()?;
        Ok(Extracted {
            name: name.to_owned(),
            path: path_text(path),
            descr: npy.descr,
            shape,
            nbytes: npy.byte_len,
            converted_from: npy.converted_from,
        })
    }

    fn line(&self) -> String {
        let from = match &self.converted_from {
            Some(from) => format!(" (from {from})"),
            None => String::new(),
        };
        let (path, size) = (printable(&self.path), human(self.nbytes));
        let shape = shape(&self.shape);
        format!("{path}: {}{from} {shape}, {size}", self.descr)
    }
}
