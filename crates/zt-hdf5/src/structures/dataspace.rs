//! The shape of a dataset or an attribute. Spec: IV.A.2.b.

use zt::Result;

use crate::bytes::cursor::Cursor;

/// The most dimensions that HDF5 allows: `H5S_MAX_RANK`.
const RANK_MAX: u8 = 32;

/// A shape, and its largest size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dataspace {
    /// Outermost first; `None` for a dataspace without elements and without a shape.
    pub(crate) shape: Option<Vec<u64>>,
    /// The largest size of every dimension; `None` if it is unlimited.
    pub(crate) limits: Vec<Option<u64>>,
}

impl Dataspace {
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        const HAS_LIMITS: u8 = 1;
        const NULL: u8 = 2;
        let version = cursor.u8()?;
        let rank = cursor.u8()?;
        let flags = cursor.u8()?;
        let is_null = match version {
            1 => {
                cursor.skip(1 + 4)?;
                false
            }
            2 => cursor.u8()? == NULL,
            other => return Err(cursor.version(other)),
        };
        if rank > RANK_MAX {
            return Err(cursor.field("the rank of a dataspace", rank.into()));
        }
        let shape: Vec<u64> = dimensions(cursor, rank)?;
        let limits = if flags & HAS_LIMITS == 0 {
            shape.iter().copied().map(Some).collect()
        } else {
            // All bits of a length.
            let unlimited = match cursor.sizes.length {
                2 => u16::MAX.into(),
                4 => u32::MAX.into(),
                _ => u64::MAX,
            };
            let limits = dimensions(cursor, rank)?.into_iter();
            limits.map(|limit| Some(limit).filter(|_| limit != unlimited)).collect()
        };
        let shape = if is_null { None } else { Some(shape) };
        Ok(Dataspace { shape, limits })
    }

    /// The number of elements; `None` if it overflows.
    pub(crate) fn elements(&self) -> Option<u64> {
        let mut counts = self.shape.as_deref().unwrap_or(&[0]).iter();
        counts.try_fold(1u64, |product, count| product.checked_mul(*count))
    }
}

fn dimensions(cursor: &mut Cursor<'_>, rank: u8) -> Result<Vec<u64>> {
    (0..rank).map(|_| cursor.length()).collect()
}
