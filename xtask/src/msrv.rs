//! `cargo xtask msrv`: our crates compile with the oldest compiler that `Cargo.toml` promises.

use crate::environment::unavailable;
use crate::error::{Error, Result};
use crate::shell::Shell;

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    let oldest = oldest(include_str!("../../Cargo.toml"));
    let oldest = oldest.ok_or_else(|| Error::Usage("Cargo.toml has no rust-version".into()))?;
    let cargo = || shell.program("cargo").arg(format!("+{oldest}"));
    if !cargo().arg("--version").succeeds() {
        let install = shell.program("rustup").args("toolchain install --profile minimal");
        install.arg(&oldest).run().map_err(unavailable("the oldest compiler"))?;
    }
    // Tests may need a newer compiler, and nobody builds them but us.
    let check =
        cargo().args("check --locked --quiet --workspace --exclude zt-benches --all-features");
    // What an older compiler warns about is no concern of users.
    let check = check.env("RUSTFLAGS", "--cap-lints allow");
    // A folder of its own: what two compilers built in turn would be built again and again.
    check.arg("--target-dir").arg(shell.target().join("msrv")).run()
}

/// `1.91` in the manifest is the toolchain `1.91.0`.
fn oldest(manifest: &str) -> Option<String> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \""))?;
    Some(format!("{}.0", line.strip_suffix('"')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_compiler_is_the_first_of_its_version() {
        assert_eq!(
            oldest("[workspace.package]\nrust-version = \"1.91\"\n").as_deref(),
            Some("1.91.0")
        );
        assert_eq!(oldest("[workspace]\n"), None);
    }
}
