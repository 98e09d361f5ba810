//! Weighted means of the tensors of several files.

use std::collections::HashMap;
use std::path::PathBuf;

use zt::diff::{DiffOptions, diff_tensors};
use zt::{DType, Dense, OwnedTensor, Result, Tensor, View, Warning};
use zt_convert::join_slices;
use zt_foreign::{ConvertOptions, Input};

use crate::arithmetic::computed::{Computed, Formula, expect_no_codes, floating};
use crate::arithmetic::fault::Fault;

/// The first input with the weighted mean of all inputs in the place of each floating-point tensor. Its
/// attributes and its other objects are kept, and so is its order. The values are computed when they are
/// read: [`zt_convert::Kinds::convert`] writes them.
///
/// Files of slices are one input, as [`join_slices`] gives it. `weights` has one number for each input; without any, all inputs have the same weight. All inputs must
/// have the same names and shapes. Dense floating-point tensors and planes are averaged, and may have different
/// types. Dense integers that differ, such as counters of steps, are those of the first input, and the result has the
/// warning `first-kept` for each. All other objects must be equal.
///
/// A mean is computed as f64 in the order of the inputs, and rounded once, to the dtype of the first input or
/// to [`ConvertOptions::dtype`]. For two inputs, it has the bits of this expression of torch, for f16 and
/// bf16 except where torch rounds twice, through f32:
///
/// ```text
/// ((w[0] * a.double() + w[1] * b.double()) / (w[0] + w[1])).to(a.dtype)
/// ```
///
/// ```
/// use zt::{Dense, File, Writer};
/// use zt_convert::{ConvertOptions, Input, ZT};
/// use zt_model::average;
///
/// let file = |values: &[f32]| {
///     let mut bytes = Vec::new();
///     let mut writer = Writer::new(&mut bytes)?;
///     writer.add("w", &Dense::from_slice(&[2], values)?)?;
///     writer.finish()?;
///     File::from_bytes(bytes).map(Input::from)
/// };
/// let inputs = [file(&[1.0, 2.0])?, file(&[5.0, 2.0])?];
/// let mean = average(&inputs, &[3.0, 1.0], &ConvertOptions::new(ZT))?;
/// assert_eq!(*mean.file().tensor("w")?.values::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), zt::Error>(())
/// ```
///
/// # Errors
///
/// Codes `misuse` for weights or shapes that do not fit; `not-found` for a name that only some inputs have;
/// `unsupported` for other objects that are not equal; the fault of an object. Reading the values is an error
/// of code `lossy` if one of them is infinite in the dtype of the result, unless
/// [`ConvertOptions::allow_inf`].
pub fn average(inputs: &[Input], weights: &[f64], options: &ConvertOptions<'_>) -> Result<Input> {
    let inputs = &*join_slices(inputs)?;
    let weights = match weights {
        [] => vec![1.0; inputs.len()],
        _ => weights.to_vec(),
    };
    let (count, sum) = (weights.len(), weights.iter().sum::<f64>());
    if count != inputs.len() {
        let inputs = inputs.len();
        return Err(Fault::WeightCount { count, inputs }.into());
    }
    let (Some((base, others)), true) = (inputs.split_first(), sum.is_finite() && sum != 0.0) else {
        return Err(Fault::Weights.into());
    };
    for other in others {
        let mut names = other.file().names();
        if let Some(name) = names.find(|name| base.file().get(name).is_none()) {
            let error = zt::Error::from(Fault::Surplus);
            return Err(other.blame(error.with_object(name)));
        }
    }
    for input in inputs {
        expect_no_codes(input, |_| true)?;
    }
    let (mut means, mut kept) = (HashMap::new(), Vec::new());
    for name in base.file().names() {
        if let Some(tensors) = tensors(base, others, name, options, &mut kept)? {
            let weights = weights.clone();
            let mean = Computed::object(tensors, Mean { weights, sum }, options);
            means.insert(name, mean.map_err(|error| error.with_object(name))?);
        }
    }
    let file = base.file().replace(|name, _| means.remove(name).map(Ok))?.with_warnings(kept)?;
    let paths = inputs.iter().flat_map(Input::paths);
    let paths: Vec<PathBuf> = paths.cloned().collect();
    Ok(Input::new(file, paths))
}

/// The tensors `name` of all inputs; `None` if they are not averaged and equal.
fn tensors(
    base: &Input,
    others: &[Input],
    name: &str,
    options: &ConvertOptions<'_>,
    kept: &mut Vec<Warning>,
) -> Result<Option<Vec<OwnedTensor>>> {
    let of_base = base.file().owned_tensor(name);
    let of_base = of_base.map_err(|error| base.blame(error))?;
    let first = of_base.tensor();
    let mut is_averaged = floating(&first).is_some();
    let mut all = vec![of_base.clone()];
    for other in others {
        let fault = |fault: Fault| other.blame(zt::Error::from(fault).with_object(name));
        if other.file().get(name).is_none() {
            return Err(fault(Fault::Missing));
        }
        let tensor = other.file().owned_tensor(name);
        let tensor = tensor.map_err(|error| other.blame(error))?;
        let (expected, found) = (first.shape(), tensor.tensor().shape().to_vec());
        if expected != found {
            let expected = expected.to_vec();
            return Err(fault(Fault::Shape { expected, found }));
        }
        is_averaged &= floating(&tensor.tensor()).is_some();
        all.push(tensor);
    }
    if is_averaged {
        return Ok(Some(all));
    }
    let compare = DiffOptions::new().threads(options.write.thread_count());
    for (tensor, other) in all.iter().skip(1).zip(others) {
        if !diff_tensors(&first, &tensor.tensor(), &compare)?.is_empty() {
            if !is_counter(&first) {
                let error = zt::Error::from(Fault::Unequal).with_object(name);
                return Err(other.blame(error));
            }
            let message =
                "integers are not averaged, and the inputs differ: those of the first are kept";
            kept.push(Warning::new("first-kept", message).with_object(name));
            break;
        }
    }
    Ok(None)
}

/// Whether it has plain integers or truth values.
fn is_counter(tensor: &Tensor<'_>) -> bool {
    let dtype = tensor.value_type().and_then(|name| DType::from_name(&name));
    tensor.format() == Dense::FORMAT && dtype.is_some_and(|dtype| !dtype.is_float())
}

struct Mean {
    weights: Vec<f64>,
    sum: f64,
}

impl Formula for Mean {
    type Prepared = ();

    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn compute(&self, (): &(), _: u64, values: &mut [f64], others: &[Vec<f64>]) {
        let Some((first, weights)) = self.weights.split_first() else {
            return;
        };
        for value in &mut *values {
            *value *= first;
        }
        for (weight, other) in weights.iter().zip(others) {
            for (value, other) in values.iter_mut().zip(other) {
                *value += weight * other;
            }
        }
        for value in values {
            *value /= self.sum;
        }
    }
}
