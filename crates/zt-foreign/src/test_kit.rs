//! Room `test_kit`: tests that any implementation of [`FileKind`] can run in one call. The feature `test-kit` adds
//! it, for the tests of your crate:
//!
//! ```toml
//! [dev-dependencies]
//! zt-convert = { version = "0.1", features = ["test-kit"] } # as `zt_convert::foreign::test_kit`
//! ```
//!
//! [`check_kind`] panics where a check fails, with a message that names the case. `zt::test_kit` has the kit
//! for object formats, and the checks of open files that this one uses.
//!
//! It must not know: any kind.

use std::io;
use std::thread;

use zt::test_kit::{case, check, check_damaged, check_file, damages, sound};
use zt::{Dense, Error, ErrorKind, File, Limits, Memory, OpenOptions, Source, Writer};

use crate::contract::{FileKind, FileWriter};
use crate::open::{Input, InputOptions, Probe};
use crate::outgoing::{ConvertOptions, Job, Merged, Sink};

/// Bytes of a value beyond which it is not made: a damaged header may announce any size.
const LARGEST: u64 = 1 << 22;

/// Checks a kind with `samples`, sound files of it.
///
/// Give small files, of some hundred bytes, that differ in what your reader branches on, and one without
/// objects if there are such files.
///
/// | sort | cases |
/// | --- | --- |
/// | the sample | recognised; opened in memory, by position and by several threads; every way to read gives the same values |
/// | damaged | truncated, each bit flipped, each place set to large numbers; with and without [`InputOptions::truncated`] |
/// | written | the sample written as a file of the kind, read again, and written again with the same bytes; a `.zt` file of one vector, too |
///
/// A damaged file must give an error that blames the file, or objects that all ways to read agree about. In
/// particular it must not give [`ErrorKind::Io`]: the source is in memory and does not fail. A reader that
/// compares each length with [`Source::byte_len`] first gives [`ErrorKind::Malformed`], code `truncated`.
///
/// # Panics
///
/// Where a check fails, with a message that names the sample, by its number from 0 on, and the case.
pub fn check_kind(kind: &dyn FileKind, samples: &[&[u8]]) {
    for extension in kind.extensions() {
        let is_plain = !extension.is_empty() && extension.to_ascii_lowercase() == **extension;
        assert!(is_plain && !extension.starts_with('.'), "the extension {extension:?}");
    }
    for (number, sample) in samples.iter().enumerate() {
        check(format!("{}, sample {number}", kind.kind()), || check_sample(kind, sample));
    }
    if let Some(writer) = kind.writer() {
        check(format!("{}, a vector", kind.kind()), || check_vector(kind, writer));
    }
}

fn check_sample(kind: &dyn FileKind, sample: &[u8]) {
    let memory = Memory::new(sample.to_vec());
    let probe = sound("probing", Probe::new(&memory));
    let recognised =
        kind.recognise(&probe).and_then(|is_it| Ok(is_it || kind.recognise_behind(&probe)?));
    assert!(recognised.is_ok_and(|is_it| is_it), "is not recognised");

    let file = sound("opening", open(kind, sample, false));
    assert_eq!(file.kind(), kind.kind(), "the kind of the opened file");
    let problems = sound("verify", file.verify(&Default::default())).problems;
    assert!(problems.is_empty(), "is not sound: {problems:?}");
    check_file(&file);
    let values = values(&file);
    let same = |found: zt::Result<File>, how: &str| {
        let found = self::values(&sound(format!("opening {how}"), found));
        assert!(values == found, "{how}, the file has other objects or values");
    };
    same(
        kind.open_source(Box::new(ByPosition(sample.to_vec())), &options(false))
            .map(Input::into_file),
        "by position",
    );
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| same(open(kind, sample, false), "in a thread"));
        }
    });

    for damage in damages(sample.len()) {
        for truncated in [false, true] {
            case(damage, || match open(kind, &damage.of(sample), truncated) {
                Ok(file) => check_damaged(&file),
                Err(error) => expect_blame(&error),
            });
        }
    }
    if let Some(writer) = kind.writer() {
        case("written", || check_written(kind, writer, &file, true));
    }
}

fn check_vector(kind: &dyn FileKind, writer: &dyn FileWriter) {
    let mut bytes = Vec::new();
    let mut zt = sound("writing", Writer::new(&mut bytes));
    let vector = sound("a vector", Dense::from_slice(&[3], &[1.0f32, -2.5, 3.0]));
    sound("writing", zt.add("vector", &vector).and_then(|()| zt.finish()));
    let file = sound("opening", File::from_bytes(bytes));
    check_written(kind, writer, &file, false);
}

/// Writes a file as one of the kind, unless the kind cannot represent it. A kind may store no names.
fn check_written(kind: &dyn FileKind, writer: &dyn FileWriter, file: &File, is_own: bool) {
    let bytes = match write(kind, writer, file) {
        Ok(bytes) => bytes,
        Err(error) => {
            let is_lossy = error.kind() == ErrorKind::Unsupported;
            assert!(is_lossy, "what a kind cannot represent is `Unsupported`: {error}");
            return;
        }
    };
    assert!(
        bytes == sound("writing", write(kind, writer, file)),
        "written twice, the bytes differ"
    );
    let back = sound("opening what was written", open(kind, &bytes, false));
    let (mut before, mut after) = (values(file), values(&back));
    if !is_own {
        before.iter_mut().chain(&mut after).for_each(|(name, ..)| name.clear());
    }
    assert!(before == after, "what was written has other objects or values");
    check_file(&back);
    let again = sound("writing what was read", write(kind, writer, &back));
    assert!(again == bytes, "what was read is not written as it was");
}

fn write(kind: &dyn FileKind, writer: &dyn FileWriter, file: &File) -> zt::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let options = ConvertOptions::new(kind.kind());
    let mut job = Job::new(kind.kind(), &options);
    let mut sink = Sink::new(&mut bytes);
    writer.write(Merged::of(file, job.options)?, &mut sink, &mut job)?;
    job.check()?;
    io::Write::flush(&mut sink)?;
    drop(sink);
    Ok(bytes)
}

fn options(truncated: bool) -> InputOptions {
    let mut limits = Limits::default();
    limits.decoded_len = LARGEST;
    InputOptions::new().open(OpenOptions::new().limits(limits)).truncated(truncated)
}

fn open(kind: &dyn FileKind, bytes: &[u8], truncated: bool) -> zt::Result<File> {
    let source = Box::new(Memory::new(bytes.to_vec()));
    kind.open_source(source, &options(truncated)).map(Input::into_file)
}

/// Each object: its name, its shape and its value.
fn values(file: &File) -> Vec<(String, Vec<u64>, Option<Dense<'static>>)> {
    let tensors = file.tensors().filter_map(Result::ok);
    let value = |tensor: zt::Tensor<'_>| {
        (tensor.name().to_owned(), tensor.shape().to_vec(), tensor.to_dense().ok())
    };
    let mut values: Vec<_> = tensors.map(value).collect();
    values.sort_by(|a, b| a.0.cmp(&b.0));
    values
}

fn expect_blame(error: &Error) {
    let (kind, code) = (error.kind(), error.code());
    let is_of_call = matches!(kind, ErrorKind::Io | ErrorKind::Misuse | ErrorKind::Interrupted);
    assert!(
        !is_of_call,
        "the error must blame the file, and its kind is {kind:?}: {error} [{code}]"
    );
}

/// Bytes that are read and never lent.
struct ByPosition(Vec<u8>);

impl Source for ByPosition {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        Memory::new(&self.0[..]).read_at(offset, buf)
    }
}
