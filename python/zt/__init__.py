"""Opens every tensor file: .zt, safetensors, GGUF, PyTorch, NumPy, ONNX, HDF5 and more.

>>> import numpy, tempfile, zt
>>> path = tempfile.mkdtemp() + "/model.zt"
>>> with zt.Writer(path) as writer:
...     writer.add("weight", numpy.ones((2, 3), dtype="f4"))
>>> with zt.open(path) as file:
...     print(list(file), file["weight"].shape, file["weight"].dtype)
['weight'] (2, 3) f32
"""

from collections.abc import Mapping as _Mapping
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ._combine import average, merge
from ._errors import (
    DigestMismatchError,
    FileError,
    FileWarning,
    LimitError,
    MalformedError,
    MissingFileError,
    MisuseError,
    TensorNotFoundError,
    UnsupportedError,
    WrongBaseError,
    ZtError,
)
from ._results import DifferenceSummary, Distance, Shard, Split, Stats, TensorStats
from ._zt import (
    Component,
    ContentHash,
    Conversion,
    Difference,
    Editor,
    File,
    Finding,
    Pieces,
    Plan,
    Quantization,
    QuantizedGroup,
    Recovery,
    Tensor,
    Verification,
    Writer,
    __version__,
    convert,
    diff,
    edit,
    examine,
    hash,
    open,
    plan,
    quantize,
    register_format,
    register_kind,
    repair,
    report,
    split,
    stats,
    verify,
)

if _TYPE_CHECKING:
    from . import batch, delta, flax, hub, numpy, safetensors, torch  # noqa: F401

_Mapping.register(File)

_MODULES = frozenset({"batch", "delta", "flax", "hub", "numpy", "safetensors", "torch"})


def __getattr__(name: str) -> _Any:
    """``zt.numpy``, ``zt.torch`` and the other modules are imported when they are first used."""
    if name in _MODULES:
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Component",
    "ContentHash",
    "Conversion",
    "Difference",
    "DifferenceSummary",
    "DigestMismatchError",
    "Distance",
    "Editor",
    "File",
    "FileError",
    "FileWarning",
    "Finding",
    "LimitError",
    "MalformedError",
    "MissingFileError",
    "MisuseError",
    "Pieces",
    "Plan",
    "Quantization",
    "QuantizedGroup",
    "Recovery",
    "Shard",
    "Split",
    "Stats",
    "Tensor",
    "TensorNotFoundError",
    "TensorStats",
    "UnsupportedError",
    "Verification",
    "Writer",
    "WrongBaseError",
    "ZtError",
    "__version__",
    "average",
    "convert",
    "diff",
    "edit",
    "examine",
    "hash",
    "merge",
    "open",
    "plan",
    "quantize",
    "register_format",
    "register_kind",
    "repair",
    "report",
    "split",
    "stats",
    "verify",
]
