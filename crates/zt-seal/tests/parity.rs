//! Mending without another copy. Spec: seal.md §6.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::cast_possible_truncation, reason = "small files")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{pattern, sealed};
use tempfile::TempDir;
use zt::{FileSource, Memory, Source};
use zt_seal::{Files, ParityMended, Seal, SealOptions, Share, mend_with_parity, write_parity};

const MIB: usize = 1 << 20;

fn share(percent: u32) -> Share {
    Share::millionths(percent * 10_000).unwrap()
}

/// Files of 12.5, 3 and 0.1 MiB, an empty one, their seal, and parity of a fifth: four of 18 leaves.
struct Set {
    dir: TempDir,
    seal: Seal,
}

/// Bytes without two equal leaves.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| ((at / 7 % 251) ^ (at >> 16)) as u8).collect()
}

impl Set {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("m");
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::write(folder.join("a"), content(12 * MIB + MIB / 2)).unwrap();
        fs::write(folder.join("b"), content(3 * MIB)).unwrap();
        fs::write(folder.join("sub/c"), content(MIB / 10)).unwrap();
        fs::write(folder.join("empty"), "").unwrap();
        let seal = sealed(&folder).seal;
        let set = Set { dir, seal };
        let made = write_parity(
            &Files::local(set.folder()),
            &set.seal,
            share(20),
            &set.parity(),
            false,
            &SealOptions::new(),
        );
        let made = made.unwrap();
        assert_eq!((made.groups, made.recovery, made.blocks), (1, 4, 4));
        assert_eq!(made.byte_len, fs::metadata(set.parity()).unwrap().len());
        set
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("m")
    }

    fn parity(&self) -> PathBuf {
        self.dir.path().join("m.seal.parity")
    }

    fn change(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    }

    fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        self.change(&self.folder().join(name), change);
    }

    fn names(&self) -> Vec<String> {
        self.seal.files.iter().map(|file| file.path.clone()).collect()
    }

    fn mend(&self, dry_run: bool) -> zt::Result<ParityMended> {
        let files = Files::local(self.folder());
        let wanted: Vec<usize> = (0..self.seal.files.len()).collect();
        let parity = || Ok(Box::new(FileSource::open(self.parity())?) as Box<dyn Source>);
        let options = SealOptions::new();
        mend_with_parity(&files, &self.seal, &self.names(), &wanted, parity, dry_run, &options)
    }

    /// All bytes of all files.
    fn bytes(&self) -> Vec<Option<Vec<u8>>> {
        self.names().iter().map(|name| fs::read(self.folder().join(name)).ok()).collect()
    }

    fn expect_whole(&self) {
        assert!(sealed(&self.folder()).seal == self.seal);
    }

    #[track_caller]
    fn expect_mended(&self) {
        let before = self.bytes();
        assert_eq!(self.mend(true).unwrap().left, []);
        assert!(self.bytes() == before, "a dry run changes nothing");
        assert_eq!(self.mend(false).unwrap().left, []);
        self.expect_whole();
        assert_eq!(fs::read_dir(self.folder()).unwrap().count(), 4, "no other file is left");
    }

    /// Nothing is mended, and these leaves are named.
    #[track_caller]
    fn expect_left(&self, expected: &[(usize, u64, u64)]) {
        let before = self.bytes();
        let left = self.mend(false).unwrap().left;
        let left: Vec<_> =
            left.iter().map(|(at, it)| (*at, it.leaves.start, it.leaves.end)).collect();
        assert_eq!(left, expected);
        assert!(self.bytes() == before, "nothing was changed");
    }
}

#[test]
fn damage_up_to_the_parity_is_mended() {
    let set = Set::new();
    let never = || -> zt::Result<Box<dyn Source>> { panic!("nothing is wrong") };
    let files = Files::local(set.folder());
    let mended = mend_with_parity(
        &files,
        &set.seal,
        &set.names(),
        &[0, 1],
        never,
        false,
        &SealOptions::new(),
    );
    assert!(mended.unwrap().files.iter().all(|file| !file.changed));
    // A burst.
    set.damage("a", |bytes| bytes[3 * MIB + 5..7 * MIB - 9].fill(7));
    set.expect_mended();
    // Scattered flips.
    set.damage("a", |bytes| {
        bytes[5] ^= 1;
        bytes[12 * MIB + 1] ^= 128;
    });
    set.damage("b", |bytes| bytes[3 * MIB - 1] ^= 1);
    set.damage("sub/c", |bytes| bytes[0] ^= 1);
    set.expect_mended();
    // A cut end, zeros, bytes behind the end.
    set.damage("a", |bytes| bytes.truncate(10 * MIB + 3));
    set.damage("b", |bytes| bytes[MIB..2 * MIB].fill(0));
    set.damage("sub/c", |bytes| bytes.extend(b"more"));
    set.damage("empty", |bytes| bytes.push(0));
    set.expect_mended();
    // A missing file.
    fs::remove_file(set.folder().join("b")).unwrap();
    set.expect_mended();
}

#[test]
fn damage_beyond_the_parity_is_named_and_nothing_is_changed() {
    let set = Set::new();
    set.damage("a", |bytes| bytes[2 * MIB..5 * MIB].fill(0));
    set.damage("b", |bytes| bytes[MIB] ^= 1);
    set.damage("sub/c", |bytes| bytes.clear());
    set.expect_left(&[(0, 2, 5), (1, 1, 2), (3, 0, 1)]);
    // One file alone: leaves of others count.
    let files = Files::local(set.folder());
    let parity = || Ok(Box::new(FileSource::open(set.parity())?) as Box<dyn Source>);
    let options = SealOptions::new();
    let one = mend_with_parity(&files, &set.seal, &set.names(), &[1], parity, false, &options);
    let one = one.unwrap();
    assert_eq!((one.left.len(), one.others), (1, 4));
    // One leaf less is enough.
    set.damage("b", |bytes| bytes[MIB] ^= 1);
    set.expect_mended();
}

#[test]
fn damaged_blocks_are_left_out() {
    let set = Set::new();
    let right = fs::read(set.parity()).unwrap();
    let record = right.len() / 4;
    assert_eq!(record, 96 + MIB);
    // The head of one, the block of another.
    set.change(&set.parity(), |bytes| {
        bytes[20] ^= 1;
        bytes[3 * record - 1] ^= 1;
    });
    set.damage("a", |bytes| bytes[2 * MIB..4 * MIB].fill(1));
    set.expect_mended();
    set.damage("a", |bytes| bytes[2 * MIB..5 * MIB].fill(1));
    set.expect_left(&[(0, 2, 5)]);
    // A cut parity.
    fs::write(set.parity(), &right[..2 * record + 9]).unwrap();
    set.expect_left(&[(0, 2, 5)]);
    fs::write(set.parity(), &right[..3 * record]).unwrap();
    set.expect_mended();
    // No parity of this seal.
    set.damage("a", |bytes| bytes[0] ^= 1);
    for (wrong, message) in [
        (Vec::new(), "no block of it is whole"),
        (vec![7; right.len()], "no block of it is whole"),
        (right[1..].to_vec(), "no block of it is whole"),
        (right[..record - 1].to_vec(), "no block of it is whole"),
    ] {
        fs::write(set.parity(), wrong).unwrap();
        let error = set.mend(false).unwrap_err();
        assert_eq!(error.code(), "seal");
        assert!(error.to_string().contains(message), "{error}");
    }
    let other = Set::new();
    fs::write(other.folder().join("b"), "other").unwrap();
    let other_seal = sealed(&other.folder()).seal;
    let files = Files::local(other.folder());
    let options = SealOptions::new();
    write_parity(&files, &other_seal, share(20), &set.parity(), true, &options).unwrap();
    let error = set.mend(false).unwrap_err();
    assert!(error.to_string().contains("of another seal"), "{error}");
}

/// The heads of a stranger are sound: only the seal decides what is right.
#[test]
fn sound_blocks_with_other_contents_mend_nothing() {
    let set = Set::new();
    let mut bytes = fs::read(set.parity()).unwrap();
    let record = bytes.len() / 4;
    for record in bytes.chunks_mut(record) {
        record[96..].fill(9);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&record[..64]).update(blake3::hash(&record[96..]).as_bytes());
        record[64..96].copy_from_slice(hasher.finalize().as_bytes());
    }
    fs::write(set.parity(), bytes).unwrap();
    set.damage("a", |bytes| bytes[0] ^= 1);
    set.expect_left(&[(0, 0, 1)]);
}

#[test]
fn files_that_changed_after_they_were_sealed_are_refused() {
    let set = Set::new();
    fs::remove_file(set.parity()).unwrap();
    set.damage("a", |bytes| bytes[9 * MIB] ^= 1);
    let files = Files::local(set.folder());
    let made = write_parity(&files, &set.seal, share(1), &set.parity(), false, &SealOptions::new());
    let error = made.unwrap_err();
    assert_eq!(error.code(), "seal-mismatch");
    assert!(error.to_string().contains("leaf 9 of a"), "{error}");
    assert!(!set.parity().exists());
}

#[test]
fn many_small_files_are_in_several_groups() {
    let dir = tempfile::tempdir().unwrap();
    for at in 0..5000usize {
        fs::write(dir.path().join(format!("{at:04}")), pattern(at % 300 + 1)).unwrap();
    }
    let seal = sealed(dir.path()).seal;
    let (files, options) = (Files::local(dir.path()), SealOptions::new());
    let beside = tempfile::tempdir().unwrap();
    let path = beside.path().join("p");
    let made = write_parity(&files, &seal, share(1), &path, false, &options).unwrap();
    assert_eq!((made.groups, made.recovery), (2, 25));
    // A burst of as many files as all groups mend.
    for at in 1000..1050 {
        fs::remove_file(dir.path().join(format!("{at:04}"))).unwrap();
    }
    let names: Vec<String> = seal.files.iter().map(|file| file.path.clone()).collect();
    let wanted: Vec<usize> = (0..5000).collect();
    let bytes = fs::read(&path).unwrap();
    let parity = || Ok(Box::new(Memory::new(bytes)) as Box<dyn Source>);
    let mended = mend_with_parity(&files, &seal, &names, &wanted, parity, false, &options);
    assert_eq!(mended.unwrap().left, []);
    assert!(sealed(dir.path()).seal == seal);
}
