//! `cargo xtask interop`: the official Python packages read what we write.
//!
//! Our own reader agreeing with our own writer proves little. The judges here are releases of
//! `ztensor` as published, each in a virtual environment of its own under `target/interop`, because
//! they share a name. What is written, and the truth about it, is in
//! `conformance/examples/interop_write/`; the comparison is `conformance/interop/`.
//! `gguf_both_ways.py` and `numpy_both_ways.py` there do the same for GGUF, npz and npy, with random
//! files of gguf-py and numpy; `onnx_read.py` has us read random models of onnx. `signatures_both_ways.py` has
//! `model_signing` verify our signatures, and us its. `hub_cache.py` has `huggingface_hub` open a cache that we fetched.

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use crate::environment::{interpreter, make, once, unavailable};
use crate::error::{Error, Result};
use crate::files::empty;
use crate::shell::Shell;

/// Each is a file of pinned requirements, `conformance/interop/NAME.txt`, and a virtual
/// environment.
const READERS: [&str; 2] = ["ztensor-1.2.3", "ztensor-1.1.1"];

/// The judges of other kinds, in the same way, and what each of them does with our program.
const FOREIGN: [(&str, &[&str]); 4] = [
    ("gguf-0.19.0", &["gguf_both_ways.py"]),
    ("huggingface_hub-0.36.0", &["hub_cache.py"]),
    ("model_signing-1.1.1", &["signatures_both_ways.py"]),
    ("onnx-1.23.2", &["numpy_both_ways.py", "onnx_read.py"]),
];

pub(crate) fn run(shell: &Shell, _: &[String]) -> Result<()> {
    let scratch = shell.target().join("interop");
    // First, because a machine without Python should say so before anything is compiled. Side by side,
    // because most of the time is spent on waiting for the network.
    let names = READERS.into_iter().chain(FOREIGN.map(|(judge, _)| judge));
    let pythons = thread::scope(|scope| {
        let scratch = &scratch;
        let make = |name| scope.spawn(move || environment(shell, scratch, name));
        let made: Vec<_> = names.map(make).collect();
        made.into_iter()
            .map(|made| made.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect::<Result<Vec<_>>>()
    })?;
    let (readers, judges) = pythons.split_at(READERS.len());

    let files = scratch.join("files");
    empty(&files)?;
    let write = shell.built("example", "interop_write")?;
    shell.program(write).arg(&files).run()?;
    for python in readers {
        shell.program(python).args("conformance/interop/read_with_ztensor.py").arg(&files).run()?;
    }

    // How the packages and our program take the same files is a table of README.md.
    let Some(python) = readers.first() else {
        return Ok(());
    };
    // Not optimised, because the files are small, and such a build takes minutes.
    let program = shell.built("bin", "zt")?;
    for (judge, (_, scripts)) in judges.iter().zip(FOREIGN) {
        for script in scripts {
            let script = format!("conformance/interop/{script}");
            let judged = shell.program(judge).args(&script).arg(&program);
            judged.run()?;
        }
    }
    let peers = shell.program(python).args("conformance/interop/peers.py").arg(&program);
    peers.args("conformance/corpus --check README.md").run()
}

/// The interpreter of the virtual environment `name`, which is made unless an earlier run made it
/// from the same requirements.
pub(crate) fn environment(shell: &Shell, scratch: &Path, name: &str) -> Result<PathBuf> {
    let requirements = shell.root().join("conformance/interop").join(format!("{name}.txt"));
    let wanted = fs::read_to_string(&requirements).map_err(Error::file(&requirements))?;
    let folder = scratch.join(name);
    once(&folder, &wanted, || {
        let base = if cfg!(windows) { "python" } else { "python3" };
        // Wheels only: a source distribution would be another build of the judge, on this machine's
        // compiler.
        let pip = make(shell, base, &folder)?.args("--only-binary :all:");
        let installed = pip.arg("--requirement").arg(&requirements).run();
        installed.map_err(unavailable(name))
    })?;
    Ok(interpreter(&folder))
}
