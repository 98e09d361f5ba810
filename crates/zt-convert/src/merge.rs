//! Several inputs as one.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::ops::ControlFlow;
use std::path::Path;

use zt::{Attributes, Error, ErrorKind, File, Registry, Result, Tensor, Value, VerifyOptions};

use crate::fault::{Fault, Loss};
use crate::{ConvertOptions, GGUF, Input, Summary, ZT, gguf_pairs};

/// All objects of all inputs, and what the inputs say of themselves.
pub(crate) struct Merged<'i> {
    /// Input by input, each in the order of its data.
    pub(crate) objects: Vec<Incoming<'i>>,
    /// `None` where no input has any.
    pub(crate) attributes: Option<Attributes>,
    /// Fields of the files' roots that the specification does not know.
    pub(crate) extra: Attributes,
}

/// An object of an input.
#[derive(Clone, Copy)]
pub(crate) struct Incoming<'i> {
    pub(crate) tensor: Tensor<'i>,
    pub(crate) registry: &'i Registry,
    /// The input's.
    pub(crate) path: Option<&'i Path>,
}

impl<'i> Merged<'i> {
    /// # Errors
    ///
    /// A faulty object's fault, unless losses are allowed: then what is at fault is found before
    /// anything is written, by verifying the input. Code `overlap` for blobs that would be
    /// written many times over; `duplicate-name` for two objects of one name; `lossy` for two values
    /// of one attribute, and for what reading an input has lost, unless that is allowed.
    pub(crate) fn new(
        inputs: &'i [Input],
        options: &ConvertOptions<'_>,
        summary: &mut Summary,
    ) -> Result<Self> {
        let mut objects = Vec::new();
        let mut places: HashMap<&str, Option<&Path>> = HashMap::new();
        let (mut attributes, mut extra) = (Union::default(), Union::default());
        let (mut attributes_of, mut has_attributes) = (Vec::new(), false);
        for input in inputs {
            let map = input
                .file()
                .attributes()
                .map_err(|error| input.blame(error))?;
            has_attributes |= map.is_some();
            attributes_of.push(map.unwrap_or_default());
        }
        let is_whole_set = gguf_pairs::forgets_set(&mut attributes_of);
        repeat_warnings(inputs, is_whole_set, options, summary)?;
        for (input, map) in inputs.iter().zip(attributes_of) {
            let (file, path) = (input.file(), input.path());
            let blame = |error| input.blame(error);
            let registry = file.registry();
            file.check_overlap().map_err(blame)?;
            let mut damage = Damage::of(file, options).map_err(blame)?;
            for entry in file.entries() {
                let checked = entry.tensor().and_then(|tensor| damage.check(tensor));
                let tensor = match checked {
                    Ok(tensor) => tensor,
                    Err(fault) => {
                        let left_out = options.leave_out(fault, entry.name(), summary);
                        left_out.map_err(blame)?;
                        continue;
                    }
                };
                match places.entry(entry.name()) {
                    Slot::Occupied(first) => {
                        let owned = |path: Option<&Path>| path.map(Path::to_owned);
                        let (first, second) = (owned(first.get().as_deref()), owned(path));
                        let error = Error::from(Fault::Repeated { first, second });
                        return Err(error.with_object(entry.name()));
                    }
                    Slot::Vacant(place) => place.insert(path),
                };
                objects.push(Incoming {
                    tensor,
                    registry,
                    path,
                });
            }
            attributes.add(map, options, summary).map_err(blame)?;
            let map = file.extra().map_err(blame)?;
            extra.add(map, options, summary).map_err(blame)?;
        }
        let mut attributes = attributes.into_map();
        // Of pairs that are none there is no type to remember.
        if !matches!(options.target, ZT | GGUF) {
            attributes.remove(gguf_pairs::TYPES);
        }
        Ok(Merged {
            objects,
            attributes: has_attributes.then_some(attributes),
            extra: extra.into_map(),
        })
    }
}

/// What is to be said of the inputs is to be said of what is made of them, but that they are parts
/// of a set where that is whole. Where reading has kept the
/// first of two, that is a loss: a merge of the same files is not allowed to.
fn repeat_warnings(
    inputs: &[Input],
    is_whole_set: bool,
    options: &ConvertOptions<'_>,
    summary: &mut Summary,
) -> Result<()> {
    for input in inputs {
        let path = input.path();
        for mut warning in input.file().warnings() {
            if matches!(warning.code, "attribute-conflict" | "shadowed") {
                let what = warning.message;
                let accepted =
                    options.accept(Loss::Read { what }, warning.object.as_deref(), summary);
                accepted.map_err(|error| input.blame(error))?;
                continue;
            }
            if warning.code == "split" && is_whole_set {
                continue;
            }
            // Of several files, nothing else says which.
            if let (Some(path), None, [_, _, ..]) = (path, &warning.object, inputs) {
                warning.message = format!("{}: {}", path.display(), warning.message);
            }
            summary.warnings.push(warning);
        }
    }
    Ok(())
}

/// What is wrong with objects beyond what their metadata shows.
enum Damage {
    /// Known of all, by name: damage that shows once an object is half written comes too late to
    /// leave it out.
    Known(HashMap<String, Error>),
    /// Bytes are checked while they are written, and the first fault ends the work. Only what is
    /// written without a look at it, indices, is checked before.
    Met,
}

impl Damage {
    fn of(file: &File, options: &ConvertOptions<'_>) -> Result<Self> {
        if !options.lossy {
            return Ok(Damage::Met);
        }
        // Bytes are counted when they are written.
        let proceed = |_| {
            options
                .progress
                .map_or(ControlFlow::Continue(()), |tell| tell(0))
        };
        let verify = VerifyOptions {
            threads: options.write.thread_count(),
            progress: Some(&proceed),
            ..VerifyOptions::default()
        };
        let mut faults = HashMap::new();
        for problem in file.verify(&verify)?.problems {
            if problem.kind() == ErrorKind::Io || problem.code() == "allocation" {
                return Err(problem); // The object may be as good as any.
            }
            if let Some(name) = problem.object().map(str::to_owned) {
                faults.entry(name).or_insert(problem);
            }
        }
        Ok(Damage::Known(faults))
    }

    fn check<'i>(&mut self, tensor: Tensor<'i>) -> Result<Tensor<'i>> {
        match self {
            Damage::Known(faults) => faults.remove(tensor.name()).map_or(Ok(tensor), Err),
            Damage::Met => tensor.check_data().map(|()| tensor),
        }
    }
}

/// The union of maps: of a key with two values, the first is kept and the second is a loss.
#[derive(Default)]
struct Union {
    pairs: Vec<(Value, Value)>,
    /// By the CBOR of the key, which may be any value.
    places: HashMap<Vec<u8>, usize>,
}

impl Union {
    fn add(
        &mut self,
        map: Attributes,
        options: &ConvertOptions<'_>,
        summary: &mut Summary,
    ) -> Result<()> {
        for (key, value) in map {
            match self.places.entry(key.to_cbor()?) {
                Slot::Vacant(place) => {
                    place.insert(self.pairs.len());
                    self.pairs.push((key, value));
                }
                Slot::Occupied(place) => {
                    let first = self.pairs.get_mut(*place.get()).map(|(_, first)| first);
                    let first = first.filter(|first| **first != value);
                    if first.is_some_and(|first| !gguf_pairs::joins_types(&key, first, &value)) {
                        let loss = Loss::Conflict { key: display(&key) };
                        options.accept(loss, None, summary)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn into_map(self) -> Attributes {
        self.pairs.into_iter().collect()
    }
}

/// The union of maps; of a key with two values, the first stays.
///
/// # Errors
///
/// Code `lossy` for two values, unless that is allowed.
pub(crate) fn united(
    maps: impl IntoIterator<Item = Attributes>,
    options: &ConvertOptions<'_>,
    summary: &mut Summary,
) -> Result<Attributes> {
    let mut union = Union::default();
    for map in maps {
        union.add(map, options, summary)?;
    }
    Ok(union.into_map())
}

/// A key as messages say it.
pub(crate) fn display(key: &Value) -> String {
    key.as_str()
        .map_or_else(|| format!("{key:?}"), |key| format!("{key:?}"))
}
