"""Steps that are saved behind the loop."""

import errno
import queue
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)

import zt
import zt.torch
from zt.torch import Saver, saved_steps

pytestmark = pytest.mark.filterwarnings("ignore::zt.torch.SaveWaitWarning")


def bits(tensor):
    return tensor.to_dense().contiguous().reshape(-1).view(torch.uint8)


def equal(loaded, state):
    return loaded.keys() == state.keys() and all(
        loaded[name].shape == value.shape
        and loaded[name].dtype == value.dtype
        and torch.equal(bits(loaded[name]), bits(value.detach().resolve_conj()))
        for name, value in state.items()
    )


def load(folder, step):
    path, base = saved_steps(folder)[step]
    return zt.torch.load_file(path, base=base)


def training(seed=7):
    """Weights of bf16 and moments of f32, with a tied weight, a number and an empty tensor."""
    random = torch.Generator().manual_seed(seed)
    state = {"embed": torch.randn(300, 64, generator=random).bfloat16()}
    state["head"] = state["embed"]
    state["moment"] = torch.randn(64, 500, generator=random)
    state["step"] = torch.tensor(float(seed))
    state["empty"] = torch.empty(0, 4)
    return state


def advance(state):
    """Some values change, in place."""
    state["embed"][::50, ::3] += 0.5
    state["moment"][3, ::7] *= 1.01
    state["step"] += 1


@pytest.fixture
def gate(monkeypatch):
    """Holds the thread before it writes, until the test opens the gate."""
    gate = threading.Event()
    real = Saver._write

    def write(*arguments):
        assert gate.wait(60)
        return real(*arguments)

    monkeypatch.setattr(Saver, "_write", write)
    yield gate
    gate.set()


def test_a_state_that_changes_at_once_is_saved_as_it_was(tmp_path, gate):
    state, metadata = training(), {"lr": 0.1, "betas": [0.9, 0.99], "run": {"seed": 7}}
    zt.torch.save_file(state, tmp_path / "wanted.zt", metadata)
    with Saver(tmp_path / "run") as saver:
        future = saver.save(state, 5, metadata)
        for value in state.values():
            value.zero_()
        metadata["run"]["seed"] = 8
        gate.set()
        path, base, nbytes, seconds = future.result()
    assert path == tmp_path / "run" / "step-00000005.zt" and base is None
    assert path.read_bytes() == (tmp_path / "wanted.zt").read_bytes()
    assert nbytes == path.stat().st_size and seconds > future.copied > 0 == future.waited


def test_deltas_of_the_last_full_step_give_each_state_again(tmp_path):
    state, states = training(), []
    with Saver(tmp_path, full_every=3) as saver:
        for step in range(7):
            states.append({name: value.clone() for name, value in state.items()})
            saver.save(state, step, {"step": step, "text": "ü"})
            advance(state)
            if step == 4:
                state["new"] = torch.arange(3)
    steps = saved_steps(tmp_path)
    full = [tmp_path / f"step-0000000{step}.zt" for step in (0, 3, 5)]
    bases = [None, full[0], full[0], None, full[1], None, full[2]]
    assert [step.base for step in steps.values()] == bases
    for number, (path, base) in steps.items():
        loaded = load(tmp_path, number)
        assert equal(loaded, states[number])
        assert loaded["head"] is loaded["embed"]
        with zt.open(path, base=base) as file:
            assert file.attributes == {"step": number, "text": "ü"}
        if base is not None:
            assert path.stat().st_size < base.stat().st_size / 5
            with pytest.raises(zt.WrongBaseError):
                zt.torch.load_file(path, base=full[2 if base == full[0] else 0])


def test_what_is_no_longer_tied_is_saved_apart(tmp_path):
    state = training()
    with Saver(tmp_path, full_every=9) as saver:
        saver.save(state, 0)
        advance(state)
        saver.save(state, 1)
        state["head"] = state["embed"].clone()
        state["head"][0, 0] = 9
        saver.save(state, 2)
    assert [step.base is None for step in saved_steps(tmp_path).values()] == [True, False, True]
    loaded = load(tmp_path, 2)
    assert equal(loaded, state) and loaded["head"] is not loaded["embed"]
    # Tied in the base, and apart in the delta.
    path = tmp_path / "apart.zt"
    zt.delta.make(tmp_path / "step-00000000.zt", state, path)
    assert equal(zt.torch.load_file(path, base=tmp_path / "step-00000000.zt"), state)


def test_tensors_of_every_sort(tmp_path):
    plain = torch.arange(6000.0)
    state = {
        "parameter": torch.nn.Parameter(plain.clone()),
        "transposed": plain.reshape(60, 100).T,
        "strided": plain[::3],
        "expanded": torch.ones(1).expand(50),
        "view": plain.view(100, 60),
        "flat": plain,
        "conjugate": torch.randn(9, dtype=torch.complex64).conj(),
        "bool": plain > 7,
        "coo": torch.eye(9).to_sparse_coo(),
        "csr": torch.eye(9).to_sparse_csr(),
    }
    for dtype in torch.float8_e4m3fn, torch.float8_e5m2, torch.float16, torch.int64:
        state[str(dtype)] = (plain % 250).to(dtype)
    state["float4"] = state["torch.int64"].to(torch.uint8).view(torch.float4_e2m1fn_x2)
    zt.torch.save_file(state, tmp_path / "wanted.zt")
    with Saver(tmp_path, full_every=2) as saver:
        # The memory is made where torch would mark it as unchangeable.
        with torch.inference_mode():
            saver.save(state, 0)
        plain += 1
        saver.save(state, 1)
    assert (tmp_path / "step-00000000.zt").read_bytes() == (tmp_path / "wanted.zt").read_bytes()
    loaded = load(tmp_path, 1)
    # Values of less than a byte are loaded as f32.
    assert loaded.pop("float4").dtype == torch.float32
    del state["float4"]
    assert equal(loaded, state)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (3, TypeError, "'w' is not a torch.Tensor but int"),
        (torch.empty(3, device="meta"), zt.MisuseError, "meta"),
        (torch.zeros(3, dtype=torch.complex32), TypeError, "no file has"),
    ],
    ids=["int", "meta", "complex32"],
)
def test_what_cannot_be_saved_is_refused_at_once(tmp_path, value, error, text):
    with Saver(tmp_path) as saver:
        with pytest.raises(error, match=text) as raised:
            saver.save({"w": value}, 0)
        assert "w" in f"{raised.value} {getattr(raised.value, '__notes__', '')}"
        with pytest.raises(TypeError, match="attributes hold"):
            saver.save(training(), 0, {"x": object()})
        saver.save(training(), 0)
    assert list(saved_steps(tmp_path)) == [0]


def test_a_step_is_saved_once(tmp_path):
    with Saver(tmp_path) as saver:
        saver.save(training(), 3)
        with pytest.raises(zt.MisuseError, match="is in .* already"):
            saver.save(training(8), 3)
    with pytest.raises(zt.MisuseError, match="closed"):
        saver.save(training(), 4)
    with Saver(tmp_path) as saver:
        with pytest.raises(zt.MisuseError, match="is in .* already"):
            saver.save(training(8), 3)
        # A full step, since this saver has no base.
        assert saver.save(training(), 4).result().base is None
    assert equal(load(tmp_path, 3), training())


def test_arguments_out_of_range_are_refused(tmp_path):
    for options in {"full_every": 0}, {"queue": 0}, {"on_full": "drop"}:
        with pytest.raises(zt.MisuseError):
            Saver(tmp_path, **options)
    with pytest.raises(zt.MisuseError, match="URL"):
        Saver("s3://bucket/run")
    with Saver(tmp_path) as saver, pytest.raises(zt.MisuseError, match="negative"):
        saver.save(training(), -1)


def test_a_full_queue_raises_by_choice(tmp_path, gate):
    with Saver(tmp_path, queue=2, on_full="raise") as saver:
        futures = [saver.save(training(step), step) for step in range(2)]
        with pytest.raises(queue.Full, match="step 2 is not saved"):
            saver.save(training(2), 2)
        assert not any(future.cancel() for future in futures)
        gate.set()
        # A result means that there is room.
        futures[0].result()
        saver.save(training(3), 3)
    assert list(saved_steps(tmp_path)) == [0, 1, 3]
    for step in 0, 1, 3:
        assert equal(load(tmp_path, step), training(step))


def test_a_full_queue_waits_and_says_how_long(tmp_path, gate, monkeypatch):
    with Saver(tmp_path) as saver:
        assert saver.save(training(0), 0).waited == 0
        get = saver._free.get

        def opening(block=True):
            if block:
                gate.set()
            return get(block)

        monkeypatch.setattr(saver._free, "get", opening)
        with pytest.warns(zt.torch.SaveWaitWarning, match="step 1 waited") as warned:
            future = saver.save(training(1), 1)
    assert future.waited > 0 and warned[0].message.seconds == future.waited
    assert warned[0].filename == __file__
    assert equal(load(tmp_path, 0), training(0)) and equal(load(tmp_path, 1), training(1))


def failing(monkeypatch, count, gate=None):
    """The next steps cannot be written, which the thread finds once the gate is open."""
    left = [count]
    real = Saver._write

    def write(self, step, *arguments):
        assert gate is None or gate.wait(60)
        if left[0] > 0:
            left[0] -= 1
            raise OSError(errno.EIO, f"step {step} met a fault")
        return real(self, step, *arguments)

    monkeypatch.setattr(Saver, "_write", write)


def until_failed(saver, count=1):
    while len(saver._failures) < count:
        time.sleep(0.001)


def test_an_error_is_raised_by_the_next_save_once(tmp_path, monkeypatch):
    with Saver(tmp_path) as saver:
        failing(monkeypatch, 1)
        future = saver.save(training(), 0)
        until_failed(saver)
        with pytest.raises(OSError, match="step 0 met a fault") as raised:
            saver.save(training(), 1)
        assert raised.value.__notes__ == ["while step 0 was saved behind the loop"]
        with pytest.raises(OSError, match="step 0 met a fault"):
            future.result()
        saver.save(training(), 0)
    assert list(saved_steps(tmp_path)) == [0]


def test_an_error_that_the_future_gave_is_not_raised_again(tmp_path, monkeypatch):
    with Saver(tmp_path) as saver:
        failing(monkeypatch, 2)
        with pytest.raises(OSError, match="step 0 met a fault"):
            saver.save(training(), 0).result()
        assert isinstance(saver.save(training(), 1).exception(), OSError)
        saver.save(training(), 2)
    assert list(saved_steps(tmp_path)) == [2]


def test_close_raises_errors_that_nobody_has_seen(tmp_path, monkeypatch):
    saver, gate = Saver(tmp_path, queue=2), threading.Event()
    failing(monkeypatch, 2, gate)
    saver.save(training(), 0)
    saver.save(training(), 1)
    gate.set()
    with pytest.raises(OSError, match="step 0 met a fault") as raised:
        saver.close()
    assert "step 1 met a fault" in raised.value.__notes__[-1]
    saver.close()


def test_an_error_of_the_loop_is_not_hidden(tmp_path, monkeypatch):
    with pytest.raises(KeyError) as raised, Saver(tmp_path) as saver:
        failing(monkeypatch, 1)
        saver.save(training(), 0)
        raise KeyError("of the loop")
    assert "step 0 met a fault" in raised.value.__notes__[0]


def test_a_folder_that_is_gone_and_comes_back(tmp_path):
    folder = tmp_path / "run"
    with Saver(folder, full_every=9) as saver:
        saver.save(training(), 0).result()
        (folder / "step-00000000.zt").unlink()
        folder.rmdir()
        with pytest.raises(OSError) as raised:
            saver.save(training(), 1).result()
        assert raised.value.errno == errno.ENOENT
        folder.mkdir()
        # The base is gone, so the step is a full one.
        assert saver.save(training(), 2).result().base is None
    assert equal(load(folder, 2), training())


FULL_DISK = """
import resource, sys, signal
import torch, zt.torch
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = sys.argv[1]
with zt.torch.Saver(folder, full_every=9) as saver:
    saver.save({"w": torch.ones(1000)}, 0).result()
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    future = saver.save({"w": torch.randn(1_000_000)}, 1)
    print(type(future.exception()).__name__, future.exception().errno)
    saver.save({"w": torch.ones(1000)}, 2).result()
"""


def test_a_disk_without_room_is_an_error_and_leaves_nothing(tmp_path):
    done = run(FULL_DISK, tmp_path)
    assert done.stdout.split() == ["FileError", str(errno.EFBIG)], done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "step-00000000.zt",
        "step-00000002-from-00000000.zt",
    ]


def run(program, *arguments):
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
    )


NEVER_CLOSED = """
import sys, torch, zt.torch
saver = zt.torch.Saver(sys.argv[1], queue=3)
for step in range(3):
    saver.save({"w": torch.full((1_000_000,), float(step))}, step)
"""


def test_a_program_that_ends_without_close_has_saved_all(tmp_path):
    assert run(NEVER_CLOSED, tmp_path).returncode == 0
    for step in range(3):
        assert equal(load(tmp_path, step), {"w": torch.full((1_000_000,), float(step))})


KILLED = """
import sys, torch, zt.torch
state = {"w": torch.zeros(4_000_000), "b": torch.zeros(10)}
saver = zt.torch.Saver(sys.argv[1], full_every=3)
step = 0
while True:
    saver.save(state, step)
    print(step, flush=True)
    step += 1
    state["w"][::97] += 1
    state["b"] += 1
"""


def test_a_killed_process_leaves_whole_steps(tmp_path):
    for round in range(4):
        folder = tmp_path / str(round)
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", KILLED, folder],
            stdout=subprocess.PIPE,
            text=True,
        )
        while int(process.stdout.readline()) < 3 + round:
            pass
        time.sleep(0.01 * round)
        process.send_signal(signal.SIGKILL)
        process.wait()
        steps = saved_steps(folder)
        # The queue has one place, so all steps before the last call are on the disk.
        assert set(range(3 + round)) <= set(steps)
        for step in steps:
            wanted = torch.zeros(4_000_000)
            wanted[::97] = step
            assert equal(load(folder, step), {"w": wanted, "b": torch.full((10,), float(step))})
        # Another saver goes on in the folder.
        with Saver(folder) as saver:
            saver.save(training(), 100)
        assert equal(load(folder, 100), training())


def test_an_optimizer_goes_on_where_it_was(tmp_path):
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.125)
    options = StateDictOptions(flatten_optimizer_state_dict=True)

    def train():
        model(torch.ones(8)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    with Saver(tmp_path, full_every=2) as saver:
        for step in range(2):
            train()
            weights, moments = get_state_dict(model, optimizer, options=options)
            tensors, numbers = {f"model.{name}": it for name, it in weights.items()}, {}
            for name, value in moments.items():
                (tensors if isinstance(value, torch.Tensor) else numbers)[name] = value
            saver.save(tensors, step, numbers)
    train()
    wanted = {name: value.clone() for name, value in model.state_dict().items()}
    train()
    path, base = saved_steps(tmp_path)[1]
    assert base is not None
    loaded = zt.torch.load_file(path, base=base)
    with zt.open(path, base=base) as file:
        moments = file.attributes | {
            n: it for n, it in loaded.items() if not n.startswith("model.")
        }
    weights = {n.removeprefix("model."): it for n, it in loaded.items() if n.startswith("model.")}
    set_state_dict(
        model, optimizer, model_state_dict=weights, optim_state_dict=moments, options=options
    )
    train()
    assert equal(model.state_dict(), wanted)


def test_one_memory_serves_a_loop_that_waits_for_each_step(tmp_path):
    state = {"w": torch.zeros(2_000_000)}
    with Saver(tmp_path, queue=3) as saver:
        for step in range(4):
            saver.save(state, step).result()
        sizes = [len(memory._bytes) for memory in saver._free.queue]
    assert sorted(sizes) == [0, 0, 8_000_000]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_tensors_on_a_gpu(tmp_path):
    state = {name: value.cuda() for name, value in training().items()}
    state["head"] = state["embed"]
    wanted = {name: value.cpu() for name, value in state.items()}
    with Saver(tmp_path) as saver:
        saver.save(state, 0)
        for value in state.values():
            value.zero_()
    loaded = load(tmp_path, 0)
    assert equal(loaded, wanted) and loaded["head"] is loaded["embed"]
