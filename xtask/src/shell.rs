//! Starting programs: each is shown before it runs, and its failure is an error that carries its
//! exit code.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::error::{Error, Result};

/// The folders of the workspace, and the programs that run in it.
pub(crate) struct Shell {
    root: PathBuf,
    target: PathBuf,
    cargo: OsString,
}

impl Shell {
    pub(crate) fn new() -> Result<Self> {
        // Asked at run time, because a target directory may outlive the clone that filled it.
        let own =
            env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = match Path::new(&own).parent() {
            Some(root) if root.join("Cargo.lock").is_file() => root.to_owned(),
            _ => {
                let message = format!(
                    "no workspace above {}: start this with `cargo xtask`",
                    own.to_string_lossy()
                );
                return Err(Error::Usage(message));
            }
        };
        let target = root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Ok(Self { root, target, cargo })
    }

    /// The folder of the workspace's `Cargo.toml`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target directory: the only place that a task may write to, unless it was asked to
    /// write.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// `cargo` with these arguments, split at spaces: the cargo that started us, so that one
    /// toolchain does everything.
    pub(crate) fn cargo(&self, arguments: &str) -> Program {
        let mut program = self.program(&self.cargo);
        program.shown = "cargo".into();
        program.args(arguments)
    }

    /// A program (`bin`) or an example of ours. It is built with the features of the whole workspace,
    /// as tests are, so that after them nothing is built again.
    pub(crate) fn built(&self, kind: &str, name: &str) -> Result<PathBuf> {
        let build = self.cargo("build --locked --quiet --workspace --exclude zt-benches");
        build.arg(format!("--{kind}")).arg(name).run()?;
        let folder = if kind == "bin" { "" } else { "examples" };
        let path = self.target.join("debug").join(folder).join(name);
        Ok(path.with_extension(env::consts::EXE_EXTENSION))
    }

    /// `name` in the root of the workspace.
    pub(crate) fn program(&self, name: impl AsRef<OsStr>) -> Program {
        let mut command = Command::new(name.as_ref());
        command.current_dir(&self.root);
        Program { command, shown: name.as_ref().to_string_lossy().into_owned() }
    }
}

/// A program about to run.
pub(crate) struct Program {
    command: Command,
    shown: String,
}

impl Program {
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.shown.push(' ');
        self.shown.push_str(&argument.as_ref().to_string_lossy());
        self.command.arg(argument);
        self
    }

    /// Several arguments, split at spaces.
    pub(crate) fn args(self, arguments: &str) -> Self {
        arguments.split_whitespace().fold(self, Self::arg)
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.shown.insert_str(0, &format!("{name}='{value}' "));
        self.command.env(name, value);
        self
    }

    /// Runs it with our output as its own.
    pub(crate) fn run(mut self) -> Result<()> {
        eprintln!("$ {}", self.shown);
        let status = self.command.status();
        self.check(status).map(drop)
    }

    /// Runs it in silence and gives its standard output; its standard error is ours.
    pub(crate) fn output(mut self) -> Result<String> {
        let output = self.command.stderr(Stdio::inherit()).output();
        let (status, stdout) = match output {
            Ok(output) => (Ok(output.status), output.stdout),
            Err(error) => (Err(error), Vec::new()),
        };
        self.check(status)?;
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    }

    /// Whether it starts and succeeds: for asking whether the machine has something.
    pub(crate) fn succeeds(mut self) -> bool {
        let status =
            self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    fn check(self, status: std::io::Result<ExitStatus>) -> Result<()> {
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Error::Failed { command: self.shown, status }),
            Err(source) => Err(Error::Start { command: self.shown, source }),
        }
    }
}
