//! A view, cut into bands that fit into memory.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use zt::{Source, Span};

use super::bands::slots;
use super::step::Step;
use super::view::View;

/// Bytes of a band where bytes are fetched by position: runs of a column as long as can be.
const BAND: u64 = 32 << 20;
/// Of all bands, as long as they need not be smaller than [`BAND_MIN`].
const BANDS: u64 = 128 << 20;
const BAND_MIN: u64 = 4 << 20;
/// Where bytes are resident, a band need only be so high that no cache line is fetched twice.
const RESIDENT_BAND: u64 = 1 << 20;
const CACHE_LINE: u64 = 64;
/// Where bytes have to be made in order, a band is a pass over all of them.
const SEQUENTIAL_BAND: u64 = 256 << 20;

/// How a view is cut into bands: each is `rows` of one of the dimensions, and all of those within.
#[derive(Debug, Clone, Copy)]
pub(super) struct BandShape {
    pub(super) axis: usize,
    pub(super) rows: u64,
    /// Bytes of one row.
    pub(super) row: u64,
    /// Bytes of all rows.
    pub(super) plane: u64,
}

/// A part of a view.
#[derive(Debug, Clone, Copy)]
pub(super) struct Band {
    /// Its first byte, of those of the view.
    pub(super) start: u64,
    pub(super) byte_len: u64,
    pub(super) rows: u64,
    /// Where in the base its first element is.
    pub(super) base: u64,
}

impl BandShape {
    pub(super) fn of(view: &View, base: &dyn Source) -> Self {
        let room = if base.is_sequential() {
            SEQUENTIAL_BAND
        } else if base
            .slice(Span::new(view.offset, 1).unwrap_or_default())
            .is_some()
        {
            RESIDENT_BAND
        } else {
            let share = BANDS.checked_div(slots() as u64);
            share.unwrap_or(BAND).clamp(BAND_MIN, BAND)
        };
        // From the innermost dimension outwards, as long as all of it fits.
        let mut row = view.run;
        let mut axis = view.dimensions.len().saturating_sub(1);
        let mut inner = view.dimensions.iter().enumerate().skip(1).rev();
        while let Some((at, dimension)) = inner.next()
            && let Some(all) = row.checked_mul(dimension.count).filter(|all| *all <= room)
        {
            row = all;
            axis = at.saturating_sub(1);
        }
        let count = view
            .dimensions
            .get(axis)
            .map_or(1, |dimension| dimension.count);
        let line = CACHE_LINE.checked_div(view.run).unwrap_or(1);
        let high = row.checked_mul(line).is_some_and(|bytes| bytes <= BAND);
        let fits = room.checked_div(row).unwrap_or(1);
        let rows = fits.max(if high { line } else { 1 }).clamp(1, count.max(1));
        BandShape {
            axis,
            rows,
            row,
            plane: row.saturating_mul(count),
        }
    }

    /// Bands of the view.
    pub(super) fn bands(&self, view: &View) -> u64 {
        let band = self.rows.saturating_mul(self.row).max(1);
        let planes = view.byte_len.checked_div(self.plane).unwrap_or(0);
        planes.saturating_mul(self.plane.div_ceil(band))
    }

    /// The dimensions of a band of so many rows, as steps in the base and in the band; in the order in which
    /// the bytes lie in the base.
    pub(super) fn steps(&self, view: &View, rows: u64) -> Vec<Step> {
        let mut to = view.run;
        let mut steps = Vec::new();
        let inner = view.dimensions.iter().enumerate().skip(self.axis);
        for (axis, dimension) in inner.rev() {
            let count = if axis == self.axis {
                rows
            } else {
                dimension.count
            };
            steps.push(Step {
                count,
                from: dimension.stride,
                to,
            });
            to = to.saturating_mul(count);
        }
        steps.reverse();
        steps.sort_by_key(|step| std::cmp::Reverse(step.from));
        steps
    }

    /// The band that holds the byte at `offset`.
    pub(super) fn band(&self, view: &View, offset: u64) -> Band {
        let plane = offset.checked_div(self.plane).unwrap_or(0);
        let within = offset.checked_rem(self.plane).unwrap_or(0);
        let row = within.checked_div(self.row).unwrap_or(0);
        let first = row.saturating_sub(row.checked_rem(self.rows).unwrap_or(0));
        let outer = view.dimensions.get(..self.axis).unwrap_or_default();
        let here = view.dimensions.get(self.axis);
        let (count, stride) = here.map_or((1, 0), |axis| (axis.count, axis.stride));
        let rows = self.rows.min(count.saturating_sub(first));
        let mut base = view.offset.saturating_add(first.saturating_mul(stride));
        let mut index = plane;
        for dimension in outer.iter().rev() {
            let position = index.checked_rem(dimension.count).unwrap_or(0);
            index = index.checked_div(dimension.count).unwrap_or(0);
            base = base.saturating_add(position.saturating_mul(dimension.stride));
        }
        let start = plane.saturating_mul(self.plane);
        Band {
            start: start.saturating_add(first.saturating_mul(self.row)),
            byte_len: rows.saturating_mul(self.row),
            rows,
            base,
        }
    }
}
