"""The exceptions of zt.

Every error of the engine is a :class:`ZtError`. If Python has a class for the same error
(``KeyError``, ``ValueError``, ``FileNotFoundError``), it is one of those too.
"""

from __future__ import annotations

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


class SafetensorError(ZtError):
    """An error of :mod:`zt.safetensors`, with the message of the package ``safetensors``."""


def _restore(kind: type[ZtError], args: tuple[object, ...], fields: dict[str, object]) -> ZtError:
    """Restores a pickled exception."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error
