"""Several files as one: merged, averaged, or with a LoRA adapter added."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from . import _zt

__all__ = ["average", "merge"]

_Names = str | Sequence[str]
_Rename = dict[str, str] | Callable[[str], str]


def average(
    sources: Sequence[Any],
    target: Any,
    *,
    weights: Sequence[float] | None = None,
    include: _Names | None = None,
    exclude: _Names | None = None,
    rename: _Rename | None = None,
    dtype: str | None = None,
    allow_inf: bool = False,
    lossy: bool = False,
    storage_options: dict[str, Any] | None = None,
    **options: Any,
) -> _zt.Conversion:
    """Writes the mean of the tensors of several files, as ``zt average`` does.

    The result is the first file with the mean of all in the place of each floating-point tensor.
    All files must have the same names and shapes. Where integers differ, such as counters of
    steps, the result has those of the first, with a warning of the code ``first-kept``. A mean is
    computed as f64, and rounded once.

    Args:
        sources: files, each as :func:`convert` takes them.
        target: as for :func:`convert`.
        weights: a number for each file; their sum divides the result. By default 1 each.
        include, exclude, rename: as for :func:`convert`.
        dtype: the type of the means; by default that of the first file.
        allow_inf, lossy, storage_options, options: as for :func:`convert`.

    Raises:
        MisuseError: weights or shapes do not fit.
        TensorNotFoundError: some files lack a tensor.
        UnsupportedError: other tensors are not equal.
    """
    files = [
        _chosen(source, include, exclude, rename, storage_options) for source in _listed(sources)
    ]
    # The writer rounds the values once, and counts what that loses.
    mean = _zt._average(files, list(weights or []), dtype and "f64", allow_inf or lossy)
    return _zt.convert(
        mean, target, dtype=dtype, allow_inf=allow_inf, lossy=lossy,
        storage_options=storage_options, **options,
    )  # fmt: skip


def merge(
    source: Any,
    target: Any,
    *,
    lora: str | os.PathLike[str] | None = None,
    scale: float | None = None,
    include: _Names | None = None,
    exclude: _Names | None = None,
    rename: _Rename | None = None,
    dtype: str | dict[str, str] | None = None,
    allow_inf: bool = False,
    lossy: bool = False,
    storage_options: dict[str, Any] | None = None,
    **options: Any,
) -> _zt.Conversion:
    """Writes the tensors of several files as one, or of one file with a LoRA adapter added.

    Args:
        source: one file or a list of them, as :func:`convert` takes them; one file with ``lora``.
        target: as for :func:`convert`.
        lora: an adapter of peft, a file or its folder: ``W + scale * B @ A`` is written for each weight
            ``W`` that has factors. A product is computed as f64, and rounded once.
        scale: the factor; by default that of the adapter's configuration.
        include, exclude, rename, dtype, allow_inf, lossy, storage_options, options: as for
            :func:`convert`.

    Raises:
        TensorNotFoundError: the source lacks a weight of the adapter.
        MisuseError: shapes or ranks do not fit, or there is no scale.
        UnsupportedError: the adapter has tensors that are no factors of LoRA.
    """
    if lora is None:
        if scale is not None:
            raise TypeError("scale is for an adapter: pass lora, too")
        options |= {"include": include, "exclude": exclude, "rename": rename}
    else:
        sources = _listed(source)
        if len(sources) != 1:
            raise TypeError("lora is for one source: merge several first, or open a set by its index")
        base = _chosen(sources[0], include, exclude, rename, storage_options)
        if isinstance(dtype, dict):
            raise TypeError("with lora, dtype is one type")
        source = _zt._lora(base, os.fspath(lora), scale, dtype and "f64", allow_inf or lossy)
    return _zt.convert(
        source, target, dtype=dtype, allow_inf=allow_inf, lossy=lossy,
        storage_options=storage_options, **options,
    )  # fmt: skip


def _listed(sources: Any) -> list[Any]:
    return list(sources) if isinstance(sources, (list, tuple)) else [sources]


def _chosen(
    source: Any,
    include: _Names | None,
    exclude: _Names | None,
    rename: _Rename | None,
    storage_options: dict[str, Any] | None,
) -> _zt.File:
    file = source if isinstance(source, _zt.File) else _zt.open(source, storage_options=storage_options)
    return file.select(include=include, exclude=exclude, rename=rename)
