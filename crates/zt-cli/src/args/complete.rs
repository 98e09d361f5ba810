//! Names of objects for the completion of a shell.

use std::ffi::OsStr;
use std::path::Path;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use zt_convert::InputOptions;

use crate::files::kinds;
use crate::files::remote::is_url;
use crate::output::text::has_unsafe;

/// Completes the names of the objects in the file that the command line has before.
pub(crate) fn names() -> ArgValueCompleter {
    ArgValueCompleter::new(candidates)
}

/// The shell runs `zt -- zt show FILE NAME`. The first argument that is a file of a known kind is FILE; a file
/// of a store is not fetched.
fn candidates(begun: &OsStr) -> Vec<CompletionCandidate> {
    let Some(begun) = begun.to_str() else {
        return Vec::new();
    };
    let words = std::env::args_os().skip_while(|word| word != "--");
    // The program and its command.
    let mut paths = words.skip(3).filter(|word| !is_url(Path::new(word)));
    let opened = paths.find_map(|path| {
        let path = Path::new(&path);
        let input = || kinds::table().open(path, InputOptions::new()).ok();
        path.exists().then(input)?
    });
    let Some(input) = opened else {
        return Vec::new();
    };
    let names = input.file().names();
    let names = names.filter(|name| name.starts_with(begun) && !has_unsafe(name));
    names.map(CompletionCandidate::new).collect()
}
