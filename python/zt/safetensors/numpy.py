"""Arrays of NumPy in safetensors files: ``safetensors.numpy`` 0.8.0, over every kind."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .._dtypes import OF_SAFETENSORS
from . import TensorSpec, deserialize, safe_open, serialize, serialize_file

#: Types that ``ml_dtypes`` has.
_ML_TYPES = {
    name: dtype for name, dtype in OF_SAFETENSORS.items() if name.startswith(("BF16", "F8"))
}

_TYPES: dict[str, Any] = {
    name: np.dtype(dtype).type
    for name, dtype in OF_SAFETENSORS.items()
    if name not in _ML_TYPES and name != "F4"
}


def save(tensor_dict: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with these arrays.

    Args:
        tensor_dict: arrays by name, of any strides and byte order.
        metadata: texts to keep in the header.
    """
    specs, _kept = _flatten(tensor_dict)
    return serialize(specs, metadata=metadata)


def save_file(
    tensor_dict: dict[str, np.ndarray],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes a safetensors file with these arrays. It appears under its name when it is complete.

    Args:
        tensor_dict: arrays by name, of any strides and byte order.
        filename: the path.
        metadata: texts to keep in the header.
    """
    specs, _kept = _flatten(tensor_dict)
    serialize_file(specs, filename, metadata=metadata)


def load(data: bytes) -> dict[str, np.ndarray]:
    """The arrays of a tensor file in memory, as copies that may be written to."""
    return _view2np(deserialize(data))


def load_file(filename: str | os.PathLike[str], *, backend: str = "mmap") -> dict[str, np.ndarray]:
    """The arrays of a tensor file, as copies that may be written to.

    Args:
        filename: the path.
        backend: ``"mmap"`` or ``"pread"``.
    """
    with safe_open(filename, framework="np", backend=backend) as file:
        return file.get_tensors()


def _flatten(
    tensor_dict: dict[str, np.ndarray],
) -> tuple[dict[str, TensorSpec], list[np.ndarray]]:
    """The tensors to write, and the arrays that own their memory."""
    specs = {}
    kept = []
    for name, array in tensor_dict.items():
        if not _is_little_endian(array):
            array = array.astype(array.dtype.newbyteorder("<"))
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)
        kept.append(array)
        specs[name] = TensorSpec(
            dtype=array.dtype.name,
            shape=array.shape,
            data_ptr=array.ctypes.data,
            data_len=array.nbytes,
        )
    return specs, kept


def _getdtype(dtype_str: str) -> Any:
    if dtype_str in _ML_TYPES:
        import ml_dtypes

        return getattr(ml_dtypes, _ML_TYPES[dtype_str])
    return _TYPES[dtype_str]


def _view2np(safeview: list[tuple[str, dict[str, Any]]]) -> dict[str, np.ndarray]:
    return {
        name: np.frombuffer(view["data"], dtype=_getdtype(view["dtype"])).reshape(view["shape"])
        for name, view in safeview
    }


def _is_little_endian(tensor: np.ndarray) -> bool:
    return tensor.dtype == tensor.dtype.newbyteorder("<")
