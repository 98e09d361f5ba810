//! Where the manifest is: magics, the declared size, the end of the file. Spec: §2.

use zt::DType;

use super::{Case, good, refused, valid};
use crate::cbor::{map, text};
use crate::draft::{Draft, Item};

pub(super) fn cases() -> Vec<Case> {
    let file = || Draft::v1_2().with("w", good());
    let old = || Draft::v1_0().with("w", good());
    let nothing = Draft::v1_2();
    let room = |draft: &Draft| draft.build().len() as u64 - 24;
    let size = |draft: &Draft, size: u64| draft.clone().size(size).build();
    vec![
        refused("framing_no_bytes", "§2.1 step 1", "a file of no bytes", "not_zt", vec![]),
        refused("framing_z", "§2.1 step 1", "one byte, the magic's first", "truncated", b"Z".to_vec()),
        refused("framing_q", "§2.1 step 1", "one byte, not the magic's first", "not_zt", b"Q".to_vec()),
        refused("framing_0_1_cut", "§2.1 step 1", "seven bytes of the magic of 0.1", "truncated", b"ZTEN000".to_vec()),
        refused("framing_magic_alone", "§2.1 step 3", "the magic and nothing else", "truncated", b"ZTEN1000".to_vec()),
        refused("framing_two_magics", "§2.1 step 3", "header and footer magic, nothing between", "truncated", b"ZTEN1000ZTEN1000".to_vec()),
        refused("framing_24_bytes", "§2.1 step 3", "room for the size and for no manifest", "truncated", Draft::v1_2().manifest(vec![]).build()),
        refused("framing_25_bytes_size_0", "§2.1 step 4", "a manifest of one byte that is said to have none", "manifest_size", Draft::v1_2().manifest(vec![0xa0]).size(0).build()),
        refused("framing_25_bytes_empty_map", "§3.2", "the shortest file: its root is an empty map", "schema", Draft::v1_2().manifest(vec![0xa0]).build()),
        valid("framing_no_objects", "§2.1 step 4", "the manifest begins right after the header: its size is all there is room for", nothing.clone()),
        refused("framing_size_1_more_than_room", "§2.1 step 4", "the manifest would begin in the header", "manifest_size", size(&nothing, room(&nothing) + 1)),
        refused("framing_size_2_64_minus_1", "§2.1 step 4", "the largest size that can be said", "manifest_size", size(&file(), u64::MAX)),
        refused("framing_size_1_less", "§2.1 step 4", "the manifest begins one byte late", "cbor", size(&file(), file().cbor().len() as u64 - 1))
            .also(&["schema"]),
        refused("framing_size_1_more", "§2.1 step 4", "the manifest begins one byte early, in the last blob", "cbor", size(&file(), file().cbor().len() as u64 + 1))
            .also(&["schema"]),
        refused("framing_footer_cut_off", "legacy", "a file of 1.2 without its last 8 bytes is framed like one of 1.0, and has no `tensors`", "truncated", file().build_with(|bytes| bytes.truncate(bytes.len() - 8)))
            .also(&["schema"]),
        refused("framing_footer_cut_short", "§2.1 step 4", "a file of 1.2 without its last byte", "manifest_size", file().build_with(|bytes| bytes.truncate(bytes.len() - 1))),
        refused("framing_one_byte_appended", "§2.1 step 4", "a byte after the footer magic", "manifest_size", file().build_with(|bytes| bytes.push(0))),
        refused("framing_10_of_objects", "legacy", "layout 1.0 whose root has `objects`", "schema", {
            let root = map(&[(text("version"), text("1.0")), (text("objects"), map(&[]))]);
            Draft::v1_0().manifest(root).build()
        }).also(&["truncated"]),
        refused("framing_12_of_tensors", "§3.2", "the layout of 1.2 whose root has `tensors`", "schema", file().unset("objects").set("tensors", map(&[])).build()),
        refused("framing_10_with_footer_magic", "legacy", "a file of 1.0 with the footer magic appended", "schema", old().build_with(|bytes| bytes.extend(b"ZTEN1000"))),
        refused("framing_10_size_0", "§2.1 step 4", "layout 1.0, size 0", "manifest_size", old().size(0).build()),
        refused("framing_10_17_bytes_empty_map", "legacy", "the shortest file of layout 1.0: its root is an empty map", "schema", Draft::v1_0().manifest(vec![0xa0]).build()),
        refused("framing_10_16_bytes", "§2.1 step 3", "layout 1.0, room for the size and for no manifest", "truncated", Draft::v1_0().manifest(vec![]).build()),
        valid("framing_10_no_tensors", "legacy", "layout 1.0, size = N - 16, as all its real writers have it", Draft::v1_0()),
        refused("framing_10_size_1_more_than_room", "legacy", "layout 1.0, the manifest would begin in the header", "manifest_size", {
            let nothing = Draft::v1_0();
            nothing.clone().size(nothing.cbor().len() as u64 + 1).build()
        }),
        valid("framing_01_no_tensors", "legacy", "layout 0.1 without tensors, 17 bytes", Draft::v0_1()),
        refused("framing_01_with_footer_magic", "legacy", "a header of 0.1 and a footer magic, which is then the size", "manifest_size", file().build_with(|bytes| bytes[..8].copy_from_slice(b"ZTEN0001"))),
        refused("framing_01_size_0", "legacy", "layout 0.1, size 0", "manifest_size", Draft::v0_1().size(0).build()),
        valid("framing_blob_of_footers", "§2.1", "a blob that looks like footers: only the file's end counts", {
            let magics = b"ZTEN1000".repeat(8);
            Draft::v1_2().with("w", Item::dense(&[64], DType::U8, &magics))
        }),
        valid("framing_file_in_a_file", "§2.1", "a blob that is a whole file", {
            let inner = file().build();
            Draft::v1_2().with("w", Item::dense(&[inner.len() as u64], DType::U8, &inner))
        }),
    ]
}
