//! `cargo xtask ci`: everything that must hold before a change is merged, from a clean clone, with
//! a Rust toolchain and Python 3 on the machine.

use std::env;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::shell::Shell;
use crate::{
    capi, corpus, features, fuzz, graph, interop, kill_points, msrv, mutate, package, page,
    platforms, sbom, supply_chain, test_python, test_remote, thresholds, workflows,
};

pub(crate) struct Step {
    pub(crate) name: &'static str,
    run: fn(&Shell) -> Result<()>,
    /// Whether continuous integration may skip the step if the machine lacks its tool.
    optional: bool,
}

const fn step(name: &'static str, run: fn(&Shell) -> Result<()>) -> Step {
    Step { name, run, optional: false }
}

/// Steps that take seconds come first.
pub(crate) const STEPS: &[Step] = &[
    step("format", |shell| shell.cargo("fmt --all --check").run()),
    step("graph", |shell| {
        graph::run(shell, &[])?;
        thresholds::run(shell, &["--check".to_owned()])
    }),
    step("corpus", |shell| corpus::run(shell, &[])),
    step("deny", deny),
    step("supply-chain", |shell| {
        supply_chain::run(shell, &[])?;
        sbom::check(shell)
    }),
    step("package", package::in_ci),
    Step {
        name: "workflows",
        run: |shell| workflows::run(shell, &[]),
        // It comes from npm.
        optional: true,
    },
    // This is also what compiles benches/: `test` leaves out that crate, whose peers are heavy.
    step("clippy", |shell| {
        shell.cargo("clippy --locked --workspace --all-targets -- --deny warnings").run()
    }),
    step("doc", |shell| {
        let cargo = shell.cargo("doc --locked --workspace --no-deps");
        cargo.env("RUSTDOCFLAGS", "--deny warnings").run()
    }),
    Step {
        name: "msrv",
        run: |shell| msrv::run(shell, &[]),
        // Another compiler comes from rustup.
        optional: true,
    },
    step("test", |shell| shell.cargo("test --locked --workspace --exclude zt-benches").run()),
    Step { name: "kill-points", run: |shell| kill_points::run(shell, &[]), optional: true },
    Step { name: "mutate", run: mutate::in_ci, optional: true },
    step("features", |shell| features::run(shell, &[])),
    Step {
        name: "servers",
        run: |shell| test_remote::run(shell, &[]),
        // Servers of four others come from three registries.
        optional: true,
    },
    Step {
        name: "page",
        run: |shell| {
            page::run(shell, &["--check".to_owned()])?;
            page::test(shell, &[])
        },
        // A browser is not to be had for every system.
        optional: true,
    },
    step("interop", |shell| interop::run(shell, &[])),
    step("candle", |shell| candle(shell, &[])),
    Step {
        name: "capi",
        run: |shell| capi::test(shell, &[]),
        // The compilers of C and C++ are the system's.
        optional: true,
    },
    step("python", |shell| test_python::run(shell, &[])),
    Step { name: "fuzz-smoke", run: fuzz::in_ci, optional: true },
    Step {
        name: "platforms",
        run: platforms::in_ci,
        // Only Debian has the compilers under these names.
        optional: true,
    },
];

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    let in_ci = is_continuous();
    let mut summary = String::from("\nxtask ci\n");
    let mut outcome = Ok(());
    for step in STEPS {
        eprintln!("\n==> {}", step.name);
        let start = Instant::now();
        let result = (step.run)(shell);
        let took = start.elapsed();
        match result {
            Ok(()) => summary.push_str(&line(step.name, took, "ok")),
            Err(Error::Unavailable(reason)) if step.optional || !in_ci => {
                eprintln!("skipped: {reason}");
                summary.push_str(&line(step.name, took, &format!("skipped: {reason}")));
            }
            Err(error) => {
                summary.push_str(&line(step.name, took, "FAILED"));
                outcome = Err(error);
                break;
            }
        }
    }
    eprintln!("{summary}");
    outcome
}

/// Whether this is continuous integration, where a missing tool is an error.
pub(crate) fn is_continuous() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

fn line(name: &str, took: Duration, outcome: &str) -> String {
    format!("  {name:<12}{:>8.1} s  {outcome}\n", took.as_secs_f64())
}

/// `cargo xtask test-candle`: the crate for candle, a workspace of its own.
pub(crate) fn candle(shell: &Shell, _: &[String]) -> Result<()> {
    let it = "--locked --manifest-path crates/zt-candle/Cargo.toml --target-dir target";
    shell.cargo(&format!("clippy {it} --all-targets -- --deny warnings")).run()?;
    shell.cargo(&format!("test {it}")).run()
}

/// Licences, sources and duplicates of dependencies, as `deny.toml` says. Advisories are left out:
/// they come from a database that changes without us, and a change that was right yesterday would
/// fail today.
fn deny(shell: &Shell) -> Result<()> {
    if !shell.cargo("deny --version").succeeds() {
        return Err(Error::Unavailable("cargo-deny is not installed".into()));
    }
    shell.cargo("deny --locked check licenses bans sources").run()
}
