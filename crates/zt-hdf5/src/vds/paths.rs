//! Objects found by their paths in a file.

use std::collections::HashMap;
use std::rc::Rc;

use zt::{ErrorKind, Result};

use crate::bytes::store::Store;
use crate::structures::group::{Links, Target, is_group};
use crate::structures::object_header::ObjectHeader;

/// The most soft links in a chain: HDF5's own default.
const SOFT_LINKS: usize = 16;

/// The links of the groups that were read. Each is read once.
pub(crate) struct Paths {
    root: u64,
    /// By the address of the header; `None` for an object that is not a group.
    groups: HashMap<u64, Result<Option<Rc<Links>>>>,
}

impl Paths {
    pub(crate) fn new(root: u64) -> Self {
        Paths { root, groups: HashMap::new() }
    }

    pub(crate) fn links(
        &mut self,
        store: &Store,
        address: u64,
        header: &ObjectHeader,
    ) -> Result<Rc<Links>> {
        if let Some(Ok(Some(known))) = self.groups.get(&address) {
            return Ok(Rc::clone(known));
        }
        let links = Rc::new(Links::read(store, header)?);
        self.groups.insert(address, Ok(Some(Rc::clone(&links))));
        Ok(links)
    }

    /// The address of the object at a path from a group; `None` if there is none.
    pub(crate) fn find(&mut self, store: &Store, from: u64, path: &[u8]) -> Result<Option<u64>> {
        let mut at = from;
        let mut hops = SOFT_LINKS;
        // The remaining parts, the next one last.
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let root = self.root;
        let go = |at: &mut u64, path: &[u8], parts: &mut Vec<Vec<u8>>| {
            if path.starts_with(b"/") {
                *at = root;
            }
            let named = path.split(|byte| *byte == b'/');
            let named = named.filter(|part| !matches!(*part, b"" | b"."));
            parts.extend(named.rev().map(ToOwned::to_owned));
        };
        go(&mut at, path, &mut parts);
        while let Some(part) = parts.pop() {
            let links = self.group(store, at)?;
            match links.and_then(|links| links.get(&part).cloned()) {
                Some(Target::Hard(address)) => at = address,
                Some(Target::Soft(further)) => {
                    let Some(left) = hops.checked_sub(1) else {
                        return Ok(None);
                    };
                    hops = left;
                    store.charge(further.len() as u64)?;
                    go(&mut at, &further, &mut parts);
                }
                Some(Target::External { .. } | Target::Unknown) | None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// The links of the group at `address`; `None` for an object that is not a group.
    fn group(&mut self, store: &Store, address: u64) -> Result<Option<Rc<Links>>> {
        if let Some(known) = self.groups.get(&address) {
            return known.clone();
        }
        let read = || {
            let header = ObjectHeader::read(store, address)?;
            if !is_group(&header) {
                return Ok(None);
            }
            Links::read(store, &header).map(|links| Some(Rc::new(links)))
        };
        let found = read();
        // A read that failed may succeed later.
        if !matches!(&found, Err(error) if error.kind() == ErrorKind::Io) {
            self.groups.insert(address, found.clone());
        }
        found
    }
}
