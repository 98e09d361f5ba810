//! Where blobs may lie. Spec: §4.

use zt::DType;

use super::{Case, accepted, bad, faulty, good, valid};
use crate::cbor::uint;
use crate::draft::{Draft, Item, Part};

pub(super) fn cases() -> Vec<Case> {
    [alignment(), bounds(), sharing()].concat()
}

fn dense(bytes: &[u8]) -> Item {
    Item::dense(&[bytes.len() as u64], DType::U8, bytes)
}

fn part(change: impl FnOnce(Part) -> Part) -> Item {
    good().change("data", change)
}

fn alignment() -> Vec<Case> {
    let alignment = |name, about, distance| {
        let item = part(|part| part.after(distance));
        bad(name, "§4", about, "alignment", item).at("bad", Some("data"))
    };
    let empty = |offset| dense(&[]).change("data", |part| part.at(offset));
    vec![
        alignment("alignment_1_past", "a blob one byte past a multiple of 64", 1),
        alignment("alignment_32_past", "a blob half way to the next multiple of 64", 32),
        alignment("alignment_63_past", "a blob one byte before a multiple of 64", 63),
        bad(
            "alignment_of_no_bytes",
            "§4",
            "a blob of no bytes, one past a multiple of 64",
            "alignment",
            empty(65),
        )
        .at("bad", Some("data")),
    ]
}

fn bounds() -> Vec<Case> {
    let bounds =
        |name, about, draft| faulty(name, "§4", about, "bounds", draft).at("bad", Some("data"));
    let first = || Draft::v1_2().with("good", dense(&[1; 64]));
    let there = |offset, length| part(|part| part.at(offset).set("length", uint(length)));
    // `first` ends at 128, where its manifest begins.
    vec![
        valid(
            "bounds_ends_at_the_manifest",
            "§4",
            "a blob that ends where the manifest begins",
            first(),
        ),
        bounds(
            "bounds_ends_in_the_manifest",
            "a blob whose last byte is the manifest's first",
            first().with("bad", there(64, 65)),
        ),
        bounds(
            "bounds_at_the_manifest",
            "a blob that begins where the manifest does",
            first().with("bad", there(128, 3)),
        ),
        valid(
            "bounds_no_bytes_at_the_manifest",
            "§4",
            "a blob of no bytes where the manifest begins",
            first().with("none", dense(&[])),
        ),
        bounds(
            "bounds_no_bytes_in_the_manifest",
            "a blob of no bytes past the manifest's begin",
            first().with("bad", dense(&[]).change("data", |part| part.at(192))),
        ),
        bounds("bounds_at_0", "a blob that covers the header", first().with("bad", there(0, 72))),
        bounds(
            "bounds_of_2_64_minus_1",
            "a length of 2^64 - 1",
            first().with("bad", there(64, u64::MAX)),
        ),
        bounds(
            "bounds_at_2_64_minus_64",
            "an offset of 2^64 - 64, a length of 128: the end wraps to 64",
            first().with("bad", there(u64::MAX - 63, 128)),
        ),
        faulty(
            "bounds_at_8",
            "§4",
            "a blob right after the header, off the grid",
            "alignment",
            first().with("bad", there(8, 3)),
        )
        .also(&["bounds"])
        .at("bad", Some("data")),
    ]
}

fn sharing() -> Vec<Case> {
    let bytes: Vec<u8> = (0..128).collect();
    let whole = || Draft::v1_2().with("whole", dense(&bytes));
    let of_part = |from: usize, to: usize| {
        let item = dense(&bytes[from..to]);
        item.change("data", |part| part.at(64 + from as u64))
    };
    let why = "writers must not, readers put up with it";
    vec![
        valid("shared_by_three_objects", "§4", "three objects of one blob, of three types", {
            whole()
                .tied("i8", Item::dense(&[128], DType::I8, &bytes))
                .tied("f64", Item::dense(&[4, 4], DType::F64, &bytes))
        }),
        valid("shared_by_roles", "§4", "indices and values of one object share a blob", {
            let zeros = [0; 8];
            let item = Item::new(&[1, 2], "sparse_csr")
                .part(Part::new("values", DType::F64, &zeros))
                .part(Part::new("indices", DType::U64, &zeros).at(64))
                .part(Part::new("indptr", DType::U64, &crate::draft::le_u64(&[0, 1])));
            Draft::v1_2().with("w", item)
        }),
        accepted(
            "overlap_second_half",
            "§4",
            "a blob that is the second half of another",
            why,
            whole().with("half", of_part(64, 128)),
        ),
        accepted(
            "overlap_first_bytes",
            "§4",
            "a blob that is the first bytes of another",
            why,
            whole().with("head", of_part(0, 10)),
        ),
        accepted("overlap_across", "§4", "a blob across the ends of two others", why, {
            let across = [&bytes[64..], &bytes[..64]].concat();
            let across = dense(&across).change("data", |part| part.at(128));
            whole().with("again", dense(&bytes)).with("across", across)
        }),
        accepted(
            "padding_of_ones",
            "§4",
            "bytes between blobs are not zero",
            "readers ignore them",
            Draft::v1_2().padding(0xff).with("a", good()).with("b", good()),
        ),
        accepted(
            "padding_after_the_last_blob",
            "§4",
            "bytes between the last blob and the manifest are not zero",
            "readers ignore them",
            Draft::v1_2().with("a", good()).gap(b"an object that was removed"),
        ),
        accepted(
            "gap_of_zeros",
            "§4",
            "4096 zeros between the last blob and the manifest",
            "gaps are allowed",
            Draft::v1_2().with("a", good()).gap(&[0; 4096]),
        ),
        valid(
            "blobs_in_reverse_order",
            "§4",
            "objects are listed in the reverse order of their blobs",
            {
                let first = dense(b"first").change("data", |part| part.at(64));
                Draft::v1_2()
                    .with("hidden", dense(b"first"))
                    .with("z", dense(b"second"))
                    .with("a", first)
            },
        ),
    ]
}
