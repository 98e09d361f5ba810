"""Writes `bzip2.npz` and `lzma.npz`: members that Python's `zipfile` compresses. With numpy 2.4.6."""

import io
import zipfile

import numpy as np

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.asfortranarray(np.arange(12, dtype=np.int16).reshape(3, 4)),
    "empty": np.zeros((0, 3), np.float64),
    "s": np.array(7, np.int64),
}

for name, method in [("bzip2", zipfile.ZIP_BZIP2), ("lzma", zipfile.ZIP_LZMA)]:
    with zipfile.ZipFile(f"{name}.npz", "w", method) as archive:
        for array, values in ARRAYS.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, values)
            archive.writestr(f"{array}.npy", content.getvalue())
