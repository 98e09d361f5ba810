//! Digests that are computed from front to back, on other threads than the writing one.
//!
//! SHA-256 cannot be split, so one core hashes one component. The chains of several components run
//! in parallel, each on the bytes that were written so far.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use zt_container::{Digest, DigestAlgorithm, Hasher};

use crate::cores::work::{Workers, lock, wait};
use crate::error::Result;
use crate::write::tools::{BACKLOG, Tools};

/// The digest of one blob in the making.
pub(crate) struct Chain(Arc<Link>);

struct Link {
    state: Mutex<State>,
    /// Notified when a piece was hashed, or the hasher is back.
    changed: Condvar,
    /// The number of waiting bytes, of all chains.
    backlog: Arc<AtomicUsize>,
    tools: Arc<Tools>,
}

struct State {
    pieces: VecDeque<Vec<u8>>,
    /// `None` while a thread hashes with it.
    hasher: Option<Hasher>,
    /// A thread was asked to hash and has not begun.
    is_called: bool,
}

pub(crate) struct Chains {
    links: Vec<Arc<Link>>,
    backlog: Arc<AtomicUsize>,
}

impl Chains {
    pub(crate) fn new() -> Self {
        Chains { links: Vec::new(), backlog: Arc::default() }
    }

    pub(crate) fn begin(
        &mut self,
        algorithm: DigestAlgorithm,
        tools: &Arc<Tools>,
    ) -> Result<Chain> {
        let link = Arc::new(Link {
            state: Mutex::new(State {
                pieces: VecDeque::new(),
                hasher: Some(Hasher::new(algorithm)?),
                is_called: false,
            }),
            changed: Condvar::new(),
            backlog: Arc::clone(&self.backlog),
            tools: Arc::clone(tools),
        });
        self.links.retain(|link| link.has_work());
        self.links.push(Arc::clone(&link));
        Ok(Chain(link))
    }

    /// Takes in the next bytes of a blob. Waits if too many bytes are waiting, and hashes them
    /// itself if no other thread does.
    pub(crate) fn push(&mut self, chain: &Chain, workers: &Workers, piece: Vec<u8>) {
        self.backlog.fetch_add(piece.len(), Ordering::Relaxed);
        let must_call = {
            let mut state = lock(&chain.0.state);
            state.pieces.push_back(piece);
            let must_call = state.hasher.is_some() && !state.is_called;
            state.is_called |= must_call;
            must_call
        };
        if must_call {
            let link = Arc::clone(&chain.0);
            workers.spawn(move || link.run());
        }
        while self.backlog.load(Ordering::Relaxed) > BACKLOG {
            match self.links.iter().find(|link| link.has_work()) {
                Some(link) => link.advance(),
                None => return,
            }
        }
    }
}

impl Chain {
    /// Waits for the digest of everything pushed.
    pub(crate) fn finish(self) -> Option<Digest> {
        self.0.run();
        let mut state = lock(&self.0.state);
        loop {
            if state.pieces.is_empty()
                && let Some(hasher) = state.hasher.take()
            {
                return Some(hasher.finish());
            }
            state = wait(&self.0.changed, state);
        }
    }
}

impl Link {
    fn has_work(&self) -> bool {
        let state = lock(&self.state);
        !state.pieces.is_empty() || state.hasher.is_none()
    }

    /// Hashes the waiting bytes, unless another thread does.
    fn run(&self) {
        let mut state = lock(&self.state);
        state.is_called = false;
        let Some(mut hasher) = state.hasher.take() else {
            return;
        };
        while let Some(piece) = state.pieces.pop_front() {
            drop(state);
            hasher.update(&piece);
            self.backlog.fetch_sub(piece.len(), Ordering::Relaxed);
            self.tools.give_back(piece);
            state = lock(&self.state);
            self.changed.notify_all();
        }
        state.hasher = Some(hasher);
        self.changed.notify_all();
    }

    /// Returns when fewer bytes wait than before.
    fn advance(&self) {
        let state = lock(&self.state);
        if state.hasher.is_none() {
            drop(wait(&self.changed, state));
        } else {
            drop(state);
            self.run();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With one thread, only the writing thread hashes; with more, any thread may.
    #[test]
    fn waiting_bytes_are_bounded_and_the_digest_covers_all() {
        const PIECE: usize = BACKLOG / 4 + 1;
        for threads in [1, 3] {
            let workers = Workers::new(Some(threads)).unwrap();
            let tools = Arc::new(Tools::new(threads));
            let mut chains = Chains::new();
            let mut begun = Vec::new();
            // A chain begins when the one before has all its pieces, hashed or not.
            for at in 0..2u8 {
                let chain = chains.begin(DigestAlgorithm::Sha256, &tools).unwrap();
                let mut all = Vec::new();
                for piece in 0..5 {
                    let piece = vec![at ^ piece; PIECE];
                    all.extend_from_slice(&piece);
                    chains.push(&chain, &workers, piece);
                    assert!(chains.backlog.load(Ordering::Relaxed) <= BACKLOG);
                }
                begun.push((chain, DigestAlgorithm::Sha256.digest(&all).unwrap()));
            }
            for (chain, expected) in begun {
                assert_eq!(chain.finish(), Some(expected));
            }
        }
    }
}
