"""Deltas: a file as the difference from another. ``zt.open(delta, base=base)`` opens the result.

>>> import numpy, tempfile, zt, zt.delta, zt.numpy
>>> folder = tempfile.mkdtemp()
>>> weights = {"weight": numpy.arange(6, dtype="f4"), "bias": numpy.zeros(2, "f4")}
>>> zt.numpy.save_file(weights, folder + "/base.zt")
>>> weights["weight"][4] = 4.5
>>> zt.delta.make(folder + "/base.zt", weights, folder + "/step.zt")
<zt.delta.Changes same=1 changed=1 whole=0 removed=0>
>>> zt.open(folder + "/step.zt", base=folder + "/base.zt")["weight"][3:]
array([3. , 4.5, 5. ], dtype=float32)
>>> for patch in zt.delta.patches(folder + "/step.zt", folder + "/base.zt"):
...     print(patch.name, patch.shape, patch.dtype, patch.indices, patch.values)
weight (6,) f32 [4] [4.5]

Two deltas become one with ``make(base, zt.open(second, base=[base, first]), both)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import zt

from . import _zt
from ._zt import Changes

__all__ = ["Changes", "Patch", "make", "patch", "patches"]

# A source of `zt.open`, an open file, or tensors in memory by name.
Source = Any
Progress = Callable[[int], object]


class Patch(NamedTuple):
    """New values of a tensor: see :func:`patches`."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    indices: Any
    values: Any


def make(
    base: Source,
    new: Source,
    target: Any,
    *,
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> Changes:
    """Writes how `new` differs from `base`, all of it or nothing.

    The same tensors give the same bytes.

    Args:
        base: a source of :func:`zt.open`, a :class:`zt.File`, or a dict of arrays and tensors in
            memory. Those of torch that are on another device, or not contiguous, are copied.
        new: as `base`.
        target: a path, a URL, or an object with ``write``.
        overwrite: whether an existing file is replaced.
        threads: how many threads work.
        progress: called with the bytes of values since the last call. An exception from it ends
            the work.
        storage_options: as for :func:`zt.open`.

    Raises:
        MisuseError: the file exists, code ``overwrite``.
        UnsupportedError: `new` or `base` is a delta, or has a damaged tensor.
    """
    return _zt._delta(held(base), held(new), target, overwrite, threads, progress, storage_options)


def patch(
    base: Any,
    deltas: Any,
    target: Any = None,
    *,
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> None:
    """Applies deltas to their base: writes the file that they make, of any kind.

    The identities of the base and of the result are checked before anything is written.

    Args:
        base: a source of :func:`zt.open`, or a :class:`zt.File`.
        deltas: one, or a list in the order in which they were made.
        target: as for :func:`zt.convert`. ``None`` edits `base`, the path of a ``.zt``: a crash
            leaves the old file or the new one.
        overwrite: whether an existing file is replaced.
        threads: how many threads work.
        progress: called with the bytes since the last call. An exception from it ends the
            work.
        storage_options: as for :func:`zt.open`.

    Raises:
        WrongBaseError: `base` is not the base of the first delta, or a delta does not follow the
            one before it.
        MalformedError: a delta breaks a rule, or the result has another identity.
    """
    deltas = list(deltas) if isinstance(deltas, (list, tuple)) else [deltas]
    if not deltas:
        raise zt.MisuseError("there is no delta", code="misuse")
    if target is None:
        return _zt._patch_in_place(base, deltas, threads, progress, storage_options)
    *earlier, last = deltas
    with zt.open(
        last, base=[base, *earlier], check=True, storage_options=storage_options
    ) as result:
        zt.convert(
            result,
            target,
            overwrite=overwrite,
            threads=threads,
            progress=progress,
            storage_options=storage_options,
        )


def patches(
    delta: Source, base: Source, *, storage_options: dict[str, Any] | None = None
) -> Iterator[Patch]:
    """What a delta changes, tensor by tensor: where, and the new values there.

    The values of a tensor are verified before they are given. One patch is in memory at a time,
    and never takes more than all values of its tensor. ``zt.torch.patches`` gives tensors of
    torch, for vLLM.

    Args:
        delta: a source of :func:`zt.open`, or a :class:`zt.File`.
        base: as for :func:`make`. A delta codes changes of old values, so it needs them. They
            stay as they are while the patches are read. For deltas in a row, a list as for
            :func:`zt.open`.
        storage_options: as for :func:`zt.open`.

    Yields:
        The name, the shape and the dtype of the whole tensor; ``indices``, ascending positions in
        the flat tensor, of int32; ``values``, the new values there. ``indices`` is ``None`` if
        ``values`` are all values of the tensor: it is new, or that takes fewer bytes, or it has
        2^31 values or more.

    Raises:
        WrongBaseError: `base` is not the base of the delta.
        UnsupportedError: the delta removes or renames tensors, which no patch can express.
    """
    for tensor, found in changed(delta, base, storage_options, capsules=False):
        indices, values = found or (None, tensor.numpy().reshape(-1))
        yield Patch(tensor.name, tensor.shape, tensor.dense_dtype, indices, values)


def changed(
    delta: Source, base: Source, storage_options: dict[str, Any] | None, *, capsules: bool
) -> Iterator[tuple[zt.Tensor, Any]]:
    """The tensors that a delta changes, as they become. With each, what ``_new_values`` finds."""
    first, *earlier = base if isinstance(base, (list, tuple)) else [base]
    first, delta = (
        source if isinstance(source, zt.File) else zt.open(source, storage_options=storage_options)
        for source in (held(first), delta)
    )
    expect_patches(delta)
    old = first
    if earlier:
        old = zt.open(earlier[-1], base=[first, *earlier[:-1]], storage_options=storage_options)
    bases = [first, *earlier]
    with zt.open(delta, base=bases, storage_options=storage_options) as new:
        for name in delta:
            found = None
            if name in old:
                try:
                    found = _zt._new_values(old[name], new[name], capsules)
                except (zt.DigestMismatchError, zt.MalformedError):
                    # If the base is the wrong one, this says so.
                    zt.open(delta, base=bases, check=True, storage_options=storage_options)
                    raise
            yield new[name], found


def expect_patches(delta: zt.File) -> None:
    """Refuses a delta that does more than give tensors new values."""
    header = delta.attributes.get("zt.delta")
    removed = header.get("removed") if isinstance(header, dict) else None
    renamed = [name for name, tensor in delta.items() if "base" in tensor.attributes]
    if removed or renamed:
        what = f"removes {removed[0]!r}" if removed else f"renames a tensor to {renamed[0]!r}"
        raise zt.UnsupportedError(
            f"the delta {what}, and a patch only has new values; zt.delta.patch writes the result",
            code="unsupported",
            path=str(delta.path) if delta.path else None,
        )


def held(source: Source) -> Source:
    """Tensors in memory as an open file; anything else as it is."""
    if isinstance(source, Mapping) and not isinstance(source, zt.File):
        return _zt._file_of(source)
    return source
