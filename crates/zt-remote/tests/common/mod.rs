//! A server of the tests: it serves objects in memory or passes requests on to another server, counts,
//! and misbehaves on request.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap is the failure of the test")]

pub(crate) mod http;
mod memory;

use std::collections::{HashMap, VecDeque};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use http::{Request, Response};
use memory::Objects;
use zt::{Dense, OpenOptions, WriteOptions};
use zt_remote::{Remote, RemoteOptions};

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The answer is this status, and nothing else. The request has no effect.
    Status(u16),
    /// The connection ends before any answer. The request has no effect.
    Hangup,
    /// The connection ends before any answer. The request had its effect.
    Lost,
    /// The connection ends after half of the body.
    Cut,
    /// Half of the body comes as if it were all.
    Short,
    /// More bytes come than belong to the body.
    Long,
    /// The whole object comes, with status 200.
    IgnoresRange,
    /// Other bytes come than were asked for, and the answer says so.
    OtherRange,
    /// The object was replaced by one of the same length before this request.
    Replaced,
    /// The object was replaced by a longer one.
    Grown,
    /// The answer has the tag of another version.
    OtherTag,
    /// The answer takes this many milliseconds.
    Late(u64),
    /// No answer comes, and the connection stays.
    Silent,
    /// The object was replaced by one of the same length, and the answer has no tag.
    ReplacedWithoutTag,
    /// The answer has no length: its body comes in chunks.
    Chunked,
    /// The answer sends the client to the same path of the server at this port.
    Redirect(u16),
    /// The request is refused with a long text.
    Wordy,
}

/// Each fault that a request can have.
pub(crate) const FAULTS: &[Fault] = &[
    Fault::Status(500),
    Fault::Status(503),
    Fault::Status(429),
    Fault::Status(403),
    Fault::Status(404),
    Fault::Hangup,
    Fault::Lost,
    Fault::Cut,
    Fault::Short,
    Fault::Long,
    Fault::IgnoresRange,
    Fault::OtherRange,
    Fault::Replaced,
    Fault::Grown,
    Fault::OtherTag,
    Fault::Late(50),
    Fault::ReplacedWithoutTag,
    Fault::Chunked,
];

#[derive(Debug, Default)]
struct State {
    objects: Objects,
    /// The server that answers, if this one only passes requests on.
    origin: Option<u16>,
    /// Where requests for files of a repository are redirected to.
    site: Option<String>,
    requests: Vec<Request>,
    bytes: u64,
    /// Faults by the number of the request.
    faults: HashMap<usize, Fault>,
    /// The fault of one request for an object, by its name and the number among the requests for it.
    fault_of: Option<(String, usize, Fault)>,
    delay: Duration,
    /// Requests whose answer was not sent yet.
    under_way: usize,
    /// No request is answered before this many are under way; once they are, the next number counts.
    together: VecDeque<usize>,
    /// The request of this number is answered when it is resumed.
    pause_at: Option<usize>,
    is_paused: bool,
}

/// A server on the loopback address. It ends with the process.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

impl State {
    /// Whether the answer to the request of this number is held back.
    fn is_held(&mut self, number: usize) -> bool {
        self.is_paused = self.pause_at == Some(number) || self.is_paused && self.pause_at.is_some();
        self.pause_at == Some(number)
    }

    /// What goes wrong with the next request.
    fn fault(&self, request: &Request) -> Option<Fault> {
        let of_name = |(name, number, fault): &(String, usize, Fault)| {
            let is_for_it = |request: &&Request| request.name() == name;
            let before = self.requests.iter().filter(is_for_it).count();
            (is_for_it(&request) && before == *number).then_some(*fault)
        };
        let fault = self.faults.get(&self.requests.len()).copied();
        fault.or_else(|| self.fault_of.as_ref().and_then(of_name))
    }
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

    pub(crate) fn with(name: &str, bytes: impl Into<Arc<Vec<u8>>>) -> Self {
        let server = Self::new();
        server.put(name, bytes);
        server
    }

    /// One that passes requests on to the server at `port`.
    pub(crate) fn before(port: u16) -> Self {
        let server = Self::new();
        server.state.lock().unwrap().origin = Some(port);
        server
    }

    /// One that redirects to `site`, as the Hub does.
    pub(crate) fn redirecting(site: &Server) -> Self {
        let server = Self::new();
        server.state.lock().unwrap().site = Some(site.url(""));
        server
    }

    pub(crate) fn put(&self, name: &str, bytes: impl Into<Arc<Vec<u8>>>) {
        self.state.lock().unwrap().objects.put(name, bytes);
    }

    pub(crate) fn object(&self, name: &str) -> Option<Vec<u8>> {
        self.state.lock().unwrap().objects.get(name)
    }

    /// The name of each object that was written with one request, in order.
    pub(crate) fn puts(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let puts = state
            .requests
            .iter()
            .filter(|request| request.method == "PUT" && request.parameter("uploadId").is_none());
        puts.map(|request| request.name().to_owned()).collect()
    }

    /// The names of all objects, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        self.state.lock().unwrap().objects.names()
    }

    /// Uploads that were begun, and neither completed nor cancelled.
    pub(crate) fn uploads(&self) -> usize {
        self.state.lock().unwrap().objects.uploads()
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

    /// Sets what goes wrong with the request of this number among all that are for the object `name`.
    pub(crate) fn fail_of(&self, name: &str, number: usize, fault: Fault) {
        self.state.lock().unwrap().fault_of = Some((name.to_owned(), number, fault));
    }

    pub(crate) fn delay(&self, delay: Duration) {
        self.state.lock().unwrap().delay = delay;
    }

    /// Holds all answers back until this many requests are under way, for half a minute at most.
    pub(crate) fn hold(&self, requests: usize) {
        self.hold_rounds(&[requests]);
    }

    /// The same for several rounds of requests, one after the other.
    pub(crate) fn hold_rounds(&self, requests: &[usize]) {
        self.state.lock().unwrap().together = requests.iter().copied().collect();
    }

    /// Whether as many requests were under way as [`Server::hold`] demands.
    pub(crate) fn is_released(&self) -> bool {
        self.state.lock().unwrap().together.is_empty()
    }

    /// Holds back the answer to the request of this number until [`Server::resume`].
    pub(crate) fn pause_at(&self, number: usize) {
        self.state.lock().unwrap().pause_at = Some(number);
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.state.lock().unwrap().is_paused
    }

    pub(crate) fn resume(&self) {
        self.state.lock().unwrap().pause_at = None;
    }

    /// The range of each request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        let range = |request: &Request| request.headers.get("range").unwrap_or("").to_owned();
        let state = self.state.lock().unwrap();
        state.requests.iter().map(range).collect()
    }

    /// The values of a header of the requests so far.
    pub(crate) fn headers(&self, name: &str) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let value = |request: &Request| request.headers.get(name).map(str::to_owned);
        state.requests.iter().filter_map(value).collect()
    }

    /// Whether the request of this number began an upload.
    pub(crate) fn begins(&self, number: usize) -> bool {
        let state = self.state.lock().unwrap();
        let request = state.requests.get(number);
        request.is_some_and(|request| {
            request.method == "POST" && request.parameter("uploads").is_some()
        })
    }

    /// Bytes of all bodies so far that were sent.
    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().unwrap().bytes
    }
}

/// Options that reach the server, and give up soon.
pub(crate) fn options() -> RemoteOptions {
    RemoteOptions::new()
        .end_first(["zt"])
        .allow_http(true)
        .retries(2)
        .timeout(Duration::from_secs(5))
}

/// The same for the server at `port` as a store of S3.
pub(crate) fn s3_options(port: u16) -> RemoteOptions {
    options()
        .setting("aws_endpoint", format!("http://127.0.0.1:{port}"))
        .setting("aws_region", "us-east-1")
        .setting("aws_access_key_id", "tests")
        .setting("aws_secret_access_key", "tests")
}

/// The result of `call`. It must not take longer than a minute.
pub(crate) fn limited<T: Send + 'static>(
    what: &str,
    call: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (send, receive) = channel();
    thread::spawn(move || send.send(call()));
    match receive.recv_timeout(Duration::from_secs(60)) {
        Ok(value) => value,
        Err(why) => panic!("{what}: hangs or failed: {why}"),
    }
}

/// Whether this is the process of its own for the test `name`.
pub(crate) fn is_within(name: &str) -> bool {
    std::env::var_os("ZT_WITHIN").is_some_and(|within| within == name)
}

/// Runs the test `name` in a process of its own, with these variables.
pub(crate) fn run_within(name: &str, variables: &[(&str, &str)]) {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", name, "--include-ignored", "--nocapture"]);
    // Settings of the machine must not reach the test.
    let ours = ["AWS_", "GOOGLE_", "AZURE_", "HF_"];
    for (variable, _) in std::env::vars() {
        if ours.iter().any(|prefix| variable.starts_with(prefix)) {
            again.env_remove(variable);
        }
    }
    again.env("ZT_WITHIN", name).envs(variables.iter().copied());
    assert!(again.status().unwrap().success(), "{name}");
}

/// A call of this crate, judged by its value.
pub(crate) type Call = (&'static str, fn(Remote) -> zt::Result<()>);

/// Each way to read. A value that is not of `model` is a panic.
pub(crate) const CALLS: &[Call] = &[
    ("open and list", |remote| {
        let file = OpenOptions::new().open_source(remote)?;
        assert_eq!(file.names().count(), 21);
        Ok(())
    }),
    ("tensor", |remote| {
        let file = OpenOptions::new().open_source(remote)?;
        let values = file.tensor("matrix")?.to_vec::<f32>()?;
        assert!(values == matrix());
        Ok(())
    }),
    ("rows", |remote| {
        let file = OpenOptions::new().open_source(remote)?;
        let rows = [zt::Slice::from(100u64..110)];
        let rows = file.tensor("matrix")?.slice(&rows)?;
        assert!(rows.as_slice::<f32>()?[..] == matrix()[100 * 1024..110 * 1024]);
        Ok(())
    }),
    ("read_many", |remote| {
        let file = OpenOptions::new().open_source(remote)?;
        let tensors: Vec<_> = file.tensors().flatten().map(|tensor| (tensor, "data")).collect();
        for (values, (tensor, _)) in file.read_many(&tensors).into_iter().zip(&tensors) {
            let values = values?;
            let values = values.as_slice::<f32>()?;
            match tensor.name().strip_prefix("bias.") {
                Some(layer) => assert!(values[..] == [layer.parse::<f32>().unwrap(); 256]),
                None => assert!(values[..] == *matrix()),
            }
        }
        Ok(())
    }),
    ("verify", |remote| {
        let file = OpenOptions::new().open_source(remote)?;
        let report = file.verify(&zt::VerifyOptions::new())?;
        match report.problems.into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }),
];

/// A file of a compressed matrix and 20 vectors, of about 1 MiB.
pub(crate) fn model() -> Vec<u8> {
    let mut bytes = Vec::new();
    write_model(&mut bytes).unwrap();
    bytes
}

pub(crate) fn write_model(to: impl Write + Send) -> zt::Result<()> {
    let mut writer = WriteOptions::new().zstd(1).to_writer(to)?;
    writer.add("matrix", &Dense::from_slice(&[256, 1024], matrix())?)?;
    for layer in 0u8..20 {
        let values = [f32::from(layer); 256];
        writer.add(&format!("bias.{layer}"), &Dense::from_slice(&[256], &values)?)?;
    }
    writer.finish()?;
    Ok(())
}

/// Numbers that zstd cannot make much shorter.
fn matrix() -> &'static [f32] {
    static MATRIX: OnceLock<Vec<f32>> = OnceLock::new();
    MATRIX.get_or_init(|| {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from_bits((state >> 9) | 0x3f80_0000)
        };
        (0..256 * 1024).map(|_| next()).collect()
    })
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    // An answer waits for nothing, as on a real server.
    let _ = stream.set_nodelay(true);
    while let Some(request) = Request::read(&mut lines) {
        wait_for_others(state);
        let answered = answer(&mut stream, state, request);
        state.lock().unwrap().under_way -= 1;
        let Some(()) = answered else {
            return;
        };
    }
}

fn wait_for_others(state: &Mutex<State>) {
    let begin = Instant::now();
    let mut held = state.lock().unwrap();
    held.under_way += 1;
    let rounds = held.together.len();
    if held.together.front().is_some_and(|together| held.under_way >= *together) {
        held.together.pop_front();
    }
    while held.together.len() == rounds && rounds > 0 && begin.elapsed() < Duration::from_secs(30) {
        drop(held);
        thread::sleep(Duration::from_millis(1));
        held = state.lock().unwrap();
    }
}

/// `None` if the connection ends.
fn answer(stream: &mut TcpStream, state: &Mutex<State>, mut request: Request) -> Option<()> {
    let (number, fault, origin, delay) = {
        let mut state = state.lock().unwrap();
        let fault = state.fault(&request);
        let body = std::mem::take(&mut request.body);
        state.requests.push(request.clone());
        request.body = body;
        let number = state.requests.len() - 1;
        (number, fault, state.origin, state.delay)
    };
    thread::sleep(delay);
    while state.lock().unwrap().is_held(number) {
        thread::sleep(Duration::from_millis(1));
    }
    match fault {
        Some(Fault::Hangup) => return None,
        Some(Fault::Silent) => {
            // Until the client closes the connection.
            let _ = std::io::Read::read(stream, &mut [0]);
            return None;
        }
        Some(Fault::Redirect(port)) => {
            let there = format!("http://127.0.0.1:{port}{}", request.target);
            let response = Response::new(307, "").with("Location", there);
            return response.write(stream, 0).ok();
        }
        Some(Fault::Wordy) => {
            let response = Response::new(400, vec![b'w'; 1 << 20]);
            return response.write(stream, 1 << 20).ok();
        }
        Some(Fault::Status(status)) => {
            return Response::new(status, "").write(stream, 0).ok();
        }
        Some(Fault::Late(millis)) => thread::sleep(Duration::from_millis(millis)),
        Some(Fault::IgnoresRange) => request.headers.remove("range"),
        Some(Fault::OtherRange) => {
            if let Some(range) = request.range(usize::MAX) {
                let end = range.start.saturating_add(range.len() / 2);
                let other = format!("bytes={}-{end}", range.start);
                request.headers.set("Range", other);
            }
        }
        _ => {}
    }
    let mut response = match origin {
        Some(port) => Response::from_server(port, &request).ok()?,
        None => state.lock().unwrap().answer(&mut request, fault),
    };
    match fault {
        Some(Fault::OtherTag) => response.headers.set("ETag", "\"other\""),
        Some(Fault::ReplacedWithoutTag) => response.headers.remove("ETag"),
        Some(Fault::Chunked) if request.method == "GET" => {
            state.lock().unwrap().bytes += response.body().len() as u64;
            return response.write_in_chunks(stream).ok();
        }
        _ => {}
    }
    let body = match request.method == "HEAD" {
        true => 0,
        false => response.body().len(),
    };
    let sent = match fault {
        Some(Fault::Lost) => return None,
        Some(Fault::Cut) => body / 2,
        Some(Fault::Short) if body > 0 => {
            response.set_body(response.body()[..body / 2].to_vec());
            body / 2
        }
        Some(Fault::Long) if body > 0 => {
            response.set_body([response.body(), b"and more"].concat());
            body + 8
        }
        _ => body,
    };
    state.lock().unwrap().bytes += sent as u64;
    response.write(stream, sent).ok()?;
    (fault != Some(Fault::Cut)).then_some(())
}

impl State {
    fn answer(&mut self, request: &mut Request, fault: Option<Fault>) -> Response {
        if let Some(site) = &self.site
            && request.target.contains("/resolve/")
        {
            let signed = format!("{site}{}?Signature=secret", request.name());
            return Response::new(302, "").with("Location", signed);
        }
        match fault {
            Some(Fault::Replaced | Fault::ReplacedWithoutTag) => {
                let change = |bytes: &mut Vec<u8>| bytes.iter_mut().for_each(|byte| *byte ^= 1);
                self.objects.replace(request.name(), change);
                if fault == Some(Fault::ReplacedWithoutTag) {
                    request.headers.remove("if-match");
                }
            }
            Some(Fault::Grown) => self.objects.replace(request.name(), |bytes| bytes.push(0)),
            _ => {}
        }
        self.objects.answer(request)
    }
}
