//! Rows and columns of zeros.

use zt_container::memory::resize;
use zt_formats::{Scalar, element_count};

use super::Stats;
use crate::cores::progress::Gauge;
use crate::error::Result;
use crate::read::arrays::Array;

/// The rows and the columns of a matrix that have only zeros. Both are 0 for a tensor that is no matrix,
/// or has no other value. The values are read again only if there are zeros enough for one of them.
pub(super) fn rows_and_columns(
    array: &Array<'_>,
    values: &Stats,
    gauge: &Gauge<'_>,
) -> Result<(u64, u64)> {
    let Some((rows, columns)) = matrix(array) else {
        return Ok((0, 0));
    };
    if values.zeros < rows.min(columns) || values.zeros == values.count {
        return Ok((0, 0));
    }
    let mut alive_columns = Vec::new();
    resize(&mut alive_columns, columns)?;
    let (mut dead_rows, mut column, mut is_alive) = (0u64, 0, false);
    array.for_each_piece(|elements| {
        gauge.report(elements.bytes.len() as u64)?;
        elements.scalars(array.tensor.registry())?.for_each(|value| {
            if let Some(alive) = alive_columns.get_mut(column).filter(|_| !is_zero(value)) {
                (*alive, is_alive) = (1u8, true);
            }
            column = column.strict_add(1);
            if column == alive_columns.len() {
                dead_rows = dead_rows.strict_add((!is_alive).into());
                (column, is_alive) = (0, false);
            }
        });
        Ok(())
    })?;
    let dead_columns = alive_columns.iter().filter(|alive| **alive == 0);
    Ok((dead_rows, dead_columns.count() as u64))
}

/// The rows and columns of a tensor of two or more dimensions, and with more than one of each. A sparse
/// object has empty rows by its nature.
pub(super) fn matrix(array: &Array<'_>) -> Option<(u64, u64)> {
    let (rows, rest) = array.tensor.shape().split_first()?;
    let columns = element_count(rest)?;
    (array.part.is_none() && *rows > 1 && columns > 1).then_some((*rows, columns))
}

fn is_zero(value: Scalar) -> bool {
    match value {
        Scalar::Complex64(value) => value.re == 0.0 && value.im == 0.0,
        Scalar::Complex128(value) => value.re == 0.0 && value.im == 0.0,
        value => value.as_f64() == Some(0.0),
    }
}
