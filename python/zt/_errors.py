"""The exceptions of zt.

Every error of the engine is a :class:`ZtError`. If Python has a class for the same error
(``KeyError``, ``ValueError``, ``FileNotFoundError``), it is one of those too.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any


class ZtError(Exception):
    """An error of the engine, with the place of the fault.

    Attributes:
        code: the stable code of the error, for example ``"digest-mismatch"``. Codes are listed in
            ``spec/errors.md``, and ``zt explain CODE`` describes each.
        object: the name of the tensor at fault, or ``None``.
        component: the role of the component at fault (``"data"``, ``"scales"``), or ``None``.
        offset: the position of the fault in the file, in bytes, or ``None``.
        path: the path of the file, or ``None`` for a file in memory.
    """

    code: str
    object: str | None
    component: str | None
    offset: int | None
    path: str | None

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        object: str | None = None,
        component: str | None = None,
        offset: int | None = None,
        path: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.object = object
        self.component = component
        self.offset = offset
        self.path = path

    def __str__(self) -> str:
        # KeyError would give the repr of its message, and OSError the text of its errno.
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)


class MalformedError(ZtError):
    """The file breaks a rule of its format: it is damaged, cut short, or hostile."""


class DigestMismatchError(ZtError):
    """The stored bytes have changed since they were written."""


class UnsupportedError(ZtError):
    """The file is sound, but this build or this operation does not support it."""


class LimitError(ZtError):
    """The file needs more memory or work than the limits allow."""


class MisuseError(ZtError, ValueError):
    """The call is wrong for any file: a wrong type, shape, or option."""


class TensorNotFoundError(MisuseError, KeyError):
    """The file has no tensor, or the tensor has no component, of this name."""


class WrongBaseError(MisuseError):
    """A delta belongs to another base.

    The message names both identities, and the first tensor that differs.
    """


class FileError(ZtError, OSError):
    """The system could not read or write. ``errno`` is set if the system gave one."""


class MissingFileError(FileError, FileNotFoundError):
    """There is no file at the path."""


class FileWarning(UserWarning):
    """Something about a file, or about a loss, that is worth knowing and is no error.

    Calls warn of it by Python's :mod:`warnings`. ``warnings.simplefilter("error", zt.FileWarning)``
    makes it an exception. :attr:`File.warnings` and results of calls list all.

    Attributes:
        code: a stable word for it, listed in ``spec/warnings.md``.
        message: what it says, without the name of the tensor.
        object: the name of the tensor that it concerns, or ``None``.
        component: the role of the component that it concerns, or ``None``.
    """

    def __init__(
        self,
        text: str,
        *,
        code: str = "",
        message: str | None = None,
        object: str | None = None,
        component: str | None = None,
    ) -> None:
        super().__init__(text)
        self.code = code
        self.message = text if message is None else message
        self.object = object
        self.component = component

    def __repr__(self) -> str:
        return f"<zt.FileWarning {self.code}: {self}>"


class SafetensorError(ZtError):
    """An error of :mod:`zt.safetensors`, with the message of the package ``safetensors``."""


_FOLDER = os.path.dirname(__file__)


def warn(found: list[FileWarning]) -> None:
    """Warns of each, at the line that called this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
        level, frame = level + 1, frame.f_back
    for warning in found:
        warnings.warn(warning, stacklevel=level)


def _restore(kind: type[ZtError], args: tuple[object, ...], fields: dict[str, object]) -> ZtError:
    """Restores a pickled exception."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error
