//! The lock of an editor, and what replaces a file.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use zt::foreign::{AtomicFile, expect_unlocked, open_locked};
use zt::{Dense, File, Result, Writer, compact};

fn model(folder: &Path) -> PathBuf {
    let path = folder.join("model.zt");
    let mut writer = Writer::create(&path).unwrap();
    let dense = Dense::from_slice(&[3], &[1u8, 2, 3]).unwrap();
    writer.add("a", &dense).unwrap();
    writer.finish().unwrap();
    path
}

fn code<T>(result: Result<T>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "ok")
}

#[test]
fn an_edited_file_is_locked_until_the_edit_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = model(folder.path());
    assert_eq!(code(expect_unlocked(&path)), "ok");
    let edit = File::edit(&path).unwrap();
    assert_eq!(code(expect_unlocked(&path)), "locked");
    assert_eq!(code(File::edit(&path)), "locked");
    assert_eq!(code(compact(&path, None)), "locked");
    assert_eq!(code(open_locked(&path)), "locked");
    assert_eq!(File::open(&path).unwrap().len(), 1);
    drop(edit);
    assert_eq!(code(expect_unlocked(&path)), "ok");
    assert_eq!(code(compact(&path, None)), "ok");
    assert_eq!(code(expect_unlocked(folder.path().join("none"))), "ok");
}

#[test]
fn a_file_that_is_being_edited_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = model(folder.path());
    let before = fs::read(&path).unwrap();
    let begun = AtomicFile::create(&path).unwrap();
    let edit = File::edit(&path).unwrap();
    assert_eq!(code(AtomicFile::create(&path)), "locked");
    assert_eq!(code(begun.publish()), "locked");
    drop(edit);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    AtomicFile::create(&path).unwrap().publish().unwrap();
}

#[cfg(unix)]
#[test]
fn an_editor_reports_that_another_file_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = model(folder.path());
    let kept = folder.path().join("kept.zt");
    fs::hard_link(&path, &kept).unwrap();
    let mut edit = File::edit(&path).unwrap();
    edit.rename("a", "b").unwrap();
    // A program that asks for no lock.
    let other = folder.path().join("other");
    fs::copy(&path, &other).unwrap();
    fs::rename(&other, &path).unwrap();
    let error = edit.commit().unwrap_err();
    assert_eq!((error.code(), error.path()), ("replaced", Some(&*path)));
    assert!(File::open(&path).unwrap().tensor("a").is_ok());
    assert!(File::open(&kept).unwrap().tensor("b").is_ok());

    let edit = File::edit(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(code(edit.commit()), "replaced");
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_keeps_no_editor_away_by_flock() {
    let folder = tempfile::tempdir().unwrap();
    let path = model(folder.path());
    let reader = fs::File::open(&path).unwrap();
    reader.lock_shared().unwrap();
    let mut edit = File::edit(&path).unwrap();
    edit.rename("a", "b").unwrap();
    edit.commit().unwrap();
    assert_eq!(code(expect_unlocked(&path)), "ok");
}

/// Linux lets a reader's lock stand in the way of a writer's. The error says which of both it is.
#[cfg(target_os = "linux")]
#[test]
fn a_lock_of_a_reader_has_its_own_message() {
    use nix::fcntl::{FcntlArg, fcntl};
    let folder = tempfile::tempdir().unwrap();
    let path = model(folder.path());
    let reader = fs::File::open(&path).unwrap();
    let lock = nix::libc::flock {
        l_type: i16::try_from(nix::libc::F_RDLCK).unwrap(),
        l_whence: 0,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(&reader, FcntlArg::F_OFD_SETLK(&lock)).unwrap();
    assert_eq!(code(expect_unlocked(&path)), "ok");
    let error = File::edit(&path).unwrap_err();
    assert_eq!(error.code(), "locked");
    assert!(error.message().contains("reads the file"), "{error}");
    // The file can be replaced all the same.
    AtomicFile::create(&path).unwrap().publish().unwrap();
}
