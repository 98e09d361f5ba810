"""Reads files that zt wrote with the installed release of `ztensor`, and with `safetensors`.

usage: read_with_ztensor.py FOLDER

Every NAME.zt and NAME.safetensors of FOLDER has its truth beside it in NAME.json, which comes from
the values that were handed to zt's writer and not from any reader. Each object must be there, no
other may be, and each component must have the bytes and, where the truth lists them, the values.
One line per file, and a line for each object that differs. The exit code is 0 only if at least one
object was compared and every object agreed.
"""

import hashlib
import json
import math
import sys
from importlib.metadata import version
from pathlib import Path

import ml_dtypes
import numpy as np
import safetensors
import ztensor

RELEASE = tuple(int(part) for part in version("ztensor").split("."))

NUMPY = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "u64": np.uint64,
    "u32": np.uint32,
    "u16": np.uint16,
    "u8": np.uint8,
    "bool": np.bool_,
}


class Miss(Exception):
    """What was read is not what was written."""


class Skip(Exception):
    """This release cannot be asked about this object."""


class Current:
    """ztensor 1.2: every object format, logical types and attributes."""

    def __init__(self, path, _attributes):
        self.reader = ztensor.Reader(str(path))

    def names(self):
        return self.reader.keys()

    def check(self, name, truth):
        """Compares what the reader says about an object; gives its components as flat arrays."""
        metadata = self.reader.metadata(name)
        equal("shape", list(metadata.shape), truth["shape"])
        equal("format", metadata.format, truth["format"])
        if not same(metadata.attributes, plain(truth["attributes"])):
            raise Miss(f"attributes {metadata.attributes!r}, expected {truth['attributes']!r}")
        stored = truth["components"]
        equal("roles", sorted(metadata.components), sorted(stored))
        for role, component in stored.items():
            found = metadata.components[role]
            equal(f"{role}: dtype", np.dtype(found["dtype"]), np.dtype(NUMPY[component["dtype"]]))
            equal(f"{role}: logical type", found["type"], component["type"])

        if any((component["type"] or "").startswith("complex") for component in stored.values()):
            # `read` counts storage elements where it should count values, and cannot shape them.
            raw = self.reader._inner._read_component_raw
            return {role: raw(name, role)[0].view(NUMPY[stored[role]["dtype"]]) for role in stored}
        tensor = self.reader.read(name)
        if truth["format"] == "dense":
            array = self.reader.read_numpy(name)
            # Its NumPy calls give a scalar as one element.
            equal("shape of read_numpy", list(array.shape), truth["shape"] or [1])
            equal("bytes of read_numpy", array.tobytes(), tensor.components["data"].tobytes())
        return tensor.components


class Earlier:
    """ztensor 1.1: dense and sparse objects; neither logical types nor attributes."""

    def __init__(self, path, attributes):
        if not all(isinstance(value, str) for value in (attributes or {}).values()):
            raise Skip("attributes of files were strings then")
        self.reader = ztensor.Reader(str(path))

    def names(self):
        return self.reader.tensor_names

    def check(self, name, truth):
        """As in `Current`, but roles are asked for, not listed. Every read verifies the digest."""
        kind = truth["format"]
        if kind not in ("dense", "sparse_csr", "sparse_coo"):
            raise Skip("a format that came later")
        metadata = self.reader.metadata(name)
        equal("shape", list(metadata.shape), truth["shape"])
        equal("format", metadata.layout, kind)
        primary = truth["components"]["data" if kind == "dense" else "values"]
        equal("dtype", metadata.dtype, np.dtype(NUMPY[primary["dtype"]]))

        components = {}
        for role, component in truth["components"].items():
            dtype = NUMPY[component["dtype"]]
            array, view = self.reader._read_component(name, role, lambda: dtype)
            components[role] = array.copy()
            del view  # what `array` points into
        if primary["type"] is None and kind == "dense":
            array = self.reader.read_tensor(name)
            equal("shape of read_tensor", list(array.shape), truth["shape"])
            equal("bytes of read_tensor", array.tobytes(), components["data"].tobytes())
        elif "dense" in truth and len(truth["shape"]) == 2:
            matrix = self.reader.read_tensor(name).toarray()
            equal("dense value by SciPy", matrix.ravel().tolist(), truth["dense"])
        return components


class Safetensors:
    """The official library on a file that zt exported; one dense component per tensor."""

    # F8_E5M2 and F8_E4M3 are the library's names of what zTensor calls f8_e5m2 and f8_e4m3fn.
    LOGICAL = {"f8_e4m3fn": "F8_E4M3", "f8_e5m2": "F8_E5M2", "complex64": "C64"}

    def __init__(self, path, _attributes):
        self.tensors = dict(safetensors.deserialize(path.read_bytes()))

    def names(self):
        return list(self.tensors)

    def check(self, name, truth):
        tensor = self.tensors[name]
        component = truth["components"]["data"]
        equal("shape", list(tensor["shape"]), truth["shape"])
        dtype = self.LOGICAL.get(component["type"], component["dtype"].upper())
        equal("dtype", tensor["dtype"], dtype)
        return {"data": np.frombuffer(tensor["data"], NUMPY[component["dtype"]])}


def equal(what, found, expected):
    if found != expected:
        raise Miss(f"{what} is {found!r}, expected {expected!r}")


def same(found, expected):
    """Equality that tells -0.0 from 0.0 and True from 1, and in which NaN is NaN."""
    if isinstance(expected, float) and isinstance(found, float):
        if math.isnan(expected):
            return math.isnan(found)
        return found == expected and math.copysign(1, found) == math.copysign(1, expected)
    if isinstance(expected, list) and isinstance(found, (list, tuple)):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = expected.keys()
        return found.keys() == keys and all(same(found[key], expected[key]) for key in keys)
    return type(found) is type(expected) and found == expected


def plain(value):
    """A value of the truth as Python has it: JSON says neither bytes nor NaN."""
    if isinstance(value, dict):
        if value.keys() == {"$bytes_hex"}:
            return bytes.fromhex(value["$bytes_hex"])
        if value.keys() == {"$float"}:
            return float(value["$float"])
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def compare_values(role, array, expected):
    """Compares elements, not bytes: a wrong reading of right bytes differs here."""
    found = array.ravel().tolist()
    if len(found) != len(expected):
        raise Miss(f"{role}: {len(found)} elements, expected {len(expected)}")
    for position, (one, other) in enumerate(zip(found, expected)):
        if isinstance(one, float) or isinstance(other, str):
            one, other = float(one), float(other)
        if not same(one, other):
            raise Miss(f"{role}: element {position} is {one!r}, expected {other!r}")


def filled_in(truth, components):
    """The dense value of a sparse object, flat, from what the reader gave and nothing else."""
    dense = [0] * math.prod(truth["shape"])
    values = components["values"].tolist()
    if truth["format"] == "sparse_csr":
        columns = truth["shape"][1]
        starts = components["indptr"].tolist()
        indices = components["indices"].tolist()
        for row, (start, end) in enumerate(zip(starts, starts[1:])):
            for position in range(start, end):
                dense[row * columns + indices[position]] += values[position]
    else:
        coordinates = components["coords"].reshape(len(truth["shape"]), len(values))
        for position, value in enumerate(values):
            place = coordinates[:, position].astype(int)
            dense[np.ravel_multi_index(place, truth["shape"])] += value
    return dense


def compare_object(reader, name, truth):
    """Raises `Miss` or `Skip`; otherwise gives the number of bytes that agreed."""
    components = reader.check(name, truth)
    byte_len = 0
    for role, expected in truth["components"].items():
        array = components[role]
        stored = array.tobytes()
        equal(f"{role}: length in bytes", len(stored), expected["nbytes"])
        if "values" in expected:
            compare_values(role, array, expected["values"])
        equal(f"{role}: SHA-256", hashlib.sha256(stored).hexdigest(), expected["sha256"])
        byte_len += len(stored)
    if "dense" in truth and truth["format"] != "dense":
        equal("dense value", filled_in(truth, components), truth["dense"])
    return byte_len


def compare_file(path):
    """Prints a line, and one for each object that differs; gives how many agree and differ."""
    truth = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    objects = truth["objects"]
    agreeing = byte_len = 0
    misses = []
    skips = []
    try:
        reader = reader_for(path)(path, truth["attributes"])
        equal("names", sorted(reader.names()), sorted(objects))
    except Skip as reason:
        print(f"  skip {path.name}: {reason}")
        return 0, 0
    except Exception as error:
        misses.append(f"{type(error).__name__}: {error}")
        objects = {}
    for name, expected in objects.items():
        try:
            byte_len += compare_object(reader, name, expected)
            agreeing += 1
        except Skip as reason:
            skips.append(str(reason))
        except Exception as error:  # whatever the judge raises is a verdict
            misses.append(f"{name!r}: {type(error).__name__}: {error}")
    note = f" ({len(skips)} skipped: {', '.join(sorted(set(skips)))})" if skips else ""
    verdict = "MISS" if misses else "ok  "
    print(f"  {verdict} {path.name}: {agreeing} objects, {byte_len} bytes{note}")
    for miss in misses:
        print(f"       {miss}")
    return agreeing, len(misses)


def reader_for(path):
    if path.suffix == ".safetensors":
        return Safetensors
    return Current if RELEASE >= (1, 2) else Earlier


def main(folder):
    print(f"ztensor {version('ztensor')}, safetensors {version('safetensors')}")
    files = sorted([*folder.glob("*.zt"), *folder.glob("*.safetensors")])
    results = [compare_file(path) for path in files]
    agreeing = sum(one for one, _ in results)
    differing = sum(other for _, other in results)
    print(f"  {len(files)} files: {agreeing} objects agree, {differing} differ")
    return 0 if agreeing and not differing else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
