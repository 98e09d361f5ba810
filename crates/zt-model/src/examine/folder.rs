//! The files of weights in a folder, by their names and headers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use zt::{DType, Error, File, OpenOptions, Result, Span};
use zt_foreign::Input;

use crate::examine::Finding;
use zt_convert::{Index, Kinds};

/// Files named `.bin` are of all sorts: states of optimizers, arguments. These are weights.
const BIN_STEMS: &[&str] = &["adapter_model", "diffusion_pytorch_model", "model", "pytorch_model"];

/// Names for weights of one model in several types, as programs add them to the name of a file.
#[rustfmt::skip]
const VARIANTS: &[&str] = &[
    "4bit", "8bit", "bf16", "ema", "fp16", "fp32", "fp4", "fp8", "fp8_e4m3fn", "fp8_e5m2", "int4",
    "int8", "no_ema", "non_ema", "nf4",
];

/// The longest JSON of a configuration that is read.
const JSON_MAX: u64 = 16 << 20;

/// A folder, with the headers of its files.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Sorted by name.
    pub(super) files: Vec<Weights>,
    /// Sorted by name.
    pub(super) indices: Vec<(String, Index)>,
    /// Whether an index cannot be read. Opening it gives the error.
    pub(super) has_faulty_index: bool,
}

/// A file of weights.
pub(super) struct Weights {
    pub(super) name: String,
    /// The name without the number and the extension. A variant is a part of it: `model.fp16`.
    pub(super) stem: String,
    pub(super) extension: String,
    /// For `model-00002-of-00003.safetensors`: 2 and 3.
    pub(super) number: Option<(u32, u32)>,
    /// Empty for a file that cannot be opened.
    pub(super) tensors: Vec<TensorInfo>,
}

/// What a header tells of a tensor.
pub(super) struct TensorInfo {
    pub(super) name: String,
    pub(super) shape: Vec<u64>,
    /// `None` for a tensor that is not dense.
    pub(super) dtype: Option<DType>,
    /// `None` if it is unknown, or 2^64 or more.
    pub(super) byte_len: Option<u64>,
    /// Where its bytes are in its file.
    pub(super) span: Option<Span>,
}

impl Folder {
    /// The folder at `path`. The headers of `opened` files are not read again.
    pub(super) fn read(kinds: &Kinds, path: &Path, opened: &[Input]) -> Result<Self> {
        let of_folder = |error: std::io::Error| Error::from(error).with_path(path);
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(of_folder)? {
            let entry = entry.map_err(of_folder)?;
            // Every program gives weights a name in ASCII. Opening a pipe would wait for ever.
            if let Ok(name) = entry.file_name().into_string()
                && path.join(&name).is_file()
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        let (mut indices, mut has_faulty_index) = (Vec::new(), false);
        for name in names.iter().filter(|name| is_index_name(name)) {
            match Index::open(path.join(name)) {
                Ok(index) => indices.push((name.clone(), index)),
                Err(_) => has_faulty_index = true,
            }
        }
        let slices: HashSet<PathBuf> = kinds.slices_in(path).into_iter().collect();
        let files = names.iter().filter(|name| !slices.contains(&path.join(name)));
        let mut folder = Folder {
            path: path.to_owned(),
            indices,
            has_faulty_index,
            files: files.filter_map(|name| Weights::of_name(name)).collect(),
        };
        let mut known = folder.known(opened);
        for file in &mut folder.files {
            if let Some(tensors) = known.remove(&file.name) {
                file.tensors = tensors;
            } else if file.extension != "gguf" {
                let opened = kinds.open(path.join(&file.name), OpenOptions::new());
                file.tensors = opened.map_or_else(|_| Vec::new(), |input| tensors_of(input.file()));
            }
        }
        Ok(folder)
    }

    /// The headers of files that are open, by their names. A set has the headers of all its shards.
    fn known(&self, opened: &[Input]) -> HashMap<String, Vec<TensorInfo>> {
        let mut known = HashMap::new();
        for input in opened {
            let path = input.path().filter(|path| path.parent() == Some(&self.path));
            let Some(name) = path.and_then(|path| path.file_name()?.to_str()) else {
                continue;
            };
            let Some((_, index)) = self.indices.iter().find(|(it, _)| it == name) else {
                known.insert(name.to_owned(), tensors_of(input.file()));
                continue;
            };
            let owners: HashMap<&str, &str> = index.tensors().collect();
            for tensor in tensors_of(input.file()) {
                if let Some(shard) = owners.get(&*tensor.name) {
                    let tensors: &mut Vec<_> = known.entry((*shard).to_owned()).or_default();
                    tensors.push(tensor);
                }
            }
        }
        known
    }

    pub(super) fn finding(
        &self,
        code: &'static str,
        files: impl IntoIterator<Item = impl AsRef<Path>>,
        message: String,
        advice: impl Into<String>,
    ) -> Finding {
        let files = files.into_iter().map(|name| self.path.join(name));
        Finding { code, files: files.collect(), message, advice: advice.into() }
    }

    pub(super) fn file(&self, name: &str) -> Option<&Weights> {
        self.files.iter().find(|file| file.name == name)
    }

    /// Whether no index names a file that is not there, and no number of these files is missing.
    pub(super) fn is_whole(&self, files: &[&Weights]) -> bool {
        let count = files.first().and_then(|file| file.number).map(|(_, count)| count);
        let listed = |index: &Index| index.shards().iter().all(|shard| self.file(shard).is_some());
        count.is_none_or(|count| u64::from(count) == files.len() as u64)
            && files.iter().all(|file| !file.tensors.is_empty())
            && self.indices.iter().all(|(_, index)| listed(index))
    }

    /// Whether an index names the file.
    pub(super) fn is_listed(&self, name: &str) -> bool {
        let mut indices = self.indices.iter();
        indices.any(|(_, index)| {
            let found = index.shards().binary_search_by(|it| it.as_str().cmp(name));
            found.is_ok()
        })
    }

    /// The numbered files, by their stem and extension.
    pub(super) fn numbered(&self) -> BTreeMap<(&str, &str), Vec<&Weights>> {
        let mut sets: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for file in self.files.iter().filter(|file| file.number.is_some()) {
            let key = (file.stem.as_str(), file.extension.as_str());
            sets.entry(key).or_default().push(file);
        }
        sets
    }

    /// The JSON object in the file `name`; `None` if there is none.
    pub(super) fn json(&self, name: &str) -> Option<Value> {
        let path = self.path.join(name);
        let byte_len = fs::metadata(&path).ok().filter(|it| it.is_file())?.len();
        let bytes = (byte_len <= JSON_MAX).then(|| fs::read(path).ok())??;
        serde_json::from_slice(&bytes).ok().filter(Value::is_object)
    }
}

impl Weights {
    /// `None` for a name that no weights have.
    fn of_name(name: &str) -> Option<Self> {
        let (base, extension) = name.rsplit_once('.')?;
        if name.starts_with('.') || !["safetensors", "bin", "gguf", "zt"].contains(&extension) {
            return None;
        }
        let (stem, number) = match numbered(base) {
            Some((stem, number)) => (stem, Some(number)),
            None => (base.to_owned(), None),
        };
        let first = stem.split('.').next().unwrap_or_default();
        (extension != "bin" || BIN_STEMS.contains(&first)).then(|| Weights {
            name: name.to_owned(),
            stem,
            extension: extension.to_owned(),
            number,
            tensors: Vec::new(),
        })
    }

    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.tensors.iter().map(|tensor| tensor.name.as_str()).collect()
    }
}

/// The stem and the numbers of `model-00002-of-00003`. A variant may follow, which becomes a part of the stem.
fn numbered(base: &str) -> Option<(String, (u32, u32))> {
    let (left, right) = base.rsplit_once("-of-")?;
    let digits = right.bytes().take_while(u8::is_ascii_digit).count();
    let (count, variant) = right.split_at_checked(digits)?;
    let (stem, number) = left.rsplit_once('-')?;
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = variant.is_empty() || variant.starts_with('.');
    if !is_whole || !is_number(number) || !is_number(count) {
        return None;
    }
    let numbers = (number.parse().ok()?, count.parse().ok()?);
    Some((format!("{stem}{variant}"), numbers))
}

/// The variant in the name of a file or of an index.
pub(super) fn variant(name: &str) -> Option<&str> {
    let mut parts = name.split('.').skip(1);
    parts.find(|part| VARIANTS.contains(part))
}

fn is_index_name(name: &str) -> bool {
    name.ends_with(".json") && name.contains(".index.")
}

/// The headers of all tensors. A damaged one is passed over.
pub(super) fn tensors_of(file: &File) -> Vec<TensorInfo> {
    let entries = file.entries().into_iter();
    let info = |entry: zt::Entry<'_>| {
        let tensor = entry.tensor().ok()?;
        let mut lens = tensor.components().map(|(_, component)| component.blob.decoded_len);
        Some(TensorInfo {
            name: entry.name().to_owned(),
            shape: tensor.shape().to_vec(),
            dtype: tensor.dtype(),
            byte_len: lens.try_fold(0u64, |sum, byte_len| sum.checked_add(byte_len?)),
            span: tensor.file_spans().next().flatten(),
        })
    };
    entries.filter_map(info).collect()
}

/// The first of many names, for a message.
pub(super) fn some_of<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    const SHOWN: usize = 3;
    let mut names = names.into_iter();
    let first = names.by_ref().take(SHOWN);
    let first: Vec<String> = first.map(|name| format!("{:?}", name.as_ref())).collect();
    let more = match names.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{Weights, variant};

    #[test]
    fn names_of_weights_have_a_stem_and_a_number() {
        let parts = |name| Weights::of_name(name).map(|it| (it.stem, it.extension, it.number));
        let some = |stem: &str, extension: &str, number| {
            Some((stem.to_owned(), extension.to_owned(), number))
        };
        assert_eq!(parts("model.safetensors"), some("model", "safetensors", None));
        let second = some("model", "safetensors", Some((2, 3)));
        assert_eq!(parts("model-00002-of-00003.safetensors"), second);
        let fp16 = some("model.fp16", "safetensors", Some((1, 2)));
        assert_eq!(parts("model.fp16-00001-of-00002.safetensors"), fp16);
        assert_eq!(parts("model-00001-of-00002.fp16.safetensors"), fp16);
        let plain = some("model-1-of-2", "safetensors", None);
        assert_eq!(parts("model-1-of-2.safetensors"), plain);
        for none in ["optimizer.bin", "training_args.bin", "model", "config.json", "a.pt"] {
            assert_eq!(parts(none), None, "{none}");
        }
        assert_eq!(variant("model.fp16"), Some("fp16"));
        assert_eq!(variant("model.safetensors.index.fp16.json"), Some("fp16"));
        assert_eq!(variant("model.old"), None);
    }
}
