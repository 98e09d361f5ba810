"""Defects of the peers that were found by running them: each is a test that we pass.

safetensors 0.8.0, ztensor 1.2.3 and ztensor 2.1.2. What `zt.safetensors` shares with safetensors on
purpose is in `test_safetensors.py`.
"""

import io
import pickle
import zipfile

import ml_dtypes
import numpy as np
import pytest

import zt
import zt.safetensors.numpy as zn

BASE = np.arange(24, dtype="f4").reshape(4, 6)
LAYOUTS = {
    "transposed": BASE.T,
    "strided": BASE[::2, ::3],
    "reversed": BASE[::-1],
    "broadcast": np.broadcast_to(BASE[0], (3, 6)),
    "fortran": np.asfortranarray(BASE),
    "big endian": BASE.astype(">f4"),
    "0-d": np.array(2.5),
    "empty": np.zeros((0, 3)),
}


def zt_file(**arrays):
    sink = io.BytesIO()
    with zt.Writer(sink) as writer:
        for name, array in arrays.items():
            writer.add(name, array)
    return sink.getvalue()


# safetensors 0.8.0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_is_saved_with_the_values_that_it_has(layout):
    # safetensors saves the memory as it lies, and bytes behind it.
    array = LAYOUTS[layout]
    for loaded in (zn.load(zn.save({"w": array}))["w"], zt.open(zt_file(w=array))["w"].numpy()):
        assert loaded.shape == array.shape
        assert np.array_equal(loaded, array)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_small_floats_load_as_arrays(name):
    # safetensors raises for FP8, and for bf16 from bytes; ztensor 2 gives bytes with another axis.
    array = np.array([[1, 2], [4, 8]], getattr(ml_dtypes, name))
    for loaded in (zn.load(zn.save({"w": array}))["w"], zt.open(zt_file(w=array))["w"].numpy()):
        assert loaded.dtype == array.dtype
        assert np.array_equal(loaded.view("u1"), array.view("u1"))


def test_equal_saves_give_equal_bytes():
    # safetensors writes the metadata in a random order.
    metadata = {str(number): "" for number in range(100)}
    first = zn.save({"w": BASE}, metadata)
    assert first == zn.save({"w": BASE}, dict(reversed(metadata.items())))


def test_a_slice_from_the_end_is_no_overflow(tmp_path):
    file = zt.open(zt_file(w=BASE))
    assert np.array_equal(file["w"][-2:, -1], BASE[-2:, -1])


# ztensor 1.2.3


def test_a_wrong_digest_is_found_when_a_tensor_is_read():
    # ztensor 1.2.3 never compares the digests of what it maps.
    data = bytearray(zt_file(w=np.arange(256, dtype="u1")))
    data[data.index(bytes(range(256))) + 7] ^= 1
    with pytest.raises(zt.DigestMismatchError) as raised:
        zt.open(bytes(data))["w"].numpy()
    assert (raised.value.object, raised.value.component) == ("w", "data")


def test_an_offset_that_wraps_is_an_error_and_no_panic():
    # A PanicException of ztensor is no Exception.
    data = zt_file(w=np.arange(256, dtype="u1"))
    at = data.rindex(b"\x66offset\x18\x40")
    for huge in (b"\x1b" + b"\xff" * 8, b"\x1b" + b"\x7f" + b"\xff" * 7):
        hostile = data[: at + 7] + huge + data[at + 9 :]
        manifest = int.from_bytes(data[-16:-8], "little") + 7
        hostile = hostile[:-16] + manifest.to_bytes(8, "little") + hostile[-8:]
        with pytest.raises(zt.ZtError):
            zt.open(hostile)["w"].numpy()


def test_a_complex_array_goes_both_ways():
    array = np.array([1 + 2j, 3 - 1j], "c8")
    assert np.array_equal(zt.open(zt_file(w=array))["w"].numpy(), array)


def test_npz_gives_the_values_that_numpy_gives(tmp_path):
    # ztensor 1.2.3 returns big-endian bytes unswapped, and Fortran order transposed; a complex or a
    # string member hides the others.
    arrays = {**LAYOUTS, "complex": np.array([1j]), "text": np.array(["a", "b"])}
    path = tmp_path / "a.npz"
    np.savez_compressed(path, **arrays)
    file = zt.open(path)
    for name, array in arrays.items():
        if name != "text":
            assert np.array_equal(file[name].numpy(), array), name


def test_reading_into_an_array_neither_casts_nor_broadcasts():
    file = zt.open(zt_file(w=np.ones((1, 4))))
    for out in (np.zeros((1, 4), "f4"), np.zeros((3, 4)), np.zeros(4)):
        with pytest.raises(ValueError):
            file["w"].read_into(out)
        assert not out.any()


def test_a_failed_writer_leaves_the_old_file(tmp_path):
    # An exception while ztensor 1.2.3 appends leaves a file that no library opens.
    path = tmp_path / "a.zt"
    path.write_bytes(zt_file(w=BASE))
    before = path.read_bytes()
    with pytest.raises(ValueError), zt.Writer(path) as writer:
        writer.add("w", BASE)
        writer.add("w", BASE)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.zt"]


def test_a_path_a_tuple_and_attributes_are_accepted(tmp_path):
    path = tmp_path / "a.zt"
    with zt.Writer(path, attributes={"epoch": 2**63, "name": "x"}) as writer:
        writer.add("w", BASE, attributes={"scale": 0.5})
    with zt.open(path) as file:
        assert file.attributes == {"epoch": 2**63, "name": "x"}
        assert file["w"].attributes == {"scale": 0.5}


def test_a_tensor_of_less_than_a_byte_does_not_hide_its_neighbours():
    # One F8 tensor makes a whole safetensors file unopenable for ztensor 1.2.3.
    header = (
        b'{"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]},'
        b'"b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}'
    )
    file = zt.open(len(header).to_bytes(8, "little") + header + b"abcd")
    assert set(file) == {"a", "b"}
    assert file["b"].numpy() == ord("d")
    # Of six bits each, the low ones first.
    assert file["a"].dense().tolist() == [-0.125, 1.125, -3.5, 4.0]


def test_metadata_of_safetensors_is_kept():
    assert zt.open(zn.save({"w": BASE}, {"format": "pt"})).attributes == {"format": "pt"}


# ztensor 2.1.2


def test_a_scalar_has_no_dimension():
    # DLPack of ztensor 2 has the shape (1,).
    tensor = zt.open(zt_file(w=np.array(2.5)))["w"]
    assert np.from_dlpack(tensor).shape == ()
    assert memoryview(tensor).shape == ()


def test_writing_to_an_array_is_refused_or_stays_in_the_process(tmp_path):
    # A write through torch to a tensor of ztensor 2 ends the process.
    path = tmp_path / "a.zt"
    path.write_bytes(zt_file(w=BASE))
    tensor = zt.open(path)["w"]
    with pytest.raises(ValueError, match="read-only"):
        tensor.numpy()[0] = 1
    tensor.numpy(writable=True)[0] = 1
    assert np.array_equal(zt.open(path)["w"].numpy(), BASE)
    assert zt.open(path.read_bytes())["w"].numpy()[0, 1] == 1.0


def test_a_part_of_a_tensor_has_a_shape_of_its_own():
    # ztensor 2 gives a part the shape of the whole, over memory that is not its own.
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_array(np.eye(64))
    components = zt.open(zt_file(w=matrix))["w"].components
    shapes = {role: component.numpy().shape for role, component in components.items()}
    assert shapes == {"values": (64,), "indices": (64,), "indptr": (65,)}


def test_a_pickle_runs_nothing():
    class Evil:
        def __reduce__(self):
            return print, ("this must not be printed",)

    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"w": Evil()}, protocol=2))
        archive.writestr("archive/version", "3\n")
    with pytest.raises(zt.ZtError):
        zt.open(sink.getvalue())["w"]


def test_a_file_is_used_from_any_thread(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    file = zt.open(zt_file(**{f"w{number}": BASE + number for number in range(32)}))
    with ThreadPoolExecutor(8) as pool:
        arrays = dict(zip(file, pool.map(lambda name: file[name].numpy(), file), strict=True))
    assert all(np.array_equal(array, BASE + int(name[1:])) for name, array in arrays.items())
