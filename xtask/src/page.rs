//! `cargo xtask page` and `cargo xtask test-page`: the page of zt-report is bundled of its sources, and opened in a
//! browser.
//!
//! Sources and packages of npm are gathered below `target/page`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::environment::{once, unavailable};
use crate::error::{Error, Result};
use crate::files::{below, empty, relative};
use crate::shell::Shell;

const SOURCES: &str = "crates/zt-report/page";
const ASSETS: &str = "crates/zt-report/assets";

/// `[--check]`: compares the bundle with the one in the repository, and does not write it.
pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let is_check = match arguments {
        [] => false,
        [only] if only == "--check" => true,
        _ => return Err(Error::Usage("page takes --check only".into())),
    };
    let page = gathered(shell)?;
    check_types(shell, &page)?;
    let assets = shell.root().join(ASSETS);
    let made = page.join("made");
    empty(&made)?;
    let build = shell.program("node").arg(page.join("build.mjs"));
    build.arg(&made).run()?;
    let mut faults = Vec::new();
    for path in below(&made)? {
        let name = relative(&path, &made);
        let bytes = fs::read(&path).map_err(Error::file(&path))?;
        let asset = assets.join(&name);
        if fs::read(&asset).is_ok_and(|committed| committed == bytes) {
            continue;
        }
        if is_check {
            faults.push(format!("{ASSETS}/{name}"));
        } else {
            fs::write(&asset, bytes).map_err(Error::file(&asset))?;
        }
    }
    Error::unless_empty("`cargo xtask page` makes other files of crates/zt-report/page:", faults)
}

/// `[MODEL]...`: reports of these files, too.
pub(crate) fn test(shell: &Shell, models: &[String]) -> Result<()> {
    let browser = browser(shell)?;
    let page = gathered(shell)?;
    let zt = shell.built("bin", "zt")?;
    let reports = page.join("reports");
    empty(&reports)?;
    let test = shell.program("node").arg(page.join("test.mjs"));
    let test = test.arg(shell.root()).arg(zt).arg(browser).arg(reports);
    models.iter().fold(test, |test, model| test.arg(model)).run()
}

/// The name of a browser that is installed.
pub(crate) fn browser(shell: &Shell) -> Result<&'static str> {
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let mut browsers = browsers.into_iter();
    let browser = browsers.find(|name| shell.program(name).arg("--version").succeeds());
    browser.ok_or_else(|| {
        let why = "chromium is not installed (on Debian: apt-get install chromium)";
        Error::Unavailable(why.into())
    })
}

/// Checks the types of the sources in `page`.
pub(crate) fn check_types(shell: &Shell, page: &Path) -> Result<()> {
    let types = shell.program("node");
    let types = types.arg(page.join("node_modules/typescript/bin/tsc"));
    types.arg("--project").arg(page).run()
}

/// The sources beside their packages. Their lock file decides whether the packages are installed anew.
pub(crate) fn gathered(shell: &Shell) -> Result<PathBuf> {
    let (sources, page) = (shell.root().join(SOURCES), shell.target().join("page"));
    let lock = sources.join("package-lock.json");
    let wanted = fs::read_to_string(&lock).map_err(Error::file(&lock))?;
    once(&page, &wanted, || {
        for name in ["package.json", "package-lock.json"] {
            copy(&sources.join(name), &page.join(name))?;
        }
        let npm = shell.program("npm").args("ci --silent --no-fund --no-audit");
        let npm = npm.arg("--prefix").arg(&page).run();
        npm.map_err(unavailable("the packages of the page"))
    })?;
    for folder in ["src", "site"] {
        empty(&page.join(folder))?;
    }
    copy(&shell.root().join("js/zt/index.d.ts"), &page.join("zt-tensor.d.ts"))?;
    for path in below(&sources)? {
        let name = relative(&path, &sources);
        if !name.starts_with("node_modules/") {
            copy(&path, &page.join(name))?;
        }
    }
    Ok(page)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).map_err(Error::file(to))
}
