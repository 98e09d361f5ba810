//! Merges several inputs into one.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::ops::ControlFlow;
use std::path::Path;

use zt::foreign::WarningKind;
use zt::{Attributes, Error, ErrorKind, File, Result, Tensor, Value, VerifyOptions, Warning};
use zt_foreign::{ConvertOptions, Fault, Incoming, Input, Job, Loss, Merged, display};

use crate::Kinds;
use crate::native::ZT;

/// Merges all inputs: checks their objects, joins their attributes, repeats their warnings.
///
/// If damaged objects are skipped, the inputs are verified to find them before anything is written.
///
/// # Errors
///
/// The fault of an object, unless damaged ones are skipped. Code `overlap` for blobs that would be
/// written many times; `duplicate-name` for two objects of one name; `lossy` for data that the reader
/// of an input skipped, unless that is allowed.
pub(crate) fn merge<'i>(
    kinds: &Kinds,
    inputs: &'i [Input],
    job: &mut Job<'_>,
) -> Result<Merged<'i>> {
    let mut attributes_of = Vec::with_capacity(inputs.len());
    let mut has_attributes = false;
    for input in inputs {
        let attributes = input.file().attributes();
        let attributes = attributes.map_err(|error| input.blame(error))?;
        has_attributes |= attributes.is_some();
        attributes_of.push(attributes.unwrap_or_default());
    }
    let mut is_whole_set = false;
    for kind in kinds.iter() {
        is_whole_set |= kind.merge_attributes(&mut attributes_of);
    }
    repeat_warnings(inputs, is_whole_set, job)?;

    let mut objects = Vec::new();
    let mut places = HashMap::new();
    let (mut attributes, mut extra) = (Union::default(), Union::default());
    for (input, map) in inputs.iter().zip(attributes_of) {
        let blame = |error| input.blame(error);
        add_objects(input, &mut objects, &mut places, job)?;
        attributes.add(map, job).map_err(blame)?;
        let map = input.file().extra().map_err(blame)?;
        extra.add(map, job).map_err(blame)?;
    }
    let mut attributes = attributes.into_map();
    for kind in kinds
        .iter()
        .filter(|kind| ![ZT, kind.kind()].contains(&job.target))
    {
        for key in kind.own_attributes() {
            attributes.remove(key);
        }
    }
    Ok(Merged {
        objects,
        attributes: has_attributes.then_some(attributes),
        extra: extra.into_map(),
    })
}

/// Adds the objects of an input. `places` has the path of the input that has each name.
fn add_objects<'i>(
    input: &'i Input,
    objects: &mut Vec<Incoming<'i>>,
    places: &mut HashMap<&'i str, Option<&'i Path>>,
    job: &mut Job<'_>,
) -> Result<()> {
    let blame = |error| input.blame(error);
    let (file, path) = (input.file(), input.path());
    file.check_overlap().map_err(blame)?;
    let mut damage = Damage::of(file, job.options).map_err(blame)?;
    for entry in file.entries() {
        let checked = entry.tensor().and_then(|tensor| match tensor.fault() {
            // Another kind of file cannot hold components without a meaning.
            Some(fault) if job.target != ZT => Err(fault.clone()),
            _ => damage.check(tensor),
        });
        let tensor = match checked {
            Ok(tensor) => tensor,
            Err(fault) => {
                job.leave_out(fault, entry.name()).map_err(blame)?;
                continue;
            }
        };
        if let Some(first) = places.insert(entry.name(), path) {
            let (first, second) = (first.map(Path::to_owned), path.map(Path::to_owned));
            let error = Error::from(Fault::Repeated { first, second });
            return Err(error.with_object(entry.name()));
        }
        if let Some(fault) = tensor.fault() {
            let message = format!("kept as it is: {}", fault.message());
            let warning = Warning::new(fault.code(), message).with_object(entry.name());
            job.summary.warnings.push(warning);
        }
        objects.push(Incoming {
            tensor,
            registry: file.registry(),
            path,
        });
    }
    Ok(())
}

/// Repeats the warnings about the inputs, except that parts are missing if the set is complete. Data
/// that a reader skipped is a loss.
fn repeat_warnings(inputs: &[Input], is_whole_set: bool, job: &mut Job<'_>) -> Result<()> {
    for input in inputs {
        for mut warning in input.file().warnings() {
            match warning.kind {
                WarningKind::PassedOver => {
                    let what = warning.message;
                    job.accept(Loss::Read { what }, warning.object.as_deref());
                    job.check().map_err(|error| input.blame(error))?;
                    continue;
                }
                WarningKind::Part if is_whole_set => continue,
                _ => {}
            }
            // With several inputs, the message has to name the file.
            if let (Some(path), None, [_, _, ..]) = (input.path(), &warning.object, inputs) {
                warning.message = format!("{}: {}", path.display(), warning.message);
            }
            job.summary.warnings.push(warning);
        }
    }
    Ok(())
}

/// Faults of objects that their metadata does not show.
enum Damage {
    /// All faults, by name: a fault found while an object is written comes too late to skip it.
    Known(HashMap<String, Error>),
    /// Bytes are checked while they are written, and the first fault ends the conversion. Indices are
    /// checked before, because they are written unchecked.
    Met,
}

impl Damage {
    fn of(file: &File, options: &ConvertOptions<'_>) -> Result<Self> {
        if !options.skip_damaged {
            return Ok(Damage::Met);
        }
        // Bytes are counted when they are written.
        let proceed = |_| match options.progress.map(|progress| progress.report(0)) {
            Some(Err(_)) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let mut verify = VerifyOptions::new().progress(zt::Progress::new(&proceed));
        if let Some(threads) = options.write.thread_count() {
            verify = verify.threads(threads);
        }
        let mut faults = HashMap::new();
        for problem in file.verify(&verify)?.problems {
            if problem.kind() == ErrorKind::Io || problem.code() == "allocation" {
                return Err(problem); // The object need not be faulty.
            }
            let Some(name) = problem.object().map(str::to_owned) else {
                continue;
            };
            // A fault of the format leaves the components as good as they are.
            let tensor = file.tensor(&name).ok();
            let fault = tensor.and_then(|tensor| tensor.fault());
            if fault.is_none_or(|fault| fault.to_string() != problem.to_string()) {
                faults.entry(name).or_insert(problem);
            }
        }
        Ok(Damage::Known(faults))
    }

    fn check<'i>(&mut self, tensor: Tensor<'i>) -> Result<Tensor<'i>> {
        match self {
            Damage::Known(faults) => faults.remove(tensor.name()).map_or(Ok(tensor), Err),
            // Without a meaning there is nothing to check but the bytes.
            Damage::Met if tensor.fault().is_some() => Ok(tensor),
            Damage::Met => tensor.check_data().map(|()| tensor),
        }
    }
}

/// The union of maps. The first value of a key is kept; a different second value is a loss.
#[derive(Default)]
struct Union {
    pairs: Vec<(Value, Value)>,
    /// Positions in `pairs`, by the CBOR of the key, which may be any value.
    places: HashMap<Vec<u8>, usize>,
}

impl Union {
    fn add(&mut self, map: Attributes, job: &mut Job<'_>) -> Result<()> {
        for (key, value) in map {
            match self.places.entry(key.to_cbor()?) {
                Slot::Vacant(place) => {
                    place.insert(self.pairs.len());
                    self.pairs.push((key, value));
                }
                Slot::Occupied(place) => {
                    let first = self.pairs.get(*place.get());
                    if first.is_some_and(|(_, first)| *first != value) {
                        let key = display(&key);
                        job.accept(Loss::Conflict { key }, None);
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

/// The union of maps. The first value of a key is kept; a different second value is a loss.
///
/// # Errors
///
/// If a key cannot be encoded.
pub(crate) fn united(
    maps: impl IntoIterator<Item = Attributes>,
    job: &mut Job<'_>,
) -> Result<Attributes> {
    let mut union = Union::default();
    for map in maps {
        union.add(map, job)?;
    }
    Ok(union.into_map())
}
