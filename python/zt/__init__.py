"""Opens every tensor file: .zt, safetensors, GGUF, PyTorch, NumPy, ONNX, HDF5 and more."""

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
from ._zt import __version__

__all__ = [
    "DigestMismatchError",
    "FileError",
    "LimitError",
    "MalformedError",
    "MisuseError",
    "MissingFileError",
    "TensorNotFoundError",
    "UnsupportedError",
    "ZtError",
    "__version__",
]
