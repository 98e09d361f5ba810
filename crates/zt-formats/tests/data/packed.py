"""Writes packed.txt: what ml_dtypes says about types of less than a byte, and E8M0. Run: python packed.py > packed.txt

A line holds the values of all codes of a type, in order: the f32 bits of floats, and integers in decimal. The last line holds
pairs `f32bits=code` of E8M0: every tie, its neighbours, and the ends of f32.
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

# The first tie is left out: ml_dtypes rounds everything between the two least values up.
ties = (1.5 * 2.0 ** np.arange(-126, 128)).astype(np.float32).view(np.uint32)
ends = [0, 1, 0x400000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x80000000, 0xBF800000, 0xFF800000]
bits = np.concatenate([ties - 1, ties, ties + 1, ends]).astype(np.uint32)
with np.errstate(all="ignore"):
    codes = bits.view(np.float32).astype(ml_dtypes.float8_e8m0fnu).view(np.uint8)
print("encode", *(f"{x:08x}={code:02x}" for x, code in zip(bits, codes)))
