//! Twice the file takes twice the work, whatever there is twice of: counted in the bytes that are
//! read and allocated, not timed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and its numbers are small"
)]

mod counting;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use counting::{alone, cost};
use zt::repair::RepairOptions;
use zt::{DType, DigestAlgorithm, HashOptions, OpenOptions, VerifyOptions};
use zt_conformance::archive;
use zt_conformance::cbor::{self, head, text, uint};
use zt_conformance::draft::{Draft, Item};
use zt_conformance::frames::{repeated_frame, skippable};
use zt_conformance::hdf5;
use zt_conformance::position::Counted;
use zt_convert::{ConvertOptions, GGUF, Input, Kinds, NPZ, SAFETENSORS};

/// Bytes read and allocated by some work on a file. What is refused takes work until it is.
fn counted<T>(
    bytes: Vec<u8>,
    alone: &MutexGuard<'static, ()>,
    work: impl FnOnce(Counted) -> zt::Result<T>,
) -> [u64; 2] {
    let read = Arc::new(AtomicU64::new(0));
    let source = Counted(bytes, Arc::clone(&read));
    let (cost, _) = cost(alone, || work(source));
    [read.load(Ordering::Relaxed), cost.total]
}

/// Opening and listing a file, looking for its last object, verifying and hashing it.
fn read(source: Counted) -> zt::Result<()> {
    let file = zt_convert::open_source(source)?;
    if let Some(last) = file.entries().last() {
        drop(file.get(last.name()));
    }
    file.attributes()?;
    // On one thread, because each has buffers of its own.
    let verifying = VerifyOptions::new().threads(1).strict(true);
    file.verify(&verifying)?;
    let hashing = HashOptions::new().threads(1);
    file.hash(&hashing)?;
    Ok(())
}

/// Looking for what is left of a file, and saving it.
fn repaired(source: Counted) -> zt::Result<()> {
    let options = RepairOptions::new().threads(1);
    zt::repair::examine(source, &options)?.save_to(io::sink(), None)?;
    Ok(())
}

/// At most 2.2 times the work for twice as many, twice over.
#[track_caller]
fn doubles(case: &str, file: impl Fn(u32) -> Vec<u8>) {
    doubles_when(read, case, file);
}

#[track_caller]
fn doubles_when(
    work: impl Fn(Counted) -> zt::Result<()>,
    case: &str,
    file: impl Fn(u32) -> Vec<u8>,
) {
    const COUNT: u32 = 2048;
    // Before the files are made: that allocates, too.
    let alone = alone();
    let [once, twice, four] = [1, 2, 4].map(|times| counted(file(times * COUNT), &alone, &work));
    println!("| {case} | {once:?} | {twice:?} | {four:?} |");
    for (less, more) in [(once, twice), (twice, four)] {
        for (less, more) in less.into_iter().zip(more) {
            assert!(more * 10 <= less * 22, "{case}: {once:?}, {twice:?}, {four:?}");
        }
    }
}

fn item() -> Item {
    Item::dense(&[3], DType::U8, b"abc")
}

/// So many objects, all of the first one's bytes.
fn objects(count: u32) -> Draft {
    let first = Draft::v1_2().with("first", item());
    (1..count).fold(first, |draft, at| draft.tied(&format!("layer.{at}"), item()))
}

fn map_of(count: u32, value: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let pairs = (0..count).flat_map(|at| [text(format!("{at}")), value(at)].concat());
    [head(5, count.into()), pairs.collect()].concat()
}

#[test]
fn twice_as_much_of_anything_in_a_manifest_takes_twice_the_work() {
    let one = |item: Item| Draft::v1_2().with("w", item);
    doubles("objects", |count| objects(count).build());
    doubles("ranges that overlap", |count| {
        // Longer than what is read together with its neighbours.
        let len = (1 << 20) + 64;
        let all = vec![7; len + 64 * count as usize];
        let first = Draft::v1_2().with("all", Item::dense(&[all.len() as u64], DType::U8, &all));
        let range = |at: u32| {
            let item = Item::dense(&[len as u64], DType::U8, b"");
            item.change("data", |part| {
                part.at(64 + u64::from(at) * 64).set("length", uint(len as u64))
            })
        };
        let with = |draft: Draft, at: u32| draft.with(&format!("{at}"), range(at));
        (0..count).fold(first, with).build()
    });
    doubles("blobs that share a frame", |count| {
        // Each has one more skippable frame at its end than the last.
        let (frame, end) = (repeated_frame(0, 4096), skippable(b""));
        let item = |frames: Vec<u8>| {
            let item = Item::dense(&[4096], DType::U8, &[0; 4096]);
            item.change("data", |part| part.frames(frames))
        };
        let all = [&frame[..], &end.repeat(count as usize)].concat();
        let first = Draft::v1_2().with("first", item(all));
        let with = |draft: Draft, at: u32| {
            let len = frame.len() as u64 + end.len() as u64 * u64::from(at);
            let part = item(Vec::new());
            let part = part.change("data", |part| part.at(64).set("length", uint(len)));
            draft.with(&format!("{at}"), part)
        };
        (0..count).fold(first, with).build()
    });
    doubles("shapes of the same indices", |count| {
        let indices: Vec<u64> = (0..16 << 10).collect();
        let many = indices.len() as u64;
        let item =
            |columns: u64| Item::csr(&[1, columns], &vec![1; indices.len()], &indices, &[0, many]);
        let first = Draft::v1_2().with("first", item(many));
        let tied = |draft: Draft, at: u32| draft.tied(&format!("{at}"), item(many + u64::from(at)));
        (0..count / 16).fold(first, tied).build()
    });
    doubles("a longer name", |count| {
        let name = text(vec![b'n'; count as usize * 4]);
        Draft::v1_2().with_name(name, item()).build()
    });
    doubles("attributes", |count| {
        let attributes = map_of(count, |at| uint(at.into()));
        one(item()).set("attributes", attributes).build()
    });
    doubles("attributes of an object", |count| {
        let attributes = map_of(count, |at| uint(at.into()));
        one(item().set("attributes", attributes)).build()
    });
    doubles("equal names", |count| {
        // Refused or faulty, but not compared each with each.
        let first = Draft::v1_2().with("first", item());
        let again = |draft: Draft, at: u32| draft.tied(&format!("{}", at / 2), item());
        (0..count).fold(first, again).set("x", uint(1)).build()
    });
    doubles("components", |count| {
        let fields = [("dtype", text("u8")), ("offset", uint(64)), ("length", uint(3))];
        let component = cbor::map(&fields.map(|(key, value)| (text(key), value)));
        let components = map_of(count, |_| component.clone());
        one(item().set("components", components)).build()
    });
    doubles("elements of a list", |count| {
        let list = [head(4, (count * 16).into()), vec![1; count as usize * 16]].concat();
        one(item()).set("attributes", map_of(1, |_| list.clone())).build()
    });
}

/// A component of one manifest, as a file of magics would have it.
fn component(length: u64, digest: &[u8]) -> Vec<u8> {
    let digest = DigestAlgorithm::Crc32c.digest(digest).unwrap();
    let fields = [
        ("dtype", text("u8")),
        ("offset", uint(64)),
        ("length", uint(length)),
        ("digest", text(digest.to_string())),
    ];
    cbor::map(&fields.map(|(key, value)| (text(key), value)))
}

#[test]
fn twice_as_much_of_anything_takes_twice_the_repair() {
    // Each magic may be the header of the file, each component may be there counted from it, and one
    // of them never is: the next magic has to be tried.
    doubles_when(repaired, "components, counted from magics", |count| {
        // All of it in one of the pieces that are searched.
        let count = count / 2;
        let (right, wrong) = (component(1, b"Z"), component(2, b"?"));
        let components = map_of(count, |at| if at == 0 { &wrong } else { &right }.clone());
        let object = [
            ("shape", cbor::uints(&[3])),
            ("format", text("somebody.s/1")),
            ("components", components),
        ];
        let object = cbor::map(&object.map(|(key, value)| (text(key), value)));
        let root = [("version", text("1.2.0")), ("objects", cbor::map(&[(text("w"), object)]))];
        let root = cbor::map(&root.map(|(key, value)| (text(key), value)));
        let magics = b"ZTEN1000\0\0\0\0\0\0\0\0".repeat(count as usize);
        [&magics[..], &[0; 4096], &root].concat()
    });
    // As stored they are the other way round than they are written.
    doubles_when(repaired, "tensors of the same big-endian elements", |count| {
        let bytes = vec![1; count as usize * 16];
        let item = || {
            let item = Item::dense(&[u64::from(count) * 4], DType::F32, &bytes);
            item.change("data", |part| part.set("data_endianness", text("big")))
        };
        let first = Draft::v0_1().with("first", item());
        let tied = |draft: Draft, at: u32| draft.tied(&format!("layer.{at}"), item());
        (1..count / 16).fold(first, tied).build()
    });
}

#[test]
fn twice_as_many_tensors_of_another_format_take_twice_the_work() {
    for kind in [SAFETENSORS, GGUF, NPZ] {
        doubles(kind.as_str(), |count| {
            let item = || Item::dense(&[3], DType::F32, &[0; 12]);
            let first = Draft::v1_2().with("first", item());
            let tied = |draft: Draft, at: u32| draft.tied(&format!("layer.{at}"), item());
            let file = (1..count).fold(first, tied).build();
            let file = zt::File::from_bytes(file).unwrap();
            let mut bytes = Vec::new();
            let mut options = ConvertOptions::new(kind);
            options = options.lossy(true);
            Kinds::builtin().convert(&[Input::from(file)], &mut bytes, &options).unwrap();
            bytes
        });
    }
}

#[test]
fn twice_as_many_objects_of_one_blob_take_twice_the_conversion() {
    let converted = |source: Counted| {
        let file = OpenOptions::new().open_source(source)?;
        let mut options = ConvertOptions::new(zt::foreign::Kind::ZT);
        options.write = options.write.threads(1);
        Kinds::builtin().convert(&[Input::from(file)], io::sink(), &options).map(drop)
    };
    // Each object shares with the first, whose attributes are not to be decoded each time.
    doubles_when(converted, "objects that share, attributes", |count| {
        let list = [head(4, (count * 4).into()), vec![1; count as usize * 4]].concat();
        let item = |at: u32| match at {
            0 => item().set("attributes", map_of(1, |_| list.clone())),
            _ => item(),
        };
        let first = Draft::v1_2().with("first", item(0));
        let tied = |draft: Draft, at: u32| draft.tied(&format!("layer.{at}"), item(at));
        (1..count / 4).fold(first, tied).build()
    });
}

/// Opcodes of pickles: `]` a list, `q` keep as, `h` get, `(` mark, `e` append all since the mark, `t` a
/// tuple of them, `}` a dict, `u` set all since the mark, `a` append, `0` take the last value off.
#[test]
fn twice_as_long_a_pickle_takes_twice_the_work() {
    let pytorch = |pickle: &[&[u8]]| {
        let pickle = [&b"\x80\x02"[..], &pickle.concat(), b"."].concat();
        let members: [(&str, &[u8]); 3] =
            [("m/data.pkl", &pickle), ("m/version", b"3\n"), ("m/data/0", &[0; 64])];
        archive::stored(&members)
    };
    let tensor = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n\
        X\x01\0\0\x000X\x03\0\0\0cpuK\x01tQK\0(K\x01t(K\x01t\x89ccollections\nOrderedDict\n)RtRq\x00";
    doubles("pickle, one tensor many times", |count| {
        pytorch(&[tensor, b"0](", &b"h\0".repeat(count as usize), b"e"])
    });
    doubles("pickle, names of one tensor", |count| {
        let pair = |at: u32| [&b"X\x08\0\0\0"[..], format!("{at:08}").as_bytes(), b"h\0"].concat();
        let pairs: Vec<u8> = (0..count).flat_map(pair).collect();
        pytorch(&[tensor, b"0}(", &pairs, b"u"])
    });
    doubles("pickle, lists in lists", |count| {
        let depth = count as usize;
        pytorch(&[&b"]".repeat(depth), &b"a".repeat(depth - 1)])
    });
    doubles("pickle, a key many times", |count| {
        let key = [&b"X\0\x04\0\0"[..], &[b'k'; 1024], b"q\0"].concat();
        pytorch(&[&key, b"0}(", &b"h\0K\x01".repeat(count as usize), b"u"])
    });
    doubles("pickle, dicts of one long key", |count| {
        // Beyond what any pickle may unfold to.
        let count = count * 8;
        let len = count.to_le_bytes();
        let key = [&b"X"[..], &len, &vec![b'k'; count as usize], b"q\0"].concat();
        pytorch(&[&key, b"0](", &b"}h\0K\x01s".repeat(count as usize), b"e"])
    });
}

#[test]
fn twice_as_many_attributes_without_a_value_take_twice_the_work() {
    doubles("hdf5, empty attributes", |count| hdf5::empty_attributes(count, 3));
}
