#!/usr/bin/env python3
"""Writes the files of this folder and their truths: `make.py`, with NumPy and without torch.

Python's own pickle, zipfile and tarfile write the files, in the layouts of torch.save. Modules made here stand for torch and for
the packages whose classes real checkpoints have. Truths are computed from the arrays that are written.
"""
import argparse, collections, hashlib, io, json, pathlib, pickle, struct, sys, tarfile, types, zipfile

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent
CLASSES = {np.dtype("f4"): "FloatStorage", np.dtype("f8"): "DoubleStorage", np.dtype("i8"): "LongStorage", np.dtype("u1"): "ByteStorage"}
NAMES = {"f4": "f32", "f8": "f64", "i8": "i64", "i4": "i32", "i2": "i16", "u1": "u8", "b1": "bool"}


def module(name):
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        sys.modules.setdefault(path, types.ModuleType(path))
    return sys.modules[name]


def foreign(where, name, base=object):
    """A class or a function of a package that is not here."""
    made = type(name, (base,), {"__module__": where})
    setattr(module(where), name, made)
    return made


def rebuild(*arguments):
    raise NotImplementedError


rebuild.__module__, rebuild.__name__, rebuild.__qualname__ = "torch._utils", "_rebuild_tensor_v2", "_rebuild_tensor_v2"
module("torch._utils")._rebuild_tensor_v2 = rebuild
STORAGES = {dtype: foreign("torch", name) for dtype, name in CLASSES.items()}


class Tensor:
    def __init__(self, array):
        self.array = np.ascontiguousarray(array)

    def __reduce__(self):
        strides = tuple(stride // self.array.itemsize for stride in self.array.strides)
        return rebuild, (Storage(self.array), 0, self.array.shape, strides, False, collections.OrderedDict())


class Storage:
    def __init__(self, array):
        self.array = array


class Pickler(pickle._Pickler):
    """Pickles by torch.save: storages are outside."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.storages = []

    def persistent_id(self, value):
        if isinstance(value, Storage):
            self.storages.append(value.array)
            return ("storage", STORAGES[value.array.dtype], str(len(self.storages) - 1), "cpu", value.array.size)
        return None


def save(path, value):
    stream = io.BytesIO()
    pickler = Pickler(stream, 2)
    pickler.dump(value)
    with zipfile.ZipFile(path, "w") as archive:
        members = {"data.pkl": stream.getvalue(), "byteorder": b"little", "version": b"3\n"}
        members |= {f"data/{at}": array.tobytes() for at, array in enumerate(pickler.storages)}
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(f"archive/{name}"), content)


def truth(array):
    array = np.asarray(array)
    little = array.astype(array.dtype.newbyteorder("<"))
    return {"shape": list(array.shape), "dtype": NAMES[array.dtype.str[1:]], "sha256": hashlib.sha256(np.ascontiguousarray(little).tobytes()).hexdigest()}


def case(name, about, write, objects, attributes={}, warnings=[]):
    write(FOLDER / f"{name}.pt")
    said = {"about": about, "kind": "pt", "expect": "read", "objects": {key: truth(array) for key, array in objects.items()}}
    said |= {"refused": {}, "attributes": attributes, "warnings": warnings}
    (FOLDER / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")


def saved(value):
    return lambda path: save(path, value)


weight, bias, moment = np.arange(6, dtype="f4").reshape(2, 3), np.arange(2, dtype="f4"), np.arange(6, dtype="f4") * 0.5

# As PyTorch Lightning writes a checkpoint, with the configuration of a user in it.
AttributeDict = foreign("lightning_fabric.utilities.data", "AttributeDict", dict)
ListConfig, Node = foreign("omegaconf.listconfig", "ListConfig"), foreign("omegaconf.nodes", "AnyNode")
parent = ListConfig()
parent._content, parent._metadata = [Node(), Node()], collections.defaultdict(dict)
for at, node in enumerate(parent._content):
    node.__dict__.update(_val=at, _parent=parent)
hyper = AttributeDict(rate=0.5, layers=parent)
state = {"epoch": 3, "state_dict": collections.OrderedDict(weight=Tensor(weight), bias=Tensor(bias)), "hyper_parameters": hyper,
         "optimizer_states": [{"state": {0: {"step": 7, "exp_avg": Tensor(moment)}}, "param_groups": [{"lr": 0.5, "params": [0]}]}]}
case("lightning", "a checkpoint of PyTorch Lightning whose configuration holds omegaconf's lists, which know their parents", saved(state),
     {"state_dict.weight": weight, "state_dict.bias": bias, "optimizer_states.0.state.0.exp_avg": moment},
     {"epoch": 3, "hyper_parameters.rate": 0.5, "optimizer_states.0.state.0.step": 7},
     ["pickle-global"] * 3 + ["unknown-class"] * 2)

# A whole model, as torch.save(model) writes it.
Model, Linear = foreign("my_package.model", "Model"), foreign("torch.nn.modules.linear", "Linear")
linear, model = Linear(), Model()
linear.__dict__.update(training=True, _parameters=collections.OrderedDict(weight=Tensor(weight), bias=Tensor(bias)), _modules={})
model.__dict__.update(training=True, _modules=collections.OrderedDict(fc=linear), again=linear)
case("whole_model", "a whole model, in which a module is met twice", saved(model),
     {"_modules.fc._parameters.weight": weight, "_modules.fc._parameters.bias": bias}, {}, ["pickle-global", "pickle-global", "unknown-class"])

# An object of C++, an Enum, and a function's result, beside tensors.
ScriptObject, Mode = foreign("torch", "ScriptObject"), foreign("my_package.modes", "Mode")


class Called:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


opaque, mode = ScriptObject(), Called(Mode, 2)
opaque.cache = {"grid": Tensor(moment)}
case("script_object", "a ScriptObject that holds a tensor, an Enum, and a dict by Enums", saved({"w": Tensor(weight), "object": opaque, "mode": mode}),
     {"w": weight, "object.cache.grid": moment}, {}, ["pickle-global"] * 2 + ["unknown-class"] * 2)

# NumPy's values.
values = {"w": Tensor(weight), "mean": np.float64(0.75), "big": np.arange(3, dtype=">i2"), "columns": np.asfortranarray(weight),
          "name": np.str_("a name"), "words": np.array(["a", "bc"]), "mixed": np.array([weight, None], dtype=object)}
case("numpy_values", "arrays of NumPy in either byte order and any order of elements, of texts and of objects", saved(values),
     {"w": weight, "mean": values["mean"], "big": values["big"], "columns": weight, "mixed.0": weight}, {"name": "a name", "mixed.1": None},
     ["unknown-class", "unknown-class"])

# The options of a training, as transformers wrote them.
case("namespace", "argparse.Namespace as the root", saved(argparse.Namespace(lr=0.5, w=Tensor(bias), path="a/b")), {"w": bias}, {"lr": 0.5, "path": "a/b"})


# The layout before 0.1.10.
class Address:
    def __init__(self, key):
        self.key = key


class OldPickler(pickle._Pickler):
    def persistent_id(self, value):
        return str(value.key) if isinstance(value, Address) else None


def old(root, tensors, storages, views):
    """`tensors`: key, storage's key, sizes, strides, offset; `storages`: key, array; `views`: as torch writes them."""

    def write(path):
        with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as archive:
            def add(name, content):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))

            def pickled(value):
                return pickle.dumps(value, 2)

            add("sys_info", pickled({"protocol_version": 1000, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}))
            stream = io.BytesIO()
            OldPickler(stream, 2).dump(root)
            add("pickle", stream.getvalue())
            content = pickled(len(tensors))
            for key, storage, sizes, strides, offset in tensors:
                rank = len(sizes)
                content += pickled((key, storage, STORAGES[np.dtype("f4")]))
                content += struct.pack("<ii", rank, 0) + struct.pack(f"<{2 * rank + 1}q", *sizes, *strides, offset)
            add("tensors", content)
            content = pickled(len(storages))
            for key, array in storages:
                content += pickled((key, "cpu", STORAGES[array.dtype])) + struct.pack("<q", array.size) + array.tobytes()
            add("storages", content + pickled(views))

    return write


whole = np.arange(10, dtype="f4")
case("tar", "a tar archive of torch before 0.1.10: a transposed tensor, one in a part of a storage, and tied ones",
     old(collections.OrderedDict(w=Address(11), t=Address(12), part=Address(13), again=Address(11), epoch=4),
         [(11, 1, (2, 3), (3, 1), 0), (12, 1, (3, 2), (1, 3), 0), (13, 2, (2,), (1,), 1)], [(1, whole), (3, bias)], [(2, 1, 6, 4)]),
     {"w": weight, "t": weight.T, "part": whole[7:9], "again": weight}, {"epoch": 4})
