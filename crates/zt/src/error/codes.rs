//! The stable codes of errors and warnings, with a short explanation of each.
//!
//! `spec/errors.md` and `spec/warnings.md` explain them at greater length.

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

/// Who is at fault where an error has some code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The file, or its writer.
    File,
    /// The system: storage, memory, permissions.
    System,
    /// Nobody: this build does not cover it.
    Build,
    /// Nobody: the limits that are set forbid it.
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

/// The code of that name.
#[must_use]
pub fn explain(code: &str) -> Option<&'static CodeInfo> {
    ALL.iter().find(|info| info.code == code)
}

const fn info(
    code: &'static str,
    fault: Blame,
    meaning: &'static str,
    remedy: &'static str,
) -> CodeInfo {
    CodeInfo {
        code,
        fault,
        meaning,
        remedy,
    }
}

const AGAIN: &str =
    "The file was damaged or written wrongly: fetch it again, or write it anew from its source.";
const WRITER: &str = "Its writer broke the specification: report it there, and write the file anew with another one.";

/// Every code of errors, in alphabetical order.
pub const ALL: &[CodeInfo] = &[
    info(
        "alignment",
        Blame::File,
        "A component begins at an offset that is not a multiple of 64. Files of 1.0 and before are only warned about.",
        WRITER,
    ),
    info(
        "allocation",
        Blame::System,
        "The system has no memory for bytes that do exist.",
        "Free memory, stream the component, or read slices of it.",
    ),
    info(
        "attribute",
        Blame::File,
        "An attribute that the object's format needs is missing, of the wrong type or out of range.",
        WRITER,
    ),
    info(
        "bool-value",
        Blame::File,
        "A byte of a bool component is neither 0 nor 1.",
        WRITER,
    ),
    info(
        "bounds",
        Blame::File,
        "A component lies outside the data region: before byte 8, in the manifest, or past the end.",
        AGAIN,
    ),
    info(
        "cbor",
        Blame::File,
        "The manifest is not well-formed CBOR, repeats a key, is not UTF-8, nests too deep, or has bytes after its end.",
        AGAIN,
    ),
    info(
        "decompression-limit",
        Blame::Limits,
        "A component decodes, or claims to decode, to more bytes than the limit or than its stored bytes can hold.",
        "If the file is trusted, raise `Limits::decoded_len`; a claim beyond what zstd can reach is refused whatever the limit.",
    ),
    info(
        "deflate",
        Blame::File,
        "A deflated member of an archive, or a compressed chunk of HDF5, cannot be decoded, or not to exactly the declared length.",
        AGAIN,
    ),
    info(
        "digest-format",
        Blame::File,
        "A digest is not an algorithm, a colon and as many hexadecimal digits as the algorithm has.",
        WRITER,
    ),
    info(
        "digest-mismatch",
        Blame::File,
        "The stored bytes of a component are not those that were written: they do not give the recorded digest.",
        "The data is damaged: fetch the file again, or restore it from a copy.",
    ),
    info(
        "dtype",
        Blame::File,
        "A component's storage type is none of the thirteen, or one that its format does not take.",
        WRITER,
    ),
    info(
        "duplicate-name",
        Blame::Caller,
        "Two objects would have one name: in what is written, or in files that are merged.",
        "Rename one of them.",
    ),
    info(
        "encoding",
        Blame::File,
        "A component's encoding is neither `raw` nor `zstd`.",
        WRITER,
    ),
    info(
        "header",
        Blame::File,
        "The header of a file of another format breaks a rule of that format.",
        AGAIN,
    ),
    info(
        "index-dtype",
        Blame::File,
        "The indices of a sparse object are not integers or, to `verify --strict`, not u64.",
        WRITER,
    ),
    info(
        "index-value",
        Blame::File,
        "An index of a sparse object is outside its dimension, or its row pointers do not rise from 0 to the number of values.",
        AGAIN,
    ),
    info(
        "interrupted",
        Blame::Caller,
        "The work was stopped on request. Nothing was published.",
        "Start it again.",
    ),
    info(
        "io",
        Blame::System,
        "The system could not read or write: no such file, no permission, a full disk, a file that was cut.",
        "See the system's own message.",
    ),
    info(
        "locked",
        Blame::System,
        "Another program is editing the file.",
        "Again once that program has ended; its lock ends with it.",
    ),
    info(
        "logical-type",
        Blame::File,
        "A logical type stands over a storage type that it does not have.",
        WRITER,
    ),
    info(
        "lossy",
        Blame::Caller,
        "The target format cannot say something that the source says.",
        "Choose another target; write layouts as dense values with `--dense`; or accept the loss with `--lossy`.",
    ),
    info(
        "manifest-size",
        Blame::File,
        "The declared size of the manifest is zero, larger than the file has room for, or above the limit.",
        "A file that was cut short, or whose writer did not finish, looks like this: fetch or write it again, or see what `zt repair` finds.",
    ),
    info(
        "missing-component",
        Blame::File,
        "An object lacks a component that its format needs.",
        WRITER,
    ),
    info(
        "misuse",
        Blame::Caller,
        "A call that no file can cause: a wrong type, a wrong length, calls out of order.",
        "Correct the call.",
    ),
    info(
        "names",
        Blame::Caller,
        "The list of names that was given is no text, or does not fit the file.",
        "List the tensors with `zt ls`, and give a name for each, one a line, in that order.",
    ),
    info(
        "not-found",
        Blame::Caller,
        "There is no object, no component or no attribute of that name.",
        "List the names with `zt ls`, those of attributes with `zt meta get`.",
    ),
    info(
        "not-zt",
        Blame::File,
        "The file does not begin like a `.zt` file.",
        "Check that it is the file you mean. The program and `zt_convert::open` open other formats by their bytes; `zt::File::open` takes `.zt` alone.",
    ),
    info(
        "overlap",
        Blame::File,
        "Components share some but not all of their bytes. Only `verify --strict` minds, unless that \
         makes the file stand for many times its bytes: then not all of it is read.",
        "Read single components, or write the file again with the program that wrote it.",
    ),
    info(
        "overwrite",
        Blame::Caller,
        "The output exists, or is one of the inputs.",
        "Choose another name; `--force` replaces an output that is not an input.",
    ),
    info(
        "padding",
        Blame::File,
        "Bytes between components are not zero. Only `verify --strict` minds.",
        "Writers that remove or replace objects in place leave such bytes: convert the file to be rid of them.",
    ),
    info(
        "path",
        Blame::File,
        "A sharded set names a file outside its own folder, or one that is not there.",
        "Fetch the whole set; never follow such a path by hand.",
    ),
    info(
        "pickle",
        Blame::File,
        "The pickle of a PyTorch file is broken, nests or unfolds without bounds, or holds what is no data.",
        AGAIN,
    ),
    info(
        "pickle-global",
        Blame::File,
        "The pickle of a PyTorch file names a function or class that is not needed for data. Nothing was run.",
        "Where the file is trusted, load it with torch and save its `state_dict()`; where it is not, delete it.",
    ),
    info(
        "schema",
        Blame::File,
        "A field of the manifest is missing, or of another type or range than the specification says.",
        WRITER,
    ),
    info(
        "shape-size-mismatch",
        Blame::File,
        "The lengths of an object's components contradict its shape or each other.",
        WRITER,
    ),
    info(
        "structure-limit",
        Blame::Limits,
        "The structures of a file of another kind lead to each other so often, or nest so deeply, that listing them is not justified by its length.",
        "No sound file is known to do so; write it anew with fewer links.",
    ),
    info(
        "truncated",
        Blame::File,
        "The file ends before its trailer.",
        "It was cut short, or its writer did not finish: fetch or write it again, or see what `zt repair` finds.",
    ),
    info(
        "unknown-kind",
        Blame::File,
        "The file is of no format that this program knows.",
        "See `zt --help` for those that it does.",
    ),
    info(
        "unsupported",
        Blame::Build,
        "The file is sound, and this build or this format's reader cannot process it.",
        "Use a build with the feature, or read the components' bytes.",
    ),
    info(
        "value",
        Blame::File,
        "A number that the file's kind forbids: one that is not finite, or a scale that is not positive. Only `verify --strict` minds.",
        WRITER,
    ),
    info(
        "version",
        Blame::File,
        "The manifest is of another major version, or its version is no version.",
        "Use a reader of that version.",
    ),
    info(
        "zstd",
        Blame::File,
        "Compressed bytes cannot be decoded, or not to exactly the declared length.",
        AGAIN,
    ),
];

/// A warning's code and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarningInfo {
    /// The code, as [`crate::Warning::code`] has it.
    pub code: &'static str,
    /// The kinds of files that it is of, or the work.
    pub from: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// What the warning of that code means; of an error's code, that is the same for all.
#[must_use]
pub fn explain_warning(code: &str) -> Option<WarningInfo> {
    let known = WARNINGS.iter().copied().find(|info| info.code == code);
    known.or_else(|| {
        let code = explain(code)?.code;
        Some(WarningInfo { code, ..TOLERATED })
    })
}

const fn warning(code: &'static str, from: &'static str, meaning: &'static str) -> WarningInfo {
    WarningInfo {
        code,
        from,
        meaning,
    }
}

/// A warning that has the code of an error.
const TOLERATED: WarningInfo = warning(
    "the code of an error",
    "npy, npz, PyTorch, SQUIZD, SLM1",
    "a fault that the format forbids to writers, in data that still reads; a problem to `verify --strict` and `OpenOptions::strict`",
);

/// Every code that warnings have of their own, in the order of `spec/warnings.md`.
pub const WARNINGS: &[WarningInfo] = &[
    warning(
        "newer-minor",
        "`.zt`",
        "the version's minor is newer than 1.2; unknown fields that matter to the writer may be ignored (zt-1.2 §11)",
    ),
    warning(
        "version-suffix",
        "`.zt`",
        "the version has a suffix after its numbers, as in `1.2.0+build.5`; the suffix is ignored",
    ),
    warning(
        "alignment",
        "`.zt` 0.1, 1.0",
        "a blob's offset is not a multiple of 64; an error from layout 1.1 on, and to `verify --strict`",
    ),
    warning(
        "unknown-digest",
        "`.zt`, SLM1, ONNX, zTensor 2",
        "the digest's algorithm is unknown; the component counts as unverified",
    ),
    warning(
        "unlisted",
        "sharded sets",
        "a shard holds a tensor that the index does not list; the tensor is kept",
    ),
    warning(
        "shadowed",
        "sharded sets",
        "two shards hold a tensor of one name; the index decides which one counts",
    ),
    warning(
        "attribute-conflict",
        "sharded sets, ONNX, HDF5",
        "one key has two values, and the first is kept: in two shards, in a shard and the index, in two entries of one model, or in HDF5 for `g@x` of the root and `x` of `g`",
    ),
    warning(
        "attribute",
        "HDF5",
        "an attribute is left out: it is damaged, or not a number, a text or an array of them. At most eight per object are listed, with a count of the rest, as for the other warnings about attributes",
    ),
    warning(
        "unknown-type",
        "GGUF",
        "the type of a tensor is unknown or retired; its bytes are kept, up to the next tensor",
    ),
    warning(
        "split",
        "GGUF",
        "the file is one of a split set; the other files are not read",
    ),
    warning(
        "ambiguous",
        "SQUIZD, SLM1",
        "the format leaves this open; the message states how it was read",
    ),
    warning(
        "name",
        "SQUIZD, HDF5",
        "SQUIZD: a name given by the user does not hash to the tensor's id, although others do; HDF5: the name of a dataset, a group or an attribute is not UTF-8, and its other bytes are written as `\\xE9`",
    ),
    warning(
        "torchscript",
        "PyTorch",
        "an archive of TorchScript; the tensors of its objects and of its code's constants are read, the code is not",
    ),
    warning(
        "experimental",
        "conversion",
        "a SQUIZD file was written; no other program is known to read such files, so no other program has checked ours",
    ),
    warning(
        "shard",
        "zTensor 2",
        "a file without a manifest: a shard, whose bytes another file describes",
    ),
    warning(
        "lossy",
        "conversion",
        "with `--lossy`: left out or changed, because the target cannot represent it, a dense value has no room for it, or a cast makes it infinite; left out of an input, because it is there twice; left out because the object is faulty, with the code of its fault",
    ),
];

#[cfg(test)]
mod tests {
    use super::{ALL, Blame, TOLERATED, WARNINGS, explain, explain_warning};

    #[test]
    fn codes_are_sorted_and_unique() {
        assert!(ALL.is_sorted_by(|a, b| a.code < b.code));
    }

    #[test]
    fn blame_is_one_word() {
        let words = [
            (Blame::File, "file"),
            (Blame::System, "system"),
            (Blame::Build, "build"),
            (Blame::Limits, "limits"),
            (Blame::Caller, "caller"),
        ];
        for (blame, word) in words {
            assert_eq!(blame.as_str(), word);
        }
    }

    /// The page for people has exactly one section for each code.
    #[test]
    fn every_code_has_its_section_in_the_specification() {
        let page = include_str!("../../../../spec/errors.md");
        let mut sections: Vec<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .collect();
        sections.sort_unstable();
        let codes: Vec<&str> = ALL.iter().map(|info| info.code).collect();
        assert_eq!(sections, codes);
    }

    #[test]
    fn every_warning_has_its_row_in_the_specification() {
        let page = include_str!("../../../../spec/warnings.md");
        let rows = page.lines().filter(|line| line.starts_with("| "));
        let mut rows: Vec<&str> = rows.skip(2).collect();
        let listed = rows.len();
        for info in WARNINGS.iter().chain([&TOLERATED]) {
            let row = format!("| `{}` | {} | {} |", info.code, info.from, info.meaning);
            // What is no code stands without quotes.
            let plain = row.replacen('`', "", 2);
            rows.retain(|line| *line != row && *line != plain);
        }
        assert_eq!(rows, [""; 0]);
        assert_eq!(listed, WARNINGS.len() + 1);
    }

    #[test]
    fn warnings_may_have_the_code_of_an_error() {
        let own = explain_warning("lossy").unwrap();
        assert_eq!((own.code, own.from), ("lossy", "conversion"));
        let tolerated = explain_warning("header").unwrap();
        assert_eq!(
            (tolerated.code, tolerated.meaning),
            ("header", TOLERATED.meaning)
        );
        assert!(explain("ambiguous").is_none() && explain_warning("nothing").is_none());
    }
}
