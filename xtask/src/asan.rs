//! `cargo xtask asan`: the tests of the crates under AddressSanitizer.
//!
//! Unsafe code of ours is one call to map a file; what the sanitizer watches besides is the C of
//! zstd, at the border to it, and every dependency's. Needs a nightly compiler. A target has to be
//! named, so that build scripts and macros, which run in the compiler, are not instrumented.

use crate::error::{Error, Result};
use crate::shell::Shell;

/// Every library; the program runs the same code once more.
const PACKAGES: &str = "--workspace --exclude zt-cli --exclude zt-benches --exclude xtask";

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    let nightly = || shell.program("cargo").arg("+nightly");
    let version = shell.program("rustc").args("+nightly --version --verbose");
    let Some(machine) = version.output().ok().and_then(|said| {
        let line = said.lines().find_map(|line| line.strip_prefix("host: "));
        line.map(str::to_owned)
    }) else {
        let reason = "a nightly toolchain is not installed";
        return Err(Error::Unavailable(reason.into()));
    };
    nightly()
        .args("test --locked --lib --tests --all-features --target")
        .arg(machine)
        .args(PACKAGES)
        .arg("--target-dir")
        .arg(shell.target().join("asan"))
        .env("RUSTFLAGS", "-Zsanitizer=address")
        // The C of zstd is instrumented too. gcc makes constants of its tables of functions, and then
        // takes them for variables whose scope has ended.
        .env("CFLAGS", "-fno-sanitize-address-use-after-scope")
        // Tests that ask what happens when memory is refused want an error, not the end; and one
        // forgets a value, which is a leak, to see that nothing depends on its being dropped.
        .env("ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=0")
        .run()
}
