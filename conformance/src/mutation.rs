//! Mutants: files of the corpus, damaged in a way that a seed repeats.
//!
//! `examples/mutate` hands them to the program. `examples/mutants` hands them to other readers, whose
//! verdicts `verdicts/` has without the mutants: they are made again. So a change of this module
//! changes what those verdicts are about, and `cargo xtask verdicts` asks for them anew.

use std::fs;
use std::path::PathBuf;

use crate::{corpus, foreign};

/// `zt`, and every kind of [`foreign::KINDS`], each with the ending of its files.
pub const KINDS: [(&str, &str); 11] = {
    let mut kinds = [("zt", "zt"); 11];
    let mut at = 0;
    while at < foreign::KINDS.len() {
        kinds[at + 1] = foreign::KINDS[at];
        at += 1;
    }
    kinds
};

/// Longer files take the time of several short ones and show the same.
const LONGEST: usize = 64 << 10;

/// A file that mutants are made of.
#[derive(Debug, Clone)]
pub struct Base {
    /// Its path below `corpus`, with forward slashes.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The files of a kind, broken ones included, sorted by name; empty for a kind that is not there.
///
/// # Panics
///
/// Where a file cannot be read.
#[must_use]
pub fn bases(kind: &str) -> Vec<Base> {
    let folder = corpus::folder().join("corpus");
    let Some((_, ending)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        return Vec::new();
    };
    let mut paths = match kind {
        "zt" => corpus::samples().into_iter().map(|sample| sample.path).collect(),
        _ => corpus::files_below(&folder.join("foreign").join(kind)),
    };
    let more: &[&str] = match kind {
        "pt" => &["torch", "classes"],
        "h5" => &["hdf5"],
        _ => &[],
    };
    paths.extend(more.iter().flat_map(|name| corpus::files_below(&folder.join(name))));
    // The index of a set is a file to be parsed, too.
    paths.retain(|path| {
        let name = path.to_string_lossy();
        path.extension().is_some_and(|found| found == *ending) || name.ends_with(".index.json")
    });
    let base = |path: PathBuf| {
        let name = path.strip_prefix(&folder).expect("below the corpus");
        let name = name.to_string_lossy().replace('\\', "/");
        let bytes = fs::read(&path).expect(&name);
        Base { name, path, bytes }
    };
    let mut bases: Vec<Base> = paths.into_iter().map(base).collect();
    bases.retain(|base| base.bytes.len() <= LONGEST);
    bases.sort_by(|a, b| a.name.cmp(&b.name));
    bases
}

/// Numbers that a seed repeats on every machine: SplitMix64.
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    /// Those of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// The next one.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One below `bound`; 0 where that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.draw() % (bound as u64).max(1)) as usize
    }

    /// One of `items`.
    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }

    /// A place in `len` bytes. Every other one is near an end, where formats have what describes them.
    fn place(&mut self, len: usize) -> usize {
        const NEAR: usize = 512;
        match self.below(4) {
            0 => self.below(len.min(NEAR)),
            1 => len - len.min(NEAR) + self.below(len.min(NEAR)),
            _ => self.below(len),
        }
    }

    /// A range in `len` bytes, seldom a long one.
    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let start = self.place(len);
        let most = *self.pick(&[1, 4, 16, 64, 4096]);
        start..len.min(start + 1 + self.below(most))
    }
}

/// What parsers add to, multiply and allocate.
const HOSTILE: [u64; 22] = [
    0,
    1,
    2,
    3,
    7,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 32,
    1 << 40,
    1 << 60,
    (1 << 62) + 1,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX - 63,
    u64::MAX,
];

/// The same in text: JSON, headers of NumPy.
const HOSTILE_TEXT: [&str; 14] = [
    "",
    "0",
    "-1",
    "00",
    "1.5",
    "1e2",
    "65537",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999",
];

/// `base` with one to four mutations; some of them take bytes of `other`.
#[must_use]
pub fn mutant(base: &[u8], other: &[u8], seed: u64) -> Vec<u8> {
    let mut numbers = Numbers::of(seed);
    let mut bytes = base.to_vec();
    // Most with one: after several, few files get past the first check of a reader.
    for _ in 0..*numbers.pick(&[1, 1, 1, 2, 3, 4]) {
        let len = bytes.len();
        if len == 0 {
            break;
        }
        match numbers.below(20) {
            0 => bytes.truncate(numbers.place(len)),
            1 => drop(bytes.drain(numbers.range(len))),
            2 => {
                let range = numbers.range(len);
                let copy = bytes[range.clone()].to_vec();
                bytes.splice(range.end..range.end, copy);
            }
            3 => {
                let at = numbers.place(len);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[at.min(other.len())..]);
            }
            4 => {
                let from = numbers.range(other.len().max(1));
                let part = other.get(from).unwrap_or_default().to_vec();
                let at = numbers.place(len);
                bytes.splice(at..at, part);
            }
            5 => {
                let more = numbers.range(len);
                let more = bytes[more].to_vec();
                bytes.extend(more);
            }
            6 | 7 => {
                if let Some(digits) = digits(&bytes, numbers.place(len)) {
                    let text = numbers.pick(&HOSTILE_TEXT).bytes();
                    bytes.splice(digits, text);
                }
            }
            _ => match stored_members(&bytes) {
                // A checksum that is right leads past the archive, to what is in the member.
                members if !members.is_empty() && numbers.below(4) > 0 => {
                    let member = numbers.pick(&members).clone();
                    change(&mut bytes[member.content.clone()], &mut numbers);
                    member.seal(&mut bytes);
                }
                _ => change(&mut bytes, &mut numbers),
            },
        }
    }
    bytes
}

/// One mutation that keeps the length.
fn change(bytes: &mut [u8], numbers: &mut Numbers) {
    let len = bytes.len();
    if len == 0 {
        return;
    }
    match numbers.below(8) {
        0..=1 => bytes[numbers.place(len)] ^= 1 << numbers.below(8),
        2..=4 => {
            let width = *numbers.pick(&[1, 2, 4, 8]);
            let at = numbers.place(len) / width * width;
            let Some(field) = bytes.get_mut(at..at + width) else {
                return;
            };
            let mut old = [0; 8];
            old[..width].copy_from_slice(field);
            let old = u64::from_le_bytes(old);
            let new = match numbers.below(8) {
                0 => old.wrapping_add(1),
                1 => old.wrapping_sub(1),
                2 => len as u64,
                3 => !old,
                _ => *numbers.pick(&HOSTILE),
            };
            field.copy_from_slice(&new.to_le_bytes()[..width]);
            if numbers.below(4) == 0 {
                field.reverse();
            }
        }
        5 => {
            for at in digits(bytes, numbers.place(len)).unwrap_or_default() {
                bytes[at] = b'0' + numbers.below(10) as u8;
            }
        }
        6 => {
            let range = numbers.range(len);
            let to = numbers.place(len).min(len - range.len());
            bytes.copy_within(range, to);
        }
        _ => {
            for at in numbers.range(len) {
                bytes[at] = numbers.draw() as u8;
            }
        }
    }
}

/// The first run of digits behind `from`, if one is near.
fn digits(bytes: &[u8], from: usize) -> Option<std::ops::Range<usize>> {
    const NEAR: usize = 256;
    let near = bytes[from..].iter().take(NEAR);
    let start = from + near.clone().position(u8::is_ascii_digit)?;
    let run = bytes[start..].iter().take_while(|it| it.is_ascii_digit());
    Some(start..start + run.count())
}

/// A member of a zip archive that is stored as it is.
#[derive(Clone)]
struct Member {
    content: std::ops::Range<usize>,
    /// Where its checksum is.
    sums: [usize; 2],
}

impl Member {
    /// Puts in the checksum of the content.
    fn seal(&self, archive: &mut [u8]) {
        let sum = crc32(&archive[self.content.clone()]).to_le_bytes();
        for at in self.sums {
            archive[at..at + 4].copy_from_slice(&sum);
        }
    }
}

/// The stored members that the entries of a directory lead to; none in what is no archive.
fn stored_members(bytes: &[u8]) -> Vec<Member> {
    let number = |at: usize, width: usize| {
        let field = bytes.get(at..at.checked_add(width)?)?;
        Some(field.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    let member = |entry: usize| {
        let [method, len, local] = [(10, 2), (20, 4), (42, 4)];
        let (method, len) = (number(entry + method.0, method.1)?, number(entry + len.0, len.1)?);
        let local = number(entry + local.0, local.1)?;
        if method != 0 || bytes.get(local..local + 4)? != b"PK\x03\x04" {
            return None;
        }
        let start = local + 30 + number(local + 26, 2)? + number(local + 28, 2)?;
        bytes.get(start..start + len)?;
        Some(Member { content: start..start + len, sums: [local + 14, entry + 16] })
    };
    if !bytes.starts_with(b"PK") {
        return Vec::new();
    }
    let entries = bytes.windows(4).enumerate();
    let entries = entries.filter(|(_, mark)| *mark == b"PK\x01\x02");
    let members = entries.filter_map(|(at, _)| member(at));
    members.filter(|member| !member.content.is_empty()).collect()
}

/// The checksum of zip archives.
fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut numbers = Numbers::of(1_234_567);
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([numbers.draw(), numbers.draw()], first);
    }

    #[test]
    fn a_seed_repeats_its_mutant() {
        for (kind, _) in KINDS {
            let bases = bases(kind);
            assert!(!bases.is_empty(), "{kind}");
            let other = &bases[bases.len() / 2].bytes;
            let mut changed = 0;
            for (seed, base) in bases.iter().enumerate() {
                let made = mutant(&base.bytes, other, seed as u64);
                assert_eq!(made, mutant(&base.bytes, other, seed as u64), "{}", base.name);
                changed += usize::from(made != base.bytes);
            }
            assert!(changed * 10 >= bases.len() * 7, "{kind}: {changed}");
        }
    }

    #[test]
    fn a_member_of_an_archive_is_changed_under_a_checksum_that_is_right() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let mut archive = crate::archive::stored(&[("a", b"123456789"), ("b", b"")]);
        let members = stored_members(&archive);
        assert_eq!(members.len(), 1);
        members[0].seal(&mut archive);
        assert_eq!(archive[14..18], 0xcbf4_3926_u32.to_le_bytes());
    }
}
