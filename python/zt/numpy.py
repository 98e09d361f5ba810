"""Tensors as arrays of NumPy: saved to and loaded from files of any kind.

The functions have the signatures of ``safetensors.numpy``. They save arrays of any strides and byte
order, also without dimensions or without elements. An array under two names is stored once. Loaded
dense arrays are writable and share one piece of memory. A sparse tensor is an array of SciPy.

>>> import numpy, zt.numpy
>>> data = zt.numpy.save({"weight": numpy.arange(6).reshape(2, 3).T}, {"step": 7})
>>> zt.numpy.load(data)["weight"]
array([[0, 3],
       [1, 4],
       [2, 5]])
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import _zt

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["load", "load_file", "save", "save_file"]


def save(
    tensors: Mapping[str, Any],
    metadata: Mapping[str, Any] | None = None,
    *,
    kind: str = "zt",
    zstd: int | None = None,
    digest: str | None = "crc32c",
    planes: bool = False,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> bytes:
    """The file as bytes. The arguments are as for :func:`save_file`."""
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
    tensors: Mapping[str, Any],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, Any] | None = None,
    *,
    kind: str | None = None,
    zstd: int | None = None,
    digest: str | None = "crc32c",
    planes: bool = False,
    sync: bool = True,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
    storage_options: dict[str, Any] | None = None,
) -> None:
    """Writes a file, all of it or nothing. Equal contents give equal bytes.

    Args:
        tensors: names and values, each as :meth:`zt.Writer.add` takes them.
        filename: the path, or a URL. An existing file is replaced once the new one is complete.
        metadata: attributes of the file. Only texts, if the kind is safetensors.
        kind: the kind of the file; by default its extension decides.
        zstd: the level at which a ``.zt`` is compressed; ``None`` for raw bytes.
        digest: ``"crc32c"``, ``"sha256"`` or ``None``, for each component of a ``.zt``.
        planes: whether a ``.zt`` has floating-point tensors in byte planes.
        sync: whether to wait until the file is on the disk. Then a loss of power leaves the old
            file or the new one. With ``False`` the call is as fast as ``safetensors``, which never
            waits, and other programs still see a whole file. But a loss of power may damage it. A
            digest finds that: use ``False`` for files that you can make again.
        threads: how many threads work; by default all cores, or ``ZT_NUM_THREADS``.
        progress: called with the bytes since the last call. An exception from it ends the work.
        storage_options: the settings of the store of a URL, as for :func:`zt.open`.

    Raises:
        TypeError: a value is no array, or has elements that files do not have. A note names it.
        MisuseError: the kind cannot represent a tensor, code ``lossy``.
    """
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


def load(data: Any) -> dict[str, NDArray[Any]]:
    """The tensors of a file in memory, of any kind: bytes, or an object with ``seek`` and ``read``."""
    return _zt.load(data)


def load_file(
    filename: str | os.PathLike[str],
    *,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
    storage_options: dict[str, Any] | None = None,
) -> dict[str, NDArray[Any]]:
    """The tensors of a file of any kind. All cores read them and compare their digests.

    Args:
        filename: the path, or a URL.
        threads: how many threads read; by default all cores, or ``ZT_NUM_THREADS``.
        progress: called with the stored bytes since the last call. An exception from it ends the
            work.
        storage_options: the settings of the store of a URL, as for :func:`zt.open`.

    Returns:
        Writable arrays by name. A quantized tensor is dequantized to f32.
    """
    return _zt.load(filename, threads=threads, progress=progress, storage_options=storage_options)
