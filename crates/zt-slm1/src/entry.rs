//! A directory entry: one tensor.

use zt::{Error, Span};
use zt_foreign::fields::Record;

use crate::header::GRID;
use crate::violation::{Violation, What};

/// The quantized values of a tensor. The types differ from ggml's types of the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Groups {
    /// 8 for signed bytes; 4 for signed nibbles, the first of two in the lower half.
    pub(super) bits: u32,
    /// Values with one scale: a row, or a part of a row.
    pub(super) len: u64,
    pub(super) scales: Span,
}

/// A tensor that keeps all rules, except for overlaps with other tensors.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) shape: Vec<u64>,
    pub(super) payload: Span,
    /// `None` for f32.
    pub(super) groups: Option<Groups>,
}

/// The bytes of an entry, which may be invalid.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw<'r>(pub(super) Record<'r>);

impl Raw<'_> {
    pub(super) fn name_hash(self) -> u64 {
        self.0.u64(0)
    }

    /// The dimensions, at most as many as there are fields.
    pub(super) fn shape(self) -> Vec<u64> {
        let rank = (self.0.u32(12) as usize).min(4);
        let places = (16usize..).step_by(4).take(rank);
        places.map(|at| self.0.u32(at).into()).collect()
    }

    /// The entry, in a file of `byte_len` bytes. Faults that only strict readers refuse go to
    /// `tolerated`.
    pub(super) fn check(
        self,
        byte_len: u64,
        tolerated: &mut Vec<Violation>,
    ) -> Result<Entry, Error> {
        let record = self.0;
        let rank = record.u32(12);
        if !(1..=4).contains(&rank) {
            return Err(Violation::Rank { rank }.into());
        }
        let shape = self.shape();
        if let Some(dim) = shape.iter().position(|dim| *dim == 0) {
            return Err(Violation::Dimension { dim }.into());
        }
        let count = zt::formats::element_count(&shape).ok_or(Violation::Overflow)?;
        let columns = *shape.last().ok_or(Violation::Rank { rank })?;
        let block_size = record.u32(56);
        let (bits, group_len, length) = match record.u32(8) {
            1 => {
                for (field, is_set) in
                    [("scale_offset", record.u64(48) != 0), ("block_size", block_size != 0)]
                {
                    if is_set {
                        tolerated.push(Violation::Unused { field });
                    }
                }
                (32, None, count.checked_mul(4))
            }
            2 => {
                if u64::from(block_size) != columns {
                    let found = block_size;
                    return Err(Violation::RowLen { columns, found }.into());
                }
                (8, Some(columns), Some(count))
            }
            3 => {
                let size = u64::from(block_size);
                if block_size == 0 || !size.is_multiple_of(2) || !columns.is_multiple_of(size) {
                    let found = block_size;
                    return Err(Violation::PartLen { columns, found }.into());
                }
                // The count is even, because the block size is.
                (4, Some(size), Some(count / 2))
            }
            code => return Err(Violation::DType { code }.into()),
        };
        if record.bytes(60) != [0; 4] {
            tolerated.push(Violation::Unused { field: "reserved" });
        }
        let expected = length.ok_or(Violation::Overflow)?;
        let (offset, found) = (record.u64(32), record.u64(40));
        if found != expected {
            return Err(Violation::Length { expected, found }.into());
        }
        if !offset.is_multiple_of(GRID) {
            let field = "byte_offset";
            tolerated.push(Violation::Misaligned { field, offset });
        }
        let payload = What::Payload.within(offset, Some(found), byte_len)?;
        let groups = group_len.map(|len| {
            let offset = record.u64(48);
            if offset == 0 {
                return Err(Error::from(Violation::NoScales));
            }
            let length = count.checked_div(len).and_then(|n| n.checked_mul(4));
            let scales = What::Scales.within(offset, length, byte_len)?;
            Ok(Groups { bits, len, scales })
        });
        Ok(Entry { shape, payload, groups: groups.transpose()? })
    }
}
