//! Unsafe code lives in five files. The compiler keeps that within a crate (`forbid`, or `deny` and
//! `#[expect]`); this keeps it across crates, where a new one could forget the attribute.

use std::fs;

use crate::error::{Error, Result};
use crate::files;
use crate::shell::Shell;

/// The files that ship unsafe code.
const ALLOWED: [&str; 5] = [
    // Texts, arrays and handles of C are pointers.
    "crates/zt-capi/src/ffi.rs",
    // A map is undefined once the file changes under it, so asking for one is unsafe.
    "crates/zt-container/src/mmap.rs",
    // Private maps, DLPack and the buffer protocol of Python are pointers.
    "python/src/read/tensor.rs",
    "python/src/share/dlpack.rs",
    "python/src/share/memory.rs",
];

/// What follows the keyword where it opens code. The word alone also occurs in prose.
const OPENERS: [&str; 6] = ["{", "(", "fn", "impl", "trait", "extern"];

/// Looks through the `src` of every crate. Tests, examples and benchmarks are left alone: they ask
/// for maps as users do, in an unsafe block.
pub(crate) fn check(shell: &Shell) -> Result<()> {
    let (mut outside, mut undocumented) = (Vec::new(), Vec::new());
    let mut count: usize = 0;
    for folder in ["crates", "conformance", "benches", "xtask", "python/src", "js"] {
        for path in files::below(&shell.root().join(folder))? {
            let name = files::relative(&path, shell.root());
            if !name.ends_with(".rs") || !name.contains("/src/") {
                continue;
            }
            count = count.saturating_add(1);
            let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
            let place = |line| format!("{name}:{line}");
            if ALLOWED.contains(&name.as_str()) {
                undocumented.extend(undocumented_blocks(&text).into_iter().map(place));
            } else {
                outside.extend(unsafe_lines(&text).map(place));
            }
        }
    }
    Error::unless_empty(
        "unsafe code outside the files that xtask/src/unsafe_code.rs names:",
        outside,
    )?;
    Error::unless_empty("unsafe code without a SAFETY comment above it:", undocumented)?;
    println!("graph: unsafe code in {} of {count} files: {}", ALLOWED.len(), ALLOWED.join(", "));
    Ok(())
}

/// The numbers, from 1, of lines that open unsafe code. Comments do not count, nor do the tests at
/// a file's end.
fn unsafe_lines(text: &str) -> impl Iterator<Item = usize> {
    (1..)
        .zip(shipped(text).lines())
        .filter(|(_, line)| opens_unsafe(line))
        .map(|(number, _)| number)
}

/// The numbers of lines with an unsafe block or implementation whose statement has no `SAFETY:`
/// comment above it.
fn undocumented_blocks(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_documented = false;
    for (number, line) in (1..).zip(shipped(text).lines()) {
        let line = line.trim();
        // A name that C knows: the prefix `zt_` keeps it apart from others.
        if line.ends_with("(no_mangle)]") {
            continue;
        }
        if line.starts_with("//") {
            is_documented |= line.starts_with("// SAFETY:");
            continue;
        }
        // A function and a trait have a section `# Safety` instead.
        let is_contract = [" fn", " trait"].iter().any(|it| line.contains(it));
        if opens_unsafe(line) && !is_contract && !is_documented {
            found.push(number);
        }
        // The next statement begins.
        if line.ends_with([';', '{', '}']) {
            is_documented = false;
        }
    }
    found
}

/// The text without the tests at its end.
fn shipped(text: &str) -> &str {
    text.split_once("\n#[cfg(test)]\nmod ").map_or(text, |(code, _)| code)
}

fn opens_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices("unsafe").any(|(at, word)| {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        !before.ends_with(is_word)
            && OPENERS.iter().any(|opener| after.trim_start().starts_with(opener))
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
    fn finds_blocks_without_a_safety_comment_above_their_statement() {
        let text =
            "// SAFETY: a\nlet b =\n    unsafe { c() };\nunsafe { d() };\nunsafe fn e() {}\n";
        assert_eq!(undocumented_blocks(text), [4]);
    }

    #[test]
    fn numbers_lines_from_one_and_stops_at_the_tests() {
        let text = "#[cfg(test)]\nuse a::b;\nunsafe fn c() {}\n#[cfg(test)]\nmod tests { unsafe fn d() {} }\n";
        assert_eq!(unsafe_lines(text).collect::<Vec<_>>(), [3]);
    }
}
