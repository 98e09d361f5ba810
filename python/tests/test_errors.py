"""Exceptions: their classes, their fields, and what pickling keeps."""

import pickle

import pytest

import zt


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
