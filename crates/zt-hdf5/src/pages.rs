//! The elements and pages of fixed and extensible arrays.

use zt::Result;

use crate::cursor::Cursor;

/// The elements of an array.
#[derive(Clone, Copy)]
pub(super) struct Element {
    /// Bytes of one.
    pub(super) byte_len: u64,
    pub(super) what: &'static str,
}

impl Element {
    /// Bytes of `count` elements.
    pub(super) fn bytes(self, count: u64) -> u64 {
        self.byte_len.saturating_mul(count)
    }
}

/// The type of an array's elements, which is the same in all of its structures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Client(u8);

/// The version and the client of a header.
pub(super) fn client(cursor: &mut Cursor<'_>) -> Result<Client> {
    match cursor.u8()? {
        0 => Ok(Client(cursor.u8()?)),
        version => Err(cursor.version(version)),
    }
}

impl Client {
    /// Checks that another structure of the array has the same version and client.
    pub(super) fn expect(self, cursor: &mut Cursor<'_>) -> Result<()> {
        match client(cursor)? {
            found if found == self => Ok(()),
            Client(other) => Err(cursor.field("the client of an array", other.into())),
        }
    }
}

/// Whether a page was written. The first page is the highest bit of the first byte.
pub(super) fn has_page(bitmap: &[u8], number: u64) -> bool {
    let byte = usize::try_from(number / 8)
        .ok()
        .and_then(|at| bitmap.get(at));
    byte.is_some_and(|byte| byte.rotate_left(u32::try_from(number % 8).unwrap_or(0)) & 0x80 != 0)
}

/// Visits the next `count` elements. The first has the index `first`.
pub(super) fn visit_elements(
    cursor: &mut Cursor<'_>,
    first: u64,
    count: u64,
    element: Element,
    visit: &mut impl FnMut(u64, &mut Cursor<'_>) -> Result<()>,
) -> Result<()> {
    let len = usize::try_from(element.byte_len).unwrap_or(usize::MAX);
    for at in 0..count {
        let mut part = cursor.part(len, element.what)?;
        visit(first.saturating_add(at), &mut part)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::has_page;

    #[test]
    fn pages_are_counted_from_the_highest_bit() {
        let bitmap = [0b0100_0001, 0b1000_0000];
        let found: Vec<u64> = (0..20)
            .filter(|number| has_page(&bitmap, *number))
            .collect();
        assert_eq!(found, [1, 7, 8]);
    }
}
