//! The pages for users, `docs/cli.md` and `docs/coming-from.md`, held against the program.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

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
    let help = common::run(common::command().args(arguments)).exits(0).text();
    let rest = help.split_once("\nOptions:\n").unwrap().1;
    // The text of an option is indented more than its name.
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let names = rest.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
    let names = names.filter(|line| (1..=6).contains(&indent(line)));
    let names = names.map(|line| line.trim_start().split("  ").next().unwrap());
    let options = names.flat_map(long_options).collect();
    found.insert(["zt", &path.join(" ")].join(" ").trim_end().to_owned(), options);
    let (_, list) = help.split_once("\nCommands:\n").unwrap_or_default();
    for line in list.lines().take_while(|line| !line.is_empty()) {
        let name = line.strip_prefix("  ").and_then(|line| line.split(' ').next());
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
        cells.flat_map(|cell| long_options(&cell).collect::<Vec<_>>()).collect()
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

    // The numbers at the beginning of a line; a separator follows each.
    let number = |word: &str| match word {
        "" => Some(None),
        word => word.parse().ok().map(Some),
    };
    let codes = |text: &str, strip: &str| -> BTreeSet<u8> {
        let lines = text.lines().map(|line| line.trim_start_matches(strip));
        let numbers = lines.flat_map(|line| line.split([' ', ',', '|']).map_while(number));
        numbers.flatten().collect()
    };
    let exits = help.split_once("Exit: ").unwrap().1;
    let table = page.split_once("\n## Exit codes\n").unwrap().1;
    let table = table.split("\n## ").next().unwrap();
    assert_eq!(codes(table, "| "), codes(exits, " "), "exit codes");
}

/// The files that the page names, and the files of the corpus that stand for them.
const FILES: [(&str, &str); 21] = [
    ("model.safetensors", "data/two-moons.safetensors"),
    ("model.gguf", "corpus/foreign/gguf/metadata_little.gguf"),
    ("m-00001-of-00003.gguf", "data/gguf-set/m-00001-of-00003.gguf"),
    ("m-00002-of-00003.gguf", "data/gguf-set/m-00002-of-00003.gguf"),
    ("m-00003-of-00003.gguf", "data/gguf-set/m-00003-of-00003.gguf"),
    ("model.h5", "corpus/foreign/h5/earliest_groups.h5"),
    ("model.ckpt", "corpus/torch/lightning.pt"),
    ("arrays.pkl", "corpus/pickle/ordered.pkl"),
    ("step-1000/.metadata", "corpus/dcp/rows/.metadata"),
    ("step-1000/__0_0.distcp", "corpus/dcp/rows/__0_0.distcp"),
    ("step-1000/__1_0.distcp", "corpus/dcp/rows/__1_0.distcp"),
    (
        "shards/shard-00001-model-00001-of-00001.safetensors",
        "corpus/dcp/safetensors/shard-00001-model-00001-of-00001.safetensors",
    ),
    (
        "shards/shard-00002-model-00001-of-00001.safetensors",
        "corpus/dcp/safetensors/shard-00002-model-00001-of-00001.safetensors",
    ),
    ("arrays.npz", "corpus/foreign/npz/stored.npz"),
    ("packed.npy", "data/packed/ml_int4.npy"),
    ("before.npz", "corpus/foreign/npz/stored.npz"),
    ("after.npz", "corpus/foreign/npz/stored.npz"),
    ("base.safetensors", "data/arithmetic/base.safetensors"),
    ("second.safetensors", "data/arithmetic/second.safetensors"),
    ("adapter/adapter_config.json", "data/arithmetic/adapter/adapter_config.json"),
    ("adapter/adapter_model.safetensors", "data/arithmetic/adapter/adapter_model.safetensors"),
];

/// What a shell makes of a line that has quotes around whole arguments only.
fn arguments(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    let parts = quoted.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    parts.collect()
}

#[test]
fn every_command_of_the_page_for_users_of_other_tools_runs() {
    let folder = tempfile::tempdir().unwrap();
    let conformance = repository().join("conformance");
    for below in ["step-1000", "shards", "adapter"] {
        fs::create_dir(folder.path().join(below)).unwrap();
    }
    for (name, file) in FILES {
        fs::copy(conformance.join(file), folder.path().join(name)).unwrap();
    }
    let sums = common::run(
        common::command().args(["hash", "--sums", "model.safetensors"]).current_dir(folder.path()),
    );
    fs::write(folder.path().join("SUMS"), sums.exits(0).out).unwrap();
    let page = page("coming-from.md");
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|line| line.rsplit(" | ").next());
    let commands = cells.filter_map(|cell| cell.strip_prefix("`zt "));
    let commands: Vec<&str> = commands.map(|cell| cell.strip_suffix("` |").unwrap()).collect();
    assert_eq!(commands.len(), 23);
    for line in commands {
        let run = common::run(common::command().args(arguments(line)).current_dir(folder.path()));
        assert_eq!(run.code, Some(0), "{line}: {}", run.err);
    }

    // A checkpoint of Lightning became a plain file of its weights.
    let weights = folder.path().join("weights.safetensors");
    let listed = zt!["ls", "--json", weights].exits(0).json();
    let objects = listed["objects"].as_array().unwrap();
    let names: Vec<&str> = objects.iter().map(|object| object["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["0.bias", "0.weight", "1.bias", "1.weight"]);
    let command = page.lines().find(|line| line.contains("model.ckpt weights"));
    let (_, line) = command.unwrap().split_once("--include ").unwrap();
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let line = line.trim_end_matches("` |");
    assert!(readme.contains(line), "README.md has no {line}");
}
