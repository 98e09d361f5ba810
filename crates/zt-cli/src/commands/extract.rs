//! `zt extract`: write objects as `.npy` files of NumPy.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use zt::foreign::AtomicFile;
use zt::formats::Slice;
use zt::{DType, Dense, Elements, Error, ErrorKind, Registry, Tensor};
use zt_convert::{Input, is_same_file};

use crate::args::input::InputArgs;
use crate::failure::{Exit, Failure};
use crate::files::folder::Folder;
use crate::files::name::file_name;
use crate::output::Output;
use crate::output::json::{ErrorBody, path_text};
use crate::output::size::human;
use crate::output::text::{printable, shape};
use crate::progress::Progress;

/// Extract objects to .npy files
///
/// Sparse and quantized objects are written as their dense values. NumPy has no bf16 and no FP8:
/// they are written as f32, which holds each value exactly. In a folder, a file is named after its
/// object, and characters that are unsafe in a file name are percent-encoded.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of any kind, or the index or the folder of a sharded set; `-` is stdin
    pub(super) file: PathBuf,
    /// Names of objects; all by default
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The folder for the files, made if it does not exist; for one object also a path that ends in .npy
    #[arg(short, long, value_name = "DIR|OUT.npy")]
    output: PathBuf,
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
  zt extract model.safetensors -o weights/
  zt extract model.zt embed.weight --slice 0:100 -o head.npy";

#[derive(Serialize)]
struct Document {
    file: String,
    extracted: Vec<Extracted>,
    /// Objects that were not written.
    errors: Vec<ErrorBody>,
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

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let source = arguments.input.open_input(&arguments.file, None)?;
    arguments.input.select.expect_some([source.file()])?;
    let slices = arguments
        .slice
        .as_deref()
        .map(Slice::parse_list)
        .transpose();
    let slices = slices.map_err(Error::from)?;
    let plan = plan(arguments, &source)?;
    if arguments.names.is_empty() {
        source.file().check_overlap()?;
    }
    let _folder = if plan.iter().any(|(_, path)| *path == arguments.output) {
        Folder::none()
    } else {
        Folder::at(&arguments.output)?
    };
    let job = Job {
        source: &source,
        slices,
        progress: Progress::new(Some(total(&source, &plan))),
    };
    let mut document = Document {
        file: path_text(&arguments.file),
        extracted: Vec::new(),
        errors: Vec::new(),
    };
    let mut exit = Exit::Ok;
    for (name, path) in plan {
        let error = match job.extract(&name, &path) {
            Ok(extracted) => {
                if !output.json {
                    output.report(&extracted.line())?;
                }
                document.extracted.push(extracted);
                continue;
            }
            // The other objects would fail too, or the user has stopped the work.
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Interrupted) => {
                return Err(error.into());
            }
            Err(error) => source.blame(error),
        };
        output.error(&error);
        document.errors.push(ErrorBody::from(&error));
        exit = exit.max(Failure::Error(error).exit());
        for extracted in job.components(&name, &path, arguments.force)? {
            if !output.json {
                output.report(&extracted.line())?;
            }
            document.extracted.push(extracted);
        }
    }
    drop(job);
    if output.json {
        output.document(&document)?;
    }
    Ok(exit)
}

/// The file of each object. Nothing is written unless every path is free.
fn plan(arguments: &Arguments, source: &Input) -> Result<Vec<(String, PathBuf)>, Failure> {
    let file = source.file();
    let mut names: Vec<&str> = arguments.names.iter().map(String::as_str).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    for name in &names {
        // An unknown name is an error now. A damaged object is reported later, in its turn.
        if file.get(name).is_none() {
            file.tensor(name)?;
        }
    }
    if names.is_empty() {
        names = file.entries().iter().map(zt::Entry::name).collect();
    }
    let out = &arguments.output;
    let is_file = out
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
    let plan: Vec<(String, PathBuf)> = if is_file && !out.is_dir() {
        let [name] = names[..] else {
            let count = names.len();
            return Err(Failure::misuse(format!(
                "{count} objects do not fit in one .npy file: name one object, or give a folder"
            )));
        };
        vec![(name.to_owned(), out.clone())]
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
        return Err(Failure::overwrite(
            path,
            "is the input, which is never overwritten",
        ));
    }
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        // A link may point out of the folder.
        Ok(metadata) if metadata.is_symlink() => Err(Failure::overwrite(
            path,
            "is a symbolic link, which is not followed",
        )),
        Ok(metadata) if metadata.is_file() && !force => {
            Err(Failure::overwrite(path, "exists; --force replaces it"))
        }
        Ok(metadata) if metadata.is_file() => Ok(()),
        // Opening a pipe could block.
        Ok(_) => Err(Failure::overwrite(
            path,
            "is not a file that can be replaced",
        )),
    }
}

fn total(source: &Input, plan: &[(String, PathBuf)]) -> u64 {
    let tensors = plan
        .iter()
        .filter_map(|(name, _)| source.file().tensor(name).ok());
    let components =
        tensors.flat_map(|tensor| tensor.components().map(|(_, c)| c.blob.decoded_len));
    components.flatten().fold(0, u64::saturating_add)
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
        if let Some((dtype, logical_type)) = self.streamable(&tensor) {
            let mut npy = NpyFile::create(path, name, tensor.shape(), dtype, logical_type)?;
            let mut reader = tensor.reader("data")?;
            let mut piece = vec![0; 1 << 20];
            loop {
                let len = reader.read(&mut piece)?;
                if len == 0 {
                    return npy.publish();
                }
                let mut elements = Elements::new(dtype, piece.get(..len).unwrap_or_default());
                elements.logical_type = logical_type.map(|name| name.to_owned().into());
                npy.write(&elements, file.registry())?;
                self.progress.advance(len as u64)?;
            }
        }
        let dense = self.value(&tensor)?;
        let elements = dense.elements();
        let logical_type = elements.logical_type();
        let mut npy = NpyFile::create(path, name, dense.shape(), elements.dtype, logical_type)?;
        // NumPy would not reject a bool that is neither 0 nor 1.
        elements
            .scalars(file.registry())
            .map_err(|error| Error::from(error).with_object(name))?;
        npy.write(elements, file.registry())?;
        self.progress.advance(elements.bytes.len() as u64)?;
        npy.publish()
    }

    /// The dtype and logical type of an object that can be copied piece by piece: a dense one, not
    /// sliced, whose values need no check.
    fn streamable<'f>(&self, tensor: &Tensor<'f>) -> Option<(DType, Option<&'f str>)> {
        if tensor.format() != "dense" || tensor.fault().is_some() || self.slices.is_some() {
            return None;
        }
        let component = tensor.component("data").ok()?;
        let dtype = component.dtype.filter(|dtype| *dtype != DType::Bool)?;
        Some((dtype, dtype.logical_type(component.logical_type.as_deref())))
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
            let mut npy = NpyFile::create(&path, name, &[count], dtype, None)?;
            npy.write(&Elements::new(dtype, bytes), self.source.file().registry())?;
            written.push(npy.publish()?);
        }
        Ok(written)
    }

    fn value(&self, tensor: &Tensor<'_>) -> zt::Result<Dense<'static>> {
        match &self.slices {
            Some(slices) => tensor.slice(slices),
            None => tensor.to_dense(),
        }
    }
}

/// An `.npy` file that is being written.
struct NpyFile {
    file: AtomicFile,
    path: PathBuf,
    done: Extracted,
}

impl NpyFile {
    /// Begins the file with its header. NumPy has no bf16 and no FP8: f32 holds each such value
    /// exactly.
    fn create(
        path: &Path,
        name: &str,
        shape: &[u64],
        dtype: DType,
        logical_type: Option<&str>,
    ) -> zt::Result<Self> {
        let type_name = logical_type.unwrap_or(dtype.as_str());
        let widens = type_name == "bf16" || type_name.starts_with("f8_");
        let header = if widens {
            zt_convert::npy_header(DType::F32, None, shape)
        } else {
            zt_convert::npy_header(dtype, logical_type, shape)
        };
        let (descr, header) = header.ok_or_else(|| {
            let message = format!(
                "NumPy has no array of {} with this shape",
                printable(type_name)
            );
            Error::new(ErrorKind::Unsupported, "unsupported", message).with_object(name)
        })?;
        let done = Extracted {
            name: name.to_owned(),
            path: path_text(path),
            descr,
            shape: shape.to_vec(),
            nbytes: 0,
            converted_from: widens.then(|| type_name.to_owned()),
        };
        let mut npy = NpyFile {
            file: AtomicFile::create(path)?,
            path: path.to_owned(),
            done,
        };
        npy.write_bytes(&header)?;
        Ok(npy)
    }

    fn write(&mut self, elements: &Elements<'_>, registry: &Registry) -> zt::Result<()> {
        let widened;
        let bytes: &[u8] = if self.done.converted_from.is_some() {
            widened = elements.to_dtype(DType::F32, registry)?;
            &widened.bytes
        } else {
            &elements.bytes
        };
        self.done.nbytes = self.done.nbytes.saturating_add(bytes.len() as u64);
        self.write_bytes(bytes)
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> zt::Result<()> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| Error::from(error).with_path(&self.path))
    }

    fn publish(self) -> zt::Result<Extracted> {
        self.file.publish_unsynced()?;
        Ok(self.done)
    }
}

impl Extracted {
    fn line(&self) -> String {
        let from = match &self.converted_from {
            Some(from) => format!(" (from {from})"),
            None => String::new(),
        };
        let (path, shape, size) = (
            printable(&self.path),
            shape(&self.shape),
            human(self.nbytes),
        );
        format!("{path}: {}{from} {shape}, {size}", self.descr)
    }
}
