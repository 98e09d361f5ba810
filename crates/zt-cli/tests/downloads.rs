//! Forty damaged downloads of a sealed set: each is named with its range. The table is in docs/seal.md, and
//! `UPDATE_GOLDEN=1` writes it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::cast_possible_truncation, reason = "bytes of a small set")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{names_in, zt};

const MIB: usize = 1 << 20;

const ONE: &str = "model-00001-of-00002.safetensors";
const TWO: &str = "model-00002-of-00002.safetensors";
const TEXT: &str = "config.json";

/// Numbers that look random.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn safetensors(tensors: &[(&str, usize)], seed: u64) -> Vec<u8> {
    let (mut entries, mut at) = (Vec::new(), 0);
    for (name, len) in tensors {
        let end = at + len;
        entries.push(format!(
            r#""{name}":{{"dtype":"U8","shape":[{len}],"data_offsets":[{at},{end}]}}"#
        ));
        at = end;
    }
    let mut header = format!("{{{}}}", entries.join(","));
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &noise(at, seed)].concat()
}

/// Two shards of 3.1 and 1.5 MiB with their index, and a text.
fn set(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    write(ONE, &safetensors(&[("up", 2 * MIB), ("down", MIB), ("norm", 100_000)], 1));
    write(TWO, &safetensors(&[("head", MIB), ("bias", MIB / 2)], 2));
    let map = [("up", ONE), ("down", ONE), ("norm", ONE), ("head", TWO), ("bias", TWO)];
    let map = map.map(|(name, file)| format!("\"{name}\":\"{file}\"")).join(",");
    write("model.safetensors.index.json", format!("{{\"weight_map\":{{{map}}}}}").as_bytes());
    write(TEXT, "{\n  \"model_type\": \"llama\",\n  \"name\": \"Müller\"\n}\n".as_bytes());
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn one(folder: &Path, what: impl FnOnce(&mut Vec<u8>)) {
    change(&folder.join(ONE), what);
}

fn text(folder: &Path, what: impl FnOnce(&mut Vec<u8>)) {
    change(&folder.join(TEXT), what);
}

fn rename(folder: &Path, from: &str, to: &str) {
    fs::create_dir_all(folder.join(to).parent().unwrap()).unwrap();
    fs::rename(folder.join(from), folder.join(to)).unwrap();
}

/// A member of gzip with stored blocks.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut zipped = b"\x1F\x8B\x08\0\0\0\0\0\0\x03".to_vec();
    for block in bytes.chunks(65_535) {
        let len = block.len() as u16;
        zipped.push(0);
        zipped.extend(len.to_le_bytes());
        zipped.extend((!len).to_le_bytes());
        zipped.extend(block);
    }
    [&zipped[..], &[1, 0, 0, 255, 255, 0, 0, 0, 0], &(bytes.len() as u32).to_le_bytes()].concat()
}

fn replaced(bytes: &[u8], from: u8, to: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| if *byte == from { to.to_vec() } else { vec![*byte] }).collect()
}

type Damage = (&'static str, fn(&Path));

const DAMAGES: [Damage; 40] = [
    ("one bit flipped", |at| one(at, |it| it[1_500_000] ^= 1)),
    ("the last bit flipped", |at| one(at, |it| *it.last_mut().unwrap() ^= 1)),
    ("one bit flipped in the header", |at| one(at, |it| it[20] ^= 4)),
    ("the first byte of a leaf", |at| one(at, |it| it[MIB] ^= 255)),
    ("a byte in each of two leaves", |at| {
        one(at, |it| [100_000, 2_500_000].iter().for_each(|byte| it[*byte] ^= 1));
    }),
    ("64 KiB of noise", |at| one(at, |it| it[700_000..765_536].copy_from_slice(&noise(65_536, 9)))),
    ("a page of zeros", |at| one(at, |it| it[1_200_128..1_204_224].fill(0))),
    ("1 MiB of zeros", |at| one(at, |it| it[MIB..2 * MIB].fill(0))),
    ("zeros across two leaves", |at| one(at, |it| it[2 * MIB - 9..2 * MIB + 9].fill(0))),
    ("zeros from the middle on, as a stopped download leaves them", |at| {
        one(at, |it| it[3 * MIB / 2..].fill(0));
    }),
    ("only zeros", |at| one(at, |it| it.fill(0))),
    ("cut in the middle", |at| one(at, |it| it.truncate(1_700_000))),
    ("cut between two leaves", |at| one(at, |it| it.truncate(2 * MIB))),
    ("the last byte missing", |at| one(at, |it| it.truncate(it.len() - 1))),
    ("cut behind the header", |at| one(at, |it| it.truncate(200))),
    ("empty", |at| one(at, Vec::clear)),
    ("one byte behind the end", |at| one(at, |it| it.push(0))),
    ("a line feed behind the end of a text", |at| text(at, |it| it.push(b'\n'))),
    ("the file twice", |at| one(at, |it| it.extend_from_within(..))),
    ("a page of HTML in place of the file", |at| {
        one(at, |it| *it = b"<!DOCTYPE html><title>Sign in</title>".to_vec());
    }),
    ("an error as JSON in place of the file", |at| {
        text(at, |it| *it = br#"{"error":"Invalid username or password."}"#.to_vec());
    }),
    ("a pointer of Git LFS in place of the file", |at| {
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3246024\n";
        one(at, |it| *it = pointer.as_bytes().to_vec());
    }),
    ("the file as gzip", |at| one(at, |it| *it = gzip(it))),
    ("CRLF in place of line feeds, in a text", |at| {
        text(at, |it| *it = replaced(it, b'\n', b"\r\n"))
    }),
    ("CRLF in place of line feeds, in a shard", |at| {
        one(at, |it| *it = replaced(it, b'\n', b"\r\n"))
    }),
    ("a byte order mark before a text", |at| text(at, |it| drop(it.splice(..0, *b"\xEF\xBB\xBF")))),
    ("a text in Latin-1", |at| {
        text(at, |it| *it = String::from_utf8_lossy(it).chars().map(|it| it as u8).collect());
    }),
    ("the top bits lost", |at| one(at, |it| it.iter_mut().for_each(|byte| *byte &= 127))),
    ("a byte before the beginning", |at| one(at, |it| it.insert(0, 0))),
    ("a byte lost in the middle", |at| one(at, |it| drop(it.splice(1_800_000..1_800_001, [])))),
    ("16 bytes put into the middle", |at| one(at, |it| drop(it.splice(MIB..MIB, [7; 16])))),
    ("64 KiB twice, and the rest shifted", |at| {
        one(at, |it| {
            let block = it[2_000_000..2_065_536].to_vec();
            drop(it.splice(2_065_536..2_065_536, block));
        });
    }),
    ("a leaf twice, over the next one", |at| one(at, |it| it.copy_within(..MIB, MIB))),
    ("two leaves swapped", |at| {
        one(at, |it| {
            let (first, second) = it.split_at_mut(2 * MIB);
            first[..MIB].swap_with_slice(&mut second[..MIB]);
        });
    }),
    ("another version of the same length", |at| {
        fs::write(at.join(TWO), safetensors(&[("head", MIB), ("bias", MIB / 2)], 3)).unwrap();
    }),
    ("two shards swapped", |at| {
        rename(at, ONE, "t");
        rename(at, TWO, ONE);
        rename(at, "t", TWO);
    }),
    ("a shard renamed", |at| rename(at, TWO, "model-2.safetensors")),
    ("a text in another folder", |at| rename(at, TEXT, "original/config.json")),
    ("a shard missing", |at| fs::remove_file(at.join(TWO)).unwrap()),
    ("a part of a stopped download beside the set", |at| {
        let part = &fs::read(at.join(TWO)).unwrap()[..500_000];
        fs::write(at.join("model-00002.incomplete"), part).unwrap();
    }),
];

const HEADING: &str = "## Forty damaged downloads\n";

#[test]
fn forty_damaged_downloads_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (right, seal) = (dir.path().join("right"), dir.path().join("m.seal"));
    set(&right);
    zt(["seal", right.to_str().unwrap(), seal.to_str().unwrap()]).exits(0);
    let mut table = "| damage | what `zt verify --seal` says |\n| --- | --- |\n".to_owned();
    for (what, damage) in DAMAGES {
        let folder = dir.path().join("set");
        fs::create_dir(&folder).unwrap();
        for name in names_in(&right) {
            fs::copy(right.join(&name), folder.join(&name)).unwrap();
        }
        damage(&folder);
        let path = folder.to_str().unwrap();
        let run = zt(["verify", path, "--seal", seal.to_str().unwrap()]).exits(1);
        let said: Vec<String> = run
            .err
            .lines()
            .map(|line| {
                let line = line.strip_prefix("error[seal-mismatch]: ").expect("a finding");
                line.replace(&format!("{path}{}", std::path::MAIN_SEPARATOR), "")
            })
            .collect();
        assert!(!said.is_empty(), "{what}");
        table.push_str(&format!("| {what} | {} |\n", said.join("<br>")));
        fs::remove_dir_all(&folder).unwrap();
    }
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/seal.md");
    let text = fs::read_to_string(&page).unwrap();
    let start = text.find(HEADING).unwrap() + HEADING.len();
    let start = start + text[start..].find("| damage").unwrap_or(text.len() - start);
    let end = text[start..].find("\n\n").map_or(text.len(), |end| start + end + 1);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&page, [&text[..start], &table, &text[end..]].concat()).unwrap();
    } else {
        assert_eq!(text[start..end], table, "UPDATE_GOLDEN=1 writes the table of docs/seal.md");
    }
}
