"""Between tensors of files and tensors of torch: dtypes, sparse layouts, devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.dlpack import from_dlpack

from .. import _zt
from .._dtypes import OF_ZT
from .._errors import MisuseError

if TYPE_CHECKING:
    from .. import Tensor

# The names of dtypes in files, where torch has them.
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, dtype) for name, dtype in OF_ZT.items()}

# The formats that torch has layouts for.
SPARSE = {"sparse_csr": torch.sparse_csr, "sparse_coo": torch.sparse_coo}


def dtype_of(tensor: Tensor) -> torch.dtype:
    """The dtype of the tensor that :func:`to_torch` gives.

    Raises:
        TypeError: torch has no dtype for its values.
    """
    name = tensor.dense_dtype
    dtype = DTYPES.get(name or "")
    if dtype is None:
        raise TypeError(f"torch has no dtype for {tensor.name!r}, whose values are {name}")
    return dtype


def expect_tensors(tensors: Mapping[str, torch.Tensor]) -> None:
    """Refuses a value that is not a tensor."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name!r} is not a torch.Tensor but {type(tensor).__name__}")


def device_of(device: str | torch.device) -> torch.device:
    """The device.

    Raises:
        MisuseError: it is of CUDA, and torch sees no GPU.
    """
    place = torch.device(device)
    if place.type == "cuda" and not torch.cuda.is_available():
        raise MisuseError(
            f"the device {str(device)!r} is not there: torch.cuda.is_available() is False",
            code="misuse",
        )
    return place


def to_torch(
    tensor: Tensor, device: str | torch.device | None = None, copy: bool | None = None
) -> torch.Tensor:
    """A tensor of a file as one of torch: see ``zt.Tensor.torch``."""
    place = device_of("cpu" if device is None else device)
    if tensor.format in SPARSE:
        return _sparse(tensor, place)
    if place.type == "meta":
        return torch.empty(tensor.shape, dtype=dtype_of(tensor), device=place)
    # A capsule without a version: torch has no read-only tensors, and ignores the flag of a
    # versioned one.
    value: torch.Tensor = from_dlpack(_zt._dlpack(tensor, copy))
    return value if place.type == "cpu" else to_device(value, place)


def _sparse(tensor: Tensor, device: torch.device) -> torch.Tensor:
    shape, dtype = tensor.shape, dtype_of(tensor)
    if device.type == "meta":
        return torch.empty(shape, dtype=dtype, layout=SPARSE[tensor.format], device=device)
    # The engine checks the indices against the shape; torch would take any.
    _zt._check_data(tensor)
    part = {
        role: from_dlpack(_zt._dlpack_component(component))
        for role, component in tensor.components.items()
    }
    values = part["values"]
    if tensor.format == "sparse_csr":
        rows, columns = (part[role].to(torch.int64) for role in ("indptr", "indices"))
        value = torch.sparse_csr_tensor(rows, columns, values, shape, check_invariants=False)
    else:
        places = part["coords"].to(torch.int64).reshape(len(shape), -1)
        value = torch.sparse_coo_tensor(places, values, shape, check_invariants=False)
    return value if device.type == "cpu" else value.to(device)


def part_of(tensor: Tensor, index: Any) -> torch.Tensor:
    """A part of a tensor, by NumPy's basic indices, in memory of its own."""
    value: torch.Tensor = from_dlpack(_zt._dlpack_part(tensor, index))
    return value


def read_slice(
    tensor: Tensor, offsets: Sequence[int], lengths: Sequence[int], target: torch.Tensor
) -> None:
    """Reads a box of `tensor`, of the shape of `target`, into `target` on any device."""
    if tuple(lengths) != tuple(target.shape):
        raise ValueError(
            f"{tensor.name!r}: a part of the shape {tuple(lengths)} does not fit into "
            f"a tensor of the shape {tuple(target.shape)}"
        )
    if tuple(lengths) == tuple(tensor.shape) and tensor.format not in SPARSE:
        target.copy_(to_torch(tensor))
        return
    index = tuple(slice(at, at + length) for at, length in zip(offsets, lengths, strict=True))
    target.copy_(part_of(tensor, index))


def identity_of(tensor: torch.Tensor) -> object:
    """Equal for tensors in the same memory."""
    if tensor.is_meta or tensor.layout != torch.strided:
        return id(tensor)
    return tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype


def to_device(value: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy of a tensor of the CPU on another device; on CUDA through pinned memory."""
    if device.type != "cuda":
        return value.to(device)
    ring = Ring(device)
    out = torch.empty(value.shape, dtype=value.dtype, device=device)
    ring.copy(value, out)
    ring.finish()
    return out


class Ring:
    """Pinned buffers, in turn: while the device fetches from one, the next is filled.

    The driver stages a copy from a map or from ordinary memory piece by piece, and the CPU waits
    for each piece. A ring avoids that. Use it with one thread.

    Args:
        device: where copies go.
        slot_nbytes: the size of a buffer.
        slots: how many buffers there are.
    """

    def __init__(
        self, device: torch.device, *, slot_nbytes: int = 32 << 20, slots: int = 3
    ) -> None:
        self._accelerated = device.type == "cuda"
        self._slot_nbytes = slot_nbytes
        self._slots: list[torch.Tensor] = []
        self._events: list[torch.cuda.Event] = []
        self._stream = torch.cuda.Stream(device) if self._accelerated else None
        self._count = slots
        self._next = 0

    def copy(self, value: torch.Tensor, out: torch.Tensor) -> None:
        """Copies `value`, contiguous on the CPU, into `out`, contiguous on the device.

        The copy may still be under way: :meth:`finish` waits for it.
        """
        if self._stream is not None:
            # The memory of `out` may have been another tensor's, which the device still reads.
            self._stream.wait_stream(torch.cuda.current_stream(out.device))
        source = value.reshape(-1).view(torch.uint8)
        target = out.view(-1).view(torch.uint8)
        for at in range(0, source.numel(), self._slot_nbytes):
            piece = source[at : at + self._slot_nbytes]
            slot = self._take()
            slot[: piece.numel()].copy_(piece)
            place = target[at : at + piece.numel()]
            if self._stream is None:
                place.copy_(slot[: piece.numel()])
                continue
            with torch.cuda.stream(self._stream):
                place.copy_(slot[: piece.numel()], non_blocking=True)
                self._events[self._next].record(self._stream)
            self._next = (self._next + 1) % self._count

    def _take(self) -> torch.Tensor:
        """A buffer whose last copy has ended."""
        if len(self._slots) <= self._next:
            self._slots.append(
                torch.empty(self._slot_nbytes, dtype=torch.uint8, pin_memory=self._accelerated)
            )
            if self._accelerated:
                self._events.append(torch.cuda.Event())
        elif self._accelerated:
            self._events[self._next].synchronize()
        return self._slots[self._next]

    def finish(self) -> None:
        """Waits until all copies have arrived."""
        if self._stream is not None:
            self._stream.synchronize()
