//! `cargo xtask wasm`: the npm package `zt-tensor` and the site, built, and tested in node and in Chromium. It needs
//! Debian 12.
//!
//! `rustup` has Rust's library for WebAssembly. The tests run on the packed package, installed as users install it:
//! `target/npm`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::ci::is_continuous;
use crate::dist::add;
use crate::environment::{once, unavailable};
use crate::error::{Error, Result};
use crate::files::{self, empty};
use crate::shell::Shell;
use crate::{platforms, site};

const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's compiler of zstd's C.
const COMPILER: [&str; 2] = ["clang-19", "llvm-19"];

const FROM_NPM: &str = "playwright-core@1.65.1 typescript@5.9.3";

/// Of the package. On npm `zt` is a package of others.
const NAME: &str = "zt-tensor";

/// The longest package, compressed: a page loads it.
const LONGEST: u64 = 3 << 19;

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    let package = package(shell)?;
    test(shell, package.parent().unwrap_or(&package))?;
    site::build(shell, &package)?;
    site::test(shell)
}

/// The package, built.
pub(crate) fn package(shell: &Shell) -> Result<PathBuf> {
    let has_node = "process.exit(process.getBuiltinModule ? 0 : 1)";
    if !shell.program("node").arg("-e").arg(has_node).succeeds() {
        return Err(Error::Unavailable("node 20.16 or later is not installed".into()));
    }
    platforms::install(shell, COMPILER.into())?;
    add(shell, TARGET)?;
    let package = shell.target().join("npm").join(NAME);
    fs::create_dir_all(&package).map_err(Error::file(&package))?;
    build(shell, &package)?;
    Ok(package)
}

/// Builds the package into `package`.
fn build(shell: &Shell, package: &Path) -> Result<()> {
    let built = shell.target().join("wasm");
    let cargo = |subcommand| {
        let cargo = shell.cargo(subcommand).arg("--target").arg(TARGET);
        let cargo = cargo.args("--locked --release --manifest-path js/Cargo.toml --target-dir");
        let cargo = cargo.arg(&built).env("CARGO_INCREMENTAL", "0");
        let cargo = cargo.env("CC_wasm32_unknown_unknown", COMPILER[0]);
        cargo.env("AR_wasm32_unknown_unknown", "llvm-ar-19")
    };
    cargo("clippy").args("-- --deny warnings").run()?;
    cargo("build").run()?;

    empty(package)?;
    let module = built.join(TARGET).join("release/zt_js.wasm");
    let bindgen = "run --quiet --locked --manifest-path js/Cargo.toml --package zt-bindgen";
    let bindgen = shell.cargo(bindgen).arg("--target-dir").arg(&built);
    let bindgen = bindgen.arg("--").arg(module);
    bindgen.arg(package.join("engine")).run()?;

    let js = shell.root().join("js");
    let ours = fs::read_dir(js.join("zt")).map_err(Error::file(&js))?;
    let ours = ours.filter_map(|entry| Some(entry.ok()?.path()));
    let python = shell.root().join("python");
    let texts = [js.join("README.md"), python.join("LICENSE-MIT"), python.join("LICENSE-APACHE")];
    for from in ours.chain(texts) {
        let to = package.join(from.file_name().unwrap_or_default());
        fs::copy(&from, to).map_err(Error::file(&from))?;
    }
    Ok(())
}

/// Packs the package in `folder`, installs it beside the tests, and runs them.
fn test(shell: &Shell, folder: &Path) -> Result<()> {
    let tests = folder.join("test");
    let npm = |arguments| shell.program("npm").args(arguments);
    let install = "install --silent --no-fund --no-audit --no-save --prefix";
    once(&tests, FROM_NPM, || {
        let tools = npm(install).arg(&tests).args(FROM_NPM);
        tools.run().map_err(unavailable(FROM_NPM))
    })?;
    let pack = npm("pack --silent --pack-destination").arg(folder);
    let packed = folder.join(pack.arg(folder.join(NAME)).output()?.trim());
    let byte_len = fs::metadata(&packed).map_err(Error::file(&packed))?.len();
    println!("{}: {byte_len} bytes", packed.display());
    if byte_len > LONGEST {
        let place = format!("{byte_len} bytes, more than {LONGEST}");
        let rule = "the npm package is small enough for a page";
        return Err(Error::Findings { rule, places: vec![place] });
    }
    npm(install).arg(&tests).arg(&packed).args(FROM_NPM).run()?;

    // The path is that of the tests.
    if !Path::new("/usr/bin/chromium").exists()
        && let Err(error) = platforms::install(shell, ["chromium"].into())
    {
        if is_continuous() {
            return Err(error);
        }
        eprintln!("the tests in Chromium are skipped: {error}");
    }
    let node = shell.program("node").arg("--test");
    let mut node = node.env("ZT_ROOT", &shell.root().to_string_lossy());
    let sources = shell.root().join("js/tests");
    for from in files::below(&sources)? {
        let to = tests.join(from.file_name().unwrap_or_default());
        fs::copy(&from, &to).map_err(Error::file(&from))?;
        if to.to_string_lossy().ends_with(".test.js") {
            node = node.arg(to);
        }
    }
    let module = r#"{"type":"module"}"#;
    let manifest = tests.join("package.json");
    fs::write(&manifest, module).map_err(Error::file(&manifest))?;
    let types = "--noEmit --strict --noUncheckedIndexedAccess --module nodenext --target es2022 --lib es2022,dom";
    let tsc = shell.program(tests.join("node_modules/.bin/tsc")).args(types);
    tsc.arg(tests.join("types.ts")).run()?;
    let program = shell.built("bin", "zt")?;
    node.env("ZT_PROGRAM", &program.to_string_lossy()).run()
}
