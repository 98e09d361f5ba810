"""zt.batch: many files on the workers of an executor."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import numpy
import pytest

import zt
import zt.batch


@contextmanager
def processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


@contextmanager
def dask():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        yield executor


def files(folder, count):
    paths = []
    for at in range(count):
        path = folder / f"{at}.npz"
        numpy.savez(path, w=numpy.full(10, at, dtype=numpy.float32))
        paths.append(path)
    return paths, [path.with_suffix(".zt") for path in paths]


@pytest.mark.parametrize("executors", [lambda: ThreadPoolExecutor(2), processes, dask])
def test_any_executor_converts_a_fleet_of_files(tmp_path, executors):
    inputs, outputs = files(tmp_path, 5)
    inputs[2].write_bytes(b"no tensor file")
    seen = []
    with executors() as executor, pytest.raises(ExceptionGroup, match="1 of 5") as caught:
        zt.batch.convert(inputs, outputs, executor, progress=seen.append, zstd=3)
    (error,) = caught.value.exceptions
    assert isinstance(error, zt.ZtError)
    assert str(inputs[2]) in error.__notes__[0]
    assert sum(seen) == 5
    for at, path in enumerate(outputs):
        assert path.exists() == (at != 2)
        if at != 2:
            assert (zt.open(path)["w"].numpy() == at).all()


def test_every_input_has_an_output(tmp_path):
    inputs, outputs = files(tmp_path, 2)
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError):
        zt.batch.convert(inputs, outputs[:1], executor)
    assert not outputs[0].exists()


def test_a_progress_function_that_raises_stops_the_work(tmp_path):
    inputs, outputs = files(tmp_path, 50)

    def stop(count):
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as executor, pytest.raises(KeyboardInterrupt):
        zt.batch.convert(inputs, outputs, executor, progress=stop)
    assert not all(path.exists() for path in outputs)
