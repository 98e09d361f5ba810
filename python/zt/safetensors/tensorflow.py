"""Tensors of TensorFlow in safetensors files: ``safetensors.tensorflow`` 0.8.0, over every kind."""

from typing import Any

import tensorflow as tf

from ._through_numpy import functions


def _np2tf(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: tf.convert_to_tensor(array) for name, array in arrays.items()}


def _tf2np(tensors: dict[str, Any]) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}


save, save_file, load, load_file = functions("tf", _tf2np, _np2tf)
