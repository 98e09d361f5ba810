"""Hosts that know only safetensors load a `.zt` that is called `model.safetensors`, unpatched."""

import json

import numpy as np
import pytest
import torch

import zt
import zt.safetensors
import zt.safetensors.torch as zst

STATE = {
    "w": torch.arange(12, dtype=torch.float32).reshape(3, 4),
    "half": torch.ones(2, 2, dtype=torch.bfloat16),
    "f8": torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn),
    "scalar": torch.tensor(2.5, dtype=torch.float64),
    "empty": torch.zeros(0, 3),
    "flags": torch.tensor([True, False]),
    "complex": torch.tensor([1 + 2j]),
}


@pytest.fixture
def stand_in():
    with zt.safetensors.install():
        yield


def same(a, b):
    assert a.keys() == b.keys()
    for name, tensor in a.items():
        assert (tensor.dtype, tensor.shape) == (b[name].dtype, b[name].shape), name
        assert torch.equal(tensor.view(-1).view(torch.uint8), b[name].view(-1).view(torch.uint8)), (
            name
        )


def save_zt(path, state, **options):
    with zt.Writer(path, **options) as writer:
        for name, tensor in state.items():
            writer.add(name, tensor)


def test_tensors_come_back_in_views_that_may_be_written_to(tmp_path):
    path = tmp_path / "model.safetensors"
    packed = torch.tensor([[1, 2]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    zst.save_file(STATE | {"f4": packed}, path)
    for loaded in (
        zst.load_file(path),
        zst.load_file(path, backend="pread"),
        zst.load(path.read_bytes()),
    ):
        same(loaded, STATE | {"f4": packed})
        loaded["w"] += 1
    same(zst.load_file(path), STATE | {"f4": packed})


def test_pairs_of_fp4_are_read_from_a_zt_file(tmp_path):
    packed = torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    source, path = tmp_path / "model.safetensors", tmp_path / "model.zt"
    zst.save_file({"f4": packed}, source)
    zt.convert(source, path)
    for loaded in (
        zst.load_file(path),
        zst.load_file(path, backend="pread"),
        zst.load(path.read_bytes()),
    ):
        same(loaded, {"f4": packed})
    values = zt.open(path)["f4"].dense()
    assert values.tolist() == [[0.5, 0.0, 1.0, 0.0], [1.5, 0.0, 2.0, 0.0]]


def test_the_bytes_are_those_of_the_official_package(tmp_path):
    official = pytest.importorskip("safetensors.torch")
    assert zst.save(STATE, {"format": "pt"}) == official.save(STATE, {"format": "pt"})
    names = set(vars(official))
    known = {
        name for name in names if callable(getattr(official, name)) and not name.startswith("__")
    }
    taken = {"Any", "Dict", "List", "Optional", "Set", "Tuple", "Union", "defaultdict"}
    internal = {
        "_evaluate_tensors_for_save",
        "_filter_shared_not_shared",
        "_flatten_as_ptr",
        "_to_ndarray",
    }
    assert known - taken - internal - set(vars(zst)) == set()


def test_loaded_tensors_can_be_saved_again(tmp_path):
    path = tmp_path / "model.safetensors"
    zst.save_file(STATE, path)
    loaded = zst.load_file(path)
    assert all(len(names) == 1 for names in zst._find_shared_tensors(loaded))
    zst.save_file(loaded, path)
    same(zst.load_file(path), STATE)


@pytest.mark.parametrize("options", [{}, {"zstd": 1}])
def test_a_zt_is_loaded_and_sliced(tmp_path, options):
    path = tmp_path / "model.safetensors"
    state = STATE | {"long": torch.arange(3_000_000, dtype=torch.float32).reshape(3000, 1000)}
    save_zt(path, state, **options)
    same(zst.load_file(path), state)
    with zt.safetensors.safe_open(filename=path, framework="pt") as file:
        part = file.get_slice("long")
        assert (part.get_shape(), part.get_dtype()) == ([3000, 1000], "F32")
        for key in (
            slice(2990, None),
            (slice(None), 3),
            (..., slice(1, 9, 2)),
            [0, 5],
            (2, 3),
            ...,
        ):
            assert torch.equal(part[key], state["long"][key])


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_torch_load_and_the_reader_of_checkpoints_take_a_zt(tmp_path, stand_in):
    from torch.distributed.checkpoint import load
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

    path = tmp_path / "model.safetensors"
    state = {"w": STATE["w"], "half": STATE["half"]}
    for save in (zst.save_file, lambda state, path: save_zt(path, state, zstd=1)):
        save(state, path)
        same(torch.load(path), state)
        out = {"w": torch.zeros(3, 4), "half": torch.zeros(2, 2, dtype=torch.bfloat16)}
        load(out, storage_reader=HuggingFaceStorageReader(str(tmp_path)), no_dist=True)
        same(out, state)


def test_transformers_loads_a_zt(tmp_path, stand_in):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(tmp_path)
    official = tmp_path / "model.safetensors"
    state = zst.load_file(official)
    official.unlink()
    save_zt(official, state, zstd=3)
    assert zt.open(official).kind == "zt"
    loaded = transformers.LlamaForCausalLM.from_pretrained(tmp_path)
    same(dict(loaded.state_dict()), dict(model.state_dict()))


def test_accelerate_loads_a_zt(tmp_path, stand_in):
    accelerate = pytest.importorskip("accelerate")
    model = torch.nn.Linear(4, 3)
    path = tmp_path / "model.safetensors"
    state = {"weight": torch.ones(3, 4), "bias": torch.zeros(3)}
    save_zt(path, state, attributes={"format": "pt", "step": 3})
    accelerate.load_checkpoint_in_model(model, str(path))
    same(dict(model.state_dict()), state)
    with accelerate.init_empty_weights():
        empty = torch.nn.Linear(4, 3)
    accelerate.load_checkpoint_and_dispatch(empty, str(path), device_map={"": "cpu"})
    same(dict(empty.state_dict()), state)


def test_a_gguf_and_a_checkpoint_of_torch_load_too(tmp_path):
    path = tmp_path / "model.safetensors"
    torch.save(STATE | {"t": STATE["w"].T}, path)
    same(zst.load_file(path), STATE | {"t": STATE["w"].T.contiguous()})


def test_a_model_saves_shared_tensors_once(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    model[1].weight = model[0].weight
    path = tmp_path / "m.safetensors"
    with pytest.raises(RuntimeError, match="share memory"):
        zst.save_file(model.state_dict(), path)
    zst.save_model(model, path)
    with zt.safetensors.safe_open(path, "pt") as file:
        assert file.metadata() == {"1.weight": "0.weight"}
    assert zst.load_model(model, path) == (set(), [])


def test_devices_are_those_of_the_official_package(tmp_path):
    path = tmp_path / "m.safetensors"
    zst.save_file({"w": STATE["w"]}, path)
    for device in ("cuda:x", "moon", "mps:1", "meta"):
        with pytest.raises((zt.safetensors.SafetensorError, ValueError)):
            zst.load_file(path, device=device)


def test_the_shards_of_an_index_load_as_one(tmp_path):
    zst.save_file({"a": STATE["w"]}, tmp_path / "model-00001-of-00002.safetensors")
    zst.save_file({"b": STATE["half"]}, tmp_path / "model-00002-of-00002.safetensors")
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": names}))
    same(zst.load_file(index), {"a": STATE["w"], "b": STATE["half"]})
    assert np.array_equal(zt.open(index)["a"].numpy(), STATE["w"].numpy())
