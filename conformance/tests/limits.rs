//! Each limit, at its border and one beyond it. Spec: §12.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and its limits are small"
)]

use zt::{DType, ErrorKind, File, Limits, OpenOptions};
use zt_conformance::cbor::{self, text};
use zt_conformance::draft::{Draft, Item, Part};
use zt_conformance::frames::{frame, repeated_frame};

fn open(limits: Limits, bytes: &[u8]) -> zt::Result<File> {
    OpenOptions::new().limits(limits).open_bytes(bytes.to_vec())
}

fn item() -> Item {
    Item::dense(&[3], DType::U8, b"abc")
}

/// Opens with the limit and is refused with one less, with that code, as a limit.
fn border(limit: impl Fn(u64) -> Limits, at: u64, code: &str, bytes: &[u8]) {
    let read = |limit: Limits| -> zt::Result<()> {
        let file = open(limit, bytes)?;
        file.entries().iter().try_for_each(|entry| {
            let tensor = entry.tensor()?;
            tensor.components().try_for_each(|(role, _)| tensor.bytes(role).map(drop))
        })
    };
    read(limit(at)).unwrap();
    let error = read(limit(at - 1)).unwrap_err();
    assert_eq!((error.code(), error.kind()), (code, ErrorKind::Limit), "{error}");
}

#[test]
fn a_manifest_of_the_limit_opens() {
    let draft = Draft::v1_2().with("w", item());
    let limit = |manifest_len| Limits::default().with_manifest_len(manifest_len);
    border(limit, draft.cbor().len() as u64, "manifest-size", &draft.build());
}

#[test]
fn nesting_to_the_limit_opens() {
    let draft = Draft::v1_2().with("w", item()).set("deep", cbor::nested_arrays(9));
    let limit = |nesting: u64| Limits::default().with_nesting(nesting as usize);
    border(limit, 10, "cbor", &draft.build());
}

#[test]
fn a_rank_of_the_limit_reads() {
    let draft = Draft::v1_2().with("w", Item::dense(&[1; 5], DType::U8, &[7]));
    let limit = |rank: u64| Limits::default().with_rank(rank as usize);
    border(limit, 5, "schema", &draft.build());
}

#[test]
fn an_object_with_components_to_the_limit_reads() {
    let draft = |count: usize| {
        let item = (0..count).fold(Item::new(&[1], "example.many/1"), |item, at| {
            item.part(Part::new(&format!("r{at}"), DType::U8, b"a"))
        });
        Draft::v1_2().with("w", item).build()
    };
    let limit = |components: u64| Limits::default().with_components(components as usize);
    // 16 is the most that the short way through the manifest reads.
    for len in [1, 16, 17, 1_024] {
        border(limit, len as u64, "schema", &draft(len));
    }
    let longest = File::from_bytes(draft(1_025)).unwrap();
    let error = longest.tensor("w").unwrap_err();
    assert_eq!((error.code(), error.kind()), ("schema", ErrorKind::Limit));
}

#[test]
fn a_name_of_the_limit_reads() {
    for len in [5u64, 65_536] {
        let draft = Draft::v1_2().with_name(text(vec![b'n'; len as usize]), item());
        let limit = |name_len: u64| Limits::default().with_name_len(name_len as usize);
        border(limit, len, "schema", &draft.build());
    }
    let longest = Draft::v1_2().with_name(text(vec![b'n'; 65_537]), item()).build();
    let fault = File::from_bytes(longest).unwrap().entries()[0].fault().unwrap().code();
    assert_eq!(fault, "schema", "the default");
}

/// Only what is decoded is limited: raw bytes are in the file.
#[test]
fn a_component_that_decodes_to_the_limit_reads() {
    let limit = |decoded_len| Limits::default().with_decoded_len(decoded_len);
    let content = vec![3; 1 << 20];
    let part = || Part::new("data", DType::U8, &content).frames(repeated_frame(3, 1 << 20));
    let item = || Item::new(&[1 << 20], "dense").part(part());
    for draft in [Draft::v1_2(), Draft::v1_1(), Draft::v1_0(), Draft::v0_1()] {
        border(limit, 1 << 20, "decompression-limit", &draft.with("w", item()).build());
    }
    let raw = Draft::v1_2().with("w", Item::dense(&[1 << 20], DType::U8, &content)).build();
    let file = open(limit(0), &raw).unwrap();
    assert_eq!(file.tensor("w").unwrap().bytes("data").unwrap().len(), 1 << 20);
}

/// Where neither the file nor the format says how long it is, the stream stops at the limit.
#[test]
fn a_component_of_unknown_length_stops_at_the_limit() {
    let limit = |decoded_len| Limits::default().with_decoded_len(decoded_len);
    let content = vec![3; 1 << 20];
    let part = Part::new("blob", DType::U8, &content).frames(repeated_frame(3, 1 << 20));
    let item = Item::new(&[7], "example.stream/1").part(part);
    border(limit, 1 << 20, "decompression-limit", &Draft::v1_1().with("w", item).build());
}

/// A hundred small frames of a claim that no memory could hold.
#[test]
fn a_claim_that_the_stored_bytes_cannot_hold_costs_nothing() {
    let frames: Vec<u8> = (0..100).flat_map(|_| frame(b"x")).collect();
    let claimed = frames.len() as u64 * 32_768;
    let part = Part::new("data", DType::U8, b"").frames(frames);
    let part = part.set("uncompressed_length", cbor::uint(claimed + 1));
    let item = Item::new(&[claimed + 1], "dense").part(part);
    let file = File::from_bytes(Draft::v1_2().with("w", item).build()).unwrap();
    assert_eq!(file.tensor("w").unwrap_err().code(), "decompression-limit");
}

/// Sorted, reversed and scattered names are found alike.
#[test]
fn many_objects_are_found_by_name_in_any_order() {
    let name = |at: u64| format!("layer.{at}.weight");
    let shared = |draft: Draft, at: u64| draft.tied(&name(at), item());
    let count = 20_000;
    let scattered = |at: u64| at * 7919 % count;
    for order in [&scattered as &dyn Fn(u64) -> u64, &|at| at, &|at| count - 1 - at] {
        let draft = Draft::v1_2().with("first", item());
        let bytes = (0..count).fold(draft, |draft, at| shared(draft, order(at))).build();
        let file = File::from_bytes(bytes).unwrap();
        assert_eq!(file.len() as u64, count + 1);
        for at in (0..count).step_by(97) {
            assert_eq!(*file.tensor(&name(at)).unwrap().bytes("data").unwrap(), *b"abc");
        }
        assert_eq!(file.tensor(&name(count)).unwrap_err().code(), "not-found");
    }
}
