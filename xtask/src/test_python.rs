//! `cargo xtask test-python`: the Python package, judged by pytest, `mypy --strict` and stubtest.
//!
//! The virtual environment is `target/python`. maturin builds the package into it, unoptimised, because a
//! user's optimised build takes minutes. torch has a task of its own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::files::empty;
use crate::shell::Shell;

/// The oldest Python that the package supports, and later ones.
const PYTHONS: [&str; 5] = [
    "python3",
    "python3.11",
    "python3.12",
    "python3.13",
    "python3.14",
];

/// What builds the package, and the extra `test` of `python/pyproject.toml`.
const PACKAGES: &str = "maturin>=1.16,<2 fsspec hypothesis ml_dtypes mypy numpy pytest scipy";

const STUBTEST: &str = "-m mypy.stubtest zt --mypy-config-file python/pyproject.toml \
                        --allowlist python/tests/stubtest-allowlist.txt --ignore-unused-allowlist";

pub(crate) fn run(shell: &Shell, tests: &[String]) -> Result<()> {
    let python = environment(shell)?;
    let judge = |arguments| shell.program(&python).args(arguments);
    let pytest = judge("-m pytest --quiet --ignore python/tests/torch");
    if !tests.is_empty() {
        return tests
            .iter()
            .fold(pytest, |pytest, test| pytest.arg(test))
            .run();
    }
    pytest.arg("python/tests").run()?;
    judge("-m mypy --config-file python/pyproject.toml python/tests/typing_zt.py").run()?;
    judge(STUBTEST).run()
}

/// The interpreter of the environment, with the package as it is now.
fn environment(shell: &Shell) -> Result<PathBuf> {
    let folder = shell.target().join("python");
    let python = folder.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    });
    // Written last: an environment without it was interrupted.
    let stamp = folder.join("installed.txt");
    if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == PACKAGES) {
        make(shell, &folder, &python)?;
        fs::write(&stamp, PACKAGES).map_err(Error::file(&stamp))?;
    }
    let maturin = shell
        .program(&python)
        .args("-m maturin develop --quiet --locked --manifest-path python/Cargo.toml");
    // maturin installs into the environment that this variable names.
    maturin
        .env("VIRTUAL_ENV", &folder.to_string_lossy())
        .run()?;
    Ok(python)
}

fn make(shell: &Shell, folder: &Path, python: &Path) -> Result<()> {
    let is_new_enough = |name: &&&str| {
        let version = "import sys; sys.exit(sys.version_info < (3, 11))";
        let asked = shell.program(name).args("-c").arg(version);
        asked.succeeds()
    };
    let base = PYTHONS.iter().find(is_new_enough);
    let base = base.ok_or_else(|| Error::Unavailable("there is no Python 3.11 or later".into()))?;
    empty(folder)?;
    let made = shell.program(base).args("-m venv").arg(folder).run();
    made.map_err(|error| {
        Error::Unavailable(format!(
            "no virtual environment could be made (on Debian it takes python3-venv): {error}"
        ))
    })?;
    let pip = shell
        .program(python)
        .args("-m pip install --quiet --disable-pip-version-check");
    let installed = pip.args(PACKAGES).run();
    installed.map_err(|error| {
        Error::Unavailable(format!(
            "what the tests need cannot be installed from PyPI: {error}"
        ))
    })
}
