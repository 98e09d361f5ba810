//! Structures that the objects of a file share: heaps of strings, and named datatypes. Each is read
//! once.

use std::collections::HashMap;
use std::sync::Arc;

use zt::{ErrorKind, Result, Value};

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::store::Store;
use crate::structures::datatype::Datatype;
use crate::structures::global_heap::GlobalHeaps;
use crate::structures::object_header::{Body, kind};
use crate::structures::shared::{self, Place};

/// The lists that the attributes of any file may have. Further lists count as bytes that are read.
const LISTS_MIN: u64 = 4096;
/// The bytes of each further list.
const LIST: u64 = size_of::<Value>() as u64;

/// The structures that have been read.
#[derive(Default)]
pub(crate) struct Common {
    pub(crate) heaps: GlobalHeaps,
    datatypes: HashMap<Place, Result<Arc<Datatype>>>,
    /// Lists in the values of all attributes.
    lists: u64,
}

impl Common {
    /// The datatype of a message, which may refer to a named one.
    pub(crate) fn datatype(&mut self, store: &Store, body: Body<'_>) -> Result<Arc<Datatype>> {
        let mut cursor = body.cursor;
        if body.is_shared {
            self.named(store, &mut cursor)
        } else {
            Datatype::read(&mut cursor).map(Arc::new)
        }
    }

    /// Counts the lists of an attribute's value, before they are made. The limit depends on the
    /// file's length.
    pub(crate) fn charge_lists(&mut self, store: &Store, count: u64) -> Result<()> {
        // A cost that saturates is above the limit.
        let cost = |lists: u64| lists.saturating_sub(LISTS_MIN).saturating_mul(LIST);
        let lists = self.lists.saturating_add(count);
        let charged = store.charge(cost(lists).saturating_sub(cost(self.lists)));
        charged.map_err(|_| Hdf5Fault::Lists { count })?;
        self.lists = lists;
        Ok(())
    }

    fn named(&mut self, store: &Store, place: &mut Cursor<'_>) -> Result<Arc<Datatype>> {
        let place = Place::read(place)?;
        if let Some(known) = self.datatypes.get(&place) {
            return known.clone();
        }
        let read = shared::read(store, place, kind::DATATYPE, Datatype::read);
        let read = read.map(Arc::new);
        // A read that failed may succeed later.
        if !matches!(&read, Err(error) if error.kind() == ErrorKind::Io) {
            self.datatypes.insert(place, read.clone());
        }
        read
    }
}
