//! Objects that are taken together: as few as share no bytes with the others.

use crate::file::catalog::Decoded;
use crate::file::kind::Kind;
use crate::file::{Entry, File};

/// The number of objects in a batch, if it can end there.
const BATCH: usize = 1 << 12;

/// The objects of a file in the order of their data, in batches. No blob of one batch overlaps a blob
/// of another, except empty ones. So the result of a batch does not depend on the others.
///
/// A batch of a `.zt` file is decoded when its turn comes, and not kept. Files of other kinds are one
/// batch, because their objects are in memory. Remote files are one, too: they fetch ranges together.
pub(crate) struct Batches<'f> {
    file: &'f File,
    /// Places that are not decoded yet.
    rest: &'f [u32],
    at_a_time: usize,
    /// Objects of the next batch that are decoded already.
    next: Batch<'f>,
}

/// Objects with their places.
pub(crate) type Batch<'f> = Vec<(u32, Decoded<'f>)>;

impl<'f> Batches<'f> {
    pub(crate) fn of(file: &'f File) -> Self {
        let is_remote = file.inner.sources.iter().any(|source| source.is_remote());
        let at_a_time = if file.kind() == Kind::ZT && !is_remote { BATCH } else { usize::MAX };
        Batches { file, rest: file.data_order(), at_a_time, next: Vec::new() }
    }

    pub(crate) fn entries<'e>(file: &'e File, batch: &'e Batch<'_>) -> Vec<Entry<'e>> {
        let entries = batch.iter();
        entries.map(|(place, decoded)| file.entry_of(*place, decoded)).collect()
    }
}

impl<'f> Iterator for Batches<'f> {
    type Item = Batch<'f>;

    fn next(&mut self) -> Option<Batch<'f>> {
        let mut batch = std::mem::take(&mut self.next);
        // The last place where the batch can end, and the end of all blobs before the current object.
        let (mut cut, mut end, mut seen) = (0, 0, 0);
        loop {
            for (at, (_, decoded)) in batch.iter().enumerate().skip(seen) {
                // Objects are in the order of their beginnings, so that none begins before this one.
                if end <= decoded.start() {
                    cut = at;
                }
                end = end.max(decoded.end());
            }
            seen = batch.len();
            if cut > 0 && !self.rest.is_empty() {
                self.next = batch.split_off(cut);
                return Some(batch);
            }
            if self.rest.is_empty() {
                return (!batch.is_empty()).then_some(batch);
            }
            let cut = self.rest.split_at_checked(self.at_a_time);
            let (places, rest) = cut.unwrap_or((self.rest, &[]));
            self.rest = rest;
            self.file.decode(places, &mut batch);
        }
    }
}
