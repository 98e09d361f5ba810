//! Elements in row-major order, cut into bands that fit into memory.

use super::bands::slots;

/// The bytes of all bands that are held at a time, unless a band would be smaller than [`BAND_MIN`].
pub(super) const BANDS: u64 = 128 << 20;
const BAND_MIN: u64 = 4 << 20;
/// The most bytes of a band that is read by position. Long bands give long runs of a column.
pub(super) const BAND_MAX: u64 = 32 << 20;
/// The bytes of a band of a sequential base: each band is a pass over all of its bytes.
pub const SEQUENTIAL_BAND: u64 = 256 << 20;

/// The bytes of a band if every thread may hold one.
pub fn share() -> u64 {
    let share = BANDS.checked_div(slots() as u64);
    share.unwrap_or(BAND_MAX).clamp(BAND_MIN, BAND_MAX)
}

/// How elements are cut into bands: each has `rows` of one dimension, and all inner dimensions.
#[derive(Debug, Clone)]
pub struct Cut {
    /// The dimension that is cut.
    pub axis: usize,
    /// Rows of that dimension in a band.
    pub rows: u64,
    /// Bytes of one row.
    pub row: u64,
    /// Bytes of all rows.
    plane: u64,
    /// The counts of the outer dimensions, outermost first.
    outer: Vec<u64>,
    /// Rows of the dimension that is cut.
    count: u64,
}

/// One band of the elements.
#[derive(Debug, Clone)]
pub struct Band {
    /// The offset of its first byte in the elements.
    pub start: u64,
    /// Its bytes.
    pub byte_len: u64,
    /// Its rows. The last band may have fewer than the others.
    pub rows: u64,
    /// The index of its first row, from the outermost dimension to the one that is cut.
    pub place: Vec<u64>,
}

impl Cut {
    /// Bands of at most `room` bytes, or of one row if that is longer. `run` is the bytes of an
    /// element.
    pub fn within(counts: &[u64], run: u64, room: u64) -> Self {
        // A row is as many inner dimensions as fit.
        let mut row = run;
        let mut axis = counts.len().saturating_sub(1); // A single element has no axis.
        for (at, count) in counts.iter().enumerate().skip(1).rev() {
            match row.checked_mul(*count).filter(|all| *all <= room) {
                Some(all) => (row, axis) = (all, at.strict_sub(1)),
                None => break,
            }
        }
        let count = counts.get(axis).copied().unwrap_or(1);
        Cut {
            axis,
            rows: room.checked_div(row).unwrap_or(1).clamp(1, count.max(1)),
            row,
            // Saturates only if another dimension is 0: then no band is located.
            plane: row.saturating_mul(count),
            outer: counts.get(..axis).unwrap_or_default().to_vec(),
            count,
        }
    }

    /// The same cut with other rows per band.
    pub fn with_rows(self, rows: u64) -> Self {
        let rows = rows.clamp(1, self.count.max(1));
        Cut { rows, ..self }
    }

    /// The number of bands, or 2^64 - 1 if it is larger: it is only compared with a limit.
    pub(super) fn bands(&self) -> u64 {
        let planes = self.outer.iter().copied().fold(1, u64::saturating_mul);
        planes.saturating_mul(self.count.div_ceil(self.rows.max(1)))
    }

    /// The band that holds the byte at `offset`, which the elements have.
    pub fn locate(&self, offset: u64) -> Band {
        let (plane, within) = divided(offset, self.plane);
        let (row, _) = divided(within, self.row);
        let (_, above) = divided(row, self.rows);
        let first = row.strict_sub(above);
        let rows = self.rows.min(self.count.strict_sub(first));
        let mut place = vec![first];
        let mut index = plane;
        for count in self.outer.iter().rev() {
            let at;
            (index, at) = divided(index, *count);
            place.push(at);
        }
        place.reverse();
        Band {
            start: plane.strict_mul(self.plane).strict_add(first.strict_mul(self.row)),
            byte_len: rows.strict_mul(self.row),
            rows,
            place,
        }
    }
}

/// The quotient and the remainder. `by` is a count or a length of elements. One of them is read, so
/// `by` is not 0.
#[expect(clippy::arithmetic_side_effects, reason = "`by` is not 0")]
pub(crate) const fn divided(number: u64, by: u64) -> (u64, u64) {
    (number / by, number % by)
}

#[cfg(test)]
mod tests {
    use super::{BAND_MAX, BAND_MIN, share};

    #[test]
    fn a_share_is_a_band_of_some_megabytes() {
        assert!((BAND_MIN..=BAND_MAX).contains(&share()));
    }
}
