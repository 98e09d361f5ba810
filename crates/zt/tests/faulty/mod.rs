//! A source whose read number N fails, alone or with all later ones.
#![allow(dead_code, unreachable_pub, clippy::panic, reason = "each test uses some of it")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use zt::{Error, ErrorKind, Memory, Source};

/// What becomes of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The disk says no.
    Device,
    /// There are fewer bytes than there were.
    Short,
    /// A signal interrupted the read, and it was not tried again.
    Interrupted,
    /// Half of the bytes come, and then an error: what has come must not be taken for all.
    Half,
}

impl Failure {
    pub const ALL: [Failure; 4] =
        [Failure::Device, Failure::Short, Failure::Interrupted, Failure::Half];
}

/// Which reads fail, and how many there have been.
#[derive(Debug)]
pub struct Faults {
    reads: AtomicUsize,
    /// The read that fails, counted from 0; `usize::MAX` for none.
    at: AtomicUsize,
    is_persistent: AtomicBool,
    failure: Failure,
}

impl Faults {
    pub fn new(failure: Failure) -> Arc<Self> {
        Arc::new(Faults {
            reads: AtomicUsize::new(0),
            at: AtomicUsize::new(usize::MAX),
            is_persistent: AtomicBool::new(false),
            failure,
        })
    }

    /// Counts anew, and fails at the read `at` or from there on.
    pub fn arm(&self, at: usize, is_persistent: bool) {
        self.is_persistent.store(is_persistent, Ordering::SeqCst);
        self.at.store(at, Ordering::SeqCst);
        self.reads.store(0, Ordering::SeqCst);
    }

    /// Nothing fails any more.
    pub fn disarm(&self) {
        self.arm(usize::MAX, false);
    }

    /// Reads since it was armed.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    /// Whether a read has failed since it was armed.
    pub fn has_struck(&self) -> bool {
        self.reads() > self.at.load(Ordering::SeqCst)
    }

    fn next(&self) -> io::Result<()> {
        let (read, at) =
            (self.reads.fetch_add(1, Ordering::SeqCst), self.at.load(Ordering::SeqCst));
        let strikes = match self.is_persistent.load(Ordering::SeqCst) {
            true => read >= at,
            false => read == at,
        };
        match self.failure {
            _ if !strikes => Ok(()),
            Failure::Device | Failure::Half => Err(io::Error::other("the disk is gone")),
            Failure::Short => Err(io::ErrorKind::UnexpectedEof.into()),
            Failure::Interrupted => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}

/// Bytes that are read by position, with faults.
pub struct Faulty {
    bytes: Arc<[u8]>,
    faults: Arc<Faults>,
}

impl Faulty {
    pub fn new(bytes: &Arc<[u8]>, faults: &Arc<Faults>) -> Self {
        Faulty { bytes: Arc::clone(bytes), faults: Arc::clone(faults) }
    }
}

impl Source for Faulty {
    fn byte_len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let memory = Memory::new(&self.bytes[..]);
        if let Err(error) = self.faults.next() {
            if self.faults.failure == Failure::Half {
                let half = buf.len() / 2;
                memory.read_at(offset, &mut buf[..half])?;
            }
            return Err(error);
        }
        memory.read_at(offset, buf)
    }
}

/// Has every read of `work` fail, once and from there on. A read that fails for good has to be told.
/// One that fails once may be made up for in another way, so `work` has to look at what it gets: it
/// is right, or it is told. `work` works again once the source does. `fresh` makes what it works on.
///
/// How many reads there are.
pub fn strike_every_read<T>(
    case: &str,
    failure: Failure,
    faults: &Faults,
    fresh: impl Fn() -> T,
    work: impl Fn(&T) -> Result<(), Error>,
) -> usize {
    let told = |result: Result<(), Error>, at: usize| {
        let error = match result {
            Err(error) => error,
            Ok(()) => panic!("{case}, {failure:?} at read {at}: nothing is said of it"),
        };
        assert_eq!(error.kind(), ErrorKind::Io, "{case}, {failure:?} at read {at}: {error}");
    };
    let works = |file: &T| {
        if let Err(error) = work(file) {
            panic!("{case}, {failure:?}: does not work again: {error}");
        }
    };
    let mut at = 0;
    loop {
        faults.disarm();
        let file = fresh();
        faults.arm(at, false);
        let result = work(&file);
        if !faults.has_struck() {
            assert!(result.is_ok(), "{case}: {result:?}");
            faults.disarm();
            return at;
        }
        if result.is_err() {
            told(result, at);
        }
        works(&file);
        faults.disarm();
        let file = fresh();
        faults.arm(at, true);
        told(work(&file), at);
        told(work(&file), at);
        faults.disarm();
        works(&file);
        at += 1;
        assert!(at < 10_000, "{case}: it does not end");
    }
}
