//! Layouts 0.1 and 1.0. Spec: legacy.

use zt::{DType, DigestAlgorithm};

use super::{Case, Stage, accepted, faulty, good, refused, valid, warned};
use crate::cbor::{Cbor, array, chunked, indefinite_map, map, null, text, uint};
use crate::digest;
use crate::draft::{Draft, Item, Part};
use crate::frames::{frame, unsized_frame};

pub(super) fn cases() -> Vec<Case> {
    [v0_1(), byte_order(), v1_0()].concat()
}

fn dense(values: &[u16]) -> Item {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Item::dense(&[values.len() as u64], DType::U16, &bytes)
}

/// Stored with the most significant byte first.
fn big(values: &[u16]) -> Item {
    let stored = values.iter().flat_map(|value| value.to_be_bytes()).collect();
    dense(values).change("data", |part| part.stored(stored).set("data_endianness", text("big")))
}

fn v0_1() -> Vec<Case> {
    let file = |item| Draft::v0_1().with("w", item);
    let bad = |name, about, code, item: Item| {
        faulty(
            name,
            "legacy, 0.1",
            about,
            code,
            Draft::v0_1().with("good", good()).with("bad", item),
        )
    };
    let field = |key: &str, value: Cbor| good().set(key, value);
    let tensor =
        |pairs: &[(Cbor, Cbor)]| Draft::v0_1().manifest(array(&[indefinite_map(pairs)])).build();
    vec![
        valid("v01_dense", "legacy, 0.1", "a raw tensor", file(good())),
        valid(
            "v01_unknown_keys",
            "legacy, 0.1",
            "keys of the tensor that nobody knows",
            file(field("note", text("kept")).set("attributes", map(&[]))),
        ),
        valid(
            "v01_zstd",
            "legacy, 0.1",
            "a compressed tensor, one frame without content size",
            file(good().change("data", |part| part.frames(unsized_frame(b"abc")))),
        ),
        valid(
            "v01_checksum",
            "legacy, 0.1",
            "a checksum as the writers spell it",
            file(good().change("data", |part| part.digested(DigestAlgorithm::Crc32c))),
        ),
        accepted(
            "v01_map_of_definite_length",
            "legacy, 0.1",
            "the tensor's map has a definite length",
            "CBOR of another spelling",
            {
                let pairs = [
                    (text("name"), chunked(&["w"])),
                    (text("offset"), uint(64)),
                    (text("size"), uint(3)),
                    (text("dtype"), text("uint8")),
                    (text("layout"), text("dense")),
                    (text("shape"), array(&[uint(3)])),
                    (text("encoding"), text("raw")),
                    (text("checksum"), null()),
                    (text("data_endianness"), null()),
                ];
                let manifest = array(&[map(&pairs)]);
                Draft::v0_1().with("w", good()).manifest(manifest)
            },
        ),
        accepted(
            "v01_unknown_layout",
            "legacy, 0.1",
            "the layout \"sparsecsr\"",
            "an unknown format, whose bytes are read",
            file(Item::new(&[9, 9], "sparsecsr").part(Part::new("data", DType::U8, b"packed"))),
        ),
        warned(
            "v01_misaligned",
            "legacy, 1.0",
            "a blob one byte off the grid",
            "the older texts ask for a warning",
            file(good().change("data", |part| part.after(1))),
        ),
        refused(
            "v01_two_of_one_name",
            "legacy, 0.1",
            "two tensors of one name",
            "cbor",
            file(good()).with("w", good()).build(),
        ),
        refused(
            "v01_no_name",
            "legacy, 0.1",
            "a tensor without a name",
            "schema",
            tensor(&[(text("offset"), uint(64))]),
        ),
        refused(
            "v01_name_number",
            "legacy, 0.1",
            "a tensor whose name is a number",
            "schema",
            tensor(&[(text("name"), uint(1))]),
        ),
        refused(
            "v01_tensor_text",
            "legacy, 0.1",
            "a tensor that is a text",
            "schema",
            Draft::v0_1().manifest(array(&[text("w")])).build(),
        ),
        refused(
            "v01_root_map",
            "legacy, 0.1",
            "the root is a map",
            "schema",
            Draft::v0_1().manifest(map(&[])).build(),
        ),
        bad("v01_no_size", "no `size`", "schema", good().unset("size")),
        bad("v01_no_encoding", "no `encoding`", "schema", good().unset("encoding")),
        bad("v01_no_layout", "no `layout`", "schema", good().unset("layout")),
        bad("v01_shape_text", "`shape` is a text", "schema", field("shape", text("3"))),
        bad("v01_short_dtype", "\"u8\", the spelling of 1.1", "dtype", field("dtype", text("u8"))),
        bad(
            "v01_encoding_unknown",
            "the encoding \"lz4\"",
            "encoding",
            field("encoding", text("lz4")),
        ),
        bad(
            "v01_size_1_less",
            "`size` is one less than the shape demands",
            "shape_size_mismatch",
            field("size", uint(2)),
        ),
        bad(
            "v01_past_the_end",
            "a blob beyond the manifest",
            "bounds",
            field("offset", uint(1 << 20)),
        ),
        bad(
            "v01_zstd_short",
            "a frame of two bytes for a shape of three",
            "zstd",
            good().change("data", |part| part.frames(frame(b"ab"))),
        )
        .also(&["shape_size_mismatch"])
        .stage(Stage::Read),
    ]
}

fn byte_order() -> Vec<Case> {
    let values: [u16; 3] = [1, 256, 0xfffe];
    let stored: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
    let mut mismatch = big(&values);
    mismatch = mismatch.change("data", |part| {
        let little = digest(DigestAlgorithm::Crc32c, &part.decoded);
        part.digest_text(&little)
    });
    vec![
        valid(
            "v01_big",
            "legacy, 0.1",
            "big-endian elements",
            Draft::v0_1().with("w", big(&values)),
        ),
        valid(
            "v01_big_checksum",
            "legacy, 0.1",
            "big-endian elements: the checksum covers the bytes as stored",
            {
                let sum = digest(DigestAlgorithm::Crc32c, &stored);
                Draft::v0_1().with("w", big(&values).change("data", |part| part.digest_text(&sum)))
            },
        ),
        faulty(
            "v01_big_checksum_of_little",
            "legacy, 0.1",
            "big-endian elements, the checksum of the little-endian bytes",
            "digest_mismatch",
            Draft::v0_1().with("bad", mismatch),
        )
        .stage(Stage::Verify),
        valid(
            "v01_big_zstd",
            "legacy, 0.1",
            "compressed elements are little-endian whatever the file says",
            {
                let item = dense(&values).change("data", |part| {
                    let frames = frame(&part.decoded);
                    part.frames(frames).set("data_endianness", text("big"))
                });
                Draft::v0_1().with("w", item)
            },
        ),
        valid("v01_big_bytes", "legacy, 0.1", "big-endian elements of one byte", {
            Draft::v0_1()
                .with("w", good().change("data", |part| part.set("data_endianness", text("big"))))
        }),
        valid("v01_little", "legacy, 0.1", "\"little\", spelled", {
            Draft::v0_1().with("w", dense(&values).set("data_endianness", text("little")))
        }),
        faulty(
            "v01_middle",
            "legacy, 0.1",
            "\"middle\"",
            "schema",
            Draft::v0_1().with("bad", dense(&values).set("data_endianness", text("middle"))),
        ),
    ]
}

fn v1_0() -> Vec<Case> {
    let file = |item| Draft::v1_0().with("w", item);
    let bad = |name, about, code, item: Item| {
        faulty(
            name,
            "legacy, 1.0",
            about,
            code,
            Draft::v1_0().with("good", good()).with("bad", item),
        )
    };
    let csr = || Item::csr(&[2, 3], &[5, 7, 9], &[1, 0, 2], &[0, 1, 3]);
    let zstd = |part: Part| {
        let frames = unsized_frame(&part.decoded);
        part.frames(frames)
    };
    vec![
        valid(
            "v10_csr",
            "legacy, 1.0",
            "the dtype is that of the values; indices are u64",
            file(csr()),
        ),
        valid("v10_csr_zstd", "legacy, 1.0", "all three components zstd, without any length", {
            file(csr().change("values", zstd).change("indices", zstd).change("indptr", zstd))
        }),
        valid(
            "v10_unknown_role",
            "legacy, 1.0",
            "a role that the format does not know has no dtype",
            file(good().part(Part::new("note", DType::U8, b"odd").untyped())),
        ),
        valid("v10_unknown_format", "legacy, 1.0", "an unknown format: its roles have no dtype", {
            file(Item::new(&[2], "example.x/1").part(Part::new("x", DType::U8, b"odd").untyped()))
        }),
        valid(
            "v10_object_attributes",
            "legacy, 1.0",
            "a tensor with attributes",
            file(good().attributes(super::attributes::map([("k".into(), 1u64.into())]))),
        ),
        warned(
            "v10_misaligned_8",
            "legacy, 1.0",
            "a blob 8 bytes off the grid",
            "the text asks for a warning",
            file(good().change("data", |part| part.after(8))),
        ),
        warned(
            "v10_misaligned_of_two",
            "legacy, 1.0",
            "one blob of two off the grid",
            "the text asks for a warning",
            file(good()).with("off", good().change("data", |part| part.after(32))),
        ),
        warned(
            "v10_version_1_3",
            "legacy, 1.0",
            "layout 1.0, version 1.3",
            "any 1.x reads",
            file(good()).version("1.3"),
        ),
        warned(
            "v10_version_1_1",
            "legacy, 1.0",
            "layout 1.0, version 1.1",
            "any 1.x reads, above 1.0 with a warning",
            file(good()).version("1.1"),
        ),
        refused(
            "v10_version_2",
            "legacy, 1.0",
            "layout 1.0, version 2.0",
            "version",
            file(good()).version("2.0").build(),
        ),
        refused(
            "v10_no_version",
            "legacy, 1.0",
            "layout 1.0, no version",
            "schema",
            file(good()).unset("version").build(),
        ),
        refused(
            "v10_tensors_array",
            "legacy, 1.0",
            "layout 1.0, `tensors` is an array",
            "schema",
            file(good()).set("tensors", array(&[])).build(),
        ),
        bad(
            "v10_short_dtype",
            "\"u8\", the spelling of 1.1",
            "dtype",
            good().set("dtype", text("u8")),
        ),
        bad("v10_no_dtype", "no `dtype`", "schema", good().unset("dtype")),
        bad(
            "v10_dtype_unused",
            "an unknown dtype of a tensor without components of it",
            "dtype",
            {
                Item::new(&[1], "example.x/1")
                    .part(Part::new("x", DType::U8, b"x").untyped())
                    .set("dtype", text("float8"))
            },
        ),
        bad(
            "v10_length_1_more",
            "`length` reaches into the manifest",
            "bounds",
            good().change("data", |part| part.set("length", uint(1 << 12))),
        ),
        bad(
            "v10_zstd_short",
            "a frame of two bytes for a shape of three",
            "zstd",
            good().change("data", |part| part.frames(frame(b"ab"))),
        )
        .also(&["shape_size_mismatch"])
        .stage(Stage::Read),
        bad(
            "v10_zstd_long",
            "a frame of four bytes for a shape of three",
            "zstd",
            good().change("data", |part| part.frames(frame(b"abcd"))),
        )
        .also(&["shape_size_mismatch"])
        .stage(Stage::Read),
        bad(
            "v10_csr_values_short",
            "zstd without lengths: two values, three indices",
            "shape_size_mismatch",
            {
                let short = Part::new("values", DType::U8, &[5, 7]).frames(frame(&[5, 7]));
                csr().replace(short).change("indices", zstd)
            },
        )
        .also(&["zstd"])
        .stage(Stage::Verify),
        faulty(
            "v11_zstd_half_an_element",
            "§8",
            "an unknown format, zstd without a length: three bytes of elements of two",
            "shape_size_mismatch",
            {
                let part = Part::new("x", DType::U16, &[0; 3]).frames(frame(&[0; 3]));
                Draft::v1_1().with("bad", Item::new(&[1], "example.odd/1").part(part))
            },
        )
        .also(&["zstd"])
        .stage(Stage::Verify)
        .at("bad", Some("x")),
    ]
}
