//! `cargo xtask capi` and `cargo xtask test-capi`: libzt as C programs have it, and programs that use it.
//!
//! The folder that both make is what a release packs: `include`, `lib` with both libraries, and what pkg-config and CMake
//! read. The crate itself is a plain Rust library, so that tests of the workspace do not link these.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::files::empty;
use crate::shell::{Program, Shell};

/// What a static link needs besides on Linux, as `rustc --print native-static-libs` says.
const SYSTEM: &str = "-lgcc_s -lpthread -lm -ldl -lc";

/// `[ARGUMENTS of cargo]`, such as `--profile libzt --no-default-features --features gguf,safetensors,zstd`.
pub(crate) fn run(shell: &Shell, arguments: &[String]) -> Result<()> {
    let folder = install(shell, arguments)?;
    println!("capi: {}", folder.display());
    Ok(())
}

/// `cargo rustc` with the arguments that make both libraries for a system. Programs find the shared one by its name
/// alone: functions are only added to it, as `crates/zt-capi/abi.txt` shows.
pub(crate) fn built(cargo: Program, triple: &str) -> Program {
    let cargo = cargo.args("--locked --package zt-capi --lib --crate-type cdylib,staticlib");
    match triple {
        linux if linux.contains("linux") => cargo.args("-- -C link-arg=-Wl,-soname,libzt.so"),
        apple if apple.contains("apple") => {
            cargo.args("-- -C link-arg=-Wl,-install_name,@rpath/libzt.dylib")
        }
        _ => cargo,
    }
}

fn install(shell: &Shell, arguments: &[String]) -> Result<PathBuf> {
    let host = if cfg!(target_vendor = "apple") { "apple" } else { env::consts::OS };
    let cargo = arguments.iter().fold(shell.cargo("rustc"), Program::arg);
    built(cargo, host).run()?;
    let profile = arguments.windows(2).find(|pair| pair[0] == "--profile");
    let profile = profile.map_or("debug", |pair| &pair[1]);
    let folder = shell.target().join("capi");
    empty(&folder)?;
    lay_out(shell, &shell.target().join(profile), &folder)?;
    Ok(folder)
}

/// Copies headers, libraries and what finds them from the folder of a build to `to`.
pub(crate) fn lay_out(shell: &Shell, built: &Path, to: &Path) -> Result<()> {
    let (lib, of_crate) = (to.join("lib"), shell.root().join("crates/zt-capi"));
    for folder in ["include", "lib/pkgconfig", "lib/cmake/zt"] {
        let folder = to.join(folder);
        fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    }
    let copy =
        |from: PathBuf, to: PathBuf| fs::copy(&from, &to).map_err(Error::file(&from)).map(drop);
    for header in ["zt.h", "zt.hpp"] {
        copy(of_crate.join("include").join(header), to.join("include").join(header))?;
    }
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy(shell.root().join(licence), to.join(licence))?;
    }
    copy(of_crate.join("README.md"), to.join("README.md"))?;
    // A library of Windows has the name that its import library says.
    let libraries = [
        ("libzt_capi.so", "libzt.so"),
        ("libzt_capi.dylib", "libzt.dylib"),
        ("libzt_capi.a", "libzt.a"),
        ("zt_capi.dll", "zt_capi.dll"),
        ("zt_capi.dll.lib", "zt.lib"),
        ("libzt_capi.dll.a", "libzt.dll.a"),
        ("zt_capi.lib", "zt_static.lib"),
    ];
    for (name, installed) in libraries {
        if built.join(name).is_file() {
            copy(built.join(name), lib.join(installed))?;
        }
    }
    let version = shell.cargo("pkgid --package zt-capi").output()?;
    let version = version.trim().rsplit(['#', '@']).next().unwrap_or_default().to_owned();
    write(&lib.join("pkgconfig/zt.pc"), &pkg_config(&version))?;
    write(&lib.join("cmake/zt/ztConfig.cmake"), CMAKE)?;
    write(&lib.join("cmake/zt/ztConfigVersion.cmake"), &cmake_version(&version))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(Error::file(path))
}

fn pkg_config(version: &str) -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\n\nName: zt\nDescription: tensor files of every kind\nVersion: {version}\n\
         Cflags: -I${{prefix}}/include\nLibs: -L${{prefix}}/lib -lzt\nLibs.private: {SYSTEM}\n"
    )
}

/// `find_package(zt)`, then `target_link_libraries(program zt::zt)`, or `zt::static`.
const CMAKE: &str = r#"get_filename_component(_zt "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(_kind zt static)
  if(NOT TARGET zt::${_kind})
    add_library(zt::${_kind} UNKNOWN IMPORTED)
    set_target_properties(zt::${_kind} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_zt}/include")
  endif()
endforeach()
if(WIN32)
  find_library(_zt_shared NAMES zt libzt.dll.a PATHS "${_zt}/lib" NO_DEFAULT_PATH NO_CACHE REQUIRED)
  find_library(_zt_static NAMES zt_static libzt.a PATHS "${_zt}/lib" NO_DEFAULT_PATH NO_CACHE)
elseif(APPLE)
  set(_zt_shared "${_zt}/lib/libzt.dylib")
  set(_zt_static "${_zt}/lib/libzt.a")
else()
  set(_zt_shared "${_zt}/lib/libzt.so")
  set(_zt_static "${_zt}/lib/libzt.a")
  find_package(Threads REQUIRED)
  set_target_properties(zt::static PROPERTIES INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()
set_target_properties(zt::zt PROPERTIES IMPORTED_LOCATION "${_zt_shared}")
set_target_properties(zt::static PROPERTIES IMPORTED_LOCATION "${_zt_static}")
set(zt_FOUND TRUE)
"#;

fn cmake_version(version: &str) -> String {
    format!(
        "set(PACKAGE_VERSION \"{version}\")\nif(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)\n  \
         set(PACKAGE_VERSION_COMPATIBLE FALSE)\nelse()\n  set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n"
    )
}

/// A GGUF with several types, and weights with a matrix of ten rows.
const MODEL: &str = "conformance/corpus/foreign/gguf/quant_mixed.gguf";
const WEIGHTS: &str = "conformance/data/two-moons.safetensors";

const WARNINGS: &str = "-Wall -Wextra -Wpedantic -Werror -g -O1";

/// Builds the sample in C with the shared library in `folder`, and runs it in `scratch`.
pub(crate) fn try_sample(shell: &Shell, folder: &Path, scratch: &Path) -> Result<()> {
    empty(scratch)?;
    let (program, lib) = (scratch.join("list"), folder.join("lib"));
    let gcc = shell.program("gcc").args("-std=c11 crates/zt-capi/examples/list.c -o");
    let gcc = gcc.arg(&program).arg(format!("-I{}", folder.join("include").display()));
    let gcc = gcc.arg(format!("-L{}", lib.display()));
    gcc.arg(format!("-Wl,-rpath,{}", lib.display())).arg("-lzt").run()?;
    shell.program(&program).arg(MODEL).arg(WEIGHTS).arg(scratch).run()
}

/// The samples, each with the same output: in C, in C++, under AddressSanitizer, under valgrind, in Go, in C#.
pub(crate) fn test(shell: &Shell, _: &[String]) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return Err(Error::Unavailable("the samples are built for Linux".into()));
    }
    for tool in ["gcc", "g++", "pkg-config"] {
        if !shell.program(tool).arg("--version").succeeds() {
            return Err(Error::Unavailable(format!("{tool} is not installed")));
        }
    }
    shell.cargo("test --locked --package zt-capi").run()?;
    let folder = install(shell, &[])?;
    let lib = folder.join("lib");
    let flags = |what: &str| {
        let config = shell
            .program("pkg-config")
            .env("PKG_CONFIG_PATH", &lib.join("pkgconfig").to_string_lossy());
        config.args(what).arg("zt").output()
    };
    let (cflags, libs) = (flags("--cflags")?, flags("--libs")?);
    let examples = shell.root().join("crates/zt-capi/examples");
    let compile =
        |compiler: &str, source: &str, name: &str, more: &str, libs: &str| -> Result<PathBuf> {
            let program = folder.join(name);
            let compiler =
                shell.program(compiler).args(WARNINGS).args(more).arg(examples.join(source));
            let compiler = compiler.arg("-o").arg(&program).args(&cflags).args(libs);
            compiler.run()?;
            Ok(program)
        };
    let shared = format!("{} -Wl,-rpath,{}", libs.trim(), lib.display());
    let fixed = format!("{} {SYSTEM}", lib.join("libzt.a").display());
    let c = compile("gcc", "list.c", "list-c", "-std=c11", &shared)?;
    let sanitized = compile(
        "gcc",
        "list.c",
        "list-asan",
        "-std=c11 -fsanitize=address,undefined -fno-sanitize-recover=all",
        &fixed,
    )?;
    let cpp = compile("g++", "list.cpp", "list-cpp", "-std=c++17", &shared)?;
    for page in ["README.md", "crates/zt-capi/README.md"] {
        let path = shell.root().join(page);
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        let block = text.split_once("```c\n").and_then(|(_, rest)| rest.split_once("```"));
        let block = block.ok_or_else(|| Error::Usage(format!("{page} has no code in C")))?.0;
        let source = folder.join("page.c");
        let includes = "#include <stdio.h>\n#include <stdlib.h>\n#include <zt.h>\n";
        write(
            &source,
            &format!("{includes}int main(void) {{\n{block}return values == NULL;\n}}\n"),
        )?;
        // A page shows what it gets.
        let flags = "-std=c11 -Wno-unused-variable -Wno-unused-but-set-variable";
        let gcc = shell.program("gcc").args(WARNINGS).args(flags).arg(&source).arg("-o");
        gcc.arg(folder.join("page")).args(&cflags).args(&shared).run()?;
    }
    let out = folder.join("out");
    let run = |program: Program| -> Result<String> {
        empty(&out)?;
        let printed = program.arg(MODEL).arg(WEIGHTS).arg(&out).output()?;
        let written = out.join("rows.safetensors");
        if !written.is_file() {
            return Err(Error::Usage(format!("{} is missing", written.display())));
        }
        Ok(printed)
    };
    let expected = run(shell.program(&c))?;
    print!("{expected}");
    let mut others = vec![
        ("AddressSanitizer", run(shell.program(&sanitized))?),
        ("C++", run(shell.program(&cpp))?),
    ];
    if shell.program("valgrind").arg("--version").succeeds() {
        let valgrind = shell
            .program("valgrind")
            .args("--quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite");
        let valgrind = valgrind.args("--errors-for-leak-kinds=definite --fair-sched=yes");
        others.push(("valgrind", run(valgrind.arg(&c))?));
    }
    if shell.program("go").arg("version").succeeds() {
        let program = folder.join("list-go");
        let go = shell.program("go").args("build -o").arg(&program);
        let go = go.arg(examples.join("list.go"));
        let go = go.env("CGO_CFLAGS", cflags.trim()).env("CGO_LDFLAGS", &shared);
        let go =
            go.env("CGO_LDFLAGS_ALLOW", ".*").env("GOCACHE", &folder.join("go").to_string_lossy());
        go.env("GO111MODULE", "off").env("CGO_ENABLED", "1").run()?;
        others.push(("Go", run(shell.program(&program))?));
    }
    if shell.program("mcs").arg("--version").succeeds() {
        let program = folder.join("list.exe");
        let mcs = shell.program("mcs").arg(format!("-out:{}", program.display()));
        mcs.arg(examples.join("list.cs")).run()?;
        let mono = shell.program("mono").env("LD_LIBRARY_PATH", &lib.to_string_lossy());
        others.push(("C#", run(mono.arg(&program))?));
    }
    for (name, printed) in &others {
        if *printed != expected {
            return Err(Error::Usage(format!("{name} prints otherwise:\n{printed}")));
        }
    }
    let names: Vec<_> = others.iter().map(|(name, _)| *name).collect();
    println!("capi: C, {} print the same", names.join(", "));
    Ok(())
}
