//! One operation, done by several contestants in turn: rounds, medians, ranges, targets.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use memmap2::MmapMut;
use rayon::{ThreadPool, ThreadPoolBuilder};
use rustix::fs::{Advice, fadvise};

use crate::Result;

/// Who a contestant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// We, in the way that a target is about: the first of these is what others are compared with.
    Ours,
    /// Another library, at the version that its name says.
    Peer,
    /// What the machine can do: the same bytes through a bare call or kernel.
    Limit,
}

/// Someone who does the operation.
pub struct Contestant<'a> {
    /// Who, and in which way.
    pub name: String,
    /// Us, a peer or a limit.
    pub role: Role,
    run: Run<'a>,
}

/// Does the operation once and says how long it took, without preparing and cleaning up. With
/// `true` it also sees that the work was done: an error if it was not.
type Run<'a> = Box<dyn FnMut(bool) -> Result<Turn> + 'a>;

/// What one turn has given.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// How long the operation took.
    pub took: Duration,
    /// Bytes of what was written, where they are of interest.
    pub stored: Option<u64>,
}

impl Turn {
    /// A turn that wrote so many bytes.
    #[must_use]
    pub const fn stored(took: Duration, stored: u64) -> Self {
        let stored = Some(stored);
        Turn { took, stored }
    }
}

impl From<Duration> for Turn {
    fn from(took: Duration) -> Self {
        Turn { took, stored: None }
    }
}

/// A target: our time compared with another contestant's time in the same run.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Which of us; `None` is the first.
    pub ours: Option<&'static str>,
    /// The name of the other.
    pub against: &'static str,
    /// Our speed must be at least this many times the other's.
    pub speed: f64,
}

/// One operation and those who do it.
pub struct Contest<'a> {
    /// A name for the command line.
    pub id: &'static str,
    /// What is done.
    pub title: String,
    /// Bytes of decoded values that it is done to; `None` where only the time matters.
    pub byte_len: Option<u64>,
    /// Bytes of memory that every turn takes and gives back: touched before it.
    memory: u64,
    /// A folder whose files leave the page cache before every turn.
    cold: Option<PathBuf>,
    /// Those who do it.
    pub contestants: Vec<Contestant<'a>>,
    /// What we owe.
    pub targets: Vec<Target>,
    /// What our output may be of the decoded bytes at most.
    pub owed_size: Option<f64>,
    /// What has to be known to read the figures: threads, digests, durability.
    pub remarks: Vec<String>,
}

impl<'a> Contest<'a> {
    /// An operation without contestants.
    #[must_use]
    pub fn new(id: &'static str, title: impl Into<String>, byte_len: Option<u64>) -> Self {
        Contest {
            id,
            title: title.into(),
            byte_len,
            memory: 0,
            cold: None,
            contestants: Vec::new(),
            targets: Vec::new(),
            owed_size: None,
            remarks: Vec::new(),
        }
    }

    /// Adds a contestant. `run` does the operation once and returns its time; with `true` it also
    /// compares the outcome with what it has to be, and may say how large it is.
    pub fn add<T: Into<Turn>>(
        &mut self,
        role: Role,
        name: impl Into<String>,
        mut run: impl FnMut(bool) -> Result<T> + 'a,
    ) {
        self.contestants.push(Contestant {
            name: name.into(),
            role,
            run: Box::new(move |check| run(check).map(Into::into)),
        });
    }

    /// As [`Contest::add`], twice: on all threads of rayon's pool, and on one.
    ///
    /// # Errors
    ///
    /// Where the system refuses a thread.
    pub fn add_both<T: Into<Turn> + Send>(
        &mut self,
        role: Role,
        name: &str,
        run: impl Fn(bool) -> Result<T> + Send + Sync + 'a,
    ) -> Result<()> {
        let one: ThreadPool = ThreadPoolBuilder::new().num_threads(1).build()?;
        let run = Arc::new(run);
        let all = Arc::clone(&run);
        self.add(role, name, move |check| all(check));
        self.add(role, format!("{name}, 1 thread"), move |check| one.install(|| run(check)));
        Ok(())
    }

    /// Adds a target: so many times the speed of the contestant called `against`.
    pub fn owes(&mut self, speed: f64, against: &'static str) {
        self.targets.push(Target { ours: None, against, speed });
    }

    /// As [`Contest::owes`], for the contestant of ours with that name.
    pub fn one_owes(&mut self, ours: &'static str, speed: f64, against: &'static str) {
        self.targets.push(Target { ours: Some(ours), against, speed });
    }

    /// The files in `folder` leave the page cache before every turn. Only those on a disk can.
    pub fn starts_cold(&mut self, folder: &Path) {
        self.cold = Some(folder.to_owned());
    }

    /// Adds a target: our output is at most that part of the decoded bytes.
    pub const fn owes_size(&mut self, ratio: f64) {
        self.owed_size = Some(ratio);
    }

    /// Every turn takes so many bytes of memory, or of files in memory, and gives them back.
    pub fn takes_memory(&mut self, byte_len: u64) {
        self.memory = byte_len.saturating_mul(2);
        self.remark(
            "Before each turn, untimed, the benchmark touches and frees twice as much memory as the turn \
             takes: a hypervisor takes back memory that is free for some seconds.",
        );
    }

    /// Adds what has to be known to read the figures.
    pub fn remark(&mut self, remark: impl Into<String>) {
        self.remarks.push(remark.into());
    }

    /// Everyone once to warm up, with the outcome compared; then `rounds` rounds in which everyone
    /// takes a turn, each beginning with the next contestant and every other one backwards, because
    /// what one leaves in caches and free memory is met by the one after it. Memory that turns
    /// take is touched before each of them.
    ///
    /// # Errors
    ///
    /// The first of any contestant, with its name.
    pub fn hold(mut self, rounds: usize) -> Result<Standing> {
        let count = self.contestants.len();
        let mut times = vec![Vec::with_capacity(rounds); count];
        let mut stored = Vec::with_capacity(count);
        for contestant in &mut self.contestants {
            stored.push(contestant.turn(self.id, true)?.stored);
        }
        for round in 0..rounds {
            for turn in 0..count {
                let step = if round % 2 == 0 { turn } else { count - turn };
                let at = (round + step) % count;
                if let (Some(contestant), Some(times)) =
                    (self.contestants.get_mut(at), times.get_mut(at))
                {
                    fresh_heap();
                    warm(self.memory)?;
                    if let Some(folder) = &self.cold {
                        evict(folder)?;
                    }
                    times.push(contestant.turn(self.id, false)?.took);
                }
            }
        }
        let results = self.contestants.into_iter().zip(times).zip(stored);
        Ok(Standing {
            id: self.id,
            title: self.title,
            byte_len: self.byte_len,
            results: results
                .map(|((contestant, times), stored)| Timed {
                    stored,
                    ..Timed::new(contestant.name, contestant.role, times)
                })
                .collect(),
            targets: self.targets,
            owed_size: self.owed_size,
            remarks: self.remarks,
        })
    }
}

impl Contestant<'_> {
    /// One turn.
    ///
    /// # Errors
    ///
    /// The error of the contestant, with its name and the name of the operation.
    pub fn turn(&mut self, id: &str, check: bool) -> Result<Turn> {
        (self.run)(check).map_err(|error| format!("{id}: {}: {error}", self.name).into())
    }
}

/// Gives the memory that is free in the heap back to the system. Otherwise the next contestant meets the
/// pages of the last one, and is spared its page faults: up to three times as fast.
fn fresh_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it changes nothing that is allocated.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Files in `folder` are written out, and leave the page cache.
fn evict(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let file = File::open(entry?.path())?;
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

/// Touches `byte_len` bytes of memory and frees them.
///
/// Hypervisors take away memory that a machine has left free for some seconds, and give it back when it is
/// touched. That takes longer than most operations here. Without this, the contestant after a long turn
/// would wait for it.
fn warm(byte_len: u64) -> Result<()> {
    const PAGE: usize = 4096;
    if byte_len == 0 {
        return Ok(());
    }
    let mut memory = MmapMut::map_anon(usize::try_from(byte_len)?)?;
    // As much memory for a small part of the faults. Not every system has larger pages.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    for page in memory.chunks_mut(PAGE) {
        page.fill(1);
    }
    Ok(())
}

/// The outcome of a contest.
#[derive(Debug)]
pub struct Standing {
    /// As of the contest.
    pub id: &'static str,
    /// As of the contest.
    pub title: String,
    /// As of the contest.
    pub byte_len: Option<u64>,
    /// Times of each contestant, in their order.
    pub results: Vec<Timed>,
    /// As of the contest.
    pub targets: Vec<Target>,
    /// As of the contest.
    pub owed_size: Option<f64>,
    /// As of the contest.
    pub remarks: Vec<String>,
}

/// The times of one contestant.
#[derive(Debug)]
pub struct Timed {
    /// Who.
    pub name: String,
    /// Us, a peer or a limit.
    pub role: Role,
    /// Bytes of what was written, where they are of interest.
    pub stored: Option<u64>,
    /// Seconds of each round, in their order.
    rounds: Vec<f64>,
    /// The same, the shortest first.
    seconds: Vec<f64>,
}

impl Timed {
    fn new(name: String, role: Role, times: Vec<Duration>) -> Self {
        let rounds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
        let mut seconds = rounds.clone();
        seconds.sort_by(f64::total_cmp);
        Timed { name, role, stored: None, rounds, seconds }
    }

    /// The middle of all rounds, in seconds.
    #[must_use]
    pub fn median(&self) -> f64 {
        let upper = self.seconds.get(self.seconds.len() / 2);
        let lower = self.seconds.get(self.seconds.len().saturating_sub(1) / 2);
        match (lower, upper) {
            (Some(lower), Some(upper)) => (lower + upper) / 2.0,
            _ => f64::NAN,
        }
    }

    /// The shortest and the longest round, in seconds.
    #[must_use]
    pub fn range(&self) -> [f64; 2] {
        [self.seconds.first(), self.seconds.last()].map(|time| time.copied().unwrap_or(f64::NAN))
    }
}

impl Standing {
    /// Our result, which others are compared with.
    #[must_use]
    pub fn ours(&self) -> Option<&Timed> {
        self.results.iter().find(|timed| timed.role == Role::Ours)
    }

    /// How many times the speed of `other` ours is.
    #[must_use]
    pub fn speed_against(&self, other: &Timed) -> f64 {
        self.ours().map_or(f64::NAN, |ours| other.median() / ours.median())
    }

    /// What our output may be of the decoded bytes at most, and what it is.
    #[must_use]
    pub fn reached_size(&self) -> Option<(f64, f64)> {
        let stored = self.ours()?.stored? as f64;
        Some((self.owed_size?, stored / self.byte_len? as f64))
    }

    /// Every target with what was reached.
    pub fn reached(&self) -> impl Iterator<Item = (&Target, f64)> {
        self.targets.iter().filter_map(|target| {
            let named = |name: &str| self.results.iter().find(|timed| timed.name == name);
            let ours = target.ours.map_or_else(|| self.ours(), named)?;
            Some((target, named(target.against)?.median() / ours.median()))
        })
    }

    /// How many times the speed of `other` ours was, round by round: the lowest and the highest.
    #[must_use]
    pub fn range_against(&self, other: &Timed) -> [f64; 2] {
        let ours = self.ours().into_iter().flat_map(|ours| &ours.rounds);
        let ratios = ours.zip(&other.rounds).map(|(ours, other)| other / ours);
        ratios
            .fold([f64::INFINITY, 0.0], |[least, most], ratio| [ratio.min(least), ratio.max(most)])
    }
}

/// Does the work and says how long it took; what it makes is dropped afterwards, by the caller.
///
/// # Errors
///
/// That of the work.
pub fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(Duration, T)>
where
    crate::Error: From<E>,
{
    let start = Instant::now();
    let outcome = work();
    let took = start.elapsed();
    Ok((took, outcome?))
}

/// An error, unless `is_so`.
///
/// # Errors
///
/// The message.
pub fn expect(is_so: bool, message: impl FnOnce() -> String) -> Result<()> {
    if is_so { Ok(()) } else { Err(message().into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_of_the_rounds() {
        let timed = |millis: &[u64]| {
            let times = millis.iter().map(|&time| Duration::from_millis(time));
            Timed::new("x".into(), Role::Ours, times.collect())
        };
        assert_eq!(timed(&[3, 1, 2]).median(), 0.002);
        assert_eq!(timed(&[4, 1, 3, 2]).median(), 0.0025);
        assert_eq!(timed(&[3, 1, 2]).range(), [0.001, 0.003]);
    }

    #[test]
    fn everyone_is_checked_once_and_takes_a_turn_in_every_round() {
        let calls = std::cell::RefCell::new(Vec::new());
        let mut contest = Contest::new("test", "test", None);
        for name in ["a", "b", "c"] {
            let calls = &calls;
            contest.add(Role::Ours, name, move |check| {
                calls.borrow_mut().push((name, check));
                Ok(Duration::from_millis(1))
            });
        }
        contest.owes(1.0, "b");
        let standing = contest.hold(2).unwrap();
        let (warm, cold) = (true, false);
        let expected = [
            ("a", warm),
            ("b", warm),
            ("c", warm),
            ("a", cold),
            ("b", cold),
            ("c", cold),
            ("b", cold),
            ("a", cold),
            ("c", cold),
        ];
        assert_eq!(*calls.borrow(), expected);
        let reached: Vec<f64> = standing.reached().map(|(_, speed)| speed).collect();
        assert_eq!(reached, [1.0]);
    }
}
