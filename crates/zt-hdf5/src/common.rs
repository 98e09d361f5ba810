//! What objects of a file have in common, each read once: texts, and datatypes with names of their own.

use std::collections::HashMap;
use std::sync::Arc;

use zt::{ErrorKind, Result, Value};

use crate::cursor::Cursor;
use crate::datatype::Datatype;
use crate::global_heap::GlobalHeaps;
use crate::object_header::{self, Body, kind};
use crate::store::Store;
use crate::violation::Violation;

/// Lists that the attributes of a file may be made of, beside those that its length justifies.
const LISTS_MIN: u64 = 4096;
/// What each of the others takes.
const LIST: u64 = size_of::<Value>() as u64;

/// What has been read of it.
#[derive(Default)]
pub(super) struct Common {
    pub(super) heaps: GlobalHeaps,
    /// By the addresses of their headers.
    datatypes: HashMap<u64, Result<Arc<Datatype>>>,
    /// Lists in the values of all attributes.
    lists: u64,
}

impl Common {
    /// The datatype that a message has, or names.
    ///
    /// # Errors
    ///
    /// As [`Datatype::read`] and [`object_header::shared`].
    pub(super) fn datatype(&mut self, store: &Store, body: Body<'_>) -> Result<Arc<Datatype>> {
        let mut cursor = body.cursor;
        match body.is_shared {
            true => self.named(store, &mut cursor),
            false => Datatype::read(&mut cursor).map(Arc::new),
        }
    }

    /// Counts the lists of an attribute's value, before they are made.
    ///
    /// # Errors
    ///
    /// Code `structure-limit` where there are more than the file's length justifies.
    pub(super) fn charge_lists(&mut self, store: &Store, count: u64) -> Result<()> {
        let cost = |lists: u64| lists.saturating_sub(LISTS_MIN).saturating_mul(LIST);
        let lists = self.lists.saturating_add(count);
        let charged = store.charge(cost(lists).saturating_sub(cost(self.lists)));
        charged.map_err(|_| Violation::Lists { count })?;
        self.lists = lists;
        Ok(())
    }

    /// The datatype of another object, which `place` names.
    fn named(&mut self, store: &Store, place: &mut Cursor<'_>) -> Result<Arc<Datatype>> {
        let address = object_header::place_of_shared(place)?;
        if let Some(known) = self.datatypes.get(&address) {
            return known.clone();
        }
        let read = object_header::shared(store, address, kind::DATATYPE, Datatype::read);
        let read = read.map(Arc::new);
        // What could not be read now may be later.
        if !matches!(&read, Err(error) if error.kind() == ErrorKind::Io) {
            self.datatypes.insert(address, read.clone());
        }
        read
    }
}
