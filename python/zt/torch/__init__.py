"""Tensors of torch in tensor files of any kind.

:func:`save_file` and :func:`load_file` have the signatures of ``safetensors.torch``. They take any
tensor: strided, transposed, expanded, empty, sparse, and tied.

>>> import tempfile, torch, zt.torch
>>> path = tempfile.mkdtemp() + "/model.zt"
>>> weight = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
>>> zt.torch.save_file({"weight": weight, "transposed": weight.T}, path)
>>> zt.torch.load_file(path)["transposed"].shape
torch.Size([3, 2])

Loading executes nothing from any kind of file: a ``.pt`` is read as data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

import zt

from .. import _zt
from .._dtypes import TO_SAFETENSORS
from ._delta import apply_delta, patches
from ._memory import (
    SPARSE,
    Ring,
    device_of,
    dtype_of,
    expect_tensors,
    identity_of,
    part_of,
    to_device,
    to_torch,
)
from ._saver import Saved, SaveFuture, Saver, SaveWaitWarning, Step, saved_steps

__all__ = [
    "LazyTensor",
    "SaveFuture",
    "SaveWaitWarning",
    "Saved",
    "Saver",
    "Step",
    "apply_delta",
    "lazy_state_dict",
    "load",
    "load_file",
    "load_model",
    "patches",
    "save",
    "save_file",
    "save_model",
    "saved_steps",
]

Progress = Callable[[int], object]
Path = str | os.PathLike[str]


def save(
    tensors: Mapping[str, torch.Tensor],
    metadata: Mapping[str, Any] | None = None,
    *,
    kind: str = "zt",
    zstd: int | None = None,
    digest: str | None = "crc32c",
    planes: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> bytes:
    """The bytes of a file with these tensors: see :func:`save_file`."""
    expect_tensors(tensors)
    data = _zt.save(
        tensors,
        None,
        metadata,
        kind=kind,
        zstd=zstd,
        digest=digest,
        planes=planes,
        threads=threads,
        progress=progress,
    )
    assert data is not None
    return data


def save_file(
    tensors: Mapping[str, torch.Tensor],
    filename: Path,
    metadata: Mapping[str, Any] | None = None,
    *,
    kind: str | None = None,
    zstd: int | None = None,
    digest: str | None = "crc32c",
    planes: bool = False,
    sync: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> None:
    """Saves tensors, all or nothing: the file appears under its name once it is complete.

    A tensor that has several names is stored once, and keeps all of them. Equal contents give equal
    bytes. ``requires_grad`` is not stored. Tensors on other devices are copied to the CPU first.

    Args:
        tensors: names and tensors, dense, or sparse in the COO or CSR layout.
        filename: a path or a URL. An existing file is replaced.
        metadata: attributes of the file. Only texts, if the kind is safetensors.
        kind: the kind of file, such as ``"safetensors"``; by default the extension decides.
        zstd: the level at which a ``.zt`` is compressed; ``None`` for raw bytes.
        digest: ``"crc32c"``, ``"sha256"`` or ``None``, for each component of a ``.zt``.
        planes: whether a ``.zt`` has floating-point tensors in byte planes.
        sync: whether to wait until the file is on the disk. Then a loss of power leaves the old
            file or the new one. With ``False`` the call is as fast as ``safetensors``, which never
            waits, and other programs still see a whole file. But a loss of power may damage it. A
            digest finds that: use ``False`` for files that you can make again.
        threads: how many threads work; by default all cores, or ``ZT_NUM_THREADS``.
        progress: is called with the bytes since its last call.
        storage_options: the settings of the store of a URL, as for :func:`zt.open`.

    Raises:
        ValueError: a tensor has no data (the device ``meta``), or is spread over ranks (a DTensor).
        MisuseError: the kind of file cannot represent a tensor, code ``lossy``.
    """
    expect_tensors(tensors)
    _zt.save(
        tensors,
        os.fspath(filename),
        metadata,
        kind=kind,
        zstd=zstd,
        digest=digest,
        planes=planes,
        sync=sync,
        threads=threads,
        progress=progress,
        storage_options=storage_options,
    )


def load(
    data: bytes | bytearray | memoryview, device: str | torch.device = "cpu"
) -> dict[str, torch.Tensor]:
    """All tensors of a file in memory: see :func:`load_file`."""
    return _load(data, device, None, None, None, None, tied=True)


def load_file(
    filename: Path,
    device: str | torch.device = "cpu",
    *,
    base: Path | Sequence[Path] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    tied: bool = True,
    storage_options: dict[str, Any] | None = None,
) -> dict[str, torch.Tensor]:
    """All tensors of a file of any kind.

    Dense tensors share one piece of memory, which stays as long as any of them. A sparse tensor
    keeps its layout, COO or CSR. A quantized one is dequantized to f32.

    Args:
        filename: a path or a URL; the index of a sharded set loads the whole set.
        device: the device of the tensors. ``"meta"`` gives shapes and dtypes, and reads no data.
            Copies to CUDA go through pinned memory, while the next tensors are read.
        base: what the file is a delta of, as for :func:`zt.open`.
        threads: how many threads read; ``None`` takes all cores.
        progress: is called with the bytes since its last call.
        tied: whether names with the same stored bytes get the same tensor, as they had when it was
            saved. With ``False`` each name has values of its own. Of a delta, names of its first
            base that have the same stored bytes there get the same tensor if their new values are
            equal, too.
        storage_options: the settings of the store of a URL, as for :func:`zt.open`.

    Raises:
        MissingFileError: there is no such file. It is a ``FileNotFoundError`` too.
        WrongBaseError: `base` is not the base of the delta.
        DigestMismatchError: a tensor's bytes have changed since they were written.
        TypeError: torch has no dtype for a tensor.
    """
    return _load(filename, device, base, threads, progress, storage_options, tied=tied)


def _load(
    source: Path | bytes | bytearray | memoryview,
    device: str | torch.device,
    base: Path | Sequence[Path] | None,
    threads: int | None,
    progress: Progress | None,
    storage_options: dict[str, Any] | None,
    *,
    tied: bool,
) -> dict[str, torch.Tensor]:
    device = device_of(device)
    loaded: dict[str, torch.Tensor] = {}
    with zt.open(source, base=base, storage_options=storage_options) as file:
        twins = _twins(file) if tied else {}
        wanted = {name: tensor for name, tensor in file.items() if name not in twins}
        if device.type == "cpu":
            _read(wanted, loaded, threads, progress)
        elif device.type == "cuda":
            ring = Ring(device)
            for name, tensor in wanted.items():
                value = to_torch(tensor, torch.device("cpu"))
                if value.layout == torch.strided:
                    out = torch.empty(value.shape, dtype=value.dtype, device=device)
                    ring.copy(value, out)
                else:
                    out = value.to(device)
                loaded[name] = out
                if progress is not None:
                    progress(value.numel() * value.element_size())
            ring.finish()
        else:
            for name, tensor in wanted.items():
                loaded[name] = to_torch(tensor, device)
        loaded = {name: loaded[twins.get(name, name)] for name in file}
    if tied and base is not None:
        _tie(loaded, base, storage_options)
    return loaded


def _tie(
    loaded: dict[str, torch.Tensor],
    base: Path | Sequence[Path],
    storage_options: dict[str, Any] | None,
) -> None:
    """Gives names that are tied in the first base the same tensor, if their values are equal."""
    first = base if isinstance(base, (str, os.PathLike)) else base[0]
    with zt.open(first, storage_options=storage_options) as file:
        for name, earlier in _twins(file).items():
            if name in loaded and earlier in loaded and _equal(loaded[name], loaded[earlier]):
                loaded[name] = loaded[earlier]


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether the bits of two tensors are equal."""
    if (a.dtype, a.shape, a.layout) != (b.dtype, b.shape, torch.strided) or a.is_meta:
        return False
    return torch.equal(*(value.reshape(-1).view(torch.uint8) for value in (a, b)))


def _read(
    wanted: Mapping[str, zt.Tensor],
    loaded: dict[str, torch.Tensor],
    threads: int | None,
    progress: Progress | None,
) -> None:
    """Reads tensors: all dense ones at once, on all cores."""
    dense = {}
    for name, tensor in wanted.items():
        dtype_of(tensor)
        if tensor.format in SPARSE:
            loaded[name] = to_torch(tensor, copy=True)
        else:
            dense[name] = tensor
    capsules = _zt._dlpack_many(list(dense.values()), threads, progress)
    for name, capsule in zip(dense, capsules, strict=True):
        loaded[name] = from_dlpack(capsule)


def _twins(file: zt.File) -> dict[str, str]:
    """Names of tensors with the same stored bytes, dtype and shape as an earlier tensor."""
    first: dict[object, str] = {}
    twins = {}
    for name, tensor in file.items():
        places = tuple(
            (role, component.offset, component.dtype, component.nbytes)
            for role, component in tensor.components.items()
        )
        if all(offset is not None and nbytes > 0 for _, offset, _, nbytes in places):
            earlier = first.setdefault((tensor.format, tensor.shape, places), name)
            # Shards of a set have equal offsets, too.
            if earlier != name and _zt._has_same_blobs(tensor, file[earlier]):
                twins[name] = earlier
    return twins


def save_model(
    model: torch.nn.Module,
    filename: Path,
    metadata: Mapping[str, Any] | None = None,
    force_contiguous: bool = True,
    **options: Any,
) -> None:
    """Saves the state of a model. Tied weights are stored once, and keep all their names.

    Args:
        model: the model; its ``state_dict()`` is saved.
        filename: a path or a URL.
        metadata: texts for the file's attributes.
        force_contiguous: ignored. ``safetensors.torch`` has this argument.
        options: as for :func:`save_file`.
    """
    del force_contiguous
    save_file(model.state_dict(), filename, metadata, **options)


def load_model(
    model: torch.nn.Module,
    filename: Path,
    strict: bool = True,
    device: str | torch.device = "cpu",
) -> tuple[list[str], list[str]]:
    """Loads the state of a model from a file of any kind, into the memory of the model.

    A parameter on the device ``meta`` gets memory on `device`. A tied name is not missing if the
    file has another name of the same tensor: ``safetensors`` saves one name alone.

    Args:
        model: the model.
        filename: a path.
        strict: whether missing and unexpected names are an error.
        device: the device of parameters that have no memory yet.

    Returns:
        The missing names and the unexpected ones.

    Raises:
        RuntimeError: names are missing or unexpected and `strict` is set, or shapes differ.
    """
    target = device_of(device)
    state = model.state_dict()
    with zt.open(filename) as file:
        # Views of the file where it can lend its bytes, so the model has the only copy.
        values = {name: to_torch(tensor, torch.device("cpu")) for name, tensor in file.items()}
        if any(value.is_meta for value in state.values()):
            owned = {name: value.clone() for name, value in values.items()}
            values = {name: to_device(value, target) for name, value in owned.items()}
            result = model.load_state_dict(values, strict=False, assign=True)
        else:
            result = model.load_state_dict(values, strict=False)
    loaded = {identity_of(state[name]) for name in values if name in state}
    missing = [
        name
        for name in result.missing_keys
        if name not in state or identity_of(state[name]) not in loaded
    ]
    unexpected = list(result.unexpected_keys)
    if strict and (missing or unexpected):
        # The words of torch, and the file.
        lines = [
            f"Error(s) in loading state_dict for {type(model).__name__}: {os.fspath(filename)}"
        ]
        for what, names in ("Missing", missing), ("Unexpected", unexpected):
            if names:
                quoted = ", ".join(f'"{name}"' for name in names)
                lines.append(f"{what} key(s) in state_dict: {quoted}.")
        raise RuntimeError("\n\t".join(lines))
    return missing, unexpected


class LazyTensor:
    """A tensor of a file that is read when it is indexed: see :func:`lazy_state_dict`."""

    def __init__(self, tensor: zt.Tensor) -> None:
        self._tensor = tensor

    @property
    def shape(self) -> torch.Size:
        """Its dimensions."""
        return torch.Size(self._tensor.shape)

    @property
    def dtype(self) -> torch.dtype:
        """Its dtype of torch."""
        return dtype_of(self._tensor)

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return len(self._tensor.shape)

    def numel(self) -> int:
        """The number of its elements."""
        return self.shape.numel()

    def is_floating_point(self) -> bool:
        """Whether its values are real floating-point numbers."""
        return self.dtype.is_floating_point

    def get_shape(self) -> list[int]:
        """Its dimensions, as ``safetensors`` gives them."""
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """Its dtype in the spelling of ``safetensors``, such as ``"BF16"``."""
        return TO_SAFETENSORS[self._tensor.dense_dtype or ""]

    def __getitem__(self, index: Any) -> torch.Tensor:
        """The part at a basic index; ``[...]`` is the whole tensor. Only the part is read."""
        if index is Ellipsis:
            return to_torch(self._tensor, torch.device("cpu"))
        return part_of(self._tensor, index)

    def __repr__(self) -> str:
        return f"LazyTensor({self._tensor.name!r}, shape={self._tensor.shape}, dtype={self.dtype})"


def lazy_state_dict(path: Path) -> dict[str, LazyTensor]:
    """The tensors of a file of any kind, before any is read.

    ``transformers`` takes it for a state dict, and reads each tensor when its module needs it::

        from_pretrained(None, config=config, state_dict=zt.torch.lazy_state_dict("model.gguf"))

    The file stays open as long as any of the values lives.
    """
    file = zt.open(path)
    return {name: LazyTensor(tensor) for name, tensor in file.items()}
