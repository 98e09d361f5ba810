"""The functions of a drop-in that converts its tensors to arrays of NumPy and back."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from . import numpy, safe_open

_Save = Callable[..., bytes]
_SaveFile = Callable[..., None]
_Load = Callable[..., dict[str, Any]]


def functions(
    framework: str,
    to_numpy: Callable[[dict[str, Any]], dict[str, Any]],
    from_numpy: Callable[[dict[str, Any]], dict[str, Any]],
) -> tuple[_Save, _SaveFile, _Load, _Load]:
    """``save``, ``save_file``, ``load`` and ``load_file`` for the tensors of a framework."""

    def save(tensors: dict[str, Any], metadata: dict[str, str] | None = None) -> bytes:
        """The bytes of a safetensors file with these tensors.

        Args:
            tensors: tensors by name.
            metadata: texts to keep in the header.
        """
        return numpy.save(to_numpy(tensors), metadata=metadata)

    def save_file(
        tensors: dict[str, Any],
        filename: str | os.PathLike[str],
        metadata: dict[str, str] | None = None,
    ) -> None:
        """Writes a safetensors file with these tensors. It appears under its name when it is complete.

        Args:
            tensors: tensors by name.
            filename: the path.
            metadata: texts to keep in the header.
        """
        numpy.save_file(to_numpy(tensors), filename, metadata=metadata)

    def load(data: bytes) -> dict[str, Any]:
        """The tensors of a tensor file in memory, on the CPU."""
        return from_numpy(numpy.load(data))

    def load_file(filename: str | os.PathLike[str], *, backend: str = "mmap") -> dict[str, Any]:
        """The tensors of a tensor file.

        Args:
            filename: the path.
            backend: ``"mmap"`` or ``"pread"``.
        """
        with safe_open(filename, framework=framework, backend=backend) as file:
            return file.get_tensors()

    return save, save_file, load, load_file
