"""Exceptions and warnings: their classes, their fields, and what pickling keeps."""

import pickle
import warnings

import numpy as np
import pytest

import zt
import zt.numpy


@pytest.mark.parametrize(
    ("ours", "builtin"),
    [
        (zt.MisuseError, ValueError),
        (zt.TensorNotFoundError, KeyError),
        (zt.FileError, OSError),
        (zt.MissingFileError, FileNotFoundError),
    ],
)
def test_an_error_is_also_what_python_calls_it(ours, builtin):
    error = ours("no such thing", code="not-found")
    assert isinstance(error, builtin)
    assert isinstance(error, zt.ZtError)
    assert str(error) == "no such thing"


def test_an_error_survives_pickling():
    error = zt.DigestMismatchError(
        "damaged", code="digest-mismatch", object="w", component="data", offset=64, path="a.zt"
    )
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is zt.DigestMismatchError
    assert str(again) == "damaged"
    assert again.__dict__ == error.__dict__


@pytest.mark.parametrize(
    ("kind", "metadata"),
    [
        ("safetensors", {"step": 7, "k": "t"}),
        ("safetensors", {"step": None}),
        ("gguf", {"step": {"a": 1}}),
        ("npz", {"step": "7"}),
    ],
)
def test_metadata_that_a_kind_cannot_represent_is_refused(tmp_path, kind, metadata):
    path = tmp_path / f"a.{kind}"
    path.write_bytes(b"old")
    for save in (
        lambda: zt.numpy.save_file({"a": np.ones(2)}, path, metadata),
        lambda: zt.numpy.save({"a": np.ones(2)}, metadata, kind=kind),
    ):
        with pytest.raises(TypeError, match=f"{kind} cannot represent.*step"):
            save()
    assert path.read_bytes() == b"old" and [it.name for it in tmp_path.iterdir()] == [path.name]


def test_what_the_program_warns_of_is_a_warning_of_python(tmp_path):
    path, out = tmp_path / "a.zt", tmp_path / "a.safetensors"
    zt.numpy.save_file({"a": np.ones(2)}, path, {"step": 7})
    with pytest.warns(zt.FileWarning, match='attribute "step"') as caught:
        result = zt.convert(path, out)
    (warning,) = caught
    assert warning.filename == __file__
    assert (warning.message.code, warning.message.object) == ("lossy", None)
    assert [str(it) for it in result.warnings] == [str(warning.message)]
    assert pickle.loads(pickle.dumps(warning.message)).code == "lossy"
    out.write_bytes(out.read_bytes()[:-4])
    with pytest.warns(zt.FileWarning) as caught:
        zt.open(out, truncated=True)
    assert [it.message.code for it in caught] == ["truncated"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", zt.FileWarning)
        with pytest.raises(zt.FileWarning, match="truncated"):
            zt.open(out, truncated=True)


def test_a_warning_about_a_file_is_told_once(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, text=np.array(["no tensor"]), a=np.ones(2))
    np.savez(tmp_path / "plain.npz", a=np.ones(2))
    for work in (
        zt.open,
        zt.stats,
        zt.verify,
        zt.hash,
        zt.numpy.load_file,
        lambda path: zt.convert(path, tmp_path / "a.zt", overwrite=True),
        lambda path: zt.diff(path, tmp_path / "plain.npz"),
        lambda path: zt.split(path, tmp_path / "set", kind="zt", overwrite=True),
        lambda path: zt.quantize(path, tmp_path / "q.zt", include="a", group_size=2),
    ):
        with pytest.warns(zt.FileWarning) as caught:
            work(path)
        assert [it.message.code for it in caught] == ["not-tensor"]
        assert {it.filename for it in caught} == {__file__}


def test_an_error_names_what_was_wrong(tmp_path):
    path = tmp_path / "a.zt"
    zt.numpy.save_file({"a": np.ones(2)}, path)
    for work in (lambda: zt.open(""), lambda: zt.convert(path, "")):
        with pytest.raises(FileNotFoundError, match="the path is empty"):
            work()
    with pytest.raises(TypeError, match="expected a dict of names and tensors, not ndarray"):
        zt.numpy.save_file(np.ones(2), path)
    for dtype, text in ("fp8", "pass one of f64.*f8_e5m2"), ("bf61", 'did you mean "bf16"'):
        with pytest.raises(zt.MisuseError, match=text):
            zt.convert(path, tmp_path / "b.zt", dtype=dtype)
    for dtype in "bfloat16", "float8_e4m3fn", "f8_e5m2":
        zt.convert(path, tmp_path / "b.zt", dtype=dtype, overwrite=True)
    with pytest.raises(FileNotFoundError):
        zt.open(tmp_path / "absent.zt")
