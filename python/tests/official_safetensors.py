"""Runs the tests of the package safetensors 0.8.0 against ``zt.safetensors``.

The tests come from the source package in the registry: nothing of theirs is kept here. Run it in
an environment with zt, pytest, numpy, fsspec, the official safetensors 0.8.0, and as many of torch,
jax and flax as there are::

    python python/tests/official_safetensors.py [SDIST]

It runs each file of tests twice, with the official package and with ours in its place, prints the
counts, and fails if a test passes with the official package and not with ours.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from importlib.util import find_spec
from pathlib import Path

VERSION = "0.8.0"

#: Each file of tests, and the packages that it imports.
FILES = {
    "test_simple.py": ["torch"],
    "test_handle.py": ["fsspec"],
    "test_threadable.py": [],
    "test_pread_backend.py": ["torch"],
    "test_pt_comparison.py": ["torch"],
    "test_pt_model.py": ["torch"],
    "test_flax_comparison.py": ["jax", "flax"],
    "test_multithreaded.py": ["torch"],
    "test_tf_comparison.py": ["tensorflow"],
    "test_paddle_comparison.py": ["paddle"],
    "test_mlx_comparison.py": ["mlx"],
}

#: Read by pytest before it collects tests.
STAND_IN = "import zt.safetensors\n\nzt.safetensors.install()\n"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        tests = unpack(Path(folder), sys.argv[1:])
        lost: list[str] = []
        print(f"{'':28} official  ours")
        for name, packages in FILES.items():
            missing = [package for package in packages if find_spec(package) is None]
            if missing:
                print(f"{name:28} not run: no {', '.join(missing)}")
                continue
            official, ours = run(tests, name, ""), run(tests, name, STAND_IN)
            print(f"{name:28} {counts(official):9} {counts(ours)}")
            lost += [test for test, how in official.items() if how == "PASSED" != ours.get(test)]
    for test in lost:
        print(f"passes with the official package only: {test}")
    return bool(lost)


def unpack(folder: Path, given: list[str]) -> Path:
    """The folder of the tests, in the source package that is given or fetched."""
    if not given:
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        fetch += ["--no-build-isolation", "-d", str(folder), f"safetensors=={VERSION}"]
        subprocess.run(fetch, check=True)
    path = Path(given[0]) if given else folder / f"safetensors-{VERSION}.tar.gz"
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    return folder / f"safetensors-{VERSION}" / "bindings" / "python"


def run(tests: Path, name: str, conftest: str) -> dict[str, str]:
    """How each test of a file ended."""
    (tests / "conftest.py").write_text(conftest)
    command = [sys.executable, "-m", "pytest", "-rA", "-q", "--no-header", f"tests/{name}"]
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tests, env=env, capture_output=True, text=True, check=False)
    ended = dict(
        reversed(pair)
        for pair in re.findall(r"^(PASSED|FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    )
    if not ended:
        print(done.stdout + done.stderr)
    return ended


def counts(ended: dict[str, str]) -> str:
    passed = sum(how == "PASSED" for how in ended.values())
    return f"{passed} of {len(ended)}"


if __name__ == "__main__":
    sys.exit(main())
