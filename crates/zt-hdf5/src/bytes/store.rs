//! Reads structures by their addresses, if they are in the file and its budget allows it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use zt::container::memory::zeroed;
use zt::{Error, Result, Source, Span};

use crate::bytes::budget::Budget;
use crate::bytes::checksum::lookup3;
use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{Sizes, in_memory, sum};

/// The most bytes of structures that are read, in lengths of the file. A valid file needs about one:
/// every structure is read once, and the first bytes of some twice. Structures that refer to each
/// other would be read for ever.
const BUDGET: u64 = 4;

/// A heap of shared messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heap {
    /// A bit for each kind of message.
    pub(crate) kinds: u16,
    pub(crate) address: u64,
}

impl Heap {
    pub(crate) fn has(&self, kind: u16) -> bool {
        // A kind above 15 has no bit.
        let bit = 1u16.checked_shl(kind.into()).unwrap_or(0);
        self.kinds & bit != 0
    }
}

/// A file whose superblock has been read.
pub(crate) struct Store {
    pub(crate) source: Arc<dyn Source>,
    /// The file: all of the source, or a member of an archive.
    extent: Span,
    /// The offset of the superblock in the source. Addresses count from there.
    base: u64,
    pub(crate) sizes: Sizes,
    pub(crate) budget: Budget,
    /// The heaps of shared messages.
    pub(crate) heaps: Arc<[Heap]>,
    /// Addresses and lengths of structures whose checksums are right, and which are read in parts.
    checked: Arc<Mutex<HashSet<(u64, u64)>>>,
}

impl Store {
    pub(crate) fn new(source: Arc<dyn Source>, extent: Span, base: u64, sizes: Sizes) -> Self {
        Store {
            source,
            extent,
            base,
            sizes,
            budget: Budget::new(extent.byte_len().saturating_mul(BUDGET)),
            heaps: Arc::new([]),
            checked: Arc::default(),
        }
    }

    /// A structure that is a part of another one.
    pub(crate) fn block(&self, bytes: Vec<u8>, what: &'static str) -> Block {
        Block { bytes, origin: 0, sizes: self.sizes, what }
    }

    /// The same file with a budget of its own, for structures that are read later, perhaps again.
    pub(crate) fn afresh(&self) -> Self {
        Store { budget: Budget::new(self.budget.limit), ..self.sharing() }
    }

    /// The same file with the same budget.
    pub(crate) fn sharing(&self) -> Self {
        Store {
            source: Arc::clone(&self.source),
            budget: self.budget.clone(),
            heaps: Arc::clone(&self.heaps),
            checked: Arc::clone(&self.checked),
            ..*self
        }
    }

    /// Bytes of the file.
    pub(crate) fn byte_len(&self) -> u64 {
        self.extent.byte_len()
    }

    pub(crate) fn offset(&self, address: u64) -> Result<u64> {
        Ok(sum([self.base, address])?)
    }

    /// The span of the `byte_len` bytes from `address` on.
    pub(crate) fn span(&self, address: u64, byte_len: u64, what: &'static str) -> Result<Span> {
        let end = self.extent.end();
        let span = self.base.checked_add(address);
        let span = span.and_then(|offset| Span::new(offset, byte_len));
        let inside = span.filter(|span| span.end() <= end);
        inside.ok_or_else(|| Hdf5Fault::Outside { what, address, byte_len, end }.into())
    }

    pub(crate) fn fetch(&self, address: u64, len: u64, what: &'static str) -> Result<Block> {
        let span = self.span(address, len, what)?;
        self.charge(len)?;
        Ok(Block {
            bytes: read(&*self.source, span)?,
            origin: span.offset(),
            sizes: self.sizes,
            what,
        })
    }

    /// Counts bytes that structures cause to be read or allocated. Refused bytes do not count.
    pub(crate) fn charge(&self, len: u64) -> Result<()> {
        let limit = self.budget.limit;
        let spent = self.budget.spend(len);
        Ok(spent.map_err(|_| Hdf5Fault::Budget { limit })?)
    }

    /// The bytes of a structure before its checksum, which is checked.
    pub(crate) fn fetch_checked(
        &self,
        address: u64,
        len: u64,
        what: &'static str,
    ) -> Result<Block> {
        let mut block = self.fetch(address, len, what)?;
        block.check()?;
        Ok(block)
    }

    /// Checks the checksum of a structure, unless it was found right before. It is at the end, or at
    /// `place` as if it were 0.
    pub(crate) fn check_once(
        &self,
        address: u64,
        len: u64,
        place: Option<u64>,
        what: &'static str,
    ) -> Result<()> {
        let known = || self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if known().contains(&(address, len)) {
            return Ok(());
        }
        let mut block = self.fetch(address, len, what)?;
        match place {
            None => block.check()?,
            Some(place) => block.check_within(place)?,
        }
        known().insert((address, len));
        Ok(())
    }
}

/// All bytes of a source.
pub(crate) fn whole(source: &dyn Source) -> Result<Span> {
    Ok(Span::new(0, source.byte_len()).ok_or(Hdf5Fault::Overflow)?)
}

/// The bytes of `span`, which exist.
pub(crate) fn read(source: &dyn Source, span: Span) -> Result<Vec<u8>> {
    let mut bytes = zeroed(span.byte_len())?;
    source.read_at(span.offset(), &mut bytes)?;
    Ok(bytes)
}

pub(crate) struct Block {
    bytes: Vec<u8>,
    origin: u64,
    sizes: Sizes,
    what: &'static str,
}

impl Block {
    pub(crate) fn byte_len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.bytes, self.origin, self.sizes, self.what)
    }

    /// A cursor after the signature, which the structure must begin with.
    pub(crate) fn signed(&self, signature: &[u8; 4]) -> Result<Cursor<'_>> {
        let mut cursor = self.cursor();
        let found = cursor.u32()?.to_le_bytes();
        let what = self.what;
        if found != *signature {
            return Err(Error::from(Hdf5Fault::Magic { what, found }).with_offset(self.origin));
        }
        Ok(cursor)
    }

    /// Checks the checksum at the end, and removes it.
    pub(crate) fn check(&mut self) -> Result<()> {
        let content_len = self.byte_len().checked_sub(4).ok_or(Hdf5Fault::TooFar)?;
        let mut cursor = self.cursor();
        let found = lookup3(cursor.take(content_len)?);
        let expected = cursor.u32()?;
        self.compare(expected, found)?;
        self.bytes.truncate(in_memory(content_len)?);
        Ok(())
    }

    /// Checks the checksum at `place`, which is of all bytes with zeros in its place. They stay there.
    fn check_within(&mut self, place: u64) -> Result<()> {
        let mut cursor = self.cursor();
        cursor.skip(place)?;
        let expected = cursor.u32()?;
        let behind = self.bytes.get_mut(in_memory(place)?..);
        let own = behind.and_then(<[u8]>::first_chunk_mut::<4>);
        *own.ok_or(Hdf5Fault::TooFar)? = [0; 4];
        self.compare(expected, lookup3(&self.bytes))
    }

    fn compare(&self, expected: u32, found: u32) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        let fault = Hdf5Fault::Checksum { what: self.what, expected, found };
        Err(Error::from(fault).with_offset(self.origin))
    }
}
