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

from ._errors import (
    DigestMismatchError,
    FileError,
    LimitError,
    MalformedError,
    MissingFileError,
    MisuseError,
    TensorNotFoundError,
    UnsupportedError,
    ZtError,
)
from ._zt import (
    Component,
    ContentHash,
    Conversion,
    Difference,
    Editor,
    File,
    FileWarning,
    Pieces,
    QuantizedGroup,
    Recovery,
    Tensor,
    Verification,
    Writer,
    __version__,
    convert,
    diff,
    edit,
    hash,
    open,
    repair,
    verify,
)

_Mapping.register(File)

__all__ = [
    "Component",
    "ContentHash",
    "Conversion",
    "Difference",
    "DigestMismatchError",
    "Editor",
    "File",
    "FileError",
    "FileWarning",
    "LimitError",
    "MalformedError",
    "MissingFileError",
    "MisuseError",
    "Pieces",
    "QuantizedGroup",
    "Recovery",
    "Tensor",
    "TensorNotFoundError",
    "UnsupportedError",
    "Verification",
    "Writer",
    "ZtError",
    "__version__",
    "convert",
    "diff",
    "edit",
    "hash",
    "open",
    "repair",
    "verify",
]
