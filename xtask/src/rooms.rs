//! The rooms of the crate `zt`: each uses those before it, and no later one.

use std::fs;

use crate::error::{Error, Result};
use crate::files;
use crate::shell::Shell;

/// The folders of `crates/zt/src`, lowest first.
const ROOMS: [&str; 10] = [
    "error", "cores", "disk", "file", "read", "check", "write", "edit", "diff", "repair",
];

pub(crate) fn check(shell: &Shell) -> Result<()> {
    let source = shell.root().join("crates/zt/src");
    let mut faults = Vec::new();
    for path in files::below(&source)? {
        let name = files::relative(&path, &source);
        if name == "lib.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        faults.extend(faults_of(&name, &text));
    }
    Error::unless_empty("arrows between the rooms of crates/zt/src:", faults)?;
    println!(
        "graph: {} rooms in crates/zt/src, none uses a later one",
        ROOMS.len()
    );
    Ok(())
}

/// Paths of `crate::` in code that lead to a later room, or around the rooms by the crate's root.
fn faults_of(name: &str, text: &str) -> Vec<String> {
    let at = |room: &str| ROOMS.iter().position(|known| *known == room);
    let Some(own) = name.split('/').next().and_then(at) else {
        return vec![format!("{name}: it is in none of the rooms")];
    };
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.split("//").next().unwrap_or_default();
        for path in code.split("crate::").skip(1) {
            let is_end = |c: char| !(c.is_alphanumeric() || c == '_');
            let target = path.split(is_end).next().unwrap_or_default();
            match at(target) {
                Some(room) if room <= own => {}
                Some(_) => faults.push(format!("{name}:{number}: {target} is a later room")),
                None => faults.push(format!("{name}:{number}: crate::{target} names no room")),
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_may_use_itself_and_the_rooms_before_it() {
        let text = "use crate::error::Result;\nlet file = crate::file::open(crate::read::X);\n";
        assert!(faults_of("read/slice.rs", text).is_empty());
    }

    #[test]
    fn a_later_room_is_refused_wherever_the_line_names_it() {
        let text = "// crate::edit\nf(crate::file::X, crate::edit::Y)\n";
        assert_eq!(faults_of("write/writer.rs", text).len(), 1);
        assert!(faults_of("write/writer.rs", text)[0].starts_with("write/writer.rs:2:"));
    }

    #[test]
    fn names_of_the_root_are_refused_because_they_hide_their_room() {
        assert_eq!(faults_of("file/mod.rs", "use crate::Editor;").len(), 1);
        assert_eq!(faults_of("file/mod.rs", "use crate::{Editor};").len(), 1);
    }

    #[test]
    fn a_file_outside_the_rooms_is_refused() {
        assert_eq!(faults_of("helper.rs", "").len(), 1);
    }
}
