//! `cargo xtask site`: the page that opens files and links, as static files in `target/site`.
//!
//! It is the page of zt-report around the npm package, in a worker.

use std::path::Path;

use crate::error::Result;
use crate::files::empty;
use crate::shell::Shell;
use crate::{page, wasm};

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    build(shell, &wasm::package(shell)?)
}

/// Bundles the site around a built package. The script that bundles refuses a site that is too long.
pub(crate) fn build(shell: &Shell, package: &Path) -> Result<()> {
    let (page, site) = (page::gathered(shell)?, shell.target().join("site"));
    page::check_types(shell, &page)?;
    empty(&site)?;
    let build = shell.program("node").arg(page.join("build.mjs"));
    build.arg(site).arg(package).run()
}

/// Opens files and links in a browser.
pub(crate) fn test(shell: &Shell) -> Result<()> {
    let (browser, page) = (page::browser(shell)?, page::gathered(shell)?);
    let pictures = page.join("pictures");
    empty(&pictures)?;
    let test = shell.program("node").arg(page.join("site.test.mjs"));
    let test = test.arg(shell.root()).arg(shell.built("bin", "zt")?).arg(browser);
    test.arg(shell.target().join("site")).arg(pictures).run()
}
