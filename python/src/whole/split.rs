//! `zt.split`: a file as a set of shards.

use std::fs;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use zt_convert::{SplitOptions, parse_size, set_name};
use zt_model::{Location, LocationOptions};

use crate::read::open::opened;
use crate::read::select::Selection;
use crate::share::error::{Result, misuse};
use crate::share::kinds::kinds;
use crate::share::work::{PyProgress, Watch};
use crate::share::{remote, result, warning};
use crate::whole::convert::lost;
use crate::write::options::{Stored, kind_named};

/// Writes a file as a set of shards and its index, as the Hub keeps large models; GGUF as gguf-split numbers it.
/// All files appear or none.
///
/// Args:
///     source: a :class:`File`, a path, a URL, bytes or a file object.
///     folder: a path, made if it does not exist, or the URL of a folder.
///     max_shard_size: the most bytes of values in a shard, before compression: a number, or a text such as
///         ``"5GB"`` or ``"2GiB"``. A larger tensor gets a shard of its own.
///     max_tensors: the most tensors in a shard; no limit by default.
///     name: the name of the set, as in ``model-00001-of-00003.safetensors``. By default that of the source
///         without its extension, or ``"model"``.
///     kind: the kind of the shards, ``"zt"``, ``"safetensors"`` or ``"gguf"``; by default that of the source.
///     include, exclude, rename, zstd, digest, chunk_digests, planes, dense, dtype, drop_unsupported, skip_damaged,
///         allow_inf, lossy: as for :func:`convert`.
///     overwrite: whether an existing set of the name is replaced.
///     threads: how many threads work.
///     progress: called with the bytes since the last call. An exception from it ends the work.
///     storage_options: as for :func:`open`, for the source and the folder.
///
/// Returns:
///     A :class:`Split` with the paths.
///
/// Raises:
///     MisuseError: a file exists, code ``overwrite``; otherwise as :func:`convert`.
///     UnsupportedError: the kind has no sets.
#[pyfunction]
#[pyo3(signature = (
    source, folder, *, max_shard_size = None, max_tensors = None, name = None, kind = None,
    include = None, exclude = None, rename = None, zstd = None, digest = "default",
    chunk_digests = "crc32c", planes = false, dense = false, dtype = None, drop_unsupported = false,
    skip_damaged = false, allow_inf = false, lossy = false, overwrite = false, threads = None,
    progress = None, storage_options = None
))]
#[expect(clippy::too_many_arguments, reason = "the keywords of Python's call")]
pub(crate) fn split<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    folder: PathBuf,
    max_shard_size: Option<&Bound<'py, PyAny>>,
    max_tensors: Option<u64>,
    name: Option<String>,
    kind: Option<&str>,
    include: Option<&Bound<'py, PyAny>>,
    exclude: Option<&Bound<'py, PyAny>>,
    rename: Option<&Bound<'py, PyAny>>,
    zstd: Option<i32>,
    digest: Option<&str>,
    chunk_digests: Option<&str>,
    planes: bool,
    dense: bool,
    dtype: Option<&Bound<'py, PyAny>>,
    drop_unsupported: bool,
    skip_damaged: bool,
    allow_inf: bool,
    lossy: bool,
    overwrite: bool,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Bound<'py, PyAny>> {
    let selection = Selection::new(include, exclude, rename)?;
    let inputs = vec![opened(py, source, storage_options)?.to_input()];
    let told = inputs[0].file().warnings();
    let inputs = selection.apply(py, inputs)?;
    let kinds = kinds();
    let own = inputs.first().map_or("zt", |input| input.file().kind().as_str());
    let has_sets = |name: &str| {
        let writer = kinds.get(name).and_then(|kind| kind.writer());
        writer.is_some_and(|writer| writer.set_form().is_some())
    };
    let kind = match kind {
        Some(name) => kind_named(py, &kinds, name)?,
        None if has_sets(own) => kind_named(py, &kinds, own)?,
        None => {
            let text = format!(
                "{own} files cannot be sharded: pass kind=\"zt\", \"safetensors\" or \"gguf\""
            );
            return Err(misuse(py, &text));
        }
    };
    let stored = Stored { zstd, digest, chunk_digests, planes, dtype };
    let options = stored.options(py, kind, &inputs)?;
    let options = options
        .dense(dense)
        .drop_unsupported(drop_unsupported || lossy)
        .skip_damaged(skip_damaged)
        .allow_inf(allow_inf || lossy)
        .overwrite(overwrite);
    let named = inputs.iter().find_map(|input| set_name(input.path()?, input.paths().len() > 1));
    let name = name.or(named).unwrap_or_else(|| "model".to_owned());
    let places = LocationOptions::new().remote(remote::options(storage_options)?);
    let places = places.kinds(kinds.clone());
    let limits = SplitOptions::new(options).stem(name);
    let limits = limits.max_tensors(max_tensors.unwrap_or(u64::MAX));
    let limits = match max_shard_size {
        Some(size) => limits.max_shard_size(size_of(size)?),
        None => limits,
    };
    let location = Location::new(&folder);
    let is_new = !location.is_url() && !folder.exists();
    if is_new {
        fs::create_dir_all(&folder)?;
    }
    let split = Watch::new(progress).threads(threads).run(py, |progress| {
        let mut limits = limits;
        limits.convert = limits.convert.progress(progress);
        location.split(&inputs, &limits, &places)
    });
    let split = split.inspect_err(|_| {
        // The system refuses to remove a folder with anything in it.
        let _ = is_new.then(|| fs::remove_dir(&folder));
    })?;
    warning::tell(py, &split.warnings, &told)?;
    let shards = split.shards.iter().map(|shard| {
        let fields = (path(py, &shard.path)?, shard.objects, shard.bytes, shard.byte_len);
        result::class(py, "Shard")?.call1(fields)
    });
    let shards: Vec<Bound<'py, PyAny>> = shards.collect::<Result<_>>()?;
    let removed = split.removed.iter().map(|removed| path(py, removed));
    let fields = (
        split.index.as_deref().map(|index| path(py, index)).transpose()?,
        shards,
        split.total_size,
        &split.left_out,
        &split.damaged,
        removed.collect::<Result<Vec<_>>>()?,
        warning::all(py, &split.warnings)?,
        lost(&split.casts),
    );
    result::class(py, "Split")?.call1(fields)
}

fn path<'py>(py: Python<'py>, path: &Path) -> Result<Bound<'py, PyAny>> {
    Ok(path.into_pyobject(py)?.into_any())
}

/// A number of bytes, or a text such as `5GB`.
fn size_of(size: &Bound<'_, PyAny>) -> Result<u64> {
    let text: String = size.str()?.extract()?;
    let wrong = || {
        let text = format!(
            "max_shard_size is {text:?}: pass a number of bytes above 0, or a text such as \"5GB\""
        );
        misuse(size.py(), &text)
    };
    parse_size(&text).ok_or_else(wrong)
}
