//! `cargo xtask graph`: checks the architecture that CONTRIBUTING.md draws.
//!
//! An arrow points at the dependency, and a crate may use everything to its left. Two kinds never
//! depend on each other.
//! Optional, build and development dependencies count as well: a lower crate that tests itself with
//! `zt-conformance` would be compiled twice, and its types would differ from those in `zt-conformance`.

use std::sync::LazyLock;

use crate::error::{Error, Result};
use crate::kinds::KINDS;
use crate::shell::Shell;
use crate::{claims, kinds, lints, rooms, table, unsafe_code};

/// The crates below `crates/`, lowest first: each may depend on those before it.
pub(crate) static LAYERS: LazyLock<Vec<&str>> = LazyLock::new(|| kinds::expand(ORDER));

const ORDER: &[&str] = &[
    "zt-container",
    "zt-zip",
    "zt-manifest",
    "zt-formats",
    "zt-ggml",
    "zt-tensor",
    "zt-quantized",
    "zt-report",
    "zt-pickle",
    "zt-foreign",
    kinds::EACH,
    "zt-remote",
    "zt-convert",
    "zt-seal",
    "zt-model",
    "zt-capi",
    "zt-cli",
];

/// `[--table]`: with it nothing is checked, and the crates are printed as a table.
pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    match arguments {
        [] => {}
        [only] if only == "--table" => return table::print(shell),
        _ => return Err(Error::Usage("`graph` takes `--table` only".into())),
    }
    let members = members(shell)?;
    let faults =
        members.iter().flat_map(|(name, dependencies)| faults(name, dependencies)).collect();
    Error::unless_empty("the graph of CONTRIBUTING.md does not draw:", faults)?;
    let edges: usize = members.iter().map(|(_, dependencies)| dependencies.len()).sum();
    println!(
        "graph: {} crates of ours, {edges} edges between them, all of them drawn",
        members.len()
    );

    // Its tests keep to it as well: the plain `cargo tree` of a reader in doubt is one line.
    depends_on_only(shell, "zt-container", "normal,build,dev", &[])?;
    depends_on_only(shell, "zt-manifest", "normal,build", &["zt-container"])?;
    println!("graph: zt-container and zt-manifest without features bring no crate of others");
    let zip = [
        "zt-container",
        "crc32fast",
        "cfg-if",
        "miniz_oxide",
        "adler2",
        "bzip2",
        "libbz2-rs-sys",
        "lzma-rust2",
        // Its macro runs in the compiler.
        "thiserror",
        "thiserror-impl",
        "proc-macro2",
        "quote",
        "syn",
        "unicode-ident",
    ];
    depends_on_only(shell, "zt-zip", "normal,build", &zip)?;

    rooms::check(shell)?;
    claims::check(shell)?;
    lints::check(shell)?;
    unsafe_code::check(shell)
}

/// Every member of the workspace and the members that it depends on.
///
/// From `cargo tree` and not from the manifests, where one dependency can be written in five ways.
fn members(shell: &Shell) -> Result<Vec<(String, Vec<String>)>> {
    let tree = shell
        .cargo("tree --locked --workspace --all-features --target all --edges normal,build,dev")
        // Without --no-dedupe a member that was seen as a dependency is printed again without its
        // own.
        .args("--depth 1 --prefix depth --no-dedupe")
        .output()?;
    Ok(parse_tree(&tree))
}

/// In the output of `cargo tree --prefix depth` a member is a line of depth 0, and the lines of
/// depth 1 after it are its dependencies. Whole labels are compared, because a package of a
/// registry may be called like one of ours.
fn parse_tree(tree: &str) -> Vec<(String, Vec<String>)> {
    let labels: Vec<&str> = tree.lines().filter_map(|line| line.strip_prefix('0')).collect();
    let name = |label: &str| label.split(' ').next().unwrap_or_default().to_owned();
    let mut members: Vec<(String, Vec<String>)> = Vec::new();
    for line in tree.lines() {
        if let Some(label) = line.strip_prefix('0') {
            members.push((name(label), Vec::new()));
        } else if let (Some(label), Some((_, dependencies))) =
            (line.strip_prefix('1'), members.last_mut())
            && labels.contains(&label)
        {
            dependencies.push(name(label));
        }
    }
    members
}

/// What is wrong with the crate `name` depending on `dependencies`.
fn faults(name: &str, dependencies: &[String]) -> Vec<String> {
    let Some(allowed) = allowed(name) else {
        return vec![format!(
            "the crate {name} (a new one is a design discussion, and a line in xtask/src/graph.rs)"
        )];
    };
    dependencies
        .iter()
        .filter(|dependency| !allowed.contains(&dependency.as_str()))
        .map(|dependency| format!("the edge from {name} to {dependency}"))
        .collect()
}

/// Our crates that `name` may depend on; `None` where the graph does not have it.
pub(crate) fn allowed(name: &str) -> Option<Vec<&'static str>> {
    match name {
        "xtask" => Some(Vec::new()),
        "zt-conformance" => Some(below("zt-capi").to_vec()),
        "zt-benches" => Some([below("zt-capi"), &["zt-conformance"]].concat()),
        // A program beside a library for other languages.
        "zt-cli" => Some(below("zt-capi").to_vec()),
        kind if is_kind(kind) => Some(below(KINDS[0].package).to_vec()),
        layer if LAYERS.contains(&layer) => Some(below(layer).to_vec()),
        _ => None,
    }
}

fn is_kind(name: &str) -> bool {
    KINDS.iter().any(|kind| kind.package == name)
}

fn below(top: &str) -> &'static [&'static str] {
    LAYERS.split(|layer| *layer == top).next().unwrap_or_default()
}

/// Refuses any dependency of the crate `name`, without features, but `expected`. A user of the
/// framing alone gets the framing alone.
fn depends_on_only(shell: &Shell, name: &str, edges: &str, expected: &[&str]) -> Result<()> {
    let tree = shell
        .cargo("tree --locked --no-default-features --target all --prefix none --package")
        .arg(name)
        .arg("--edges")
        .arg(edges)
        .output()?;
    let names = tree.lines().skip(1).filter_map(|line| line.split(' ').next());
    let others = names.filter(|found| !expected.contains(found));
    let faults = others.map(|found| format!("{name} on {found}")).collect();
    Error::unless_empty("a crate without features depends on another:", faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(from: &str, to: &str) -> bool {
        faults(from, &[to.to_owned()]).is_empty()
    }

    #[test]
    fn a_layer_may_use_every_layer_below_it() {
        assert!(may("zt-manifest", "zt-container"));
        assert!(may("zt-cli", "zt-convert"));
        assert!(may("zt-cli", "zt-container"));
    }

    #[test]
    fn a_layer_may_use_neither_itself_nor_a_layer_above() {
        assert!(!may("zt-tensor", "zt-tensor"));
        assert!(!may("zt-container", "zt-manifest"));
        assert!(!may("zt-zip", "zt-manifest"));
        assert!(!may("zt-convert", "zt-cli"));
        assert!(
            may("zt-capi", "zt-model") && !may("zt-cli", "zt-capi") && !may("zt-capi", "zt-cli")
        );
    }

    #[test]
    fn a_kind_may_use_the_contract_and_no_other_kind() {
        let kinds = || LAYERS.iter().filter(|name| is_kind(name));
        assert!(kinds().count() > 1);
        for kind in kinds() {
            assert!(may(kind, "zt-foreign") && may(kind, "zt-zip") && may("zt-convert", kind));
            assert!(kinds().all(|other| !may(kind, other)));
        }
    }

    #[test]
    fn no_layer_may_use_what_stands_beside_the_layers() {
        for layer in LAYERS.iter() {
            for beside in ["zt-conformance", "zt-benches", "xtask"] {
                assert!(!may(layer, beside), "{layer} -> {beside}");
            }
        }
    }

    #[test]
    fn conformance_and_benches_use_libraries_and_not_the_program() {
        assert!(may("zt-conformance", "zt-convert"));
        assert!(may("zt-benches", "zt-tensor"));
        assert!(may("zt-benches", "zt-conformance"));
        assert!(!may("zt-conformance", "zt-benches"));
        assert!(!may("zt-conformance", "zt-cli"));
        assert!(!may("zt-benches", "zt-cli"));
    }

    #[test]
    fn xtask_runs_when_none_of_the_crates_compiles() {
        assert!(LAYERS.iter().all(|layer| !may("xtask", layer)));
    }

    #[test]
    fn a_crate_that_is_not_drawn_is_refused_even_without_edges() {
        assert_eq!(faults("zt-candle", &[]).len(), 1);
    }

    #[test]
    fn reads_the_edges_between_members_out_of_a_tree() {
        let tree = "0zt v0.1.0 (/r/crates/zt)\n1rayon v1.12.0\n1zt-container v0.1.0 (/r/crates/zt-container)\n\
                    \n0zt-container v0.1.0 (/r/crates/zt-container)\n1memmap2 v0.9.0\n";
        let expected = [
            ("zt".to_owned(), vec!["zt-container".to_owned()]),
            ("zt-container".to_owned(), vec![]),
        ];
        assert_eq!(parse_tree(tree), expected);
    }

    #[test]
    fn a_registry_package_with_the_name_of_a_member_is_not_that_member() {
        let tree = "0peer v0.1.0 (/r/peer)\n1zt v0.9.0\n\n0zt v0.1.0 (/r/crates/zt)\n";
        assert!(parse_tree(tree).iter().all(|(_, dependencies)| dependencies.is_empty()));
    }
}
