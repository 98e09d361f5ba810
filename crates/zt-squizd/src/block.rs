//! One tensor: a magic, a shape, packed values.

use zt::formats::dense_byte_len;
use zt::{DType, Error, Result, Source, Span};
use zt_foreign::fields::{Fields, Record};

use crate::header::Flags;
use crate::violation::Violation;

/// The most dimensions that a block may say it has.
pub(super) const RANK_MAX: u32 = 64;

/// The most bytes before the values: magic, dtype, rank and as many dimensions as there may be.
const HEAD_MAX: usize = 12 + 4 * RANK_MAX as usize;

/// A tensor block, of which the values are somewhere in the file.
#[derive(Debug)]
pub(super) struct Block {
    /// Of an ASTC image: height and width. Of a TCA block: rows, and bits of a bitmap row.
    pub(super) shape: Vec<u64>,
    pub(super) encoding: Encoding,
    /// The whole block, magic included.
    pub(super) span: Span,
    /// What follows the block's own fields.
    pub(super) payload: Span,
}

/// How the values of a block are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// `NPCL`: as they are.
    Plain(DType),
    /// `INT4`: two's complement, the first of two in the lower half.
    Int4,
    /// `INT2`: unsigned, the first of four in the lowest bits.
    Int2 { sub_block_len: u32 },
    /// `ASTW`: an ASTC bit stream.
    Astc { footprint: u32 },
    /// `TCAW`: a bitmap, then values that nothing says how to decode.
    Tca { bitmap_len: u64 },
}

impl Block {
    pub(super) const fn is_quantized(&self) -> bool {
        matches!(self.encoding, Encoding::Int4 | Encoding::Int2 { .. })
    }

    /// The number of values that the shape has. Blocks whose shape has no such number are refused.
    pub(super) fn element_count(&self) -> u64 {
        zt::formats::element_count(&self.shape).unwrap_or(0)
    }

    /// The block at `offset`, which must end by `end`; `None` where no magic of a block is there.
    ///
    /// # Errors
    ///
    /// A block that no flag of the file allows, or whose shape or size cannot be.
    pub(super) fn read(
        source: &dyn Source,
        offset: u64,
        end: u64,
        flags: Flags,
    ) -> Result<Option<Self>> {
        let mut head = [0; HEAD_MAX];
        let available = end.saturating_sub(offset);
        let len = usize::try_from(available).unwrap_or(usize::MAX);
        let Some(head) = head.get_mut(..len.min(HEAD_MAX)) else {
            return Ok(None);
        };
        source.read_at(offset, head)?;
        let Some((magic, flag)) = known(head) else {
            return Ok(None);
        };
        if !flags.has(flag) {
            return Err(Violation::BlockWithoutFlag { magic }.at(offset));
        }
        let fields = Head(Fields(head));
        let parsed = match &magic {
            b"NPCL" => plain(fields),
            b"INT4" => int4(fields),
            b"INT2" => int2(fields),
            b"ASTW" => astc(fields),
            _ => tca(fields, available),
        };
        let parsed = parsed.map_err(|violation| violation.at(offset))?;
        let too_long = Violation::BlockTooLong {
            magic,
            needed: parsed.head_len.checked_add(parsed.payload_len),
            available,
        };
        let start = offset.checked_add(parsed.head_len);
        let payload = start.and_then(|start| Span::new(start, parsed.payload_len));
        let payload = payload.filter(|payload| payload.end() <= end);
        let payload = payload.ok_or_else(|| too_long.at(offset))?;
        Ok(Some(Block {
            shape: parsed.shape,
            encoding: parsed.encoding,
            span: Span::between(offset, payload.end()).unwrap_or_default(),
            payload,
        }))
    }
}

/// A magic and the flag that allows it; plain blocks need none.
fn known(head: &[u8]) -> Option<([u8; 4], Flags)> {
    let magic = *head.first_chunk()?;
    let flag = match &magic {
        b"NPCL" => Flags(0),
        b"INT4" => Flags::INT4,
        b"INT2" => Flags::INT2,
        b"ASTW" => Flags::ASTC,
        b"TCAW" => Flags::TCA_TBE,
        _ => return None,
    };
    Some((magic, flag))
}

/// What the fields of a block say.
struct Parsed {
    shape: Vec<u64>,
    encoding: Encoding,
    head_len: u64,
    payload_len: u64,
}

/// The fields of a block as far as there are bytes.
#[derive(Clone, Copy)]
struct Head<'h>(Fields<'h>);

impl Head<'_> {
    fn u32(self, at: usize) -> Result<u32, Violation> {
        let Head(fields) = self;
        let available = fields.0.len() as u64;
        fields.u32(at).ok_or(Violation::BlockCut { available })
    }

    /// Rows and columns, which three of the five begin with.
    fn matrix(self) -> Result<(u64, u64), Violation> {
        Ok((self.u32(4)?.into(), self.u32(8)?.into()))
    }
}

fn plain(fields: Head<'_>) -> Result<Parsed, Violation> {
    let code = fields.u32(4)?;
    let dtype = match code {
        0 => DType::F32,
        1 => DType::F16,
        2 => DType::BF16,
        _ => return Err(Violation::DType { code }),
    };
    let rank = fields.u32(8)?;
    if rank > RANK_MAX {
        let limit = RANK_MAX;
        return Err(Violation::Rank { rank, limit });
    }
    let places = (12usize..).step_by(4).take(rank as usize);
    let shape: Vec<u64> = places
        .map(|at| fields.u32(at).map(u64::from))
        .collect::<Result<_, _>>()?;
    let payload_len = dense_byte_len(&shape, dtype.byte_len() as u64);
    Ok(Parsed {
        payload_len: payload_len.ok_or(Violation::Overflow)?,
        encoding: Encoding::Plain(dtype),
        head_len: 12u64.saturating_add(u64::from(rank).saturating_mul(4)),
        shape,
    })
}

fn int4(fields: Head<'_>) -> Result<Parsed, Violation> {
    let (rows, columns) = fields.matrix()?;
    // Two u32: no overflow.
    let count = rows.saturating_mul(columns);
    Ok(Parsed {
        shape: vec![rows, columns],
        encoding: Encoding::Int4,
        head_len: 12,
        payload_len: count.div_ceil(2),
    })
}

fn int2(fields: Head<'_>) -> Result<Parsed, Violation> {
    let (rows, columns) = fields.matrix()?;
    let sub_block_len = fields.u32(12)?;
    if sub_block_len == 0 {
        return Err(Violation::NoSubBlockLen);
    }
    Ok(Parsed {
        shape: vec![rows, columns],
        encoding: Encoding::Int2 { sub_block_len },
        head_len: 16,
        payload_len: rows.saturating_mul(columns).div_ceil(4),
    })
}

fn astc(fields: Head<'_>) -> Result<Parsed, Violation> {
    let (width, height) = fields.matrix()?;
    let footprint = fields.u32(12)?;
    // The two codes that the specification has. They are of no numbering that is known, so the
    // others cannot be guessed, and with them where the next block begins.
    let (across, down) = match footprint {
        0x05 => (5, 5),
        0x08 => (8, 5),
        _ => return Err(Violation::Footprint { code: footprint }),
    };
    let blocks = width
        .div_ceil(across)
        .checked_mul(height.div_ceil(down))
        .and_then(|blocks| blocks.checked_mul(16));
    Ok(Parsed {
        shape: vec![height, width],
        encoding: Encoding::Astc { footprint },
        head_len: 16,
        payload_len: blocks.ok_or(Violation::Overflow)?,
    })
}

/// Nothing says where the values end, so they take what is left: a layer has one such block at
/// most, and it is the last.
fn tca(fields: Head<'_>, available: u64) -> Result<Parsed, Violation> {
    let (rows, bits) = fields.matrix()?;
    // At most 2^32 rows of 2^29 bytes: no overflow.
    let row_len = bits.div_ceil(64).saturating_mul(8);
    let bitmap_len = rows.saturating_mul(row_len);
    let head_len = 12;
    let payload_len = available.saturating_sub(head_len);
    if bitmap_len > payload_len {
        return Err(Violation::Bitmap {
            bitmap_len,
            available: payload_len,
        });
    }
    Ok(Parsed {
        shape: vec![rows, bits],
        encoding: Encoding::Tca { bitmap_len },
        head_len,
        payload_len,
    })
}

/// The blocks from `start` to `end`, one after the other, as far as they can be followed.
pub(super) struct Run {
    pub(super) blocks: Vec<Block>,
    /// Where the last block ends.
    pub(super) end: u64,
    /// Why the run could not be followed to its end; `None` where no block begins there, or where
    /// it is at its end.
    pub(super) fault: Option<Error>,
}

impl Run {
    /// Follows the run. At most `limit` blocks: one takes 12 bytes, and its object a hundred times
    /// as much.
    pub(super) fn read(source: &dyn Source, range: Span, flags: Flags, limit: usize) -> Self {
        let mut run = Run {
            blocks: Vec::new(),
            end: range.offset(),
            fault: None,
        };
        while run.end < range.end() {
            if run.blocks.len() >= limit {
                run.fault = Some(Violation::TooManyBlocks { limit }.at(run.end));
                break;
            }
            match Block::read(source, run.end, range.end(), flags) {
                Ok(Some(block)) => {
                    run.end = block.span.end();
                    run.blocks.push(block);
                }
                Ok(None) => break,
                Err(fault) => {
                    run.fault = Some(fault);
                    break;
                }
            }
        }
        run
    }

    /// The bytes at the end of the run that are no block.
    pub(super) fn rest(&self, range: Span) -> Option<Span> {
        Span::between(self.end, range.end()).filter(|rest| !rest.is_empty())
    }

    /// The error for such bytes.
    pub(super) fn no_block(&self, source: &dyn Source, range: Span) -> Option<Error> {
        let rest = self.rest(range)?;
        let mut found = [0; 4];
        let len = usize::try_from(rest.byte_len()).unwrap_or(4).min(4);
        let head = found.get_mut(..len)?;
        if let Err(error) = source.read_at(rest.offset(), head) {
            return Some(error.into());
        }
        let found = Record(head).bytes(0);
        let byte_len = rest.byte_len();
        Some(Violation::NoBlock { found, byte_len }.at(rest.offset()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_run_has_a_limit_that_it_may_meet() {
        // Of rank 1 and no values.
        let block = [&b"NPCL"[..], &[0; 4], &[1, 0, 0, 0], &[0; 4]].concat();
        let source = zt::Memory::new(block.repeat(2));
        let range = Span::new(0, source.byte_len()).unwrap();
        let run = Run::read(&source, range, Flags(0), 2);
        assert_eq!((run.blocks.len(), run.fault.is_none()), (2, true));
        let run = Run::read(&source, range, Flags(0), 1);
        assert_eq!(run.blocks.len(), 1);
        assert_eq!(run.fault.unwrap().kind(), zt::ErrorKind::Limit);
    }
}
