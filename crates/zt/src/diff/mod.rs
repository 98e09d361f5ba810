//! Differences between two files of any kinds.
//!
//! [`diff()`] compares attributes, the names of objects, their metadata and their bytes. With
//! [`DiffOptions::values`] it also measures the distance of the values. [`summary()`] measures the distance of
//! every pair of objects as of two vectors.
//!
//! | module | holds |
//! | --- | --- |
//! | `pairs` | the objects of two files by their names |
//! | `object` | the comparison of two objects of one name |
//! | `stream` | two arrays that are read side by side, piece by piece |
//! | `number` | the comparison of two values: bits, ulps, tolerances |
//! | `distance` | the distance of two arrays: norms, cosine |
//!
//! This room knows the rooms `error`, `cores`, `file` and `read`.
//!
//! It must not know how files are written: it changes no byte.

mod distance;
mod number;
mod object;
mod pairs;
mod stream;

use std::collections::HashMap;

use zt_manifest::{Attributes, DType, Value};

pub use distance::Distance;

use crate::cores::parallel;
use crate::cores::progress::{Gauge, Progress, work_options};
use crate::error::{Error, ErrorKind, Result};
use crate::file::File;
use crate::file::tensor::Tensor;

/// How two files are compared.
#[must_use]
#[derive(Debug, Clone, Copy, Default)]
pub struct DiffOptions<'p> {
    values: bool,
    tolerance: Option<Tolerance>,
    dense: bool,
    only_values: bool,
    nameless: bool,
    threads: Option<usize>,
    progress: Option<Progress<'p>>,
}

impl DiffOptions<'_> {
    /// The defaults: metadata and bytes, by name, on all cores.
    pub fn new() -> Self {
        Self::default()
    }

    /// Measures the distance of values.
    pub const fn values(mut self, values: bool) -> Self {
        self.values = values;
        self
    }

    /// Values within this tolerance are equal. Distances are measured, as with
    /// [`DiffOptions::values`].
    pub const fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = Some(tolerance);
        self
    }

    /// Compares objects by their dense value if both have one. Then their formats and the attributes of
    /// these formats are ignored.
    pub const fn dense(mut self, dense: bool) -> Self {
        self.dense = dense;
        self
    }

    /// As [`DiffOptions::dense`], and the types of values and all attributes are ignored, too: for a model
    /// and its cast, or for two kinds of files.
    pub const fn only_values(mut self, only_values: bool) -> Self {
        self.only_values = only_values;
        self
    }

    const fn by_dense_value(&self) -> bool {
        self.dense || self.only_values
    }

    /// Ignores names if each file has one object: some kinds of files have no names.
    pub const fn nameless(mut self, nameless: bool) -> Self {
        self.nameless = nameless;
        self
    }
}

work_options!(DiffOptions, "Reports compared bytes, of both files.");

/// NumPy's rule: `a` and `b` are equal if `|a - b| <= atol + rtol * |b|`.
///
/// As in `numpy.testing.assert_allclose`, a NaN equals any NaN, and an infinity only itself.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tolerance {
    /// The absolute tolerance.
    pub atol: f64,
    /// The tolerance relative to the second file's value.
    pub rtol: f64,
}

/// The differences between two files. See [`diff()`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Diff {
    /// Attributes of the files.
    pub attributes: Vec<Change>,
    /// Objects that only the first file has, in the order of its data.
    pub only_a: Vec<String>,
    /// Objects that only the second file has, in the order of its data.
    pub only_b: Vec<String>,
    /// Objects of both that differ, in the order of the first one's data.
    pub changed: Vec<ObjectDiff>,
    /// The number of equal objects.
    pub same: u64,
}

impl Diff {
    /// Whether there is no difference.
    pub fn is_same(&self) -> bool {
        self.attributes.is_empty()
            && self.only_a.is_empty()
            && self.only_b.is_empty()
            && self.changed.is_empty()
    }
}

/// The differences between two objects of one name.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ObjectDiff {
    /// Their name.
    pub name: String,
    /// The differences, at least one.
    pub changes: Vec<Change>,
}

/// One of two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// One difference. `role` is a component's, or `None` for the dense value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// Dimensions. Values are not compared then.
    Shape {
        /// Of the first file's object.
        a: Vec<u64>,
        /// Of the second file's object.
        b: Vec<u64>,
    },
    /// The object formats.
    Format {
        /// Of the first file's object.
        a: String,
        /// Of the second file's object.
        b: String,
    },
    /// An attribute of an object or of the files; `None` if it is missing.
    Attribute {
        /// Its key.
        key: Value,
        /// In the first file.
        a: Option<Value>,
        /// In the second file.
        b: Option<Value>,
    },
    /// A component that only one object has.
    Component {
        /// Its role.
        role: String,
        /// The side that has it.
        side: Side,
    },
    /// The dtypes. Equal bytes with another dtype are a difference.
    DType {
        /// The component's role.
        role: Option<String>,
        /// In the first file.
        a: DType,
        /// In the second file.
        b: DType,
    },
    /// The logical types; `None` if there is none.
    LogicalType {
        /// The component's role.
        role: Option<String>,
        /// In the first file.
        a: Option<String>,
        /// In the second file.
        b: Option<String>,
    },
    /// Values.
    Values {
        /// The component's role.
        role: Option<String>,
        /// The differences of the values.
        diff: ValueDiff,
    },
    /// An object that cannot be read, and so counts as different.
    Unreadable {
        /// The side that cannot be read.
        side: Side,
        /// Its error.
        error: Error,
    },
}

/// How the values of two arrays differ.
///
/// Values of one type are equal if their bits are: -0 is not 0, and two NaNs may differ. Values of
/// two types are equal if their numbers are, and NaN equals NaN. An `i64` is compared with an `f64`
/// exactly, also beyond 2^53. A [`Tolerance`] replaces these rules.
///
/// Distances are measured over all pairs, also those within the tolerance, except pairs of a NaN
/// and a number. The distance of complex values is the one in the plane.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ValueDiff {
    /// The number of pairs; for arrays of two lengths, the longer length.
    pub count: u64,
    /// The number of different pairs.
    pub different: u64,
    /// The place of the first different pair, in row-major order.
    pub first: Option<u64>,
    /// The number of pairs with exactly one NaN.
    pub nan: u64,
    /// The largest `|a - b|`; `None` if nothing was measured.
    pub max_abs: Option<Extreme<f64>>,
    /// The largest `|a - b| / |b|`.
    pub max_rel: Option<Extreme<f64>>,
    /// The largest number of steps between two values, from each value of the type to the next.
    /// Only for arrays of one type: f64, f32, f16, bf16, FP8, or complex numbers, part by part.
    pub max_ulp: Option<Extreme<u64>>,
}

/// The largest of many distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extreme<T> {
    /// The distance.
    pub value: T,
    /// The first place with it, in row-major order.
    pub at: u64,
}

/// Compares all objects of two files and their attributes: names, shapes, formats, attributes,
/// types and values. The storage of values (encoding, planes, digests, placement, order) does not
/// matter, and the kind of file does not: an object of a format that exists to be compressed is
/// compared as the dense one that it stands for. Without options, two files have no difference exactly if
/// [`File::hash`] gives the same content and their own attributes are equal.
///
/// The comparison streams on all cores. Dense objects, planes and components of any size take a few
/// MiB for each core. Other dense values are built in memory, unless their format cuts them into rows.
/// Both files are read to their end, so equal objects have passed their digests. Bytes that several
/// objects share are compared once. Ranges that overlap beyond [`Limits::overlap`](crate::Limits::overlap) count as unreadable.
///
/// ```
/// use zt::diff::{Change, DiffOptions};
/// use zt::{Dense, File, Writer};
///
/// let file = |values: &[f32]| {
///     let mut bytes = Vec::new();
///     let mut writer = Writer::new(&mut bytes)?;
///     writer.add("w", &Dense::from_slice(&[3], values)?)?;
///     writer.finish()?;
///     File::from_bytes(bytes)
/// };
/// let (a, b) = (file(&[1.0, 2.0, 3.0])?, file(&[1.0, 2.5, 3.0])?);
/// let options = DiffOptions::new().values(true);
/// let diff = zt::diff::diff(&a, &b, &options)?;
/// let Change::Values { diff, .. } = &diff.changed[0].changes[0] else { unreachable!() };
/// assert_eq!((diff.different, diff.first), (1, Some(1)));
/// assert_eq!(diff.max_abs.map(|most| most.value), Some(0.5));
/// # Ok::<(), zt::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::Interrupted`], and faults of the files' own attributes. A fault of an object is a
/// difference.
pub fn diff(a: &File, b: &File, options: &DiffOptions<'_>) -> Result<Diff> {
    parallel::on(options.threads, || diff_here(a, b, options))
}

/// The differences between two objects, whatever their names: what [`diff()`] finds between objects of one
/// name.
///
/// # Errors
///
/// [`ErrorKind::Interrupted`]. A fault of an object is a difference.
pub fn diff_tensors(
    a: &Tensor<'_>,
    b: &Tensor<'_>,
    options: &DiffOptions<'_>,
) -> Result<Vec<Change>> {
    let gauge = Gauge::new(options.progress);
    parallel::on(options.threads, || object::changes(a, b, options, &gauge))
}

fn diff_here(a: &File, b: &File, options: &DiffOptions<'_>) -> Result<Diff> {
    let gauge = Gauge::new(options.progress);
    let mut diff = Diff::default();
    if !options.only_values {
        let (of_a, of_b) = (a.attributes()?, b.attributes()?);
        let (of_a, of_b) = (of_a.unwrap_or_default(), of_b.unwrap_or_default());
        diff.attributes = attributes(&of_a, &of_b, |_, _| true)?;
    }

    let one = |a: &Tensor<'_>, b: &Tensor<'_>| object::changes(a, b, options, &gauge);
    let take = |name: &str, found: Result<Vec<Change>, Vec<Change>>| {
        let changes = match found {
            Ok(changes) => changes.iter().map(|change| change.of(name)).collect(),
            Err(faults) => faults,
        };
        if changes.is_empty() {
            diff.same = diff.same.strict_add(1);
            return;
        }
        let name = name.to_owned();
        diff.changed.push(ObjectDiff { name, changes });
    };
    [diff.only_a, diff.only_b] = pairs::each(a, b, options, &gauge, one, take)?;
    Ok(diff)
}

/// The distances of the values of two files' objects. See [`summary()`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Objects that only the first file has, in the order of its data.
    pub only_a: Vec<String>,
    /// Objects that only the second file has, in the order of its data.
    pub only_b: Vec<String>,
    /// Objects of both, in the order of the first one's data.
    pub objects: Vec<ObjectDistance>,
}

/// The distance of two objects of one name.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ObjectDistance {
    /// Their name.
    pub name: String,
    /// The distance, or why there is none: [`Change::Shape`], or [`Change::Unreadable`] for each side that
    /// cannot be read or has no dense value.
    pub distance: Result<Distance, Vec<Change>>,
}

/// How far the dense values of two files' objects are from each other, as [`DiffOptions::only_values`] compares
/// them: types, formats, attributes and the kinds of the files do not matter. Of the options, threads, progress
/// and [`DiffOptions::nameless`] count.
///
/// Both files are read once, on all cores, in pieces, as [`diff()`] does.
///
/// ```
/// use zt::diff::{DiffOptions, summary};
/// use zt::{Dense, File, Writer};
///
/// let file = |values: &[f32]| {
///     let mut bytes = Vec::new();
///     let mut writer = Writer::new(&mut bytes)?;
///     writer.add("w", &Dense::from_slice(&[2], values)?)?;
///     writer.finish()?;
///     File::from_bytes(bytes)
/// };
/// let (a, b) = (file(&[3.0, 4.0])?, file(&[3.0, 4.5])?);
/// let summary = summary(&a, &b, &DiffOptions::new())?;
/// let of_w = summary.objects[0].distance.as_ref().unwrap();
/// assert_eq!((of_w.relative(), of_w.max_abs), (0.1, 0.5));
/// # Ok::<(), zt::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::Interrupted`].
pub fn summary(a: &File, b: &File, options: &DiffOptions<'_>) -> Result<Summary> {
    let options = options.only_values(true);
    parallel::on(options.threads, || {
        let gauge = Gauge::new(options.progress);
        let mut objects = Vec::new();
        let one = |a: &Tensor<'_>, b: &Tensor<'_>| object::distance(a, b, &gauge);
        let take = |name: &str, found: Result<Result<Distance, Change>, Vec<Change>>| {
            objects.push(ObjectDistance {
                name: name.to_owned(),
                distance: found.and_then(|it| it.map_err(|change| vec![change.of(name)])),
            });
        };
        let [only_a, only_b] = pairs::each(a, b, &options, &gauge, one, take)?;
        Ok(Summary { only_a, only_b, objects })
    })
}

/// The differences of the attributes for which `matters` is true.
fn attributes(
    a: &Attributes,
    b: &Attributes,
    matters: impl Fn(Side, &Value) -> bool,
) -> Result<Vec<Change>> {
    let (of_a, of_b) = (keyed(a, Side::A, &matters)?, keyed(b, Side::B, &matters)?);
    let places = of_b.iter().enumerate();
    let places = places.map(|(at, (cbor, _, value))| (&cbor[..], (*value, at)));
    let places: HashMap<&[u8], (&Value, usize)> = places.collect();
    let mut is_in_a = vec![false; of_b.len()];
    let mut changes = Vec::new();
    let mut add = |key: &Value, a: Option<&Value>, b: Option<&Value>| {
        let (key, a, b) = (key.clone(), a.cloned(), b.cloned());
        changes.push(Change::Attribute { key, a, b });
    };
    for (cbor, key, value) in &of_a {
        let other = places.get(&cbor[..]);
        if let Some(place) = other.and_then(|(_, at)| is_in_a.get_mut(*at)) {
            *place = true;
        }
        let other = other.map(|(value, _)| *value);
        if other != Some(value) {
            add(key, Some(value), other);
        }
    }
    for ((_, key, value), _) in of_b.iter().zip(&is_in_a).filter(|(_, is_in_a)| !**is_in_a) {
        add(key, None, Some(value));
    }
    Ok(changes)
}

/// The attributes that matter, each with its key in canonical CBOR. A search for each key among all
/// others would be quadratic.
fn keyed(
    map: &Attributes,
    side: Side,
    matters: impl Fn(Side, &Value) -> bool,
) -> Result<Vec<(Vec<u8>, &Value, &Value)>> {
    let pairs = map.iter().filter(|(key, _)| matters(side, key));
    pairs.map(|(key, value)| Ok((key.to_cbor()?, key, value))).collect()
}

impl Change {
    /// The same change for another object.
    fn of(&self, name: &str) -> Change {
        match self {
            Change::Unreadable { side, error } => {
                Change::Unreadable { side: *side, error: error.clone().of_object(name) }
            }
            change => change.clone(),
        }
    }
}

/// The error as a difference, except an interruption.
fn unless_interrupted(side: Side, error: Error) -> Result<Change> {
    match error.kind() {
        ErrorKind::Interrupted => Err(error),
        _ => Ok(unreadable(side, error)),
    }
}

fn unreadable(side: Side, error: Error) -> Change {
    Change::Unreadable { side, error }
}
