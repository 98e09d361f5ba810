//! A stream of decisions taken from bytes.
//!
//! Fuzzers mutate bytes and proptest shrinks them; both get whole files out of them here. The
//! same bytes always decide the same, and where they end everything is 0, which every generator
//! takes for the smallest choice, so that it ends too. (proptest's own generators cannot be driven
//! this way: behind `RngAlgorithm::PassThrough` they wait for ever for a number that is not zero.)

/// Bytes that have not decided anything yet.
#[derive(Debug, Clone)]
pub struct Decisions<'a> {
    bytes: &'a [u8],
}

impl<'a> Decisions<'a> {
    /// Decisions from these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Decisions { bytes }
    }

    /// The next byte; 0 where there are no more.
    pub fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
            None => 0,
        }
    }

    /// The next bytes, followed by zeros where there are no more.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let (taken, rest) = self.bytes.split_at(len.min(self.bytes.len()));
        self.bytes = rest;
        let mut out = taken.to_vec();
        out.resize(len, 0);
        out
    }

    /// A number of any size: one byte says how many follow.
    pub fn number(&mut self) -> u64 {
        let mut wide = [0; 8];
        let len = self.below(9);
        wide[..len].copy_from_slice(&self.bytes(len));
        u64::from_le_bytes(wide)
    }

    /// A number from 0 to one less than `bound`, which is at least 1 and at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// `true` once in `chances`; `false` where there are no more bytes.
    pub fn once_in(&mut self, chances: usize) -> bool {
        self.below(chances) == chances - 1
    }

    /// One of a few, the first where there are no more bytes.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// Fewer than `bound` things.
    pub fn list<T>(&mut self, bound: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let len = self.below(bound);
        (0..len).map(|_| make(self)).collect()
    }

    /// A thing, once in `chances`.
    pub fn maybe<T>(&mut self, chances: usize, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.once_in(chances).then(|| make(self))
    }
}
