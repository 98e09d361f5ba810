//! What a file of another kind may make its reader allocate: counted, of every one of the corpus and of files
//! that were made to take much.
//!
//! `cargo test -p zt-conformance --test memory_import -- --nocapture` prints the figures.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and its numbers are small"
)]

mod counting;

use std::sync::{Arc, MutexGuard};

use counting::{ByPosition, Cost, MIB, alone, cost, read_all, row};
use zt::{File, Limits, OpenOptions};
use zt_conformance::{archive, corpus, foreign, hdf5};

/// How many times itself a file of that kind may take: its header can be all of it, so this is what
/// a byte of the header can cost.
///
/// A list within a list is two bytes of a pickle, here as in Python an object of its own, and there are
/// at most 2^24.
fn times(case: &str) -> u64 {
    match case {
        case if case.starts_with("pickle, lists") || case.starts_with("pickle, dicts") => 80,
        "pt" => 80,
        case if case.starts_with("pickle, one state") => 80,
        _ => 16,
    }
}

/// What a file of that kind may take however short it is. What a pickle unfolds to has a budget of
/// 64 MiB at least, in which names, and what grows by doubling, are not counted to the byte.
fn at_least(case: &str) -> (u64, u64) {
    match case {
        "pickle, 10^20 leaves" | "pickle, one tensor 200,000 times" => (96 * MIB, 48 * MIB),
        case if case.ends_with("values of one byte") => (96 * MIB, 64 * MIB),
        // The decoder has a block of 900,000 numbers.
        case if case.ends_with("member_bzip2.npz") => (6 * MIB, 4 * MIB),
        case if case.ends_with("bad_laughs.pt") => (96 * MIB, 48 * MIB),
        _ => (4 * MIB, 2 * MIB),
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
    let (cost, file) = cost(alone, || {
        zt_convert::Kinds::builtin().open_source(source, &options).map(zt_convert::Input::into_file)
    });
    if is_noted {
        row(case, bytes.len(), "open", cost);
    }
    let present = bytes.len() as u64;
    let (peak, largest) = at_least(case);
    assert!(cost.peak <= times * present + peak, "{case}: {cost:?}");
    assert!(cost.largest <= (times * present).max(largest), "{case}: {cost:?}");
    file
}

#[test]
fn every_foreign_file_of_the_corpus_opens_within_a_multiple_of_itself() {
    let alone = alone();
    for (kind, _) in foreign::KINDS {
        let mut most = (0, Cost { peak: 0, largest: 0, total: 0 }, String::new());
        let mut files = foreign::files(kind);
        if kind == "h5" {
            files.extend(foreign::files_in(&corpus::folder().join("corpus/hdf5"), kind));
        }
        for (name, bytes) in files {
            let source = ByPosition(Arc::from(&bytes[..]));
            let open = || zt_convert::open_source(source);
            let (cost, _) = cost(&alone, open);
            if cost.peak > most.1.peak {
                most = (bytes.len(), cost, name.clone());
            }
            let _ = imports_cheaply(&name, &bytes, times(kind), false, &alone);
        }
        let name = most.2.rsplit('/').next().unwrap_or_default();
        row(&format!("most of all {kind}: {name}"), most.0, "open", most.1);
    }
}

/// A safetensors file of this header.
fn safetensors(header: &str) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0]].concat()
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

/// An ONNX model of this graph.
fn onnx(graph: &[u8]) -> Vec<u8> {
    let mut len = Vec::new();
    let mut rest = graph.len();
    while rest >= 0x80 {
        len.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    len.push(rest as u8);
    // A version of the format, then the graph.
    [&b"\x08\x09\x3a"[..], &len, graph].concat()
}

/// An initializer of 128 bytes, the fewest that a model of many may have: a name and nothing else.
fn named_initializer(number: u32) -> Vec<u8> {
    [&b"\x2a\x7e\x42\x7c"[..], format!("{number:0124}").as_bytes()].concat()
}

/// An initializer that has a name of 8 bytes, and nothing else.
fn initializer(number: u32) -> Vec<u8> {
    [&b"\x2a\x0a\x42\x08"[..], format!("{number:08}").as_bytes()].concat()
}

/// A PyTorch file of this pickle.
fn pytorch(pickle: &[u8]) -> Vec<u8> {
    archive::stored(&[("m/data.pkl", pickle), ("m/version", b"3\n"), ("m/data/0", &[0; 64])])
}

/// A list of `None`.
fn list_pickle(len: usize) -> Vec<u8> {
    [&b"\x80\x02]("[..], &b"N".repeat(len), b"e."].concat()
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
    [&b"\x80\x02"[..], tensor, &many(0, 1000), b"q\x010", &many(1, 200), b"."].concat()
}

/// A text of 32 KiB, kept as 0.
fn long_text() -> Vec<u8> {
    let text = vec![b'k'; 1 << 15];
    [&b"X\0\x80\0\0"[..], &text, b"q\0"].concat()
}

/// A dict whose key is a tuple of 64 tuples of 64 tuples of 64 times one long text.
fn wide_key_pickle() -> Vec<u8> {
    // Opcodes as above; `t` makes a tuple, `}` a dict and `s` sets one item.
    let many = |of: u8| [&b"0("[..], &[b'h', of].repeat(64), b"tq", &[of + 1]].concat();
    let key = [long_text(), many(0), many(1), many(2)].concat();
    [&b"\x80\x02"[..], &key, b"0}h\x03K\x01s."].concat()
}

/// A list of 100,000 dicts that set one long key twice.
fn repeated_key_pickle() -> Vec<u8> {
    let dicts = b"}(h\0K\x01h\0K\x02u".repeat(100_000);
    [&b"\x80\x02"[..], &long_text(), b"0](", &dicts, b"e."].concat()
}

/// A list of 100,000 tensors, each with one dict of 10,000 attributes.
fn shared_state_pickle() -> Vec<u8> {
    // Opcodes as above; `R` calls, which here writes down that a parameter has a state.
    let pair = |number: u16| [&b"M"[..], &number.to_le_bytes(), b"N"].concat();
    let pairs: Vec<u8> = (0..10_000).flat_map(pair).collect();
    let state = [&b"}q\x01("[..], &pairs, b"u0"].concat();
    let tensor = b"h\0(NNNh\x01tR".repeat(100_000);
    let global = b"ctorch._utils\n_rebuild_parameter_with_state\nq\0";
    [&b"\x80\x02"[..], global, b"0", &state, b"](", &tensor, b"e."].concat()
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
    let many: Vec<String> = (0..200_000).map(|at| entry(&at.to_string(), "[1]")).collect();
    let metadata: Vec<String> = (0..200_000).map(|at| format!(r#""{at}":"""#)).collect();
    let pair = |id: u32, value: &[u8]| [&gguf_text("k")[..], &id.to_le_bytes(), value].concat();
    let array = |id: u32, count: u64, rest: &[u8]| {
        pair(9, &[&id.to_le_bytes()[..], &count.to_le_bytes(), rest].concat())
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
    let nested = [&b"\x80\x02"[..], &b"]".repeat(1 << 20), &b"a".repeat((1 << 20) - 1), b"."];
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("safetensors, shape of 16 MiB", json(&entry("w", &shape))),
        ("safetensors, 200,000 tensors of one byte", json(&many.join(","))),
        (
            "safetensors, 200,000 metadata",
            json(&format!(r#""__metadata__":{{{}}}"#, metadata.join(","))),
        ),
        ("safetensors, shape of 2^60", json(&entry("w", "[1152921504606846976]"))),
        ("safetensors, header of 2^60", [&huge.to_le_bytes()[..], b"{\"w\":{}}"].concat()),
        ("safetensors, arrays 10^5 deep", json(&format!(r#""w":{}"#, "[".repeat(100_000)))),
        ("npy, 2^60 elements", npy("(1152921504606846976,)")),
        ("npy, 2^120 elements", npy("(1152921504606846976, 1152921504606846976)")),
        ("gguf, 2^60 tensors", gguf(huge, 0, &[0; 64])),
        ("gguf, 2^60 pairs", gguf(0, huge, &[0; 64])),
        ("gguf, 2^20 tensors", gguf(1 << 20, 0, &[0; 64])),
        ("gguf, array of 2^60", gguf(0, 1, &array(4, huge, &[0; 64]))),
        ("gguf, array of 2^60 texts", gguf(0, 1, &array(8, huge, &[0; 64]))),
        ("gguf, array of 10^7 bytes", gguf(0, 1, &array(0, 10_000_000, &vec![1; 10_000_000]))),
        ("gguf, array of 10^6 empty texts", gguf(0, 1, &array(8, 1_000_000, &vec![0; 8_000_000]))),
        ("gguf, text of 2^60", gguf(0, 1, &pair(8, &huge.to_le_bytes()))),
        ("gguf, 2^31 dimensions", gguf(1, 0, &tensor(1 << 31, &[0; 64]))),
        ("pickle, 400,000 values of one byte", pytorch(&list_pickle(400_000))),
        ("pickle, 4,000,000 values of one byte", pytorch(&list_pickle(4_000_000))),
        ("pickle, a list in itself 10^6 times", pytorch(&appended)),
        ("pickle, 10^6 memos", pytorch(&memo)),
        ("pickle, memo of 2^32 - 1", pytorch(&far_memo)),
        ("pickle, bytes of 2^60", pytorch(&long_bytes)),
        ("pickle, 10^6 marks", pytorch(&marks)),
        ("pickle, lists 10^6 deep", pytorch(&nested.concat())),
        ("pickle, 10^20 leaves", pytorch(&laughing_pickle(20))),
        ("pickle, one tensor 200,000 times", pytorch(&shared_tensor_pickle())),
        ("pickle, a key of 8 GiB", pytorch(&wide_key_pickle())),
        ("pickle, dicts with a long key twice, 100,000", pytorch(&repeated_key_pickle())),
        (
            "onnx, 100,000 initializers of 12 bytes",
            onnx(&(0..100_000).flat_map(initializer).collect::<Vec<u8>>()),
        ),
        (
            "onnx, 100,000 initializers of 128 bytes",
            onnx(&(0..100_000).flat_map(named_initializer).collect::<Vec<u8>>()),
        ),
        ("onnx, 10^6 empty initializers", onnx(&b"\x2a\0".repeat(1_000_000))),
        ("pickle, one state of 100,000 tensors", pytorch(&shared_state_pickle())),
    ];
    for (case, bytes) in cases {
        let _ = imports_cheaply(case, &bytes, times(case), true, &alone).map(|file| {
            let (cost, _) = cost(&alone, || read_all(&file));
            row(case, bytes.len(), "read", cost);
            assert!(cost.peak <= 16 * bytes.len() as u64 + 4 * MIB, "{case}: {cost:?}");
        });
    }
}

/// Zeros in one deflate block of fixed codes.
fn deflated_zeros(copies: usize) -> Vec<u8> {
    deflated_run(0, copies)
}

/// One byte again and again in one deflate block of fixed codes: a literal, and copies of 258 bytes
/// from one before. RFC 1951 §3.2.6.
fn deflated_run(byte: u8, copies: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = vec![true, true, false];
    // Codes are packed from their most significant bit on.
    let mut code = |value: u32, width: u32| {
        bits.extend((0..width).rev().map(|at| value >> at & 1 == 1));
    };
    match u32::from(byte) {
        literal @ ..144 => code(0b0011_0000 + literal, 8),
        literal => code(0b1_1001_0000 + literal - 144, 9),
    }
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
    let directory = bytes.windows(4).rposition(|four| four == b"PK\x01\x02").unwrap();
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
    let limits = Limits::default().with_decoded_len(4 * MIB).with_manifest_len(4 * MIB);
    let options = OpenOptions::new().limits(limits);
    for (case, bytes) in [
        ("npz, a member of 129 MiB of zeros", deflated("w.npy", &zeros, byte_len)),
        ("npz, said to be 2^31", deflated("w.npy", &zeros, 1 << 31)),
        ("npz, said to be 100 bytes", deflated("w.npy", &zeros, 100)),
        ("pickle that inflates to 129 MiB", deflated("m/data.pkl", &zeros, byte_len)),
    ] {
        let source = ByPosition(Arc::from(&bytes[..]));
        let (opened, file) = cost(&alone, || {
            zt_convert::Kinds::builtin()
                .open_source(source, &options)
                .map(zt_convert::Input::into_file)
        });
        row(case, bytes.len(), "open", opened);
        assert!(opened.peak <= 8 * bytes.len() as u64 + 2 * MIB, "{case}: {opened:?}");
        if let Ok(file) = file {
            let (read, _) = cost(&alone, || read_all(&file));
            row(case, bytes.len(), "read", read);
            assert!(read.peak <= 8 * bytes.len() as u64 + 8 * MIB, "{case}: {read:?}");
        }
    }
}

/// Every byte of a pickle may be a value, which takes far more than the byte: what shrinks to a
/// thousandth is no pickle of torch.
#[test]
fn pickles_of_one_instruction_that_are_deflated_are_refused() {
    let alone = alone();
    // Zeros have no instruction; these are lists, and memos.
    for (case, code) in [
        ("pickle that inflates to 16,000,000 lists", b']'),
        ("pickle that inflates to 16,000,000 memos", 0x94),
    ] {
        let stored = deflated_run(code, (16_000_000 - 1) / 258);
        let bytes = deflated("m/data.pkl", &stored, 15_999_871);
        let source = ByPosition(Arc::from(&bytes[..]));
        let open = || zt_convert::open_source(source);
        let (cost, file) = cost(&alone, open);
        row(case, bytes.len(), "open", cost);
        let error = file.unwrap_err();
        assert_eq!((error.kind(), error.code()), (zt::ErrorKind::Limit, "pickle"));
        assert!(cost.peak <= MIB, "{case}: {cost:?}");
    }
    // Stored, they are paid for by the file.
    let memos = [&b"\x80\x04N"[..], &[0x94; 1 << 20], b"."].concat();
    let bytes = pytorch(&memos);
    let _ = imports_cheaply("pickle, 10^6 memos in order", &bytes, 32, true, &alone);
}

/// The length of what is deflated is only said: memory is taken as the content comes.
#[test]
fn deflated_pickles_are_paid_for_as_they_come() {
    const SAID: u32 = 128 << 20;
    let alone = alone();
    // As many stored bytes as can give that length. The first few give 1 MiB of zeros.
    let stored = [deflated_zeros(1 << 12), vec![0; 4 << 20]].concat();
    let bytes = deflated("m/data.pkl", &stored, SAID);
    let source = ByPosition(Arc::from(&bytes[..]));
    let open = || zt_convert::open_source(source);
    let (cost, file) = cost(&alone, open);
    row("pickle, said to inflate to 128 MiB, holds 1 MiB", bytes.len(), "open", cost);
    assert_eq!(file.unwrap_err().kind(), zt::ErrorKind::Malformed);
    assert!(cost.peak <= 8 * MIB && cost.largest <= 4 * MIB, "{cost:?}");
}

/// An HDF5 file of a root group with one attribute: its datatype, its dimensions and its bytes.
fn hdf5_of(datatype: &[u8], shape: &[u64], value: &[u8]) -> Vec<u8> {
    let mut space = vec![1, shape.len() as u8, 0, 0, 0, 0, 0, 0];
    space.extend(shape.iter().flat_map(|count| count.to_le_bytes()));
    let mut attribute = vec![3, 0, 2, 0];
    for part in [datatype, &space] {
        attribute.extend((part.len() as u16).to_le_bytes());
    }
    attribute.extend([&[0][..], b"a\0", datatype, &space, value].concat());
    hdf5::group(&[(hdf5::ATTRIBUTE, attribute)])
}

/// What is said of each is more than each takes in the file.
#[test]
fn many_attributes_without_a_value_open_within_a_multiple_of_the_file() {
    let alone = alone();
    for (case, count, times_read) in
        [("hdf5, 500,000 empty attributes", 500_000, 1), ("hdf5, the same three times", 500_000, 3)]
    {
        let bytes = hdf5::empty_attributes(count, times_read);
        let file = imports_cheaply(case, &bytes, 5, true, &alone).unwrap();
        let last = file.warnings().into_iter().last().unwrap();
        let more = format!("{} more ", count * times_read - 8);
        assert_eq!(last.code, "attribute");
        assert!(last.message.starts_with(&more), "{last:?}");
    }
}

/// Each dimension that is 1 is a list around every value.
#[test]
fn attributes_of_many_dimensions_open_within_a_multiple_of_the_file() {
    let alone = alone();
    let ones = |first: u64, more: usize| [&[first][..], &vec![1; more]].concat();
    let byte = [&[0x10, 8, 0, 0, 1, 0, 0, 0][..], &[0, 0, 8, 0]].concat();
    let array = |base: Vec<u8>| {
        let dimensions = [1, 0, 0, 0].repeat(32);
        let head = [0x3A, 0, 0, 0, 1, 0, 0, 0, 32];
        [&head[..], &dimensions, &base].concat()
    };
    let arrays = (0..6).fold(byte.clone(), |base, _| array(base));
    let empty = [&ones(4096, 30)[..], &[0]].concat();
    for (case, datatype, shape, count) in [
        ("hdf5, bytes of 32 dimensions", &byte, ones(60_000, 31), 60_000),
        ("hdf5, bytes of 224 dimensions", &arrays, ones(60_000, 31), 60_000),
        ("hdf5, no bytes of 32 dimensions", &byte, empty, 0),
    ] {
        let bytes = hdf5_of(datatype, &shape, &vec![7; count]);
        let file = imports_cheaply(case, &bytes, times("h5"), true, &alone).unwrap();
        let warning = file.warnings().into_iter().next().unwrap();
        assert_eq!(warning.code, "attribute", "{case}: {}", warning.message);
    }
    // A list of numbers takes what it does in the file, also when it is asked for.
    let bytes = hdf5_of(&byte, &[60_000], &vec![7; 60_000]);
    let (cost, attributes) = cost(&alone, || {
        let source = ByPosition(Arc::from(&bytes[..]));
        zt_convert::open_source(source).unwrap().attributes()
    });
    row("hdf5, an attribute of 60,000 bytes", bytes.len(), "open", cost);
    assert!(cost.peak <= 16 * bytes.len() as u64, "{cost:?}");
    let attributes = attributes.unwrap().unwrap();
    assert_eq!(attributes.get("a").unwrap().as_array().unwrap().len(), 60_000);

    let few = zt::Memory::new(hdf5_of(&byte, &[2, 1], &[7, 8]));
    let file = zt_convert::open_source(few).unwrap();
    let attributes = file.attributes().unwrap().unwrap();
    assert!(attributes.get("a").is_some());
}

/// As the program does, from the first byte that is read to the last that is written.
#[test]
fn files_of_many_small_tensors_are_verified_and_converted_within_a_multiple_of_themselves() {
    const COUNT: u32 = 20_000;
    let alone = alone();
    let entry = |at: u32| {
        let (start, end) = (4 * at, 4 * at + 4);
        format!(r#""layers.{at}.w":{{"dtype":"F32","shape":[1],"data_offsets":[{start},{end}]}}"#)
    };
    let header: Vec<String> = (0..COUNT).map(entry).collect();
    let header = format!("{{{}}}", header.join(","));
    let len = (header.len() as u64).to_le_bytes();
    let data = vec![0; 4 * COUNT as usize];
    let safetensors = [&len[..], header.as_bytes(), &data].concat();
    let values = b"\x08\x01\x10\x01\x4a\x04\0\0\0\0";
    let initializer =
        |at| [&b"\x2a\x7e"[..], values, b"\x42\x72", format!("{at:0114}").as_bytes()].concat();
    let onnx = onnx(&(0..COUNT).flat_map(initializer).collect::<Vec<u8>>());
    for (case, bytes) in [("safetensors", safetensors), ("onnx", onnx)] {
        let kinds = zt_convert::Kinds::builtin();
        let open = || {
            let source = ByPosition(Arc::from(&bytes[..]));
            kinds.open_source(source, OpenOptions::new()).unwrap()
        };
        let verified = || open().file().verify(&zt::VerifyOptions::new()).unwrap();
        let (verify, report) = cost(&alone, verified);
        assert!(report.is_ok() && report.objects == u64::from(COUNT));
        let options = zt_convert::ConvertOptions::new(zt_convert::ZT);
        let converted = || kinds.convert(&[open()], std::io::sink(), &options);
        let (convert, summary) = cost(&alone, converted);
        assert_eq!(summary.unwrap().objects, u64::from(COUNT));
        for (work, cost) in [("verify", verify), ("convert", convert)] {
            let case = format!("{case}, {COUNT} small tensors");
            row(&case, bytes.len(), work, cost);
            assert!(cost.peak <= 16 * bytes.len() as u64 + 4 * MIB, "{case}: {work} {cost:?}");
        }
    }
}
