"""Measures zt beside safetensors, numpy and ztensor, in one interleaved run.

    python benches/compare.py [--mib 512] [--rounds 5] [--small 100000] [--only ROW]

Every round does each row with each library in turn, and the table has the medians, in milliseconds. Files lie
in a temporary folder, and their pages are in the memory of the system after the first round. A load touches
every byte: it sums one byte of each page. Libraries that are not installed are left out.
"""

import argparse
import importlib
import os
import statistics
import tempfile
import time

import numpy as np

import zt
import zt.numpy


def installed(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


safetensors = installed("safetensors")
safetensors_numpy = installed("safetensors.numpy")
ztensor = installed("ztensor")
ztensor_numpy = installed("ztensor.numpy")


def touch(arrays):
    """Reads a byte of each page."""
    return sum(int(array.reshape(-1).view("u1")[::4096].sum()) for array in arrays)


def model(mib, side):
    """Matrices of f32, `side` wide, of so many MiB together."""
    rng = np.random.default_rng(1)
    count = max(1, (mib << 20) // (side * side * 4))
    return {
        f"layers.{at}.weight": rng.standard_normal((side, side), dtype="f4") for at in range(count)
    }


def small(count):
    values = np.arange(count * 16, dtype="f4").reshape(count, 4, 4)
    return {f"layers.{at}.bias": values[at] for at in range(count)}


class Zt:
    name = "zt"
    extension = "zt"

    def save(self, tensors, path):
        zt.numpy.save_file(tensors, path)

    def load(self, path):
        return touch(zt.numpy.load_file(path).values())

    def one(self, path, name):
        with zt.open(path) as file:
            return touch([file[name].numpy()])

    def row(self, path, name):
        with zt.open(path) as file:
            return touch([file[name][1:3]])


class ZtNoDigest(Zt):
    name = "zt, no digest"

    def save(self, tensors, path):
        zt.numpy.save_file(tensors, path, digest=None)


class Safetensors:
    name = "safetensors"
    extension = "safetensors"

    def save(self, tensors, path):
        safetensors_numpy.save_file(tensors, path)

    def load(self, path):
        return touch(safetensors_numpy.load_file(path).values())

    def one(self, path, name):
        with safetensors.safe_open(path, "np") as file:
            return touch([file.get_tensor(name)])

    def row(self, path, name):
        with safetensors.safe_open(path, "np") as file:
            return touch([file.get_slice(name)[1:3]])


class Ztensor:
    name = "ztensor 1.2.3"
    extension = "zt"

    def save(self, tensors, path):
        ztensor_numpy.save_file(tensors, path)

    def load(self, path):
        return touch(ztensor_numpy.load_file(path).values())

    def one(self, path, name):
        with ztensor.Reader(path) as file:
            return touch([file.read_numpy(name)])

    def row(self, path, name):
        with ztensor.Reader(path) as file:
            return touch([np.ascontiguousarray(file.read_numpy(name)[1:3])])


class Numpy:
    name = "numpy, npz"
    extension = "npz"

    def save(self, tensors, path):
        np.savez(path, **tensors)

    def load(self, path):
        with np.load(path) as file:
            return touch([file[name] for name in file])

    def one(self, path, name):
        with np.load(path) as file:
            return touch([file[name]])

    def row(self, path, name):
        with np.load(path) as file:
            return touch([np.ascontiguousarray(file[name][1:3])])


LIBRARIES = [
    Zt(),
    ZtNoDigest(),
    *([Safetensors()] if safetensors else []),
    *([Ztensor()] if ztensor else []),
    Numpy(),
]


def timed(work, *arguments):
    start = time.perf_counter()
    work(*arguments)
    return (time.perf_counter() - start) * 1e3


def measure(folder, title, tensors, rounds):
    name = list(tensors)[len(tensors) // 2]
    rows = {row: {lib.name: [] for lib in LIBRARIES} for row in ("save", "load", "one", "row")}
    for _ in range(rounds):
        for at, library in enumerate(LIBRARIES):
            path = os.path.join(folder, f"{at}.{library.extension}")
            for row, times in rows.items():
                argument = {"save": (tensors, path), "load": (path,)}.get(row, (path, name))
                try:
                    took = timed(getattr(library, row), *argument)
                    times[library.name].append(took)
                except Exception as error:  # noqa: BLE001
                    print(f"{library.name} cannot {row}: {error}")
    heads = [library.name for library in LIBRARIES]
    print(f"\n| {title} | " + " | ".join(heads) + " |")
    print("| --- |" + " ---: |" * len(heads))
    words = {
        "save": "save",
        "load": "load, every page touched",
        "one": "open, one tensor",
        "row": "open, two rows of one",
    }
    for row, times in rows.items():
        cells = [f"{statistics.median(times[h]):.2f}" if times[h] else "-" for h in heads]
        print(f"| {words[row]} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", type=int, default=100_000)
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, zt {zt.__version__}, medians of {arguments.rounds}, ms")
    cases = [
        (f"{arguments.mib} MiB, 256 x 256", model(arguments.mib, 256)),
        (f"{arguments.mib} MiB, 4096 x 4096", model(arguments.mib, 4096)),
        (f"{arguments.small} of 64 bytes", small(arguments.small)),
    ]
    for title, tensors in cases:
        with tempfile.TemporaryDirectory() as folder:
            measure(folder, title, tensors, arguments.rounds)


if __name__ == "__main__":
    main()
