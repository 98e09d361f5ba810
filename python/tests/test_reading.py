"""Reading: any file as a mapping of tensors, arrays, slices, and what outlives what."""

import collections.abc
import gc
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import gguf
import ml_dtypes
import numpy as np
import pytest

import zt
import zt.numpy

DTYPES = [
    "float64",
    "float32",
    "float16",
    ml_dtypes.bfloat16,
    "int64",
    "int32",
    "int16",
    "int8",
    "uint64",
    "uint32",
    "uint16",
    "uint8",
    "bool",
    "complex64",
    "complex128",
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2fnuz,
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.zt"


@pytest.fixture
def model(path):
    with zt.Writer(path, attributes={"step": 7}) as writer:
        writer.add("weight", np.arange(24, dtype="f4").reshape(2, 3, 4))
        writer.add("packed", np.arange(30000, dtype="i4").reshape(100, 300), zstd=3)
        writer.add("bias", np.arange(5).astype(ml_dtypes.bfloat16))
    return path


def test_a_file_is_a_mapping_of_names_to_tensors(model):
    with zt.open(model) as file:
        assert isinstance(file, collections.abc.Mapping)
        assert sorted(file) == sorted(file.keys()) == ["bias", "packed", "weight"]
        assert len(file) == 3
        assert "weight" in file and "nothing" not in file and 3 not in file
        assert {name: tensor.shape for name, tensor in file.items()}["weight"] == (2, 3, 4)
        assert file.get("nothing") is None and file.get("nothing", 5) == 5
        assert (file.kind, file.attributes, file.path) == ("zt", {"step": 7}, model)
        assert not file.warnings
    assert file.closed
    with pytest.raises(ValueError, match="closed"):
        len(file)


def test_a_tensor_tells_what_it_is_before_anything_is_read(model):
    tensor = zt.open(model)["packed"]
    assert (tensor.name, tensor.shape, tensor.dtype) == ("packed", (100, 300), "i32")
    assert (tensor.format, tensor.nbytes, tensor.ndim, tensor.size) == ("dense", 120000, 2, 30000)
    data = tensor.components["data"]
    assert (data.role, data.dtype, data.encoding, data.nbytes) == ("data", "i32", "zstd", 120000)
    assert data.stored_nbytes < 120000 and data.offset % 64 == 0
    assert data.digest.startswith("crc32c:")
    assert data.numpy().shape == (100, 300)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [{}, {"zstd": 3}, {"planes": True}])
def test_every_dtype_survives(path, dtype, options):
    array = np.arange(60).reshape(3, 4, 5).astype(dtype)
    with zt.Writer(path, **options) as writer:
        writer.add("a", array)
    for source in (path, path.read_bytes(), bytearray(path.read_bytes()), path.open("rb")):
        for mmap in (True, False):
            tensor = zt.open(source, mmap=mmap)["a"]
            read = tensor.numpy()
            assert read.dtype == array.dtype
            assert np.array_equal(read, array)
            assert np.array_equal(tensor[1:, ::-2, 3], array[1:, ::-2, 3])


def test_a_view_of_the_map_is_read_only_and_a_writable_one_never_reaches_the_file(model):
    before = model.read_bytes()
    file = zt.open(model)
    view = file["weight"].numpy(copy=False)
    assert not view.flags.writeable and not view.flags.owndata
    writable = file["weight"].numpy(writable=True)
    writable += 1
    assert model.read_bytes() == before
    assert file.verify().ok, "digests are compared by position, not through the map"
    assert zt.hash(file) == zt.hash(model)
    own = file["weight"].numpy(copy=True)
    own[:] = 0
    assert file["weight"].numpy()[0, 0, 0] == 1
    assert zt.open(model)["weight"].numpy()[0, 0, 0] == 0


def test_arrays_outlive_the_file(model):
    with zt.open(model) as file:
        array, tensor, view = file["weight"].numpy(), file["packed"], memoryview(file["weight"])
    del file
    gc.collect()
    assert array.sum() == 276 and tensor.numpy()[1, 1] == 301 and view[1, 2, 3] == 23


def test_a_tensor_is_an_array_in_the_eyes_of_others(model):
    tensor = zt.open(model)["weight"]
    assert np.asarray(tensor).sum() == 276
    assert np.asarray(tensor, dtype="f8").dtype == np.float64
    view = memoryview(tensor)
    assert (view.format, view.shape, view.readonly) == ("f", (2, 3, 4), True)
    with pytest.raises(BufferError):
        np.frombuffer(zt.open(model)["bias"], dtype="u1")
    exported = np.from_dlpack(tensor)
    assert exported.sum() == 276 and not exported.flags.writeable
    copied = np.from_dlpack(tensor, copy=True)
    assert copied.flags.writeable
    assert tensor.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(zt.open(model)["bias"].__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(zt.open(model)["bias"].__dlpack__())
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))


def test_wrong_indices_are_errors_of_numpy(model):
    tensor = zt.open(model)["weight"]
    for index in [(5,), (0, 0, 0, 0), (..., ...), 1.5, [0, 1], True, "x"]:
        with pytest.raises(IndexError):
            tensor[index]
    with pytest.raises(ValueError, match="zero"):
        tensor[::0]
    assert isinstance(tensor[0, 0, 0], np.float32)
    assert tensor[0, 0, 0, ...].shape == ()
    assert tensor[:0].shape == (0, 3, 4)


def test_a_slice_reads_only_what_it_needs(tmp_path):
    class Counting(io.FileIO):
        taken = 0

        def read(self, size=-1):
            Counting.taken += size
            return super().read(size)

    path = tmp_path / "large.zt"
    zeros = np.zeros((4096, 1024), dtype="f4")
    zeros[:, 0] = np.arange(4096)
    zt.numpy.save_file({"a": zeros}, path)
    file = zt.open(Counting(path))
    Counting.taken = 0
    assert file["a"][4000, 0] == 4000
    # The first read of a chunk of 1 MiB compares its digest.
    assert Counting.taken < 2 << 20
    Counting.taken = 0
    assert file["a"][4001, 0] == 4001
    assert Counting.taken < 1 << 20


def test_a_file_whose_end_is_missing_opens_on_request(tmp_path):
    path, whole = tmp_path / "cut.safetensors", tmp_path / "whole.safetensors"
    zt.numpy.save_file({"a": np.arange(4, dtype="f4"), "b": np.arange(9, dtype="f4")}, whole)
    path.write_bytes(whole.read_bytes()[:-4])
    with pytest.raises(zt.MalformedError) as error:
        zt.open(path)
    assert error.value.code == "truncated"
    file = zt.open(path, truncated=True)
    assert [warning.code for warning in file.warnings] == ["truncated"]
    assert list(file) == ["a", "b"] and file["a"].numpy().tolist() == [0, 1, 2, 3]
    with pytest.raises(zt.MalformedError, match="32 of 36 bytes"):
        file["b"]
    assert zt.diff(file, whole).changed == {"b": ["unreadable"]}
    target = tmp_path / "saved.zt"
    with pytest.raises(zt.MalformedError):
        zt.convert(file, target, lossy=True)
    assert zt.convert(file, target, skip_damaged=True).damaged == ["b"]
    assert list(zt.open(target)) == ["a"]


def test_errors_are_those_of_python_too(tmp_path, model):
    with pytest.raises(FileNotFoundError) as missing:
        zt.open(tmp_path / "nothing.zt")
    assert isinstance(missing.value, zt.ZtError) and missing.value.errno == 2
    with pytest.raises(KeyError) as absent:
        zt.open(model)["nothing"]
    again = pickle.loads(pickle.dumps(absent.value))
    assert (type(again), again.code, again.object) == (
        zt.TensorNotFoundError,
        "not-found",
        "nothing",
    )
    with pytest.raises(zt.UnsupportedError):
        zt.open(b"no tensor file")
    with pytest.raises(zt.MalformedError):
        zt.open(model.read_bytes()[:-1])
    with pytest.raises(TypeError):
        zt.open(3)
    with pytest.raises(ValueError, match="on_read"):
        zt.open(model, verify="sometimes")


def test_damage_is_an_error_when_it_is_read(model):
    data = bytearray(model.read_bytes())
    at = zt.open(model)["weight"].components["data"].offset
    data[at] ^= 1
    model.write_bytes(data)
    for source in (model, bytes(data), io.BytesIO(data)):
        file = zt.open(source)
        with pytest.raises(zt.DigestMismatchError) as error:
            file["weight"].numpy()
        assert (error.value.object, error.value.component) == ("weight", "data")
        assert file["bias"].numpy()[1] == 1
        assert zt.open(source, verify="never")["weight"].numpy().shape == (2, 3, 4)
    report = zt.verify(model)
    assert not report and [problem.object for problem in report.problems] == ["weight"]
    with pytest.raises(zt.DigestMismatchError):
        zt.numpy.load_file(model)


def test_what_a_file_object_raises_comes_out_as_it_was(model):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        zt.open(Broken(model.read_bytes()))


def test_handles_refuse_pickling(model):
    file = zt.open(model)
    for handle in (file, file["weight"], file["weight"].components["data"]):
        with pytest.raises(TypeError, match="path"):
            pickle.dumps(handle)


def test_reading_into_memory_that_is_there(model):
    file = zt.open(model)
    weight, packed = np.empty((2, 3, 4), "f4"), np.empty((300, 100), "i4").T
    seen = []
    file.read_into({"weight": weight, "packed": packed}, progress=seen.append)
    assert weight.sum() == 276 and packed[1, 1] == 301 and sum(seen) > 0
    raw = bytearray(96)
    file["weight"].read_into(raw)
    assert np.frombuffer(raw, "f4").sum() == 276
    frozen = np.empty((2, 3, 4), "f4")
    frozen.flags.writeable = False
    for out in (np.empty((2, 3, 4)), np.empty((3, 4), "f4"), frozen, bytearray(95), bytes(96)):
        with pytest.raises(ValueError):
            file["weight"].read_into(out)


def test_two_tensors_are_not_read_into_one_array(tmp_path):
    path = tmp_path / "two.zt"
    zt.numpy.save_file({"a": np.zeros(8), "b": np.ones(8)}, path)
    out = np.empty(12)
    for a, b in [(out[:8], out[:8]), (out[:8], out[4:])]:
        with pytest.raises(ValueError, match="share"):
            zt.open(path).read_into({"a": a, "b": b})


def test_a_table_for_notebooks_is_escaped_and_short(path):
    with zt.Writer(path) as writer:
        for at in range(60):
            writer.add(f"<script>{at}", np.zeros(1))
    table = zt.open(path)._repr_html_()
    assert "<script>" not in table and "&lt;script&gt;0" in table and "and 10 more" in table
    assert "<p>zt, 60 tensors, 60 parameters, 480 B: f64 480 B</p>" in table
    assert "<td>f64</td>" in zt.open(path)["<script>0"]._repr_html_()


def test_a_tensor_in_a_notebook_has_its_figures_and_its_histogram(path):
    small, large = np.arange(8, dtype="i4").reshape(2, 4), np.full((2048, 512), 2.5, "f4")
    zt.numpy.save_file({"large": large, "small": small}, path)
    html = zt.open(path)["small"]._repr_html_()
    figures = ["0", "7", "3.500000e0", "2.291288e0", "1", "0", "0"]
    assert "".join(f"<td>{figure}</td>" for figure in figures) in html
    assert html.count("<rect") == 8 and "sample" not in html
    assert "of a sample of 65536 values" in zt.open(path)["large"]._repr_html_()


def test_importing_zt_imports_nothing_else():
    modules = "numpy ml_dtypes torch jax scipy"
    code = f"import sys, zt; assert not [m for m in {modules.split()} if m in sys.modules]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_modules_come_with_the_package_when_they_are_used():
    code = (
        "import sys, zt; assert 'zt.numpy' not in sys.modules; zt.numpy.save; zt.safetensors"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert not hasattr(zt, "nothing")


def test_a_dash_is_stdin(tmp_path):
    path = tmp_path / "a.zt"
    zt.numpy.save_file({"a": np.arange(3)}, path)
    code = "import zt; file = zt.open('-'); print(file['a'].numpy().tolist(), file.path)"
    for given in (path.read_bytes(), None):
        with open(path, "rb") as file:
            stdin = {"stdin": file} if given is None else {"input": given}
            out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, **stdin)
        assert out.stdout.split(b"\n")[0].strip() == b"[0, 1, 2] -"


def test_a_folder_opens_the_set_or_the_only_file_in_it(tmp_path):
    folder = Path(__file__).parents[2] / "conformance" / "data" / "gguf-set"
    assert list(zt.open(folder)) == ["a", "b"]
    with pytest.raises(zt.MisuseError, match="no tensor file"):
        zt.open(tmp_path)
    zt.numpy.save_file({"a": np.zeros(1)}, tmp_path / "a.zt")
    assert list(zt.open(tmp_path)) == ["a"] and zt.verify(tmp_path).ok
    zt.numpy.save_file({"b": np.zeros(1)}, tmp_path / "b.npz")
    with pytest.raises(zt.MisuseError, match=r"a\.zt, b\.npz"):
        zt.open(str(tmp_path))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"metadata": {}, "weight_map": {"a": "a.zt", "b": "b.npz"}}')
    zt.convert(tmp_path / "a.zt", tmp_path / "a.safetensors")
    index.write_text('{"metadata": {}, "weight_map": {"a": "a.safetensors"}}')
    assert zt.open(tmp_path).kind == "safetensors"


def test_an_unknown_name_suggests_the_closest(model):
    file = zt.open(model)
    with pytest.raises(KeyError, match='did you mean "weight"') as error:
        file["wieght"]
    assert (error.value.code, error.value.object) == ("not-found", "wieght")
    with pytest.raises(KeyError) as error:
        file["another"]
    assert "did you mean" not in str(error.value)


def test_a_quantized_tensor_has_the_type_and_the_bytes_that_the_program_lists(tmp_path):
    path = tmp_path / "a.gguf"
    values = np.random.default_rng(1).standard_normal((4, 64), dtype="f4")
    writer = gguf.GGUFWriter(path, "test")
    for name, kind in [("q", gguf.GGMLQuantizationType.Q4_1), ("d", None)]:
        data = values if kind is None else gguf.quants.quantize(values, kind)
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = zt.open(path)
    tensor = file["q"]
    assert (tensor.dtype, tensor.dense_dtype, tensor.nbytes) == ("q4_1", "f32", 4 * 2 * 20)
    assert (file["d"].dtype, file["d"].dense_dtype, file["d"].nbytes) == ("f32", "f32", 1024)
    assert tensor.dense().dtype == np.float32
    assert file.nbytes == 160 + 1024 == sum(tensor.nbytes for tensor in file.values())
    assert file.stored_nbytes == path.stat().st_size
    listed = subprocess.run(
        [sys.executable, "-m", "zt", "ls", path], check=True, capture_output=True, text=True
    )
    assert (
        "q4_1" in listed.stdout and "160 B" in listed.stdout and "1.2 KiB logical" in listed.stdout
    )


def test_the_repr_of_a_tensor_shows_values_and_of_a_file_its_size(tmp_path):
    path = tmp_path / "a.zt"
    values = {
        "scalar": np.float64(0.5),
        "small": np.arange(6, dtype="f4").reshape(2, 3),
        "half": np.arange(3).astype(ml_dtypes.bfloat16),
        "large": np.arange(3 << 20, dtype="i4").reshape(3, 1024, 1024),
        "empty": np.empty((0, 3)),
        "narrow": np.zeros((6,) * 5, "i1"),
    }
    zt.numpy.save_file(values, path)
    file = zt.open(path)
    assert repr(file) == f"<zt.File {str(path)!r} kind=zt tensors=6 12.0 MiB>".replace("'", '"')
    assert repr(file["small"]) == (
        '<zt.Tensor "small" shape=[2, 3] dtype=f32\n[[0., 1., 2.],\n [3., 4., 5.]]>'
    )
    assert repr(file["scalar"]).endswith("\n0.5>") and repr(file["half"]).endswith("\n[0, 1, 2]>")
    shown = np.array2string(values["large"], separator=", ", threshold=0, edgeitems=3)
    assert repr(file["large"]) == f'<zt.Tensor "large" shape=[3, 1024, 1024] dtype=i32\n{shown}>'
    assert repr(file["empty"]).endswith("dtype=f64\n[]>")
    assert repr(file["narrow"]).endswith("dtype=i8>"), "NumPy would shorten no dimension"
    assert "12.0 MiB" in file["large"]._repr_html_()
    damaged = bytearray(path.read_bytes())
    damaged[file["half"].components["data"].offset] ^= 1
    assert repr(zt.open(damaged)["half"]) == '<zt.Tensor "half" shape=[3] dtype=bf16>'
    assert "\n" not in repr(zt.open(path.open("rb"))["small"]), "a file object may be slow"


def test_opaque_elements_of_numpy_have_the_type_that_the_caller_names(tmp_path):
    path = tmp_path / "a.npz"
    halves, nibbles = np.arange(3).astype(ml_dtypes.bfloat16), np.array([-8, 7], ml_dtypes.int4)
    np.savez(path, halves=halves, nibbles=nibbles)
    file = zt.open(path, ml_dtype=["bfloat16", "int4"])
    assert np.array_equal(file["halves"].numpy(), halves)
    assert (file["nibbles"].dtype, file["nibbles"].dense().tolist()) == ("i4", [-8, 7])
    assert zt.open(path, ml_dtype="bfloat16")["halves"].dtype == "bf16"
    with pytest.raises(zt.MisuseError, match="float3"):
        zt.open(path, ml_dtype="float3")


def test_threads_are_a_number_from_one_on(model):
    with pytest.raises(ValueError):
        zt.verify(model, threads=0)
    for threads in (1, 3):
        assert zt.verify(model, threads=threads).ok
        loaded = zt.numpy.load_file(model, threads=threads)
        data = zt.numpy.save(loaded, threads=threads, zstd=3)
        assert data == zt.numpy.save(loaded, zstd=3)
        with zt.Writer(model.with_name("new.zt"), threads=threads, zstd=3) as writer:
            writer.add("packed", loaded["packed"])
        assert zt.open(model.with_name("new.zt"))["packed"].numpy()[1, 1] == 301
    code = f"import zt; zt.verify({str(model)!r})"
    env = {**os.environ, "ZT_NUM_THREADS": "many"}
    failed = subprocess.run(
        [sys.executable, "-c", code], check=False, env=env, capture_output=True, text=True
    )
    assert "ZT_NUM_THREADS" in failed.stderr


def test_any_part_of_a_gguf_set_opens_the_whole_set():
    folder = Path(__file__).parents[2] / "conformance" / "data" / "gguf-set"
    parts = sorted(folder.glob("*.gguf"))
    assert len(parts) == 3
    for part in parts:
        with zt.open(part) as file:
            assert list(file) == ["a", "b"]
            assert file["b"][:].tolist() == [3.0, 4.0, 5.0]
            assert not any(key.startswith("split.") for key in file.attributes)
            assert not file.warnings
