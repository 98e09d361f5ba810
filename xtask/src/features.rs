//! `cargo xtask features`: every crate alone, without features, with each of its features alone and
//! with all.
//!
//! A build of the whole workspace cannot show that a crate forgot a feature of a dependency, because cargo
//! gives every crate the union of all features.

use crate::error::{Error, Result};
use crate::graph::LAYERS;
use crate::shell::Shell;

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    if !shell.cargo("hack --version").succeeds() {
        return Err(Error::Unavailable("cargo-hack is not installed".into()));
    }
    // clippy and not check: code that a missing feature leaves unused is a warning there. Tests are
    // left out, because they triple the time.
    let clippy = shell.cargo("hack clippy --locked --quiet --each-feature");
    LAYERS
        .iter()
        .fold(clippy, |clippy, name| clippy.arg("--package").arg(name))
        .args("-- --deny warnings")
        .run()?;
    // In zt-container, features decide what a call does and not only which modules exist, so it is tested
    // as well. The step `test` runs with all features.
    shell
        .cargo("hack test --locked --quiet --each-feature --package zt-container")
        .args("--exclude-features default,mmap,readahead --exclude-all-features")
        .run()?;
    shell
        .cargo("test --locked --quiet --package zt-formats --package zt-tensor --package zt-safetensors")
        .args("--features zt-tensor/ndarray,zt-safetensors/safetensors")
        .args("--test ndarray --test official")
        .run()?;
    // Without rayon, one thread does the work of several.
    let serial = shell.cargo("test --locked --quiet --no-default-features --features zstd");
    let serial = serial.args("--package zt-tensor --lib");
    ["checking", "many", "pipeline", "planes", "reading", "runs", "scanning", "threads", "writing"]
        .iter()
        .fold(serial, |serial, name| serial.arg("--test").arg(name))
        .run()?;
    shell
        .cargo("test --locked --quiet --no-default-features --package zt-tensor")
        .args("--test without_zstd")
        .run()
}
