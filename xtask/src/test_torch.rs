//! `cargo xtask test-torch`: the Python package beside torch.
//!
//! torch's wheel is half a gigabyte, and its dependencies are three more. So the tests that need it
//! have a task of their own. `python/tools/cpu_torch.py` makes the virtual
//! environment `target/torch`, without the libraries of CUDA.

use std::fs;

use crate::environment::{once, unavailable};
use crate::error::{Error, Result};
use crate::shell::Shell;

const INSTALLER: &str = "python/tools/cpu_torch.py";

/// What builds the package, and what its tests import beside torch.
const PACKAGES: &str = "maturin numpy ml_dtypes scipy pytest hypothesis safetensors==0.8.0 \
     transformers==5.23.0 distributed moto[server]==5.2.5";

/// The tests that need torch, and those that need a Dask cluster.
const TESTS: &str = "python/tests/torch python/tests/test_batch.py";

pub(crate) fn run(shell: &Shell, tests: &[String]) -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Error::Unavailable(format!(
            "{INSTALLER} knows the wheel of torch for Linux on x86-64 only"
        )));
    }
    let folder = shell.target().join("torch");
    let installer = shell.root().join(INSTALLER);
    let mut wanted = fs::read_to_string(&installer).map_err(Error::file(&installer))?;
    wanted.push_str(PACKAGES);
    once(&folder, &wanted, || {
        let install = shell.program("python3").arg(INSTALLER).arg(&folder);
        install.args(PACKAGES).run().map_err(unavailable("torch"))
    })?;
    let maturin = shell
        .program(folder.join("bin/maturin"))
        .args("develop --quiet --locked --manifest-path python/Cargo.toml");
    // maturin installs into the environment that this variable names.
    let maturin = maturin.env("VIRTUAL_ENV", &folder.to_string_lossy());
    maturin.run()?;
    let pytest = shell.program(folder.join("bin/python")).args("-m pytest --quiet");
    if tests.is_empty() {
        return pytest.args(TESTS).run();
    }
    tests.iter().fold(pytest, |pytest, test| pytest.arg(test)).run()
}
