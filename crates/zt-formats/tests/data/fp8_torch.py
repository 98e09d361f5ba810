"""Writes fp8_torch.txt: the FP8 codes that torch gives for every f16 and bf16. Run: python fp8_torch.py > fp8_torch.txt

A line has the types of a cast, then pairs `bits=code`: all codes from these bits to the next pair have this FP8 code.
"""

import torch

SOURCES = {"f16": torch.float16, "bf16": torch.bfloat16}
TARGETS = {"f8_e4m3fn": torch.float8_e4m3fn, "f8_e5m2": torch.float8_e5m2}

bits = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16)
for source, dtype in SOURCES.items():
    for target, fp8 in TARGETS.items():
        codes = bits.view(dtype).to(fp8).view(torch.uint8).tolist()
        starts = [at for at, code in enumerate(codes) if at == 0 or code != codes[at - 1]]
        print(source, target, *(f"{at:04x}={codes[at]:02x}" for at in starts))
