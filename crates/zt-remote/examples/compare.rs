//! Times of reading and writing a model on a store, beside other programs. It writes `docs/remote.md`.
//!
//! ```text
//! cargo run --release --example compare -- [--mib 1024] [--runs 3] [--only HOW,HOW] [--python PYTHON] [--zt ZT] [--write FILE]
//! ```
//!
//! With `--zt`, the commands of that program are measured, too; `--only program` measures them alone.
//!
//! Each run is a process of its own, which prints its seconds and the most memory that it had. The store
//! is the server of the tests: it answers after a delay, from memory.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a benchmark has no users"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::collections::VecDeque;
use std::hint::black_box;
use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs};

use common::{Server, s3_options};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt};
use zt::{Dense, OpenOptions, Slice, Verify, WriteOptions};
use zt_remote::{Remote, Upload};

const MIB: usize = 1 << 20;

/// The length of a tensor, and of a request.
const TENSOR: usize = 16 * MIB;
const PART: usize = 8 * MIB;

/// Requests at a time.
const AT_ONCE: usize = 16;

/// Programs of others: a name for the table, and what `PEERS` calls it.
const PEERS: &[(&str, &str)] = &[
    ("download to a file, then safetensors", "download"),
    ("fsspec, then safetensors", "fsspec"),
    ("obstore, then safetensors", "obstore"),
    ("runai-model-streamer", "runai"),
];

const PEERS_PY: &str = r#"
import os, re, sys, tempfile, time
how, port, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
url = f'http://127.0.0.1:{port}/models/m.safetensors'
if how == 'runai':
    os.environ.update(AWS_ACCESS_KEY_ID='t', AWS_SECRET_ACCESS_KEY='t', AWS_REGION='us-east-1',
        AWS_ENDPOINT_URL=f'http://127.0.0.1:{port}', AWS_EC2_METADATA_DISABLED='true',
        RUNAI_STREAMER_S3_USE_VIRTUAL_ADDRESSING='0', RUNAI_STREAMER_MEMORY_LIMIT='-1')
    from runai_model_streamer import SafetensorsStreamer
else:
    import fsspec, fsspec.implementations.http, numpy, obstore, requests, safetensors.numpy
begin = time.perf_counter()
if how == 'download':
    with tempfile.NamedTemporaryFile(suffix='.safetensors') as file:
        with requests.get(url, stream=True) as answer:
            for chunk in answer.iter_content(10 << 20):
                file.write(chunk)
        file.flush()
        values = safetensors.numpy.load_file(file.name)
elif how == 'fsspec':
    with fsspec.open(url, block_size=8 << 20) as file:
        values = safetensors.numpy.load(file.read())
elif how == 'obstore':
    from obstore.store import S3Store
    store = S3Store('models', endpoint=f'http://127.0.0.1:{port}', region='us-east-1',
        access_key_id='t', secret_access_key='t', client_options={'allow_http': True})
    length = obstore.head(store, 'm.safetensors')['size']
    from concurrent.futures import ThreadPoolExecutor
    def part(at):
        return obstore.get_range(store, 'm.safetensors', start=at, end=min(at + (8 << 20), length))
    with ThreadPoolExecutor(16) as pool:
        whole = b''.join(map(bytes, pool.map(part, range(0, length, 8 << 20))))
    values = safetensors.numpy.load(whole)
else:
    with SafetensorsStreamer() as streamer:
        streamer.stream_file('s3://models/m.safetensors')
        values = {name: tensor.clone() for name, tensor in streamer.get_tensors()}
seconds = time.perf_counter() - begin
assert sum(value.nbytes for value in values.values()) == size
# Not what getrusage says: that begins with the memory of the process before it ran this program.
print(seconds, int(re.search(r'VmHWM:\s*(\d+)', open('/proc/self/status').read())[1]) * 1024)
"#;

/// How the page begins.
const HEAD: &str = "# Remote files

How long `zt-remote` takes to read and to write a model on a store, beside other programs. The tables are written by
`cargo run --release -p zt-remote --example compare -- --python PYTHON --write docs/remote.md`.

The store is the server of our tests: it speaks HTTP and the protocol of S3, answers after a delay, and holds objects in
memory. It runs on the same cores as the programs, so the figures compare programs. They do not predict a real network.

Each run is a process of its own. Before each, twice the memory of the values is touched and freed, because a hypervisor
takes back memory that is not used. `zt-remote` checks the digest of every tensor while it reads, unless the name says
otherwise. The others check nothing. `zt-remote` reads values into large pages, as `zt` and the Python package do.
They read the same values from a safetensors file. Memory is the most that the process had, with Python and its modules,
less the values that it read. A quarter of a tensor is verified by the digests of its chunks of 1 MiB. The quarters are read
one after the other.
";

const VERSIONS_PY: &str = "
from importlib.metadata import version
for name in 'requests', 'fsspec', 'safetensors', 'obstore', 'runai-model-streamer':
    print(',', name, version(name), end='')
";

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("child") => child(&arguments[1..]),
        _ => compare(&arguments),
    }
}

fn option<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.get(at + 1).map(String::as_str)
}

/// The values of one tensor: no two are alike, and none can be compressed.
fn values(tensor: usize) -> Vec<f32> {
    let mut state = tensor as u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits((state >> 9) | 0x3f80_0000)
    };
    (0..TENSOR / 4).map(|_| next()).collect()
}

fn write_zt(to: impl Write + Send, tensors: usize) {
    let mut writer = WriteOptions::new().to_writer(to).unwrap();
    for tensor in 0..tensors {
        let values = values(tensor);
        let dense = Dense::from_slice(&[(TENSOR / 4) as u64], &values).unwrap();
        writer.add(&format!("layers.{tensor}"), &dense).unwrap();
    }
    writer.finish().unwrap();
}

fn safetensors(tensors: usize) -> Vec<u8> {
    let entries: Vec<String> = (0..tensors)
        .map(|tensor| {
            let (from, to) = (tensor * TENSOR, (tensor + 1) * TENSOR);
            let columns = TENSOR / 4 / 2048;
            format!(
                "\"layers.{tensor}\":{{\"dtype\":\"F32\",\"shape\":[2048,{columns}],\"data_offsets\":[{from},{to}]}}"
            )
        })
        .collect();
    let mut header = format!("{{{}}}", entries.join(","));
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    for tensor in 0..tensors {
        for value in values(tensor) {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
    }
    bytes
}

/// What one process did.
struct Run {
    seconds: f64,
    memory: f64,
}

fn compare(arguments: &[String]) {
    let mib: usize = option(arguments, "--mib").unwrap_or("1024").parse().unwrap();
    let runs: usize = option(arguments, "--runs").unwrap_or("3").parse().unwrap();
    let python = option(arguments, "--python");
    let tensors = mib * MIB / TENSOR;
    let server = Server::new();
    let mut bytes = Vec::with_capacity((mib + 1) * MIB);
    write_zt(&mut bytes, tensors);
    server.put("m.zt", bytes);
    server.put("m.safetensors", safetensors(tensors));

    let mut ours = vec![
        ("zt-remote, verified", "read"),
        ("zt-remote, not verified", "read-unverified"),
        ("object_store, ranges in parallel", "bare"),
        ("zt-remote, written", "write"),
        ("object_store, multipart upload", "bare-write"),
        ("zt-remote, a quarter of each tensor, verified", "slices"),
        ("zt-remote, a quarter of each tensor, not verified", "slices-unverified"),
    ];
    if python.is_some() {
        ours.extend(PEERS);
    }
    if let Some(only) = option(arguments, "--only") {
        ours.retain(|(_, how)| only.split(',').any(|one| one == *how));
    }
    let mut text = conditions(mib, runs, python);
    let titles = [(20, "20 ms a request"), (0, "Loopback")];
    for (delay, title) in titles.into_iter().filter(|_| !ours.is_empty()) {
        server.delay(Duration::from_millis(delay));
        text.push_str(&format!(
            "\n## {title}\n\n| program | seconds: median (least to most) | MiB/s | memory beside the values, MiB |\n\
             | --- | --- | --- | --- |\n"
        ));
        let mut found: Vec<Vec<Run>> = ours.iter().map(|_| Vec::new()).collect();
        // One after the other in each turn, so that all have the same machine. Every other turn goes backwards:
        // none always follows the program that leaves the most behind.
        for turn in 0..runs {
            let mut turns: Vec<_> = ours.iter().zip(&mut found).collect();
            if turn % 2 == 1 {
                turns.reverse();
            }
            for ((_, how), found) in turns {
                let is_peer = PEERS.iter().any(|(_, peer)| peer == how);
                warm(2 * tensors * TENSOR);
                let port = server.port.to_string();
                let size = (tensors * TENSOR).to_string();
                let output = match python.filter(|_| is_peer) {
                    Some(python) => {
                        Command::new(python).args(["-c", PEERS_PY, how, &port, &size]).output()
                    }
                    None => Command::new(env::current_exe().unwrap())
                        .args(["child", how, &port, &size])
                        .output(),
                };
                let output = output.unwrap();
                let printed = String::from_utf8_lossy(&output.stdout).into_owned();
                let numbers: Vec<f64> =
                    printed.split_whitespace().filter_map(|n| n.parse().ok()).collect();
                match numbers[..] {
                    [seconds, memory] => found.push(Run { seconds, memory }),
                    _ => eprintln!("{how}: {}", String::from_utf8_lossy(&output.stderr)),
                }
                eprintln!("{title} {how}: {printed}");
            }
        }
        for ((name, how), found) in ours.iter().zip(&mut found) {
            text.push_str(&row(name, how, found, mib));
        }
    }
    if let Some(zt) = option(arguments, "--zt") {
        text.push_str(&program(zt, runs));
        text.push_str(&models(zt, runs, mib));
    }
    match option(arguments, "--write") {
        Some(path) => fs::write(path, format!("{HEAD}{text}")).unwrap(),
        None => print!("{text}"),
    }
}

/// Commands of the program: `URL` is the file, `LOCAL` a copy on the disk, `OUT` a path in an empty folder.
const COMMANDS: &[&str] = &[
    "ls URL",
    "show URL layers.0",
    "stats URL",
    "hash URL",
    "verify URL",
    "diff URL LOCAL",
    "cat URL layers.0",
    "extract URL -o OUT",
    "convert URL OUT.zt",
    "convert URL OUT.zt --planes",
    "merge URL OUT.gguf",
    "quantize URL OUT.zt",
    "split URL -o OUT --max-shard-size 8MiB",
];

/// A table of the program: requests and bytes of each command on a file of 16 MiB, and its least time at three
/// delays.
fn program(zt: &str, runs: usize) -> String {
    const DELAYS: [u64; 3] = [0, 20, 100];
    let mut text = "\n## The program\n\nCommands on a safetensors file of 16 MiB, with the start of the process: requests and bytes, \
                    and the least\nseconds of all runs at three delays.\n\n\
                    | command | requests | MiB | 0 ms | 20 ms | 100 ms |\n| --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    let bytes = safetensors(1);
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().join("m.safetensors");
    fs::write(&local, &bytes).unwrap();
    let server = Server::new();
    server.put("m.safetensors", bytes.clone());
    server.put("m.zt", bytes);
    let bare = "object_store, ranges in parallel, to a file".to_owned();
    for command in COMMANDS.iter().copied().chain([bare.as_str()]) {
        let (mut counts, mut seconds) = ((0, 0.0), Vec::new());
        for delay in DELAYS {
            server.delay(Duration::from_millis(delay));
            let out = tempfile::tempdir().unwrap();
            let path = |word: &str| {
                let word = word.replace("URL", &server.url("m.safetensors"));
                let word = word.replace("LOCAL", local.to_str().unwrap());
                word.replace("OUT", out.path().join("out").to_str().unwrap())
            };
            let before = (server.requests().len(), server.bytes());
            let least = least(runs, || {
                fs::remove_dir_all(out.path()).unwrap();
                fs::create_dir(out.path()).unwrap();
                if command == bare {
                    return itself("bare-file", server.port, TENSOR);
                }
                let mut child = Command::new(zt);
                child.args(command.split(' ').map(path)).arg("--allow-http");
                child
            });
            let bytes = (server.bytes() - before.1) / runs as u64;
            counts = ((server.requests().len() - before.0) / runs, bytes as f64 / MIB as f64);
            seconds.push(format!("{least:.2}"));
        }
        let (requests, mib) = counts;
        let name = if command == bare { bare.clone() } else { format!("`zt {command}`") };
        text.push_str(&format!("| {name} | {requests} | {mib:.1} | {} |\n", seconds.join(" | ")));
    }
    text
}

/// The least seconds of `runs` programs.
fn least(runs: usize, mut program: impl FnMut() -> Command) -> f64 {
    let run = |_| {
        let mut program = program();
        let begin = Instant::now();
        let output = program.output().unwrap();
        let seconds = begin.elapsed().as_secs_f64();
        assert!(output.status.success(), "{program:?}: {output:?}");
        seconds
    };
    (0..runs).map(run).fold(f64::INFINITY, f64::min)
}

/// This program, as a child that does one thing.
fn itself(how: &str, port: u16, size: usize) -> Command {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["child", how, &port.to_string(), &size.to_string()]);
    child
}

/// Kinds of files on the store: a name for the table, what `zt convert` makes the file with, and what it makes of it.
const MODELS: &[(&str, &str, &str)] = &[
    ("safetensors", "m.safetensors", "out.zt"),
    ("GGUF", "m.gguf", "out.zt"),
    ("npz", "m.npz", "out.zt"),
    (".zt with zstd", "m.zt --zstd", "out.zt"),
    (".zt with planes", "m.zt --planes", "out.zt"),
    (".zt with planes, decoded", "m.zt --planes", "out.safetensors"),
];

/// A table of `zt convert` with whole models, from the store to a file and back to the store. Beside it, object_store
/// moves the same bytes, which it does not look at.
fn models(zt: &str, runs: usize, mib: usize) -> String {
    const DELAYS: [u64; 3] = [0, 20, 100];
    let mut text = format!(
        "\n## Models of {mib} MiB\n\n`zt convert` from the store, with the start of the process, and object_store, which moves the same \
         bytes in\nparallel: the least seconds of {runs} runs at three delays, as zt / object_store.\n\n\
         | from | to | MiB | 0 ms | 20 ms | 100 ms |\n| --- | --- | --- | --- | --- | --- |\n"
    );
    let server = Server::new();
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun.safetensors");
    fs::write(&begun, safetensors(mib * MIB / TENSOR)).unwrap();
    for (kind, made, target) in MODELS {
        let mut words = made.split(' ');
        let source = folder.path().join(words.next().unwrap());
        let make = || {
            let mut zt = Command::new(zt);
            zt.args(["convert", "--force"]).args(words.clone());
            zt.arg(&begun).arg(&source);
            zt
        };
        least(1, make);
        let bytes = fs::read(&source).unwrap();
        fs::remove_file(&source).unwrap();
        let size = bytes.len();
        let name = source.file_name().unwrap().to_str().unwrap();
        server.put("m.zt", bytes.clone());
        server.put(name, bytes);
        for (to, how) in [("a file", "bare-file"), ("the store", "bare-copy")] {
            let mut cells = Vec::new();
            for delay in DELAYS {
                server.delay(Duration::from_millis(delay));
                let convert = || {
                    warm(2 * size);
                    let mut program = Command::new(zt);
                    program.args(["convert", "--force", "--allow-http"]);
                    program.arg(format!("s3://models/{name}"));
                    match to {
                        "a file" => program.arg(folder.path().join(target)),
                        _ => program.arg(format!("s3://models/new.{target}")),
                    };
                    program.env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", server.port));
                    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
                        program.env(name, "tests");
                    }
                    program.env("AWS_REGION", "us-east-1");
                    program
                };
                let (mut ours, mut bare) = (f64::INFINITY, f64::INFINITY);
                // In turn, so that both have the same machine.
                for _ in 0..runs {
                    ours = ours.min(least(1, convert));
                    warm(2 * size);
                    bare = bare.min(least(1, || itself(how, server.port, size)));
                }
                cells.push(format!("{ours:.2} / {bare:.2} ({:.2})", bare / ours));
            }
            let mib = size / MIB;
            text.push_str(&format!("| {kind} | {to} | {mib} | {} |\n", cells.join(" | ")));
            eprintln!("{}", text.lines().last().unwrap_or_default());
        }
    }
    text
}

/// Touches so much memory, in large pages where there are some, and frees it. A hypervisor takes back memory
/// that is free for some seconds, and the next program would wait until it has it again.
fn warm(byte_len: usize) {
    let mut memory = zt::Buffer::try_zeroed(byte_len as u64).unwrap();
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
    black_box(memory);
}

/// What was measured, on what, and the versions of the others.
fn conditions(mib: usize, runs: usize, python: Option<&str>) -> String {
    let cores = std::thread::available_parallelism().unwrap();
    let lock =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
    let (_, rest) = lock.split_once("name = \"object_store\"\nversion = \"").unwrap();
    let mut versions = format!("object_store {}", rest.split_once('"').unwrap().0);
    if let Some(python) = python {
        let output = Command::new(python).args(["-c", VERSIONS_PY]).output();
        versions.push_str(&String::from_utf8_lossy(&output.unwrap().stdout));
    }
    let tensors = mib * MIB / TENSOR;
    format!(
        "\n## Conditions\n\n{mib} MiB in {tensors} tensors, {runs} runs of each program, {cores} cores. zt {}, {}.\n",
        env!("CARGO_PKG_VERSION"),
        versions.trim_end(),
    )
}

fn row(name: &str, how: &str, runs: &mut [Run], mib: usize) -> String {
    let mib = match how.starts_with("slices") {
        true => mib / 4,
        false => mib,
    };
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let (Some(least), Some(middle), Some(most)) =
        (runs.first(), runs.get(runs.len() / 2), runs.last())
    else {
        return format!("| {name} | failed | | |\n");
    };
    let values = if how.contains("write") { 0.0 } else { mib as f64 };
    let memory = runs.iter().map(|run| run.memory / MIB as f64 - values);
    format!(
        "| {name} | {:.2} ({:.2} to {:.2}) | {:.0} | {:.0} |\n",
        middle.seconds,
        least.seconds,
        most.seconds,
        mib as f64 / middle.seconds,
        memory.fold(0.0, f64::max),
    )
}

/// The most memory that this process had.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

fn child(arguments: &[String]) {
    let [how, port, size] = arguments else { panic!("child HOW PORT SIZE") };
    let (port, size): (u16, usize) = (port.parse().unwrap(), size.parse().unwrap());
    let begin = Instant::now();
    match how.as_str() {
        "read" => read(port, size, Verify::OnRead),
        "read-unverified" => read(port, size, Verify::Never),
        "slices" => slices(port, size, Verify::OnRead),
        "slices-unverified" => slices(port, size, Verify::Never),
        "write" => write(port, size / TENSOR),
        "bare" => drop(bare(port, size)),
        "bare-file" => {
            let mut file = tempfile::tempfile().unwrap();
            let mut parts = bare(port, size);
            parts.sort_by_key(|(at, _)| *at);
            for (_, part) in parts {
                file.write_all(&part).unwrap();
            }
        }
        "bare-copy" => bare_copy(port, size),
        _ => bare_write(port, size / PART),
    }
    println!("{} {}", begin.elapsed().as_secs_f64(), peak());
}

fn open(port: u16, verify: Verify) -> zt::File {
    let remote = Remote::open("s3://models/m.zt", &s3_options(port)).unwrap();
    let opened = OpenOptions::new().verify(verify).open_source(remote);
    opened.unwrap()
}

/// The second quarter of each tensor, one after the other.
fn slices(port: u16, size: usize, verify: Verify) {
    let file = open(port, verify);
    let quarter = (TENSOR / 4 / 4) as u64;
    let quarter = [Slice::from(quarter..2 * quarter)];
    let parts: Vec<_> =
        file.tensors().map(|tensor| tensor.unwrap().slice(&quarter).unwrap()).collect();
    let len: usize = parts.iter().map(|part| part.as_slice::<f32>().unwrap().len() * 4).sum();
    assert_eq!(len, size / 4);
}

fn read(port: u16, size: usize, verify: Verify) {
    let file = open(port, verify);
    let tensors: Vec<_> = file.tensors().map(|tensor| (tensor.unwrap(), "data")).collect();
    let values: Vec<_> = file.read_many(&tensors).into_iter().map(Result::unwrap).collect();
    let len: usize = values.iter().map(|value| value.as_slice::<f32>().unwrap().len() * 4).sum();
    assert_eq!(len, size);
}

fn write(port: u16, tensors: usize) {
    let options = s3_options(port).overwrite(true);
    let mut upload = Upload::create("s3://models/new.zt", &options).unwrap();
    write_zt(&mut upload, tensors);
    upload.finish().unwrap();
}

fn store(port: u16) -> Arc<dyn ObjectStore> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = AmazonS3Builder::new()
        .with_bucket_name("models")
        .with_endpoint(format!("http://127.0.0.1:{port}"))
        .with_region("us-east-1")
        .with_access_key_id("tests")
        .with_secret_access_key("tests")
        .with_client_options(ClientOptions::new().with_allow_http(true).with_timeout_disabled());
    Arc::new(store.build().unwrap())
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(future)
}

/// A download that checks nothing: tasks take one part after the other.
fn bare(port: u16, size: usize) -> Vec<(usize, bytes::Bytes)> {
    let store = store(port);
    let parts = run(async {
        let next = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let (store, next) = (Arc::clone(&store), Arc::clone(&next));
                tokio::spawn(async move {
                    let mut parts = Vec::new();
                    loop {
                        let at = next.fetch_add(PART, Ordering::Relaxed);
                        if at >= size {
                            return parts;
                        }
                        let range = at as u64..(at + PART) as u64;
                        let path = Path::from("m.zt");
                        parts.push((at, store.get_range(&path, range).await.unwrap()));
                    }
                })
            })
            .collect();
        let mut parts = Vec::new();
        for task in tasks {
            parts.extend(task.await.unwrap());
        }
        parts
    });
    assert_eq!(parts.iter().map(|(_, part)| part.len()).sum::<usize>(), size);
    parts
}

/// Downloads parts, and uploads each once it is there.
fn bare_copy(port: u16, size: usize) {
    let store = store(port);
    run(async {
        let mut upload = store.put_multipart(&Path::from("new.bin")).await.unwrap();
        let (mut coming, mut going) = (VecDeque::new(), VecDeque::new());
        let mut starts = (0..size).step_by(PART);
        loop {
            while coming.len() < AT_ONCE
                && let Some(at) = starts.next()
            {
                let (store, range) = (Arc::clone(&store), at as u64..(at + PART).min(size) as u64);
                coming.push_back(tokio::spawn(async move {
                    let part = store.get_range(&Path::from("m.zt"), range).await;
                    part.unwrap()
                }));
            }
            let Some(part) = coming.pop_front() else {
                break;
            };
            let sent = upload.put_part(part.await.unwrap().into());
            going.push_back(tokio::spawn(async move { sent.await.unwrap() }));
            if going.len() == AT_ONCE {
                going.pop_front().unwrap().await.unwrap();
            }
        }
        for part in going {
            part.await.unwrap();
        }
        upload.complete().await.unwrap();
    });
}

/// An upload of the same bytes, which are made in the same way.
fn bare_write(port: u16, parts: usize) {
    let store = store(port);
    run(async {
        let path = Path::from("new.bin");
        let mut upload = store.put_multipart(&path).await.unwrap();
        let mut tasks = VecDeque::new();
        for tensor in 0..parts * PART / TENSOR {
            let bytes: Vec<u8> = values(tensor).into_iter().flat_map(f32::to_le_bytes).collect();
            let bytes = bytes::Bytes::from(bytes);
            for part in 0..TENSOR / PART {
                if tasks.len() == AT_ONCE {
                    let task: tokio::task::JoinHandle<_> = tasks.pop_front().unwrap();
                    task.await.unwrap();
                }
                let part = bytes.slice(part * PART..(part + 1) * PART);
                let sent = upload.put_part(part.into());
                tasks.push_back(tokio::spawn(async move { sent.await.unwrap() }));
            }
        }
        for task in tasks {
            task.await.unwrap();
        }
        upload.complete().await.unwrap();
    });
}
