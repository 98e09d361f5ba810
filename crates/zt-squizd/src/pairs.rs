//! Scale entries to tensors, by order: nothing else connects them.

use zt::{Error, Result};

use crate::scales::{Scales, Tables};
use crate::violation::Violation;

/// How many quantized tensors a part of the file has, as far as it could be followed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) tensors: u64,
    pub(super) is_broken: bool,
}

/// The entries of the tables, to be taken by the tensors in their order: layers ascending, then the
/// draft head.
pub(super) struct Pairs {
    entries: Result<std::vec::IntoIter<Scales>>,
    /// Tensors of the layers that are before whatever is broken.
    main_left: u64,
    main_is_broken: bool,
    /// Whether the tables have entries for the draft head as well.
    has_draft: bool,
}

impl Pairs {
    /// # Errors
    ///
    /// Never for a file with a quantized tensor: each gets the error when its turn comes. Without
    /// one there is nobody else to blame than the file.
    pub(super) fn new(tables: &Result<Tables>, main: Count, draft: Count) -> Result<Self> {
        let entries = match tables {
            Ok(tables) => check(tables, main, draft).map(|()| tables.tensors.clone()),
            Err(error) => Err(error.clone()),
        };
        if main.tensors == 0
            && draft.tensors == 0
            && let Err(error) = entries
        {
            return Err(error);
        }
        let found = entries.as_ref().map_or(0, |entries| entries.len() as u64);
        Ok(Pairs {
            entries: entries.map(Vec::into_iter),
            main_left: main.tensors,
            main_is_broken: main.is_broken,
            has_draft: found > main.tensors,
        })
    }

    /// What the next tensor of the layers has.
    pub(super) fn main(&mut self) -> Result<Scales> {
        let entries = self.entries.as_mut().map_err(|error| error.clone())?;
        let left = self.main_left.checked_sub(1);
        self.main_left = left.ok_or(Violation::Unpaired)?;
        entries.next().ok_or_else(|| Violation::Unpaired.into())
    }

    /// What the next tensor of the draft head has; `None` where the tables leave it out.
    pub(super) fn draft(&mut self) -> Result<Option<Scales>> {
        let entries = self.entries.as_mut().map_err(|error| error.clone())?;
        if self.main_is_broken {
            return Err(Violation::Unpaired.into());
        }
        if !self.has_draft {
            return Ok(None);
        }
        entries
            .next()
            .map(Some)
            .ok_or_else(|| Error::from(Violation::Unpaired))
    }
}

fn check(tables: &Tables, main: Count, draft: Count) -> Result<()> {
    if tables.spans.is_empty() && main.tensors > 0 {
        return Err(Violation::NoTable.into());
    }
    let found = tables.tensors.len() as u64;
    let all = main.tensors.saturating_add(draft.tensors);
    let fits = match (main.is_broken, draft.is_broken) {
        (true, _) | (false, true) => found >= main.tensors,
        (false, false) => found == main.tensors || found == all,
    };
    if fits {
        return Ok(());
    }
    let (main, draft) = (main.tensors, draft.tensors);
    let error = Violation::TableCount { found, main, draft };
    let first = tables.spans.first().map_or(0, |table| table.offset());
    Err(error.at(first))
}
