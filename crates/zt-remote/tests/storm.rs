//! A server that lies at random: never a wrong file under the final name, and the next call goes on.
//!
//! `ZT_STORM=10000 cargo test -p zt-remote --test storm -- --nocapture` makes that many faults, and prints how many of each kind.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failure of the test"
)]
#![allow(clippy::cast_possible_truncation, reason = "small bodies")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::http::{Request, Response};
use common::options;
use zt_remote::{DownloadOptions, Downloaded, Leaves, download};

/// Bytes of a leaf in this test.
const LEAF: usize = 64 << 10;

const LEN: usize = 650_000;

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: u64) -> u64 {
        (self.next() >> 11) % most
    }
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    (0..len).map(|_| random.next() as u8).collect()
}

/// Faults that lengths, tags and statuses show.
const SHOWN: [&str; 19] = [
    "status 500",
    "status 503",
    "status 403",
    "status 404",
    "hangup",
    "cut",
    "short",
    "long",
    "whole file",
    "other range",
    "wrong Content-Range",
    "wrong total",
    "other tag",
    "no tag",
    "stale version",
    "chunked",
    "slow",
    "redirect",
    "nonsense",
];

/// Faults that only a digest shows.
const HIDDEN: [&str; 8] =
    ["shifted", "stale bytes", "duplicated", "zeros", "one bit", "HTML", "gzip", "stale redirect"];

struct State {
    random: Mutex<Random>,
    is_honest: AtomicBool,
    hides: AtomicBool,
    /// One of so many requests goes wrong.
    rate: AtomicU64,
    bytes: Arc<Vec<u8>>,
    stale: Arc<Vec<u8>>,
    port: u16,
    told: Mutex<BTreeMap<&'static str, u64>>,
}

impl State {
    fn fault(&self) -> Option<&'static str> {
        let mut random = self.random.lock().unwrap();
        let rate = self.rate.load(Ordering::SeqCst);
        if self.is_honest.load(Ordering::SeqCst) || random.below(rate) > 0 {
            return None;
        }
        let hides = self.hides.load(Ordering::SeqCst) && random.below(2) == 0;
        let faults: &[&str] = if hides { &HIDDEN } else { &SHOWN };
        let fault = faults[random.below(faults.len() as u64) as usize];
        *self.told.lock().unwrap().entry(fault).or_default() += 1;
        Some(fault)
    }

    /// The answer of an honest server that has `bytes` under `tag`.
    fn sound(request: &Request, bytes: &Arc<Vec<u8>>, tag: &str) -> Response {
        if request.headers.get("if-match").is_some_and(|wanted| wanted != tag) {
            return Response::new(412, "");
        }
        let total = bytes.len();
        let answer = match request.range(total) {
            Some(part) if part.is_empty() => return Response::new(416, ""),
            Some(part) => {
                let range = format!("bytes {}-{}/{total}", part.start, part.end - 1);
                Response::of(206, Arc::clone(bytes), part).with("Content-Range", range)
            }
            None => Response::of(200, Arc::clone(bytes), 0..total),
        };
        answer.with("ETag", tag).with("Last-Modified", "Tue, 24 Nov 2026 10:00:00 GMT")
    }

    /// `None` ends the connection.
    fn answer(&self, stream: &mut TcpStream, request: &mut Request) -> Option<()> {
        let fault = self.fault();
        let is_stale = request.target.contains("stale");
        let bytes = if is_stale { &self.stale } else { &self.bytes };
        let mut answer = Self::sound(request, bytes, "\"1\"");
        let start = request.range(LEN).map_or(0, |range| range.start);
        let body = answer.body().to_vec();
        let part = |from: usize| {
            let end = (from + body.len()).min(LEN);
            let part = self.bytes[from.min(end)..end].to_vec();
            [part, vec![0; body.len() - (end - from.min(end))]].concat()
        };
        match fault {
            Some("status 500") => answer = Response::new(500, ""),
            Some("status 503") => answer = Response::new(503, ""),
            Some("status 403") => answer = Response::new(403, ""),
            Some("status 404") => answer = Response::new(404, ""),
            Some("hangup") => return None,
            Some("cut") => {
                let _ = answer.write(stream, body.len() / 2);
                return None;
            }
            Some("short") => answer.set_body(body[..body.len() / 2].to_vec()),
            Some("long") => answer.set_body([&body[..], b"and more"].concat()),
            Some("whole file") => {
                request.headers.remove("range");
                answer = Self::sound(request, bytes, "\"1\"");
            }
            Some("other range") => {
                let other = format!("bytes={}-{}", start / 2, start / 2 + body.len().max(1) - 1);
                request.headers.set("Range", other);
                answer = Self::sound(request, bytes, "\"1\"");
            }
            Some("wrong Content-Range") => {
                let end = start + body.len();
                answer.headers.set("Content-Range", format!("bytes {}-{end}/{LEN}", start + 1));
            }
            Some("wrong total") => {
                let end = start + body.len().max(1) - 1;
                answer.headers.set("Content-Range", format!("bytes {start}-{end}/{}", LEN - 7));
            }
            Some("other tag") => answer.headers.set("ETag", "\"3\""),
            Some("no tag") => answer.headers.remove("ETag"),
            Some("stale version") => {
                request.headers.remove("if-match");
                answer = Self::sound(request, &self.stale, "\"0\"");
            }
            Some("chunked") => return answer.write_in_chunks(stream).ok(),
            Some("slow") => {
                answer.write(stream, body.len() / 2).ok()?;
                thread::sleep(Duration::from_millis(2));
                return stream.write_all(&body[body.len() / 2..]).ok();
            }
            Some("redirect") => {
                let there = format!("http://127.0.0.1:{}/models/m.zt", self.port);
                answer = Response::new(307, "").with("Location", there);
            }
            Some("nonsense") => {
                let _ = stream.write_all(&noise(200, start as u64 + 1));
                return None;
            }
            Some("shifted") => answer.set_body(part(start + 1)),
            Some("stale bytes") => {
                answer.set_body(self.stale[start.min(LEN)..][..body.len()].to_vec());
            }
            Some("duplicated") => {
                let half = body.len() / 2;
                answer.set_body([&body[..half], &body[..half], &body[2 * half..]].concat());
            }
            Some("zeros") => answer.set_body(vec![0; body.len()]),
            Some("one bit") => {
                let mut wrong = body.clone();
                let at = self.random.lock().unwrap().below(body.len().max(1) as u64) as usize;
                wrong.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1);
                answer.set_body(wrong);
            }
            Some("HTML") => {
                let page = b"<!DOCTYPE html><title>Sign in</title>".iter().copied().cycle();
                answer.set_body(page.take(body.len()).collect());
            }
            Some("gzip") => {
                let wrong = [&b"\x1F\x8B\x08\0\0\0\0\0"[..], &body[..]].concat();
                answer.set_body(wrong[..body.len()].to_vec());
                answer.headers.set("Content-Encoding", "gzip");
            }
            Some("stale redirect") => {
                let there = format!("http://127.0.0.1:{}/models/stale/m.zt", self.port);
                answer = Response::new(307, "").with("Location", there);
            }
            _ => {}
        }
        let len = if request.method == "HEAD" { 0 } else { answer.body().len() };
        answer.write(stream, len).ok()
    }
}

fn server(seed: u64) -> Arc<State> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let state = Arc::new(State {
        random: Mutex::new(Random(seed)),
        is_honest: AtomicBool::new(false),
        hides: AtomicBool::new(false),
        rate: AtomicU64::new(3),
        bytes: Arc::new(noise(LEN, 1)),
        stale: Arc::new(noise(LEN, 2)),
        port: listener.local_addr().unwrap().port(),
        told: Mutex::default(),
    });
    let shared = Arc::clone(&state);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let state = Arc::clone(&shared);
            thread::spawn(move || {
                let _ = stream.set_nodelay(true);
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                while let Some(mut request) = Request::read(&mut lines) {
                    if state.answer(&mut stream, &mut request).is_none() {
                        return;
                    }
                }
            });
        }
    });
    state
}

/// The leaves of the right file.
struct Right(Arc<Vec<u8>>);

impl Leaves for Right {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }

    fn leaf_len(&self) -> usize {
        LEAF
    }

    fn check(&self, leaf: u64, bytes: &[u8]) -> zt::Result<()> {
        if self.0.chunks(LEAF).nth(leaf as usize) == Some(bytes) {
            return Ok(());
        }
        let why = format!("leaf {leaf} is wrong");
        Err(zt::Error::new(zt::ErrorKind::DigestMismatch, zt::codes::SEAL_MISMATCH, why))
    }
}

/// How the right bytes are known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Sum,
    Leaves,
}

fn fetch(state: &State, path: &Path, known: Known) -> zt::Result<Downloaded> {
    let remote = options().retries(1).part(64 << 10);
    let url = format!("http://127.0.0.1:{}/models/m.zt", state.port);
    let leaves = Right(Arc::clone(&state.bytes));
    let options = DownloadOptions::new(&remote);
    let options = match known {
        Known::Nothing => options,
        Known::Sum => {
            let sum = zt::DigestAlgorithm::Sha256.digest(&state.bytes).unwrap();
            let zt::Digest::Sha256(sum) = sum else { unreachable!() };
            options.sha256(sum)
        }
        Known::Leaves => options.leaves(&leaves),
    };
    download(&url, path, &options)
}

#[test]
fn no_lie_of_a_server_gives_a_wrong_file() {
    let most: u64 = std::env::var("ZT_STORM").map_or(400, |most| most.parse().unwrap());
    let (faults, fetches, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let (kept, again) = (AtomicU64::new(0), AtomicU64::new(0));
    let all = Mutex::new(BTreeMap::<&str, u64>::new());
    thread::scope(|scope| {
        for seed in 1..=16u64 {
            let (faults, fetches, failed, all) = (&faults, &fetches, &failed, &all);
            let (kept, again) = (&kept, &again);
            let note = move |done: &Downloaded| {
                kept.fetch_add((done.kept > 0).into(), Ordering::SeqCst);
                again.fetch_add(done.again, Ordering::SeqCst);
            };
            scope.spawn(move || {
                let state = server(seed * 7919);
                let mut round = seed;
                while faults.load(Ordering::SeqCst) < most {
                    round += 1;
                    let known = [Known::Nothing, Known::Sum, Known::Leaves][round as usize % 3];
                    state.hides.store(known != Known::Nothing, Ordering::SeqCst);
                    state.rate.store(2 + round % 9, Ordering::SeqCst);
                    state.is_honest.store(false, Ordering::SeqCst);
                    let folder = tempfile::tempdir().unwrap();
                    let path = folder.path().join("m.zt");
                    let mut is_there = false;
                    for _ in 0..2 {
                        fetches.fetch_add(1, Ordering::SeqCst);
                        match fetch(&state, &path, known) {
                            Ok(done) => {
                                note(&done);
                                is_there = true;
                                break;
                            }
                            Err(_) => {
                                failed.fetch_add(1, Ordering::SeqCst);
                                assert!(!path.exists(), "seed {seed}, round {round}");
                            }
                        }
                    }
                    if !is_there {
                        state.is_honest.store(true, Ordering::SeqCst);
                        let fetched = fetch(&state, &path, known);
                        let fail = |why| panic!("seed {seed}, round {round}: {why}");
                        note(&fetched.unwrap_or_else(fail));
                    }
                    let is_right = fs::read(&path).unwrap() == **state.bytes;
                    assert!(is_right, "seed {seed}, round {round}");
                    let left = fs::read_dir(folder.path()).unwrap().count();
                    assert_eq!(left, 1, "seed {seed}, round {round}");
                    let told = std::mem::take(&mut *state.told.lock().unwrap());
                    for (fault, count) in told {
                        faults.fetch_add(count, Ordering::SeqCst);
                        *all.lock().unwrap().entry(fault).or_default() += count;
                    }
                }
            });
        }
    });
    let (fetches, failed) = (fetches.into_inner(), failed.into_inner());
    println!("{} faults, {fetches} fetches, {failed} of them failed", faults.into_inner());
    let (kept, again) = (kept.into_inner(), again.into_inner());
    println!(
        "{kept} fetches went on from an earlier one, {again} leaves came right the second time"
    );
    println!("{:?}", all.into_inner().unwrap());
}
