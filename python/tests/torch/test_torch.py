"""zt.torch: every kind of tensor goes to a file and comes back as what it was."""

import doctest
import importlib
import pickle
import re
from pathlib import Path

import pytest
import torch

import zt
import zt.torch

DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint64,
    torch.uint32,
    torch.uint16,
    torch.uint8,
    torch.bool,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2,
    torch.float8_e5m2fnuz,
]


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))


def round_trip(tmp_path, tensors, **options):
    path = tmp_path / "model.zt"
    zt.torch.save_file(tensors, path, **options)
    return zt.torch.load_file(path)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_comes_back_with_its_bits(tmp_path, dtype):
    source = torch.arange(24).reshape(2, 3, 4) % 2
    tensor = source.to(dtype) if dtype != torch.bool else source.bool()
    loaded = round_trip(tmp_path, {"w": tensor})["w"]
    assert same(loaded, tensor)


def test_nan_payloads_survive(tmp_path):
    tensor = torch.tensor([0x7FC1, 0xFFFF - 65536, 0x0001], dtype=torch.int16).view(torch.bfloat16)
    assert same(round_trip(tmp_path, {"w": tensor})["w"], tensor)


@pytest.mark.parametrize("zstd", [None, 3])
def test_views_are_saved_as_the_values_that_they_show(tmp_path, zstd):
    base = torch.arange(60, dtype=torch.float32).reshape(3, 4, 5)
    tensors = {
        "transposed": base.permute(2, 0, 1),
        "steps": base[:, ::2, 1::3],
        "flipped": base.flip(0),
        "expanded": torch.tensor([1.0, 2.0]).expand(3, 2),
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 3),
        "empty inside": torch.empty(2, 0, 3, dtype=torch.bfloat16),
        "channels last": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
        "conjugate": torch.tensor([1 + 2j, 3 - 4j]).conj(),
        "negative": torch.tensor([1 + 2j]).conj().imag,
    }
    loaded = round_trip(tmp_path, tensors, zstd=zstd)
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        assert loaded[name].shape == tensor.shape, name
        assert torch.equal(loaded[name], tensor.resolve_conj().resolve_neg()), name


def test_parameters_and_tensors_with_a_gradient_are_saved(tmp_path):
    parameter = torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
    computed = parameter * 2
    loaded = round_trip(tmp_path, {"p": parameter, "c": computed})
    assert same(loaded["p"], parameter.detach())
    assert same(loaded["c"], computed.detach())
    assert not loaded["p"].requires_grad


def test_tied_tensors_are_stored_once_and_keep_their_names(tmp_path):
    weight = torch.randn(256, 256)
    tensors = {"embed": weight, "head": weight, "other": torch.randn(2)}
    path = tmp_path / "model.zt"
    zt.torch.save_file(tensors, path)
    assert path.stat().st_size < 1.5 * weight.nbytes
    # A file of torch has the same tie.
    torch.save(tensors, tmp_path / "model.pt")
    for source in (path, tmp_path / "model.pt"):
        tied = zt.torch.load_file(source)
        assert set(tied) == set(tensors)
        assert tied["embed"] is tied["head"]
        assert same(tied["embed"], weight)
        apart = zt.torch.load_file(source, tied=False)
        assert apart["embed"].data_ptr() != apart["head"].data_ptr()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "model.zt"
    zt.torch.save_file({"a": torch.ones(2)}, path)
    for load in (
        lambda: zt.torch.load_file(path, device="cuda"),
        lambda: zt.open(path)["a"].torch("cuda:0"),
    ):
        with pytest.raises(zt.MisuseError, match="'cuda.*is not there"):
            load()


def test_loaded_tensors_do_not_share_a_storage(tmp_path):
    loaded = round_trip(tmp_path, {"a": torch.ones(4), "b": torch.zeros(4)})
    a, b = (loaded[name].untyped_storage() for name in "ab")
    assert a.data_ptr() != b.data_ptr()
    assert a.nbytes() == 16


def test_what_is_written_to_a_loaded_tensor_stays_out_of_the_file(tmp_path):
    path = tmp_path / "model.zt"
    zt.torch.save_file({"w": torch.ones(1000)}, path)
    before = path.read_bytes()
    zt.torch.load_file(path)["w"] += 1
    view = zt.open(path)["w"].torch()
    view += 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["zt", "safetensors"])
def test_pairs_of_fp4_are_saved(tmp_path, kind):
    packed = torch.tensor([[0x21, 0xF0], [3, 4]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    path = tmp_path / f"a.{kind}"
    zt.torch.save_file({"a": packed, "turned": packed.T}, path)
    file = zt.open(path)
    assert (file["a"].dtype, file["a"].shape, file["turned"].shape) == ("f4_e2m1fn", (2, 4), (2, 4))
    assert file["a"].dense().tolist() == [[0.5, 1.0, 0.0, -6.0], [1.5, 0.0, 2.0, 0.0]]
    if kind == "safetensors":
        loaded = pytest.importorskip("safetensors.torch").load_file(path)["a"]
        assert torch.equal(loaded.view(torch.uint8), packed.view(torch.uint8))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.complex64])
def test_sparse_tensors_come_back_in_their_layout(tmp_path, layout, dtype):
    dense = torch.tensor([[0, 2, 0], [0, 0, 0], [3, 0, 4]]).to(dtype)
    sparse = dense.to_sparse(layout=layout)
    loaded = round_trip(tmp_path, {"s": sparse})["s"]
    assert loaded.layout == layout
    assert loaded.dtype == dtype
    assert torch.equal(loaded.to_dense(), dense)


def test_a_coo_tensor_with_repeated_places_adds_them_up(tmp_path):
    sparse = torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 4.0], (2, 2))
    loaded = round_trip(tmp_path, {"s": sparse})["s"]
    assert torch.equal(loaded.to_dense(), sparse.to_dense())


def test_an_empty_sparse_tensor_comes_back(tmp_path):
    for layout in (torch.sparse_coo, torch.sparse_csr):
        sparse = torch.zeros(3, 4).to_sparse(layout=layout)
        loaded = round_trip(tmp_path, {"s": sparse})["s"]
        assert loaded.shape == (3, 4)
        assert torch.equal(loaded.to_dense(), torch.zeros(3, 4))


def test_tensors_without_data_of_their_own_are_refused(tmp_path):
    path = tmp_path / "model.zt"
    with pytest.raises(ValueError, match="meta"):
        zt.torch.save_file({"w": torch.empty(2, device="meta")}, path)
    with pytest.raises(ValueError, match="to_sparse_csr"):
        zt.torch.save_file({"w": torch.eye(4).to_sparse_csc()}, path)
    with pytest.raises(TypeError, match="'w' is not a torch.Tensor"):
        zt.torch.save_file({"w": [1, 2]}, path)
    assert not path.exists()


def test_the_device_meta_reads_nothing(tmp_path):
    path = tmp_path / "model.zt"
    zt.torch.save_file({"w": torch.ones(8, 2, dtype=torch.bfloat16)}, path)
    content = bytearray(path.read_bytes())
    content[64:96] = b"\xff" * 32  # damage that a read would notice
    path.write_bytes(content)
    loaded = zt.torch.load_file(path, device="meta")
    assert loaded["w"].is_meta
    assert (loaded["w"].shape, loaded["w"].dtype) == ((8, 2), torch.bfloat16)
    with pytest.raises(zt.DigestMismatchError):
        zt.torch.load_file(path)


def test_bytes_are_saved_and_loaded_too():
    tensors = {"w": torch.arange(4, dtype=torch.bfloat16)}
    data = zt.torch.save(tensors, {"format": "pt"})
    assert same(zt.torch.load(data)["w"], tensors["w"])
    assert zt.torch.save(tensors, {"format": "pt"}) == data
    loaded = zt.torch.load(data)["w"]
    loaded += 1  # bytes are immutable, so this must be a copy
    assert same(zt.torch.load(data)["w"], tensors["w"])
    view = zt.open(data)["w"].torch()
    view += 1
    assert same(zt.torch.load(data)["w"], tensors["w"])


def test_the_extension_or_the_argument_says_the_kind(tmp_path):
    tensors = {"w": torch.arange(4, dtype=torch.float32)}
    for name, options in [("a.safetensors", {}), ("b.bin", {"kind": "safetensors"})]:
        zt.torch.save_file(tensors, tmp_path / name, {"format": "pt"}, **options)
        assert zt.open(tmp_path / name).kind == "safetensors"
        assert same(zt.torch.load_file(tmp_path / name)["w"], tensors["w"])


class Evil:
    def __reduce__(self):
        return eval, ("__import__('pathlib').Path('executed').touch()",)


def test_a_pytorch_file_is_read_and_nothing_in_it_is_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    weight = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    torch.save({"w": weight, "t": weight.T, "evil": Evil()}, "model.pt")
    file = zt.open("model.pt")
    assert same(file["w"].torch(), weight)
    assert torch.equal(file["t"].torch(), weight.T)
    assert not (tmp_path / "executed").exists()
    torch.load("model.pt", weights_only=False)
    assert (tmp_path / "executed").exists()  # the file does have what it takes


def test_a_tensor_of_a_file_is_a_tensor_of_torch(tmp_path):
    path = tmp_path / "model.zt"
    weight = torch.randn(64, 8).bfloat16()
    zt.torch.save_file({"w": weight}, path)
    with zt.open(path) as file:
        tensor = file["w"]
    assert same(tensor.torch(), weight)  # after the file was closed
    assert same(torch.from_dlpack(tensor), weight)
    assert tensor.torch(device="meta").is_meta
    assert tensor.torch(copy=True).data_ptr() != tensor.torch(copy=True).data_ptr()
    assert tensor.torch().data_ptr() == tensor.torch().data_ptr()
    with pytest.raises(TypeError):
        pickle.dumps(tensor)


def test_quantized_groups_are_dequantized(tmp_path):
    import numpy

    path = tmp_path / "model.zt"
    group = zt.QuantizedGroup(
        packed_weight=numpy.array([0x21, 0xF8], dtype=numpy.uint8),
        scales=numpy.array([0.5, 2.0], dtype=numpy.float32),
        shape=(4,),
        bits=4,
        group_size=2,
        packing="2_per_u8",
    )
    with zt.Writer(path) as writer:
        writer.add("q", group)
    expected = torch.tensor([0.5, 1.0, 16.0, 30.0])
    assert torch.equal(zt.torch.load_file(path)["q"], expected)
    assert torch.equal(zt.open(path)["q"].torch(), expected)


def test_tensors_are_read_into_memory_that_is_there(tmp_path):
    path = tmp_path / "model.zt"
    tensors = {
        "a": torch.randn(8, 4),
        "b": torch.randn(8, 4).bfloat16(),
        "c": torch.randn(4).to(torch.float8_e4m3fn),
    }
    zt.torch.save_file(tensors, path)
    out = {
        "a": torch.zeros(4, 8).T,  # not contiguous
        "b": torch.nn.Parameter(torch.zeros(8, 4, dtype=torch.bfloat16)),
        "c": torch.zeros(4, dtype=torch.float8_e4m3fn),
    }
    with zt.open(path) as file:
        file.read_into(out)
        with pytest.raises(ValueError, match="'a'|shape"):
            file["a"].read_into(torch.zeros(4, 8))
    for name, tensor in tensors.items():
        assert same(out[name].detach(), tensor), name


def test_progress_counts_the_bytes_that_are_loaded(tmp_path):
    path = tmp_path / "model.zt"
    zt.torch.save_file({"a": torch.ones(1000), "b": torch.ones(500)}, path)
    seen = []
    zt.torch.load_file(path, progress=seen.append)
    assert sum(seen) == 6000


@pytest.mark.parametrize("name", ["zt.torch", "zt.torch._saver", "zt.torch.checkpoint"])
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_examples_of_modules_run(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted and not outcome.failed


def test_pieces_pass_through_the_ring_unchanged():
    from zt.torch._memory import Ring

    ring = Ring(torch.device("cpu"), slot_nbytes=1000, slots=3)
    for value in (torch.randn(1234), torch.tensor(1.5), torch.empty(0), torch.ones(250).bfloat16()):
        out = torch.empty_like(value)
        ring.copy(value, out)
        ring.finish()
        assert same(out, value)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_tensors_arrive_on_a_gpu(tmp_path):
    tensors = {
        "large": torch.randn(5000, 5000),
        "small": torch.tensor(1.5, dtype=torch.bfloat16),
        "empty": torch.empty(0, 2),
        "sparse": torch.eye(4).to_sparse_csr(),
    }
    path = tmp_path / "model.zt"
    zt.torch.save_file({name: tensor.cuda() for name, tensor in tensors.items()}, path)
    loaded = zt.torch.load_file(path, device="cuda")
    for name, tensor in tensors.items():
        assert loaded[name].is_cuda
        assert torch.equal(loaded[name].cpu().to_dense(), tensor.to_dense())
    assert torch.equal(zt.open(path)["large"].torch(device="cuda").cpu(), tensors["large"])


def test_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "README.md").read_text()
    blocks = re.findall(r"```python(?: torch)?\n(.*?)```", text, re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for code in blocks:
        exec(compile(code, "README.md", "exec"), names)  # noqa: S102
    assert (names["missing"], names["unexpected"]) == ([], [])
