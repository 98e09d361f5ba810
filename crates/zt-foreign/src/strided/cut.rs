//! Elements in row-major order, cut into bands that fit into memory.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

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
        let mut axis = counts.len().saturating_sub(1);
        for (at, count) in counts.iter().enumerate().skip(1).rev() {
            match row.checked_mul(*count).filter(|all| *all <= room) {
                Some(all) => (row, axis) = (all, at.saturating_sub(1)),
                None => break,
            }
        }
        let count = counts.get(axis).copied().unwrap_or(1);
        Cut {
            axis,
            rows: room.checked_div(row).unwrap_or(1).clamp(1, count.max(1)),
            row,
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

    /// The number of bands.
    pub(super) fn bands(&self) -> u64 {
        let planes = self.outer.iter().copied().fold(1, u64::saturating_mul);
        planes.saturating_mul(self.count.div_ceil(self.rows.max(1)))
    }

    /// The band that holds the byte at `offset`.
    pub fn locate(&self, offset: u64) -> Band {
        let plane = offset.checked_div(self.plane).unwrap_or(0);
        let within = offset.checked_rem(self.plane).unwrap_or(0);
        let row = within.checked_div(self.row).unwrap_or(0);
        let first = row.saturating_sub(row.checked_rem(self.rows).unwrap_or(0));
        let rows = self.rows.min(self.count.saturating_sub(first));
        let mut place = vec![first];
        let mut index = plane;
        for count in self.outer.iter().rev() {
            place.push(index.checked_rem(*count).unwrap_or(0));
            index = index.checked_div(*count).unwrap_or(0);
        }
        place.reverse();
        let start = plane.saturating_mul(self.plane);
        Band {
            start: start.saturating_add(first.saturating_mul(self.row)),
            byte_len: rows.saturating_mul(self.row),
            rows,
            place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BAND_MAX, BAND_MIN, share};

    #[test]
    fn a_share_is_a_band_of_some_megabytes() {
        assert!((BAND_MIN..=BAND_MAX).contains(&share()));
    }
}
