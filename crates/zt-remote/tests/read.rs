//! Reading through a web server: how many requests, how many bytes, and never a wrong value.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a failed unwrap is the failure of the test"
)]

mod common;

use common::{Server, options};
use zt::{Dense, OpenOptions, Slice, Source, Verify, WriteOptions, Writer};
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
        writer.add(&format!("layers.{layer}.bias"), &vector).unwrap();
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
fn opening_and_listing_100_000_objects_takes_two_requests() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let vector = Dense::from_slice(&[4], &[0.5f32; 4]).unwrap();
    for at in 0..100_000 {
        let (layer, expert) = (at / 1000, at % 1000);
        let name = format!("model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight");
        writer.add(&name, &vector).unwrap();
    }
    writer.finish().unwrap();
    let len = bytes.len() as u64;
    let server = Server::with("m.zt", bytes);
    assert_eq!(open(&server).names().count(), 100_000);
    assert_eq!(server.requests().len(), 2, "{:?}", server.requests());
    assert!(server.bytes() <= len, "{} of {len}", server.bytes());
    assert!(server.bytes() > 8 << 20, "{}", server.bytes());
}

#[test]
fn a_row_of_a_compressed_tensor_of_256_mib_takes_three_requests_and_4_mib() {
    const SIDE: u64 = 1 << 14;
    let mut state = 1u32;
    let row: Vec<u8> = (0..SIDE)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        })
        .collect();
    // Rows that differ by a shift: a frame compresses, and a row tells where it came from.
    let mut values = Vec::new();
    for at in 0..SIDE as usize {
        values.extend_from_slice(&row[at..]);
        values.extend_from_slice(&row[..at]);
    }
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().zstd(1).to_writer(&mut bytes).unwrap();
    let matrix = Dense::from_slice(&[SIDE, SIDE], &values).unwrap();
    writer.add("matrix", &matrix).unwrap();
    writer.finish().unwrap();
    let server = Server::with("m.zt", bytes);
    let file = open(&server);
    let slice = [Slice::from(5000u64..5001)];
    let found = file.tensor("matrix").unwrap().slice(&slice).unwrap();
    assert!(found.as_slice::<u8>().unwrap()[..] == [&row[5000..], &row[..5000]].concat());
    assert!(server.requests().len() <= 3, "{:?}", server.requests());
    assert!(server.bytes() <= 4 << 20, "{}", server.bytes());
}

#[test]
fn the_slices_of_a_rank_take_their_bytes_and_a_twentieth_more() {
    // Two shards of four matrices of 8 MiB. Each of four ranks has a quarter of the rows.
    let shard = |first: usize| {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).unwrap();
        for layer in first..first + 4 {
            let matrix = vec![layer as f32; 2 << 20];
            let matrix = Dense::from_slice(&[2048, 1024], &matrix).unwrap();
            writer.add(&format!("layers.{layer}"), &matrix).unwrap();
        }
        writer.finish().unwrap();
        bytes
    };
    let server = Server::new();
    let mut wanted = 0;
    for (name, first) in [("a.zt", 0), ("b.zt", 4)] {
        server.put(name, shard(first));
        let remote = Remote::open(&server.url(name), &options()).unwrap();
        let file = OpenOptions::new().open_source(remote).unwrap();
        for tensor in file.tensors() {
            let tensor = tensor.unwrap();
            let layer: f32 = tensor.name()[7..].parse().unwrap();
            let rows = tensor.slice(&[Slice::from(512u64..1024)]).unwrap();
            let rows = rows.as_slice::<f32>().unwrap();
            assert!(rows.iter().all(|value| *value == layer));
            wanted += rows.len() as u64 * 4;
        }
    }
    let bytes = server.bytes();
    assert!(bytes * 20 <= wanted * 21, "{bytes} for {wanted}");
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
    assert!(server.requests().len() - requests <= 2, "{:?}", server.requests());
    assert!(server.bytes() - bytes <= 3 << 20);
}

/// Matrices of bf16 in two compressed planes each, of several frames and with tables that lie apart.
fn planes(count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().zstd(1).planes().to_writer(&mut bytes).unwrap();
    let mut state = 1u32;
    let mut value = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Exponents and mantissas of few values, so that both planes are compressed.
        (0x3c00 | (state >> 16) as u16 & 0x0133).to_le_bytes()
    };
    for at in 0..count {
        let values: Vec<u8> = (0..6 << 20).flat_map(|_| value()).collect();
        let values = zt::Elements::new(zt::DType::BF16, values);
        let matrix = Dense::from_elements([6144, 1024], values).unwrap();
        writer.add(&format!("layers.{at}"), &matrix).unwrap();
    }
    // A manifest that is longer than the first request, so that no table came with it.
    for at in 0..5000 {
        writer
            .add(&format!("object.number.{at}"), &Dense::from_slice(&[], &[1u8]).unwrap())
            .unwrap();
    }
    writer.finish().unwrap();
    bytes
}

#[test]
fn rows_of_planes_of_any_number_of_tensors_take_two_rounds_of_requests() {
    const TENSORS: usize = 2;
    let server = Server::with("m.zt", planes(TENSORS));
    let expected = zt::File::from_bytes(planes(TENSORS)).unwrap();
    let row = [Slice::from(1500u64..1501)];
    for tensors in [1, TENSORS] {
        let file = open(&server);
        let before = server.requests().len();
        // No table is sent before all are asked for, and no frame before all are.
        server.hold_rounds(&[2 * tensors, 2 * tensors]);
        let names: Vec<_> = (0..tensors).map(|at| format!("layers.{at}")).collect();
        let wanted = names.iter().map(|name| (file.tensor(name).unwrap(), row.to_vec()));
        let mut found = 0;
        file.plan(wanted)
            .for_each(|at, rows| {
                let whole = expected.tensor(&names[at])?.slice(&row)?;
                assert!(rows?.elements().bytes == whole.elements().bytes);
                found += 1;
                Ok::<(), zt::Error>(())
            })
            .unwrap();
        assert_eq!(found, tensors);
        let requests = &server.requests()[before..];
        assert!(server.is_released(), "{requests:?}");
        assert_eq!(requests.len(), 4 * tensors, "{requests:?}");
    }
    // A slice without a plan asks for the planes of its tensor at once.
    let file = open(&server);
    server.hold_rounds(&[2, 2]);
    file.tensor("layers.0").unwrap().slice(&row).unwrap();
    assert!(server.is_released());
}

#[test]
fn rows_of_a_raw_tensor_take_their_chunks_and_the_table_once() {
    const CHUNK: u64 = 1 << 20;
    let mut bytes = model(None);
    let written = zt::File::from_bytes(bytes.clone()).unwrap();
    let blob = written.tensor("matrix").unwrap();
    let blob = blob.component("data").unwrap().blob.clone();
    let table = blob.chunks.unwrap().span;
    bytes[blob.span.offset() as usize + 3 * CHUNK as usize] ^= 1;
    let requests_of = |verify: Verify| {
        let server = Server::with("m.zt", bytes.clone());
        let remote = Remote::open(&server.url("m.zt"), &options()).unwrap();
        let opened = OpenOptions::new().verify(verify).open_source(remote);
        let file = opened.unwrap();
        let matrix = file.tensor("matrix").unwrap();
        let row = |at: u64| matrix.slice(&[Slice::from(at..at + 1)]);
        let first = |at| row(at).map(|row| row.as_slice::<f32>().unwrap()[0]);
        let before = server.requests().len();
        // A chunk has 256 rows.
        assert_eq!((first(0).unwrap(), first(300).unwrap()), (0.0, 300.0));
        let damaged = first(3 * 256 + 1).map_err(|error| error.code());
        (server.requests()[before..].to_vec(), damaged, server.bytes())
    };
    let chunk = |at: u64| {
        let start = blob.span.offset() + at * CHUNK;
        format!("bytes={start}-{}", start + CHUNK - 1)
    };
    // The table is near the manifest, so it came when the file was opened.
    assert!(table.end() + (256 << 10) > bytes.len() as u64);
    let (requests, damaged, _) = requests_of(Verify::OnRead);
    assert_eq!(requests, [chunk(0), chunk(1), chunk(3)]);
    assert_eq!(damaged, Err("digest-mismatch"));
    let (_, unverified, received) = requests_of(Verify::Never);
    assert_eq!(unverified, Ok(769.0));
    assert!(received < CHUNK, "{received}");
}

#[test]
fn a_table_that_is_far_from_the_manifest_is_read_once() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let values = vec![7u8; 3 << 20];
    for name in ["a", "b"] {
        let tensor = Dense::from_slice(&[3, 1 << 20], &values).unwrap();
        writer.add(name, &tensor).unwrap();
    }
    // A manifest that is longer than the first request.
    for at in 0..5000 {
        let scalar = Dense::from_slice(&[], &[1u8]).unwrap();
        writer.add(&format!("object.number.{at}"), &scalar).unwrap();
    }
    writer.finish().unwrap();
    let server = Server::with("m.zt", bytes);
    let file = open(&server);
    let before = (server.requests().len(), server.bytes());
    for name in ["a", "b"] {
        for row in 0..3u64 {
            let row = [Slice::from(row..row + 1)];
            file.tensor(name).unwrap().slice(&row).unwrap();
        }
    }
    let requests = &server.requests()[before.0..];
    // The tables of a file lie side by side, so one request has both.
    assert_eq!(requests.len(), 7, "{requests:?}");
    let received = server.bytes() - before.1;
    assert!(received <= (6 << 20) + (64 << 10), "{received}");
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
    assert!(server.requests().len() - before <= 1, "{:?}", server.requests());
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
    let small = options().part(1 << 20);
    let remote = Remote::open(&server.url("m.zt"), &small).unwrap();
    server.hold(8);
    let mut bytes = vec![0; 8 << 20];
    remote.read_at(64, &mut bytes).unwrap();
    assert!(server.is_released(), "{:?}", server.requests());
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
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
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
