//! `cargo xtask supply-chain`: every crate of others with `unsafe` or C in it is in the tables of
//! `docs/supply-chain.md`, as it is today.
//!
//! A new crate or a new version fails until we have looked at it and changed its row. The count of the word
//! `unsafe` does not measure danger: it shows that the code has changed since we looked at it.

use std::collections::BTreeMap;
use std::fs;

use crate::dependencies::{Id, packages, tree};
use crate::error::{Error, Result};
use crate::files::{below, relative};
use crate::graph::LAYERS;
use crate::shell::Shell;

const PAGE: &str = "docs/supply-chain.md";

/// How often `unsafe` is in the sources of a crate, and how many files of C or assembly it brings.
type Counts = (usize, usize);

/// `[--list]`: what the rows have to begin with.
pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let present = counted(shell)?;
    match arguments {
        [] => check(shell, &present),
        [only] if only == "--list" => {
            for (id, counts) in &present {
                println!("{}", row(id, *counts));
            }
            Ok(())
        }
        _ => Err(Error::Usage("`supply-chain` takes `--list` only".into())),
    }
}

fn check(shell: &Shell, present: &BTreeMap<Id, Counts>) -> Result<()> {
    let path = shell.root().join(PAGE);
    let page = fs::read_to_string(&path).map_err(Error::file(&path))?;
    let rule = "docs/supply-chain.md differs from what `cargo xtask supply-chain --list` finds; look at the crate first:";
    Error::unless_empty(rule, differences(&page, present))?;
    println!("supply-chain: {} crates with unsafe code or C, each in {PAGE}", present.len());
    Ok(())
}

/// Those of the published crates with all features, on every target, tests left out.
fn counted(shell: &Shell) -> Result<BTreeMap<Id, Counts>> {
    let ours: String = LAYERS.iter().map(|name| format!(" -p {name}")).collect();
    let ids = tree(shell, &format!("--all-features --edges normal,build{ours}"))?;
    let packages = packages(shell)?;
    let mut counted = BTreeMap::new();
    for id in ids {
        let Some(package) = packages.get(&id).filter(|it| it.checksum.is_some()) else {
            continue;
        };
        let mut counts = (0, 0);
        for path in below(&package.folder)? {
            let name = relative(&path, &package.folder);
            if ["tests/", "benches/", "examples/"].iter().any(|it| name.starts_with(it)) {
                continue;
            }
            let extension = path.extension().unwrap_or_default().to_string_lossy();
            match &*extension {
                "rs" => {
                    let bytes = fs::read(&path).map_err(Error::file(&path))?;
                    counts.0 += unsafe_words(&String::from_utf8_lossy(&bytes));
                }
                "c" | "cc" | "cpp" | "s" | "S" | "asm" => counts.1 += 1,
                _ => {}
            }
        }
        if counts != (0, 0) {
            counted.insert(id, counts);
        }
    }
    Ok(counted)
}

/// The word `unsafe` outside the comments of lines.
fn unsafe_words(text: &str) -> usize {
    let is_part = |byte: char| byte.is_alphanumeric() || byte == '_';
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let words = code.flat_map(|line| line.split(move |it| !is_part(it)));
    words.filter(|word| *word == "unsafe").count()
}

/// How the row of a crate begins.
fn row((name, version): &Id, (words, files): Counts) -> String {
    format!("| `{name}` {version} | {words} | {files} |")
}

fn differences(page: &str, present: &BTreeMap<Id, Counts>) -> Vec<String> {
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = present.iter().map(|(id, counts)| row(id, *counts)).collect();
    let lacking =
        expected.iter().filter(|expected| !rows.iter().any(|row| row.starts_with(*expected)));
    let stale =
        rows.iter().filter(|row| !expected.iter().any(|expected| row.starts_with(expected)));
    lacking
        .map(|row| format!("no row begins with {row}"))
        .chain(stale.map(|row| format!("no crate has the row {row}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_outside_comments() {
        let text = "#![forbid(unsafe_code)]\nunsafe { a() } // unsafe\nunsafe fn b() {}\n";
        assert_eq!(unsafe_words(text), 2);
    }

    #[test]
    fn a_new_crate_a_new_version_and_a_crate_that_left_are_differences() {
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let present =
            BTreeMap::from([(id("zstd", "0.14.3"), (3, 0)), (id("half", "2.7.1"), (84, 0))]);
        let page = "| `half` 2.7.1 | 84 | 0 | what |\n| `zstd` 0.14.3 | 3 | 0 | what |\n";
        assert_eq!(differences(page, &present), [""; 0]);
        assert_eq!(differences(&page.replace("0.14.3", "0.14.2"), &present).len(), 2);
        assert_eq!(differences("| `half` 2.7.1 | 84 | 0 | what |\n", &present).len(), 1);
        let more = format!("{page}| `gone` 1.0.0 | 1 | 0 | what |\n");
        assert_eq!(differences(&more, &present).len(), 1);
    }
}
