"""Deltas, and tensors of torch in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

import zt

from .. import _zt
from ..delta import Patch, changed, expect_patches, held
from ._memory import dtype_of, identity_of, to_torch

# Values are copied bit by bit, as integers: torch has few operations for FP8.
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Formats whose object is one array.
_DENSE = ("dense", "zt.planes/1")


def patches(
    delta: Any, base: Any, *, storage_options: dict[str, Any] | None = None
) -> Iterator[Patch]:
    """What a delta changes, tensor by tensor, as tensors of torch: see :func:`zt.delta.patches`.

    The fields have the names of vLLM's ``CheckpointWeightPatch``::

        for patch in zt.torch.patches(delta, base):
            yield CheckpointWeightPatch(**patch._asdict())
    """
    for tensor, found in changed(delta, base, storage_options, capsules=True):
        indices, values = map(from_dlpack, found) if found else (None, to_torch(tensor).reshape(-1))
        yield Patch(tensor.name, torch.Size(tensor.shape), dtype_of(tensor), indices, values)


def apply_delta(
    target: torch.nn.Module | Mapping[str, torch.Tensor],
    delta: str | os.PathLike[str] | bytes,
    *,
    storage_options: dict[str, Any] | None = None,
) -> None:
    """Changes tensors in place to the result of a delta: all of them, or none.

    The delta is read into memory, and decoded twice. The first pass compares the identity of the
    tensors with the base that the delta names, and the identity of the result with the one that it
    promises. Only then the second pass changes one tensor after the other. Ctrl-C waits for its
    end. Each tensor keeps its address, so graphs of CUDA stay valid. Only if memory runs out in the
    second pass, some tensors have changed and others have not.

    Tensors may have any strides and be on any device. A tensor that is not contiguous, or not on
    the CPU, is copied to the CPU for the check. Tied tensors are changed once.

    Args:
        target: the model, or its state by name. It has the tensors of the base, and no others.
            Where several names are tied, the base may have one of them, as ``safetensors`` does.
        delta: a path, a URL, or the bytes of a delta.
        storage_options: as for :func:`zt.open`.

    Raises:
        WrongBaseError: the tensors are not the base of the delta. Names, shapes and dtypes count.
        MalformedError, DigestMismatchError: the delta is damaged, or breaks a rule.
        UnsupportedError: the delta adds, removes or renames tensors, or gives one another format,
            shape or dtype.
        MisuseError: a tensor that changes shares memory with another, and is not tied to it.
    """
    state = target.state_dict() if isinstance(target, torch.nn.Module) else dict(target)
    try:
        _apply(state, _read(delta, storage_options))
    except zt.ZtError as error:
        if not isinstance(delta, bytes):
            error.add_note(f"while applying {os.fspath(delta)}")
        raise


def _read(delta: str | os.PathLike[str] | bytes, storage_options: dict[str, Any] | None) -> bytes:
    if isinstance(delta, bytes):
        return delta
    path = os.fspath(delta)
    if "://" in path:
        return _zt.read_object(path, storage_options, most=1 << 40)
    return Path(path).read_bytes()


def _apply(state: dict[str, torch.Tensor], data: bytes) -> None:
    with zt.open(data) as delta:
        expect_patches(delta)
        state = _of_base(state, delta)
        old = held(state)
        with zt.open(delta, base=old, check=True) as new:
            chosen = _expect_places(state, new, list(delta))
            # Ctrl-C reaches the main thread alone, which waits for this one. A thread that Ctrl-C finds
            # at its start would not be waited for, so it starts before there is work.
            with ThreadPoolExecutor(1) as thread:
                thread.submit(int).result()
                thread.submit(_write, state, old, new, chosen).result()


def _of_base(state: dict[str, torch.Tensor], delta: zt.File) -> dict[str, torch.Tensor]:
    """The state with the names of the base, which may have one name of each tied tensor."""
    single: dict[object, str] = {}
    # Names in the delta first.
    for name in sorted(state, key=lambda name: name not in delta):
        single.setdefault(identity_of(state[name]), name)
    header = delta.attributes.get("zt.delta")
    objects = header.get("objects", b"") if isinstance(header, dict) else b""
    # For each object of the base, 8 bytes of its identity.
    if len(objects) != 8 * len(single):
        return state
    return {name: state[name] for name in single.values()}


def _expect_places(state: dict[str, torch.Tensor], new: zt.File, names: list[str]) -> list[str]:
    """One name for each tensor that changes, if all can take their new values where they are."""
    for name in names:
        if name not in state:
            raise _unsupported(name, "the delta adds this tensor")
        tensor, value = state[name], new[name]
        is_alike = value.shape == tuple(tensor.shape) and dtype_of(value) == tensor.dtype
        if tensor.layout != torch.strided or value.format not in _DENSE or not is_alike:
            raise _unsupported(name, "the delta gives it another format, shape or dtype")
    tied: dict[object, list[str]] = {}
    for name, tensor in state.items():
        tied.setdefault(identity_of(tensor), []).append(name)
    changed_names = set(names)
    chosen = []
    for first, *others in tied.values():
        if changed_names.isdisjoint([first, *others]):
            continue
        for other in others:
            found = _zt._new_values(new[first], new[other], False)
            if found is None or len(found[0]) > 0:
                raise _misuse(
                    first, f"is tied to {other!r}, and the delta gives them different values"
                )
        chosen.append(first)
    _expect_apart({first: state[first] for first, *_ in tied.values()}, set(chosen))
    return chosen


def _expect_apart(tensors: dict[str, torch.Tensor], changing: set[str]) -> None:
    """Refuses a tensor that changes and shares memory with itself or with another."""
    places = []
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.numel() == 0:
            continue
        extent = 1 + sum(
            (n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True)
        )
        if name in changing and extent < tensor.numel():
            raise _misuse(name, "is expanded: several of its values are one in memory")
        start = tensor.data_ptr()
        places.append((str(tensor.device), start, start + extent * tensor.element_size(), name))
    places.sort()
    last = ("", 0, 0, "")
    for place in places:
        device, start, end, name = place
        if device == last[0] and start < last[2]:
            if not changing.isdisjoint([name, last[3]]):
                raise _misuse(name, f"shares memory with {last[3]!r}, and is not tied to it")
            end = max(end, last[2])
        last = (device, start, end, name)


def _write(state: dict[str, torch.Tensor], old: zt.File, new: zt.File, names: list[str]) -> None:
    """Gives the tensors their new values."""
    for name in names:
        tensor = state[name].detach()
        found = _zt._new_values(old[name], new[name], True)
        # torch changes a tensor that was made in this mode in no other.
        with torch.inference_mode(tensor.is_inference()):
            if found is None or tensor.is_complex():
                tensor.copy_(to_torch(new[name]))
                continue
            bits = tensor.view(_BITS[tensor.element_size()])
            indices, values = (from_dlpack(capsule).to(tensor.device) for capsule in found)
            indices, values = indices.to(torch.int64), values.view(bits.dtype)
            if tensor.is_contiguous():
                bits.view(-1).index_copy_(0, indices, values)
            else:
                bits[torch.unravel_index(indices, bits.shape)] = values


def _unsupported(name: str, why: str) -> zt.UnsupportedError:
    return zt.UnsupportedError(f"{name}: {why}", code="unsupported", object=name)


def _misuse(name: str, why: str) -> zt.MisuseError:
    return zt.MisuseError(f"{name}: {why}", code="misuse", object=name)
