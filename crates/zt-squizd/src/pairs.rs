//! Assigns scale entries to tensors by their order, because nothing else connects them.

use zt::{Error, Result};

use crate::scales::{Scales, Tables};
use crate::violation::Violation;

/// The number of quantized tensors in a part of the file, as far as it could be read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) tensors: u64,
    pub(super) is_broken: bool,
}

/// The entries of the tables, in the order of the tensors: layers ascending, then the draft head.
pub(super) struct Pairs {
    entries: Result<std::vec::IntoIter<Scales>>,
    /// Tensors of the layers before the first broken one.
    main_left: u64,
    main_is_broken: bool,
    /// Whether the tables have entries for the draft head too.
    has_draft: bool,
}

impl Pairs {
    /// A fault of the tables is an error in a file without quantized tensors. Otherwise it goes to
    /// each quantized tensor.
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

    /// The entries of the next tensor of the layers.
    pub(super) fn main(&mut self) -> Result<Scales> {
        let entries = self.entries.as_mut().map_err(|error| error.clone())?;
        let left = self.main_left.checked_sub(1);
        self.main_left = left.ok_or(Violation::Unpaired)?;
        entries.next().ok_or_else(|| Violation::Unpaired.into())
    }

    /// The entries of the next tensor of the draft head; `None` if the tables have none for it.
    pub(super) fn draft(&mut self) -> Result<Option<Scales>> {
        let entries = self.entries.as_mut().map_err(|error| error.clone())?;
        if self.main_is_broken {
            return Err(Violation::Unpaired.into());
        }
        if !self.has_draft {
            return Ok(None);
        }
        entries.next().map(Some).ok_or_else(|| Error::from(Violation::Unpaired))
    }
}

fn check(tables: &Tables, main: Count, draft: Count) -> Result<()> {
    if tables.spans.is_empty() && main.tensors > 0 {
        return Err(Violation::NoTable.into());
    }
    let found = tables.tensors.len() as u64;
    let left = found.checked_sub(main.tensors);
    let fits = if main.is_broken || draft.is_broken {
        left.is_some()
    } else {
        left == Some(0) || left == Some(draft.tensors)
    };
    if fits {
        return Ok(());
    }
    let (main, draft) = (main.tensors, draft.tensors);
    let error = Violation::TableCount { found, main, draft };
    let first = tables.spans.first().map_or(0, |table| table.offset());
    Err(error.at(first))
}
