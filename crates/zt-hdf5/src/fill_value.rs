//! What stands for values that were never written. Spec: IV.A.2.e and IV.A.2.f.

use zt::Result;

use crate::cursor::Cursor;
use crate::object_header::{ObjectHeader, kind};
use crate::store::Store;

/// The bytes of one element; zeros where the file says none.
///
/// # Errors
///
/// Codes `header`, `version`.
pub(super) fn read(store: &Store, header: &ObjectHeader, element_len: u64) -> Result<Vec<u8>> {
    let said = match header.read_message(store, kind::FILL_VALUE, new)? {
        Some(said) => Some(said),
        None => header.read_message(store, kind::OLD_FILL_VALUE, sized)?,
    };
    let len = usize::try_from(element_len).unwrap_or(0);
    let said = said.filter(|said| said.len() == len);
    Ok(said.unwrap_or_else(|| vec![0; len]))
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
    Ok(if is_defined {
        sized(cursor)?
    } else {
        Vec::new()
    })
}

fn sized(cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
    let len = cursor.u32()?;
    // A negative length says that there is none.
    let len = i32::try_from(len).unwrap_or(0);
    Ok(cursor.take(usize::try_from(len).unwrap_or(0))?.to_vec())
}
