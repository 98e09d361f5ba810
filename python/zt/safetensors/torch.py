"""Tensors of PyTorch in safetensors files: ``safetensors.torch`` 0.8.0, over every kind."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch

from .._dtypes import OF_SAFETENSORS
from . import TensorSpec, deserialize, safe_open, serialize, serialize_file

#: The dtypes of this PyTorch, by their names in files. Older ones have no FP8.
_TYPES: dict[str, torch.dtype] = {
    name: getattr(torch, dtype) for name, dtype in OF_SAFETENSORS.items() if hasattr(torch, dtype)
}

#: Bytes of an element, of the dtypes that files have.
_SIZE: dict[torch.dtype, int] = {
    dtype: dtype.itemsize for name, dtype in _TYPES.items() if name != "C128"
}


def _getdtype(dtype_str: str) -> torch.dtype:
    """The dtype of this name in files, such as ``"F32"``."""
    return _TYPES[dtype_str]


def storage_ptr(tensor: torch.Tensor) -> int:
    """The address of the memory behind the tensor; 0 if it has none."""
    return tensor.untyped_storage().data_ptr()


def storage_size(tensor: torch.Tensor) -> int:
    """The bytes of the memory behind the tensor, which may be more than the tensor's."""
    return tensor.untyped_storage().nbytes()


def _end_ptr(tensor: torch.Tensor) -> int:
    """The address behind the last element."""
    if not tensor.nelement():
        return tensor.data_ptr()
    last = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return tensor.data_ptr() + (last + 1) * tensor.dtype.itemsize


def _is_complete(tensor: torch.Tensor) -> bool:
    """Whether the tensor covers all of the memory behind it."""
    nbytes = tensor.nelement() * tensor.dtype.itemsize
    return tensor.data_ptr() == storage_ptr(tensor) and nbytes == storage_size(tensor)


def _find_shared_tensors(state_dict: dict[str, torch.Tensor]) -> list[set[str]]:
    """Groups of names whose tensors overlap; a tensor that overlaps none is a group of its own."""
    by_storage: dict[Any, list[str]] = defaultdict(list)
    for name, tensor in state_dict.items():
        if tensor.device.type == "meta":
            continue
        storage = (tensor.device, storage_ptr(tensor), storage_size(tensor))
        if storage[1] and storage[2]:
            by_storage[storage].append(name)
    groups: list[set[str]] = []
    for names in by_storage.values():
        # A tensor overlaps the one before it, if it begins before that one ends.
        areas = sorted((state_dict[n].data_ptr(), _end_ptr(state_dict[n]), n) for n in names)
        end = 0
        for start, stop, name in areas:
            if len(groups) and start < end:
                groups[-1].add(name)
            else:
                groups.append({name})
            end = stop
        # The next storage begins a group of its own.
    return groups


def _remove_duplicate_names(
    state_dict: dict[str, torch.Tensor],
    *,
    preferred_names: Iterable[str] | None = None,
    discard_names: Iterable[str] | None = None,
) -> dict[str, list[str]]:
    """Names to leave out of a file, under the name of each group that is kept.

    Args:
        state_dict: tensors by name.
        preferred_names: names to keep if they can be.
        discard_names: names to leave out if others can be kept.

    Raises:
        RuntimeError: no tensor of a group covers all of its memory.
    """
    preferred, discarded = set(preferred_names or ()), set(discard_names or ())
    removed: dict[str, list[str]] = defaultdict(list)
    for group in _find_shared_tensors(state_dict):
        complete = {name for name in group if _is_complete(state_dict[name])}
        if not complete:
            raise RuntimeError(
                f"found no suitable name to keep for saving amongst: {group}. None is covering the "
                "entire storage: clone the tensors, so that what is saved is all of their memory"
            )
        kept = min(complete & preferred or complete - discarded or complete)
        for name in sorted(group - {kept}):
            removed[kept].append(name)
    return removed


def save_model(
    model: torch.nn.Module,
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Writes the parameters and buffers of a model. One of the tensors that share memory is kept.

    Args:
        model: the model.
        filename: the path.
        metadata: texts to keep in the header. Each name that is left out is added, with the name
            of the tensor that has its values.
        force_contiguous: whether tensors of other strides are copied; otherwise they are refused.
    """
    state_dict = model.state_dict()
    for kept, names in _remove_duplicate_names(state_dict).items():
        for name in names:
            metadata = {} if metadata is None else metadata
            metadata.setdefault(name, kept)
            del state_dict[name]
    if force_contiguous:
        state_dict = {name: tensor.contiguous() for name, tensor in state_dict.items()}
    try:
        save_file(state_dict, filename, metadata=metadata)
    except ValueError as error:
        raise ValueError(
            f"{error} Or use save_model(..., force_contiguous=True), read the docs for potential "
            "caveats."
        ) from error


def load_model(
    model: torch.nn.Module,
    filename: str | os.PathLike[str],
    strict: bool = True,
    device: str | int = "cpu",
    *,
    backend: str = "mmap",
) -> tuple[set[str], list[str]]:
    """Loads a file into a model.

    Args:
        model: the model.
        filename: the path.
        strict: whether a missing or an unexpected name is an error.
        device: where the tensors are put first.
        backend: ``"mmap"`` or ``"pread"``.

    Returns:
        The names that the file lacks, and the names that the model lacks.

    Raises:
        RuntimeError: ``strict``, and there are such names.
    """
    loaded = load_file(filename, device=device, backend=backend)
    shared = _remove_duplicate_names(model.state_dict(), preferred_names=loaded.keys())
    missing, unexpected = model.load_state_dict(loaded, strict=False)
    missing = set(missing)
    for name in (name for names in shared.values() for name in names):
        # If the file has it, the file has values twice that the model has once.
        if name in missing:
            missing.remove(name)
        else:
            unexpected.append(name)
    if strict and (missing or unexpected):
        message = f"Error(s) in loading state_dict for {type(model).__name__}:"
        for what, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                listed = ", ".join(f'"{name}"' for name in sorted(names))
                message += f"\n    {what} key(s) in state_dict: {listed}"
        raise RuntimeError(message)
    return missing, unexpected


def save(tensors: dict[str, torch.Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with these tensors.

    Args:
        tensors: tensors by name, dense, contiguous, none overlapping another.
        metadata: texts to keep in the header.
    """
    specs, _kept = _flatten(tensors)
    return serialize(specs, metadata=metadata)


def save_file(
    tensors: dict[str, torch.Tensor],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes a safetensors file with these tensors. It appears under its name when it is complete.

    Args:
        tensors: tensors by name, dense, contiguous, none overlapping another.
        filename: the path.
        metadata: texts to keep in the header.

    Raises:
        ValueError: a value is no tensor, is sparse, or is not contiguous.
        RuntimeError: tensors share memory: :func:`save_model` keeps one of them.
    """
    specs, _kept = _flatten(tensors)
    serialize_file(specs, filename, metadata=metadata)


def load_file(
    filename: str | os.PathLike[str],
    device: str | int = "cpu",
    *,
    backend: str = "mmap",
) -> dict[str, torch.Tensor]:
    """The tensors of a tensor file. They may be written to; the file does not change.

    Args:
        filename: the path.
        device: where the tensors are put.
        backend: ``"mmap"`` for views of a private map of the file, ``"pread"`` for copies.
    """
    with safe_open(filename, framework="pt", device=device, backend=backend) as file:
        return file.get_tensors()


def load(data: bytes) -> dict[str, torch.Tensor]:
    """The tensors of a tensor file in memory, as copies on the CPU."""
    return _view2torch(deserialize(data))


def _view2torch(safeview: list[tuple[str, dict[str, Any]]]) -> dict[str, torch.Tensor]:
    tensors = {}
    for name, view in safeview:
        dtype, shape = _getdtype(view["dtype"]), list(view["shape"])
        if view["dtype"] == "F4":
            shape[-1] //= 2
        if view["data"]:
            tensors[name] = torch.frombuffer(view["data"], dtype=dtype).reshape(shape)
        else:
            tensors[name] = torch.empty(shape, dtype=dtype, device="cpu")
    return tensors


def _check(tensors: dict[str, torch.Tensor]) -> None:
    """Refuses values that the format cannot represent, in the words of the official package."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(
                f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}"
            )
    sparse = [name for name, tensor in tensors.items() if tensor.layout != torch.strided]
    if sparse:
        raise ValueError(
            f"You are trying to save a sparse tensors: `{sparse}` which this library does not "
            "support. You can make it a dense tensor before saving with `.to_dense()` but be aware "
            "this might make a much larger file than needed."
        )
    failing = [names for names in _find_shared_tensors(tensors) if len(names) > 1]
    if failing:
        raise RuntimeError(
            f"Some tensors share memory: {failing}. The file would have their values twice, and "
            "they would not be shared when it is loaded: use `save_model`, or clone them"
        )
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}`. Make it contiguous "
                "with `.contiguous()`; of several views of one tensor, save that tensor."
            )


def _flatten(
    tensors: dict[str, torch.Tensor],
) -> tuple[dict[str, TensorSpec], list[torch.Tensor]]:
    """The tensors to write, and the objects that own their memory."""
    _check(tensors)
    specs = {}
    kept = []
    for name, tensor in tensors.items():
        tensor = _resolved(tensor.detach().to("cpu"))
        kept.append(tensor)
        specs[name] = TensorSpec(
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tensor.shape,
            data_ptr=tensor.data_ptr(),
            data_len=tensor.nelement() * tensor.dtype.itemsize,
        )
    return specs, kept


def _resolved(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its values in memory: a view may be conjugated or negated lazily."""
    tensor = tensor.resolve_conj().resolve_neg()
    if sys.byteorder == "big":
        raise RuntimeError("zt.safetensors.torch saves on little-endian machines only")
    return tensor
