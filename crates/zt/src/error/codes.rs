//! The stable codes of errors and warnings, with a short explanation of each.
//!
//! `spec/errors.md` and `spec/warnings.md` explain them at greater length, and a test writes the
//! tables of this module from these pages. There is a constant for each code of an error:
//!
//! ```
//! let error = zt::File::from_bytes(b"GGUF....".to_vec()).unwrap_err();
//! assert_eq!(error.code(), zt::codes::NOT_ZT);
//! ```

#[rustfmt::skip]
#[expect(missing_docs, reason = "`ALL` has the meaning of each code")]
mod tables;

pub use tables::*;

/// A code and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeInfo {
    /// The code, as [`crate::Error::code`] gives it.
    pub code: &'static str,
    /// Who is at fault.
    pub fault: Blame,
    /// What it means.
    pub meaning: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

/// Who is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The file, or its writer.
    File,
    /// The system: storage, memory, permissions.
    System,
    /// This build does not support it.
    Build,
    /// The limits that are set forbid it.
    Limits,
    /// The call.
    Caller,
}

impl Blame {
    /// One word: `file`, `system`, `build`, `limits` or `caller`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Blame::File => "file",
            Blame::System => "system",
            Blame::Build => "build",
            Blame::Limits => "limits",
            Blame::Caller => "caller",
        }
    }
}

/// The explanation of an error's code.
#[must_use]
pub fn explain(code: &str) -> Option<&'static CodeInfo> {
    ALL.iter().find(|info| info.code == code)
}

/// A warning's code and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarningInfo {
    /// The code, as [`crate::Warning::code`] has it.
    pub code: &'static str,
    /// The kinds of files or the work that it comes from.
    pub from: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// The explanation of a warning's code. Warnings with the code of an error share one.
#[must_use]
pub fn explain_warning(code: &str) -> Option<WarningInfo> {
    let known = WARNINGS.iter().copied().find(|info| info.code == code);
    known.or_else(|| {
        let code = explain(code)?.code;
        Some(WarningInfo {
            code,
            ..tables::TOLERATED
        })
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

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
        format!(
            "CodeInfo {{ code: {code:?}, fault: Blame::{fault:?}, meaning: {meaning:?}, remedy: {:?} }}",
            remedy.trim_end()
        )
    }

    /// The constant of a section.
    fn constant(section: &str) -> String {
        let code = section.lines().next().unwrap();
        let name = code.replace('-', "_").to_uppercase();
        format!("pub const {name}: &str = {code:?};")
    }

    /// The row of a row of `spec/warnings.md`. A code is in quotes there.
    fn warning(row: &str) -> (bool, String) {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let [code, from, meaning] = cells[..] else {
            panic!("{row}")
        };
        let plain = code.trim_matches('`');
        let row =
            format!("WarningInfo {{ code: {plain:?}, from: {from:?}, meaning: {meaning:?} }}");
        (plain != code, row)
    }

    #[test]
    fn the_tables_are_those_of_the_specification() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = |name| std::fs::read_to_string(folder.join("../../spec").join(name)).unwrap();
        let errors = page("errors.md");
        let mut errors: Vec<&str> = errors.split("\n## ").skip(1).collect();
        errors.sort_unstable();
        let constants = errors.iter().map(|section| constant(section));
        let constants: Vec<String> = constants.collect();
        let errors: Vec<String> = errors.into_iter().map(error).collect();
        let warnings = page("warnings.md");
        let rows = warnings.lines().filter(|line| line.starts_with("| "));
        let (own, other): (Vec<_>, Vec<_>) = rows.skip(2).map(warning).partition(|(own, _)| *own);
        let own: Vec<String> = own.into_iter().map(|(_, row)| row).collect();
        let [(_, tolerated)] = &other[..] else {
            panic!("{other:?}")
        };
        let tables = format!(
            "//! Written from `spec/errors.md` and `spec/warnings.md` by a test of the module above.\n\n\
             use super::{{Blame, CodeInfo, WarningInfo}};\n\n\
             /// Every code of errors, in alphabetical order.\n\
             pub const ALL: &[CodeInfo] = &[\n    {},\n];\n\n\
             /// Every code of warnings alone, in the order of `spec/warnings.md`.\n\
             pub const WARNINGS: &[WarningInfo] = &[\n    {},\n];\n\n{}\n\n\
             /// A warning with the code of an error.\n\
             pub(super) const TOLERATED: WarningInfo = {tolerated};\n",
            errors.join(",\n    "),
            own.join(",\n    "),
            constants.join("\n"),
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
        assert_eq!(
            (shared.code, shared.from),
            ("header", tables::TOLERATED.from)
        );
        assert!(explain("ambiguous").is_none() && explain_warning("nothing").is_none());
    }
}
