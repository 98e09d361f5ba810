//! Bytes that are handed on piece by piece, while the next piece is read.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::parallel;

/// Shorter pieces are read sooner than another core is asked to.
const WORTH_IT: usize = 256 << 10;

/// Hands on what `read` gives, `piece_len` bytes at a time, until there is no more or `take` breaks.
/// Takes the memory of two pieces.
pub(crate) fn for_each_piece(
    mut read: impl FnMut(&mut [u8]) -> Result<usize> + Send,
    piece_len: usize,
    mut take: impl FnMut(&[u8]) -> ControlFlow<()> + Send,
) -> Result<()> {
    let (mut piece, mut next) = (vec![0; piece_len], Vec::new());
    let mut len = read(&mut piece)?;
    while let Some(bytes) = piece.get(..len).filter(|bytes| !bytes.is_empty()) {
        // A piece that is not full is the last one.
        if len < piece_len || len < WORTH_IT {
            if take(bytes).is_break() {
                return Ok(());
            }
            len = read(&mut piece)?;
            continue;
        }
        next.resize(piece_len, 0);
        let (following, flow) = parallel::join(|| read(&mut next), || take(bytes));
        if flow.is_break() {
            return Ok(());
        }
        len = following?;
        std::mem::swap(&mut piece, &mut next);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(content: &[u8]) -> impl FnMut(&mut [u8]) -> Result<usize> + Send {
        let mut rest = content.to_vec();
        move |out| {
            let len = out.len().min(rest.len());
            out[..len].copy_from_slice(&rest[..len]);
            rest.drain(..len);
            Ok(len)
        }
    }

    #[test]
    fn pieces_come_whole_and_in_order() {
        let content: Vec<u8> = (0..5_000_003u32).map(|at| at.to_le_bytes()[1]).collect();
        for len in [0, 1, 1000, 1 << 20, (1 << 20) + 1, content.len()] {
            for piece_len in [1000, 1 << 20] {
                let (content, mut found) = (&content[..len], Vec::new());
                let take = |bytes: &[u8]| {
                    found.extend_from_slice(bytes);
                    ControlFlow::Continue(())
                };
                for_each_piece(reader(content), piece_len, take).unwrap();
                assert!(found == content, "{len} by {piece_len}");
            }
        }
    }

    #[test]
    fn nothing_comes_after_a_break_and_errors_come_in_their_place() {
        let content = vec![7; 3 << 20];
        for piece_len in [1000, 1 << 20] {
            let mut count = 0;
            let take = |_: &[u8]| {
                count += 1;
                ControlFlow::Break(())
            };
            for_each_piece(reader(&content), piece_len, take).unwrap();
            assert_eq!(count, 1);

            let (mut sound, mut count) = (reader(&content[..2 * piece_len]), 0);
            let failing = |out: &mut [u8]| match sound(out)? {
                0 => Err(crate::error::Fault::Interrupted.into()),
                len => Ok(len),
            };
            let take = |_: &[u8]| {
                count += 1;
                ControlFlow::Continue(())
            };
            for_each_piece(failing, piece_len, take).unwrap_err();
            assert_eq!(count, 2, "what was read before the error is handed on");
        }
    }
}
