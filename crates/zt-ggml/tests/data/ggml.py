"""Writes ggml.txt: what gguf-py makes of random blocks of every quantized type. Run: python ggml.py > ggml.txt

A line is `NAME ID VALUES/BYTES MASKED FNV VALUE...`: blocks of BYTES bytes come from splitmix64 seeded with ID, with bit 6 of the bytes at
the offsets MASKED cleared, which keeps scales finite; FNV is FNV-1a (64 bits) of the little-endian f32 of all BLOCKS blocks,
VALUE the bits of the first eight. Types that gguf-py cannot dequantize follow dequantize_row_* of ggml's ggml-quants.c.
"""

import gguf
import numpy as np

BLOCKS = 512

# The upper byte of every scale.
MASKED = {
    "Q4_0": [1], "Q4_1": [1, 3], "Q5_0": [1], "Q5_1": [1, 3], "Q8_0": [1], "Q8_1": [1, 3],
    "Q2_K": [81, 83], "Q3_K": [109], "Q4_K": [1, 3], "Q5_K": [1, 3], "Q6_K": [209], "Q8_K": [3],
    "IQ2_XXS": [1], "IQ2_XS": [1], "IQ3_XXS": [1], "IQ1_S": [1], "IQ4_NL": [1], "IQ3_S": [1],
    "IQ2_S": [1], "IQ4_XS": [1], "IQ1_M": [55], "TQ1_0": [53], "TQ2_0": [65], "MXFP4": [],
    "NVFP4": [], "Q1_0": [1], "Q2_0": [1],
}  # fmt: skip

# Not in gguf-py, or of another size there.
OTHERS = {"Q8_1": (9, 32, 36), "Q2_0": (42, 64, 18)}


def random_bytes(seed, count):
    """The little-endian words of splitmix64."""
    words, state, mask = [], seed, (1 << 64) - 1
    for _ in range(-(-count // 8)):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        words.append(z ^ (z >> 31))
    return np.array(words, dtype="<u8").view(np.uint8)[:count].copy()


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def halves(blocks):
    return blocks[:, :2].copy().view(np.float16).astype(np.float32)


def reference(name, blocks):
    """dequantize_row_q8_1 (as of its block), _q8_K, _q1_0 and _q2_0."""
    if name == "Q8_1":
        return halves(blocks) * blocks[:, 4:].view(np.int8).astype(np.float32)
    if name == "Q8_K":
        return blocks[:, :4].copy().view(np.float32) * blocks[:, 4:260].view(np.int8).astype(np.float32)
    if name == "Q1_0":
        bits = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little")
        return np.where(bits == 1, halves(blocks), -halves(blocks))
    qs = blocks[:, 2:, None] >> np.array([0, 2, 4, 6], dtype=np.uint8) & 3
    return (qs.reshape(len(blocks), -1).astype(np.float32) - np.float32(1)) * halves(blocks)


if __name__ == "__main__":
    for name, masked in MASKED.items():
        if name in OTHERS:
            number, values, size = OTHERS[name]
        else:
            kind = gguf.GGMLQuantizationType[name]
            number, (values, size) = int(kind), gguf.GGML_QUANT_SIZES[kind]
        blocks = random_bytes(number, BLOCKS * size).reshape(BLOCKS, size)
        blocks[:, masked] &= 0xBF
        try:
            dense = gguf.quants.dequantize(blocks, kind) if name not in OTHERS else reference(name, blocks)
        except NotImplementedError:
            dense = reference(name, blocks)
        assert dense.dtype == np.float32 and dense.size == BLOCKS * values and not np.isnan(dense).any()
        bits = dense.reshape(-1).view(np.uint32)
        first = " ".join(f"{value:08x}" for value in bits[:8])
        offsets = ",".join(map(str, masked)) or "-"
        print(f"{name} {number} {values}/{size} {offsets} {fnv(bits.astype('<u4').tobytes()):016x} {first}")
