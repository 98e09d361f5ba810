//! `cargo xtask corpus`: the files of `conformance/corpus` are evidence, and evidence does not
//! change unnoticed.
//!
//! `SHA256SUMS` in that folder has one line for every other file there, as `sha256sum` writes it
//! and sorted by path, so `sha256sum --check SHA256SUMS` does the same for people without this
//! repository's tools. A commit that changes a case changes its line, and the review sees both.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files;
use crate::shell::Shell;

const FOLDER: &str = "conformance/corpus";
const LIST: &str = "SHA256SUMS";

/// Paths below the corpus, with forward slashes, to lower-case hexadecimal digests.
type Sums = BTreeMap<String, String>;

pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let folder = shell.root().join(FOLDER);
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] | ["--check"] => check(&folder),
        ["--write"] => write(&folder),
        _ => Err(Error::Usage("corpus takes --check (the default) or --write".into())),
    }
}

fn check(folder: &Path) -> Result<()> {
    let list = folder.join(LIST);
    let listed = fs::read_to_string(&list).map_err(Error::file(&list))?;
    let present = sums(folder)?;
    let mut places = differences(&parse(&listed), &present);
    if places.is_empty() && listed != print(&present) {
        places.push(format!("{LIST}: not as `cargo xtask corpus --write` writes it"));
    }
    Error::unless_empty(
        "conformance/corpus and its SHA256SUMS disagree; if that is meant, `cargo xtask corpus --write`:",
        places,
    )?;
    println!("corpus: {} files, each as listed", present.len());
    Ok(())
}

fn write(folder: &Path) -> Result<()> {
    let present = sums(folder)?;
    let list = folder.join(LIST);
    fs::write(&list, print(&present)).map_err(Error::file(&list))?;
    println!("corpus: {} files listed in {FOLDER}/{LIST}", present.len());
    Ok(())
}

/// The digests of what is there now.
fn sums(folder: &Path) -> Result<Sums> {
    let mut sums = Sums::new();
    for path in files::below(folder)? {
        let name = files::relative(&path, folder);
        if name != LIST {
            let bytes = fs::read(&path).map_err(Error::file(&path))?;
            sums.insert(name, hex(&Sha256::digest(&bytes)));
        }
    }
    Ok(sums)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn print(sums: &Sums) -> String {
    sums.iter().map(|(path, digest)| format!("{digest}  {path}\n")).collect()
}

/// A line that is not `digest  path` becomes a path that no file has, and is then reported as such.
fn parse(list: &str) -> Sums {
    list.lines()
        .map(|line| line.split_once("  ").unwrap_or(("", line)))
        .map(|(digest, path)| (path.to_owned(), digest.to_owned()))
        .collect()
}

fn differences(listed: &Sums, present: &Sums) -> Vec<String> {
    let gone = listed
        .keys()
        .filter(|path| !present.contains_key(*path))
        .map(|path| format!("{path}: listed, not there"));
    let other = present.iter().filter_map(|(path, digest)| match listed.get(path) {
        None => Some(format!("{path}: there, not listed")),
        Some(old) if old != digest => Some(format!("{path}: changed")),
        Some(_) => None,
    });
    gone.chain(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_sums(entries: &[(&str, &str)]) -> Sums {
        entries.iter().map(|(path, digest)| ((*path).to_owned(), (*digest).to_owned())).collect()
    }

    #[test]
    fn hashes_as_sha256sum_does() {
        // `printf '' | sha256sum`
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hex(&Sha256::digest(b"")), empty);
    }

    #[test]
    fn a_list_that_was_written_reads_back() {
        let sums = some_sums(&[("invalid/two  spaces.zt", "00"), ("valid/a.zt", "01")]);
        assert_eq!(parse(&print(&sums)), sums);
    }

    #[test]
    fn tells_changed_lost_and_unlisted_files_apart() {
        let listed = some_sums(&[("same", "1"), ("changed", "2"), ("lost", "3")]);
        let present = some_sums(&[("same", "1"), ("changed", "4"), ("new", "5")]);
        assert_eq!(
            differences(&listed, &present),
            ["lost: listed, not there", "changed: changed", "new: there, not listed"]
        );
    }

    #[test]
    fn a_line_that_is_no_entry_is_a_difference() {
        assert_eq!(differences(&parse("garbage\n"), &Sums::new()), ["garbage: listed, not there"]);
    }
}
