//! CRC-32 (ISO-HDLC), the checksum of members.

use std::io;

use crc32fast::Hasher;
use zt_container::{Checksum, Digest};

use crate::error::Error;

static CRC32: Checksum = Checksum {
    name: "crc32",
    hasher: || Box::new(Hasher::new()),
    combine: Some(|first, next, next_len| {
        let mut whole = Hasher::new_with_initial(sum(first));
        whole.combine(&Hasher::new_with_initial_len(sum(next), next_len));
        whole.finalize().into()
    }),
    spell: |sum| format!("0x{sum:08X}"),
};

#[expect(clippy::expect_used, reason = "a digest of this checksum is made of 32 bits")]
fn sum(value: u64) -> u32 {
    u32::try_from(value).expect("a CRC-32 has 32 bits")
}

/// Refuses content with another CRC-32 than the directory has.
pub(crate) fn expect(expected: u32, found: u32) -> io::Result<()> {
    if expected == found {
        return Ok(());
    }
    let (expected, found) = (crc32(expected), crc32(found));
    Err(Error::from(zt_container::Error::DigestMismatch { expected, found }).into())
}

/// The digest of this checksum.
pub(crate) fn crc32(sum: u32) -> Digest {
    CRC32.of(sum.into())
}
