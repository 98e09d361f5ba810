//! Virtual environments of Python, and other folders below `target/` that are installed once.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::files::empty;
use crate::shell::{Program, Shell};

/// Installs into `folder`, unless an earlier run has installed the same `wanted` there.
pub(crate) fn once(
    folder: &Path,
    wanted: &str,
    install: impl FnOnce() -> Result<()>,
) -> Result<()> {
    // Written last: without it, the installation was interrupted.
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    empty(folder)?;
    install()?;
    fs::write(&stamp, wanted).map_err(Error::file(&stamp))
}

/// The interpreter of the environment in `folder`.
pub(crate) fn interpreter(folder: &Path) -> PathBuf {
    folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// Makes an environment of the interpreter `base`. Returns its `pip install`.
pub(crate) fn make(shell: &Shell, base: &str, folder: &Path) -> Result<Program> {
    let made = shell.program(base).args("-m venv").arg(folder).run();
    made.map_err(|error| {
        let why = "no virtual environment could be made (on Debian it takes python3-venv)";
        Error::Unavailable(format!("{why}: {error}"))
    })?;
    let pip = "-m pip install --quiet --disable-pip-version-check";
    Ok(shell.program(interpreter(folder)).args(pip))
}

/// For `map_err` on installing `what`.
pub(crate) fn unavailable(what: &str) -> impl FnOnce(Error) -> Error {
    move |error| Error::Unavailable(format!("{what} cannot be installed: {error}"))
}
