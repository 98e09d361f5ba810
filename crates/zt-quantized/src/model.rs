//! A checkpoint as a dialect sees it: tensors by name, and the settings beside them.

use std::collections::{BTreeMap, HashMap, HashSet};

use zt::manifest::Text;
use zt::{DType, Elements, File, FloatType, OwnedTensor, Result};

use crate::fault::Fault;
use crate::settings::Settings;
use crate::values::codes::numbers;
use crate::weight::Weight;

/// The longest text in a tensor, in bytes.
const TEXT_MAX: u64 = 64 << 10;

/// The last parts of the names of small tensors that describe others. They are read together: each may be a request.
const SMALL: [&str; 12] = [
    "weight_shape",
    "comfy_quant",
    "bitsandbytes__nf4",
    "bitsandbytes__fp4",
    "quant_map",
    "nested_quant_map",
    "weight_format",
    "nbits",
    "group_size",
    "shape",
    "axis",
    "view_as_float",
];

/// The most bytes of one of them.
const SMALL_MAX: u64 = 4 << 10;

/// A checkpoint as a dialect sees it.
///
/// A dialect looks for names that end as its own do, and makes a [`Weight`] of each.
pub struct Model<'f> {
    file: &'f File,
    settings: &'f Settings,
    tensors: BTreeMap<&'f str, Shape<'f>>,
    /// Small tensors that describe others, as far as they can be read.
    small: HashMap<&'f str, Elements<'f>>,
    /// The texts of the file's header.
    header: HashMap<String, String>,
    /// Tensors that weights were made of.
    taken: HashSet<String>,
    /// The type of most floating-point tensors.
    most: FloatType,
}

/// The shape and the type of a plain array.
#[derive(Debug, Clone)]
pub struct Shape<'f> {
    /// Its shape.
    pub shape: &'f [u64],
    /// The type of its values: a dtype, or a logical type such as `f8_e4m3fn`.
    pub value_type: Text,
    /// How it is stored.
    pub dtype: DType,
}

impl Shape<'_> {
    /// Whether the values are FP8.
    pub fn is_fp8(&self) -> bool {
        self.value_type.starts_with("f8_e4m3") || self.value_type.starts_with("f8_e5m2")
    }

    /// Whether the values are the bytes of this dtype, without another meaning.
    pub fn is(&self, dtype: DType) -> bool {
        self.dtype == dtype && *self.value_type == *dtype.as_str()
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        zt::formats::element_count(self.shape).unwrap_or(u64::MAX)
    }

    /// The last two dimensions, and the product of those in front of them.
    pub fn matrices(&self) -> Option<[u64; 3]> {
        match *self.shape {
            [ref outer @ .., rows, columns] => {
                let count = outer.iter().try_fold(1u64, |a, b| a.checked_mul(*b))?;
                Some([count, rows, columns])
            }
            _ => None,
        }
    }
}

impl<'f> Model<'f> {
    pub(crate) fn new(file: &'f File, settings: &'f Settings) -> Result<Self> {
        let (mut tensors, mut describing) = (BTreeMap::new(), Vec::new());
        for entry in file.entries() {
            if let Ok(tensor) = entry.tensor()
                && tensor.format() == "dense"
                && tensor.fault().is_none()
                && let (Some(dtype), Some(value_type)) = (tensor.dtype(), tensor.value_type())
            {
                let last = entry.name().rsplit('.').next().unwrap_or_default();
                if SMALL.contains(&last)
                    && tensor.decoded_len("data").is_ok_and(|len| len <= SMALL_MAX)
                {
                    describing.push((tensor, "data"));
                }
                tensors.insert(entry.name(), Shape { shape: tensor.shape(), value_type, dtype });
            }
        }
        let read = describing.iter().zip(file.read_many(&describing));
        let small = read.filter_map(|((tensor, _), read)| Some((tensor.name(), read.ok()?)));
        let small = small.collect();
        let attributes = file.attributes()?.unwrap_or_default();
        let text = |text: &zt::Value| text.as_str().map(str::to_owned);
        let header = attributes.iter().filter_map(|(key, value)| Some((text(key)?, text(value)?)));
        let count =
            |name: &str| tensors.values().filter(|it: &&Shape<'_>| *it.value_type == *name).count();
        let most = if count("f16") > count("bf16") { FloatType::F16 } else { FloatType::BF16 };
        let (header, taken) = (header.collect(), HashSet::new());
        Ok(Model { file, settings, tensors, small, header, taken, most })
    }

    /// What the files beside the weights say.
    pub const fn settings(&self) -> &'f Settings {
        self.settings
    }

    /// A text of the file's header, by its key.
    pub fn header(&self, key: &str) -> Option<&str> {
        self.header.get(key).map(String::as_str)
    }

    /// The names that end with `end`, without that end. Tensors that another dialect took are left out.
    pub fn ending(&self, end: &str) -> Vec<&'f str> {
        let ending = self.tensors.keys().filter_map(|name| Some((*name, name.strip_suffix(end)?)));
        ending.filter(|(name, _)| !self.taken.contains(*name)).map(|(_, stem)| stem).collect()
    }

    /// The tensor of this name, if it is a plain array that no other dialect took.
    pub fn get(&self, name: &str) -> Option<&Shape<'f>> {
        self.tensors.get(name).filter(|_| !self.taken.contains(name))
    }

    /// The plain array of this name, also if a weight is made of it.
    pub(crate) fn stored(&self, name: &str) -> Option<&Shape<'f>> {
        self.tensors.get(name)
    }

    /// A tensor that a weight needs.
    ///
    /// # Errors
    ///
    /// Code `quantization` if it is missing.
    pub fn need(&self, dialect: &'static str, name: &str) -> Result<&Shape<'f>> {
        self.get(name).ok_or_else(|| Fault::Missing { dialect, part: name.to_owned() }.into())
    }

    /// A handle on a tensor that a weight needs.
    ///
    /// # Errors
    ///
    /// As [`Model::need`].
    pub fn tensor(&self, dialect: &'static str, name: &str) -> Result<OwnedTensor> {
        self.need(dialect, name)?;
        self.file.owned_tensor(name)
    }

    /// The numbers of a small tensor, such as a shape.
    ///
    /// # Errors
    ///
    /// As [`Model::need`]; code `quantization` if it is long; as reading it.
    pub fn numbers(&self, dialect: &'static str, name: &str) -> Result<Vec<f32>> {
        let elements = self.elements(dialect, name)?;
        numbers(&self.tensor(dialect, name)?, &elements.bytes)
    }

    /// The integers of a small tensor, such as a shape.
    ///
    /// # Errors
    ///
    /// As [`Model::numbers`]; code `quantization` for other numbers than i32, i64 and u8, and for negative ones.
    pub fn integers(&self, dialect: &'static str, name: &str) -> Result<Vec<u64>> {
        let elements = self.elements(dialect, name)?;
        let integers = match elements.dtype {
            DType::I64 => {
                elements.as_slice::<i64>()?.iter().map(|it| u64::try_from(*it).ok()).collect()
            }
            DType::I32 => {
                elements.as_slice::<i32>()?.iter().map(|it| u64::try_from(*it).ok()).collect()
            }
            DType::U8 => Some(elements.bytes.iter().map(|it| u64::from(*it)).collect()),
            _ => None,
        };
        let what = || format!("{name} has no sizes");
        integers.ok_or_else(|| Fault::Rule { dialect, what: what() }.into())
    }

    /// The bytes of a small tensor, which has a text.
    ///
    /// # Errors
    ///
    /// As [`Model::numbers`].
    pub fn text(&self, dialect: &'static str, name: &str) -> Result<Vec<u8>> {
        Ok(self.elements(dialect, name)?.bytes.to_vec())
    }

    /// The elements of a small tensor.
    fn elements(&self, dialect: &'static str, name: &str) -> Result<Elements<'_>> {
        let byte_len = self.need(dialect, name)?.count().saturating_mul(8);
        if byte_len > 8 * TEXT_MAX {
            let what = format!("{name} is longer than {TEXT_MAX} values");
            return Err(Fault::Rule { dialect, what }.into());
        }
        match self.small.get(name) {
            Some(elements) => Ok(elements.borrow()),
            None => self.file.tensor(name)?.elements("data"),
        }
    }

    /// The type that the model's own code computes in: as the settings say, or else bf16.
    pub fn float(&self) -> FloatType {
        match self.settings.dtype() {
            Some("float16") => FloatType::F16,
            Some("float32") => FloatType::F32,
            Some(_) => FloatType::BF16,
            None => self.most,
        }
    }

    /// The 16-bit type of a tensor, or else [`Model::float`].
    pub fn float_of(&self, name: &str) -> FloatType {
        let found = self.get(name).and_then(|it| FloatType::from_name(&it.value_type));
        let is_narrow = |it: &FloatType| [FloatType::F16, FloatType::BF16].contains(it);
        found.filter(is_narrow).unwrap_or_else(|| self.float())
    }

    /// Whether a weight is made of the tensor of this name.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// Takes the tensors that a weight is made of.
    pub(crate) fn take(&mut self, weight: &Weight) {
        self.taken.extend(weight.parts.iter().cloned());
    }

    pub(crate) fn is_free(&self, weight: &Weight) -> bool {
        weight.parts.iter().all(|part| !self.taken.contains(part))
    }
}
