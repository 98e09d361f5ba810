"""`zt.quantize`: values are near, the rest is kept, and what cannot be quantized is refused."""

from pathlib import Path

import numpy
import pytest

import zt
import zt.numpy


def model(folder: Path) -> Path:
    rng = numpy.random.default_rng(1)
    path = folder / "model.zt"
    weights = {"a": rng.normal(size=(64, 96)), "b": rng.normal(size=(8, 32)), "v": numpy.ones(7)}
    zt.numpy.save_file({name: value.astype("f4") for name, value in weights.items()}, path)
    return path


def test_errors_are_those_of_the_values(tmp_path: Path) -> None:
    path, out = model(tmp_path), tmp_path / "out.zt"
    result = zt.quantize(path, out, bits=8, group_size=64)
    assert result.kept == ["v"]
    before, after = zt.open(path), zt.open(out)
    assert result.nbytes == out.stat().st_size
    for name, (most, mean, of_std) in result.errors.items():
        errors = numpy.abs(after[name].dense() - before[name].numpy())
        assert errors.max() == most
        assert errors.mean(dtype="f8") == pytest.approx(mean)
        assert of_std is not None and 0 < of_std < 0.01
    assert list(result.errors) == ["a", "b"]


def test_names_choose_what_is_quantized(tmp_path: Path) -> None:
    path, out = model(tmp_path), tmp_path / "out.gguf"
    result = zt.quantize(path, out, type="q8_0", include=["a", "b"], exclude="b")
    assert sorted(result.kept) == ["b", "v"]
    assert zt.open(out)["a"].dtype == "q8_0"
    with pytest.raises(zt.TensorNotFoundError):
        zt.quantize(path, tmp_path / "new.zt", include="none")
    with pytest.raises(zt.MisuseError):
        zt.quantize(path, tmp_path / "new.zt", bits=1, signed=True)
    assert not (tmp_path / "new.zt").exists()


def test_options_of_convert_apply(tmp_path: Path) -> None:
    path, out = model(tmp_path), tmp_path / "out.zt"
    zt.quantize(path, out, rename={"v": "w"}, zstd=3, digest="sha256", dtype="bf16", exclude="b")
    file = zt.open(out)
    assert sorted(file) == ["a", "b", "w"]
    assert (file["b"].dtype, file["w"].dtype) == ("bf16", "bf16")
    assert file["a"].format == "quantized_group"
    assert zt.verify(out).ok


def test_what_is_quantized_already_is_refused(tmp_path: Path) -> None:
    path, out = model(tmp_path), tmp_path / "q8.zt"
    zt.quantize(path, out, type="q8_0")
    for include in (None, "*"):
        with pytest.raises(zt.UnsupportedError, match=r"2 of the chosen .*'?a.*q8_0.*--dense"):
            zt.quantize(out, tmp_path / "new.zt", type="q8_0", include=include)
    assert not (tmp_path / "new.zt").exists()
    kept = zt.quantize(out, tmp_path / "new.zt", include="v").kept
    assert sorted(kept) == ["a", "b"]
