//! A tensor block: a magic, a shape, packed values.

use zt::formats::dense_byte_len;
use zt::{DType, Error, Result, Source, Span};
use zt_foreign::fields::Fields;

use crate::header::Flags;
use crate::violation::Violation;

/// The most dimensions of a block.
pub(super) const RANK_MAX: u32 = 64;

/// The most bytes before the values: magic, dtype, rank and dimensions.
const HEAD_MAX: usize = 12 + 4 * RANK_MAX as usize;

/// A tensor block. Its values stay in the file.
#[derive(Debug)]
pub(super) struct Block {
    /// For an ASTC image: height and width. For a TCA block: rows, and bits of a bitmap row.
    pub(super) shape: Vec<u64>,
    pub(super) encoding: Encoding,
    /// The whole block, magic included.
    pub(super) span: Span,
    /// The bytes after the block's own fields.
    pub(super) payload: Span,
}

/// The dtypes of plain values, by their codes.
pub(super) const PLAIN: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// How the values of a block are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// `NPCL`: plain.
    Plain(DType),
    /// `INT4`: two's complement, the first of two in the lower half.
    Int4,
    /// `INT2`: unsigned, the first of four in the lowest bits.
    Int2 { sub_block_len: u32 },
    /// `ASTW`: an ASTC bit stream.
    Astc { footprint: u32 },
    /// `TCAW`: a bitmap, then values of an unspecified encoding.
    Tca { bitmap_len: u64 },
}

impl Block {
    pub(super) const fn is_quantized(&self) -> bool {
        matches!(self.encoding, Encoding::Int4 | Encoding::Int2 { .. })
    }

    /// The number of values.
    #[expect(clippy::expect_used, reason = "the parser computes the same product")]
    pub(super) fn element_count(&self) -> u64 {
        zt::formats::element_count(&self.shape).expect("no overflow")
    }

    /// The block at the start of `rest`; `None` if no magic of a block is there.
    pub(super) fn read(source: &dyn Source, rest: Span, flags: Flags) -> Result<Option<Self>> {
        let (offset, available) = (rest.offset(), rest.byte_len());
        let mut head = [0; HEAD_MAX];
        let head = fill(source, rest, &mut head)?;
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
        let payload = payload.filter(|payload| payload.end() <= rest.end());
        let span = payload.and_then(|payload| Span::between(offset, payload.end()));
        let (Some(payload), Some(span)) = (payload, span) else {
            return Err(too_long.at(offset));
        };
        Ok(Some(Block { shape: parsed.shape, encoding: parsed.encoding, span, payload }))
    }
}

/// A magic and the flag that it needs; plain blocks need none.
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

struct Parsed {
    shape: Vec<u64>,
    encoding: Encoding,
    head_len: u64,
    payload_len: u64,
}

/// The bytes of a block's fields, which may be truncated.
#[derive(Clone, Copy)]
struct Head<'h>(Fields<'h>);

impl Head<'_> {
    fn u32(self, at: usize) -> Result<u32, Violation> {
        let Head(fields) = self;
        let available = fields.0.len() as u64;
        fields.u32(at).ok_or(Violation::BlockCut { available })
    }

    /// The first two fields of a block with a matrix.
    fn matrix(self) -> Result<(u64, u64), Violation> {
        Ok((self.u32(4)?.into(), self.u32(8)?.into()))
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "the rank is limited")]
fn plain(fields: Head<'_>) -> Result<Parsed, Violation> {
    let code = fields.u32(4)?;
    let dtype = *PLAIN.get(code as usize).ok_or(Violation::DType { code })?;
    let rank = fields.u32(8)?;
    if rank > RANK_MAX {
        let limit = RANK_MAX;
        return Err(Violation::Rank { rank, limit });
    }
    let places = (12usize..).step_by(4).take(rank as usize);
    let shape: Vec<u64> =
        places.map(|at| fields.u32(at).map(u64::from)).collect::<Result<_, _>>()?;
    let payload_len = dense_byte_len(&shape, dtype.byte_len() as u64);
    Ok(Parsed {
        payload_len: payload_len.ok_or(Violation::Overflow)?,
        encoding: Encoding::Plain(dtype),
        head_len: 12 + 4 * u64::from(rank),
        shape,
    })
}

#[expect(clippy::arithmetic_side_effects, reason = "two factors of 32 bits")]
fn int4(fields: Head<'_>) -> Result<Parsed, Violation> {
    let (rows, columns) = fields.matrix()?;
    Ok(Parsed {
        shape: vec![rows, columns],
        encoding: Encoding::Int4,
        head_len: 12,
        payload_len: (rows * columns).div_ceil(2),
    })
}

#[expect(clippy::arithmetic_side_effects, reason = "two factors of 32 bits")]
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
        payload_len: (rows * columns).div_ceil(4),
    })
}

fn astc(fields: Head<'_>) -> Result<Parsed, Violation> {
    let (width, height) = fields.matrix()?;
    let footprint = fields.u32(12)?;
    // The specification has two codes, of no known numbering. With another code, the size of the
    // block and the start of the next one are unknown.
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

/// The block has no length, so its values take the rest of the layer: it is the layer's last block.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "2^32 rows of at most 2^29 bytes, and the head was read"
)]
fn tca(fields: Head<'_>, available: u64) -> Result<Parsed, Violation> {
    let (rows, bits) = fields.matrix()?;
    let bitmap_len = rows * bits.div_ceil(64) * 8;
    let head_len = 12;
    let payload_len = available - head_len;
    if bitmap_len > payload_len {
        return Err(Violation::Bitmap { bitmap_len, available: payload_len });
    }
    Ok(Parsed {
        shape: vec![rows, bits],
        encoding: Encoding::Tca { bitmap_len },
        head_len,
        payload_len,
    })
}

/// Consecutive blocks, up to the first that cannot be read.
pub(super) struct BlockRun {
    pub(super) blocks: Vec<Block>,
    /// Where the last block ends.
    pub(super) end: u64,
    /// The error that ended the run; `None` at the end of the range, or if no block begins there.
    pub(super) fault: Option<Error>,
}

impl BlockRun {
    /// Reads at most `limit` blocks: a block may take 12 bytes, and its object a hundred times as much.
    pub(super) fn read(source: &dyn Source, range: Span, flags: Flags, limit: usize) -> Self {
        let mut run = BlockRun { blocks: Vec::new(), end: range.offset(), fault: None };
        while let Some(rest) = run.rest(range) {
            if run.blocks.len() >= limit {
                run.fault = Some(Violation::TooManyBlocks { limit }.at(run.end));
                break;
            }
            match Block::read(source, rest, flags) {
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

    pub(super) fn rest(&self, range: Span) -> Option<Span> {
        Span::between(self.end, range.end()).filter(|rest| !rest.is_empty())
    }

    /// The error for these bytes.
    pub(super) fn no_block(&self, source: &dyn Source, range: Span) -> Option<Error> {
        let rest = self.rest(range)?;
        let byte_len = rest.byte_len();
        Some(match start_of(source, rest) {
            Ok(found) => Violation::NoBlock { found, byte_len }.at(rest.offset()),
            Err(error) => error,
        })
    }
}

/// The first bytes of `range`, with zeros if it is shorter.
pub(super) fn start_of<const N: usize>(source: &dyn Source, range: Span) -> Result<[u8; N]> {
    let mut start = [0; N];
    fill(source, range, &mut start)?;
    Ok(start)
}

/// Fills the start of `out` with the first bytes of `range`, and returns them.
fn fill<'o>(source: &dyn Source, range: Span, out: &'o mut [u8]) -> Result<&'o [u8]> {
    let len = usize::try_from(range.byte_len()).map_or(out.len(), |len| len.min(out.len()));
    let (filled, _) = out.split_at_mut(len);
    source.read_at(range.offset(), filled)?;
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_may_have_as_many_blocks_as_the_limit() {
        // A block of rank 1 without values.
        let block = [&b"NPCL"[..], &[0; 4], &[1, 0, 0, 0], &[0; 4]].concat();
        let source = zt::Memory::new(block.repeat(2));
        let range = Span::new(0, source.byte_len()).unwrap();
        let run = BlockRun::read(&source, range, Flags(0), 2);
        assert_eq!((run.blocks.len(), run.fault.is_none()), (2, true));
        let run = BlockRun::read(&source, range, Flags(0), 1);
        assert_eq!(run.blocks.len(), 1);
        assert_eq!(run.fault.unwrap().kind(), zt::ErrorKind::Limit);
    }
}
