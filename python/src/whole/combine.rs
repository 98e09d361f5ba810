//! Files whose values are computed when they are read: means, and LoRA adapters that are merged.

use std::path::PathBuf;

use pyo3::prelude::*;
use zt::FloatType;
use zt::Warning;
use zt_convert::{ConvertOptions, Input, ZT};
use zt_model::Lora;

use crate::read::file::File;
use crate::read::open::{Open, opened};
use crate::share::error::{OrRaise, Result};
use crate::share::kinds::kinds;
use crate::share::warning;
use crate::write::options::float_type;

/// The weighted mean of open files: see `zt.average`.
#[pyfunction]
pub(crate) fn _average(
    py: Python<'_>,
    files: Vec<Bound<'_, File>>,
    weights: Vec<f64>,
    dtype: Option<&str>,
    allow_inf: bool,
) -> Result<File> {
    let inputs: Vec<Input> =
        files.iter().map(|file| Ok(opened(py, file, None)?.to_input())).collect::<Result<_>>()?;
    let options = options(dtype.map(|name| float_type(py, name)).transpose()?, allow_inf);
    let mean = py.detach(|| zt_model::average(&inputs, &weights, &options)).or_raise()?;
    computed(py, mean, &inputs)
}

/// An open file with a LoRA adapter added to its weights: see `zt.merge`.
#[pyfunction]
pub(crate) fn _lora(
    py: Python<'_>,
    base: &Bound<'_, File>,
    adapter: PathBuf,
    scale: Option<f64>,
    dtype: Option<&str>,
    allow_inf: bool,
) -> Result<File> {
    let base = opened(py, base, None)?.to_input();
    let options = options(dtype.map(|name| float_type(py, name)).transpose()?, allow_inf);
    let merge = || Lora::open(adapter, &kinds())?.scale(scale).merge(&base, &options);
    let merged = py.detach(merge).or_raise()?;
    computed(py, merged, &[base])
}

fn options(dtype: Option<FloatType>, allow_inf: bool) -> ConvertOptions<'static> {
    ConvertOptions::new(ZT).dtype(dtype).allow_inf(allow_inf)
}

/// The file, with a warning for whatever is not a warning of its inputs.
fn computed(py: Python<'_>, made: Input, inputs: &[Input]) -> Result<File> {
    let told: Vec<Warning> = inputs.iter().flat_map(|input| input.file().warnings()).collect();
    warning::tell(py, &made.file().warnings(), &told)?;
    Ok(File::new(Open::new(made, false)))
}
