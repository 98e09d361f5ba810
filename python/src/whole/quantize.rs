//! `zt.quantize`: a file with quantized values.

use std::collections::{BTreeMap, HashSet};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use zt::Tensor;
use zt_convert::Summary;
use zt_model::{LocationOptions, Quantize, QuantizedObject};

use crate::read::open::opened;
use crate::read::select::Selection;
use crate::share::error::{OrRaise, Result};
use crate::share::kinds::kinds;
use crate::share::source::path_of;
use crate::share::work::{PyProgress, Watch};
use crate::share::{remote, warning};
use crate::whole::convert::write_to;
use crate::write::options::{Stored, kind_of};

/// The result of :func:`quantize`.
#[pyclass(frozen, module = "zt")]
pub(crate) struct Quantization {
    summary: Summary,
    objects: Vec<QuantizedObject>,
    kept: Vec<String>,
}

#[pymethods]
impl Quantization {
    /// The errors of each quantized tensor, by its name: the largest absolute error, the mean of the absolute
    /// errors, and the root of their mean square over the deviation of the values. The last is ``None`` if all
    /// values are equal.
    #[getter]
    fn errors(&self) -> BTreeMap<String, (f64, f64, Option<f64>)> {
        let objects = self.objects.iter();
        let errors = |it: &QuantizedObject| (it.max_error, it.mean_error, it.error_of_std);
        objects.map(|it| (it.name.clone(), errors(it))).collect()
    }

    /// The names of the tensors that are kept as they are stored.
    #[getter]
    fn kept(&self) -> Vec<String> {
        self.kept.clone()
    }

    /// The length of the new file in bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.summary.byte_len
    }

    /// The names of tensors that were left out: ``drop_unsupported`` and ``skip_damaged`` allow it.
    #[getter]
    fn left_out(&self) -> Vec<String> {
        self.summary.left_out.clone()
    }

    /// Warnings of the source, and one for each loss.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        warning::all(py, &self.summary.warnings)
    }

    fn __repr__(&self) -> String {
        let (quantized, kept) = (self.objects.len(), self.kept.len());
        let nbytes = self.summary.byte_len;
        format!("<zt.Quantization quantized={quantized} kept={kept} nbytes={nbytes}>")
    }
}

/// Writes a file with its floating-point tensors quantized, all of it or nothing. Dense f64, f32, f16 and bf16
/// tensors of two or more dimensions become ``quantized_group``, or blocks of ggml. Every other tensor is kept.
///
/// Args:
///     source: a :class:`File`, a path, a URL, bytes or a file object.
///     target: a path, a URL, or an object with ``write``.
///     type: blocks of ggml in place of groups: ``"q8_0"``, ``"q4_0"``, ``"q4_1"``, ``"q5_0"``, ``"q5_1"`` or
///         ``"iq4_nl"``. Tensors whose rows are not whole blocks of 32 values are kept.
///     bits: bits of a quantized value, 1 to 16.
///     group_size: how many consecutive values share a scale.
///     signed: whether values are signed and have no zero-points: zero stays zero.
///     include: a pattern, or a list of patterns: only tensors whose name matches one are quantized, of any
///         number of dimensions.
///     exclude: as ``include``, for tensors to keep.
///     kind: the kind of the new file, ``"zt"`` or, with ``type``, ``"gguf"``; by default its extension decides.
///     rename, zstd, digest, chunk_digests, planes, dtype, drop_unsupported, skip_damaged, allow_inf, lossy: as for
///         :func:`convert`. ``planes`` and ``dtype`` are for the tensors that are kept.
///     overwrite: whether an existing file is replaced.
///     threads: how many threads work.
///     progress: called with the bytes since the last call. An exception from it ends the work.
///     storage_options: as for :func:`open`, for the source and the target.
///
/// Raises:
///     MisuseError: a value is not finite, code ``misuse``; the file exists, code ``overwrite``; the kind cannot
///         represent quantized tensors, code ``lossy``.
///     TensorNotFoundError: no tensor can be quantized.
///
/// >>> import io, numpy, zt, zt.numpy
/// >>> data = zt.numpy.save({"w": numpy.arange(16, dtype="f4").reshape(2, 8), "b": numpy.zeros(8)})
/// >>> sink = io.BytesIO()
/// >>> zt.quantize(data, sink, kind="zt").errors
/// {'w': (0.0, 0.0, 0.0)}
/// >>> zt.open(sink.getvalue())["w"].format
/// 'quantized_group'
#[pyfunction]
#[pyo3(signature = (
    source, target, *, r#type = None, bits = 4, group_size = 128, signed = false, include = None,
    exclude = None, kind = None, rename = None, zstd = None, digest = "default", chunk_digests = "crc32c",
    planes = false, dtype = None, drop_unsupported = false, skip_damaged = false, allow_inf = false,
    lossy = false, overwrite = false, threads = None, progress = None, storage_options = None
))]
#[expect(clippy::too_many_arguments, reason = "the keywords of Python's call")]
pub(crate) fn quantize<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    target: &Bound<'py, PyAny>,
    r#type: Option<&str>,
    bits: u32,
    group_size: u64,
    signed: bool,
    include: Option<&Bound<'py, PyAny>>,
    exclude: Option<&Bound<'py, PyAny>>,
    kind: Option<&str>,
    rename: Option<&Bound<'py, PyAny>>,
    zstd: Option<i32>,
    digest: Option<&str>,
    chunk_digests: Option<&str>,
    planes: bool,
    dtype: Option<&Bound<'py, PyAny>>,
    drop_unsupported: bool,
    skip_damaged: bool,
    allow_inf: bool,
    lossy: bool,
    overwrite: bool,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Quantization> {
    let quantize = match r#type {
        Some(name) => Quantize::blocks(name),
        None => Quantize::groups(bits, group_size, signed),
    };
    let quantize = quantize.or_raise()?;
    let names = Selection::new(include, exclude, rename)?;
    let input = opened(py, source, storage_options)?.to_input();
    let names = names.choose(py, &input)?;
    let input = Selection::new(None, None, rename)?.choose(py, &input)?;
    let names: HashSet<&str> = names.file().names().collect();
    let least = if include.is_some() { 0 } else { 2 };
    let takes =
        |tensor: &Tensor<'_>| names.contains(tensor.name()) && tensor.shape().len() >= least;
    let made = quantize.of(&input, takes).or_raise()?;
    let kinds = kinds();
    let places = LocationOptions::new().remote(remote::options(storage_options)?);
    let places = places.kinds(kinds.clone());
    let kind = kind_of(py, &kinds, kind, path_of(target)?.as_ref())?;
    let inputs = [made.input().clone()];
    let stored = Stored { zstd, digest, chunk_digests, planes, dtype };
    let options = stored.options(py, kind, &inputs)?;
    let options = options
        .drop_unsupported(drop_unsupported || lossy)
        .skip_damaged(skip_damaged)
        .allow_inf(allow_inf || lossy)
        .overwrite(overwrite);
    let watch = Watch::new(progress).threads(threads);
    let summary = write_to(py, target, &inputs, options, &places, watch)?;
    Ok(Quantization { summary, objects: made.objects(), kept: made.kept().to_vec() })
}
