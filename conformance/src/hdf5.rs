//! HDF5 files put together from parts, by code that shares nothing with the reader under test.

/// The type of a message that is an attribute. Spec: IV.A.2.m.
pub const ATTRIBUTE: u16 = 12;
/// And of one that says where the header goes on. Spec: IV.A.2.q.
pub const CONTINUATION: u16 = 16;
const LINK_INFO: u16 = 2;

/// Where the messages of [`group`] begin, behind that which makes it a group.
pub const MESSAGES: u64 = 96 + 16 + 8 + 24;

/// A file of a root group without links, which has these messages.
///
/// # Panics
///
/// Where a message takes 64 KiB.
#[must_use]
pub fn group(messages: &[(u16, Vec<u8>)]) -> Vec<u8> {
    const SUPERBLOCK_LEN: u64 = 96;
    let mut all = Vec::new();
    let mut push = |kind: u16, body: &[u8]| {
        let len = u16::try_from(body.len().next_multiple_of(8)).expect("less than 64 KiB");
        all.extend([kind, len, 0, 0].map(u16::to_le_bytes).concat());
        all.extend(body);
        all.resize(all.len().next_multiple_of(8), 0);
    };
    // A group is what has links, here none.
    push(LINK_INFO, &[&[0; 2][..], &[u8::MAX; 16]].concat());
    for (kind, body) in messages {
        push(*kind, body);
    }
    let len = (all.len() as u64).to_le_bytes();
    let object = [&[1, 0, 2, 0, 1, 0, 0, 0], &len, &all[..]].concat();
    let end = SUPERBLOCK_LEN + object.len() as u64;
    let superblock = [
        &b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0\x04\0\x10\0\0\0\0\0"[..],
        &[0, u64::MAX, end, u64::MAX].map(u64::to_le_bytes).concat(),
        &[0, SUPERBLOCK_LEN, 0, 0, 0].map(u64::to_le_bytes).concat(),
    ];
    [&superblock.concat()[..], &object].concat()
}

/// One of so many attributes that are no attributes, each read `times` times: a header may go on where it
/// has been.
#[must_use]
pub fn empty_attributes(count: u32, times: u32) -> Vec<u8> {
    let again = [MESSAGES, u64::from(count) * 8].map(u64::to_le_bytes).concat();
    let attributes = (0..count).map(|_| (ATTRIBUTE, Vec::new()));
    let again = (1..times).map(|_| (CONTINUATION, again.clone()));
    group(&attributes.chain(again).collect::<Vec<_>>())
}
