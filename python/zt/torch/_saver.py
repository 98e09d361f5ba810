"""Steps of training that are saved behind the loop."""

from __future__ import annotations

import os
import queue
import re
import time
import warnings
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

import torch

import zt

from .. import _zt
from ._memory import expect_tensors, identity_of

_NAME = re.compile(r"step-(\d+)(?:-from-(\d+))?\.zt")
_ALIGNMENT = 64


class Step(NamedTuple):
    """A step in the folder of a :class:`Saver`.

    Attributes:
        path: its file.
        base: the file of the step that it is a delta of; ``None`` if `path` has all values.
    """

    path: Path
    base: Path | None


class Saved(NamedTuple):
    """What :meth:`SaveFuture.result` gives.

    Attributes:
        path: the file of the step, which is on the disk.
        base: the file of the step that it is a delta of; ``None`` if `path` has all values.
        nbytes: the size of the file.
        seconds: from the call of :meth:`Saver.save` until the file was on the disk.
    """

    path: Path
    base: Path | None
    nbytes: int
    seconds: float


class SaveWaitWarning(UserWarning):
    """The loop waited in :meth:`Saver.save`, because earlier steps were not on the disk yet.

    Attributes:
        step: the step that waited.
        seconds: how long it waited.
    """

    def __init__(self, step: int, seconds: float) -> None:
        super().__init__(
            f"step {step} waited {seconds:.3f} s until an earlier step was on the disk: "
            "save less often, or make the queue longer"
        )
        self.step = step
        self.seconds = seconds


class SaveFuture(Future[Saved]):
    """A step that is being saved. It cannot be cancelled.

    Attributes:
        step: the number of the step.
        waited: seconds for which :meth:`Saver.save` waited for an earlier step.
        copied: seconds that the copy of the state took. The loop stood still for both.
    """

    def __init__(self, step: int, waited: float, copied: float) -> None:
        super().__init__()
        self.step = step
        self.waited = waited
        self.copied = copied
        self._is_told = False
        self.set_running_or_notify_cancel()

    def result(self, timeout: float | None = None) -> Saved:
        """Waits until the step is on the disk, and gives its file. Raises what went wrong."""
        try:
            return super().result(timeout)
        finally:
            self._is_told |= self.done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits until the step is on the disk, and gives what went wrong, or ``None``."""
        try:
            return super().exception(timeout)
        finally:
            self._is_told |= self.done()


class Saver:
    """Saves steps of training to a folder, while the loop goes on.

    :meth:`save` copies the state to memory that stays from step to step, and returns. That memory
    is pinned if there is CUDA. A thread does the rest, with the GIL released: digests, deltas,
    compression, writing and syncing. A file appears under its name once it is complete and on the
    disk, so a killed process leaves the earlier steps as they were.

    >>> import tempfile, torch, zt.torch
    >>> folder = tempfile.mkdtemp()
    >>> state = {"w": torch.zeros(1000)}
    >>> with zt.torch.Saver(folder, full_every=8) as saver:
    ...     for step in range(3):
    ...         future = saver.save(state, step, {"lr": 0.1})
    ...         _ = state["w"].add_(1)  # may run before the step is written
    ...     future.result().path.name
    'step-00000002-from-00000000.zt'
    >>> path, base = zt.torch.saved_steps(folder)[2]
    >>> zt.torch.load_file(path, base=base)["w"][0]
    tensor(2.)

    Each delta has the last full step as its base, and not the step before it. So a step needs two
    files, however many steps lie between them, and the saver keeps no earlier state in memory. A
    delta grows with the distance to its base.

    One saver writes into a folder at a time. Its first step is a full one.

    Args:
        folder: a local folder, which is made if it does not exist. ``ZtStorageWriter`` of
            ``zt.torch.checkpoint`` writes to stores.
        full_every: each so many steps, one is saved whole, and the others as deltas of it. With 1,
            all are whole. A delta pays if few values change: to make one takes longer than to save
            the state whole.
        queue: how many steps may be unfinished at a time, the one that is being written included.
            Each takes memory for a copy of the state.
        on_full: whether :meth:`save` waits while the queue is full, or raises.
        zstd: as for :func:`save_file`, for full steps.
        digest: as for :func:`save_file`, for full steps. Deltas have ``"crc32c"``.
        planes: as for :func:`save_file`, for full steps.
        threads: how many threads write; by default all cores, or ``ZT_NUM_THREADS``.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        full_every: int = 1,
        queue: int = 1,
        on_full: Literal["wait", "raise"] = "wait",
        zstd: int | None = None,
        digest: str | None = "crc32c",
        planes: bool = False,
        threads: int | None = None,
    ) -> None:
        if "://" in os.fspath(folder):
            raise _misuse(f"a Saver writes to a local folder, and {os.fspath(folder)} is a URL")
        if full_every < 1 or queue < 1 or on_full not in ("wait", "raise"):
            raise _misuse('full_every and queue are 1 or more, and on_full is "wait" or "raise"')
        self._folder = Path(folder).absolute()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._full_every = full_every
        self._on_full = on_full
        self._options: dict[str, Any] = {
            "zstd": zstd,
            "digest": digest,
            "planes": planes,
            "threads": threads,
        }
        self._steps = set(saved_steps(self._folder))
        # The memory that was used last comes first, so a saver that keeps up uses one.
        self._free = _new_queue(queue)
        self._failures: deque[SaveFuture] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="zt-saver")
        self._is_closed = False
        # Of the thread alone: the last full step, its ties, and how many steps need it.
        self._base: Path | None = None
        self._ties: object = None
        self._count = 0

    def save(
        self,
        tensors: Mapping[str, torch.Tensor],
        step: int,
        metadata: Mapping[str, Any] | None = None,
    ) -> SaveFuture:
        """Saves a state. The caller may change all of it once the call returns.

        The call lasts as long as one copy of the state, and some 20 µs for each tensor. It waits
        if the queue is full. The first call also allocates the memory. A tensor with several names
        is copied once, and loaded as one. Sparse tensors are copied to new memory.

        Args:
            tensors: names and tensors, as for :func:`save_file`.
            step: the number of the step, which the folder does not have yet.
            metadata: attributes of the file: numbers, texts, bytes, and lists and dicts of them.

        Returns:
            A future that has how long the call waited, and gives the file.

        Raises:
            TypeError: a value is not a tensor, or `metadata` has a value that no file can hold.
            MisuseError: the folder has this step (code ``overwrite``), the saver is closed, or a
                tensor cannot be saved.
            queue.Full: the queue is full, and `on_full` is ``"raise"``.
            Exception: an earlier step could not be saved, and no call has told so yet. Then this
                state is not saved. The exception has the number of that step as a note.
        """
        called = time.perf_counter()
        if self._is_closed:
            raise _misuse("the saver is closed")
        self._raise_failure()
        expect_tensors(tensors)
        if step < 0:
            raise _misuse(f"step {step} is negative")
        if step in self._steps:
            raise _misuse(f"step {step} is in {self._folder} already", code="overwrite")
        memory, waited = self._take(step)
        try:
            if waited > 0:
                warnings.warn(SaveWaitWarning(step, waited), stacklevel=2)
                self._raise_failure()
            begun = time.perf_counter()
            copies, ties = memory.copy(tensors)
            # This copies the metadata, and refuses what cannot be saved.
            file = _zt._file_of(copies, metadata)
            future = SaveFuture(step, waited, time.perf_counter() - begun)
            self._steps.add(step)
            self._thread.submit(self._save, future, memory, copies, ties, file, called)
        except BaseException:
            self._free.put(memory)
            raise
        return future

    def close(self) -> None:
        """Waits until all steps are on the disk.

        Raises:
            Exception: a step could not be saved, and no call has told so yet. Notes tell of
                further ones.
        """
        self._is_closed = True
        self._thread.shutdown()
        try:
            self._raise_failure()
        except Exception as error:
            for future in self._failures:
                if not future._is_told:
                    error.add_note(
                        f"step {future.step} is not saved either: {future.exception()!r}"
                    )
            self._failures.clear()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"a step is not saved: {failure!r}")

    def _raise_failure(self) -> None:
        """Raises what went wrong in the thread, unless the user has it from the future."""
        while self._failures:
            future = self._failures.popleft()
            if not future._is_told:
                future.result()

    def _take(self, step: int) -> tuple[_Memory, float]:
        """Memory that no step uses, and the seconds until there was one."""
        try:
            return self._free.get_nowait(), 0.0
        except queue.Empty:
            if self._on_full == "raise":
                raise queue.Full(
                    f"step {step} is not saved: earlier steps fill the queue; save it later"
                ) from None
        begun = time.perf_counter()
        return self._free.get(), time.perf_counter() - begun

    def _save(
        self,
        future: SaveFuture,
        memory: _Memory,
        copies: dict[str, torch.Tensor],
        ties: object,
        file: zt.File,
        called: float,
    ) -> None:
        """What the thread does for a step."""
        try:
            path, base = self._write(future.step, copies, ties, file)
            saved = Saved(path, base, path.stat().st_size, time.perf_counter() - called)
        except BaseException as error:  # noqa: BLE001
            error.add_note(f"while step {future.step} was saved behind the loop")
            self._steps.discard(future.step)
            future.set_exception(error)
            self._failures.append(future)
            self._free.put(memory)
        else:
            # A caller that has the result finds a free place in the queue.
            self._free.put(memory)
            future.set_result(saved)

    def _write(
        self, step: int, copies: dict[str, torch.Tensor], ties: object, file: zt.File
    ) -> tuple[Path, Path | None]:
        base = self._base
        # A reader finds ties in the full step. The user may have removed that.
        if (
            base is None
            or self._count >= self._full_every
            or ties != self._ties
            or not base.exists()
        ):
            path = self._folder / f"step-{step:08}.zt"
            _zt.save(copies, str(path), file.attributes or None, **self._options)
            self._base, self._ties, self._count = path, ties, 1
            return path, None
        path = self._folder / f"step-{step:08}-from-{base.stem.removeprefix('step-')}.zt"
        # By position: a map would count as memory of this process.
        with zt.open(base, mmap=False) as old:
            _zt._delta(old, file, str(path), False, self._options["threads"], None, None)
        self._count += 1
        return path, base


def saved_steps(folder: str | os.PathLike[str]) -> dict[int, Step]:
    """The steps that a :class:`Saver` wrote to a folder, by their ascending numbers.

    ``zt.torch.load_file(step.path, base=step.base)`` loads one. The names of the files say what
    is a delta of what; no file is opened.
    """
    folder = Path(folder)
    steps = {}
    for path in folder.iterdir():
        found = _NAME.fullmatch(path.name)
        if found:
            step, base = found.groups()
            steps[int(step)] = Step(path, folder / f"step-{base}.zt" if base else None)
    return dict(sorted(steps.items()))


class _Memory:
    """Memory on the CPU for a copy of a state. It stays between the saves."""

    def __init__(self) -> None:
        self._bytes = torch.empty(0, dtype=torch.uint8)

    # Memory that is made in inference mode could not be written to outside of it.
    @torch.inference_mode(False)
    @torch.no_grad()
    def copy(self, tensors: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], object]:
        """Contiguous copies, and which names are one in memory."""
        starts: dict[object, int] = {}
        places: dict[str, int] = {}
        size = 0
        for name, tensor in tensors.items():
            if not _is_plain(tensor):
                continue
            place = _place_of(tensor)
            if place not in starts:
                starts[place] = size
                size += -(-max(tensor.nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
            places[name] = starts[place]
        if len(self._bytes) < size:
            self._bytes = torch.empty(0, dtype=torch.uint8)
            pinned = torch.cuda.is_available()
            self._bytes = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
        copies: dict[str, torch.Tensor] = {}
        filled: set[int] = set()
        devices = set()
        for name, tensor in tensors.items():
            if name not in places:
                copies[name] = tensor.detach().cpu().clone() if _is_sparse(tensor) else tensor
                continue
            start = places[name]
            part = self._bytes[start : start + tensor.nbytes].view(tensor.dtype).view(tensor.shape)
            if start not in filled:
                filled.add(start)
                part.copy_(tensor.detach(), non_blocking=tensor.is_cuda)
                devices.add(tensor.device)
            copies[name] = part
        for device in devices:
            if device.type == "cuda":
                torch.cuda.current_stream(device).synchronize()
        return copies, places


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether the copy goes to the kept memory. Others are sparse, or are refused."""
    return (
        tensor.layout == torch.strided
        and not (tensor.is_meta or tensor.is_quantized)
        and not hasattr(tensor, "to_local")
    )


def _is_sparse(tensor: torch.Tensor) -> bool:
    return tensor.layout in (torch.sparse_coo, torch.sparse_csr) and not tensor.is_meta


def _place_of(tensor: torch.Tensor) -> object:
    """Equal for tensors that :func:`save_file` stores once."""
    flags = tensor.is_conj(), tensor.is_neg()
    if not tensor.is_contiguous():
        return identity_of(tensor), flags
    return tensor.device, tensor.data_ptr(), tensor.nbytes, tensor.dtype, flags


def _new_queue(count: int) -> queue.LifoQueue[_Memory]:
    free: queue.LifoQueue[_Memory] = queue.LifoQueue()
    for _ in range(count):
        free.put(_Memory())
    return free


def _misuse(text: str, code: str = "misuse") -> zt.MisuseError:
    return zt.MisuseError(text, code=code)
