#!/usr/bin/env python3
"""Installs torch into a virtual environment, without the 3 GB of CUDA libraries that it asks for.

    python3 cpu_torch.py VENV [PACKAGE ...]

The registry has no CPU wheel of torch for Linux on x86-64. Its wheel loads the CUDA libraries when
it is imported, whether a GPU is there or not. This program installs the wheel without its
dependencies, and puts a stub library in the place of each missing one. A function of a stub
returns 0, except that ``cudaGetDeviceCount`` returns 100, "no device". So torch computes on the
CPU, and ``torch.cuda.is_available()`` is false.

VENV is made where it does not exist. PACKAGEs are installed with torch's own pure dependencies.
It takes a C compiler, ``nm`` and ``readelf``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from collections import defaultdict
from pathlib import Path

TORCH = "torch==2.15.0"
# What torch imports. The rest of its dependencies are the CUDA libraries, and triton for GPUs.
PURE = [
    "filelock",
    "fsspec",
    "jinja2",
    "networkx",
    "setuptools>=77.0.3",
    "sympy",
    "typing-extensions",
]
CUDA = re.compile("cu|nccl|nv")
NO_DEVICE = 100  # cudaErrorNoDevice
# The library that gets the functions whose references carry no version: all of torch loads it.
COMMON = "libcudart.so.13"


def main(folder: Path, packages: list[str]) -> None:
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--only-binary", ":all:", "--no-deps", "--no-compile", TORCH)
    run(*pip, *PURE, *packages, unread=True)  # pip complains of the CUDA libraries
    purelib = "import sysconfig; print(sysconfig.get_path('platlib'))"
    site = Path(run(python, "-c", purelib).strip())
    # torch's libraries look here first: it is on their RUNPATH.
    stubs = site / "nvidia" / "cu13" / "lib"
    stubs.mkdir(parents=True, exist_ok=True)
    for name, versions in missing(site / "torch").items():
        compile_stub(stubs / name, versions)
    check = "import torch; assert not torch.cuda.is_available(); print(torch.__version__)"
    print("torch", run(python, "-c", check).strip())


def missing(torch: Path) -> dict[str, dict[str, set[str]]]:
    """The functions to make, for each version of each library that torch lacks."""
    libraries = [*torch.glob("lib/*.so*"), *torch.glob("_C*.so")]
    own = {library.name for library in libraries}
    needed: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    file_of: dict[str, str] = {}
    undefined: set[str] = set()
    defined: set[str] = set()
    for library in libraries:
        for name in re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", library)):
            if name not in own and CUDA.match(name.removeprefix("lib")):
                _ = needed[name]
        at = ""
        for file, version in re.findall(
            r"File: (\S+)|Name: (\S+)", run("readelf", "-VW", library, unread=True)
        ):
            at = file or at
            if version:
                file_of[version] = at
        for line in run("nm", "-D", library).splitlines():
            kind, name = line.split()[-2:]
            (undefined if kind == "U" else defined).add(name)
    defined = {name.partition("@")[0] for name in defined}
    for symbol in undefined:
        name, _, version = symbol.partition("@")
        file = file_of.get(version, COMMON) if version or CUDA.match(name) else ""
        if file in needed and name not in defined:
            needed[file][version].add(name)
    return needed


def compile_stub(path: Path, versions: dict[str, set[str]]) -> None:
    """Writes the library `path`, with functions of these versions."""
    with tempfile.TemporaryDirectory() as scratch:
        source, script = Path(scratch, "stub.c"), Path(scratch, "stub.map")
        names = sorted(name for functions in versions.values() for name in functions)
        results = {"cudaGetDeviceCount": NO_DEVICE}
        source.write_text(
            "".join(f"int {name}(void) {{ return {results.get(name, 0)}; }}\n" for name in names)
        )
        script.write_text(
            "".join(
                f"{version} {{ global: {'; '.join(sorted(functions))}; }};\n"
                for version, functions in versions.items()
                if version
            )
        )
        command = ["cc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{path.name}"]
        if script.stat().st_size:
            command.append(f"-Wl,--version-script={script}")
        run(*command, source, "-o", path)


def run(*command: object, unread: bool = False) -> str:
    """The output of a program. `unread`: what it says to standard error is not shown."""
    quiet = subprocess.DEVNULL if unread else None
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE, stderr=quiet).stdout


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).absolute(), sys.argv[2:])
