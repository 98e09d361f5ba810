//! The mappings of a virtual dataset, which are in the global heap. Spec: "Virtual Dataset Mapping"
//! (`H5Olayout.c`).

use std::rc::Rc;

use zt::Result;

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::vds::selection::Selection;

/// A part of a virtual dataset, and the part of another dataset that has its values.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) file: Name,
    pub(crate) dataset: Name,
    /// The selected elements of the source, and their places.
    pub(crate) from: Selection,
    pub(crate) to: Selection,
}

impl Mapping {
    /// Reads all mappings of an object of the heap.
    pub(crate) fn read_all(cursor: &mut Cursor<'_>) -> Result<Vec<Self>> {
        /// The name of the file, or of the dataset, is in an earlier mapping.
        const FILE_IS_SHARED: u8 = 1;
        const DATASET_IS_SHARED: u8 = 2;
        /// The source is in the file itself.
        const IS_HERE: u8 = 4;
        let has_flags = match cursor.u8()? {
            0 => false,
            1 => true,
            version => return Err(cursor.version(version)),
        };
        let mut all: Vec<Mapping> = Vec::new();
        for _ in 0..cursor.length()? {
            let flags = if has_flags { cursor.u8()? } else { 0 };
            let file = if flags & IS_HERE != 0 {
                Name::here()
            } else if flags & FILE_IS_SHARED != 0 {
                earlier(cursor, &all)?.file.clone()
            } else {
                Name::read(cursor)?
            };
            let dataset = if flags & DATASET_IS_SHARED != 0 {
                earlier(cursor, &all)?.dataset.clone()
            } else {
                Name::read(cursor)?
            };
            all.push(Mapping {
                file,
                dataset,
                from: Selection::read(cursor)?,
                to: Selection::read(cursor)?,
            });
        }
        Ok(all)
    }

    /// Whether a name has a place for the number of a block.
    pub(crate) fn is_numbered(&self) -> bool {
        self.file.0.len() > 1 || self.dataset.0.len() > 1
    }
}

/// The earlier mapping with the next number.
fn earlier<'m>(cursor: &mut Cursor<'_>, all: &'m [Mapping]) -> Result<&'m Mapping> {
    let number = cursor.length()?;
    let at = usize::try_from(number).ok();
    let found = at.and_then(|at| all.get(at));
    found.ok_or_else(|| cursor.field("the number of a mapping", number))
}

/// The name of a source: the pieces between the places for the number of a block, which are written
/// `%b`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(Rc<[Vec<u8>]>);

impl Name {
    /// The name of the file with the virtual dataset.
    fn here() -> Self {
        Name([b".".to_vec()].into())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let name = cursor.c_string()?;
        Name::new(name).ok_or_else(|| {
            let name = crate::bytes::name::text(name);
            cursor.error(Hdf5Fault::SourceName { name })
        })
    }

    fn new(name: &[u8]) -> Option<Self> {
        let mut pieces = vec![Vec::new()];
        let mut bytes = name.iter();
        while let Some(byte) = bytes.next() {
            match (byte, pieces.last_mut()?) {
                (b'%', piece) => match bytes.next()? {
                    b'%' => piece.push(b'%'),
                    b'b' => pieces.push(Vec::new()),
                    _ => return None,
                },
                (byte, piece) => piece.push(*byte),
            }
        }
        Some(Name(pieces.into()))
    }

    pub(crate) fn of(&self, number: u64) -> Vec<u8> {
        self.0.join(number.to_string().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn names_have_the_number_of_a_block_at_every_place_for_it() {
        let name = |text: &str| Name::new(text.as_bytes());
        assert_eq!(name("a%b_%b.h5").unwrap().of(12), b"a12_12.h5");
        assert_eq!(name("100%%").unwrap().of(3), b"100%");
        assert_eq!([name("a%"), name("a%d")], [None, None]);
    }
}
