//! The header of an object, which consists of messages. Spec: IV.A.
//!
//! ```text
//! version 1: version, -, number of messages, links, length, -, messages, padded to 8
//! version 2: "OHDR", version, flags, [times], [attribute limits], length, messages, checksum
//! ```
//!
//! A header may continue in other places; a message has the address of each.

use zt::Result;

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::sum;
use crate::bytes::store::{Block, Store};
use crate::structures::shared::{self, Place};

/// The types of messages. Spec: IV.A.2.
pub(crate) mod kind {
    pub(crate) const DATASPACE: u16 = 0x01;
    pub(crate) const LINK_INFO: u16 = 0x02;
    pub(crate) const DATATYPE: u16 = 0x03;
    pub(crate) const OLD_FILL_VALUE: u16 = 0x04;
    pub(crate) const FILL_VALUE: u16 = 0x05;
    pub(crate) const LINK: u16 = 0x06;
    pub(crate) const EXTERNAL_FILES: u16 = 0x07;
    pub(crate) const LAYOUT: u16 = 0x08;
    pub(crate) const FILTERS: u16 = 0x0B;
    pub(crate) const ATTRIBUTE: u16 = 0x0C;
    pub(crate) const SHARED_TABLE: u16 = 0x0F;
    pub(crate) const CONTINUATION: u16 = 0x10;
    pub(crate) const SYMBOL_TABLE: u16 = 0x11;
    pub(crate) const ATTRIBUTE_INFO: u16 = 0x15;
    pub(crate) const CACHE_IMAGE: u16 = 0x18;
    /// The last type in the specification.
    pub(crate) const LAST: u16 = CACHE_IMAGE;
}

/// The flag of a message with its content in another place.
pub(crate) const SHARED: u8 = 1 << 1;
/// The flag of a message that a reader of the object must know.
const MUST_BE_KNOWN: u8 = 1 << 7;

/// The messages of an object. No list of them is kept, because a hostile file can have one per four
/// bytes.
pub(crate) struct ObjectHeader {
    form: Form,
    /// The blocks of the header, and the position of the first message in each.
    blocks: Vec<(Block, u64)>,
    /// A bit for each kind of message in the header.
    kinds: u32,
}

/// The form of messages.
#[derive(Clone, Copy)]
struct Form {
    is_new: bool,
    /// Whether a message has the order of its creation.
    has_order: bool,
}

impl ObjectHeader {
    /// Reads the header at `address` and its continuations. An unknown message that readers must
    /// know is unsupported.
    pub(crate) fn read(store: &Store, address: u64) -> Result<Self> {
        let what = "an object header";
        let head = store.fetch(address, 1, what)?;
        let (first, form) = match head.cursor().u8()? {
            1 => old(store, address, what)?,
            b'O' => new(store, address, what)?,
            version => return Err(head.cursor().version(version)),
        };
        let mut header = ObjectHeader { form, blocks: Vec::new(), kinds: 0 };
        let mut more = header.add(first)?;
        // The store's budget ends this loop.
        while let Some((address, len)) = more.pop() {
            let what = "a continued object header";
            let mut block = store.fetch(address, len, what)?;
            if form.is_new {
                block.check()?;
            }
            let start = if form.is_new { block.signed(b"OCHK")?.position() } else { 0 };
            more.extend(header.add((block, start))?);
        }
        Ok(header)
    }

    /// Adds the messages of a block. Returns the addresses and lengths of continuations.
    fn add(&mut self, (block, start): (Block, u64)) -> Result<Vec<(u64, u64)>> {
        let mut more = Vec::new();
        let mut messages = Messages::new(&block, start, self.form)?;
        while let Some((kind, flags, mut body)) = messages.read()? {
            if kind > kind::LAST && flags & MUST_BE_KNOWN != 0 {
                let unknown = Hdf5Fault::Unsupported("a message that readers must know");
                return Err(body.error(unknown));
            }
            self.kinds |= bit(kind);
            if kind == kind::CONTINUATION {
                more.push((body.defined_address()?, body.length()?));
            }
        }
        self.blocks.push((block, start));
        Ok(more)
    }

    /// The messages of a kind, which may be references to shared ones.
    pub(crate) fn messages(&self, wanted: u16) -> impl Iterator<Item = Body<'_>> {
        let is_there = self.kinds & bit(wanted) != 0;
        let blocks = self.blocks.iter().filter(move |_| is_there);
        let all = blocks.flat_map(move |(block, start)| {
            let mut messages = Messages::new(block, *start, self.form).ok();
            // `read` has read all of them without an error.
            std::iter::from_fn(move || messages.as_mut()?.read().ok().flatten())
        });
        let found = all.filter(move |(kind, ..)| *kind == wanted);
        found.map(|(_, flags, cursor)| Body { cursor, is_shared: flags & SHARED != 0 })
    }

    /// The first message of a kind.
    pub(crate) fn message(&self, kind: u16) -> Option<Body<'_>> {
        self.messages(kind).next()
    }

    /// Reads the first message of a kind, which may be shared; `None` if there is none.
    pub(crate) fn read_message<T>(
        &self,
        store: &Store,
        kind: u16,
        read: impl FnOnce(&mut Cursor<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(mut body) = self.message(kind) else {
            return Ok(None);
        };
        let value = if body.is_shared {
            shared::read(store, Place::read(&mut body.cursor)?, kind, read)
        } else {
            read(&mut body.cursor)
        };
        value.map(Some)
    }
}

/// The bit of a kind; 0 for kinds above 31, which are never looked for.
fn bit(kind: u16) -> u32 {
    1u32.checked_shl(kind.into()).unwrap_or(0)
}

struct Messages<'b> {
    cursor: Cursor<'b>,
    form: Form,
}

impl<'b> Messages<'b> {
    fn new(block: &'b Block, start: u64, form: Form) -> Result<Self> {
        let mut cursor = block.cursor();
        cursor.skip(start)?;
        Ok(Messages { cursor, form })
    }

    /// The kind, the flags and the body of the next message.
    fn read(&mut self) -> Result<Option<(u16, u8, Cursor<'b>)>> {
        let cursor = &mut self.cursor;
        let head_len = match (self.form.is_new, self.form.has_order) {
            (false, _) => 8,
            (true, false) => 4,
            (true, true) => 6,
        };
        // Fewer bytes than the head of a message are a gap.
        if cursor.remaining() < head_len {
            return Ok(None);
        }
        let (kind, len, flags);
        if self.form.is_new {
            kind = u16::from(cursor.u8()?);
            len = cursor.u16()?;
            flags = cursor.u8()?;
            cursor.skip(if self.form.has_order { 2 } else { 0 })?;
        } else {
            kind = cursor.u16()?;
            len = cursor.u16()?;
            flags = cursor.u8()?;
            cursor.skip(3)?;
        }
        let body = cursor.part(len.into(), "a message")?;
        Ok(Some((kind, flags, body)))
    }
}

/// The content of a message, or the place of a shared one.
pub(crate) struct Body<'h> {
    pub(crate) cursor: Cursor<'h>,
    pub(crate) is_shared: bool,
}

/// The first block of version 1.
fn old(store: &Store, address: u64, what: &'static str) -> Result<((Block, u64), Form)> {
    /// Bytes before the messages, padding included.
    const HEAD: u64 = 16;
    let head = store.fetch(address, HEAD, what)?;
    let mut cursor = head.cursor();
    cursor.skip(1 + 1 + 2 + 4)?;
    let len = u64::from(cursor.u32()?);
    let block = store.fetch(address, sum([HEAD, len])?, what)?;
    let form = Form { is_new: false, has_order: false };
    Ok(((block, HEAD), form))
}

/// The first block of version 2.
fn new(store: &Store, address: u64, what: &'static str) -> Result<((Block, u64), Form)> {
    const TIMES: u8 = 1 << 5;
    const ATTRIBUTE_LIMITS: u8 = 1 << 4;
    const ORDER: u8 = 1 << 2;
    let head = store.fetch(address, 6, what)?;
    let mut cursor = head.signed(b"OHDR")?;
    cursor.expect_version(2)?;
    let flags = cursor.u8()?;
    let times = if flags & TIMES != 0 { 16 } else { 0 };
    let limits = if flags & ATTRIBUTE_LIMITS != 0 { 4 } else { 0 };
    let width = 1u64 << (flags & 3);
    let before = sum([6, times, limits])?;
    let start = sum([before, width])?;
    let head = store.fetch(address, start, what)?;
    let mut cursor = head.cursor();
    cursor.skip(before)?;
    let len = cursor.uint(width)?;
    let block = store.fetch_checked(address, sum([start, len, 4])?, what)?;
    let form = Form { is_new: true, has_order: flags & ORDER != 0 };
    Ok(((block, start), form))
}
