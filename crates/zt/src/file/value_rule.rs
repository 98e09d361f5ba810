//! Faults that readers of other kinds tolerate, and that strict verification reports.

use std::fmt;

use crate::cores::progress::Gauge;
use crate::error::{Error, ErrorKind, Result};
use crate::file::{File, Warning};

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
    fn allows(self, value: f32) -> bool {
        value.is_finite() && (self == ValueRule::Finite || value > 0.0)
    }
}

/// What was found while a file was opened, and what is left to be looked at.
#[derive(Default)]
pub(crate) struct Tolerated {
    pub(crate) problems: Vec<Error>,
    /// Objects, roles, rules.
    pub(crate) values: Vec<(String, &'static str, ValueRule)>,
}

impl Tolerated {
    /// What was found, for those who do not mind.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Warning> {
        self.problems.iter().map(|error| Warning {
            object: error.object().map(str::to_owned),
            component: error.component().map(str::to_owned),
            ..Warning::new(error.code(), error.message())
        })
    }

    /// All problems, those of the values included, which are read for it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Interrupted`].
    pub(crate) fn verify(&self, file: &File, gauge: &Gauge<'_>) -> Result<Vec<Error>> {
        let mut problems = self.problems.clone();
        let checked = crate::cores::parallel::map(&self.values, |(name, role, rule)| {
            check(file, name, role, *rule, gauge)
        })?;
        problems.extend(checked.into_iter().flatten());
        Ok(problems)
    }
}

/// The first value of a component that breaks the rule. A component that cannot be read is a
/// problem already, and reported as such.
fn check(
    file: &File,
    name: &str,
    role: &str,
    rule: ValueRule,
    gauge: &Gauge<'_>,
) -> Result<Option<Error>> {
    let Ok(mut reader) = file.tensor(name).and_then(|tensor| tensor.reader(role)) else {
        return Ok(None);
    };
    // A multiple of four, so that no piece ends within a value.
    let mut piece = vec![0; 64 << 10];
    let mut position = 0u64;
    loop {
        let len = match reader.read(&mut piece) {
            Ok(0) | Err(_) => return Ok(None),
            Ok(len) => len,
        };
        let (values, _) = piece.get(..len).unwrap_or_default().as_chunks::<4>();
        let values = values.iter().copied().map(f32::from_le_bytes);
        if let Some((value, position)) = values
            .zip(position..)
            .find(|(value, _)| !rule.allows(*value))
        {
            let fault = ForbiddenValue {
                position,
                value,
                rule,
            };
            let error = Error::new(ErrorKind::Malformed, "value", fault);
            return Ok(Some(error.with_object(name).with_component(role)));
        }
        position = position.saturating_add(len as u64 / 4);
        gauge.report(len as u64)?;
    }
}

/// A number that its kind of file forbids.
#[derive(Debug)]
struct ForbiddenValue {
    position: u64,
    value: f32,
    rule: ValueRule,
}

impl std::error::Error for ForbiddenValue {}

impl fmt::Display for ForbiddenValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, position) = (self.value, self.position);
        let expected = match self.rule {
            ValueRule::Finite => "finite",
            ValueRule::Positive => "finite and greater than zero",
        };
        write!(f, "value {position} is {value}, and has to be {expected}")
    }
}
