//! A web server of the tests: it serves one folder of memory, counts, and misbehaves on request.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(
    clippy::unwrap_used,
    reason = "a failed unwrap is the failure of the test"
)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use zt_remote::RemoteOptions;

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The answer is this status, and nothing else.
    Status(u16),
    /// The connection ends after half of the body.
    Cut,
    /// The connection ends before any answer.
    Hangup,
    /// The whole object comes, with status 200.
    IgnoresRange,
    /// Other bytes come than were asked for, and the answer says so.
    OtherRange,
    /// The object was replaced by one of the same length before this request.
    Replaced,
    /// The object was replaced by a longer one.
    Grown,
    /// The answer takes this long.
    Late(u64),
}

#[derive(Debug, Default)]
struct State {
    objects: HashMap<String, (Vec<u8>, u64)>,
    /// The range of each request: its path and `Range` header.
    requests: Vec<(String, String)>,
    bytes: u64,
    /// Faults by the number of the request.
    faults: HashMap<usize, Fault>,
    delay: Duration,
}

/// A server on the loopback address. It ends with the process.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &state));
            }
        });
        Server { port, state }
    }

    pub(crate) fn with(name: &str, bytes: Vec<u8>) -> Self {
        let server = Self::new();
        server.put(name, bytes);
        server
    }

    pub(crate) fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut state = self.state.lock().unwrap();
        let version = state
            .objects
            .get(name)
            .map_or(0, |(_, version)| version + 1);
        state.objects.insert(name.to_owned(), (bytes, version));
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/models/{name}", self.port)
    }

    /// Sets what goes wrong with the request of this number, counted from now on.
    pub(crate) fn fail(&self, number: usize, fault: Fault) {
        let mut state = self.state.lock().unwrap();
        let at = state.requests.len() + number;
        state.faults.insert(at, fault);
    }

    pub(crate) fn delay(&self, delay: Duration) {
        self.state.lock().unwrap().delay = delay;
    }

    /// Requests so far, each with its range.
    pub(crate) fn requests(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        state
            .requests
            .iter()
            .map(|(_, range)| range.clone())
            .collect()
    }

    /// Bytes of all bodies so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().unwrap().bytes
    }
}

/// Options that reach the server, and give up soon.
pub(crate) fn options() -> RemoteOptions {
    RemoteOptions::new()
        .allow_http(true)
        .retries(2)
        .timeout(Duration::from_secs(2))
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some((method, path, range)) = request(&mut lines) {
        let Some(()) = answer(&mut stream, state, &method, &path, &range) else {
            return;
        };
    }
}

/// The method, the name of the object, and the range of the next request.
fn request(lines: &mut impl BufRead) -> Option<(String, String, String)> {
    let mut first = String::new();
    if lines.read_line(&mut first).ok()? == 0 {
        return None;
    }
    let mut words = first.split_whitespace();
    let method = words.next()?.to_owned();
    let name = words.next()?.rsplit('/').next()?.to_owned();
    let name = name.split('?').next()?.to_owned();
    let mut range = String::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        let line = line.trim();
        if line.is_empty() {
            return Some((method, name, range));
        }
        if let Some((key, value)) = line.split_once(':')
            && key.eq_ignore_ascii_case("range")
        {
            range = value.trim().to_owned();
        }
    }
}

/// `None` if the connection ends.
fn answer(
    stream: &mut TcpStream,
    state: &Mutex<State>,
    method: &str,
    name: &str,
    range: &str,
) -> Option<()> {
    let (fault, bytes, version, delay) = {
        let mut state = state.lock().unwrap();
        let number = state.requests.len();
        let fault = state.faults.get(&number).copied();
        state.requests.push((name.to_owned(), range.to_owned()));
        if let Some((bytes, version)) = state.objects.get_mut(name) {
            match fault {
                Some(Fault::Replaced) => {
                    bytes.iter_mut().for_each(|byte| *byte ^= 1);
                    *version += 1;
                }
                Some(Fault::Grown) => {
                    bytes.push(0);
                    *version += 1;
                }
                _ => {}
            }
        }
        let found = state.objects.get(name).cloned();
        let (bytes, version) = found.map_or((None, 0), |(bytes, version)| (Some(bytes), version));
        (fault, bytes, version, state.delay)
    };
    thread::sleep(delay);
    let status = match (fault, &bytes) {
        (Some(Fault::Hangup), _) => return None,
        (Some(Fault::Status(status)), _) => Some(status),
        (_, None) => Some(404),
        _ => None,
    };
    if let Some(Fault::Late(millis)) = fault {
        thread::sleep(Duration::from_millis(millis));
    }
    if let Some(status) = status {
        let head = format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n");
        return stream.write_all(head.as_bytes()).ok();
    }
    let bytes = bytes?;
    let total = bytes.len();
    let mut part = part(range, total);
    if let Some(Fault::OtherRange) = fault {
        part = part.map(|(from, to)| (from, to - (to - from) / 2));
    }
    if range.is_empty() || fault == Some(Fault::IgnoresRange) {
        part = None;
    }
    let (from, to) = part.unwrap_or((0, total));
    let body = &bytes[from..to];
    let status = match part {
        Some(_) => format!(
            "206 Partial\r\nContent-Range: bytes {from}-{}/{total}",
            to.max(1) - 1
        ),
        None => "200 OK".to_owned(),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"{version}\"\r\n\
         Last-Modified: Tue, 24 Nov 2026 10:00:00 GMT\r\n\r\n",
        body.len(),
    );
    stream.write_all(head.as_bytes()).ok()?;
    if method == "HEAD" {
        return Some(());
    }
    let body = match fault {
        Some(Fault::Cut) => &body[..body.len() / 2],
        _ => body,
    };
    stream.write_all(body).ok()?;
    state.lock().unwrap().bytes += body.len() as u64;
    (fault != Some(Fault::Cut)).then_some(())
}

/// The beginning and the end of a range.
fn part(range: &str, total: usize) -> Option<(usize, usize)> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    match (from.parse::<usize>(), to.parse::<usize>()) {
        (Ok(from), Ok(to)) => Some((from.min(total), (to + 1).min(total))),
        (Ok(from), _) => Some((from.min(total), total)),
        (_, Ok(len)) => Some((total.saturating_sub(len), total)),
        _ => None,
    }
}
