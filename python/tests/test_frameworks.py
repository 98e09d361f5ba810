"""`zt.flax`, and the drop-ins of safetensors for jax, MLX, TensorFlow and Paddle.

Each is tested where its package is installed.
"""

import importlib

import numpy as np
import pytest

import zt

VALUES = {
    "matrix": np.arange(6, dtype="f4").reshape(2, 3),
    "half": np.array([0.5, -2], "f2"),
    "long": np.arange(4, dtype="i4"),
    "flags": np.array([True, False]),
    "empty": np.zeros((0, 3), "f4"),
}
# The module of the drop-in, what it imports, and how an array becomes a tensor there.
LIBRARIES = {
    "flax": ("jax.numpy", "asarray"),
    "mlx": ("mlx.core", "array"),
    "tensorflow": ("tensorflow", "convert_to_tensor"),
    "paddle": ("paddle", "to_tensor"),
}


def importorskip(name):
    return pytest.importorskip(name, exc_type=ImportError)


def library(name):
    package, make = LIBRARIES[name]
    return getattr(importorskip(package), make)


def drop_in(name):
    return importlib.import_module(f"zt.safetensors.{name}")


def expect_same(loaded, values):
    assert loaded.keys() == values.keys()
    for name, value in values.items():
        found = loaded[name]
        found = found.numpy() if hasattr(found, "numpy") else np.asarray(found)
        assert found.dtype == value.dtype and found.shape == value.shape, name
        assert (found == value).all(), name


@pytest.mark.parametrize("name", LIBRARIES)
def test_tensors_survive_a_file_and_bytes(name, tmp_path):
    make = library(name)
    module = drop_in(name)
    tensors = {key: make(value) for key, value in VALUES.items()}
    path = tmp_path / "a.safetensors"
    module.save_file(tensors, path, {"format": "x"})
    expect_same(module.load_file(path), VALUES)
    data = module.save(tensors, {"format": "x"})
    assert data == path.read_bytes()
    expect_same(module.load(data), VALUES)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_file_of_another_kind_loads(name, tmp_path):
    library(name)
    path = tmp_path / "a.zt"
    with zt.Writer(path, zstd=3) as writer:
        for key, value in VALUES.items():
            writer.add(key, value)
    expect_same(drop_in(name).load_file(path), VALUES)


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_bytes_are_those_of_safetensors(name):
    make = library(name)
    official = importorskip(f"safetensors.{name}")
    tensors = {key: make(value) for key, value in VALUES.items()}
    assert drop_in(name).save(tensors) == official.save(tensors)


def test_arrays_of_jax_survive_as_what_they_are(tmp_path):
    jax = importorskip("jax")
    import zt.flax

    jnp = jax.numpy
    base = jnp.arange(12, dtype=jnp.bfloat16).reshape(3, 4)
    tensors = {
        "bf16": base,
        "transposed": base.T,
        "fp8": base.astype(jnp.float8_e4m3fn),
        "complex": jnp.array([1 + 2j], dtype=jnp.complex64),
        "scalar": jnp.float32(2.5),
        "empty": jnp.zeros((0, 2)),
        "flags": jnp.array([True, False]),
    }
    path = tmp_path / "a.zt"
    zt.flax.save_file(tensors, path, {"step": 7})
    assert zt.open(path)["bf16"].dtype == "bf16" and zt.open(path).attributes == {"step": 7}
    for loaded in (zt.flax.load_file(path), zt.flax.load(zt.flax.save(tensors))):
        assert loaded.keys() == tensors.keys()
        for name, value in tensors.items():
            assert isinstance(loaded[name], jax.Array)
            assert loaded[name].dtype == value.dtype and loaded[name].shape == value.shape
            assert (loaded[name] == value).all(), name


def test_jax_takes_a_tensor_of_a_file_by_dlpack(tmp_path):
    jax = importorskip("jax")
    path = tmp_path / "a.zt"
    with zt.Writer(path) as writer:
        writer.add("a", VALUES["matrix"])
    array = jax.dlpack.from_dlpack(zt.open(path)["a"])
    assert (np.asarray(array) == VALUES["matrix"]).all()
