//! Writing to a store: as a whole or not at all.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is the failure of the test")]

mod common;

use std::io::Write;

use common::{Fault, Server, s3_options};
use zt::{Dense, OpenOptions, WriteOptions};
use zt_remote::{Remote, RemoteOptions, Upload};

fn url(folder: &std::path::Path, name: &str) -> String {
    format!("file://{}", folder.join(name).display())
}

fn write(upload: &mut Upload, elements: usize) {
    let mut writer = WriteOptions::new().to_writer(upload).unwrap();
    let values = vec![0.5f32; elements];
    let dense = Dense::from_slice(&[elements as u64], &values).unwrap();
    writer.add("w", &dense).unwrap();
    writer.finish().unwrap();
}

#[test]
fn a_file_appears_at_the_end() {
    // One part, and several.
    for elements in [10, 8 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let url = url(folder.path(), "m.zt");
        let mut upload = zt_remote::create(&url).unwrap();
        write(&mut upload, elements);
        assert!(!folder.path().join("m.zt").exists());
        upload.finish().unwrap();
        let remote = Remote::open(&url, &RemoteOptions::new()).unwrap();
        let file = OpenOptions::new().open_source(remote).unwrap();
        let values = file.tensor("w").unwrap().to_vec::<f32>().unwrap();
        assert!(values == vec![0.5; elements]);
    }
}

#[test]
fn an_upload_that_is_dropped_leaves_nothing() {
    for bytes in [10, 40 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let mut upload = zt_remote::create(&url(folder.path(), "m.zt")).unwrap();
        upload.write_all(&vec![7; bytes]).unwrap();
        drop(upload);
        let left: Vec<_> = folder.path().read_dir().unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn an_object_is_replaced_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let url = url(folder.path(), "m.zt");
    std::fs::write(folder.path().join("m.zt"), "old").unwrap();
    assert_eq!(zt_remote::create(&url).unwrap_err().code(), "overwrite");
    for bytes in [10, 20 << 20] {
        let options = RemoteOptions::new().overwrite(true);
        let mut upload = Upload::create(&url, &options).unwrap();
        upload.write_all(&vec![7; bytes]).unwrap();
        upload.finish().unwrap();
        assert_eq!(std::fs::metadata(folder.path().join("m.zt")).unwrap().len(), bytes as u64);
    }
}

#[test]
fn an_object_that_appears_meanwhile_is_not_replaced() {
    for bytes in [10, 20 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let mut upload = zt_remote::create(&url(folder.path(), "m.zt")).unwrap();
        upload.write_all(&vec![7; bytes]).unwrap();
        std::fs::write(folder.path().join("m.zt"), "theirs").unwrap();
        assert_eq!(upload.finish().unwrap_err().code(), "overwrite");
        assert_eq!(std::fs::read(folder.path().join("m.zt")).unwrap(), b"theirs");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}

#[test]
fn web_servers_take_no_uploads() {
    let error = zt_remote::create("https://example.org/m.zt").unwrap_err();
    assert_eq!(error.code(), "unsupported");
}

/// The object that a lost answer was about is the caller's, and another one is not.
#[test]
fn a_short_object_whose_answer_was_lost_is_compared() {
    for (theirs, code) in [(None, None), (Some(vec![8; 10]), Some("overwrite"))] {
        let server = Server::new();
        let options = s3_options(server.port);
        let mut upload = Upload::create("s3://models/m.zt", &options).unwrap();
        upload.write_all(&[7; 10]).unwrap();
        match &theirs {
            Some(theirs) => server.put("m.zt", theirs.clone()),
            None => server.fail(0, Fault::Lost),
        }
        let finished = upload.finish().map_err(|error| error.code());
        assert_eq!(finished.err(), code);
        assert_eq!(server.object("m.zt").unwrap(), theirs.unwrap_or(vec![7; 10]));
    }
}
