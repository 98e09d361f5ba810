"""Measures zt beside the libraries that read and write tensor files, and keeps the times.

    python benches/compare.py CASE [--with NAME=PYTHON ...] [--seconds 100] [--one-core] [--folder F]
    python benches/compare.py --write

CASE is `small-matrices`, `large-matrices`, `many`, `compressed`, `cold` or `durable`. Each library
works in a process of its own, by the interpreter of this program or by another one, because some
cannot be installed together. All take the same tensors from one file in memory. They take turns, round by round, until the
time is over. Times are kept in `target/python-benchmarks.json`. `--write` makes of them
`docs/python-benchmarks.md` and its chart.

A library that is not installed is left out. Only Linux is supported.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import json
import mmap
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import contestants
import numpy as np
import page

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "target" / "python-benchmarks.json"
IN_MEMORY = "/dev/shm"

# Number of tensors, rows, columns, of f32. Then the rows of the table.
WARM = ["save", "save_digests", "tied", "load", "load_digests", "views", "one", "row"]
CASES: dict[str, tuple[int, int, int, list[str]]] = {
    "small-matrices": (256, 1024, 1024, WARM),
    "large-matrices": (16, 4096, 4096, WARM),
    "many": (100_000, 4, 4, WARM),
    "compressed": (16, 2048, 2048, ["save_zstd", "load_zstd", "save_planes", "load_planes"]),
    "cold": (16, 2048, 2048, ["load_cold", "one_cold", "row_cold"]),
    "durable": (16, 1024, 1024, ["save", "save_durable", "save_default"]),
}


def tensors_of(case: str, path: str) -> dict[str, np.ndarray]:
    """The tensors, which lie one behind the other in a file that is not written to.

    They are plain arrays, as most programs have them. zt takes longer to look at an array of the class `memmap`.
    """
    count, rows, columns, _ = CASES[case]
    values = np.memmap(path, dtype="f4", mode="c", shape=(count, rows, columns)).view(np.ndarray)
    return {f"layers.{at}.weight": values[at] for at in range(count)}


def prepare(case: str, path: str) -> None:
    """Writes normally distributed values, which do not repeat: `ztensor` 2 stores equal bytes once."""
    count, rows, columns, _ = CASES[case]
    values = np.random.default_rng(1)
    rest = count * rows * columns
    with open(path, "wb") as file:
        while rest > 0:
            piece = values.standard_normal(min(rest, 1 << 22), dtype="f4")
            piece.tofile(file)
            rest -= len(piece)


def refresh(byte_len: int) -> None:
    """Gives back what earlier rows freed, so that none warms the heap of the next. Then takes memory and
    frees it: a hypervisor takes back what is not used, and the next row would wait for it."""
    ctypes.CDLL(None).malloc_trim(0)
    # Not from the heap, whose pages would be huge ones from then on.
    with mmap.mmap(-1, byte_len, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, byte_len, mmap.PAGESIZE):
            memory[at] = 1


def evict(path: str) -> None:
    """Takes a file out of the system's cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


# The row that writes the file which a row reads.
READS = {
    "load": "save",
    "load_digests": "save_digests",
    "views": "save",
    "one": "save",
    "row": "save",
    "load_zstd": "save_zstd",
    "load_planes": "save_planes",
}


def worker(name: str, case: str, data: str, folder: str) -> None:
    """Does what standard input asks for, and answers with milliseconds, or with null."""
    library = contestants.ALL[name]()
    plain = tensors_of(case, data)
    tensors, middle = library.prepare(plain), list(plain)[len(plain) // 2]
    names = {kind: importlib.metadata.version(kind) for kind in ("numpy",)}
    module = library.modules[0].split(".")[0] if library.modules else "numpy"
    distribution = {"zt": "zt-tensor"}.get(module, module)
    names[library.name] = importlib.metadata.version(distribution)
    print(json.dumps(names), flush=True)
    files: dict[str, str] = {}
    byte_len = os.path.getsize(data)
    for line in sys.stdin:
        row = line.strip()
        if row == "end":
            for path in files.values():
                os.remove(path)
            files.clear()
            print("null", flush=True)
            continue
        operation = row.removesuffix("_cold")
        saved = READS.get(operation)
        method = getattr(library, "load" if operation.startswith("load_") else operation, None)
        if method is None or (saved is not None and not hasattr(library, saved)):
            print("null", flush=True)
            continue
        path = os.path.join(folder, f"{saved or operation}.{library.extension}")
        try:
            if saved is not None and saved not in files:
                getattr(library, saved)(tensors, path)
            files[saved or operation] = path
            refresh(2 * byte_len)
            if row.endswith("_cold"):
                evict(path)
            arguments = (path, middle) if saved else (tensors, path)
            start = time.perf_counter()
            method(*arguments)
            took = (time.perf_counter() - start) * 1e3
            print(json.dumps([took, os.path.getsize(path)]), flush=True)
        except NotImplementedError:
            files.pop(saved or operation, None)
            print("null", flush=True)
        except Exception as error:  # noqa: BLE001
            # A library that fails in one row goes on with the others.
            print(json.dumps(f"{row}: {type(error).__name__}: {error}"), flush=True)


def ask(process: subprocess.Popen[str], row: str) -> Any:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(row + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def measure(case: str, pythons: dict[str, str], seconds: float, folder: str, cores: int) -> None:
    rows = CASES[case][3]
    times: dict[str, dict[str, list[list[float]]]] = {row: {} for row in rows}
    versions: dict[str, str] = {}
    with tempfile.TemporaryDirectory(dir=folder) as place:
        data = os.path.join(IN_MEMORY, f"zt-benchmark-{os.getpid()}")
        try:
            prepare(case, data)
            begun, processes = {}, {}
            for name in contestants.ALL:
                python = pythons.get(name, sys.executable)
                begun[name] = subprocess.Popen(
                    [python, __file__, "--worker", name, case, data, place],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            for name, process in begun.items():
                assert process.stdout is not None
                greeting = process.stdout.readline()
                if not greeting:
                    print(f"{name} is not installed", flush=True)
                    continue
                versions |= json.loads(greeting)
                processes[name] = process
            # Some take half a minute to import.
            until, took = time.monotonic() + seconds, 0.0
            while time.monotonic() + took < until:
                start = time.monotonic()
                for name, process in processes.items():
                    for row in rows:
                        answer = ask(process, row)
                        if isinstance(answer, list):
                            times[row].setdefault(name, []).append(answer)
                        elif answer:
                            print(f"{name}: {answer}", flush=True)
                    ask(process, "end")
                took = time.monotonic() - start
                keep(case, cores, folder, times, versions)
            for process in processes.values():
                process.communicate()
        finally:
            os.remove(data)
    for row, of_row in times.items():
        for name, answers in of_row.items():
            print(f"{row:14} {name:18}", *(f"{took:.1f}" for took, _ in answers))


def keep(case: str, cores: int, folder: str, times: Any, versions: dict[str, str]) -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"cases": {}}
    results["versions"] = results.get("versions", {}) | versions
    results["machine"] = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    count, height, width, _ = CASES[case]
    results["cases"][f"{case}, {cores}"] = {
        "case": case,
        "cores": cores,
        "memory": folder == IN_MEMORY,
        "tensors": [count, height, width],
        "rows": times,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results))


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        return worker(*sys.argv[2:6])
    parser = argparse.ArgumentParser()
    parser.add_argument("case", nargs="?", choices=CASES)
    parser.add_argument("--with", dest="pythons", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--one-core", action="store_true")
    parser.add_argument("--folder", default=IN_MEMORY)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.write:
        return page.write(json.loads(RESULTS.read_text()), ROOT / "docs")
    if arguments.case is None:
        parser.error("name a case, or pass --write")
    # A program that is ended removes its files, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments.one_core:
        os.sched_setaffinity(0, {0})
    pythons = dict(pair.split("=", 1) for pair in arguments.pythons)
    cores = len(os.sched_getaffinity(0))
    measure(arguments.case, pythons, arguments.seconds, arguments.folder, cores)


if __name__ == "__main__":
    main()
