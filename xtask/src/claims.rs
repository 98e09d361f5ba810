//! What CONTRIBUTING.md, README.md and the front pages of our crates say about where things are, compared with the
//! repository. A part of `cargo xtask graph`.
//!
//! A block that is compared has a name after its language, which no page shows: three backticks, `text route`.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::graph::{LAYERS, allowed};
use crate::rooms::ROOMS;
use crate::shell::Shell;
use crate::{TASKS, ci, kinds};

pub(crate) fn check(shell: &Shell) -> Result<()> {
    let root = shell.root();
    let read = |name: &str| {
        let path = root.join(name);
        fs::read_to_string(&path).map_err(Error::file(&path))
    };
    let (contributing, readme) = (read("CONTRIBUTING.md")?, read("README.md")?);
    let folders = folders(root)?;

    let mut faults = kinds::faults(root, &contributing)?;
    for (page, text) in [("CONTRIBUTING.md", &contributing), ("README.md", &readme)] {
        let missing = paths(text, &folders).filter(|path| !root.join(path).exists());
        faults.extend(missing.map(|path| format!("{page}: there is no {path}")));
    }
    let figure = readme.split_once("```mermaid\n").and_then(|(_, rest)| rest.split_once("\n```"));
    let arrows = figure.map_or_else(Vec::new, |(figure, _)| arrows(figure));
    if arrows.is_empty() {
        faults.push("README.md: there is no figure of crates".to_owned());
    }
    let wrong = arrows.into_iter().filter(|(upper, lower)| !is_drawn(upper, lower));
    faults.extend(wrong.map(|(upper, lower)| format!("README.md: {upper} --> {lower} is no edge")));
    let block = |name: &str| {
        let begin = format!("```text {name}\n");
        let found = contributing.split_once(&begin).and_then(|(_, rest)| rest.split_once("\n```"));
        found.map_or("", |(block, _)| block)
    };
    let mut compared = |name: &str, found: Vec<String>| {
        let is_there = !block(name).is_empty();
        let found = if is_there { found } else { vec!["there is no such block".into()] };
        faults.extend(found.into_iter().map(|fault| format!("CONTRIBUTING.md, {name}: {fault}")));
    };
    compared("places", unlisted(block("places"), &folders));
    compared("graph", undrawn(block("graph")));
    compared("rooms", rooms(block("rooms")));
    let is_file = |path: &str| root.join(path).is_file();
    compared("route", lost(block("route"), is_file));
    let tasks = block("tasks").lines().filter_map(|line| word_after(line, "cargo xtask "));
    compared("tasks", differences(tasks, TASKS.iter().map(|task| task.name)));
    let steps = block("steps").lines().filter_map(|line| line.split_whitespace().next());
    compared("steps", differences(steps, ci::STEPS.iter().map(|step| step.name)));

    for name in LAYERS.iter() {
        // The facade's folder has the name of its library.
        let folder = name.replace("zt-tensor", "zt");
        let page = format!("crates/{folder}/README.md");
        let said = misplaced(name, &read(&page)?);
        faults.extend(said.into_iter().map(|fault| format!("{page}: {fault}")));
    }
    Error::unless_empty("what is said is not so:", faults)?;
    println!("graph: CONTRIBUTING.md, README.md and the pages of crates name what is there");
    Ok(())
}

/// What stands at the top of the repository and in `crates`, without hidden names.
fn folders(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for parent in ["", "crates/"] {
        let folder = root.join(parent);
        for entry in fs::read_dir(&folder).map_err(Error::file(&folder))? {
            let entry = entry.map_err(Error::file(&folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_ours = !name.starts_with('.') && name != "target" && name != "crates";
            if is_ours && entry.path().is_dir() {
                found.push(format!("{parent}{name}"));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The paths of a page: words that begin with a folder of the repository. A word with a placeholder is none.
fn paths<'t>(text: &'t str, folders: &[String]) -> impl Iterator<Item = &'t str> {
    let is_end = |c: char| !(c.is_alphanumeric() || "/._-<>*…@:".contains(c));
    text.split(is_end).map(|word| word.trim_end_matches(['.', ':', '/'])).filter(|word| {
        let is_folder = |top: &str| {
            ["crates", ".github", ".ci"].contains(&top)
                || folders.iter().any(|folder| folder == top)
        };
        !word.contains(['<', '*', '…', '@', ':'])
            && word.split_once('/').is_some_and(|(top, _)| is_folder(top))
    })
}

/// Folders without a line. `crates/zt-<kind>` has the crates of all kinds, which [`kinds`] asks for.
fn unlisted(block: &str, folders: &[String]) -> Vec<String> {
    let listed: Vec<&str> = block.lines().filter_map(|line| line.split(' ').next()).collect();
    let kinds = kinds::KINDS.iter().map(|kind| format!("crates/{}", kind.package));
    let kinds: Vec<String> = kinds.collect();
    let folders = folders.iter().filter(|folder| !kinds.contains(folder)).map(String::as_str);
    differences(listed.into_iter().filter(|name| !name.contains('<')), folders)
}

/// Arrows of a drawing that the graph does not have. Several chains on a line are four spaces apart.
fn undrawn(block: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for chain in block.lines().flat_map(|line| line.split("    ")) {
        let names: Vec<&str> = chain.split(" <- ").map(str::trim).collect();
        for (lower, upper) in names.iter().zip(names.iter().skip(1)) {
            if !is_drawn(upper, lower) {
                faults.push(format!("{lower} <- {upper} is no edge"));
            }
        }
    }
    faults
}

/// The arrows of a figure of mermaid, `a & b --> c`, from a crate to its dependency. Names are without `zt-`.
fn arrows(figure: &str) -> Vec<(String, String)> {
    let name = |node: &str| match node.split('[').next().unwrap_or_default().trim() {
        "tensor" => "zt".to_owned(),
        "kinds" => kinds::EACH.to_owned(),
        name => format!("zt-{name}"),
    };
    let mut found = Vec::new();
    for (uppers, lowers) in figure.split(['\n', ';']).filter_map(|it| it.split_once("-->")) {
        for upper in uppers.split('&') {
            found.extend(lowers.split('&').map(|lower| (name(upper), name(lower))));
        }
    }
    found
}

fn is_drawn(upper: &str, lower: &str) -> bool {
    let are_below = |upper: &String| crates_of(lower).iter().all(|lower| may_use(upper, lower));
    crates_of(upper).iter().all(are_below)
}

/// The crates that a drawing or a head means by a name.
fn crates_of(name: &str) -> Vec<String> {
    match name {
        // The facade has the name of its library.
        "zt" => vec!["zt-tensor".to_owned()],
        kinds::EACH => kinds::expand(&[kinds::EACH]).into_iter().map(str::to_owned).collect(),
        _ => vec![name.to_owned()],
    }
}

fn may_use(upper: &str, lower: &str) -> bool {
    allowed(upper).is_some_and(|below| below.contains(&lower))
}

fn rooms(block: &str) -> Vec<String> {
    let in_one_form = |words: Vec<&str>| words.join(" ");
    let drawn: Vec<String> =
        block.lines().map(|line| in_one_form(line.split_whitespace().collect())).collect();
    let known = ROOMS.iter().map(|(folder, rooms)| {
        let name = folder.trim_start_matches("crates/");
        in_one_form([&[name], *rooms].concat())
    });
    let known: Vec<String> = known.collect();
    differences(drawn.iter().map(String::as_str), known.iter().map(String::as_str))
}

/// Files of a route that are not there. A stop is `crate room/file` or, in the same crate, `room/file`. A line that
/// is not indented begins with the name of a part of the route.
fn lost(block: &str, is_file: impl Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    let mut home = "";
    let without_part = block.lines().map(|line| match line.strip_prefix(' ') {
        Some(_) => line.trim(),
        None => line.split_once(' ').map_or("", |(_, stops)| stops.trim()),
    });
    let stops = without_part.flat_map(|line| line.split('>').map(str::trim));
    for stop in stops.filter(|stop| !stop.is_empty()) {
        let file = match stop.split_once(' ') {
            Some((name, file)) => {
                home = name;
                file
            }
            None => stop,
        };
        let path = format!("crates/{home}/src/{file}");
        if !is_file(&format!("{path}.rs")) && !is_file(&format!("{path}/mod.rs")) {
            faults.push(format!("{home} {file} is no file"));
        }
    }
    faults
}

/// Neighbours that a front page names, "Place in the graph: above x, below y.", and that the graph has elsewhere.
fn misplaced(name: &str, page: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if page.contains(" <- zt-") {
        faults.push("CONTRIBUTING.md draws the graph, and a page names its neighbours".to_owned());
    }
    let place = page.split_once("Place in the graph:").map_or("", |(_, rest)| rest);
    let place = place.split('.').next().unwrap_or_default();
    let (above, below) = place.split_once("below").unwrap_or((place, ""));
    let named = |text: &str| -> Vec<String> {
        text.split('`').skip(1).step_by(2).flat_map(crates_of).collect()
    };
    let wrong = named(above).into_iter().filter(|lower| !may_use(name, lower));
    faults.extend(wrong.map(|lower| format!("{name} is not above {lower}")));
    let wrong = named(below).into_iter().filter(|upper| !may_use(upper, name));
    faults.extend(wrong.map(|upper| format!("{name} is not below {upper}")));
    faults
}

fn word_after<'t>(line: &'t str, mark: &str) -> Option<&'t str> {
    line.strip_prefix(mark)?.split_whitespace().next()
}

/// Names that only one of two lists has.
fn differences<'t>(
    said: impl Iterator<Item = &'t str>,
    known: impl Iterator<Item = &'t str>,
) -> Vec<String> {
    let (said, known): (Vec<&str>, Vec<&str>) = (said.collect(), known.collect());
    let wrong = said.iter().filter(|name| !known.contains(name));
    let wrong = wrong.map(|name| format!("there is no `{name}`"));
    let missing = known.iter().filter(|name| !said.contains(name));
    wrong.chain(missing.map(|name| format!("`{name}` is missing"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_a_folder_of_the_repository() {
        let text = "See `docs/a.md`, [x](docs/b.md#c), docs/<id>.md, and/or target/x.";
        let found: Vec<&str> = paths(text, &["docs".to_owned()]).collect();
        assert_eq!(found, ["docs/a.md", "docs/b.md"]);
    }

    #[test]
    fn a_route_names_files_of_the_crate_that_was_named_last() {
        let files = ["crates/a/src/lib.rs", "crates/b/src/x/y.rs", "crates/b/src/z/mod.rs"];
        let is_file = |path: &str| files.contains(&path);
        assert!(lost("open  a lib > b x/y\n      > z", is_file).is_empty());
        assert_eq!(lost("open  a lib > x/y", is_file), ["a x/y is no file"]);
        assert_eq!(lost("open  a lib\nread  q", is_file), ["a q is no file"]);
    }

    #[test]
    fn a_drawn_arrow_must_be_allowed() {
        assert!(undrawn("zt-container <- zt <- each kind <- zt-convert").is_empty());
        assert_eq!(
            undrawn("zt-manifest <- zt-container"),
            ["zt-manifest <- zt-container is no edge"]
        );
        assert_eq!(undrawn("zt-container <- zt-gone").len(), 1);
    }

    #[test]
    fn a_figure_has_arrows_from_a_crate_to_its_dependency() {
        let found = arrows("graph LR\n  foreign --> tensor[\"zt\"] & zip; cli --> kinds");
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
        let expected = [("zt-foreign", "zt"), ("zt-foreign", "zt-zip"), ("zt-cli", "each kind")];
        assert_eq!(found, expected);
        assert!(found.iter().all(|(upper, lower)| is_drawn(upper, lower)));
        assert!(!is_drawn("zt", "zt-foreign"));
    }

    #[test]
    fn a_page_names_its_neighbours() {
        let faults = |page| misplaced("zt-tensor", page);
        assert!(
            faults("# X\n\nPlace in the graph: above `zt-ggml`, below `zt-foreign`.\n").is_empty()
        );
        assert_eq!(faults("Place in the graph: above `zt-cli`.").len(), 1);
        assert_eq!(faults("Place in the graph: below `zt-zip`.").len(), 1);
        assert_eq!(faults("zt-container <- zt-manifest").len(), 1);
    }

    #[test]
    fn differences_are_told_in_both_directions() {
        let found = differences(["a", "b"].into_iter(), ["b", "c"].into_iter());
        assert_eq!(found, ["there is no `a`", "`c` is missing"]);
    }
}
