//! Reading through a web server: how many requests, how many bytes, and never a wrong value.
#![allow(
    clippy::unwrap_used,
    reason = "a failed unwrap is the failure of the test"
)]

mod common;

use std::time::{Duration, Instant};

use common::{Fault, Server, options};
use zt::{Dense, OpenOptions, Slice, Source, WriteOptions, Writer};
use zt_remote::Remote;

/// A file of one large matrix, compressed or not, and 100 small vectors.
fn model(level: Option<i32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut options = WriteOptions::new();
    if let Some(level) = level {
        options = options.zstd(level);
    }
    let mut writer = options.to_writer(&mut bytes).unwrap();
    let values: Vec<f32> = (0u16..4096)
        .flat_map(|row| (0u16..1024).map(move |column| f32::from(row ^ column)))
        .collect();
    let matrix = Dense::from_slice(&[4096, 1024], &values).unwrap();
    writer.add("matrix", &matrix).unwrap();
    for layer in 0u8..100 {
        let values = [f32::from(layer); 256];
        let vector = Dense::from_slice(&[256], &values).unwrap();
        writer
            .add(&format!("layers.{layer}.bias"), &vector)
            .unwrap();
    }
    writer.finish().unwrap();
    bytes
}

fn open(server: &Server) -> zt::File {
    let remote = Remote::open(&server.url("m.zt"), &options()).unwrap();
    OpenOptions::new().open_source(remote).unwrap()
}

#[test]
fn opening_and_listing_is_one_request() {
    let server = Server::with("m.zt", model(None));
    let file = open(&server);
    assert_eq!(file.tensors().count(), 101);
    assert_eq!(server.requests(), ["bytes=-262144"]);
}

#[test]
fn a_manifest_that_is_longer_than_the_first_request_takes_a_second() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    for at in 0..20_000 {
        let scalar = Dense::from_slice(&[], &[1u8]).unwrap();
        writer.add(&format!("object.number.{at}"), &scalar).unwrap();
    }
    writer.finish().unwrap();
    let server = Server::with("m.zt", bytes);
    assert_eq!(open(&server).tensors().count(), 20_000);
    assert_eq!(server.requests().len(), 2, "{:?}", server.requests());
}

#[test]
fn one_tensor_takes_one_request_and_no_byte_more() {
    let server = Server::with("m.zt", model(None));
    let file = open(&server);
    let before = server.bytes();
    let matrix = file.tensor("matrix").unwrap().to_vec::<f32>().unwrap();
    assert_eq!(matrix[4096 * 1024 - 1], 3072.0);
    // The end of the matrix may have come with the manifest.
    assert!(server.bytes() - before <= 16 << 20);
    assert!(server.requests().len() <= 4, "{:?}", server.requests());
}

#[test]
fn rows_of_a_compressed_tensor_take_two_requests_and_their_frames() {
    let server = Server::with("m.zt", model(Some(1)));
    let file = open(&server);
    let (requests, bytes) = (server.requests().len(), server.bytes());
    let rows = [Slice::from(1000u64..1010)];
    let rows = file.tensor("matrix").unwrap().slice(&rows).unwrap();
    assert_eq!(rows.as_slice::<f32>().unwrap()[0], 1000.0);
    assert!(
        server.requests().len() - requests <= 2,
        "{:?}",
        server.requests()
    );
    assert!(server.bytes() - bytes <= 3 << 20);
}

#[test]
fn all_small_tensors_come_in_one_request() {
    let server = Server::with("m.zt", model(None));
    let file = open(&server);
    let before = server.requests().len();
    let tensors: Vec<_> = file
        .names()
        .filter(|name| name.starts_with("layers"))
        .map(|name| (file.tensor(name).unwrap(), "data"))
        .collect();
    for (elements, (tensor, _)) in file.read_many(&tensors).into_iter().zip(&tensors) {
        let layer: f32 = tensor.name().split('.').nth(1).unwrap().parse().unwrap();
        assert_eq!(elements.unwrap().as_slice::<f32>().unwrap()[255], layer);
    }
    assert!(
        server.requests().len() - before <= 1,
        "{:?}",
        server.requests()
    );
}

#[test]
fn verifying_reads_every_byte_once() {
    let bytes = model(Some(1));
    let len = bytes.len() as u64;
    let server = Server::with("m.zt", bytes);
    let report = open(&server).verify(&zt::VerifyOptions::new()).unwrap();
    assert!(report.is_ok(), "{:?}", report.problems);
    let requests = server.requests();
    assert!(
        server.bytes() <= len + len / 20 + (64 << 10),
        "{} of {len}: {requests:?}",
        server.bytes()
    );
}

#[test]
fn requests_overlap() {
    let server = Server::with("m.zt", model(None));
    let file = open(&server);
    let small = options().part(1 << 20);
    let remote = Remote::open(&server.url("m.zt"), &small).unwrap();
    server.delay(Duration::from_millis(100));
    let begin = Instant::now();
    let mut bytes = vec![0; 8 << 20];
    remote.read_at(64, &mut bytes).unwrap();
    // Eight parts one after the other would take 800 milliseconds. A slow machine may need a while.
    assert!(server.requests().len() >= 8);
    assert!(
        begin.elapsed() < Duration::from_millis(700),
        "{:?}",
        begin.elapsed()
    );
    drop(file);
}

#[test]
fn every_fault_at_every_request_gives_the_right_values_or_an_error() {
    let bytes = model(Some(1));
    let whole = zt::File::from_bytes(bytes.clone()).unwrap();
    let right = whole.tensor("matrix").unwrap().to_vec::<f32>().unwrap();
    let read = |server: &Server| {
        let options = options().part(1 << 20);
        let remote = Remote::open(&server.url("m.zt"), &options)?;
        let file = OpenOptions::new().open_source(remote)?;
        file.tensor("matrix")?.to_vec::<f32>()
    };
    let calm = Server::with("m.zt", bytes.clone());
    assert!(read(&calm).unwrap() == right);
    let requests = calm.requests().len();
    for number in 0..requests {
        for fault in [
            Fault::Status(500),
            Fault::Status(503),
            Fault::Status(429),
            Fault::Status(403),
            Fault::Status(404),
            Fault::Cut,
            Fault::Hangup,
            Fault::IgnoresRange,
            Fault::OtherRange,
            Fault::Replaced,
            Fault::Grown,
        ] {
            let server = Server::with("m.zt", bytes.clone());
            server.fail(number, fault);
            match read(&server) {
                Ok(values) => assert!(values == right, "{fault:?} at {number}"),
                Err(error) => {
                    let code = error.code();
                    let is_typed = matches!(code, "io" | "changed");
                    // The other object is read as a whole, and it is damaged.
                    let is_other = matches!(fault, Fault::Replaced | Fault::Grown) && number == 0;
                    assert!(is_typed || is_other, "{fault:?} at {number}: {error}");
                }
            }
            // What passes by itself is tried again.
            if matches!(fault, Fault::Status(500 | 503 | 429) | Fault::Hangup) {
                let server = Server::with("m.zt", bytes.clone());
                server.fail(number, fault);
                assert!(read(&server).unwrap() == right, "{fault:?} at {number}");
            }
        }
    }
}

#[test]
fn a_replaced_object_is_never_mixed() {
    let server = Server::with("m.zt", model(None));
    let file = open(&server);
    server.put("m.zt", model(None));
    let error = file.tensor("matrix").unwrap().to_vec::<f32>().unwrap_err();
    assert_eq!(error.code(), "changed");
}

#[test]
fn a_missing_object_and_a_wrong_address_are_named() {
    let server = Server::new();
    let error = Remote::open(&server.url("m.zt"), &options()).unwrap_err();
    assert_eq!(error.code(), "io");
    assert!(error.to_string().contains("/models/m.zt"), "{error}");
    for (url, code) in [
        ("s3://bucket/", "path"),
        ("s3://", "path"),
        ("ftp://host/m.zt", "unsupported"),
        ("http://127.0.0.1/m.zt", "path"),
        ("hf://owner/m.zt", "path"),
        ("model.zt", "path"),
    ] {
        let error = zt_remote::open(url).unwrap_err();
        assert_eq!(error.code(), code, "{url}: {error}");
    }
}

#[test]
fn an_empty_object_is_no_tensor_file() {
    let server = Server::with("m.zt", Vec::new());
    let remote = Remote::open(&server.url("m.zt"), &options()).unwrap();
    assert_eq!(remote.byte_len(), 0);
    let error = OpenOptions::new().open_source(remote).unwrap_err();
    assert_eq!(error.code(), "not-zt");
}

#[test]
fn calls_block_also_within_another_runtime() {
    let server = Server::with("m.zt", model(None));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let len = runtime.block_on(async { open(&server).len() });
    assert_eq!(len, 101);
}

#[test]
fn many_threads_read_one_file() {
    let server = Server::with("m.zt", model(Some(1)));
    let file = open(&server);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let values = file.tensor("matrix").unwrap().to_vec::<f32>().unwrap();
                assert_eq!(values[1024 * 7 + 1], 6.0);
            });
        }
    });
}
