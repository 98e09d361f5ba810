//! Objects that are taken together: as few as share no bytes with the others.

use crate::file::catalog::Decoded;
use crate::file::kind::Kind;
use crate::file::{Entry, File};

/// The number of objects in a window, if it can end there.
const WINDOW: usize = 1 << 12;

/// The objects of a file in the order of their data, in windows. No blob of one window overlaps a blob
/// of another, except empty ones. So the result of a window does not depend on the others.
///
/// A window of a `.zt` file is decoded when its turn comes, and not kept. Files of other kinds are one
/// window, because their objects are in memory. Remote files are one, too: they fetch ranges together.
pub(crate) struct Windows<'f> {
    file: &'f File,
    /// Places that are not decoded yet.
    rest: &'f [u32],
    at_a_time: usize,
    /// Objects of the next window that are decoded already.
    next: Window<'f>,
}

/// Objects with their places.
pub(crate) type Window<'f> = Vec<(u32, Decoded<'f>)>;

impl<'f> Windows<'f> {
    pub(crate) fn of(file: &'f File) -> Self {
        let is_remote = file.inner.sources.iter().any(|source| source.is_remote());
        let at_a_time = if file.kind() == Kind::ZT && !is_remote { WINDOW } else { usize::MAX };
        Windows { file, rest: file.data_order(), at_a_time, next: Vec::new() }
    }

    pub(crate) fn entries<'e>(file: &'e File, window: &'e Window<'_>) -> Vec<Entry<'e>> {
        let entries = window.iter();
        entries.map(|(place, decoded)| file.entry_of(*place, decoded)).collect()
    }
}

impl<'f> Iterator for Windows<'f> {
    type Item = Window<'f>;

    fn next(&mut self) -> Option<Window<'f>> {
        let mut window = std::mem::take(&mut self.next);
        // The last place where the window can end, and the end of all blobs before the current object.
        let (mut cut, mut end, mut seen) = (0, 0, 0);
        loop {
            for (at, (_, decoded)) in window.iter().enumerate().skip(seen) {
                // Objects are in the order of their beginnings, so that none begins before this one.
                if end <= decoded.start() {
                    cut = at;
                }
                end = end.max(decoded.end());
            }
            seen = window.len();
            if cut > 0 && !self.rest.is_empty() {
                self.next = window.split_off(cut);
                return Some(window);
            }
            if self.rest.is_empty() {
                return (!window.is_empty()).then_some(window);
            }
            let cut = self.rest.split_at_checked(self.at_a_time);
            let (places, rest) = cut.unwrap_or((self.rest, &[]));
            self.rest = rest;
            self.file.decode(places, &mut window);
        }
    }
}
