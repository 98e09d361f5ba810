#!/usr/bin/env python3
"""Holds `zt` against onnx: random models. Run by `cargo xtask interop`.

usage: onnx_read.py PATH/TO/zt [ROUNDS]

Every round writes a model with onnx: initializers of every type with elements here, in `raw_data`, in the field of their type or in
files beside the model; sparse ones, with either kind of indices; constants of tensors and of numbers, tensors of the branches of an `If`
and of functions. `zt` has to list all of them, and hash the values that the arrays had.
"""

import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = [
    "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "BOOL", "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64",
    "COMPLEX128", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
]  # fmt: skip
# Of unsigned integers as wide as the elements, in the field for 32 bits.
BITS = {1: np.uint8, 2: np.uint16}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def array_of(rng, kind):
    dtype = helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(kind))
    largest = rng.choice([3, 6, 40])
    shape = tuple(rng.randrange(0 if rng.random() < 0.1 else 1, largest) for _ in range(rng.randrange(0, 4)))
    data = rng.randbytes(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
    array = np.frombuffer(bytes(b & 1 for b in data) if kind == "BOOL" else data, dtype).reshape(shape)
    # A NaN that passes through Python's floats is another one.
    return np.nan_to_num(array) if array.dtype.kind in "fc" and array.dtype.itemsize >= 4 else array


def typed(tensor, kind, array):
    """Puts values into the field of their type."""
    flat = array.reshape(-1)
    match kind:
        case "FLOAT":
            tensor.float_data.extend(flat.tolist())
        case "DOUBLE":
            tensor.double_data.extend(flat.tolist())
        case "COMPLEX64":
            tensor.float_data.extend(flat.view(np.float32).tolist())
        case "COMPLEX128":
            tensor.double_data.extend(flat.view(np.float64).tolist())
        case "INT64":
            tensor.int64_data.extend(flat.tolist())
        case "UINT32" | "UINT64":
            tensor.uint64_data.extend(flat.tolist())
        case "BOOL" | "INT8" | "INT16" | "INT32":
            tensor.int32_data.extend(flat.astype(np.int32).tolist())
        case _:
            tensor.int32_data.extend(flat.view(BITS[flat.dtype.itemsize]).tolist())


def tensor_of(rng, name, truth, called=None):
    kind = rng.choice(TYPES)
    array = array_of(rng, kind)
    tensor = TensorProto(name=name, dims=array.shape, data_type=TensorProto.DataType.Value(kind))
    if rng.random() < 0.5:
        typed(tensor, kind, array)
    else:
        tensor.raw_data = array.tobytes()
    truth[called or name] = (array.shape, sha256(array.tobytes()))
    return tensor


def sparse_of(rng, name, truth):
    shape = tuple(rng.randrange(1, 6) for _ in range(rng.randrange(1, 4)))
    size = int(np.prod(shape))
    indices = np.array(sorted(rng.sample(range(size), rng.randrange(0, size + 1))), np.int64)
    values = np.array([rng.gauss(0, 1) for _ in indices], np.float32)
    dense = np.zeros(size, np.float32)
    dense[indices] = values
    truth[name] = (shape, sha256(dense.tobytes()))
    if rng.random() < 0.5:
        indices = np.stack(np.unravel_index(indices, shape), 1).astype(np.int64)
    return helper.make_sparse_tensor(numpy_helper.from_array(values, name), numpy_helper.from_array(indices), shape)


def numbers_of(rng, truth):
    """Constants by an attribute of their own kind."""
    count = rng.randrange(0, 100)
    floats = np.array([rng.gauss(0, 1) for _ in range(count)], np.float32)
    ints = np.array([rng.randrange(-(2**63), 2**63) for _ in range(count)], np.int64)
    values = {"value_floats": floats, "value_ints": ints, "value_float": np.float32(rng.choice([0, 0.5])), "value_int": np.int64(-count)}
    for key, value in values.items():
        truth[key] = (value.shape, sha256(value.tobytes()))
        # In a model, nothing is written of a list without members but its type.
        yield helper.make_node("Constant", [], [key], **{key: value.tolist()}) if value.size else of_none(key)


def of_none(key):
    kind = {"value_floats": onnx.AttributeProto.FLOATS, "value_ints": onnx.AttributeProto.INTS}[key]
    node = helper.make_node("Constant", [], [key])
    node.attribute.append(onnx.AttributeProto(name=key, type=kind))
    return node


def model_of(rng, truth):
    tensors = [tensor_of(rng, f"w{at}.{rng.choice(['attn', 'β', 'a/b'])}", truth) for at in range(rng.randrange(0, 12))]
    sparse = [sparse_of(rng, f"s{at}", truth) for at in range(rng.randrange(0, 3))]
    constants = [helper.make_node("Constant", [], ["k"], value=tensor_of(rng, "other", truth, "k")), *numbers_of(rng, truth)]
    branches = {}
    for key in ("then_branch", "else_branch"):
        inner = helper.make_node("Constant", [], ["y"], value=tensor_of(rng, "", truth, f"if.{key}.y"))
        weight = tensor_of(rng, "w", truth, f"if.{key}.w")
        branches[key] = helper.make_graph([inner], key, [], [], [weight])
    condition = helper.make_node("If", ["c"], ["z"], name="if", **branches)
    body = helper.make_node("Constant", [], ["q"], value=tensor_of(rng, "", truth, "f.q"))
    function = helper.make_function("local", "f", [], ["q"], [body], [helper.make_opsetid("", 17)])
    graph = helper.make_graph([*constants, condition], "main", [], [], tensors, sparse_initializer=sparse)
    return helper.make_model(graph, functions=[function], producer_name="p" * rng.randrange(0, 300))


def check(program, folder, seed):
    rng, truth = random.Random(seed), {}
    model, path = model_of(rng, truth), folder / "model.onnx"
    if rng.random() < 0.5:
        in_one = rng.random() < 0.5
        options = {"all_tensors_to_one_file": in_one, "location": "model.data" if in_one else None, "convert_attribute": rng.random() < 0.5}
        onnx.save_model(model, path, save_as_external_data=True, size_threshold=rng.choice([0, 64]), **options)
    else:
        onnx.save_model(model, path)

    for command in (["verify"], ["ls", "--json"], ["hash", "--dense", "--json"]):
        done = subprocess.run([program, *command, path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"round {seed}: zt {command[0]} exits {done.returncode}: {done.stdout}{done.stderr}")
        if command[0] == "ls":
            listed = {o["name"]: o for o in json.loads(done.stdout)["objects"]}
    hashes = json.loads(done.stdout)["objects"]
    if set(listed) != set(truth):
        sys.exit(f"round {seed}: other tensors: {sorted(set(listed) ^ set(truth))}")
    for name, (shape, values) in truth.items():
        found = hashes[name]["dense"]["sha256"]
        if tuple(listed[name]["shape"]) != shape or found != values:
            sys.exit(f"round {seed}: {name}: {listed[name]}, and it is {shape}")


def main():
    program, rounds = pathlib.Path(sys.argv[1]).resolve(), int((sys.argv[2:] or ["60"])[0])
    for seed in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            check(program, pathlib.Path(folder), seed)
    print(f"onnx: {rounds} models")


if __name__ == "__main__":
    main()
