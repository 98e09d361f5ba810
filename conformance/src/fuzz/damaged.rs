//! Files that something has happened to: what fuzzing of repairs begins with.
//!
//! From files of the corpus alone, libFuzzer would have to find out by itself that a copy of a trailer
//! behind a file is an edit that was killed. Each of these is one mutation away from the next thing
//! that a repair has to tell apart.

use std::io;
use std::sync::Arc;

use zt::{DType, Dense, DigestAlgorithm, Editor, Storage, WriteOptions};

use super::in_memory::InMemory;
use crate::draft::{Draft, Item, Part};

/// No edit here takes more changes of the file.
const MOST_STEPS: usize = 32;

/// Small files, each with what has happened to it as its name: cut, torn, lengthened, edited and killed
/// in the midst of that, changed in a byte of each of its parts, within another file. The same each
/// time.
#[must_use]
pub fn damaged() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (name, whole) in sound() {
        let mut add = |what: &str, bytes: Vec<u8>| files.push((format!("{name}, {what}"), bytes));
        add("sound", whole.clone());
        ends(&whole, &mut add);
        flips(&whole, &mut add);
        within(&whole, &mut add);
        for (edit, apply) in EDITS {
            edited(&whole, edit, apply, &mut add);
        }
    }
    files
}

fn dense(values: &[u8]) -> Dense<'_> {
    Dense::from_slice(&[values.len() as u64], values).expect("so many values")
}

/// Of every generation, with digests and without.
fn sound() -> Vec<(&'static str, Vec<u8>)> {
    let written = |options: WriteOptions| {
        let mut bytes = Vec::new();
        let mut writer = options.to_writer(&mut bytes).expect("a sink");
        writer.add("a", &dense(&[1; 70])).expect("room");
        writer.add("b", &dense(&[2, 3])).expect("room");
        writer.finish().expect("room");
        bytes
    };
    let item = || Item::dense(&[4], DType::U8, &[5; 4]);
    let of = |draft: Draft| draft.with("a", item()).build();
    let coo = Item::coo(&[2, 2], &[7], &[1, 1]);
    let none = Item::new(&[0], "dense").part(Part::new("data", DType::U8, &[]));
    let new = WriteOptions::new;
    vec![
        ("1.2", written(new())),
        ("zstd", written(new().zstd(1))),
        ("no digests", written(new().digest(None))),
        ("sha256", written(new().digest(Some(DigestAlgorithm::Sha256)))),
        ("other order", of(Draft::v1_2())),
        ("two components", Draft::v1_2().with("coo", coo).build()),
        ("no bytes", Draft::v1_2().with("none", none).build()),
        ("no objects", Draft::v1_2().build()),
        ("1.1", of(Draft::v1_1())),
        ("1.0", of(Draft::v1_0())),
        ("0.1", of(Draft::v0_1())),
    ]
}

/// What a cut, a torn write and a bad copy leave of the end of a file.
fn ends(whole: &[u8], add: &mut impl FnMut(&str, Vec<u8>)) {
    let len = whole.len();
    // Within the magic, the size and the manifest, whose length is unknown.
    for cut in [1, 7, 8, 9, 15, 16, 17, 40, 80, 120].into_iter().filter(|cut| *cut < len) {
        add(&format!("{cut} bytes cut off"), whole[..len - cut].to_vec());
        let zeros = vec![0; cut];
        add(&format!("{cut} bytes cleared"), [&whole[..len - cut], &zeros].concat());
    }
    let trailer = &whole[len.saturating_sub(16)..];
    let junk: [(&str, &[u8]); 6] = [
        ("zeros", &[0; 40]),
        ("ones", &[0xFF; 20]),
        ("a magic", &zt::container::MAGIC),
        ("half a magic", &zt::container::MAGIC[..4]),
        ("its end", trailer),
        ("a root", b"\xA2\x67objects\xA0\x67version\x651.2.0"),
    ];
    for (what, junk) in junk {
        add(&format!("and {what}"), [whole, junk].concat());
    }
}

/// A bit of the header, of blobs, of the manifest, of the size and of the magic.
fn flips(whole: &[u8], add: &mut impl FnMut(&str, Vec<u8>)) {
    let len = whole.len();
    let of_end = [90, 40, 17, 16, 9, 1].into_iter();
    let of_end = of_end.filter_map(|back| len.checked_sub(back));
    let places = [0, 7, 64, len / 2].into_iter().chain(of_end);
    for at in places.filter(|at| *at < len) {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 1;
        add(&format!("byte {at} changed"), bytes);
    }
}

/// A file in which a whole file lies, as bytes before it or as a blob, whole or cut.
fn within(whole: &[u8], add: &mut impl FnMut(&str, Vec<u8>)) {
    add("behind 8 bytes", [&[9; 8], whole].concat());
    add("behind a header", [&whole[..64.min(whole.len())], whole].concat());
    add("twice", whole.repeat(2));
    let mut outer = Vec::new();
    let mut writer = WriteOptions::new().to_writer(&mut outer).expect("a sink");
    writer.add("inner", &dense(whole)).expect("room");
    writer.finish().expect("room");
    for cut in [0, 3, 16, 30] {
        let cut = outer[..outer.len() - cut].to_vec();
        add(&format!("a blob, {} bytes left", cut.len()), cut);
    }
}

/// A disk with a few free bytes. An edit cannot leave a megabyte of room in the file: no repair reads
/// the room, and it would make each of these inputs long.
struct Cramped(InMemory);

impl Storage for Cramped {
    fn byte_len(&self) -> io::Result<u64> {
        self.0.byte_len()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, bytes)
    }
    fn set_len(&self, byte_len: u64) -> io::Result<()> {
        self.0.set_len(byte_len)
    }
    fn reserve(&self, _: u64, byte_len: u64) -> io::Result<()> {
        match byte_len < 4096 {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

type Edit = fn(&mut Editor) -> zt::Result<()>;

const EDITS: [(&str, Edit); 3] = [
    ("added to", |edit| edit.writer().add("c", &dense(&[6; 9]))),
    ("renamed in", |edit| {
        let name = edit.before().names().next().unwrap_or_default().to_owned();
        edit.rename(&name, "z")
    }),
    ("given an attribute", |edit| {
        let mut attributes = edit.attributes().cloned().unwrap_or_default();
        attributes.insert("k", zt::Value::from(1u64));
        edit.set_attributes(attributes)
    }),
];

/// Killed before each of its changes, and at last not killed: two generations, one of them cleared.
fn edited(whole: &[u8], name: &str, apply: Edit, add: &mut impl FnMut(&str, Vec<u8>)) {
    let mut last = whole.to_vec();
    for steps in 0..MOST_STEPS {
        let storage = Arc::new(Cramped(InMemory::new(whole.to_vec())));
        storage.0.set_fuse(Some(steps));
        let run = || {
            let options = WriteOptions::new().threads(1);
            let mut edit = options.edit_storage(Arc::clone(&storage) as Arc<dyn Storage>)?;
            apply(&mut edit)?;
            edit.commit()
        };
        let is_done = run().is_ok();
        let bytes = storage.0.bytes();
        // Syncs change nothing, and files that are not edited stay as they are.
        if bytes != last {
            add(&format!("{name}, {steps} steps"), bytes.clone());
            let torn = bytes.len() - bytes.len().min(11);
            add(&format!("{name}, {steps} steps, torn"), bytes[..torn].to_vec());
            last = bytes;
        }
        if is_done {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use zt::Memory;
    use zt::repair::{RepairOptions, Standing, Verdict};

    use super::*;

    /// Fuzzing starts from each verdict, and from each way in which a repair goes on from there.
    #[test]
    fn there_are_files_of_every_verdict() {
        let files = damaged();
        let mut found: BTreeMap<String, u32> = BTreeMap::new();
        for (name, bytes) in &files {
            super::super::repair(bytes);
            let recovery =
                zt::repair::examine(Memory::new(bytes.clone()), &RepairOptions::default());
            let recovery = recovery.unwrap_or_else(|error| panic!("{name}: {error}"));
            *found.entry(format!("{:?}", recovery.verdict())).or_default() += 1;
            for object in recovery.objects() {
                *found.entry(format!("{:?}", object.fate)).or_default() += 1;
            }
            for other in recovery.others() {
                *found.entry(format!("other, {:?}", other.standing)).or_default() += 1;
            }
        }
        let verdicts =
            [Verdict::Sound, Verdict::Mendable, Verdict::Damaged, Verdict::Doubtful, Verdict::Lost];
        let expected = verdicts.map(|verdict| format!("{verdict:?}"));
        let other = format!("other, {:?}", Standing::Doubtful);
        let longest = files.iter().map(|(_, bytes)| bytes.len()).max();
        println!("{} files of at most {longest:?} bytes: {found:?}", files.len());
        for expected in expected.into_iter().chain([other]) {
            assert!(found.contains_key(&expected), "{expected}: {found:?}");
        }
        let mut distinct: Vec<_> = files.iter().map(|(_, bytes)| bytes).collect();
        distinct.sort();
        distinct.dedup();
        assert!(distinct.len() * 10 > files.len() * 9, "{} of {}", distinct.len(), files.len());
    }
}
