//! The links of a group, which are stored in one of three ways.
//!
//! An old group has a tree of symbol nodes, and a heap of names (Spec: III.A to III.D). A new group
//! has a message per link, or a fractal heap of such messages if it has many links (IV.A.2.g).

use zt::Result;

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{product, sum};
use crate::bytes::store::{Block, Store};
use crate::structures::btree1::Tree;
use crate::structures::btree2;
use crate::structures::fractal_heap::FractalHeap;
use crate::structures::object_header::{ObjectHeader, kind};

/// A link of a group.
#[derive(Debug)]
pub(crate) struct Link {
    /// Any bytes.
    pub(crate) name: Vec<u8>,
    pub(crate) target: Target,
}

/// The target of a link.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// The object with its header at that address.
    Hard(u64),
    /// A path in this file.
    Soft(Vec<u8>),
    /// A path in the file of that name.
    External { file: Vec<u8>, path: Vec<u8> },
    /// A target of an unknown kind.
    Unknown,
}

/// The links of a group. Their names are unique, and none is empty.
#[derive(Debug)]
pub(crate) struct Links {
    /// In the order of the file.
    all: Vec<Link>,
    /// Indices into `all`, sorted by name.
    by_name: Vec<usize>,
}

impl Links {
    pub(crate) fn read(store: &Store, header: &ObjectHeader) -> Result<Self> {
        let all = links(store, header)?;
        let name = |at: &usize| all.get(*at).map(|link| link.name.as_slice());
        let mut by_name: Vec<usize> = (0..all.len()).collect();
        by_name.sort_unstable_by_key(name);
        let twice = by_name.windows(2).find_map(|pair| match pair {
            [first, second] if name(first) == name(second) => name(first),
            _ => None,
        });
        // An empty name is sorted first.
        let empty = by_name.first().and_then(name).filter(|name| name.is_empty());
        if let Some(name) = twice.or(empty) {
            let name = crate::bytes::name::text(name);
            return Err(Hdf5Fault::LinkName { name }.into());
        }
        Ok(Links { all, by_name })
    }

    /// The link at an index, in the order of the file.
    pub(crate) fn at(&self, place: usize) -> Option<&Link> {
        self.all.get(place)
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&Target> {
        let link = |at: &usize| self.all.get(*at);
        let name_of = |at: &usize| link(at).map(|link| link.name.as_slice());
        let found = self.by_name.binary_search_by_key(&Some(name), name_of).ok()?;
        self.by_name.get(found).and_then(link).map(|link| &link.target)
    }
}

pub(crate) fn is_group(header: &ObjectHeader) -> bool {
    let has = |kind| header.message(kind).is_some();
    has(kind::SYMBOL_TABLE) || has(kind::LINK_INFO) || has(kind::LINK)
}

/// The links, in any of the three ways.
fn links(store: &Store, header: &ObjectHeader) -> Result<Vec<Link>> {
    if let Some(message) = header.message(kind::SYMBOL_TABLE) {
        return symbols(store, message.cursor);
    }
    let mut links = Vec::new();
    for message in header.messages(kind::LINK) {
        links.push(link(message.cursor)?);
    }
    if let Some(message) = header.message(kind::LINK_INFO) {
        dense(store, message.cursor, &mut links)?;
    }
    Ok(links)
}

/// The links of an old group.
fn symbols(store: &Store, mut message: Cursor<'_>) -> Result<Vec<Link>> {
    let tree = message.defined_address()?;
    let heap = LocalHeap::read(store, message.defined_address()?)?;
    let sizes = store.sizes;
    let names = Tree { what: "a tree of names", node_type: 0, key_len: sizes.length };
    let mut links = Vec::new();
    names.visit(store, tree, |_, node| {
        let what = "a symbol node";
        let head = store.fetch(node, 8, what)?;
        let mut cursor = head.signed(b"SNOD")?;
        cursor.expect_version(1)?;
        cursor.skip(1)?;
        let count = u64::from(cursor.u16()?);
        let len = product([count, sizes.bytes(1, 1, 4 + 4 + 16)])?;
        let entries = store.fetch(sum([node, 8])?, len, what)?;
        let mut cursor = entries.cursor();
        for _ in 0..count {
            let link = symbol(&mut cursor, &heap)?;
            // Any number of links may share one string of the heap.
            store.charge(link.name.len() as u64)?;
            if let Target::Soft(path) = &link.target {
                store.charge(path.len() as u64)?;
            }
            links.push(link);
        }
        Ok(())
    })?;
    Ok(links)
}

/// An entry of a symbol node. Spec: III.C.
fn symbol(cursor: &mut Cursor<'_>, heap: &LocalHeap) -> Result<Link> {
    const SOFT: u32 = 2;
    // An offset in the heap. HDF5 writes it as wide as a length.
    let name = cursor.length()?;
    let address = cursor.address()?;
    let cached = cursor.u32()?;
    cursor.skip(4)?;
    let mut scratch = cursor.part(16, "a symbol")?;
    let target = match address {
        _ if cached == SOFT => Target::Soft(heap.text(scratch.u32()?.into())?),
        Some(address) => Target::Hard(address),
        None => return Err(cursor.error(Hdf5Fault::Missing("the object of a link"))),
    };
    let name = heap.text(name)?;
    Ok(Link { name, target })
}

/// The names of an old group. Spec: III.D.
struct LocalHeap(Block);

impl LocalHeap {
    fn read(store: &Store, address: u64) -> Result<Self> {
        let what = "a heap of names";
        let head = store.fetch(address, store.sizes.bytes(1, 2, 8), what)?;
        let mut cursor = head.signed(b"HEAP")?;
        cursor.expect_version(0)?;
        cursor.skip(3)?;
        let len = cursor.length()?;
        cursor.length()?;
        let data = cursor.defined_address()?;
        Ok(LocalHeap(store.fetch(data, len, what)?))
    }

    fn text(&self, offset: u64) -> Result<Vec<u8>> {
        let mut cursor = self.0.cursor();
        cursor.skip(offset)?;
        Ok(cursor.c_string()?.to_vec())
    }
}

/// A link message. Spec: IV.A.2.g.
fn link(mut cursor: Cursor<'_>) -> Result<Link> {
    const ORDER: u8 = 1 << 2;
    const TYPE: u8 = 1 << 3;
    const CHARSET: u8 = 1 << 4;
    cursor.expect_version(1)?;
    let flags = cursor.u8()?;
    let link_type = if flags & TYPE != 0 { cursor.u8()? } else { 0 };
    cursor.skip(if flags & ORDER != 0 { 8 } else { 0 })?;
    cursor.skip(if flags & CHARSET != 0 { 1 } else { 0 })?;
    let len = cursor.uint(1 << (flags & 3))?;
    let name = cursor.take(len)?;
    let target = match link_type {
        0 => Target::Hard(cursor.defined_address()?),
        1 => {
            let len = cursor.u16()?;
            let path = cursor.take(len.into())?;
            Target::Soft(path.to_vec())
        }
        64 => {
            let len = cursor.u16()?;
            let mut value = cursor.part(len.into(), "an external link")?;
            // A version and flags.
            value.skip(1)?;
            let file = value.c_string()?.to_vec();
            Target::External { file, path: value.c_string()?.to_vec() }
        }
        _ => Target::Unknown,
    };
    let name = name.to_vec();
    Ok(Link { name, target })
}

/// The links of a new group in a fractal heap, if it has one. Spec: IV.A.2.c.
fn dense(store: &Store, mut message: Cursor<'_>, links: &mut Vec<Link>) -> Result<()> {
    const ORDER: u8 = 1;
    /// The type of records of links by the hash of the name.
    const BY_NAME: u8 = 5;
    message.expect_version(0)?;
    let flags = message.u8()?;
    message.skip(if flags & ORDER != 0 { 8 } else { 0 })?;
    let (heap, names) = (message.address()?, message.address()?);
    let Some((heap, names)) = heap.zip(names) else {
        return Ok(());
    };
    let heap = FractalHeap::open(store, heap)?;
    btree2::visit(store, names, BY_NAME, "a tree of links", |mut record| {
        // The hash of the name.
        record.skip(4)?;
        let message = heap.object(record.rest())?;
        links.push(link(message.cursor())?);
        Ok(())
    })
}
