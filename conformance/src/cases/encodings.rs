//! Raw and zstd. Spec: §5.

use zt::DType;

use super::{Case, Stage, accepted, bad, faulty, good, valid};
use crate::cbor::{null, text, uint};
use crate::draft::{Draft, Item, Part};
use crate::frames::{
    dictionary_frame, frame, lying_frame, repeated_frame, reserved_block_frame, seek_table,
    skippable, unsized_frame,
};

const CONTENT: &[u8] = b"sixteen bytes...";

pub(super) fn cases() -> Vec<Case> {
    [names(), lengths(), frames(), tables(), damaged()].concat()
}

/// A dense object of `content`, stored as these frames.
fn zstd(content: &[u8], frames: Vec<u8>) -> Item {
    let part = Part::new("data", DType::U8, content).frames(frames);
    Item::new(&[content.len() as u64], "dense").part(part)
}

fn names() -> Vec<Case> {
    let encoding = |name, about, word| {
        let item = good().change("data", |part| part.set("encoding", text(word)));
        bad(name, "§5", about, "encoding", item).at("bad", Some("data"))
    };
    vec![
        encoding("encoding_capital", "encoding \"Raw\"", "Raw"),
        encoding("encoding_of_no_letters", "encoding \"\"", ""),
        encoding("encoding_space", "encoding \"raw \"", "raw "),
        encoding("encoding_lz4", "encoding \"lz4\"", "lz4"),
    ]
}

fn lengths() -> Vec<Case> {
    let item = || zstd(CONTENT, frame(CONTENT));
    let without = || item().change("data", |part| part.unset("uncompressed_length"));
    let stored = frame(CONTENT).len() as u64;
    // Enough content for the ratio to be the border, were the claim true.
    let claim = |length: u64| {
        let part = |part: Part| part.set("uncompressed_length", uint(length));
        item().change("data", part).set("shape", crate::cbor::uints(&[length]))
    };
    let schema =
        |name, about, draft| faulty(name, "§3.4", about, "schema", draft).at("bad", Some("data"));
    vec![
        schema("length_12_missing", "zstd without `uncompressed_length` in version 1.2.0", Draft::v1_2().with("bad", without())),
        schema("length_13_missing", "zstd without `uncompressed_length` in version 1.3.0", Draft::v1_2().version("1.3.0").with("bad", without())),
        schema("length_12_null", "zstd whose `uncompressed_length` is null in version 1.2.0", {
            let null = |part: Part| part.set("uncompressed_length", null());
            Draft::v1_2().with("bad", item().change("data", null))
        }),
        valid("length_11_missing", "legacy", "zstd without `uncompressed_length` in version 1.1.0", Draft::v1_1().with("w", item())),
        accepted("length_11_given", "legacy", "zstd with `uncompressed_length` in version 1.1.0", "an unknown field that happens to be true", {
            let given = |part: Part| part.set("uncompressed_length", uint(16));
            Draft::v1_1().with("w", item().change("data", given))
        }),
        bad("length_is_not_the_shape", "§8", "`uncompressed_length` is one more than the shape demands", "shape_size_mismatch", {
            item().change("data", |part| part.set("uncompressed_length", uint(17)))
        }).at("bad", Some("data")),
        bad("ratio_32769", "§5.2", "shape and `uncompressed_length` agree on one byte more than 32768 times the stored length", "decompression_limit", claim(32_768 * stored + 1))
            .at("bad", Some("data")),
        bad("ratio_32768", "§5.2", "shape and `uncompressed_length` agree on 32768 times the stored length, which could be, and is not", "zstd", claim(32_768 * stored))
            .stage(Stage::Read).at("bad", Some("data")),
        valid("ratio_of_512_kib_of_one_byte", "§5.2", "four blocks of four bytes each for 128 KiB", {
            let content = vec![9; 512 << 10];
            Draft::v1_2().with("w", zstd(&content, repeated_frame(9, content.len())))
        }),
        bad("length_2_64_minus_1", "§5.2", "shape and `uncompressed_length` agree on 2^64 - 1", "decompression_limit", claim(u64::MAX))
            .at("bad", Some("data")),
    ]
}

fn frames() -> Vec<Case> {
    let (first, second) = CONTENT.split_at(7);
    let stored = |name, about, frames: Vec<u8>| {
        valid(name, "§5.2", about, Draft::v1_2().with("w", zstd(CONTENT, frames)))
    };
    let nothing = |name, about, frames: Vec<u8>| {
        let why = "no frames at all decode to no bytes";
        accepted(name, "§5.2", about, why, Draft::v1_2().with("w", zstd(&[], frames)))
    };
    vec![
        stored("zstd_content_size", "one frame with its content size", frame(CONTENT)),
        stored(
            "zstd_no_content_size",
            "one frame without its content size",
            unsized_frame(CONTENT),
        ),
        stored(
            "zstd_two_frames",
            "two frames, with and without content size",
            [frame(first), unsized_frame(second)].concat(),
        ),
        stored(
            "zstd_a_frame_per_byte",
            "sixteen frames",
            CONTENT.chunks(1).flat_map(frame).collect(),
        ),
        stored("zstd_empty_frames_around", "empty frames before, between and after", {
            [frame(&[]), frame(first), unsized_frame(&[]), frame(second), frame(&[])].concat()
        }),
        stored("zstd_skippable_everywhere", "skippable frames before, between and after", {
            let skip = skippable(b"nobody reads this");
            [skip.clone(), frame(first), skippable(&[]), frame(second), skip].concat()
        }),
        valid("zstd_two_blocks", "§5.2", "a frame of a block of 128 KiB and one of a byte", {
            let content = vec![b'x'; (128 << 10) + 1];
            Draft::v1_2().with("w", zstd(&content, repeated_frame(b'x', content.len())))
        }),
        nothing("zstd_no_bytes_no_frames", "no bytes, stored as none", vec![]),
        nothing("zstd_no_bytes_empty_frame", "no bytes, stored as an empty frame", frame(&[])),
        nothing(
            "zstd_no_bytes_skippable_frame",
            "no bytes, stored as a skippable frame",
            skippable(b"none"),
        ),
    ]
}

fn tables() -> Vec<Case> {
    let (first, second) = CONTENT.split_at(7);
    let frames = [frame(first), frame(second)];
    let lens = frames.each_ref().map(|frame| frame.len() as u32);
    let table = |name, about, entries: &[(u32, u32)]| {
        let stored = [frames.concat(), seek_table(entries)].concat();
        let why = "a table that does not hold is an aid that is not taken";
        accepted(name, "§5.4", about, why, Draft::v1_2().with("w", zstd(CONTENT, stored)))
    };
    vec![
        valid("seek_table_right", "§5.4", "two frames and their seek table", {
            let stored = [frames.concat(), seek_table(&[(lens[0], 7), (lens[1], 9)])].concat();
            Draft::v1_2().with("w", zstd(CONTENT, stored))
        }),
        table(
            "seek_table_of_one_frame",
            "a seek table that says one frame, of all bytes",
            &[(lens[0] + lens[1], 16)],
        ),
        table(
            "seek_table_lengths_swapped",
            "a seek table whose content lengths are swapped",
            &[(lens[0], 9), (lens[1], 7)],
        ),
        table(
            "seek_table_stored_too_long",
            "a seek table whose stored lengths pass the blob's end",
            &[(lens[0], 7), (u32::MAX, 9)],
        ),
        table(
            "seek_table_content_too_long",
            "a seek table whose content is more than there is",
            &[(lens[0], 7), (lens[1], u32::MAX)],
        ),
        table("seek_table_empty", "a seek table of no frames", &[]),
        accepted(
            "seek_table_in_the_middle",
            "§5.4",
            "a seek table between the frames",
            "a skippable frame like others",
            {
                let stored = [&frames[0][..], &seek_table(&[(lens[0], 7)]), &frames[1]].concat();
                Draft::v1_2().with("w", zstd(CONTENT, stored))
            },
        ),
        accepted(
            "seek_table_count_too_large",
            "§5.4",
            "a seek table that says 2^31 frames",
            "as above",
            {
                let mut table = seek_table(&[(lens[0], 7), (lens[1], 9)]);
                let at = table.len() - 9;
                table[at..at + 4].copy_from_slice(&(1u32 << 31).to_le_bytes());
                Draft::v1_2().with("w", zstd(CONTENT, [frames.concat(), table].concat()))
            },
        ),
    ]
}

fn damaged() -> Vec<Case> {
    let damaged = |name, about, frames: Vec<u8>| {
        let case = bad(name, "§5.2", about, "zstd", zstd(CONTENT, frames));
        case.stage(Stage::Read).at("bad", Some("data"))
    };
    let cut = |mut frames: Vec<u8>, by: usize| {
        frames.truncate(frames.len() - by);
        frames
    };
    let flip = |mut frames: Vec<u8>, at: usize, bits: u8| {
        frames[at] ^= bits;
        frames
    };
    vec![
        damaged("zstd_one_byte_short", "the frame holds 15 bytes of 16", frame(&CONTENT[1..])),
        damaged(
            "zstd_one_byte_long",
            "the frame holds 17 bytes of 16",
            frame(&[CONTENT, b"."].concat()),
        ),
        damaged("zstd_nothing_stored", "16 bytes, stored as an empty frame", frame(&[])),
        damaged("zstd_only_skippable", "16 bytes, stored as a skippable frame", skippable(CONTENT)),
        damaged(
            "zstd_second_frame_of_a_byte",
            "a whole frame, and another one",
            [frame(CONTENT), frame(b".")].concat(),
        ),
        damaged("zstd_cut_by_1", "the frame lacks its last byte", cut(frame(CONTENT), 1)),
        damaged(
            "zstd_cut_in_skippable",
            "the skippable frame after it lacks its last byte",
            cut([frame(CONTENT), skippable(b"1234")].concat(), 1),
        ),
        damaged(
            "zstd_cut_in_skippable_header",
            "the skippable frame after it is five bytes long",
            [frame(CONTENT), skippable(&[])[..5].to_vec()].concat(),
        ),
        damaged(
            "zstd_one_byte_after",
            "a byte after the frame",
            [frame(CONTENT), vec![0]].concat(),
        ),
        damaged(
            "zstd_content_size_lies",
            "the frame says 16 bytes and holds 15",
            lying_frame(16, &CONTENT[1..]),
        ),
        damaged("zstd_dictionary", "the frame needs a dictionary", dictionary_frame(7, CONTENT)),
        damaged(
            "zstd_reserved_block",
            "a block of the reserved type",
            reserved_block_frame(CONTENT),
        ),
        damaged(
            "zstd_reserved_bit",
            "the reserved bit of the descriptor is set",
            flip(frame(CONTENT), 4, 8),
        ),
        damaged(
            "zstd_no_last_block",
            "the only block is not marked as the last",
            flip(frame(CONTENT), 6, 1),
        ),
        damaged("zstd_is_raw", "raw bytes that are said to be zstd", CONTENT.to_vec()),
    ]
}
