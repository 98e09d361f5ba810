//! Every way to read a file gives the same.

use std::io::Read;
use std::thread;

use zt_formats::{Dense, Slice};

use super::cases::sound;
use crate::check::hash::HashOptions;
use crate::check::verify::VerifyOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::file::File;
use crate::file::tensor::Tensor;

/// Threads that read one file.
const THREADS: usize = 4;

/// Checks that every way to read an object of `file` gives the same: whole, in slices, streamed, together with
/// others, on one thread and on many. Objects with a fault are checked as [`check_damaged`] does it.
///
/// # Panics
///
/// Where a check fails, with a message that names the object and the case.
pub fn check_file(file: &File) {
    check_damaged(file);
    let one = VerifyOptions::new().threads(1);
    let reports = [file.verify(&one), file.verify(&VerifyOptions::new())];
    let [one, many] = reports.map(|report| sound("verify", report));
    let texts = |problems: &[Error]| problems.iter().map(Error::to_string).collect::<Vec<_>>();
    assert_eq!(texts(&one.problems), texts(&many.problems), "verified by one thread and by many");
    let hash = |threads: Option<usize>| {
        let hash = file.hash(&HashOptions::new().threads(threads));
        hash.ok().map(|hash| hash.content)
    };
    assert_eq!(hash(Some(1)), hash(None), "hashed by one thread and by many");

    let tensors: Vec<Tensor<'_>> = file.tensors().filter_map(Result::ok).collect();
    let alone: Vec<_> = tensors.iter().map(|tensor| tensor.to_dense().ok()).collect();
    let same = |found: Vec<Option<Dense<'static>>>, how: &str| {
        for ((tensor, alone), found) in tensors.iter().zip(&alone).zip(found) {
            assert!(*alone == found, "{}: {how} gives another value", tensor.name());
        }
    };
    let together = || file.to_dense_many(&tensors).into_iter().map(Result::ok).collect();
    same(together(), "`to_dense_many`");
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(together)).collect();
        for thread in threads {
            match thread.join() {
                Ok(found) => same(found, "one of several threads"),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
}

/// Checks a file that may be damaged. Its objects are readable, or an error blames the file: never the call,
/// and never the system. An object that [`File::verify`] accepts has a value, and every way to read it
/// gives the same. An object that it refuses has none.
///
/// # Panics
///
/// Where a check fails, with a message that names the object and the case.
pub fn check_damaged(file: &File) {
    let report = sound("verify", file.verify(&VerifyOptions::new()));
    report.problems.iter().for_each(|problem| expect_blame("verify", problem));
    for entry in file.entries() {
        let name = entry.name();
        let tensor = match entry.tensor() {
            Ok(tensor) => tensor,
            Err(error) => {
                expect_blame(name, &error);
                continue;
            }
        };
        for (role, component) in tensor.components() {
            read_component(&tensor, role, component.blob.decoded_len);
        }
        let is_sound = report.problems.iter().all(|problem| problem.object() != Some(name));
        match tensor.to_dense() {
            Ok(dense) => {
                assert!(is_sound, "{name}: `verify` refuses it, and `to_dense` gives a value");
                read_value(&tensor, &dense);
            }
            Err(error) => {
                expect_blame(name, &error);
                let is_refused = matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Limit);
                let is_damaged = !is_refused && is_sound && report.is_ok();
                assert!(!is_damaged, "{name}: `verify` accepts it, and `to_dense` fails: {error}");
                // The part may be sound.
                if let Err(error) = tensor.slice(&[Slice::Ellipsis]) {
                    expect_blame(name, &error);
                }
            }
        }
    }
}

/// Checks a file that may be damaged, or the error of opening it.
pub(crate) fn check_opened(opened: Result<File>) {
    match opened {
        Ok(file) => check_damaged(&file),
        Err(error) => expect_blame("opening", &error),
    }
}

/// Refuses an error that blames the call or the system for bytes in memory.
pub(crate) fn expect_blame(what: &str, error: &Error) {
    let is_of_file = matches!(
        error.kind(),
        ErrorKind::Malformed
            | ErrorKind::DigestMismatch
            | ErrorKind::Unsupported
            | ErrorKind::Limit
    );
    assert!(
        is_of_file,
        "{what}: the error must blame the file, and its kind is {:?}: {error} [{}]",
        error.kind(),
        error.code()
    );
}

/// Reads a component whole, into memory of the caller, and as a stream.
fn read_component(tensor: &Tensor<'_>, role: &str, decoded_len: Option<u64>) {
    let what = format!("{}/{role}", tensor.name());
    let mut streamed = Vec::new();
    let reader = tensor.reader(role).map_err(std::io::Error::from);
    let streamed =
        reader.and_then(|mut reader| reader.read_to_end(&mut streamed)).map(|_| streamed);
    match (tensor.bytes(role), streamed) {
        (Ok(whole), Ok(streamed)) => {
            assert!(*whole == *streamed, "{what}: the stream has other bytes");
            let mut out = vec![0; whole.len()];
            let read = tensor.read_into(role, &mut out);
            assert!(read.is_ok() && out == *whole, "{what}: `read_into` gives other bytes");
            let is_len = decoded_len.is_none_or(|len| len == whole.len() as u64);
            assert!(is_len, "{what}: {} bytes, announced were {decoded_len:?}", whole.len());
        }
        (Err(error), streamed) => {
            expect_blame(&what, &error);
            assert!(streamed.is_err(), "{what}: only the stream can be read: {error}");
        }
        (Ok(_), Err(error)) => panic!("{what}: only the stream fails: {error}"),
    }
}

/// Compares the value with what the slices and the stream give.
fn read_value(tensor: &Tensor<'_>, dense: &Dense<'_>) {
    let name = tensor.name();
    let mut streamed = Vec::new();
    let reader = tensor.dense_reader().map_err(std::io::Error::from);
    let read = reader.and_then(|mut reader| reader.read_to_end(&mut streamed));
    assert!(read.is_ok(), "{name}: the stream of its value fails: {read:?}");
    assert!(streamed == *dense.elements().bytes, "{name}: the stream has other values");
    for text in slices(dense.shape()) {
        let slices = Slice::parse_list(&text).unwrap_or_default();
        match (tensor.slice(&slices), dense.slice(&slices)) {
            (Ok(found), Ok(expected)) => {
                assert!(found == expected, "{name}[{text}]: is not that part of the whole value");
            }
            (Err(error), Err(_)) => expect_blame(name, &error),
            (Ok(_), Err(error)) => {
                panic!("{name}[{text}]: the whole value has no such part: {error}")
            }
            (Err(error), Ok(_)) => panic!("{name}[{text}]: {error}; the whole value has that part"),
        }
    }
}

/// Slices of every sort, for each dimension of a shape.
fn slices(shape: &[u64]) -> Vec<String> {
    let mut all = vec!["...".to_owned()];
    for (axis, dimension) in shape.iter().enumerate().filter(|(axis, _)| axis % 2 == 0 || *axis < 4)
    {
        let before = ":,".repeat(axis);
        let ranges = ["0:0", "1:", ":-1", "::2", "1:4:3", "::-1"].map(str::to_owned);
        let places = [0, dimension / 2, dimension.saturating_sub(1)].map(|place| place.to_string());
        let places = places.into_iter().filter(|_| *dimension > 0);
        all.extend(ranges.into_iter().chain(places).map(|slice| format!("{before}{slice}")));
    }
    if shape.iter().all(|dimension| *dimension > 0) && !shape.is_empty() {
        let last: Vec<&str> = shape.iter().map(|_| "-1").collect();
        all.push(last.join(","));
    }
    all
}
