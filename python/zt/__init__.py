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
    MisuseError,
    MissingFileError,
    TensorNotFoundError,
    UnsupportedError,
    ZtError,
)
from ._zt import (
    Component,
    File,
    FileWarning,
    Pieces,
    QuantizedGroup,
    Tensor,
    Writer,
    __version__,
    open,
)

_Mapping.register(File)

__all__ = [
    "Component",
    "DigestMismatchError",
    "File",
    "FileError",
    "FileWarning",
    "LimitError",
    "MalformedError",
    "MisuseError",
    "MissingFileError",
    "Pieces",
    "QuantizedGroup",
    "Tensor",
    "TensorNotFoundError",
    "UnsupportedError",
    "Writer",
    "ZtError",
    "__version__",
    "open",
]
