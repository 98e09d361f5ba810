"""Writes quantize.txt: the blocks that gguf-py makes of some values. Run: python quantize.py > quantize.txt

A line is `NAME FNV...`: FNV-1a (64 bits) of the blocks of each set of values below, in the order of `sets`. The sets are made of
the random bytes of ggml.py, rounded once to f32. gguf-py does not write IQ4_NL: `iq4_nl` is our reading of ggml's
quantize_row_iq4_nl_ref.
"""

import gguf
import numpy as np

from ggml import fnv, random_bytes

BLOCKS = 256
NON_LINEAR = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)


def sets():
    integers = random_bytes(7, BLOCKS * 32 * 2).view("<i2").reshape(BLOCKS, 32)
    exponents = random_bytes(8, BLOCKS).astype(np.int32).reshape(BLOCKS, 1) % 48
    plain = integers.astype(np.float32)
    yield np.ldexp(plain, exponents - 40)  # of any magnitude that matters
    yield np.ldexp(plain, exponents - 160)  # the scale is subnormal, or 0, as an f16
    yield np.ldexp(plain, exponents + 50)  # the scale is infinite as an f16
    yield np.ldexp((integers % 8).astype(np.float32), -3)  # many ties
    yield np.abs(plain)
    yield np.where(integers % 4 == 0, plain, np.float32(0))
    yield np.zeros((2, 32), np.float32) * np.array([[1], [-1]], np.float32)
    yield np.full((1, 32), -2.5, np.float32)
    yield np.ldexp(plain, -163)  # the inverse of the scale is infinite


def iq4_nl(values):
    blocks = bytearray()
    for x in values:
        extreme = x[np.abs(x).argmax()]
        if np.abs(extreme) < np.float32(1e-15):
            blocks += bytes(18)
            continue
        inverse = np.float32(1) / (extreme / NON_LINEAR[0])
        scaled = inverse * x
        upper = np.clip(np.searchsorted(NON_LINEAR, scaled, side="right"), 1, 15)
        is_lower = scaled - NON_LINEAR[upper - 1] < NON_LINEAR[upper] - scaled
        codes = np.where(is_lower, upper - 1, upper).astype(np.uint8)
        qx, q2 = np.float32(0), np.float32(0)
        for value, q in zip(x, NON_LINEAR[codes]):
            weight = value * value
            qx += weight * q * value
            q2 += weight * q * q
        blocks += np.float16(qx / q2).tobytes() + (codes[:16] | codes[16:] << 4).tobytes()
    return bytes(blocks)


if __name__ == "__main__":
    np.seterr(all="ignore")
    for name in "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0":
        kind = gguf.GGMLQuantizationType[name]
        print(name, *(f"{fnv(gguf.quants.quantize(values, kind).tobytes()):016x}" for values in sets()))
    print("IQ4_NL", *(f"{fnv(iq4_nl(values)):016x}" for values in sets()))
