//! Files laid out by hand that break the rules one at a time.

use zt::{ErrorKind, Limits, Memory, OpenOptions, VerifyOptions};
use zt_conformance::cbor::{
    Cbor, array, head_of_width, map, nested_arrays, tag, text, uint, uints,
};
use zt_conformance::zt2::{dense, framed, manifest, object, part, sorted};

use super::{code, one, open, pair};

#[test]
fn faults_of_an_object_are_its_own() {
    let digest = |text_: &str| part("f32", 4096, 8, &[("digest", text(text_))]);
    let with = |more: &[(&str, Cbor)]| dense(&[2], part("f32", 4096, 8, more));
    let typed =
        |dtype: &str, name: &str| dense(&[8], part(dtype, 4096, 8, &[("type", text(name))]));
    let cases: [(&str, Cbor, &str); 38] = [
        ("what is sound", dense(&[2], pair()), "sound"),
        ("no map", uint(1), "object schema"),
        (
            "no layout",
            sorted(&[("shape", uints(&[2])), ("parts", sorted(&[("data", pair())]))]),
            "object schema",
        ),
        ("no parts", object(&[2], "acme.x/1", &[]), "object schema"),
        (
            "a shape that is no array",
            sorted(&[
                ("shape", uint(2)),
                ("layout", text("dense")),
                ("parts", sorted(&[("data", pair())])),
            ]),
            "object schema",
        ),
        ("65 dimensions", dense(&[1; 65], pair()), "object schema"),
        ("a product beyond 2^64", dense(&[1 << 63, 4, 0], pair()), "object shape-size-mismatch"),
        ("a size that is not the shape's", dense(&[3], pair()), "object shape-size-mismatch"),
        (
            "another part",
            object(&[2], "dense", &[("data", pair()), ("more", pair())]),
            "object schema",
        ),
        ("another name", object(&[2], "dense", &[("values", pair())]), "object schema"),
        ("an unknown dtype", dense(&[2], part("f4", 4096, 8, &[])), "object dtype"),
        ("bool, which is no dtype there", dense(&[8], part("bool", 4096, 8, &[])), "object dtype"),
        ("a type over another dtype", typed("i8", "f8_e5m2"), "object logical-type"),
        ("an unknown type", typed("u8", "acme.t"), "sound"),
        ("bools that are none", typed("u8", "bool"), "verify bool-value"),
        ("a blob off the grid", dense(&[1], part("f32", 4100, 4, &[])), "object alignment"),
        ("a blob in the header", dense(&[2], part("f32", 0, 8, &[])), "object alignment"),
        (
            "a blob that leaves the file",
            dense(&[1 << 40], part("u8", 4096, 1 << 40, &[])),
            "object bounds",
        ),
        (
            "a blob that overflows",
            dense(&[2], part("f32", u64::MAX - 4095, 8192, &[])),
            "object bounds",
        ),
        (
            "a blob of three numbers",
            dense(&[2], sorted(&[("dtype", text("f32")), ("blob", uints(&[4096, 8, 0]))])),
            "object schema",
        ),
        (
            "an unknown encoding",
            with(&[("encoding", text("x.z/1")), ("decoded_length", uint(8))]),
            "object encoding",
        ),
        (
            "an encoding without a length",
            with(&[("encoding", text("zt.zstd-seekable/1"))]),
            "object schema",
        ),
        ("a length without an encoding", with(&[("decoded_length", uint(8))]), "object schema"),
        ("a shard that the table does not have", with(&[("shard", text("base"))]), "object schema"),
        (
            "a digest in capitals",
            dense(&[2], digest("xxh3:00FF00FF00FF00FF")),
            "object digest-format",
        ),
        ("a digest without an algorithm", dense(&[2], digest(":00")), "object digest-format"),
        ("a digest without digits", dense(&[2], digest("blake9:")), "object digest-format"),
        ("an algorithm in capitals", dense(&[2], digest("Blake9:00")), "object digest-format"),
        ("digits that are none", dense(&[2], digest("blake9:0g")), "object digest-format"),
        ("a digest cut short", dense(&[2], digest("xxh3:00")), "object digest-format"),
        ("a sha256 cut short", dense(&[2], digest("sha256:00")), "object digest-format"),
        ("an unknown digest", dense(&[2], digest("blake9:00ff")), "sound"),
        ("a wrong digest", dense(&[2], digest("xxh3:0000000000000000")), "verify digest-mismatch"),
        (
            "half a byte too much",
            dense(&[5], part("u8", 4096, 3, &[("type", text("f4_e2m1"))])),
            "object padding",
        ),
        (
            "as many halves as bytes have",
            dense(&[6], part("u8", 4096, 3, &[("type", text("f4_e2m1"))])),
            "sound",
        ),
        (
            "halves of a sparse object, whose last is another's",
            object(
                &[1],
                "acme.x/1",
                &[("data", part("u8", 4096, 1, &[("type", text("f4_e2m1"))]))],
            ),
            "sound",
        ),
        (
            "a packed size",
            dense(&[5], part("u8", 4096, 5, &[("type", text("f4_e2m1"))])),
            "object shape-size-mismatch",
        ),
        (
            "e8m0 as long as u16",
            dense(&[4], part("u8", 4096, 8, &[("type", text("f8_e8m0"))])),
            "object shape-size-mismatch",
        ),
    ];
    for (what, object, expected) in cases {
        assert_eq!(code(one(&[0xFF; 8], object.clone())), expected, "{what}");
        // Its neighbour reads.
        let objects = [("sound", dense(&[1], part("i64", 8192, 8, &[]))), ("t", object)];
        let bytes = framed(&[&[0xFF; 8], &[7, 0, 0, 0, 0, 0, 0, 0]], &manifest(&objects));
        if let Ok(file) = open(bytes) {
            let sound = file.tensor("sound").unwrap().to_vec::<i64>();
            assert_eq!(sound.unwrap(), [7], "{what}");
        }
    }
}

#[test]
fn indices_of_sparse_objects_are_plain_and_as_many_as_they_have_to_be() {
    let blob = [0; 16];
    let typed = |dtype: &str, len: u64, name: &str| part(dtype, 4096, len, &[("type", text(name))]);
    let plain = |dtype: &str, len: u64| part(dtype, 4096, len, &[]);
    let csr = |indptr: Cbor, indices: Cbor, values: Cbor| {
        let parts = [("indptr", indptr), ("values", values), ("indices", indices)];
        code(one(&blob, object(&[1, 2], "zt.sparse_csr/1", &parts)))
    };
    let coo = |shape: &[u64], coords: Cbor, values: Cbor| {
        let parts = [("coords", coords), ("values", values)];
        code(one(&blob, object(shape, "zt.sparse_coo/1", &parts)))
    };
    let index = "object index-dtype";
    assert_eq!(csr(plain("i64", 16), plain("u64", 8), plain("f32", 4)), index);
    assert_eq!(csr(plain("u64", 16), plain("f64", 8), plain("f32", 4)), index);
    assert_eq!(csr(plain("u64", 16), plain("u32", 8), plain("f32", 8)), index);
    assert_eq!(csr(plain("u32", 8), typed("u32", 8, "acme.t"), plain("f32", 8)), index);
    assert_eq!(coo(&[1, 2], plain("i64", 16), plain("f32", 4)), index);
    assert_eq!(coo(&[1, 2], typed("u64", 16, "acme.t"), plain("f32", 4)), index);
    // One coordinate and a half, and coordinates of no dimension.
    let len = "object shape-size-mismatch";
    assert_eq!(coo(&[1, 2], plain("u32", 12), plain("f32", 4)), len);
    assert_eq!(coo(&[], plain("u32", 8), plain("f32", 4)), len);
}

/// Whatever the layout is of the object that they are in.
#[test]
fn logical_types_are_stored_as_one_type_each() {
    for (name, stored, other) in [
        ("bool", "u8", "i8"),
        ("f8_e4m3fn", "u8", "i8"),
        ("f8_e5m2", "u8", "i8"),
        ("f8_e4m3fnuz", "u8", "i8"),
        ("f8_e5m2fnuz", "u8", "i8"),
        ("f8_e8m0", "u8", "i8"),
        ("f4_e2m1", "u8", "i8"),
        ("complex64", "f32", "f64"),
        ("complex128", "f64", "f32"),
    ] {
        for layout in ["dense", "acme.x/1"] {
            let of = |dtype: &str| {
                let data = part(dtype, 4096, 16, &[("type", text(name))]);
                let count = match (name, dtype) {
                    ("f4_e2m1", _) => 32,
                    ("complex128", _) | (_, "f64") => 1,
                    (_, "f32") => 2,
                    _ => 16,
                };
                code(one(&[0; 16], object(&[count], layout, &[("data", data)])))
            };
            assert_eq!(of(stored), "sound", "{name} {layout}");
            assert_eq!(of(other), "object logical-type", "{name} {layout}");
        }
    }
}

/// Half a byte that is not used is 0, whatever the other half is.
#[test]
fn the_last_half_of_an_odd_number_is_not_used() {
    for (last, expected) in [(0x0F, "sound"), (0x10, "object padding")] {
        let data = part("u8", 4096, 2, &[("type", text("f4_e2m1"))]);
        assert_eq!(code(one(&[0xFF, last], dense(&[3], data))), expected);
    }
}

#[test]
fn attributes_of_an_object_are_kept() {
    let object = sorted(&[
        ("shape", uints(&[2])),
        ("layout", text("dense")),
        ("parts", sorted(&[("data", pair())])),
        ("attributes", sorted(&[("k", uint(7))])),
    ]);
    let file = open(one(&[0; 8], object)).unwrap();
    let tensor = file.tensor("t").unwrap();
    assert_eq!(tensor.attributes().get("k"), Some(&zt::Value::Unsigned(7)));
}

/// A long text of the file is abridged.
#[test]
fn messages_contain_the_invalid_values() {
    let message_of = |object: Cbor| {
        let file = open(one(&[0; 8], object)).unwrap();
        file.tensor("t").unwrap_err().message()
    };
    let message = message_of(dense(&[1; 65], pair()));
    assert!(message.contains("65"), "{message}");
    let long = "d".repeat(1000);
    let message = message_of(dense(&[2], part(&long, 4096, 8, &[])));
    assert!(message.contains(&"d".repeat(80)), "{message}");
    assert!(!message.contains(&"d".repeat(81)), "{message}");
}

/// Indices of more than one byte, in the order and number that the profiles ask for.
#[test]
fn columns_rise_and_places_differ_whatever_they_are() {
    let rows = |columns: [u64; 2]| [0, 2, columns[0], columns[1]].map(u64::to_le_bytes).concat();
    let csr = |columns: [u64; 2]| {
        let parts = [
            ("indptr", part("u64", 4096, 16, &[])),
            ("indices", part("u64", 8192, 16, &[])),
            ("values", part("u8", 12288, 2, &[])),
        ];
        let object = object(&[1, 1 << 32], "zt.sparse_csr/1", &parts);
        let bytes = rows(columns);
        let (pointers, columns) = bytes.split_at(16);
        code(framed(&[pointers, columns, &[1, 2]], &manifest(&[("t", object)])))
    };
    let coo = |places: [u64; 2]| {
        let coords = places.map(u64::to_le_bytes).concat();
        let parts = [("coords", part("u64", 4096, 16, &[])), ("values", part("u8", 8192, 2, &[]))];
        let object = object(&[1 << 32], "zt.sparse_coo/1", &parts);
        code(framed(&[&coords, &[1, 2]], &manifest(&[("t", object)])))
    };
    for (places, rise, differ) in [
        ([1, 256], true, true),
        ([255, 1 << 16], true, true),
        ([256, 512], true, true),
        ([256, 1], false, true),
        ([1 << 16, 1 << 16], false, false),
    ] {
        let expected = |is_sound| {
            if is_sound { "sound" } else { "verify index-value" }
        };
        assert_eq!(csr(places), expected(rise), "{places:?}");
        assert_eq!(coo(places), expected(differ), "{places:?}");
    }
}

#[test]
fn a_digest_of_an_unknown_algorithm_has_a_warning() {
    let data = part("f32", 4096, 8, &[("digest", text("blake9:00ff"))]);
    let file = open(one(&[0; 8], dense(&[2], data))).unwrap();
    let warning = &file.warnings()[0];
    assert_eq!((warning.code, warning.object.as_deref()), ("unknown-digest", Some("t")));
    let report = file.verify(&VerifyOptions::default()).unwrap();
    assert_eq!(report.unverified.len(), 1);
}

#[test]
fn faults_of_the_manifest_refuse_the_file() {
    let good = manifest(&[("t", dense(&[2], pair()))]);
    let with = |more: &[(&str, Cbor)]| sorted(&[&[("objects", map(&[]))], more].concat());
    let shard = |name: &str| {
        let entry = sorted(&[("size", uint(8192)), ("digest", text("xxh3:00"))]);
        with(&[("shards", sorted(&[(name, entry)]))])
    };
    let long = "n".repeat(1025);
    let cases: [(&str, Cbor, &str); 20] = [
        ("what is sound", good.clone(), "sound"),
        (
            "unknown fields",
            with(&[("zzz", array(&[uint(1), map(&[(uint(1), uint(2))])]))]),
            "sound",
        ),
        ("bytes behind it", [good.clone(), vec![0]].concat(), "file cbor"),
        ("cut short", good[..good.len() - 1].to_vec(), "file cbor"),
        ("no map", uint(1), "file schema"),
        ("no objects", map(&[]), "file schema"),
        ("objects that are no map", sorted(&[("objects", uint(1))]), "file schema"),
        (
            "a name that is no text",
            sorted(&[("objects", map(&[(uint(1), uint(1))]))]),
            "file schema",
        ),
        ("an empty name", manifest(&[("", dense(&[2], pair()))]), "file schema"),
        ("a long name", manifest(&[(&*long, dense(&[2], pair()))]), "file schema"),
        ("a name with a NUL", manifest(&[("a\0", dense(&[2], pair()))]), "file schema"),
        ("attributes that are no map", with(&[("attributes", uint(1))]), "file schema"),
        (
            "an attribute without a name",
            with(&[("attributes", map(&[(text(""), uint(1))]))]),
            "file schema",
        ),
        ("a tag", with(&[("attributes", sorted(&[("a", tag(1, &uint(1)))]))]), "file cbor"),
        ("too deep", with(&[("attributes", sorted(&[("a", nested_arrays(40))]))]), "file cbor"),
        (
            "a key twice",
            map(&[(text("objects"), map(&[])), (text("objects"), map(&[]))]),
            "file cbor",
        ),
        (
            "keys in another order",
            map(&[(text("objects"), map(&[])), (text("a"), uint(1))]),
            "file cbor",
        ),
        ("a number in more bytes", with(&[("a", head_of_width(0, 1, 8))]), "file cbor"),
        ("a shard that could be a path", shard("../etc"), "file schema"),
        ("a hidden shard", shard(".a"), "file schema"),
    ];
    for (what, manifest, expected) in cases {
        assert_eq!(code(framed(&[&[0; 8]], &manifest)), expected, "{what}");
    }
}

#[test]
fn faults_of_the_frame_refuse_the_file() {
    let good = one(&[0; 8], dense(&[2], pair()));
    let end = good.len();
    assert_eq!(code(good.clone()), "sound");
    // Place of a byte, what it becomes, and how that is refused.
    let cases = [
        (end - 1, 0, "file truncated"),
        (end - 16, 3, "file version"),
        (end - 12, 1, "sound"), // reserved
        (end - 24, good[end - 24] ^ 1, "file digest-mismatch"),
        (end - 28, 1, "file manifest-size"),
        (end - 40, 1, "file alignment"),
        (end - 38, 1, "file manifest-size"),
        (end - 50, good[end - 50] ^ 1, "file digest-mismatch"),
    ];
    for (at, byte, expected) in cases {
        let mut bytes = good.clone();
        bytes[at] = byte;
        assert_eq!(code(bytes), expected, "byte {at}");
    }
    for len in [8, 47, 48, 4096, end - 1] {
        assert_eq!(code(good[..len].to_vec()), "file truncated", "{len}");
    }
    let mut shard = good;
    shard[end - 40..end - 16].fill(0);
    let file = open(shard.clone()).unwrap();
    assert_eq!((file.len(), file.warnings()[0].code), (0, "shard"));
    shard[end - 40] = 1;
    assert_eq!(code(shard), "file header");
}

#[test]
fn blobs_are_the_same_or_apart() {
    let two = |first: Cbor, second: Cbor| {
        let objects = [("a", dense(&[2], first)), ("b", dense(&[2], second))];
        framed(&[&[0; 5000], &[0; 8]], &manifest(&objects))
    };
    let file = open(two(pair(), pair())).unwrap();
    let span = |name| file.tensor(name).unwrap().component("data").unwrap().blob.span;
    assert_eq!(span("a"), span("b"));
    let bytes = two(part("f32", 4096, 4100, &[]), part("f32", 8192, 8, &[]));
    let file = open(bytes).unwrap();
    let codes = file.entries().into_iter().map(|entry| entry.fault().unwrap().code());
    assert!(codes.eq(["overlap", "overlap"]));
    let into_manifest = dense(&[4097], part("u8", 4096, 4097, &[]));
    assert_eq!(code(one(&[0; 8], into_manifest)), "object overlap");
}

/// The error has the offset of the item that breaks a rule of CBOR.
#[test]
fn broken_items_are_found() {
    let cases: [&[u8]; 8] = [
        &[0xC1, 0x00], // a tag
        &[0x9F, 0xFF], // indefinite length
        &[0x1F],
        &[0xFF],
        &[0x1C], // reserved
        &[0xF8, 0xFF],
        &[0x18, 0x01],             // not the shortest form
        &[0x84, 0x01, 0x02, 0x03], // one item more than bytes that follow
    ];
    for item in cases {
        // The last key of the last map, so that nothing follows.
        let manifest = sorted(&[("objects", map(&[])), ("zzzzzzzz", item.to_vec())]);
        let bytes = framed(&[], &manifest);
        let place = 4096 + manifest.len() - item.len();
        let error = open(bytes).unwrap_err();
        assert_eq!(error.code(), "cbor", "{error}");
        assert_eq!(error.offset(), Some(place as u64), "{error}");
    }
    // A duplicate key, and a key that is not in order.
    for key in ["objects", "a"] {
        let pairs = [(text("objects"), map(&[])), (text(key), map(&[]))];
        assert_eq!(code(framed(&[], &map(&pairs))), "file cbor");
    }
}

#[test]
fn what_another_version_wrote_is_unsupported() {
    let mut bytes = one(&[0; 8], dense(&[2], pair()));
    let end = bytes.len();
    bytes[end - 16] = 3;
    assert_eq!(open(bytes).unwrap_err().kind(), ErrorKind::Unsupported);
    let more = [("encoding", text("x.z/1")), ("decoded_length", uint(8))];
    let file = open(one(&[0; 8], dense(&[2], part("f32", 4096, 8, &more)))).unwrap();
    let error = file.tensor("t").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn limits_are_those_of_the_reader_and_may_be_met() {
    let attributes = sorted(&[("k", uint(7))]);
    let manifest = sorted(&[("attributes", attributes.clone()), ("objects", map(&[]))]);
    let bytes = framed(&[], &manifest);
    let read = |limits: Limits| {
        let options = OpenOptions::new().limits(limits);
        zt_convert::Kinds::builtin()
            .open_source(Memory::new(bytes.clone()), &options)
            .map(zt_convert::Input::into_file)
            .map_err(|error| error.kind())
    };
    for less in [0, 1] {
        let expected = (less > 0).then_some(ErrorKind::Limit);
        let limits = Limits::default().with_manifest_len((manifest.len() - less) as u64);
        assert_eq!(read(limits).err(), expected);
        let limits = Limits::default().with_attributes_len(attributes.len() - less);
        assert_eq!(read(limits).err(), expected);
    }
}
