//! The dense value of an object, made run by run of its rows and on all cores.

use std::ops::Range;

use zt_formats::{Buffer, Dense, ObjectFormat, Parts, Signature, element_count};

use crate::cores::parallel;
use crate::error::{Error, ErrorKind, Result};
use crate::file::tensor::Tensor;
use crate::read::dense::Value;
use crate::read::dense_reader::Units;
use crate::read::roles::RolesReader;
use crate::read::slice::{row_unit, rows_shape};

/// Bytes of values that a core makes at a time, about. They take it some 100 µs.
///
/// Pays: `zt convert --dense` of 75 MB in groups of 4 bits takes 0.92 of the CPU time that it takes with 64 KiB, and as
/// much as with 16 MiB and with one run.
const RUN: u64 = 1 << 20;

/// Bytes of values that all cores make at a time if the caller wants fewer.
///
/// Pays: nothing on two cores: `zt convert --dense` of 75 MB in groups of 4 bits takes 1.18 of the CPU time that it takes
/// with 1 MiB, and as much as with 128 MiB.
const BATCH: u64 = 16 << 20;

/// An object whose value is several runs of rows. See [`ObjectFormat::is_flat`] for what a row is.
pub(crate) struct Runs<'f> {
    value: Value<'f>,
    rows: u64,
    unit: u64,
    /// Rows of a run, which are whole units.
    per_run: u64,
    /// Bytes of the values of a row.
    row_len: u64,
}

impl<'f> Runs<'f> {
    /// `None` where the array cannot be cut, or is a single run.
    pub(crate) fn of(tensor: &Tensor<'f>, format: &'f dyn ObjectFormat) -> Result<Option<Self>> {
        Ok(Value::of(tensor, format)?.and_then(|value| {
            let shape = rows_shape(tensor, format)?;
            let (rows, row) = shape.split_first()?;
            let unit = row_unit(tensor, format, &shape)?;
            let row_len = element_count(row)?.checked_mul(value.byte_len)?;
            let per_run = RUN.checked_div(row_len)?.max(1);
            let per_run = per_run.checked_next_multiple_of(unit)?;
            // So that the bytes of any of these rows are a number.
            rows.checked_mul(row_len)?;
            (per_run < *rows).then_some(Runs { value, rows: *rows, unit, per_run, row_len })
        }))
    }

    /// The dense value of these parts, all of the object; `None` where runs have no known bytes.
    pub(crate) fn to_dense(&self, parts: &Parts<'_>) -> Result<Option<Dense<'static>>> {
        let Value { tensor, format, .. } = &self.value;
        let blame = |error| tensor.blame_format(error);
        let registry = tensor.registry();
        // Lengths that the file omits are known by now, and runs do not show all faults.
        let mut signature = Signature::of(tensor.object());
        for component in &mut signature.components {
            let elements = parts.get(component.role);
            component.byte_len = elements.map(|elements| elements.bytes.len() as u64);
        }
        format.check(&signature, registry).map_err(blame)?;
        format.check_data(parts).map_err(blame)?;
        let mut out = Buffer::try_zeroed(self.byte_len(0..self.rows))?;
        let chunks = out.chunks_mut(chunk_len(self.byte_len(0..self.per_run)));
        let made = parallel::map_owned(self.split(0..self.rows).zip(chunks).collect(), |work| {
            let (rows, out) = work;
            let rows = format.rows(rows, &mut parts.reader(registry)).map_err(blame)?;
            rows.map(|parts| self.value.make(parts, out)).transpose()
        })?;
        made.into_iter().collect::<Option<()>>().map(|()| self.value.dense(out)).transpose()
    }

    /// These rows, run by run.
    fn split(&self, rows: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let per_run = self.per_run;
        std::iter::successors(Some(rows.start), move |start| start.checked_add(per_run))
            .take_while(move |start| *start < rows.end)
            .map(move |start| start..start.strict_add(per_run).min(rows.end))
    }

    fn byte_len(&self, rows: Range<u64>) -> u64 {
        rows.end.strict_sub(rows.start).strict_mul(self.row_len)
    }
}

/// A length of chunks. One that is longer than memory gives a single chunk.
fn chunk_len(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

/// Makes the value of an object run by run, from components that are read from front to back and
/// verified.
pub(crate) struct RunReader<'f> {
    runs: Runs<'f>,
    roles: RolesReader<'f>,
    /// The next row.
    next: u64,
}

impl<'f> RunReader<'f> {
    /// The reader, and the values of the first run. `None` where there are no runs, or the file omits the
    /// length of a component.
    pub(crate) fn new(
        tensor: &Tensor<'f>,
        format: &'f dyn ObjectFormat,
    ) -> Result<Option<(Self, Buffer)>> {
        let signature = Signature::of(tensor.object());
        let mut components = signature.components.iter();
        let is_known = components.all(|component| component.byte_len.is_some());
        let Some(runs) = Runs::of(tensor, format)?.filter(|_| is_known) else {
            return Ok(None);
        };
        let mut reader = RunReader { runs, roles: RolesReader::in_order(tensor), next: 0 };
        // The first run tells whether runs have known bytes.
        let Some(parts) = reader.parts(0..reader.runs.per_run)? else {
            return Ok(None);
        };
        let mut first = Buffer::try_zeroed(reader.runs.byte_len(0..reader.runs.per_run))?;
        let made = reader.decode(parts, &mut first);
        made.map_err(|error| reader.explained(error))?;
        Ok(Some((reader, first)))
    }

    /// A wrong digest is reported before the fault that it explains (§6).
    fn explained(&mut self, error: Error) -> Error {
        if error.kind() != ErrorKind::Malformed {
            return error;
        }
        let digest = self.roles.finish().err();
        let digest = digest.filter(|digest| digest.kind() == ErrorKind::DigestMismatch);
        digest.unwrap_or(error)
    }

    fn next_parts(&mut self, rows: u64) -> Result<Vec<Parts<'f>>> {
        let end = self.next.strict_add(rows);
        match self.parts(self.next..end)? {
            Some(parts) => Ok(parts),
            // The first run had them, so reading the whole finds the error.
            None => match self.runs.value.tensor.to_dense() {
                Ok(_) => Err(Error::out_of_order()),
                Err(error) => Err(error),
            },
        }
    }

    /// Reads the next rows, run by run; `None` where they have no known bytes.
    fn parts(&mut self, rows: Range<u64>) -> Result<Option<Vec<Parts<'f>>>> {
        let mut read = Vec::new();
        for run in self.runs.split(rows.clone()) {
            let parts = self.runs.value.format.rows(run, &mut self.roles);
            match parts.map_err(|error| self.roles.explained(error))? {
                Some(parts) => read.push(parts),
                None => return Ok(None),
            }
        }
        self.next = rows.end;
        Ok(Some(read))
    }

    /// Makes the values of these runs, which fill `out`.
    fn decode(&self, parts: Vec<Parts<'f>>, out: &mut [u8]) -> Result<()> {
        let chunks = out.chunks_mut(chunk_len(self.runs.byte_len(0..self.runs.per_run)));
        let decode = |(parts, out): (Parts<'f>, &mut [u8])| self.runs.value.make(parts, out);
        parallel::map_owned(parts.into_iter().zip(chunks).collect(), decode).map(drop)
    }
}

impl Units for RunReader<'_> {
    fn element_len(&self) -> usize {
        self.runs.value.dtype.byte_len()
    }

    fn next(&self, room: u64) -> u64 {
        let runs = &self.runs;
        let left = runs.rows.strict_sub(self.next);
        let fits = |byte_len: u64| {
            let units = byte_len.strict_div(runs.row_len).strict_div(runs.unit);
            left.min(units.strict_mul(runs.unit))
        };
        let (straight, batch) = (fits(room), fits(BATCH));
        let is_straight = straight >= batch && straight > 0;
        let count = if is_straight { straight } else { batch.max(runs.per_run).min(left) };
        runs.byte_len(0..count)
    }

    fn make(&mut self, out: &mut [u8]) -> Result<()> {
        let rows = (out.len() as u64).strict_div(self.runs.row_len);
        let made = self.next_parts(rows).and_then(|parts| self.decode(parts, out));
        made.map_err(|error| self.explained(error))
    }

    fn finish(&mut self) -> Result<()> {
        self.roles.finish()
    }
}
