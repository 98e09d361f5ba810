"""zt.safetensors: the names, bytes and refusals of the package safetensors, over every kind."""

import json
import pickle
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

import zt
import zt.safetensors as zs
import zt.safetensors.numpy as zn

ARRAYS = {
    "a": np.arange(6, dtype="f4").reshape(2, 3),
    "b": np.zeros((0, 3), "f2"),
    "c": np.array(3, "i1"),
    "d": np.array([[True, False]]),
    "e": np.array([1 + 2j], "c8"),
}


def write(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def same(a, b):
    assert a.keys() == b.keys()
    for name, array in a.items():
        assert array.dtype == b[name].dtype
        assert np.array_equal(array, b[name])


def test_what_is_written_has_the_bytes_of_the_official_package():
    official = pytest.importorskip("safetensors.numpy")
    assert zn.save(ARRAYS, {"format": "np"}) == official.save(ARRAYS, {"format": "np"})


def test_arrays_come_back_and_may_be_written_to(tmp_path):
    path = tmp_path / "model.safetensors"
    zn.save_file(ARRAYS, path, {"format": "np"})
    for loaded in (
        zn.load_file(path),
        zn.load_file(path, backend="pread"),
        zn.load(path.read_bytes()),
    ):
        same(loaded, ARRAYS)
        loaded["a"] += 1
    same(zn.load_file(path), ARRAYS)


def test_equal_metadata_gives_equal_bytes():
    keys = [f"key {number}" for number in range(50)]
    files = [zn.save(ARRAYS, dict.fromkeys(order, "")) for order in (keys, keys[::-1])]
    assert files[0] == files[1]


@pytest.mark.parametrize("suffix", [".zt", ".npz"])
def test_a_file_of_another_kind_opens_by_its_bytes(tmp_path, suffix):
    path = tmp_path / "model.safetensors"
    arrays = {"a": ARRAYS["a"], "e": ARRAYS["e"], "long": np.arange(5_000_000, dtype="f4")}
    if suffix == ".npz":
        np.savez_compressed(path.with_suffix(suffix), **arrays)
        path.with_suffix(suffix).rename(path)
    else:
        with zt.Writer(path, zstd=1) as writer:
            for name, array in arrays.items():
                writer.add(name, array)
    same(zn.load_file(path), arrays)
    with zs.safe_open(path, framework="np") as file:
        assert file.keys() == ["a", "e", "long"]
        assert set(file.offset_keys()) == set(arrays)
        assert file.metadata() is None
        part = file.get_slice("long")
        assert (part.get_shape(), part.get_dtype()) == ([5_000_000], "F32")
        assert np.array_equal(part[4_999_990:], arrays["long"][4_999_990:])
        assert np.array_equal(file.get_slice("a")[..., ::2], arrays["a"][..., ::2])
        with pytest.raises(
            zs.SafetensorError, match="index 9 out of bounds for tensor dimension #0"
        ):
            file.get_slice("a")[:10]


def test_a_sparse_or_quantized_tensor_has_its_dense_values(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    path = tmp_path / "model.safetensors"
    dense = np.array([[0, 1.5], [2, 0]], "f4")
    with zt.Writer(path) as writer:
        writer.add("w", sparse.csr_array(dense))
    assert np.array_equal(zn.load_file(path)["w"], dense)


def test_damage_of_a_zt_is_an_error_of_the_drop_in(tmp_path):
    path = tmp_path / "model.safetensors"
    with zt.Writer(path) as writer:
        writer.add("a", np.arange(4096, dtype="u1"))
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(bytes(range(100, 200)))] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(zt.DigestMismatchError), zs.safe_open(path, "np") as file:
        file.get_tensor("a")


@pytest.mark.parametrize(
    ("header", "data", "message"),
    [
        (b"", b"", "invalid JSON in header"),
        (b"[]", b"", "invalid JSON in header"),
        (b"{}", b"x", "incomplete metadata, file not fully covered"),
        ({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}}, bytes(8), "invalid shape"),
        (
            {"w": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}},
            b"xx",
            "offset for tensor `w`",
        ),
        ({"w": {"dtype": "F4", "shape": [1], "data_offsets": [0, 1]}}, b"x", "byte boundary"),
        ({"w": {"dtype": "F64", "shape": [2**61], "data_offsets": [0, 1]}}, b"x", "overflow"),
    ],
)
def test_a_broken_header_is_refused_in_the_official_words(tmp_path, header, data, message):
    path = write(tmp_path / "bad.safetensors", header, data)
    with pytest.raises(zs.SafetensorError, match=message) as raised:
        zs.safe_open(path, framework="np")
    assert str(raised.value).startswith("Error while deserializing header: ")
    assert raised.value.code in ("header", "truncated")
    assert raised.value.path == str(path)


def test_a_missing_file_and_wrong_arguments_are_refused_in_the_official_words(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(FileNotFoundError, match="No such file or directory: notafile"):
        zs.safe_open("notafile", framework="np")
    zn.save_file(ARRAYS, path)
    for options, message in [
        ({"framework": "cobol"}, "framework cobol is invalid"),
        (
            {"framework": "np", "device": "cuda"},
            "Device cuda:0 is not supported for framework numpy",
        ),
        ({"framework": "np", "device": "moon"}, "device moon is invalid"),
        ({"framework": "np", "backend": "x"}, 'backend "x" is invalid'),
    ]:
        with pytest.raises(zs.SafetensorError, match=message):
            zs.safe_open(path, **options)
    with zs.safe_open(path, "np") as file, pytest.raises(zs.SafetensorError, match="tensor nope"):
        file.get_tensor("nope")
    with pytest.raises(zs.SafetensorError, match="File is closed"):
        file.keys()


def test_a_name_that_a_header_cannot_have_is_refused():
    # The official package writes a file that no library opens.
    with pytest.raises(zs.SafetensorError):
        zn.save({"__metadata__": ARRAYS["a"]})


def test_an_open_file_is_hashable_and_refuses_pickling(tmp_path):
    zn.save_file(ARRAYS, tmp_path / "m.safetensors")
    file = zs.safe_open(tmp_path / "m.safetensors", framework="np")
    assert file in {file}
    with pytest.raises(TypeError):
        pickle.dumps(file)
    assert file.__exit__(None, None, None) is None


def test_slices_are_read_by_many_threads(tmp_path):
    array = np.arange(100_000, dtype="i8").reshape(100, 1000)
    zn.save_file({"w": array}, tmp_path / "m.safetensors")
    with zs.safe_open(tmp_path / "m.safetensors", framework="np") as file:
        part = file.get_slice("w")
        with ThreadPoolExecutor(8) as pool:
            rows = list(pool.map(lambda row: part[row, 3:7], range(100)))
    assert np.array_equal(np.stack(rows), array[:, 3:7])


def test_a_slice_keeps_nothing_but_itself(tmp_path):
    zn.save_file({"w": np.zeros((1000, 1000))}, tmp_path / "m.safetensors")
    with zs.safe_open(tmp_path / "m.safetensors", framework="np") as file:
        part = file.get_slice("w")[3:5]
    assert part.base is None
    assert part.flags.writeable


def test_it_stands_in_for_the_official_package_and_steps_back():
    before = sys.modules.get("safetensors")
    host = types.ModuleType("host")
    official = pytest.importorskip("safetensors")
    official_numpy = pytest.importorskip("safetensors.numpy")
    host.safe_open, host.load_file = official.safe_open, official_numpy.load_file
    sys.modules["host"] = host
    try:
        with zs.install():
            import safetensors
            import safetensors.numpy
            from safetensors.numpy import save_file

            assert safetensors is zs
            assert safetensors.numpy is zn
            assert save_file is zn.save_file
            assert host.safe_open is zs.safe_open
            assert host.load_file is zn.load_file
        assert sys.modules.get("safetensors") is official
        assert (host.safe_open, host.load_file) == (official.safe_open, official_numpy.load_file)
    finally:
        del sys.modules["host"]
    import safetensors.numpy

    assert safetensors.numpy is official_numpy
    assert before in (None, official)


def test_types_that_the_official_numpy_module_does_not_load(tmp_path):
    arrays = {
        "bf16": np.array([1, 2], ml_dtypes.bfloat16),
        "f8": np.array([1, 2], ml_dtypes.float8_e4m3fn),
    }
    path = tmp_path / "m.safetensors"
    zn.save_file(arrays, path)
    same(zn.load_file(path), arrays)
    same(zn.load(path.read_bytes()), arrays)
