//! The tables of codes equal the ones in `spec/errors.md` and `spec/warnings.md`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap is the failure of the test")]

use std::path::Path;

use zt::codes::{Blame, explain, explain_warning};

/// The row of a section of `spec/errors.md`: its first paragraph, and the one after `At fault: `.
fn error(section: &str) -> String {
    let mut paragraphs = section.split("\n\n").map(|text| text.replace('\n', " "));
    let (code, meaning) = (paragraphs.next().unwrap(), paragraphs.next().unwrap());
    let last = paragraphs.find_map(|text| text.strip_prefix("At fault: ").map(str::to_owned));
    let last = last.unwrap_or_else(|| panic!("{code} has no `At fault: `"));
    let (fault, remedy) = last.split_once(". ").unwrap();
    let fault = match fault {
        "the file" => Blame::File,
        "the system" => Blame::System,
        "this build" => Blame::Build,
        "the limits" => Blame::Limits,
        "the call" => Blame::Caller,
        _ => panic!("{code}: {fault}"),
    };
    let (name, remedy) = (code.replace('-', "_").to_uppercase(), remedy.trim_end());
    format!("{name} {code:?}: {fault:?}, {meaning:?}, {remedy:?};")
}

/// The row of a row of `spec/warnings.md`. A code is in quotes there.
fn warning(row: &str) -> (bool, String) {
    let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
    let [code, from, meaning] = cells[..] else { panic!("{row}") };
    let plain = code.trim_matches('`');
    let row = format!("WarningInfo {{ code: {plain:?}, from: {from:?}, meaning: {meaning:?} }}");
    (plain != code, row)
}

#[test]
fn the_tables_are_those_of_the_specification() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = |name| std::fs::read_to_string(folder.join("../../spec").join(name)).unwrap();
    let errors = page("errors.md");
    let mut errors: Vec<&str> = errors.split("\n## ").skip(1).collect();
    errors.sort_unstable();
    let errors: Vec<String> = errors.into_iter().map(error).collect();
    let warnings = page("warnings.md");
    let rows = warnings.lines().filter(|line| line.starts_with("| "));
    let (own, other): (Vec<_>, Vec<_>) = rows.skip(2).map(warning).partition(|(own, _)| *own);
    let own: Vec<String> = own.into_iter().map(|(_, row)| row).collect();
    let [(_, tolerated)] = &other[..] else { panic!("{other:?}") };
    let tables = format!(
        "//! Written from `spec/errors.md` and `spec/warnings.md` by `tests/codes.rs`.\n\n\
         use super::{{Blame, CodeInfo, WarningInfo}};\n\n\
         errors! {{\n    {}\n}}\n\n\
         /// Every code of warnings alone, in the order of `spec/warnings.md`.\n\
         pub const WARNINGS: &[WarningInfo] = &[\n    {},\n];\n\n\
         /// A warning with the code of an error.\n\
         pub(super) const TOLERATED: WarningInfo = {tolerated};\n",
        errors.join("\n    "),
        own.join(",\n    "),
    );
    let path = folder.join("src/error/codes/tables.rs");
    if std::fs::read_to_string(&path).unwrap() != tables {
        std::fs::write(&path, tables).unwrap();
        panic!("{} was not up to date and is written again", path.display());
    }
}

#[test]
fn warnings_may_have_the_code_of_an_error() {
    let own = explain_warning("lossy").unwrap();
    assert_eq!((own.code, own.from), ("lossy", "conversion"));
    let shared = explain_warning("header").unwrap();
    let other = explain_warning("overlap").unwrap();
    assert_eq!((shared.code, shared.from), ("header", other.from));
    assert_ne!(shared.from, own.from);
    assert!(explain("ambiguous").is_none() && explain_warning("nothing").is_none());
}
