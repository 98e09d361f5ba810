//! The codes of `zt.delta/1`, bit by bit, from `spec/formats/zt.delta.md` alone.

use std::collections::BTreeMap;

/// The new values of a stretch, from its old ones; `None` where the code breaks a rule. `mantissa` is the
/// number of bits below the exponent, for a type that has one.
pub fn apply(width: u32, mantissa: Option<u32>, old: &[u64], code: &[u8]) -> Option<Vec<u64>> {
    if code.len() > old.len() * width as usize + 1 {
        return None;
    }
    let Some((method, rest)) = code.split_first() else {
        return Some(old.to_vec());
    };
    let mantissa = match method {
        0 => None,
        1 => Some(mantissa?),
        2 => {
            let width = width as usize;
            let values = rest.chunks(width).map(|bytes| {
                let bytes = bytes.iter().rev();
                bytes.fold(0, |value, byte| value << 8 | u64::from(*byte))
            });
            return (rest.len() == old.len() * width).then(|| values.collect());
        }
        _ => return None,
    };
    let mut classes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (place, value) in old.iter().enumerate() {
        let class = mantissa.map_or(0, |mantissa| value >> mantissa & 0xff);
        classes.entry(class).or_default().push(place);
    }
    let bits = rest.iter().flat_map(|byte| (0..8).map(move |at| byte >> at & 1 == 1));
    let mut bits = Bits(bits.collect(), 0);
    let mut new = old.to_vec();
    for places in classes.values() {
        let count_bits = places.len().ilog2() + 1;
        let count = bits.number(count_bits)?;
        if count > places.len() as u64 {
            return None;
        }
        if count == 0 {
            continue;
        }
        let (of_gaps, of_steps) = (bits.code(17)?, bits.code(8 * width)?);
        let (mut at, mut changed) = (0u128, Vec::new());
        for _ in 0..count {
            at += bits.coded(of_gaps, 17)?;
            changed.push(*places.get(usize::try_from(at).ok()?)?);
            at += 1;
        }
        let modulus = 1u128 << (8 * width);
        for place in changed {
            let step = bits.coded(of_steps, 8 * width)?;
            if step >= modulus {
                return None;
            }
            let (size, old) = (step / 2 + 1, u128::from(old[place]));
            let sum = match step % 2 {
                0 => old + size,
                _ => old + modulus - size,
            };
            new[place] = (sum % modulus) as u64;
        }
    }
    let left = bits.0.get(bits.1..)?;
    (left.len() < 8 && !left.contains(&true)).then_some(new)
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

    /// The code of numbers that have `full` bits at most: k, and whether it is plain.
    fn code(&mut self, full: u32) -> Option<(u32, bool)> {
        let k = u32::try_from(self.number(7)?).ok()?;
        let is_plain = self.number(1)? == 1;
        let most = if is_plain { full } else { full.min(58) };
        (k <= most).then_some((k, is_plain))
    }

    fn coded(&mut self, (k, is_plain): (u32, bool), full: u32) -> Option<u128> {
        if is_plain {
            return self.number(k).map(u128::from);
        }
        let mut ones = 0u128;
        while ones < 24 && self.number(1)? == 1 {
            ones += 1;
        }
        if ones == 24 {
            return self.number(full).map(u128::from);
        }
        Some(ones << k | u128::from(self.number(k)?))
    }
}
