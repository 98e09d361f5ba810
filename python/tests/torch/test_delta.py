"""Deltas of models of torch: made from memory, and applied in place."""

import multiprocessing
import os
import signal

import pytest
import torch
from test_checkpoint_store import store  # noqa: F401
from trainer import content, model, steps, work

import zt
import zt.delta
import zt.torch

FLOATS = [torch.bfloat16, torch.float16, torch.float32, torch.float64]
FP8 = [torch.float8_e4m3fn, torch.float8_e5m2]
OTHERS = [torch.int64, torch.bool, torch.complex64, torch.complex128]
NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_a_worker_follows_ten_steps_of_training(store):  # noqa: F811
    options, _ = store
    before = {name: value.clone() for name, value in model().state_dict().items()}
    base = "s3://models/run/base.zt"
    zt.torch.save_file(before, base, storage_options=options)
    context = multiprocessing.get_context("spawn")
    deltas, results = context.SimpleQueue(), context.SimpleQueue()
    worker = context.Process(target=work, args=(base, deltas, options, results))
    worker.start()
    try:
        for step, state in enumerate(steps(10)):
            delta = f"s3://models/run/{step}.zt"
            changes = zt.delta.make(before, state, delta, storage_options=options)
            assert changes.changed > 3
            deltas.put(delta)
            assert results.get() == content(state) != content(before)
            before = {name: value.clone() for name, value in state.items()}
    finally:
        deltas.put(None)
        worker.join()
    assert worker.exitcode == 0


def changed(state, share=0.03):
    """A copy, in which every tensor has some new values, and tied ones the same."""
    new = {}
    for name, value in state.items():
        random = torch.Generator().manual_seed(5)
        flat = value.detach().clone().contiguous().view(-1).view(torch.uint8)
        flat ^= (torch.rand(len(flat), generator=random) < share).to(flat.device)
        new[name] = flat.view(value.dtype).reshape(value.shape)
    return new


def delta_of(old, new, path):
    zt.delta.make(old, new, path)
    return path


@pytest.mark.parametrize("dtype", FLOATS + FP8 + OTHERS, ids=str)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_GPU)])
def test_tensors_change_in_place(tmp_path, device, dtype):
    plain = (torch.arange(40_000, device=device) % 250).to(dtype)
    state = {
        "matrix": plain.clone().reshape(200, 200),
        "transposed": plain.clone().reshape(100, 400).T,
        "strided": plain.clone()[::3],
        "empty": torch.zeros(0, 4, dtype=dtype, device=device),
        "scalar": plain[7].clone(),
    }
    state["tied"] = state["matrix"]
    new = changed(state)
    places = {name: (value.data_ptr(), value.stride()) for name, value in state.items()}
    zt.torch.apply_delta(state, delta_of(state, new, tmp_path / "d.zt"))
    assert content(state) == content(new)
    assert places == {name: (value.data_ptr(), value.stride()) for name, value in state.items()}


@pytest.mark.parametrize("share", [0.01, 0.9])
def test_patches_are_what_vllm_takes(tmp_path, share):
    state = model().state_dict()
    new = changed(state, share)
    path = delta_of(state, new, tmp_path / "d.zt")
    for patch in list(zt.torch.patches(path, state)):
        assert patch._asdict().keys() == {"name", "shape", "dtype", "indices", "values"}
        assert patch.dtype == patch.values.dtype == torch.bfloat16
        assert patch.shape == new[patch.name].shape and patch.values.ndim == 1
        flat = state[patch.name].view(-1)
        if patch.indices is None:
            flat.copy_(patch.values)
        else:
            assert patch.indices.dtype == torch.int32
            flat[patch.indices] = patch.values
    assert content(state) == content(new)


def test_autograd_sees_the_change_and_parameters_stay(tmp_path):
    worker = model()
    weight = worker.up.weight
    version = weight._version
    path = delta_of(worker.state_dict(), changed(worker.state_dict()), tmp_path / "d.zt")
    zt.torch.apply_delta(worker, path)
    assert worker.up.weight is weight and weight.requires_grad and weight._version > version


def test_parameters_that_were_made_in_inference_mode_change(tmp_path):
    with torch.inference_mode():
        state = {"w": torch.arange(1000.0)}
    new = changed({"w": torch.arange(1000.0)})
    zt.torch.apply_delta(state, delta_of({"w": torch.arange(1000.0)}, new, tmp_path / "d.zt"))
    assert content(state) == content(new)


def test_ctrl_c_waits_until_all_tensors_are_changed(tmp_path, monkeypatch):
    state = {name: torch.arange(1000.0) for name in "abc"}
    new = changed(state)
    path = delta_of(state, new, tmp_path / "d.zt")
    real, calls = zt._zt._new_values, []

    def interrupted(*arguments):
        if not calls:
            os.kill(os.getpid(), signal.SIGINT)
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(zt._zt, "_new_values", interrupted)
    with pytest.raises(KeyboardInterrupt):
        zt.torch.apply_delta(state, path)
    assert len(calls) == 3 and content(state) == content(new)


@pytest.mark.parametrize("kept", ["embed.weight", "head.weight"])
def test_a_base_may_have_one_name_of_a_tied_tensor(tmp_path, kept):
    worker = model()
    state = worker.state_dict()
    dropped = ({"embed.weight", "head.weight"} - {kept}).pop()
    base = {name: value.clone() for name, value in state.items() if name != dropped}
    new = changed(base)
    zt.torch.apply_delta(worker, delta_of(base, new, tmp_path / "d.zt"))
    assert content(worker.state_dict()) == content(new | {dropped: new[kept]})


def other_base(worker, path):
    worker.up.bias.data[3] += 1
    return path, zt.WrongBaseError, r"is not the base of the delta.*sha256:\w+.*sha256:\w+.*up.bias"


def other_dtype(worker, path):
    worker.norm.float()
    return path, zt.WrongBaseError, "norm.bias"


def other_shape(worker, path):
    worker.up = torch.nn.Linear(64, 255, dtype=torch.bfloat16)
    return path, zt.WrongBaseError, "up.bias"


def missing_tensor(worker, path):
    del worker.up.bias
    return path, zt.WrongBaseError, "up.weight"


def one_more_tensor(worker, path):
    worker.register_buffer("zeros", torch.zeros(3))
    worker.register_buffer("ones", torch.ones(3))
    return path, zt.WrongBaseError, "ones"


def cut_delta(worker, path):
    path.write_bytes(path.read_bytes()[:-50])
    return path, zt.MalformedError, ""


def no_delta(worker, path):
    zt.torch.save_model(worker, path)
    return path, zt.MisuseError, "is no delta"


def damaged_delta(worker, path):
    data = bytearray(path.read_bytes())
    component = zt.open(path)["up.weight"].components["data"]
    data[component.offset + component.nbytes // 2] ^= 1
    path.write_bytes(data)
    return path, zt.DigestMismatchError, "up.weight"


def untied(worker, path):
    state = worker.state_dict()
    path.unlink()
    zt.delta.make(state, state | {"head.weight": state["head.weight"] + 1}, path)
    return path, zt.MisuseError, "is tied to"


def removing(worker, path):
    state = worker.state_dict()
    path.unlink()
    zt.delta.make(state, {name: state[name] for name in state if name != "up.bias"}, path)
    return path, zt.UnsupportedError, "removes 'up.bias'"


def adding(worker, path):
    path.unlink()
    zt.delta.make(worker.state_dict(), worker.state_dict() | {"new": torch.ones(3)}, path)
    return path, zt.UnsupportedError, "new: the delta adds this tensor"


def casting(worker, path):
    state = worker.state_dict()
    path.unlink()
    zt.delta.make(state, state | {"up.bias": state["up.bias"].half()}, path)
    return path, zt.UnsupportedError, "up.bias: the delta gives it another"


def beyond_the_shape(worker, path):
    """The gap to the next change leads out of the tensor: all bits of the code are ones."""
    return without_digests(path, slice(2, -4)), zt.MalformedError, "up.bias"


def longer_than_it_is(worker, path):
    """The table claims a code of 2^32 - 1 bytes."""
    return without_digests(path, slice(-4, None)), zt.MalformedError, "up.bias.*do not add up"


def without_digests(path, ones):
    """The delta of a stranger, with ones in a part of the component of `up.bias`."""
    stranger = path.with_name("stranger.zt")
    zt.convert(path, stranger, digest=None, chunk_digests=None)
    component = zt.open(stranger)["up.bias"].components["data"]
    assert component.encoding == "raw"
    data = bytearray(stranger.read_bytes())
    part = slice(component.offset, component.offset + component.nbytes)
    code = data[part]
    code[ones] = b"\xff" * len(code[ones])
    data[part] = code
    stranger.write_bytes(data)
    return stranger


CASES = [other_base, other_dtype, other_shape, missing_tensor, one_more_tensor, cut_delta, no_delta]
CASES += [damaged_delta, untied, removing, adding, casting, beyond_the_shape, longer_than_it_is]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_refused_delta_changes_nothing(tmp_path, case):
    worker = model()
    state = worker.state_dict()
    path = delta_of(state, changed(state), tmp_path / "d.zt")
    path, error, text = case(worker, path)
    before = {name: value.clone() for name, value in worker.state_dict().items()}
    with pytest.raises(error, match=f"(?s){text}") as raised:
        zt.torch.apply_delta(worker, path)
    assert raised.value.__notes__ == [f"while applying {path}"]
    after = worker.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_tensors_that_share_memory_are_refused(tmp_path):
    fused = torch.arange(3000.0)
    state = {"fused": fused, "query": fused[:1000]}
    path = delta_of(state, changed(state), tmp_path / "d.zt")
    with pytest.raises(zt.MisuseError, match="shares memory with"):
        zt.torch.apply_delta(state, path)
    expanded = {"w": torch.zeros(1).expand(1000)}
    path = delta_of(expanded, changed(expanded), tmp_path / "e.zt")
    with pytest.raises(zt.MisuseError, match="is expanded"):
        zt.torch.apply_delta(expanded, path)
    assert torch.equal(fused, torch.arange(3000.0))
