"""Distributed checkpoints that torch writes behind the loop."""

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ranks import on_ranks
from test_checkpoint import full, sharded
from test_checkpoint_delta import load
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.device_mesh import init_device_mesh

from zt.torch.checkpoint import ZtStorageReader, ZtStorageWriter


def advance(state, step):
    """Changes a state in place to what `test_checkpoint_delta.values` gives for the step."""
    whole = full()
    whole["rows"][::100] += step
    whole["columns"][3, ::500] += step
    whole["scalar"] += step
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for name, value in sharded(mesh, whole).items():
        state[name].copy_(value)


def save_three(rank, folders):
    """Saves steps, each on a base of those before it, and changes the state at once."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    state = sharded(mesh, full())
    # Collectives of the thread and of the loop must not mix.
    group = dist.new_group(backend="gloo")
    stager = DefaultStager(StagingOptions(False, False, False, False))
    future = None
    for step in range(3):
        advance(state, step)
        if future is not None:
            future.result()
        future = dcp.async_save(
            {"model": state, "step": step},
            storage_writer=ZtStorageWriter(folders[step], base=folders[:step] or None),
            async_stager=stager,
            process_group=group,
        )
        for value in state.values():
            value.to_local().zero_()
    future.result()
    stager.close()
    for count in 1, 2, 3:
        load(folders[:count])


def test_ranks_save_behind_the_loop(tmp_path):
    folders = [tmp_path / str(step) for step in range(3)]
    on_ranks(2, save_three, folders)


def test_the_default_stager_copies_the_state(tmp_path):
    model = torch.nn.Linear(40, 30)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(40)).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    state["model"]["tied"] = state["model"]["weight"]
    wanted = {name: value.clone() for name, value in state["model"].items()}
    future = dcp.async_save(state, storage_writer=ZtStorageWriter(tmp_path), no_dist=True)
    with torch.no_grad():
        for value in model.parameters():
            value.zero_()
    future.result()
    loaded = {"model": {name: torch.ones_like(value) for name, value in wanted.items()}}
    loaded["optimizer"] = {"param_groups": [{"lr": 0.0, "betas": (0.0, 0.0)}]}
    dcp.load(loaded, storage_reader=ZtStorageReader(tmp_path), no_dist=True)
    assert all(torch.equal(loaded["model"][name], value) for name, value in wanted.items())
    [group] = loaded["optimizer"]["param_groups"]
    assert group == {"lr": 1e-3, "betas": (0.9, 0.999)}


def test_an_error_behind_the_loop_is_in_the_future(tmp_path):
    (tmp_path / "file").touch()
    state = {"w": torch.ones(3)}
    folder = tmp_path / "file" / "folder"
    future = dcp.async_save(state, storage_writer=ZtStorageWriter(folder), no_dist=True)
    with pytest.raises(CheckpointException, match="Not a directory"):
        future.result()
