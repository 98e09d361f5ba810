//! One tensor of the directory.

use zt::{Error, Span};
use zt_foreign::fields::Record;

use crate::header::GRID;
use crate::violation::{BlockSize, Violation, What};

/// How values are stored. Not ggml's types of these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    F32,
    /// Signed bytes, a scale for each row.
    Q8,
    /// Signed nibbles, the first of two in the lower half, a scale for each block of a row.
    Q4 {
        block_size: u32,
    },
}

/// A tensor that keeps all rules but those that it shares with others.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) shape: Vec<u64>,
    pub(super) storage: Storage,
    pub(super) payload: Span,
    pub(super) scales: Option<Span>,
    /// The last dimension.
    pub(super) columns: u64,
}

/// What is known of any entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw<'r>(pub(super) Record<'r>);

impl Raw<'_> {
    pub(super) fn name_hash(self) -> u64 {
        self.0.u64(0)
    }

    /// The dimensions, as far as there are so many fields.
    pub(super) fn shape(self) -> Vec<u64> {
        let rank = (self.0.u32(12) as usize).min(4);
        let places = (16usize..).step_by(4).take(rank);
        places.map(|at| self.0.u32(at).into()).collect()
    }

    /// The entry, in a file of so many bytes. What strict readers mind goes to `tolerated`.
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
        let columns = shape.last().copied().unwrap_or(1);
        let block_size = record.u32(56);
        let (storage, length, scale_count) = match record.u32(8) {
            1 => {
                for (field, is_set) in [
                    ("scale_offset", record.u64(48) != 0),
                    ("block_size", block_size != 0),
                ] {
                    if is_set {
                        tolerated.push(Violation::Unused { field });
                    }
                }
                (Storage::F32, count.checked_mul(4), None)
            }
            2 => {
                if u64::from(block_size) != columns {
                    let (expected, found) = (BlockSize::Row(columns), block_size);
                    return Err(Violation::BlockSize { expected, found }.into());
                }
                (Storage::Q8, Some(count), count.checked_div(columns))
            }
            3 => {
                let size = u64::from(block_size);
                if block_size == 0 || !size.is_multiple_of(2) || !columns.is_multiple_of(size) {
                    let (expected, found) = (BlockSize::EvenPartOf(columns), block_size);
                    return Err(Violation::BlockSize { expected, found }.into());
                }
                // Even, as the block is.
                (
                    Storage::Q4 { block_size },
                    Some(count / 2),
                    count.checked_div(size),
                )
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
        let payload = within(What::Payload, offset, Some(found), byte_len)?;
        let scales = scale_count.map(|scales| {
            let offset = record.u64(48);
            if offset == 0 {
                return Err(Violation::NoScales.into());
            }
            within(What::Scales, offset, scales.checked_mul(4), byte_len)
        });
        Ok(Entry {
            shape,
            storage,
            payload,
            scales: scales.transpose()?,
            columns,
        })
    }
}

/// The range, if it is one of the file.
fn within(what: What, offset: u64, length: Option<u64>, byte_len: u64) -> Result<Span, Error> {
    let span = length.and_then(|length| Span::new(offset, length));
    let outside = Violation::Range {
        what,
        offset,
        length,
        byte_len,
    };
    let span = span.filter(|span| span.end() <= byte_len);
    span.ok_or_else(|| outside.into())
}
