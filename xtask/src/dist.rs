//! `cargo xtask dist [-j N] [TARGET]…`: what a release hands on, in `target/artifacts`.
//!
//! Archives of the program and of the C library, wheels, bills of materials and SHA-256 sums. On Linux zig compiles the C and
//! links, so that everything runs on older systems than this one. The standard library of a target comes from
//! `rustup`, all other tools from PyPI. twine and abi3audit check the wheels. The task tries what this machine can
//! run: the programs, and its own wheel in a new environment without network.
//!
//! Archives and wheels have the time of the commit, and paths are replaced as in
//! `cargo xtask reproducible`. `.github/workflows/release.yml` runs this task on three systems.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::capi;
use crate::corpus::hex;
use crate::environment::{interpreter, make, once, unavailable};
use crate::error::{Error, Result};
use crate::files::{below, empty};
use crate::fuzz::number;
use crate::reproducible::{cargo_home, flags};
use crate::sbom;
use crate::shell::{Program, Shell};

struct Target {
    triple: &'static str,
    /// The system that builds it, as [`env::consts::OS`] names it.
    host: &'static str,
    has_program: bool,
    has_library: bool,
    /// The tag of its wheel. On systems other than Linux maturin knows it.
    wheel: Option<&'static str>,
}

const fn target(
    triple: &'static str,
    host: &'static str,
    [has_program, has_library]: [bool; 2],
    wheel: Option<&'static str>,
) -> Target {
    Target { triple, host, has_program, has_library, wheel }
}

/// Programs for musl are static and run on every Linux: there is none for glibc. The C library is for glibc. Python on Windows is built by
/// MSVC: there is no wheel of mingw.
const TARGETS: &[Target] = &[
    target("x86_64-unknown-linux-gnu", "linux", [false, true], Some("manylinux2014")),
    target("aarch64-unknown-linux-gnu", "linux", [false, true], Some("manylinux2014")),
    target("x86_64-unknown-linux-musl", "linux", [true, false], Some("musllinux_1_2")),
    target("aarch64-unknown-linux-musl", "linux", [true, false], Some("musllinux_1_2")),
    target("x86_64-pc-windows-gnu", "linux", [true, true], None),
    target("x86_64-pc-windows-msvc", "windows", [true, true], Some("")),
    target("aarch64-apple-darwin", "macos", [true, true], Some("")),
    target("x86_64-apple-darwin", "macos", [true, true], Some("")),
];

const TOOLS: &str =
    "maturin==1.16.0 ziglang==0.17.1 cargo-zigbuild==0.24.1 twine==7.0.0 abi3audit==0.0.26";

const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "zt.bash"),
    ("elvish", "zt.elv"),
    ("fish", "zt.fish"),
    ("powershell", "_zt.ps1"),
    ("zsh", "_zt"),
];

/// A real file, tried with each program.
const MODEL: &str = "conformance/data/two-moons.safetensors";

/// Packs a folder: the same bytes for the same files, whatever their times and owners are.
const PACK: &str = "
import gzip, os, sys, tarfile, time, zipfile
folder, archive, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3])
top = os.path.basename(folder)
names = sorted(os.path.join(path, name) for path, _, names in os.walk(folder) for name in names)
mode = lambda name: 0o755 if os.path.basename(name) in ('zt', 'zt.exe') else 0o644
inside = lambda name: top + '/' + os.path.relpath(name, folder).replace(os.sep, '/')
if archive.endswith('.zip'):
    with zipfile.ZipFile(archive, 'w', zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            member = zipfile.ZipInfo(inside(name), time.gmtime(seconds)[:6])
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (0o100000 | mode(name)) << 16
            packed.writestr(member, open(name, 'rb').read())
else:
    with open(archive, 'wb') as file, gzip.GzipFile('', 'wb', fileobj=file, mtime=0) as file, \\
            tarfile.open(fileobj=file, mode='w') as packed:
        for name in names:
            member = tarfile.TarInfo(inside(name))
            member.size, member.mtime, member.mode = os.path.getsize(name), seconds, mode(name)
            packed.addfile(member, open(name, 'rb'))
";

/// Converts a file with the installed wheel, and compares content, names and a value.
const TRY_WHEEL: &str = "
import os, sys, tempfile, zt
model = sys.argv[1]
with tempfile.TemporaryDirectory() as folder:
    copy = os.path.join(folder, 'copy.zt')
    zt.convert(model, copy, zstd=3)
    assert zt.hash(model) == zt.hash(copy)
    with zt.open(model) as a, zt.open(copy) as b:
        assert len(a) > 0 and sorted(a) == sorted(b)
        assert bytes(memoryview(a['steps'])) == bytes(memoryview(b['steps']))
";

/// What all targets share.
struct Build<'s> {
    shell: &'s Shell,
    /// Python, with the tools.
    python: PathBuf,
    out: PathBuf,
    /// Completions, manual pages, licences and README.
    documents: PathBuf,
    version: String,
    /// Of the commit, in seconds.
    time: String,
    jobs: Option<usize>,
}

pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let (jobs, names) = match arguments {
        [option, value, names @ ..] if option == "-j" => {
            (Some(number(option, Some(value))?), names)
        }
        names => (None, names),
    };
    let is_here = |target: &&Target| target.host == env::consts::OS;
    let mut asked = Vec::new();
    for name in names {
        let target = TARGETS.iter().find(|target| target.triple == name);
        let target = target.ok_or_else(|| {
            let known: Vec<_> = TARGETS.iter().map(|target| target.triple).collect();
            Error::Usage(format!("no target {name}; there are {}", known.join(", ")))
        })?;
        if !is_here(&target) {
            let why = format!("{name} is built on {}", target.host);
            return Err(Error::Unavailable(why));
        }
        asked.push(target);
    }
    if names.is_empty() {
        asked.extend(TARGETS.iter().filter(is_here));
    }
    let build = Build::new(shell, jobs)?;
    for target in &asked {
        add(shell, target.triple)?;
        if target.has_program {
            build.program(target)?;
        }
        if target.has_library {
            build.library(target)?;
        }
        if let Some(tag) = target.wheel {
            build.wheel(target, tag)?;
        }
    }
    build.check_wheels(&asked)?;
    for (top, name) in [(sbom::PROGRAM, "zt"), (sbom::LIBRARY, "zt-capi")] {
        let path = build.out.join(format!("{name}-{}.cdx.json", build.version));
        let document = format!("{:#}\n", sbom::checked(shell, top)?);
        fs::write(&path, document).map_err(Error::file(&path))?;
    }
    build.sums()?;
    for target in TARGETS {
        if !asked.iter().any(|asked| asked.triple == target.triple) {
            let (triple, host) = (target.triple, target.host);
            println!("dist: not built: {triple}; the release workflow builds it on {host}");
        }
    }
    Ok(())
}

/// An archive of `what`, without its ending, and the folder in it.
fn name(what: &str, version: &str, triple: &str) -> String {
    format!("{what}-{version}-{triple}")
}

/// `cargo-zigbuild SUBCOMMAND` for `triple`, whose C and linking are zig's.
pub(crate) fn zigbuild(shell: &Shell, subcommand: &str, triple: &str) -> Result<Program> {
    let python = tools(shell)?;
    let program = shell.program(python.with_file_name("cargo-zigbuild"));
    let program = program.args(subcommand).arg("--target").arg(triple);
    Ok(program.env("CARGO_ZIGBUILD_PYTHON_PATH", &python.to_string_lossy()))
}

/// The Python that has the tools.
pub(crate) fn tools(shell: &Shell) -> Result<PathBuf> {
    let folder = shell.target().join("dist-tools");
    once(&folder, TOOLS, || {
        let pip = make(shell, "python3", &folder)?.args(TOOLS);
        pip.run().map_err(unavailable(TOOLS))
    })?;
    Ok(interpreter(&folder))
}

/// Rust's library for `triple`.
pub(crate) fn add(shell: &Shell, triple: &str) -> Result<()> {
    let rustup = shell.program("rustup").args("target add").arg(triple);
    rustup.run().map_err(unavailable("Rust's library for this target"))
}

impl<'s> Build<'s> {
    fn new(shell: &'s Shell, jobs: Option<usize>) -> Result<Self> {
        let time = shell.program("git").args("log -1 --format=%ct").output()?;
        let version = shell.cargo("pkgid --package zt-cli").output()?;
        let version = version.trim().rsplit(['#', '@']).next().unwrap_or_default();
        let build = Self {
            shell,
            python: tools(shell)?,
            out: shell.target().join("artifacts"),
            documents: shell.target().join("dist-documents"),
            version: version.to_owned(),
            time: time.trim().to_owned(),
            jobs,
        };
        empty(&build.out)?;
        Ok(build)
    }

    /// They are the same on every system, and a build for this one writes them.
    fn documents(&self) -> Result<()> {
        let (shell, folder) = (self.shell, &self.documents);
        let zt = shell.built("bin", "zt")?;
        empty(folder)?;
        let pages = folder.join("man");
        shell.program(&zt).args("man --dir").arg(&pages).output()?;
        empty(&folder.join("completions"))?;
        for (name, file) in COMPLETIONS {
            let script = shell.program(&zt).arg("completions").arg(name).output()?;
            let path = folder.join("completions").join(file);
            fs::write(&path, script).map_err(Error::file(&path))?;
        }
        for name in ["LICENSE-APACHE", "LICENSE-MIT", "crates/zt-cli/README.md"] {
            let from = shell.root().join(name);
            let to = folder.join(from.file_name().unwrap_or_default());
            fs::copy(&from, &to).map_err(Error::file(&from))?;
        }
        Ok(())
    }

    /// `program` with the environment of a build.
    fn with_environment(&self, program: Program, rust: &str) -> Program {
        let [remap, c] = flags(self.shell.root(), &cargo_home());
        // maturin asks it for its zig.
        let program = program
            .env("CARGO_ZIGBUILD_PYTHON_PATH", &self.python.to_string_lossy())
            .env("CARGO_INCREMENTAL", "0")
            .env("SOURCE_DATE_EPOCH", &self.time)
            .env("RUSTFLAGS", format!("{remap} {rust}").trim())
            .env("CFLAGS", &c);
        match self.jobs {
            Some(jobs) => program.arg("-j").arg(jobs.to_string()),
            None => program,
        }
    }

    /// A folder of builds that has no cargo folder `dist` of others.
    fn builds(&self) -> PathBuf {
        self.shell.target().join("dist-builds")
    }

    fn program(&self, target: &Target) -> Result<()> {
        let builds = self.builds();
        let cargo = if target.host == "linux" {
            zigbuild(self.shell, "zigbuild", target.triple)?
        } else {
            self.shell.cargo("build --target").arg(target.triple)
        };
        let cargo = cargo.args("--locked --profile dist --package zt-cli --bin zt --target-dir");
        let cargo = cargo.arg(&builds);
        self.with_environment(cargo, "").run()?;
        let windows = target.triple.contains("windows");
        let program = if windows { "zt.exe" } else { "zt" };
        let built = builds.join(target.triple).join("dist").join(program);
        self.try_program(target, &built)?;
        self.documents()?;
        let name = name("zt", &self.version, target.triple);
        let folder = builds.join(&name);
        empty(&folder)?;
        let copy = |from: &Path, to: &Path| {
            fs::create_dir_all(to.parent().unwrap_or(to)).map_err(Error::file(to))?;
            fs::copy(from, to).map_err(Error::file(from)).map(drop)
        };
        copy(&built, &folder.join(program))?;
        for document in below(&self.documents)? {
            let within = document.strip_prefix(&self.documents).unwrap_or(&document);
            copy(&document, &folder.join(within))?;
        }
        self.pack(target, &folder)
    }

    /// An archive of a folder, by the name of the folder.
    fn pack(&self, target: &Target, folder: &Path) -> Result<()> {
        let suffix = if target.triple.contains("windows") { "zip" } else { "tar.gz" };
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let archive = self.out.join(format!("{name}.{suffix}"));
        let python = self.shell.program(&self.python).arg("-c").arg(PACK);
        python.arg(folder).arg(archive).arg(&self.time).run()
    }

    /// The C library, with URLs. On this machine's own target a C program is built with it, if gcc is there.
    fn library(&self, target: &Target) -> Result<()> {
        let (shell, builds, triple) = (self.shell, self.builds(), target.triple);
        let cargo = match target.host {
            // As the wheels: systems of 2014 and later.
            "linux" if triple.ends_with("gnu") && triple.contains("linux") => {
                zigbuild(shell, "rustc", &format!("{triple}.2.17"))?
            }
            "linux" => zigbuild(shell, "rustc", triple)?,
            _ => shell.cargo("rustc --target").arg(triple),
        };
        let cargo = cargo.args("--profile libzt --features remote --target-dir").arg(&builds);
        capi::built(self.with_environment(cargo, ""), triple).run()?;
        let folder = builds.join(name("zt-capi", &self.version, triple));
        empty(&folder)?;
        capi::lay_out(shell, &builds.join(triple).join("libzt"), &folder)?;
        let is_own = triple == format!("{}-unknown-linux-gnu", env::consts::ARCH);
        if is_own && shell.program("gcc").arg("--version").succeeds() {
            capi::try_sample(shell, &folder, &builds.join("sample"))?;
        } else {
            println!("dist: not tried: the C library for {triple}");
        }
        self.pack(target, &folder)
    }

    /// Tries a program that this machine can run.
    fn try_program(&self, target: &Target, program: &Path) -> Result<()> {
        let shell = self.shell;
        let processor = target.triple.split('-').next().unwrap_or_default();
        let emulator = format!("qemu-{processor}-static");
        let is_own = processor == env::consts::ARCH && !target.triple.ends_with("windows-gnu");
        let zt = || {
            if is_own { shell.program(program) } else { shell.program(&emulator).arg(program) }
        };
        if !is_own && !zt().arg("--version").succeeds() {
            println!("dist: not tried: the program for {}", target.triple);
            return Ok(());
        }
        let copy = self.builds().join("copy.zt");
        let convert = zt().arg("convert").arg(MODEL).arg(&copy);
        convert.args("--zstd --force").run()?;
        zt().arg("verify").arg(&copy).run()?;
        zt().arg("diff").arg(MODEL).arg(&copy).run()
    }

    fn wheel(&self, target: &Target, tag: &str) -> Result<()> {
        let maturin = self.shell.program(&self.python);
        let maturin = maturin.args("-m maturin build --release --locked --strip --target");
        let maturin = maturin.arg(target.triple).arg("--out").arg(&self.out);
        let maturin = maturin.args("--manifest-path python/Cargo.toml --target-dir");
        let maturin = maturin.arg(self.builds());
        let maturin = match tag {
            "" => maturin,
            tag => maturin.args("--zig --compatibility").arg(tag),
        };
        // A library for Python is never static.
        let is_musl = target.triple.ends_with("musl");
        let rust = if is_musl { "-C target-feature=-crt-static" } else { "" };
        self.with_environment(maturin, rust).run()
    }

    /// Metadata, the use of Python's stable interface, and the wheel for this machine at work.
    fn check_wheels(&self, asked: &[&Target]) -> Result<()> {
        let shell = self.shell;
        let files = below(&self.out)?;
        let wheels = files.iter().filter(|path| path.extension() == Some("whl".as_ref()));
        let wheels: Vec<_> = wheels.collect();
        if wheels.is_empty() {
            return Ok(());
        }
        for check in ["-m twine check --strict", "-m abi3audit --strict --summary"] {
            let check = shell.program(&self.python).args(check);
            wheels.iter().fold(check, Program::arg).run()?;
        }
        let rustc = shell.program("rustc").args("-vV").output()?;
        let is_own = |target: &&Target| rustc.contains(&format!("host: {}\n", target.triple));
        if !asked.iter().any(is_own) {
            println!("dist: not tried: the wheels, because none is for this machine");
            return Ok(());
        }
        let folder = shell.target().join("dist-wheel");
        empty(&folder)?;
        let pip = make(shell, "python3", &folder)?;
        let pip = pip.args("--no-index --find-links").arg(&self.out);
        pip.arg("zt-tensor").run()?;
        let python = interpreter(&folder);
        let try_wheel = shell.program(&python).arg("-c").arg(TRY_WHEEL);
        try_wheel.arg(MODEL).run()?;
        let zt = shell.program(python.with_file_name("zt"));
        zt.arg("ls").arg(MODEL).run()
    }

    /// `SHA256SUMS`, as `sha256sum --check` reads it.
    fn sums(&self) -> Result<()> {
        let mut sums = String::new();
        for path in below(&self.out)? {
            let bytes = fs::read(&path).map_err(Error::file(&path))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let sum = hex(&Sha256::digest(&bytes));
            println!("dist: {:>11} bytes  {name}", bytes.len());
            sums.push_str(&format!("{sum}  {name}\n"));
        }
        let path = self.out.join("SHA256SUMS");
        fs::write(&path, sums).map_err(Error::file(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binstall_finds_the_archives_and_the_program_in_them() {
        let manifest = include_str!("../../crates/zt-cli/Cargo.toml");
        let name = name("zt", "{ version }", "{ target }");
        for part in [format!("/{name}.tar.gz\""), format!("/{name}.zip\""), format!("\"{name}/")] {
            assert!(manifest.contains(&part), "{part}");
        }
    }

    #[test]
    fn refuses_targets_that_are_unknown_or_of_another_system() {
        let shell = Shell::new().unwrap();
        let asked = |name: &str| run(&shell, &[name.to_owned()]);
        assert!(matches!(asked("sparc"), Err(Error::Usage(_))));
        let other = TARGETS.iter().find(|it| it.host != env::consts::OS).unwrap();
        assert!(matches!(asked(other.triple), Err(Error::Unavailable(_))));
    }
}
