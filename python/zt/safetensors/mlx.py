"""Arrays of MLX in safetensors files: ``safetensors.mlx`` 0.8.0, over every kind."""

from typing import Any

import mlx.core as mx
import numpy as np

from ._through_numpy import functions


def _np2mx(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: mx.array(array) for name, array in arrays.items()}


def _mx2np(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(array) for name, array in arrays.items()}


save, save_file, load, load_file = functions("mlx", _mx2np, _np2mx)
