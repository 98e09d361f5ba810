//! The packages that our crates are built with, by cargo's metadata and lock file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::shell::Shell;

/// Name and version.
pub(crate) type Id = (String, String);

/// A package of the lock file.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) licence: Option<String>,
    pub(crate) repository: Option<String>,
    /// The SHA-256 of its archive on the registry; none for ours.
    pub(crate) checksum: Option<String>,
    /// The folder of its sources.
    pub(crate) folder: PathBuf,
    /// Its resolved dependencies, without those of tests.
    pub(crate) uses: BTreeSet<Id>,
}

/// Every package of the workspace's lock file that some target needs.
pub(crate) fn packages(shell: &Shell) -> Result<BTreeMap<Id, Package>> {
    let text = shell.cargo("metadata --locked --all-features --format-version 1").output()?;
    let metadata: Value = serde_json::from_str(&text)
        .map_err(|error| Error::file(&shell.root().join("Cargo.toml"))(error.into()))?;
    let path = shell.root().join("Cargo.lock");
    let lock = fs::read_to_string(&path).map_err(Error::file(&path))?;
    Ok(described(&metadata, &lock))
}

fn described(metadata: &Value, lock: &str) -> BTreeMap<Id, Package> {
    let checksums = checksums(lock);
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut ids = BTreeMap::new();
    let mut packages = BTreeMap::new();
    for package in items(&metadata["packages"]) {
        let (Some(name), Some(version)) = (text(&package["name"]), text(&package["version"]))
        else {
            continue;
        };
        let id = (name, version);
        ids.insert(text(&package["id"]).unwrap_or_default(), id.clone());
        let mut folder = PathBuf::from(text(&package["manifest_path"]).unwrap_or_default());
        folder.pop();
        let described = Package {
            // An older way to write a choice.
            licence: text(&package["license"]).map(|licence| licence.replace('/', " OR ")),
            repository: text(&package["repository"]),
            checksum: checksums.get(&id).cloned(),
            folder,
            uses: BTreeSet::new(),
        };
        packages.insert(id, described);
    }
    let id_of = |value: &Value| ids.get(value.as_str()?).cloned();
    for node in items(&metadata["resolve"]["nodes"]) {
        if let Some(package) = id_of(&node["id"]).and_then(|id| packages.get_mut(&id)) {
            let is_for_tests = |used: &Value| {
                let kinds = items(&used["dep_kinds"]);
                !kinds.is_empty() && kinds.iter().all(|it| it["kind"] == "dev")
            };
            let uses = items(&node["deps"]);
            let uses = uses.iter().filter(|used| !is_for_tests(used));
            package.uses = uses.filter_map(|used| id_of(&used["pkg"])).collect();
        }
    }
    packages
}

/// A lock file has one field a line.
fn checksums(lock: &str) -> BTreeMap<Id, String> {
    let field = |package: &str, name: &str| {
        let mut lines = package.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))?;
        value.strip_suffix('"').map(str::to_owned)
    };
    let packages = lock.split("[[package]]");
    let entry = |package| {
        let id = (field(package, "name")?, field(package, "version")?);
        Some((id, field(package, "checksum")?))
    };
    packages.filter_map(entry).collect()
}

/// The packages that `cargo tree` lists with these arguments, for every target.
pub(crate) fn tree(shell: &Shell, arguments: &str) -> Result<BTreeSet<Id>> {
    let tree = shell.cargo("tree --locked --target all --prefix none --no-dedupe");
    let text = tree.args(arguments).output()?;
    let ids = text.lines().filter_map(|line| {
        let (name, version) = line.split_once(" v")?;
        let version = version.split(' ').next()?;
        Some((name.to_owned(), version.to_owned()))
    });
    Ok(ids.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_and_lock_file_say_what_a_package_is() {
        let metadata = r#"{
            "packages": [
                {"id": "path#zt", "name": "zt", "version": "0.1.0", "license": null, "manifest_path": "/r/zt/Cargo.toml"},
                {"id": "reg#half", "name": "half", "version": "2.7.1", "license": "MIT/Apache-2.0", "repository": "https://x.y",
                 "manifest_path": "/c/half/Cargo.toml"}
            ],
            "resolve": {"nodes": [{"id": "path#zt", "deps": [
                {"pkg": "reg#half", "dep_kinds": [{"kind": "dev"}, {"kind": null}]},
                {"pkg": "path#zt", "dep_kinds": [{"kind": "dev"}]}
            ]}]}
        }"#;
        let lock = "version = 4\n\n[[package]]\nname = \"half\"\nversion = \"2.7.1\"\n\
                    source = \"registry\"\nchecksum = \"abc\"\n\n[[package]]\nname = \"zt\"\nversion = \"0.1.0\"\n";
        let packages = described(&serde_json::from_str(metadata).unwrap(), lock);
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let half = &packages[&id("half", "2.7.1")];
        assert_eq!(half.licence.as_deref(), Some("MIT OR Apache-2.0"));
        assert_eq!(half.checksum.as_deref(), Some("abc"));
        assert_eq!(half.folder, PathBuf::from("/c/half"));
        let zt = &packages[&id("zt", "0.1.0")];
        assert!(zt.checksum.is_none());
        assert_eq!(zt.uses, BTreeSet::from([id("half", "2.7.1")]));
    }
}
