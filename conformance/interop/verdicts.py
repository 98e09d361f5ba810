#!/usr/bin/env python3
"""Asks the official reader of a kind what it makes of mutants. Run by `cargo xtask verdicts`.

usage: verdicts.py KIND FOLDER OUT.json

FOLDER has `plan.json`, a list of recipes, and the mutant of each as NUMBER.KIND. OUT gets every recipe with a verdict:

* `refused`: what the error says that the reader raises before it gives any tensor. `crashed` and `hung` say what else it may do.
* `tensors`: by name, the shape and the SHA-256 (12 digits) of the row-major little-endian values; `null` for a tensor that the reader
  lists and refuses; `"other"` for values that are no numbers of NumPy.
"""

import hashlib
import json
import os
import pathlib
import resource
import signal
import sys
import warnings
from importlib.metadata import version

import ml_dtypes
import numpy as np

# A file with more of them would fill the data and say the same.
MOST_TENSORS = 24
SECONDS = 10
MEMORY = 4 << 30


def value(array):
    """Shape and digest of an array of numbers."""
    array = np.asarray(array)
    is_number = array.dtype.kind in "biufc" and array.dtype.itemsize <= 16 and array.dtype not in (np.longdouble, np.clongdouble)
    if not is_number and array.dtype not in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        return "other"
    if array.dtype.byteorder in "=<>" and array.dtype.itemsize > 1 and is_number:
        array = array.astype(array.dtype.newbyteorder("<"))
    return [list(array.shape), digest(array.tobytes())]


def digest(data):
    return hashlib.sha256(data).hexdigest()[:12]


def of_each(names, read):
    """What `read` gives for each name; a tensor that it refuses is none."""
    tensors = {}
    for name in names:
        try:
            tensors[name] = read(name)
        except Exception:
            tensors[name] = None
    return tensors


def safetensors(path):
    import safetensors

    tensors = safetensors.deserialize(path.read_bytes())
    return {name: [list(it["shape"]), digest(bytes(it["data"]))] for name, it in tensors}


def npy(path):
    with path.open("rb") as file:
        return {"": value(np.lib.format.read_array(file, allow_pickle=False))}


def npz(path):
    # As its users do: a checksum is compared only if the end of the member is read.
    with np.load(path, allow_pickle=False) as arrays:
        # Of two members of one name, NumPy gives the last.
        once = [name for name in arrays.files if arrays.files.count(name) == 1]
        return of_each(once, lambda name: value(arrays[name]))


def gguf(path):
    import gguf

    tensors = {}
    for tensor in gguf.GGUFReader(path).tensors:
        data = np.ascontiguousarray(tensor.data)
        shape = [int(n) for n in reversed(tensor.shape)]
        found = value(data)
        tensors[tensor.name] = found if found == "other" else [shape, found[1]]
    return tensors


def onnx(path):
    import onnx
    from onnx import numpy_helper

    model = onnx.load_model_from_string(path.read_bytes())
    tensors = {it.name: it for it in model.graph.initializer}
    names = [it.name for it in model.graph.initializer]
    once = [name for name in names if names.count(name) == 1]
    return of_each(once, lambda name: value(numpy_helper.to_array(tensors[name])))


def h5(path):
    import h5py

    with h5py.File(path, "r") as file:
        names = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        return of_each(names, lambda name: value(file[name][()]))


def zt(path):
    import ztensor

    reader = ztensor.Reader(str(path))

    def read(name):
        about = reader.metadata(name)
        components = reader.read(name).components
        if about.format != "dense" or components["data"].dtype.kind not in "biufc":
            return "other"
        return [[int(n) for n in about.shape], digest(components["data"].tobytes())]

    return of_each(reader.keys(), read)


READERS = {
    "safetensors": (safetensors, ["safetensors"]),
    "npy": (npy, ["numpy"]),
    "npz": (npz, ["numpy"]),
    "gguf": (gguf, ["gguf", "numpy"]),
    "onnx": (onnx, ["onnx", "protobuf"]),
    "h5": (h5, ["h5py"]),
    "zt": (zt, ["ztensor"]),
}


def judged(read, path):
    """The verdict, from a process of its own: a reader may crash, or never return."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        warnings.simplefilter("ignore")
        try:
            verdict = {"tensors": read(path)}
        except Exception as error:
            told = str(error).replace(str(path), "FILE").split("\n")[0]
            verdict = {"refused": f"{type(error).__name__}: {told}"[:100]}
        write_all(theirs, json.dumps(verdict, sort_keys=True).encode())
        os._exit(0)
    os.close(theirs)
    said = b""
    while part := os.read(ours, 1 << 16):
        said += part
    os.close(ours)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return {"hung": True} if os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL) else {"crashed": True}
    return json.loads(said) if said else {"crashed": True}


def write_all(file, data):
    while data:
        data = data[os.write(file, data) :]


def main():
    kind, folder, out = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    read, packages = READERS[kind]
    for package in packages:
        __import__({"protobuf": "google.protobuf"}.get(package, package))
    lines = []
    for number, recipe in enumerate(json.loads((folder / "plan.json").read_text())):
        verdict = judged(read, folder / f"{number}.{kind}")
        if len(verdict.get("tensors", {})) <= MOST_TENSORS:
            lines.append(json.dumps({**recipe, **verdict}, sort_keys=True))
    reader = ", ".join(f"{name} {version(name)}" for name in packages)
    text = ",\n".join(lines)
    out.write_text(f'{{"reader": {json.dumps(reader)}, "mutants": [\n{text}\n]}}\n', encoding="utf-8")
    print(f"{kind}: {len(lines)} verdicts of {reader}")


if __name__ == "__main__":
    main()
