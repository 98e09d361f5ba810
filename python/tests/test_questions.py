"""What people ask of weights each week, beside the figures of NumPy: statistics, distances, means, LoRA, sets."""

import json

import numpy as np
import pytest

import zt
import zt.numpy


@pytest.fixture
def weights():
    rng = np.random.default_rng(7)
    return {
        "layers.0.weight": rng.normal(size=(6, 4)).astype("f4"),
        "layers.1.weight": rng.normal(size=(6, 4)).astype("f4"),
        "ids": np.arange(5),
    }


def saved(path, tensors):
    zt.numpy.save_file(tensors, path)
    return path


def test_statistics_are_those_of_numpy(tmp_path, weights):
    weights["layers.1.weight"][2] = 0
    weights["layers.0.weight"][0, 0] = np.nan
    stats = zt.stats(saved(tmp_path / "m.safetensors", weights))
    assert list(stats) == list(zt.open(tmp_path / "m.safetensors")) and not stats.errors
    ids, second = stats["ids"], stats["layers.1.weight"]
    assert (ids.min, ids.max, ids.count, ids.dtype, ids.shape) == (0, 4, 5, "i64", (5,))
    values = weights["layers.1.weight"].astype("f8")
    assert (second.min, second.max, second.zeros) == (values.min(), values.max(), 4)
    assert second.mean == pytest.approx(values.mean()) and second.std == pytest.approx(values.std())
    assert stats.problems == {
        "layers.0.weight": ["1 NaN"],
        "layers.1.weight": ["1 row of zeros"],
    }
    assert (stats["layers.0.weight"].nan, second.dead_rows) == (1, 1)
    assert "<td>1 NaN</td>" in stats._repr_html_()


def test_a_table_is_escaped_and_has_the_tensors_that_cannot_be_read(tmp_path):
    path = saved(tmp_path / "m.zt", {"<b>": np.ones(3), "x": np.arange(1000.0)})
    data = bytearray(path.read_bytes())
    data[zt.open(path)["x"].components["data"].offset] ^= 1
    stats = zt.stats(bytes(data))
    assert isinstance(stats.errors["x"], zt.DigestMismatchError) and "x" not in stats
    html = stats._repr_html_()
    assert "&lt;b&gt;" in html and "<b>" not in html and "digest" in html


def test_a_summary_has_the_distances_of_numpy(tmp_path, weights):
    other = {name: value.copy() for name, value in weights.items()}
    other["layers.0.weight"] = (other["layers.0.weight"] * np.float32(1.5)).astype("f8")
    del other["ids"]
    other["new"] = np.ones(2)
    paths = saved(tmp_path / "a.zt", weights), saved(tmp_path / "b.zt", other)
    summary = zt.diff(*paths, summary=True)
    assert list(summary) == ["layers.0.weight", "layers.1.weight"]
    found, same = summary["layers.0.weight"], summary["layers.1.weight"]
    assert found.relative == pytest.approx(0.5) and found.cosine == pytest.approx(1)
    assert found.max_abs == np.abs(weights["layers.0.weight"] - other["layers.0.weight"]).max()
    assert (found.different, found.count, found.dtypes) == (24, 24, ("f32", "f64"))
    assert (same.different, same.relative) == (0, 0)
    assert (summary.only_a, summary.only_b, summary.same) == (["ids"], ["new"], False)
    assert "f32 → f64" in summary._repr_html_()
    assert zt.diff(paths[0], paths[0], summary=True).same
    with pytest.raises(zt.MisuseError, match="only_values"):
        zt.diff(*paths, summary=True, rtol=0.1)


def test_a_mean_is_that_of_numpy(tmp_path, weights):
    other = {name: value + 1 for name, value in weights.items()}
    paths = [saved(tmp_path / "a.zt", weights), saved(tmp_path / "b.safetensors", other)]
    with pytest.warns(zt.FileWarning) as caught:
        result = zt.average(paths, tmp_path / "mean.safetensors", weights=[3, 1])
    assert [(it.message.code, it.message.object) for it in caught] == [("first-kept", "ids")]
    mean = zt.numpy.load_file(tmp_path / "mean.safetensors")
    for name in ("layers.0.weight", "layers.1.weight"):
        expected = (3 * weights[name].astype("f8") + other[name].astype("f8")) / 4
        assert (mean[name] == expected.astype("f4")).all()
    assert (mean["ids"] == weights["ids"]).all() and result.tensors == 3
    zt.average(paths, tmp_path / "two.zt", exclude="ids", dtype="bfloat16", zstd=3)
    assert {it.dtype for it in zt.open(tmp_path / "two.zt").values()} == {"bf16"}
    with pytest.raises(zt.MisuseError, match="3 weights"):
        zt.average(paths, tmp_path / "no.zt", weights=[1, 2, 3])
    with pytest.raises(zt.MisuseError, match="choose another output"):
        zt.average(paths, paths[0], exclude="ids")


def test_an_adapter_is_added_as_numpy_does_it(tmp_path, weights):
    base = saved(tmp_path / "base.safetensors", weights)
    folder = tmp_path / "adapter"
    folder.mkdir()
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(2, 4)).astype("f4"), rng.normal(size=(6, 2)).astype("f4")
    name = "base_model.model.layers.0.lora_{}.weight"
    factors = {name.format("A"): a, name.format("B"): b}
    saved(folder / "adapter_model.safetensors", factors)
    (folder / "adapter_config.json").write_text(json.dumps({"r": 2, "lora_alpha": 8}))
    zt.merge(base, tmp_path / "merged.safetensors", lora=folder)
    merged = zt.numpy.load_file(tmp_path / "merged.safetensors")
    expected = weights["layers.0.weight"] + 4 * (b.astype("f8") @ a.astype("f8"))
    assert np.allclose(merged["layers.0.weight"], expected, rtol=1e-7)
    assert (merged["layers.1.weight"] == weights["layers.1.weight"]).all()
    zt.merge(base, tmp_path / "none.zt", lora=folder, scale=0)
    assert (zt.open(tmp_path / "none.zt")["layers.0.weight"].numpy() == weights["layers.0.weight"]).all()
    for wrong in ({"source": [base, base], "lora": folder}, {"source": base, "scale": 2}):
        with pytest.raises(TypeError):
            zt.merge(target=tmp_path / "no.zt", **wrong)
    with pytest.raises(zt.ZtError):
        zt.merge(base, tmp_path / "no.zt", lora=tmp_path / "absent")
    assert not (tmp_path / "no.zt").exists()


@pytest.mark.parametrize("kind", ["safetensors", "zt", "gguf"])
def test_a_set_has_the_tensors_of_its_file(tmp_path, weights, kind):
    weights.pop("ids")
    path = saved(tmp_path / "m.safetensors", weights)
    split = zt.split(path, tmp_path / "set", max_shard_size=100, kind=kind)
    assert [shard.tensors for shard in split.shards] == [1, 1] and split.nbytes == 192
    assert all(shard.path.stat().st_size == shard.stored_nbytes for shard in split.shards)
    opened = zt.open(split.index or split.shards[0].path)
    assert sorted(opened) == sorted(weights)
    assert all((opened[name].numpy() == value).all() for name, value in weights.items())
    assert split.shards[0].path.name.startswith("m-00001-of-00002")
    with pytest.raises(zt.MisuseError) as error:
        zt.split(path, tmp_path / "set", max_shard_size="100B", kind=kind)
    assert error.value.code == "overwrite"


def test_a_wrong_size_or_kind_of_a_set_is_named(tmp_path, weights):
    path = saved(tmp_path / "m.npz", weights)
    with pytest.raises(zt.MisuseError, match="5 parsecs"):
        zt.split(path, tmp_path / "set", kind="zt", max_shard_size="5 parsecs")
    with pytest.raises(zt.MisuseError, match="npz files cannot be sharded"):
        zt.split(path, tmp_path / "set")
    with pytest.raises(zt.MisuseError, match="did you mean"):
        zt.split(path, tmp_path / "set", kind="safetensor")
    assert not (tmp_path / "set").exists()


def test_one_shard_has_no_index(tmp_path, weights):
    split = zt.split(weights_file := saved(tmp_path / "m.zt", weights), tmp_path / "set")
    assert split.index is None and split.removed == [] and len(split.shards) == 1
    assert zt.diff(weights_file, split.shards[0].path).same


def test_some_tensors_get_another_type_and_a_cast_says_what_it_loses(tmp_path):
    values = np.array([0, 1e-4, 1, 3], "f4")
    source = zt.numpy.save({"a.weight": values, "a.norm": values, "step": np.int64(3)})
    types = {"*": "bf16", "*.weight": "f8_e4m3fn", "*.norm": "f32"}
    made = zt.convert(source, tmp_path / "a.zt", dtype=types)
    file = zt.open(tmp_path / "a.zt")
    types = {name: file[name].dtype for name in file}
    assert types == {"a.weight": "f8_e4m3fn", "a.norm": "f32", "step": "i64"}
    [(name, (count, to_zero, out_of_range, error))] = made.casts.items()
    assert (name, count, to_zero, out_of_range) == ("f8_e4m3fn", 4, 1, 0)
    assert error == pytest.approx(1e-4 / 10**0.5)
    with pytest.raises(zt.TensorNotFoundError, match="no tensor matches"):
        zt.convert(source, tmp_path / "b.zt", dtype={"none": "f16"})
    split = zt.split(source, tmp_path / "set", dtype={"*.norm": "f16"})
    assert split.casts["f16"][:3] == (4, 0, 0)
    zt.average([source, source], tmp_path / "mean.zt", dtype="f8_e5m2")
    assert zt.open(tmp_path / "mean.zt")["a.norm"].dtype == "f8_e5m2"
    with pytest.raises(TypeError):
        zt.merge(source, tmp_path / "c.zt", lora=tmp_path, dtype={"*": "f16"})
