"""Tensors of Paddle in safetensors files: ``safetensors.paddle`` 0.8.0, over every kind."""

from __future__ import annotations

import os
from typing import Any

import paddle

from .._dtypes import NBYTES, OF_SAFETENSORS
from . import TensorSpec, deserialize, safe_open, serialize, serialize_file

#: The names of the types that Paddle has.
_NAMES = "F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL F8_E4M3 F8_E5M2 C64".split()

_TYPES: dict[str, Any] = {name: getattr(paddle, OF_SAFETENSORS[name]) for name in _NAMES}
_SIZE: dict[Any, int] = {dtype: NBYTES[name] for name, dtype in _TYPES.items()}


def save(tensors: dict[str, paddle.Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with these tensors.

    Args:
        tensors: contiguous tensors by name.
        metadata: texts to keep in the header.
    """
    specs, _kept = _flatten(tensors)
    return serialize(specs, metadata=metadata)


def save_file(
    tensors: dict[str, paddle.Tensor],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes a safetensors file with these tensors. It appears under its name when it is complete.

    Args:
        tensors: contiguous tensors by name.
        filename: the path.
        metadata: texts to keep in the header.

    Raises:
        ValueError: a value is no tensor, or is not contiguous.
    """
    specs, _kept = _flatten(tensors)
    serialize_file(specs, filename, metadata=metadata)


def load(data: bytes, device: str = "cpu") -> dict[str, paddle.Tensor]:
    """The tensors of a tensor file in memory, as copies on the device."""
    tensors = {}
    for name, view in deserialize(data):
        dtype = _getdtype(view["dtype"])
        if view["data"]:
            flat = paddle.base.core.frombuffer(view["data"], dtype)
            tensor = flat.reshape(view["shape"])
        else:
            tensor = paddle.empty(view["shape"], dtype=dtype)
        tensors[name] = tensor if device == "cpu" else tensor.to(device)
    return tensors


def load_file(
    filename: str | os.PathLike[str], device: str = "cpu", *, backend: str = "mmap"
) -> dict[str, paddle.Tensor]:
    """The tensors of a tensor file.

    Args:
        filename: the path.
        device: where the tensors are put.
        backend: ``"mmap"`` or ``"pread"``.
    """
    with safe_open(filename, framework="paddle", device=device, backend=backend) as file:
        return file.get_tensors()


def _getdtype(dtype_str: str) -> Any:
    return _TYPES[dtype_str]


def _flatten(
    tensors: dict[str, paddle.Tensor],
) -> tuple[dict[str, TensorSpec], list[paddle.Tensor]]:
    """The tensors to write, and the objects that own their memory."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, paddle.Tensor] but received {type(tensors)}")
    specs = {}
    kept = []
    for name, tensor in tensors.items():
        if not isinstance(tensor, paddle.Tensor):
            raise ValueError(
                f"Key `{name}` is invalid, expected paddle.Tensor but received {type(tensor)}"
            )
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}`. Make it contiguous "
                "with `.contiguous()`."
            )
        if not tensor.place.is_cpu_place():
            tensor = tensor.cpu()
        kept.append(tensor)
        specs[name] = TensorSpec(
            dtype=str(tensor.dtype).removeprefix("paddle."),
            shape=tensor.shape,
            data_ptr=tensor.data_ptr(),
            data_len=tensor.size * _SIZE[tensor.dtype],
        )
    return specs, kept
