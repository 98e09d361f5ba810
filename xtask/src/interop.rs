//! `cargo xtask interop`: the official Python packages read what we write.
//!
//! Our own reader agreeing with our own writer proves little. The judges here are releases of
//! `ztensor` as published, each in a virtual environment of its own under `target/interop`, because
//! they share a name. What is written, and the truth about it, is in
//! `conformance/examples/interop_write/`; the comparison is `conformance/interop/`.
//! `gguf_both_ways.py` and `numpy_both_ways.py` there do the same for GGUF, npz and npy, with random
//! files of gguf-py and numpy; `onnx_read.py` has us read random models of onnx.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::files::empty;
use crate::shell::Shell;

/// Each is a file of pinned requirements, `conformance/interop/NAME.txt`, and a virtual
/// environment.
const READERS: [&str; 2] = ["ztensor-1.2.3", "ztensor-1.1.1"];

/// The judges of other kinds, in the same way, and what each of them does with our program.
const FOREIGN: [(&str, &[&str]); 2] = [
    ("gguf-0.19.0", &["gguf_both_ways.py"]),
    ("onnx-1.23.2", &["numpy_both_ways.py", "onnx_read.py"]),
];

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    let scratch = shell.target().join("interop");
    // First, because a machine without Python should say so before anything is compiled.
    let pythons = READERS
        .iter()
        .map(|reader| environment(shell, &scratch, reader))
        .collect::<Result<Vec<_>>>()?;

    let files = scratch.join("files");
    empty(&files)?;
    shell
        .cargo("run --locked --quiet --package zt-conformance --example interop_write --")
        .arg(&files)
        .run()?;
    for python in &pythons {
        shell
            .program(python)
            .args("conformance/interop/read_with_ztensor.py")
            .arg(&files)
            .run()?;
    }

    // How the packages and our program take the same files is a table of README.md.
    let Some(python) = pythons.first() else {
        return Ok(());
    };
    // The build that `kill-points` has made: these files are small, and an optimised one takes minutes.
    shell
        .cargo("build --locked --quiet --package zt-cli")
        .run()?;
    let program = shell.target().join("debug").join("zt");
    let program = program.with_extension(std::env::consts::EXE_EXTENSION);
    for (judge, scripts) in FOREIGN {
        let python = environment(shell, &scratch, judge)?;
        for script in scripts {
            let script = format!("conformance/interop/{script}");
            let judged = shell.program(&python).args(&script).arg(&program);
            judged.run()?;
        }
    }
    let peers = shell
        .program(python)
        .args("conformance/interop/peers.py")
        .arg(&program);
    peers.args("conformance/corpus --check README.md").run()
}

/// The interpreter of the virtual environment `name`, which is made unless an earlier run made it
/// from the same requirements.
fn environment(shell: &Shell, scratch: &Path, name: &str) -> Result<PathBuf> {
    let requirements = shell
        .root()
        .join("conformance/interop")
        .join(format!("{name}.txt"));
    let wanted = fs::read(&requirements).map_err(Error::file(&requirements))?;
    let folder = scratch.join(name);
    let python = folder.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    });
    // Written last: an environment without it was interrupted.
    let stamp = folder.join("installed.txt");
    if python.exists() && fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }

    empty(&folder)?;
    let base = if cfg!(windows) { "python" } else { "python3" };
    let made = shell.program(base).args("-m venv").arg(&folder).run();
    made.map_err(|error| {
        Error::Unavailable(format!(
            "no virtual environment could be made (on Debian it takes python3-venv): {error}"
        ))
    })?;
    // Wheels only: a source distribution would be another build of the judge, on this machine's
    // compiler.
    let pip = shell
        .program(&python)
        .args("-m pip install --quiet --disable-pip-version-check --only-binary :all:");
    let installed = pip.arg("--requirement").arg(&requirements).run();
    installed.map_err(|error| {
        Error::Unavailable(format!("{name} cannot be installed from PyPI: {error}"))
    })?;
    fs::write(&stamp, wanted).map_err(Error::file(&stamp))?;
    Ok(python)
}
