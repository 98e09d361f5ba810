//! Many threads on one file, many files on one pool, and readers of a file that is edited.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use common::every_source;
use rayon::prelude::*;
use zt::{Csr, Dense, File, HashOptions, OpenOptions, Slice, Verify, VerifyOptions, WriteOptions};
use zt::{Tensor, Writer};

const THREADS: usize = 6;
/// In all, of each way to read each file: some thousand together.
const ROUNDS: usize = 48;
/// Objects of a file, the matrix apart.
const OBJECTS: u32 = 24;

fn values(at: u32) -> Vec<f32> {
    // Two large ones are read in pieces, on several threads.
    let len = if at % 12 == 7 { 100_000u32 } else { 50 + at };
    let value = |place: u32| f32::from_bits(0x3f80_0000 | (place.wrapping_mul(at + 1) & 0x7f_ffff));
    (0..len).map(value).collect()
}

fn name(at: u32) -> String {
    format!("layer.{at}")
}

fn matrix() -> Csr<'static> {
    Csr::new([2, 3], &[7i32, 8][..], &[2u64, 0][..], &[0u64, 1, 2][..]).unwrap()
}

/// A file of [`OBJECTS`] vectors and a matrix.
fn file_of(options: WriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for at in 0..OBJECTS {
        let values = values(at);
        let dense = Dense::from_slice(&[values.len() as u64], &values).unwrap();
        writer.add(&name(at), &dense).unwrap();
    }
    writer.add("matrix", &matrix()).unwrap();
    writer.finish().unwrap();
    bytes
}

/// One of everything that can be asked of a file, which is what it is by itself.
fn ask(file: &File, round: usize, hash: &[u8; 32]) {
    let at = u32::try_from(round).unwrap() % OBJECTS;
    let expected = values(at);
    let tensor = file.tensor(&name(at)).unwrap();
    match round % 8 {
        0 => assert!(*tensor.values::<f32>().unwrap() == expected),
        1 => assert!(tensor.to_vec::<f32>().unwrap() == expected),
        2 => {
            let range = Slice::Range { start: Some(-7), stop: None, step: 2 };
            let part = tensor.slice(&[range]).unwrap();
            let start = expected.len() - 7;
            let wanted: Vec<f32> = expected[start..].iter().copied().step_by(2).collect();
            assert!(*part.as_slice::<f32>().unwrap() == wanted);
        }
        3 => assert!(file.verify(&VerifyOptions::default()).unwrap().is_ok()),
        4 => {
            let all: Vec<Tensor<'_>> =
                (0..OBJECTS).map(|at| file.tensor(&name(at)).unwrap()).collect();
            let found = file.to_dense_many(&all);
            for (at, dense) in (0..OBJECTS).zip(found) {
                assert!(*dense.unwrap().as_slice::<f32>().unwrap() == values(at));
            }
        }
        5 => {
            let all: Vec<(Tensor<'_>, &str)> =
                (0..OBJECTS).map(|at| (file.tensor(&name(at)).unwrap(), "data")).collect();
            for (at, elements) in (0..OBJECTS).zip(file.read_many(&all)) {
                let bytes: Vec<u8> = values(at).iter().flat_map(|it| it.to_le_bytes()).collect();
                assert!(*elements.unwrap().bytes == *bytes);
            }
        }
        6 => assert_eq!(file.hash(&HashOptions::default()).unwrap().content.unwrap(), *hash),
        _ => {
            let dense = file.tensor("matrix").unwrap().to_dense().unwrap();
            assert_eq!(*dense.as_slice::<i32>().unwrap(), [0, 0, 7, 8, 0, 0]);
        }
    }
}

#[test]
fn threads_that_share_a_file_see_what_one_sees() {
    for write in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let bytes = file_of(write);
        let alone = File::from_bytes(bytes.clone()).unwrap();
        let hash = alone.hash(&HashOptions::default()).unwrap().content.unwrap();
        for verify in [Verify::OnRead, Verify::Always] {
            for (source, file) in every_source(&bytes, &OpenOptions::new().verify(verify)) {
                let file = file.unwrap();
                let (start, done) = (Barrier::new(THREADS), AtomicUsize::new(0));
                thread::scope(|scope| {
                    for thread in 0..THREADS {
                        let (file, start, done, hash) = (&file, &start, &done, &hash);
                        scope.spawn(move || {
                            start.wait();
                            for round in 0..ROUNDS / THREADS {
                                ask(file, round + thread, hash);
                                done.fetch_add(1, Ordering::Relaxed);
                            }
                        });
                    }
                });
                assert_eq!(done.into_inner(), ROUNDS / THREADS * THREADS, "{source}");
            }
        }
    }
}

/// The first reader finds the damage, and every later reader too.
#[test]
fn threads_that_share_a_damaged_file_all_hear_of_it() {
    let mut bytes = file_of(WriteOptions::new());
    let span = common::span_of(&File::from_bytes(bytes.clone()).unwrap(), &name(7), "data");
    bytes[usize::try_from(span.offset()).unwrap() + 99] ^= 1;
    for (source, file) in every_source(&bytes, &OpenOptions::new()) {
        let file = file.unwrap();
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (file, start) = (&file, &start);
                scope.spawn(move || {
                    start.wait();
                    for round in 0..30 {
                        let tensor = file.tensor(&name(7)).unwrap();
                        let error = match (round + thread) % 3 {
                            0 => tensor.bytes("data").unwrap_err(),
                            1 => tensor.to_dense().unwrap_err(),
                            _ => tensor.values::<f32>().map(drop).unwrap_err(),
                        };
                        assert_eq!(error.code(), "digest-mismatch", "{source}");
                        let sound = file.tensor(&name(8)).unwrap();
                        assert!(sound.to_vec::<f32>().unwrap() == values(8), "{source}");
                    }
                });
            }
        });
    }
}

/// Writers and readers on pools of one and of two threads, from outside and from tasks of the pool,
/// more of them at once than there are threads.
#[test]
fn a_pool_of_any_size_serves_writers_within_it() {
    let write = WriteOptions::new().zstd(1);
    let expected = file_of(write.clone());
    let hash = File::from_bytes(expected.clone()).unwrap();
    let hash = hash.hash(&HashOptions::default()).unwrap().content.unwrap();
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = &pool.build().unwrap();
        let is_same = |at: usize| {
            let bytes = file_of(write.clone());
            let file = File::from_bytes(bytes.clone()).unwrap();
            for round in 0..8 {
                ask(&file, at + round, &hash);
            }
            bytes == expected
        };
        let written = pool.install(|| (0..8usize).into_par_iter().filter(|at| is_same(*at)));
        assert_eq!(pool.install(|| written.count()), 8, "{threads}");
        let (inner, outer) = pool.join(
            || rayon::join(|| is_same(0), || is_same(1)),
            || rayon::join(|| is_same(2), || is_same(3)),
        );
        assert_eq!((inner, outer), ((true, true), (true, true)), "{threads}");
        thread::scope(|scope| {
            let others: Vec<_> =
                (0..4).map(|at| scope.spawn(move || pool.install(move || at))).collect();
            let own = pool.install(|| is_same(4));
            assert!(own && others.into_iter().all(|other| other.join().is_ok()));
        });
    }
}

/// Interleaved writers of one thread. None may wait for another.
#[test]
fn writers_that_take_turns_do_not_wait_for_each_other() {
    let write = WriteOptions::new().zstd(1);
    let expected = file_of(write.clone());
    let mut outputs = vec![Vec::new(); 5];
    let mut writers: Vec<Writer<'_>> =
        outputs.iter_mut().map(|output| write.clone().to_writer(output).unwrap()).collect();
    for at in 0..OBJECTS {
        let values = values(at);
        for writer in &mut writers {
            let dense = Dense::from_slice(&[values.len() as u64], &values).unwrap();
            writer.add(&name(at), &dense).unwrap();
        }
    }
    for mut writer in writers {
        writer.add("matrix", &matrix()).unwrap();
        writer.finish().unwrap();
    }
    assert!(outputs.iter().all(|output| *output == expected));
}

/// The variable that tells this program that it is the child, and which file to edit.
const CHILD: &str = "ZT_TEST_EDIT";
const EDITS: u64 = 60;

fn counted(at: u64) -> Vec<u64> {
    vec![at; 512]
}

fn edit(path: &Path) {
    for at in 1..=EDITS {
        let mut edit = loop {
            match File::edit(path) {
                Ok(edit) => break edit,
                Err(error) => assert_eq!(error.code(), "locked"),
            }
        };
        edit.remove(&(at - 1).to_string()).unwrap();
        let dense = counted(at);
        let dense = Dense::from_slice(&[512], &dense).unwrap();
        edit.writer().add(&at.to_string(), &dense).unwrap();
        edit.commit().unwrap();
    }
}

/// Does nothing unless it is the child of the test below.
#[test]
fn the_child_edits() {
    if let Some(path) = std::env::var_os(CHILD) {
        edit(Path::new(&path));
    }
}

/// One reads, compares and opens anew while another process commits edits in place.
#[test]
fn readers_of_a_file_that_another_process_edits_see_one_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    let mut writer = Writer::create(&path).unwrap();
    let first = counted(0);
    writer.add("0", &Dense::from_slice(&[512], &first).unwrap()).unwrap();
    writer.finish().unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_child_edits"])
        .env(CHILD, &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let is_over = AtomicBool::new(false);
    let status = thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = 0;
                    loop {
                        let is_last = is_over.load(Ordering::Relaxed);
                        let file = File::open(&path).unwrap();
                        let names: Vec<&str> = file.names().collect();
                        let [name] = names[..] else {
                            panic!("{names:?}");
                        };
                        let at: u64 = name.parse().unwrap();
                        assert!(at >= seen, "{at} after {seen}");
                        seen = at;
                        let found = file.tensor(name).unwrap().to_vec::<u64>().unwrap();
                        assert!(found == counted(at), "{at}");
                        if is_last {
                            return seen;
                        }
                    }
                })
            })
            .collect();
        let status = child.wait().unwrap();
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), EDITS);
        }
        status
    });
    assert!(status.success());
}

/// Runs itself again with the variable set, because rayon reads it once in a process.
#[cfg(feature = "rayon")]
#[test]
fn a_huge_number_of_threads_in_the_environment_is_bounded() {
    const NAME: &str = "RAYON_NUM_THREADS";
    if std::env::var(NAME).is_ok_and(|threads| threads == "20000") {
        let file = File::from_bytes(file_of(WriteOptions::new())).unwrap();
        assert!(file.verify(&VerifyOptions::new()).unwrap().is_ok());
        let cores = thread::available_parallelism().unwrap().get();
        assert!((1..=cores * 4).contains(&rayon::current_num_threads()));
        return;
    }
    let test = "a_huge_number_of_threads_in_the_environment_is_bounded";
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    let again = again.args(["--exact", test]).env(NAME, "20000");
    assert!(again.status().unwrap().success());
}
