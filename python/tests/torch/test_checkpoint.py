"""Distributed checkpoints: saved and loaded by several ranks of gloo, under other meshes."""

import io
import json
import os
import signal
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ranks import on_ranks
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import zt
import zt.torch
from zt.torch.checkpoint import ZtStorageReader, ZtStorageWriter

ROWS, COLUMNS = 8192, 1 << 18
WINDOW = 64 << 10  # the engine reads through smaller gaps between rows


def full():
    """The state that every test saves, whole."""
    generator = torch.Generator().manual_seed(7)
    weight = torch.randint(-99, 99, (ROWS, 96), generator=generator).float()
    return {
        "rows": weight,
        "columns": (torch.arange(8 * COLUMNS) % 251).bfloat16().reshape(8, COLUMNS),
        "replicated": torch.arange(7, dtype=torch.float64),
        "odd": torch.arange(15, dtype=torch.int64).reshape(5, 3),
        "scalar": torch.tensor(2.5),
    }


def placements(name):
    return {"rows": [Shard(0)], "columns": [Shard(1)], "odd": [Shard(0)]}.get(name, [Replicate()])


def sharded(mesh, state):
    return {name: distribute_tensor(value, mesh, placements(name)) for name, value in state.items()}


def save(rank, folder, options):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    state = {"model": sharded(mesh, full()), "step": 3, "plain": torch.ones(2)}
    dcp.save(state, storage_writer=ZtStorageWriter(folder, **options))


class Counting(io.FileIO):
    """A file that counts the bytes that are read from it."""

    count = 0

    def read(self, size=-1):
        data = super().read(size)
        Counting.count += len(data)
        return data


class CountingReader(ZtStorageReader):
    def _open(self, path):
        return zt.open(Counting(path), verify=self.verify)


def load(rank, folder, counts):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    wanted = full()
    zeros = {name: torch.zeros_like(value) for name, value in wanted.items()}
    state = {"model": sharded(mesh, zeros), "step": 0, "plain": torch.zeros(2)}
    # A slice is verified by whole MiB, which would be most of these tensors.
    dcp.load(state, storage_reader=CountingReader(folder, verify="never"))
    for name, value in wanted.items():
        assert torch.equal(state["model"][name].full_tensor(), value), name
    assert state["step"] == 3
    assert torch.equal(state["plain"], torch.ones(2))
    Path(counts, str(rank)).write_text(str(Counting.count))


@pytest.mark.parametrize("options", [{}, {"zstd": 3}], ids=["raw", "zstd"])
@pytest.mark.parametrize(("saved", "loaded"), [(2, 4), (4, 3)])
def test_another_mesh_loads_it_and_each_rank_reads_its_part(tmp_path, saved, loaded, options):
    folder = tmp_path / "checkpoint"
    on_ranks(saved, save, folder, options)
    assert len(list(folder.glob("rank-*.zt"))) == saved
    on_ranks(loaded, load, folder, tmp_path)
    if not options:
        data = sum(value.nbytes for value in full().values())
        for rank in range(loaded):
            read = int((tmp_path / str(rank)).read_text())
            # Its part, a window for each row of `columns`, and what opening the files costs.
            assert read < data / loaded + 8 * WINDOW + 32_000 * saved, (rank, read, data)


@pytest.mark.parametrize("zstd", [None, 1])
def test_a_rank_reads_only_its_part_of_a_large_tensor(tmp_path, zstd):
    from zt.torch._memory import read_slice

    weight = torch.randint(0, 50, (1 << 17, 32), dtype=torch.int32)  # 16 MiB
    path = tmp_path / "weight.zt"
    with zt.Writer(path, zstd=zstd) as writer:
        writer.add("w", weight)
    Counting.count = 0
    rows = torch.empty(1 << 14, 32, dtype=torch.int32)
    tensor = zt.open(Counting(path))["w"]
    read_slice(tensor, (1 << 16, 0), rows.shape, rows)
    assert torch.equal(rows, weight[1 << 16 : (1 << 16) + (1 << 14)])
    assert Counting.count < path.stat().st_size / (8 if zstd is None else 3) + 100_000


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 10)
        self.second = torch.nn.Linear(10, 5)

    def forward(self, value):
        return self.second(torch.relu(self.first(value)))


def trained(steps):
    torch.manual_seed(1)
    model = Model()
    for layer in (model.first, model.second, model):
        fully_shard(layer, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.ones(3, 6)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def save_fsdp(rank, folder):
    from torch.distributed.checkpoint.state_dict import get_state_dict

    model, optimizer = trained(2)
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments}
    dcp.save(state, storage_writer=ZtStorageWriter(folder))
    whole = {name: value.full_tensor() for name, value in model.state_dict().items()}
    if rank == 0:
        torch.save(whole, folder / "expected.pt")


def load_fsdp(rank, folder):
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    model, optimizer = trained(0)
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments}
    dcp.load(state, storage_reader=ZtStorageReader(folder))
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
    )
    expected = torch.load(folder / "expected.pt")
    for name, value in model.state_dict().items():
        assert isinstance(value, DTensor)
        assert torch.equal(value.full_tensor(), expected[name]), name
    (moment,) = {float(entry["step"]) for entry in optimizer.state.values()}
    assert moment == 2


@pytest.mark.parametrize(("saved", "loaded"), [(2, 4), (4, 3)])
def test_fsdp_goes_on_under_another_number_of_ranks(tmp_path, saved, loaded):
    on_ranks(saved, save_fsdp, tmp_path)
    on_ranks(loaded, load_fsdp, tmp_path)


class DyingWriter(ZtStorageWriter):
    """Rank 1 is killed while it writes its file."""

    def write_data(self, plan, planner):
        if dist.get_rank() == 1:

            class Planner:
                def resolve_data(self, item):
                    if item is plan.items[-1]:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return planner.resolve_data(item)

            return super().write_data(plan, Planner())
        return super().write_data(plan, planner)


def save_and_die(rank, folder):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    state = {"model": sharded(mesh, {name: -value for name, value in full().items()})}
    dcp.save(state, storage_writer=DyingWriter(folder))


def test_a_rank_killed_while_saving_leaves_the_previous_checkpoint(tmp_path):
    folder = tmp_path / "checkpoint"
    on_ranks(2, save, folder, {})
    before = {path: path.read_bytes() for path in folder.glob("*") if path.is_file()}
    with pytest.raises(Exception, match="SIGKILL|terminated|Connection|closed"):
        on_ranks(2, save_and_die, folder)
    for path, content in before.items():
        assert path.read_bytes() == content, path
    on_ranks(2, load, folder, tmp_path)
    on_ranks(2, save, folder, {})  # and the next save removes what the failed one left
    assert len(list(folder.iterdir())) == 3
    on_ranks(2, load, folder, tmp_path)


def save_async(rank, folder):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    state = {"model": sharded(mesh, full()), "step": 3, "plain": torch.ones(2)}
    saved = dcp.async_save(state, storage_writer=ZtStorageWriter(folder))
    # Training goes on with the tensors while their copy is saved.
    for value in state["model"].values():
        value.to_local().zero_()
    saved.result()


def test_an_asynchronous_save_has_the_state_of_its_call(tmp_path):
    on_ranks(2, save_async, tmp_path / "checkpoint")
    on_ranks(2, load, tmp_path / "checkpoint", tmp_path)


def alone(function, *arguments, **options):
    with pytest.warns(UserWarning, match="single process"):
        return function(*arguments, **options)


def test_a_failed_save_of_one_process_leaves_the_previous_checkpoint(tmp_path):
    alone(dcp.save, {"w": torch.ones(3)}, storage_writer=ZtStorageWriter(tmp_path))
    with pytest.raises(CheckpointException, match="meta"):
        state = {"w": torch.zeros(3), "x": torch.empty(2, device="meta")}
        alone(dcp.save, state, storage_writer=ZtStorageWriter(tmp_path))
    state = {"w": torch.zeros(3)}
    alone(dcp.load, state, storage_reader=ZtStorageReader(tmp_path))
    assert torch.equal(state["w"], torch.ones(3))


def test_a_model_file_of_any_kind_loads_as_a_checkpoint(tmp_path):
    weight = torch.arange(12, dtype=torch.bfloat16).reshape(4, 3)
    path = tmp_path / "model.safetensors"
    zt.torch.save_file({"w": weight}, path)
    state = {"w": torch.zeros(4, 3, dtype=torch.bfloat16)}
    alone(dcp.load, state, storage_reader=ZtStorageReader(path))
    assert torch.equal(state["w"], weight)


def test_the_checkpoint_id_names_the_folder(tmp_path):
    writer, reader = ZtStorageWriter("nowhere"), ZtStorageReader("nowhere")
    folder = tmp_path / "step-1"
    alone(dcp.save, {"w": torch.ones(3)}, checkpoint_id=folder, storage_writer=writer)
    state = {"w": torch.zeros(3)}
    alone(dcp.load, state, checkpoint_id=folder, storage_reader=reader)
    assert torch.equal(state["w"], torch.ones(3))


class Evil:
    def __reduce__(self):
        return eval, ("__import__('pathlib').Path('executed').touch()",)


def test_pickled_code_in_a_checkpoint_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    alone(dcp.save, {"w": torch.ones(3), "e": Evil()}, storage_writer=ZtStorageWriter(tmp_path))
    with pytest.raises(CheckpointException, match="eval"):
        state = {"w": torch.zeros(3), "e": 0}
        alone(dcp.load, state, storage_reader=ZtStorageReader(tmp_path))
    assert not Path("executed").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda index: "[]",
        lambda index: "{}",
        lambda index: index.replace("zt.checkpoint/1", "zt.checkpoint/9"),
        lambda index: index.replace("rank-", "../rank-"),
        lambda index: index.replace("float32", "load"),
        lambda index: index[:-20],
    ],
)
def test_a_damaged_index_is_refused(tmp_path, change):
    alone(dcp.save, {"w": torch.ones(3)}, storage_writer=ZtStorageWriter(tmp_path))
    index = tmp_path / "checkpoint.json"
    index.write_text(change(index.read_text()))
    with pytest.raises(CheckpointException, match="checkpoint.json"):
        alone(dcp.load, {"w": torch.zeros(3)}, storage_reader=ZtStorageReader(tmp_path))


def test_the_index_names_each_piece(tmp_path):
    alone(dcp.save, {"a": {"w": torch.ones(3)}}, storage_writer=ZtStorageWriter(tmp_path))
    index = json.loads((tmp_path / "checkpoint.json").read_text())
    (piece,) = index["tensors"]["a.w"]["pieces"]
    assert torch.equal(zt.open(tmp_path / piece["file"])[piece["name"]].torch(), torch.ones(3))
    assert index["planner"] == {"a.w": ["a", "w"]}
