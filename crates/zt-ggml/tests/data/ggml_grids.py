"""Writes src/grid_tables.rs: the grids of ggml's IQ types, as gguf-py packs them. Run: python ggml_grids.py > ../../src/grid_tables.rs"""

from gguf import quants

HEAD = '''//! The grids of the IQ types. An index selects eight or four values.
//!
//! Written by `tests/data/ggml_grids.py` from `gguf` {version} (MIT, of the authors of ggml), which packs
//! the grids of ggml's `ggml-common.h`: 2 or 4 bits per value, the first in the lowest bits. The bytes
//! are in hexadecimal, as in `gguf`.

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
/// Unpacks codes of `16 / N` bits to the levels that they number. Each entry has two bytes of `packed`.
pub(super) const fn unpacked<const N: usize, const LEN: usize>(levels: &[i8], packed: &str) -> [[i8; N]; LEN] {
    let digits = packed.as_bytes();
    assert!(digits.len() == 4 * LEN);
    let bits = 16 / N;
    let mut grid = [[0; N]; LEN];
    let mut at = 0;
    while at < LEN {
        let low = digit(digits[4 * at]) << 4 | digit(digits[4 * at + 1]);
        let high = digit(digits[4 * at + 2]) << 4 | digit(digits[4 * at + 3]);
        let mut value = 0;
        while value < N {
            let code = (high << 8 | low) >> (bits * value) & ((1 << bits) - 1);
            grid[at][value] = levels[code];
            value += 1;
        }
        at += 1;
    }
    grid
}

/// The number of a lower-case hexadecimal digit.
const fn digit(digit: u8) -> usize {
    (match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit - b'a' + 10,
    }) as usize
}
'''

import importlib.metadata

print(HEAD.format(version=importlib.metadata.version("gguf")), end="")
for name, kind, about in GRIDS:
    quant = getattr(quants, kind)
    count, width = quant.grid_shape
    packed = quant.grid_hex.decode()
    assert len(packed) == 4 * count and packed == packed.lower()
    levels = ", ".join(str(level) for level in quant.grid_map)
    print(f"/// {about}")
    print(f"pub(super) static {name}: [[i8; {width}]; {count}] = unpacked(&[{levels}], \"\\")
    for at in range(0, len(packed), 92):
        print(f"    {packed[at : at + 92]}\\")
    print("\");\n")
print(TAIL.lstrip("\n"), end="")
