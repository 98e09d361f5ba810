//! What a page shows, as a value.

use serde::{Serialize, Serializer};
use zt::stats::{BlockKind, Blocks, Bound, Finite, Histogram, ObjectStats, Quantized, Sketch};

/// What a page shows of one file, or of two.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// The file, or the two that are compared.
    pub files: Vec<FileSummary>,
    /// The objects in the order of the data; of two files first all of the first file, then the objects that only the second has.
    pub objects: Vec<Object>,
    /// Whether the values are a sample of all.
    pub is_sample: bool,
}

/// Totals of a file, and what verification found.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct FileSummary {
    /// Its path or name.
    pub path: String,
    /// Its kind: `zt`, `gguf`, ...
    pub kind: String,
    /// Its length in bytes.
    pub byte_len: u64,
    /// Objects, faulty ones included.
    pub objects: u64,
    /// Elements of all shapes.
    pub parameters: u64,
    /// Decoded bytes.
    pub decoded: u64,
    /// Stored bytes.
    pub stored: u64,
    /// Keys and values of its attributes, as text. [`Report::of`] leaves them out.
    pub attributes: Vec<(String, String)>,
    /// Whether all bytes were read and checked, and not only the headers.
    pub is_verified: bool,
    /// Components without a digest that was checked.
    pub unverified: u64,
    /// Faults.
    pub problems: Findings,
    /// What is no fault.
    pub warnings: Findings,
    /// For a delta, what its header has of the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<DeltaSummary>,
}

/// Objects of a delta and of its base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeltaSummary {
    /// Objects of the base.
    pub base: u64,
    /// Objects of the base that changed.
    pub changed: u64,
    /// Objects of the result that the delta has as a whole.
    pub whole: u64,
    /// Objects of the base that the result does not have.
    pub removed: u64,
}

/// The first findings of a kind.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Findings {
    /// All of them.
    pub count: u64,
    /// The first hundred.
    pub first: Vec<Finding>,
}

/// A fault or a warning.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Its stable code.
    pub code: &'static str,
    /// What is wrong, and where.
    pub message: String,
}

/// An object of the file; of two files the second one's, unless only the first has it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Object {
    /// Its name.
    pub name: String,
    /// The type of its values: `f32`, `q4_0`.
    pub value_type: String,
    /// How its components make up its value: `dense`, `sparse_csr`, ...
    pub format: String,
    /// The encoding of its largest component: `raw` or `zstd`.
    pub encoding: String,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Decoded bytes of all components.
    pub decoded: u64,
    /// Stored bytes of all components.
    pub stored: u64,
    /// Its values; `None` if they cannot be read.
    pub values: Option<ObjectStats>,
    /// Why its values cannot be read, and what is unusual in them.
    pub problems: Vec<String>,
    /// The histogram in the first of two files.
    pub before: Option<Histogram>,
    /// What changed between two files.
    pub change: Option<Change>,
    /// For an object of a delta, what it changes.
    pub delta: Option<Delta>,
}

/// What an object of a delta changes, as far as that is known without the base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Delta {
    /// The name in the base, if it is another one.
    pub base: Option<String>,
    /// Whether the attributes change.
    pub attributes: bool,
    /// The components that change.
    pub roles: Vec<String>,
    /// Stretches of 131 072 values: how many have a changed value, and how many there are.
    pub stretches: Option<[u64; 2]>,
}

impl Object {
    pub(crate) fn sketch(&self) -> Option<&Sketch> {
        self.values.as_ref()?.sketch.as_ref()
    }
}

/// How an object of the second file differs from the first one's.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// Whether both have the object, and their values could be compared.
    pub status: Status,
    /// The norm of the difference over the norm of the first values.
    pub relative: Option<f64>,
    /// The largest difference.
    pub max_abs: Option<f64>,
    /// The cosine of the angle between both values.
    pub cosine: Option<f64>,
    /// The number of different values.
    pub different: u64,
    /// The norm of the first file's finite values.
    pub norm: f64,
}

/// Which of two files has an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Status {
    /// Both, with equal values.
    #[default]
    Same,
    /// Both, with other values.
    Changed,
    /// Only the second.
    Added,
    /// Only the first.
    Removed,
    /// Both, but their values cannot be compared: another shape, or an object that cannot be read.
    Incomparable,
    /// Both, with values that were not read: [`ReportOptions::headers`](crate::ReportOptions::headers).
    Unread,
}

/// A bound, as a number that a script reads exactly, or else as text.
struct Exact(Bound);

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const EXACT: i128 = 1 << 53;
        match self.0 {
            Bound::Integer(value) if !(-EXACT..=EXACT).contains(&value) => {
                serializer.collect_str(&value)
            }
            Bound::Integer(value) => serializer.serialize_i128(value),
            Bound::Real(value) => serializer.serialize_f64(value),
        }
    }
}

/// The objects of a page as columns: a key for each object would take more bytes than its values.
#[derive(Serialize)]
pub(crate) struct Columns<'r> {
    name: Vec<&'r str>,
    r#type: Vec<&'r str>,
    format: Vec<&'r str>,
    encoding: Vec<&'r str>,
    shape: Vec<&'r [u64]>,
    decoded: Vec<u64>,
    stored: Vec<u64>,
    /// `count`, `zeros`, `nan`, `inf`, `dead_rows`, `dead_columns`; `null` where values cannot be read.
    counts: Vec<Option<[u64; 6]>>,
    /// `min`, `max`, `mean`, `std`; `null` where no value is finite.
    finite: Vec<Option<(Exact, Exact, f64, f64)>>,
    problems: Vec<&'r [String]>,
    /// Empty for one file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    change: Vec<Change>,
}

impl<'r> Columns<'r> {
    pub(crate) fn of(objects: &'r [Object], names: Vec<&'r str>) -> Self {
        let stats = || objects.iter().map(|it| it.values.as_ref());
        let counts = |it: &ObjectStats| {
            let values = &it.values;
            [values.count, values.zeros, values.nan, values.inf, it.dead_rows, it.dead_columns]
        };
        Columns {
            name: names,
            r#type: objects.iter().map(|it| &*it.value_type).collect(),
            format: objects.iter().map(|it| &*it.format).collect(),
            encoding: objects.iter().map(|it| &*it.encoding).collect(),
            shape: objects.iter().map(|it| &*it.shape).collect(),
            decoded: objects.iter().map(|it| it.decoded).collect(),
            stored: objects.iter().map(|it| it.stored).collect(),
            counts: stats().map(|it| it.map(counts)).collect(),
            finite: stats().map(|it| it?.values.finite.map(finite)).collect(),
            problems: objects.iter().map(|it| &*it.problems).collect(),
            change: objects.iter().filter_map(|it| it.change).collect(),
        }
    }
}

/// As `[status, relative, max_abs, cosine, different, norm]`.
impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Change { status, relative, max_abs, cosine, different, norm } = self;
        (status, relative, max_abs, cosine, different, norm).serialize(serializer)
    }
}

/// A histogram as `[start, width, counts...]`.
pub(crate) struct Bins<'r>(pub(crate) &'r Histogram);

impl Serialize for Bins<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Histogram { start, width, counts } = self.0;
        (start, width, counts).serialize(serializer)
    }
}

/// Levels, and the minimum, the maximum, the mean and the deviation of the scales.
#[derive(Serialize)]
pub(crate) struct Levels<'r>(Bins<'r>, Option<(Exact, Exact, f64, f64)>);

impl<'r> Levels<'r> {
    pub(crate) fn of(quantized: &'r Quantized) -> Self {
        Levels(Bins(&quantized.levels), quantized.scales.finite.map(finite))
    }
}

const fn finite(it: Finite) -> (Exact, Exact, f64, f64) {
    (Exact(it.min), Exact(it.max), it.mean, it.std)
}

/// Blocks as `[rows, columns, kind, low, high, base64]`. A byte `b` below 255 stands for
/// `low + (high - low) * b / 254`; 255 is not finite.
pub(crate) struct Picture<'r>(pub(crate) &'r Blocks);

impl Serialize for Picture<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use base64::Engine;
        let blocks = self.0;
        let finite = || blocks.values.iter().copied().filter(|it| it.is_finite());
        let low = finite().reduce(f32::min).unwrap_or_default();
        let high = finite().reduce(f32::max).unwrap_or_default();
        let range = f64::from(high) - f64::from(low);
        let byte = |value: &f32| {
            if !value.is_finite() {
                return u8::MAX;
            }
            let part = (f64::from(*value) - f64::from(low)) / range;
            // A range of 0 gives NaN, which becomes 0.
            #[expect(clippy::cast_possible_truncation, reason = "between 0 and 254")]
            let byte = (part * 254.0).round() as u8;
            byte
        };
        let bytes: Vec<u8> = blocks.values.iter().map(byte).collect();
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        let Blocks { rows, columns, kind, .. } = blocks;
        let kind = match kind {
            BlockKind::Element => "element",
            BlockKind::Density => "density",
            _ => "magnitude",
        };
        (rows, columns, kind, low, high, text).serialize(serializer)
    }
}
