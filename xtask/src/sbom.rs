//! `cargo xtask sbom`: the bill of materials of the program `zt`, as CycloneDX 1.5 in JSON. A release has that of the C
//! library, too.
//!
//! Names, versions, licences and checksums come from `Cargo.lock` and from cargo's metadata, for the
//! program's own features and every target. It has no time and no serial number: the same lock file gives
//! the same bytes. Crates that only build the program (build scripts, macros) have the scope `excluded`.
//!
//! `cargo-cyclonedx` 0.5.9 was tried. It resolves features for the whole workspace, so it lists five crates
//! that the program does not have (`memmap2`, `ciborium`). It counts macros as part of the program, puts the
//! folder of the clone into its references, and writes a file beside each of our 23 manifests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::dependencies::{Id, Package, packages, tree};
use crate::error::{Error, Result};
use crate::shell::Shell;

pub(crate) const PROGRAM: &str = "zt-cli";

/// The C library, with URLs as a release has it.
pub(crate) const LIBRARY: &str = "zt-capi";

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    println!("{:#}", checked(shell, PROGRAM)?);
    Ok(())
}

/// As a step of `ci`: makes the document, and checks that each component has all required fields.
pub(crate) fn check(shell: &Shell) -> Result<()> {
    for top in [PROGRAM, LIBRARY] {
        let document = checked(shell, top)?;
        let components = document["components"].as_array().map_or(0, Vec::len);
        println!("sbom: {components} components of {top}");
    }
    Ok(())
}

pub(crate) fn checked(shell: &Shell, top: &str) -> Result<Value> {
    let package = format!("-p {top} --features {top}/remote");
    let all = tree(shell, &format!("{package} --edges normal,build"))?;
    let runs = tree(shell, &format!("{package} --edges normal,no-proc-macro"))?;
    let document = document(top, &packages(shell)?, &all, &runs);
    Error::unless_empty("the bill of materials lacks", faults(&document))?;
    Ok(document)
}

fn document(
    top: &str,
    packages: &BTreeMap<Id, Package>,
    all: &BTreeSet<Id>,
    runs: &BTreeSet<Id>,
) -> Value {
    let unknown = Package::default();
    let of = |id: &Id| packages.get(id).unwrap_or(&unknown);
    let is_top = |id: &&Id| id.0 == top;
    let kind = if top == LIBRARY { "library" } else { "application" };
    let found = all.iter().find(is_top);
    let components = all.iter().filter(|id| !is_top(id)).map(|id| {
        let mut component = component(id, of(id), "library");
        component["scope"] = json!(if runs.contains(id) { "required" } else { "excluded" });
        component
    });
    let dependencies = all.iter().map(|id| {
        let uses = of(id).uses.iter().filter(|used| all.contains(used));
        json!({ "ref": purl(id), "dependsOn": uses.map(purl).collect::<Vec<_>>() })
    });
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": found.map(|id| component(id, of(id), kind)) },
        "components": components.collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    })
}

fn component(id: &Id, package: &Package, kind: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": purl(id),
        "name": id.0,
        "version": id.1,
        "purl": purl(id),
    });
    if let Some(licence) = &package.licence {
        component["licenses"] = json!([{ "expression": licence }]);
    }
    if let Some(checksum) = &package.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = &package.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

/// The package URL. A `+` in a version is escaped.
fn purl((name, version): &Id) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

/// The fields that are missing: those that CycloneDX 1.5 requires, licences and checksums.
fn faults(document: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (key, wanted) in
        [("bomFormat", json!("CycloneDX")), ("specVersion", json!("1.5")), ("version", json!(1))]
    {
        if document[key] != wanted {
            faults.push(format!("{key}: {wanted}"));
        }
    }
    let components = document["components"].as_array().into_iter().flatten();
    let mut refs = BTreeSet::new();
    for component in components.chain([&document["metadata"]["component"]]) {
        let name = component["name"].as_str().unwrap_or("?");
        for key in ["type", "bom-ref", "name", "version", "purl"] {
            if component[key].as_str().is_none_or(str::is_empty) {
                faults.push(format!("{name}: {key}"));
            }
        }
        if component["licenses"][0]["expression"].as_str().is_none() {
            faults.push(format!("{name}: a licence"));
        }
        let sum = component["hashes"][0]["content"].as_str();
        let is_sum = |sum: &str| sum.len() == 64 && sum.bytes().all(|it| it.is_ascii_hexdigit());
        // Ours are in no registry's archive.
        if !name.starts_with("zt-") && !sum.is_some_and(is_sum) {
            faults.push(format!("{name}: a checksum"));
        }
        if !refs.insert(component["bom-ref"].as_str()) {
            faults.push(format!("{name}: a reference of its own"));
        }
    }
    let dependencies = document["dependencies"].as_array().into_iter().flatten();
    for dependency in dependencies {
        let used = dependency["dependsOn"].as_array().into_iter().flatten();
        for to in used.chain([&dependency["ref"]]) {
            if !refs.contains(&to.as_str()) {
                faults.push(format!("{to}: a component"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str, version: &str) -> Id {
        (name.to_owned(), version.to_owned())
    }

    fn packages() -> BTreeMap<Id, Package> {
        let zstd = id("zstd-sys", "2.0.1+zstd.1.5.7");
        let licence = Some("MIT".to_owned());
        BTreeMap::from([
            (
                id(PROGRAM, "0.1.0"),
                Package {
                    licence: licence.clone(),
                    uses: BTreeSet::from([zstd.clone(), id("proptest", "1.0.0")]),
                    ..Package::default()
                },
            ),
            (zstd, Package { licence, checksum: Some("0f".repeat(32)), ..Package::default() }),
        ])
    }

    fn made(packages: &BTreeMap<Id, Package>) -> Value {
        let all = packages.keys().cloned().collect();
        document(PROGRAM, packages, &all, &BTreeSet::new())
    }

    #[test]
    fn a_document_has_every_required_field() {
        let document = made(&packages());
        assert_eq!(faults(&document), [""; 0]);
        let component = &document["components"][0];
        assert_eq!(component["purl"], "pkg:cargo/zstd-sys@2.0.1%2Bzstd.1.5.7");
        assert_eq!(component["scope"], "excluded");
        // A crate that only tests use is not a part of the program.
        assert_eq!(document["dependencies"][1]["dependsOn"], json!([component["purl"]]));
    }

    #[test]
    fn a_component_without_a_licence_or_a_checksum_is_a_fault() {
        let mut packages = packages();
        packages.insert(id("unknown", "1.0.0"), Package::default());
        assert_eq!(faults(&made(&packages)), ["unknown: a licence", "unknown: a checksum"]);
    }

    #[test]
    fn the_documents_of_one_lock_file_are_equal() {
        assert_eq!(made(&packages()).to_string(), made(&packages()).to_string());
    }

    #[test]
    fn a_dependency_that_is_no_component_is_a_fault() {
        let mut document = made(&packages());
        document["dependencies"][0]["ref"] = json!("pkg:cargo/lost@1.0.0");
        assert_eq!(faults(&document).len(), 1);
    }
}
