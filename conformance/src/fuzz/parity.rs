//! Parity files that a stranger wrote.

use std::sync::Arc;

use zt::{Memory, Source};
use zt_convert::foreign::{Folder, Opened};
use zt_seal::{Files, Seal, SealOptions, mend_with_parity};

/// A seal of three files, which `spec/seal.md` §5 describes.
const SEAL: &[u8] = include_bytes!("../../data/seal/parity.seal");

/// Bytes of a block of its parity.
const BLOCK: usize = 3008;

#[derive(Debug)]
struct Set(Vec<(&'static str, Vec<u8>)>);

impl Folder for Set {
    fn open(&self, locations: &[&str]) -> Vec<Opened> {
        let of = |location: &&str| {
            let found = self.0.iter().find(|(name, _)| name == location);
            Ok(found.map(|(_, bytes)| Box::new(Memory::new(bytes.clone())) as Box<dyn Source>))
        };
        locations.iter().map(of).collect()
    }
}

/// A parity file, and blocks whose heads are made sound here. With each, some files are mended or leaves are named; what
/// is mended was compared with the seal.
pub fn parity(bytes: &[u8]) {
    let seal = Seal::from_bytes(SEAL).expect("a vector");
    for damage in 0..3 {
        mended(&seal, bytes, damage);
    }
    let (number, blocks) = bytes.split_first().unwrap_or((&1, &[]));
    let recovery = u64::from(number % 4).max(1);
    let mut sound = Vec::new();
    for (at, block) in (0u64..recovery).zip(blocks.chunks(BLOCK)) {
        let mut block = block.to_vec();
        block.resize(BLOCK, 0);
        let sum = seal.sha256().expect("it was read");
        let numbers = [recovery.to_le_bytes(), at.to_le_bytes()].concat();
        let head = [&b"zt.parity/1\0\0\0\0\0"[..], &numbers, &sum].concat();
        let mut hasher = blake3::Hasher::new();
        hasher.update(&head).update(blake3::hash(&block).as_bytes());
        sound.extend([&head[..], hasher.finalize().as_bytes(), &block].concat());
    }
    mended(&seal, &sound, number / 4 % 3);
}

fn mended(seal: &Seal, parity: &[u8], damage: u8) {
    let pattern = |len: usize| (0..len).map(|at| (at / 7 % 251) as u8).collect::<Vec<u8>>();
    let mut flipped = pattern(3000);
    flipped[1234] ^= 1;
    let (set, wrong) = match damage {
        0 => (vec![("a", flipped), ("b", pattern(1000)), ("c", pattern(10))], 1),
        1 => (vec![("a", pattern(3000)), ("b", pattern(900))], 2),
        _ => (vec![("a", flipped)], 3),
    };
    let files = Files::new(Arc::new(Set(set)), "");
    let names: Vec<String> = seal.files.iter().map(|file| file.path.clone()).collect();
    let open = || Ok(Box::new(Memory::new(parity.to_vec())) as Box<dyn Source>);
    let options = SealOptions::new().threads(1);
    let mended = mend_with_parity(&files, seal, &names, &[0, 1, 2], open, true, &options);
    match mended {
        Ok(mended) => {
            assert_eq!(mended.files.iter().filter(|file| file.changed).count(), wrong);
            let left: u64 = mended.left.iter().map(|(_, it)| it.leaves.end - it.leaves.start).sum();
            assert!(left <= wrong as u64);
        }
        Err(error) => assert_eq!(error.code(), "seal"),
    }
}
