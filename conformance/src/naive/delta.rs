//! The codes of `zt.delta/1`, bit by bit, from `spec/formats/zt.delta.md` alone.

use std::collections::BTreeMap;

/// The new values of a stretch, from its old ones; `None` where the code breaks a rule. `mantissa` is the
/// number of bits below the exponent, for a type that has one.
pub fn apply(width: u32, mantissa: Option<u32>, old: &[u64], code: &[u8]) -> Option<Vec<u64>> {
    let Some((first, rest)) = code.split_first() else {
        return Some(old.to_vec());
    };
    let (method, g) = (first & 3, u32::from(first >> 2));
    if method == 2 {
        let width = width as usize;
        let values = rest.chunks(width).map(|bytes| {
            let bytes = bytes.iter().rev();
            bytes.fold(0, |value, byte| value << 8 | u64::from(*byte))
        });
        return (g == 0 && rest.len() == old.len() * width).then(|| values.collect());
    }
    let mantissa = match method {
        0 => None,
        1 => Some(mantissa?),
        _ => return None,
    };
    let (s, rest) = rest.split_first()?;
    if g > 17 || *s > 62 {
        return None;
    }
    let bits = rest
        .iter()
        .flat_map(|byte| (0..8).map(move |at| byte >> at & 1 == 1));
    let mut bits = Bits(bits.collect(), 0);
    let start = |count, parameter: u32| Context {
        count,
        sum: if parameter == 0 {
            0
        } else {
            count << parameter
        },
    };
    let start = || (start(2, g), start(1, u32::from(*s)));
    let mut contexts = BTreeMap::new();
    let mut gaps = BTreeMap::new();
    let mut new = old.to_vec();
    for value in &mut new {
        let class = mantissa.map_or(0, |mantissa| *value >> mantissa & 0xff);
        let (of_gaps, of_sizes) = contexts.entry(class).or_insert_with(start);
        let gap = match gaps.get(&class) {
            Some(gap) => *gap,
            None => of_gaps.number(&mut bits, 18)?,
        };
        if gap > 0 {
            gaps.insert(class, gap - 1);
            continue;
        }
        let size = of_sizes.number(&mut bits, 8 * width)?;
        if size >= 1 << (8 * width - 1) {
            return None;
        }
        let change = size + 1;
        let sum = match bits.number(1)? {
            0 => u128::from(*value) + u128::from(change),
            _ => u128::from(*value) + (1u128 << (8 * width)) - u128::from(change),
        };
        *value = (sum % (1u128 << (8 * width))) as u64;
        gaps.insert(class, of_gaps.number(&mut bits, 18)?);
    }
    if old.is_empty() && method == 0 {
        // The only class has no element, and its gap leads to the end.
        gaps.insert(0, start().0.number(&mut bits, 18)?);
    }
    let is_at_the_end = gaps.values().all(|gap| *gap == 0);
    let left = bits.0.get(bits.1..)?;
    (is_at_the_end && left.len() < 8 && !left.contains(&true)).then_some(new)
}

struct Context {
    count: u64,
    sum: u64,
}

impl Context {
    fn number(&mut self, bits: &mut Bits, full: u32) -> Option<u64> {
        let mut k = 0;
        while 3 * (u128::from(self.count) << k) < 2 * u128::from(self.sum) {
            k += 1;
        }
        let mut ones = 0u128;
        while ones < 24 && bits.number(1)? == 1 {
            ones += 1;
        }
        let number = if ones == 24 {
            bits.number(full)?
        } else {
            u64::try_from(ones << k | u128::from(bits.number(k)?)).ok()?
        };
        self.count += 1;
        self.sum = self.sum.saturating_add(number);
        if self.count == 64 {
            self.count = 32;
            self.sum /= 2;
        }
        Some(number)
    }
}

/// Bits, and the place of the next one.
struct Bits(Vec<bool>, usize);

impl Bits {
    fn number(&mut self, count: u32) -> Option<u64> {
        let mut number = 0;
        for at in 0..count {
            let bit = *self.0.get(self.1)?;
            self.1 += 1;
            number |= u64::from(bit) << at;
        }
        Some(number)
    }
}
