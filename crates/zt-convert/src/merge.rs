//! Several inputs as one.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::path::Path;

use zt::{Attributes, Error, Registry, Result, Tensor, Value};

use crate::fault::{Fault, Loss};
use crate::{ConvertOptions, Input, Summary};

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
    /// A faulty object's fault, unless losses are allowed. Code `overlap` for blobs that would be
    /// written many times over; `duplicate-name` for two objects of one name; `lossy` for two values
    /// of one attribute, unless that is allowed.
    pub(crate) fn new(
        inputs: &'i [Input],
        options: &ConvertOptions<'_>,
        summary: &mut Summary,
    ) -> Result<Self> {
        let mut objects = Vec::new();
        let mut places: HashMap<&str, Option<&Path>> = HashMap::new();
        let (mut attributes, mut extra) = (Union::default(), Union::default());
        let mut has_attributes = false;
        for input in inputs {
            let (file, path) = (input.file(), input.path());
            let blame = |error: Error| path.into_iter().fold(error, Error::with_path);
            let registry = file.registry();
            file.check_overlap().map_err(blame)?;
            for entry in file.entries() {
                let tensor = match entry.tensor() {
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
            if let Some(map) = file.attributes().map_err(blame)? {
                has_attributes = true;
                attributes.add(map, options, summary).map_err(blame)?;
            }
            let map = file.extra().map_err(blame)?;
            extra.add(map, options, summary).map_err(blame)?;
        }
        let attributes = has_attributes.then(|| attributes.into_map());
        Ok(Merged {
            objects,
            attributes,
            extra: extra.into_map(),
        })
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
                    if self
                        .pairs
                        .get(*place.get())
                        .is_some_and(|(_, first)| *first != value)
                    {
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
