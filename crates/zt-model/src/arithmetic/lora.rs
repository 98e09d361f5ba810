//! A file with the weights of a LoRA adapter added to its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use zt::container::memory::in_memory;
use zt::formats::element_count;
use zt::{Error, Object, OwnedTensor, Result, Source};
use zt_convert::Kinds;
use zt_foreign::{ConvertOptions, Input, InputOptions};

use crate::arithmetic::computed::{Computed, Formula, all_values, expect_no_codes, floating};
use crate::arithmetic::config::Config;
use crate::arithmetic::factors::{Pair, parts};
use crate::arithmetic::fault::Fault;

/// What peft calls the file of an adapter, the preferred one first.
const MODELS: [&str; 2] = ["adapter_model.safetensors", "adapter_model.bin"];

/// An adapter of peft: the factors A and B of changes of weights.
#[derive(Debug, Clone)]
pub struct Lora {
    adapter: Input,
    config: Config,
    scale: Option<f64>,
}

impl Lora {
    /// Opens the adapter at `path`: a file of one of the `kinds`, or a folder with `adapter_model.safetensors` or
    /// `adapter_model.bin`. `adapter_config.json` beside the file is read if it exists.
    ///
    /// # Errors
    ///
    /// Code `not-found` for a folder without an adapter; `header` for an invalid configuration; as
    /// [`Kinds::open`].
    pub fn open(path: impl AsRef<Path>, kinds: &Kinds) -> Result<Self> {
        let path = path.as_ref();
        let mut file = path.to_owned();
        if path.is_dir() {
            let mut models = MODELS.map(|name| path.join(name)).into_iter();
            let missing = || Error::from(Fault::NoModel).with_path(path);
            file = models.find(|model| model.exists()).ok_or_else(missing)?;
        }
        let adapter = kinds.open(&file, InputOptions::new())?;
        let config = Config::beside(&file)?;
        Ok(Lora { config, ..Lora::from(adapter) })
    }

    /// Sets the factor of B·A. It replaces the factor of the configuration, `lora_alpha / r`, or
    /// `lora_alpha / sqrt(r)` with `use_rslora`.
    pub fn scale(self, scale: impl Into<Option<f64>>) -> Self {
        let scale = scale.into();
        Lora { scale, ..self }
    }

    /// `base` with W + scale·B·A in the place of each weight W that has factors A and B. Its attributes, its
    /// other objects and its order are kept. The values are computed when they are read:
    /// [`zt_convert::Kinds::convert`] writes them.
    ///
    /// The factors of `NAME.weight` are `base_model.model.NAME.lora_A.weight` and `.lora_B.weight`. The
    /// prefix may be missing, and the name of the adapter may stand before `.weight`. All dimensions after
    /// the first count as one, as convolutions have them. The product is transposed for
    /// `lora_embedding_A` and `lora_embedding_B`, and for all matrices if the configuration has
    /// `fan_in_fan_out`. `rank_pattern` and `alpha_pattern` are regular expressions of the ends of names, as peft
    /// has them. A tensor of a module in `modules_to_save` replaces that of the base, in the base's dtype.
    ///
    /// B·A is summed up as f64, from the first column of B to the last. The sum is multiplied by the scale,
    /// W is added, and the result is rounded once, to the dtype of W or to [`ConvertOptions::dtype`]. This is
    /// the following expression of torch, but torch chooses its own order of sums, and rounds to f16 and
    /// bf16 twice, through f32:
    ///
    /// ```text
    /// (W.double() + scale * (B.double() @ A.double())).to(W.dtype)
    /// ```
    ///
    /// The factors of one weight at a time are in memory.
    ///
    /// # Errors
    ///
    /// Before a value is read: code `not-found` for a weight that `base` lacks; `unsupported` for a tensor
    /// of the adapter that is no factor, as those of DoRA, and for a weight that is not dense and
    /// floating-point; `misuse` for shapes that do not fit, for a rank that is not the configuration's, and without a
    /// scale. Reading the values is an error of
    /// code `lossy` if one of them is infinite in the dtype of the result, unless
    /// [`ConvertOptions::allow_inf`].
    pub fn merge(&self, base: &Input, options: &ConvertOptions<'_>) -> Result<Input> {
        let blame = |error: Error| self.adapter.blame(error);
        let parts = parts(self.adapter.file(), |name| self.config.saves(name)).map_err(blame)?;
        let pairs = parts.pairs.iter().map(|(weight, pair)| (weight.as_str(), pair.a));
        let mut names = pairs.chain(parts.saved.iter().map(|(weight, saved)| (*weight, *saved)));
        let missing = |(weight, _): &(&str, _)| base.file().get(weight).is_none();
        if let Some((weight, name)) = names.find(missing) {
            let (base, more) = (weight.to_owned(), names.filter(missing).count());
            let error = Error::from(Fault::NoBase { base, more });
            return Err(blame(error.with_object(name)));
        }
        let is_changed =
            |name: &str| parts.pairs.contains_key(name) || parts.saved.contains_key(name);
        expect_no_codes(base, is_changed)?;
        let latest = Arc::new(Mutex::new(None));
        let mut sums = HashMap::new();
        for (weight, saved) in &parts.saved {
            let sum = self.saved(base, weight, saved, options)?;
            sums.insert(*weight, sum);
        }
        for (weight, pair) in &parts.pairs {
            let tensor = base.file().owned_tensor(weight);
            let tensor = tensor.map_err(|error| base.blame(error))?;
            let delta = self.delta(&tensor, pair, &latest).map_err(blame)?;
            let sum = Computed::object(vec![tensor], delta, options);
            sums.insert(weight.as_str(), sum.map_err(|error| base.blame(error))?);
        }
        let file = base.file().replace(|name, _| sums.remove(name).map(Ok))?;
        let paths = base.paths().iter().chain(self.adapter.paths());
        let paths: Vec<PathBuf> = paths.cloned().collect();
        Ok(Input::new(file, paths))
    }

    /// The values that the adapter has for a tensor of the base, in the type of that.
    fn saved(
        &self,
        base: &Input,
        weight: &str,
        saved: &str,
        options: &ConvertOptions<'_>,
    ) -> Result<(Object, Arc<dyn Source>)> {
        let tensor = base.file().owned_tensor(weight).map_err(|error| base.blame(error))?;
        let blame = |error: Error| self.adapter.blame(error.with_object(saved));
        let saved = self.adapter.file().owned_tensor(saved).map_err(blame)?;
        let (expected, found) = (tensor.tensor().shape(), saved.tensor().shape());
        if expected != found {
            let (expected, found) = (expected.to_vec(), found.to_vec());
            let base = weight.to_owned();
            return Err(blame(Fault::SavedShape { found, base, expected }.into()));
        }
        if floating(&saved.tensor()).is_none() {
            return Err(blame(Fault::NotFloating.into()));
        }
        let sum = Computed::object(vec![tensor.clone(), saved.clone()], Replaced, options);
        sum.map_err(|error| base.blame(error))
    }

    /// What is added to a weight.
    fn delta(&self, weight: &OwnedTensor, pair: &Pair<'_>, latest: &Latest) -> Result<Delta> {
        let [a, b] = [pair.a, pair.b].map(|name| self.adapter.file().owned_tensor(name));
        let (a, b) = (a?, b?);
        let weight = weight.tensor();
        for tensor in [&weight, &a.tensor(), &b.tensor()] {
            if floating(tensor).is_none() {
                let name = tensor.name().to_owned();
                let format = tensor.format().to_owned();
                return Err(Error::from(Fault::Format { name, format }).with_object(pair.a));
            }
        }
        let [of_weight, of_a, of_b] = [weight, a.tensor(), b.tensor()].map(|it| it.shape());
        // Only linear layers are stored transposed, and a convolution has more dimensions.
        let is_transposed =
            pair.is_embedding || self.config.is_transposed() && of_weight.len() == 2;
        let fits = || {
            let ([rows, columns @ ..], [rank, of_a @ ..], [of_b, rank_of_b @ ..]) =
                (of_weight, of_a, of_b)
            else {
                return None;
            };
            let fits = if is_transposed {
                of_a == [*rows] && columns == [*of_b]
            } else {
                of_b == rows && columns == of_a && !columns.is_empty()
            };
            let has_rank = *rank > 0 && element_count(rank_of_b)? == *rank;
            Some((*rank, element_count(columns)?)).filter(|_| fits && has_rank)
        };
        let (rank, columns) = fits().ok_or_else(|| {
            let fault = Fault::Factors {
                a: of_a.to_vec(),
                b: of_b.to_vec(),
                name: weight.name().to_owned(),
                shape: of_weight.to_vec(),
            };
            Error::from(fault).with_object(pair.a)
        })?;
        let module = weight.name().trim_end_matches(".weight");
        let scale = || self.config.scale(module, rank);
        let scale = self.scale.map_or_else(scale, Ok);
        let scale = scale.map_err(|error| error.with_object(pair.a))?;
        Ok(Delta {
            name: weight.name().to_owned(),
            rank: in_memory(rank),
            columns,
            a,
            b,
            is_transposed,
            scale,
            latest: Arc::clone(latest),
        })
    }
}

/// An adapter without a configuration: it needs a scale.
impl From<Input> for Lora {
    fn from(adapter: Input) -> Self {
        Lora { adapter, config: Config::default(), scale: None }
    }
}

/// The factors that were used last, and their weight. All weights share it, so that memory does not grow with
/// the adapter.
type Latest = Arc<Mutex<Option<(String, Arc<Factors>)>>>;

/// What is added to the weight `name`, seen as a matrix: left · right · scale.
struct Delta {
    name: String,
    a: OwnedTensor,
    b: OwnedTensor,
    /// Whether left is Aᵀ and right is Bᵀ, and not B and A.
    is_transposed: bool,
    rank: usize,
    /// Columns of the weight.
    columns: u64,
    scale: f64,
    latest: Latest,
}

struct Factors {
    /// A row of `rank` values for each row of the weight.
    left: Vec<f64>,
    /// `rank` rows, each with a value for each column of the weight.
    right: Vec<f64>,
}

/// The values of the second tensor in the place of those of the first.
struct Replaced;

impl Formula for Replaced {
    type Prepared = ();

    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn compute(&self, (): &(), _: u64, values: &mut [f64], others: &[Vec<f64>]) {
        if let [other] = others {
            values.copy_from_slice(other);
        }
    }
}

impl Formula for Delta {
    type Prepared = Arc<Factors>;

    fn prepare(&self) -> Result<Arc<Factors>> {
        let lock = || self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((name, factors)) = &*lock()
            && *name == self.name
        {
            return Ok(Arc::clone(factors));
        }
        // Reading may wait for other cores, and a core that waits may come here for another weight. So
        // nothing is locked, and two cores may read the same factors.
        let (a, b) = (all_values(&self.a)?, all_values(&self.b)?);
        let factors = Arc::new(if self.is_transposed {
            Factors {
                left: transposed(&a, self.rank),
                right: transposed(&b, b.len().checked_div(self.rank).unwrap_or(0)),
            }
        } else {
            Factors { left: b, right: a }
        });
        *lock() = Some((self.name.clone(), Arc::clone(&factors)));
        Ok(factors)
    }

    fn compute(&self, factors: &Arc<Factors>, first: u64, values: &mut [f64], _: &[Vec<f64>]) {
        let Factors { left, right } = &**factors;
        let columns = in_memory(self.columns);
        let (mut row, mut column) = match first.checked_div(self.columns) {
            Some(row) => (row, first.strict_rem(self.columns)),
            None => return,
        };
        let mut rest = values;
        while !rest.is_empty() {
            let from = in_memory(column);
            let len = rest.len().min(columns.strict_sub(from));
            let (part, after) = rest.split_at_mut(len);
            let mut sums = vec![0f64; len];
            let left = left.chunks(self.rank.max(1)).nth(in_memory(row)).unwrap_or_default();
            for (b, a) in left.iter().zip(right.chunks(columns)) {
                for (sum, a) in sums.iter_mut().zip(a.iter().skip(from)) {
                    *sum += b * a;
                }
            }
            for (value, sum) in part.iter_mut().zip(&sums) {
                *value += self.scale * sum;
            }
            rest = after;
            (row, column) = (row.strict_add(1), 0);
        }
    }
}

/// The transposed matrix of `values`, which are `rows` rows.
fn transposed(values: &[f64], rows: usize) -> Vec<f64> {
    let columns = values.len().checked_div(rows).unwrap_or(0);
    let column = |at| values.iter().skip(at).step_by(columns.max(1));
    (0..columns).flat_map(column).copied().collect()
}
