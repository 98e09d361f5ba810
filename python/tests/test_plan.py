"""Tensors that are read ahead: `zt.plan`, and `prefetch` of `zt.safetensors`."""

import io
import os
import threading
import time

import numpy as np
import pytest
import zt
import zt.safetensors

VALUES = {
    f"layer.{at:02}": np.arange(at * 60, at * 60 + 60, dtype="f4").reshape(20, 3)
    for at in range(30)
}


@pytest.fixture(params=["zt", "safetensors", "npz"])
def path(request, tmp_path):
    path = tmp_path / f"model.{request.param}"
    source = tmp_path / "source.zt"
    save(source)
    zt.convert(source, path)
    return path


def save(path):
    with zt.Writer(path) as writer:
        for name, value in VALUES.items():
            writer.add(name, value)


def test_all_tensors_come_in_the_order_of_the_file(path):
    with zt.plan(path) as plan:
        assert len(plan) == 30
        found = list(plan)
    assert [name for name, _ in found] == list(VALUES) == plan.names()
    for name, array in found:
        np.testing.assert_array_equal(array, VALUES[name])
        assert array.dtype == np.float32 and array.flags.writeable


def test_parts_are_what_indexing_gives(path):
    wanted = {
        "layer.07": slice(2, 5),
        "layer.03": None,
        "layer.20": (slice(None), 1),
        "layer.11": (0, 2),
        "layer.12": np.s_[::-2, None],
    }
    found = dict(zt.plan(path, wanted, memory=1, page_cache=False))
    assert found.keys() == wanted.keys()
    for name, index in wanted.items():
        expected = VALUES[name][... if index is None else index]
        np.testing.assert_array_equal(found[name], expected)
        assert found[name].shape == expected.shape


@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_any_can_be_taken_first(path, memory):
    plan = zt.plan(path, memory=memory)
    names = list(VALUES)[::-3]
    for name in names:
        np.testing.assert_array_equal(plan.take(name), VALUES[name])
    assert {name for name, _ in plan} == VALUES.keys() - set(names)
    with pytest.raises(zt.MisuseError, match="was taken"):
        plan.take(names[0])
    with pytest.raises(zt.MisuseError, match="not in the plan"):
        plan.take("layer.99")


def test_several_threads_take_each_value_once(path):
    plan, taken = zt.plan(path, memory=0), []
    workers = [threading.Thread(target=lambda: taken.extend(plan)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(name for name, _ in taken) == list(VALUES)


class Waiting(io.BytesIO):
    """A file whose reads wait for an event."""

    may_read = threading.Event()

    def read(self, *length):
        assert self.may_read.wait(60)
        return super().read(*length)

    def readinto(self, buffer):
        assert self.may_read.wait(60)
        return super().readinto(buffer)


def test_threads_that_wait_sleep():
    source, taken = Waiting(), []
    save(source)
    source.may_read.set()
    file = zt.open(source)
    source.may_read.clear()
    plan = zt.plan(file)
    workers = [threading.Thread(target=lambda: taken.extend(plan)) for _ in range(4)]
    for worker in workers:
        worker.start()
    before = time.process_time()
    time.sleep(0.5)
    used = time.process_time() - before
    source.may_read.set()
    for worker in workers:
        worker.join()
    assert sorted(name for name, _ in taken) == list(VALUES)
    assert used < 0.2, "they do not wake each other"


def test_what_cannot_be_read_is_raised_in_its_place(tmp_path):
    path = tmp_path / "model.zt"
    save(path)
    data = bytearray(path.read_bytes())
    data[data.index(VALUES["layer.05"].tobytes()[:64])] ^= 1
    path.write_bytes(data)
    plan, found = zt.plan(path), []
    while len(found) < 30:
        try:
            found.append(next(plan)[0])
        except zt.DigestMismatchError as error:
            assert "layer.05" in str(error)
            found.append(None)
    assert found.index(None) == 5 and next(plan, None) is None
    with pytest.raises(zt.TensorNotFoundError):
        zt.plan(path, ["layer.99"])
    with pytest.raises(IndexError):
        zt.plan(path, {"layer.00": 99})


def test_a_closed_plan_gives_nothing_more(path):
    plan = zt.plan(path, memory=0)
    next(plan)
    plan.close()
    assert list(plan) == []
    with pytest.raises(zt.MisuseError):
        plan.take("layer.29")


def test_a_plan_belongs_to_its_process(path):
    plan = zt.plan(path, memory=0)
    child = os.fork()
    if child == 0:
        try:
            next(plan)
        except RuntimeError:
            plan.close()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_prefetch_of_a_handle_that_is_asked_twice(path):
    with zt.safetensors.safe_open(path, "np") as handle:
        whole = handle.prefetch()
        rows = handle.prefetch({"layer.04": slice(1, 3), "layer.09": None})
        np.testing.assert_array_equal(rows.take("layer.04"), VALUES["layer.04"][1:3])
        for name, array in whole:
            np.testing.assert_array_equal(array, VALUES[name])
            np.testing.assert_array_equal(handle.get_tensor(name), array)
        np.testing.assert_array_equal(rows.take("layer.09"), VALUES["layer.09"])
