"""Measures how long a training loop stands still while a step is saved, and prints a Markdown table.

    python benches/saving.py [--rounds 5] [--megabytes 2000] [--folder /dev/shm]

The state is weights of bf16 and two moments of f32. Each way to save works in a process of its own, which
is made anew in each round, and they take turns. A process saves two steps, and the state changes between
them. The first save allocates memory, so its times are apart. Only Linux is supported.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import platform
import signal
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from compare import processor, refresh

import zt.torch
import zt.torch.checkpoint

# A server imports torch, which takes seconds, and forks each process.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["torch.distributed.checkpoint", "zt.torch.checkpoint"])

State = dict[str, torch.Tensor]
# Saves a step, and gives what waits until it is on the disk.
Save = Callable[[State, int], Callable[[], object]]

ROWS, COLUMNS = 2048, 2048
STEPS = 2


def state_of(megabytes: int) -> State:
    normal = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(1))
    state = {}
    for at in range(max(megabytes * 10**6 // (10 * ROWS * COLUMNS), 1)):
        values = normal.roll(1001 * at)
        state[f"{at}.weight"] = (values * 0.02).bfloat16()
        state[f"{at}.exp_avg"] = values * 1e-4
        state[f"{at}.exp_avg_sq"] = values.square_() * 1e-8
    return state


def change_all(state: State, step: int) -> None:
    """As a step of AdamW changes moments; weights get noise of a thousandth of their size."""
    noise = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(step))
    for at, (name, value) in enumerate(state.items()):
        if name.endswith("weight"):
            value.mul_(1 + 1e-3 * noise.roll(at))
        elif name.endswith("exp_avg"):
            value.mul_(0.9).add_(noise.roll(at), alpha=1e-5)
        else:
            value.mul_(0.999).addcmul_(noise.roll(at), noise.roll(at), value=1e-11)


def change_some(state: State, step: int) -> None:
    """One value of a hundred changes by a hundredth."""
    random = torch.Generator().manual_seed(step)
    count = ROWS * COLUMNS // 100
    for value in state.values():
        value.view(-1)[torch.randint(0, ROWS * COLUMNS, (count,), generator=random)] *= 1.01


CHANGES = {"all": change_all, "1 %": change_some}


def copy(folder: Path) -> Save:
    kept: State = {}

    def save(state: State, step: int) -> Callable[[], object]:
        for name, value in state.items():
            if name not in kept:
                kept[name] = torch.empty_like(value)
            kept[name].copy_(value)
        return lambda: None

    return save


def saver(folder: Path, **options: Any) -> Save:
    made = zt.torch.Saver(folder, **options)
    return lambda state, step: made.save(state, step).result


def async_save(folder: Path, writer: Any) -> Save:
    def save(state: State, step: int) -> Callable[[], object]:
        return dcp.async_save(state, storage_writer=writer(folder / str(step)), no_dist=True).result

    return save


def torch_save(folder: Path) -> Save:
    def save(state: State, step: int) -> Callable[[], object]:
        with open(folder / f"{step}.pt", "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        return lambda: None

    return save


WAYS: dict[str, Callable[[Path], Save]] = {
    "one copy of the state": copy,
    "`Saver`": saver,
    "`Saver`, deltas": lambda folder: saver(folder, full_every=STEPS),
    "`async_save`, zt's writer": lambda folder: async_save(
        folder, zt.torch.checkpoint.ZtStorageWriter
    ),
    "`async_save`, torch's writer": lambda folder: async_save(folder, dcp.FileSystemWriter),
    "`torch.save`": torch_save,
}


def memory(field: str) -> int:
    """Bytes of this process, as the system counts them."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def worker(way: str, case: str, megabytes: int, folder: Path, answer: Connection) -> None:
    """Saves the steps, and sends what it measured; ``None`` if the process was stopped meanwhile."""
    warnings.simplefilter("ignore")
    continued: list[int] = []
    signal.signal(signal.SIGCONT, lambda number, _: continued.append(number))
    refresh(3 * megabytes * 10**6)
    state = state_of(megabytes)
    save = WAYS[way](folder)
    before = memory("VmRSS")
    steps, peak = [], 0
    for step in range(STEPS):
        written = size_of(folder)
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew
        begun = time.perf_counter()
        wait = save(state, step)
        stall = time.perf_counter() - begun
        wait()
        durable = time.perf_counter() - begun
        steps.append([stall, durable, size_of(folder) - written])
        peak = max(peak, memory("VmHWM") - before)
        CHANGES[case](state, step)
        ctypes.CDLL(None).malloc_trim(0)  # what the change took
    answer.send(None if continued else [steps, peak])


def measure(way: str, case: str, megabytes: int, place: str) -> Any:
    """What a new process measures."""
    with tempfile.TemporaryDirectory(dir=place, prefix="zt-saving-") as folder:
        here, there = FORKS.Pipe()
        process = FORKS.Process(target=worker, args=(way, case, megabytes, Path(folder), there))
        process.start()
        there.close()
        found = here.recv()
        process.join()
    return found


def cell(values: list[float], digits: int = 2) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--folder", default="/dev/shm")
    arguments = parser.parse_args()
    results: dict[tuple[str, str], list[Any]] = {}
    for _ in range(arguments.rounds):
        for case in CHANGES:
            for way in WAYS:
                found = None
                while found is None:
                    found = measure(way, case, arguments.megabytes, arguments.folder)
                results.setdefault((case, way), []).append(found)
                print(case, way, json.dumps(found), file=sys.stderr, flush=True)
    print(
        f"{arguments.megabytes / 1000:g} GB; {processor()}, {os.cpu_count()} cores, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"torch {torch.__version__}; {arguments.rounds} rounds in turn, files in {arguments.folder}\n"
    )
    print(
        "| changes | way | stall, s | first stall, s | until durable, s | written, MB | memory, MB |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for (case, way), found in results.items():
        later = [step for steps, _ in found for step in steps[1:]]
        columns = [
            cell([stall for stall, _, _ in later]),
            cell([steps[0][0] for steps, _ in found]),
            cell([durable for _, durable, _ in later]),
            cell([written / 1e6 for _, _, written in later], 0),
            cell([peak / 1e6 for _, peak in found], 0),
        ]
        print(f"| {case} | {way} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main()
