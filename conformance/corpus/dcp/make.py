#!/usr/bin/env python3
"""Writes the checkpoints of this folder and their truths: `make.py`, with torch 2.15.0 and zstandard installed.

The processes of a checkpoint talk over gloo. Truths are computed from the whole tensors; no reader of this project is
asked. The invalid checkpoints are valid ones whose `.metadata` torch has unpickled, changed and pickled again.
"""
import copy, hashlib, json, os, pathlib, pickle, shutil, warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint import FileSystemWriter, HuggingFaceStorageWriter
from torch.distributed.checkpoint._extension import ZStandard
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

warnings.filterwarnings("ignore")
FOLDER = pathlib.Path(__file__).resolve().parent
DTYPES = {
    torch.float64: ("f64", None), torch.float32: ("f32", None), torch.float16: ("f16", None),
    torch.bfloat16: ("bf16", None), torch.int64: ("i64", None), torch.int32: ("i32", None),
    torch.int16: ("i16", None), torch.int8: ("i8", None), torch.uint8: ("u8", None), torch.bool: ("bool", None),
    torch.uint16: ("u16", None), torch.uint32: ("u32", None), torch.uint64: ("u64", None),
    torch.complex64: ("f32", "complex64"), torch.complex128: ("f64", "complex128"),
    torch.float8_e4m3fn: ("u8", "f8_e4m3fn"), torch.float8_e5m2: ("u8", "f8_e5m2"),
}
NARROW = {torch.float8_e8m0fnu: ("u8", "f8_e8m0fnu"), torch.float4_e2m1fn_x2: ("u8", "f4_e2m1fn")}


def flat(value, path=""):
    """The tensors of a state dict by their names, as DCP flattens it."""
    if isinstance(value, torch.Tensor):
        yield path, value.full_tensor() if isinstance(value, DTensor) else value
    elif isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from flat(item, f"{path}.{key}" if path else str(key))


def truth(tensor):
    dtype, logical = (DTYPES | NARROW)[tensor.dtype]
    tensor = tensor.detach().contiguous().reshape(-1)
    data = bytes(tensor.view(torch.uint8).tolist()) if tensor.numel() else b""
    return {"dtype": dtype, "sha256": hashlib.sha256(data).hexdigest()} | ({"type": logical} if logical else {})


def shape(tensor):
    """In values: torch counts pairs of FP4."""
    *rows, last = tensor.shape or [1]
    return [*rows, 2 * last] if tensor.dtype == torch.float4_e2m1fn_x2 else list(tensor.shape)


def describe(name, about, tensors, entry=None, expect="read", refused={}):
    objects = {key: {"shape": shape(tensor)} | truth(tensor) for key, tensor in tensors.items()}
    said = {"about": about, "kind": "dcp", "expect": expect, "entry": entry or f"{name}/.metadata", "files": {}}
    said |= {"objects": objects, "refused": refused, "attributes": {}}
    (FOLDER / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")


def ramp(*shape, dtype=torch.float32):
    return torch.arange(torch.Size(shape).numel(), dtype=dtype).reshape(shape)


def save(name, about, state, **options):
    """Saves with all processes; the first one writes the truth. The id is a relative path."""
    known = dict(flat(state))
    dcp.save(state, storage_writer=options.pop("writer", None) or FileSystemWriter(name), **options)
    if not dist.is_initialized() or dist.get_rank() == 0:
        describe(name, about, known)


def alone():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    weights, state = get_state_dict(model, optimizer)
    state = {"model": weights, "optim": state, "step": torch.tensor(7), "name": "a run", "epoch": 3}
    save("alone", "one process: a model, Adam's state and values that are not tensors", state, no_dist=True)

    values = {str(dtype)[6:]: torch.tensor([0, 1, 1, 0, 1]).to(dtype) for dtype in DTYPES}
    values |= {"scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), "transposed": ramp(3, 4).t()}
    values |= {"part": ramp(4, 4)[1:3, ::2], "channels_last": ramp(1, 2, 3, 2).to(memory_format=torch.channels_last)}
    save("types", "elements of every type, a scalar, no elements, and views in another order", values, no_dist=True)

    codes = torch.arange(8, dtype=torch.uint8).reshape(2, 4)
    narrow = {str(dtype)[6:]: codes.view(dtype) for dtype in NARROW}
    save("narrow", "pairs of FP4, and scales", narrow, no_dist=True)

    state = {"w": ramp(4, 2), "b": ramp(3), "lr": 0.5}
    writer = FileSystemWriter("files", single_file_per_rank=False)
    save("files", "a file for every item", state, writer=writer, no_dist=True)

    writer = FileSystemWriter("zstd", _extensions=[ZStandard()])
    dcp.save({"w": ramp(4, 2)}, storage_writer=writer, no_dist=True)
    describe("zstd", "items that an extension has compressed", {}, expect="partial", refused={"w": "stream.zstd"})


def two():
    torch.manual_seed(5)
    mesh = init_device_mesh("cpu", (2,))
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Linear(5, 1))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    weights, state = get_state_dict(model, optimizer, options=StateDictOptions())
    save("fsdp2", "FSDP2 over 2 processes: rows that do not divide evenly, and AdamW's state", {"model": weights, "optim": state})

    state = {"w": distribute_tensor(ramp(4, 2), mesh, [Shard(0)]), "lr": 0.1}
    save("rows", "rows of one tensor in 2 files", state)

    columns = distribute_tensor(ramp(3, 5).bfloat16(), mesh, [Shard(1)])
    same = distribute_tensor(ramp(2, 2), mesh, [Replicate()])
    state = {"w": distribute_tensor(ramp(4, 2), mesh, [Shard(0)]), "columns": columns, "same": same}
    known = dict(flat(state))
    dcp.save(state, storage_writer=HuggingFaceStorageWriter("safetensors", save_distributed=True))
    if dist.get_rank() == 0:
        describe("safetensors", "slices in safetensors files, by HuggingFaceStorageWriter", known, entry="safetensors")


def four():
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    whole = {"tiles": ramp(5, 7), "long": ramp(3, 300, 2), "tall": ramp(1, 3), "bf16": ramp(6, 4, dtype=torch.bfloat16)}
    places = {"tiles": [Shard(0), Shard(1)], "long": [Shard(1), Shard(2)], "tall": [Shard(0), Shard(1)], "bf16": [Replicate(), Shard(0)]}
    state = {name: distribute_tensor(tensor, mesh, places[name]) for name, tensor in whole.items()}
    state |= {"strided": distribute_tensor(ramp(9, 2), mesh["tp"], [Shard(0)]), "plain": ramp(2, 3), "step": torch.tensor(11)}
    save("mesh", "a mesh of 2 x 2 processes: tiles, processes without elements, replicas", state)


def process(rank, world, run):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"}
    dist.init_process_group("gloo", rank=rank, world_size=world)
    run()
    dist.destroy_process_group()


def invalid(name, about, change):
    """The checkpoint `rows` with other metadata."""
    shutil.copytree("rows", name)
    path = FOLDER / name / ".metadata"
    metadata = pickle.loads(path.read_bytes())
    change(metadata, metadata.state_dict_metadata["w"], metadata.storage_data)
    path.write_bytes(pickle.dumps(metadata))
    describe(name, about, {}, expect="reject")


def broken():
    def gap(metadata, tensor, places):
        tensor.chunks.pop()

    def twice(metadata, tensor, places):
        tensor.chunks.append(copy.deepcopy(tensor.chunks[0]))

    def outside(metadata, tensor, places):
        tensor.size = torch.Size([3, 2])

    def nowhere(metadata, tensor, places):
        del places[next(key for key in places if key.fqn == "w" and key.offset[0] == 2)]

    def shared(metadata, tensor, places):
        first, second = (place for key, place in places.items() if key.fqn == "w")
        second.relative_path, second.offset, second.length = first.relative_path, first.offset, first.length

    def other_type(metadata, tensor, places):
        tensor.properties.dtype = torch.int32

    def other_sizes(metadata, tensor, places):
        tensor.size = torch.Size([2, 4])
        tensor.chunks = [ChunkStorageMetadata(torch.Size([0, 0]), torch.Size([2, 2])), ChunkStorageMetadata(torch.Size([0, 2]), torch.Size([2, 2]))]
        tensor.chunks[0].sizes, tensor.size = torch.Size([2, 3]), torch.Size([2, 3])
        tensor.chunks.pop()

    def long(metadata, tensor, places):
        next(place for key, place in places.items() if key.fqn == "w").length += 10_000

    invalid("bad_gap", "no chunk has the last rows", gap)
    invalid("bad_twice", "two chunks have the first rows", twice)
    invalid("bad_outside", "a chunk exceeds its tensor", outside)
    invalid("bad_nowhere", "a chunk is in no file", nowhere)
    invalid("bad_shared", "two chunks share one item", shared)
    invalid("bad_type", "the items have another type than the tensor", other_type)
    invalid("bad_sizes", "an item has other sizes than its chunk", other_sizes)
    invalid("bad_length", "an item ends beyond its file", long)


if __name__ == "__main__":
    os.chdir(FOLDER)
    for path in FOLDER.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.suffix == ".json":
            path.unlink()
    alone()
    for world, run in ((2, two), (4, four)):
        mp.spawn(process, (world, run), nprocs=world)
    broken()
