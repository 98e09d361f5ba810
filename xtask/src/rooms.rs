//! The arrows within each crate. Code names another module by its path and not by the crate's root, which
//! hides the module. In a crate with rooms (folders of modules), a room uses the rooms before it, and no
//! later one. Tests and comments are left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::files;
use crate::shell::Shell;

/// The rooms of the crates that have any, lowest first. Every other crate is one room.
pub(crate) const ROOMS: &[(&str, &[&str])] = &[
    (
        "crates/zt",
        &[
            "error", "cores", "disk", "file", "read", "check", "write", "edit", "diff", "repair",
            "stats", "test_kit",
        ],
    ),
    ("crates/zt-cli", &["failure", "output", "files", "args", "commands", "cli"]),
    ("crates/zt-convert", &["native", "table", "merge", "write", "sets", "open"]),
    (
        "crates/zt-foreign",
        &[
            "tools", "values", "strided", "slices", "sparse", "faults", "open", "outgoing",
            "contract", "test_kit",
        ],
    ),
    ("crates/zt-formats", &["base", "formats"]),
    ("crates/zt-model", &["arithmetic", "delta", "location", "examine", "edit"]),
    ("crates/zt-hdf5", &["bytes", "filters", "structures", "values", "vds", "tree"]),
    ("python", &["share", "read", "write", "whole", "safetensors"]),
];

pub(crate) fn check(shell: &Shell) -> Result<()> {
    let crates = shell.root().join("crates");
    let mut folders = vec!["python".to_owned()];
    for entry in fs::read_dir(&crates).map_err(Error::file(&crates))? {
        let entry = entry.map_err(Error::file(&crates))?;
        folders.push(format!("crates/{}", entry.file_name().to_string_lossy()));
    }
    folders.sort();
    let mut faults = Vec::new();
    for folder in &folders {
        let known = ROOMS.iter().find(|(name, _)| name == folder);
        let rooms = known.map_or(&[][..], |(_, rooms)| rooms);
        let source = shell.root().join(folder).join("src");
        let found = faults_below(&source, rooms)?;
        faults.extend(found.into_iter().map(|fault| format!("{folder}/src/{fault}")));
    }
    Error::unless_empty("arrows within a crate:", faults)?;
    let rooms: usize = ROOMS.iter().map(|(_, rooms)| rooms.len()).sum();
    println!(
        "graph: {rooms} rooms in {} crates, none uses a later one; no name by way of the root of {} crates",
        ROOMS.len(),
        folders.len()
    );
    Ok(())
}

fn faults_below(source: &Path, rooms: &[&str]) -> Result<Vec<String>> {
    let paths = files::below(source)?;
    let names: Vec<String> = paths.iter().map(|path| files::relative(path, source)).collect();
    let modules = names.iter().map(|name| module(name)).collect();
    let mut faults = Vec::new();
    for (path, name) in paths.iter().zip(&names) {
        if name.ends_with(".rs") && !["lib.rs", "main.rs"].contains(&name.as_str()) {
            let text = fs::read_to_string(path).map_err(Error::file(path))?;
            faults.extend(faults_of(name, &text, &modules, rooms));
        }
    }
    let missing = rooms.iter().filter(|room| !modules.contains(*room));
    faults.extend(missing.map(|room| format!("{room}: there is no such room")));
    Ok(faults)
}

/// The module at the top of a crate that holds the file `name`.
fn module(name: &str) -> &str {
    let top = name.split('/').next().unwrap_or_default();
    top.strip_suffix(".rs").unwrap_or(top)
}

/// Paths of `crate::` in code that name no module, or that lead to a later room.
fn faults_of(name: &str, text: &str, modules: &BTreeSet<&str>, rooms: &[&str]) -> Vec<String> {
    let at = |room: &str| rooms.iter().position(|known| *known == room);
    let own = at(module(name));
    if own.is_none() && !rooms.is_empty() {
        return vec![format!("{name}: it is in none of the rooms")];
    }
    let tests = "\n#[cfg(test)]\nmod ";
    let shipped = text.split_once(tests).map_or(text, |(code, _)| code);
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(shipped.lines()) {
        let code = line.split("//").next().unwrap_or_default();
        for path in code.split("crate::").skip(1) {
            let is_end = |c: char| !(c.is_alphanumeric() || c == '_');
            let (target, rest) = path.split_at(path.find(is_end).unwrap_or(path.len()));
            if !modules.contains(target) && !rest.starts_with('!') {
                faults.push(format!("{name}:{number}: crate::{target} is no module"));
            } else if at(target) > own {
                faults.push(format!("{name}:{number}: {target} is a later room"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str, rooms: &[&str]) -> Vec<String> {
        let modules = BTreeSet::from(["low", "middle", "high"]);
        faults_of(name, text, &modules, rooms)
    }

    const ROOMS: &[&str] = &["low", "middle", "high"];

    #[test]
    fn a_room_may_use_itself_and_the_rooms_before_it() {
        let text = "use crate::low::Result;\nlet file = crate::low::open(crate::middle::X);\n";
        assert!(faults("middle/slice.rs", text, ROOMS).is_empty());
    }

    #[test]
    fn a_later_room_is_refused_wherever_the_line_names_it() {
        let text = "// crate::high\nf(crate::low::X, crate::high::Y)\n";
        let faults = faults("middle/writer.rs", text, ROOMS);
        assert_eq!(faults, ["middle/writer.rs:2: high is a later room"]);
    }

    #[test]
    fn names_of_the_root_are_refused_because_they_hide_their_module() {
        for rooms in [ROOMS, &[]] {
            for text in ["use crate::Editor;", "use crate::{low::A, B};"] {
                assert_eq!(faults("middle/mod.rs", text, rooms).len(), 1, "{text}");
            }
        }
    }

    #[test]
    fn a_crate_without_rooms_may_use_any_of_its_modules() {
        assert!(faults("low.rs", "use crate::high::Y;\n", &[]).is_empty());
    }

    #[test]
    fn macros_and_tests_may_go_by_way_of_the_root() {
        let text = "crate::table! {}\n#[cfg(test)]\nmod tests {\n    use crate::Editor;\n}\n";
        assert!(faults("low/mod.rs", text, ROOMS).is_empty());
    }

    #[test]
    fn a_file_outside_the_rooms_is_refused() {
        assert_eq!(faults("helper.rs", "", ROOMS).len(), 1);
        assert!(faults("helper.rs", "", &[]).is_empty());
    }

    #[test]
    fn every_room_of_a_crate_exists() {
        let empty = Path::new("there is no such folder");
        assert_eq!(faults_below(empty, &["low"]).unwrap().len(), 1);
    }
}
