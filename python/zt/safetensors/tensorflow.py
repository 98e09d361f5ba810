"""Tensors of TensorFlow in safetensors files: ``safetensors.tensorflow`` 0.8.0, over every kind."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import tensorflow as tf

from . import numpy, safe_open


def save(tensors: dict[str, Any], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with these arrays.

    Args:
        tensors: arrays by name.
        metadata: texts to keep in the header.
    """
    return numpy.save(_tf2np(tensors), metadata=metadata)


def save_file(
    tensors: dict[str, Any],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes a safetensors file with these arrays. It appears under its name when it is complete.

    Args:
        tensors: arrays by name.
        filename: the path.
        metadata: texts to keep in the header.
    """
    numpy.save_file(_tf2np(tensors), filename, metadata=metadata)


def load(data: bytes) -> dict[str, Any]:
    """The arrays of a tensor file in memory, on the CPU."""
    return _np2tf(numpy.load(data))


def load_file(filename: str | os.PathLike[str], *, backend: str = "mmap") -> dict[str, Any]:
    """The arrays of a tensor file.

    Args:
        filename: the path.
        backend: ``"mmap"`` or ``"pread"``.
    """
    with safe_open(filename, framework="tf", backend=backend) as file:
        return file.get_tensors()


def _np2tf(numpy_dict: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: tf.convert_to_tensor(array) for name, array in numpy_dict.items()}


def _tf2np(arrays: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: array.numpy() for name, array in arrays.items()}
