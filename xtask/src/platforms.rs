//! `cargo xtask platforms [TARGET]…`: tests for other systems, on this one. They need Debian 12.
//!
//! As in `cargo xtask dist`, `rustup` has Rust's library for each target, and zig is the compiler of C and the linker.
//! qemu and wine, and libraries of targets, are Debian's: `apt-get` installs them. What is tested, and what
//! wine cannot show, is in `docs/platforms.md`.

use std::collections::BTreeSet;
use std::fs;

use crate::dist::{add, tools, zigbuild};
use crate::environment::{once, unavailable};
use crate::error::{Error, Result};
use crate::shell::{Program, Shell};

struct Target {
    triple: &'static str,
    /// Debian's, with its libraries and what runs its programs.
    packages: &'static str,
    /// Runs the programs of the target. Empty: this machine does.
    runner: &'static str,
    /// Empty: nothing is run, and the tests are only compiled.
    tests: &'static [&'static str],
    /// Names of tests, each with the reason.
    left_out: &'static [(&'static str, &'static str)],
    is_in_ci: bool,
}

const PACKAGES: &str = "--package zt-container --package zt-manifest --package zt-formats --package zt-tensor \
    --package zt-safetensors --package zt-convert --no-default-features --features \
    zt-tensor/default,zt-manifest/serde,zt-convert/gguf,zt-convert/npy,zt-convert/safetensors,zt-convert/zstd";

/// Tests of bytes and values, few enough for an emulator.
const VALUES: &str = "--test blob --test digest --test footer --test writer --test value --test manifest \
    --test dense --test sparse --test header --test reading --test crc32c --test same_bytes";

/// Unit tests, and tests of what a system does with files.
const FILES: &str =
    "--lib --test source --test publishing --test locks --test edit --test same_bytes";

/// Tests of the program, without URLs.
const PROGRAM: &str = "--package zt-cli --test advice --test checkpoints --test convert --test delta --test diff \
    --test documents --test exits --test extract --test files --test help --test merge --test model --test order \
    --test quantize --test repair --test report --test rewrite --test select --test show --test stats --test storage \
    --test terminal --test truncated --test without_stores";

const TARGETS: &[Target] = &[
    Target {
        triple: "i686-unknown-linux-gnu",
        packages: "libc6-i386",
        runner: "",
        tests: &[VALUES, FILES, "--test index --test rows --test writing"],
        left_out: &[],
        is_in_ci: true,
    },
    Target {
        triple: "s390x-unknown-linux-gnu",
        packages: "libc6-s390x-cross qemu-user-static",
        runner: "qemu-s390x-static -L /usr/s390x-linux-gnu",
        tests: &[VALUES],
        left_out: &[("a_large_component_is_the_same", "takes minutes under qemu")],
        is_in_ci: true,
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        packages: "libc6-arm64-cross qemu-user-static",
        runner: "qemu-aarch64-static -L /usr/aarch64-linux-gnu",
        tests: &[VALUES],
        left_out: &[("a_large_component_is_the_same", "takes minutes under qemu")],
        is_in_ci: false,
    },
    Target {
        triple: "x86_64-unknown-linux-musl",
        packages: "",
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
        runner: "",
        tests: &[],
        left_out: &[],
        is_in_ci: false,
    },
    Target {
        triple: "x86_64-apple-darwin",
        packages: "",
        runner: "",
        tests: &[],
        left_out: &[],
        is_in_ci: false,
    },
    Target {
        triple: "x86_64-pc-windows-gnu",
        packages: "wine64",
        runner: WINE,
        tests: &[FILES, "--test split", PROGRAM],
        left_out: &[
            ("compacted_it_holds_what_it_says", "wine cannot rename over a file that is open"),
            ("matrices_are_quantized_and_the_rest_is_kept", "the same: the test has it open"),
            ("intact_objects_of_a_damaged_file_are_saved_to_another", "the same"),
            (
                "a_set_replaces_a_set_also_itself",
                "wine keeps the name of a removed file that is open",
            ),
        ],
        is_in_ci: false,
    },
];

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
    let packages = targets.clone().flat_map(|target| target.packages.split_whitespace());
    install(shell, packages.collect())?;
    for target in targets {
        add(shell, target.triple)?;
        let test = with_arguments(shell, target)?;
        let name = target.triple.replace('-', "_").to_uppercase();
        let test = match target.runner {
            "" => test,
            runner => test.env(&format!("CARGO_TARGET_{name}_RUNNER"), runner),
        };
        if target.runner == WINE {
            in_wine(shell, test)?.run()?;
        } else {
            test.run()?;
        }
    }
    Ok(())
}

/// Installs packages of Debian, unless all of them are installed.
pub(crate) fn install(shell: &Shell, packages: BTreeSet<&str>) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let wanted = Vec::from_iter(packages).join(" ");
    let query = shell.program("dpkg-query").arg("--show");
    let query = query.arg("--showformat=${db:Status-Abbrev}");
    let there = query.args(&wanted).output();
    // A package that was removed is shown, too.
    if there.is_ok_and(|states| states.matches("ii ").count() == wanted.split(' ').count()) {
        return Ok(());
    }
    // `sudo` fails where it would ask for a password.
    let is_root = shell.program("id").arg("-u").output()?.trim() == "0";
    let get = || {
        let get = if is_root {
            shell.program("apt-get")
        } else {
            shell.program("sudo").args("--non-interactive apt-get")
        };
        get.arg("--quiet=2")
    };
    let updated = get().arg("update").run();
    updated.map_err(unavailable("Debian's packages"))?;
    let install = get().args("install --yes --no-install-recommends");
    let installed = install.args(&wanted).run();
    installed.map_err(unavailable("the libraries and emulators of Debian"))
}

/// `cargo test`, or `cargo check` of the tests. The dependencies are not optimised: to optimise them takes longer
/// than the tests.
fn with_arguments(shell: &Shell, target: &Target) -> Result<Program> {
    let (subcommand, what) = match target.tests {
        [] => ("check", "--tests"),
        _ => ("test", "--no-fail-fast"),
    };
    let cargo = zigbuild(shell, subcommand, target.triple)?.arg(what);
    let cargo = cargo.args("--locked --target-dir");
    let cargo = cargo.arg(shell.target().join("platforms"));
    let cargo = cargo.arg("--config").arg("profile.dev.package.\"*\".opt-level=0");
    let cargo = cargo.args(PACKAGES);
    let cargo = target.tests.iter().fold(cargo, |cargo, some| cargo.args(some));
    let left_out = target.left_out.iter().flat_map(|(name, _)| ["--skip", name]);
    let cargo = match target.left_out {
        [] => cargo,
        _ => left_out.fold(cargo.arg("--"), Program::arg),
    };
    let cargo = cargo.env("CARGO_INCREMENTAL", "0");
    Ok(cargo.env("CARGO_PROFILE_DEV_DEBUG", "0"))
}

/// `test` with wine's files below `target/`.
fn in_wine(shell: &Shell, test: Program) -> Result<Program> {
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
        let zig = shell.program(tools(shell)?).args("-m ziglang cc -target x86_64-windows-gnu");
        let zig = zig.args("-shared -ladvapi32 -o").arg(library);
        zig.arg(&source).run()
    })?;
    Ok(set(test))
}
