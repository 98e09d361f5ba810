#!/usr/bin/env python3
"""Holds `zt` against gguf-py: random files both ways. Run by `cargo xtask interop`.

usage: gguf_both_ways.py PATH/TO/zt [ROUNDS]

Every round writes a file with gguf-py: tensors of every type that it has, random blocks, metadata of every type, any alignment,
either byte order. `zt` has to list its shapes and metadata, hash its values as gguf-py dequantizes them, and give it back, by way
of `.zt`, byte for byte; what `zt` makes of a big-endian file, gguf-py has to read as the same values.
"""

import hashlib
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import gguf
import numpy as np

warnings.filterwarnings("ignore", category=RuntimeWarning)

PLAIN = {
    "F32": np.float32, "F16": np.float16, "F64": np.float64,
    "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64,
}  # fmt: skip
# C has other blocks than gguf-py under this name.
SKIPPED = {"Q8_1"}
BLOCKS = [kind for kind in gguf.GGMLQuantizationType if kind.name not in SKIPPED and gguf.GGML_QUANT_SIZES[kind][0] > 1]
# The f16 fields of the types that gguf_convert_endian turns.
SWAPPED = {"Q4_0": [0], "Q8_0": [0], "Q4_K": [0, 2], "Q6_K": [208], "MXFP4": [], "NVFP4": []}
# Upper bytes of scales: with bit 6 cleared, a scale is finite.
SCALES = {
    "Q4_1": [1, 3], "Q5_1": [1, 3], "Q4_K": [1, 3], "Q5_K": [1, 3], "Q2_K": [81, 83], "Q3_K": [109], "Q6_K": [209],
    "Q8_K": [3], "IQ1_M": [55], "TQ1_0": [53], "TQ2_0": [65], "MXFP4": [], "NVFP4": [],
}  # fmt: skip


def zt(program, *args):
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"zt {' '.join(map(str, args))} exits {done.returncode}: {done.stderr}")
    return done.stdout


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def shape_of(rng, block=1):
    outer = [rng.randrange(1, 4) for _ in range(rng.randrange(0, 4))]
    return (*outer, rng.randrange(1, 5) * block)


def values(rng, kind):
    if kind == "string":
        return "".join(chr(rng.choice([rng.randrange(32, 127), rng.randrange(0xA1, 0x2FF), 0x1F600])) for _ in range(rng.randrange(1, 20)))
    if kind == "bool":
        return rng.random() < 0.5
    if kind in ("float32", "float64"):
        value = rng.choice([rng.gauss(0, 1e3), math.inf, -math.inf, -0.0, 1e-40, 0.1])
        return float(np.float32(value)) if kind == "float32" else value
    info = np.iinfo(kind)
    return rng.choice([int(info.min), int(info.max), rng.randrange(int(info.min), int(info.max))])


def metadata(rng, writer):
    """Adds random pairs; what they are, by key."""
    pairs = {}
    for at in range(rng.randrange(0, 12)):
        kind = rng.choice(["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64", "bool", "string"])
        value_type = gguf.GGUFValueType[kind.upper()]
        key = f"test.{rng.randrange(10**6)}.{at}"
        if rng.random() < 0.4:
            value = [values(rng, kind) for _ in range(rng.randrange(1, 9))]
            writer.add_key_value(key, value, gguf.GGUFValueType.ARRAY, sub_type=value_type)
        else:
            value = values(rng, kind)
            writer.add_key_value(key, value, value_type)
        pairs[key] = value
    return pairs


def blocks(rng, kind, order):
    """Random blocks, little-endian and as they are stored, and their shape."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    shape = shape_of(rng, block)
    data = np.frombuffer(rng.randbytes(math.prod(shape) // block * size), dtype=np.uint8).reshape(-1, size).copy()
    data[:, SCALES.get(kind.name, [1])] &= 0xBF
    stored = data.copy()
    if order == gguf.GGUFEndian.BIG:
        for at in SWAPPED[kind.name]:
            stored[:, at : at + 2] = stored[:, at : at + 2][:, ::-1]
    bytes_shape = (*shape[:-1], shape[-1] // block * size)
    return data.reshape(bytes_shape), stored.reshape(bytes_shape), shape


def dequantized(data, kind):
    try:
        return gguf.quants.dequantize(data, kind)
    except NotImplementedError:
        return None


def written(rng, path, order):
    """Writes a file; its tensors (shape, SHA-256 of the values, of the dense ones) and metadata."""
    writer = gguf.GGUFWriter(path, "test", endianess=order)
    if rng.random() < 0.5:
        writer.add_custom_alignment(rng.choice([8, 16, 64, 256, 4096]))
    pairs, tensors = metadata(rng, writer), {}
    is_big = order == gguf.GGUFEndian.BIG
    kinds = [kind for kind in BLOCKS if not is_big or kind.name in SWAPPED]
    for at in range(rng.randrange(0, 9)):
        name = f"blk.{at}.{rng.choice(['attn', 'ffn', 'β', 'norm'])}.weight"
        if rng.random() < 0.6:
            kind = rng.choice(kinds)
            data, stored, shape = blocks(rng, kind, order)
            # gguf-py turns the bytes of what it is not told about.
            writer.add_tensor(name, stored, raw_dtype=kind, tensor_endianess=order)
            dense = dequantized(data, kind)
            tensors[name] = (shape, sha256(stored), None if dense is None else sha256(dense.astype("<f4").tobytes()))
        else:
            kind = rng.choice(list(PLAIN))
            array = np.frombuffer(rng.randbytes(64 * 8), dtype=PLAIN[kind])[: math.prod(shape := shape_of(rng)[-2:])].reshape(shape)
            writer.add_tensor(name, array)
            # One dtype of one byte: in big-endian files the bytes of an element are turned.
            sum_of = sha256(array.astype(array.dtype.newbyteorder("<")).tobytes())
            tensors[name] = (shape, sum_of, None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return pairs, tensors


def same(found, wanted):
    if isinstance(found, dict) and "$float" in found:
        found = float(found["$float"])
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(same, found, wanted))
    return found == wanted


def check(program, folder, seed):
    rng = random.Random(seed)
    order = rng.choice([gguf.GGUFEndian.LITTLE, gguf.GGUFEndian.LITTLE, gguf.GGUFEndian.BIG])
    path, ours, back = (folder / f"{seed}.{ending}" for ending in ("gguf", "zt", "back.gguf"))
    pairs, tensors = written(rng, path, order)

    def require(holds, what):
        if not holds:
            sys.exit(f"round {seed}: {what}")

    listed = json.loads(zt(program, "ls", "--json", path))
    hashes = json.loads(zt(program, "hash", "--dense", "--json", path))["objects"]
    require({o["name"] for o in listed["objects"]} == set(tensors), "other tensors")
    for key, value in pairs.items():
        require(same(listed["attributes"].get(key), value), f"{key} is {listed['attributes'].get(key)}, not {value}")
    for entry in listed["objects"]:
        shape, stored, dense = tensors[entry["name"]]
        found = hashes[entry["name"]]
        require(tuple(entry["shape"]) == tuple(shape), f"{entry['name']}: shape {entry['shape']}")
        require(found["components"]["data"]["sha256"] == stored, f"{entry['name']}: other bytes")
        require(dense is None or found["dense"]["sha256"] == dense, f"{entry['name']}: other values")

    zt(program, "verify", path)
    zt(program, "convert", path, ours)
    zt(program, "convert", ours, back)
    if order == gguf.GGUFEndian.LITTLE:
        require(back.read_bytes() == path.read_bytes(), "it comes back as another file")
    theirs = gguf.GGUFReader(back)
    require([t.name for t in theirs.tensors] == list(tensors), "gguf-py reads other tensors")
    for tensor in theirs.tensors:
        shape, stored, dense = tensors[tensor.name]
        require(tuple(reversed(tensor.shape.tolist())) == tuple(shape), f"{tensor.name}: gguf-py reads another shape")
        if tensor.tensor_type.name in PLAIN:
            require(sha256(tensor.data.tobytes()) == stored, f"{tensor.name}: gguf-py reads other bytes")
        elif dense is not None:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            require(sha256(values.astype("<f4").tobytes()) == dense, f"{tensor.name}: gguf-py reads other values")
    for key, value in pairs.items():
        require(same(theirs.fields[key].contents(), value), f"{key}: gguf-py reads {theirs.fields[key].contents()}, not {value}")
    for file in (path, ours, back):
        file.unlink()


def main():
    program, rounds = pathlib.Path(sys.argv[1]).resolve(), int((sys.argv[2:] or ["60"])[0])
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(rounds):
            check(program, pathlib.Path(folder), seed)
    print(f"gguf-py: {rounds} files both ways")


if __name__ == "__main__":
    main()
