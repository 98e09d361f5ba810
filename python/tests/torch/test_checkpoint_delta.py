"""Distributed checkpoints that have only what changed since an earlier one."""

import re
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ranks import on_ranks
from test_checkpoint import full, sharded
from test_checkpoint_store import store  # noqa: F401
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.device_mesh import init_device_mesh

import zt
from zt.torch.checkpoint import ZtStorageReader, ZtStorageWriter


def values(step):
    """The state at a step: some values of some tensors change."""
    state = full()
    state["rows"][::100] += step
    state["columns"][3, ::500] += step
    state["scalar"] += step
    return state


def save(rank, folders):
    """Saves the last step on a base of those before it."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    *base, folder = folders
    step = len(base)
    state = {"model": sharded(mesh, values(step)), "step": step}
    dcp.save(state, storage_writer=ZtStorageWriter(folder, base=base or None))


def save_three(rank, folders):
    for count in 1, 2, 3:
        save(rank, folders[:count])


def save_and_load_three(rank, folders):
    save(rank, folders)
    for count in 2, 3, 4:
        load(folders[:count])


def load(folders):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    step = len(folders) - 1
    wanted = values(step)
    *base, folder = folders
    zeros = {name: torch.zeros_like(value) for name, value in wanted.items()}
    state = {"model": sharded(mesh, zeros), "step": 0}
    dcp.load(state, storage_reader=ZtStorageReader(folder, base=base or None))
    for name, value in wanted.items():
        assert torch.equal(state["model"][name].full_tensor(), value), name
    assert state["step"] == step


def size(folder):
    return sum(path.stat().st_size for path in folder.glob("rank-*.zt"))


def test_each_rank_writes_what_changed_in_its_slices(tmp_path):
    folders = [tmp_path / str(step) for step in range(4)]
    on_ranks(2, save_three, folders)
    assert max(map(size, folders[1:3])) < size(folders[0]) / 50
    assert [len(list(folder.glob("rank-*.zt"))) for folder in folders[:3]] == [2, 2, 2]
    # Under another mesh, pieces have no base, and are written whole.
    on_ranks(3, save_and_load_three, folders)


def save_here(state, folder, **options):
    dcp.save(state, storage_writer=ZtStorageWriter(folder, **options), no_dist=True)


def load_here(state, folder, **options):
    dcp.load(state, storage_reader=ZtStorageReader(folder, **options), no_dist=True)


def test_the_base_is_the_save_that_the_delta_was_made_of(tmp_path):
    state = {"w": torch.arange(1000.0), "frozen": torch.ones(1000)}
    for folder in "base", "again":
        save_here(state, tmp_path / folder)
    state["w"][5] = -1
    save_here(state, tmp_path / "delta", base=tmp_path / "base")
    loaded = {name: torch.zeros(1000) for name in state}
    load_here(loaded, tmp_path / "delta", base=tmp_path / "base")
    assert all(torch.equal(loaded[name], state[name]) for name in state)
    for base in {"base": tmp_path / "again"}, {}:
        with pytest.raises(CheckpointException) as raised:
            load_here(loaded, tmp_path / "delta", **base)
        [error] = {str(error) for error, _ in raised.value.failures.values()}
        assert re.search(r"is a delta of the checkpoint with the index sha256:\w{64}", error)
    with pytest.raises(CheckpointException, match="is no delta"):
        load_here(loaded, tmp_path / "again", base=tmp_path / "base")


def test_a_save_does_not_replace_its_base(tmp_path):
    state = {"w": torch.arange(1000.0)}
    save_here(state, tmp_path)
    before = {path: path.read_bytes() for path in Path(tmp_path).iterdir()}
    with pytest.raises(CheckpointException, match="cannot be its own base"):
        save_here(state, tmp_path, base=tmp_path)
    assert before == {path: path.read_bytes() for path in Path(tmp_path).iterdir()}
    zt.torch.save_file(state, tmp_path / "model.zt")
    with pytest.raises(CheckpointException, match="is one file"):
        save_here(state, tmp_path / "delta", base=tmp_path / "model.zt")


def test_base_and_delta_on_a_store(store):  # noqa: F811
    options, client = store
    base, delta = "s3://models/base-run/0", "s3://models/base-run/1"
    state = {"w": torch.arange(100_000.0), "step": 1}
    save_here(state, base, storage_options=options)
    state["w"][::100] += 1
    save_here(state, delta, base=base, storage_options=options)
    [written] = client.list_objects_v2(Bucket="models", Prefix="base-run/1/rank")["Contents"]
    assert written["Size"] < 5000
    loaded = {"w": torch.zeros(100_000), "step": 0}
    load_here(loaded, delta, base=base, storage_options=options)
    assert torch.equal(loaded["w"], state["w"]) and loaded["step"] == 1
