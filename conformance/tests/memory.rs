//! What a file may make its reader allocate: counted, of every file of the corpus and of files that
//! were made to take much.
//!
//! `cargo test -p zt-conformance --test memory -- --nocapture` prints the figures.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and its numbers are small"
)]

mod counting;

use std::io;
use std::sync::{Arc, MutexGuard};

use counting::{Cost, alone, cost};
use zt::{
    Attributes, DType, File, HashOptions, Limits, Memory, OpenOptions, Source, VerifyOptions,
};
use zt_conformance::cbor::{self, Cbor, head, text, uint, uints};
use zt_conformance::draft::{Draft, Item, Part};
use zt_conformance::frames::{lying_frame, repeated_frame, skippable};
use zt_conformance::{archive, corpus, foreign};

const MIB: u64 = 1 << 20;

/// A source that lends nothing, so that whatever is looked at has to be read into memory.
#[derive(Clone)]
struct ByPosition(Arc<[u8]>);

impl Source for ByPosition {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

/// The bytes of the manifest, as far as there are so many; all bytes where nothing says where it is.
fn manifest_len(bytes: &[u8]) -> u64 {
    let magic = zt::container::MAGIC;
    let sized = bytes.strip_suffix(&magic[..]).unwrap_or(bytes);
    let size = sized
        .last_chunk()
        .map_or(u64::MAX, |size| u64::from_le_bytes(*size));
    size.min(bytes.len() as u64)
}

/// A line of the table: what was done to a file, and what it took.
fn row(case: &str, file: usize, work: &str, cost: Cost) {
    let Cost { peak, largest, .. } = cost;
    println!("| {case} | {file} | {work} | {peak} | {largest} |");
}

/// Opening takes at most 8 times the manifest and 1 MiB, in reservations of which none is beyond
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
    assert!(
        cost.peak <= 8 * manifest_len(bytes) + MIB,
        "{case}: {cost:?}"
    );
    assert!(
        cost.largest <= (2 * bytes.len() as u64).max(MIB),
        "{case}: {cost:?}"
    );
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

/// All that can be asked of a tensor at once. Each answer is dropped before the next question.
fn read_all(file: &File) -> Vec<zt::Error> {
    let mut errors = Vec::new();
    for entry in file.entries() {
        let tensor = match entry.tensor() {
            Ok(tensor) => tensor,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        for (role, _) in tensor.components() {
            errors.extend(tensor.bytes(role).err());
            errors.extend(tensor.elements(role).err());
        }
        errors.extend(tensor.to_dense().err());
        errors.extend(tensor.slice(&[zt::Slice::ALL]).err());
    }
    errors.extend(file.hash(&HashOptions::default()).err());
    errors.extend(file.verify(&VerifyOptions::default()).err());
    errors
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
    let zstd = |frames: Vec<u8>| {
        raw()
            .frames(frames)
            .set("uncompressed_length", uint(CLAIMED))
    };

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
    claims(
        "zstd, frame of 30 GiB, 1 MiB stored",
        &one(dense(zstd(frames))),
        &alone,
    );
    for draft in [Draft::v1_1(), Draft::v1_0(), Draft::v0_1()] {
        let item = dense(raw().frames(lying_frame(CLAIMED, b"abc")));
        claims(
            "older, zstd frame of 30 GiB",
            &draft.with("w", item),
            &alone,
        );
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
    let limits = Limits {
        decoded_len: 4 * MIB,
        ..Limits::default()
    };
    let options = OpenOptions::new().limits(limits);
    for (case, item, draft) in [
        ("zstd bomb, said", item(LEN, LEN), Draft::v1_2()),
        ("zstd bomb, said to be 1 MiB", item(MIB, MIB), Draft::v1_2()),
        (
            "zstd bomb of 1.1",
            Item::new(&[LEN], "dense").part(part()),
            Draft::v1_1(),
        ),
        (
            "zstd bomb of 1.1, 1 MiB",
            Item::new(&[MIB], "dense").part(part()),
            Draft::v1_1(),
        ),
        (
            "zstd bomb, of any length",
            Item::new(&[7], "example/1").part(part()),
            Draft::v1_1(),
        ),
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
    let frames = [
        repeated_frame(0, MIB as usize),
        skippable(&vec![0; 64 << 10]),
    ]
    .concat();
    let part = Part::new("data", DType::U8, b"").frames(frames);
    let item = Item::new(&[SAID], "dense").part(part.set("uncompressed_length", uint(SAID)));
    let bytes = Draft::v1_2().with("w", item).build();
    let file = open_zt(ByPosition(Arc::from(&bytes[..]))).unwrap();
    let (cost, errors) = cost(&alone, || read_all(&file));
    row(
        "zstd, said to be 2 GiB, holds 1 MiB",
        bytes.len(),
        "read",
        cost,
    );
    assert!(!errors.is_empty());
    assert!(cost.peak <= 16 * MIB, "{cost:?}");
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
    let mut roles = head(5, 100_000);
    for at in 0..100_000u32 {
        roles.extend(text(format!("{at:07}")));
        let fields = [
            ("dtype", text("u8")),
            ("offset", uint(64)),
            ("length", uint(3)),
        ];
        roles.extend(cbor::map(&fields.map(|(key, value)| (text(key), value))));
    }
    for (case, draft) in [
        (
            "16 MiB of integers in the attributes",
            one(item()).set("attributes", numbers()),
        ),
        (
            "16 MiB of integers in an object's",
            one(item().set("attributes", numbers())),
        ),
        (
            "16 MiB of integers in a shape",
            one(item().set("shape", small_integers(LEN))),
        ),
        (
            "16 MiB of integers in an unknown field",
            one(item()).set("x", small_integers(LEN)),
        ),
        (
            "10^6 attributes",
            one(item()).set("attributes", many_attributes()),
        ),
        ("100,000 components", one(item().set("components", roles))),
        (
            "an object's name of 16 MiB",
            Draft::v1_2().with_name(text(vec![b'n'; LEN]), item()),
        ),
        (
            "arrays 10^5 deep",
            one(item()).set("x", cbor::nested_arrays(100_000)),
        ),
        (
            "arrays 10^5 deep in a shape",
            one(item().set("shape", cbor::nested_arrays(100_000))),
        ),
    ] {
        let bytes = draft.build();
        let Ok(file) = opens_cheaply(case, &bytes, open_zt, true, &alone) else {
            continue;
        };
        let (listed, _) = cost(&alone, || read_all(&file));
        row(case, bytes.len(), "list and read", listed);
        assert!(
            listed.peak <= 48 * manifest_len(&bytes) + MIB,
            "{case}: {listed:?}"
        );
    }
}

/// 300,000 objects, none of which has a byte of its own.
fn many_objects() -> Vec<u8> {
    let field = |key: &str, value: Cbor| (text(key), value);
    let data = [
        field("dtype", text("u8")),
        field("offset", uint(64)),
        field("length", uint(0)),
    ];
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

/// How many times itself a file of that kind may take: its header can be all of it, so this is what
/// a byte of the header can cost.
///
/// Lists of numbers in GGUF are values of 32 bytes each, at most 2^24 of them in a file. A list
/// within a list is two bytes of a pickle, here as in Python an object of its own, and there are at
/// most 2^24.
fn times(case: &str) -> u64 {
    match case {
        case if case.starts_with("gguf, array") => 33,
        case if case.starts_with("pickle, lists") || case == "pt" => 80,
        _ => 16,
    }
}

#[track_caller]
fn imports_cheaply(
    case: &str,
    bytes: &[u8],
    times: u64,
    is_noted: bool,
    alone: &MutexGuard<'static, ()>,
) -> zt::Result<File> {
    let source = ByPosition(Arc::from(bytes));
    let options = OpenOptions::new();
    let (cost, file) = cost(alone, || zt_convert::open_source(source, &options));
    if is_noted {
        row(case, bytes.len(), "open", cost);
    }
    let present = bytes.len() as u64;
    assert!(cost.peak <= times * present + 4 * MIB, "{case}: {cost:?}");
    assert!(
        cost.largest <= (times * present).max(2 * MIB),
        "{case}: {cost:?}"
    );
    file
}

#[test]
fn every_foreign_file_of_the_corpus_opens_within_a_multiple_of_itself() {
    let alone = alone();
    for kind in [
        "gguf",
        "h5",
        "npy",
        "npz",
        "onnx",
        "pt",
        "safetensors",
        "zt2",
    ] {
        let mut most = (
            0,
            Cost {
                peak: 0,
                largest: 0,
                total: 0,
            },
            String::new(),
        );
        for (name, bytes) in foreign::files(kind) {
            let source = ByPosition(Arc::from(&bytes[..]));
            let open = || zt_convert::open_source(source, &OpenOptions::new());
            let (cost, _) = cost(&alone, open);
            if cost.peak > most.1.peak {
                most = (bytes.len(), cost, name.clone());
            }
            let _ = imports_cheaply(&name, &bytes, times(kind), false, &alone);
        }
        let name = most.2.rsplit('/').next().unwrap_or_default();
        row(
            &format!("most of all {kind}: {name}"),
            most.0,
            "open",
            most.1,
        );
    }
}

/// A safetensors file of this header.
fn safetensors(header: &str) -> Vec<u8> {
    [
        &(header.len() as u64).to_le_bytes()[..],
        header.as_bytes(),
        &[0],
    ]
    .concat()
}

/// An array of NumPy with that header and no elements.
fn npy(shape: &str) -> Vec<u8> {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}");
    let padded = (header.len() + 11).next_multiple_of(64) - 11;
    let header = format!("{header:padded$}\n");
    let len = (header.len() as u16).to_le_bytes();
    [&b"\x93NUMPY\x01\0"[..], &len, header.as_bytes()].concat()
}

/// A GGUF file that says it has so many tensors and pairs.
fn gguf(tensors: u64, pairs: u64, rest: &[u8]) -> Vec<u8> {
    let numbers = [tensors.to_le_bytes(), pairs.to_le_bytes()].concat();
    [&b"GGUF\x03\0\0\0"[..], &numbers, rest].concat()
}

fn gguf_text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A PyTorch file of this pickle.
fn pytorch(pickle: &[u8]) -> Vec<u8> {
    archive::stored(&[
        ("m/data.pkl", pickle),
        ("m/version", b"3\n"),
        ("m/data/0", &[0; 64]),
    ])
}

/// A list of ten times a list of ten times a list, `depth` deep: ten to that power of leaves.
fn laughing_pickle(depth: u8) -> Vec<u8> {
    // Opcodes: `]` a list, `q` keep as, `h` get, `(` mark, `e` append all since the mark.
    let mut list = b"]q\0".to_vec();
    for level in 1..=depth {
        let others = [b'h', level - 1].repeat(9);
        list = [&b"]("[..], &list, &others, &[b'e', b'q', level]].concat();
    }
    [&b"\x80\x02}X\x01\0\0\0w"[..], &list, b"s."].concat()
}

/// A list of 200 times a list of 1000 times one tensor.
fn shared_tensor_pickle() -> Vec<u8> {
    // Opcodes as above; `0` takes the last value off.
    let tensor = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n\
        X\x01\0\0\x000X\x03\0\0\0cpuK\x01tQK\0(K\x01t(K\x01t\x89ccollections\nOrderedDict\n)RtRq\x000";
    let many = |of: u8, count| [&b"]("[..], &[b'h', of].repeat(count), b"e"].concat();
    [
        &b"\x80\x02"[..],
        tensor,
        &many(0, 1000),
        b"q\x010",
        &many(1, 200),
        b".",
    ]
    .concat()
}

#[test]
fn hostile_files_of_other_formats_open_within_a_multiple_of_themselves() {
    let alone = alone();
    let ones = "1,".repeat(8 << 20);
    let shape = format!("[{}1]", ones);
    let entry = |name: &str, shape: &str| {
        format!(r#""{name}":{{"dtype":"U8","shape":{shape},"data_offsets":[0,1]}}"#)
    };
    let json = |content: &str| safetensors(&format!("{{{content}}}"));
    let many: Vec<String> = (0..200_000)
        .map(|at| entry(&at.to_string(), "[1]"))
        .collect();
    let metadata: Vec<String> = (0..200_000).map(|at| format!(r#""{at}":"""#)).collect();
    let pair = |id: u32, value: &[u8]| [&gguf_text("k")[..], &id.to_le_bytes(), value].concat();
    let array = |id: u32, count: u64, rest: &[u8]| {
        pair(
            9,
            &[&id.to_le_bytes()[..], &count.to_le_bytes(), rest].concat(),
        )
    };
    let tensor = |dims: u32, rest: &[u8]| [&gguf_text("w")[..], &dims.to_le_bytes(), rest].concat();
    let huge = 1u64 << 60;
    let mut appended = b"\x80\x02]q\0".to_vec();
    appended.extend(b"h\0a".repeat(1 << 20));
    appended.push(b'.');
    let mut memo = b"\x80\x02]".to_vec();
    for at in 0..(1u32 << 20) {
        memo.push(b'r');
        memo.extend(at.to_le_bytes());
    }
    memo.push(b'.');
    let far_memo = b"\x80\x02]r\xff\xff\xff\xff.".to_vec();
    let long_bytes = [&b"\x80\x04\x8e"[..], &huge.to_le_bytes(), b"."].concat();
    let marks = [&b"\x80\x02"[..], &b"(".repeat(1 << 20), b"."].concat();
    let nested = [
        &b"\x80\x02"[..],
        &b"]".repeat(1 << 20),
        &b"a".repeat((1 << 20) - 1),
        b".",
    ];
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("safetensors, shape of 16 MiB", json(&entry("w", &shape))),
        (
            "safetensors, 200,000 tensors of one byte",
            json(&many.join(",")),
        ),
        (
            "safetensors, 200,000 metadata",
            json(&format!(r#""__metadata__":{{{}}}"#, metadata.join(","))),
        ),
        (
            "safetensors, shape of 2^60",
            json(&entry("w", "[1152921504606846976]")),
        ),
        (
            "safetensors, header of 2^60",
            [&huge.to_le_bytes()[..], b"{\"w\":{}}"].concat(),
        ),
        (
            "safetensors, arrays 10^5 deep",
            json(&format!(r#""w":{}"#, "[".repeat(100_000))),
        ),
        ("npy, 2^60 elements", npy("(1152921504606846976,)")),
        (
            "npy, 2^120 elements",
            npy("(1152921504606846976, 1152921504606846976)"),
        ),
        ("gguf, 2^60 tensors", gguf(huge, 0, &[0; 64])),
        ("gguf, 2^60 pairs", gguf(0, huge, &[0; 64])),
        ("gguf, 2^20 tensors", gguf(1 << 20, 0, &[0; 64])),
        ("gguf, array of 2^60", gguf(0, 1, &array(4, huge, &[0; 64]))),
        (
            "gguf, array of 2^60 texts",
            gguf(0, 1, &array(8, huge, &[0; 64])),
        ),
        (
            "gguf, array of 10^7 bytes",
            gguf(0, 1, &array(0, 10_000_000, &vec![1; 10_000_000])),
        ),
        (
            "gguf, array of 10^6 empty texts",
            gguf(0, 1, &array(8, 1_000_000, &vec![0; 8_000_000])),
        ),
        (
            "gguf, text of 2^60",
            gguf(0, 1, &pair(8, &huge.to_le_bytes())),
        ),
        (
            "gguf, 2^31 dimensions",
            gguf(1, 0, &tensor(1 << 31, &[0; 64])),
        ),
        ("pickle, a list in itself 10^6 times", pytorch(&appended)),
        ("pickle, 10^6 memos", pytorch(&memo)),
        ("pickle, memo of 2^32 - 1", pytorch(&far_memo)),
        ("pickle, bytes of 2^60", pytorch(&long_bytes)),
        ("pickle, 10^6 marks", pytorch(&marks)),
        ("pickle, lists 10^6 deep", pytorch(&nested.concat())),
        ("pickle, 10^20 leaves", pytorch(&laughing_pickle(20))),
        (
            "pickle, one tensor 200,000 times",
            pytorch(&shared_tensor_pickle()),
        ),
    ];
    for (case, bytes) in cases {
        let _ = imports_cheaply(case, &bytes, times(case), true, &alone).map(|file| {
            let (cost, _) = cost(&alone, || read_all(&file));
            row(case, bytes.len(), "read", cost);
            assert!(
                cost.peak <= 48 * bytes.len() as u64 + 4 * MIB,
                "{case}: {cost:?}"
            );
        });
    }
}

/// Zeros in one deflate block of fixed codes: a literal, and copies of 258 bytes from one before.
/// RFC 1951 §3.2.6.
fn deflated_zeros(copies: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = vec![true, true, false];
    // Codes are packed from their most significant bit on.
    let mut code = |value: u32, width: u32| {
        bits.extend((0..width).rev().map(|at| value >> at & 1 == 1));
    };
    code(0b0011_0000, 8);
    for _ in 0..copies {
        code(0b1100_0101, 8);
        code(0, 5);
    }
    code(0, 7);
    let byte = |bits: &[bool]| {
        let bits = bits.iter().enumerate();
        bits.fold(0, |byte, (at, bit)| byte | u8::from(*bit) << at)
    };
    bits.chunks(8).map(byte).collect()
}

/// A stored archive of one member, told to be deflated and of that length.
fn deflated(name: &str, stored: &[u8], byte_len: u32) -> Vec<u8> {
    let mut bytes = archive::stored(&[(name, stored)]);
    let directory = bytes
        .windows(4)
        .rposition(|four| four == b"PK\x01\x02")
        .unwrap();
    for (method, length) in [(8, 22), (directory + 10, directory + 24)] {
        bytes[method] = 8;
        bytes[length..length + 4].copy_from_slice(&byte_len.to_le_bytes());
    }
    bytes
}

#[test]
fn archives_that_inflate_are_bounded_by_the_limit() {
    let alone = alone();
    let zeros = deflated_zeros(1 << 19);
    let byte_len = (1u32 << 19) * 258 + 1;
    let limits = Limits {
        decoded_len: 4 * MIB,
        manifest_len: 4 * MIB,
        ..Limits::default()
    };
    let options = OpenOptions::new().limits(limits);
    for (case, bytes) in [
        (
            "npz, a member of 129 MiB of zeros",
            deflated("w.npy", &zeros, byte_len),
        ),
        ("npz, said to be 2^31", deflated("w.npy", &zeros, 1 << 31)),
        ("npz, said to be 100 bytes", deflated("w.npy", &zeros, 100)),
        (
            "pickle that inflates to 129 MiB",
            deflated("m/data.pkl", &zeros, byte_len),
        ),
    ] {
        let source = ByPosition(Arc::from(&bytes[..]));
        let (opened, file) = cost(&alone, || zt_convert::open_source(source, &options));
        row(case, bytes.len(), "open", opened);
        assert!(
            opened.peak <= 8 * bytes.len() as u64 + 2 * MIB,
            "{case}: {opened:?}"
        );
        if let Ok(file) = file {
            let (read, _) = cost(&alone, || read_all(&file));
            row(case, bytes.len(), "read", read);
            assert!(
                read.peak <= 8 * bytes.len() as u64 + 8 * MIB,
                "{case}: {read:?}"
            );
        }
    }
}

/// The length of what is deflated is only said: memory is taken as the content comes.
#[test]
fn deflated_pickles_are_paid_for_as_they_come() {
    const SAID: u32 = 128 << 20;
    let alone = alone();
    // As many stored bytes as that could come from, of which the first few are 1 MiB of zeros.
    let stored = [deflated_zeros(1 << 12), vec![0; 128 << 10]].concat();
    let bytes = deflated("m/data.pkl", &stored, SAID);
    let source = ByPosition(Arc::from(&bytes[..]));
    let open = || zt_convert::open_source(source, &OpenOptions::new());
    let (cost, file) = cost(&alone, open);
    row(
        "pickle, said to inflate to 128 MiB, holds 1 MiB",
        bytes.len(),
        "open",
        cost,
    );
    assert_eq!(file.unwrap_err().kind(), zt::ErrorKind::Malformed);
    assert!(cost.peak <= 8 * MIB && cost.largest <= 4 * MIB, "{cost:?}");
}

/// The attributes of a file are decoded when they are asked for, and only then.
#[test]
fn attributes_are_paid_for_by_those_who_ask() {
    let alone = alone();
    let numbers = cbor::map(&[(text("a"), small_integers(1 << 20))]);
    let bytes = Draft::v1_2().set("attributes", numbers).build();
    let file = open_zt(ByPosition(Arc::from(&bytes[..]))).unwrap();
    let (cost, attributes): (_, Option<Attributes>) = cost(&alone, || file.attributes().unwrap());
    row(
        "1 MiB of integers in the attributes",
        bytes.len(),
        "attributes",
        cost,
    );
    assert_eq!(attributes.unwrap().len(), 1);
    assert!(cost.peak <= 64 * bytes.len() as u64 + MIB, "{cost:?}");
}
