//! `cargo xtask features`: every crate alone, without features and with each of its features alone.
//!
//! A build of the whole workspace cannot show that a crate forgot to ask for what it uses, because
//! cargo gives every crate the union of what all of them ask for. Features are read from the
//! manifests, so a new one cannot be left out.

use std::fs;

use crate::error::{Error, Result};
use crate::graph::LAYERS;
use crate::shell::Shell;

/// Crates whose features decide what a call does, as opposed to which modules exist: each of their
/// combinations is tested, not only compiled.
const TESTED: [&str; 2] = ["zt-container", "zt"];

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    for name in LAYERS {
        let path = shell.root().join(format!("crates/{name}/Cargo.toml"));
        let manifest = fs::read_to_string(&path).map_err(Error::file(&path))?;
        let features = features(&manifest);
        for feature in [None].into_iter().chain(features.iter().map(Some)) {
            let with = feature.map_or(String::new(), |feature| format!("--features {feature}"));
            let package = format!("--locked --package {name} --no-default-features {with}");
            // clippy and not check: code that a missing feature leaves unused is a warning there.
            shell
                .cargo(&format!("clippy --quiet {package} --all-targets"))
                .args("-- --deny warnings")
                .run()?;
            if TESTED.contains(name) {
                shell.cargo(&format!("test --quiet {package}")).run()?;
            }
        }
    }
    Ok(())
}

/// The keys of the manifest's `[features]` except `default`, in its order.
///
/// Lines are enough, without a parser of TOML: no feature of ours spans a line that could be taken
/// for a key.
fn features(manifest: &str) -> Vec<String> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[features]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.trim_start().starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(key, _)| key.trim().to_owned())
        .filter(|key| key != "default")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_features_of_a_manifest() {
        let manifest = "[package]\nname = \"x\"\n\n[features]\ndefault = [\"mmap\"]\n# a = comment\nmmap = [\n    \
                        \"dep:memmap2\",\n]\nzstd = [\"dep:zstd\"]\n\n[dependencies]\nsha2 = \"1\"\n";
        assert_eq!(features(manifest), ["mmap", "zstd"]);
    }

    #[test]
    fn a_manifest_without_the_section_has_no_features() {
        assert!(features("[package]\nname = \"x\"\n").is_empty());
    }
}
