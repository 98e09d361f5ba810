//! Digests as texts, and computed.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is the failure of the test")]

use zt_container::Digest;
#[cfg(any(feature = "crc32c", feature = "sha2"))]
use zt_container::{DigestAlgorithm, Hasher};

#[test]
fn takes_every_spelling_of_real_writers() {
    let sum = Digest::Crc32c(0x0000_AB1F);
    for text in ["crc32c:0x0000AB1F", "crc32c:0000ab1f", "crc32c:0XAb1f", "CRC32C:0x0000ab1F"] {
        assert_eq!(text.parse::<Digest>().unwrap(), sum, "{text}");
    }
    let hex = "00ff".repeat(16);
    let sha: Digest = format!("sha256:{}", hex.to_uppercase()).parse().unwrap();
    assert_eq!(sha.to_string(), format!("sha256:{hex}"));
}

#[test]
fn refuses_what_is_no_digest() {
    let long = format!("sha256:{}", "0".repeat(128));
    let texts = [
        "",
        "crc32c",
        ":00",
        "crc32c=00",
        "crc32c:",
        "crc32c:0x",
        "crc32c:-1",
        "crc32c:+1",
        "crc32c: 1",
        "crc32c:123456789",
        "crc32c:xyz",
        "sha256:8f4a",
        "crc32c:\u{661}",
        &long,
    ];
    for text in texts {
        assert_eq!(text.parse::<Digest>().unwrap_err().code(), "digest-format", "{text:?}");
    }
}

/// However long the manifest makes it.
#[test]
fn tells_the_beginning_of_what_is_no_digest() {
    let text = format!("crc32c{}", "=0".repeat(1000));
    let error = text.parse::<Digest>().unwrap_err().to_string();
    assert!(error.contains("crc32c=0=0=0"), "{error}");
    assert!(error.len() < 200, "{error}");
}

#[test]
fn keeps_an_algorithm_it_does_not_know() {
    let digest: Digest = "xxh64:ef46db3751d8e999".parse().unwrap();
    assert_eq!(digest.algorithm(), None);
    assert_eq!(digest.to_string(), "xxh64:ef46db3751d8e999");
}

#[cfg(feature = "crc32c")]
#[test]
fn computes_the_published_check_value_of_crc32c() {
    let mut hasher = Hasher::new(DigestAlgorithm::Crc32c).unwrap();
    assert_eq!(hasher.algorithm(), DigestAlgorithm::Crc32c);
    hasher.update(b"1234");
    hasher.update(b"56789");
    assert_eq!(hasher.finish(), Digest::Crc32c(0xE306_9283));
}

#[cfg(feature = "sha2")]
#[test]
fn computes_the_published_check_value_of_sha256() {
    let mut hasher = Hasher::new(DigestAlgorithm::Sha256).unwrap();
    hasher.update(b"abc");
    let expected = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(hasher.finish().to_string(), expected);
}

#[cfg(all(feature = "crc32c", feature = "sha2"))]
#[test]
fn only_checksums_of_one_kind_combine() {
    let of = |algorithm: DigestAlgorithm| algorithm.digest(b"next").unwrap();
    let (crc, sha) = (of(DigestAlgorithm::Crc32c), of(DigestAlgorithm::Sha256));
    for (first, next) in [(&crc, &sha), (&sha, &crc), (&sha, &sha)] {
        assert_eq!(first.followed_by(next, 4), None, "{first} and {next}");
    }
    for algorithm in [DigestAlgorithm::Crc32c, DigestAlgorithm::Sha256] {
        let whole = of(algorithm).followed_by(&of(algorithm), 4);
        assert_eq!(whole.is_some(), algorithm.combines(), "{algorithm:?}");
    }
}

#[cfg(not(feature = "crc32c"))]
#[test]
fn says_that_a_digest_is_not_built_in() {
    assert_eq!(
        zt_container::Hasher::new(zt_container::DigestAlgorithm::Crc32c).unwrap_err().code(),
        "unsupported"
    );
}
