//! `cargo xtask reproducible`: two builds of the program in two folders are equal, byte by byte.
//!
//! Both are of the commit that is checked out, with the profile `dist`. What a build would otherwise keep
//! of its machine are paths, in the messages of panics: the flags of [`flags`] replace them, and
//! `docs/supply-chain.md` has the same flags for packagers. It takes minutes, so it is no step of `ci`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::corpus::hex;
use crate::error::{Error, Result};
use crate::files::empty;
use crate::fuzz::number;
use crate::shell::Shell;

/// Of different lengths, because a path's length shows in what follows it.
const FOLDERS: [&str; 2] = ["a", "another/folder"];

/// `[-j N]`
pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let jobs: Option<usize> = match arguments {
        [] => None,
        [option, value] if option == "-j" => Some(number(option, Some(value))?),
        _ => return Err(Error::Usage("`reproducible` takes `-j N` only".into())),
    };
    let scratch = shell.target().join("reproducible");
    empty(&scratch)?;
    let archive = scratch.join("source.tar");
    let packed = shell.program("git").args("archive --output").arg(&archive);
    packed.arg("HEAD").run()?;
    let mut built = Vec::new();
    for name in FOLDERS {
        let folder = scratch.join(name);
        empty(&folder)?;
        let unpack = shell.program("tar").arg("-xf").arg(&archive).arg("-C");
        unpack.arg(&folder).run()?;
        built.push(build(shell, &folder, jobs)?);
    }
    let home = cargo_home();
    let mut faults = Vec::new();
    for machine in [shell.root(), &home] {
        let path = machine.to_string_lossy();
        if built.iter().any(|bytes| contains(bytes, path.as_bytes())) {
            faults.push(format!("the path {path} is in the program"));
        }
    }
    let sums: Vec<String> = built.iter().map(|bytes| hex(&Sha256::digest(bytes))).collect();
    if sums.windows(2).any(|pair| pair[0] != pair[1]) {
        faults.push(format!("two builds differ: {}", sums.join(" ")));
    }
    Error::unless_empty("a build must not depend on its machine:", faults)?;
    println!("reproducible: {} bytes, sha256 {}", built[0].len(), sums[0]);
    Ok(())
}

/// The bytes of the program, built in `folder` alone.
fn build(shell: &Shell, folder: &Path, jobs: Option<usize>) -> Result<Vec<u8>> {
    let target = folder.join("target");
    let [rust, c] = flags(folder, &cargo_home());
    let mut cargo = shell
        .cargo("build --locked --profile dist --package zt-cli --bin zt --manifest-path")
        .arg(folder.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env("RUSTFLAGS", &rust)
        .env("CFLAGS", &c);
    if let Some(jobs) = jobs {
        cargo = cargo.arg("-j").arg(jobs.to_string());
    }
    cargo.run()?;
    let path = target.join("dist").join("zt").with_extension(env::consts::EXE_EXTENSION);
    fs::read(&path).map_err(Error::file(&path))
}

/// `RUSTFLAGS` and `CFLAGS` that replace the source's folder and cargo's.
pub(crate) fn flags(folder: &Path, home: &Path) -> [String; 2] {
    ["--remap-path-prefix", "-ffile-prefix-map"].map(|flag| {
        let of = |path: &Path, name: &str| format!("{flag}={}={name}", path.display());
        format!("{} {}", of(folder, "/zt"), of(home, "/cargo"))
    })
}

/// Where cargo keeps the sources of dependencies.
pub(crate) fn cargo_home() -> PathBuf {
    let home = || env::home_dir().unwrap_or_default().join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_folders_are_replaced_for_both_compilers() {
        let [rust, c] = flags(Path::new("/here"), Path::new("/home/.cargo"));
        assert_eq!(rust, "--remap-path-prefix=/here=/zt --remap-path-prefix=/home/.cargo=/cargo");
        assert_eq!(c, "-ffile-prefix-map=/here=/zt -ffile-prefix-map=/home/.cargo=/cargo");
    }

    #[test]
    fn a_path_is_found_within_a_program() {
        assert!(contains(b"\0/home/zt/src\0", b"/home/zt"));
        assert!(!contains(b"\0/zt/src\0", b"/home/zt") && !contains(b"", b"/a"));
    }
}
