//! The values that a kind of file forbids, which strict verification looks for.

use std::fmt;

use zt_container::{Blob, BlobReader, Limits, Source};

use crate::cores::progress::Gauge;
use crate::error::{Error, ErrorKind, Result};
use crate::file::File;
use crate::file::value_rule::{Tolerated, ValueRule};

impl Tolerated {
    /// The bytes whose digest differs, or that cannot be read.
    pub(crate) fn check_sums(&self, file: &File, gauge: &Gauge<'_>) -> Result<Vec<Error>> {
        let checked = crate::cores::parallel::map(&self.sums, |sum| {
            let found =
                file.inner.sources.get(sum.source).map_or(Ok(()), |source| {
                    read_all(source, &sum.blob, &file.inner.limits, gauge)
                });
            let blame = |error: Error| match sum.objects.first() {
                Some(name) => error.with_object(name).with_span(sum.blob.span),
                None => error.with_span(sum.blob.span),
            };
            match found.map_err(blame) {
                Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
                found => Ok(found.err()),
            }
        })?;
        Ok(checked.into_iter().flatten().collect())
    }

    /// All problems. The values are read to find theirs.
    pub(crate) fn verify(&self, file: &File, gauge: &Gauge<'_>) -> Result<Vec<Error>> {
        let mut problems = self.problems.clone();
        let checked = crate::cores::parallel::map(&self.values, |(name, role, rule)| {
            check(file, name, role, *rule, gauge)
        })?;
        problems.extend(checked.into_iter().flatten());
        Ok(problems)
    }
}

fn read_all(source: &dyn Source, blob: &Blob, limits: &Limits, gauge: &Gauge<'_>) -> Result<()> {
    let mut reader = BlobReader::new(source, blob, limits)?;
    let mut piece = vec![0; 1 << 20];
    while reader.read(&mut piece)? > 0 {
        gauge.report(0)?;
    }
    Ok(())
}

/// The error for the first value of a component that breaks the rule. A component that cannot be read
/// is reported elsewhere.
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
        let len = match reader.read_elements(&mut piece) {
            Ok(0) | Err(_) => return Ok(None),
            Ok(len) => len,
        };
        let (values, _) = piece.get(..len).unwrap_or_default().as_chunks::<4>();
        let values = values.iter().copied().map(f32::from_le_bytes);
        if let Some((value, position)) =
            values.zip(position..).find(|(value, _)| !rule.allows(*value))
        {
            let fault = ForbiddenValue { position, value, rule };
            let error = Error::new(ErrorKind::Malformed, "value", fault);
            return Ok(Some(error.with_object(name).with_component(role)));
        }
        position = position.strict_add(len as u64 / 4);
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
