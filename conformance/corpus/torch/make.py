#!/usr/bin/env python3
"""Writes the files of this folder and their truths: `make.py`, with torch 2.15.0 and NumPy 2.4.6 installed.

Truths are computed from what is handed to torch, with NumPy alone; no reader of this project is asked.
"""
import argparse, datetime, enum, hashlib, json, math, pathlib, pickle, random, shutil, warnings, zipfile
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Dict, List

import numpy as np
import torch

warnings.filterwarnings("ignore")
torch.manual_seed(7)
FOLDER = pathlib.Path(__file__).resolve().parent
DTYPES = {
    torch.float64: ("f64", None), torch.float32: ("f32", None), torch.float16: ("f16", None),
    torch.bfloat16: ("bf16", None), torch.int64: ("i64", None), torch.int32: ("i32", None),
    torch.int16: ("i16", None), torch.int8: ("i8", None), torch.uint8: ("u8", None), torch.bool: ("bool", None),
    torch.uint16: ("u16", None), torch.uint32: ("u32", None), torch.uint64: ("u64", None),
    torch.complex64: ("f32", "complex64"), torch.complex128: ("f64", "complex128"),
    torch.complex32: ("f16", "complex32"), torch.float8_e4m3fn: ("u8", "f8_e4m3fn"),
    torch.float8_e8m0fnu: ("u8", "f8_e8m0fnu"), torch.float4_e2m1fn_x2: ("u8", "f4_e2m1fn"),
    torch.bits8: ("u8", "bits8"), torch.bits16: ("u16", "bits16"),
}


def elements(tensor):
    """Little-endian bytes of the elements in row-major order, by strides over the bytes of the storage."""
    size = tensor.element_size()
    storage = np.frombuffer(bytes(tensor.untyped_storage().tolist()), np.uint8)
    strides = [stride * size for stride in tensor.stride()]
    start = storage[tensor.storage_offset() * size :] if tensor.numel() else storage[:0]
    return np.lib.stride_tricks.as_strided(start, (*tensor.shape, size), (*strides, 1)).tobytes() if tensor.numel() else b""


def truth(tensor):
    if tensor.layout != torch.strided:
        return {"shape": list(tensor.shape), "dtype": DTYPES[tensor.dtype][0],
                "format": "sparse_csr" if tensor.layout == torch.sparse_csr else "sparse_coo", "dense": truth(tensor.to_dense())}
    dtype, logical = DTYPES[tensor.dtype]
    shape = list(tensor.shape)
    if tensor.dtype == torch.float4_e2m1fn_x2:
        shape[-1] *= 2  # torch counts pairs
    said = {"shape": shape, "dtype": dtype, "sha256": hashlib.sha256(elements(tensor)).hexdigest()}
    return said | ({"type": logical} if logical else {})


def case(name, about, save, objects, refused={}, attributes={}, entry=None, expect=None):
    """`save` writes the file; `objects` are the tensors that it has, by their names."""
    path = FOLDER / (entry or f"{name}.pt")
    save(path)
    said = {"about": about, "kind": "pt", "expect": expect or ("partial" if refused else "read")}
    said |= {"entry": entry, "files": {}} if entry else {}
    said |= {"objects": {key: truth(tensor) for key, tensor in objects.items()}, "refused": refused, "attributes": attributes}
    (FOLDER / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")


def saved(value, **options):
    return lambda path: torch.save(value, path, **options)


def unclocked(path):
    """TorchScript numbers its archives by what it was run from; nothing reads that."""
    with zipfile.ZipFile(path) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist() if "debug_pkl" not in info.filename]
    with zipfile.ZipFile(path, "w") as archive:
        for info, data in members:
            archive.writestr(zipfile.ZipInfo(info.filename), b"0" * 40 if info.filename.endswith("serialization_id") else data)


class Inner(torch.nn.Module):
    sizes: List[int]
    tensors: Dict[str, torch.Tensor]

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.block = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
        self.register_buffer("steps", torch.arange(4).half())
        self.sizes, self.tensors, self.label, self.rate = [1, 2], {"q": torch.full((2,), 5.0)}, "a text", 0.5

    def forward(self, x):
        return self.linear(x)


class Constant(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([3.0, 4.0]))

    def forward(self, x):
        return x * self.scale + torch.tensor([1.0, 2.0])


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Colour(enum.Enum):
    RED = "red"


class Modes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
        self.mode, self.colour = Mode.SLOW, Colour.RED

    def forward(self, x):
        return x * self.scale if self.mode == Mode.SLOW and self.colour == Colour.RED else x


def script(module):
    def save(path):
        torch.jit.save(module, path)
        unclocked(path)

    return save


inner = Inner()
case("script", "torch.jit.save of a scripted module: modules, lists, dicts and texts of classes that the archive defines",
     script(torch.jit.script(inner)), dict(inner.state_dict()) | {"tensors.q": inner.tensors["q"]},
     attributes={"label": "a text", "rate": 0.5, "sizes.0": 1, "sizes.1": 2})
constant = Constant()
case("script_constants", "torch.jit.save of a traced module whose code has a tensor as a constant",
     script(torch.jit.trace(constant, torch.ones(2))), {"scale": constant.scale.detach(), "CONSTANTS.c0": torch.tensor([1.0, 2.0])})
modes = Modes()
case("script_enum", "torch.jit.save of a module with Enums as attributes: libtorch writes their class and their bare value",
     script(torch.jit.script(modes)), {"scale": modes.scale.detach()}, attributes={"mode": 2, "colour": "red"})


class Buffers(torch.nn.Module):
    def __init__(self, tensors):
        super().__init__()
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)

    def forward(self, x):
        return x


rows = torch.tensor([[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0]])
held = {str(dtype).split(".")[1]: torch.arange(8, dtype=torch.uint8).view(dtype) for dtype in
        (torch.uint16, torch.uint32, torch.uint64, torch.complex32, torch.float8_e4m3fn, torch.float8_e8m0fnu, torch.float4_e2m1fn_x2, torch.bits8, torch.bits16)}
put_off = torch.view_as_complex(torch.ones(2, 2)).conj()
case("script_buffers", "torch.jit.save of buffers whose types have storages in libtorch alone; one whose conjugation was put off",
     script(torch.jit.script(Buffers(held | {"put_off": put_off}))), held | {"put_off": put_off.resolve_conj()})
case("script_sparse", "torch.jit.save of sparse buffers, which libtorch pickles otherwise than Python",
     script(torch.jit.script(Buffers({"coo": rows.to_sparse(), "csr": rows.to_sparse_csr(), "hybrid": rows.to_sparse(1)}))),
     {"coo": rows.to_sparse(), "csr": rows.to_sparse_csr(), "hybrid": rows.to_sparse(1)})

# A training run, as PyTorch Lightning 2 lays out its checkpoints.
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
for _ in range(2):
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    scheduler.step()
checkpoint = {
    "epoch": 1, "global_step": 2, "pytorch-lightning_version": "2.5.0", "state_dict": model.state_dict(),
    "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 2, "completed": 1}}}},
    "callbacks": {"ModelCheckpoint{'monitor': None}": {"best_model_score": torch.tensor(0.25), "best_model_path": "a/b.ckpt"}},
    "optimizer_states": [optimizer.state_dict()], "lr_schedulers": [scheduler.state_dict()], "MixedPrecision": {"scale": 65536.0},
}
tensors = {f"state_dict.{name}": tensor for name, tensor in model.state_dict().items()}
tensors["callbacks.ModelCheckpoint{'monitor': None}.best_model_score"] = torch.tensor(0.25)
for at, state in optimizer.state_dict()["state"].items():
    tensors |= {f"optimizer_states.0.state.{at}.{key}": tensor for key, tensor in state.items()}
case("lightning", "a checkpoint laid out as PyTorch Lightning does, with AdamW and a schedule", saved(checkpoint), tensors,
     attributes={"epoch": 1, "pytorch-lightning_version": "2.5.0", "loops.fit_loop.epoch_progress.total.ready": 2,
                 "optimizer_states.0.param_groups.0.weight_decay": 0.01, "lr_schedulers.0.T_max": 10})

# rng_state.pth of Hugging Face's Trainer: the state of NumPy's generator is an array.
states = {"python": random.Random(3).getstate(), "numpy": np.random.RandomState(3).get_state(legacy=True),
          "cpu": torch.get_rng_state()[:64].clone()}
case("rng_state", "the states of three generators of random numbers, as Hugging Face's Trainer saves them: one is a NumPy array",
     saved(states), {"cpu": states["cpu"], "numpy.1": torch.from_numpy(states["numpy"][1])}, {}, {"python.0": 3, "numpy.0": "MT19937"})
weights = torch.arange(6.0).reshape(2, 3)
for protocol in (2, 4, 5):
    values = {"weight": weights, "best": np.float64(0.75), "steps": np.arange(6, dtype=np.int32).reshape(2, 3), "flag": np.bool_(True), "transposed": weights.t()}
    case(f"numpy_protocol_{protocol}", "scalars and arrays of NumPy beside tensors", saved(values, pickle_protocol=protocol),
         {"weight": weights, "transposed": weights.t()} | {name: torch.from_numpy(np.array(values[name])) for name in ("best", "steps", "flag")})

# Tensors with attributes of their own, and everything that is a parameter.
buffer = torch.nn.Buffer(torch.arange(3.0))
attributed = torch.nn.Parameter(torch.arange(4.0).bfloat16())
attributed.note, attributed.shard = "kept", (0, 2)
module = torch.nn.Linear(2, 2)
holder = {"buffer": buffer, "attributed": attributed, "module": OrderedDict(module.named_parameters()),
          "parameters": list(module.parameters()), "list": torch.nn.ParameterList([torch.ones(2)]).state_dict(),
          "frozen": torch.nn.Parameter(torch.arange(2), requires_grad=False)}
parameters = dict(module.named_parameters())
case("parameters", "buffers, parameters with attributes, frozen parameters, lists of them", saved(holder),
     {"buffer": torch.arange(3.0), "attributed": attributed.detach(), "frozen": torch.arange(2), "list.0": torch.ones(2)}
     | {f"module.{name}": tensor.detach() for name, tensor in parameters.items()}
     | {f"parameters.{at}": tensor.detach() for at, tensor in enumerate(parameters.values())})

# Storages that stand alone, and types that have no storage of their own.
shorts = torch.arange(5, dtype=torch.int16)
bytes_ = torch.arange(7, dtype=torch.uint8)
case("storages", "typed and untyped storages as values, one of them that of a tensor",
     saved({"typed": shorts.storage(), "untyped": bytes_.untyped_storage(), "tensor": shorts[1:4]}),
     {"typed": shorts, "untyped": bytes_, "tensor": shorts[1:4]})
case("storages_legacy", "as storages, in the older stream",
     saved({"typed": shorts.storage(), "tensor": shorts[1:4]}, _use_new_zipfile_serialization=False),
     {"typed": shorts, "tensor": shorts[1:4]})
packed = torch.arange(8, dtype=torch.uint8)
narrow = {str(dtype).split(".")[1]: packed.view(dtype) for dtype in
          (torch.float4_e2m1fn_x2, torch.float8_e8m0fnu, torch.bits8, torch.bits16)}
narrow["float4_rows"] = packed.reshape(2, 4).view(torch.float4_e2m1fn_x2)
case("narrow", "types of less than a byte, of scales, and of bits without values, whose bytes are kept", saved(narrow), narrow)

# CSC, BSR and BSC are read as COO. Layouts that there is no format for do not hide their neighbours.
matrix = torch.tensor([[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0]])
others = {"dense": matrix, "csc": matrix.to_sparse_csc(), "bsr": matrix.to_sparse_bsr((1, 2)), "bsc": matrix.to_sparse_bsc((1, 2)),
          "hybrid": matrix.to_sparse(1), "batched": torch.stack([matrix, matrix]).to_sparse_csr(),
          "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "meta": torch.empty(2, 3, device="meta"), "last": matrix.t()}
case("layouts", "sparse layouts other than COO and CSR, a nested tensor, one without data", saved(others),
     {name: others[name] for name in ("dense", "last", "csc", "bsr", "bsc", "hybrid")},
     {name: "no such object format" for name in ("batched", "nested", "meta")})

# Hybrid tensors are read as COO of single values. Integers are negated as they are read.
cube = torch.arange(24, dtype=torch.int16).reshape(2, 3, 4) * torch.tensor([1, 0, 1], dtype=torch.int16)[:, None]
more = {"one_dense": cube.to_sparse(2), "two_dense": cube.to_sparse(1),
        "repeated": torch.sparse_coo_tensor([[1, 1, 0]], torch.arange(6.0).reshape(3, 2), (2, 2)),
        "transposed": torch.sparse_coo_tensor([[0, 1], [2, 0]], torch.arange(6.0).reshape(3, 2).t(), (2, 3, 3)),
        "without": torch.zeros(2, 3).to_sparse(1)}
extremes = {str(dtype).split(".")[1]: torch.tensor([0, 1, 5, torch.iinfo(dtype).min, torch.iinfo(dtype).max], dtype=dtype)
            for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)}
negated = {name: torch._neg_view(ints) for name, ints in extremes.items()}
case("deferred", "hybrid sparse tensors, and integers whose negation is deferred", saved({**more, **negated}),
     {**more, **{name: ints.neg() for name, ints in extremes.items()}})

# Odd collections and keys.
tied = torch.arange(4.0)
odd = OrderedDict([("a.b", tied), (("t", 1), tied[1:]), (None, tied[:2]), (2.5, tied), (True, tied), (b"bytes", tied[3]), ("", tied),
                   ("counter", Counter("aab")), ("set", {1}), ("complex", 1 - 2j), ("size", torch.Size([3, 4])), ("dtype", torch.bfloat16),
                   ("device", torch.device("cuda:1")), ("layout", torch.strided), ("empty", []), ("tuple", (tied, [tied, {"deep": tied}]))])
case("keys", "keys that are tuples, numbers, bytes, None and empty; values that are no tensors", saved(odd),
     {"a.b": tied, '("t", 1)': tied[1:], "None": tied[:2], "2.5": tied, "True": tied, 'b"bytes"': tied[3], "": tied,
      "tuple.0": tied, "tuple.1.0": tied, "tuple.1.1.deep": tied},
     attributes={"counter.a": 2, "dtype": "torch.bfloat16", "device": "cuda:1", "size": [3, 4], "set": [1]})

# More odd keys: each has a name, and none hides what is beside it.
more = [(np.int64(3), "3"), (np.float32(0.1), "0.1"), (np.str_("caf\u00e9"), "caf\u00e9"), (np.bool_(True), "True"), (torch.float16, "torch.float16"),
        (torch.device("cuda:1"), "cuda:1"), (torch.Size([3, 4]), "(3, 4)"), (1 - 2j, "(1-2j)"), (2j, "2j"), (2**70, str(2**70)), (-(2**100), str(-(2**100))),
        (2**130, "0x0400000000000000000000000000000000"), ("caf\udce9", "caf\\udce9"), (frozenset([1]), "{1}"), (1e16, "1e+16"), (1.5e-7, "1.5e-07"),
        (float("inf"), "inf"), (pathlib.PurePosixPath("/a/b"), "/a/b"), (int, "int"), (torch.per_tensor_affine, "torch.per_tensor_affine")]
one = torch.ones(1)
nameless = {datetime.date(2020, 1, 2): tied, one: tied[:2], "x": tied[3:]}
case("more_keys", "keys of NumPy and torch, floats as Python spells them, integers beyond 64 bits, half of a surrogate pair, and keys without a name",
     saved({"named": dict((key, tied) for key, _ in more), "nameless": nameless}),
     {f"named.{name}": tied for _, name in more}
     | {"nameless.<key 0>": tied, "nameless.<key 1>": tied[:2], "nameless.<key 1>.key": one, "nameless.x": tied[3:]},
     attributes={"nameless.<key 0>.key": {"datetime.date": [{"$bytes_hex": "07e40102"}]}})
equal = {1: tied, "1": tied[1:], 2: {"x": tied}, "2.x": tied[2:], math.nan: tied, float("nan"): tied[3:], "w": tied}
case("equal_names", "keys that are different and would have one name: they are written out, and counted where they are the same all the same", saved(equal),
     {"[1]": tied, '["1"]': tied[1:], '[2]["x"]': tied, '["2.x"]': tied[2:], "[nan]": tied, "[nan].2": tied[3:], "w": tied})


def repeated(path):
    """A pickle that sets one key twice: its texts are patched, since no dict of Python has one."""
    torch.save({"first": tied, "again": tied[1:], "fir\u00dft": tied[2:], 1: tied, 7: tied[3:]}, path)
    with zipfile.ZipFile(path) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(path, "w") as archive:
        for info, data in members:
            if info.filename.endswith("data.pkl"):
                data = data.replace(b"again", b"first").replace(b"K\x07", b"\x88")
            archive.writestr(zipfile.ZipInfo(info.filename), data)
    loaded = torch.load(path, weights_only=True)
    assert list(loaded) == ["first", "fir\u00dft", 1] and loaded["first"].tolist() == [1, 2, 3] and loaded[1].tolist() == [3]


case("repeated_keys", "keys that are set twice, one as 1 and as True: the last value counts, as in Python", repeated,
     {"first": tied[1:], "fir\u00dft": tied[2:], "1": tied[3:]})

# What tensors carry, and collections of Python's library.
carrier = torch.nn.Parameter(torch.arange(3.0))
carrier.extra, carrier.note, carrier.deep, carrier.steps = one, "kept", {"a": [torch.zeros(2), 1]}, np.arange(2)
plain = torch.arange(2.0)
plain.mask = torch.tensor([True, False])
case("members", "tensors that were given tensors as attributes", saved({"w": carrier, "w.extra": tied, "plain": plain}),
     {"w": carrier.detach(), '["w"].extra': one, '["w.extra"]': tied, "w.deep.a.0": torch.zeros(2), "plain": torch.arange(2.0), "plain.mask": plain.mask, "w.steps": torch.arange(2)},
     {}, {"w.deep.a.1": 1})
default = defaultdict(list, {"a": [tied]})
momenta = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
module(torch.ones(1, 2)).sum().backward()
momenta.step()
state = {f"state.<key {at}>": (key, value["momentum_buffer"]) for at, (key, value) in enumerate(momenta.state.items())}
case("library", "collections and values of Python's library: defaultdict, deque, Namespace, sets of tensors, paths, times, the version of torch",
     saved({"default": default, "queue": deque([tied, 1], maxlen=5), "args": argparse.Namespace(lr=0.5, ema=tied, out=pathlib.PurePosixPath("runs") / "a"),
            "sets": {tied[1:]}, "frozen": frozenset([tied[2:]]), "numbers": frozenset([1]), "none": set(), "version": torch.__version__, "range": range(3),
            "when": datetime.timedelta(1, 2), "state": momenta.state}),
     {"default.a.0": tied, "queue.0": tied, "args.ema": tied, "sets.0": tied[1:], "frozen.0": tied[2:]}
     | {f"{name}.key": key.detach() for name, (key, _) in state.items()} | {f"{name}.momentum_buffer": value for name, (_, value) in state.items()},
     attributes={"queue.1": 1, "args.lr": 0.5, "args.out": "runs/a", "numbers": [1], "none": [], "version": str(torch.__version__), "range": {"range": [0, 3, 1]},
                 "when": {"datetime.timedelta": [1, 2, 0]}})



# A tensor that is spread over devices: of each, a process saves its part. Two runs differ in the hashes that torch keeps of them.
from torch import distributed
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
mesh = distributed.init_device_mesh("cpu", (1,))
spread = {"shard": distribute_tensor(matrix, mesh, [Shard(0)]), "whole": distribute_tensor(tied, mesh, [Replicate()]),
          "sum": DTensor.from_local(one, mesh, [Partial()])}
case("dtensor", "DTensors, whose elements are those of a part, beside a tensor", saved(spread | {"plain": tied}),
     {"plain": tied} | {f"{name}._local_tensor": tensor.to_local() for name, tensor in spread.items()},
     {key: "a part of a tensor, and how it was spread" for name in spread for key in (name, f"{name}._spec")})


class Image(torch.Tensor):
    """A tensor of a class of one's own."""


class ModelCheckpoint:
    """As a callback of PyTorch Lightning, whose class was the key of its state."""


image = torch.arange(4.0).as_subclass(Image)
image.scale = 2
case("classes", "classes that are only named: the key of a callback's state, as in checkpoints of PyTorch Lightning 1, and the class of a tensor",
     saved({"state_dict": {"w": tied}, "callbacks": {ModelCheckpoint: {"best": one, "monitor": None}}, "image": image, "loss": ModelCheckpoint}),
     {"state_dict.w": tied, "callbacks.__main__.ModelCheckpoint.best": one, "image": torch.arange(4.0)},
     attributes={"callbacks.__main__.ModelCheckpoint.monitor": None, "loss": "__main__.ModelCheckpoint"})

# What is no data.
whole = torch.nn.Linear(2, 2)
case("whole_module_legacy", "torch.save(model) in the older stream, which names the class of a module by its source",
     saved(whole, _use_new_zipfile_serialization=False), {f"_parameters.{name}": tensor for name, tensor in whole.named_parameters()})
case("plain_pickle", "pickle.dump of a dict of numbers", lambda path: path.write_bytes(pickle.dumps({"w": 1}, 2)), {}, attributes={"w": 1})

# A set of two files, as Hugging Face's save_pretrained(safe_serialization=False) wrote them.
first, second = {"embed.weight": torch.arange(8.0).reshape(4, 2), "layer.0": torch.arange(3).int()}, {"head.weight": torch.arange(8.0).reshape(2, 4).t()}
shards = [f"pytorch_model-0000{at}-of-00002.bin" for at in (1, 2)]
folder = FOLDER / "sharded"
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir()
for name, state in zip(shards, (first, second)):
    torch.save(state, folder / name)
index = {"metadata": {"total_size": 76}, "weight_map": {key: name for name, state in zip(shards, (first, second)) for key in state}}
case("sharded", "a sharded set of two files and their index", lambda path: path.write_text(json.dumps(index, indent=2)),
     first | second, entry="sharded/pytorch_model.bin.index.json")
