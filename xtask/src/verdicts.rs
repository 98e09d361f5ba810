//! `cargo xtask verdicts`: what the official readers make of mutants, stored anew.
//!
//! `conformance/verdicts` has the answers, and the recipe of each mutant instead of its bytes;
//! `conformance/tests/verdicts.rs` holds our readers against them without Python. They are asked again
//! when a reader is released, or when `conformance/src/mutation.rs` changes.
//!
//! Absent here: torch, which takes half a gigabyte to install.

use std::fs;

use crate::error::{Error, Result};
use crate::files::empty;
use crate::interop::environment;
use crate::shell::Shell;

/// Those whose reader is a package of some megabytes.
const KINDS: [&str; 7] = ["gguf", "h5", "npy", "npz", "onnx", "safetensors", "zt"];
const COUNT: u32 = 400;
const SEED: u32 = 1;

/// `[KIND…]`: all without one.
pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let wanted: Vec<&str> = match arguments {
        [] => KINDS.to_vec(),
        kinds => kinds.iter().map(String::as_str).collect(),
    };
    if let Some(other) = wanted.iter().find(|kind| !KINDS.contains(kind)) {
        let known = KINDS.join(" ");
        return Err(Error::Usage(format!("no kind `{other}`; there are: {known}")));
    }
    let python = environment(shell, &shell.target().join("interop"), "verdicts")?;
    let mutants = shell.built("example", "mutants")?;
    let verdicts = shell.root().join("conformance/verdicts");
    fs::create_dir_all(&verdicts).map_err(Error::file(&verdicts))?;
    for kind in wanted {
        let folder = shell.target().join("verdicts").join(kind);
        empty(&folder)?;
        let made = shell.program(&mutants).args(&format!("{kind} {COUNT} {SEED}"));
        made.arg(&folder).run()?;
        let asked = shell.program(&python).arg("conformance/interop/verdicts.py");
        let asked = asked.arg(kind).arg(&folder);
        asked.arg(verdicts.join(format!("{kind}.json"))).run()?;
    }
    Ok(())
}
