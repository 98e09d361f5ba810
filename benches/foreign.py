#!/usr/bin/env python3
"""Files of other formats: reading all of them beside their own libraries, and the memory that converting takes.

usage: foreign.py PATH/TO/foreign PATH/TO/zt [--mib N] [--rounds N] [--convert-mib N] [--folder DIR] [--kinds K,K] [--least]
                  [--report FILE]

Run by `cargo xtask bench --foreign`. The same 16-bit integers are written as safetensors, GGUF, npz (stored), pt (stored), a folder
of torch Distributed Checkpoint and a pickle by safetensors, gguf, numpy and torch; those that are not installed are left out.
With --least the figures are the least of all rounds, for a machine that does other work meanwhile.
Then each reader reads every tensor in turn, round by round. Each turn is a process of its own, and the process times itself. A sum
compares what the readers read. Linux only: the kernel reports the memory of each process.
"""

import argparse
import importlib.metadata
import os
import pathlib
import pickle
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

COLUMNS = 4096
TENSOR = 64 << 20
LIBRARIES = {"safetensors": "safetensors", "gguf": "gguf", "npz": "numpy", "pt": "torch", "dcp": "torch", "pkl": "numpy"}


def weights(byte_len):
    """Tensors of 64 MiB, none like another."""
    import numpy as np

    random = np.random.default_rng(0)
    for at in range(max(1, byte_len // TENSOR)):
        yield f"model.layers.{at}.weight", random.integers(0, 1 << 15, (TENSOR // 2 // COLUMNS, COLUMNS), np.int16)


def make(kind, byte_len, path):
    tensors = dict(weights(byte_len))
    if kind == "safetensors":
        from safetensors.numpy import save_file

        save_file(tensors, path)
    elif kind == "gguf":
        import gguf

        writer = gguf.GGUFWriter(path, "llama")
        for name, array in tensors.items():
            writer.add_tensor(name, array)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    elif kind == "npz":
        import numpy as np

        np.savez(path, **tensors)
    elif kind == "pkl":
        pathlib.Path(path).write_bytes(pickle.dumps(tensors, 4))
    elif kind == "dcp":
        import torch
        import torch.distributed.checkpoint as dcp

        dcp.save({name: torch.from_numpy(array) for name, array in tensors.items()}, checkpoint_id=path, no_dist=True)
    else:
        import torch

        torch.save({name: torch.from_numpy(array) for name, array in tensors.items()}, path)


def read_with_library(kind, path):
    """Every tensor in memory of its own: seconds, bytes, sum."""
    import numpy as np

    if kind == "safetensors":
        from safetensors.numpy import load_file

        read = load_file
    elif kind == "gguf":
        import gguf

        def read(path):
            return {tensor.name: np.array(tensor.data) for tensor in gguf.GGUFReader(path).tensors}
    elif kind == "npz":

        def read(path):
            with np.load(path) as arrays:
                return {name: arrays[name] for name in arrays.files}
    elif kind == "pkl":

        def read(path):
            with open(path, "rb") as file:
                return pickle.load(file)
    elif kind == "dcp":
        import torch
        import torch.distributed.checkpoint as dcp

        def read(path):
            items = dcp.FileSystemReader(path).read_metadata().state_dict_metadata.items()
            state = {name: torch.empty(item.size, dtype=item.properties.dtype) for name, item in items}
            dcp.load(state, checkpoint_id=path, no_dist=True)
            return state
    else:
        import torch

        def read(path):
            return torch.load(path, weights_only=True)

    start = time.perf_counter()
    tensors = read(path)
    took = time.perf_counter() - start
    arrays = [np.asarray(tensor) for tensor in tensors.values()]
    total = sum(int(array.reshape(-1).view(np.uint64).sum(dtype=np.uint64)) for array in arrays)
    return took, sum(array.nbytes for array in arrays), total % (1 << 64)


def turn(command):
    """Seconds, and what was read: (bytes, sum)."""
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(said[0]), (int(said[1]), int(said[2]))


def hold(kind, path, options):
    """The contest of one file: rows of a table."""
    library = f"{LIBRARIES[kind]} {importlib.metadata.version(LIBRARIES[kind])}, Python"
    # A folder cannot be mapped; the limits are of its file of values.
    is_folder, file = kind == "dcp", f"{path}/__0_0.distcp" if kind == "dcp" else path
    ways = {"zt": "zt"} | ({} if is_folder else {"zt, mapped, every byte summed": "zt-mapped"})
    ways |= {"safetensors 0.8.0, Rust": "safetensors"} if kind == "safetensors" else {}
    contestants = {name: [options.foreign, way, path] for name, way in ways.items()}
    limits = {"plain map, every byte summed": "map", "pread": "pread"}
    contestants |= {name: [options.foreign, way, file] for name, way in limits.items()}
    contestants[library] = [sys.executable, __file__, "--peer", kind, path]
    names, times = list(contestants), {name: [] for name in contestants}
    read = {name: turn(contestants[name])[1] for name in names}
    of_tensors = {said for name, said in read.items() if name != "pread" and "plain map" not in name}
    if len(of_tensors) != 1:
        sys.exit(f"{kind}: not all have read the same: {read}")
    [(byte_len, _)] = of_tensors
    for at in range(options.rounds):
        for name in names[at % len(names) :] + names[: at % len(names)]:
            times[name].append(turn(contestants[name])[0])
    average = min if options.least else statistics.median
    ours = average(times["zt"])
    for name in names:
        middle = average(times[name])
        spread = f"{min(times[name]) * 1e3:.0f} to {max(times[name]) * 1e3:.0f}"
        yield f"| {name} | {middle * 1e3:.0f} | {spread} | {byte_len / middle / 1e9:.2f} | {middle / ours:.2f} |"


def convert(kind, path, options):
    """The most memory that converting to `.zt` had resident: a row."""
    target = str(pathlib.Path(path).with_name("converted.zt"))
    start = time.perf_counter()
    child = subprocess.Popen([options.zt, "convert", path, target], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    took = time.perf_counter() - start
    os.remove(target)
    if status:
        sys.exit(f"{kind}: zt convert failed")
    files = [path, *(os.path.join(path, name) for name in os.listdir(path))] if os.path.isdir(path) else [path]
    byte_len = sum(map(os.path.getsize, files))
    return f"| {kind} | {byte_len / (1 << 20):.0f} | {usage.ru_maxrss / 1024:.0f} | {took:.1f} |"


def remove(path):
    shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} threads, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("foreign")
    parser.add_argument("zt")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--convert-mib", type=int, default=4096)
    parser.add_argument("--folder")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(LIBRARIES))
    parser.add_argument("--least", action="store_true")
    parser.add_argument("--report")
    options = parser.parse_args()
    page = [
        "# Files of other formats",
        "",
        "`cargo xtask bench --foreign` writes this page; do not edit it by hand. The measurement is described at the head of",
        "[`benches/foreign.py`](../benches/foreign.py).",
        "",
        f"Machine: {machine()}. Files of {options.mib} MiB in the page cache; {'the least' if options.least else 'medians'} of {options.rounds} rounds.",
        "",
        "The time includes opening and listing, but not freeing or starting the process. Unless the name says otherwise, every tensor",
        "ends in memory of its own. zt compares no digest here: most kinds have none; npz and pt are zip archives with a CRC-32 per",
        "member, which numpy compares.",
    ]
    rows = []
    for kind in options.kinds:
        library = LIBRARIES[kind]
        try:
            importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            print(f"{kind}: {library} is not installed, and cannot write one", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            path = f"{folder}/weights.{kind}"
            subprocess.run([sys.executable, __file__, "--make", kind, str(options.mib << 20), path], check=True)
            page += ["", f"## {kind}", "", "| reader | ms | from, to | GB/s | times as long as zt |", "| --- | ---: | --- | ---: | ---: |"]
            page += hold(kind, path, options)
            remove(path)
            subprocess.run([sys.executable, __file__, "--make", kind, str(options.convert_mib << 20), path], check=True)
            rows.append(convert(kind, path, options))
    page += ["", "## Memory of `zt convert X OUT.zt`", "", "Peak resident memory; the limit is 256 MiB.", ""]
    page += ["| from | MiB | resident MiB | s |", "| --- | ---: | ---: | ---: |", *rows, ""]
    print("\n".join(page))
    if options.report:
        report = pathlib.Path(options.report)
        report.parent.mkdir(exist_ok=True)
        report.write_text("\n".join(page))


if __name__ == "__main__":
    # Each turn is a process of its own, and so is the making of a file, whose memory is not to stay.
    if sys.argv[1:2] == ["--make"]:
        make(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    elif sys.argv[1:2] == ["--peer"]:
        print(*read_with_library(sys.argv[2], sys.argv[3]))
    else:
        main()
