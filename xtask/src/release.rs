//! `cargo xtask release VERSION`: the version in every manifest and lock file, the day in the changelog, a
//! commit and a tag. To push the tag releases it: `.github/workflows/release.yml`.

use std::fs;

use crate::error::{Error, Result};
use crate::shell::Shell;

/// The workspaces. Each has a manifest with the version, and a lock file.
const WORKSPACES: [&str; 5] = ["", "python/", "js/", "crates/zt-candle/", "fuzz/"];

pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let [new] = arguments else {
        return Err(Error::Usage("`release` takes a version".into()));
    };
    if !is_version(new) {
        return Err(Error::Usage(format!("`{new}` is no version such as 1.2.3")));
    }
    if !has_repository(include_str!("../../Cargo.toml")) {
        let why =
            "Cargo.toml has no `repository`: CONTRIBUTING.md says what the first release needs";
        return Err(Error::Usage(why.into()));
    }
    let git = |arguments| shell.program("git").args(arguments);
    if !git("status --porcelain").output()?.is_empty() {
        return Err(Error::Usage("commit first: there are changes".into()));
    }
    let edit = |name: &str, change: &dyn Fn(&str) -> Option<String>| {
        let path = shell.root().join(name);
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        let Some(text) = change(&text) else {
            let why = format!("CHANGELOG.md has no section `{}`", unreleased(new));
            return Err(Error::Usage(why));
        };
        fs::write(&path, text).map_err(Error::file(&path))
    };
    let day = git("log -1 --format=%cs").output()?;
    edit("CHANGELOG.md", &|text| dated(text, new, day.trim()))?;
    let old = shell.cargo("pkgid --package zt-cli").output()?;
    let old = old.trim().rsplit(['#', '@']).next().unwrap_or_default();
    for workspace in WORKSPACES {
        edit(&format!("{workspace}Cargo.toml"), &|text| Some(with_version(text, old, new)))?;
    }
    edit("js/zt/package.json", &|text| {
        let version = |it| format!("\"version\": \"{it}\"");
        Some(text.replace(&version(old), &version(new)))
    })?;
    for workspace in WORKSPACES {
        let cargo = shell.cargo("update --quiet --workspace --manifest-path");
        cargo.arg(format!("{workspace}Cargo.toml")).run()?;
    }
    let message = format!("release {new}");
    let commit = git("commit --quiet --all --message").arg(&message);
    commit.run()?;
    let tag = git("tag --annotate --message").arg(message);
    tag.arg(format!("v{new}")).run()?;
    println!("release: git push origin main v{new}");
    Ok(())
}

/// Pages of registries and `cargo binstall` link to it. Until there is a public repository, no address would be true.
fn has_repository(manifest: &str) -> bool {
    manifest.lines().any(|line| line.starts_with("repository = \"https://"))
}

fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    text.split('.').count() == 3 && text.split('.').all(is_number)
}

/// Our versions in a manifest: no dependency has three numbers.
fn with_version(manifest: &str, old: &str, new: &str) -> String {
    manifest.replace(&format!("version = \"{old}\""), &format!("version = \"{new}\""))
}

fn unreleased(version: &str) -> String {
    format!("## {version} (unreleased)")
}

/// The changelog with a day for this version.
fn dated(changelog: &str, version: &str, day: &str) -> Option<String> {
    let heading = unreleased(version);
    let is_there = changelog.lines().any(|line| line == heading);
    is_there.then(|| changelog.replacen(&heading, &format!("## {version} ({day})"), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_three_numbers() {
        assert!(is_version("0.10.2"));
        for other in ["1.2", "v1.2.3", "1.2.3-rc1", "1..3", ""] {
            assert!(!is_version(other), "{other}");
        }
    }

    #[test]
    fn a_release_needs_a_repository() {
        assert!(has_repository("[workspace.package]\nrepository = \"https://example.org/zt\"\n"));
        assert!(!has_repository("[workspace.package]\nrepository = \"\"\n"));
    }

    #[test]
    fn only_our_version_is_replaced() {
        let manifest = "version = \"0.1.0\"\nzt = { version = \"0.1.0\" }\nzstd = \"0.1.0\"";
        let new = "version = \"0.2.0\"\nzt = { version = \"0.2.0\" }\nzstd = \"0.1.0\"";
        assert_eq!(with_version(manifest, "0.1.0", "0.2.0"), new);
    }

    #[test]
    fn a_section_of_the_changelog_gets_its_day() {
        let changelog = "# Changelog\n\n## 0.2.0 (unreleased)\n\n## 0.1.0 (2026-12-01)\n";
        let released = dated(changelog, "0.2.0", "2027-01-31");
        assert!(released.is_some_and(|text| text.contains("## 0.2.0 (2027-01-31)\n")));
        assert_eq!(dated(changelog, "0.3.0", "2027-01-31"), None);
    }
}
