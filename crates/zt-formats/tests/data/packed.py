"""Writes packed.txt: what ml_dtypes says about types of less than a byte, and E8M0. Run: python packed.py > packed.txt

A line holds the values of all codes of a type, in order: the f32 bits of floats, and integers in decimal.
"""

import ml_dtypes
import numpy as np

FLOATS = {
    "f4_e2m1fn": (16, ml_dtypes.float4_e2m1fn),
    "f6_e2m3fn": (64, ml_dtypes.float6_e2m3fn),
    "f6_e3m2fn": (64, ml_dtypes.float6_e3m2fn),
    "f8_e8m0fnu": (256, ml_dtypes.float8_e8m0fnu),
}
INTEGERS = {
    "i4": (16, ml_dtypes.int4),
    "u4": (16, ml_dtypes.uint4),
    "i2": (4, ml_dtypes.int2),
    "u2": (4, ml_dtypes.uint2),
}

for name, (count, dtype) in FLOATS.items():
    values = np.arange(count, dtype=np.uint8).view(dtype).astype(np.float32)
    print(name, *(f"{x:08x}" for x in values.view(np.uint32)))
for name, (count, dtype) in INTEGERS.items():
    print(name, *np.arange(count, dtype=np.uint8).view(dtype).astype(np.int16))
