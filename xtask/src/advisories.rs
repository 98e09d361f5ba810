//! `cargo xtask advisories`: dependencies that a security advisory names.
//!
//! No step of `ci`: the database changes without us, so a change that was right yesterday would fail today,
//! and it comes from the network. It is a task for a clock, and for the day of a release.

use crate::error::{Error, Result};
use crate::shell::Shell;

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    if !shell.cargo("deny --version").succeeds() {
        let reason = "cargo-deny is not installed: cargo install --locked cargo-deny";
        return Err(Error::Unavailable(reason.into()));
    }
    let fetched = shell.cargo("deny --locked fetch db").run();
    fetched.map_err(|error| {
        Error::Unavailable(format!(
            "the advisory database could not be fetched: this task needs git and \
             https://github.com/rustsec/advisory-db; nothing was checked ({error})"
        ))
    })?;
    shell.cargo("deny --locked check advisories").run()
}
