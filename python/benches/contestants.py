"""What each library does in a row of the benchmark, as its documentation says to do it.

A method that a library lacks is left out, and its cell in the table is empty. Each method that loads touches
every page of what it loaded, and returns the sum of the touched bytes.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np


def touch(arrays: Any) -> int:
    """Reads a byte of each page."""
    return sum(int(array.reshape(-1).view("u1")[::4096].sum()) for array in arrays)


def touch_torch(tensors: Any) -> int:
    """Reads a byte of each page of tensors of torch."""
    return touch(tensor.numpy() for tensor in tensors)


def settle(path: str) -> None:
    """Makes a file and its name durable."""
    for name in (path, os.path.dirname(path)):
        descriptor = os.open(name, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


class Contestant:
    """A library. `modules` are imported before anything is measured."""

    name = ""
    modules: tuple[str, ...] = ()
    extension = "zt"

    def __init__(self) -> None:
        for module in self.modules:
            importlib.import_module(module)

    def prepare(self, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
        """The values that the library saves."""
        return tensors

    def save(self, tensors: dict[str, Any], path: str) -> None:
        raise NotImplementedError

    def save_durable(self, tensors: dict[str, Any], path: str) -> None:
        self.save(tensors, path)
        settle(path)

    def load(self, path: str, name: str) -> int:
        raise NotImplementedError

    def tied(self, tensors: dict[str, Any], path: str) -> None:
        """Saves each value under two names."""
        self.save({**tensors, **{f"tied.{name}": value for name, value in tensors.items()}}, path)


class Zt(Contestant):
    name = "zt"
    modules = ("zt.numpy",)

    def save(self, tensors: dict[str, Any], path: str) -> None:
        import zt

        zt.numpy.save_file(tensors, path, digest=None, sync=False)

    def save_digests(self, tensors: dict[str, Any], path: str) -> None:
        import zt

        zt.numpy.save_file(tensors, path, sync=False)

    def save_durable(self, tensors: dict[str, Any], path: str) -> None:
        import zt

        zt.numpy.save_file(tensors, path, digest=None)

    def save_default(self, tensors: dict[str, Any], path: str) -> None:
        import zt

        zt.numpy.save_file(tensors, path)

    def save_zstd(self, tensors: dict[str, Any], path: str) -> None:
        import zt

        zt.numpy.save_file(tensors, path, zstd=3, digest=None, sync=False)

    def save_planes(self, tensors: dict[str, Any], path: str) -> None:
        import zt

        zt.numpy.save_file(tensors, path, planes=True, digest=None, sync=False)

    def load(self, path: str, name: str) -> int:
        import zt

        return touch(zt.numpy.load_file(path).values())

    def views(self, path: str, name: str) -> int:
        import zt

        with zt.open(path) as file:
            return touch(tensor.numpy() for tensor in file.values())

    def one(self, path: str, name: str) -> int:
        import zt

        with zt.open(path) as file:
            return touch([file[name].numpy()])

    def row(self, path: str, name: str) -> int:
        import zt

        with zt.open(path) as file:
            return touch([file[name][1:3]])


class Safetensors(Contestant):
    name = "safetensors"
    modules = ("safetensors.numpy",)
    extension = "safetensors"

    def save(self, tensors: dict[str, Any], path: str) -> None:
        import safetensors.numpy

        safetensors.numpy.save_file(tensors, path)

    def load(self, path: str, name: str) -> int:
        import safetensors.numpy

        return touch(safetensors.numpy.load_file(path).values())

    def one(self, path: str, name: str) -> int:
        import safetensors

        with safetensors.safe_open(path, "np") as file:
            return touch([file.get_tensor(name)])

    def row(self, path: str, name: str) -> int:
        import safetensors

        with safetensors.safe_open(path, "np") as file:
            return touch([file.get_slice(name)[1:3]])


class Ztensor1(Contestant):
    name = "ztensor 1"
    modules = ("ztensor.numpy",)

    def save(self, tensors: dict[str, Any], path: str) -> None:
        import ztensor.numpy

        ztensor.numpy.save_file(tensors, path)

    def save_zstd(self, tensors: dict[str, Any], path: str) -> None:
        import ztensor.numpy

        ztensor.numpy.save_file(tensors, path, compression=3)

    def load(self, path: str, name: str) -> int:
        import ztensor.numpy

        return touch(ztensor.numpy.load_file(path, copy=True).values())

    def views(self, path: str, name: str) -> int:
        import ztensor.numpy

        return touch(ztensor.numpy.load_file(path).values())

    def one(self, path: str, name: str) -> int:
        import ztensor

        return touch([ztensor.Reader(path).read_numpy(name)])

    def row(self, path: str, name: str) -> int:
        import ztensor

        return touch([np.ascontiguousarray(ztensor.Reader(path).read_numpy(name)[1:3])])


class Ztensor2(Contestant):
    name = "ztensor 2"
    modules = ("ztensor.numpy",)

    def save(self, tensors: dict[str, Any], path: str) -> None:
        import ztensor.numpy

        ztensor.numpy.save_file(tensors, path)

    def save_zstd(self, tensors: dict[str, Any], path: str) -> None:
        import ztensor.numpy

        ztensor.numpy.save_file(tensors, path, compression=True)

    def load(self, path: str, name: str) -> int:
        import ztensor.numpy

        return touch(ztensor.numpy.load_file(path, copy=True).values())

    def views(self, path: str, name: str) -> int:
        import ztensor.numpy

        return touch(ztensor.numpy.load_file(path).values())

    def one(self, path: str, name: str) -> int:
        import ztensor

        with ztensor.open(path) as file:
            return touch([np.from_dlpack(file[name])])

    def row(self, path: str, name: str) -> int:
        import ztensor

        with ztensor.open(path) as file:
            return touch([np.ascontiguousarray(np.from_dlpack(file[name])[1:3])])


class Numpy(Contestant):
    name = "numpy"
    extension = "npz"

    def save(self, tensors: dict[str, Any], path: str) -> None:
        np.savez(path, **tensors)

    def load(self, path: str, name: str) -> int:
        with np.load(path) as file:
            return touch([file[name] for name in file])

    def one(self, path: str, name: str) -> int:
        with np.load(path) as file:
            return touch([file[name]])

    def row(self, path: str, name: str) -> int:
        with np.load(path) as file:
            return touch([np.ascontiguousarray(file[name][1:3])])


class Gguf(Contestant):
    name = "gguf-py"
    modules = ("gguf",)
    extension = "gguf"

    def save(self, tensors: dict[str, Any], path: str) -> None:
        import gguf

        writer = gguf.GGUFWriter(path, "benchmark")
        for name, value in tensors.items():
            writer.add_tensor(name, value)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def load(self, path: str, name: str) -> int:
        import gguf

        return touch([np.array(tensor.data) for tensor in gguf.GGUFReader(path).tensors])

    def views(self, path: str, name: str) -> int:
        import gguf

        return touch(tensor.data for tensor in gguf.GGUFReader(path).tensors)

    def one(self, path: str, name: str) -> int:
        import gguf

        tensors = gguf.GGUFReader(path).tensors
        return touch([next(tensor.data for tensor in tensors if tensor.name == name)])

    def row(self, path: str, name: str) -> int:
        import gguf

        tensors = gguf.GGUFReader(path).tensors
        found = next(tensor.data for tensor in tensors if tensor.name == name)
        return touch([np.ascontiguousarray(found[1:3])])


class ZtTorch(Contestant):
    name = "zt.torch"
    modules = ("zt.torch",)

    def prepare(self, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
        import torch

        return {name: torch.from_numpy(value) for name, value in tensors.items()}

    def save(self, tensors: dict[str, Any], path: str) -> None:
        import zt.torch

        zt.torch.save_file(tensors, path, digest=None, sync=False)

    def save_durable(self, tensors: dict[str, Any], path: str) -> None:
        import zt.torch

        zt.torch.save_file(tensors, path, digest=None)

    def load(self, path: str, name: str) -> int:
        import zt.torch

        return touch_torch(zt.torch.load_file(path).values())

    def views(self, path: str, name: str) -> int:
        import zt

        with zt.open(path) as file:
            return touch_torch(tensor.torch() for tensor in file.values())

    def one(self, path: str, name: str) -> int:
        import zt

        with zt.open(path) as file:
            return touch_torch([file[name].torch()])


class Torch(ZtTorch):
    name = "torch"
    modules = ("torch",)
    extension = "pt"

    def save(self, tensors: dict[str, Any], path: str) -> None:
        import torch

        # A view of one map is a view of one storage, which `torch.save` would write as a whole.
        torch.save({name: value.clone() for name, value in tensors.items()}, path)

    def tied(self, tensors: dict[str, Any], path: str) -> None:
        import torch

        own = {name: value.clone() for name, value in tensors.items()}
        torch.save({**own, **{f"tied.{name}": value for name, value in own.items()}}, path)

    def save_durable(self, tensors: dict[str, Any], path: str) -> None:
        self.save(tensors, path)
        settle(path)

    def load(self, path: str, name: str) -> int:
        import torch

        return touch_torch(torch.load(path).values())

    def views(self, path: str, name: str) -> int:
        import torch

        return touch_torch(torch.load(path, mmap=True).values())

    def one(self, path: str, name: str) -> int:
        import torch

        return touch_torch([torch.load(path, mmap=True)[name]])


class SafetensorsTorch(ZtTorch):
    name = "safetensors.torch"
    modules = ("safetensors.torch",)
    extension = "safetensors"

    def save(self, tensors: dict[str, Any], path: str) -> None:
        import safetensors.torch

        safetensors.torch.save_file(tensors, path)

    def tied(self, tensors: dict[str, Any], path: str) -> None:
        raise NotImplementedError("it refuses tensors that share memory")

    def save_durable(self, tensors: dict[str, Any], path: str) -> None:
        self.save(tensors, path)
        settle(path)

    def load(self, path: str, name: str) -> int:
        import safetensors.torch

        # Views of a map, which are copied so that they are tensors of their own.
        loaded = safetensors.torch.load_file(path)
        return touch_torch([value.clone() for value in loaded.values()])

    def views(self, path: str, name: str) -> int:
        import safetensors.torch

        return touch_torch(safetensors.torch.load_file(path).values())

    def one(self, path: str, name: str) -> int:
        import safetensors

        with safetensors.safe_open(path, "pt") as file:
            return touch_torch([file.get_tensor(name)])


class Fastsafetensors(SafetensorsTorch):
    name = "fastsafetensors"
    modules = ("fastsafetensors", "safetensors.torch")

    def load(self, path: str, name: str) -> int:
        import fastsafetensors

        with fastsafetensors.fastsafe_open(path, nogds=True, device="cpu") as file:
            return touch_torch([file.get_tensor(name) for name in list(file.keys())])

    views = None  # type: ignore[assignment]

    def one(self, path: str, name: str) -> int:
        import fastsafetensors

        with fastsafetensors.fastsafe_open(path, nogds=True, device="cpu") as file:
            return touch_torch([file.get_tensor(name)])


ALL = {
    kind.name: kind
    for kind in (
        Zt, Safetensors, Ztensor1, Ztensor2, Numpy, Gguf, ZtTorch, SafetensorsTorch, Torch,
        Fastsafetensors,
    )
}  # fmt: skip
