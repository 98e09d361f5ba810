//! Maps of open files, each made once.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::Mmap;

use crate::ffi;

/// By the address of the file, which does not change while it is open. `None` if it cannot be mapped.
#[derive(Default)]
pub(crate) struct Maps(Mutex<HashMap<usize, Option<Arc<Mmap>>>>);

impl Maps {
    pub(crate) fn of(&self, file: &fs::File) -> Option<Arc<Mmap>> {
        let mut maps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = std::ptr::from_ref(file).addr();
        maps.entry(place).or_insert_with(|| ffi::map(file).ok().map(Arc::new)).clone()
    }
}
