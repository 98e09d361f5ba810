//! Reading, checking and repairing with a seal.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod common;

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use common::{model, pattern, sealed};
use zt::{FileSource, Memory, Source, Span};
use zt_seal::{Contents, Damage, Files, Seal, SealOptions, SealedSource, State, check, mend};

fn write_at(path: &Path, offset: u64, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(bytes).unwrap();
}

/// A folder with a file of 3.5 leaves, and its seal.
fn one_file(folder: &Path) -> (std::path::PathBuf, Arc<Seal>) {
    let path = folder.join("x.bin");
    fs::write(&path, pattern(3_500_000)).unwrap();
    (path, Arc::new(sealed(folder).seal))
}

#[test]
fn only_the_leaf_that_is_wrong_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, seal) = one_file(dir.path());
    write_at(&path, 1_500_000, b"?");
    let source = SealedSource::new(FileSource::open(&path).unwrap(), seal, 0).unwrap();
    let read = |offset: u64, byte_len: usize| {
        let mut bytes = vec![0; byte_len];
        source.read_at(offset, &mut bytes).map(|()| bytes)
    };
    let expected = pattern(3_500_000);
    for (offset, len) in [(0, 10), (1_048_570, 6), (2_097_152, 1_402_848), (3_499_999, 1), (5, 0)] {
        assert!(read(offset as u64, len).unwrap() == expected[offset..offset + len], "{offset}");
    }
    for (offset, len) in [(1_048_576, 1), (0, 2_000_000), (1_048_570, 7), (2_097_151, 1)] {
        let error = zt::Error::from(read(offset, len).unwrap_err());
        assert_eq!(error.code(), "seal-mismatch");
        let text = error.to_string();
        assert!(text.contains("leaf 1 of x.bin: bytes 1048576..2097152 differ"), "{text}");
    }
    read(3_499_999, 2).unwrap_err();
}

#[test]
fn threads_and_any_ranges_give_the_bytes_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, seal) = one_file(dir.path());
    let source = SealedSource::new(FileSource::open(&path).unwrap(), Arc::clone(&seal), 0).unwrap();
    let expected = pattern(3_500_000);
    thread::scope(|scope| {
        for thread in 0..4_usize {
            let (source, expected) = (&source, &expected);
            scope.spawn(move || {
                for at in 0..60_usize {
                    let from = (at * 7919 + thread * 104_729) * 31 % 3_400_000;
                    let mut bytes = vec![0; (at * 40_009) % (3_500_000 - from)];
                    source.read_at(from as u64, &mut bytes).unwrap();
                    assert!(bytes == expected[from..from + bytes.len()]);
                }
            });
        }
    });
    // What is in memory is lent, if it is right.
    let lent = SealedSource::new(Memory::new(expected.clone()), Arc::clone(&seal), 0).unwrap();
    let span = Span::new(1_000_000, 100_000).unwrap();
    assert!(lent.slice(span) == expected.get(1_000_000..1_100_000));
    let mut wrong = expected.clone();
    wrong[1_050_000] ^= 1;
    let lent = SealedSource::new(Memory::new(wrong), Arc::clone(&seal), 0).unwrap();
    assert_eq!(lent.slice(span), None);
    let short = SealedSource::new(Memory::new(vec![0; 5]), seal, 0);
    assert_eq!(short.err().unwrap().code(), "seal-mismatch");
}

#[test]
fn what_differs_is_named() {
    let dir = tempfile::tempdir().unwrap();
    model(dir.path());
    let seal = sealed(dir.path()).seal;
    let at = |name: &str| dir.path().join(name);
    let [first, second] = [1, 2].map(|it| at(&format!("model-0000{it}-of-00002.safetensors")));
    write_at(&first, 2 << 20, &vec![0; 1 << 20]);
    write_at(&first, 1_048_577, b"?");
    fs::OpenOptions::new().write(true).open(&second).unwrap().set_len(2_500_000).unwrap();
    fs::remove_file(at("config.json")).unwrap();
    fs::rename(at("tokenizer/vocab.txt"), at("vocab.txt")).unwrap();
    let all = (0..).zip(&seal.files).map(|(at, file)| (at, file.path.clone()));
    let all: Vec<(usize, String)> = all.collect();
    let names = Contents::names_in(dir.path(), None).unwrap();
    let extra: Vec<String> = names.into_iter().filter(|it| seal.file(it).is_none()).collect();
    let files = Files::local(dir.path());
    let found = check(&files, &seal, &all, &extra, &SealOptions::new()).unwrap();
    let state = |path: &str| &found.iter().find(|it| it.path == path).unwrap().state;
    assert!(matches!(state("config.json"), State::Missing));
    assert!(matches!(state("empty.txt"), State::Right));
    assert!(matches!(state("model.safetensors.index.json"), State::Right));
    let State::Extra { is } = state("vocab.txt") else { panic!() };
    assert_eq!(is.as_deref(), Some("tokenizer/vocab.txt"));
    let State::Wrong { flaws, .. } = state("model-00001-of-00002.safetensors") else { panic!() };
    let told: Vec<_> =
        flaws.iter().map(|it| (it.leaves.clone(), it.damage, it.tensors.join(" "))).collect();
    let expected = [(1..2, Damage::Other, "a".to_owned()), (2..3, Damage::Zeros, "a".to_owned())];
    assert_eq!(told, expected);
    let State::Wrong { byte_len, flaws, .. } = state("model-00002-of-00002.safetensors") else {
        panic!()
    };
    assert_eq!((*byte_len, flaws.len()), (2_500_000, 1));
    assert_eq!((flaws[0].leaves.clone(), flaws[0].damage), (2..5, Damage::Cut));
    // Swapped.
    model_again(dir.path());
    fs::rename(&first, at("t")).unwrap();
    fs::rename(&second, &first).unwrap();
    fs::rename(at("t"), &second).unwrap();
    let found = check(&files, &seal, &all, &[], &SealOptions::new().threads(1)).unwrap();
    let swapped = found.iter().filter_map(|it| match &it.state {
        State::Wrong { is: Some(is), .. } => Some((it.path.as_str(), is.as_str())),
        _ => None,
    });
    let [one, two] = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    assert_eq!(swapped.collect::<Vec<_>>(), [(one, two), (two, one)]);
}

fn model_again(folder: &Path) {
    fs::remove_dir_all(folder.join("tokenizer")).unwrap();
    model(folder);
}

#[test]
fn a_repair_takes_the_wrong_leaves_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (path, seal) = one_file(dir.path());
    let right = pattern(3_500_000);
    let mend = |from: Vec<u8>, dry_run| {
        let from = || Ok(Box::new(Memory::new(from)) as Box<dyn Source>);
        mend(&path, &seal, 0, from, dry_run, &SealOptions::new())
    };
    let never = Vec::new;
    assert!(!mend(never(), false).unwrap().changed);
    write_at(&path, 3_499_999, b"?");
    let damaged = fs::read(&path).unwrap();
    let planned = mend(never(), true).unwrap();
    assert_eq!((planned.changed, planned.fetched), (true, 3_500_000 - 3 * (1 << 20)));
    assert!(fs::read(&path).unwrap() == damaged);
    // Only the wrong leaf of the source matters.
    let mut source = right.clone();
    source[5] ^= 1;
    mend(source, false).unwrap();
    assert!(fs::read(&path).unwrap() == right);
    // A source that is wrong, too.
    write_at(&path, 3_499_999, b"?");
    for source in [damaged.clone(), right[..3_000_000].to_vec(), [&right[..], b"x"].concat()] {
        let error = mend(source, false).unwrap_err();
        assert_eq!(error.code(), "seal-mismatch");
        assert!(error.to_string().contains("the source of the repair is wrong, too"), "{error}");
        assert!(fs::read(&path).unwrap() == damaged);
    }
    // Longer, shorter and missing files.
    fs::write(&path, [&right[..], b"more"].concat()).unwrap();
    assert_eq!(mend(right.clone(), false).unwrap().fetched, 0);
    assert!(fs::read(&path).unwrap() == right);
    fs::write(&path, &right[..1 << 20]).unwrap();
    assert_eq!(mend(right.clone(), false).unwrap().fetched, 3_500_000 - (1 << 20));
    fs::remove_file(&path).unwrap();
    mend(right.clone(), false).unwrap();
    assert!(fs::read(&path).unwrap() == right);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
}
