//! Sources agree with each other, and report missing bytes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use zt_container::{Error, FileSource, Memory, Seekable, Source, Span};

/// A file that is removed at the end of the test. (This crate has no dependencies, not even for tests.)
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let name = format!("zt-container-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

type Named = (&'static str, Box<dyn Source>);

fn sources(scratch: &Scratch, bytes: &[u8]) -> Vec<Named> {
    let sources: Vec<Named> = vec![
        ("file", Box::new(FileSource::open(&scratch.0).unwrap())),
        ("memory", Box::new(Memory::new(bytes.to_vec()))),
        ("shared", Box::new(Arc::new(Memory::new(Arc::<[u8]>::from(bytes))))),
        ("seekable", Box::new(Seekable::new(Cursor::new(bytes.to_vec())).unwrap())),
    ];
    #[cfg(feature = "mmap")]
    let sources = {
        // SAFETY: no other process knows the file's name.
        let map = unsafe { zt_container::Map::open(&scratch.0) };
        sources.into_iter().chain([("map", Box::new(map.unwrap()) as Box<dyn Source>)]).collect()
    };
    sources
}

#[test]
fn every_source_gives_the_same_bytes() {
    let bytes: Vec<u8> = (0..=255).collect();
    let scratch = Scratch::new("same", &bytes);
    for (name, source) in sources(&scratch, &bytes) {
        assert_eq!(source.byte_len(), 256, "{name}");
        let mut buf = [0; 100];
        source.read_at(156, &mut buf).unwrap();
        assert_eq!(buf, bytes[156..], "{name}");
        let lent = source.slice(Span::new(3, 4).unwrap());
        assert!(lent.is_none_or(|lent| lent == [3, 4, 5, 6]), "{name}");
        assert_eq!(lent.is_some(), !["file", "seekable"].contains(&name), "{name}");
    }
}

#[test]
fn reading_past_the_end_is_an_error_and_lends_nothing() {
    let bytes = [1, 2, 3];
    let scratch = Scratch::new("end", &bytes);
    for (name, source) in sources(&scratch, &bytes) {
        for (offset, len) in [(0, 4), (3, 1), (4, 0), (u64::MAX, 1_usize)] {
            assert!(
                source
                    .slice(Span::new(offset, len as u64).unwrap_or_default())
                    .is_none_or(<[u8]>::is_empty)
            );
            if len > 0 {
                let error = source.read_at(offset, &mut vec![0; len]).unwrap_err();
                let kinds = [io::ErrorKind::UnexpectedEof, io::ErrorKind::InvalidInput];
                assert!(kinds.contains(&error.kind()), "{name}: {error:?}");
            }
        }
    }
}

#[test]
fn a_file_cut_while_it_is_open_gives_an_error() {
    let scratch = Scratch::new("cut", &[7; 1000]);
    let source = FileSource::open(&scratch.0).unwrap();
    std::fs::write(&scratch.0, [7; 10]).unwrap();
    let error = source.read_at(500, &mut [0; 100]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_file_knows_whether_it_was_cut_or_continued() {
    let scratch = Scratch::new("length", &[7; 1000]);
    let source = FileSource::open(&scratch.0).unwrap();
    assert!(source.has_its_length().unwrap());
    for len in [999, 1001] {
        std::fs::write(&scratch.0, vec![7; len]).unwrap();
        assert!(!source.has_its_length().unwrap(), "{len}");
        assert_eq!(source.byte_len(), 1000);
    }
}

/// A source implements only two methods; the others have defaults.
#[test]
fn a_source_of_ones_own_lends_nothing_and_has_addresses() {
    struct Zeros;
    impl Source for Zeros {
        fn byte_len(&self) -> u64 {
            10
        }
        fn read_at(&self, _: u64, buf: &mut [u8]) -> io::Result<()> {
            buf.fill(0);
            Ok(())
        }
    }
    let source: Box<dyn Source> = Box::new(Zeros);
    let whole = Span::new(0, 10).unwrap();
    assert_eq!(source.slice(whole), None);
    assert!(!source.is_sequential());
    source.will_read(whole);
}

/// A pointer to a source answers as the source does.
#[test]
fn what_a_source_says_comes_through_pointers() {
    struct InOrder(std::sync::Mutex<Vec<Span>>);
    impl Source for InOrder {
        fn byte_len(&self) -> u64 {
            10
        }
        fn is_sequential(&self) -> bool {
            true
        }
        fn will_read(&self, span: Span) {
            self.0.lock().unwrap().push(span);
        }
        fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
            Ok(())
        }
    }
    let source = Arc::new(InOrder(Vec::new().into()));
    let whole = Span::new(0, 10).unwrap();
    let pointers: [Box<dyn Source + '_>; 3] =
        [Box::new(Arc::clone(&source)), Box::new(&*source), Box::new(Box::new(&source))];
    for pointer in &pointers {
        assert!(pointer.is_sequential());
        pointer.will_read(whole);
    }
    assert_eq!(*source.0.lock().unwrap(), [whole; 3]);
}

#[test]
fn a_folder_is_not_a_source() {
    let error = FileSource::open(std::env::temp_dir()).unwrap_err();
    assert!(matches!(error, Error::Io(_)), "{error:?}");
}

#[test]
fn an_empty_file_is_a_source_of_no_bytes() {
    let scratch = Scratch::new("empty", &[]);
    for (name, source) in sources(&scratch, &[]) {
        assert_eq!(source.byte_len(), 0, "{name}");
        source.read_at(0, &mut []).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let path = std::env::temp_dir().join(format!("zt-container-{}-pipe", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let error = FileSource::open(&path).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(error.code(), "unsupported");
    assert_eq!(error.to_string(), "not a regular file");
}

#[test]
fn announcing_any_range_changes_nothing() {
    let scratch = Scratch::new("announced", &[7; 10_000]);
    let source = FileSource::open(&scratch.0).unwrap();
    for (offset, len) in [(0, 10_000), (0, 0), (9_999, 1), (10_000, 1 << 40), (1 << 62, 1)] {
        source.will_read(Span::new(offset, len).unwrap());
    }
    let mut read = [0; 10_000];
    source.read_at(0, &mut read).unwrap();
    assert_eq!(read, [7; 10_000]);
}

/// A usual `open` of a pipe waits for a writer.
#[cfg(unix)]
#[test]
fn a_pipe_that_takes_the_place_of_a_file_is_refused_at_once() {
    use std::fs::{hard_link, remove_file, rename};
    use std::sync::atomic::{AtomicBool, Ordering};
    let scratch = Scratch::new("place", &[7; 10]);
    let beside = |extension: &str| Scratch(scratch.0.with_extension(extension));
    let (file, pipe, next) = (beside("file"), beside("pipe"), beside("next"));
    hard_link(&scratch.0, &file.0).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&pipe.0).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for source in [&pipe.0, &file.0] {
                    hard_link(source, &next.0).unwrap();
                    rename(&next.0, &scratch.0).unwrap();
                    let _ = remove_file(&next.0); // It stays if both are the same file.
                }
            }
        });
        for _ in 0..2000 {
            match FileSource::open(&scratch.0) {
                Ok(source) => assert_eq!(source.byte_len(), 10),
                Err(error) => assert!(matches!(error, Error::Unsupported(_)), "{error}"),
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// A reader that gives a byte at a time, is interrupted before each, and has faults of its own.
struct Faulty {
    bytes: Cursor<Vec<u8>>,
    was_interrupted: bool,
    /// It fails, panics or ends here.
    fails_at: u64,
    panics_at: u64,
    ends_at: u64,
}

impl Faulty {
    fn new(bytes: &[u8]) -> Self {
        Faulty {
            bytes: Cursor::new(bytes.to_vec()),
            was_interrupted: false,
            fails_at: u64::MAX,
            panics_at: u64::MAX,
            ends_at: u64::MAX,
        }
    }
}

impl Read for Faulty {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.was_interrupted = !self.was_interrupted;
        if self.was_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let at = self.bytes.position();
        assert!(at != self.panics_at, "a fault of the reader");
        if at == self.fails_at {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if at == self.ends_at {
            return Ok(0);
        }
        let len = out.len().min(1);
        self.bytes.read(&mut out[..len])
    }
}

impl Seek for Faulty {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}

#[test]
fn faults_of_a_reader_are_those_of_the_source_and_pass() {
    let bytes: Vec<u8> = (0..100).collect();
    let reader = Faulty { fails_at: 20, panics_at: 50, ends_at: 80, ..Faulty::new(&bytes) };
    let source = Seekable::new(reader).unwrap();
    assert_eq!(source.byte_len(), 100);
    let read = |offset: u64| {
        let mut buf = [0; 10];
        let read = source.read_at(offset, &mut buf);
        read.map(|()| buf).map_err(|error| error.kind())
    };
    for _ in 0..2 {
        assert_eq!(read(15), Err(io::ErrorKind::ConnectionReset));
        // The stream was cut after the source was made.
        assert_eq!(read(75), Err(io::ErrorKind::UnexpectedEof));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(45))).is_err());
        assert_eq!(read(5).unwrap(), bytes[5..15]);
        assert_eq!(read(21).unwrap(), bytes[21..31]);
    }
}

#[test]
fn a_reader_that_grew_has_the_bytes_that_it_had() {
    let scratch = Scratch::new("grown", b"1234");
    let source = Seekable::new(std::fs::File::open(&scratch.0).unwrap()).unwrap();
    std::fs::write(&scratch.0, b"12345678").unwrap();
    assert_eq!(source.byte_len(), 4);
    assert!(source.read_at(2, &mut [0; 3]).is_err());
    let mut buf = [0; 2];
    source.read_at(2, &mut buf).unwrap();
    assert_eq!(&buf, b"34");
}

#[test]
fn a_reader_that_cannot_seek_is_no_source() {
    struct Fixed;
    impl Read for Fixed {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
    }
    impl Seek for Fixed {
        fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
            Err(io::ErrorKind::NotSeekable.into())
        }
    }
    assert!(matches!(Seekable::new(Fixed), Err(Error::Io(_))));
}

#[test]
fn threads_take_turns_at_a_reader() {
    let bytes: Vec<u8> = (0..=255).collect();
    let source = Seekable::new(Faulty::new(&bytes)).unwrap();
    std::thread::scope(|scope| {
        for start in [0u8, 64, 128, 192] {
            let (source, bytes) = (&source, &bytes);
            scope.spawn(move || {
                for offset in start..start + 32 {
                    let mut buf = [0; 32];
                    source.read_at(offset.into(), &mut buf).unwrap();
                    assert_eq!(buf, bytes[usize::from(offset)..][..32]);
                }
            });
        }
    });
}
