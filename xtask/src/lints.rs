//! Crates that read bytes of others refuse unchecked arithmetic and indices, at the head of `lib.rs`.

use std::fs;

use crate::error::{Error, Result};
use crate::files;
use crate::shell::Shell;

const LINT: &str = "#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]";

/// The crates without the lint, and why.
const EXEMPT: &[(&str, &str)] = &[
    ("zt-candle", "it passes values on"),
    ("zt-cli", "it prints what the other crates read"),
    ("zt-report", "it draws figures"),
];

pub(crate) fn check(shell: &Shell) -> Result<()> {
    let crates = shell.root().join("crates");
    let (mut missing, mut count) = (Vec::new(), 0usize);
    for entry in fs::read_dir(&crates).map_err(Error::file(&crates))? {
        let folder = entry.map_err(Error::file(&crates))?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if EXEMPT.iter().any(|(exempt, _)| *exempt == name) {
            continue;
        }
        let path = folder.join("src/lib.rs");
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        count = count.saturating_add(1);
        if !text.lines().any(|line| line == LINT) {
            missing.push(format!("crates/{name}/src/lib.rs"));
        }
    }
    missing.sort();
    Error::unless_empty(
        "no lint of arithmetic and indices at the head, as xtask/src/lints.rs has it:",
        missing,
    )?;
    println!("graph: {count} crates refuse unchecked arithmetic and indices");
    check_allocations(shell)
}

/// Calls that abort if there is no memory.
const INFALLIBLE: &[&str] = &["vec![", ".resize(", "with_capacity(", ".reserve("];

/// A number of a file becomes a length in memory by `in_memory`. Such a length, without a bound beside it, sizes
/// no memory by a call that aborts: `zt_container::memory` has `zeroed` and `resize`, which return errors.
fn check_allocations(shell: &Shell) -> Result<()> {
    let mut found = Vec::new();
    for path in files::below(&shell.root().join("crates"))? {
        let name = files::relative(&path, shell.root());
        if !name.contains("/src/") || !name.ends_with(".rs") {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (number, line) in (1..).zip(code.lines()) {
            let call = INFALLIBLE.iter().find_map(|call| line.split_once(call));
            if call.is_some_and(|(_, size)| size.contains("in_memory(") && !size.contains(".min("))
            {
                found.push(format!("{name}:{number}: {}", line.trim()));
            }
        }
    }
    Error::unless_empty("a size of a file, and a call that aborts without memory:", found)
}
