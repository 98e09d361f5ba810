"""The program `zt` that the wheel installs: its exit codes, its pipes, and signals."""

import os
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest

import zt
import zt.numpy

PROGRAM = [sys.executable, "-m", "zt"]


def run(*arguments, **options):
    command = [*PROGRAM, *map(os.fspath, arguments)]
    return subprocess.run(command, check=False, capture_output=True, timeout=60, **options)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.zt"
    zt.numpy.save_file({"weight": np.arange(6.0).reshape(2, 3)}, path)
    return path


def test_the_wheel_has_the_program_under_both_names(path):
    scripts = {script.name: script.value for script in entry_points(group="console_scripts")}
    assert scripts["zt"] == scripts["zt-tensor"] == "zt.__main__:main"
    for name in ("zt", "zt-tensor"):
        script = Path(sys.executable).with_name(name)
        listed = subprocess.run([script, "ls", path], check=True, capture_output=True, text=True)
        assert "weight" in listed.stdout and not listed.stderr


def test_exit_codes_are_those_of_the_program(path, tmp_path):
    assert run("verify", path).returncode == 0
    assert run("ls").returncode == 2
    assert run("ls", __file__).returncode == 3
    assert run("ls", tmp_path / "nothing.zt").returncode == 4
    helped = run("--help")
    assert helped.returncode == 0 and b"Usage: zt" in helped.stdout
    data = bytearray(path.read_bytes())
    data[zt.open(path)["weight"].components["data"].offset] ^= 1
    path.write_bytes(data)
    damaged = run("verify", path)
    assert damaged.returncode == 1 and b"Traceback" not in damaged.stderr


def test_files_go_through_pipes(path):
    converted = run("convert", "-", "-", "--to", "safetensors", input=path.read_bytes())
    assert converted.returncode == 0
    assert zt.numpy.load(converted.stdout)["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    listing = subprocess.Popen(
        [*PROGRAM, "ls", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    listing.stdout.close()
    assert (listing.stderr.read(), listing.wait(60)) == (b"", 0), "a closed stdout is no error"


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_the_program_without_a_traceback(name):
    number = getattr(signal, name)

    def restore():  # A shell starts what it runs in the background with SIGINT ignored.
        signal.signal(number, signal.SIG_DFL)

    command = [*PROGRAM, "ls", "-"]
    reading = subprocess.Popen(command, stdin=PIPE, stderr=PIPE, preexec_fn=restore)
    # More than a pipe holds: the program has begun to read when this returns.
    reading.stdin.write(bytes(1 << 20))
    reading.send_signal(number)
    assert reading.wait(60) in (-number, 128 + number)
    assert b"Traceback" not in reading.stderr.read()
    reading.stdin = None
