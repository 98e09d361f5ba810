"""Kinds of files and object formats that are written in Python."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zt
import zt.numpy

CORPUS = Path(__file__).parents[2] / "conformance" / "corpus"


class Vec:
    name, extensions = "vec", ["vec"]

    def detect(self, head):
        return head.startswith(b"VEC!")

    def open(self, file):
        values = file.read()[4:]
        if not values:
            raise ValueError("no values")
        return {"values": np.frombuffer(values, "<f4"), "pair": np.array([[1, 2]], "i8")}


@pytest.fixture(autouse=True)
def kind():
    zt.register_kind(Vec())


BYTES = b"VEC!" + np.float32([1, -2.5, 3]).tobytes()


def test_every_call_opens_a_kind_of_python(tmp_path):
    path = tmp_path / "a.vec"
    path.write_bytes(BYTES)
    for source in [path, BYTES]:
        file = zt.open(source)
        assert (file.kind, sorted(file)) == ("vec", ["pair", "values"])
        assert file["values"].numpy().tolist() == [1, -2.5, 3]
        assert file["values"][1:].tolist() == [-2.5, 3]
        assert file["pair"].shape == (1, 2)
        assert zt.verify(file).ok
    zt.convert(path, tmp_path / "a.safetensors")
    assert zt.numpy.load_file(tmp_path / "a.safetensors")["values"].tolist() == [1, -2.5, 3]
    # A kind of Python is not written.
    with pytest.raises(zt.UnsupportedError):
        zt.convert(path, tmp_path / "b.vec")


def test_an_exception_of_a_kind_comes_out_as_it_was_raised():
    with pytest.raises(ValueError, match="no values"):
        zt.open(b"VEC!")
    with pytest.raises(zt.MisuseError):
        zt.register_kind(type("Kind", (), {"name": "x", "extensions": [], "detect": 1, "open": 2}))


def test_a_format_of_python_gives_the_dense_value(tmp_path):
    # A sparse matrix whose format has another name, of the same length.
    path = tmp_path / "own.zt"
    matrix = CORPUS / "own" / "valid" / "csr_small.zt"
    name, dense = zt.numpy.load_file(matrix).popitem()
    path.write_bytes(matrix.read_bytes().replace(b"sparse_csr", b"acme.own/1"))
    with pytest.raises(zt.UnsupportedError):
        zt.open(path)[name].dense()
    calls = []

    def decode(components, shape, attributes):
        calls.append((sorted(components), shape, attributes))
        return np.full(shape, components["values"][0])

    zt.register_format("acme.own/1", decode)
    expected = np.full(dense.shape, zt.open(path)[name].components["values"].numpy()[0])
    tensor = zt.open(path)[name]
    assert np.array_equal(tensor.dense(), expected)
    assert np.array_equal(tensor[1:, ::2], expected[1:, ::2])
    assert calls[0] == (["indices", "indptr", "values"], dense.shape, {})
    zt.convert(path, tmp_path / "own.npz", dense=True)
    assert np.array_equal(np.load(tmp_path / "own.npz")[name], expected)

    zt.register_format("acme.own/1", lambda components, shape, attributes: np.zeros(3), dtype="f32")
    with pytest.raises(zt.UnsupportedError, match="the function gave f64"):
        zt.open(path)[name].dense()
    with pytest.raises(zt.MisuseError):
        zt.register_format("acme.own/1", decode, dtype="float33")


def test_the_program_of_a_script_knows_the_kinds_of_the_script(tmp_path):
    path = tmp_path / "a.vec"
    path.write_bytes(BYTES)
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, zt, zt.__main__\n"
        "class Vec:\n"
        "    name, extensions = 'vec', ['vec']\n"
        "    def detect(self, head): return head.startswith(b'VEC!')\n"
        "    def open(self, file): return {'values': memoryview(file.read()[4:]).cast('f')}\n"
        "zt.register_kind(Vec())\n"
        "sys.exit(zt.__main__.main())\n"
    )
    listed = subprocess.run(
        [sys.executable, script, "show", path, "values"], check=True, capture_output=True, timeout=60
    )
    assert b"-2.5" in listed.stdout
