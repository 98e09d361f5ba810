"""Files of fsspec: several ranges are asked for at once."""

import fsspec
import numpy
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import zt.numpy


class Counting(MemoryFileSystem):
    """A file system in memory that keeps each request for ranges."""

    protocol = "counting"
    cachable = False

    def __init__(self):
        super().__init__()
        self.requests = []

    def cat_ranges(self, paths, starts, ends, *arguments, **options):
        self.requests.append(list(zip(paths, starts, ends, strict=True)))
        return super().cat_ranges(paths, starts, ends, *arguments, **options)

    def _open(self, *arguments, **options):
        file = super()._open(*arguments, **options)
        file.fs = self
        return file


@pytest.fixture
def tensors():
    names = [f"layers.{at}" for at in range(6)]
    return {name: numpy.full((1000, 300), at, "f4") for at, name in enumerate(names)}


@pytest.mark.parametrize("kind", ["zt", "safetensors", "gguf"])
@pytest.mark.parametrize("protocol", ["memory", "local"])
def test_a_file_of_any_file_system_loads(kind, protocol, tensors, tmp_path):
    file_system = fsspec.filesystem(protocol)
    path = f"{tmp_path}/x" if protocol == "local" else "/zt-test/x"
    with file_system.open(path, "wb") as file:
        file.write(zt.numpy.save(tensors, kind=kind))
    with file_system.open(path) as file:
        loaded = zt.numpy.load(file)
    assert loaded.keys() == tensors.keys()
    assert all((loaded[name] == tensors[name]).all() for name in tensors)


def test_the_ranges_of_many_tensors_are_one_request(tensors):
    file_system = Counting()
    file_system.pipe("/counted", zt.numpy.save(tensors))
    with file_system.open("/counted") as file:
        opened = zt.open(file)
        assert file_system.requests == []
        names = ["layers.0", "layers.2", "layers.4"]
        out = {name: numpy.empty((1000, 300), "f4") for name in names}
        opened.read_into(out)
    assert all((out[name] == tensors[name]).all() for name in names)
    [request] = file_system.requests
    assert len(request) == 3, "tensors between them are not asked for"
    read = sum(end - start for _, start, end in request)
    assert read == sum(array.nbytes for array in out.values())


def test_more_than_a_batch_is_asked_for_in_turn():
    tensors = {"a": numpy.arange(20 << 20, dtype="f4"), "b": numpy.ones(1 << 10, "f4")}
    file_system = Counting()
    file_system.pipe("/large", zt.numpy.save(tensors))
    with file_system.open("/large") as file:
        loaded = zt.numpy.load(file)
    assert all((loaded[name] == tensors[name]).all() for name in tensors)
    assert len(file_system.requests) <= 4
    for request in file_system.requests:
        assert sum(end - start for _, start, end in request) <= 64 << 20


def test_what_a_file_system_raises_is_raised(tensors):
    class Failing(Counting):
        def cat_ranges(self, *arguments, **options):
            raise PermissionError("no")

    file_system = Failing()
    file_system.pipe("/failing", zt.numpy.save(tensors))
    with file_system.open("/failing") as file, pytest.raises((PermissionError, zt.ZtError)):
        zt.numpy.load(file)


def test_a_short_answer_is_read_again(tensors):
    class Short(Counting):
        def cat_ranges(self, paths, starts, ends, *arguments, **options):
            return [b"" for _ in paths]

    file_system = Short()
    file_system.pipe("/short", zt.numpy.save(tensors))
    with file_system.open("/short") as file:
        loaded = zt.numpy.load(file)
    assert all((loaded[name] == tensors[name]).all() for name in tensors)
