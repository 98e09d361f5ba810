//! Files whose end belongs to an edit that has not finished, and files that only look like it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod simulated;

use std::sync::Arc;

use simulated::{
    Failure, OPERATIONS, Operation, Recorder, Step, dense, edit, old_file_of, run, values, whole_of,
};
use zt::container::{Memory, Source};
use zt::{File, OpenOptions, Writer};

/// The codes of the file's warnings.
fn codes(file: &File) -> Vec<&'static str> {
    let warnings = file.warnings();
    warnings.iter().map(|warning| warning.code).collect()
}

/// The first step that makes the file longer, and the file before it.
fn copying(old: &[u8], steps: &[Step]) -> (usize, Vec<u8>) {
    let is_behind =
        |step: &Step| matches!(step, Step::Write { offset, .. } if *offset >= old.len());
    let at = steps.iter().position(is_behind).unwrap();
    let mut file = old.to_vec();
    steps[..at].iter().for_each(|step| step.apply(&mut file));
    (at, file)
}

/// A file in the middle of a write: its bytes up to `cut` are the later ones.
struct Torn {
    before: Arc<Vec<u8>>,
    after: Arc<Vec<u8>>,
    cut: usize,
}

impl Source for Torn {
    fn byte_len(&self) -> u64 {
        self.before.len().max(self.cut) as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        let end = start + buf.len();
        if end as u64 > self.byte_len() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let cut = self.cut.clamp(start, end);
        let (first, others) = buf.split_at_mut(cut - start);
        first.copy_from_slice(&self.after[start..cut]);
        if !others.is_empty() {
            others.copy_from_slice(&self.before[cut..end]);
        }
        Ok(())
    }
}

/// Opens the file after each byte of a write except the last, and expects the old one. Of bytes that are
/// zero, as before most trailers, one in 64 is enough.
fn expect_old_at_each_byte(before: &[u8], step: &Step, old: &[u8]) {
    let Step::Write { offset, bytes } = step else {
        panic!("{step:?}");
    };
    let mut after = before.to_vec();
    step.apply(&mut after);
    let (before, after) = (Arc::new(before.to_vec()), Arc::new(after));
    let expected = File::from_bytes(old.to_vec()).unwrap();
    let is_looked_at = |len: &usize| len.is_multiple_of(64) || bytes[len - 1] != 0;
    for len in (1..bytes.len()).filter(is_looked_at) {
        let torn =
            Torn { before: Arc::clone(&before), after: Arc::clone(&after), cut: offset + len };
        let file = OpenOptions::new().open_source(torn);
        let file = file.unwrap_or_else(|error| panic!("{len} bytes: {error}"));
        assert_eq!(file.byte_len(), old.len() as u64, "{len} bytes");
        assert!(file.names().eq(expected.names()), "{len} bytes");
    }
}

/// Opens the file at each byte of the copy: behind a bridge if the edit has one, and without one too,
/// because none reaches beyond a large room.
fn expect_old_throughout(old: &[u8], operation: &Operation) {
    let (old, steps, ..) = whole_of(old.to_vec(), operation);
    let (at, mut file) = copying(&old, &steps);
    expect_old_at_each_byte(&file, &steps[at], &old);
    if let copy @ Step::Write { .. } = &steps[at + 1] {
        expect_old_at_each_byte(&file, copy, &old);
        steps[at].apply(&mut file);
        expect_old_at_each_byte(&file, copy, &old);
    }
}

#[test]
fn every_part_of_the_copy_leaves_the_old_file() {
    // A copy of one page, and of several.
    for objects in [2, 30] {
        expect_old_throughout(&old_file_of(objects), &OPERATIONS[2]);
    }
}

/// Their manifest is where a note would be.
#[test]
fn every_part_of_the_copy_leaves_a_file_without_objects() {
    let text = "long ".repeat(900);
    for attribute in ["", &text] {
        let mut old = Vec::new();
        let mut writer = Writer::new(&mut old).unwrap();
        writer.set_attributes(zt::Attributes::from([("key", zt::Value::from(attribute))])).unwrap();
        writer.finish().unwrap();
        let add = |edit: &mut zt::Editor| edit.writer().add("new", &dense(&[1, 2]));
        let (name, edit) = ("add", add as fn(&mut _) -> _);
        expect_old_throughout(&old, &Operation { name, edit });
    }
}

/// A killed edit of a file with that many objects, in the middle of the copy.
fn killed(objects: usize) -> (Vec<u8>, Vec<u8>) {
    let (old, steps, ..) = whole_of(old_file_of(objects), &OPERATIONS[0]);
    let (at, mut file) = copying(&old, &steps);
    let Step::Write { offset, bytes } = &steps[at] else {
        panic!("{steps:?}");
    };
    file.resize(offset + bytes.len() - 20, 0);
    (old, file)
}

#[test]
fn every_way_to_open_finds_the_old_file_with_a_warning() {
    let (old, file) = killed(2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    std::fs::write(&path, &file).unwrap();
    let opened = [
        File::open(&path),
        File::from_bytes(file.clone()),
        OpenOptions::new().open_source(Memory::new(file.clone())),
        OpenOptions::new().strict(true).open(&path),
    ];
    for opened in opened {
        let opened = opened.unwrap();
        assert_eq!(codes(&opened), ["unfinished-edit"]);
        assert_eq!(opened.byte_len(), old.len() as u64);
        let report = opened.verify(&zt::VerifyOptions::default()).unwrap();
        assert!(report.is_ok());
    }
}

#[test]
fn the_next_edit_takes_the_rest_away() {
    for objects in [2, 40] {
        let (old, file) = killed(objects);
        let storage = Recorder::new(&old, Failure::Never);
        run(&storage, &OPERATIONS[1]).unwrap();
        let expected = storage.file();
        let storage = Recorder::new(&file, Failure::Never);
        drop(edit(&storage).unwrap());
        assert_eq!(storage.file().len(), old.len());
        run(&storage, &OPERATIONS[1]).unwrap();
        assert!(storage.file() == expected);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.zt");
        std::fs::write(&path, &file).unwrap();
        zt::compact(&path, None).unwrap();
        let compacted = std::fs::read(&path).unwrap();
        assert!(values(&compacted).unwrap() == values(&old).unwrap());
    }
}

/// A page that a loss of power leaves out reads as zeros, which a long text may consist of.
#[test]
fn a_copy_that_decodes_without_one_of_its_pages_is_not_believed() {
    let text = "long ".repeat(4000);
    let mut old = Vec::new();
    let mut writer = Writer::new(&mut old).unwrap();
    writer.add("a", &dense(&[1; 100])).unwrap();
    writer.set_attributes(zt::Attributes::from([("key", zt::Value::from(text.as_str()))])).unwrap();
    writer.finish().unwrap();
    let (old, steps, ..) = whole_of(old, &OPERATIONS[2]);
    let (at, mut file) = copying(&old, &steps);
    let (bridge, copy) = (&steps[at], &steps[at + 1]);
    bridge.apply(&mut file);
    copy.apply(&mut file);
    steps[at + 2].apply(&mut file);
    assert!(codes(&File::from_bytes(file.clone()).unwrap()).is_empty());
    let lost = file.len() - 2 * 4096..file.len() - 4096;
    file[lost].fill(0);
    let found = File::from_bytes(file.clone()).unwrap();
    assert_eq!(codes(&found), ["unfinished-edit"]);
    assert_eq!(found.byte_len(), old.len() as u64);
    // The same without a note is damage.
    file[8..24].fill(0);
    assert_eq!(File::from_bytes(file).unwrap_err().code(), "digest-mismatch");
}

/// A file within may end there, and a reader cannot see that it is one.
#[test]
fn a_download_that_was_cut_short_is_not_taken_for_an_edit() {
    let (inner_old, inner_killed) = killed(2);
    let storage = Recorder::new(&inner_old, Failure::Never);
    run(&storage, &OPERATIONS[2]).unwrap();
    let edited = storage.file();
    let mut downloads = vec![edited, old_file_of(40)];
    for inner in [inner_old, inner_killed] {
        let mut outer = Vec::new();
        let mut writer = Writer::new(&mut outer).unwrap();
        let whole = zt::Dense::from_slice(&[inner.len() as u64], &inner).unwrap();
        writer.add("inner", &whole).unwrap();
        writer.add("more", &dense(&[1; 100])).unwrap();
        writer.finish().unwrap();
        downloads.push(outer);
    }
    for download in downloads {
        // Steps of 61 bytes, and every length around the ends of files within.
        let magics = |end: &usize| {
            let near = download.get(end.saturating_sub(9)..(*end + 9).min(download.len()));
            near.is_some_and(|near| near.windows(8).any(|bytes| bytes == b"ZTEN1000"))
        };
        let lengths = (0..download.len()).filter(|len| len % 61 == 0 || magics(len));
        for len in lengths {
            // Also into a file that already has its length.
            for padding in [0, 5000] {
                let cut = [&download[..len], &vec![0; padding]].concat();
                if let Ok(file) = File::from_bytes(cut) {
                    assert!(padding == 0 && codes(&file).is_empty(), "{len} bytes");
                }
            }
        }
    }
}
