//! Files are compared with a seal, and what differs is named.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use zt::foreign::on_threads;
use zt::{Error, Result, Source, Span};
use zt_foreign::Opened;

use crate::fault::in_tensors;
use crate::files::Files;
use crate::options::SealOptions;
use crate::seal::{Seal, SealedFile};
use crate::tree::LEAF;
use crate::walk::{Job, Shape, walk};

/// What was found of one file.
#[derive(Debug)]
#[non_exhaustive]
pub struct Checked {
    /// Its path in the seal; of a file that is not in it, its path in the folder.
    pub path: String,
    /// Where it was looked for.
    pub at: PathBuf,
    /// How it compares with the seal.
    pub state: State,
}

/// How a file compares with the seal.
#[derive(Debug)]
#[non_exhaustive]
pub enum State {
    /// Every leaf is right.
    Right,
    /// It is not there.
    Missing,
    /// It differs.
    Wrong {
        /// The number of its bytes. The seal has the right one.
        byte_len: u64,
        /// What is wrong within the right length.
        flaws: Vec<Flaw>,
        /// The file of the seal that it is in truth.
        is: Option<String>,
    },
    /// It could not be read.
    Unread(Error),
    /// The seal does not have it.
    Extra {
        /// The file of the seal that it is in truth.
        is: Option<String>,
    },
}

/// Adjacent leaves that are wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flaw {
    /// The leaves.
    pub leaves: Range<u64>,
    /// Their bytes.
    pub span: Span,
    /// What is there instead.
    pub damage: Damage,
    /// The tensors with bytes in them, in the order of their names.
    pub tensors: Vec<String>,
}

/// What is in the place of the right bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// Other bytes.
    Other,
    /// Zeros only: the system or a download has reserved the place.
    Zeros,
    /// Nothing, because the file ends before the end of the leaf.
    Cut,
}

impl Damage {
    /// One word: `other`, `zeros` or `cut`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Damage::Other => "other",
            Damage::Zeros => "zeros",
            Damage::Cut => "cut",
        }
    }
}

/// Compares files with a seal, on all cores. `wanted` has the number of a file in the seal and its path in `files`;
/// `extra` are paths of files that the seal does not have. The results are in this order.
///
/// Only lengths and leaves are compared. They decide about every byte, so neither SHA-256 nor tensors are computed.
///
/// # Errors
///
/// Only an interruption: a file that cannot be read has it in its result.
pub fn check(
    files: &Files,
    seal: &Seal,
    wanted: &[(usize, String)],
    extra: &[String],
    options: &SealOptions<'_>,
) -> Result<Vec<Checked>> {
    on_threads(options.threads, || {
        let check = Check { files, seal, options };
        let mut checked = check.wanted(wanted)?;
        for file in &mut checked {
            if let State::Wrong { byte_len, is, .. } = &mut file.state {
                let place = wanted.iter().find(|(at, _)| {
                    seal.files.get(*at).is_some_and(|sealed| sealed.path == file.path)
                });
                let opened = place.map(|(_, name)| check.open(name));
                *is = check.identify(opened.unwrap_or(Ok(None)), *byte_len, &file.path)?;
            }
        }
        for name in extra {
            let opened = check.open(name);
            let byte_len =
                opened.as_ref().ok().and_then(Option::as_ref).map_or(0, |it| it.byte_len());
            let is = check.identify(opened, byte_len, name)?;
            let at = files.path_of(name);
            checked.push(Checked { path: name.clone(), at, state: State::Extra { is } });
        }
        Ok(checked)
    })
}

struct Check<'c> {
    files: &'c Files,
    seal: &'c Seal,
    options: &'c SealOptions<'c>,
}

/// What a leaf is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Right,
    Wrong(Damage),
}

impl Check<'_> {
    fn open(&self, name: &str) -> Opened {
        self.files.open(&[name]).pop().unwrap_or(Ok(None))
    }

    fn wanted(&self, wanted: &[(usize, String)]) -> Result<Vec<Checked>> {
        /// Files that are opened together: a store answers them at once.
        const TOGETHER: usize = 32;
        let mut states: Vec<Option<State>> = Vec::new();
        states.resize_with(wanted.len(), || None);
        let lens = RefCell::new(vec![0; wanted.len()]);
        let mut opened: VecDeque<(usize, Opened)> = VecDeque::new();
        let mut rest = (0..).zip(wanted);
        let mut refused = Vec::new();
        walk(
            Shape::new(self.options.threads, false),
            self.options.progress,
            || loop {
                if opened.is_empty() {
                    let now: Vec<_> = rest.by_ref().take(TOGETHER).collect();
                    let names: Vec<&str> = now.iter().map(|(_, (_, name))| name.as_str()).collect();
                    let numbers = now.iter().map(|(at, _)| *at);
                    opened.extend(numbers.zip(self.files.open(&names)));
                }
                let Some((at, source)) = opened.pop_front() else { return Ok(None) };
                let sealed = wanted.get(at).and_then(|(at, _)| self.seal.files.get(*at));
                match (source, sealed) {
                    (Ok(Some(source)), Some(sealed)) => {
                        let found = source.byte_len();
                        if let Some(len) = lens.borrow_mut().get_mut(at) {
                            *len = found;
                        }
                        let whole = found.strict_sub(found % LEAF);
                        let byte_len =
                            if found < sealed.byte_len { whole } else { sealed.byte_len };
                        return Ok(Some(Job { at, byte_len, source: source.into(), chain: () }));
                    }
                    (Ok(_), _) => refused.push((at, State::Missing)),
                    (Err(error), _) => refused.push((at, State::Unread(error))),
                }
            },
            |leaf| {
                let sealed = wanted.get(leaf.file).and_then(|(at, _)| self.seal.files.get(*at));
                compare(sealed, leaf.at, leaf.bytes)
            },
            |job, found| {
                let sealed =
                    wanted.get(job.at).and_then(|(at, _)| Some((*at, self.seal.files.get(*at)?)));
                let byte_len = lens.borrow().get(job.at).copied().unwrap_or_default();
                let state = sealed.map(|(at, sealed)| self.state(at, sealed, byte_len, found));
                if let (Some(place), Some(state)) = (states.get_mut(job.at), state) {
                    *place = Some(state);
                }
                Ok(())
            },
        )?;
        for (at, state) in refused {
            if let Some(place) = states.get_mut(at) {
                *place = Some(state);
            }
        }
        let checked = states.into_iter().zip(wanted).map(|(state, (at, name))| Checked {
            path: self.seal.files.get(*at).map_or_else(|| name.clone(), |it| it.path.clone()),
            at: self.files.path_of(name),
            state: state.unwrap_or(State::Missing),
        });
        Ok(checked.collect())
    }

    fn state(
        &self,
        at: usize,
        sealed: &SealedFile,
        byte_len: u64,
        found: Vec<Result<Found>>,
    ) -> State {
        let mut flaws: Vec<Flaw> = Vec::new();
        let mut found = found.into_iter();
        for leaf in 0..sealed.leaf_count() {
            let Some(span) = sealed.leaf_span(leaf) else { break };
            let damage = match found.next() {
                _ if span.end() > byte_len => Damage::Cut,
                Some(Ok(Found::Right)) => continue,
                Some(Ok(Found::Wrong(damage))) => damage,
                Some(Err(error)) => return State::Unread(error),
                None => Damage::Cut,
            };
            let last = flaws.last_mut().filter(|it| it.leaves.end == leaf && it.damage == damage);
            match last {
                Some(last) => {
                    last.leaves.end = leaf.strict_add(1);
                    let joined = span.end().strict_sub(last.span.offset());
                    last.span = Span::new(last.span.offset(), joined).unwrap_or(last.span);
                }
                None => {
                    let leaves = leaf..leaf.strict_add(1);
                    flaws.push(Flaw { leaves, span, damage, tensors: Vec::new() });
                }
            }
        }
        if flaws.is_empty() && byte_len == sealed.byte_len {
            return State::Right;
        }
        for flaw in &mut flaws {
            flaw.name_tensors(self.seal, at);
        }
        State::Wrong { byte_len, flaws, is: None }
    }

    /// The file of the seal that has these bytes, other than `but`.
    fn identify(&self, opened: Opened, byte_len: u64, but: &str) -> Result<Option<String>> {
        let Ok(Some(source)) = opened else { return Ok(None) };
        let source: Arc<dyn Source> = source.into();
        let alike =
            self.seal.files.iter().filter(|file| file.byte_len == byte_len && file.path != but);
        for sealed in alike.filter(|file| file.byte_len > 0) {
            let first = sealed.leaf_span(0).unwrap_or_default();
            let mut bytes = Vec::new();
            let read = zt::container::memory::fetch(&mut bytes, &*source, first);
            if !read.is_ok_and(|bytes| sealed.has_leaf(0, bytes)) {
                continue;
            }
            let mut job = Some(Job { at: 0, byte_len, source: Arc::clone(&source), chain: () });
            let mut is_same = false;
            walk(
                Shape::new(self.options.threads, false),
                None,
                || Ok(job.take()),
                |leaf| sealed.has_leaf(leaf.at, leaf.bytes),
                |_, found| {
                    is_same = found.into_iter().all(|leaf| leaf.unwrap_or(false));
                    Ok(())
                },
            )?;
            if is_same {
                return Ok(Some(sealed.path.clone()));
            }
        }
        Ok(None)
    }
}

fn compare(sealed: Option<&SealedFile>, at: u64, bytes: &[u8]) -> Found {
    match sealed {
        Some(sealed) if sealed.has_leaf(at, bytes) => Found::Right,
        _ if is_zero(bytes) => Found::Wrong(Damage::Zeros),
        _ => Found::Wrong(Damage::Other),
    }
}

/// Whether there are only zeros, and some.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0)
}

impl Checked {
    /// Whether the file is as it was sealed.
    pub const fn is_right(&self) -> bool {
        matches!(self.state, State::Right)
    }
}

impl Flaw {
    /// What is wrong with one leaf, which has these bytes.
    pub(crate) fn of_leaf(seal: &Seal, file: usize, leaf: u64, bytes: &[u8]) -> Self {
        let span = seal.files.get(file).and_then(|file| file.leaf_span(leaf)).unwrap_or_default();
        let damage = if is_zero(bytes) { Damage::Zeros } else { Damage::Other };
        let mut flaw = Flaw { leaves: leaf..leaf.strict_add(1), span, damage, tensors: Vec::new() };
        flaw.name_tensors(seal, file);
        flaw
    }

    pub(crate) fn name_tensors(&mut self, seal: &Seal, file: usize) {
        let mut tensors: Vec<String> =
            seal.tensors_in(file, self.span).map(str::to_owned).collect();
        tensors.sort_unstable();
        tensors.dedup();
        self.tensors = tensors;
    }

    /// The text about these leaves of the file `name`: `leaf 17 of model.zt: bytes 17825792..18874368 differ from
    /// the seal, in w`.
    pub fn of(&self, name: &str) -> String {
        let Range { start, end } = self.leaves;
        let leaves = match end.saturating_sub(start) {
            0 | 1 => format!("leaf {start}"),
            _ => format!("leaves {start}..{end}"),
        };
        let damage = match self.damage {
            Damage::Other => "differ from the seal",
            Damage::Zeros => "are zeros, and the seal has others",
            Damage::Cut => "are missing or incomplete",
        };
        let (from, to) = (self.span.offset(), self.span.end());
        let (name, tensors) = (name.escape_debug(), in_tensors(&self.tensors));
        format!("{leaves} of {name}: bytes {from}..{to} {damage}{tensors}")
    }
}
