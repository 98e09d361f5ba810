//! An edit that is cut short at every one of its steps: by a kill, by an error, by a loss of power.
//!
//! The storage is simulated, so that each state that a reader could meet is one that is looked at.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod simulated;

use proptest::test_runner::{RngAlgorithm, TestRng};
use simulated::{
    Failure, Lengths, OPERATIONS, Recorder, Step, edit, old_file, run, torn, values, whole,
};
use zt::ErrorKind;
use zt_manifest::ManifestDigest;

#[test]
fn killed_between_any_two_steps_it_leaves_the_old_file_or_the_new_one() {
    for operation in &OPERATIONS {
        let (mut file, steps, before, after) = whole(operation);
        assert!(steps.len() >= 7, "{}", operation.name);
        let mut is_new = false;
        for (at, step) in steps.iter().enumerate() {
            step.apply(&mut file);
            let seen = values(&file).unwrap_or_else(|error| {
                panic!("{}: unreadable after step {at}: {error}", operation.name)
            });
            is_new |= seen == after && after != before;
            let expected = if is_new { &after } else { &before };
            assert!(seen == *expected, "{}: neither file after step {at}", operation.name);
        }
        assert!(is_new || after == before, "{}", operation.name);
    }
}

#[test]
fn the_next_edit_removes_the_bytes_of_a_killed_edit() {
    let next = &OPERATIONS[0];
    for operation in &OPERATIONS[1..] {
        let (mut file, steps, before, _) = whole(operation);
        let storage = Recorder::new(&file, Failure::Never);
        run(&storage, next).unwrap();
        let expected = storage.with(|state| state.file.clone());
        let after = values(&expected).unwrap();
        let old = file.clone();
        let is_cut = |step: &Step| matches!(step, Step::SetLen(_));
        let cut = steps.iter().rposition(is_cut).unwrap();
        for step in &steps[..cut] {
            step.apply(&mut file);
            let storage = Recorder::new(&file, Failure::Never);
            drop(edit(&storage).unwrap());
            let found = storage.file();
            assert!(found.len() == old.len() && values(&found).unwrap() == before);
            run(&storage, next).unwrap();
            assert!(storage.file() == expected, "{}", operation.name);
            // Killed in its turn, while it takes that away or later.
            let mut file = file.clone();
            for step in storage.with(|state| state.steps.clone()) {
                step.apply(&mut file);
                let seen = values(&file).unwrap();
                assert!(seen == before || seen == after, "{}", operation.name);
            }
        }
    }
}

/// The note of an edit of a file with this length.
fn note(old_len: usize) -> Vec<u8> {
    [b"ZT-EDIT\0", &(old_len as u64).to_le_bytes()[..]].concat()
}

#[test]
fn bytes_that_only_look_like_an_edit_are_left_alone() {
    // The trailer stands twice, and a blob is behind the length that the note says.
    let old = old_file();
    let storage = Recorder::new(&old, Failure::Never);
    run(&storage, &OPERATIONS[0]).unwrap();
    let new = storage.file();
    let size = u64::from_le_bytes(new[new.len() - 16..new.len() - 8].try_into().unwrap());
    let trailer = new[new.len() - 16 - usize::try_from(size).unwrap()..].to_vec();
    for (old_len, is_left) in [
        (old.len(), false),
        (new.len(), true),
        (new.len() - 1, false),
        (0, false),
        (usize::MAX, false),
    ] {
        let mut file = new.clone();
        file[old.len() - trailer.len()..old.len()].copy_from_slice(&trailer);
        file[8..24].copy_from_slice(&note(old_len));
        file.extend(&trailer);
        let storage = Recorder::new(&file, Failure::Never);
        drop(edit(&storage));
        let expected = if is_left { &new } else { &file };
        assert_eq!(storage.file().len(), expected.len(), "{old_len}");
    }
}

/// Its blobs may be behind the length that the note says.
#[test]
fn beside_an_object_that_cannot_be_read_nothing_is_taken_away() {
    let storage = Recorder::new(&old_file(), Failure::Never);
    run(&storage, &OPERATIONS[0]).unwrap();
    let sound = storage.file();
    let dtype = b"\x63i32";
    let at = sound.windows(4).rposition(|text| text == dtype).unwrap();
    let mut faulty = sound.clone();
    faulty[at + 1] = b'q';
    ManifestDigest::renew(&mut faulty);
    for (new, is_left) in [(sound, true), (faulty, false)] {
        let size = u64::from_le_bytes(new[new.len() - 16..new.len() - 8].try_into().unwrap());
        let trailer = &new[new.len() - 16 - usize::try_from(size).unwrap()..];
        let mut file = [&new[..], trailer].concat();
        file[8..24].copy_from_slice(&note(new.len()));
        let storage = Recorder::new(&file, Failure::Never);
        drop(edit(&storage).unwrap());
        let expected = if is_left { &new } else { &file };
        assert_eq!(storage.file().len(), expected.len());
    }
}

#[test]
fn a_file_without_objects_is_edited_like_any_other() {
    let mut empty = Vec::new();
    zt::Writer::new(&mut empty).unwrap().finish().unwrap();
    let storage = Recorder::new(&empty, Failure::Never);
    let mut editor = edit(&storage).unwrap();
    editor.writer().add("first", &simulated::dense(&[1, 2])).unwrap();
    editor.commit().unwrap();
    let found = values(&storage.file()).unwrap();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [("first".to_owned(), vec![1, 2])]);
}

#[test]
fn an_error_at_any_step_leaves_the_old_file_or_the_new_one() {
    for operation in &OPERATIONS {
        let (old, steps, before, after) = whole(operation);
        let cut = steps.iter().rposition(|step| matches!(step, Step::SetLen(_))).unwrap();
        for at in 0..steps.len() {
            for failure in [Failure::Once(at), Failure::From(at)] {
                let storage = Recorder::new(&old, failure);
                let error = run(&storage, operation).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Io, "{} {failure:?}", operation.name);
                let (file, steps) = storage.with(|state| (state.file.clone(), state.steps.clone()));
                let seen = values(&file).unwrap_or_else(|error| {
                    panic!("{} {failure:?}: unreadable: {error}", operation.name)
                });
                assert!(seen == *if at > cut { &after } else { &before });
                if at <= cut && failure == Failure::Once(at) {
                    assert!(file == old, "{} {failure:?}: not undone", operation.name);
                }
                let syncs = steps.iter().skip(at).filter(|step| matches!(step, Step::Sync));
                assert!(syncs.count() <= 1, "only the old length is made durable");
            }
        }
    }
}

#[test]
fn after_a_loss_of_power_the_old_file_or_the_new_one_is_there() {
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for operation in &OPERATIONS {
        let (old, steps, before, after) = whole(operation);
        for at in 0..steps.len() {
            for round in 0..25 {
                let lengths = [Lengths::Bytes, Lengths::Pages][round % 2];
                let file = torn(&old, &steps[..=at], lengths, &mut rng);
                let seen = values(&file).unwrap_or_else(|error| {
                    panic!("{}: unreadable after step {at}: {error}", operation.name)
                });
                assert!(seen == before || seen == after, "{}", operation.name);
            }
        }
    }
}

/// The state of the file is then unknown, so nothing more is tried on it.
#[test]
fn after_a_failure_every_further_step_is_refused() {
    let old = old_file();
    let storage = Recorder::new(&old, Failure::Once(0));
    let mut edit = edit(&storage).unwrap();
    let many = vec![9; 700_000];
    let mut add = |name: &str| edit.writer().add(name, &simulated::dense(&many)).unwrap_err();
    assert_eq!(add("new").kind(), ErrorKind::Io);
    assert_eq!(add("newer").kind(), ErrorKind::Misuse, "out of order");
    assert_eq!(edit.reserve(1).unwrap_err().kind(), ErrorKind::Io);
    assert!(storage.with(|state| state.steps.is_empty()));
    assert!(edit.commit().is_err());
    assert!(storage.file() == old);
}

/// Of a disk with no room at all, not even to remove something.
#[test]
fn a_full_disk_is_an_error_with_the_missing_bytes() {
    let old = old_file();
    let storage = Recorder::new(&old, Failure::From(0));
    let error = run(&storage, &OPERATIONS[2]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let cause = std::error::Error::source(&error).unwrap();
    let cause = cause.source().and_then(|cause| cause.downcast_ref());
    assert_eq!(cause.map(std::io::Error::kind), Some(std::io::ErrorKind::StorageFull));
    let error = std::io::Error::from(error);
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    // The manifest that is left, and pages for the old one once more.
    let text = error.to_string();
    let needed = text.split("needs ").nth(1).unwrap();
    let needed: usize = needed.split(' ').next().unwrap().parse().unwrap();
    assert!((4096..16384).contains(&needed), "{text}");
    assert!(text.contains("no storage space"), "{text}");
    // Here the note could not be taken back either. It leads nowhere.
    let mut file = storage.file();
    file[8..24].fill(0);
    assert!(file == old);
}
