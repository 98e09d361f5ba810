//! `cargo xtask platforms [TARGET]…`: tests for other systems, on this one. They need Debian 12.
//!
//! Debian has compilers for these systems, qemu and wine, and a Rust with the source of its library, which
//! is built for each target. Everything is installed by `apt-get`. For musl and macOS zig is the compiler, as in
//! `cargo xtask dist`. What is tested, and what wine cannot show, is in `docs/platforms.md`.

use std::collections::BTreeSet;
use std::fs;

use crate::dist::{add, zigbuild};
use crate::environment::{once, unavailable};
use crate::error::{Error, Result};
use crate::shell::{Program, Shell};

struct Target {
    triple: &'static str,
    /// Debian's, with its compiler and its libraries.
    packages: &'static str,
    compiler: &'static str,
    /// Runs the programs of the target. Empty: this machine does.
    runner: &'static str,
    /// Empty: nothing is run, and the tests are only compiled.
    tests: &'static [&'static str],
    /// Names of tests, each with the reason.
    left_out: &'static [(&'static str, &'static str)],
    is_in_ci: bool,
}

/// Rust, whose library's source is for the same version.
pub(crate) const RUST: &str = "cargo-web rustc-web rust-web-src";

const PACKAGES: &str = "--package zt-container --package zt-manifest --package zt-formats --package zt-tensor \
    --package zt-safetensors --package zt-convert --no-default-features --features \
    zt-tensor/default,zt-manifest/serde,zt-convert/gguf,zt-convert/npy,zt-convert/safetensors,zt-convert/zstd";

/// Tests of bytes and values, few enough for an emulator.
const VALUES: &str = "--test blob --test digest --test footer --test writer --test value --test manifest \
    --test dense --test sparse --test header --test reading --test crc32c --test same_bytes";

/// Unit tests, and tests of what a system does with files.
const FILES: &str =
    "--lib --test source --test publishing --test locks --test edit --test same_bytes";

const TARGETS: &[Target] = &[
    Target {
        triple: "i686-unknown-linux-gnu",
        packages: "gcc-i686-linux-gnu libc6-dev-i386-cross libc6-i386 lib32gcc-s1",
        compiler: "i686-linux-gnu-gcc",
        runner: "",
        tests: &[VALUES, FILES, "--test index --test rows --test writing"],
        left_out: &[],
        is_in_ci: true,
    },
    Target {
        triple: "s390x-unknown-linux-gnu",
        packages: "gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user-static",
        compiler: "s390x-linux-gnu-gcc",
        runner: "qemu-s390x-static -L /usr/s390x-linux-gnu",
        tests: &[VALUES],
        left_out: &[("a_large_component_is_the_same", "takes minutes under qemu")],
        is_in_ci: true,
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static",
        compiler: "aarch64-linux-gnu-gcc",
        runner: "qemu-aarch64-static -L /usr/aarch64-linux-gnu",
        tests: &[VALUES],
        left_out: &[("a_large_component_is_the_same", "takes minutes under qemu")],
        is_in_ci: false,
    },
    Target {
        triple: "x86_64-unknown-linux-musl",
        packages: "",
        compiler: ZIG,
        runner: "",
        tests: &[VALUES, FILES],
        left_out: &[(
            "as_many_links_are_followed_as_the_system_follows",
            "musl follows 39 links in a row to a real path, and Linux 40",
        )],
        is_in_ci: false,
    },
    Target {
        triple: "aarch64-apple-darwin",
        packages: "",
        compiler: ZIG,
        runner: "",
        tests: &[],
        left_out: &[],
        is_in_ci: false,
    },
    Target {
        triple: "x86_64-apple-darwin",
        packages: "",
        compiler: ZIG,
        runner: "",
        tests: &[],
        left_out: &[],
        is_in_ci: false,
    },
    Target {
        triple: "x86_64-pc-windows-gnu",
        packages: "gcc-mingw-w64-x86-64-posix wine64",
        compiler: "x86_64-w64-mingw32-gcc-posix",
        runner: WINE,
        tests: &[FILES, "--test split"],
        left_out: &[
            (
                "compacted_it_holds_what_it_says",
                "wine cannot rename over a file that is open",
            ),
            (
                "a_set_replaces_a_set_also_itself",
                "wine keeps the name of a removed file that is open",
            ),
        ],
        is_in_ci: false,
    },
];

const ZIG: &str = "zig";

const WINE: &str = "/usr/lib/wine/wine64";

/// A library of Windows 10 that wine 8 does not have. Rust's library takes random numbers from it.
const RANDOM: &str = "
#include <stddef.h>
unsigned char SystemFunction036(void *bytes, unsigned long count);
__declspec(dllexport) int ProcessPrng(unsigned char *bytes, size_t count) {
    return SystemFunction036(bytes, (unsigned long)count);
}
";

pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let known = |name: &String| TARGETS.iter().any(|target| target.triple == name);
    if let Some(other) = arguments.iter().find(|name| !known(name)) {
        let names: Vec<_> = TARGETS.iter().map(|target| target.triple).collect();
        let message = format!("no target {other}; there are {}", names.join(", "));
        return Err(Error::Usage(message));
    }
    let is_asked = |triple| arguments.is_empty() || arguments.iter().any(|name| name == triple);
    let asked = TARGETS.iter().filter(|target| is_asked(target.triple));
    platforms(shell, asked)
}

/// The targets that differ most, in minutes.
pub(crate) fn in_ci(shell: &Shell) -> Result<()> {
    platforms(shell, TARGETS.iter().filter(|target| target.is_in_ci))
}

fn platforms<'t>(shell: &Shell, targets: impl Iterator<Item = &'t Target> + Clone) -> Result<()> {
    let packages = targets
        .clone()
        .flat_map(|target| target.packages.split_whitespace());
    install(shell, RUST.split_whitespace().chain(packages).collect())?;
    for target in targets {
        let name = target.triple.replace('-', "_");
        let cargo_target = format!("CARGO_TARGET_{}", name.to_uppercase());
        if target.compiler == ZIG {
            with_zig(shell, target)?.run()?;
            continue;
        }
        let test = debian(shell, "test --no-fail-fast").arg("--target");
        let test = with_arguments(shell, target, test.arg(target.triple));
        let test = test.env(&format!("CC_{name}"), target.compiler);
        let test = test.env(&format!("{cargo_target}_LINKER"), target.compiler);
        let test = match target.runner {
            "" => test,
            runner => test.env(&format!("{cargo_target}_RUNNER"), runner),
        };
        if target.runner == WINE {
            in_wine(shell, target.compiler, test)?.run()?;
        } else {
            test.run()?;
        }
    }
    Ok(())
}

/// Installs packages of Debian, unless all of them are installed.
pub(crate) fn install(shell: &Shell, packages: BTreeSet<&str>) -> Result<()> {
    let wanted = Vec::from_iter(packages).join(" ");
    let query = shell.program("dpkg-query").arg("--show");
    let query = query.arg("--showformat=${db:Status-Abbrev}");
    let there = query.args(&wanted).output();
    // A package that was removed is shown, too.
    if there.is_ok_and(|states| states.matches("ii ").count() == wanted.split(' ').count()) {
        return Ok(());
    }
    let get = || shell.program("apt-get").arg("--quiet=2");
    let updated = get().arg("update").run();
    updated.map_err(unavailable("Debian's packages"))?;
    let install = get().args("install --yes --no-install-recommends");
    let installed = install.args(&wanted).run();
    installed.map_err(unavailable("the compilers and emulators of Debian"))
}

/// Debian's cargo and Rust, which build the library for the target, too.
pub(crate) fn debian(shell: &Shell, arguments: &str) -> Program {
    let cargo = shell.program("/usr/bin/cargo").args(arguments);
    let cargo = cargo.arg("-Zbuild-std=std,panic_abort");
    let cargo = cargo
        .env("RUSTC", "/usr/bin/rustc")
        .env("LD_LIBRARY_PATH", "");
    // For `-Z`.
    let cargo = cargo.env("RUSTC_BOOTSTRAP", "1");
    cargo.env("CARGO_INCREMENTAL", "0")
}

/// `cargo test`, or `cargo check` of the tests, with rustup's library and zig.
fn with_zig(shell: &Shell, target: &Target) -> Result<Program> {
    let (subcommand, what) = match target.tests {
        [] => ("check", "--tests"),
        _ => ("test", "--no-fail-fast"),
    };
    add(shell, target.triple)?;
    let cargo = zigbuild(shell, subcommand, target.triple)?.arg(what);
    let cargo = cargo.env("CARGO_INCREMENTAL", "0");
    Ok(with_arguments(shell, target, cargo))
}

/// The dependencies are not optimised: to optimise them takes longer than the tests.
fn with_arguments(shell: &Shell, target: &Target, cargo: Program) -> Program {
    let cargo = cargo.args("--locked --target-dir");
    let cargo = cargo.arg(shell.target().join("platforms"));
    let cargo = cargo
        .arg("--config")
        .arg("profile.dev.package.\"*\".opt-level=0");
    let cargo = cargo.args(PACKAGES);
    let cargo = target
        .tests
        .iter()
        .fold(cargo, |cargo, some| cargo.args(some));
    let left_out = target
        .left_out
        .iter()
        .flat_map(|(name, _)| ["--skip", name]);
    let cargo = match target.left_out {
        [] => cargo,
        _ => left_out.fold(cargo.arg("--"), Program::arg),
    };
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0")
}

/// `test` with wine's files below `target/`.
fn in_wine(shell: &Shell, compiler: &str, test: Program) -> Result<Program> {
    let prefix = shell.target().join("platforms-wine");
    let set = |program: Program| {
        let program = program.env("WINEPREFIX", &prefix.to_string_lossy());
        let program = program.env("WINEDLLOVERRIDES", "mscoree,mshtml=");
        program.env("WINEDEBUG", "-all")
    };
    once(&prefix, RANDOM, || {
        let wine = |arguments| set(shell.program(WINE).args(arguments)).run();
        wine("wineboot.exe --init")?;
        wine("reg.exe add HKCU\\Software\\Wine /v Version /d win10 /f")?;
        let source = prefix.join("random.c");
        fs::write(&source, RANDOM).map_err(Error::file(&source))?;
        let library = prefix.join("drive_c/windows/system32/bcryptprimitives.dll");
        let gcc = shell.program(compiler).args("-shared -o").arg(library);
        gcc.arg(&source).arg("-ladvapi32").run()
    })?;
    Ok(set(test))
}
