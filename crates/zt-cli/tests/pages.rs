//! The pages for users, `docs/cli.md` and `docs/coming-from.md`, held against the program.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Options = BTreeSet<String>;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    fs::read_to_string(repository().join("docs").join(name)).unwrap()
}

/// The long options in a text.
fn long_options(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let long = words.filter_map(|word| word.strip_prefix("--"));
    long.filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The long options of a command and of all commands below it, as `--help` lists them.
fn defined(path: &[&str], found: &mut BTreeMap<String, Options>) -> String {
    let arguments = [path, &["--help"]].concat();
    let help = common::run(common::command().args(arguments))
        .exits(0)
        .text();
    let rest = help.split_once("\nOptions:\n").unwrap().1;
    // The text of an option is indented more than its name.
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let names = rest
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with(' '));
    let names = names.filter(|line| (1..=6).contains(&indent(line)));
    let names = names.map(|line| line.trim_start().split("  ").next().unwrap());
    let options = names.flat_map(long_options).collect();
    found.insert(
        ["zt", &path.join(" ")].join(" ").trim_end().to_owned(),
        options,
    );
    let (_, list) = help.split_once("\nCommands:\n").unwrap_or_default();
    for line in list.lines().take_while(|line| !line.is_empty()) {
        let name = line
            .strip_prefix("  ")
            .and_then(|line| line.split(' ').next());
        if let Some(name) = name.filter(|name| !matches!(*name, "" | "help")) {
            defined(&[path, &[name]].concat(), found);
        }
    }
    help
}

#[test]
fn the_page_of_the_command_line_has_every_command_and_option_and_no_other() {
    let page = page("cli.md");
    let mut commands = BTreeMap::new();
    let help = defined(&[], &mut commands);
    let sections = page.split("\n### ").skip(1).map(|section| {
        let (title, text) = section.split_once('\n').unwrap();
        // The next heading of a part ends the section.
        (title, text.split("\n## ").next().unwrap())
    });
    let sections: BTreeMap<&str, &str> = sections.collect();
    // The first cells of a table have its options.
    let own = |text: &str| -> Options {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `-"));
        let cells = rows.map(|row| format!("-{}", row.split(" | ").next().unwrap()));
        cells
            .flat_map(|cell| long_options(&cell).collect::<Vec<_>>())
            .collect()
    };
    let mut listed = BTreeMap::new();
    for (title, text) in &sections {
        if *title != "zt" && !title.starts_with("zt ") {
            continue;
        }
        let mut options = own(text);
        options.extend(own(sections["Options of every command"]));
        for (group, of_group) in &sections {
            let link = format!("(#{})", group.to_lowercase().replace(' ', "-"));
            if text.contains(&link) {
                options.extend(own(of_group));
            }
        }
        listed.insert((*title).to_owned(), options);
    }
    for (command, options) in &commands {
        let of_page = listed.remove(command);
        let of_page = of_page.unwrap_or_else(|| panic!("docs/cli.md has no section {command}"));
        let missing: Vec<_> = options.difference(&of_page).collect();
        let unknown: Vec<_> = of_page.difference(options).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "{command} in docs/cli.md: missing {missing:?}, unknown {unknown:?}"
        );
    }
    assert!(listed.is_empty(), "unknown commands: {listed:?}");

    let codes = |text: &str, strip: &str| -> BTreeSet<u8> {
        let lines = text.lines().map(|line| line.trim_start_matches(strip));
        let words = lines.filter_map(|line| line.split([' ', '|']).next());
        words.filter_map(|word| word.parse().ok()).collect()
    };
    let exits = help.split_once("Exit: ").unwrap().1;
    let table = page.split_once("\n## Exit codes\n").unwrap().1;
    let table = table.split("\n## ").next().unwrap();
    assert_eq!(codes(table, "| "), codes(exits, " "), "exit codes");
}
