"""Writes src/grid_tables.rs: the grids of ggml's IQ types, as gguf-py packs them. Run: python ggml_grids.py > ../../src/grid_tables.rs"""

from gguf import quants

HEAD = '''//! The grids of the IQ types. An index selects eight or four values.
//!
//! Written by `tests/data/ggml_grids.py` from `gguf` {version} (MIT, of the authors of ggml), which packs
//! the grids of ggml's `ggml-common.h`: 2 or 4 bits per value, the first in the lowest bits.

'''

GRIDS = [
    ("IQ2_XXS", "IQ2_XXS", "The grid of IQ2_XXS."),
    ("IQ2_XS", "IQ2_XS", "The grid of IQ2_XS."),
    ("IQ2_S", "IQ2_S", "The grid of IQ2_S."),
    ("IQ3_XXS", "IQ3_XXS", "The grid of IQ3_XXS."),
    ("IQ3_S", "IQ3_S", "The grid of IQ3_S."),
    ("IQ1", "IQ1_S", "The grid of IQ1_S and IQ1_M."),
]

TAIL = '''
/// Unpacks codes of `16 / N` bits to the levels that they number.
pub(super) const fn unpacked<const N: usize, const LEN: usize>(levels: &[i8], packed: &[u16; LEN]) -> [[i8; N]; LEN] {
    let bits = 16 / N;
    let mut grid = [[0; N]; LEN];
    let mut at = 0;
    while at < LEN {
        let mut value = 0;
        while value < N {
            let code = packed[at] as usize >> (bits * value) & ((1 << bits) - 1);
            grid[at][value] = levels[code];
            value += 1;
        }
        at += 1;
    }
    grid
}
'''

import importlib.metadata

print(HEAD.format(version=importlib.metadata.version("gguf")), end="")
for name, kind, about in GRIDS:
    quant = getattr(quants, kind)
    count, width = quant.grid_shape
    packed = bytes.fromhex(quant.grid_hex.decode())
    words = [int.from_bytes(packed[at : at + 2], "little") for at in range(0, len(packed), 2)]
    assert len(words) == count and 2 * count == len(packed)
    levels = ", ".join(str(level) for level in quant.grid_map)
    print(f"/// {about}")
    print(f"pub(super) static {name}: [[i8; {width}]; {count}] = unpacked(&[{levels}], &[")
    for at in range(0, count, 12):
        print("    " + ", ".join(f"0x{word:04X}" for word in words[at : at + 12]) + ",")
    print("]);\n")
print(TAIL.lstrip("\n"), end="")
