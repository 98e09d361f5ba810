"""Writing: values of every shape and library, all of it or nothing."""

import array
import contextlib
import io
import json
import threading

import gguf
import ml_dtypes
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import zt
import zt.numpy


def written(value, **options):
    sink = io.BytesIO()
    with zt.Writer(sink) as writer:
        writer.add("a", value, **options)
    return zt.open(sink.getvalue())["a"]


@st.composite
def arrays(draw):
    """Arrays of any strides, order and byte order, 0-d and empty ones too."""
    names = ["f8", ">f4", "<f2", "i1", ">i8", "u2", "?", "c8", ">c16"]
    dtype = draw(st.sampled_from(names))
    shape = draw(npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    made = np.arange(int(np.prod(shape)) if shape else 1).reshape(shape).astype(dtype)
    for axis in range(made.ndim):
        made = np.flip(made, axis) if draw(st.booleans()) else made
    if made.ndim:
        made = made.transpose(draw(st.permutations(range(made.ndim))))
        step = draw(st.integers(1, 3))
        made = made[::step]
        if draw(st.booleans()):
            made = np.broadcast_to(made, (2, *made.shape))
    return made


@settings(deadline=None)
@given(arrays())
def test_an_array_of_any_strides_and_byte_order_survives(value):
    tensor = written(value)
    read = tensor.numpy()
    assert read.shape == value.shape and read.dtype == value.dtype.newbyteorder("<")
    assert np.array_equal(read, value)


@settings(deadline=None)
@given(st.data())
def test_slices_are_those_of_numpy(data):
    shape = data.draw(npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6))
    value = np.arange(int(np.prod(shape)) if shape else 1, dtype="i4").reshape(shape)
    zstd = data.draw(st.sampled_from([None, 3]))
    tensor = written(value, zstd=zstd)
    index = data.draw(npst.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    expected = value[index]
    found = tensor[index]
    assert type(found) is type(expected)
    assert found.shape == expected.shape and np.array_equal(found, expected)


def test_values_of_other_libraries(tmp_path):
    assert written(np.float32(2.5)).numpy() == np.float32(2.5)
    assert written(array.array("h", [1, -2])).numpy().tolist() == [1, -2]
    assert written(b"\x01\x02").numpy().tolist() == [1, 2]
    assert written(memoryview(bytearray(6)).cast("H")).dtype == "u16"
    reversed_view = memoryview(bytes(range(6)))[::-2]
    assert written(reversed_view).numpy().tolist() == [5, 3, 1]

    class Exported:
        """Another library's array, known by DLPack alone."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **arguments):
            return self.array.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    transposed = np.arange(6, dtype="f4").reshape(2, 3).T
    assert np.array_equal(written(Exported(transposed)).numpy(), transposed)
    bf16 = written(np.arange(3).astype(ml_dtypes.bfloat16))
    assert written(Exported(bf16)).dtype == "bf16"
    assert written(bf16).numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil"])
def test_sparse_arrays_of_scipy_both_ways(kind):
    value = scipy.sparse.random_array((7, 5), density=0.3, rng=np.random.default_rng(1))
    tensor = written(value.asformat(kind))
    assert tensor.format == ("sparse_coo" if kind == "coo" else "sparse_csr")
    assert np.array_equal(tensor.scipy().toarray(), value.toarray())
    assert np.array_equal(tensor.dense(), value.toarray())
    assert np.array_equal(tensor[2:, ::2], value.toarray()[2:, ::2])
    with pytest.raises(zt.MisuseError, match="dense"):
        tensor.numpy()
    with pytest.raises(zt.MisuseError):
        written(np.ones(3)).scipy()


def quantized_group():
    return zt.QuantizedGroup(
        packed_weight=np.array([0x21, 0xF8], "u1"),
        scales=np.array([0.5, 2.0], "f4"),
        zeros=np.array([1.0, 8.0], "f4"),
        shape=[4],
        bits=4,
        group_size=2,
        packing="2_per_u8",
    )


def test_a_quantized_group():
    tensor = written(quantized_group())
    assert tensor.dense().tolist() == [0.0, 0.5, 0.0, 14.0]
    assert tensor.components["scales"].numpy().tolist() == [0.5, 2.0]
    assert tensor.attributes["bits"] == 4 and tensor[-1] == 14.0


@pytest.mark.parametrize("planes", [False, True])
def test_dense_sparse_and_quantized_tensors_are_loaded_in_one_call(tmp_path, planes):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    values = {
        "noise": np.random.default_rng(1).standard_normal((700, 900), dtype="f4"),
        "sparse": scipy_sparse.csr_array(np.eye(3, dtype="f4")),
        "empty": np.empty((0, 3), "i2"),
        "group": quantized_group(),
        "last": np.arange(5),
    }
    seen = []
    zt.numpy.save_file(values, tmp_path / "a.zt", planes=planes)
    loaded = zt.numpy.load_file(tmp_path / "a.zt", progress=seen.append)
    assert set(loaded) == set(values)
    assert np.array_equal(loaded["noise"], values["noise"])
    assert np.array_equal(loaded["sparse"].toarray(), np.eye(3))
    assert loaded["empty"].shape == (0, 3)
    assert loaded["group"].tolist() == [0.0, 0.5, 0.0, 14.0]
    loaded["last"][0] = 7
    assert loaded["last"].tolist() == [7, 1, 2, 3, 4]
    file = zt.open(tmp_path / "a.zt")
    parts = [part for tensor in file.values() for part in tensor.components.values()]
    of_sparse = sum(part.nbytes for part in file["sparse"].components.values())
    assert planes or sum(seen) == sum(part.nbytes for part in parts) - of_sparse
    assert sum(seen) > 1_000_000


@pytest.mark.parametrize("extension", ["safetensors", "npz"])
def test_other_kinds_are_written_from_arrays_of_any_layout(tmp_path, extension):
    table = np.arange(12, dtype="f4").reshape(3, 4)
    values = {
        "plain": table,
        "transposed": table.T,
        "reversed": table[::-1],
        "big-endian": table.astype(">f4"),
        "bytes": np.arange(7, dtype="u1"),
        "scalar": np.float64(0.5),
        "empty": np.empty((0, 3), "i2"),
    }
    path = tmp_path / f"a.{extension}"
    zt.numpy.save_file(values, path)
    loaded = zt.numpy.load_file(path)
    assert all(np.array_equal(loaded[name], value) for name, value in values.items())
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_pieces_of_a_tensor(tmp_path):
    path = tmp_path / "a.zt"
    with zt.Writer(path) as writer:
        with writer.begin("a", (4, 3), "float32") as pieces:
            for row in range(4):
                pieces.write(np.full(3, row, "f4"))
        writer.begin("empty", (0, 3), np.int8)
        with pytest.raises(zt.MisuseError, match="missing"), writer.begin("b", [2], "u1") as pieces:
            pieces.write(b"x")
            with pytest.raises(zt.MisuseError, match="not complete"):
                writer.add("c", np.zeros(1))
            with pytest.raises(zt.MisuseError, match="more bytes"):
                pieces.write(b"xx")
            with pytest.raises(zt.MisuseError, match="f64"):
                pieces.write(np.zeros(1))
        pieces.write(b"y")
    assert zt.open(path)["a"][:, 0].tolist() == [0, 1, 2, 3]
    assert bytes(memoryview(zt.open(path)["b"])) == b"xy"


def test_nothing_appears_unless_all_is_written(tmp_path):
    path = tmp_path / "a.zt"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), zt.Writer(path) as writer:
        writer.add("a", np.zeros(3))
        raise RuntimeError
    del writer
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(zt.MisuseError), zt.Writer(path) as writer:
        writer.add("a", np.zeros(3))
        writer.add("a", np.zeros(3))
    assert path.read_bytes() == b"old"
    with pytest.raises(zt.MisuseError, match="ended"):
        writer.add("b", np.zeros(3))


def test_what_is_no_array_is_a_type_error():
    for value in (
        3,
        "text",
        [1, 2],
        None,
        np.array(["a"]),
        np.array([object()]),
        np.zeros(2, "M8[s]"),
    ):
        with pytest.raises(TypeError):
            written(value)
    with pytest.raises(TypeError, match="masked"):
        written(np.ma.array([1, 2], mask=[0, 1]))
    with pytest.raises(TypeError) as error:
        zt.numpy.save({"good": np.zeros(1), "bad": "text"})
    assert "bad" in error.value.__notes__[0]


def test_the_same_array_is_stored_once_and_a_refilled_one_is_not(tmp_path):
    path = tmp_path / "a.zt"
    value = np.arange(5000.0)
    zt.numpy.save_file({"a": value, "b": value}, path)
    file = zt.open(path)
    assert file["a"].components["data"].offset == file["b"].components["data"].offset
    with zt.Writer(path) as writer:
        writer.add("a", value)
        writer.add("tied", value)
        value += 1
        writer.add("b", value)
    file = zt.open(path)
    assert file["a"].components["data"].offset == file["tied"].components["data"].offset
    assert (file["a"].numpy()[0], file["b"].numpy()[0]) == (0.0, 1.0)


@pytest.mark.parametrize(
    "name, stored",
    [
        ("int4", "i4"),
        ("uint4", "u4"),
        ("int2", "i2"),
        ("uint2", "u2"),
        ("float4_e2m1fn", "f4_e2m1fn"),
        ("float6_e2m3fn", "f6_e2m3fn"),
        ("float6_e3m2fn", "f6_e3m2fn"),
        ("float8_e8m0fnu", "f8_e8m0fnu"),
    ],
)
@pytest.mark.parametrize("count", [8, 15])
def test_types_of_ml_dtypes_below_a_byte_are_packed(tmp_path, name, stored, count):
    values = np.array([0, 1, 2, 1, 0, 2, 1, 2] * 2, "f4")[:count] / (1 + name.startswith("float"))
    array = values.astype(getattr(ml_dtypes, name))
    strided = np.broadcast_to(array[:, None], (count, 3)).T
    for value in (array, strided, array[:0], array[3]):
        tensor = written(value)
        assert (tensor.dtype, tensor.shape) == (stored, value.shape)
        assert np.array_equal(tensor.dense().astype("f4"), value.astype("f4"), equal_nan=True)
    if stored in ("f4_e2m1fn", "f6_e2m3fn"):
        zt.numpy.save_file({"a": strided[:, :8]}, tmp_path / "a.safetensors")
        loaded = zt.numpy.load_file(tmp_path / "a.safetensors")["a"]
        assert np.array_equal(loaded, strided[:, :8].astype("f4"))


class Meddler(io.BytesIO):
    """A file whose ``write`` changes the array that is being written, as another thread may."""

    def __init__(self, array):
        super().__init__()
        self.array = array

    def write(self, data):
        self.array += 1
        return super().write(data)


@pytest.mark.parametrize(
    "options",
    [{}, {"digest": "sha256"}, {"zstd": 1}, {"planes": True}, {"threads": 1}],
    ids=str,
)
def test_an_array_that_changes_while_it_is_written_is_sound(options):
    array = np.zeros(3_000_000, "f4")
    for name in ("add", "begin"):
        sink = Meddler(array)
        with zt.Writer(sink, **options) as writer:
            if name == "add":
                writer.add("a", array)
                writer.add("sparse", scipy.sparse.csr_array(array[:100_000].reshape(10, -1)))
                writer.add("b", array[:1000])
            else:
                with writer.begin("a", array.shape, "f4") as pieces:
                    pieces.write(array)
        file = zt.open(sink.getvalue())
        assert zt.verify(file).ok
        assert (np.diff(file["a"].numpy()) >= 0).all(), "each element is read once, in order"


@pytest.mark.parametrize("kind", ["zt", "npz", "safetensors", "gguf"])
def test_arrays_that_another_thread_changes_are_saved_sound(tmp_path, kind):
    array, done = np.zeros(1_000_000, "f4"), threading.Event()

    def change():
        while not done.is_set():
            array[:] += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(4):
            zt.numpy.save_file({"a": array}, tmp_path / f"a.{kind}", sync=False)
            assert zt.verify(tmp_path / f"a.{kind}").ok
            assert zt.numpy.load_file(tmp_path / f"a.{kind}")["a"].shape == array.shape
    finally:
        done.set()
        thread.join()


def test_a_source_that_changes_while_it_is_converted_is_copied_sound_or_refused():
    for zstd in (None, 1):
        data = bytearray(zt.numpy.save({"a": np.zeros(3_000_000, "f4")}, digest=None))
        array = np.frombuffer(data, "f4", 3_000_000, zt.open(data)["a"].components["data"].offset)
        sink = Meddler(array)
        zt.convert(data, sink, kind="zt", zstd=zstd)
        assert zt.verify(sink.getvalue()).ok


def test_a_refused_tensor_leaves_the_writer_usable(tmp_path):
    path, (one, two) = tmp_path / "a.zt", np.arange(20_000.0).reshape(2, -1)
    with zt.Writer(path) as writer:
        writer.add("one", one)
        for name in ("one", ""):
            with pytest.raises(zt.MisuseError):
                writer.add(name, two)
        with pytest.raises(zt.MisuseError):
            writer.begin("one", (2,), "f4")
        writer.add("two", two)
    file = zt.open(path)
    assert list(file) == ["one", "two"] and np.array_equal(file["two"], two)


def test_attributes_of_every_kind(tmp_path):
    attributes = {
        "text": "ü", "int": -(2**64), "big": 2**64 - 1, "float": 0.5, "none": None,
        "list": [1, [2.5, True]], "dict": {"bytes": b"\x00"}, "numpy": 3,
    }  # fmt: skip
    given_as = {**attributes, "numpy": np.int16(3)}
    tensor = written(np.zeros(1), attributes=given_as)
    assert tensor.attributes == attributes
    with pytest.raises(ValueError, match="64 bits"):
        written(np.zeros(1), attributes={"a": 2**64})
    with pytest.raises(TypeError):
        written(np.zeros(1), attributes={"a": object()})
    nested = []
    nested.append(nested)
    with pytest.raises(RecursionError):
        written(np.zeros(1), attributes={"a": nested})


def test_equal_contents_give_equal_bytes():
    a, b = np.arange(3), np.ones((2, 2), "f4")
    for kind in ("zt", "safetensors"):
        assert zt.numpy.save({"a": a, "b": b}, kind=kind) == zt.numpy.save(
            {"b": b.copy("F"), "a": a}, kind=kind
        )


def test_the_kind_is_that_of_the_extension(tmp_path):
    value = {"a": np.arange(6, dtype="f4").reshape(2, 3)}
    for extension in ("zt", "safetensors", "npz", "gguf"):
        path = tmp_path / f"a.{extension}"
        zt.numpy.save_file(value, path)
        assert zt.open(path).kind == extension
        assert np.array_equal(zt.numpy.load_file(path)["a"], value["a"])
    with pytest.raises(zt.MisuseError, match="kind"):
        zt.numpy.save_file(value, tmp_path / "a.txt")
    with pytest.raises(zt.ZtError) as lossy:
        sparse = scipy.sparse.eye_array(3, format="csr")
        zt.numpy.save_file({"s": sparse}, tmp_path / "s.safetensors")
    assert lossy.value.code == "lossy" and not (tmp_path / "s.safetensors").exists()


def test_a_sink_of_python(tmp_path):
    class Full(io.RawIOBase):
        def write(self, data):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"), zt.Writer(Full()) as writer:
        writer.add("a", np.zeros(1 << 20))


def test_chunk_digests_verify_a_slice_and_can_be_left_out(tmp_path):
    values = np.arange(3 << 20, dtype="u1")
    whole, without, converted = (tmp_path / f"{name}.zt" for name in ("a", "b", "c"))
    with zt.Writer(whole) as writer:
        writer.add("a", values)
    with zt.Writer(without, chunk_digests=None) as writer:
        writer.add("a", values)
    zt.convert(whole, converted, chunk_digests=None)
    for path, is_verified in [(whole, True), (without, False), (converted, False)]:
        with path.open("r+b") as file:
            file.seek(zt.open(path)["a"].components["data"].offset + (3 << 19))
            file.write(b"!")
        tensor = zt.open(path)["a"]
        assert (tensor[: 1 << 20] == values[: 1 << 20]).all(), "another chunk"
        if is_verified:
            with pytest.raises(zt.DigestMismatchError):
                tensor[3 << 19 : (3 << 19) + 9]
        else:
            assert tensor[3 << 19] == ord("!")
        with pytest.raises(zt.DigestMismatchError):
            tensor.numpy()
    with pytest.raises(zt.MisuseError, match="chunk_digests"):
        zt.Writer(whole, chunk_digests="md5")


@pytest.mark.parametrize("kind", ["safetensors", "gguf"])
def test_an_edit_writes_another_kind_anew(tmp_path, kind):
    path = tmp_path / f"m.{kind}"
    values = {name: np.full(3, at, "f4") for at, name in enumerate("abcd")}
    numbers = {"m.heads": 32} if kind == "gguf" else {}
    zt.numpy.save_file(values, path, {"license": "MIT", "k": "v", **numbers})
    with zt.edit(path) as edit:
        edit.rename("a", "c2")
        edit.remove("b")
        edit.remove("d")
        edit.rename("c", "d")
        edit.attributes["license"] = "Apache-2.0"
        del edit.attributes["k"]
        if numbers:
            edit.attributes["m.heads"] = 33
        for old, new, error in (
            ("a", "x", zt.TensorNotFoundError),
            ("d", "c2", zt.MisuseError),
            ("d", "", zt.MisuseError),
        ):
            with pytest.raises(error):
                edit.rename(old, new)
        with pytest.raises(zt.UnsupportedError, match=r"zt\.merge"):
            edit.add("x", np.ones(2))
        assert sorted(zt.open(path)) == list("abcd")
    file = zt.open(path)
    assert {name: tensor.numpy()[0] for name, tensor in file.items()} == {"c2": 0, "d": 2}
    assert file.attributes["license"] == "Apache-2.0" and "k" not in file.attributes
    if numbers:
        assert file.attributes["m.heads"] == 33
        reader = gguf.GGUFReader(path)
        assert reader.fields["m.heads"].types == [gguf.GGUFValueType.UINT32]
    before = path.read_bytes()
    with contextlib.suppress(RuntimeError), zt.edit(path) as edit:
        edit.remove("d")
        raise RuntimeError
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["safetensors", "zt"])
def test_an_index_follows_the_edit_of_its_shard(tmp_path, kind):
    path = tmp_path / "m.zt"
    zt.numpy.save_file({name: np.full(25, at, "f4") for at, name in enumerate("abcd")}, path)
    split = zt.split(path, tmp_path / "set", max_shard_size=200, kind=kind)
    with zt.edit(split.shards[1].path) as edit:
        edit.remove("c")
        edit.rename("d", "e")
        if kind == "zt":
            with pytest.raises(zt.UnsupportedError, match="index"):
                edit.add("x", np.ones(2))
    assert sorted(zt.open(split.index)) == ["a", "b", "e"]
    assert json.loads(split.index.read_text())["metadata"]["total_size"] == 300
    with pytest.raises(zt.UnsupportedError, match="sharded set"):
        zt.edit(split.index)
    old = split.shards[0].path.read_bytes()
    with pytest.raises(zt.MisuseError) as error, zt.edit(split.shards[0].path) as edit:
        edit.rename("a", "e")
    assert error.value.code == "duplicate-name" and split.shards[0].path.read_bytes() == old
