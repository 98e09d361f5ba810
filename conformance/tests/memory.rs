//! What a `.zt` file may make its reader allocate: counted, of every one of the corpus and of files
//! that were made to take much.
//!
//! `cargo test -p zt-conformance --test memory -- --nocapture` prints the figures.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and its numbers are small"
)]

mod counting;

use std::sync::{Arc, MutexGuard};

use counting::{ByPosition, MIB, alone, cost, read_all, row};
use zt::{Attributes, DType, File, Limits, OpenOptions};
use zt_conformance::cbor::{self, Cbor, head, text, uint, uints};
use zt_conformance::corpus;
use zt_conformance::draft::{Draft, Item, Part};
use zt_conformance::frames::{lying_frame, repeated_frame, skippable};

/// The bytes of the manifest, as far as there are so many; all bytes where nothing says where it is.
fn manifest_len(bytes: &[u8]) -> u64 {
    let magic = zt::container::MAGIC;
    let sized = bytes.strip_suffix(&magic[..]).unwrap_or(bytes);
    let size = sized.last_chunk().map_or(u64::MAX, |size| u64::from_le_bytes(*size));
    size.min(bytes.len() as u64)
}

/// Opening takes at most 8 times the manifest and 1 MiB, and no reservation is beyond
/// twice the bytes of the file, or 1 MiB.
#[track_caller]
fn opens_cheaply(
    case: &str,
    bytes: &[u8],
    open: impl Fn(ByPosition) -> zt::Result<File>,
    is_noted: bool,
    alone: &MutexGuard<'static, ()>,
) -> zt::Result<File> {
    let source = ByPosition(Arc::from(bytes));
    let (cost, file) = cost(alone, || open(source));
    if is_noted {
        row(case, bytes.len(), "open", cost);
    }
    assert!(cost.peak <= 8 * manifest_len(bytes) + MIB, "{case}: {cost:?}");
    assert!(cost.largest <= (2 * bytes.len() as u64).max(MIB), "{case}: {cost:?}");
    file
}

fn open_zt(source: ByPosition) -> zt::Result<File> {
    OpenOptions::new().open_source(source)
}

#[test]
fn every_file_of_the_corpus_opens_within_eight_times_its_manifest() {
    let alone = alone();
    for sample in corpus::samples() {
        let _ = opens_cheaply(&sample.name, &sample.bytes, open_zt, false, &alone);
    }
}

/// A file that claims more than it has: it opens for next to nothing, and nothing that is read of
/// it takes more, whatever the limits are.
#[track_caller]
fn claims(case: &str, draft: &Draft, alone: &MutexGuard<'static, ()>) {
    let bytes = draft.build();
    let file = opens_cheaply(case, &bytes, open_zt, true, alone).unwrap();
    let (cost, errors) = cost(alone, || read_all(&file));
    row(case, bytes.len(), "read", cost);
    assert!(!errors.is_empty(), "{case}");
    let present = bytes.len() as u64;
    assert!(cost.peak <= 2 * present + MIB, "{case}: {cost:?}");
    assert!(cost.largest <= (2 * present).max(MIB), "{case}: {cost:?}");
}

#[test]
fn claims_of_a_few_bytes_cost_nothing() {
    const CLAIMED: u64 = 30 << 30;
    let alone = alone();
    let raw = || Part::new("data", DType::U8, b"abc");
    let dense = |part: Part| Item::new(&[CLAIMED], "dense").part(part);
    let one = |item: Item| Draft::v1_2().with("w", item);
    let zstd = |frames: Vec<u8>| raw().frames(frames).set("uncompressed_length", uint(CLAIMED));

    claims("raw, shape of 30 GiB", &one(dense(raw())), &alone);
    let length = raw().set("length", uint(CLAIMED));
    claims("raw, length of 30 GiB", &one(dense(length)), &alone);
    let offset = raw().set("offset", uint(u64::MAX - 63));
    let item = Item::new(&[3], "dense").part(offset);
    claims("offset of 2^64 - 64", &one(item), &alone);
    let frames = repeated_frame(0, 300);
    claims("zstd, length of 30 GiB", &one(dense(zstd(frames))), &alone);
    let frames = lying_frame(CLAIMED, b"abc");
    claims("zstd, frame of 30 GiB", &one(dense(zstd(frames))), &alone);
    // Enough bytes for the claim to be possible: what is decoded is what counts.
    let frames = [lying_frame(CLAIMED, b"abc"), skippable(&vec![0; 1 << 20])].concat();
    claims("zstd, frame of 30 GiB, 1 MiB stored", &one(dense(zstd(frames))), &alone);
    for draft in [Draft::v1_1(), Draft::v1_0(), Draft::v0_1()] {
        let item = dense(raw().frames(lying_frame(CLAIMED, b"abc")));
        claims("older, zstd frame of 30 GiB", &draft.with("w", item), &alone);
    }
    let sparse = |indices: u64, indptr: u64| {
        Item::new(&[1 << 40, 1 << 40], "sparse_csr")
            .part(Part::new("values", DType::U8, b"a").set("length", uint(indices)))
            .part(Part::new("indices", DType::U64, &[0; 8]).set("length", uint(indices * 8)))
            .part(Part::new("indptr", DType::U64, &[0; 16]).set("length", uint(indptr * 8)))
    };
    claims("csr of 2^40 rows", &one(sparse(1, 2)), &alone);
    claims("csr, indptr of 2^40", &one(sparse(1, 1 << 40)), &alone);
    let coo = Item::coo(&[1 << 30, 1 << 30], b"a", &[1, 1]);
    claims("coo of 2^60 elements", &one(coo), &alone);
}

/// A limit refuses what could be decoded, and is obeyed where the length is not said.
#[test]
fn bombs_are_refused_by_the_limit_before_they_go_off() {
    const LEN: u64 = 256 * MIB;
    let alone = alone();
    let frames = || repeated_frame(0, LEN as usize);
    let part = || Part::new("data", DType::U8, b"").frames(frames());
    let item = |shape: u64, said: u64| {
        Item::new(&[shape], "dense").part(part().set("uncompressed_length", uint(said)))
    };
    let limits = Limits::default().with_decoded_len(4 * MIB);
    let options = OpenOptions::new().limits(limits);
    for (case, item, draft) in [
        ("zstd bomb, said", item(LEN, LEN), Draft::v1_2()),
        ("zstd bomb, said to be 1 MiB", item(MIB, MIB), Draft::v1_2()),
        ("zstd bomb of 1.1", Item::new(&[LEN], "dense").part(part()), Draft::v1_1()),
        ("zstd bomb of 1.1, 1 MiB", Item::new(&[MIB], "dense").part(part()), Draft::v1_1()),
        ("zstd bomb, of any length", Item::new(&[7], "example/1").part(part()), Draft::v1_1()),
    ] {
        let bytes = draft.with("w", item).build();
        let open = |source| options.open_source(source);
        let file = opens_cheaply(case, &bytes, open, true, &alone).unwrap();
        let (cost, errors) = cost(&alone, || read_all(&file));
        row(case, bytes.len(), "read", cost);
        assert!(!errors.is_empty(), "{case}");
        assert!(cost.peak <= 16 * MIB, "{case}: {cost:?}");
    }
}

/// Without a limit, memory grows with what is decoded and not with what is said.
#[test]
fn decoded_bytes_are_paid_for_as_they_come() {
    const SAID: u64 = 2 << 30;
    let alone = alone();
    // As many stored bytes as 2 GiB could come from, and one frame that decodes to 1 MiB.
    let frames = [repeated_frame(0, MIB as usize), skippable(&vec![0; 64 << 10])].concat();
    let part = Part::new("data", DType::U8, b"").frames(frames);
    let item = Item::new(&[SAID], "dense").part(part.set("uncompressed_length", uint(SAID)));
    let bytes = Draft::v1_2().with("w", item).build();
    let file = open_zt(ByPosition(Arc::from(&bytes[..]))).unwrap();
    let (cost, errors) = cost(&alone, || read_all(&file));
    row("zstd, said to be 2 GiB, holds 1 MiB", bytes.len(), "read", cost);
    assert!(!errors.is_empty());
    assert!(cost.peak <= 16 * MIB, "{cost:?}");
}

/// A map of `keys`, with a byte each as value.
fn map_of(keys: impl Iterator<Item = Cbor>) -> Cbor {
    let pairs: Vec<(Cbor, Cbor)> = keys.map(|key| (key, uint(0))).collect();
    cbor::map(&pairs)
}

/// The shortest keys that are not texts and not the same: integers, and floats of two bytes.
fn shortest_keys() -> Cbor {
    let integers = (0..=u64::from(u16::MAX)).flat_map(|at| [head(0, at), head(1, at)]);
    let floats = (0..0x7C00u16).flat_map(|bits| [bits, bits | 0x8000]);
    let floats = floats.map(|bits| [&[0xF9][..], &bits.to_be_bytes()].concat());
    map_of(integers.chain(floats))
}

/// Of `count` items of one byte.
fn small_integers(count: usize) -> Cbor {
    [head(4, count as u64), vec![1; count]].concat()
}

#[test]
fn manifests_that_are_all_overhead_open_within_eight_times_their_size() {
    const LEN: usize = 16 << 20;
    let alone = alone();
    let item = || Item::dense(&[3], DType::U8, b"abc");
    let one = |item: Item| Draft::v1_2().with("w", item);
    let numbers = || cbor::map(&[(text("a"), small_integers(LEN))]);
    let many_attributes = || {
        let pair = |at: u32| [text(format!("{at:07}")), uint(1)].concat();
        let pairs: Vec<u8> = (0..1_000_000).flat_map(pair).collect();
        [head(5, 1_000_000), pairs].concat()
    };
    let with_map = |map: Cbor| one(item()).set("x", map);
    let keys_of = |key: fn(u64) -> Cbor| map_of((0..200_000).map(key));
    let mut roles = head(5, 100_000);
    for at in 0..100_000u32 {
        roles.extend(text(format!("{at:07}")));
        let fields = [("dtype", text("u8")), ("offset", uint(64)), ("length", uint(3))];
        roles.extend(cbor::map(&fields.map(|(key, value)| (text(key), value))));
    }
    for (case, draft) in [
        ("16 MiB of integers in the attributes", one(item()).set("attributes", numbers())),
        ("16 MiB of integers in an object's", one(item().set("attributes", numbers()))),
        ("16 MiB of integers in a shape", one(item().set("shape", small_integers(LEN)))),
        ("16 MiB of integers in an unknown field", one(item()).set("x", small_integers(LEN))),
        ("10^6 attributes", one(item()).set("attributes", many_attributes())),
        ("100,000 components", one(item().set("components", roles))),
        ("200,000 integer keys", with_map(keys_of(uint))),
        ("194,560 keys of two bytes or three", with_map(shortest_keys())),
        ("200,000 keys that are arrays", with_map(keys_of(|at| uints(&[at])))),
        (
            "200,000 keys that are arrays of indefinite length",
            with_map(keys_of(|at| [&[0x9F][..], &uint(at), &[0xFF]].concat())),
        ),
        (
            "200,000 keys that are maps",
            with_map(keys_of(|at| map_of([uint(at), uint(at + 1)].into_iter()))),
        ),
        (
            "500 keys of 4 KiB of empty arrays",
            with_map(map_of(
                (0..500).map(|at| [head(4, 4_090), uint(at + 256), vec![0x80; 4_089]].concat()),
            )),
        ),
        (
            "500 keys of 4 KiB of pairs",
            with_map(map_of(
                (0..500).map(|at| [head(4, 2), uint(at), map_of((0..900).map(uint))].concat()),
            )),
        ),
        ("a key of 16 MiB", with_map(map_of([small_integers(LEN)].into_iter()))),
        (
            "a key of 8 Mi times the same key",
            with_map(map_of([map_of((0..LEN / 2).map(|_| uint(0)))].into_iter())),
        ),
        ("an object's name of 16 MiB", Draft::v1_2().with_name(text(vec![b'n'; LEN]), item())),
        ("arrays 10^5 deep", one(item()).set("x", cbor::nested_arrays(100_000))),
        ("arrays 10^5 deep in a shape", one(item().set("shape", cbor::nested_arrays(100_000)))),
    ] {
        let bytes = draft.build();
        let Ok(file) = opens_cheaply(case, &bytes, open_zt, true, &alone) else {
            continue;
        };
        let (listed, _) = cost(&alone, || read_all(&file));
        row(case, bytes.len(), "list and read", listed);
        assert!(listed.peak <= 48 * manifest_len(&bytes) + MIB, "{case}: {listed:?}");
    }
}

/// 300,000 objects. None has a byte of its own.
fn many_objects() -> Vec<u8> {
    let field = |key: &str, value: Cbor| (text(key), value);
    let data = [field("dtype", text("u8")), field("offset", uint(64)), field("length", uint(0))];
    let object = cbor::map(&[
        field("shape", uints(&[0])),
        field("format", text("dense")),
        field("components", cbor::map(&[field("data", cbor::map(&data))])),
    ]);
    let mut objects = head(5, 300_000);
    for at in 0..300_000u32 {
        objects.extend(text(format!("{at}")));
        objects.extend(&object);
    }
    Draft::v1_2().set("objects", objects).build()
}

#[test]
fn many_small_objects_open_within_eight_times_their_manifest() {
    let alone = alone();
    let bytes = many_objects();
    let file = opens_cheaply("300,000 objects", &bytes, open_zt, true, &alone).unwrap();
    let (listed, count) = cost(&alone, || file.entries().len());
    row("300,000 objects", bytes.len(), "list", listed);
    assert_eq!(count, 300_000);
}

/// The attributes of a file are decoded when they are asked for, and only then.
#[test]
fn attributes_are_paid_for_by_those_who_ask() {
    let alone = alone();
    let numbers = cbor::map(&[(text("a"), small_integers(1 << 20))]);
    let bytes = Draft::v1_2().set("attributes", numbers).build();
    let file = open_zt(ByPosition(Arc::from(&bytes[..]))).unwrap();
    let (cost, attributes): (_, Option<Attributes>) = cost(&alone, || file.attributes().unwrap());
    row("1 MiB of integers in the attributes", bytes.len(), "attributes", cost);
    assert_eq!(attributes.unwrap().len(), 1);
    assert!(cost.peak <= 64 * bytes.len() as u64 + MIB, "{cost:?}");
}
