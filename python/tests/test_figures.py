"""The figures of a page are those of NumPy, for every file of the corpus that can be read."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import zt

CORPUS = Path(__file__).parents[2] / "conformance" / "corpus"
FILES = [
    path for path in sorted(CORPUS.rglob("*")) if path.is_file() and path.stat().st_size < 4 << 20
]
MOST = 16 << 20
REPEATED = ["repeat", "duplicates", "coo_rank_0"]


def figures(path, page):
    zt.report(path, page, detail=True, overwrite=True)
    data = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    data = json.loads(data[1])
    objects, histograms = data["objects"], dict(data["histograms"])
    for at, name in enumerate(objects["name"]):
        if objects["counts"][at]:
            yield name, objects["counts"][at][:4], objects["finite"][at], histograms.get(at)


def real(array):
    """As a page counts them: complex numbers by their absolute values, all others in f64."""
    if array.dtype.kind in "iub":
        return array
    if array.dtype.kind == "c":
        parts = array.real.astype("f8"), array.imag.astype("f8")
        return np.hypot(*parts)
    return array.astype("f8")


def check(array, counts, finite, histogram):
    is_complex = array.dtype.kind == "c"
    with np.errstate(invalid="ignore"):  # A NaN that signals.
        array = real(array.reshape(-1))
    is_finite = np.isfinite(array)
    nan, zeros = np.isnan(array).sum(), (array == 0).sum()
    assert counts == [array.size, zeros, nan, array.size - is_finite.sum() - nan]
    some = array[is_finite]
    if some.size == 0:
        assert finite is None and histogram is None
        return
    bounds = [float(some.min()), float(some.max())]
    # One absolute value has several roundings.
    assert [float(bound) for bound in finite[:2]] == pytest.approx(bounds, rel=1e-7 * is_complex)
    with np.errstate(over="ignore"):
        moments = [some.mean(dtype="f8"), some.std(dtype="f8")]
    if np.isfinite(moments).all():
        reach = np.abs(some.astype("f8")).max()
        assert finite[2:] == pytest.approx(moments, rel=1e-7 if is_complex else 1e-9, abs=1e-12 * reach)
    start, width, bins = histogram
    # An edge belongs to the bin that is farther from 0.
    some = some.astype("f8")
    place = np.trunc(np.abs(some) / width)
    place = np.where(some < 0, -1 - place, place).astype("i8") - start
    assert np.bincount(place, minlength=len(bins)).tolist() == bins


def dense(tensor):
    """None for what NumPy cannot hold."""
    try:
        return tensor.dense()
    except (zt.ZtError, ValueError):
        return None


@pytest.mark.skipif(not FILES, reason="the corpus is not part of the package")
@pytest.mark.parametrize("part", range(4))
def test_figures_are_those_of_numpy(part, tmp_path):
    checked = 0
    for path in FILES[part::4]:
        try:
            file = zt.open(path)
        except zt.ZtError:
            continue
        for name, *found in figures(path, tmp_path / "page.html"):
            # A place that is stored twice counts as two values, and is their sum in the array.
            if any(word in f"{path.stem} {name}" for word in REPEATED):
                continue
            if file[name].size < MOST and (array := dense(file[name])) is not None:
                checked += 1
                check(array, *found)
    assert checked > 50
