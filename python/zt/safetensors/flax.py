"""Arrays of JAX in safetensors files: ``safetensors.flax`` 0.8.0, over every kind."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from ._through_numpy import functions


def _np2jnp(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: jnp.array(array) for name, array in arrays.items()}


def _jnp2np(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(array) for name, array in arrays.items()}


save, save_file, load, load_file = functions("flax", _jnp2np, _np2jnp)
