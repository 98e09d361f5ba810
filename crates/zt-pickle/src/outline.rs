//! The instructions of a pickle, without its long byte strings.

use std::ops::Range;
use std::{fmt, io};

use crate::cursor::{Cursor, Gap};
use crate::fault::PickleError;
use crate::global::Global;
use crate::heap::reserve;
use crate::machine::{Pickle, load_from};

/// Byte strings of at least this length are left out.
const LONG_BYTES: u64 = 1 << 10;

/// The same for the strings of Python 2, which may be texts.
const LONG_STRING: u64 = 64 << 10;

/// Bytes that are read at once: a few after a string that was left out, and more if none follows.
const FIRST: usize = 16 << 10;
const MOST: usize = 1 << 20;

/// Reads all bytes of a buffer from an offset on.
pub type ReadAt<'s> = dyn Fn(u64, &mut [u8]) -> io::Result<()> + 's;

/// The instructions of a pickle, without its long byte strings: those stay where they are.
///
/// The bytes of arrays make up most of a pickle of arrays. An outline of it is small, and
/// [`Node::Elsewhere`](crate::Node::Elsewhere) states where each of these byte strings is.
///
/// ```
/// use zt_pickle::{Collection, Global, Makes, Node, Outline};
/// # #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
/// # enum Ours {}
/// # impl Global for Ours {
/// #     fn makes(self) -> Makes { match self {} }
/// #     fn is_class(self) -> bool { match self {} }
/// #     fn has_state(self) -> bool { match self {} }
/// # }
///
/// // pickle.dumps(bytes(4096), protocol=3)
/// let pickle = [&b"\x80\x03B\0\x10\0\0"[..], &[0; 4096], b"."].concat();
/// let read = |offset: u64, into: &mut [u8]| {
///     into.copy_from_slice(&pickle[offset as usize..][..into.len()]);
///     Ok(())
/// };
/// let outline = Outline::read(0..pickle.len() as u64, 1 << 20, &read)?;
/// let outlined = outline.load(|_, _, _| None::<Ours>)?;
/// let root = outlined.heap.node(outlined.root);
/// assert!(matches!(root, Some(Node::Elsewhere { offset: 7, byte_len: 4096 })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Outline {
    bytes: Vec<u8>,
    gaps: Vec<Gap>,
    /// Bytes of the source from the beginning of the pickle on, and bytes of the pickle.
    available: u64,
    byte_len: u64,
}

/// Why a pickle has no outline.
#[derive(Debug)]
#[non_exhaustive]
pub enum OutlineError {
    /// The source cannot be read.
    Io(io::Error),
    /// The instructions are longer than the limit.
    TooLong {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The system refused memory.
    Allocation {
        /// Bytes that were requested.
        byte_len: u64,
    },
}

impl std::error::Error for OutlineError {}

impl fmt::Display for OutlineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutlineError::Io(error) => error.fmt(f),
            OutlineError::TooLong { limit } => {
                write!(f, "the instructions are longer than the limit of {limit} bytes")
            }
            OutlineError::Allocation { byte_len } => {
                write!(f, "the system refused {byte_len} bytes of memory")
            }
        }
    }
}

impl Outline {
    /// The outline of the pickle at the beginning of `span`, a range of a source. Reads the
    /// instructions and little else. The outline has at most `limit` bytes.
    ///
    /// An instruction that is invalid or truncated ends the outline, and [`Outline::load`] refuses it.
    ///
    /// # Errors
    ///
    /// The source cannot be read, or the outline would be longer than `limit`.
    pub fn read(span: Range<u64>, limit: u64, read_at: &ReadAt<'_>) -> Result<Self, OutlineError> {
        // A range that ends before it starts is empty.
        let end = span.end.max(span.start);
        let available = end.strict_sub(span.start);
        let mut reader = Reader {
            read_at,
            ahead: Vec::new(),
            taken: 0,
            next: span.start,
            end,
            at_once: FIRST,
            outline: Outline { bytes: Vec::new(), gaps: Vec::new(), available, byte_len: 0 },
            limit,
        };
        while reader.instruction()? {}
        let byte_len = available.strict_sub(reader.left());
        Ok(Outline { byte_len, ..reader.outline })
    }

    /// Bytes of the pickle in the source. Another pickle may follow.
    pub const fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// Reads the pickle. Texts and short byte strings are borrowed from the outline.
    ///
    /// # Errors
    ///
    /// As [`load`](crate::load). Positions are those in the whole pickle.
    pub fn load<G: Global>(
        &self,
        find: impl Fn(&str, &str, u32) -> Option<G>,
    ) -> Result<Pickle<'_, G>, PickleError> {
        load_from(Cursor::of_outline(&self.bytes, &self.gaps, self.available), &find)
    }
}

/// The operand of an instruction.
enum Operand {
    /// This many bytes.
    Fixed(u64),
    /// This many lines.
    Lines(u8),
    /// A length of this many bytes, little-endian, and as many bytes.
    Sized(usize),
}

/// The operand of an instruction; `None` if it is the last one, or if no pickle may have it.
fn operand(code: u8) -> Option<Operand> {
    Some(match code {
        b'(' | b')' | b'0' | b'1' | b'2' | b'N' | b'Q' | b'R' | b']' | b'}' => Operand::Fixed(0),
        b'a' | b'b' | b'd' | b'e' | b'l' | b'o' | b's' | b't' | b'u' => Operand::Fixed(0),
        0x81 | 0x85..=0x89 | 0x8f..=0x94 => Operand::Fixed(0),
        b'K' | b'h' | b'q' | 0x80 | 0x82 => Operand::Fixed(1),
        b'M' | 0x83 => Operand::Fixed(2),
        b'J' | b'j' | b'r' | 0x84 => Operand::Fixed(4),
        b'G' | 0x95 => Operand::Fixed(8),
        b'F' | b'I' | b'L' | b'S' | b'V' | b'g' | b'p' => Operand::Lines(1),
        b'c' | b'i' => Operand::Lines(2),
        b'C' | b'U' | 0x8a | 0x8c => Operand::Sized(1),
        b'B' | b'T' | b'X' | 0x8b => Operand::Sized(4),
        0x8d | 0x8e | 0x96 => Operand::Sized(8),
        _ => return None,
    })
}

/// Whether a string of this length is left out.
const fn is_left_out(code: u8, byte_len: u64) -> bool {
    match code {
        b'B' | 0x8e | 0x96 => byte_len >= LONG_BYTES,
        b'T' => byte_len >= LONG_STRING,
        _ => false,
    }
}

/// Reads one instruction after another.
struct Reader<'r, 's> {
    read_at: &'r ReadAt<'s>,
    /// Bytes that were read, and how many of them were taken.
    ahead: Vec<u8>,
    taken: usize,
    /// Where the bytes after those are, and where the source ends.
    next: u64,
    end: u64,
    /// How many bytes are read next.
    at_once: usize,
    outline: Outline,
    limit: u64,
}

impl Reader<'_, '_> {
    /// Takes an instruction into the outline, and returns whether another may follow.
    fn instruction(&mut self) -> Result<bool, OutlineError> {
        let Some(code) = self.ahead()?.first().copied() else {
            return Ok(false);
        };
        self.copy(1)?;
        match operand(code) {
            None => Ok(false),
            Some(Operand::Fixed(len)) => self.copy(len),
            Some(Operand::Lines(count)) => {
                for _ in 0..count {
                    if !self.line()? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Some(Operand::Sized(width)) => {
                let start = self.outline.bytes.len();
                if !self.copy(width as u64)? {
                    return Ok(false);
                }
                let mut len = [0; 8];
                let (_, bytes) = self.outline.bytes.split_at(start);
                for (to, from) in len.iter_mut().zip(bytes) {
                    *to = *from;
                }
                let len = u64::from_le_bytes(len);
                if is_left_out(code, len) { Ok(self.leave_out(len)) } else { self.copy(len) }
            }
        }
    }

    /// Bytes that were read and not taken; none at the end of the source.
    fn ahead(&mut self) -> Result<&[u8], OutlineError> {
        if self.taken >= self.ahead.len() {
            let left = usize::try_from(self.left());
            let len = left.map_or(self.at_once, |left| left.min(self.at_once));
            self.at_once = self.at_once.strict_mul(2).min(MOST);
            self.taken = 0;
            self.ahead.resize(len, 0);
            (self.read_at)(self.next, &mut self.ahead).map_err(OutlineError::Io)?;
            self.next = self.next.strict_add(len as u64);
        }
        Ok(self.ahead.split_at(self.taken).1)
    }

    /// How many bytes were read and not taken.
    const fn held(&self) -> usize {
        self.ahead.len().strict_sub(self.taken)
    }

    /// How many bytes of the source were not taken.
    const fn left(&self) -> u64 {
        self.end.strict_sub(self.next).strict_add(self.held() as u64)
    }

    /// Takes bytes into the outline. Returns false, and takes none, if the source has fewer.
    fn copy(&mut self, byte_len: u64) -> Result<bool, OutlineError> {
        if byte_len > self.left() {
            return Ok(false);
        }
        let mut left = byte_len;
        while left > 0 {
            let ahead = self.ahead()?.len();
            let len = usize::try_from(left).map_or(ahead, |left| left.min(ahead));
            self.take(len)?;
            left = left.strict_sub(len as u64);
        }
        Ok(true)
    }

    /// Takes the bytes up to the next line feed. Returns false at the end of the source.
    fn line(&mut self) -> Result<bool, OutlineError> {
        loop {
            let ahead = self.ahead()?;
            if ahead.is_empty() {
                return Ok(false);
            }
            let feed = ahead.iter().position(|byte| *byte == b'\n');
            let len = feed.map_or(ahead.len(), |feed| feed.strict_add(1));
            self.take(len)?;
            if feed.is_some() {
                return Ok(true);
            }
        }
    }

    /// Takes this many of the bytes that were read.
    fn take(&mut self, len: usize) -> Result<(), OutlineError> {
        let bytes = &mut self.outline.bytes;
        let (limit, byte_len) = (self.limit, len as u64);
        if (bytes.len() as u64).strict_add(byte_len) > limit {
            return Err(OutlineError::TooLong { limit });
        }
        reserve(bytes, len).map_err(|_| OutlineError::Allocation { byte_len })?;
        let ahead = self.ahead.iter().skip(self.taken);
        bytes.extend(ahead.take(len));
        self.taken = self.taken.strict_add(len);
        Ok(())
    }

    /// Passes over a string. Returns false, and passes over nothing, if the source ends within it.
    fn leave_out(&mut self, byte_len: u64) -> bool {
        if byte_len > self.left() {
            return false;
        }
        let held = self.held();
        let offset = self.next.strict_sub(held as u64);
        let at = self.outline.bytes.len();
        self.outline.gaps.push(Gap { at, offset });
        match usize::try_from(byte_len) {
            Ok(len) if len <= held => self.taken = self.taken.strict_add(len),
            _ => {
                self.taken = self.ahead.len();
                self.next = offset.strict_add(byte_len);
                self.at_once = FIRST;
            }
        }
        true
    }
}
