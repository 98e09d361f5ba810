//! Each fault of a server at each request of each call: the right value or an error, and nothing left.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is the failure of the test")]

mod common;

use std::io::Write;
use std::sync::Arc;
use std::thread;

use common::{
    CALLS, Call, FAULTS, Fault, Server, limited, model, options, s3_options, write_model,
};
use zt_remote::{Remote, RemoteOptions, Upload};

/// Calls wait for the next attempt most of the time, so many are made at once.
const AT_ONCE: usize = 8;

/// Whether a request that is made again has the right answer.
fn passes(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Status(500 | 503 | 429)
            | Fault::Hangup
            | Fault::Lost
            | Fault::Late(_)
            | Fault::Chunked
    )
}

fn read(server: &Server, name: &str, call: Call) -> zt::Result<()> {
    // Short parts are many requests.
    let options = options().part(128 << 10);
    call.1(Remote::open(&server.url(name), &options)?)
}

fn read_with_faults(call: Call, fault: Fault, bytes: &Arc<Vec<u8>>) {
    let server = Server::with("m.zt", Arc::clone(bytes));
    read(&server, "m.zt", call).unwrap();
    for number in 0..server.requests().len() {
        // A request of a call that has ended may come late. It has another name.
        let name = format!("m{number}.zt");
        server.put(&name, Arc::clone(bytes));
        server.fail_of(&name, number, fault);
        let what = format!("{}: {fault:?} at {number}", call.0);
        let shared = server.clone();
        match limited(&what, move || read(&shared, &name, call)) {
            Ok(()) => {}
            Err(error) => {
                let is_expected = match fault {
                    // The first request opens the other object, and it is damaged.
                    Fault::Replaced | Fault::ReplacedWithoutTag | Fault::Grown => {
                        number == 0 || error.code() == "changed"
                    }
                    _ => matches!(error.code(), "io" | "changed"),
                };
                assert!(is_expected, "{what}: {error}");
                assert!(!passes(fault), "{what}: {error}");
            }
        }
    }
}

/// Runs `check` for each fault, some of them at once.
fn for_each_fault(check: impl Fn(Fault) + Sync) {
    let check = &check;
    for faults in FAULTS.chunks(AT_ONCE) {
        thread::scope(|scope| {
            for fault in faults {
                scope.spawn(move || check(*fault));
            }
        });
    }
}

#[test]
fn reading_gives_the_right_values_or_an_error() {
    let bytes = Arc::new(model());
    for call in CALLS {
        for_each_fault(|fault| read_with_faults(*call, fault, &bytes));
    }
}

/// Where an upload ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    Finished,
    Dropped,
}

/// Writes `parts` parts, or a file of one part.
fn write(server: &Server, parts: usize, ending: Ending) -> zt::Result<()> {
    let options: RemoteOptions = s3_options(server.port).part(5 << 20);
    let mut upload = Upload::create("s3://models/m.zt", &options)?;
    match parts {
        1 => write_model(&mut upload)?,
        _ => {
            for part in 0..parts {
                let byte = u8::try_from(part).unwrap_or_default();
                upload.write_all(&vec![byte; 5 << 20])?;
            }
        }
    }
    match ending {
        Ending::Finished => upload.finish(),
        Ending::Dropped => Ok(()),
    }
}

fn expected(parts: usize) -> Vec<u8> {
    match parts {
        1 => model(),
        _ => (0..parts)
            .flat_map(|part| vec![u8::try_from(part).unwrap_or_default(); 5 << 20])
            .collect(),
    }
}

fn write_with_faults(parts: usize, ending: Ending, fault: Fault) {
    let calm = Server::new();
    write(&calm, parts, ending).unwrap();
    assert_eq!(calm.uploads(), 0, "without a fault");
    let expected = expected(parts);
    for number in 0..calm.requests().len() {
        let server = Server::new();
        server.fail(number, fault);
        let what = format!("{parts} parts, {ending:?}: {fault:?} at {number}");
        let shared = server.clone();
        let written = limited(&what, move || write(&shared, parts, ending));
        if let Err(error) = &written {
            assert_eq!(error.code(), "io", "{what}: {error}");
        }
        // An object is there as a whole or not at all, also if the answer was lost.
        match server.object("m.zt") {
            Some(bytes) => {
                assert!(bytes == expected, "{what}: {} bytes", bytes.len());
                if let Err(error) = &written {
                    assert!(parts > 1, "{what}: {error}");
                    assert!(error.to_string().contains("exists"), "{what}: {error}");
                }
            }
            None => assert!(written.is_err() || ending == Ending::Dropped, "{what}"),
        }
        // A client that was never told of an upload cannot cancel it.
        let is_unknown = u64::from(parts > 1 && number == 1);
        let may_be_left = match fault {
            Fault::Lost | Fault::Cut | Fault::Short | Fault::Long => is_unknown,
            _ => 0,
        };
        assert!(server.uploads() as u64 <= may_be_left, "{what}");
    }
}

#[test]
fn a_short_upload_is_there_as_a_whole_or_not_at_all() {
    for_each_fault(|fault| write_with_faults(1, Ending::Finished, fault));
}

#[test]
fn a_long_upload_is_there_as_a_whole_or_not_at_all() {
    for_each_fault(|fault| write_with_faults(3, Ending::Finished, fault));
}

#[test]
fn a_long_upload_that_is_dropped_leaves_nothing() {
    for_each_fault(|fault| write_with_faults(3, Ending::Dropped, fault));
}

/// Each failure is one of the answer to the first request or the second.
fn refused(fault: Fault, number: usize, options: &RemoteOptions) -> (zt::Error, Server) {
    let server = Server::with("m.zt", model());
    server.fail(number, fault);
    for again in 1..20 {
        server.fail(number + again, fault);
    }
    let remote = Remote::open(&server.url("m.zt"), options);
    let read = remote.and_then(|remote| {
        let file = zt::OpenOptions::new().open_source(remote)?;
        file.tensor("matrix")?.to_vec::<f32>()
    });
    (read.unwrap_err(), server)
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for() {
    static NOTES: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    let options = options()
        .timeout(std::time::Duration::from_millis(500))
        .notice(|note| NOTES.lock().unwrap().push(note.to_owned()));
    for number in [0, 1] {
        let (error, server) = limited("silent", {
            let options = options.clone();
            move || refused(Fault::Silent, number, &options)
        });
        assert_eq!(error.code(), "io");
        assert!(error.to_string().contains("no answer within"), "{error}");
        let requests = server.requests().len();
        assert!((2..=4 + number).contains(&requests), "{requests}");
        // It is the range that is asked for again.
        assert!(server.requests().iter().all(|range| !range.is_empty()));
        let notes = std::mem::take(&mut *NOTES.lock().unwrap());
        assert_eq!(notes.len(), 1, "{notes:?}");
    }
}

/// The first tensor waits for the server, and the others do not wait again.
#[test]
fn a_server_that_stops_after_its_first_answer_holds_a_command_once() {
    let mut bytes = Vec::new();
    let mut writer = zt::Writer::new(&mut bytes).unwrap();
    let values = vec![1.0f32; 100_000];
    for layer in 0..40 {
        let dense = zt::Dense::from_slice(&[100_000], &values).unwrap();
        writer.add(&format!("layer.{layer}"), &dense).unwrap();
    }
    writer.finish().unwrap();
    let server = Server::with("m.zt", bytes);
    for number in 1..2000 {
        server.fail(number, Fault::Silent);
    }
    let options = options().timeout(std::time::Duration::from_millis(500));
    let (report, server) = limited("silent", move || {
        let remote = Remote::open(&server.url("m.zt"), &options).unwrap();
        let file = zt::OpenOptions::new().open_source(remote).unwrap();
        (file.verify(&zt::VerifyOptions::new()).unwrap(), server)
    });
    // One more: the header of the file, which is looked at again.
    assert_eq!(report.problems.len(), 41);
    assert!(report.problems.iter().all(|problem| problem.code() == "io"));
    // Requests that were under way together, each asked for again twice.
    let requests = server.requests().len();
    assert!(requests < 40, "{requests}");
}

#[test]
fn faults_that_stay_are_not_tried_again() {
    for status in [401, 403, 404] {
        let (error, server) = refused(Fault::Status(status), 0, &options());
        assert_eq!((error.code(), server.requests().len()), ("io", 1), "{error}");
    }
    // Nothing listens there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let url = format!("http://127.0.0.1:{port}/m.zt");
    let error = Remote::open(&url, &options()).unwrap_err();
    assert!(!error.to_string().contains("retries"), "{error}");
    assert!(!error.to_string().contains("error: HTTP"), "{error}");
}

/// A server that speaks http alone refuses every try, and says so at once.
#[test]
fn https_to_a_server_of_http_is_tried_once() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let tries = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let url = format!("https://127.0.0.1:{port}/m.zt");
    let error = Remote::open(&url, &options()).unwrap_err();
    assert!(error.to_string().contains("does not speak https"), "{error}");
    assert_eq!(tries.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[test]
fn the_text_of_a_server_is_cut() {
    let (error, _) = refused(Fault::Wordy, 0, &options());
    assert!(error.to_string().len() < 700, "{error}");
}

#[test]
fn a_server_without_ranges_is_explained() {
    let (error, _) = refused(Fault::IgnoresRange, 0, &options());
    assert!(error.to_string().contains("zt ls -"), "{error}");
}

/// The session token is in a header that clients send to any address.
#[test]
fn credentials_of_a_store_do_not_follow_a_redirect() {
    let other = Server::with("m.zt", model());
    let server = Server::with("m.zt", model());
    let options = s3_options(server.port).setting("aws_session_token", "SECRET");
    let open = || Remote::open("s3://models/m.zt", &options);
    server.fail(0, Fault::Redirect(other.port));
    let error = open().unwrap_err();
    assert!(error.to_string().contains("redirects to 127.0.0.1"), "{error}");
    assert!(other.requests().is_empty());
    server.fail(0, Fault::Redirect(other.port));
    assert!(Upload::create("s3://models/n.zt", &options).is_err());
    assert!(other.requests().is_empty());
    // Within the store they do.
    server.fail(0, Fault::Redirect(server.port));
    open().unwrap();
    assert_eq!(server.headers("x-amz-security-token"), ["SECRET"; 4]);
}

/// No request at all follows one, whatever its credentials are.
#[test]
fn no_store_is_left_by_a_redirect() {
    let other = Server::with("m", model());
    let server = Server::with("m", model());
    let here = format!("http://127.0.0.1:{}", server.port);
    let google =
        options().setting("google_base_url", &*here).setting("google_skip_signature", "true");
    let azure = options()
        .setting("azure_storage_account_name", "tests")
        .setting("azure_storage_token", "SECRET")
        .setting("azure_storage_endpoint", &*here);
    for (url, options) in [("gs://models/m", google), ("az://models/m", azure)] {
        server.fail(0, Fault::Redirect(other.port));
        let error = Remote::open(url, &options).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("redirects to 127.0.0.1"), "{url}: {text}");
        assert!(other.requests().is_empty(), "{url}");
        server.fail(0, Fault::Redirect(server.port));
        Remote::open(url, &options).unwrap();
    }
    assert_eq!(server.headers("authorization"), ["Bearer SECRET"; 3]);
}
