"""`zt.open(logical=)`: the weights of quantized checkpoints."""

import json
from pathlib import Path

import numpy
import pytest

import zt
import zt.numpy

DATA = Path(__file__).parents[2] / "conformance/data/quantized"


@pytest.mark.parametrize("case", ["01-deepseek-fp8", "09-gptq-desc-act", "10-awq", "11-bnb-nf4", "13-mlx"])
def test_values_are_the_exact_products(case: str) -> None:
    truth = zt.numpy.load_file(DATA / case / "truth.safetensors")
    file = zt.open(DATA / case / "model", logical="f32")
    assert set(file) == set(truth)
    for name, expected in truth.items():
        assert file[name].shape == expected.shape
        assert file[name].numpy().astype("f4").tobytes() == expected.astype("f4").tobytes()
        assert numpy.array_equal(file[name][1:3].astype("f4"), expected[1:3])


def test_the_type_is_that_of_the_dialect(tmp_path: Path) -> None:
    model = DATA / "09-gptq" / "model"
    name = "model.layers.0.mlp.gate_proj.weight"
    assert zt.open(model, logical=True)[name].numpy().dtype == "f2"
    assert name not in zt.open(model, logical=False)
    result = zt.convert(zt.open(model, logical="f32"), tmp_path / "plain.safetensors")
    assert not result.warnings
    with pytest.raises(zt.MisuseError, match="pass True"):
        zt.open(model, logical="i8")


def test_codes_are_kept_and_a_missing_scale_is_named(tmp_path: Path) -> None:
    case = DATA / "01-deepseek-fp8"
    with pytest.warns(zt.FileWarning, match="quantized"):
        zt.convert(case / "model", tmp_path / "bf16.safetensors", dtype="bf16")
    fault = json.loads((case / "truth.json").read_text())["faults"][0]["name"]
    file = zt.open(case / "faults" / fault, logical=True)
    with pytest.raises(zt.MalformedError, match="missing"):
        file["model.layers.0.self_attn.q_proj.weight"].numpy()
