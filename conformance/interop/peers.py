#!/usr/bin/env python3
"""Runs `zt` and the official packages over the same files and prints how each behaves.

usage: peers.py ZT CORPUS [--check README.md]

The table in README.md is this program's output: with --check it fails where the two differ. It
runs in the virtual environment of ztensor 1.2.3 that `cargo xtask interop` makes. Each attempt is
a process of its own, because some of them end in a signal.
"""
import json
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile

import numpy as np
import safetensors.numpy
import ztensor

PEERS = ["zt", "ztensor 1.2.3", "safetensors 0.8"]

READ_ZTENSOR = """
import sys, ztensor
reader = ztensor.Reader(sys.argv[1])
for name in list(reader.keys()):
    if len(sys.argv) < 3 or name == sys.argv[2]:
        reader.read(name)
"""
READ_SAFETENSORS = """
import sys
from safetensors import safe_open
with safe_open(sys.argv[1], "np") as file:
    for name in file.keys():
        if len(sys.argv) < 3 or name == sys.argv[2]:
            file.get_tensor(name)
"""


def run(*command):
    """How a process ended: `read`, `refused` or `crashed`."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode < 0 or "PanicException" in done.stderr or "panicked at" in done.stderr:
        return "crashed"
    return "read" if done.returncode == 0 else "refused"


def ztensor_reads(path, *name):
    return run(sys.executable, "-c", READ_ZTENSOR, str(path), *name)


def safetensors_reads(path, *name):
    return run(sys.executable, "-c", READ_SAFETENSORS, str(path), *name)


def zt_file(folder, name):
    path = folder / f"{name}.zt"
    writer = ztensor.Writer(str(path))
    writer.write_numpy("w", np.arange(64, dtype=np.float32), checksum="crc32c")
    writer.finish()
    return path


def flip(path, pattern):
    data = bytearray(path.read_bytes())
    data[data.index(pattern)] ^= 1
    path.write_bytes(data)


def safetensors_header(folder, name, header, data):
    path = folder / f"{name}.safetensors"
    text = header.encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def generations(zt, corpus, _):
    """The real files of every writer that are meant to be read."""
    ours = theirs = count = 0
    for truth in sorted((corpus / "writers").glob("*/*.json")):
        if json.loads(truth.read_text())["expect"] != "read":
            continue
        count += 1
        path = truth.with_suffix(".zt")
        ours += run(zt, "verify", str(path)) == "read"
        theirs += ztensor_reads(path) == "read"
    return [f"{ours} of {count}", f"{theirs} of {count}", "another format"]


def flipped_bit(zt, _, folder):
    path = zt_file(folder, "flip")
    flip(path, np.arange(1, 4, dtype=np.float32).tobytes())
    safe = folder / "flip.safetensors"
    safetensors.numpy.save_file({"w": np.arange(64, dtype=np.float32)}, safe)
    flip(safe, np.arange(1, 4, dtype=np.float32).tobytes())
    return [run(zt, "show", str(path), "w"), ztensor_reads(path), safetensors_reads(safe)]


def duplicate_name(zt, corpus, folder):
    path = corpus / "invalid" / "manifest_duplicate_object_same.zt"
    entry = '"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}'
    safe = safetensors_header(folder, "twice", "{" + entry + "," + entry + "}", b"\1\2")
    return [run(zt, "ls", str(path)), ztensor_reads(path), safetensors_reads(safe)]


def bad_bool(zt, corpus, folder):
    path = corpus / "invalid" / "object_bool_128_last.zt"
    header = '{"b":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}'
    safe = safetensors_header(folder, "bool", header, b"\1\x80")
    return [run(zt, "verify", str(path)), ztensor_reads(path), safetensors_reads(safe)]


def bad_index(zt, corpus, _):
    path = corpus / "invalid" / "object_coo_column_is_columns.zt"
    return [run(zt, "verify", str(path)), ztensor_reads(path), "no sparse tensors"]


def neighbours(zt, corpus, folder):
    """A file with one object of an unknown dtype: its sound neighbour is read."""
    path = corpus / "invalid" / "object_dtype_i128.zt"
    listing = json.loads(subprocess.run([zt, "ls", "--json", str(path)], capture_output=True, check=True).stdout)
    sound = next(entry["name"] for entry in listing["objects"] if entry["fault"] is None)
    header = (
        '{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},'
        '"x":{"dtype":"I128","shape":[1],"data_offsets":[2,18]}}'
    )
    safe = safetensors_header(folder, "dtype", header, bytes(18))
    return [run(zt, "show", str(path), sound), ztensor_reads(path, sound), safetensors_reads(safe, "w")]


def absurd_length(zt, corpus, _):
    path = corpus / "invalid" / "object_zstd_length_2_46.zt"
    return [run(zt, "verify", str(path)), ztensor_reads(path), "no compression"]


WRITE_ZTENSOR = """
import sys, numpy, ztensor
writer = ztensor.Writer(sys.argv[1])
writer.write_numpy("w", numpy.zeros(1 << 20, numpy.float32))
writer.finish()
"""
WRITE_SAFETENSORS = """
import sys, numpy
from safetensors.numpy import save_file
save_file({"w": numpy.zeros(1 << 20, numpy.float32)}, sys.argv[1])
"""


def killed_writer(zt, _, folder):
    """The system kills each writer after 64 KiB of its 4 MiB; the file had contents before."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))

    def after(path, reads, *command):
        before = path.read_bytes()
        done = subprocess.run(command, capture_output=True, preexec_fn=limit, check=False)
        assert done.returncode != 0, "the writer was not stopped"
        kept = path.read_bytes() == before and reads(path) == "read"
        return "kept" if kept else "lost"

    large = folder / "large.safetensors"
    safetensors.numpy.save_file({"w": np.zeros(1 << 20, np.float32)}, large)
    ours, theirs = zt_file(folder, "old"), zt_file(folder, "older")
    safe = folder / "old.safetensors"
    safetensors.numpy.save_file({"w": np.zeros(64, np.float32)}, safe)
    python = (sys.executable, "-c")
    return [
        after(ours, ztensor_reads, zt, "convert", str(large), str(ours), "--force"),
        after(theirs, ztensor_reads, *python, WRITE_ZTENSOR, str(theirs)),
        after(safe, safetensors_reads, *python, WRITE_SAFETENSORS, str(safe)),
    ]


ROWS = [
    ("`.zt` files from 14 real writers, 0.1 to 1.2, that it can read", generations),
    ("a bit flipped in a tensor with a crc32c (safetensors has no digests)", flipped_bit),
    ("two objects of one name", duplicate_name),
    ("a bool that is neither 0 nor 1", bad_bool),
    ("a sparse column out of range", bad_index),
    ("a sound tensor beside one of an unknown dtype", neighbours),
    ("a stored length of 64 TiB in a file of 1 KiB", absurd_length),
    ("a file whose writer is killed while it replaces it", killed_writer),
]


def main():
    zt, corpus = sys.argv[1], pathlib.Path(sys.argv[2])
    lines = ["| | " + " | ".join(PEERS) + " |", "| --- |" + " --- |" * len(PEERS)]
    with tempfile.TemporaryDirectory() as folder:
        for label, cells in ROWS:
            lines.append("| " + " | ".join([label, *cells(zt, corpus, pathlib.Path(folder))]) + " |")
    table = "\n".join(lines)
    print(table)
    if len(sys.argv) > 3:
        readme = pathlib.Path(sys.argv[4]).read_text(encoding="utf-8")
        if table not in readme:
            sys.exit("the table in README.md is not what was seen")


if __name__ == "__main__":
    main()
