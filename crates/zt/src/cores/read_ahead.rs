//! A stream of pieces: one thread reads the next pieces while the caller takes the last one.

use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::thread;

use zt_formats::Buffer;

use crate::cores::work::lock;
use crate::error::{Error, Result};

/// Bytes that are read ahead, but at least one piece and at most four. With fewer, each side would
/// wait for the other to wake up.
///
/// Pays: `zt convert` of 75 MB from zstd takes 0.95 of the CPU time of one piece ahead, and as much as with 16 MiB.
const AHEAD: usize = 4 << 20;
const MOST: usize = 4;

/// Only longer pieces are read ahead. Others are read before another thread would have started.
///
/// Pays: `zt patch` of 75 MB takes 0.83 of the time without a thread, and 1.05 of the CPU time. From planes `zt
/// convert` takes 1.14 of the CPU time and is no faster; `zt extract` takes 1.18 of it. From zstd the difference is
/// noise.
pub(crate) const WORTH_A_THREAD: usize = 256 << 10;

/// Memory that the next stream uses again. Fresh memory costs a page fault for each 4 KiB: to copy 300
/// components of 1.6 to 3.7 MB, a third of the processor time went there.
static FREE: Mutex<Vec<Buffer>> = Mutex::new(Vec::new());

/// The bytes of that memory, at most: two pieces of planes. What is above is freed at once.
///
/// Pays: `zt convert` of 75 MB from zstd takes 0.67 of the CPU time and 0.73 of the time.
const KEPT: usize = 32 << 20;

/// A piece of a stream, and its length. Its memory goes back to [`FREE`].
struct Piece(Buffer, usize);

impl Piece {
    fn new(byte_len: usize) -> Result<Self> {
        let mut free = lock(&FREE);
        let memory = match free.iter().position(|free| free.len() >= byte_len) {
            Some(at) => free.swap_remove(at),
            None => Buffer::try_zeroed(byte_len as u64)?,
        };
        Ok(Piece(memory, byte_len))
    }

    fn bytes(&mut self) -> &mut [u8] {
        self.0.get_mut(..self.1).unwrap_or_default()
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut free = lock(&FREE);
        let kept = free.iter().map(|free| free.len()).sum::<usize>();
        if self.0.len() >= WORTH_A_THREAD && kept.saturating_add(self.0.len()) <= KEPT {
            free.push(std::mem::take(&mut self.0));
        }
    }
}

/// Calls `take` with the bytes from `read`, `piece_len` at a time, until the end or an error. If
/// there are several pieces and the system allows a thread, that thread reads ahead. It is not a
/// thread of the pool, because those compute.
pub(crate) fn for_each_piece<E: From<Error>>(
    mut read: impl FnMut(&mut [u8]) -> Result<usize> + Send,
    piece_len: usize,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut piece = Piece::new(piece_len)?;
    let mut len = read(piece.bytes())?;
    if len == piece_len && len > WORTH_A_THREAD {
        take(piece.bytes())?;
        match for_each_ahead(&mut read, piece, &mut take)? {
            Some(unused) => piece = unused,
            None => return Ok(()),
        }
        len = read(piece.bytes())?;
    }
    // A piece that is not full is the last one. `take` has yet to see the end.
    while let Some(bytes) = piece.0.get(..len).filter(|bytes| !bytes.is_empty()) {
        take(bytes)?;
        len = read(piece.bytes())?;
    }
    Ok(())
}

/// Takes the pieces after the first one, with its memory. Returns that memory if no thread could be
/// started and nothing was read.
fn for_each_ahead<E: From<Error>>(
    read: &mut (dyn FnMut(&mut [u8]) -> Result<usize> + Send),
    first: Piece,
    take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<Option<Piece>, E> {
    let piece_len = first.1;
    let ahead = AHEAD.strict_div(piece_len.max(1)).clamp(1, MOST);
    let (send_full, full) = sync_channel(ahead);
    let (send_empty, empty) = sync_channel::<Piece>(ahead.strict_add(1));
    // The receiver moves in here and is dropped at the end, which ends the reader, too.
    thread::scope(move |scope| {
        let reader = move || {
            // The reader stops when the receiver is gone.
            while let Ok(mut piece) = empty.recv() {
                let found = read(piece.bytes());
                let is_end = !matches!(found, Ok(1..));
                if send_full.send(found.map(|len| (piece, len))).is_err() || is_end {
                    return;
                }
            }
        };
        if thread::Builder::new().spawn_scoped(scope, reader).is_err() {
            return Ok(Some(first));
        }
        let _ = send_empty.send(first);
        for _ in 0..ahead {
            let _ = send_empty.send(Piece::new(piece_len)?);
        }
        for found in full {
            let (piece, len): (Piece, usize) = found?;
            let bytes = piece.0.get(..len).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            take(bytes)?;
            let _ = send_empty.send(piece);
        }
        Ok(None)
    })
}
