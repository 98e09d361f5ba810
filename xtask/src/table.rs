//! `cargo xtask graph --table`: our crates and how many crates of others each brings, for README.md.

use std::collections::BTreeSet;
use std::fs;

use crate::error::{Error, Result};
use crate::graph::LAYERS;
use crate::shell::Shell;

pub(crate) fn print(shell: &Shell) -> Result<()> {
    println!("| crate | what it is for | brings | without features |");
    println!("| --- | --- | ---: | ---: |");
    for name in LAYERS.iter() {
        // The facade's folder has the name of its library.
        let folder = if *name == "zt-tensor" { "zt" } else { name };
        let manifest = shell.root().join("crates").join(folder).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).map_err(Error::file(&manifest))?;
        let description = description(&text).unwrap_or_default();
        let brings = brings(shell, name, "")?;
        let least = self::brings(shell, name, "--no-default-features")?;
        println!("| `{name}` | {description} | {brings} | {least} |");
    }
    Ok(())
}

fn description(manifest: &str) -> Option<&str> {
    let mut lines = manifest.lines();
    let line = lines.find_map(|line| line.strip_prefix("description = \""))?;
    line.strip_suffix('"')
}

/// The number of crates of others that a crate brings, directly or not.
fn brings(shell: &Shell, name: &str, features: &str) -> Result<usize> {
    let tree = shell
        .cargo("tree --locked --edges normal --prefix none --package")
        .arg(name)
        .args(features)
        .output()?;
    Ok(of_others(&tree).len())
}

/// Names and versions. A crate of ours is printed with its folder.
fn of_others(tree: &str) -> BTreeSet<&str> {
    let labels = tree.lines().filter(|line| !line.is_empty());
    let others = labels.filter(|line| !line.contains("(/"));
    others.filter_map(|line| line.split(" (").next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_crate_of_others_once() {
        let tree = "zt v0.1.0 (/r/crates/zt)\nzt-manifest v0.1.0 (/r/crates/zt-manifest)\n\
                    half v2.7.1\nsyn v3.0.9\nserde_derive v1.0.0 (proc-macro)\nsyn v3.0.9 (*)\n";
        let expected = ["half v2.7.1", "serde_derive v1.0.0", "syn v3.0.9"];
        assert_eq!(of_others(tree), BTreeSet::from(expected));
    }

    #[test]
    fn the_description_is_a_line_of_the_manifest() {
        let manifest = "[package]\nname = \"zt\"\ndescription = \"Reads files\"\n";
        assert_eq!(description(manifest), Some("Reads files"));
    }
}
