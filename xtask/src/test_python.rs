//! `cargo xtask test-python`: the Python package, judged by pytest, `mypy --strict` and stubtest.
//!
//! The virtual environment is `target/python`. maturin builds the package into it, unoptimised, because a
//! user's optimised build takes minutes. torch has a task of its own.

use std::path::PathBuf;

use crate::environment::{interpreter, make, once, unavailable};
use crate::error::{Error, Result};
use crate::shell::Shell;

/// The oldest Python that the package supports, and later ones.
const PYTHONS: [&str; 5] = ["python3", "python3.11", "python3.12", "python3.13", "python3.14"];

/// What builds the package, and the extra `test` of `python/pyproject.toml`.
const PACKAGES: &str = "maturin>=1.16,<2 fsspec gguf hypothesis ml_dtypes mypy numpy pytest scipy";

const STUBTEST: &str = "-m mypy.stubtest zt --mypy-config-file python/pyproject.toml \
                        --allowlist python/tests/stubtest-allowlist.txt --ignore-unused-allowlist";

pub(crate) fn run(shell: &Shell, tests: &[String]) -> Result<()> {
    let python = environment(shell)?;
    let judge = |arguments| shell.program(&python).args(arguments);
    let pytest = judge("-m pytest --quiet --ignore python/tests/torch");
    if !tests.is_empty() {
        return tests.iter().fold(pytest, |pytest, test| pytest.arg(test)).run();
    }
    pytest.arg("python/tests").run()?;
    judge("-m mypy --config-file python/pyproject.toml python/tests/typing_zt.py").run()?;
    judge(STUBTEST).run()
}

/// The interpreter of the environment, with the package as it is now.
fn environment(shell: &Shell) -> Result<PathBuf> {
    let folder = shell.target().join("python");
    once(&folder, PACKAGES, || {
        let is_new_enough = |name: &&&str| {
            let version = "import sys; sys.exit(sys.version_info < (3, 11))";
            let asked = shell.program(name).args("-c").arg(version);
            asked.succeeds()
        };
        let base = PYTHONS.iter().find(is_new_enough);
        let why = "there is no Python 3.11 or later";
        let base = base.ok_or_else(|| Error::Unavailable(why.into()))?;
        let pip = make(shell, base, &folder)?;
        pip.args(PACKAGES).run().map_err(unavailable(PACKAGES))
    })?;
    let python = interpreter(&folder);
    let maturin = shell
        .program(&python)
        .args("-m maturin develop --quiet --locked --manifest-path python/Cargo.toml");
    // maturin installs into the environment that this variable names.
    maturin.env("VIRTUAL_ENV", &folder.to_string_lossy()).run()?;
    Ok(python)
}
