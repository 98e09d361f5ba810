//! Prefix codes of bytes: their lengths, the codes, and a table of several symbols an entry. Spec:
//! formats/zt.planes-2.
#![deny(clippy::cast_possible_truncation)]

/// The bits of the longest code. The table of a decoder has an entry for each number of so many bits.
pub(super) const LONGEST: u32 = 11;

/// The number of these entries.
pub(super) const SIZE: usize = 1 << LONGEST;

/// Symbols of an entry at most.
const MOST: u64 = 6;

/// The bits of the code of each byte; 0 for a byte that does not occur.
pub(super) type Lengths = [u8; 256];

/// The lengths of at most [`LONGEST`] bits with the fewest bits in all: package-merge, by Larmore and
/// Hirschberg. All are 0 for fewer than two symbols.
pub(super) fn lengths(counts: &[u32; 256]) -> Lengths {
    let mut lengths = [0; 256];
    let counts = (0..=u8::MAX).zip(counts).filter(|(_, count)| **count > 0);
    let mut symbols: Vec<(u64, u8)> = counts.map(|(s, count)| (u64::from(*count), s)).collect();
    symbols.sort_unstable();
    let Some(mut taken) = symbols.len().strict_mul(2).checked_sub(2).filter(|taken| *taken > 0)
    else {
        return lengths;
    };
    // Each level has the symbols and packages of two of the level before, the lightest first.
    let mut levels: Vec<Vec<(u64, bool)>> = Vec::new();
    for _ in 0..LONGEST {
        let before = levels.last().map_or(&[][..], Vec::as_slice).as_chunks::<2>().0.iter();
        let packages = before.map(|[one, other]| (one.0.strict_add(other.0), false));
        let mut packages = packages.peekable();
        let mut level = Vec::with_capacity(512);
        for (count, _) in &symbols {
            while let Some(package) = packages.next_if(|package| package.0 < *count) {
                level.push(package);
            }
            level.push((*count, true));
        }
        level.extend(packages);
        levels.push(level);
    }
    for level in levels.iter().rev() {
        let of_level = level.iter().take(taken).filter(|(_, is_symbol)| *is_symbol).count();
        for (_, symbol) in symbols.iter().take(of_level) {
            if let Some(length) = lengths.get_mut(usize::from(*symbol)) {
                *length = length.strict_add(1);
            }
        }
        taken = taken.strict_sub(of_level).strict_mul(2);
    }
    lengths
}

/// The code of each symbol, its first bit the lowest: canonical codes, by length and symbol. The lengths
/// have at most 15 bits.
pub(super) fn codes(lengths: &Lengths) -> [u16; 256] {
    let mut codes = [0; 256];
    let mut next = 0u16;
    for bits in 1..u16::BITS {
        next = next.wrapping_shl(1);
        let of_length = codes.iter_mut().zip(lengths);
        for (code, _) in of_length.filter(|(_, length)| u32::from(**length) == bits) {
            *code = next.reverse_bits().wrapping_shr(u16::BITS.strict_sub(bits));
            next = next.wrapping_add(1);
        }
    }
    codes
}

/// What the next [`LONGEST`] bits of a stream begin with.
///
/// An entry has the bits of its symbols in the lowest byte, their number in the next, and up to six
/// symbols in the others: as many as the bits hold.
pub(super) struct Table {
    /// The entries of all numbers of bits up to [`LONGEST`]: the entries for k bits begin at 2^k.
    entries: Vec<u64>,
}

impl Table {
    pub(super) fn new() -> Self {
        Table { entries: vec![0; SIZE.strict_mul(2)] }
    }

    /// Replaces the entries. `None` if the code is not complete, or longer than [`LONGEST`] bits.
    pub(super) fn fill(&mut self, lengths: &Lengths) -> Option<()> {
        let used = lengths.iter().filter(|length| **length > 0);
        let shares = used.map(|length| SIZE.checked_shr(u32::from(*length)).filter(|it| *it > 0));
        let sum = shares.sum::<Option<usize>>()?;
        if sum != SIZE {
            return None;
        }
        let codes = codes(lengths).into_iter();
        let used = (0u64..).zip(lengths.iter().zip(codes)).filter(|(_, (length, _))| **length > 0);
        let mut used: Vec<(u32, usize, u64)> = used
            .map(|(symbol, (length, code))| {
                let own = u64::from(*length) | 1 << 8 | symbol.wrapping_shl(16);
                (u32::from(*length), usize::from(code), own)
            })
            .collect();
        used.sort_unstable_by_key(|(length, ..)| *length);
        for bits in 1..=LONGEST {
            let size = 1usize.wrapping_shl(bits);
            let (below, here) = self.entries.split_at_mut(size);
            let here = here.get_mut(..size)?;
            // An entry for bits that begin a longer code has no symbol.
            here.fill(0);
            for (length, code, own) in &used {
                let Some(rest) = bits.checked_sub(*length) else { break };
                let rest = 1usize.wrapping_shl(rest);
                let rest = below.get(rest..rest.strict_mul(2))?;
                let slots = here.get_mut(*code..)?.iter_mut();
                for (slot, rest) in slots.step_by(1usize.wrapping_shl(*length)).zip(rest) {
                    *slot = before(*own, *rest, lengths);
                }
            }
        }
        Some(())
    }

    pub(super) fn entries(&self) -> &[u64; SIZE] {
        self.entries.last_chunk().unwrap_or(&[0; SIZE])
    }
}

/// The entry of one symbol, followed by the symbols of another entry. There is no room for a seventh.
fn before(own: u64, rest: u64, lengths: &Lengths) -> u64 {
    let [.., last] = rest.to_le_bytes();
    let without = match rest >> 8 & 0xff {
        MOST => 1 << 8 | u64::from(lengths.get(usize::from(last)).copied().unwrap_or_default()),
        _ => 0,
    };
    let sizes = (rest & 0xffff).wrapping_sub(without);
    own.wrapping_add(sizes).wrapping_add((rest >> 16) << 24)
}
