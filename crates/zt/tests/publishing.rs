//! Files that take their name when they are whole: what is seen before, and what stays without it.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{names_in, sample};
use zt::{
    DType, Dense, ErrorKind, File, ObjectOptions, VerifyOptions, WriteOptions, Writer, codes,
};

#[test]
fn an_object_that_is_dropped_half_way_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    let mut writer = Writer::create(&path).unwrap();
    let mut object = writer.begin("w", &[3], "dense").unwrap();
    drop(object.component("data", DType::U8, None).unwrap());
    drop(object);
    assert_eq!(writer.finish().unwrap_err().code(), "misuse");
    assert!(names_in(folder.path()).is_empty());
}

#[test]
fn an_object_that_is_dropped_before_its_first_component_leaves_the_writer_as_it_was() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    drop(writer.begin("w", &[3], "dense").unwrap());
    // Refused, because it has no data.
    writer.begin("w", &[3], "dense").unwrap().finish().unwrap_err();
    let suspended = writer.begin("w", &[3], "dense").unwrap().suspend();
    assert_eq!(writer.begin("x", &[1], "dense").err().unwrap().code(), "misuse");
    drop(writer.resume_object(suspended));
    writer.add("w", &Dense::from_slice(&[1], &[1u8]).unwrap()).unwrap();
    writer.finish().unwrap();
    let report = File::from_bytes(bytes).unwrap().verify(&VerifyOptions::new().strict(true));
    let report = report.unwrap();
    assert!(report.is_ok() && report.objects == 1, "{report:?}");
}

#[test]
fn nothing_appears_before_finish_and_nothing_stays_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    std::fs::write(&path, b"old").unwrap();
    let mut writer = Writer::create(&path).unwrap();
    writer.add("x", &Dense::from_slice(&[1], &[1u8]).unwrap()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    drop(writer);
    assert_eq!(names_in(folder.path()), ["model.zt"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");

    Writer::create(&path).unwrap().finish().unwrap();
    assert_eq!(names_in(folder.path()), ["model.zt"]);
    assert!(File::open(&path).unwrap().is_empty());
}

#[cfg(unix)]
#[test]
fn publishing_keeps_the_mode_and_follows_a_link() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("model.zt"), folder.path().join("latest.zt"));
    std::fs::write(&path, b"old").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("model.zt", &link).unwrap();
    Writer::create(&link).unwrap().finish().unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(File::open(&path).is_ok());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_stays_a_device_and_a_full_one_is_an_error() {
    let mut writer = Writer::create("/dev/full").unwrap();
    let added = writer.add("x", &Dense::from_slice(&[4 << 20], &vec![1u8; 4 << 20]).unwrap());
    let error = added.and_then(|()| writer.finish()).unwrap_err();
    assert_eq!(error.code(), "io");
    assert!(!std::fs::metadata("/dev/full").unwrap().is_file());
    let mut writer = Writer::create("/dev/null").unwrap();
    writer.add("x", &Dense::from_slice(&[1], &[1u8]).unwrap()).unwrap();
    writer.finish().unwrap();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

/// As `/dev/stdout` is, and what a shell gives for `>(command)`.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_written_to_by_the_name_of_its_descriptor() {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    let (mut reader, pipe) = std::io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let values = vec![7u8; 1000];
    let mut writer = Writer::create(path).unwrap();
    let dense = Dense::from_slice(&[1000], &values).unwrap();
    writer.add("w", &dense).unwrap();
    writer.finish().unwrap();
    drop(pipe);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    let file = File::from_bytes(bytes).unwrap();
    assert_eq!(*file.tensor("w").unwrap().values::<u8>().unwrap(), values);
}

#[test]
fn a_copy_that_is_stopped_publishes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    let file = File::from_bytes(sample(WriteOptions::new())).unwrap();
    let calls = AtomicU64::new(0);
    let stop = |_: u64| {
        calls.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Break(())
    };
    let mut writer = Writer::create(&path).unwrap();
    let error = writer
        .copy_with(
            "ramp",
            &file.tensor("ramp").unwrap(),
            &ObjectOptions::default(),
            Some(zt::Progress::new(&stop)),
        )
        .unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Interrupted, "interrupted"));
    drop(writer);
    assert_eq!(calls.into_inner(), 1);
    assert!(names_in(folder.path()).is_empty());
}

#[test]
fn a_component_that_is_dropped_half_way_leaves_no_file() {
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let mut bytes = Vec::new();
        let mut writer = options.to_writer(&mut bytes).unwrap();
        let mut object = writer.begin("x", &[2], "example.pair/1").unwrap();
        let mut a = object.component("a", DType::U8, None).unwrap();
        a.write_all(&[1, 2]).unwrap();
        a.finish().unwrap();
        object.component("b", DType::U8, None).unwrap().write_all(&[3]).unwrap();
        assert_eq!(object.component("c", DType::U8, None).unwrap_err().code(), "misuse");
        assert_eq!(object.finish().unwrap_err().code(), "misuse");
        assert_eq!(writer.finish().unwrap_err().code(), "misuse");
    }
    let mut writer = Writer::new(io::sink()).unwrap();
    std::mem::forget(writer.begin("x", &[2], "dense").unwrap());
    assert_eq!(writer.finish().unwrap_err().code(), "misuse");
}

#[cfg(unix)]
#[test]
fn publishing_follows_a_link_that_leads_to_nothing_yet() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("later.zt", folder.path().join("latest.zt")).unwrap();
    Writer::create(folder.path().join("latest.zt")).unwrap().finish().unwrap();
    assert_eq!(names_in(folder.path()), ["later.zt", "latest.zt"]);
    assert!(std::fs::symlink_metadata(folder.path().join("latest.zt")).unwrap().is_symlink());
    assert!(File::open(folder.path().join("later.zt")).is_ok());
    let error = Writer::create(folder.path().join("folder/")).unwrap_err();
    assert_eq!(error.code(), "io");
}

#[test]
fn a_new_file_replaces_nothing_that_appears_in_the_meantime() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let (path, given) = (folder.path().join("out"), folder.path().join("sub/../out"));
    let mut file = zt::foreign::AtomicFile::create_new(&given).unwrap();
    file.write_all(b"ours").unwrap();
    std::fs::write(&path, b"theirs").unwrap();
    let error = file.publish().unwrap_err();
    assert_eq!(error.code(), "overwrite");
    assert_eq!(error.path(), Some(&*given), "the path as it was given");
    assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    assert_eq!(names_in(folder.path()), ["out", "sub"]);
    let error = zt::foreign::AtomicFile::create_new(&path).unwrap_err();
    assert_eq!((error.kind(), error.code()), (zt::ErrorKind::Misuse, "overwrite"));
}

#[test]
fn a_writer_of_a_new_file_replaces_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    let early = Writer::create_new(&path).unwrap();
    std::fs::write(&path, b"old").unwrap();
    assert_eq!(early.finish().unwrap_err().code(), codes::OVERWRITE);
    let error = WriteOptions::new().create_new(&path).unwrap_err();
    assert_eq!(error.code(), codes::OVERWRITE);
    assert_eq!(error.path(), Some(&*path));
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(names_in(folder.path()), ["model.zt"]);
}

#[cfg(target_os = "linux")]
#[test]
fn as_many_links_are_followed_as_the_system_follows() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for count in [1, 40, 41] {
        let target = format!("{count}");
        symlink(&target, at(&format!("{count}.0"))).unwrap();
        for link in 1..count {
            let next = format!("{count}.{}", link - 1);
            symlink(next, at(&format!("{count}.{link}"))).unwrap();
        }
        let first = at(&format!("{count}.{}", count - 1));
        let made =
            zt::foreign::AtomicFile::create(&first).and_then(zt::foreign::AtomicFile::publish);
        let by_the_system = std::fs::File::create(&first).is_ok();
        assert_eq!(made.is_ok(), by_the_system, "{count}");
        assert_eq!(at(&target).exists(), by_the_system, "{count}");
        // The same if the target exists.
        std::fs::write(at(&target), "").unwrap();
        let made = zt::foreign::AtomicFile::create(&first);
        assert_eq!(made.is_ok(), by_the_system, "{count}");
    }
    symlink("round", at("round")).unwrap();
    let error = zt::foreign::AtomicFile::create(at("round")).unwrap_err();
    assert_eq!((error.code(), error.path()), ("io", Some(&*at("round"))));
}

#[cfg(windows)]
#[test]
fn what_is_written_to_nul_is_dropped() {
    use std::io::Write;
    for path in ["NUL", "nul", r"\\.\NUL"] {
        let mut file = zt::foreign::AtomicFile::create_new(path).unwrap();
        file.write_all(b"dropped").unwrap();
        file.publish().unwrap();
    }
}

#[cfg(windows)]
#[test]
fn names_of_other_devices_are_refused() {
    for path in ["CON", r"\\.\COM1", "COM1.zt", "nul.zt"].map(std::path::Path::new) {
        // Since Windows 11 these two are files.
        if path.extension().is_some() && !zt::container::is_device(path) {
            continue;
        }
        for made in
            [zt::foreign::AtomicFile::create(path), zt::foreign::AtomicFile::create_new(path)]
        {
            let error = made.unwrap_err();
            assert!(error.to_string().contains("is the name of a device"), "{error}");
        }
    }
}
