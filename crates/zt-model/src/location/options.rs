//! How a location is opened.

use std::sync::Arc;

use zt::Progress;
use zt_convert::{InputOptions, Kinds};
#[cfg(feature = "remote")]
use zt_remote::RemoteOptions;
use zt_seal::Seal;

use crate::delta::Check;
use crate::location::Location;

/// How a [`Location`] is opened, read and written.
#[must_use]
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct LocationOptions<'p> {
    /// The kinds of files.
    pub kinds: Kinds,
    /// How the file is opened. Its kind holds for the file alone, and everything else for the base, too.
    pub input: InputOptions,
    /// The base of a delta, and then the earlier deltas, in their order. A file that is no delta
    /// does not use them, and has the warning `base-unused`.
    pub base: Vec<Location>,
    /// What is checked of the base and of the result.
    pub check: Check,
    /// The seal that every byte of the file is compared with as it is read. A base has none.
    pub seal: Option<Arc<Seal>>,
    /// Called with the bytes of stdin as they are copied.
    pub progress: Option<Progress<'p>>,
    /// The connections to the stores of URLs.
    #[cfg(feature = "remote")]
    pub remote: RemoteOptions,
}

impl LocationOptions<'_> {
    /// The defaults: all kinds of this build, and no base.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`kinds`](field@Self::kinds).
    pub fn kinds(mut self, kinds: Kinds) -> Self {
        self.kinds = kinds;
        self
    }

    /// Sets [`input`](field@Self::input).
    pub fn input(mut self, input: impl Into<InputOptions>) -> Self {
        self.input = input.into();
        self
    }

    /// Sets [`base`](field@Self::base).
    pub fn base(mut self, base: impl IntoIterator<Item = Location>) -> Self {
        self.base = base.into_iter().collect();
        self
    }

    /// Sets [`check`](field@Self::check).
    pub const fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    /// Sets [`seal`](field@Self::seal).
    pub fn seal(mut self, seal: impl Into<Arc<Seal>>) -> Self {
        self.seal = Some(seal.into());
        self
    }

    /// Sets [`remote`](field@Self::remote).
    #[cfg(feature = "remote")]
    pub fn remote(mut self, remote: RemoteOptions) -> Self {
        self.remote = remote;
        self
    }
}
