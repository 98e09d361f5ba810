"""Tensors as arrays of jax: saved to and loaded from files of any kind, as by :mod:`zt.numpy`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from . import numpy as _numpy
from .numpy import save, save_file

__all__ = ["load", "load_file", "save", "save_file"]


def load(data: Any) -> dict[str, Any]:
    """The tensors of a file in memory, on jax's default device."""
    return _to_jax(_numpy.load(data))


def load_file(
    filename: str | os.PathLike[str],
    *,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
    storage_options: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The tensors of a file, on jax's default device."""
    arrays = _numpy.load_file(
        filename, threads=threads, progress=progress, storage_options=storage_options
    )
    return _to_jax(arrays)


def _to_jax(arrays: dict[str, Any]) -> dict[str, Any]:
    import jax.numpy

    return {name: jax.numpy.asarray(array) for name, array in arrays.items()}
