#!/usr/bin/env python3
"""Writes the files of this folder and their truths: `make.py`, with torch 2.15.0 and NumPy 2.4.6 installed.

Truths are computed from what is pickled, with NumPy and torch; no reader of this project is asked. The files of torch differ in
two runs: the keys of their storages are addresses. The modules of NumPy 1 are the only edit of a pickle.
"""
import collections, datetime, hashlib, io, json, math, pathlib, pickle

import numpy as np
import torch

FOLDER = pathlib.Path(__file__).resolve().parent
NAMES = {"float64": "f64", "float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
         "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool", "complex64": ("f32", "complex64"),
         "complex128": ("f64", "complex128"), "bfloat16": "bf16"}


def truth(value):
    """Shape, type, and the hash of the little-endian bytes in row-major order."""
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg().contiguous()
        name, shape, data = str(value.dtype).removeprefix("torch."), list(value.shape), bytes(value.reshape(-1).view(torch.uint8).tolist())
    else:
        value = np.asarray(value)
        name, shape = value.dtype.name, list(value.shape)
        data = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<")).tobytes()
    dtype, *logical = NAMES[name] if isinstance(NAMES[name], tuple) else (NAMES[name],)
    return {"shape": shape, "dtype": dtype, "sha256": hashlib.sha256(data).hexdigest()} | ({"type": logical[0]} if logical else {})


def case(name, about, data, objects, attributes={}, refused={}, expect=None, warnings=None):
    (FOLDER / f"{name}.pkl").write_bytes(data)
    said = {"about": about, "kind": "pkl", "expect": expect or ("partial" if refused else "read"),
            "objects": {key: truth(value) for key, value in objects.items()}, "refused": refused, "attributes": attributes}
    said |= {"warnings": warnings} if warnings is not None else {}
    (FOLDER / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")


def numpy_1(data):
    """As NumPy 1 pickles: the module has a shorter name, in front of which is its length."""
    for before in (b"\x8c\x16numpy._core.multiarray", b"\x8c\x13numpy._core.numeric"):
        after = bytes([0x8C, before[1] - 1]) + before[2:].replace(b"._core", b".core")
        grown, data = data.count(before), data.replace(before, after)
        if data[2] == 0x95:
            data = data[:3] + (int.from_bytes(data[3:11], "little") - grown).to_bytes(8, "little") + data[11:]
    return data.replace(b"cnumpy._core.", b"cnumpy.core.")


random = np.random.default_rng(3)
base = random.standard_normal((3, 4))
arrays = {"f8": base, "f4": base.astype("f4"), "f2": base.astype("f2"), "i8": np.arange(-3, 3), "u2": np.arange(5, dtype="u2"),
          "bool": np.array([True, False]), "c8": (base + 1j).astype("c8"), "c16": base[0] - 2j, "big": base.astype(">f4"),
          "big_int": np.arange(4, dtype=">i8"), "fortran": np.asfortranarray(base), "fortran_big": np.asfortranarray(base.astype(">f4")),
          "transposed": base.T, "strided": base[:, ::2], "reversed": base[::-1], "scalar_array": np.array(7.5), "empty": np.empty((0, 3), "f4"),
          "scalar": np.float64(2.5), "int_scalar": np.int16(-4), "long": np.arange(2048, dtype="i4").reshape(32, 64),
          "long_fortran": np.asfortranarray(np.arange(2048, dtype="f4").reshape(32, 64)), "long_big": np.arange(700, dtype=">u4")}
nested = arrays | {"l": [arrays["f4"], (arrays["i8"], {"deep": arrays["long"]})], "name": "a text", "lr": 0.5, "steps": 3, "none": None}
inner = arrays | {"l.0": arrays["f4"], "l.1.0": arrays["i8"], "l.1.1.deep": arrays["long"]}
attributes = {"name": "a text", "lr": 0.5, "steps": 3, "none": None}
for protocol in range(6):
    data = pickle.dumps(nested, protocol)
    case(f"numpy2_protocol_{protocol}", f"pickle.dump of a dict of arrays, protocol {protocol}", data, inner, attributes, warnings=[])
    case(f"numpy1_protocol_{protocol}", f"the same by NumPy 1", numpy_1(data), inner, attributes, warnings=[])

weights = {"w": torch.arange(6.0).reshape(2, 3), "half": torch.arange(4).half(), "bf16": torch.arange(4).bfloat16(), "t": torch.arange(6).reshape(2, 3).t(),
           "long": torch.arange(1024.0), "parameter": torch.nn.Parameter(torch.ones(2)), "bool": torch.tensor([True, False]),
           "conj": torch.view_as_complex(torch.arange(4.0).reshape(2, 2)).conj()}
weights["neg"], weights["view"] = weights["conj"].imag, weights["long"][10:20]
for protocol in (2, 3, 4, 5):
    case(f"torch_protocol_{protocol}", f"pickle.dump of a dict of tensors of torch, protocol {protocol}", pickle.dumps(weights, protocol), weights, warnings=[])

module = torch.nn.Linear(3, 2)
case("module", "pickle.dump of a module of torch: a class that is left out, and its tensors", pickle.dumps(module, 4),
     {f"_parameters.{name}": value for name, value in module.named_parameters()}, warnings=["pickle-global", "unknown-class"])
case("ordered", "an OrderedDict, a list and a tuple", pickle.dumps(collections.OrderedDict(a=[base], b=(base[0],)), 4), {"a.0": base, "b.0": base[0]}, warnings=[])
case("ordered_protocol_0", "the same in protocol 0", pickle.dumps(collections.OrderedDict(a=[base], b=(base[0],)), 0), {"a.0": base, "b.0": base[0]}, warnings=[])
case("paddle", "as paddle.save lays out the state of a layer", pickle.dumps({"linear.weight": base.astype("f4"), "StructuredToParameterName@@": {"linear.weight": "linear_0.w_0"}}, 4),
     {"linear.weight": base.astype("f4")}, {"StructuredToParameterName@@.linear.weight": "linear_0.w_0"}, warnings=[])
case("bytes", "bytes and bytearrays, long and short", pickle.dumps({"w": base, "short": b"ab", "more": bytearray(b"cd")}, 5), {"w": base}, warnings=[])
case("others", "arrays of other values are left out", pickle.dumps({"w": base, "texts": np.array(["a", "b"]), "dates": np.array(["2020-01-01"], "M8[D]"),
     "records": np.zeros(2, [("a", "f4")]), "masked": np.ma.masked_array([1.0, 2.0], [True, False])}, 4), {"w": base},
     warnings=["pickle-global"] * 2 + ["unknown-class"] * 4)


class Runs:
    def __reduce__(self):
        import os
        return os.system, ("false",)


class Evaluates:
    def __reduce__(self):
        return eval, ("1",)


case("bad_code", "a call of os.system and no data", pickle.dumps(Runs(), 4), {}, expect="reject")
case("bad_code_list", "calls of eval in a list, and no data", pickle.dumps([Evaluates(), Evaluates()], 2), {}, expect="reject")
case("code_beside", "a call of os.system beside an array: left out", pickle.dumps({"w": base, "x": Runs()}, 4), {"w": base}, warnings=["pickle-danger", "unknown-class"])
whole = pickle.dumps({"w": np.arange(4096.0)}, 4)
case("bad_cut", "cut within the bytes of an array", whole[:20000], {}, expect="reject")
case("bad_cut_end", "without its last instruction", whole[:-1], {}, expect="reject")
stream = pickle.dumps({"w": torch.ones(3)}, 4)
case("bad_stream", "a storage in a stream of torch whose magic is wrong", stream.replace(b"\x6c\xfc\x9c\x46", b"\x6c\xfc\x9c\x47"), {}, expect="reject")
case("bad_stream_code", "os.system in the stream of a storage", stream.replace(b"ctorch\nFloatStorage\n", b"cos\nsystemFloatStora\n"), {}, expect="reject")

# joblib 1.5 writes the bytes of an array behind the state of its wrapper, aligned to 16.
try:
    import joblib

    out = io.BytesIO()
    joblib.dump({"w": base}, out)
    case("bad_joblib", "joblib.dump of an array: its bytes are between the instructions", out.getvalue(), {}, expect="reject")
except ImportError:
    pass
