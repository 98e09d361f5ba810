//! A file in memory that an edit is done to, and what is left of it when the edit is cut short.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test uses some of it")]

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use proptest::prelude::Rng;
use zt::{Dense, Editor, File, Storage, WriteOptions, Writer};

pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;
pub type Values = BTreeMap<String, Vec<i32>>;

/// A change of the file.
#[derive(Debug, Clone)]
pub enum Step {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
    Sync,
}

impl Step {
    pub fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Step::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[*offset..end].copy_from_slice(bytes);
            }
            Step::SetLen(len) => file.resize(*len, 0),
            Step::Sync => {}
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Failure {
    Never,
    /// This call, by its number, and no other.
    Once(usize),
    /// This call and all that change the file after it.
    From(usize),
}

/// A file in memory that writes down what is done to it.
pub struct Recorder {
    state: Mutex<State>,
    failure: Failure,
}

#[derive(Default)]
pub struct State {
    pub file: Vec<u8>,
    pub steps: Vec<Step>,
    calls: usize,
}

impl Recorder {
    pub fn new(file: &[u8], failure: Failure) -> Arc<Self> {
        let state = State { file: file.to_vec(), ..State::default() };
        Arc::new(Recorder { state: Mutex::new(state), failure })
    }

    pub fn with<T>(&self, call: impl FnOnce(&mut State) -> T) -> T {
        call(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn file(&self) -> Vec<u8> {
        self.with(|state| state.file.clone())
    }

    fn change(&self, step: Step) -> io::Result<()> {
        self.with(|state| {
            let call = state.calls;
            state.calls += 1;
            let fails = match self.failure {
                Failure::Never => false,
                Failure::Once(at) => call == at,
                Failure::From(at) => call >= at,
            };
            if fails {
                // A write that fails may have written a part, unless the file is only to be cut.
                if let Step::Write { offset, bytes } = &step
                    && *offset < state.file.len()
                {
                    let len = (bytes.len() / 2).min(state.file.len() - offset);
                    let part = Step::Write { offset: *offset, bytes: bytes[..len].to_vec() };
                    part.apply(&mut state.file);
                }
                return Err(io::ErrorKind::StorageFull.into());
            }
            step.apply(&mut state.file);
            state.steps.push(step);
            Ok(())
        })
    }
}

impl Storage for Recorder {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.with(|state| state.file.len() as u64))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.with(|state| {
            let start = usize::try_from(offset).unwrap();
            let bytes = state.file.get(start..start + buf.len());
            buf.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let bytes = bytes.to_vec();
        let offset = usize::try_from(offset).unwrap();
        self.change(Step::Write { offset, bytes })
    }

    fn set_len(&self, byte_len: u64) -> io::Result<()> {
        self.change(Step::SetLen(usize::try_from(byte_len).unwrap()))
    }

    fn sync(&self) -> io::Result<()> {
        self.change(Step::Sync)
    }
}

/// One way to change a file.
pub struct Operation {
    pub name: &'static str,
    pub edit: fn(&mut Editor) -> zt::Result<()>,
}

pub const OPERATIONS: [Operation; 4] = [
    Operation { name: "append", edit: |edit| edit.writer().add("new", &dense(&[9; 5000])) },
    Operation {
        name: "append more than there is room for",
        edit: |edit| {
            edit.writer().add("new", &dense(&vec![9; 700_000]))?;
            edit.writer().add("newer", &dense(&vec![8; 400_000]))
        },
    },
    Operation { name: "remove", edit: |edit| edit.remove("a") },
    Operation {
        name: "rename and set",
        edit: |edit| {
            edit.rename("a", "renamed")?;
            let mut attributes = edit.attributes().cloned().unwrap_or_default();
            attributes.insert("key", zt::Value::from(1u64));
            edit.set_attributes(attributes)
        },
    },
];

pub fn dense(values: &[i32]) -> Dense<'_> {
    Dense::from_slice(&[values.len() as u64], values).unwrap()
}

pub fn old_file() -> Vec<u8> {
    old_file_of(2)
}

/// A file of that many objects.
pub fn old_file_of(objects: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.add("a", &dense(&[1; 3000])).unwrap();
    writer.add("b", &dense(&[2; 10])).unwrap();
    for object in 2..objects {
        writer.add(&format!("layers.{object}.weight"), &dense(&[3; 10])).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

pub fn values(file: &[u8]) -> Result<Values> {
    let file = File::from_bytes(file.to_vec())?;
    let read = |name: &str| Ok((name.to_owned(), file.tensor(name)?.to_vec::<i32>()?));
    file.names().map(read).collect()
}

pub fn run(storage: &Arc<Recorder>, operation: &Operation) -> zt::Result<()> {
    let mut edit = edit(storage)?;
    (operation.edit)(&mut edit)?;
    edit.commit()
}

pub fn edit(storage: &Arc<Recorder>) -> zt::Result<Editor> {
    let storage = Arc::clone(storage) as Arc<dyn Storage>;
    WriteOptions::new().threads(1).edit_storage(storage)
}

/// What the operation does when nothing goes wrong: its steps, the old values and the new ones.
pub fn whole(operation: &Operation) -> (Vec<u8>, Vec<Step>, Values, Values) {
    whole_of(old_file(), operation)
}

/// As [`whole`], of an edit of `old`.
pub fn whole_of(old: Vec<u8>, operation: &Operation) -> (Vec<u8>, Vec<Step>, Values, Values) {
    let storage = Recorder::new(&old, Failure::Never);
    run(&storage, operation).unwrap();
    let (new, steps) = storage.with(|state| (state.file.clone(), state.steps.clone()));
    let (before, after) = (values(&old).unwrap(), values(&new).unwrap());
    (old, steps, before, after)
}

/// The lengths that a loss of power may leave of a file that grows.
#[derive(Debug, Clone, Copy)]
pub enum Lengths {
    /// Any between the old length and the new one.
    Bytes,
    /// The file grows by each page that is written, and a length may be rounded up to a page.
    Pages,
}

/// What a loss of power may leave of `steps`: all that was synced, of the rest any of the pages that
/// were written, and any length that the file had meanwhile.
pub fn torn(old: &[u8], steps: &[Step], lengths: Lengths, rng: &mut impl Rng) -> Vec<u8> {
    const PAGE: usize = 4096;
    let is_sync = |step: &Step| matches!(step, Step::Sync);
    let synced = steps.iter().rposition(is_sync).map_or(0, |at| at + 1);
    let (durable, unsynced) = steps.split_at(synced);
    let mut file = old.to_vec();
    durable.iter().for_each(|step| step.apply(&mut file));

    let mut found = vec![file.len()];
    let mut len = file.len();
    for step in unsynced {
        match step {
            Step::Write { offset, bytes } => {
                let end = offset + bytes.len();
                let grown = len.max(end);
                match lengths {
                    Lengths::Bytes => found.push(len + rng.next_u32() as usize % (grown - len + 1)),
                    Lengths::Pages => {
                        let from = len.max(*offset);
                        let pages = grown.saturating_sub(from).div_ceil(PAGE);
                        let page = rng.next_u32() as usize % (pages + 1);
                        found.push((from + page * PAGE).min(grown));
                    }
                }
                len = grown;
                file.resize(file.len().max(end), 0);
                let mut start = *offset;
                while start < end {
                    let next = (start / PAGE + 1) * PAGE;
                    let piece = start..next.min(end);
                    if rng.next_u32().is_multiple_of(2) {
                        file[piece.clone()]
                            .copy_from_slice(&bytes[piece.start - offset..piece.end - offset]);
                    }
                    start = next;
                }
            }
            Step::SetLen(set) => {
                len = *set;
                if matches!(lengths, Lengths::Pages) {
                    found.push(len.next_multiple_of(PAGE));
                }
            }
            Step::Sync => {}
        }
        found.push(len);
    }
    file.resize(found[rng.next_u32() as usize % found.len()], 0);
    file
}
