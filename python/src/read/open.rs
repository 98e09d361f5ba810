//! An open file, which all its tensors and arrays share.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use zt::{Error, OwnedTensor, Span, Warning, codes};
use zt_convert::{Input, InputOptions};
use zt_model::seal::{PublicKey, Seal, Statement};
use zt_model::{Check, Location, LocationOptions, Patch};

use crate::read::file::File;
use crate::share::error::{OrRaise, Result, misuse};
use crate::share::kinds::kinds;
use crate::share::memory::{Lent, Memory, PrivateMap};
use crate::share::remote;
use crate::share::source::{Reader, has_buffer, path_of};
use crate::share::value::each;
use crate::share::warning;
use crate::share::work::Watch;

/// Opens what a user typed, bytes or a file object, and warns of what is worth knowing about the file.
pub(crate) fn open_input(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    options: &InputOptions,
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Result<Input> {
    open_with(py, source, options, None, storage_options)
}

/// As [`open_input`]; what is read is compared with the seal.
pub(crate) fn open_with(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    options: &InputOptions,
    seal: Option<Seal>,
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Result<Input> {
    let input = open_quietly(py, source, options, seal, storage_options)?;
    let warnings = py.detach(|| input.file().warnings());
    warning::tell(py, &warnings, &[])?;
    Ok(input)
}

fn open_quietly(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    options: &InputOptions,
    seal: Option<Seal>,
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Result<Input> {
    // On the calling thread: an opening is short, and waking another thread takes longer.
    if let Some(path) = path_of(source)? {
        let location = Location::new(path);
        let mut places = LocationOptions::new().kinds(kinds()).input(options);
        places.seal = seal.map(Arc::new);
        if is_local(&location) {
            return py.detach(|| location.open(&places)).or_raise();
        }
        places.remote = remote::options(storage_options)?;
        // Another thread opens it and this one watches, so Ctrl-C ends the wait for a slow store.
        return Watch::default().run(py, |progress| {
            let mut places = places;
            places.progress = Some(progress);
            location.open(&places)
        });
    }
    if seal.is_some() {
        return Err(misuse(py, "seal is for a path or a URL: a seal names files"));
    }
    let kinds = kinds();
    let input = if let Ok(bytes) = source.cast_exact::<PyBytes>() {
        let bytes = zt::Memory::new(PyBackedBytes::from(bytes.clone()));
        py.detach(|| kinds.open_source(bytes, options))
    } else if has_buffer(source) {
        let lent = Lent::new(source)?;
        py.detach(|| kinds.open_source(lent, options))
    } else if source.hasattr("read")? && source.hasattr("seek")? {
        let reader = Reader::new(source)?;
        py.detach(|| kinds.open_source(reader, options))
    } else {
        return Err(PyTypeError::new_err(format!(
            "expected a path, bytes, or an object with seek and read, not {}",
            source.get_type().name()?
        )));
    };
    input.or_raise()
}

/// The seal in a file or in bytes. It must be the one of the signature, if there is one, which is a pair of the
/// signature and the public key.
pub(crate) fn read_seal(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    signature: Option<(&Bound<'_, PyAny>, &Bound<'_, PyAny>)>,
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Result<Seal> {
    /// The most bytes of a key file.
    const KEY: u64 = 64 << 10;
    let seal = read_as(py, source, Seal::MAX_LEN, storage_options, Seal::from_bytes)?;
    if let Some((signature, key)) = signature {
        if path_of(key)?.is_some_and(|path| Location::new(path).is_url()) {
            return Err(misuse(py, "the key must be a file of this machine, or bytes"));
        }
        let key = read_as(py, key, KEY, None, PublicKey::from_bytes)?;
        let check = |bytes: &[u8]| Statement::open(bytes, &key)?.expect_seal(&seal);
        read_as(py, signature, Statement::MAX_LEN, storage_options, check)?;
    }
    Ok(seal)
}

/// What bytes are, or the bytes of a file, a URL.
fn read_as<T: Send>(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    most: u64,
    storage_options: Option<&Bound<'_, PyDict>>,
    read: impl FnOnce(&[u8]) -> zt::Result<T> + Send,
) -> Result<T> {
    let Some(path) = path_of(source)? else {
        let bytes: PyBackedBytes = source.extract()?;
        return py.detach(|| read(&bytes)).or_raise();
    };
    let location = Location::new(path);
    let mut options = LocationOptions::new();
    options.remote = remote::options(storage_options)?;
    let read = || read(&location.read(most, &options)?);
    py.detach(|| read().map_err(|error| error.with_path(location.path()))).or_raise()
}

/// The open file behind a `zt.File`, for a call that reads or writes all of it: the base of a delta is checked
/// now, if it was not before. Any other source is opened with the default options.
pub(crate) fn opened(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Result<Arc<Open>> {
    let open = unchecked(py, source, storage_options)?;
    if let Some(patch) = &open.patch
        && patch.is_checked.get().is_none()
    {
        patch.open(py, Check::Whole)?;
        let _ = patch.is_checked.set(());
    }
    Ok(open)
}

/// As [`opened`], and nothing is checked.
fn unchecked(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Result<Arc<Open>> {
    if let Ok(file) = source.cast::<File>() {
        return file.get().open();
    }
    let input = open_input(py, source, &InputOptions::new(), storage_options)?;
    Ok(Arc::new(Open::new(input, true)))
}

/// Warns that values of a file are codes of quantized weights, for a call that is about values.
pub(crate) fn warn_of_codes(py: Python<'_>, open: &Open) -> Result<()> {
    let input = open.to_input();
    // Settings that cannot be read are no matter of a call that does not use them.
    match py.detach(|| kinds().quantized(&input)) {
        Ok(found) => warning::tell(py, &found.warnings(), &[]),
        Err(_) => Ok(()),
    }
}

/// What `delta` makes of `base`, which may be a list of the first base and the deltas before. `check`: whether
/// all values are compared with the identities in the deltas.
pub(crate) fn patched(
    py: Python<'_>,
    base: &Bound<'_, PyAny>,
    delta: Input,
    check: bool,
    storage_options: Option<&Bound<'_, PyDict>>,
) -> Result<(Input, Option<Arc<Patched>>)> {
    let mut bases = each(base)?.into_iter();
    let first = bases.next();
    let first = first.ok_or_else(|| misuse(py, "`base` is an empty list"))?;
    let base = unchecked(py, &first, storage_options)?.to_input();
    let mut deltas = Vec::new();
    for earlier in bases {
        deltas.push(unchecked(py, &earlier, storage_options)?.to_input());
    }
    deltas.push(delta);
    let patch = Patched { base, deltas, is_checked: OnceLock::new() };
    let result = patch.open(py, if check { Check::Whole } else { Check::Read })?;
    Ok((result, (!check).then(|| Arc::new(patch))))
}

/// A base and its deltas.
pub(crate) struct Patched {
    base: Input,
    deltas: Vec<Input>,
    is_checked: OnceLock<()>,
}

impl Patched {
    fn open(&self, py: Python<'_>, check: Check) -> Result<Input> {
        let patch = Patch::new(&self.base, &self.deltas).check(check);
        let result = Watch::default().run(py, |progress| patch.progress(progress).open())?;
        let inputs = self.deltas.iter().chain([&self.base]);
        let told: Vec<Warning> = inputs.flat_map(|input| input.file().warnings()).collect();
        warning::tell(py, &result.file().warnings(), &told)?;
        Ok(result)
    }
}

/// Whether reading the source is quick: it is a local file, or in memory.
pub(crate) fn is_near(source: &Bound<'_, PyAny>) -> Result<bool> {
    let path = path_of(source)?;
    Ok(path.map_or_else(|| has_buffer(source), |path| is_local(&Location::new(path))))
}

/// Whether it is on a disk of this machine.
fn is_local(location: &Location) -> bool {
    !location.is_url() && !location.is_stdin()
}

/// A file of the engine, with its paths and its maps. Tensors and views of its bytes keep it open.
pub(crate) struct Open {
    file: zt::File,
    /// The first is the path by which it was opened.
    paths: Vec<PathBuf>,
    /// `None` if all arrays are copies.
    maps: Option<Mutex<Maps>>,
    /// Whether the repr of a tensor reads values.
    pub(crate) is_near: bool,
    /// What the file was made of, if its base was not checked.
    pub(crate) patch: Option<Arc<Patched>>,
}

/// A map for each file behind the source, by the address of the file. The address does not change while
/// it is open. `None` if the file cannot be mapped.
type Maps = HashMap<usize, Option<Arc<PrivateMap>>>;

impl Open {
    /// `mmap`: whether arrays may be views of a map.
    pub(crate) fn new(input: Input, mmap: bool) -> Self {
        let paths = input.paths().to_vec();
        Open {
            file: input.into_file(),
            paths,
            maps: mmap.then(Mutex::default),
            is_near: false,
            patch: None,
        }
    }

    /// The same file with the tensors of `input`, a choice of its own.
    pub(crate) fn with(&self, input: Input) -> Self {
        Open {
            is_near: self.is_near,
            patch: self.patch.clone(),
            ..Open::new(input, self.maps.is_some())
        }
    }

    pub(crate) fn file(&self) -> &zt::File {
        &self.file
    }

    /// The path by which it was opened.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.paths.first().map(PathBuf::as_path)
    }

    /// The file for a conversion, which never overwrites the paths of its inputs.
    pub(crate) fn to_input(&self) -> Input {
        Input::new(self.file.clone(), self.paths.clone())
    }

    /// The tensor of that name. The error for an unknown name suggests the closest one.
    pub(crate) fn tensor(&self, name: &str) -> zt::Result<OwnedTensor> {
        let found = self.file.owned_tensor(name);
        found.map_err(|error| {
            let error = match zt::nearest(name, self.file.names()) {
                Some(near) if error.code() == codes::NOT_FOUND => {
                    let message = format!("{}; did you mean {near:?}?", error.message());
                    Error::new(error.kind(), error.code(), message).with_object(name)
                }
                _ => error,
            };
            self.blame(error)
        })
    }

    /// `error` with the path of the file.
    pub(crate) fn blame(&self, error: zt::Error) -> zt::Error {
        match self.path() {
            Some(path) => error.with_path(path),
            None => error,
        }
    }

    /// A part of a file in a private map; `None` if there is no map, or if the file was shorter when
    /// it was mapped.
    pub(crate) fn mapped(&self, file: &fs::File, span: Span) -> Option<Memory> {
        if span.is_empty() {
            return None;
        }
        let maps = self.maps.as_ref()?.lock();
        let mut maps = maps.unwrap_or_else(PoisonError::into_inner);
        let map = maps
            .entry(std::ptr::from_ref(file).addr())
            .or_insert_with(|| PrivateMap::new(file).ok().map(Arc::new));
        Memory::of_map(map.as_ref()?, span)
    }
}
