//! `cargo xtask thresholds`: the constants that choose between two paths, and what the other path costs, in
//! `docs/thresholds.md`.
//!
//! The comment of such a constant ends with a paragraph that begins with `Pays:`.

use std::fmt::Write;
use std::fs;

use crate::error::{Error, Result};
use crate::files::{below, relative};
use crate::shell::Shell;

const PAGE: &str = "docs/thresholds.md";

const INTRODUCTION: &str = "# Thresholds

A threshold is a constant that chooses between two paths: one core or all of them, one read or several, a short piece or a long one. This
page lists them, and `cargo xtask thresholds` writes it from their comments. Limits of safety, and numbers of specifications, are not here.

The figures are of a virtual AMD EPYC with 2 cores, with files in memory. They compare whole `zt` commands: medians of at least seven
rounds, in which the values of the constant took turns. A figure is the time, or the CPU time, with the constant, divided by the same
of the other path. Other builds ran at the same time: differences of less than 5 % are noise.
";

struct Threshold {
    name: String,
    value: String,
    meaning: String,
    pays: String,
}

/// `[--check]`: compares the page with the comments, and does not write it.
pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let is_check = match arguments {
        [] => false,
        [only] if only == "--check" => true,
        _ => return Err(Error::Usage("thresholds takes --check only".into())),
    };
    let (made, path) = (page(shell)?, shell.root().join(PAGE));
    if !is_check {
        return fs::write(&path, made).map_err(Error::file(&path));
    }
    let is_new = fs::read_to_string(&path).map_err(Error::file(&path))? == made;
    let places = if is_new { Vec::new() } else { vec![PAGE.to_owned()] };
    Error::unless_empty("`cargo xtask thresholds` makes another page of the comments:", places)
}

fn page(shell: &Shell) -> Result<String> {
    let (mut page, mut last) = (INTRODUCTION.to_owned(), String::new());
    let crates = shell.root().join("crates");
    for path in below(&crates)? {
        let name = relative(&path, &crates);
        let Some((package, file)) = name.split_once("/src/").filter(|_| name.ends_with(".rs"))
        else {
            continue;
        };
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        for Threshold { name, value, meaning, pays } in thresholds(&text) {
            if last != package {
                let head =
                    "| constant | file | what it is | what it pays |\n| --- | --- | --- | --- |";
                let _ = write!(page, "\n## {package}\n\n{head}\n");
                last = package.to_owned();
            }
            let _ = writeln!(page, "| `{name}` = {value} | {file} | {meaning} | {pays} |");
        }
    }
    Ok(page)
}

/// The constants of a file whose comment has a paragraph that begins with `Pays:`.
fn thresholds(text: &str) -> Vec<Threshold> {
    let (mut found, mut comment) = (Vec::new(), String::new());
    for line in text.lines().map(str::trim) {
        if let Some(line) = line.strip_prefix("///") {
            comment.push_str(line);
            comment.push('\n');
        } else if !line.starts_with("#[") {
            found.extend(threshold(line, &std::mem::take(&mut comment)));
        }
    }
    found
}

fn threshold(line: &str, comment: &str) -> Option<Threshold> {
    let (_, constant) = line.split_once("const ")?;
    let (name, rest) = constant.split_once(':')?;
    let value = rest.split_once(" = ")?.1.split(';').next()?;
    let plain = |text: &str| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text.replace("[`", "`").replace("`]", "`").replace('|', "\\|")
    };
    let mut paragraphs = comment.split("\n\n").map(plain);
    let meaning = paragraphs.next()?;
    let pays = paragraphs.find_map(|it| Some(it.strip_prefix("Pays: ")?.to_owned()))?;
    let end = meaning.find(". ").map_or(meaning.len(), |at| at.strict_add(1));
    let meaning = meaning.get(..end)?.to_owned();
    Some(Threshold { name: name.to_owned(), value: value.to_owned(), meaning, pays })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_with_the_paragraph_is_a_threshold() {
        let text = "
            /// Bytes of a [`Piece`]. They fit.
            /// Another line.
            ///
            /// Pays: half of
            /// the time.
            #[cfg(unix)]
            pub(crate) const PIECE: usize = 1 << 20;

            /// A limit.
            const MOST: usize = 3;
            const NONE: usize = 4;

            /// Pays: nothing, as it is no constant.
            fn other() {}
        ";
        let found = thresholds(text);
        let [Threshold { name, value, meaning, pays }] = &found[..] else {
            panic!("{} thresholds", found.len());
        };
        let of_it = [name, value, meaning, pays].map(String::as_str);
        assert_eq!(of_it, ["PIECE", "1 << 20", "Bytes of a `Piece`.", "half of the time."]);
    }
}
