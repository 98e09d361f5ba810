"""Programs that load models: transformers, huggingface_hub, vLLM."""

import json
import re
import sys
import types

import pytest
import torch

import zt
import zt.torch
import zt.vllm


def test_a_model_is_saved_with_its_tied_weights_and_loads_in_place(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8, bias=False), torch.nn.Linear(8, 8))
    model[1].weight = model[0].weight
    path = tmp_path / "model.zt"
    zt.torch.save_model(model, path)
    assert set(zt.open(path)) == {"0.weight", "1.weight", "1.bias"}

    other = torch.nn.Sequential(torch.nn.Linear(8, 8, bias=False), torch.nn.Linear(8, 8))
    other[1].weight = other[0].weight
    place = other[0].weight.data_ptr()
    assert zt.torch.load_model(other, path) == ([], [])
    assert other[0].weight.data_ptr() == place
    assert torch.equal(other[1].weight, model[1].weight)
    assert torch.equal(other[1].bias, model[1].bias)


def test_names_that_a_file_lacks_are_missing_unless_they_are_tied(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4))
    model[1].weight = model[0].weight
    path = tmp_path / "model.safetensors"
    zt.torch.save_file({"1.weight": torch.ones(4, 4), "more": torch.ones(1)}, path)
    with pytest.raises(RuntimeError) as refused:
        zt.torch.load_model(model, path)
    with pytest.raises(RuntimeError) as official:
        model.load_state_dict(
            {"0.weight": torch.ones(4, 4), "1.weight": torch.ones(4, 4), "more": 1}
        )
    words = re.findall(r'(?:Miss|Unexp)\w+ key\(s\) in state_dict: "[^"]+"', str(refused.value))
    assert len(words) == 2 and all(word in str(official.value) for word in words)
    assert zt.torch.load_model(model, path, strict=False) == (["1.bias"], ["more"])
    assert torch.equal(model[0].weight, torch.ones(4, 4))


def test_a_model_without_memory_gets_it_from_the_file(tmp_path):
    source = torch.nn.Linear(3, 2)
    path = tmp_path / "model.zt"
    zt.torch.save_model(source, path)
    with torch.device("meta"):
        model = torch.nn.Linear(3, 2)
    assert zt.torch.load_model(model, path) == ([], [])
    assert torch.equal(model.weight, source.weight)
    model.weight.data += 1
    assert torch.equal(zt.torch.load_file(path)["weight"], source.weight.data)


def test_another_shape_is_an_error(tmp_path):
    path = tmp_path / "model.zt"
    zt.torch.save_model(torch.nn.Linear(3, 2), path)
    with pytest.raises(RuntimeError, match="size mismatch"):
        zt.torch.load_model(torch.nn.Linear(4, 2), path)


def test_a_lazy_state_dict_reads_what_is_asked_for(tmp_path):
    path = tmp_path / "model.zt"
    weight = torch.arange(12, dtype=torch.bfloat16).reshape(4, 3)
    zt.torch.save_file({"w": weight, "n": torch.ones(2, dtype=torch.int64)}, path)
    lazy = zt.torch.lazy_state_dict(path)
    assert set(lazy) == {"w", "n"}
    value = lazy["w"]
    assert (value.shape, value.dtype, value.ndim, value.numel()) == ((4, 3), torch.bfloat16, 2, 12)
    assert (value.get_shape(), value.get_dtype()) == ([4, 3], "BF16")
    assert value.is_floating_point() and not lazy["n"].is_floating_point()
    assert torch.equal(value[...], weight)
    assert torch.equal(value[1:3, ::2], weight[1:3, ::2])
    assert torch.equal(value[-1], weight[-1])
    assert value[0, 1].shape == ()


@pytest.mark.parametrize("dtype", [torch.float32, "auto"])
def test_transformers_takes_a_lazy_state_dict(tmp_path, dtype):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=8,
    )
    source = transformers.BertModel(config).eval()
    path = tmp_path / "model.zt"
    zt.torch.save_model(source, path)
    model = transformers.BertModel.from_pretrained(
        None, config=config, state_dict=zt.torch.lazy_state_dict(path), dtype=dtype
    ).eval()
    words = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        assert torch.equal(model(words).last_hidden_state, source(words).last_hidden_state)


def test_shards_have_the_names_and_the_index_of_the_hub(tmp_path):
    pytest.importorskip("huggingface_hub")
    import zt.hub

    weight = torch.randn(100, 10)
    state = {"a": weight, "b": torch.randn(100, 10), "tied": weight, "c": torch.randn(10)}
    paths = zt.hub.save_torch_state_dict(state, tmp_path, max_shard_size=5000)
    assert [path.name for path in paths] == [
        "model-00001-of-00002.zt",
        "model-00002-of-00002.zt",
        "model.zt.index.json",
    ]
    index = json.loads(paths[-1].read_text())
    assert set(index["weight_map"]) == set(state)
    loaded = zt.torch.load_file(paths[-1])
    assert all(torch.equal(loaded[name], state[name]) for name in state)

    (whole,) = zt.hub.save_torch_state_dict(state, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.zt"]
    assert set(zt.open(whole)) == set(state)


@pytest.fixture
def loaders(monkeypatch):
    """A stand-in for vLLM: what its registration of model loaders looks like."""
    found = {}

    def register_model_loader(load_format):
        def register(loader):
            assert issubclass(loader, BaseModelLoader)
            found[load_format] = loader
            return loader

        return register

    class BaseModelLoader:
        def __init__(self, load_config):
            self.load_config = load_config

    package = types.ModuleType("vllm.model_executor.model_loader")
    package.register_model_loader = register_model_loader
    base = types.ModuleType("vllm.model_executor.model_loader.base_loader")
    base.BaseModelLoader = BaseModelLoader
    for name, module in [
        ("vllm", types.ModuleType("vllm")),
        ("vllm.model_executor", types.ModuleType("vllm.model_executor")),
        ("vllm.model_executor.model_loader", package),
        ("vllm.model_executor.model_loader.base_loader", base),
    ]:
        monkeypatch.setitem(sys.modules, name, module)
    return found


class Served(torch.nn.Module):
    """A model as vLLM has them: it takes names and tensors, and says what it used."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(4, 2))
        self.bias = torch.nn.Parameter(torch.zeros(2))

    def load_weights(self, weights):
        own = dict(self.named_parameters())
        loaded = set()
        for name, value in weights:
            own[name].data.copy_(value)
            loaded.add(name)
        return loaded


def test_vllm_loads_a_folder_through_the_entry_point(tmp_path, loaders):
    from importlib.metadata import entry_points

    (entry,) = entry_points(group="vllm.general_plugins", name="zt")
    entry.load()()
    loader = loaders["zt"](types.SimpleNamespace(download_dir=None))
    config = types.SimpleNamespace(model=str(tmp_path), revision=None, quantization=None)
    loader_of = loader.load_weights

    with pytest.raises(FileNotFoundError, match="no weights"):
        loader_of(Served(), config)

    zt.torch.save_file({"weight": torch.ones(4, 2)}, tmp_path / "model.zt")
    with pytest.raises(ValueError, match="bias"):
        loader_of(Served(), config)

    zt.torch.save_file({"weight": torch.ones(4, 2), "bias": torch.ones(2)}, tmp_path / "model.zt")
    loader.download_model(config)
    model = Served()
    loader_of(model, config)
    assert torch.equal(model.weight.data, torch.ones(4, 2))
    assert torch.equal(model.bias.data, torch.ones(2))


def test_vllm_follows_the_index_of_shards(tmp_path):
    zt.torch.save_file({"a": torch.ones(1)}, tmp_path / "model-00001-of-00002.zt")
    zt.torch.save_file({"b": torch.ones(2)}, tmp_path / "model-00002-of-00002.zt")
    zt.torch.save_file({"stale": torch.ones(2)}, tmp_path / "model-00001-of-00009.zt")
    shards = {"a": "model-00001-of-00002.zt", "b": "model-00002-of-00002.zt"}
    (tmp_path / "model.zt.index.json").write_text(json.dumps({"weight_map": shards}))
    assert [name for name, _ in zt.vllm.weights_of(tmp_path)] == ["a", "b"]
