//! Damage that nobody may miss: flipped bits of a manifest, sizes of distributed checkpoints, wrong bases.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and its numbers are small"
)]

mod counting;

use std::fs;
use std::path::Path;

use counting::{MIB, alone, cost, read_all};
use zt::{DType, Dense, Elements, File, HashOptions, VerifyOptions, Writer};
use zt_conformance::corpus;
use zt_conformance::mutation::Numbers;
use zt_convert::{Input, InputOptions, Kinds};
use zt_model::{Check, Patch, delta};

fn ours(fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    fill(&mut writer);
    writer.finish().unwrap();
    bytes
}

fn add(writer: &mut Writer<'_>, name: &str, bytes: &[u8]) {
    let elements = Elements::new(DType::U8, bytes);
    writer.add(name, &Dense::from_elements([bytes.len() as u64], elements).unwrap()).unwrap();
}

#[test]
fn none_of_ten_thousand_flips_behind_the_values_is_unseen() {
    let bytes = ours(|writer| {
        for object in 0..104u8 {
            add(writer, &format!("layers.{object}.weight"), &[object; 64]);
        }
    });
    let values = 104 * 64 + 64;
    let mut numbers = Numbers::of(1);
    for _ in 0..10_000 {
        let at = values + numbers.draw() as usize % (bytes.len() - values);
        let bit = numbers.draw() % 8;
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << bit;
        let seen = match File::from_bytes(flipped) {
            Ok(file) => file.verify(&VerifyOptions::new()).is_ok_and(|report| !report.is_ok()),
            Err(_) => true,
        };
        assert!(seen, "bit {bit} of byte {at}");
    }
}

/// Each short number of `.metadata`, sizes, offsets, chunks and lengths among them, becomes a larger one.
#[test]
fn sizes_of_distributed_checkpoints_are_errors_and_take_no_memory() {
    let alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let metadata = folder.path().join(".metadata");
    let (mut numbers, mut found) = (Numbers::of(2), 0);
    for name in ["fsdp2", "mesh", "narrow", "zstd"] {
        let checkpoint = corpus::folder().join("corpus/dcp").join(name);
        copy_items(&checkpoint, folder.path());
        let sound = fs::read(checkpoint.join(".metadata")).unwrap();
        let shorts = (2..sound.len() - 1).filter(|at| sound[*at] == b'K');
        for at in shorts {
            let bits = 1 + numbers.draw() % 63;
            let value = (1u64 << bits).wrapping_sub(numbers.draw() % 2);
            fs::write(&metadata, with_number(&sound, at, value)).unwrap();
            let (cost, faults) = cost(&alone, || {
                let opened = Kinds::builtin().open(folder.path(), InputOptions::new());
                opened.map(|input| read_all(input.file()).len())
            });
            let what = format!("{name}: {value} at {at}: {cost:?}");
            assert!(cost.peak < 192 * MIB && cost.largest < 64 * MIB, "{what}");
            found += u32::from(faults.is_ok_and(|faults| faults > 0));
        }
    }
    // Nearly all are opened, and a tensor is at fault.
    assert!(found > 300, "{found}");
}

fn copy_items(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The pickle with a number of eight bytes (`LONG1`) in place of one of a byte (`BININT1`) at `at`.
fn with_number(pickle: &[u8], at: usize, value: u64) -> Vec<u8> {
    let number = [&[0x8A, 8][..], &value.to_le_bytes()].concat();
    let mut changed = [&pickle[..at], &number, &pickle[at + 2..]].concat();
    // The length of the frame, which has all opcodes, follows the protocol.
    if changed[2] == 0x95 {
        let len = (changed.len() - 11) as u64;
        changed[3..11].copy_from_slice(&len.to_le_bytes());
    }
    changed
}

/// One value of one object of the base differs. The result cannot be copied, hashed or verified.
#[test]
fn a_base_with_one_wrong_value_is_refused_by_every_delta() {
    let mut numbers = Numbers::of(3);
    for _ in 0..150 {
        let values: Vec<Vec<u8>> =
            (0..4).map(|_| (0..200).map(|_| numbers.draw() as u8).collect()).collect();
        let named = |values: &[Vec<u8>], names: &[&str]| {
            let objects = values.iter().zip(names);
            let bytes = ours(|writer| objects.for_each(|(it, name)| add(writer, name, it)));
            Input::from(File::from_bytes(bytes).unwrap())
        };
        let base = named(&values, &["changed", "kept", "renamed", "removed"]);
        let mut wrong = values.clone();
        let object = numbers.draw() as usize % 4;
        wrong[object][numbers.draw() as usize % 200] ^= 1 << (numbers.draw() % 8);
        let wrong = named(&wrong, &["changed", "kept", "renamed", "removed"]);
        let mut new = values.clone();
        new[0][numbers.draw() as usize % 200] ^= 0x55;
        let new = named(&new[..3], &["changed", "kept", "again"]);

        let mut bytes = Vec::new();
        delta(&base, &new, &mut bytes, None).unwrap();
        let deltas = [Input::from(File::from_bytes(bytes).unwrap())];
        let refused = Patch::new(&wrong, &deltas).open();
        assert_eq!(refused.unwrap_err().code(), "wrong-base");
        let copied = Patch::new(&wrong, &deltas).check(Check::Copy).open();
        let code = copied.and_then(|result| result.file().hash(&HashOptions::new()));
        assert!(["wrong-base", "digest-mismatch"].contains(&code.unwrap_err().code()), "{object}");
        let right = Patch::new(&base, &deltas).open().unwrap();
        let hash = |input: &Input| input.file().hash(&HashOptions::new()).unwrap().to_string();
        assert_eq!(hash(&right), hash(&new));
    }
}
