//! `cargo xtask package`: every crate of ours as crates.io would have it.

use crate::error::Result;
use crate::graph::LAYERS;
use crate::shell::{Program, Shell};

/// Builds each package from its own files, with the other packages as its dependencies.
pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    package(shell).run()
}

/// As [`run`] without the builds, which take minutes.
pub(crate) fn in_ci(shell: &Shell) -> Result<()> {
    package(shell).arg("--no-verify").run()
}

fn package(shell: &Shell) -> Program {
    // A change is tried before it is committed.
    let package = shell.cargo("package --locked --quiet --allow-dirty");
    LAYERS.iter().fold(package, |package, name| package.arg("--package").arg(name))
}
