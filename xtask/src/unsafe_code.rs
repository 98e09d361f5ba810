//! Unsafe code lives in one file. The compiler keeps that within a crate (`forbid`, or `deny` and
//! `#[expect]`); this keeps it across crates, where a new one could forget the attribute.

use std::fs;

use crate::error::{Error, Result};
use crate::files;
use crate::shell::Shell;

/// The only file that ships unsafe code: a map is undefined once the file changes under it, so
/// asking for one is unsafe.
const ALLOWED: &str = "crates/zt-container/src/mmap.rs";

/// What follows the keyword where it opens code. The word alone also occurs in prose.
const OPENERS: [&str; 6] = ["{", "(", "fn", "impl", "trait", "extern"];

/// Looks through the `src` of every crate. Tests, examples and benchmarks are left alone: they ask
/// for maps as users do, in an unsafe block.
pub(crate) fn check(shell: &Shell) -> Result<()> {
    let mut places = Vec::new();
    let mut count: usize = 0;
    for folder in ["crates", "conformance", "benches", "xtask"] {
        for path in files::below(&shell.root().join(folder))? {
            let name = files::relative(&path, shell.root());
            if !name.ends_with(".rs") || !name.contains("/src/") || name == ALLOWED {
                continue;
            }
            count = count.saturating_add(1);
            let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
            places.extend(unsafe_lines(&text).map(|line| format!("{name}:{line}")));
        }
    }
    Error::unless_empty(
        "unsafe code outside crates/zt-container/src/mmap.rs:",
        places,
    )?;
    println!("graph: no unsafe code in {count} files outside {ALLOWED}");
    Ok(())
}

/// The numbers, from 1, of lines that open unsafe code. Comments do not count, nor do the tests at
/// a file's end.
fn unsafe_lines(text: &str) -> impl Iterator<Item = usize> {
    let shipped = text
        .split_once("\n#[cfg(test)]\nmod ")
        .map_or(text, |(code, _)| code);
    (1..)
        .zip(shipped.lines())
        .filter(|(_, line)| opens_unsafe(line))
        .map(|(number, _)| number)
}

fn opens_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices("unsafe").any(|(at, word)| {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        !before.ends_with(is_word)
            && OPENERS
                .iter()
                .any(|opener| after.trim_start().starts_with(opener))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_blocks_functions_implementations_and_attributes() {
        let lines = [
            "let x = unsafe { f() };",
            "pub unsafe fn f() {}",
            "unsafe impl Send for X {}",
            "#[unsafe(no_mangle)]",
        ];
        assert!(lines.into_iter().all(opens_unsafe));
    }

    #[test]
    fn does_not_see_lints_comments_and_prose() {
        let lines = [
            "#![forbid(unsafe_code)]",
            "// unsafe { f() }",
            "/// let map = unsafe { Map::open(path)? };",
            "\"unsafe word\"",
        ];
        assert!(!lines.into_iter().any(opens_unsafe));
    }

    #[test]
    fn numbers_lines_from_one_and_stops_at_the_tests() {
        let text = "#[cfg(test)]\nuse a::b;\nunsafe fn c() {}\n#[cfg(test)]\nmod tests { unsafe fn d() {} }\n";
        assert_eq!(unsafe_lines(text).collect::<Vec<_>>(), [3]);
    }
}
