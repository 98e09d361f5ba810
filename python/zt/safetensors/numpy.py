"""Arrays of NumPy in safetensors files: ``safetensors.numpy`` 0.8.0, over every kind."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import TensorSpec, deserialize, safe_open, serialize, serialize_file

_TYPES: dict[str, Any] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "I64": np.int64,
    "U64": np.uint64,
    "I32": np.int32,
    "U32": np.uint32,
    "I16": np.int16,
    "U16": np.uint16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": bool,
    "C64": np.complex64,
    "C128": np.complex128,
}

#: Types that ``ml_dtypes`` has.
_ML_TYPES = {
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
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
    """What is written, and the arrays that own its memory."""
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
