//! CBOR that is and is not accepted, the version, and the root. Spec: §3.1, §3.2, §11.

use zt::{DType, DigestAlgorithm, Value};

use super::{Case, accepted, good, refused, valid, warned};
use crate::cbor::{
    self, BREAK, Cbor, array, chunked, head, head_of_width, map, nested_arrays, text, uint,
};
use crate::digest;
use crate::draft::{Draft, Item};

pub(super) fn cases() -> Vec<Case> {
    [nesting(), spelling(), malformed(), duplicates(), versions(), digests()].concat()
}

fn file() -> Draft {
    Draft::v1_2().with("w", good())
}

/// A file whose unknown root field has this value.
fn with_field(value: Cbor) -> Draft {
    file().set("note", value)
}

fn nesting() -> Vec<Case> {
    let tags = |depth: usize| [vec![0xc1; depth], uint(0)].concat();
    // The root is 1, its `objects` 2, the object 3, its `attributes` 4.
    let deep = |depth: usize| {
        let arrays = (5..=depth).fold(Value::Null, |inner, _| Value::array(vec![inner]));
        let attributes = [("deep".into(), arrays)];
        Draft::v1_2().with("w", good().attributes(super::attributes::map(attributes)))
    };
    vec![
        valid(
            "nesting_64",
            "§12",
            "arrays in an unknown field, the innermost at level 64",
            with_field(nested_arrays(63)),
        ),
        refused(
            "nesting_65",
            "§12",
            "arrays in an unknown field, the innermost at level 65",
            "cbor",
            with_field(nested_arrays(64)).build(),
        ),
        valid(
            "nesting_64_tags",
            "§12",
            "tags in an unknown field, the innermost at level 64",
            with_field(tags(63)),
        ),
        refused(
            "nesting_65_tags",
            "§12",
            "tags in an unknown field, the innermost at level 65",
            "cbor",
            with_field(tags(64)).build(),
        ),
        valid(
            "nesting_64_object_attributes",
            "§12",
            "arrays in an object's attributes down to level 64",
            deep(64),
        ),
        refused(
            "nesting_65_object_attributes",
            "§12",
            "arrays in an object's attributes down to level 65",
            "cbor",
            deep(65).build(),
        ),
        refused(
            "nesting_10000_unclosed",
            "§12",
            "10,000 arrays that are opened and never filled",
            "cbor",
            Draft::v1_2().manifest(vec![0x81; 10_000]).build(),
        ),
    ]
}

fn spelling() -> Vec<Case> {
    let wide = |value: u64| head_of_width(0, value, 8);
    let indefinite = {
        let component = cbor::indefinite_map(&[
            (chunked(&["dt", "ype"]), chunked(&["u", "8"])),
            (text("offset"), uint(64)),
            (text("length"), uint(3)),
        ]);
        let shape = [vec![0x9f], uint(3), vec![BREAK]].concat();
        let object = cbor::indefinite_map(&[
            (text("shape"), shape),
            (text("format"), chunked(&["dense", ""])),
            (text("components"), cbor::indefinite_map(&[(text("data"), component)])),
        ]);
        cbor::indefinite_map(&[
            (text("objects"), cbor::indefinite_map(&[(chunked(&["", "w"]), object)])),
            (text("version"), text("1.2.0")),
        ])
    };
    let why = "every well-formed way to say it is accepted";
    let long_text = |word: &str| [head_of_width(3, word.len() as u64, 4), word.into()].concat();
    vec![
        accepted(
            "cbor_wide_arguments",
            "§3.1",
            "integers, lengths and counts in eight and four bytes",
            why,
            {
                let item = good().set("shape", [head_of_width(4, 1, 8), wide(3)].concat());
                let item = item.change("data", |part| {
                    part.set("length", wide(3)).set("dtype", long_text("u8"))
                });
                Draft::v1_2().with("w", item).set("version", long_text("1.2.0"))
            },
        ),
        accepted(
            "cbor_indefinite_everything",
            "§3.1",
            "every map, array and text of indefinite length",
            why,
            file().manifest(indefinite),
        ),
        accepted(
            "cbor_objects_before_version",
            "§3.1",
            "the version comes last",
            why,
            file().unset("version").set("version", text("1.2.0")),
        ),
        accepted(
            "cbor_unknown_field_of_every_kind",
            "§3.1",
            "unknown fields: tag, floats of three widths, simple values, bytes in chunks",
            "unknown keys are ignored whatever their value",
            {
                let bytes = vec![0x5f, 0x41, 1, 0x40, 0x42, 2, 3, BREAK];
                let floats = vec![
                    0x83, 0xf9, 0x3e, 0x00, 0xfa, 0x3f, 0x80, 0, 0, 0xfb, 0x3f, 0xf0, 0, 0, 0, 0,
                    0, 0,
                ];
                file()
                    .set("tag", cbor::tag(1 << 40, &uint(1)))
                    .set("floats", floats)
                    .set("simple", vec![0x82, 0xe0, 0xf8, 0xff])
                    .set("bytes", bytes)
                    .set("undefined", vec![0xf7])
            },
        ),
        accepted(
            "cbor_unknown_key_not_text",
            "§3.1",
            "root, object and component have keys that are numbers and arrays",
            "unknown keys are ignored, of any type",
            {
                let item = good()
                    .push(uint(7), uint(7))
                    .change("data", |part| part.push(array(&[uint(1)]), uint(7)));
                Draft::v1_2().with("w", item).push(cbor::negative(0), text("minus one"))
            },
        ),
    ]
}

fn malformed() -> Vec<Case> {
    let field = |bytes: &[u8]| with_field(bytes.to_vec()).build();
    vec![
        refused(
            "cbor_simple_24_in_two_bytes",
            "§3.1",
            "a simple value of 24 in two bytes",
            "cbor",
            field(&[0xf8, 24]),
        ),
        refused(
            "cbor_simple_20_in_two_bytes",
            "§3.1",
            "`false`, in two bytes",
            "cbor",
            field(&[0xf8, 20]),
        ),
        accepted(
            "cbor_simple_32_in_two_bytes",
            "§3.1",
            "a simple value of 32 in two bytes",
            "32 is the first that takes two",
            with_field(vec![0xf8, 32]),
        ),
        refused(
            "cbor_utf8_split_over_chunks",
            "§3.1",
            "a character of two bytes, one in each chunk",
            "cbor",
            field(&chunked(&[&[0xc3][..], &[0xa9]])),
        ),
        accepted(
            "cbor_utf8_whole_in_chunks",
            "§3.1",
            "characters of two bytes, whole in each chunk",
            "chunks are texts of their own",
            with_field(chunked(&["é", "è"])),
        ),
        refused(
            "cbor_utf8_surrogate",
            "§3.1",
            "a surrogate in UTF-8",
            "cbor",
            field(&text([0xed, 0xa0, 0x80])),
        ),
        refused(
            "cbor_utf8_in_an_attribute_key",
            "§3.1",
            "a key of an object's attributes is no UTF-8",
            "cbor",
            {
                let item = good().set("attributes", map(&[(text([0xff]), uint(1))]));
                Draft::v1_2().with("w", item).build()
            },
        ),
        refused(
            "cbor_bytes_chunk_in_a_text",
            "§3.1",
            "a text with a chunk of bytes",
            "cbor",
            field(&[0x7f, 0x61, b'a', 0x41, b'b', BREAK]),
        ),
        refused(
            "cbor_chunk_of_indefinite_length",
            "§3.1",
            "a chunk that is chunked itself",
            "cbor",
            field(&[0x5f, 0x5f, 0x41, 0, BREAK, BREAK]),
        ),
        refused(
            "cbor_break_in_a_definite_array",
            "§3.1",
            "a break in an array of definite length",
            "cbor",
            field(&[0x82, 0x01, BREAK]),
        ),
        refused(
            "cbor_break_after_a_key",
            "§3.1",
            "an indefinite map that ends after a key",
            "cbor",
            field(&[0xbf, 0x01, BREAK]),
        ),
        refused(
            "cbor_indefinite_integer",
            "§3.1",
            "an integer of indefinite length",
            "cbor",
            field(&[0x1f]),
        ),
        refused(
            "cbor_indefinite_tag",
            "§3.1",
            "a tag of indefinite length",
            "cbor",
            field(&[0xdf, 0x00]),
        ),
        refused(
            "cbor_claim_bytes_past_the_manifest",
            "§3.1",
            "a byte string one byte longer than the rest",
            "cbor",
            {
                let draft = file().manifest([head(5, 1), uint(1), head(2, 3), vec![0; 2]].concat());
                draft.build()
            },
        ),
        refused(
            "cbor_claim_array_past_the_manifest",
            "§3.1",
            "an array of 2^40 items in three bytes",
            "cbor",
            field(&[head(4, 1 << 40), vec![0; 3]].concat()),
        ),
        refused(
            "cbor_second_item",
            "§3.1",
            "a second root after the root",
            "cbor",
            file().manifest([file().cbor(), map(&[])].concat()).build(),
        ),
        refused(
            "root_array",
            "§3.2",
            "the root is an array",
            "schema",
            Draft::v1_2().manifest(array(&[])).build(),
        ),
        refused(
            "root_tagged",
            "§3.2",
            "the root is tagged as CBOR (55799)",
            "schema",
            file().manifest(cbor::tag(55_799, &file().cbor())).build(),
        )
        .also(&["cbor"]),
        refused(
            "root_attributes_array",
            "§3.2",
            "the file's attributes are an array",
            "schema",
            file().set("attributes", array(&[])).build(),
        ),
        accepted(
            "root_attributes_null",
            "§3.4",
            "the file's attributes are null",
            "null in place of an optional value means that it is absent",
            file().set("attributes", cbor::null()),
        ),
        refused(
            "root_name_bytes",
            "§3.2",
            "an object's name is a byte string",
            "schema",
            Draft::v1_2().with_name(cbor::bytes(b"w"), good()).build(),
        ),
    ]
}

fn duplicates() -> Vec<Case> {
    let attributes = |pairs: &[(Cbor, Cbor)]| {
        Draft::v1_2().with("w", good().set("attributes", map(pairs))).build()
    };
    let pair = |key: Cbor| (key, uint(0));
    let float = |bytes: &[u8]| bytes.to_vec();
    vec![
        refused(
            "duplicate_version",
            "§3.1",
            "`version` twice, with equal values",
            "cbor",
            file().push(text("version"), text("1.2.0")).build(),
        ),
        refused(
            "duplicate_objects",
            "§3.1",
            "`objects` twice",
            "cbor",
            file().push(text("objects"), map(&[])).build(),
        ),
        refused(
            "duplicate_name_in_chunks",
            "§3.1",
            "two objects of one name, one spelled in chunks",
            "cbor",
            file().with_name(chunked(&["", "w", ""]), good()).build(),
        ),
        refused("duplicate_offset_in_chunks", "§3.1", "`offset` twice, once in chunks", "cbor", {
            let item = good().change("data", |part| part.push(chunked(&["off", "set"]), uint(128)));
            Draft::v1_2().with("w", item).build()
        }),
        refused(
            "duplicate_key_of_another_width",
            "§3.1",
            "the integer 1 twice in attributes, in one byte and in nine",
            "cbor",
            attributes(&[pair(uint(1)), pair(head_of_width(0, 1, 8))]),
        ),
        refused(
            "duplicate_float_of_another_width",
            "§3.1",
            "1.5 twice in attributes, as a half and as a double",
            "cbor",
            attributes(&[pair(float(&[0xf9, 0x3e, 0])), pair(cbor::float(1.5))]),
        ),
        refused(
            "duplicate_map_in_another_order",
            "§3.1",
            "one map twice as a key, its pairs in another order",
            "cbor",
            {
                let pairs = [pair(uint(1)), pair(uint(2))];
                let turned = [pair(uint(2)), pair(uint(1))];
                attributes(&[pair(map(&pairs)), pair(map(&turned))])
            },
        ),
        refused(
            "duplicate_in_an_unknown_field",
            "§3.1",
            "one key twice, four levels down in an unknown field",
            "cbor",
            with_field(array(&[array(&[map(&[pair(text("a")), pair(text("a"))])])])).build(),
        ),
        refused("duplicate_role", "§3.1", "one role twice", "cbor", {
            let part = crate::draft::Part::new("data", DType::U8, b"abc");
            Draft::v1_2().with("w", good().part(part)).build()
        }),
        valid(
            "not_duplicate_keys_of_other_types",
            "§3.1",
            "1, -1, 1.0, \"1\", b\"1\", [1] and true are seven keys",
            {
                let keys = [
                    Value::Unsigned(1),
                    Value::Negative(0),
                    Value::Float(1.0),
                    Value::from("1"),
                    Value::Bytes(b"1".to_vec()),
                    Value::array(vec![Value::Unsigned(1)]),
                    Value::Bool(true),
                ];
                let pairs =
                    keys.into_iter().zip(0u64..).map(|(key, at)| (key, Value::Unsigned(at)));
                Draft::v1_2().with("w", good().attributes(super::attributes::map(pairs)))
            },
        ),
        valid(
            "not_duplicate_names_by_case_and_form",
            "§1",
            "names that differ in case, normalization or length alone",
            {
                let names = ["e\u{301}", "é", "É", "", " ", "a", "a\0", "A"];
                names.iter().fold(Draft::v1_2(), |draft, name| {
                    draft.with(name, Item::dense(&[], DType::U8, &[1]))
                })
            },
        ),
    ]
}

/// The digest that a manifest carries of itself. Spec: §3.6.
fn digests() -> Vec<Case> {
    let key = "zt.manifest_digest";
    let zeros = file().set(key, text("crc32c:0x00000000"));
    let manifest = zeros.cbor();
    let sum = digest(DigestAlgorithm::Crc32c, &manifest[..manifest.len() - 8]);
    let sealed = file().set(key, text(&sum));
    let changed = |from: &str, to: &str| {
        sealed.build_with(|bytes| {
            let mut windows = bytes.windows(from.len());
            let at = windows.rposition(|window| window == from.as_bytes()).unwrap();
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        })
    };
    let wrong = |name, about, bytes| refused(name, "§3.6", about, "digest-mismatch", bytes);
    vec![
        valid("manifest_digest", "§3.6", "a manifest with its digest", sealed.clone()),
        wrong("manifest_digest_zeros", "a digest of other bytes", zeros.build()),
        wrong("manifest_digest_name", "another name of the object", changed("\u{61}w", "\u{61}x")),
        wrong("manifest_digest_key", "a changed letter in the key", changed("zt.man", "zt.mam")),
        wrong(
            "manifest_digest_value",
            "a changed letter in the value",
            changed("crc32c:0x", "crc32b:0x"),
        ),
        wrong(
            "manifest_digest_lower_case",
            "the digits in lower case",
            changed(&sum, &sum.to_lowercase()),
        ),
        accepted(
            "manifest_digest_not_last",
            "§3.6",
            "a pair of this key that is not the last",
            "it is an unknown field there",
            sealed.clone().set("zzzzzzzzzzzzzzzzzzzzzzzzzz", uint(1)),
        ),
        accepted(
            "manifest_digest_other",
            "§3.6",
            "a last pair of another key",
            "it is an unknown field",
            file().set("content_digest", text("crc32c:0x00000000")),
        ),
    ]
}

fn versions() -> Vec<Case> {
    let version = |text: &str| file().version(text).build();
    let why = "minor versions only add";
    vec![
        accepted(
            "version_1",
            "§11",
            "one number",
            "missing numbers are 0",
            Draft::v1_1().with("w", good()).version("1"),
        ),
        accepted(
            "version_1_2",
            "§11",
            "two numbers",
            "missing numbers are 0",
            file().version("1.2"),
        ),
        warned("version_1_99_0", "§11", "a newer minor version", why, file().version("1.99.0")),
        warned(
            "version_suffix_minus",
            "§11",
            "a suffix after a minus sign",
            "a suffix does not change the numbers",
            file().version("1.2.0-rc.1"),
        ),
        accepted(
            "version_1_2_9",
            "§11",
            "a newer patch",
            "the patch says nothing to a reader",
            file().version("1.2.9"),
        ),
        refused("version_four_numbers", "§11", "four numbers", "version", version("1.2.0.0")),
        refused("version_v", "§11", "a letter before the numbers", "version", version("v1.2.0")),
        refused("version_space", "§11", "a space before the numbers", "version", version(" 1.2.0")),
        refused("version_dot", "§11", "a dot after the numbers", "version", version("1.2.")),
        refused(
            "version_2_64",
            "§11",
            "a number beyond 2^64 - 1",
            "version",
            version("1.18446744073709551616.0"),
        ),
        refused(
            "version_0_1_0",
            "§11",
            "major version 0 in the layout of 1.2",
            "version",
            version("0.1.0"),
        ),
        refused("version_missing", "§11", "no version", "schema", file().unset("version").build()),
        refused(
            "version_null",
            "§11",
            "the version is null",
            "schema",
            file().set("version", cbor::null()).build(),
        ),
        refused(
            "version_2_judged_first",
            "§3.2",
            "version 2.0.0, and objects of another type",
            "version",
            file().version("2.0.0").set("objects", array(&[])).build(),
        ),
    ]
}
