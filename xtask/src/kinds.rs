//! Our kinds of file, and the places that a kind of ours needs.
//!
//! The features of `zt-convert` that bring a crate are the only list of kinds. It is compiled in, so a task needs
//! no error for it.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use crate::error::{Error, Result};

pub(crate) struct Kind {
    /// The feature of `zt-convert`.
    feature: &'static str,
    pub(crate) package: &'static str,
}

/// In the order of their features.
pub(crate) static KINDS: LazyLock<Vec<Kind>> =
    LazyLock::new(|| parse(include_str!("../../crates/zt-convert/Cargo.toml")));

/// A feature that brings a crate is the line `dcp = ["dep:zt-dcp"]`.
fn parse(manifest: &'static str) -> Vec<Kind> {
    let kind = |line: &'static str| {
        let (feature, brings) = line.split_once(" = [\"dep:")?;
        Some(Kind { feature, package: brings.strip_suffix("\"]")? })
    };
    manifest.lines().filter_map(kind).collect()
}

/// What stands for every kind in a list of crates. They are one layer: none depends on another.
pub(crate) const EACH: &str = "each kind";

/// The list with the crates of the kinds in the place of [`EACH`].
pub(crate) fn expand(names: &[&'static str]) -> Vec<&'static str> {
    let packages = || KINDS.iter().map(|kind| kind.package).collect();
    names.iter().flat_map(|name| if *name == EACH { packages() } else { vec![*name] }).collect()
}

/// A file beside the kind's own crate that has to name a kind, and the text that it must have. `{feature}` and
/// `{package}` stand for those of the kind.
const PLACES: &[(&str, &str)] = &[
    ("Cargo.toml", "{package} = {"),
    ("README.md", "`{package}`"),
    ("conformance/src/fuzz/mod.rs", "(\"{feature}\", "),
    ("crates/zt-convert/Cargo.toml", "\"{feature}\""),
    ("crates/zt-convert/README.md", "| `{feature}` |"),
    ("crates/zt-convert/src/table/kinds.rs", "#[cfg(feature = \"{feature}\")]"),
    ("crates/{package}/README.md", "`zt-convert`"),
    ("fuzz/README.md", "`{feature}`"),
    ("fuzz/src/bin/{feature}.rs", "{feature}(bytes)"),
];

/// Asks each place for each kind, and the section of CONTRIBUTING.md about a new kind for each place.
pub(crate) fn faults(root: &Path, contributing: &str) -> Result<Vec<String>> {
    let section = contributing.split("\n## ").find(|it| it.starts_with("Adding a kind of file\n"));
    let mut faults = Vec::new();
    for (place, text) in PLACES {
        if !section.is_some_and(|section| {
            section.contains(&format!(
                "`{}`",
                place.replace("{feature}", "<kind>").replace("{package}", "zt-<kind>")
            ))
        }) {
            faults.push(format!("CONTRIBUTING.md, Adding a kind of file: `{place}` is missing"));
        }
        for kind in &*KINDS {
            let filled =
                |it: &str| it.replace("{feature}", kind.feature).replace("{package}", kind.package);
            let (place, text) = (filled(place), filled(text));
            let path = root.join(&place);
            if !fs::read_to_string(&path).map_err(Error::file(&path))?.contains(&text) {
                faults.push(format!("{place}: the kind {} is missing: {text}", kind.feature));
            }
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_a_feature_that_brings_a_crate() {
        let kinds = parse(
            "[features]\ndefault = [\"dcp\"]\ndcp = [\"dep:zt-dcp\"]\nzstd = [\"zt/zstd\"]\n",
        );
        let pairs: Vec<_> = kinds.iter().map(|kind| (kind.feature, kind.package)).collect();
        assert_eq!(pairs, [("dcp", "zt-dcp")]);
    }
}
