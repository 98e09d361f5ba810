//! Spellings of digests, and what they cover. Spec: §6.

use zt::{DType, DigestAlgorithm};

use super::{Case, Stage, accepted, bad, good, valid, warned};
use crate::cbor::{Cbor, map, text, uint};
use crate::digest;
use crate::draft::{Draft, Item};
use crate::frames::frame;

pub(super) fn cases() -> Vec<Case> {
    let crc = digest(DigestAlgorithm::Crc32c, b"abc");
    let sha = digest(DigestAlgorithm::Sha256, b"abc");
    let crc_digits = crc.trim_start_matches("crc32c:0x");
    let sha_digits = sha.trim_start_matches("sha256:");
    let with = |text: &str| good().change("data", |part| part.digest_text(text));
    let spelled = |name, about, text: &str| {
        let why = "one value, and nothing is said about its spelling";
        accepted(name, "§6", about, why, Draft::v1_2().with("w", with(text)))
    };
    let malformed = |name, about, text: &str| {
        bad(name, "§6", about, "digest_format", with(text)).at("bad", Some("data"))
    };
    let mismatch = |name, about, item: Item| {
        bad(name, "§6", about, "digest_mismatch", item).stage(Stage::Verify).at("bad", Some("data"))
    };
    let unknown = |name, about, text: &str| {
        warned(name, "§6", about, "it cannot be checked", Draft::v1_2().with("w", with(text)))
    };
    let table = |name, about, value: Cbor| {
        let item = good().change("data", |part| part.set("zt.chunks", value));
        let why = "it cannot be used, and the component reads without it";
        warned(name, "§6.1", about, why, Draft::v1_2().with("w", item))
    };
    let (short_bytes, short) = short_sum();
    let zstd =
        || Item::dense(&[3], DType::U8, b"abc").change("data", |part| part.frames(frame(b"abc")));
    vec![
        valid("digest_crc32c", "§6", "crc32c as we write it", Draft::v1_2().with("w", with(&crc))),
        valid("digest_sha256", "§6", "sha256 as we write it", Draft::v1_2().with("w", with(&sha))),
        valid("digest_of_no_bytes", "§6", "crc32c of no bytes is 0", {
            let none = Item::dense(&[0], DType::U8, &[]);
            Draft::v1_2()
                .with("w", none.change("data", |part| part.digest_text("crc32c:0x00000000")))
        }),
        valid(
            "digest_of_stored_bytes",
            "§6",
            "the digest of a zstd component covers the stored bytes",
            {
                Draft::v1_2()
                    .with("w", zstd().change("data", |part| part.digested(DigestAlgorithm::Sha256)))
            },
        ),
        spelled("digest_crc32c_without_0x", "crc32c without 0x", &format!("crc32c:{crc_digits}")),
        spelled(
            "digest_crc32c_mixed_case",
            "crc32c, every other digit in lower case",
            &format!("crc32c:0x{}", mixed(crc_digits)),
        ),
        spelled("digest_crc32c_name_in_capitals", "CRC32C", &format!("CRC32C:0x{crc_digits}")),
        spelled("digest_sha256_with_0x", "sha256 with 0x", &format!("sha256:0x{sha_digits}")),
        spelled(
            "digest_sha256_mixed_case",
            "sha256, every other digit in upper case",
            &format!("sha256:{}", mixed(sha_digits)),
        ),
        spelled("digest_sha256_name_mixed", "Sha256", &format!("Sha256:{sha_digits}")),
        accepted(
            "digest_crc32c_leading_zero_left_out",
            "§6",
            "a sum that begins with a zero digit, without it",
            "a number is what it is",
            {
                let item = Item::dense(&[short_bytes.len() as u64], DType::U8, &short_bytes);
                Draft::v1_2().with("w", item.change("data", |part| part.digest_text(&short)))
            },
        ),
        malformed("digest_crc32c_no_digits", "crc32c without digits", "crc32c:"),
        malformed("digest_crc32c_0x_alone", "crc32c, 0x and no digits", "crc32c:0x"),
        malformed(
            "digest_crc32c_9_digits",
            "crc32c of nine digits, the first one a zero",
            &format!("crc32c:0x0{crc_digits}"),
        ),
        malformed(
            "digest_crc32c_underscore",
            "an underscore among the digits",
            "crc32c:0x1234_5678",
        ),
        malformed("digest_crc32c_plus", "a sign before the digits", "crc32c:+1234567"),
        malformed("digest_crc32c_newline", "a newline after the digits", &format!("{crc}\n")),
        malformed("digest_crc32c_two_colons", "a second colon", &format!("crc32c::{crc_digits}")),
        malformed("digest_sha256_62_digits", "sha256 of 62 digits", &sha[..sha.len() - 2]),
        malformed("digest_of_no_text", "the digest is the empty text", ""),
        malformed("digest_colon_alone", "a colon alone", ":"),
        malformed("digest_without_colon", "an algorithm without a colon", "sha256"),
        unknown(
            "digest_unknown_algorithm",
            "an algorithm that nobody knows",
            "md5:900150983cd24fb0d6963f7d28e17f72",
        ),
        unknown("digest_unknown_without_value", "an unknown algorithm without a value", "xxh3:"),
        unknown(
            "digest_unknown_like_a_known_one",
            "sha-256 is not sha256",
            &format!("sha-256:{sha_digits}"),
        ),
        unknown("digest_unknown_crc32", "crc32 is not crc32c", "crc32:0x352441C2"),
        table(
            "chunks_of_a_short_component",
            "a table of chunk digests for a component of one chunk",
            map(&[
                (text("offset"), uint(64)),
                (text("length"), uint(4)),
                (text("digest"), text("crc32c:0x00000000")),
            ]),
        ),
        table(
            "chunks_without_a_digest",
            "a table of chunk digests without a digest",
            map(&[(text("offset"), uint(64)), (text("length"), uint(4))]),
        ),
        table("chunks_not_a_map", "`zt.chunks` is a number", uint(64)),
        mismatch("digest_one_bit_off", "crc32c whose last bit is wrong", with(&last_bit(&crc))),
        mismatch(
            "digest_sha256_one_bit_off",
            "sha256 whose last bit is wrong",
            with(&last_bit(&sha)),
        ),
        mismatch(
            "digest_of_decoded_bytes",
            "the digest of a zstd component covers the decoded bytes",
            zstd().change("data", |part| part.digest_text(&crc)),
        ),
        mismatch(
            "digest_before_zstd",
            "a zstd component that is no zstd and whose digest is wrong: the digest comes first",
            zstd().change("data", |part| part.stored(b"not zstd".to_vec()).digest_text(&crc)),
        ),
        mismatch("digest_of_the_padding", "the digest covers the blob and the padding after it", {
            let padded = [&b"abc"[..], &[0; 61]].concat();
            with(&digest(DigestAlgorithm::Sha256, &padded))
        }),
    ]
}

/// Every other letter in the other case.
fn mixed(digits: &str) -> String {
    let swap = |digit: char| match digit {
        _ if digit.is_ascii_lowercase() => digit.to_ascii_uppercase(),
        _ => digit.to_ascii_lowercase(),
    };
    let digits = digits.chars().enumerate();
    digits.map(|(at, digit)| if at % 2 == 0 { swap(digit) } else { digit }).collect()
}

/// The text with the lowest bit of its last digit flipped.
fn last_bit(text: &str) -> String {
    let (rest, last) = text.split_at(text.len() - 1);
    let digit = u8::from_str_radix(last, 16).expect("a digit") ^ 1;
    format!("{rest}{digit:X}")
}

/// Bytes whose crc32c begins with a zero digit, and the sum without it.
fn short_sum() -> (Vec<u8>, String) {
    (0u8..=255)
        .find_map(|byte| {
            let sum = digest(DigestAlgorithm::Crc32c, &[byte]);
            Some((vec![byte], format!("crc32c:0x{}", sum.strip_prefix("crc32c:0x0")?)))
        })
        .expect("one in sixteen")
}
