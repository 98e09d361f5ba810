//! What readers of other kinds do not check, and verification does.

use zt_container::Blob;

use crate::error::Error;
use crate::file::warning::Warning;

/// A rule for the numbers of an f32 component that its kind of file has and its object format does
/// not. See [`FileBuilder::strict_values`](crate::foreign::FileBuilder::strict_values).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueRule {
    /// Neither infinite nor NaN.
    Finite,
    /// Finite and greater than zero.
    Positive,
}

impl ValueRule {
    pub(crate) fn allows(self, value: f32) -> bool {
        value.is_finite() && (self == ValueRule::Finite || value > 0.0)
    }
}

/// Bytes with a digest that belong to several objects, or only in part to one. See
/// [`FileBuilder::sum`](crate::foreign::FileBuilder::sum).
pub(crate) struct Sum {
    pub(crate) objects: Vec<String>,
    pub(crate) source: usize,
    pub(crate) blob: Blob,
}

/// Faults that were found while a file was opened, and values that only strict verification checks. Every
/// verification compares the sums.
#[derive(Default)]
pub(crate) struct Tolerated {
    pub(crate) problems: Vec<Error>,
    /// Objects, roles, rules.
    pub(crate) values: Vec<(String, &'static str, ValueRule)>,
    pub(crate) sums: Vec<Sum>,
}

impl Tolerated {
    /// The problems as warnings.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Warning> {
        self.problems.iter().map(Warning::from)
    }
}
