"""The package ``safetensors`` 0.8.0, by its names, over files of every kind.

``safe_open`` and ``load_file`` open every file that :func:`zt.open` opens. ``save_file`` writes
safetensors files, with the same bytes as the official package. :func:`install` lets this package
stand in for the official one. Then programs that know only safetensors load a ``.zt``.

Differences from the official package:

* The metadata is written in sorted order. The official order is random.
* A file with two tensors of one name is refused.
* Arrays of NumPy that are not contiguous are saved with their values in order.
* bf16 and FP8 load as arrays of NumPy, with dtypes of ``ml_dtypes``.
"""

from .._errors import SafetensorError
from .._zt import (
    TensorSpec,
    _safe_open_handle,
    deserialize,
    safe_open,
    serialize,
    serialize_file,
)
from ._install import install, uninstall

#: The version of the official package whose behaviour this is.
__version__ = "0.8.0"

__all__ = [
    "SafetensorError",
    "TensorSpec",
    "__version__",
    "_safe_open_handle",
    "deserialize",
    "install",
    "safe_open",
    "serialize",
    "serialize_file",
    "uninstall",
]
