#!/usr/bin/env python3
"""Holds `zt` against numpy: random files both ways. Run by `cargo xtask interop`.

usage: numpy_both_ways.py PATH/TO/zt [ROUNDS]

Every round writes an archive with numpy, plain or compressed: arrays of every dtype that is a number, in either byte order and
either order of the elements, views with strides, of no dimensions and of no elements. `zt` has to list their shapes and hash their
values; what it writes of them, as `.npz` and each as `.npy`, numpy has to read as the same arrays, without unpickling and at
addresses that a map can lend; and by way of `.zt` it has to write the same bytes.
"""

import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
NAMES = ["w", "block.0.attn", "a/b", "ä", "weights und so", "x.npy", "y" * 100]


def zt(program, *args):
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"zt {' '.join(map(str, args))} exits {done.returncode}: {done.stderr}")
    return done.stdout


def array_of(rng):
    dtype = np.dtype(rng.choice(DTYPES)).newbyteorder(rng.choice("<>"))
    largest = rng.choice([3, 9, 40])
    shape = tuple(rng.randrange(0 if rng.random() < 0.1 else 1, largest) for _ in range(rng.randrange(0, 4)))
    count = int(np.prod(shape, dtype=np.int64))
    data = rng.randbytes(count * dtype.itemsize)
    array = np.frombuffer(bytes(b & 1 for b in data) if dtype.kind == "b" else data, dtype).reshape(shape)
    if rng.random() < 0.4:
        array = np.asfortranarray(array)
    elif rng.random() < 0.3 and array.ndim:
        array = array[::2]
    return array


def plain(array):
    """Row-major and little-endian, as bytes."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes("C")


def require(holds, what):
    if not holds:
        sys.exit(what)


def same(found, wanted, what):
    require(found.shape == wanted.shape, f"{what}: shape {found.shape}")
    require(found.dtype == wanted.dtype.newbyteorder("<"), f"{what}: {found.dtype}")
    require(plain(found) == plain(wanted), f"{what}: other values")


def check_read(program, path, arrays):
    listed = {o["name"]: o for o in json.loads(zt(program, "ls", "--json", path))["objects"]}
    hashes = json.loads(zt(program, "hash", "--dense", "--json", path))["objects"]
    require(set(listed) == set(arrays), f"other arrays: {sorted(listed)}")
    for name, array in arrays.items():
        require(listed[name]["shape"] == list(array.shape), f"{name}: shape {listed[name]['shape']}")
        require(hashes[name]["dense"]["sha256"] == hashlib.sha256(plain(array)).hexdigest(), f"{name}: other values")
    zt(program, "verify", path)


def check_members(path):
    """Elements lie as they are, at multiples of 64."""
    with zipfile.ZipFile(path) as archive:
        require(archive.testzip() is None, "a damaged member")
        for member in archive.infolist():
            require(member.compress_type == zipfile.ZIP_STORED, f"{member.filename} is compressed")
            with archive.open(member) as content:
                require(np.lib.format.read_magic(content) == (1, 0), f"{member.filename} is of another version")
                np.lib.format.read_array_header_1_0(content)
                header = content.tell()
            local = path.read_bytes()[member.header_offset : member.header_offset + 30]
            start = member.header_offset + 30 + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
            require((start + header) % 64 == 0, f"{member.filename} begins at {start + header}")


def check(program, folder, seed):
    rng = random.Random(seed)
    theirs, ours, way, again, single = (folder / f"{seed}.{ending}" for ending in ("npz", "out.npz", "zt", "again.npz", "npy"))
    arrays = {name: array_of(rng) for name in rng.sample(NAMES, rng.randrange(0, len(NAMES) + 1))}
    rng.choice([np.savez, np.savez_compressed])(theirs, **arrays)
    check_read(program, theirs, arrays)

    zt(program, "convert", theirs, ours)
    with np.load(ours, allow_pickle=False) as read:
        require(set(read.files) == set(arrays), f"numpy reads other arrays: {read.files}")
        for name, array in arrays.items():
            same(read[name], array, name)
    check_members(ours)
    zt(program, "convert", theirs, way)
    zt(program, "convert", way, again)
    # Arrays without elements share one place in .zt, and nothing says which of several came first.
    if sum(array.size == 0 for array in arrays.values()) < 2:
        require(again.read_bytes() == ours.read_bytes(), "by way of .zt it is another archive")

    array = array_of(rng)
    np.save(single, array)
    check_read(program, single, {str(seed): array})
    out = folder / "out.npy"
    zt(program, "convert", "--force", single, out)
    same(np.load(out, allow_pickle=False), array, "npy")
    require(np.load(out, mmap_mode="r").shape == array.shape or array.size == 0, "numpy does not map it")
    for file in (theirs, ours, way, again, single, out):
        file.unlink()


def main():
    program, rounds = pathlib.Path(sys.argv[1]).resolve(), int((sys.argv[2:] or ["60"])[0])
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(rounds):
            check(program, pathlib.Path(folder), seed)
    print(f"numpy: {rounds} archives and arrays both ways")


if __name__ == "__main__":
    main()
