//! The signatures of records, and the record at the beginning of a file.

use zt_container::fields::Fields;

/// Whether a file begins like an archive; an empty archive is only an end record.
pub fn is_archive(head: &[u8]) -> bool {
    head.starts_with(LOCAL) || head.starts_with(END)
}

/// The name in the local header at the beginning of a file. It shows the kind of a broken archive.
pub fn first_name(head: &[u8]) -> Option<&[u8]> {
    let fields = Fields(head.strip_prefix(LOCAL)?);
    head.get(LOCAL_LEN..)?.get(..usize::from(fields.u16(22)?))
}

pub(crate) const LOCAL: &[u8] = b"PK\x03\x04";
pub(crate) const DESCRIPTOR: &[u8] = b"PK\x07\x08";
pub(crate) const CENTRAL: &[u8] = b"PK\x01\x02";
pub(crate) const END: &[u8] = b"PK\x05\x06";
pub(crate) const END_64: &[u8] = b"PK\x06\x06";
pub(crate) const LOCATOR_64: &[u8] = b"PK\x06\x07";

/// Bytes of a local header before the name.
pub(crate) const LOCAL_LEN: usize = 30;
