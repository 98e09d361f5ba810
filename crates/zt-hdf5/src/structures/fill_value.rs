//! The fill value, for values that were never written. Spec: IV.A.2.e and IV.A.2.f.

use zt::Result;

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::store::Store;
use crate::structures::object_header::{ObjectHeader, kind};

/// The bytes of one element; none if the file has no fill value, which means zeros.
pub(crate) fn read(store: &Store, header: &ObjectHeader, element_len: u64) -> Result<Vec<u8>> {
    let fill = match header.read_message(store, kind::FILL_VALUE, new)? {
        Some(fill) => Some(fill),
        None => header.read_message(store, kind::OLD_FILL_VALUE, sized)?,
    };
    let len = usize::try_from(element_len).map_err(|_| Hdf5Fault::Overflow)?;
    let fill = fill.filter(|fill| fill.len() == len);
    Ok(fill.unwrap_or_default())
}

fn new(cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
    const DEFINED: u8 = 1 << 5;
    let is_defined = match cursor.u8()? {
        1 => {
            cursor.skip(3)?;
            true
        }
        2 => {
            cursor.skip(2)?;
            cursor.u8()? != 0
        }
        3 => cursor.u8()? & DEFINED != 0,
        version => return Err(cursor.version(version)),
    };
    Ok(if is_defined { sized(cursor)? } else { Vec::new() })
}

fn sized(cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
    // A negative length means that there is no value.
    let len = cursor.u32()?.cast_signed().max(0).cast_unsigned();
    Ok(cursor.take(len.into())?.to_vec())
}
