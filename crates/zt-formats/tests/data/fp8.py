"""Writes fp8.txt: what ml_dtypes says about the four FP8 types. Run: python fp8.py > fp8.txt

`decode NAME` lines hold the f32 bits of codes 00..ff, sixteen per line; `encode NAME` lines hold pairs `f32bits=code`.
"""

import ml_dtypes
import numpy as np

TYPES = {
    "f8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8_e5m2": ml_dtypes.float8_e5m2,
    "f8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}


def inputs(values):
    """Every place where rounding changes its mind, one f32 to each side of it, and the ends of f32."""
    magnitudes = np.unique(np.abs(values[np.isfinite(values)]))
    beyond = magnitudes[-1] + np.diff(magnitudes)[-1]  # where one more code would be
    edges = np.append(magnitudes, [beyond, 2 * beyond]).astype(np.float32)
    edges = np.concatenate([edges, (edges[1:] + edges[:-1]) / np.float32(2)])
    bits = edges.view(np.uint32)
    near = np.concatenate([bits, bits[bits > 0] - 1, bits + 1])
    ends = np.array([0x1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF], np.uint32)
    spread = np.random.default_rng(8).integers(0x30000000, 0x48000000, 128, np.uint32)
    positive = np.unique(np.concatenate([near, ends, spread]))
    return np.concatenate([positive, positive | np.uint32(0x80000000)])


for name, dtype in TYPES.items():
    codes = np.arange(256, dtype=np.uint8)
    values = codes.view(dtype).astype(np.float32)
    for row in values.view(np.uint32).reshape(16, 16):
        print("decode", name, *(f"{x:08x}" for x in row))
    x = inputs(values)
    with np.errstate(all="ignore"):
        y = x.view(np.float32).astype(dtype).view(np.uint8)
    pairs = [f"{a:08x}={b:02x}" for a, b in zip(x, y)]
    for i in range(0, len(pairs), 10):
        print("encode", name, *pairs[i : i + 10])
