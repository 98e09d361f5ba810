//! The digest `crc32c`, beside the crate of that name.
#![allow(clippy::unwrap_used, reason = "tests")]

use zt::container::Hasher;
use zt::{Digest, DigestAlgorithm::Crc32c};

fn bytes() -> Vec<u8> {
    let byte = |at: u32| (at.wrapping_mul(at) >> 7).to_le_bytes()[0];
    (0..70_000).map(byte).collect()
}

/// Every length at which the kernel takes another path, at several alignments.
#[test]
fn is_the_checksum_of_another_implementation() {
    let bytes = bytes();
    for len in (0..=1100).chain([4096, 4097, 16_384, 65_535, 69_000]) {
        for start in [0, 1, 3, 8, 63] {
            let part = &bytes[start..start + len];
            let expected = Digest::Crc32c(crc32c::crc32c(part));
            assert_eq!(Crc32c.digest(part).unwrap(), expected, "{len} from {start}");
            let mut hasher = Hasher::new(Crc32c).unwrap();
            hasher.update(&bytes[..start]);
            hasher.update(part);
            let expected = crc32c::crc32c(&bytes[..start + len]);
            assert_eq!(hasher.finish(), Digest::Crc32c(expected), "{len} behind {start}");
        }
    }
}

#[test]
fn two_stretches_of_any_length_combine() {
    for shift in 1..47.min(usize::BITS - 2) {
        for len in [(1usize << shift) - 1, 1 << shift, 3 << shift] {
            let (first, next) = (Digest::Crc32c(0xdead_beef), Digest::Crc32c(0x1234_5678));
            let expected = crc32c::crc32c_combine(0xdead_beef, 0x1234_5678, len);
            let found = first.followed_by(&next, len as u64);
            assert_eq!(found, Some(Digest::Crc32c(expected)), "{len}");
        }
    }
}
