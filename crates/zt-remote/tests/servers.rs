//! Servers of others: stores of S3, Azure and Google, and nginx. `cargo xtask test-remote` installs them and
//! says in `ZT_REMOTE_SERVERS` where they are. Each test starts its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a failed unwrap is the failure of the test"
)]

mod common;

use std::env;
use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use common::http::{Headers, Request, Response};
use common::{
    CALLS, FAULTS, Fault, Server, is_within, limited, model, options, run_within, s3_options,
    write_model,
};
use zt_foreign::{Existing, TargetFolder};
use zt_remote::{Remote, RemoteFolder, RemoteOptions, Upload};

const PART: usize = 5 << 20;

/// The key of the account of every Azurite.
const AZURITE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A program that serves on a port. It ends with this value.
struct Running {
    child: Child,
    port: u16,
}

impl Running {
    /// Starts `command`, which is made for a free port, and waits until it answers.
    fn new(command: impl FnOnce(u16) -> Command) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = command(port);
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running { child: quiet.spawn().unwrap(), port };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let waited = begin.elapsed();
            assert!(waited < Duration::from_secs(60), "{command:?} does not answer");
            thread::sleep(Duration::from_millis(50));
        }
        running
    }

    fn moto() -> Self {
        let moto = Self::new(|port| {
            let mut command = Command::new(installed("python/bin/moto_server"));
            command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
            command
        });
        assert_eq!(moto.ask("PUT", "/models", "").status, 200);
        moto
    }

    fn ask(&self, method: &str, target: &str, body: &str) -> Response {
        let mut headers = Headers::default();
        headers.set("Host", format!("127.0.0.1:{}", self.port));
        headers.set("Content-Length", body.len().to_string());
        let request = Request {
            method: method.to_owned(),
            target: target.to_owned(),
            headers,
            body: body.as_bytes().to_vec(),
        };
        Response::from_server(self.port, &request).unwrap()
    }

    /// Uploads that a store of S3 lists.
    fn uploads(&self) -> usize {
        let listed = self.ask("GET", "/models?uploads", "");
        assert_eq!(listed.status, 200);
        let listed = String::from_utf8_lossy(listed.body()).into_owned();
        listed.matches("<Upload>").count()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn installed(path: &str) -> PathBuf {
    let folder = env::var_os("ZT_REMOTE_SERVERS");
    PathBuf::from(folder.expect("run these tests with `cargo xtask test-remote`")).join(path)
}

/// Writes an object of three parts, or drops it.
fn write_long(url: &str, options: &RemoteOptions, finishes: bool) -> zt::Result<()> {
    let mut upload = Upload::create(url, &options.clone().part(PART as u64))?;
    for part in 0..3 {
        upload.write_all(&vec![part; PART])?;
    }
    match finishes {
        true => upload.finish(),
        false => Ok(()),
    }
}

fn is_long(url: &str, options: &RemoteOptions) -> zt::Result<bool> {
    use zt::Source;
    let remote = Remote::open(url, options)?;
    let mut bytes = vec![0; remote.byte_len() as usize];
    remote.read_at(0, &mut bytes)?;
    Ok(bytes == [vec![0; PART], vec![1; PART], vec![2; PART]].concat())
}

/// Writes and reads objects below `folder` in every way.
fn use_store(folder: &str, options: &RemoteOptions) {
    let url = format!("{folder}/m.zt");
    let mut upload = Upload::create(&url, options).unwrap();
    write_model(&mut upload).unwrap();
    assert!(Remote::open(&url, options).is_err());
    upload.finish().unwrap();
    for (_, call) in CALLS {
        call(Remote::open(&url, options).unwrap()).unwrap();
    }
    let error = Upload::create(&url, options).unwrap_err();
    assert_eq!(error.code(), "overwrite");

    let long = format!("{folder}/long.bin");
    write_long(&long, options, false).unwrap();
    assert!(Remote::open(&long, options).is_err());
    write_long(&long, options, true).unwrap();
    assert!(is_long(&long, options).unwrap());

    // A shard of a set, which is removed if the set is not finished.
    let set = RemoteFolder::new(&format!("{folder}/set"), options).unwrap();
    let write = |file: &mut (dyn Write + Send)| Ok(file.write_all(b"shard")?);
    set.write("shard 1.zt", Existing::Refused, &mut { write }).unwrap();
    assert!(set.contains("shard 1.zt").unwrap());
    let error = set.write("shard 1.zt", Existing::Refused, &mut { write }).unwrap_err();
    assert_eq!(error.code(), "overwrite");
    set.remove("shard 1.zt").unwrap();
    assert!(!set.contains("shard 1.zt").unwrap());
    set.remove("shard 1.zt").unwrap();

    // An object that appears between the check and the end.
    let late = format!("{folder}/late.zt");
    let mut upload = Upload::create(&late, options).unwrap();
    upload.write_all(b"ours").unwrap();
    let mut theirs = Upload::create(&late, options).unwrap();
    theirs.write_all(b"theirs").unwrap();
    theirs.finish().unwrap();
    assert_eq!(upload.finish().unwrap_err().code(), "overwrite");

    // An object that is replaced while it is open.
    let file = zt::OpenOptions::new()
        .open_source(Remote::open(&url, &options.clone().part(64 << 10)).unwrap());
    let file = file.unwrap();
    let mut upload = Upload::create(&url, &options.clone().overwrite(true)).unwrap();
    upload.write_all(&vec![0; model().len()]).unwrap();
    upload.finish().unwrap();
    let error = file.tensor("matrix").unwrap().to_vec::<f32>().unwrap_err();
    assert_eq!(error.code(), "changed");
}

#[test]
#[ignore = "needs servers: cargo xtask test-remote"]
fn s3_is_read_and_written() {
    let moto = Running::moto();
    use_store("s3://models/folder", &s3_options(moto.port));
    assert_eq!(moto.uploads(), 0);
}

/// It compares signatures, which moto does not, and keeps parts of an upload as files until the end.
#[test]
#[ignore = "needs servers: cargo xtask test-remote"]
fn a_second_store_of_s3_is_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("models")).unwrap();
    let store = Running::new(|port| {
        let mut command = Command::new(installed("s3s/bin/s3s-fs"));
        command.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--access-key", "tests", "--secret-key", "tests"]);
        command.arg(folder.path());
        command
    });
    use_store("s3://models/folder", &s3_options(store.port));
    let names = fs::read_dir(folder.path()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    let left = names.iter().filter(|name| name.to_string_lossy().contains("upload"));
    assert_eq!(left.count(), 0, "{names:?}");
}

#[test]
#[ignore = "needs servers: cargo xtask test-remote"]
fn azure_is_read_and_written() {
    let name = "azure_is_read_and_written";
    if is_within(name) {
        return use_store("az://models/folder", &options());
    }
    let azurite = Running::new(|port| {
        let mut command = Command::new(installed("npm/node_modules/.bin/azurite-blob"));
        command.args(["--blobPort", &port.to_string(), "--blobHost", "127.0.0.1"]);
        command.args(["--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]);
        command
    });
    // Azure makes a container only for a request that is signed.
    let make = "
import base64, email.utils, hashlib, hmac, sys, urllib.request
port, key = sys.argv[1:]
headers = {'x-ms-date': email.utils.formatdate(usegmt=True), 'x-ms-version': '2021-08-06'}
named = '\\n'.join(f'{name}:{value}' for name, value in headers.items())
path = '/devstoreaccount1/models'
text = 'PUT' + '\\n' * 12 + named + '\\n/devstoreaccount1' + path + '\\nrestype:container'
signature = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
headers['Authorization'] = 'SharedKey devstoreaccount1:' + base64.b64encode(signature).decode()
url = f'http://127.0.0.1:{port}{path}?restype=container'
urllib.request.urlopen(urllib.request.Request(url, method='PUT', headers=headers))
";
    let mut python = Command::new(installed("python/bin/python"));
    python.args(["-c", make, &azurite.port.to_string(), AZURITE_KEY]);
    assert!(python.status().unwrap().success());
    let address = format!("http://127.0.0.1:{}", azurite.port);
    let variables =
        [("AZURITE_BLOB_STORAGE_URL", &*address), ("AZURE_STORAGE_USE_EMULATOR", "true")];
    run_within(name, &variables);
}

/// The emulator takes no uploads by the interface that `object_store` writes with.
#[test]
#[ignore = "needs servers: cargo xtask test-remote"]
fn google_storage_is_read() {
    let gcs = Running::new(|port| {
        let mut command = Command::new(installed("fake-gcs-server"));
        let public = format!("127.0.0.1:{port}");
        command.args(["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1"]);
        command.args(["-port", &port.to_string(), "-public-host", &public]);
        command
    });
    let made = gcs.ask("POST", "/storage/v1/b", "{\"name\": \"models\"}");
    assert_eq!(made.status, 200);
    let target = "/upload/storage/v1/b/models/o?uploadType=media&name=m.zt";
    let mut headers = Headers::default();
    headers.set("Host", format!("127.0.0.1:{}", gcs.port));
    let body = model();
    headers.set("Content-Length", body.len().to_string());
    let request = Request { method: "POST".to_owned(), target: target.to_owned(), headers, body };
    assert_eq!(Response::from_server(gcs.port, &request).unwrap().status, 200);
    let options = options()
        .setting("google_base_url", format!("http://127.0.0.1:{}", gcs.port))
        .setting("google_skip_signature", "true");
    for (_, call) in CALLS {
        call(Remote::open("gs://models/m.zt", &options).unwrap()).unwrap();
    }
}

/// nginx with one folder, in the clear and with TLS, and with redirects to it.
fn nginx(folder: &std::path::Path) -> (Running, u16) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let tls = free.local_addr().unwrap().port();
    drop(free);
    fs::create_dir(folder.join("models")).unwrap();
    fs::write(folder.join("models/m.zt"), model()).unwrap();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success());
    let running = Running::new(|port| {
        let root = folder.display();
        let user = if cfg!(unix) { "user root;" } else { "" };
        let settings = format!(
            "{user} daemon off; worker_processes 1; pid {root}/pid; error_log {root}/errors;
             events {{}}
             http {{
               access_log off; client_body_temp_path {root}/b; proxy_temp_path {root}/p;
               fastcgi_temp_path {root}/f; uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;
               server {{
                 listen 127.0.0.1:{port}; listen 127.0.0.1:{tls} ssl; root {root};
                 ssl_certificate {root}/cert.pem; ssl_certificate_key {root}/key.pem;
                 location /moved/ {{ rewrite ^/moved/(.*) /models/$1 redirect; }}
                 location /round/ {{ rewrite ^(.*)$ $1 redirect; }}
                 location /whole/ {{ alias {root}/models/; max_ranges 0; }}
               }}
             }}"
        );
        fs::write(folder.join("nginx.conf"), settings).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
        command
    });
    (running, tls)
}

#[test]
#[ignore = "needs servers: cargo xtask test-remote"]
fn nginx_is_read_with_ranges_redirects_and_tls() {
    let name = "nginx_is_read_with_ranges_redirects_and_tls";
    if is_within(name) {
        let url = env::var("ZT_TLS").unwrap();
        for (_, call) in CALLS {
            call(zt_remote::open(&url).unwrap()).unwrap();
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (nginx, tls) = nginx(folder.path());
    let site = format!("http://127.0.0.1:{}", nginx.port);
    for path in ["models", "moved"] {
        for (_, call) in CALLS {
            let url = format!("{site}/{path}/m.zt");
            call(Remote::open(&url, &options()).unwrap()).unwrap();
        }
    }
    // No ranges, a redirect to itself, and no file are errors.
    for path in ["whole/m.zt", "round/m.zt", "models/n.zt"] {
        let url = format!("{site}/{path}");
        let error = limited(path, move || Remote::open(&url, &options())).unwrap_err();
        assert_eq!(error.code(), "io", "{path}: {error}");
    }
    // A certificate without a known issuer is refused.
    let url = format!("https://localhost:{tls}/models/m.zt");
    let error = Remote::open(&url, &options()).unwrap_err();
    assert_eq!(error.code(), "io", "{error}");
    let vouched = folder.path().join("cert.pem").display().to_string();
    run_within(name, &[("SSL_CERT_FILE", &*vouched), ("ZT_TLS", &*url)]);
}

/// A sequence of numbers that is the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

#[derive(Debug, Default)]
struct Tally {
    calls: usize,
    faults: usize,
    values: usize,
    errors: usize,
    /// Uploads that the store began and whose name never arrived.
    unknown: usize,
}

/// Calls with one fault each, until the time is over. A wrong value, another error, or a call without an
/// end is a panic.
fn soak(port: u16, thread: usize, end: Instant, tally: &Mutex<Tally>) {
    let mut random = Random(thread as u64 + 1);
    let faults: Vec<Fault> = FAULTS
        .iter()
        .copied()
        // The proxy has no objects of its own.
        .filter(|fault| !matches!(fault, Fault::Replaced | Fault::Grown))
        .collect();
    for turn in 0.. {
        if Instant::now() > end {
            return;
        }
        let proxy = Server::before(port);
        let fault = faults[random.below(faults.len())];
        let number = random.below(8);
        proxy.fail(number, fault);
        let options = s3_options(proxy.port).part(128 << 10);
        let kind = random.below(CALLS.len() + 2);
        let what = format!("call {kind}, {fault:?} at {number}");
        let url = format!("s3://models/{thread}-{turn}");
        let outcome = limited(&what, {
            let (options, url) = (options.clone(), url.clone());
            move || match CALLS.get(kind) {
                Some((_, call)) => call(Remote::open("s3://models/m.zt", &options)?),
                None => write_long(&url, &options, kind > CALLS.len()),
            }
        });
        if let Err(error) = &outcome {
            let is_typed = matches!(error.code(), "io" | "changed" | "overwrite");
            assert!(is_typed, "{what}: {error}");
        }
        let direct = s3_options(port);
        if kind > CALLS.len() {
            match Remote::open(&url, &direct) {
                Ok(_) => assert!(is_long(&url, &direct).unwrap(), "{what}"),
                Err(error) => assert!(outcome.is_err(), "{what}: {error}"),
            }
        }
        let mut tally = tally.lock().unwrap();
        tally.calls += 1;
        tally.faults += usize::from(proxy.requests().len() > number);
        tally.values += usize::from(outcome.is_ok());
        tally.errors += usize::from(outcome.is_err());
        let hides = matches!(fault, Fault::Lost | Fault::Cut | Fault::Short | Fault::Long);
        tally.unknown += usize::from(hides && proxy.begins(number));
    }
}

#[test]
#[ignore = "needs servers: cargo xtask test-remote --soak SECONDS"]
fn random_faults_give_no_wrong_value_and_no_hang() {
    let seconds = env::var("ZT_REMOTE_SOAK").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(20);
    let end = Instant::now() + Duration::from_secs(seconds);
    let moto = Running::moto();
    let mut upload = Upload::create("s3://models/m.zt", &s3_options(moto.port)).unwrap();
    write_model(&mut upload).unwrap();
    upload.finish().unwrap();
    let tally = Mutex::new(Tally::default());
    thread::scope(|scope| {
        for thread in 0..4 {
            let (moto, tally) = (&moto, &tally);
            scope.spawn(move || soak(moto.port, thread, end, tally));
        }
    });
    let tally = tally.into_inner().unwrap();
    let left = moto.uploads();
    println!("{seconds} s: {tally:?}, {left} uploads left");
    assert!(left <= tally.unknown);
}
